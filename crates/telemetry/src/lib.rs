//! Metric names, exporter, logs and health: what a process tells of itself.
//!
//! ```text
//!  worker thread ── Observer::publish ──► Board ◄── snapshot ── /metrics, /ready, /status (http thread)
//!                    (store, histogram)     │
//!                                           └─► Exporter: cached handles, set when somebody scrapes
//! ```
//!
//! A worker pays for a copy of its status per commit, never for a metric per event. Everything else is worked out when
//! it is asked for, so a lag goes on growing while a worker hangs and a task that moved away leaves nothing behind.
//!
//! Must not know: Kafka, RocksDB, processors, topology.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod board;
mod connection;
pub mod exporter;
pub mod health;
pub mod http;
pub mod labels;
pub mod logs;
pub mod names;
mod report;
pub mod snapshot;
pub mod totals;

#[cfg(test)]
mod fixtures;

use std::net::SocketAddr;

pub use board::{Board, BoardObserver};
pub use exporter::Exporter;
pub use http::HttpServer;

/// Why telemetry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address cannot be listened on: choose another, or end what holds it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The thread that serves HTTP could not be started.
    #[error("cannot start the http thread: {0}")]
    Thread(std::io::Error),
    /// The exporter refused its settings.
    #[error("cannot build the metrics exporter: {0}")]
    Exporter(#[from] metrics_exporter_prometheus::BuildError),
    /// The log filter cannot be read.
    #[error("cannot read the log filter {text:?} in {variable}: {reason}", variable = logs::FILTER_VARIABLE)]
    LogFilter {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Logs were started before.
    #[error("logs have been started already")]
    LogsStarted,
}
