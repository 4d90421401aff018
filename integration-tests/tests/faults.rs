//! Frozen owners, restarted brokers, bad records, and ends that must be clean.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::time::Duration;

use tallyflow_integration_tests::pipeline::{Pipeline, event, event_at, now_ms};
use tallyflow_integration_tests::{Header, Outgoing, PATIENCE, kafka, wait_until};

fn running_tasks(worker: &tallyflow_integration_tests::Worker, stage: &str) -> usize {
    let Some(status) = worker.status() else {
        return 0;
    };
    let stages = status["stages"].as_array().cloned().unwrap_or_default();
    let stage = stages.iter().find(|s| s["stage"] == stage).cloned().unwrap_or_default();
    let tasks = stage["tasks"].as_array().cloned().unwrap_or_default();
    tasks.iter().filter(|task| task["state"] == "running").count()
}

#[test]
fn a_frozen_worker_publishes_nothing_after_its_partitions_moved() {
    // T31, T32, T36: SIGSTOP beyond the session, takeover, thaw; once with timed updates left to publish.
    let pipeline = Pipeline::new("frozen", 2);
    let frozen = pipeline.start(0);
    pipeline.feed(4, 2_000);
    // An update that waits for its emit interval is all the frozen one has left to say.
    kafka().produce(
        &pipeline.input,
        &[Outgoing::value(event("t1", "timed", 1)), Outgoing::value(event("t2", "timed", 1))],
    );
    frozen.pause();
    let mut other = pipeline.start(1);
    other.wait_for(Duration::from_secs(60), "the other worker owns everything", |w| {
        running_tasks(w, "intake") == 2 && running_tasks(w, "count") == 4
    });
    pipeline.feed(5, 2_000);
    pipeline.audited();
    let before = kafka().read(&pipeline.topic("counts")).len();
    frozen.resume();
    wait_until(PATIENCE, "the thawed worker notices", || {
        let said = frozen.stderr();
        (said.contains("lost") || said.contains("revoked") || said.contains("dropping")).then_some(())
    });
    pipeline.feed(6, 2_000);
    let report = pipeline.audited();
    assert_eq!(report["outcome"], "equal", "{report}");
    assert!(kafka().read(&pipeline.topic("counts")).len() >= before);
}

#[test]
fn a_thawed_worker_with_only_timed_updates_left_is_refused() {
    // T31: no input of its own is left to it, only an update that waits for its time.
    let pipeline = Pipeline::new("timed", 1);
    pipeline.rewrite("emit = \"200ms\"", "emit = \"4s\"");
    let frozen = pipeline.start(0);
    let send = |id: &str| kafka().produce(&pipeline.input, &[Outgoing::value(event(id, "timed", 1))]);
    let totals = || -> Vec<(i64, i64)> {
        let rows = kafka().read(&pipeline.topic("counts"));
        rows.iter()
            .map(|r| (r.json()["revision"].as_i64().unwrap(), r.json()["total"].as_i64().unwrap()))
            .collect()
    };
    send("t1");
    wait_until(PATIENCE, "the first update, which is not held back", || (totals().len() == 1).then_some(()));
    send("t2");
    wait_until(PATIENCE, "the second event is counted, its update waits", || {
        (frozen.metric("tallyflow_records_total", &[("stage", "count"), ("verdict", "counted")]) == Some(2.0))
            .then_some(())
    });
    assert_eq!(totals().len(), 1, "the update must wait for the test to mean anything");
    frozen.pause();
    let mut other = pipeline.start(1);
    other.wait_for(Duration::from_secs(60), "the other worker owns everything", |w| {
        running_tasks(w, "intake") == 1 && running_tasks(w, "count") == 4
    });
    send("t3");
    wait_until(PATIENCE, "the new owner's value", || {
        (totals().last().map(|row| row.1) == Some(3)).then_some(())
    });
    let before = totals();
    frozen.resume();
    wait_until(PATIENCE, "the thawed worker notices", || {
        let said = frozen.stderr();
        (said.contains("lost") || said.contains("dropping")).then_some(())
    });
    pipeline.audited();
    let after = totals();
    assert!(after.is_sorted_by(|a, b| a.0 < b.0), "a revision went back: {after:?}");
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.last().map(|row| row.1), Some(3));
}

#[test]
fn exclusive_a_restarted_broker_loses_and_doubles_nothing() {
    let pipeline = Pipeline::new("restart", 2);
    let _worker = pipeline.start(0);
    pipeline.feed_with(7, 6_000, |written| {
        if written == 3_000 {
            kafka().restart();
        }
    });
    pipeline.feed_with(8, 6_000, |written| {
        if written == 3_000 {
            kafka().kill().start();
        }
    });
    let report = pipeline.audited();
    assert_eq!(report["outcome"], "equal", "{report}");
}

