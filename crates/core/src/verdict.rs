//! What became of an event, and why a record failed: closed lists, used as they are in headers, the ledger and
//! metrics.
//!
//! ```text
//!            ┌ late, future, invalid                         (intake)
//! received ──┤
//!            └ admitted ── counted, duplicate, conflict, late (horizon)   (count)
//! ```
//!
//! Keeps: LG-1 (each event has exactly one verdict).

/// The outcome of one event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Verdict {
    /// First sight, in its window now.
    Counted,
    /// Its identity and payload were seen before.
    Duplicate,
    /// Its identity was seen before with another payload.
    Conflict,
    /// Older than `accept`, or too old to be judged.
    Late,
    /// Dated further ahead than `future`.
    Future,
    /// Not decodable, or against the rules of an event.
    Invalid,
    /// Its processing failed after its id was known; pinned until it is counted or given up.
    Held,
    /// Given up by a person.
    Discarded,
}

impl Verdict {
    /// Every verdict, in the order of the ledger's columns.
    pub const ALL: [Self; 8] = [
        Self::Counted,
        Self::Duplicate,
        Self::Conflict,
        Self::Late,
        Self::Future,
        Self::Invalid,
        Self::Held,
        Self::Discarded,
    ];

    /// The name used in the ledger, in metrics and in headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Late => "late",
            Self::Future => "future",
            Self::Invalid => "invalid",
            Self::Held => "held",
            Self::Discarded => "discarded",
        }
    }
}

/// Why an event is late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LateReason {
    /// Its age at its first append is beyond the limits.
    Age,
    /// A first copy of it may lie in a forgotten bucket (the horizon rule).
    Horizon,
}

impl LateReason {
    /// The value of the reason header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Horizon => "horizon",
        }
    }
}

/// Whether trying again can help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorClass {
    /// The record fails for now.
    Transient,
    /// The record fails for good.
    Permanent,
}

impl ErrorClass {
    /// The value of the class header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
        }
    }
}

/// Why a record was dead-lettered. The list is closed: it labels metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Not a document of the input's format, or no value at all.
    Undecodable,
    /// A required field is not there.
    MissingField,
    /// A field has the wrong type or a value out of range.
    InvalidField,
    /// The namespace is not declared.
    UnknownNamespace,
    /// Beyond a limit on size, depth or number.
    TooLarge,
    /// The schema id is not known.
    UnknownSchema,
    /// The identity was seen with another payload.
    IdConflict,
    /// A retry header of ours that we did not write.
    InvalidRetryHeader,
    /// The record ended the process again and again.
    CrashLoop,
    /// A dependency did not answer in time.
    Timeout,
    /// A dependency refused the record.
    Refused,
    /// The window is no longer kept.
    WindowGone,
    /// Made to fail on purpose.
    Simulated,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 13] = [
        Self::Undecodable,
        Self::MissingField,
        Self::InvalidField,
        Self::UnknownNamespace,
        Self::TooLarge,
        Self::UnknownSchema,
        Self::IdConflict,
        Self::InvalidRetryHeader,
        Self::CrashLoop,
        Self::Timeout,
        Self::Refused,
        Self::WindowGone,
        Self::Simulated,
    ];

    /// The value of the category header and of the metric's label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::MissingField => "missing_field",
            Self::InvalidField => "invalid_field",
            Self::UnknownNamespace => "unknown_namespace",
            Self::TooLarge => "too_large",
            Self::UnknownSchema => "unknown_schema",
            Self::IdConflict => "id_conflict",
            Self::InvalidRetryHeader => "invalid_retry_header",
            Self::CrashLoop => "crash_loop",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::WindowGone => "window_gone",
            Self::Simulated => "simulated",
        }
    }

    /// Whether trying again can help: the disposition of failures.md as a table.
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::Timeout | Self::Refused | Self::Simulated => ErrorClass::Transient,
            Self::Undecodable
            | Self::MissingField
            | Self::InvalidField
            | Self::UnknownNamespace
            | Self::TooLarge
            | Self::UnknownSchema
            | Self::IdConflict
            | Self::InvalidRetryHeader
            | Self::CrashLoop
            | Self::WindowGone => ErrorClass::Permanent,
        }
    }
}

/// Why a record cannot be processed, with a sentence for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The closed-list reason.
    pub category: Category,
    /// What is wrong and where, with the field's path; never the payload.
    pub message: String,
}

impl Failure {
    /// A failure of this category.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self { category, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Category::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Category::ALL.len());
    }

    #[test]
    fn what_the_record_itself_did_wrong_is_permanent() {
        for category in Category::ALL {
            let transient = matches!(category, Category::Timeout | Category::Refused | Category::Simulated);
            assert_eq!(category.class() == ErrorClass::Transient, transient, "{}", category.name());
        }
    }
}
