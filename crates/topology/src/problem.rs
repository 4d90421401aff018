//! Problems of a topology file: what is wrong, where, and what to do about it.
//!
//! A problem never quotes the value of a secret: values of `[kafka.client]` and of references stay out of messages.
//!
//! Must not know: what is checked.

use std::fmt;
use std::path::PathBuf;

use crate::codes::Code;

/// One problem and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file, as the user named it.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// Which kind of problem.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, code, message, help } = self;
        write!(f, "{file}:{line}:{column}: {code}: {message}")?;
        if help.is_empty() { Ok(()) } else { write!(f, "\n  help: {help}") }
    }
}

/// All problems of a file, in the order of their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn from_list(mut list: Vec<Problem>) -> Self {
        list.sort_by(|a, b| {
            (a.line, a.column, a.code, &a.message).cmp(&(b.line, b.column, b.code, &b.message))
        });
        list.dedup();
        Self(list)
    }

    /// The problems.
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Why there is no deployment.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The file could not be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
    /// It was read, and these are its problems.
    #[error(transparent)]
    Problems(#[from] Problems),
}