#[test]
fn bad_records_stop_nothing_and_keep_their_bytes() {
    // T42, C6, A4, A8, K10, K11.
    let pipeline = Pipeline::large_records("bad");
    let worker = pipeline.start(0);
    let noise: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut many = String::from("{");
    many.extend((0..50_000).map(|n| format!("\"k{n}\":1,")));
    many.push_str("\"z\":1}");
    let bad: Vec<Outgoing> = vec![
        Outgoing::default().key("null value"),
        Outgoing::value(noise.clone())
            .header(Header::new(b"\xff\xfe", "x"))
            .header(Header::null("n"))
            .header(Header::new("tallyflow-retry-count", "3")),
        Outgoing::value("{").header(Header::new("a", "1")).header(Header::new("a", "2")),
        Outgoing::value(deep),
        Outgoing::value(many),
        Outgoing::value("x".repeat(10_000_000)),
        Outgoing::value(r#"{"event_id":"x","counter":"A","delta":1.0,"event_time":1}"#),
    ];
    let mut records = vec![Outgoing::value(event("g1", "A", 1))];
    records.extend(bad.iter().cloned());
    records.push(Outgoing::value(event("g2", "A", 1)));
    let records: Vec<Outgoing> = records.into_iter().map(|r| r.partition(0)).collect();
    kafka().produce(&pipeline.input, &records);
    pipeline.audited();
    assert_eq!(pipeline.total("A"), 2);
    let letters = kafka().read(&pipeline.topic("dlq"));
    let categories: Vec<_> = letters.iter().map(|l| l.header("tallyflow-error-category").unwrap()).collect();
    let right =
        ["undecodable", "undecodable", "undecodable", "too_large", "too_large", "too_large", "invalid_field"];
    assert_eq!(categories, right);
    assert_eq!(letters.len(), bad.len());
    for (letter, original) in letters.iter().zip(&bad) {
        assert_eq!((&letter.value, &letter.key), (&original.value, &original.key));
        assert_eq!(letter.header("tallyflow-stage"), Some("intake"));
    }
    assert_eq!(letters[1].header("tallyflow-retry-count"), None, "a stranger's header is stripped");
    let names: Vec<&[u8]> = letters[1].headers.iter().take(2).map(|h| h.name.as_slice()).collect();
    assert_eq!(names, [b"\xff\xfe".as_slice(), b"n"]);
    assert!(worker.is_ready());
}

#[test]
fn late_and_future_events_go_to_their_topic_with_their_reason() {
    let pipeline = Pipeline::new("late", 1);
    let _worker = pipeline.start(0);
    let day = 24 * 60 * 60 * 1000;
    let late = event_at("l", "A", 1, now_ms() - day - 60_000);
    let future = event_at("f", "A", 1, now_ms() + 60 * 60_000);
    let seconds = event_at("s", "A", 1, now_ms() / 1000);
    kafka().produce(
        &pipeline.input,
        &[late.clone(), future.clone(), seconds].map(|v| Outgoing::value(v).partition(0)),
    );
    pipeline.audited();
    let records = kafka().read(&pipeline.topic("late"));
    let said: Vec<_> = records
        .iter()
        .map(|r| (r.header("tallyflow-verdict").unwrap(), r.header("tallyflow-reason").unwrap()))
        .collect();
    assert_eq!(said, [("late", "age"), ("future", "age"), ("late", "age")]);
    assert_eq!(
        (records[0].value.as_deref(), records[1].value.as_deref()),
        (Some(late.as_slice()), Some(future.as_slice()))
    );
    assert_eq!(records[0].header("tallyflow-orig-offset"), Some("0"));
}

#[test]
fn sigterm_drains() {
    let pipeline = Pipeline::new("drain", 2);
    let mut worker = pipeline.start(0);
    pipeline.feed(9, 3_000);
    worker.terminate();
    let status = worker.wait(Duration::from_secs(15));
    assert_eq!(status.code(), Some(0), "{}", worker.stderr());
    assert!(!pipeline.tallyflow.state_dir().join("slot-0").join("http").exists());
    let _again = pipeline.start(0);
    pipeline.audited();
}

#[test]
fn a_lost_range_is_refused_by_name_and_booked_on_request() {
    let pipeline = Pipeline::new("lost", 1);
    let mut worker = pipeline.start(0);
    kafka().produce(&pipeline.input, &[Outgoing::value(event("a", "A", 1))]);
    pipeline.audited();
    worker.stop();
    kafka().produce(
        &pipeline.input,
        &[Outgoing::value(event("b", "A", 1)), Outgoing::value(event("c", "A", 1))],
    );
    kafka().delete_records(&pipeline.input, 0, 2);
    let mut refused = pipeline.tallyflow.run(0);
    let status = refused.wait(Duration::from_secs(60));
    assert_eq!(status.code(), Some(1));
    assert!(refused.stderr().contains("offsets 1 to 1"), "{}", refused.stderr());
    let mut accepted = pipeline.tallyflow.run_with(0, &["--accept-loss"]);
    accepted.wait_ready();
    wait_until(PATIENCE, "the rest is counted", || (pipeline.total("A") == 2).then_some(()));
    assert_eq!(pipeline.tally("intake", "skipped"), 1);
}

#[test]
fn state_that_is_in_use_or_foreign_is_named() {
    let pipeline = Pipeline::new("slots", 1);
    let _worker = pipeline.start(0);
    let mut second = pipeline.tallyflow.run(0);
    assert_eq!(second.wait(Duration::from_secs(30)).code(), Some(1));
    assert!(second.stderr().contains("slot 0"), "{}", second.stderr());
    let stranger = Pipeline::new("stranger", 1);
    std::fs::create_dir_all(stranger.tallyflow.state_dir().join("slot-0")).unwrap();
    std::fs::write(stranger.tallyflow.state_dir().join("slot-0").join("app"), "another-app\n").unwrap();
    let mut foreign = stranger.tallyflow.run(0);
    assert_eq!(foreign.wait(Duration::from_secs(30)).code(), Some(1));
    assert!(foreign.stderr().contains("another-app"), "{}", foreign.stderr());
}

#[test]
fn foreign_bytes_in_an_internal_topic_halt_with_their_place() {
    let pipeline = Pipeline::new("foreign", 1);
    let mut worker = pipeline.start(0);
    kafka().produce(&pipeline.topic("entries"), &[Outgoing::value("not a frame").partition(2)]);
    assert_eq!(worker.wait(Duration::from_secs(60)).code(), Some(1));
    let said = worker.stderr();
    assert!(said.contains(&format!("{}-2 offset", pipeline.topic("entries"))), "{said}");
}
