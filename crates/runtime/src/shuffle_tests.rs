//! Sections of one source at one target join without overlap, whatever is closed when.

use super::*;
use tallyflow_core::event::Kind;
use tallyflow_core::frame::entry::EntryFrame;
use tallyflow_core::ids::{Identity, Offset, PayloadCheck, Source, TopicId};
use tallyflow_core::time::{Limits, TimestampMs};

fn entry(offset: i64) -> Entry {
    Entry {
        kind: Kind::Add,
        identity: Identity::from_raw(offset as u128 + 1),
        check: PayloadCheck(0),
        counter: 0,
        event_time: TimestampMs(1),
        delta: 1,
        offset: Offset(offset),
        index: 0,
        first_append: None,
    }
}

fn mark(partition: u32, through: i64, admitted: u64, always: bool) -> Option<SourceMark<'static>> {
    let tallies = Tallies { received: admitted, admitted, ..Tallies::default() };
    Some(SourceMark {
        section: Section {
            input: "events",
            source: Source { topic_id: TopicId([1; 16]), partition: Partition(partition) },
            source_partitions: 2,
            from: NextOffset(0),
            through: NextOffset(through),
            progress: None,
            limits: Limits { accept_ms: 1, future_ms: 1 },
            tallies,
            entries: 0,
        },
        always,
    })
}

#[test]
fn sections_go_on_where_the_last_one_ended() {
    let mut shuffle = Shuffle::new(2);
    shuffle.open(0, Mark::default());
    shuffle.open(1, Mark { from: NextOffset(50), tallies: Tallies::default() });
    shuffle.push(0, 1, b"key", entry(3));
    shuffle.push(1, 1, b"key", entry(51));
    shuffle.push(0, 1, b"other", entry(7));
    shuffle.close(1, &[mark(0, 8, 2, false), mark(1, 52, 1, false)]);
    shuffle.push(0, 1, b"key", entry(9));
    shuffle.close(1, &[mark(0, 10, 3, false), mark(1, 60, 1, false)]);
    shuffle.close(0, &[mark(0, 10, 3, false), mark(1, 60, 1, true)]);
    let ready = shuffle.take_ready();
    let frames: Vec<_> = ready.iter().map(|(p, bytes)| (p.0, EntryFrame::decode(bytes).unwrap())).collect();
    let ranges = |at: usize| -> Vec<_> {
        frames[at]
            .1
            .sections
            .iter()
            .map(|s| (s.source.partition.0, s.from.0, s.through.0, s.entries, s.tallies.admitted))
            .collect()
    };
    assert_eq!(ranges(0), [(0, 0, 8, 2, 2), (1, 50, 52, 1, 1)]);
    // Nothing new of source 1: no section. Source 0 goes on at 8.
    assert_eq!(ranges(1), [(0, 8, 10, 1, 1)]);
    // A target without entries hears of source 1 because it must, from where that source began.
    assert_eq!((frames[2].0, ranges(2)), (0, vec![(1, 50, 60, 0, 1)]));
    assert_eq!(frames[0].1.counters, [b"key".as_slice(), b"other"]);
}

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let mut shuffle = Shuffle::new(1);
    shuffle.open(0, Mark::default());
    for offset in 0..20_000 {
        shuffle.push(0, 0, b"key", entry(offset));
    }
    assert_eq!(shuffle.oversized(), Some(0));
    shuffle.close(0, &[mark(0, 20_000, 20_000, false)]);
    assert!(shuffle.size_bytes() > 0 && shuffle.oversized().is_none());
    shuffle.push(0, 0, b"key", entry(20_001));
    shuffle.clear();
    assert!(shuffle.size_bytes() == 0 && shuffle.take_ready().is_empty() && !shuffle.has_entries(0));
}
