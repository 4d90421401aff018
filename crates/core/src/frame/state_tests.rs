//! Golden bytes and properties of state frames.

use super::*;
use proptest::prelude::*;

fn head() -> StateHead {
    StateHead {
        entries_topic_id: TopicId([1; 16]),
        slice: 3,
        slices: 16,
        part: 0,
        parts: 1,
        through: NextOffset(77),
        deltas_mark: 12,
    }
}

fn rows() -> Vec<StateRow<'static>> {
    vec![
        StateRow { table: "minute", key: b"k", start: TimestampMs(60_000), sum: Sum(-7), events: 2 },
        StateRow { table: "minute", key: b"l", start: TimestampMs(60_000), sum: Sum(1 << 100), events: 1 },
        StateRow { table: "", key: b"k", start: TimestampMs(0), sum: Sum(-7), events: 2 },
    ]
}

#[test]
fn golden_bytes_of_version_1() {
    let hex: String = write_slice(&head(), &rows(), &[])[0].iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = "5446530101010101010101010101010101010101031000019a011802066d696e7574650002016b016c030000c0a9070d02000100808080808080808080808080808008010100bfa9070d0200";

#[test]
fn a_slice_reads_as_it_was_written() {
    let frames = write_slice(&head(), &rows(), &[]);
    let frame = StateFrame::decode(&frames[0]).unwrap();
    assert_eq!((frame.head, frame.rows, frame.pins.len()), (head(), rows(), 0));
}

#[test]
fn an_empty_slice_is_still_said() {
    let frames = write_slice(&head(), &[], &[]);
    assert_eq!(frames.len(), 1);
    assert!(StateFrame::decode(&frames[0]).unwrap().rows.is_empty());
}

#[test]
fn a_large_slice_becomes_parts_that_each_fit_a_record() {
    let keys: Vec<String> = (0..40_000).map(|n| format!("counter-{n}")).collect();
    let rows: Vec<_> = keys
        .iter()
        .map(|k| StateRow { table: "m", key: k.as_bytes(), start: TimestampMs(0), sum: Sum(1), events: 1 })
        .collect();
    let frames = write_slice(&head(), &rows, &[]);
    assert!(frames.len() > 1 && frames.iter().all(|f| f.len() < 1024 * 1024));
    let read: usize = frames.iter().map(|f| StateFrame::decode(f).unwrap().rows.len()).sum();
    assert_eq!(read, rows.len());
}

#[test]
fn every_cut_is_refused() {
    let bytes = write_slice(&head(), &rows(), &[]).remove(0);
    for end in 0..bytes.len() {
        assert!(StateFrame::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
}

proptest! {
    #[test]
    fn decoding_survives_any_damage(at in 4usize..200, byte in any::<u8>()) {
        let mut bytes = write_slice(&head(), &rows(), &[]).remove(0);
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = StateFrame::decode(&bytes);
    }
}
