//! Intake: decode, judge the time limits, hash the identity, say the owner.
//!
//! ```text
//!  records ──► EventDecoder ──► limits (R2) ──► identity (R1), owner ──► IntakeEffects
//!                   └ invalid       └ late, future                        entry · untimely · invalid
//! ```
//!
//! The first hop's pure logic. Its effects are packed into frames, or dead-lettered, by the runtime.
//!
//! Keeps: ID-1 (the identity knows neither partition nor time), LG-1 (one verdict per event).
//! Must not know: formats, Kafka, frames' bytes, clocks. Time comes as an argument.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod intake;

pub use intake::Intake;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
