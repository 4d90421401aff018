//! What the live tests share: a cluster, fresh names, sinks that remember, members that answer by themselves.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{OutRecord, RecordTime, RecordView};
use tallyflow_kafka::{Kafka, KafkaConfig, KafkaStream, NewTopic};
use tallyflow_runtime::ports::{BatchSink, GroupEvent, PortError, Reaction, StreamLog};

/// No condition of these tests takes this long.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn brokers() -> String {
    std::env::var("TALLYFLOW_TEST_BROKERS").expect(
        "live tests need a Kafka broker: run scripts/test.sh, or set TALLYFLOW_TEST_BROKERS to its address",
    )
}

/// A name that no other test and no earlier run has used.
pub fn fresh(what: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    format!("{what}-{now}-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub fn cluster() -> Kafka {
    Kafka::new(KafkaConfig {
        brokers: brokers(),
        client: Vec::new(),
        app: "live".into(),
        transaction_timeout_ms: 10_000,
    })
    .unwrap()
}

pub fn topic(kafka: &Kafka, what: &str, partitions: u32) -> String {
    topic_with(kafka, what, partitions, &[])
}

pub fn topic_with(kafka: &Kafka, what: &str, partitions: u32, configs: &[(&str, &str)]) -> String {
    let name = fresh(what);
    make(kafka, &name, partitions, configs);
    name
}

pub fn make(kafka: &Kafka, name: &str, partitions: u32, configs: &[(&str, &str)]) {
    let new = NewTopic {
        name: name.to_owned(),
        partitions,
        replication: 1,
        configs: configs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
    };
    kafka.admin().unwrap().create_topics(&[new]).unwrap();
}

pub fn record(value: &str) -> OutRecord {
    OutRecord { key: None, value: Some(value.as_bytes().to_vec()), headers: Vec::new(), timestamp: None }
}

/// Writes numbered records to a partition, outside transactions.
pub fn fill(kafka: &Kafka, topic: &str, partition: u32, values: impl IntoIterator<Item = String>) {
    let mut producer = kafka.producer().unwrap();
    for value in values {
        producer.send_record(topic, Some(Partition(partition)), &record(&value)).unwrap();
    }
    assert_eq!(producer.finish(PATIENCE).unwrap().failures, Vec::new());
}

/// A record as remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    pub offset: i64,
    pub time: RecordTime,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Kept {
    pub fn of(view: &RecordView<'_>) -> Self {
        Self {
            offset: view.offset.0,
            time: view.time,
            key: view.key.map(<[u8]>::to_vec),
            value: view.value.map(<[u8]>::to_vec),
            headers: view
                .headers
                .iter()
                .map(|header| (header.name.to_vec(), header.value.map(<[u8]>::to_vec)))
                .collect(),
        }
    }
}

/// Remembers everything, or refuses.
#[derive(Default)]
pub struct Sink {
    pub records: BTreeMap<TopicPartition, Vec<Kept>>,
    pub refuse: bool,
}

impl Sink {
    pub fn count(&self) -> usize {
        self.records.values().map(Vec::len).sum()
    }

    pub fn values(&self, partition: &TopicPartition) -> Vec<String> {
        let text = |kept: &Kept| String::from_utf8(kept.value.clone().unwrap_or_default()).unwrap();
        self.records.get(partition).map(|kept| kept.iter().map(text).collect()).unwrap_or_default()
    }
}

impl BatchSink for Sink {
    fn batch(&mut self, partition: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError> {
        if self.refuse {
            return Err(PortError::new(Reaction::Abort, "refused by the test"));
        }
        let kept = self.records.entry(partition.clone()).or_default();
        for view in records {
            assert_eq!(view.partition, partition.partition);
            kept.push(Kept::of(view));
        }
        Ok(())
    }
}

/// A stream that answers rebalances by itself and starts at the beginning, or where the group is.
pub struct Member {
    pub stream: KafkaStream,
    pub owned: Vec<TopicPartition>,
    pub sink: Sink,
}

impl Member {
    pub fn join(kafka: &Kafka, group: &str, topics: &[&str], id: &str) -> Self {
        let topics: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let stream = kafka.stream(group, &topics, id).unwrap();
        Self { stream, owned: Vec::new(), sink: Sink::default() }
    }

    /// Joins, and waits until it owns as many partitions.
    pub fn owning(kafka: &Kafka, topics: &[&str], partitions: usize) -> Self {
        let mut member = Self::join(kafka, &fresh("group"), topics, &fresh("live.test.i.0"));
        until(|| {
            member.step();
            member.owned.len() == partitions
        });
        member
    }

    pub fn poll(&mut self) -> usize {
        retried(|| self.stream.poll(Duration::from_millis(20), 1_000, &mut self.sink))
    }

    /// Polls, and answers what comes.
    pub fn step(&mut self) {
        self.poll();
        while let Some(event) = self.stream.take_event() {
            self.answer(&event);
        }
    }

    pub fn answer(&mut self, event: &GroupEvent) {
        match event {
            GroupEvent::Assigned(partitions) => {
                self.stream.acknowledge_assigned(partitions).unwrap();
                let committed = retried(|| self.stream.committed(partitions));
                let starts: Vec<_> = partitions
                    .iter()
                    .cloned()
                    .zip(committed)
                    .map(|(name, at)| (name, at.map_or(NextOffset::START, |at| at.offset)))
                    .collect();
                retried(|| self.stream.start(&starts));
                self.owned.extend(partitions.iter().cloned());
            }
            GroupEvent::Revoked(partitions) | GroupEvent::Lost(partitions) => {
                self.stream.acknowledge_revoked(partitions).unwrap();
                self.owned.retain(|name| !partitions.contains(name));
            }
        }
    }

    /// Polls until the condition holds.
    pub fn until(&mut self, mut condition: impl FnMut(&Self) -> bool) {
        until(|| {
            self.step();
            condition(self)
        });
    }

    /// One transaction of one record for each value, to a partition 0.
    pub fn commit_values(&mut self, topic: &str, values: &[&str]) {
        self.stream.begin().unwrap();
        for value in values {
            self.stream.send(topic, Partition(0), &record(value)).unwrap();
        }
        retried(|| self.stream.commit());
    }
}

/// Waits for a condition.
pub fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not come about in {PATIENCE:?}");
    }
}

