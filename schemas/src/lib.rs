//! Codecs of every public message: bytes to events, rows to bytes.
//!
//! ```text
//!  input record ──► JsonEvents: EventDecoder ──► events, failures        intake
//!  rows         ──► JsonRows: RowEncoder     ──► <app>.windows, .counts, .ledger
//!  ledger       ──► JsonRows: LedgerDecoder  ──► where intake goes on
//!  windows, counts ──► columns               ──► the commands that show them
//! ```
//!
//! A format is an implementation of core's codec traits; [`rules`] and [`rfc3339`] are what all formats share. Nobody
//! outside knows which format it is.
//!
//! Keeps: LG-1 (each event of a record is told once). Must not know: Kafka, stages, time limits, identities.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod columns;
mod json;
pub mod rfc3339;
pub mod rules;

pub use json::{JsonEvents, JsonRows};
