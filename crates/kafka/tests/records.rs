//! What a stream hands on, and the positions it tells, against a real broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use support::{Member, Sink, cluster, fill, fresh, record, retried, topic, until};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{Header, OutRecord, RecordTime};
use tallyflow_core::time::TimestampMs;
use tallyflow_runtime::ports::{GroupEvent, Reaction, StreamLog};

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn live_positions_count_markers_and_forget_at_a_start() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    let partition = TopicPartition::new(input.as_str(), 0);
    let mut writer = Member::join(&kafka, &fresh("group"), &[&input], &fresh("id"));
    retried(|| writer.stream.open_producer());
    writer.commit_values(&input, &["a", "b"]); // 0, 1, marker 2
    writer.stream.begin().unwrap();
    writer.stream.send(&input, Partition(0), &record("aborted")).unwrap(); // 3, marker 4
    retried(|| writer.stream.abort());

    let mut member = Member::owning(&kafka, &[&input], 1);
    member.until(|member| member.stream.position(&partition) == Some(NextOffset(5)));
    assert_eq!(member.sink.values(&partition), ["a", "b"]);

    retried(|| member.stream.start(&[(partition.clone(), NextOffset(1))]));
    let after = member.stream.position(&partition);
    assert!(after.is_none(), "{after:?} is from before the start");
    member.until(|member| member.sink.count() == 3);
    assert_eq!(member.sink.values(&partition), ["a", "b", "b"]);

    // The sink refuses: the client is ahead of what was taken, so nothing is said.
    retried(|| member.stream.start(&[(partition.clone(), NextOffset(0))]));
    member.sink.refuse = true;
    let mut refused = None;
    until(|| match member.stream.poll(Duration::from_millis(20), 10, &mut member.sink) {
        Err(error) if error.reaction != Reaction::Retry => {
            refused = Some(error);
            true
        }
        _ => false,
    });
    assert_eq!(refused.unwrap().message, "refused by the test");
    assert_eq!(member.stream.position(&partition), None);
    member.sink = Sink::default();
    retried(|| member.stream.start(&[(partition.clone(), NextOffset(0))]));
    member.until(|member| member.stream.position(&partition) == Some(NextOffset(5)));
    assert_eq!(member.sink.values(&partition), ["a", "b"]);
}

#[test]
fn live_a_paused_partition_is_silent_until_it_is_started() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    let partition = TopicPartition::new(input.as_str(), 0);
    let mut member = Member::owning(&kafka, &[&input], 1);
    fill(&kafka, &input, 0, numbers(5));
    member.until(|member| member.sink.count() == 5);
    member.stream.pause(std::slice::from_ref(&partition)).unwrap();
    assert_eq!(member.stream.position(&partition), Some(NextOffset(5)));
    fill(&kafka, &input, 0, numbers(5));
    let deadline = Instant::now() + Duration::from_millis(300);
    while Instant::now() < deadline {
        assert_eq!(member.poll(), 0);
    }
    retried(|| member.stream.start(&[(partition.clone(), NextOffset(5))]));
    member.until(|member| member.sink.count() == 10);
    assert_eq!(member.stream.position(&partition), Some(NextOffset(10)));
}

