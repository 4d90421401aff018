//! What the raw topics leave open: each lawful choice is equal, every other outcome is a difference.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use support::*;
use tallyflow_audit::{DifferenceKind, Outcome};

#[test]
fn of_two_payloads_either_is_lawful_both_or_none_is_not() {
    let now = 10_000_000;
    // The other payload in the same window, in another window, of another dimension.
    let mut elsewhere = event("e", 1, now);
    elsewhere.region = "us".into();
    for other in [
        event("e", 5, now),
        event("e", 1, now + 61_000 - FUTURE_MS - 60_000),
        event("e", 1, now - 70_000),
        elsewhere,
    ] {
        let records = [
            record(0, now, event("e", 1, now)),
            record(1, now + 1, other.clone()),
            record(0, now + 2, event("x", 1, now)),
        ];
        for order in [[0, 1, 2], [1, 0, 2]] {
            let report = audit(&records, &engine(&records, &order, REMEMBER_MS));
            assert_eq!((report.outcome(), report.conflict_ids), (Outcome::Equal, 1), "{other:?} {report}");
        }
        let mut both = engine(&records, &[0, 1, 2], REMEMBER_MS);
        both.count(1, &other);
        both.tallies.get_mut(&1).unwrap().conflict -= 1;
        assert_eq!(audit(&records, &both).outcome(), Outcome::Differences, "both of {other:?}");

        let mut both_in_rows_only = engine(&records, &[0, 1, 2], REMEMBER_MS);
        both_in_rows_only.count(1, &other);
        both_in_rows_only.tallies.get_mut(&1).unwrap().counted -= 1;
        assert_eq!(audit(&records, &both_in_rows_only).outcome(), Outcome::Differences, "both of {other:?}");

        let mut none = engine(&records, &[0, 1, 2], REMEMBER_MS);
        none.uncount(&event("e", 1, now));
        assert_eq!(audit(&records, &none).outcome(), Outcome::Differences, "none of {other:?}");
    }
}

#[test]
fn windows_and_totals_must_choose_the_same_payload() {
    let now = 10_000_000;
    let records = [record(0, now, event("e", 1, now)), record(0, now + 1, event("e", 5, now))];
    let mut published = engine_in_order(&records);
    published.totals.values_mut().for_each(|total| total.0 = 5);
    let report = audit(&records, &published);
    assert!(report.differences.iter().any(|found| found.kind == DifferenceKind::TotalDiffers), "{report}");
}

#[test]
fn beyond_the_horizon_both_outcomes_are_lawful_and_no_third() {
    let now = 10_000_000;
    let later = now + REMEMBER_MS + 1;
    let records = [record(0, now, event("e", 1, now)), record(0, later, event("e", 1, later))];
    for forget_ms in [REMEMBER_MS, i64::MAX / 2] {
        let report = audit(&records, &engine(&records, &[0, 1], forget_ms));
        assert_eq!((report.outcome(), report.horizon_ids), (Outcome::Equal, 1), "{report}");
    }
    let mut none = engine(&records, &[0, 1], i64::MAX / 2);
    none.uncount(&event("e", 1, now));
    assert_eq!(audit(&records, &none).outcome(), Outcome::Differences);

    let nearer = [records[0].clone(), record(0, later - 1, event("e", 1, later))];
    let counted_again = engine(&nearer, &[0, 1], REMEMBER_MS - 1);
    assert_eq!(counted_again.tallies[&0].counted, 2);
    assert_eq!(audit(&nearer, &counted_again).outcome(), Outcome::Differences);
}
