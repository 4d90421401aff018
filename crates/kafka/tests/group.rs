//! The group consumer against a real broker: deferred answers, places, positions, strange records.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr
)]

mod support;

use std::time::{Duration, Instant};

use support::{Member, cluster, fill, fresh, make, record, retried, topic, until};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_kafka::{Kafka, KafkaConfig};
use tallyflow_runtime::ports::{Admin as _, GroupEvent, PortError, Reaction, SentOffset, StreamLog};

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn live_partitions_move_when_a_deferred_answer_comes() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 4);
    let group = fresh("group");
    let mut first = Member::join(&kafka, &group, &[&input], &fresh("id"));
    first.until(|member| member.owned.len() == 4);
    let mut second = Member::join(&kafka, &group, &[&input], &fresh("id"));
    // The first one is told, and does not answer.
    let mut told = None;
    until(|| {
        first.poll();
        second.step();
        told = first.stream.take_event();
        told.is_some()
    });
    let Some(GroupEvent::Revoked(going)) = &told else { panic!("{told:?}") };
    assert_eq!(going.len(), 2);
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        first.poll();
        second.step();
        assert!(second.owned.is_empty(), "partitions moved before the answer");
    }
    assert!(!first.stream.assignment_lost());
    // Until the answer the leaving member may still speak for them.
    retried(|| first.stream.open_producer());
    first.stream.begin().unwrap();
    let offsets: Vec<_> = going.iter().map(|name| sent(name, 0)).collect();
    retried(|| first.stream.send_offsets(&offsets));
    retried(|| first.stream.commit());

    first.answer(&told.clone().unwrap());
    until(|| {
        first.step();
        second.step();
        second.owned.len() == 2
    });
    let mut moved = second.owned.clone();
    moved.sort();
    let mut expected = going.clone();
    expected.sort();
    assert_eq!(moved, expected);

    // A stale owner speaks for nothing.
    first.stream.begin().unwrap();
    let stale = first.stream.send_offsets(&offsets).unwrap_err();
    assert_eq!(stale.reaction, Reaction::Abort, "{stale}");
    retried(|| first.stream.abort());

    both_read_their_own(&kafka, &input, &mut first, &mut second);

    // One leaves: the other takes all.
    second.stream.close();
    first.until(|member| member.owned.len() == 4);
}

fn both_read_their_own(kafka: &Kafka, input: &str, first: &mut Member, second: &mut Member) {
    for partition in 0..4 {
        fill(kafka, input, partition, numbers(50));
    }
    until(|| {
        first.step();
        second.step();
        first.sink.count() + second.sink.count() >= 200
    });
    for member in [first, second] {
        for name in &member.owned {
            assert_eq!(member.sink.values(name), numbers(50), "{name}");
        }
        assert_eq!(member.sink.count(), 100);
    }
}

fn sent(partition: &TopicPartition, offset: i64) -> SentOffset {
    SentOffset { partition: partition.clone(), offset: NextOffset(offset), metadata: String::new() }
}

#[test]
fn live_a_foreign_partition_cannot_be_started() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 2);
    let mut member = Member::owning(&kafka, &[&input], 2);
    for foreign in [TopicPartition::new(input.as_str(), 2), TopicPartition::new("nowhere", 0)] {
        let error = member.stream.start(&[(foreign, NextOffset::START)]).unwrap_err();
        assert_eq!(error.reaction, Reaction::Abort, "{error}");
    }
}

/// Polls until an error comes that is not "not yet".
fn error_of(member: &mut Member) -> PortError {
    let mut found = None;
    until(|| match member.stream.poll(Duration::from_millis(20), 10, &mut member.sink) {
        Err(error) if error.reaction != Reaction::Retry => {
            found = Some(error);
            true
        }
        _ => false,
    });
    found.unwrap()
}

#[test]
fn live_an_offset_that_is_gone_halts_with_its_place() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    let partition = TopicPartition::new(input.as_str(), 0);
    fill(&kafka, &input, 0, numbers(3));
    let mut member = Member::owning(&kafka, &[&input], 1);
    retried(|| member.stream.start(&[(partition.clone(), NextOffset(77))]));
    let error = error_of(&mut member);
    assert_eq!(error.reaction, Reaction::Halt, "{error}");
    for part in [partition.to_string().as_str(), "offset 77", "0 to 3", "--accept-loss"] {
        assert!(error.message.contains(part), "{error} lacks {part}");
    }
}

#[test]
fn live_a_re_created_topic_is_not_an_offset_that_is_gone() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    fill(&kafka, &input, 0, numbers(30));
    let mut member = Member::owning(&kafka, &[&input], 1);
    member.until(|member| member.sink.count() == 30);
    delete(&kafka, &input);
    make(&kafka, &input, 1, &[]);
    let error = error_of(&mut member);
    assert_eq!(error.reaction, Reaction::Abort, "{error}");
    assert!(error.message.contains("re-created"), "{error}");
}

/// Deletes a topic and waits until the cluster has forgotten it.
fn delete(kafka: &Kafka, name: &str) {
    support::delete_topic(name);
    let mut admin = kafka.admin().unwrap();
    until(|| admin.topics(&[name]).is_ok_and(|found| found == [None]));
}

#[test]
fn live_topic_ids_differ_after_a_re_creation() {
    let kafka = cluster();
    let name = topic(&kafka, "in", 1);
    let mut admin = kafka.admin().unwrap();
    let before = retried(|| admin.topics(&[&name]))[0].clone().unwrap();
    assert_eq!((before.name.as_str(), before.partitions), (name.as_str(), 1));
    delete(&kafka, &name);
    make(&kafka, &name, 3, &[]);
    let after = retried(|| admin.topics(&[&name]))[0].clone().unwrap();
    assert_eq!(after.partitions, 3);
    assert_ne!(before.id, after.id);
}

#[test]
fn live_closing_never_hangs() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 2);
    // An assignment that was told and never answered.
    let mut member = Member::join(&kafka, &fresh("group"), &[&input], &fresh("id"));
    until(|| {
        member.poll();
        member.stream.take_event().is_some()
    });
    let start = Instant::now();
    member.stream.close();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(member.stream.begin().unwrap_err().reaction, Reaction::Fenced);

    // One that was never polled, one that owns partitions, and one with an open transaction.
    let mut idle = Member::join(&kafka, &fresh("group"), &[&input], &fresh("id"));
    let mut owner = Member::owning(&kafka, &[&input], 2);
    retried(|| owner.stream.open_producer());
    owner.stream.begin().unwrap();
    owner.stream.send(&input, Partition(0), &record("x")).unwrap();
    for member in [&mut idle, &mut owner] {
        let start = Instant::now();
        member.stream.close();
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    }
}

#[test]
fn closing_without_a_broker_never_hangs() {
    let kafka = Kafka::new(KafkaConfig {
        brokers: "127.0.0.1:1".into(),
        client: Vec::new(),
        app: "live".into(),
        transaction_timeout_ms: 10_000,
    })
    .unwrap();
    let mut member = Member::join(&kafka, "group", &["in"], "id");
    let mut said = None;
    until(|| {
        said = member.stream.poll(Duration::from_millis(50), 1, &mut member.sink).err();
        said.is_some()
    });
    let error = said.unwrap();
    assert_eq!(error.reaction, Reaction::Retry);
    assert!(error.message.contains("127.0.0.1:1"), "{error}");
    let opening = member.stream.open_producer().unwrap_err();
    assert_eq!(opening.reaction, Reaction::Retry, "{opening}");
    let start = Instant::now();
    member.stream.close();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