#[test]
fn live_strange_records_are_read_as_they_are() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    let partition = TopicPartition::new(input.as_str(), 0);
    let header =
        |name: &[u8], value: Option<&[u8]>| Header { name: name.to_vec(), value: value.map(<[u8]>::to_vec) };
    let strange = [
        OutRecord {
            key: None,
            value: None,
            headers: vec![
                header(b"\xff\xfe", Some(b"not a text")),
                header(b"null", None),
                header(b"twice", Some(b"1")),
                header(b"twice", Some(b"")),
                header(b"", Some(b"no name")),
            ],
            timestamp: Some(TimestampMs(1_234)),
        },
        OutRecord { key: Some(Vec::new()), value: Some(Vec::new()), ..OutRecord::default() },
        OutRecord { key: Some(vec![0xff, 0]), value: Some(vec![0, 0xff]), ..OutRecord::default() },
    ];
    let mut member = Member::owning(&kafka, &[&input], 1);
    retried(|| member.stream.open_producer());
    member.stream.begin().unwrap();
    for record in &strange {
        member.stream.send(&input, Partition(0), record).unwrap();
    }
    retried(|| member.stream.commit());
    member.until(|member| member.sink.count() == strange.len());
    let kept = &member.sink.records[&partition];
    for (kept, record) in kept.iter().zip(&strange) {
        let headers: Vec<_> =
            record.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        assert_eq!((&kept.key, &kept.value, &kept.headers), (&record.key, &record.value, &headers));
    }
    assert_eq!(kept[0].time, RecordTime::Create(TimestampMs(1_234)));
    assert!(matches!(kept[1].time, RecordTime::Create(_)));
}

#[test]
fn live_append_times_are_told_from_create_times() {
    let kafka = cluster();
    let input = support::topic_with(&kafka, "in", 1, &[("message.timestamp.type", "LogAppendTime")]);
    fill(&kafka, &input, 0, numbers(1));
    let mut member = Member::owning(&kafka, &[&input], 1);
    member.until(|member| member.sink.count() == 1);
    let kept = &member.sink.records[&TopicPartition::new(input.as_str(), 0)][0];
    assert!(matches!(kept.time, RecordTime::LogAppend(_)), "{:?}", kept.time);
}

#[test]
fn live_nothing_is_delivered_before_the_start() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 1);
    fill(&kafka, &input, 0, numbers(10));
    let mut member = Member::join(&kafka, &fresh("group"), &[&input], &fresh("id"));
    let mut event = None;
    until(|| {
        member.poll();
        event = member.stream.take_event();
        event.is_some()
    });
    let Some(GroupEvent::Assigned(partitions)) = event else { panic!("{event:?}") };
    member.stream.acknowledge_assigned(&partitions).unwrap();
    fill(&kafka, &input, 0, numbers(10));
    let deadline = Instant::now() + Duration::from_millis(500);
    while Instant::now() < deadline {
        assert_eq!(member.poll(), 0);
    }
    assert_eq!(member.stream.position(&partitions[0]), None);
    retried(|| member.stream.start(&[(partitions[0].clone(), NextOffset(15))]));
    until(|| {
        member.poll();
        member.sink.count() == 5
    });
    assert_eq!(member.sink.records[&partitions[0]][0].offset, 15);
}

#[test]
fn live_a_worker_that_takes_nothing_stays_a_member_and_loses_nothing() {
    let kafka = cluster();
    let input = topic(&kafka, "in", 2);
    let group = fresh("group");
    let mut member = Member::join(&kafka, &group, &[&input], &fresh("id"));
    member.until(|member| member.owned.len() == 2);
    for partition in 0..2 {
        fill(&kafka, &input, partition, numbers(500));
    }
    member.until(|member| member.sink.count() > 0);
    // Long enough for the fetching to be held back.
    let mut nothing = Sink { refuse: true, ..Sink::default() };
    let deadline = Instant::now() + Duration::from_millis(2_500);
    while Instant::now() < deadline {
        let wait = Duration::from_millis(1);
        assert_eq!(retried(|| member.stream.poll(wait, 0, &mut nothing)), 0);
    }
    let mut second = Member::join(&kafka, &group, &[&input], &fresh("id"));
    let mut event = None;
    until(|| {
        retried(|| member.stream.poll(Duration::from_millis(1), 0, &mut nothing));
        second.step();
        event = member.stream.take_event();
        event.is_some()
    });
    assert!(matches!(event, Some(GroupEvent::Revoked(_))), "{event:?}");
    let before = member.owned.clone();
    member.answer(&event.unwrap());
    let kept = member.owned[0].clone();
    assert!(before.contains(&kept));
    member.until(|member| member.sink.values(&kept).len() == 500);
    assert_eq!(member.sink.values(&kept), numbers(500));
}
