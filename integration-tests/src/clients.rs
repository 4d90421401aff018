//! The connections that a test process keeps: making one costs tenths of a second, and tests ask often.
use std::sync::{Arc, Mutex};

use rdkafka::consumer::BaseConsumer;
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext};

/// Where each record of one call went, in the order in which they were handed over; `None` until its report has come.
pub(crate) type Reports = Vec<Option<Result<(i32, i64), String>>>;

/// The kept connections of a test process.
pub(crate) struct Clients {
    /// Answers for everything that is written; never assigned a partition.
    pub(crate) uncommitted: BaseConsumer,
    /// The same, but its high watermarks are the last stable offsets.
    pub(crate) committed: BaseConsumer,
    /// Idempotent; one call at a time.
    pub(crate) producer: Mutex<BaseProducer<Deliveries>>,
    /// The reports of the call that holds the producer.
    pub(crate) reports: Arc<Mutex<Reports>>,
}

impl Clients {
    /// Connects in the background.
    pub(crate) fn new(config: &ClientConfig) -> Self {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let producer = config
            .clone()
            .set("enable.idempotence", "true")
            .set("linger.ms", "2")
            .set("partitioner", "murmur2_random")
            .create_with_context(Deliveries(Arc::clone(&reports)))
            .expect("a producer");
        Self {
            uncommitted: reader(config, "read_uncommitted"),
            committed: reader(config, "read_committed"),
            producer: Mutex::new(producer),
            reports,
        }
    }
}

/// A consumer that never joins a group and says when a partition's end is reached.
pub(crate) fn reader(config: &ClientConfig, isolation: &str) -> BaseConsumer {
    config
        .clone()
        .set("group.id", "integration-tests-reader") // asked for by the client
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "error")
        .set("fetch.wait.max.ms", "10")
        .set("isolation.level", isolation)
        .create()
        .expect("a consumer")
}

/// Writes delivery reports down; a record's opaque is its number.
pub(crate) struct Deliveries(Arc<Mutex<Reports>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let report = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        };
        let mut reports = self.0.lock().expect("no panic while locked");
        if let Some(place) = reports.get_mut(number) {
            *place = Some(report);
        }
    }
}
