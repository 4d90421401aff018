//! Scans and questions against a real broker.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr
)]

mod support;

use std::time::Duration;

use support::{
    PATIENCE, Sink, abort_one, await_end, cluster, fill, fresh, record, retried, topic, topic_with,
    transactional, until,
};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_kafka::{Created, KafkaReader, NewTopic};
use tallyflow_runtime::ports::{Admin as _, LogReader as _, Reaction, ScanFrom, ScanProgress, StreamLog};

/// Scans a partition 0 to its end.
fn scanned(reader: &mut KafkaReader, topic: &str, from: ScanFrom) -> (Vec<String>, ScanProgress) {
    let partition = TopicPartition::new(topic, 0);
    let mut sink = Sink::default();
    let mut scan = retried(|| reader.scan(&partition, from));
    let mut last = None;
    until(|| {
        let progress = retried(|| scan.advance(Duration::from_millis(50), &mut sink));
        last = Some(progress);
        progress.done
    });
    (sink.values(&partition), last.unwrap())
}

#[test]
fn live_scans_end_at_markers_and_aborted_records() {
    let kafka = cluster();
    let topic = topic(&kafka, "log", 1);
    let mut reader = kafka.reader();
    // Empty.
    let (values, progress) = scanned(&mut reader, &topic, ScanFrom::Earliest);
    assert!(values.is_empty());
    assert_eq!((progress.position, progress.end), (NextOffset(0), NextOffset(0)));
    // Only an aborted record and its marker.
    let mut writer = transactional(&kafka, &topic);
    abort_one(&kafka, &mut writer, &topic);
    let (values, progress) = scanned(&mut reader, &topic, ScanFrom::Earliest);
    assert!(values.is_empty());
    assert_eq!((progress.position, progress.end), (NextOffset(2), NextOffset(2)));
    // Records, then a marker.
    writer.commit_values(&topic, &["a", "b"]);
    await_end(&kafka, &topic, 5);
    let (values, progress) = scanned(&mut reader, &topic, ScanFrom::Earliest);
    assert_eq!(values, ["a", "b"]);
    assert_eq!(progress.end, NextOffset(5));
    // Then aborted ones at the end; several scans share a client.
    abort_one(&kafka, &mut writer, &topic);
    for _ in 0..3 {
        let (values, progress) = scanned(&mut reader, &topic, ScanFrom::Offset(NextOffset(3)));
        assert_eq!(values, ["b"]);
        assert_eq!((progress.position, progress.end), (NextOffset(7), NextOffset(7)));
    }
    // At the end there is nothing to do.
    let (values, progress) = scanned(&mut reader, &topic, ScanFrom::Offset(NextOffset(7)));
    assert!(values.is_empty() && progress.done);
}

#[test]
fn live_a_scan_waits_for_an_open_transaction() {
    let kafka = cluster();
    let topic = topic(&kafka, "log", 1);
    let partition = TopicPartition::new(topic.as_str(), 0);
    let mut writer = transactional(&kafka, &topic);
    fill(&kafka, &topic, 0, ["first".to_owned()]);
    writer.stream.begin().unwrap();
    writer.stream.send(&topic, Partition(0), &record("second")).unwrap();
    let mut admin = kafka.admin().unwrap();
    until(|| retried(|| admin.topic_ends(&topic)).unwrap()[0].high_watermark_offset == NextOffset(2));
    let mut sink = Sink::default();
    let mut reader = kafka.reader();
    let mut scan = retried(|| reader.scan(&partition, ScanFrom::Earliest));
    for _ in 0..10 {
        let progress = retried(|| scan.advance(Duration::from_millis(50), &mut sink));
        assert!(!progress.done, "{progress:?}");
        assert_eq!(progress.end, NextOffset(2));
    }
    assert_eq!(sink.values(&partition), ["first"]);
    retried(|| writer.stream.commit());
    fill(&kafka, &topic, 0, ["beyond the end".to_owned()]);
    until(|| retried(|| scan.advance(Duration::from_millis(50), &mut sink)).done);
    assert_eq!(sink.values(&partition), ["first", "second"]);
}

#[test]
fn live_scans_of_several_partitions_do_not_mix() {
    let kafka = cluster();
    let topic = topic(&kafka, "log", 2);
    for partition in 0..2 {
        fill(&kafka, &topic, partition, (0..20_000).map(|number| format!("{partition}-{number}")));
    }
    let mut reader = kafka.reader();
    let names = [TopicPartition::new(topic.as_str(), 0), TopicPartition::new(topic.as_str(), 1)];
    let mut sink = Sink::default();
    let mut scans: Vec<_> =
        names.iter().map(|name| retried(|| reader.scan(name, ScanFrom::Earliest))).collect();
    until(|| {
        scans.iter_mut().all(|scan| retried(|| scan.advance(Duration::from_millis(10), &mut sink)).done)
    });
    for (number, name) in names.iter().enumerate() {
        let expected: Vec<String> = (0..20_000).map(|n| format!("{number}-{n}")).collect();
        assert_eq!(sink.values(name), expected);
    }
}

