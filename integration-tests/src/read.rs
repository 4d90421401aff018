//! Reading a topic from its beginning to its end.
//!
//! The end is known before the first record is read: the high watermarks at the time of the call. A reader of committed
//! records first waits until the last stable offsets have reached them, so that what was committed before the call is
//! seen, and a transaction that stays open fails the test instead of hiding records.
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset, Timestamp, TopicPartitionList};

use crate::admin::partitions;
use crate::broker::Kafka;
use crate::clients::reader;
use crate::native;
use crate::record::{Record, TimestampKind};
use crate::wait::{PATIENCE, wait_until};

#[derive(Clone, Copy)]
enum Isolation {
    Committed,
    Uncommitted,
}

impl Kafka {
    /// All committed records of a topic, ordered by partition and offset, up to the high watermarks at this moment.
    ///
    /// # Panics
    /// When there is no such topic, or a transaction stays open.
    #[must_use]
    pub fn read(&self, topic: &str) -> Vec<Record> {
        let ends = self.ends(topic, Isolation::Uncommitted);
        wait_until(PATIENCE, &format!("no transaction is open in {topic}"), || {
            let stable = self.ends(topic, Isolation::Committed);
            let reached = stable.iter().zip(&ends).all(|(stable, end)| stable >= end);
            reached.then_some(())
        });
        self.read_stable(topic)
    }

    /// The committed records up to the last stable offsets: does not wait for open transactions.
    ///
    /// # Panics
    /// When there is no such topic.
    #[must_use]
    pub fn read_stable(&self, topic: &str) -> Vec<Record> {
        self.read_as(topic, Isolation::Committed)
    }

    /// All records, those of open and aborted transactions too.
    ///
    /// # Panics
    /// When there is no such topic.
    #[must_use]
    pub fn read_uncommitted(&self, topic: &str) -> Vec<Record> {
        self.read_as(topic, Isolation::Uncommitted)
    }

    /// The high watermark of each partition: the offset of the next record.
    ///
    /// # Panics
    /// When there is no such topic.
    #[must_use]
    pub fn high_watermarks(&self, topic: &str) -> Vec<i64> {
        self.ends(topic, Isolation::Uncommitted)
    }

    /// The first offset of each partition that is still kept.
    ///
    /// # Panics
    /// When there is no such topic.
    #[must_use]
    pub fn low_watermarks(&self, topic: &str) -> Vec<i64> {
        let bounds = self.bounds(topic, Isolation::Uncommitted);
        bounds.into_iter().map(|(low, _)| low).collect()
    }

    fn ends(&self, topic: &str, isolation: Isolation) -> Vec<i64> {
        let bounds = self.bounds(topic, isolation);
        bounds.into_iter().map(|(_, end)| end).collect()
    }

    /// First and next offset of each partition; for committed records the end is the last stable offset.
    fn bounds(&self, topic: &str, isolation: Isolation) -> Vec<(i64, i64)> {
        let consumer = match isolation {
            Isolation::Committed => &self.clients.committed,
            Isolation::Uncommitted => &self.clients.uncommitted,
        };
        let partitions = partitions(consumer, topic).unwrap_or_else(|| panic!("there is no topic {topic}"));
        (0..partitions)
            .map(|partition| {
                consumer
                    .fetch_watermarks(topic, partition, PATIENCE)
                    .unwrap_or_else(|error| panic!("no offsets of {topic}-{partition}: {error}"))
            })
            .collect()
    }

    fn read_as(&self, topic: &str, isolation: Isolation) -> Vec<Record> {
        let mut list = TopicPartitionList::new();
        // A number, since the client takes half a second to resolve "the beginning".
        for (partition, low) in (0..).zip(self.low_watermarks(topic)) {
            list.add_partition_offset(topic, partition, Offset::Offset(low)).expect("a valid offset");
        }
        let level = match isolation {
            Isolation::Committed => "read_committed",
            Isolation::Uncommitted => "read_uncommitted",
        };
        let consumer = reader(&self.client_config(), level);
        consumer.assign(&list).expect("an assignment");
        let open = list.elements().iter().map(|e| e.partition()).collect();
        let mut records = read_to_ends(&consumer, topic, open);
        records.sort_by_key(|record| (record.partition, record.offset));
        records
    }
}

/// Reads until every partition in `open` has said that its end is reached.
fn read_to_ends(consumer: &BaseConsumer, topic: &str, mut open: BTreeSet<i32>) -> Vec<Record> {
    let mut records = Vec::new();
    let mut heard = Instant::now();
    while !open.is_empty() {
        match consumer.poll(Duration::from_millis(100)) {
            None => assert!(
                heard.elapsed() < PATIENCE,
                "nothing came from partitions {open:?} of {topic} for {PATIENCE:?}"
            ),
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(error)) => panic!("{topic} cannot be read: {error}"),
            Some(Ok(message)) => {
                heard = Instant::now();
                if open.contains(&message.partition()) {
                    records.push(record(&message));
                }
            }
        }
    }
    records
}

fn record(message: &BorrowedMessage<'_>) -> Record {
    let (timestamp, timestamp_kind) = match message.timestamp() {
        Timestamp::CreateTime(at) => (at, TimestampKind::CreateTime),
        Timestamp::LogAppendTime(at) => (at, TimestampKind::LogAppendTime),
        Timestamp::NotAvailable => (-1, TimestampKind::Missing),
    };
    Record {
        partition: message.partition(),
        offset: message.offset(),
        timestamp,
        timestamp_kind,
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: native::headers(message),
    }
}
