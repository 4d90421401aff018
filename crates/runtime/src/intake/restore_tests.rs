//! The table of where an intake task begins.

use super::*;
use tallyflow_core::ids::{Partition, TopicId};
use tallyflow_core::tallies::Tallies;

fn row(through: i64) -> OwnedLedgerRow {
    OwnedLedgerRow {
        stage: "intake".into(),
        task: "events-0".into(),
        source_topic_id: TopicId([1; 16]),
        source_partition: Partition(0),
        source_topic: "events".into(),
        tallies: Tallies { received: 100, admitted: 100, skipped: 5, ..Tallies::default() },
        through_offset: NextOffset(through),
        complete_through: None,
    }
}

fn group(offset: i64, metadata: &str) -> Committed {
    Committed { offset: NextOffset(offset), metadata: metadata.into() }
}

fn run(
    row: Option<OwnedLedgerRow>,
    group: Option<Committed>,
    ends: (i64, i64),
    accept_loss: bool,
) -> Result<(i64, u64), String> {
    let partition = TopicPartition::new("events", 0);
    let place = Place {
        partition: &partition,
        source: Source { topic_id: TopicId([1; 16]), partition: Partition(0) },
    };
    let ends = LogEnds { start: NextOffset(ends.0), high_watermark_offset: NextOffset(ends.1) };
    decide(&place, row.as_ref(), group.as_ref(), &ends, accept_loss)
        .map(|s| (s.through.0, s.tallies.skipped))
        .map_err(|error| {
            assert_eq!(error.reaction, Reaction::Halt);
            error.message
        })
}

#[test]
fn the_ledger_is_the_authority() {
    let ours = "01010101010101010101010101010101";
    // T16: nothing known: from the earliest, whatever "latest" would be.
    assert_eq!(run(None, None, (3, 10), false), Ok((3, 0)));
    // An offset of another incarnation, or of nobody: a new source.
    assert_eq!(run(None, Some(group(7, "00000000000000000000000000000000")), (0, 10), false), Ok((0, 0)));
    assert_eq!(run(None, Some(group(7, "")), (0, 10), false), Ok((0, 0)));
    // The usual restart.
    assert_eq!(run(Some(row(100)), Some(group(100, ours)), (0, 120), false), Ok((100, 5)));
    // T3b: rewound to 0 after 100: skipped, not counted again and no duplicates.
    assert_eq!(run(Some(row(100)), Some(group(0, ours)), (0, 120), false), Ok((100, 105)));
    // Expired group.
    assert_eq!(run(Some(row(100)), None, (10, 120), false), Ok((100, 95)));
}

#[test]
fn what_would_lose_events_is_refused_by_name() {
    let ours = "01010101010101010101010101010101";
    let lost_ledger = run(None, Some(group(7, ours)), (0, 10), false).unwrap_err();
    assert!(lost_ledger.contains("the ledger was lost"), "{lost_ledger}");
    assert_eq!(run(None, Some(group(7, ours)), (0, 10), true), Ok((0, 0)));
    let ahead = run(Some(row(100)), Some(group(110, ours)), (0, 120), false).unwrap_err();
    assert!(ahead.contains("offsets 100 to 109"), "{ahead}");
    assert_eq!(run(Some(row(100)), Some(group(110, ours)), (0, 120), true), Ok((110, 15)));
    let gone = run(Some(row(100)), Some(group(100, ours)), (105, 120), false).unwrap_err();
    assert!(gone.contains("offsets 100 to 104") && gone.contains("--accept-loss"), "{gone}");
    assert_eq!(run(Some(row(100)), Some(group(100, ours)), (105, 120), true), Ok((105, 10)));
    let cut = run(Some(row(100)), Some(group(100, ours)), (0, 50), false).unwrap_err();
    assert!(cut.contains("the log ends at 50"), "{cut}");
}
