//! Tables of cases for each typing rule. Every valid case has an invalid neighbour, so no table can pass by accident.

use super::*;
use crate::config::AuditConfig;

fn rules() -> Rules {
    Rules::new(AuditConfig { dimensions: vec!["region".into(), "tier".into()], ..AuditConfig::default() })
        .unwrap()
}

/// The categories of each event of a record; none = well typed.
fn faults(value: &str) -> Vec<Option<Category>> {
    events_of(Some(value.as_bytes()), None, &rules()).into_iter().map(Result::err).collect()
}

/// One event object with this member list in place of the field's usual one.
fn with(field: &str, member: &str) -> String {
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

fn check(field: &str, cases: &[(&str, Option<Category>)]) {
    for (member, right) in cases {
        assert_eq!(faults(&with(field, member)), [*right], "{field}: {member}");
    }
}

const INVALID: Option<Category> = Some(Category::InvalidField);
const MISSING: Option<Category> = Some(Category::MissingField);

fn named(field: &str, bytes: usize) -> String {
    format!("\"{field}\":\"{}\"", "x".repeat(bytes))
}

#[test]
fn event_ids() {
    check(
        "event_id",
        &[
            ("", MISSING),
            (r#""event_id":null"#, MISSING),
            (r#""event_id":"""#, INVALID),
            (r#""event_id":7"#, INVALID),
            (r#""event_id":["e"]"#, INVALID),
            (r#""event_id":"\ud800""#, INVALID),
            (r#""event_id":" ""#, None),
            (&named("event_id", 256), None),
            (&named("event_id", 257), INVALID),
            (&format!(r#""event_id":"{}""#, "é".repeat(128)), None),
            (&format!(r#""event_id":"{}x""#, "é".repeat(128)), INVALID),
            (r#""event_id":"e","event_id":"e""#, INVALID),
            (r#""event_id":"e","event_id":null"#, INVALID),
        ],
    );
}

#[test]
fn counters() {
    check(
        "counter",
        &[
            ("", MISSING),
            (r#""counter":null"#, MISSING),
            (r#""counter":"""#, INVALID),
            (r#""counter":true"#, INVALID),
            (&named("counter", 512), None),
            (&named("counter", 513), INVALID),
        ],
    );
}

#[test]
fn namespaces() {
    check(
        "namespace",
        &[
            ("", None),
            (r#""namespace":null"#, None),
            (r#""namespace":"""#, INVALID),
            (r#""namespace":1"#, INVALID),
            (&named("namespace", 256), None),
            (&named("namespace", 257), INVALID),
        ],
    );
    let declared =
        Rules::new(AuditConfig { namespaces: Some(vec!["shop".into()]), ..AuditConfig::default() }).unwrap();
    for (member, right) in [
        (r#""namespace":"shop""#, None),
        (r#""namespace":"Shop""#, Some(Category::UnknownNamespace)),
        ("", Some(Category::UnknownNamespace)),
    ] {
        let value = with("namespace", member);
        let typed = events_of(Some(value.as_bytes()), None, &declared);
        assert_eq!(typed.into_iter().map(Result::err).collect::<Vec<_>>(), [right], "{member}");
    }
}

#[test]
fn deltas() {
    check(
        "delta",
        &[
            ("", None),
            (r#""delta":null"#, None),
            (r#""delta":0"#, None),
            (r#""delta":-0"#, None),
            (r#""delta":-5"#, None),
            (r#""delta":9223372036854775807"#, None),
            (r#""delta":-9223372036854775808"#, None),
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
            (r#""event_time":1"#, None),
            (r#""event_time":9223372036854775807"#, None),
            (r#""event_time":9223372036854775808"#, INVALID),
            (r#""event_time":0"#, INVALID),
            (r#""event_time":-1"#, INVALID),
            (r#""event_time":1.5"#, INVALID),
            (r#""event_time":"1000""#, INVALID),
            (r#""event_time":"2026-01-01T00:00:00Z""#, None),
            (r#""event_time":"2026-01-01T00:00:00+02:00""#, None),
            (r#""event_time":"2026-01-01T00:00:00""#, INVALID),
            (r#""event_time":"1970-01-01T00:00:00.001Z""#, None),
            (r#""event_time":"1970-01-01T00:00:00.0009Z""#, INVALID),
            (r#""event_time":"1969-12-31T23:59:59Z""#, INVALID),
        ],
    );
}

#[test]
fn dimension_objects() {
    check(
        "dimensions",
        &[
            ("", None),
            (r#""dimensions":null"#, None),
            (r#""dimensions":{}"#, None),
            (r#""dimensions":{"region":"eu","tier":null}"#, None),
            (r#""dimensions":{"other":"x"}"#, None),
            (r#""dimensions":{"region":1}"#, INVALID),
            (r#""dimensions":{"other":1}"#, INVALID),
            (r#""dimensions":{"region":["eu"]}"#, INVALID),
            (r#""dimensions":["eu"]"#, INVALID),
            (r#""dimensions":"eu""#, INVALID),
            (r#""dimensions":{"region":"eu","region":"eu"}"#, INVALID),
        ],
    );
}

#[test]
fn kinds() {
    check(
        "kind",
        &[
            ("", None),
            (r#""kind":null"#, None),
            (r#""kind":"add""#, None),
            (r#""kind":"clear""#, INVALID),
            (r#""kind":"ADD""#, INVALID),
            (r#""kind":1"#, INVALID),
        ],
    );
}

#[test]
fn unknown_fields_are_ignored_but_not_their_duplicate_keys() {
    check(
        "",
        &[
            (r#""x":{"y":[1e999,{"z":null}]}"#, None),
            (r#""x":"\ud800""#, None),
            (r#""x":1,"x":1"#, INVALID),
            (r#""x":{"y":1,"y":1}"#, INVALID),
        ],
    );
}

#[test]
fn defaults_and_kept_dimensions() {
    let value = br#"{"event_id":"e","counter":"c","event_time":"1970-01-01T00:00:01.0015Z","dimensions":{"tier":"t","x":"y"}}"#;
    let typed = events_of(Some(value), None, &rules());
    let event = typed[0].as_ref().unwrap();
    assert_eq!((event.namespace.as_ref(), event.delta, event.event_time_ms), ("default", 1, 1001));
    assert_eq!(event.dimensions, ["", "t"]);
}

#[test]
fn what_is_no_object_is_one_undecodable_event() {
    let undecodable = [Some(Category::Undecodable)];
    for value in ["", "null", "[]", "7", "\"x\"", "{", "{} {}", r#"{"event_id":"e""#] {
        assert_eq!(faults(value), undecodable, "{value}");
    }
    for value in [None, Some(b"\xff\xfe".as_slice()), Some(b"{\"x\":\"\xff\"}".as_slice())] {
        let typed = events_of(value, Some(b"id"), &rules());
        assert_eq!(typed.into_iter().map(Result::err).collect::<Vec<_>>(), undecodable, "{value:?}");
    }
}

#[test]
fn the_id_header_serves_where_the_payload_has_none() {
    let without = with("event_id", "");
    let long = [b'x'; 257];
    let cases: [(&[u8], Result<&str, Category>); 4] = [
        (b"h", Ok("h")),
        (b"", Err(Category::InvalidField)),
        (b"\xff", Err(Category::InvalidField)),
        (&long, Err(Category::InvalidField)),
    ];
    for (header, right) in cases {
        let typed = events_of(Some(without.as_bytes()), Some(header), &rules());
        let found = typed[0].as_ref().map(|event| event.event_id.as_ref()).map_err(|category| *category);
        assert_eq!(found, right, "{header:?}");
    }
    let own = with("", "");
    assert_eq!(events_of(Some(own.as_bytes()), Some(b"h"), &rules())[0].as_ref().unwrap().event_id, "e");
    let empty = with("event_id", r#""event_id":"""#);
    assert_eq!(
        events_of(Some(empty.as_bytes()), Some(b"h"), &rules())[0].as_ref().err(),
        Some(&Category::InvalidField)
    );
}

#[test]
fn each_packed_event_has_its_own_verdict() {
    let good = with("", "");
    let bad = with("event_id", "");
    let packed = |list: &str| faults(&format!(r#"{{"events":{list}}}"#));
    assert_eq!(packed(&format!("[{good},{bad},7,{good}]")), [None, MISSING, INVALID, None]);
    assert_eq!(packed(&format!(r#"[{good},{}]"#, with("", r#""x":1,"x":2"#))), [None, INVALID]);
    assert_eq!(packed("[]"), [INVALID], "a record without an event is not silent");
    assert_eq!(packed("{}"), [INVALID]);
    assert_eq!(faults(&format!(r#"{{"events":[{good},{good}],"a":1,"a":1}}"#)), [INVALID]);
    assert_eq!(faults(&format!(r#"{{"events":[{good}],"events":[{good}]}}"#)), [INVALID]);
    assert_eq!(faults(&with("", r#""events":null"#)), [None]);
    let inner = with("", r#""events":[1,2]"#);
    assert_eq!(packed(&format!("[{inner}]")), [None]);
}

#[test]
fn limits_hold_at_their_edges() {
    const LARGE: Option<Category> = Some(Category::TooLarge);
    let nested = |depth: usize| with("", &format!(r#""x":{}{}"#, "[".repeat(depth), "]".repeat(depth)));
    assert_eq!(faults(&nested(63)), [None]);
    assert_eq!(faults(&nested(64)), [LARGE]);
    assert_eq!(faults(&nested(5_000)), [LARGE]);
    let packed = format!(r#"{{"events":[{},{},{}]}}"#, nested(61), nested(62), nested(1));
    assert_eq!(faults(&packed), [None, LARGE, None]);

    let padded = |bytes: usize| {
        let shell = with("", r#""x":"""#);
        let fill = bytes - shell.len();
        with("", &format!(r#""x":"{}""#, "y".repeat(fill)))
    };
    assert_eq!(faults(&padded(1024 * 1024)), [None]);
    assert_eq!(faults(&padded(1024 * 1024 + 1)), [LARGE]);

    let wide = |members: usize| {
        let list: Vec<_> = (0..members).map(|index| format!(r#""k{index}":1"#)).collect();
        with("", &format!(r#""x":{{{}}}"#, list.join(",")))
    };
    // The event's own four members count too.
    assert_eq!(faults(&wide(9_996)), [None]);
    assert_eq!(faults(&wide(9_997)), [LARGE]);

    let many = |events: usize| faults(&format!(r#"{{"events":[{}]}}"#, vec!["0"; events].join(",")));
    assert_eq!(many(10_000).len(), 10_000);
    assert_eq!(many(10_001), [LARGE]);
}
