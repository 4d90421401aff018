//! Seed to records, and what must come out: for the demo, for chaos runs and for benchmarks.
//!
//! ```text
//!   Plan ──► Generator ──► Generated (key, value, partition)   … to Kafka, or to the simulated log
//!                     └──► Expectation (totals, windows, tallies) of everything generated so far
//! ```
//!
//! Pure: no clock (the start is an argument), no Kafka, no thread; equal plans give equal records. The expectation is
//! booked while records are made, from what they were made of, and never by reading them back.
//!
//! It is exact because the plan leaves no choice open: conflicts follow their original in its partition, copies stay
//! well inside the time limits, late and future events lie an hour or more outside. For that the caller must keep
//! to `partition_hint` (or to the key, if the plan names no partitions), produce in order, and append not before
//! [`Plan::start_ms`] and not later than an hour after [`Plan::end_ms`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod broken;
mod expectation;
mod generator;
mod original;
mod plan;
mod writer;
mod zipf;

pub use expectation::{CounterKey, Expectation, Sum, Tallies};
pub use generator::{Generated, Generator};
pub use plan::{Dimension, Plan, PlanError};
