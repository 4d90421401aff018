//! topology.toml: as written → checked → compiled. All problems at once, each with its place.
//!
//! ```text
//!  text ──document──► tree of values ──written──► Written ──resolve, check──► (no problems) ──compile──► Deployment
//!           │ TF01xx: form, keys, units               │ TF02xx…TF05xx: sense                                │
//!           └──────────────► Problems ◄───────────────┘                             topics::specs, topics::check
//!                                                                                   graph::ascii, graph::mermaid
//! ```
//!
//! [`keys::KEYS`] is the one table of every key with its kind, bounds, default and meaning: the parser obeys it and
//! docs/configuration.md is checked against it. [`codes::Code`] is the one table of every kind of problem:
//! docs/errors.md is checked against it.
//!
//! Must not know: Kafka clients, clocks. The process's environment is asked only through [`environment::Environment`].

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod check;
pub mod codes;
mod compile;
pub mod deployment;
mod document;
pub mod environment;
pub mod graph;
pub mod keys;
mod owned;
mod place;
pub mod problem;
mod suggest;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod topics;
pub mod units;
mod values;
mod written;

use std::path::Path;

pub use codes::Code;
pub use deployment::{Deployment, FailurePlan, KafkaPlan};
pub use environment::{Environment, Secret, SystemEnvironment};
pub use owned::{OWNED_PROPERTIES, owned};
pub use problem::{Problem, Problems, TopologyError};

use place::Report;
use written::Written;

/// Where a text comes from, and what the command line says that the file need not.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file's path, as the user gave it: it stands in front of every problem, and `state_dir` is relative to
    /// its folder.
    pub path: &'a Path,
    /// The value of `--brokers`: replaces `kafka.brokers`, which is then neither required nor resolved.
    pub brokers: Option<&'a str>,
}

impl<'a> Source<'a> {
    /// A file, with nothing overridden.
    pub const fn of(path: &'a Path) -> Self {
        Self { path, brokers: None }
    }
}

/// Reads, checks and compiles a file.
///
/// # Errors
/// [`TopologyError::Unreadable`] when the file cannot be read, else [`TopologyError::Problems`] with all of them.
pub fn load(source: Source<'_>, environment: &dyn Environment) -> Result<Deployment, TopologyError> {
    let bytes = std::fs::read(source.path).map_err(|error| TopologyError::Unreadable {
        path: source.path.to_path_buf(),
        reason: error.to_string(),
    })?;
    Ok(compile(&bytes, source, environment)?)
}

/// Checks and compiles a text. Pure, but for what `environment` does.
///
/// # Errors
/// All problems, in the order of their places; never an empty list.
pub fn compile(
    bytes: &[u8],
    source: Source<'_>,
    environment: &dyn Environment,
) -> Result<Deployment, Problems> {
    let file = source.path.display().to_string();
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Err(not_text(file, bytes, error.valid_up_to())),
    };
    let mut report = Report::new(file, text);
    let root = document::parse(text, source.brokers.map(|_| "kafka.brokers"), &mut report);
    let Some(written) = Written::of(&root) else {
        return Err(incomplete(report));
    };
    // What is not TOML was not read as it was meant: whether it makes sense is not asked.
    if !report.is_toml() {
        return Err(report.into_problems());
    }
    let resolved = compile::resolve(&written, source, environment, &mut report);
    if let Some(brokers) = &resolved.brokers {
        let given_by = if source.brokers.is_some() { "--brokers" } else { "kafka.brokers" };
        check::brokers(given_by, brokers, &mut report);
    }
    check::all(&written, &mut report);
    if !report.is_empty() {
        return Err(report.into_problems());
    }
    compile::deployment(&written, resolved, source).ok_or_else(|| incomplete(report))
}

/// The problem of a file that is not text.
fn not_text(file: String, bytes: &[u8], at: usize) -> Problems {
    let good = bytes.get(..at).and_then(|good| std::str::from_utf8(good).ok()).unwrap_or_default();
    let mut report = Report::new(file, good);
    report.add(at, Code::Syntax, "this is not UTF-8", "save the file as UTF-8 text");
    report.into_problems()
}

/// An answer with at least one problem, for a value that is absent without one having been reported.
fn incomplete(mut report: Report<'_>) -> Problems {
    if report.is_empty() {
        report.add(0, Code::Missing, "the file is incomplete", "compare it with the documentation");
    }
    report.into_problems()
}
