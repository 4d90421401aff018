//! Golden bytes and properties of entry frames.

use super::*;
use proptest::prelude::*;

fn section(partition: u32, from: i64, through: i64) -> Section<'static> {
    Section {
        input: "events",
        source: Source { topic_id: TopicId([7; 16]), partition: Partition(partition) },
        source_partitions: 4,
        from: NextOffset(from),
        through: NextOffset(through),
        progress: Some(TimestampMs(1_000)),
        limits: Limits { accept_ms: 300_000, future_ms: 5_000 },
        tallies: Tallies { received: 3, admitted: 2, late: 1, ..Tallies::default() },
        entries: 0,
    }
}

fn entry(offset: i64, counter: u32) -> Entry {
    Entry {
        kind: Kind::Add,
        identity: Identity::from_raw(0x0102_0304),
        check: PayloadCheck(9),
        counter,
        event_time: TimestampMs(1_000 + offset),
        delta: 1,
        offset: Offset(offset),
        index: 0,
        first_append: None,
    }
}

fn sample() -> Vec<u8> {
    let mut builder = EntryFrameBuilder::default();
    let clicks = builder.counter(b"\x01\0n\x01\0c");
    builder.push(entry(10, clicks));
    builder.push(Entry { delta: -5, index: 2, first_append: Some(TimestampMs(7)), ..entry(12, clicks) });
    builder.close_section(&section(1, 10, 13));
    builder.close_section(&Section { progress: None, ..section(3, 0, 0) });
    let mut out = Vec::new();
    builder.finish(&mut out);
    assert!(builder.is_empty());
    out
}

#[test]
fn golden_bytes_of_version_1() {
    let hex: String = sample().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = "5446450102066576656e7473070707070707070707070707070707070104141a01d00fc0cf24904e03020100000002066576656e7473070707070707070707070707070707070304000000c0cf24904e03020100000000010601006e01006300040302010000000000000000000000000403020100000000000000000000000009000000090000000000e40f04010209000201000201010e";

#[test]
fn a_frame_reads_as_it_was_written() {
    let bytes = sample();
    let frame = EntryFrame::decode(&bytes).unwrap();
    assert_eq!(frame.counters, [b"\x01\0n\x01\0c".as_slice()]);
    let parts: Vec<_> = frame.by_section().collect();
    assert_eq!(parts[0].0, &Section { entries: 2, ..section(1, 10, 13) });
    assert_eq!(parts[0].1[0], entry(10, 0));
    assert_eq!(
        parts[0].1[1],
        Entry { delta: -5, index: 2, first_append: Some(TimestampMs(7)), ..entry(12, 0) }
    );
    assert_eq!((parts[1].0.progress, parts[1].1.len()), (None, 0));
}

#[test]
fn another_version_is_refused_by_name() {
    let mut bytes = sample();
    bytes[3] = 9;
    assert_eq!(EntryFrame::decode(&bytes).unwrap_err(), FrameError::Version(9));
}

#[test]
fn every_cut_is_refused() {
    let bytes = sample();
    for end in 0..bytes.len() {
        assert!(EntryFrame::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(EntryFrame::decode(&longer).unwrap_err(), FrameError::Trailing(1));
}

prop_compose! {
    fn any_entry()(
        kind in 0u8..5, identity in any::<u128>(), check in any::<u32>(), counter in 0u32..3, event_time in any::<i64>(),
        delta in prop_oneof![Just(1i64), any::<i64>()], step in 0i64..5, index in prop_oneof![Just(0u32), any::<u32>()],
        first_append in proptest::option::of(any::<i64>()),
    ) -> (i64, Entry) {
        (step, Entry {
            kind: Kind::from_byte(kind).unwrap(),
            identity: Identity::from_raw(identity),
            check: PayloadCheck(check),
            counter,
            event_time: TimestampMs(event_time),
            delta,
            offset: Offset(0),
            index,
            first_append: first_append.map(TimestampMs),
        })
    }
}

proptest! {
    #[test]
    fn frames_round_trip(sections in proptest::collection::vec(proptest::collection::vec(any_entry(), 0..20), 0..4)) {
        let mut builder = EntryFrameBuilder::default();
        for key in [b"\0\0\0\0".as_slice(), b"\x01\0a\0\0", b"\x01\0b\0\0"] {
            builder.counter(key);
        }
        let mut written = Vec::new();
        for (n, entries) in sections.into_iter().enumerate() {
            let mut offset = 100;
            for (step, mut entry) in entries {
                offset += step;
                entry.offset = Offset(offset);
                builder.push(entry);
                written.push(entry);
            }
            builder.close_section(&section(n as u32, 100, offset + 1));
        }
        let bound = builder.size_bytes();
        let mut out = Vec::new();
        builder.finish(&mut out);
        prop_assert!(out.len() <= bound + 64 + written.len() * 12);
        let frame = EntryFrame::decode(&out).unwrap();
        prop_assert_eq!(frame.entries, written);
    }

    #[test]
    fn decoding_survives_any_input(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = EntryFrame::decode(&bytes);
        bytes.splice(0..0, *b"TFE\x01");
        let _ = EntryFrame::decode(&bytes);
    }

    #[test]
    fn decoding_survives_any_damage(at in 4usize..100, byte in any::<u8>()) {
        let mut bytes = sample();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = EntryFrame::decode(&bytes).map(|frame| frame.by_section().count());
    }
}
