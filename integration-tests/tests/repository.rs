//! Rules about files that no compiler checks: headers, lengths, and nothing of one machine in the text.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
use std::fs;
use std::path::{Path, PathBuf};

/// Longest file of Rust code, in lines.
const MAX_LINES: usize = 400;

/// Files that are longer for now, with the length that they must not exceed. It only shrinks.
const RATCHET: &[(&str, usize)] = &[];

/// Folders that hold nothing written by us.
const SKIPPED: &[&str] = &[".git", "target", "state", "node_modules"];

/// Paths of a machine, which mean nothing on another one. In two pieces, so that this file does not contain them.
const MACHINE_PATHS: &[(&str, &str)] = &[("/ro", "ot/"), ("/ho", "me/"), ("/Us", "ers/"), ("/wo", "rk/")];

/// Kinds of text files that are searched for machine paths.
const TEXT: &[&str] = &["rs", "toml", "md", "sh", "yaml", "yml", "xml", "json", "avsc", "run"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the repository's root")
}

/// All files below the root, as paths relative to it with their text; binary files are left out.
fn files() -> Vec<(String, String)> {
    let (root, mut files) = (root(), Vec::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            let (path, kind) = (entry.path(), entry.file_type().expect("a file type"));
            if kind.is_dir() {
                let name = entry.file_name();
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    folders.push(path);
                }
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(&path)
            {
                let relative = path.strip_prefix(&root).expect("below the root");
                files.push((relative.to_string_lossy().into_owned(), text));
            }
        }
    }
    files.sort();
    files
}

/// What the rules have against one file.
fn complaints(path: &str, text: &str, ratchet: &[(&str, usize)]) -> Vec<String> {
    let mut found = Vec::new();
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit('.').next().unwrap_or_default();
    if extension == "rs" {
        let lines = text.lines().count();
        let allowed = ratchet.iter().find(|(file, _)| *file == path);
        match allowed {
            Some((_, limit)) if lines > *limit => {
                found.push(format!("{path} grew to {lines} lines, its ratchet says {limit}"));
            }
            Some(_) if lines <= MAX_LINES => {
                found.push(format!("{path} is short enough now: take it off the ratchet"));
            }
            None if lines > MAX_LINES => {
                found.push(format!("{path} has {lines} lines, more than {MAX_LINES}"));
            }
            _ => {}
        }
        let in_tests = path.contains("/tests/");
        if !in_tests && !text.starts_with("//!") {
            found.push(format!("{path} does not begin with a `//!` header"));
        }
    }
    if TEXT.contains(&extension) || name == "run" {
        for (number, line) in text.lines().enumerate() {
            if MACHINE_PATHS.iter().any(|(a, b)| line.contains(&format!("{a}{b}"))) {
                found.push(format!("{path}:{} names a path of one machine", number + 1));
            }
        }
    }
    found
}

#[test]
fn every_file_keeps_the_rules() {
    let files = files();
    let rust = files.iter().filter(|(path, _)| path.ends_with(".rs")).count();
    assert!(rust > 10, "only {rust} files of Rust were found below {}", root().display());
    let found: Vec<String> = files.iter().flat_map(|(path, text)| complaints(path, text, RATCHET)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_ratchet_names_files_that_exist() {
    for (path, _) in RATCHET {
        assert!(root().join(path).is_file(), "{path} is gone: take it off the ratchet");
    }
}

#[test]
fn the_rules_have_teeth() {
    let long = format!("//! A header.\n{}", "\n".repeat(MAX_LINES));
    assert_eq!(complaints("a/src/b.rs", "//! A header.\n", &[]), Vec::<String>::new());
    assert_eq!(complaints("a/src/b.rs", "use c;\n", &[]).len(), 1);
    assert_eq!(complaints("a/tests/b.rs", "use c;\n", &[]), Vec::<String>::new());
    assert_eq!(complaints("a/src/b.rs", &long, &[]).len(), 1);
    assert_eq!(complaints("a/src/b.rs", &long, &[("a/src/b.rs", 500)]), Vec::<String>::new());
    assert_eq!(complaints("a/src/b.rs", &long, &[("a/src/b.rs", 300)]).len(), 1);
    assert_eq!(complaints("a/src/b.rs", "//! A.\n", &[("a/src/b.rs", 500)]).len(), 1);
    let (start, end) = MACHINE_PATHS[0];
    assert_eq!(complaints("docs/a.md", &format!("see {start}{end}x"), &[]).len(), 1);
}
