//! Slots: which directory a process uses, and who it is.
//!
//! A slot belongs to one process at a time (a lock that the system takes back when the process dies, however it
//! dies). The instance id in it is made once and names the process's transactional ids: a restarted process fences
//! its predecessor.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tallyflow_state::cold::ColdError;

use crate::errors;

/// Slots of one state directory. More processes on one machine than this are a mistake.
const SLOT_LIMIT: u32 = 1024;
/// Random bytes of an instance id, written as twice as many digits.
const INSTANCE_BYTES: usize = 8;

/// A directory that is ours until this value is dropped.
#[derive(Debug)]
pub struct Slot {
    /// The directory.
    pub dir: PathBuf,
    /// Its number.
    pub number: u32,
    /// The instance id: 16 hexadecimal digits.
    pub instance: String,
    /// Held open: closing it gives the slot back.
    _lock: File,
}

impl Slot {
    /// Claims slot `number` of a state directory, or the lowest one that is free. Makes what is missing.
    ///
    /// # Errors
    ///
    /// [`ColdError::Locked`] where another process has it (or all of them), [`ColdError::NotWritable`] and
    /// [`ColdError::Full`] where the directory cannot be used, [`ColdError::Damaged`] where its instance id is not
    /// readable.
    pub fn claim(state_dir: &Path, number: Option<u32>) -> Result<Self, ColdError> {
        match number {
            Some(number) => Self::try_claim(state_dir, number)?.ok_or_else(|| {
                let dir = dir_of(state_dir, number);
                ColdError::Locked(format!(
                    "slot {number} ({}) is in use by another process: stop that one, or choose another slot",
                    dir.display()
                ))
            }),
            None => {
                for number in 0..SLOT_LIMIT {
                    if let Some(slot) = Self::try_claim(state_dir, number)? {
                        return Ok(slot);
                    }
                }
                Err(ColdError::Locked(format!(
                    "all {SLOT_LIMIT} slots of {} are in use",
                    state_dir.display()
                )))
            }
        }
    }

    /// `None` if another process has it.
    fn try_claim(state_dir: &Path, number: u32) -> Result<Option<Self>, ColdError> {
        let dir = dir_of(state_dir, number);
        let at = |error: io::Error| errors::of_io(&dir, &error);
        fs::create_dir_all(&dir).map_err(at)?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(at)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(at(error)),
        }
        let instance = instance(&dir)?;
        Ok(Some(Self { dir, number, instance, _lock: lock }))
    }
}

fn dir_of(state_dir: &Path, number: u32) -> PathBuf {
    state_dir.join(format!("slot-{number}"))
}

/// Reads the instance id, or makes it. Call it with the slot's lock.
fn instance(dir: &Path) -> Result<String, ColdError> {
    let path = dir.join("instance");
    let found = read_line(&path)?;
    match found {
        Some(text) if is_instance(&text) => Ok(text),
        Some(_) => Err(ColdError::Damaged(format!(
            "{} does not hold 16 hexadecimal digits: remove it, a new instance id is made then",
            path.display()
        ))),
        None => {
            let text = random_hex().map_err(|error| errors::of_io(Path::new("/dev/urandom"), &error))?;
            write_line(&path, &text)?;
            Ok(text)
        }
    }
}

fn is_instance(text: &str) -> bool {
    text.len() == INSTANCE_BYTES * 2 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn random_hex() -> io::Result<String> {
    let mut bytes = [0; INSTANCE_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

/// The text of a small file, without the end of its line; `None` if there is no such file.
pub(crate) fn read_line(path: &Path) -> Result<Option<String>, ColdError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(errors::of_io(path, &error)),
    }
}

/// Writes a small file so that after a crash it is there whole or not at all.
pub(crate) fn write_line(path: &Path, text: &str) -> Result<(), ColdError> {
    let temporary = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        match path.parent() {
            Some(dir) => File::open(dir)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(|error| errors::of_io(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_slot_is_claimed_and_keeps_its_instance() {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = dir.path().join("made/on/demand");
        let zero = Slot::claim(&state_dir, None).unwrap();
        let one = Slot::claim(&state_dir, None).unwrap();
        assert_eq!((zero.number, one.number), (0, 1));
        assert_eq!(zero.dir, state_dir.join("slot-0"));
        assert!(is_instance(&zero.instance) && zero.instance != one.instance);
        let instance = zero.instance.clone();
        drop(zero);
        let again = Slot::claim(&state_dir, None).unwrap();
        assert_eq!((again.number, again.instance), (0, instance));
    }

    #[test]
    fn a_slot_that_is_asked_for_and_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let held = Slot::claim(dir.path(), Some(7)).unwrap();
        let Err(ColdError::Locked(said)) = Slot::claim(dir.path(), Some(7)) else { panic!("claimed twice") };
        assert!(
            said.contains("slot 7") && said.contains("slot-7") && said.contains("another slot"),
            "{said}"
        );
        assert_eq!(Slot::claim(dir.path(), None).unwrap().number, 0);
        drop(held);
        Slot::claim(dir.path(), Some(7)).unwrap();
    }

    #[test]
    fn a_state_dir_that_is_no_directory_is_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Slot::claim(file.path(), None).unwrap_err();
        assert!(matches!(&error, ColdError::NotWritable(said) if said.contains("state_dir")), "{error:?}");
    }

    #[test]
    fn another_content_of_the_instance_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        drop(Slot::claim(dir.path(), None).unwrap());
        for content in ["", "0123", "0123456789ABCDEF", "0123456789abcdeg"] {
            fs::write(dir.path().join("slot-0/instance"), content).unwrap();
            assert!(matches!(Slot::claim(dir.path(), None), Err(ColdError::Damaged(_))), "{content}");
        }
    }
}
