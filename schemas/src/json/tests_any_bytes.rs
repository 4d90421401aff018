//! Against the oracle: any document, any document with a byte changed, any bytes.

use std::sync::Arc;

use proptest::prelude::*;
use tallyflow_core::plan::RecordLimits;

use super::oracle::{decode, right};
use crate::rules::EventRules;

fn rules() -> EventRules {
    EventRules {
        dimensions: Arc::from(["region".to_owned(), "tier".to_owned()]),
        namespaces: Some(vec!["default".to_owned(), "shop".to_owned()]),
        limits: RecordLimits { record_bytes: 3_000, depth: 5, members: 12, packed_events: 4 },
    }
}

/// Keys as they are written between quotes, some with escapes, some no text.
fn key() -> impl Strategy<Value = String> {
    let known = ["event_id", "namespace", "counter", "delta", "event_time", "dimensions", "kind", "events"];
    prop_oneof![
        6 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        2 => prop::sample::select(["x", "y", "region", "tier", ""].as_slice()).prop_map(str::to_owned),
        1 => prop::sample::select([r"\u0065vent_id", r"\u0078", "é", r"\ud800"].as_slice()).prop_map(str::to_owned),
    ]
}

fn scalar() -> impl Strategy<Value = String> {
    let plain = [
        "null",
        "true",
        "false",
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
        r#""default""#,
        r#""2026-01-01T00:00:00.5Z""#,
        r#""2026-01-01""#,
        r#""1970-01-01T00:00:00.0001Z""#,
        r#""1""#,
        r#""\ud800""#,
        r#""\ud83d\ude00\n""#,
        r#""a\"b""#,
    ];
    prop_oneof![
        12 => prop::sample::select(plain.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select([255usize, 256, 257, 512, 513, 1024, 1025].as_slice())
            .prop_map(|length| format!("\"{}\"", "x".repeat(length))),
    ]
}

fn object_of(value: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    prop::collection::vec((key(), value), 0..4).prop_map(|members| {
        let members: Vec<String> =
            members.into_iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
        format!("{{{}}}", members.join(", "))
    })
}

fn value() -> BoxedStrategy<String> {
    let nested = scalar().prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            object_of(inner.clone()),
            prop::collection::vec(inner, 0..4).prop_map(|elements| format!("[{}]", elements.join(" ,"))),
        ]
    });
    nested.boxed()
}

/// An event: a good one with members left out, put in twice or added.
fn event() -> BoxedStrategy<String> {
    let good = [
        r#""event_id":"e1""#,
        r#""counter":"c""#,
        r#""event_time":1700000000000"#,
        r#""delta":2"#,
        r#""dimensions":{"region":"eu","other":"x"}"#,
        r#""namespace":"shop""#,
    ];
    let kept = prop::collection::vec(prop::bool::weighted(0.93), good.len());
    let added = prop::collection::vec((key(), value()), 0..3);
    (kept, added, any::<prop::sample::Index>())
        .prop_map(move |(kept, added, at)| {
            let mut members: Vec<String> = good
                .iter()
                .zip(kept)
                .filter(|(_, kept)| *kept)
                .map(|(member, _)| (*member).to_owned())
                .collect();
            for (key, value) in added {
                let place = at.index(members.len() + 1);
                members.insert(place, format!("\"{key}\":{value}"));
            }
            format!("{{{}}}", members.join(","))
        })
        .boxed()
}

fn document() -> impl Strategy<Value = String> {
    let packed = (prop::collection::vec(prop_oneof![5 => event(), 1 => value()], 0..6), event()).prop_map(
        |(events, envelope)| {
            let rest = envelope.strip_prefix('{').unwrap();
            let comma = if rest == "}" { "" } else { "," };
            format!("{{\"events\": [{}]{comma}{rest}", events.join(","))
        },
    );
    prop_oneof![4 => event(), 2 => packed, 1 => value()]
}

fn check(bytes: &[u8], id: Option<&[u8]>) {
    let rules = rules();
    let told: super::oracle::Right = decode(&rules, Some(bytes), id)
        .into_iter()
        .map(|told| (told.index, told.event.map_err(|failure| failure.category)))
        .collect();
    assert_eq!(told, right(&rules, bytes, id), "{:?}", String::from_utf8_lossy(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn documents_are_read_as_the_oracle_reads_them(text in document(), id in prop::option::of("h?é?")) {
        check(text.as_bytes(), id.as_deref().map(str::as_bytes));
    }

    #[test]
    fn damaged_documents_too(
        text in document(), at in any::<prop::sample::Index>(), byte in any::<u8>(), mode in 0..4,
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match mode {
            0 => bytes[at] = byte,
            1 => bytes[at] = *b"{}[],:\"\\ntu0-."[usize::from(byte) % 14..].first().unwrap(),
            2 => drop(bytes.remove(at)),
            _ => bytes.truncate(at),
        }
        check(&bytes, Some(b"h"));
    }

    #[test]
    fn any_bytes_too(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        check(&bytes, None);
    }

    #[test]
    fn any_punctuation_too(text in "[{}\\[\\],:\"\\\\ntrue0-9.eE+ -]{0,40}") {
        check(text.as_bytes(), None);
    }
}
