//! Tally: local batched delta counts per counter and slice.
//!
//! ```text
//!  entries, verdicts ──► counted ones ──► (counter, slice) ──► Σ delta, events
//! ```
//!
//! Everything after it costs per distinct counter, not per event.
//!
//! Keeps: LG-2 (Σ of the deltas = Σ of the counted entries). Must not know: cells, windows, how a verdict was found.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod tally;

pub use tally::{Judged, Tally};

#[cfg(test)]
mod tests;
