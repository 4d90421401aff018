//! Where a claim ends: retention, kept rows, finals, revisions, re-created topics.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use support::*;
use tallyflow_audit::{
    AuditConfig, DifferenceKind, Header, LeftOutReason, Outcome, RawRecord, Recount, WindowSpec,
};

const NOW: i64 = 10_020_000;

fn minutes(count: i64) -> Vec<Record> {
    (0..count)
        .map(|n| record(0, NOW + n * MINUTE_MS, event(&format!("e{n}"), 1, NOW + n * MINUTE_MS)))
        .collect()
}

#[test]
fn windows_before_the_first_retained_offset_are_left_out_and_listed() {
    let records = minutes(5);
    let published = engine_in_order(&records);
    let run = |published: &Published| {
        let mut recount =
            Recount::new(AuditConfig { windows: vec![WindowSpec::new("minute", MINUTE_MS)], ..config() })
                .unwrap();
        recount.starts("events", TOPIC_ID, 0, 2);
        feed_raw(&mut recount, &records[2..], 2);
        feed_published(&mut recount, published);
        recount.finish()
    };
    let report = run(&published);
    // Hour rows are published as well and unknown here.
    assert!(
        report.differences.iter().all(|difference| difference.kind == DifferenceKind::RowMalformed),
        "{report}"
    );
    let listed: Vec<_> =
        report.left_out.iter().map(|left| (left.table.as_str(), left.window_start, left.rows)).collect();
    // Lost events may lie up to `future` after the first retained append, so that window is open too.
    let first = NOW / MINUTE_MS * MINUTE_MS;
    let right = [
        ("minute", Some(first), 1),
        ("minute", Some(first + MINUTE_MS), 1),
        ("minute", Some(first + 2 * MINUTE_MS), 1),
        ("totals", None, 1),
    ];
    assert_eq!(listed, right);
    assert!(report.left_out.iter().all(|left| left.reason == LeftOutReason::RawNotRetained));
    assert_eq!((report.tables[0].compared, report.tables[0].equal, report.tables[0].left_out), (2, 2, 3));
    assert!(!report.sources[0].compared);

    let mut bent = published.clone();
    bent.windows.values_mut().next_back().unwrap().0 += 1;
    assert!(run(&bent).differences.iter().any(|difference| difference.kind == DifferenceKind::CountDiffers));
    let mut unseen = published;
    unseen.windows.values_mut().next().unwrap().0 += 1;
    assert!(
        run(&unseen).differences.iter().all(|difference| difference.kind == DifferenceKind::RowMalformed)
    );
}

#[test]
fn a_lost_event_may_lie_ahead_of_its_append_time() {
    let start = NOW / MINUTE_MS * MINUTE_MS;
    // The newest event lost before an append at this time has the start of the window as its event time.
    for (first_append_ms, left_out) in [(start - FUTURE_MS, 1), (start - FUTURE_MS - 1, 0)] {
        let records = [
            record(0, first_append_ms, event("e", 1, start - FUTURE_MS)),
            record(0, NOW, event("f", 1, NOW)),
        ];
        let mut recount = Recount::new(config()).unwrap();
        recount.starts("events", TOPIC_ID, 0, 1);
        feed_raw(&mut recount, &records, 1);
        feed_published(&mut recount, &engine_in_order(&records));
        let report = recount.finish();
        let of_it =
            report.left_out.iter().filter(|left| left.table == "minute" && left.window_start == Some(start));
        assert_eq!(of_it.count(), left_out, "{report}");
    }
}

#[test]
fn the_ledger_may_exceed_what_is_retained_but_not_fall_below_it() {
    let records = minutes(4);
    for (first_retained, received, fine) in [(2, 4, true), (2, 1, false)] {
        let mut published = engine_in_order(&records);
        let tally = published.tallies.get_mut(&0).unwrap();
        (tally.received, tally.counted) = (received, received);
        let mut recount = Recount::new(config()).unwrap();
        recount.starts("events", TOPIC_ID, 0, 2);
        feed_raw(&mut recount, &records[first_retained..], 2);
        feed_published(&mut recount, &published);
        let report = recount.finish();
        assert_eq!(report.outcome() == Outcome::Equal, fine, "{report}");
    }
}

