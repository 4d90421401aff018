//! Logs: one line per occurrence on standard error; standard output belongs to data.
//!
//! ```text
//! 2026-01-01T00:00:00.000000Z  INFO listening address=127.0.0.1:8080
//! ```
//!
//! Time (UTC), level, message, fields; as JSON objects by option. Colour only on a terminal and without `NO_COLOR`.
//! Nothing is logged per event: what happens to events is in metrics and in the ledger.

use std::ffi::OsStr;
use std::io::IsTerminal;

use tracing::{Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::TelemetryError;

/// The environment variable with what differs from the level, in the syntax of `tracing_subscriber`: `debug`,
/// `tallyflow_kafka=debug`, or several with commas.
pub const FILTER_VARIABLE: &str = "TALLYFLOW_LOG";

/// Starts logging for the whole process: to standard error, at this level unless [`FILTER_VARIABLE`] says otherwise.
///
/// # Errors
///
/// [`TelemetryError::LogFilter`] where the variable cannot be read, [`TelemetryError::LogsStarted`] the second time.
pub fn init(json: bool, level: Level) -> Result<(), TelemetryError> {
    let filter = filter(std::env::var_os(FILTER_VARIABLE).as_deref(), level)?;
    let colour = colour(std::io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
    let subscriber = subscriber(json, filter, colour, std::io::stderr);
    tracing::subscriber::set_global_default(subscriber).map_err(|_| TelemetryError::LogsStarted)
}

/// Whether to colour: on a terminal, unless `NO_COLOR` is set and not empty (no-color.org).
fn colour(terminal: bool, no_color: Option<&OsStr>) -> bool {
    terminal && no_color.is_none_or(OsStr::is_empty)
}

fn filter(text: Option<&OsStr>, level: Level) -> Result<EnvFilter, TelemetryError> {
    let text = text.unwrap_or_default();
    let refuse =
        |reason: String| TelemetryError::LogFilter { text: text.to_string_lossy().into_owned(), reason };
    let readable = text.to_str().ok_or_else(|| refuse("not UTF-8".to_owned()))?;
    // A later directive for the same target replaces an earlier one, so the variable has the last word.
    EnvFilter::builder().parse(format!("{level},{readable}")).map_err(|error| refuse(error.to_string()))
}

fn subscriber<W>(json: bool, filter: EnvFilter, colour: bool, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(writer);
    if json {
        let json = builder.json().flatten_event(true).with_ansi(false);
        Box::new(json.with_current_span(false).with_span_list(false).finish())
    } else {
        Box::new(builder.with_ansi(colour).finish())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool, variable: Option<&str>, colour: bool) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let filter = filter(variable.map(OsStr::new), Level::INFO).unwrap();
        let subscriber = subscriber(json, filter, colour, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(address = "127.0.0.1:1", tries = 3, "listening");
            tracing::debug!("detail");
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_is_time_level_message_fields() {
        let text = logged(false, None, false);
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
        assert_eq!(rest, " INFO listening address=\"127.0.0.1:1\" tries=3\n");
    }

    #[test]
    fn json_has_the_fields_at_the_top() {
        let text = logged(true, None, true);
        let mut line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(line["timestamp"].take().is_string());
        let rest = serde_json::json!({
            "timestamp": null, "level": "INFO", "message": "listening",
            "address": "127.0.0.1:1", "tries": 3,
        });
        assert_eq!(line, rest);
    }

    #[test]
    fn the_variable_has_the_last_word() {
        for (variable, lines) in [
            (None, 1),
            (Some(""), 1),
            (Some("debug"), 2),
            (Some("error"), 0),
            (Some("tallyflow_telemetry=debug"), 2),
            (Some("tallyflow_kafka=debug"), 1),
            (Some("tallyflow_telemetry=off"), 0),
            (Some("warn,tallyflow_telemetry=info"), 1),
        ] {
            assert_eq!(logged(false, variable, false).lines().count(), lines, "{variable:?}");
        }
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_said() {
        let error = filter(Some(OsStr::new("tallyflow=loud")), Level::INFO).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the log filter \"tallyflow=loud\" in TALLYFLOW_LOG: "));
    }

    #[test]
    fn colour_only_on_a_terminal_and_without_no_color() {
        for (terminal, no_color, expected) in [
            (true, None, true),
            (true, Some(""), true),
            (true, Some("1"), false),
            (false, None, false),
            (false, Some("1"), false),
        ] {
            assert_eq!(colour(terminal, no_color.map(OsStr::new)), expected);
        }
        assert!(logged(false, None, true).contains('\u{1b}'));
        assert!(!logged(false, None, false).contains('\u{1b}'));
    }
}
