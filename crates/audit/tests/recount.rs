//! The recount from outside: it agrees with a correct engine in every lawful order, and with no bent one.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use support::*;
use tallyflow_audit::{DifferenceKind, Outcome, Range, Recount, Report};

/// Events of every verdict on two partitions: copies near and across partitions, late, future, invalid, packed.
fn mixed() -> Vec<Record> {
    let base = 10_000_000;
    let mut records = Vec::new();
    for n in 0..40_i64 {
        let mut one = event(&format!("e{n}"), n - 10, base + n * 7_000);
        one.counter = format!("c{}", n % 3);
        records.push(record((n % 2) as i32, base + n * 7_000 + 10, one.clone()));
        if n % 5 == 0 {
            records.push(record((n % 2) as i32, base + n * 7_000 + 20, one.clone()));
        }
        if n % 10 == 3 {
            records.push(record(1 - (n % 2) as i32, base + n * 7_000 + 30, one));
        }
    }
    let last = base + 300_000;
    records.push(record(0, last, event("late", 1, last - ACCEPT_MS - 1)));
    records.push(record(0, last, event("eldest", 1, last - ACCEPT_MS)));
    records.push(record(1, last, event("future", 1, last + FUTURE_MS + 1)));
    records.push(record(1, last, event("youngest", 1, last + FUTURE_MS)));
    let packed =
        vec![Some(event("p1", 2, last)), None, Some(event("p2", 3, last)), Some(event("p1", 2, last))];
    records.push(Record { partition: 0, append_ms: last, events: packed });
    records.push(Record { partition: 1, append_ms: last, events: vec![None] });
    records
}