#[test]
fn an_unsaid_start_is_the_first_record_and_a_said_one_overrules_it() {
    for (said, outcome_leaves_out) in [(None, true), (Some(0), false)] {
        let records = minutes(1);
        let mut published = engine_in_order(&records);
        published.tallies.get_mut(&0).unwrap().through = 4;
        let mut recount = Recount::new(config()).unwrap();
        if let Some(start) = said {
            recount.starts("events", TOPIC_ID, 0, start);
        }
        feed_raw(&mut recount, &records, 2);
        // A control record follows.
        recount.ends("events", TOPIC_ID, 0, 4);
        feed_published(&mut recount, &published);
        let report = recount.finish();
        assert_eq!(
            (report.outcome(), !report.left_out.is_empty()),
            (Outcome::Equal, outcome_leaves_out),
            "{report}"
        );
    }
}

#[test]
fn the_highest_revision_holds_in_any_order() {
    let records = minutes(1);
    let published = engine_in_order(&records);
    let (place, sum) = published.windows.first_key_value().unwrap();
    let right = window_json("minute", MINUTE_MS, (&place.0, place.1), *sum, 9);
    let stale = window_json("minute", MINUTE_MS, (&place.0, place.1), (7, 7), 8);
    let rival = window_json("minute", MINUTE_MS, (&place.0, place.1), (7, 7), 9);
    for (rows, outcome) in [
        ([&stale, &right], Outcome::Equal),
        ([&right, &stale], Outcome::Equal),
        ([&right, &right], Outcome::Equal),
        ([&rival, &right], Outcome::Differences),
    ] {
        let mut recount = Recount::new(config()).unwrap();
        feed_raw(&mut recount, &records, 0);
        feed_published(&mut recount, &published);
        rows.iter().for_each(|row| recount.window_row(row.as_bytes()));
        assert_eq!(recount.finish().outcome(), outcome, "{rows:?}");
    }
}

