//! The only home of rdkafka: the engine's ports over Apache Kafka, and plain reads and writes for the commands.
//!
//! ```text
//!  config ── every librdkafka option       errors ── every code → Retry | Abort | Fenced | Halt
//!     │                                       │
//!     ▼                                       ▼
//!  Kafka ──► KafkaStream (StreamLog)   KafkaReader (LogReader)   KafkaAdmin (Admin)   PlainProducer, reads
//!               └── native: the calls that rdkafka does not offer, or makes slow; the only `unsafe`
//! ```
//!
//! Keeps: EO-2 (offsets travel in the transaction, with fresh and valid group metadata), EO-3 (a record is handed on
//! once between two starts, a position never runs ahead of what was handed on).
//!
//! Must not know: what a record means, frames, stages, state. Those who use it must not know rdkafka.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod admin;
mod batch;
mod config;
mod errors;
mod lists;
mod native;
mod reader;
mod stream;
mod talk;
mod tools;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use tallyflow_runtime::ports::PortError;

pub use admin::{ConfigValue, Created, KafkaAdmin, NewTopic};
pub use config::{ConfigError, KafkaConfig};
pub use errors::Context;
pub use reader::KafkaReader;
pub use stream::KafkaStream;
pub use tools::{Delivered, DeliveryFailure, PlainProducer, ReadFrom, Seen};

use config::Settings;

/// A cluster and how to speak with it: makes clients. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Kafka {
    settings: Arc<Settings>,
}

impl Kafka {
    /// Checks the configuration, without a connection.
    ///
    /// # Errors
    ///
    /// Where a property belongs to the engine, does not exist or has an impossible value.
    pub fn new(config: KafkaConfig) -> Result<Self, ConfigError> {
        Ok(Self { settings: Arc::new(Settings::new(config)?) })
    }

    /// Whether a broker answers within `timeout`.
    ///
    /// # Errors
    ///
    /// One line with the address, and what the client said last.
    pub fn check(&self, timeout: Duration) -> Result<(), PortError> {
        KafkaAdmin::new(&self.settings)?.check(timeout)
    }

    /// One worker's group consumer, subscribed to its inputs, and its transactional producer, not opened yet.
    /// `transactional_id` is `<app>.<stage>.<instance>.<worker>`.
    ///
    /// # Errors
    ///
    /// Where the client cannot be made.
    pub fn stream(
        &self,
        group: &str,
        input_topics: &[String],
        transactional_id: &str,
    ) -> Result<KafkaStream, PortError> {
        KafkaStream::new(&self.settings, group, input_topics, transactional_id)
    }

    /// Opens bounded reads for restores.
    pub fn reader(&self) -> KafkaReader {
        KafkaReader::new(&self.settings)
    }

    /// Asks the cluster and makes topics.
    ///
    /// # Errors
    ///
    /// Where the client cannot be made.
    pub fn admin(&self) -> Result<KafkaAdmin, PortError> {
        KafkaAdmin::new(&self.settings)
    }

    /// Writes records without a transaction.
    ///
    /// # Errors
    ///
    /// Where the client cannot be made.
    pub fn producer(&self) -> Result<PlainProducer, PortError> {
        PlainProducer::new(&self.settings)
    }
}
