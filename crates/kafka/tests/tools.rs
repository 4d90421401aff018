//! The commands' reads and writes against a real broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use std::ops::ControlFlow;

use support::{Kept, PATIENCE, abort_one, cluster, fill, topic, topic_with, transactional};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{Header, RecordView};
use tallyflow_kafka::{ReadFrom, Seen};

#[test]
fn live_plain_records_are_acknowledged_or_named() {
    let kafka = cluster();
    let topic = topic_with(&kafka, "plain", 4, &[("max.message.bytes", "2000")]);
    let mut producer = kafka.producer().unwrap();
    for number in 0..10 {
        let text = format!("key-{number}");
        let headers = [Header { name: b"h".to_vec(), value: None }];
        producer.send(&topic, Some(text.as_bytes()), Some(text.as_bytes()), &headers).unwrap();
    }
    assert_eq!(producer.finish(PATIENCE).unwrap().acknowledged, 10);
    // Incompressible, so that lz4 does not save it.
    let mut state = 1_u32;
    let large: Vec<u8> = (0..5_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    producer.send(&topic, None, Some(&large), &[]).unwrap();
    let delivered = producer.finish(PATIENCE).unwrap();
    assert_eq!((delivered.acknowledged, delivered.failures.len()), (0, 1));
    assert_eq!((delivered.failures[0].number, &delivered.failures[0].topic), (10, &topic));

    let mut seen = Vec::new();
    kafka
        .read_topic(&topic, &ReadFrom::Start, PATIENCE, &mut |name, view| {
            seen.push((name.partition, Kept::of(view)));
        })
        .unwrap();
    assert_eq!(seen.len(), 10);
    // Java's murmur2 of the key, without its sign, modulo 4.
    let expected = java_partitions();
    for (partition, kept) in &seen {
        let key = String::from_utf8(kept.key.clone().unwrap()).unwrap();
        assert_eq!(partition.0, expected(&key), "{key}");
        assert_eq!(kept.headers, [(b"h".to_vec(), None)]);
    }
}

/// Kafka's `Utils.murmur2`, written down from its specification: the partition among 4 of a key.
fn java_partitions() -> impl Fn(&str) -> u32 {
    |key| {
        let data = key.as_bytes();
        let m = 0x5bd1_e995_u32;
        let mut h = 0x9747_b28c_u32 ^ data.len() as u32;
        let chunks = data.chunks_exact(4);
        let rest = chunks.remainder().to_vec();
        for chunk in chunks {
            let mut k = u32::from_le_bytes(chunk.try_into().unwrap()).wrapping_mul(m);
            k = (k ^ (k >> 24)).wrapping_mul(m);
            h = h.wrapping_mul(m) ^ k;
        }
        for (index, byte) in rest.iter().enumerate() {
            h ^= u32::from(*byte) << (8 * index);
        }
        if !rest.is_empty() {
            h = h.wrapping_mul(m);
        }
        h = (h ^ (h >> 13)).wrapping_mul(m);
        ((h ^ (h >> 15)) & 0x7fff_ffff) % 4
    }
}

#[test]
fn live_topics_are_read_from_offsets_and_past_aborted_ends() {
    let kafka = cluster();
    let topic = topic(&kafka, "read", 2);
    let mut writer = transactional(&kafka, &topic);
    writer.commit_values(&topic, &["a", "b", "c"]);
    abort_one(&kafka, &mut writer, &topic);
    fill(&kafka, &topic, 1, ["x".to_owned(), "y".to_owned()]);
    let read = |from: &ReadFrom| {
        let mut values = Vec::new();
        let mut each = |_: &TopicPartition, view: &RecordView<'_>| {
            values.push(String::from_utf8(view.value.unwrap().to_vec()).unwrap());
        };
        kafka.read_topic(&topic, from, PATIENCE, &mut each).unwrap();
        values.sort();
        values
    };
    assert_eq!(read(&ReadFrom::Start), ["a", "b", "c", "x", "y"]);
    assert_eq!(read(&ReadFrom::Offsets(vec![(Partition(0), NextOffset(2))])), ["c", "x", "y"]);
    assert_eq!(read(&ReadFrom::Offsets(vec![(Partition(1), NextOffset(99))])), ["a", "b", "c"]);
    assert!(read(&ReadFrom::End).is_empty());
    let missing = kafka.read_topic("nowhere", &ReadFrom::Start, PATIENCE, &mut |_, _| {}).unwrap_err();
    assert!(missing.message.contains("nowhere"), "{missing}");
}

#[test]
fn live_a_topic_is_followed_until_the_reader_has_enough() {
    let kafka = cluster();
    let topic = topic(&kafka, "read", 1);
    fill(&kafka, &topic, 0, ["before".to_owned()]);
    let mut seen = Vec::new();
    kafka
        .follow_topic(&topic, &ReadFrom::Start, &mut |what| {
            match what {
                Seen::Record(_, view) => seen.push(String::from_utf8(view.value.unwrap().to_vec()).unwrap()),
                Seen::CaughtUp => {
                    seen.push("caught up".into());
                    fill(&kafka, &topic, 0, ["after".to_owned()]);
                }
                Seen::Idle => {}
            }
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(seen, ["before", "caught up", "after"]);
}