#[test]
fn live_a_scan_from_what_is_not_retained_is_refused() {
    let kafka = cluster();
    let topic = topic(&kafka, "log", 1);
    let partition = TopicPartition::new(topic.as_str(), 0);
    fill(&kafka, &topic, 0, (0..10).map(|number| number.to_string()));
    support::delete_records(&topic, 0, 4);
    let mut reader = kafka.reader();
    let refused = |at| reader.scan(&partition, ScanFrom::Offset(NextOffset(at))).err().unwrap();
    for (error, part) in [3, 11].map(refused).iter().zip(["3 to 4", "beyond"]) {
        assert_eq!(error.reaction, Reaction::Halt, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let mut reader = kafka.reader();
    let (values, _) = scanned(&mut reader, &topic, ScanFrom::Earliest);
    assert_eq!(values, ["4", "5", "6", "7", "8", "9"]);
}

#[test]
fn live_a_compacted_log_is_read_to_its_end() {
    let kafka = cluster();
    let configs = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "100"),
        ("min.cleanable.dirty.ratio", "0.001"),
        ("max.compaction.lag.ms", "100"),
        ("delete.retention.ms", "0"),
    ];
    let topic = topic_with(&kafka, "log", 1, &configs);
    let mut writer = transactional(&kafka, &topic);
    for round in 0..5 {
        writer.stream.begin().unwrap();
        let mut keyed = record(&round.to_string());
        keyed.key = Some(b"key".to_vec());
        writer.stream.send(&topic, Partition(0), &keyed).unwrap();
        retried(|| writer.stream.commit());
        std::thread::sleep(Duration::from_millis(150));
    }
    await_end(&kafka, &topic, 10);
    // Whatever the cleaner has done by now: the last value is there, and the end is reached.
    let (values, progress) = scanned(&mut kafka.reader(), &topic, ScanFrom::Earliest);
    assert_eq!(values.last().map(String::as_str), Some("4"));
    assert_eq!((progress.position, progress.end), (NextOffset(10), NextOffset(10)));
}

#[test]
fn live_the_cluster_answers_questions() {
    let kafka = cluster();
    kafka.check(PATIENCE).unwrap();
    let mut admin = kafka.admin().unwrap();
    let new = NewTopic {
        name: fresh("made"),
        partitions: 3,
        replication: 1,
        configs: vec![("retention.ms".into(), "-1".into())],
    };
    assert_eq!(admin.create_topics(std::slice::from_ref(&new)), Ok(vec![Created::New]));
    assert_eq!(admin.create_topics(std::slice::from_ref(&new)), Ok(vec![Created::Existed]));
    let configs = admin.topic_configs(&new.name).unwrap().unwrap();
    let retention = &configs["retention.ms"];
    assert_eq!((retention.value.as_deref(), retention.is_explicit), (Some("-1"), true));
    assert!(!configs["cleanup.policy"].is_explicit);
    assert_eq!(admin.topic_configs("nowhere"), Ok(None));

    let found = retried(|| admin.topics(&[&new.name, "nowhere", &new.name]));
    assert_eq!(found[0].as_ref().unwrap().partitions, 3);
    assert_eq!((&found[1], &found[2]), (&None, &found[0]));

    fill(&kafka, &new.name, 1, (0..5).map(|number| number.to_string()));
    support::delete_records(&new.name, 1, 2);
    let ends = retried(|| admin.topic_ends(&new.name)).unwrap();
    let plain: Vec<_> = ends.iter().map(|end| (end.start.0, end.high_watermark_offset.0)).collect();
    assert_eq!(plain, [(0, 0), (2, 5), (0, 0)]);
    assert_eq!(retried(|| admin.topic_ends("nowhere")), None);
    let unknown = admin.ends(&[TopicPartition::new("nowhere", 0)]).unwrap_err();
    assert_eq!(unknown.reaction, Reaction::Retry, "{unknown}");

    let wrong =
        NewTopic { configs: vec![("retention.ms".into(), "soon".into())], name: fresh("made"), ..new };
    let error = admin.create_topics(std::slice::from_ref(&wrong)).unwrap_err();
    assert_eq!(error.reaction, Reaction::Halt);
    assert!(error.message.contains(&wrong.name), "{error}");
}

#[test]
fn live_ends_do_not_depend_on_open_transactions() {
    let kafka = cluster();
    let topic = topic(&kafka, "log", 1);
    let mut writer = transactional(&kafka, &topic);
    writer.stream.begin().unwrap();
    writer.stream.send(&topic, Partition(0), &record("open")).unwrap();
    let mut admin = kafka.admin().unwrap();
    until(|| retried(|| admin.topic_ends(&topic)).unwrap()[0].high_watermark_offset == NextOffset(1));
    retried(|| writer.stream.abort());
}