/// Calls again as long as the answer is "not yet".
pub fn retried<T>(mut call: impl FnMut() -> Result<T, PortError>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match call() {
            Ok(value) => return value,
            Err(error) if error.reaction == Reaction::Retry && Instant::now() < deadline => {}
            Err(error) => panic!("{:?}: {error}", error.reaction),
        }
    }
}

/// Deletes a topic.
pub fn delete_topic(name: &str) {
    let results = wait(client().delete_topics(&[name], &AdminOptions::new())).unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// Deletes the records of a partition below an offset.
pub fn delete_records(topic: &str, partition: i32, before: i64) {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, partition, Offset::Offset(before)).unwrap();
    let result = wait(client().delete_records(&list, &AdminOptions::new())).unwrap();
    assert!(result.elements().iter().all(|element| element.error().is_ok()), "{result:?}");
}

fn client() -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", brokers()).create().unwrap()
}

/// Waits for a future that another thread completes.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        assert!(Instant::now() < deadline, "the cluster did not answer");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A member with an open producer, for its transactions.
pub fn transactional(kafka: &Kafka, topic: &str) -> Member {
    let mut member = Member::join(kafka, &fresh("group"), &[topic], &fresh("id"));
    retried(|| member.stream.open_producer());
    member
}

/// Markers are written a moment after the transaction was committed.
pub fn await_end(kafka: &Kafka, topic: &str, end: i64) {
    let mut admin = kafka.admin().unwrap();
    until(|| {
        let ends = retried(|| admin.topic_ends(topic)).unwrap();
        ends[0].high_watermark_offset == NextOffset(end)
    });
}

/// Writes a record to a partition 0 and aborts it; returns when the marker is there.
pub fn abort_one(kafka: &Kafka, member: &mut Member, topic: &str) {
    let mut admin = kafka.admin().unwrap();
    let mut end = || retried(|| admin.topic_ends(topic)).unwrap()[0].high_watermark_offset.0;
    let before = end();
    member.stream.begin().unwrap();
    member.stream.send(topic, Partition(0), &record("aborted")).unwrap();
    until(|| end() > before);
    retried(|| member.stream.abort());
    until(|| end() > before + 1);
}