#[test]
fn a_ledger_row_with_more_progress_holds() {
    let records = minutes(3);
    let published = engine_in_order(&records);
    let mut recount = Recount::new(config()).unwrap();
    feed_raw(&mut recount, &records, 0);
    feed_published(&mut recount, &published);
    let older = engine_in_order(&records[..1]);
    recount.ledger_row(ledger_json("intake", 0, &older.tallies[&0]).as_bytes());
    recount.ledger_row(ledger_json("count", 0, &older.tallies[&0]).as_bytes());
    recount.ledger_row(br#"{"stage":"intake","task":"events-0","attempts":1}"#);
    assert_eq!(recount.finish().outcome(), Outcome::Equal);
}

#[test]
fn a_missing_row_is_lawful_only_when_expired_or_not_final() {
    let records = minutes(1);
    let mut published = engine_in_order(&records);
    published.windows.clear();
    let minute = WindowSpec::new("minute", MINUTE_MS);
    let finals = WindowSpec { finals_only: true, ..minute.clone() };
    let keep = |keep_ms, now_ms| (Some(keep_ms), Some(now_ms));
    let cases = [
        (minute.clone(), (None, None), None),
        (minute.clone(), keep(100, NOW + 99), None),
        (minute, keep(100, NOW + 100), Some(LeftOutReason::Expired)),
        (finals, (None, None), Some(LeftOutReason::NotFinal)),
    ];
    for (window, (keep_ms, now_ms), reason) in cases {
        let mut recount =
            Recount::new(AuditConfig { windows: vec![window], keep_ms, now_ms, ..config() }).unwrap();
        feed_raw(&mut recount, &records, 0);
        feed_published(&mut recount, &published);
        let report = recount.finish();
        assert_eq!(report.left_out.first().map(|left| left.reason), reason, "{report}");
        assert_eq!(report.outcome() == Outcome::Equal, reason.is_some(), "{report}");
    }
}

#[test]
fn a_final_row_is_due_once_the_watermark_passed() {
    let records = minutes(1);
    let mut published = engine_in_order(&records);
    published.windows.clear();
    let window = WindowSpec { finals_only: true, grace_ms: 10, ..WindowSpec::new("minute", MINUTE_MS) };
    for (through_ms, fine) in [(NOW + MINUTE_MS + 9, true), (NOW + MINUTE_MS + 10, false)] {
        let mut recount = Recount::new(AuditConfig { windows: vec![window.clone()], ..config() }).unwrap();
        feed_raw(&mut recount, &records, 0);
        feed_published(&mut recount, &published);
        let mut row: serde_json::Value =
            serde_json::from_str(&ledger_json("intake", 0, &published.tallies[&0])).unwrap();
        row["complete_through"] = through_ms.into();
        recount.ledger_row(row.to_string().as_bytes());
        assert_eq!(recount.finish().outcome() == Outcome::Equal, fine, "{through_ms}");
    }
}

#[test]
fn a_re_created_topic_leaves_out_what_the_old_one_may_have_held() {
    let records = minutes(3);
    let published = engine_in_order(&records);
    let mut recount = Recount::new(config()).unwrap();
    feed_raw(&mut recount, &records, 0);
    feed_published(&mut recount, &published);
    let mut old: serde_json::Value =
        serde_json::from_str(&ledger_json("intake", 0, &published.tallies[&0])).unwrap();
    old["source_topic_id"] = "old-id".into();
    recount.ledger_row(old.to_string().as_bytes());
    let report = recount.finish();
    assert_eq!(report.outcome(), Outcome::Equal);
    assert_eq!((report.tables[0].compared, report.tables[0].left_out), (2, 1), "{report}");
    assert_eq!(report.notes.len(), 1);
}

#[test]
fn an_offset_is_read_once_and_the_id_header_counts() {
    let value = format!(r#"{{"counter":"c","event_time":{NOW}}}"#);
    let headers = [Header { name: "id", value: Some(b"first") }, Header { name: "id", value: Some(b"h") }];
    let at = |offset| RawRecord {
        topic: "events",
        topic_id: TOPIC_ID,
        partition: 0,
        offset,
        append_time_ms: NOW,
        key: None,
        value: Some(value.as_bytes()),
        headers: &headers,
    };
    let mut recount = Recount::new(config()).unwrap();
    for offset in [0, 0, 1, 0] {
        recount.raw(&at(offset));
    }
    let report = recount.finish();
    let tallies = report.recounted;
    assert_eq!((tallies.received.lo, tallies.counted.lo, tallies.duplicate.lo), (2, 1, 1));
}

#[test]
fn a_record_time_ahead_of_the_clock_is_future() {
    for (record_time, future) in [(true, 1), (false, 0)] {
        let record_time_topics = if record_time { vec!["events".to_owned()] } else { Vec::new() };
        let mut recount =
            Recount::new(AuditConfig { record_time_topics, now_ms: Some(NOW - FUTURE_MS - 1), ..config() })
                .unwrap();
        feed_raw(&mut recount, &minutes(1), 0);
        assert_eq!(recount.finish().recounted.future.lo, future);
    }
}

#[test]
fn sums_beyond_i64_are_exact() {
    let records = [record(0, NOW, event("a", i64::MAX, NOW)), record(0, NOW, event("b", i64::MAX, NOW))];
    let published = engine_in_order(&records);
    assert_eq!(audit(&records, &published).outcome(), Outcome::Equal);
    let mut bent = published;
    bent.windows.values_mut().for_each(|sum| sum.0 += 1);
    assert_eq!(audit(&records, &bent).outcome(), Outcome::Differences);
}
