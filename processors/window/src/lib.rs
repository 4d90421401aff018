//! Window: cells, totals, upserts, finals and corrections.
//!
//! ```text
//!  deltas ──► merge ──► cells (counter × window), totals
//!                          │ touched, waiting, passed by the cursor
//!                          ▼
//!                       take_due ──► RowSink        committed │ aborted
//! ```
//!
//! The last step of the count stage's chain. It decides what is said and when; the cells are a view of the task's
//! state, the rows' bytes are the encoder's.
//!
//! Keeps: LG-2 (each delta goes to one cell of every table), WN-1 (revisions grow, final is said once).
//! Must not know: dedup, sources, topics, formats, how cells are stored, clocks. Time comes as an argument.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod cursor;
mod emission;
mod saying;
mod schedule;
mod transaction;
mod window;

pub use emission::{Due, RowSink, Taken};
pub use window::Window;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_any_order;
#[cfg(test)]
mod tests_restore;
