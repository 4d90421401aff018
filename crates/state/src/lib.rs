//! Seen ids, cells, totals and pins: a hot overlay over a cold store behind a trait.
//!
//! ```text
//!    dedup ──sight──► SeenStore ─┬─ hot tables (open bucket, closed ones)      memory, undone by abort
//!                                └─ filters ─► sealed buckets ──┐
//!    window ─add────► CellStore ─── working set, undo log       │              memory, undone by abort
//!                                └─ flush(progress) ────────────┴─► ColdStore  survives, committed data only
//! ```
//!
//! | after | the runtime calls |
//! | --- | --- |
//! | the Kafka commit | `commit` on both stores, then now and then `CellStore::flush` and `ColdStore::flush` |
//! | an abort | `abort` on both |
//! | an assignment | `ColdStores::open`, `SeenStore::open` and `adopt`, `CellStore::open`, replay, `commit` |
//!
//! Keeps: EO-1 (nothing provisional reaches the cold store), TM-2 (what is seen is a function of the log).
//!
//! Must not know: Kafka clients, RocksDB, files, clocks.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod cells;
pub mod cold;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod filter;
pub mod hot;
mod interner;
pub mod keys;
pub mod memory;
pub mod seen;
mod tables;
mod working_set;
