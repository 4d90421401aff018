//! Exit codes (contract of the commands) and the last words of a command that failed.
//!
//! | code | |
//! | --- | --- |
//! | 0 | done; also when whoever reads the output has heard enough |
//! | 1 | failed |
//! | 2 | wrong usage |
//! | 3 | differences found |
//! | 78 | bad or unreadable topology |

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use tallyflow_kafka::ConfigError;
use tallyflow_topology::{Problems, TopologyError};

use crate::output;

/// It failed.
pub const FAILED: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;
/// The topology is bad or cannot be read (EX_CONFIG of sysexits.h).
pub const BAD_TOPOLOGY: u8 = 78;

/// The command line is well formed and makes no sense with this topology.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// The topology cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTopology {
    /// As the topology says it.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A property of `[kafka.client]` that librdkafka refuses.
    #[error("{}: {why}", path.display())]
    Client {
        /// The topology.
        path: PathBuf,
        /// What is wrong.
        why: ConfigError,
    },
}

/// Says why a command failed, on standard error, and gives its exit code.
pub fn tell(error: &anyhow::Error) -> ExitCode {
    if is_closed_output(error) {
        return ExitCode::SUCCESS;
    }
    output::talk(words(error));
    ExitCode::from(code(error))
}

/// Whether the reader of standard output has gone: `tallyflow windows | head`.
fn is_closed_output(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn code(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        USAGE
    } else if error.is::<BadTopology>() {
        BAD_TOPOLOGY
    } else {
        FAILED
    }
}

fn words(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        // Each one has its place in front; "error:" would only move it away from the margin.
        Some(BadTopology::Topology(TopologyError::Problems(problems))) => {
            format!("{problems}\n{}", number_of(problems))
        }
        Some(BadTopology::Topology(TopologyError::Unreadable { .. })) => {
            format!("error: {error}; name the file with --topology")
        }
        _ => format!("error: {error:#}"),
    }
}

fn number_of(problems: &Problems) -> String {
    match problems.as_slice().len() {
        1 => "1 problem".to_owned(),
        many => format!("{many} problems"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn each_error_has_its_code() {
        let unreadable =
            TopologyError::Unreadable { path: PathBuf::from("x.toml"), reason: "no such file".to_owned() };
        let refused = BadTopology::Client { path: PathBuf::from("x.toml"), why: ConfigError::NoBrokers };
        let cases = [
            (anyhow::anyhow!("no broker"), FAILED),
            (Usage("which input?".to_owned()).into(), USAGE),
            (BadTopology::from(unreadable).into(), BAD_TOPOLOGY),
            (refused.into(), BAD_TOPOLOGY),
        ];
        for (error, right) in cases {
            assert_eq!(code(&error), right, "{error}");
            assert!(words(&error).starts_with("error: "), "{error}");
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_found_below_any_context() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        let error = Err::<(), _>(closed).context("writing rows").unwrap_err();
        assert!(is_closed_output(&error));
        assert!(!is_closed_output(&io::Error::from(io::ErrorKind::NotFound).into()));
    }
}
