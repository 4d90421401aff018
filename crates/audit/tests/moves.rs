//! Events that took a way the raw topics do not show: held, redriven, discarded.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use support::*;
use tallyflow_audit::{DifferenceKind, Outcome, Recount};

const NOW: i64 = 10_020_000;

fn minutes(count: i64) -> Vec<Record> {
    (0..count)
        .map(|n| record(0, NOW + n * MINUTE_MS, event(&format!("e{n}"), 1, NOW + n * MINUTE_MS)))
        .collect()
}

#[test]
fn a_held_event_and_its_redrive_are_booked_to_their_origin() {
    let records = minutes(2);
    let published = engine_in_order(&records);
    let mut first_pass = published.tallies[&0];
    first_pass.counted = 1;
    let mut intake: serde_json::Value = serde_json::from_str(&ledger_json("intake", 0, &first_pass)).unwrap();
    (intake["received"], intake["held"]) = (2.into(), 1.into());
    let moves = |counted: i64, discarded: i64| {
        let key = serde_json::json!({"stage": "retry", "task": "retry-0", "source_topic_id": TOPIC_ID,
            "source_topic": "events", "source_partition": 0});
        let mut row = key;
        (row["held"], row["counted"], row["discarded"]) = ((-1).into(), counted.into(), discarded.into());
        row.to_string()
    };
    for (counted, discarded, fine) in [(1, 0, true), (2, 0, false), (0, 0, false)] {
        let mut recount = Recount::new(config()).unwrap();
        feed_raw(&mut recount, &records, 0);
        let rows = Published { tallies: Default::default(), ..published.clone() };
        feed_published(&mut recount, &rows);
        recount.ledger_row(intake.to_string().as_bytes());
        recount.ledger_row(ledger_json("count", 0, &first_pass).as_bytes());
        // Of moves the later row holds, whatever it says of offsets.
        let earlier = moves(7, 7).replace("\"stage\"", "\"through_offset\":9,\"stage\"");
        recount.ledger_row(earlier.as_bytes());
        recount.ledger_row(moves(counted, discarded).as_bytes());
        let report = recount.finish();
        assert_eq!(report.outcome() == Outcome::Equal, fine, "{counted} {discarded} {report}");
        assert_eq!((report.published.held, report.notes.len()), (0, 1), "{report}");
    }
}

#[test]
fn an_event_still_held_is_missing_in_rows_but_not_in_the_books() {
    let records = minutes(2);
    let mut published = engine_in_order(&records[..1]);
    published.tallies.get_mut(&0).unwrap().through = 2;
    let mut intake: serde_json::Value =
        serde_json::from_str(&ledger_json("intake", 0, &published.tallies[&0])).unwrap();
    (intake["received"], intake["held"]) = (2.into(), 1.into());
    let mut recount = Recount::new(config()).unwrap();
    feed_raw(&mut recount, &records, 0);
    feed_published(&mut recount, &published);
    recount.ledger_row(intake.to_string().as_bytes());
    let report = recount.finish();
    assert_eq!((report.outcome(), report.published.held), (Outcome::Differences, 1));
    let of_rows = [DifferenceKind::RowMissing, DifferenceKind::CountDiffers];
    assert!(report.differences.iter().all(|found| of_rows.contains(&found.kind)), "{report}");
}
