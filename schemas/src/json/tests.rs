//! Tables of cases for each rule of an event. Every valid case has an invalid neighbour.

use std::sync::Arc;

use tallyflow_core::codec::EventDecoder;
use tallyflow_core::ids::{Offset, Partition};
use tallyflow_core::plan::RecordLimits;
use tallyflow_core::record::{HeaderView, RecordTime, RecordView};
use tallyflow_core::verdict::Category::{
    self, InvalidField, MissingField, TooLarge, Undecodable, UnknownNamespace,
};

use super::JsonEvents;
use super::oracle::{Remembering, Told, decode};
use crate::rules::EventRules;

pub(super) fn rules() -> EventRules {
    EventRules {
        dimensions: Arc::from(["region".to_owned(), "tier".to_owned()]),
        namespaces: None,
        limits: RecordLimits::default(),
    }
}

pub(super) fn told(value: &str) -> Vec<Told> {
    decode(&rules(), Some(value.as_bytes()), None)
}

/// Index, category and message of each event; `None` is a valid one.
pub(super) fn verdicts(value: &str) -> Vec<(Option<u32>, Option<Category>)> {
    told(value)
        .into_iter()
        .map(|told| (told.index, told.event.err().map(|failure| failure.category)))
        .collect()
}

pub(super) fn message(value: &str) -> String {
    told(value).remove(0).event.unwrap_err().message
}

