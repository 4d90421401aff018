//! Writing records, each one acknowledged.
use std::time::{Duration, Instant};

use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::broker::Kafka;
use crate::clients::Deliveries;
use crate::native::{self, Refused};
use crate::record::Outgoing;
use crate::wait::PATIENCE;

/// How long one look for delivery reports may take.
const POLL: Duration = Duration::from_millis(5);

impl Kafka {
    /// Writes the records in order with an idempotent producer and waits for every acknowledgement.
    ///
    /// Returns partition and offset of each one.
    ///
    /// # Panics
    /// When one of them is refused.
    pub fn produce(&self, topic: &str, records: &[Outgoing]) -> Vec<(i32, i64)> {
        let producer = self.clients.producer.lock().expect("no call has failed");
        let reports = || self.clients.reports.lock().expect("no panic while locked");
        *reports() = vec![None; records.len()];
        for (number, record) in records.iter().enumerate() {
            hand_over(&producer, topic, record, number);
        }
        let started = Instant::now();
        while producer.in_flight_count() > 0 {
            let waited = started.elapsed();
            assert!(waited < PATIENCE, "{topic} took no record for {waited:?}");
            producer.poll(POLL);
        }
        let reports = std::mem::take(&mut *reports()).into_iter().enumerate();
        reports
            .map(|(number, report)| match report {
                Some(Ok(place)) => place,
                Some(Err(error)) => panic!("record {number} for {topic} was refused: {error}"),
                None => panic!("record {number} for {topic} was never acknowledged"),
            })
            .collect()
    }
}

impl Kafka {
    /// Writes the records in a transaction of their own and commits or aborts it.
    ///
    /// # Panics
    /// When the broker refuses.
    pub fn produce_in_transaction(&self, topic: &str, records: &[Outgoing], commit: bool) {
        let mut config = self.client_config();
        config.set("transactional.id", crate::unique("upstream"));
        let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
        producer.init_transactions(PATIENCE).expect("the coordinator answers");
        producer.begin_transaction().expect("a transaction");
        for record in records {
            let value = record.value.as_deref().unwrap_or_default();
            let out: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).payload(value);
            producer.send(out).map_err(|(error, _)| error).expect("the record is taken");
        }
        producer.flush(PATIENCE).expect("every record is written");
        let ended =
            if commit { producer.commit_transaction(PATIENCE) } else { producer.abort_transaction(PATIENCE) };
        ended.expect("the transaction ends");
    }
}

fn hand_over(producer: &BaseProducer<Deliveries>, topic: &str, record: &Outgoing, number: usize) {
    loop {
        match native::produce(producer.client().native_ptr(), topic, record, number) {
            Ok(()) => return producer.poll(Duration::ZERO),
            Err(Refused::QueueFull) => producer.poll(POLL),
            Err(Refused::Other(why)) => panic!("record {number} for {topic} was not taken: {why}"),
        }
    }
}
