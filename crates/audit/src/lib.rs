//! The independent recount: what the raw topics say must have been counted, against what was published.
//!
//! ```text
//!   raw records ──► event (typing rules) ──► admission by append time ──► sightings per identity ─┐
//!                                                                                                 ├─► report
//!   windows, counts, ledger rows (latest per key) ───────────────────────────────────────────────┘
//! ```
//!
//! It exists to disagree: it is written from the contract alone and shares no code with the processors, the codecs or
//! the state, so that a mistake there cannot hide here. The caller reads Kafka and feeds it; nothing here knows a
//! broker, a clock or a file.
//!
//! Where the raw topics leave a choice, every lawful outcome is accepted and no other:
//!  * two payloads share an id: exactly one of them is counted, either one;
//!  * sightings of an id that are further apart than the horizon: the later one may count again or not;
//!  * windows that reach back before the first retained offset are left out, and listed.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod books;
mod cells;
mod compare;
mod config;
mod event;
mod json;
mod keys;
mod ledger;
mod raw;
mod recount;
mod render;
mod report;
mod rows;
mod sightings;
mod time;
mod verdicts;

pub use config::{AuditConfig, AuditError, Limits, WindowSpec};
pub use raw::{Header, RawRecord};
pub use recount::Recount;
pub use report::{
    Difference, DifferenceKind, LeftOut, LeftOutReason, Outcome, Range, Report, SourceReport, TableReport,
    Tallies, Tally,
};