/// One event object with this member in place of the field's usual one.
pub(super) fn with(field: &str, member: &str) -> String {
    let usual = [
        ("event_id", r#""event_id":"e""#),
        ("counter", r#""counter":"c""#),
        ("event_time", r#""event_time":1000"#),
    ];
    let mut members: Vec<&str> =
        usual.iter().filter(|(name, _)| *name != field).map(|(_, text)| *text).collect();
    if !member.is_empty() {
        members.push(member);
    }
    format!("{{{}}}", members.join(","))
}

pub(super) const OK: Option<Category> = None;
pub(super) const INVALID: Option<Category> = Some(InvalidField);
pub(super) const MISSING: Option<Category> = Some(MissingField);
pub(super) const LARGE: Option<Category> = Some(TooLarge);

fn check(field: &str, cases: &[(&str, Option<Category>)]) {
    for (member, right) in cases {
        assert_eq!(verdicts(&with(field, member)), [(None, *right)], "{field}: {member}");
    }
}

fn sized(field: &str, bytes: usize) -> String {
    format!("\"{field}\":\"{}\"", "x".repeat(bytes))
}

#[test]
fn names() {
    check(
        "event_id",
        &[
            ("", MISSING),
            (r#""event_id":null"#, MISSING),
            (r#""event_id":"""#, INVALID),
            (r#""event_id":7"#, INVALID),
            (r#""event_id":["e"]"#, INVALID),
            (r#""event_id":{"e":1}"#, INVALID),
            (r#""event_id":true"#, INVALID),
            (r#""event_id":"\ud800""#, INVALID),
            (r#""event_id":" ""#, OK),
            (&sized("event_id", 256), OK),
            (&sized("event_id", 257), INVALID),
        ],
    );
    check("counter", &[("", MISSING), (&sized("counter", 512), OK), (&sized("counter", 513), INVALID)]);
    check(
        "namespace",
        &[
            ("", OK),
            (r#""namespace":null"#, OK),
            (r#""namespace":"""#, INVALID),
            (&sized("namespace", 256), OK),
            (&sized("namespace", 257), INVALID),
        ],
    );
}

#[test]
fn declared_namespaces() {
    let declared = EventRules { namespaces: Some(vec!["shop".to_owned()]), ..rules() };
    for (member, right) in [
        (r#""namespace":"shop""#, None),
        (r#""namespace":"Shop""#, Some(UnknownNamespace)),
        ("", Some(UnknownNamespace)),
        (r#""namespace":"""#, INVALID),
    ] {
        let told = decode(&declared, Some(with("namespace", member).as_bytes()), None);
        assert_eq!(told[0].event.as_ref().err().map(|failure| failure.category), right, "{member}");
    }
}

#[test]
fn deltas() {
    check(
        "delta",
        &[
            ("", OK),
            (r#""delta":null"#, OK),
            (r#""delta":0"#, OK),
            (r#""delta":-0"#, OK),
            (r#""delta":9223372036854775807"#, OK),
            (r#""delta":-9223372036854775808"#, OK),
            (r#""delta":9223372036854775808"#, INVALID),
            (r#""delta":-9223372036854775809"#, INVALID),
            (r#""delta":1.0"#, INVALID),
            (r#""delta":1e0"#, INVALID),
            (r#""delta":"1""#, INVALID),
            (r#""delta":true"#, INVALID),
            (r#""delta":[1]"#, INVALID),
        ],
    );
}

#[test]
fn event_times() {
    check(
        "event_time",
        &[
            ("", MISSING),
            (r#""event_time":null"#, MISSING),
            (r#""event_time":1"#, OK),
            (r#""event_time":0"#, INVALID),
            (r#""event_time":-1"#, INVALID),
            (r#""event_time":1.5"#, INVALID),
            (r#""event_time":"1000""#, INVALID),
            (r#""event_time":"2026-01-01T00:00:00+02:00""#, OK),
            (r#""event_time":"2026-01-01T00:00:00\u005a""#, OK),
            (r#""event_time":"2026-01-01T00:00:00""#, INVALID),
            (r#""event_time":"1970-01-01T00:00:00.001Z""#, OK),
            (r#""event_time":"1970-01-01T00:00:00.0009Z""#, INVALID),
            (r#""event_time":"1969-12-31T23:59:59Z""#, INVALID),
            (r#""event_time":{}"#, INVALID),
        ],
    );
}

#[test]
fn dimensions() {
    let value = |bytes: usize| format!(r#""dimensions":{{"region":"{}"}}"#, "x".repeat(bytes));
    check(
        "dimensions",
        &[
            ("", OK),
            (r#""dimensions":null"#, OK),
            (r#""dimensions":{}"#, OK),
            (r#""dimensions":{"region":"eu","tier":null}"#, OK),
            (r#""dimensions":{"other":"x"}"#, OK),
            (r#""dimensions":{"region":1}"#, INVALID),
            (r#""dimensions":{"other":1}"#, INVALID),
            (r#""dimensions":{"region":["eu"]}"#, INVALID),
            (r#""dimensions":["eu"]"#, INVALID),
            (r#""dimensions":"eu""#, INVALID),
            (r#""dimensions":{"region":"eu","region":"eu"}"#, INVALID),
            (&value(1024), OK),
            (&value(1025), INVALID),
        ],
    );
}

#[test]
fn kinds() {
    check(
        "kind",
        &[
            ("", OK),
            (r#""kind":null"#, OK),
            (r#""kind":"add""#, OK),
            (r#""kind":"clear""#, INVALID),
            (r#""kind":"ADD""#, INVALID),
            (r#""kind":1"#, INVALID),
        ],
    );
}

#[test]
fn unknown_fields_are_ignored_but_for_their_keys() {
    check(
        "",
        &[
            (r#""x":{"y":[1e999,{"z":null}]}"#, OK),
            (r#""x":"\ud800""#, OK),
            (r#""x":1,"x":1"#, INVALID),
            (r#""x":{"y":1,"y":1}"#, INVALID),
            (r#""\u0065vent_id":"e""#, INVALID),
        ],
    );
}

#[test]
fn what_is_told_of_a_good_event() {
    let value = concat!(
        r#" {"event_id":"\u00e9\n","counter":"c","event_time":"1970-01-01T00:00:01.0019Z","#,
        r#""dimensions":{"tier":"t\"","x":"y"}} "#
    );
    let right = ("é\n", "default", "c", 1, 1001, vec!["", "t\""]);
    let (id, namespace, counter, delta, time, dimensions) = told(value).remove(0).event.unwrap();
    let dimensions: Vec<&str> = dimensions.iter().map(String::as_str).collect();
    assert_eq!((&*id, &*namespace, &*counter, delta, time, dimensions), right);
}

#[test]
fn t42_what_is_no_document_is_one_undecodable_record() {
    let noise: Vec<u8> = (0..1024 * 1024u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let values: [Option<&[u8]>; 16] = [
        None,
        Some(b""),
        Some(b" "),
        Some(b"null"),
        Some(b"[]"),
        Some(b"7"),
        Some(b"\"x\""),
        Some(b"{"),
        Some(b"{} {}"),
        Some(b"{}x"),
        Some(b"{\"x\":\"\xff\"}"),
        Some(b"\xef\xbb\xbf{}"),
        Some(b"{\"event_id\":\"e\",\"counter\":\"c\",\"event_time\":1"),
        Some(b"{\"events\":[{\"event_id\":\"e\",\"counter\":\"c\",\"event_time\":1}]"),
        Some(b"{\"events\":[{\"event_id\":\"e\",\"counter\":\"c\",\"event_time\":1},{]}"),
        Some(&noise),
    ];
    for value in values {
        let told = decode(&rules(), value, Some(b"id"));
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].index, told[0].event.as_ref().unwrap_err().category),
            (None, Undecodable),
            "{told:?}"
        );
    }
}

#[test]
fn the_id_header_serves_where_the_payload_has_none() {
    let without = with("event_id", "");
    let id_of = |value: &str, header: &[u8]| {
        let told = decode(&rules(), Some(value.as_bytes()), Some(header)).remove(0);
        told.event.map(|event| event.0).map_err(|failure| failure.message)
    };
    assert_eq!(id_of(&without, b"h"), Ok("h".to_owned()));
    assert_eq!(id_of(&with("", ""), b"h"), Ok("e".to_owned()));
    assert_eq!(id_of(&with("event_id", r#""event_id":null"#), b"h"), Ok("h".to_owned()));
    assert_eq!(
        id_of(&with("event_id", r#""event_id":"""#), b"h").unwrap_err(),
        "event_id: 0 bytes, 1 to 256 are allowed"
    );
    assert_eq!(id_of(&without, b"").unwrap_err(), "header id: 0 bytes, 1 to 256 are allowed");
    assert_eq!(id_of(&without, b"\xff").unwrap_err(), "header id: not UTF-8");
    assert!(id_of(&without, &[b'x'; 257]).is_err());
}

#[test]
fn of_several_id_headers_the_last_holds() {
    let value = with("event_id", "");
    let header = |name: &'static [u8], value| HeaderView { name, value };
    let cases: [(&[HeaderView<'_>], Option<&str>); 4] = [
        (&[header(b"id", Some(b"a")), header(b"id", Some(b"b")), header(b"x", Some(b"c"))], Some("b")),
        (&[header(b"id", Some(b"a")), header(b"id", None)], None),
        (&[header(b"ID", Some(b"a"))], None),
        (&[], None),
    ];
    for (headers, right) in cases {
        let mut sink = Remembering::default();
        let record = record(value.as_bytes(), headers);
        JsonEvents::with_rules(rules()).decode(&[record], &mut sink);
        assert_eq!(sink.told[0].event.as_ref().ok().map(|event| &*event.0), right);
    }
}

pub(super) fn record<'a>(value: &'a [u8], headers: &'a [HeaderView<'a>]) -> RecordView<'a> {
    let (partition, offset) = (Partition(0), Offset(0));
    RecordView { partition, offset, time: RecordTime::Unknown, key: None, value: Some(value), headers }
}
