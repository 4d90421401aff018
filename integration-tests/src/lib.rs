//! The harness of the black box tests: a Kafka broker, topics and records, and the `tallyflow` binary as a process.
//!
//! ```text
//!  scripts/test.sh ── starts one broker ──► TALLYFLOW_TEST_BROKERS, TALLYFLOW_TEST_KAFKA_DIR
//!        │                                              │
//!        └── nextest: one process per test ──► kafka() ─┤ create_topic, produce, read, kill, pause
//!                                              Tallyflow│ topology.toml in a folder of its own ──► Worker, Process
//! ```
//!
//! Tests run beside each other on one broker, so every name is made with [`unique`]. A test that stops or pauses the
//! broker is named `exclusive_…`: the runner lets nothing else run beside it. A long one is named `long_…` and marked
//! `#[ignore = "long: runs with --full"]`.
//!
//! It must not know: any crate of the pipeline but the generator. What it sees is what a user sees: topics, files, HTTP and exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test harness reports by failing the test"
)]

mod admin;
mod broker;
mod clients;
mod http;
mod native;
pub mod pipeline;
mod process;
mod produce;
mod read;
mod record;
mod wait;
mod worker;

pub use broker::{Down, Kafka, Paused, kafka};
pub use http::{Reply, http_get};
pub use process::{Finished, Process, Tallyflow};
pub use record::{Header, Outgoing, Record, TimestampKind};
pub use wait::{PATIENCE, unique, wait_until};
pub use worker::Worker;