fn kinds(report: &Report) -> Vec<DifferenceKind> {
    let mut kinds: Vec<_> = report.differences.iter().map(|difference| difference.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_correct_engine_is_equal() {
    let report = audit(&mixed(), &engine_in_order(&mixed()));
    assert_eq!(report.differences, []);
    assert_eq!(report.outcome(), Outcome::Equal);
    assert_eq!(report.outcome().exit_code(), 0);
    let exactly = |value| Range { lo: value, hi: value };
    assert_eq!(report.recounted.received, exactly(61));
    assert_eq!(report.recounted.counted, exactly(44));
    assert_eq!(report.recounted.duplicate, exactly(13));
    assert_eq!(
        (report.recounted.late, report.recounted.future, report.recounted.invalid),
        (exactly(1), exactly(1), exactly(2))
    );
    assert!(report.tables.iter().all(|table| table.compared == table.equal && table.compared > 0));
    assert!(report.left_out.is_empty());
    let text = report.to_string();
    assert!(
        text.trim_end()
            .ends_with("Equal: 61 events received and 44 counted, as recounted from the raw topics."),
        "{text}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["outcome"], &json["recounted"]["counted"]["lo"]), (&"equal".into(), &44.into()));
}

#[test]
fn limits_hold_at_both_ends() {
    for (age_ms, counted, late, future) in
        [(ACCEPT_MS, 1, 0, 0), (ACCEPT_MS + 1, 0, 1, 0), (-FUTURE_MS, 1, 0, 0), (-FUTURE_MS - 1, 0, 0, 1)]
    {
        let records = [record(0, 10_000_000, event("e", 1, 10_000_000 - age_ms))];
        let report = audit(&records, &engine_in_order(&records));
        let found = (report.recounted.counted.lo, report.recounted.late.lo, report.recounted.future.lo);
        assert_eq!((found, report.outcome()), ((counted, late, future), Outcome::Equal), "age {age_ms}");
    }
}

type Bend = fn(&mut Published);

fn check_found(cases: &[(&str, Bend, DifferenceKind)]) {
    for (name, bend, kind) in cases {
        let mut published = engine_in_order(&mixed());
        bend(&mut published);
        let report = audit(&mixed(), &published);
        assert_eq!(report.outcome(), Outcome::Differences, "{name}");
        assert!(kinds(&report).contains(kind), "{name}: {:?}", report.differences);
        assert!(report.to_string().contains("Differences: "), "{name}");
    }
}

#[test]
fn every_bent_row_is_found() {
    use DifferenceKind::*;
    check_found(&[
        ("window sum", |p| p.windows.values_mut().next().unwrap().0 += 1, CountDiffers),
        ("window events", |p| p.windows.values_mut().next().unwrap().1 += 1, CountDiffers),
        ("window row lost", |p| drop(p.windows.pop_first()), RowMissing),
        ("window row invented", |p| invent(p, ("c9", "eu"), 0), RowUnexpected),
        ("other dimension", |p| invent(p, ("c0", "us"), 9_960_000), RowUnexpected),
        ("total sum", |p| p.totals.values_mut().next().unwrap().0 -= 1, CountDiffers),
        ("total lost", |p| drop(p.totals.pop_first()), RowMissing),
    ]);
    assert_eq!(Outcome::Differences.exit_code(), 3);
}

#[test]
fn every_bent_tally_is_found_though_its_row_closes() {
    fn late_for_future(tally: &mut Tally) {
        (tally.late, tally.future) = (tally.late - 1, tally.future + 1);
    }
    fn invented(tally: &mut Tally) {
        (tally.received, tally.invalid) = (tally.received + 1, tally.invalid + 1);
    }
    fn copies_counted(tally: &mut Tally) {
        (tally.duplicate, tally.counted) = (tally.duplicate - 9, tally.counted + 9);
    }
    fn copy_in_conflict(tally: &mut Tally) {
        (tally.duplicate, tally.conflict) = (tally.duplicate - 1, tally.conflict + 1);
    }
    fn copy_lost(tally: &mut Tally) {
        (tally.duplicate, tally.received) = (tally.duplicate - 1, tally.received - 1);
    }
    let kind = DifferenceKind::LedgerDiffers;
    check_found(&[
        ("late for future", |p| with(p, late_for_future), kind),
        ("received and invalid", |p| with(p, invented), kind),
        ("duplicate for counted", |p| with(p, copies_counted), kind),
        ("duplicate for conflict", |p| with(p, copy_in_conflict), kind),
        ("duplicate lost", |p| with(p, copy_lost), kind),
    ]);
    let open = DifferenceKind::BooksOpen;
    check_found(&[("received", |p| with(p, |tally| tally.received += 1), open)]);
}

fn invent(published: &mut Published, (counter, region): (&str, &str), start_ms: i64) {
    published.windows.insert(((counter.into(), region.into()), start_ms), (1, 1));
}

fn with(published: &mut Published, bend: fn(&mut Tally)) {
    bend(published.tallies.get_mut(&0).unwrap());
}

#[test]
fn one_swapped_verdict_across_partitions_is_found_in_the_sum() {
    // Each partition stays in its range; only the sum over both is determined.
    let copies =
        [record(0, 10_000_000, event("e", 1, 10_000_000)), record(1, 10_000_001, event("e", 1, 10_000_000))];
    let mut published = engine_in_order(&copies);
    let second = published.tallies.get_mut(&1).unwrap();
    (second.duplicate, second.counted) = (0, 1);
    let report = audit(&copies, &published);
    assert_eq!(kinds(&report), [DifferenceKind::LedgerDiffers]);
    assert!(
        report.differences.iter().all(|difference| difference.place.starts_with("all sources")),
        "{report}"
    );
}

#[test]
fn an_event_counted_twice_or_never_is_found_though_all_books_close() {
    let twice = {
        let mut published = engine_in_order(&mixed());
        published.count(0, &event("eldest", 1, 10_000_000));
        published.tallies.get_mut(&0).unwrap().duplicate -= 1;
        published
    };
    assert_eq!(audit(&mixed(), &twice).outcome(), Outcome::Differences);
    let never = {
        let mut published = engine_in_order(&mixed());
        published.uncount(&event("eldest", 1, 10_000_000));
        let tally = published.tallies.get_mut(&0).unwrap();
        (tally.counted, tally.duplicate) = (tally.counted - 1, tally.duplicate + 1);
        published
    };
    let report = audit(&mixed(), &never);
    assert!(kinds(&report).contains(&DifferenceKind::LedgerDiffers), "{report}");
    assert!(report.differences.len() >= 3, "{report}");
}

#[test]
fn what_has_not_caught_up_is_not_settled() {
    let bends: [(&str, Bend, &str); 3] = [
        ("intake behind", |p| p.tallies.get_mut(&0).unwrap().through -= 1, "intake has read"),
        ("end moved", |p| p.tallies.get_mut(&1).unwrap().through += 1, "intake has read"),
        ("no row", |p| p.tallies.retain(|partition, _| *partition != 1), "no intake row"),
    ];
    for (name, bend, reason) in bends {
        let mut published = engine_in_order(&mixed());
        bend(&mut published);
        let report = audit(&mixed(), &published);
        assert_eq!(report.outcome(), Outcome::NotSettled, "{name}");
        assert_eq!((report.outcome().exit_code(), report.not_settled.len()), (1, 1), "{name}: {report}");
        assert!(
            report.to_string().contains("Not settled: ") && report.not_settled[0].contains(reason),
            "{name}: {report}"
        );
    }
    let published = engine_in_order(&mixed());
    let mut recount = Recount::new(config()).unwrap();
    feed_raw(&mut recount, &mixed(), 0);
    feed_published(&mut recount, &published);
    recount.retry_waiting(1);
    assert_eq!(recount.finish().outcome(), Outcome::NotSettled);
}

#[test]
fn count_behind_intake_is_not_settled() {
    let records = mixed();
    let published = engine_in_order(&records);
    let mut recount = Recount::new(config()).unwrap();
    feed_raw(&mut recount, &records, 0);
    for (partition, tally) in &published.tallies {
        recount.ledger_row(ledger_json("intake", *partition, tally).as_bytes());
        let mut behind = *tally;
        behind.counted -= 1;
        recount.ledger_row(ledger_json("count", *partition, &behind).as_bytes());
    }
    let report = recount.finish();
    assert_eq!((report.outcome(), report.not_settled.len()), (Outcome::NotSettled, 2), "{report}");
}

#[test]
fn books_that_do_not_close_are_found() {
    let records = mixed();
    let published = engine_in_order(&records);
    for (stage, field) in [("intake", "late"), ("count", "duplicate")] {
        let mut recount = Recount::new(config()).unwrap();
        feed_raw(&mut recount, &records, 0);
        feed_published(&mut recount, &published);
        let mut row: serde_json::Value =
            serde_json::from_str(&ledger_json(stage, 0, &published.tallies[&0])).unwrap();
        row[field] = (row[field].as_i64().unwrap() + 1).into();
        recount.ledger_row(row.to_string().as_bytes());
        let report = recount.finish();
        let row = format!("ledger row {stage} ");
        let is_row = |found: &tallyflow_audit::Difference| {
            found.kind == DifferenceKind::BooksOpen && found.place.starts_with(&row)
        };
        assert!(report.differences.iter().any(is_row), "{stage} {field}: {report}");
    }
}
