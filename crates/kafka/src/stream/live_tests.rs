//! What only the inside can show, against a real broker: the broker's own word on a stale member, and a seek that
//! the client refuses.

use std::time::{Duration, Instant};

use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_core::record::RecordView;
use tallyflow_runtime::ports::{BatchSink, GroupEvent, PortError, Reaction, SentOffset, StreamLog};

use super::KafkaStream;
use crate::lists::list_of;
use crate::native::consumer::Consumer;
use crate::talk::Talker;
use crate::{Kafka, KafkaConfig, NewTopic};
use rdkafka::Offset;
use rdkafka::consumer::Consumer as _;

const PATIENCE: Duration = Duration::from_secs(30);

struct Ignore;

impl BatchSink for Ignore {
    fn batch(&mut self, _: &TopicPartition, _: &[RecordView<'_>]) -> Result<(), PortError> {
        Ok(())
    }
}

fn cluster() -> Kafka {
    let brokers = std::env::var("TALLYFLOW_TEST_BROKERS").expect(
        "live tests need a Kafka broker: run scripts/test.sh, or set TALLYFLOW_TEST_BROKERS to its address",
    );
    let config =
        KafkaConfig { brokers, client: Vec::new(), app: "live".into(), transaction_timeout_ms: 10_000 };
    Kafka::new(config).unwrap()
}

fn topic(kafka: &Kafka, what: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let name = format!("{what}-{}-{}", now.as_micros(), std::process::id());
    let new = NewTopic { name: name.clone(), partitions: 2, replication: 1, configs: Vec::new() };
    kafka.admin().unwrap().create_topics(&[new]).unwrap();
    name
}

/// Polls and answers; the number of partitions owned.
fn step(stream: &mut KafkaStream, owned: &mut usize) {
    let _ = stream.poll(Duration::from_millis(20), 100, &mut Ignore);
    while let Some(event) = stream.take_event() {
        match event {
            GroupEvent::Assigned(partitions) => {
                stream.acknowledge_assigned(&partitions).unwrap();
                *owned += partitions.len();
            }
            GroupEvent::Revoked(partitions) | GroupEvent::Lost(partitions) => {
                stream.acknowledge_revoked(&partitions).unwrap();
                *owned -= partitions.len();
            }
        }
    }
}

fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn live_the_broker_refuses_offsets_of_an_earlier_generation() {
    let kafka = cluster();
    let input = topic(&kafka, "stale");
    let mut first = kafka.stream(&input, std::slice::from_ref(&input), &format!("{input}.0")).unwrap();
    let (mut firsts, mut seconds) = (0, 0);
    until(|| {
        step(&mut first, &mut firsts);
        firsts == 2
    });
    let stale = first.consumer().unwrap().group_metadata().unwrap();
    let mut second = kafka.stream(&input, std::slice::from_ref(&input), &format!("{input}.1")).unwrap();
    until(|| {
        step(&mut first, &mut firsts);
        step(&mut second, &mut seconds);
        (firsts, seconds) == (1, 1)
    });
    let fresh = first.consumer().unwrap().group_metadata().unwrap();
    assert!(fresh.generation() > stale.generation());
    assert!(!fresh.member_id().is_empty());

    until(|| first.open_producer().is_ok());
    first.begin().unwrap();
    let partition = TopicPartition::new(input.as_str(), 0);
    let list = list_of([(&partition, Offset::Offset(0))].into_iter()).unwrap();
    let error = first.producer().unwrap().send_offsets(&list, &stale).unwrap_err();
    assert_eq!(error.reaction, Reaction::Abort, "{error}");
    assert!(error.message.contains("IllegalGeneration"), "{error}");
    until(|| first.abort().is_ok());
}

#[test]
fn live_a_seek_that_the_client_refuses_is_seen() {
    let kafka = cluster();
    let input = topic(&kafka, "seek");
    let mut stream = kafka.stream(&input, std::slice::from_ref(&input), &format!("{input}.0")).unwrap();
    let mut owned = 0;
    until(|| {
        step(&mut stream, &mut owned);
        owned == 2
    });
    // The client lets a partition go, and the engine does not know yet.
    let partition = TopicPartition::new(input.as_str(), 1);
    let list = list_of([(&partition, Offset::Invalid)].into_iter()).unwrap();
    stream.consumer().unwrap().incremental_unassign(&list).unwrap();
    let error = stream.start(&[(partition, NextOffset::START)]).unwrap_err();
    assert_eq!(error.reaction, Reaction::Abort, "{error}");
}

#[test]
fn live_a_member_that_lost_its_partitions_is_told_and_cannot_speak() {
    let kafka = cluster();
    let input = topic(&kafka, "lost");
    // Thrown out of the group when it is not polled for 6 s.
    let mut options = kafka.settings.stage_consumer(&input, None);
    options.set("max.poll.interval.ms", "6000").set("session.timeout.ms", "6000");
    let talker = Talker::new(&kafka.settings.talk, "lost");
    let consumer = Consumer::new(&options, talker).unwrap();
    consumer.base().subscribe(&[&input]).unwrap();
    let id = format!("{input}.0");
    let mut stream = KafkaStream::with(&kafka.settings, &input, consumer, &id);
    let mut owned = 0;
    until(|| {
        step(&mut stream, &mut owned);
        owned == 2
    });
    until(|| stream.open_producer().is_ok());
    stream.begin().unwrap();
    until(|| {
        std::thread::sleep(Duration::from_millis(50));
        stream.assignment_lost()
    });
    let offsets = [SentOffset {
        partition: TopicPartition::new(input.as_str(), 0),
        offset: NextOffset::START,
        metadata: String::new(),
    }];
    let error = stream.send_offsets(&offsets).unwrap_err();
    assert_eq!(error.reaction, Reaction::Abort, "{error}");
    until(|| stream.abort().is_ok());
    let mut lost = None;
    until(|| {
        let _ = stream.poll(Duration::from_millis(20), 100, &mut Ignore);
        lost = stream.take_event();
        lost.is_some()
    });
    let Some(GroupEvent::Lost(partitions)) = lost else { panic!("{lost:?}") };
    assert_eq!(partitions.len(), 2);
    stream.acknowledge_revoked(&partitions).unwrap();
    owned = 0;
    until(|| {
        step(&mut stream, &mut owned);
        owned == 2
    });
    assert!(!stream.assignment_lost());
}
