//! The HTTP server as a client sees it: real requests over loopback.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tallyflow_core::ids::NextOffset;
use tallyflow_core::tallies::Tallies;
use tallyflow_runtime::status::{Observer, StageName, TaskState, TaskStatus, WorkerStatus};
use tallyflow_telemetry::http::DEFAULT_LISTEN;
use tallyflow_telemetry::{Board, HttpServer, TelemetryError};

struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn ask(address: SocketAddr, method: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { code, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn status(joined: bool) -> WorkerStatus {
    let task = TaskStatus {
        task: "events-0".to_owned(),
        state: TaskState::Running,
        position: Some(NextOffset(7)),
        end: Some(NextOffset(7)),
        complete_through: None,
        restore: None,
        settled: true,
        append_clock: None,
        tallies: Tallies::default(),
        residual: 0,
        seen_hot: 0,
        seen_cold: 0,
        seen_horizon_ms: None,
        memory_bytes: 0,
    };
    WorkerStatus {
        stage: StageName::Intake,
        worker: 0,
        disconnected: None,
        halted: None,
        joined,
        tasks: vec![task],
        committed: 1,
        aborted: 0,
        fenced: 0,
        last_commit_ms: 12,
        rebalances: 1,
        output_records: BTreeMap::new(),
        dead_letters: BTreeMap::new(),
        verdicts: Tallies { received: 7, admitted: 7, ..Tallies::default() },
    }
}

fn server() -> (Board, HttpServer) {
    let board = Board::new("shop", 0, "1.2.3").unwrap();
    let server = HttpServer::start(DEFAULT_LISTEN, board.clone()).unwrap();
    assert!(server.address().ip().is_loopback());
    assert_ne!(server.address().port(), 0);
    (board, server)
}

#[test]
fn a_worker_from_start_to_end() {
    let (board, server) = server();
    let ready = || {
        let answer = ask(server.address(), "GET", "/ready");
        (answer.code, answer.json())
    };
    let not = |reason: &str| (503, json!({"ready": false, "reason": reason}));
    assert_eq!(ready(), not("starting: no worker yet"));
    let mut observer = board.observer(StageName::Intake, 0);
    assert_eq!(ready(), not("intake worker 0 is starting"));
    observer.publish(&status(false));
    assert_eq!(ready(), not("intake worker 0 has not joined its group yet"));
    observer.publish(&status(true));
    assert_eq!(ready(), (200, json!({"ready": true})));
    assert_eq!(ask(server.address(), "GET", "/live").code, 200);

    let answer = ask(server.address(), "GET", "/status");
    let document = answer.json();
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    assert_eq!(document["app"], "shop");
    assert_eq!(document["settled"], true);
    assert_eq!(document["stages"][0]["stage"], "intake");
    let task = &document["stages"][0]["tasks"][0];
    assert_eq!((&task["task"], &task["position"]), (&json!("events-0"), &json!(7)));
    assert_eq!((&task["lag_records"], &task["complete_through"]), (&json!(0), &json!(null)));

    let page = ask(server.address(), "GET", "/metrics");
    assert!(page.head.contains("content-type: text/plain; version=0.0.4"), "{}", page.head);
    for line in [
        "tallyflow_records_total{stage=\"intake\",verdict=\"admitted\"} 7",
        "tallyflow_consumer_lag_records{stage=\"intake\",topic=\"events\",partition=\"0\"} 0",
        "tallyflow_commit_duration_seconds_bucket{le=\"0.02\"} 1",
        "tallyflow_build_info{version=\"1.2.3\"} 1",
    ] {
        assert!(page.body.lines().any(|l| l == line), "no {line} in\n{}", page.body);
    }

    drop(observer);
    assert_eq!(ready(), not("intake worker 0 has ended"));
}

#[test]
fn only_get_and_head_and_known_paths() {
    let (_board, server) = server();
    for (method, path, code) in [
        ("GET", "/", 404),
        ("GET", "/metrics/", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/status", 405),
        ("OPTIONS", "/ready", 405),
        ("HEAD", "/metrics", 200),
        ("HEAD", "/ready", 503),
        ("HEAD", "/live", 200),
    ] {
        let answer = ask(server.address(), method, path);
        assert_eq!(answer.code, code, "{method} {path}");
        assert!(method != "HEAD" || answer.body.is_empty(), "{method} {path}");
    }
}

#[test]
fn an_address_that_is_taken_is_said() {
    let (board, server) = server();
    let error = HttpServer::start(server.address(), board).unwrap_err();
    assert!(matches!(error, TelemetryError::Listen { address, .. } if address == server.address()));
    assert!(error.to_string().starts_with(&format!("cannot listen on {}: ", server.address())));
}

#[test]
fn a_silent_connection_does_not_hold_the_stop() {
    let (_board, server) = server();
    let address = server.address();
    let mut silent = TcpStream::connect(address).unwrap();
    silent.write_all(b"GET /live HT").unwrap();
    assert_eq!(ask(address, "GET", "/live").code, 200);
    let begin = Instant::now();
    server.stop();
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(TcpStream::connect(address).is_err());
}
