//! Secrets, and where their values come from: `{ env = "X" }` and `{ file = "path" }`.
//!
//! A reference stands in place of a whole value; text is never substituted. The environment is asked through a trait,
//! so that everything else here stays pure and its tests need no process environment.
//!
//! Must not know: which keys may hold references.

use std::fmt;
use std::path::Path;

/// A value that must not be seen: neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one who needs it. It must not be logged.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What references are resolved with.
pub trait Environment {
    /// The value of an environment variable.
    ///
    /// # Errors
    /// Why there is none, as `is not set`: it follows the variable's name in a message.
    fn variable(&self, name: &str) -> Result<String, String>;

    /// The content of a text file.
    ///
    /// # Errors
    /// Why it cannot be read, as `cannot be read: …`: it follows the file's name in a message.
    fn file(&self, path: &Path) -> Result<String, String>;
}

/// The environment and the files of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    fn variable(&self, name: &str) -> Result<String, String> {
        std::env::var(name).map_err(|error| match error {
            std::env::VarError::NotPresent => "is not set".to_owned(),
            std::env::VarError::NotUnicode(_) => "is not valid UTF-8".to_owned(),
        })
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
    }
}
