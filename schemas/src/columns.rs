//! Window and count rows read back, for the commands that show them.
//!
//! Owned and by name: a row may come from a later version with more fields. What a number means is the row's own word;
//! nothing is recounted here.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A value of `<app>.windows`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct WindowColumns {
    /// The namespace.
    pub namespace: String,
    /// The counter.
    pub counter: String,
    /// The name of the window's table.
    pub window: String,
    /// Inclusive start, milliseconds since the epoch.
    pub window_start: i64,
    /// Exclusive end.
    pub window_end: i64,
    /// Σ deltas; `None` outside i64.
    pub sum: Option<i64>,
    /// Σ deltas as decimal text, always right.
    pub sum_exact: String,
    /// Whether `sum` is outside i64.
    pub overflow: bool,
    /// Number of events counted into it.
    pub events: u64,
    /// Grows with every emission of the key.
    pub revision: i64,
    /// `update`, `final` or `correction`.
    pub state: String,
    /// The watermark when this was said.
    pub complete_through: Option<i64>,
    /// Dimensions, and fields of later versions.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl WindowColumns {
    /// The value of a dimension; `None` if the row has no such column.
    pub fn dimension(&self, name: &str) -> Option<&str> {
        self.others.get(name).and_then(Value::as_str)
    }
}

/// A value of `<app>.counts`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct CountColumns {
    /// The namespace.
    pub namespace: String,
    /// The counter.
    pub counter: String,
    /// Σ deltas since the last clear; `None` outside i64.
    pub total: Option<i64>,
    /// The same as decimal text, always right.
    pub total_exact: String,
    /// Whether `total` is outside i64.
    pub overflow: bool,
    /// Number of events in it.
    pub events: u64,
    /// Number of accepted clears.
    pub epoch: u64,
    /// Grows with every emission of the key.
    pub revision: i64,
    /// Instant of the last accepted clear.
    pub cleared_at: Option<i64>,
    /// The watermark when this was said.
    pub complete_through: Option<i64>,
    /// Dimensions, and fields of later versions.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl CountColumns {
    /// The value of a dimension; `None` if the row has no such column.
    pub fn dimension(&self, name: &str) -> Option<&str> {
        self.others.get(name).and_then(Value::as_str)
    }
}

/// The bytes are not the row they should be.
#[derive(Debug, thiserror::Error)]
#[error("not a row of {topic}: {cause}")]
pub struct RowError {
    topic: &'static str,
    cause: serde_json::Error,
}

/// Reads a value of `<app>.windows`.
///
/// # Errors
///
/// Where it is not JSON, or a field is missing or of another type.
pub fn window(value: &[u8]) -> Result<WindowColumns, RowError> {
    serde_json::from_slice(value).map_err(|cause| RowError { topic: "windows", cause })
}

/// Reads a value of `<app>.counts`.
///
/// # Errors
///
/// As [`window`].
pub fn count(value: &[u8]) -> Result<CountColumns, RowError> {
    serde_json::from_slice(value).map_err(|cause| RowError { topic: "counts", cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_a_later_version_is_read() {
        let value = br#"{"namespace":"n","counter":"c","region":"eu","total":null,"total_exact":"9223372036854775808",
            "overflow":true,"events":2,"epoch":0,"revision":4,"cleared_at":null,"complete_through":7,"new":{"x":1}}"#;
        let row = count(value).unwrap();
        assert_eq!((row.total, row.overflow, row.dimension("region")), (None, true, Some("eu")));
        assert_eq!((row.dimension("new"), row.dimension("tier")), (None, None));
    }

    #[test]
    fn what_is_no_row_says_so() {
        let error = window(b"{}").unwrap_err().to_string();
        assert!(error.starts_with("not a row of windows: missing field"), "{error}");
        assert!(count(b"\xff").is_err());
    }
}
