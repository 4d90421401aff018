//! Transactions against a real broker: speed, aborts, fencing, offsets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr
)]

mod support;

use std::time::{Duration, Instant};

use support::{Member, cluster, fresh, record, retried, topic, until};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_kafka::{Kafka, ReadFrom};
use tallyflow_runtime::ports::{Reaction, SentOffset, StreamLog};

fn values_of(kafka: &Kafka, topic: &str) -> Vec<String> {
    let mut values = Vec::new();
    kafka
        .read_topic(topic, &ReadFrom::Start, support::PATIENCE, &mut |_, view| {
            values.push(String::from_utf8(view.value.unwrap_or_default().to_vec()).unwrap());
        })
        .unwrap();
    values
}

fn worker(kafka: &Kafka, topic: &str, id: &str) -> Member {
    let mut member = Member::join(kafka, &fresh("group"), &[topic], id);
    retried(|| member.stream.open_producer());
    member
}

#[test]
fn live_commits_take_milliseconds() {
    let kafka = cluster();
    let topic = topic(&kafka, "out", 1);
    let mut member = worker(&kafka, &topic, &fresh("id"));
    let mut times = Vec::new();
    for round in 0..20 {
        member.stream.begin().unwrap();
        for number in 0..10 {
            let record = record(&format!("{round}-{number}"));
            member.stream.send(&topic, Partition(0), &record).unwrap();
        }
        let start = Instant::now();
        retried(|| member.stream.commit());
        times.push(start.elapsed());
    }
    times.sort();
    // Not asserted: a busy machine may be slow. With rdkafka's own call no time would be below 100 ms.
    eprintln!("commit of 10 records: p50 {:?}, best {:?}, worst {:?}", times[10], times[0], times[19]);
    assert_eq!(values_of(&kafka, &topic).len(), 200);
}

#[test]
fn live_an_abort_right_after_the_first_record_returns_and_costs_nothing() {
    let kafka = cluster();
    let topic = topic(&kafka, "out", 4);
    let mut member = worker(&kafka, &topic, &fresh("id"));
    for records in [1, 2_000, 1, 0, 1, 50, 1] {
        member.stream.begin().unwrap();
        for number in 0..records {
            let partition = Partition(number % 4);
            retried(|| member.stream.send(&topic, partition, &record("aborted")));
        }
        let start = Instant::now();
        retried(|| member.stream.abort());
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }
    member.commit_values(&topic, &["committed"]);
    assert_eq!(values_of(&kafka, &topic), ["committed"]);
}

#[test]
fn live_a_zombie_is_fenced_and_comes_back_with_a_new_producer() {
    let kafka = cluster();
    let topic = topic(&kafka, "out", 1);
    let id = fresh("id");
    let mut old = worker(&kafka, &topic, &id);
    old.stream.begin().unwrap();
    old.stream.send(&topic, Partition(0), &record("of the zombie")).unwrap();
    let mut new = worker(&kafka, &topic, &id);
    let mut fenced = None;
    until(|| match old.stream.commit() {
        Err(error) if error.reaction == Reaction::Retry => false,
        other => {
            fenced = Some(other);
            true
        }
    });
    let error = fenced.unwrap().unwrap_err();
    assert_eq!(error.reaction, Reaction::Fenced, "{error}");
    assert!(error.message.contains(&id), "{error}");
    // Every further call says the same, and none hangs.
    assert_eq!(old.stream.begin().unwrap_err().reaction, Reaction::Fenced);
    new.commit_values(&topic, &["of the new one"]);
    assert_eq!(values_of(&kafka, &topic), ["of the new one"]);
    retried(|| old.stream.open_producer());
    old.commit_values(&topic, &["of the old one"]);
    assert_eq!(values_of(&kafka, &topic), ["of the new one", "of the old one"]);
}

#[test]
fn live_a_successor_ends_the_transaction_of_the_dead() {
    let kafka = cluster();
    let (input, output) = (topic(&kafka, "in", 1), topic(&kafka, "out", 1));
    let group = fresh("group");
    let id = fresh("id");
    let partition = TopicPartition::new(input.as_str(), 0);
    let mut dead = Member::join(&kafka, &group, &[&input], &id);
    retried(|| dead.stream.open_producer());
    dead.until(|member| member.owned.len() == 1);
    dead.stream.begin().unwrap();
    dead.stream.send(&output, Partition(0), &record("lost")).unwrap();
    retried(|| dead.stream.send_offsets(&[sent(&partition, 5, "")]));
    dead.stream.close();
    let start = Instant::now();
    let mut next = Member::join(&kafka, &group, &[&input], &id);
    retried(|| next.stream.open_producer());
    assert_eq!(retried(|| next.stream.committed(std::slice::from_ref(&partition))), [None]);
    assert!(start.elapsed() < Duration::from_secs(9), "it waited for the transaction's time out");
    assert!(values_of(&kafka, &output).is_empty());
}

fn sent(partition: &TopicPartition, offset: i64, metadata: &str) -> SentOffset {
    SentOffset { partition: partition.clone(), offset: NextOffset(offset), metadata: metadata.to_owned() }
}

#[test]
fn live_offsets_and_their_metadata_round_trip_and_wait_for_open_transactions() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 2);
    let mut member = Member::owning(&kafka, &[&input], 2);
    retried(|| member.stream.open_producer());
    let partitions = [TopicPartition::new(input.as_str(), 0), TopicPartition::new(input.as_str(), 1)];
    assert_eq!(retried(|| member.stream.committed(&partitions)), [None, None]);
    let id = "0123456789abcdef0123456789abcdef";
    member.stream.begin().unwrap();
    retried(|| member.stream.send_offsets(&[sent(&partitions[0], 7, id)]));
    let unstable = member.stream.committed(&partitions).unwrap_err();
    assert_eq!(unstable.reaction, Reaction::Retry, "{unstable}");
    retried(|| member.stream.commit());
    let committed = retried(|| member.stream.committed(&partitions));
    let first = committed[0].as_ref().unwrap();
    assert_eq!((first.offset, first.metadata.as_str()), (NextOffset(7), id));
    assert_eq!(committed[1], None);
}

#[test]
fn live_offsets_are_refused_where_they_would_prove_nothing() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    let mut member = worker(&kafka, &input, &fresh("id"));
    let partition = TopicPartition::new(input.as_str(), 0);
    member.stream.begin().unwrap();
    assert_eq!(member.stream.send_offsets(&[]).unwrap_err().reaction, Reaction::Halt);
    let foreign = member.stream.send_offsets(&[sent(&partition, 0, "")]).unwrap_err();
    assert_eq!(foreign.reaction, Reaction::Abort, "{foreign}");
    retried(|| member.stream.abort());
}

#[test]
fn live_a_call_out_of_order_is_a_broken_invariant() {
    let kafka = cluster();
    let topic = topic(&kafka, "out", 1);
    let mut member = Member::join(&kafka, &fresh("group"), &[&topic], &fresh("id"));
    assert_eq!(member.stream.begin().unwrap_err().reaction, Reaction::Fenced);
    retried(|| member.stream.open_producer());
    assert_eq!(member.stream.commit().unwrap_err().reaction, Reaction::Halt);
    member.stream.begin().unwrap();
    assert_eq!(member.stream.begin().unwrap_err().reaction, Reaction::Halt);
    let mut timeless = record("x");
    timeless.timestamp = Some(tallyflow_core::time::TimestampMs(0));
    let refused = member.stream.send(&topic, Partition(0), &timeless).unwrap_err();
    assert_eq!(refused.reaction, Reaction::Halt);
    retried(|| member.stream.abort());
}
