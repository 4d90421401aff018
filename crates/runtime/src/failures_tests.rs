//! The records of failures keep every byte of the original and say where it came from.

use super::*;
use tallyflow_core::ids::{Offset, Partition, Source};
use tallyflow_core::record::HeaderView;
use tallyflow_core::verdict::Category;

fn origin() -> Origin<'static> {
    Origin {
        topic: "events",
        coordinate: Coordinate {
            source: Source { topic_id: TopicId([9; 16]), partition: Partition(3) },
            offset: Offset(41),
            index: 2,
        },
        packed: false,
        time: RecordTime::LogAppend(TimestampMs(7_000)),
    }
}

fn text(out: &OutRecord, name: &str) -> Option<String> {
    let found: Vec<_> = out.headers.iter().filter(|h| h.name == name.as_bytes()).collect();
    assert!(found.len() < 2, "{name} stands {} times", found.len());
    found.first().map(|h| String::from_utf8(h.value.clone().unwrap()).unwrap())
}

fn view<'a>(headers: &'a [HeaderView<'a>], value: Option<&'a [u8]>) -> RecordView<'a> {
    RecordView {
        partition: Partition(3),
        offset: Offset(41),
        time: RecordTime::LogAppend(TimestampMs(7_000)),
        key: Some(b"\xff\x00key"),
        value,
        headers,
    }
}

#[test]
fn exact_bytes_and_foreign_headers_in_order() {
    // A8 and A4: five foreign headers, two of one name, one null, one name that is no text; ours are stripped.
    let header = |name: &'static [u8], value: Option<&'static [u8]>| HeaderView { name, value };
    let headers = [
        header(b"a", Some(b"1")),
        header(b"tallyflow-retry-count", Some(b"3")),
        header(b"a", Some(b"2")),
        header(b"n", None),
        header(b"\xff\xfe", Some(b"x")),
        header(b"traceparent", Some(b"00-1")),
    ];
    let failure = Failure::new(Category::Undecodable, "not json");
    let out = dead_letter(
        Some(&view(&headers, Some(b"\x00\x01noise"))),
        &origin(),
        None,
        "intake",
        &failure,
        TimestampMs(9_000),
    );
    assert_eq!(out.key.as_deref(), Some(b"\xff\x00key".as_slice()));
    assert_eq!(out.value.as_deref(), Some(b"\x00\x01noise".as_slice()));
    let foreign: Vec<_> =
        out.headers.iter().take(5).map(|h| (h.name.as_slice(), h.value.as_deref())).collect();
    let right: Vec<_> =
        headers.iter().filter(|h| h.name != b"tallyflow-retry-count").map(|h| (h.name, h.value)).collect();
    assert_eq!(foreign, right);
    assert_eq!(text(&out, names::RETRY_COUNT), None);
    for (name, value) in [
        (names::ORIG_TOPIC, "events"),
        (names::ORIG_TOPIC_ID, "09090909090909090909090909090909"),
        (names::ORIG_PARTITION, "3"),
        (names::ORIG_OFFSET, "41"),
        (names::ORIG_TIMESTAMP, "7000"),
        (names::ORIG_TIMESTAMP_TYPE, "LogAppendTime"),
        (names::ERROR_CLASS, "permanent"),
        (names::ERROR_CATEGORY, "undecodable"),
        (names::ERROR_MESSAGE, "not json"),
        (names::STAGE, "intake"),
    ] {
        assert_eq!(text(&out, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!((text(&out, names::ORIG_INDEX), out.timestamp), (None, Some(TimestampMs(9_000))));
}

#[test]
fn long_messages_are_cut_and_say_so() {
    // C1
    let failure = Failure::new(Category::InvalidField, "é".repeat(3_000_000));
    let out = dead_letter(Some(&view(&[], Some(b"x"))), &origin(), None, "intake", &failure, TimestampMs(1));
    assert_eq!(text(&out, names::ERROR_MESSAGE).unwrap().len(), 1024);
    assert_eq!(text(&out, names::ERROR_TRUNCATED).as_deref(), Some("true"));
}

#[test]
fn a_null_value_stays_null_and_a_stub_says_it_is_one() {
    let failure = Failure::new(Category::IdConflict, "seen with another payload");
    let null = dead_letter(Some(&view(&[], None)), &origin(), None, "intake", &failure, TimestampMs(1));
    assert_eq!((null.value.clone(), text(&null, names::PAYLOAD_OMITTED)), (None, None));
    let stub =
        dead_letter(None, &Origin { packed: true, ..origin() }, None, "count", &failure, TimestampMs(1));
    assert_eq!((stub.key.clone(), stub.value.clone()), (None, None));
    assert_eq!(text(&stub, names::PAYLOAD_OMITTED).as_deref(), Some("true"));
    assert_eq!(text(&stub, names::ORIG_INDEX).as_deref(), Some("2"));
    let long = vec![0u8; VALUE_LIMIT_BYTES + 1];
    let omitted =
        dead_letter(Some(&view(&[], Some(&long))), &origin(), None, "intake", &failure, TimestampMs(1));
    assert_eq!(
        (omitted.value.clone(), text(&omitted, names::PAYLOAD_OMITTED).as_deref()),
        (None, Some("true"))
    );
}

#[test]
fn a_failure_keeps_its_id() {
    let one = failure_id("intake", &origin().coordinate);
    assert_eq!(one, failure_id("intake", &origin().coordinate));
    assert_eq!(one.len(), 32);
    assert_ne!(one, failure_id("count", &origin().coordinate));
    assert_ne!(one, failure_id("intake", &Coordinate { index: 3, ..origin().coordinate }));
}
