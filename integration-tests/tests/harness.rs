//! The harness itself: what it writes it reads, what it starts it ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use tallyflow_integration_tests::{
    Header, Outgoing, PATIENCE, Tallyflow, TimestampKind, http_get, kafka, unique, wait_until,
};
use tempfile::TempDir;

#[test]
fn records_come_back_byte_for_byte() {
    let (kafka, topic) = (kafka(), unique("bytes"));
    kafka.create_topic(&topic, 2, &[]);
    let records = [
        Outgoing::value(b"\xff\x00binary")
            .key("k")
            .partition(1)
            .timestamp(1_700_000_000_123)
            .header(Header::new(b"\xfe\xff name", b"\x00\x01"))
            .header(Header::new("twice", "1"))
            .header(Header::null("twice"))
            .header(Header::new("empty", "")),
        Outgoing::default().key("tombstone").partition(1),
        Outgoing::value("").key("").partition(0),
    ];
    let places = kafka.produce(&topic, &records);
    assert_eq!(places, [(1, 0), (1, 1), (0, 0)]);

    let read = kafka.read(&topic);
    let found: Vec<_> = read.iter().map(|r| (r.partition, r.offset)).collect();
    assert_eq!(found, [(0, 0), (1, 0), (1, 1)]);
    assert_eq!(read[0].key.as_deref(), Some(&b""[..]));
    assert_eq!(read[0].value.as_deref(), Some(&b""[..]));
    assert_eq!(read[1].value.as_deref(), Some(&b"\xff\x00binary"[..]));
    assert_eq!(read[1].headers, records[0].headers);
    assert_eq!(read[1].timestamp, 1_700_000_000_123);
    assert_eq!(read[1].timestamp_kind, TimestampKind::CreateTime);
    assert_eq!(read[2].value, None);
    assert_eq!(read[2].key.as_deref(), Some(&b"tombstone"[..]));
    assert_eq!(read[2].headers, []);
}

#[test]
fn an_input_has_append_times_and_topics_can_be_changed() {
    let (kafka, topic) = (kafka(), unique("input"));
    kafka.create_input(&topic, 1);
    let record = Outgoing::value("{\"a\": 1}").timestamp(1);
    kafka.produce(&topic, &vec![record; 5]);
    let read = kafka.read(&topic);
    assert!(read.iter().all(|r| r.timestamp_kind == TimestampKind::LogAppendTime && r.timestamp > 1));
    assert_eq!(read[4].json()["a"], 1);

    kafka.delete_records(&topic, 0, 3);
    assert_eq!((kafka.low_watermarks(&topic), kafka.high_watermarks(&topic)), (vec![3], vec![5]));
    kafka.add_partitions(&topic, 3);
    assert_eq!(kafka.read(&topic).len(), 2);
    assert_eq!(kafka.committed("nobody", &topic), [None; 3]);
    assert_eq!(kafka.topics(&topic), [topic.as_str()]);
    kafka.delete_topic(&topic);
    assert_eq!(kafka.partitions(&topic), None);
    kafka.create_input(&topic, 1);
    assert_eq!(kafka.produce(&topic, &[Outgoing::value("a new topic")]), [(0, 0)]);
    assert_eq!(kafka.read(&topic).len(), 1);
}

#[test]
fn a_reader_of_committed_records_sees_whole_transactions_only() {
    let (kafka, topic) = (kafka(), unique("transactions"));
    kafka.create_topic(&topic, 1, &[]);
    let mut config = kafka.client_config();
    let producer: BaseProducer = config.set("transactional.id", &topic).create().unwrap();
    producer.init_transactions(PATIENCE).unwrap();
    let send = |value: &str| {
        let record: BaseRecord<'_, (), str> = BaseRecord::to(&topic).partition(0).payload(value);
        assert!(producer.send(record).is_ok());
        producer.flush(PATIENCE).unwrap();
    };
    producer.begin_transaction().unwrap();
    send("aborted");
    producer.abort_transaction(PATIENCE).unwrap();
    producer.begin_transaction().unwrap();
    send("committed");
    producer.commit_transaction(PATIENCE).unwrap();
    let texts = |records: Vec<tallyflow_integration_tests::Record>| -> Vec<String> {
        records.iter().map(|record| record.text().to_owned()).collect()
    };
    assert_eq!(texts(kafka.read(&topic)), ["committed"]);
    producer.begin_transaction().unwrap();
    send("open");
    assert_eq!(texts(kafka.read_stable(&topic)), ["committed"]);
    assert_eq!(texts(kafka.read_uncommitted(&topic)), ["aborted", "committed", "open"]);
    producer.commit_transaction(PATIENCE).unwrap();
    assert_eq!(texts(kafka.read(&topic)), ["committed", "open"]);
}

