//! Plain writing and reading ([`reading`]), for the commands: no group, no transaction of ours.
//!
//! Reads are read_committed, like everybody's who is meant to see results.
//!
//! Must not know: the engine's ports, formats, what is printed.

mod reading;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use tallyflow_core::ids::Partition;
use tallyflow_core::record::{Header, OutRecord};
use tallyflow_runtime::ports::{PortError, Reaction};

use crate::config::Settings;
use crate::errors::{Context, from_kafka, port_error};
use crate::lists::c_name;
use crate::native::producer as native;
use crate::talk::Talker;

pub use reading::{ReadFrom, Seen};

/// A record is offered to a full client for this long.
const OFFER: Duration = Duration::from_secs(30);

/// A record that was not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFailure {
    /// Which one, counted from 0 over the producer's life.
    pub number: u64,
    /// Its topic.
    pub topic: String,
    /// Why, in one line.
    pub why: String,
}

/// What became of the records since the last time somebody asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivered {
    /// How many all replicas have.
    pub acknowledged: u64,
    /// The others.
    pub failures: Vec<DeliveryFailure>,
}

/// An idempotent producer whose deliveries are collected. Acknowledged means by all in-sync replicas.
pub struct PlainProducer {
    producer: ThreadedProducer<Collector>,
    sent: usize,
}

/// The context of a [`PlainProducer`].
struct Collector {
    talker: Talker,
    acknowledged: AtomicU64,
    failures: Mutex<Vec<DeliveryFailure>>,
}

impl ClientContext for Collector {
    fn log(&self, level: RDKafkaLogLevel, kind: &str, text: &str) {
        self.talker.log(level, kind, text);
    }

    fn stats_raw(&self, _: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.talker.error(error, reason);
    }
}

impl ProducerContext for Collector {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        match result {
            Ok(_) => {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, message)) => {
                let failure = DeliveryFailure {
                    number: number as u64,
                    topic: message.topic().to_owned(),
                    why: from_kafka("writing", error, Context::Produce).message,
                };
                self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
            }
        }
    }
}

impl PlainProducer {
    pub(crate) fn new(settings: &Settings) -> Result<Self, PortError> {
        let collector = Collector {
            talker: Talker::new(&settings.talk, "producer"),
            acknowledged: AtomicU64::new(0),
            failures: Mutex::default(),
        };
        let producer = settings
            .plain_producer()
            .create_with_context(collector)
            .map_err(|error| from_kafka("making a producer", &error, Context::Produce))?;
        Ok(Self { producer, sent: 0 })
    }

    /// Hands a record over; the partition is chosen by Java's murmur2 of the key. Waits while the client is full.
    ///
    /// # Errors
    ///
    /// Where the record can never be sent, or the client stays full.
    pub fn send(
        &mut self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header],
    ) -> Result<(), PortError> {
        let record = OutRecord {
            key: key.map(<[u8]>::to_vec),
            value: value.map(<[u8]>::to_vec),
            headers: headers.to_vec(),
            timestamp: None,
        };
        self.send_record(topic, None, &record)
    }

    /// Hands a record over, to a partition of the caller's choice if there is one.
    ///
    /// # Errors
    ///
    /// As [`PlainProducer::send`].
    pub fn send_record(
        &mut self,
        topic: &str,
        partition: Option<Partition>,
        record: &OutRecord,
    ) -> Result<(), PortError> {
        let name = c_name(topic)?;
        let number = partition.map(|number| i32::try_from(number.0).unwrap_or(i32::MAX));
        let deadline = Instant::now() + OFFER;
        loop {
            match native::produce(self.producer.client(), &name, number, record, self.sent) {
                Ok(()) => {
                    self.sent += 1;
                    return Ok(());
                }
                Err(error) => {
                    let told = port_error(&format!("writing to {topic}"), &error, Context::Produce);
                    if told.reaction != Reaction::Retry || Instant::now() >= deadline {
                        return Err(told);
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Waits until every record has been acknowledged or has failed, and says what became of them.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where some are still waiting after `timeout`.
    pub fn finish(&mut self, timeout: Duration) -> Result<Delivered, PortError> {
        let deadline = Instant::now() + timeout;
        native::flush(self.producer.client(), timeout)
            .map_err(|error| port_error("waiting for acknowledgements", &error, Context::Produce))?;
        // The last reports may be with the polling thread.
        while native::waiting(self.producer.client()) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let collector = self.producer.client().context();
        let mut failures = collector.failures.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Delivered {
            acknowledged: collector.acknowledged.swap(0, Ordering::Relaxed),
            failures: std::mem::take(&mut *failures),
        })
    }
}
