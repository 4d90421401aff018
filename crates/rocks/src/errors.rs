//! What an error of the disk or of RocksDB means: its reaction, and what, where, why and what to do in one sentence.
//!
//! RocksDB hands errors over as text, so text is what is looked at; the words of the operating system in it are
//! stable (`strerror` in the C locale).

use std::io;
use std::path::Path;

use rocksdb::ErrorKind;
use tallyflow_state::cold::ColdError;

/// What went wrong, before it has a place and a way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    Locked,
    Full,
    NotWritable,
    TooManyFiles,
    Damaged,
    Other,
}

/// The error of a RocksDB in this directory.
pub(crate) fn of_rocks(path: &Path, error: &rocksdb::Error) -> ColdError {
    let text = error.as_ref();
    let cause = match by_text(text) {
        Cause::Other if text.contains("No such file or directory") => Cause::Damaged,
        Cause::Other => match error.kind() {
            // Files of a newer RocksDB are "not implemented" or of an "invalid" format to an older one.
            ErrorKind::Corruption | ErrorKind::NotSupported | ErrorKind::InvalidArgument => Cause::Damaged,
            _ => Cause::Other,
        },
        cause => cause,
    };
    sentence(cause, path, text)
}

/// The error of a file or directory.
pub(crate) fn of_io(path: &Path, error: &io::Error) -> ColdError {
    let cause = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Cause::Full,
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory => Cause::NotWritable,
        _ => by_text(&error.to_string()),
    };
    sentence(cause, path, &error.to_string())
}

/// What is stored is not what was written.
pub(crate) fn damaged(path: &Path, what: &str) -> ColdError {
    sentence(Cause::Damaged, path, what)
}

fn by_text(text: &str) -> Cause {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["While lock file", "lock hold by current process"]) {
        // Without permission the lock file cannot be opened either.
        if says(&["Permission denied", "Read-only file system"]) { Cause::NotWritable } else { Cause::Locked }
    } else if says(&["No space left on device", "Disk quota exceeded", "NoSpace", "Max allowed space"]) {
        Cause::Full
    } else if says(&[
        "Permission denied",
        "Read-only file system",
        "Operation not permitted",
        "Not a directory",
    ]) {
        Cause::NotWritable
    } else if says(&["Too many open files"]) {
        Cause::TooManyFiles
    } else {
        Cause::Other
    }
}

fn sentence(cause: Cause, path: &Path, why: &str) -> ColdError {
    let place = path.display();
    match cause {
        Cause::Locked => ColdError::Locked(format!(
            "local state in {place} is in use by another process: stop that one, or give this one another slot \
             ({why})"
        )),
        Cause::Full => ColdError::Full(format!(
            "the disk is full, local state in {place} cannot be written: make room there ({why})"
        )),
        Cause::NotWritable => ColdError::NotWritable(format!(
            "local state in {place} cannot be written: give the user of this process the right to write there, or \
             choose another state_dir ({why})"
        )),
        Cause::TooManyFiles => ColdError::Other(format!(
            "local state in {place} cannot be opened because this process has too many files open: raise the limit \
             (ulimit -n) ({why})"
        )),
        Cause::Damaged => ColdError::Damaged(format!(
            "local state in {place} is damaged: it has to be discarded and rebuilt from Kafka ({why})"
        )),
        Cause::Other => ColdError::Other(format!("local state in {place} is not available ({why})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reaction_is_found_in_the_words() {
        let name = |error: &ColdError| format!("{error:?}").split('(').next().unwrap().to_owned();
        for (text, right) in [
            ("IO error: While lock file: db/LOCK: Resource temporarily unavailable", Cause::Locked),
            (
                "IO error: lock hold by current process, acquire time 1 acquiring thread 2: db/LOCK: No locks available",
                Cause::Locked,
            ),
            ("IO error: While lock file: db/LOCK: Permission denied", Cause::NotWritable),
            ("IO error: No space left on device: While appending to file: db/000012.sst", Cause::Full),
            ("IO error: While mkdir if missing: db: Disk quota exceeded", Cause::Full),
            (
                "IO error: While open a file for appending: db/MANIFEST: Read-only file system",
                Cause::NotWritable,
            ),
            ("IO error: While open a file: db/000012.sst: Too many open files", Cause::TooManyFiles),
            ("IO error: db/CURRENT", Cause::Other),
        ] {
            assert_eq!(by_text(text), right, "{text}");
            let error = sentence(right, Path::new("slot-0/count/t/db"), text);
            let said = error.to_string();
            assert!(said.contains("slot-0/count/t/db") && said.contains(text), "{said}");
            assert!(!said.ends_with('.') && !name(&error).is_empty());
        }
    }

    #[test]
    fn io_errors_have_the_same_reactions() {
        let of = |kind: io::ErrorKind| of_io(Path::new("dir"), &io::Error::from(kind));
        assert!(matches!(of(io::ErrorKind::StorageFull), ColdError::Full(_)));
        assert!(matches!(of(io::ErrorKind::ReadOnlyFilesystem), ColdError::NotWritable(_)));
        assert!(matches!(of(io::ErrorKind::PermissionDenied), ColdError::NotWritable(_)));
        assert!(matches!(of(io::ErrorKind::Interrupted), ColdError::Other(_)));
    }
}
