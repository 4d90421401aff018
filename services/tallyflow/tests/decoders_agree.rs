//! The pipeline's decoder and the audit's, which share no code, say the same of every document: how many events it
//! holds, and how many of them are invalid. Where they did not, the audit would blame the pipeline, or miss a fault.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use tallyflow_audit::{AuditConfig, Header, Limits, RawRecord, Recount};
use tallyflow_core::codec::{EventDecoder, EventSink};
use tallyflow_core::event::Event;
use tallyflow_core::ids::{Offset, Partition};
use tallyflow_core::plan::RecordLimits;
use tallyflow_core::record::{HeaderView, RecordTime, RecordView};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Failure;
use tallyflow_schemas::JsonEvents;
use tallyflow_schemas::rules::EventRules;

const APPEND_MS: i64 = 1_800_000_000_000;

#[derive(Default)]
struct Told {
    events: u64,
    invalid: u64,
}

impl EventSink for Told {
    fn event(&mut self, _: usize, _: Option<u32>, _: &Event<'_>, _: &[&str]) {
        self.events += 1;
    }
    fn invalid(&mut self, _: usize, _: Option<u32>, _: Option<&str>, _: Failure) {
        self.events += 1;
        self.invalid += 1;
    }
    fn record_done(&mut self, _: usize) {}
}

/// (events, invalid ones) by the pipeline.
fn pipeline(value: Option<&[u8]>, id: Option<&[u8]>) -> (u64, u64) {
    let mut decoder = JsonEvents::with_rules(EventRules {
        dimensions: Arc::from(["region".to_owned()]),
        namespaces: Some(vec!["default".to_owned(), "shop".to_owned()]),
        limits: RecordLimits { record_bytes: 4_000, depth: 6, members: 12, packed_events: 4 },
    });
    let headers: Vec<HeaderView<'_>> =
        id.map(|value| HeaderView { name: b"id", value: Some(value) }).into_iter().collect();
    let record = RecordView {
        partition: Partition(0),
        offset: Offset(0),
        time: RecordTime::LogAppend(TimestampMs(APPEND_MS)),
        key: None,
        value,
        headers: &headers,
    };
    let mut told = Told::default();
    decoder.decode(&[record], &mut told);
    (told.events, told.invalid)
}

/// The same by the audit.
fn audit(value: Option<&[u8]>, id: Option<&[u8]>) -> (u64, u64) {
    let config = AuditConfig {
        accept_ms: i64::MAX / 4,
        future_ms: i64::MAX / 4,
        remember_ms: i64::MAX / 2,
        limits: Limits { record_bytes: 4_000, depth: 6, members: 12, packed_events: 4 },
        namespaces: Some(vec!["default".to_owned(), "shop".to_owned()]),
        dimensions: vec!["region".to_owned()],
        ..AuditConfig::default()
    };
    let mut recount = Recount::new(config).unwrap();
    let headers: Vec<Header<'_>> =
        id.map(|value| Header { name: "id", value: Some(value) }).into_iter().collect();
    recount.starts("events", "t", 0, 0);
    recount.raw(&RawRecord {
        topic: "events",
        topic_id: "t",
        partition: 0,
        offset: 0,
        append_time_ms: APPEND_MS,
        key: None,
        value,
        headers: &headers,
    });
    recount.ends("events", "t", 0, 1);
    let report = recount.finish();
    (report.recounted.received.lo, report.recounted.invalid.lo)
}

fn scalar() -> impl Strategy<Value = String> {
    let texts = [
        "null",
        "true",
        "0",
        "1",
        "-0",
        "-5",
        "1.0",
        "1e2",
        "9223372036854775807",
        "9223372036854775808",
        "1700000000000",
        r#""""#,
        r#""e1""#,
        r#""add""#,
        r#""\u0061dd""#,
        r#""clear""#,
        r#""shop""#,
        r#""nowhere""#,
        r#""2026-01-01T00:00:00.5Z""#,
        r#""2026-01-01t00:00:00z""#,
        r#""2026-01-01 00:00:00Z""#,
        r#""2026-01-01T00:00:00+0530""#,
        r#""2016-12-31T23:59:60Z""#,
        r#""2026-02-29T00:00:00Z""#,
        r#""9999-12-31T23:59:59-12:00""#,
        r#""0000-01-01T00:00:00Z""#,
        r#""2026-01-01T00:00:00.1234567899Z""#,
        r#""1970-01-01T00:00:00.0001Z""#,
        r#""2026-01-01T24:00:00Z""#,
        r#""2026-01-01T00:00:00+24:00""#,
        r#""1""#,
        r#""\ud800""#,
        r#""\ud83d\ude00\n""#,
        "[]",
        "{}",
        "01",
        "+1",
        "NaN",
        "'x'",
        "\"\u{7f}\"",
        "\"\t\"",
    ];
    prop_oneof![
        20 => prop::sample::select(texts.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select([256usize, 257, 512, 513, 1024, 1025].as_slice()).prop_map(|n| format!("\"{}\"", "x".repeat(n))),
    ]
}

fn key() -> impl Strategy<Value = String> {
    let keys = [
        "event_id",
        "namespace",
        "counter",
        "delta",
        "event_time",
        "dimensions",
        "kind",
        "events",
        "region",
        "x",
        "y",
        r"\u0065vent_id",
        "",
    ];
    prop::sample::select(keys.to_vec()).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(6, 24, 4, |inner| {
        let member = (key(), inner.clone()).prop_map(|(key, value)| format!("\"{key}\":{value}"));
        prop_oneof![
            prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
            prop::collection::vec(inner, 0..4).prop_map(|elements| format!("[{}]", elements.join(","))),
        ]
    })
}

fn event() -> impl Strategy<Value = String> {
    let good = [r#""event_id":"e""#, r#""counter":"c""#, r#""event_time":1700000000000"#];
    let more = prop::collection::vec((key(), value()).prop_map(|(k, v)| format!("\"{k}\":{v}")), 0..4);
    (prop::collection::vec(prop::bool::weighted(0.9), good.len()), more).prop_map(
        move |(kept, mut members)| {
            members.extend(
                good.iter().zip(kept).filter(|(_, kept)| *kept).map(|(member, _)| (*member).to_owned()),
            );
            format!("{{{}}}", members.join(","))
        },
    )
}

fn document() -> impl Strategy<Value = String> {
    let packed =
        (prop::collection::vec(prop_oneof![6 => event().boxed(), 1 => value().boxed()], 0..6), value())
            .prop_map(|(events, other)| format!("{{\"events\":[{}],\"more\":{other}}}", events.join(",")));
    prop_oneof![4 => event().boxed(), 3 => packed.boxed(), 1 => value().boxed()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn both_decoders_say_the_same(text in document(), id in proptest::option::of("[a-c]{0,2}")) {
        let id = id.as_ref().map(String::as_bytes);
        prop_assert_eq!(pipeline(Some(text.as_bytes()), id), audit(Some(text.as_bytes()), id), "{}", text);
    }

    #[test]
    fn also_of_damaged_documents(text in document(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        prop_assert_eq!(pipeline(Some(&bytes), None), audit(Some(&bytes), None), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn nothing_at_all_is_one_invalid_event() {
    for value in [None, Some(b"".as_slice()), Some(b"{\"events\":[]}"), Some(&[b' '; 4_001])] {
        assert_eq!(pipeline(value, None), (1, 1));
        assert_eq!(audit(value, None), (1, 1));
    }
}
