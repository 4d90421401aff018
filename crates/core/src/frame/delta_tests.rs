//! Golden bytes and properties of delta frames.

use super::*;
use crate::ids::{Coordinate, Identity, Offset};
use proptest::prelude::*;

fn coordinate() -> Coordinate {
    Coordinate {
        source: Source { topic_id: TopicId([3; 16]), partition: Partition(1) },
        offset: Offset(5),
        index: 2,
    }
}

fn standing() -> Standing {
    Standing {
        entries_topic_id: TopicId([1; 16]),
        from: NextOffset(10),
        through: NextOffset(20),
        committed_at: TimestampMs(5_000),
        append_clock: Some(TimestampMs(4_000)),
        complete_through: None,
        future_max_ms: 5_000,
        skipped: 1,
        sources: vec![SourceRow {
            input: "events".into(),
            source: Source { topic_id: TopicId([2; 16]), partition: Partition(3) },
            source_partitions: 4,
            through: NextOffset(99),
            progress: Some(TimestampMs(4_000)),
            tallies: Tallies {
                admitted: 6,
                counted: 3,
                duplicate: 1,
                conflict: 1,
                late: 1,
                ..Tallies::default()
            },
        }],
        buckets: vec![
            Bucket { id: 0, first: NextOffset(0), end: Some((NextOffset(15), TimestampMs(3_000))) },
            Bucket { id: 1, first: NextOffset(15), end: None },
        ],
        bucket_opened_at: Some(TimestampMs(3_000)),
        horizon: vec![HorizonStep { from: NextOffset(0), threshold: TimestampMs(-1) }],
        cursors: vec![Cursor {
            table: "minute".into(),
            start: TimestampMs(60_000),
            after: Some(CellOrder { slice: 4, key: b"k".to_vec() }),
        }],
        emitted_through: NextOffset(18),
        trim_bound: NextOffset(0),
        pins_set: vec![Pin { identity: Identity::from_raw(8), coordinate: coordinate() }],
        pins_released: vec![],
    }
}

fn sample() -> Vec<u8> {
    let mut builder = DeltaFrameBuilder::default();
    builder.push(&DeltaRow { key: b"k", slice_start: TimestampMs(60_000), sum: Sum(i128::MIN), events: 3 });
    builder.push(&DeltaRow { key: b"l", slice_start: TimestampMs(0), sum: Sum(-1), events: 1 });
    builder.finish(&standing()).remove(0)
}

#[test]
fn golden_bytes_of_version_1() {
    let hex: String = sample().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = "544644010101010101010101010101010101010100011428904e01c03e00904e0101066576656e7473020202020202020202020202020202020304c60101c03e0603010101020000011e01f02e011e000001f02e01000101066d696e757465c0a9070104016b2400010800000000000000000000000000000003030303030303030303030303030303010a020002016b016c0200c0a907ffffffffffffffffffffffffffffffffffff030301bfa9070101";

#[test]
fn a_frame_reads_as_it_was_written() {
    let bytes = sample();
    let frame = DeltaFrame::decode(&bytes).unwrap();
    assert_eq!((frame.part, frame.parts), (0, 1));
    assert_eq!(frame.standing, standing());
    assert_eq!(frame.rows.len(), 2);
    assert_eq!(frame.rows[0].sum, Sum(i128::MIN));
    assert_eq!((frame.rows[1].key, frame.rows[1].slice_start), (b"l".as_slice(), TimestampMs(0)));
}

#[test]
fn many_rows_become_parts_that_each_fit_a_record() {
    let mut builder = DeltaFrameBuilder::default();
    for n in 0..60_000u32 {
        let key = format!("counter-{n:06}");
        builder.push(&DeltaRow { key: key.as_bytes(), slice_start: TimestampMs(0), sum: Sum(1), events: 1 });
    }
    let frames = builder.finish(&standing());
    assert!(frames.len() > 1);
    let mut rows = 0;
    for (part, bytes) in frames.iter().enumerate() {
        assert!(bytes.len() < 1024 * 1024);
        let frame = DeltaFrame::decode(bytes).unwrap();
        assert_eq!((frame.part, frame.parts), (part as u64, frames.len() as u64));
        rows += frame.rows.len();
    }
    assert_eq!(rows, 60_000);
    assert!(builder.is_empty());
}

#[test]
fn every_cut_is_refused() {
    let bytes = sample();
    for end in 0..bytes.len() {
        assert!(DeltaFrame::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
}

proptest! {
    #[test]
    fn decoding_survives_any_damage(at in 4usize..300, byte in any::<u8>()) {
        let mut bytes = sample();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = DeltaFrame::decode(&bytes);
    }

    #[test]
    fn decoding_survives_any_input(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        bytes.splice(0..0, *b"TFD\x01");
        let _ = DeltaFrame::decode(&bytes);
    }
}