#[test]
fn exclusive_the_broker_can_be_killed_paused_and_restarted_and_keeps_what_it_acknowledged() {
    let (kafka, topic) = (kafka(), unique("broker"));
    kafka.create_topic(&topic, 1, &[]);
    kafka.produce(&topic, &[Outgoing::value("before")]);
    let down = kafka.kill();
    assert!(std::net::TcpStream::connect(kafka.brokers()).is_err());
    down.start();
    kafka.produce(&topic, &[Outgoing::value("between")]);
    drop(kafka.pause());
    kafka.restart();
    kafka.produce(&topic, &[Outgoing::value("after")]);
    assert_eq!(kafka.read(&topic).len(), 3);
}

/// A shell script in the place of the binary.
fn stub(dir: &TempDir, script: &str) -> PathBuf {
    let path = dir.path().join("stub");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_process_is_paused_resumed_and_ended() {
    let dir = TempDir::new().unwrap();
    let stub = stub(&dir, "trap 'echo drained; exit 7' TERM\necho \"$@\"\nwhile :; do sleep 0.05; done");
    let tallyflow = Tallyflow::with_binary(stub, "app = \"x\"\n");
    let folder = tallyflow.dir().to_owned();
    assert_eq!(fs::read_to_string(folder.join("topology.toml")).unwrap(), "app = \"x\"\n");

    let mut worker = tallyflow.run_with(3, &["--stage", "count"]);
    wait_until(PATIENCE, "it has started", || (!worker.stdout().is_empty()).then_some(()));
    assert_eq!(worker.stdout(), "run --slot 3 --stage count\n");
    let state = |pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next()
    };
    worker.pause();
    let pid = worker.pid();
    wait_until(PATIENCE, "it stands still", || (state(pid) == Some('T')).then_some(()));
    worker.terminate();
    assert_eq!(worker.exited(), None, "a paused process cannot drain");
    worker.resume();
    assert_eq!(worker.wait(PATIENCE).code(), Some(7));
    assert!(worker.stdout().ends_with("drained\n"));

    let mut killed = tallyflow.run(0);
    killed.kill();
    assert_eq!(killed.exited().unwrap().signal(), Some(libc::SIGKILL));

    let dropped = tallyflow.run(1);
    let pid = dropped.pid();
    drop(dropped);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "it was not waited for");
    drop(tallyflow);
    assert!(!folder.exists());
}

#[test]
fn a_command_is_given_its_input_and_gives_its_output() {
    let dir = TempDir::new().unwrap();
    let stub = stub(&dir, "cat\necho talk >&2\nexit \"$1\"");
    let tallyflow = Tallyflow::with_binary(stub, "");
    let finished = tallyflow.call_with(&["3"], b"in");
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), "in"));
    assert_eq!(finished.stderr, "talk\n");
    assert_eq!(tallyflow.call(&["0"]).success(), "");
}

#[test]
fn a_worker_is_asked_over_http_where_it_says_it_is() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 1024]);
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let (status, body) = match request.split(' ').nth(1) {
                Some("/status") => ("200 OK", "{\"settled\": true}"),
                Some("/metrics") => ("200 OK", "tallyflow_x{a=\"1\"} 2\n"),
                _ => ("503 Service Unavailable", "{\"reason\": \"restoring\"}"),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    let dir = TempDir::new().unwrap();
    let script = format!("mkdir -p state/slot-0; echo {address} > state/slot-0/http; exec sleep 300");
    let tallyflow = Tallyflow::with_binary(stub(&dir, &script), "");
    let mut worker = tallyflow.run(0);
    worker.wait_settled(PATIENCE);
    assert_eq!(worker.address(), Some(address));
    assert!(!worker.is_ready());
    assert_eq!(worker.get("/ready").unwrap().json()["reason"], "restoring");
    assert_eq!(worker.metric("tallyflow_x", &[("a", "1")]), Some(2.0));
    worker.kill();
    drop(worker);
    tallyflow.lose_state();
    assert!(!tallyflow.state_dir().exists());
    assert_eq!(http_get("127.0.0.1:1", "/"), None);
}

#[test]
#[should_panic(expected = "before it is ready")]
fn a_worker_that_ends_early_fails_the_wait_at_once() {
    let dir = TempDir::new().unwrap();
    let tallyflow = Tallyflow::with_binary(stub(&dir, "exit 78"), "");
    tallyflow.run(0).wait_ready();
}

#[test]
#[should_panic(expected = "in vain until pigs fly")]
fn waiting_has_an_end() {
    wait_until(Duration::from_millis(120), "pigs fly", || None::<()>);
}
