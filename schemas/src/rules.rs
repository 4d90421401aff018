//! The rules of an event's fields that hold in every format (contract §2): lengths, names, times.
//!
//! A format finds the fields and their types; what a well-typed value may be is said here once. Must not know: any
//! format's syntax, time limits (a well-typed event of the year 2100 is an event).

use std::sync::Arc;

use tallyflow_core::counter::{COUNTER_LIMIT_BYTES, DIMENSION_LIMIT_BYTES, NAMESPACE_LIMIT_BYTES};
use tallyflow_core::plan::{Plan, RecordLimits};
use tallyflow_core::record::HeaderView;
use tallyflow_core::verdict::{Category, Failure};

/// The longest event id in bytes.
pub const EVENT_ID_LIMIT_BYTES: usize = 256;
/// The namespace of an event that names none.
pub const DEFAULT_NAMESPACE: &str = "default";
/// The header whose value is the event id where the payload has none (Debezium's outbox).
pub const ID_HEADER: &[u8] = b"id";

/// What a plan asks of an event.
#[derive(Clone, Debug)]
pub struct EventRules {
    /// The declared dimensions, in order.
    pub dimensions: Arc<[String]>,
    /// The declared namespaces; `None`: every name is allowed.
    pub namespaces: Option<Vec<String>>,
    /// Limits on size.
    pub limits: RecordLimits,
}

impl EventRules {
    /// The rules of a plan.
    pub fn new(plan: &Plan) -> Self {
        Self {
            dimensions: Arc::clone(&plan.dimensions),
            namespaces: plan.namespaces.clone(),
            limits: plan.record_limits,
        }
    }

    /// Checks a namespace's length, then whether it is declared. `path` names the field for people.
    ///
    /// # Errors
    ///
    /// `InvalidField` or `UnknownNamespace`.
    pub fn namespace(&self, path: impl FnOnce() -> String, namespace: &str) -> Result<(), Failure> {
        let known = self.namespaces.as_ref().is_none_or(|names| names.iter().any(|name| name == namespace));
        if !has_length(namespace, NAMESPACE_LIMIT_BYTES) {
            return Err(wrong_length(&path(), namespace, NAMESPACE_LIMIT_BYTES));
        }
        if known {
            return Ok(());
        }
        let message = format!("{}: not a namespace that is declared", path());
        Err(Failure::new(Category::UnknownNamespace, message))
    }

    /// Checks an event id.
    ///
    /// # Errors
    ///
    /// `InvalidField` unless it has 1–256 bytes.
    pub fn event_id(path: impl FnOnce() -> String, id: &str) -> Result<(), Failure> {
        length(path, id, EVENT_ID_LIMIT_BYTES)
    }

    /// Checks a counter's name.
    ///
    /// # Errors
    ///
    /// `InvalidField` unless it has 1–512 bytes.
    pub fn counter(path: impl FnOnce() -> String, counter: &str) -> Result<(), Failure> {
        length(path, counter, COUNTER_LIMIT_BYTES)
    }

    /// Checks the value of a declared dimension; an empty one is like a missing one.
    ///
    /// # Errors
    ///
    /// `InvalidField` above 1024 bytes.
    pub fn dimension(path: impl FnOnce() -> String, value: &str) -> Result<(), Failure> {
        if value.len() <= DIMENSION_LIMIT_BYTES {
            return Ok(());
        }
        let message =
            format!("{}: {} bytes, at most {DIMENSION_LIMIT_BYTES} are allowed", path(), value.len());
        Err(Failure::new(Category::InvalidField, message))
    }

    /// Checks an event time in milliseconds since the epoch.
    ///
    /// # Errors
    ///
    /// `InvalidField` unless it is positive.
    pub fn event_time(path: impl FnOnce() -> String, time_ms: i64) -> Result<(), Failure> {
        if time_ms > 0 {
            return Ok(());
        }
        Err(Failure::new(Category::InvalidField, format!("{}: not after 1970-01-01T00:00:00Z", path())))
    }
}

/// The value of the last `id` header, as Kafka's own lookup has it; `None` without one, or where it is null.
pub fn header_id<'a>(headers: &[HeaderView<'a>]) -> Option<&'a [u8]> {
    headers.iter().rev().find(|header| header.name == ID_HEADER).and_then(|header| header.value)
}

fn length(path: impl FnOnce() -> String, text: &str, limit: usize) -> Result<(), Failure> {
    if has_length(text, limit) { Ok(()) } else { Err(wrong_length(&path(), text, limit)) }
}

fn has_length(text: &str, limit: usize) -> bool {
    (1..=limit).contains(&text.len())
}

fn wrong_length(path: &str, text: &str, limit: usize) -> Failure {
    let message = format!("{path}: {} bytes, 1 to {limit} are allowed", text.len());
    Failure::new(Category::InvalidField, message)
}
