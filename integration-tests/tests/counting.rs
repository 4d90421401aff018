//! Promise 1 and 2 on Apache Kafka: an id counts once, the books close, whatever is killed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use tallyflow_integration_tests::pipeline::{Pipeline, event, event_at, now_ms};
use tallyflow_integration_tests::{Outgoing, PATIENCE, kafka, wait_until};

fn send(pipeline: &Pipeline, partition: i32, value: &[u8]) {
    kafka().produce(&pipeline.input, &[Outgoing::value(value).partition(partition)]);
}

#[test]
fn every_event_is_accounted_for() {
    let pipeline = Pipeline::new("plain", 4);
    let _worker = pipeline.start(0);
    pipeline.feed(1, 20_000);
    let report = pipeline.audited();
    assert_eq!(report["outcome"], "equal", "{report}");
    // The generator makes every verdict; none of them may be missing from the books.
    for column in ["counted", "duplicate", "conflict"] {
        assert!(pipeline.tally("count", column) > 0, "{column}");
    }
    for column in ["late", "future", "invalid"] {
        assert!(pipeline.tally("intake", column) > 0, "{column}");
    }
    assert_eq!(pipeline.tally("intake", "admitted"), pipeline.tally("count", "admitted"));
}

#[test]
fn two_processes_count_exactly_while_one_is_killed_again_and_again() {
    let pipeline = Pipeline::new("kills", 4);
    let _steady = pipeline.start(0);
    let mut victim = Some(pipeline.start(1));
    // Slow enough that the kills fall between many small transactions.
    let mut kills = 0;
    pipeline.feed_with(2, 30_000, |written| {
        if written % 5_000 == 0 {
            drop(victim.take());
            kills += 1;
            victim = Some(pipeline.tallyflow.run(1));
        }
        std::thread::sleep(Duration::from_millis(60));
    });
    assert!(kills >= 4, "{kills} kills");
    let report = pipeline.audited();
    assert_eq!(report["outcome"], "equal", "{report}");
}

#[test]
fn a_copy_on_another_partition_counts_once() {
    // T1, T8 and T10, over real partitions.
    let pipeline = Pipeline::new("copies", 4);
    let _worker = pipeline.start(0);
    let now = now_ms();
    let first = event_at("e1", "A", 1, now);
    send(&pipeline, 0, &first);
    send(&pipeline, 3, &first);
    send(&pipeline, 1, &event_at("e1", "B", 1, now));
    pipeline.audited();
    send(&pipeline, 2, &event_at("e1", "A", 5, now));
    pipeline.audited();
    assert_eq!((pipeline.total("A"), pipeline.total("B")), (1, 1));
    assert_eq!((pipeline.tally("count", "duplicate"), pipeline.tally("count", "conflict")), (1, 1));
    let letters = kafka().read(&pipeline.topic("dlq"));
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].header("tallyflow-error-category"), Some("id_conflict"));
    assert_eq!(
        (letters[0].value.as_deref(), letters[0].header("tallyflow-payload-omitted")),
        (None, Some("true"))
    );
    assert_eq!(
        (letters[0].header("tallyflow-orig-partition"), letters[0].header("tallyflow-orig-offset")),
        (Some("2"), Some("0"))
    );
}

#[test]
fn copies_are_known_across_a_restart_and_across_a_takeover_without_the_disk() {
    let pipeline = Pipeline::new("takeover", 2);
    let events: Vec<Vec<u8>> = (0..200).map(|n| event(&format!("e{n}"), &format!("c{}", n % 7), 1)).collect();
    let all = |partition: i32| -> Vec<Outgoing> {
        events.iter().map(|e| Outgoing::value(e).partition(partition)).collect()
    };
    let mut worker = pipeline.start(0);
    kafka().produce(&pipeline.input, &all(0));
    pipeline.audited();
    // Restarted with its disk.
    worker.stop();
    let mut worker = pipeline.start(0);
    kafka().produce(&pipeline.input, &all(1));
    pipeline.audited();
    assert_eq!((pipeline.tally("count", "counted"), pipeline.tally("count", "duplicate")), (200, 200));
    // Killed, its disk gone, another slot takes over.
    worker.kill();
    pipeline.tallyflow.lose_state();
    let _other = pipeline.start(1);
    kafka().produce(&pipeline.input, &all(0));
    pipeline.audited();
    assert_eq!((pipeline.tally("count", "counted"), pipeline.tally("count", "duplicate")), (200, 400));
}

