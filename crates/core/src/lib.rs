//! The words everyone speaks.
//!
//! Ids, time, verdicts, deltas, windows, frames, effects, plans, and the traits between a stage's logic and the
//! engine: processor, codec, state view. Everything here is pure.
//!
//! Must not know: Kafka clients, RocksDB, files, clocks, randomness, the environment. Time comes as an argument.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod chain;
pub mod codec;
pub mod counter;
pub mod effects;
pub mod event;
pub mod frame;
pub mod headers;
pub mod ids;
pub mod outputs;
pub mod plan;
pub mod processor;
pub mod record;
pub mod sum;
pub mod tallies;
pub mod time;
pub mod verdict;
pub mod window;
