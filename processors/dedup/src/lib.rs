//! Dedup: first sight passes, a repeat is a duplicate, the same id with another payload a conflict.
//!
//! ```text
//!              event_time ≤ threshold ──► late (horizon), not sighted
//!  entries ──┤
//!              SeenIds::sight ──► first ──► counted
//!                              ├► same ──► duplicate
//!                              └► other payload ──► conflict
//! ```
//!
//! Keeps: ID-1, TM-2 (an entry's verdict depends on the log alone: its place, its time, the threshold in force there).
//! Must not know: how ids are remembered, frames' bytes, clocks.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod dedup;

pub use dedup::{Dedup, Frame, Judged, Refusal};

#[cfg(test)]
mod tests;