#[test]
fn a_rewound_group_changes_nothing_and_says_what_it_skipped() {
    // T3b, for both groups.
    let pipeline = Pipeline::new("rewind", 2);
    let mut worker = pipeline.start(0);
    pipeline.feed(3, 2_000);
    pipeline.audited();
    let counted = pipeline.tally("count", "counted");
    let duplicates = pipeline.tally("count", "duplicate");
    worker.stop();
    kafka().rewind(&pipeline.topic("intake"), &pipeline.input);
    kafka().rewind(&pipeline.topic("count"), &pipeline.topic("entries"));
    let _worker = pipeline.start(0);
    let settled = event("after", "after", 1);
    send(&pipeline, 0, &settled);
    pipeline.audited();
    assert_eq!(pipeline.tally("count", "counted"), counted + 1);
    assert_eq!(pipeline.tally("count", "duplicate"), duplicates);
    assert!(pipeline.tally("intake", "skipped") > 1_000, "{}", pipeline.tally("intake", "skipped"));
}

#[test]
fn an_aborted_transaction_of_a_producer_is_not_counted() {
    // K25: what upstream aborted never happened, and the position passes its markers.
    let pipeline = Pipeline::new("upstream", 1);
    let _worker = pipeline.start(0);
    kafka().produce_in_transaction(&pipeline.input, &[Outgoing::value(event("a", "A", 1))], false);
    kafka().produce_in_transaction(&pipeline.input, &[Outgoing::value(event("b", "A", 2))], true);
    kafka().produce_in_transaction(&pipeline.input, &[Outgoing::value(event("c", "A", 4))], false);
    pipeline.audited();
    assert_eq!(pipeline.total("A"), 2);
    // The committed position passes the last markers, so lag reaches 0.
    let end = kafka().high_watermarks(&pipeline.input);
    wait_until(PATIENCE, "the group reaches the end of the log", || {
        let committed = kafka().committed(&pipeline.topic("intake"), &pipeline.input);
        (committed.iter().map(|c| c.unwrap_or(0)).collect::<Vec<_>>() == end).then_some(())
    });
}

#[test]
fn windows_close_and_late_events_correct_them() {
    // T28 and R10: update, final, then a correction of the same key with a higher revision.
    let pipeline = Pipeline::new("windows", 1);
    let _worker = pipeline.start(0);
    let minute = (now_ms() / 60_000 - 2) * 60_000;
    send(&pipeline, 0, &event_at("w1", "A", 10, minute + 1_000));
    let rows = |state: &str| -> Vec<serde_json::Value> {
        let all = kafka().read(&pipeline.topic("windows"));
        let rows = all.iter().map(|r| r.json());
        rows.filter(|r| r["window"] == "minute" && r["state"] == state && r["counter"] == "A").collect()
    };
    let last = wait_until(PATIENCE, "the minute is final", || rows("final").pop());
    assert_eq!((last["sum"].as_i64(), last["window_start"].as_i64()), (Some(10), Some(minute)));
    assert!(last["complete_through"].as_i64().unwrap() >= minute + 60_000);
    send(&pipeline, 0, &event_at("w2", "A", 1, minute + 2_000));
    let corrected = wait_until(PATIENCE, "the correction", || rows("correction").pop());
    assert_eq!((corrected["sum"].as_i64(), corrected["window_start"].as_i64()), (Some(11), Some(minute)));
    assert!(corrected["revision"].as_i64() > last["revision"].as_i64());
    assert_eq!(rows("final").len(), 1, "a final is said once");
    pipeline.audited();
}

#[test]
fn several_workers_and_dimensions_count_exactly() {
    let pipeline = Pipeline::new("workers", 4);
    pipeline.rewrite(
        "[stage.count]\n",
        "workers = 2\n[stage.count]\nworkers = 2\ndimensions = [\"region\", \"tier\"]\n",
    );
    let _worker = pipeline.start(0);
    pipeline.feed(11, 4_000);
    let region = |id: &str, region: &str| {
        let now = now_ms();
        format!(
            r#"{{"event_id":"{id}","counter":"D","event_time":{now},"dimensions":{{"region":"{region}","other":"x"}}}}"#
        )
    };
    for (id, name) in [("d1", "eu"), ("d2", "eu"), ("d3", "us"), ("d4", "")] {
        send(&pipeline, 0, region(id, name).as_bytes());
    }
    pipeline.audited();
    let lines = pipeline.tallyflow.call(&["counts", "--json", "--counter", "D"]).success();
    let mut rows: Vec<(String, String, i64)> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|r| {
            let text = |name: &str| r[name].as_str().unwrap().to_owned();
            (text("region"), text("tier"), r["total"].as_i64().unwrap())
        })
        .collect();
    rows.sort();
    let right =
        [("", 1), ("eu", 2), ("us", 1)].map(|(region, total)| (region.to_owned(), String::new(), total));
    assert_eq!(rows, right);
}
