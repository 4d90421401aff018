//! `tallyflow send`: a record a line, keyed by its counter, acknowledged.
use tallyflow_integration_tests::{Record, kafka};

use super::{App, topology};

fn sent(app: &App) -> Vec<Record> {
    kafka().read(&app.topic("events"))
}

#[test]
fn send_keys_records_by_their_counter() {
    let app = App::with_topics("send");
    let file = app.tallyflow.dir().join("events.jsonl");
    let lines = [
        r#"{"event_id":"1","counter":"clicks","event_time":1}"#,
        r#"{"event_id":"2","counter":"clicks","event_time":1}"#,
        "",
        r#"{"events":[{"event_id":"3","counter":"views"},{"event_id":"4","counter":"clicks"}]}"#,
        "not json",
        r#"{"event_id":"5"}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let finished = app.call(&["send", "--input", "events", "events.jsonl"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("warning: line 5 is not JSON"), "{}", finished.stderr);
    assert!(finished.stderr.contains("5 records sent to "), "{}", finished.stderr);

    let sent = sent(&app);
    let mut values: Vec<&str> = sent.iter().map(Record::text).collect();
    values.sort_unstable();
    let mut right: Vec<&str> = lines.iter().copied().filter(|line| !line.is_empty()).collect();
    right.sort_unstable();
    assert_eq!(values, right);
    let key_of = |part: &str| {
        let record = sent.iter().find(|record| record.text().contains(part)).expect("it was sent");
        record.key.as_deref().map(|key| String::from_utf8_lossy(key).into_owned())
    };
    for (part, key) in
        [(r#""1""#, Some("clicks")), (r#""3""#, Some("views")), ("not json", None), (r#""5""#, None)]
    {
        assert_eq!(key_of(part).as_deref(), key, "{part}");
    }
    let clicks: Vec<i32> = sent
        .iter()
        .filter(|record| record.key.as_deref() == Some(b"clicks"))
        .map(|record| record.partition)
        .collect();
    assert!(clicks.len() == 2 && clicks[0] == clicks[1], "{clicks:?}");
}

#[test]
fn send_reads_standard_input() {
    let app = App::with_topics("stdin");
    let line = br#"{"event_id":"1","counter":"clicks","event_time":1}"#;
    for arguments in [&["send"] as &[&str], &["send", "-"]] {
        let finished = app.tallyflow.call_with(arguments, &[line.as_slice(), b"\r\n"].concat());
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert!(finished.stderr.starts_with("1 record sent to "), "{}", finished.stderr);
    }
    let sent = sent(&app);
    assert!(sent.len() == 2 && sent.iter().all(|record| record.value.as_deref() == Some(line)));
}

#[test]
fn send_fails_where_one_record_does() {
    let app = App::with_topics("refused");
    // More than the broker's limit of 1 MiB however well it is compressed.
    let noise: String = (0..500_000_u32)
        .map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761) ^ n.rotate_left(13)))
        .collect();
    let lines = format!("{{\"counter\":\"a\"}}\n{{\"counter\":\"{noise}\"}}\n{{\"counter\":\"b\"}}\n");
    let finished = app.tallyflow.call_with(&["send"], lines.as_bytes());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for part in ["failed: line 2: ", "2 records sent to ", "; 1 failed"] {
        assert!(finished.stderr.contains(part), "{part} in\n{}", finished.stderr);
    }
    assert_eq!(sent(&app).len(), 2);
}

#[test]
fn send_needs_its_topic_and_one_input() {
    let app = App::new("none");
    let finished = app.tallyflow.call_with(&["send"], b"{}\n");
    assert_eq!(finished.code, Some(1));
    let missing = format!("the topic {} does not exist", app.topic("events"));
    assert!(finished.stderr.contains(&missing), "{}", finished.stderr);
    for arguments in [&["send", "--input", "clicks"] as &[&str], &["send", "no-such-file"]] {
        let finished = app.call(arguments);
        assert_eq!(finished.code, Some(if arguments.len() == 3 { 2 } else { 1 }));
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
    app.tallyflow.write_topology(&topology(&app.name, "[input.more]\n"));
    let finished = app.call(&["send"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("--input: events, more"), "{}", finished.stderr);
}
