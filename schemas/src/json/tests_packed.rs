//! Packed records, limits at their edges, messages, batches.

use tallyflow_core::codec::EventDecoder;
use tallyflow_core::record::RecordView;

use super::JsonEvents;
use super::oracle::Remembering;

use super::tests::*;

#[test]
fn each_packed_event_has_its_own_verdict() {
    let (good, bad) = (with("", ""), with("event_id", ""));
    let packed = |list: &str| verdicts(&format!(r#"{{"events":{list}}}"#));
    let twice = with("", r#""x":1,"x":2"#);
    assert_eq!(
        packed(&format!("[{good},{bad},7,{twice},{good}]")),
        [(Some(0), OK), (Some(1), MISSING), (Some(2), INVALID), (Some(3), INVALID), (Some(4), OK)]
    );
    // What is wrong with the envelope is wrong with the record.
    assert_eq!(packed("[]"), [(None, INVALID)]);
    assert_eq!(packed("{}"), [(None, INVALID)]);
    assert_eq!(packed("7"), [(None, INVALID)]);
    assert_eq!(verdicts(&format!(r#"{{"events":[{good}],"a":1,"a":1}}"#)), [(None, INVALID)]);
    assert_eq!(verdicts(&format!(r#"{{"events":[{good}],"events":[{good}]}}"#)), [(None, INVALID)]);
    // Inside an event, `events` is an unknown field.
    assert_eq!(packed(&format!("[{}]", with("", r#""events":[1,2]"#))), [(Some(0), OK)]);
}

#[test]
fn a_document_with_events_is_a_packed_one_whatever_else_it_has() {
    let good = with("", "");
    let both = with("", &format!(r#""events":[{good},{good}]"#));
    assert_eq!(verdicts(&both), [(Some(0), OK), (Some(1), OK)]);
    assert_eq!(verdicts(&format!(r#"{{"event_id":7,"delta":"x","events":[{good}]}}"#)), [(Some(0), OK)]);
    assert_eq!(verdicts(&with("", r#""events":null"#)), [(None, OK)]);
}

#[test]
fn limits_hold_at_their_edges() {
    let nested = |depth: usize| with("", &format!(r#""x":{}{}"#, "[".repeat(depth), "]".repeat(depth)));
    assert_eq!(verdicts(&nested(63)), [(None, OK)]);
    assert_eq!(verdicts(&nested(64)), [(None, LARGE)]);
    assert_eq!(verdicts(&nested(300_000)), [(None, LARGE)]);
    let packed = format!(r#"{{"events":[{},{},{}]}}"#, nested(61), nested(62), nested(1));
    assert_eq!(verdicts(&packed), [(Some(0), OK), (Some(1), LARGE), (Some(2), OK)]);

    let padded = |bytes: usize| {
        let shell = with("", r#""x":"""#).len();
        with("", &format!(r#""x":"{}""#, "y".repeat(bytes - shell)))
    };
    assert_eq!(verdicts(&padded(1024 * 1024)), [(None, OK)]);
    assert_eq!(verdicts(&padded(1024 * 1024 + 1)), [(None, LARGE)]);

    // 3 fields, `x`, and its members.
    let wide = |members: usize| {
        let list: Vec<String> = (0..members - 4).map(|n| format!(r#""k{n}":1"#)).collect();
        with("", &format!(r#""x":{{{}}}"#, list.join(",")))
    };
    assert_eq!(verdicts(&wide(10_000)), [(None, OK)]);
    assert_eq!(verdicts(&wide(10_001)), [(None, LARGE)]);

    let many =
        |events: usize| verdicts(&format!(r#"{{"events":[{}]}}"#, vec![with("", ""); events].join(",")));
    let told = many(10_000);
    assert!(told.len() == 10_000 && told.iter().all(|(_, verdict)| verdict.is_none()));
    assert_eq!(many(10_001), [(None, LARGE)]);
}

#[test]
fn messages_name_the_path() {
    let packed = |member: &str| {
        let list = [with("", ""), with("", ""), with("", ""), with("", member)].join(",");
        let told = told(&format!(r#"{{"events":[{list}]}}"#)).remove(3);
        assert_eq!(told.id.as_deref(), Some("e"));
        told.event.unwrap_err().message
    };
    assert_eq!(packed(r#""delta":1.0"#), "events[3].delta: an integer within i64 is needed, not this number");
    assert_eq!(
        packed(r#""dimensions":{"region":7}"#),
        "events[3].dimensions.region: a text is needed, not this number"
    );
    assert_eq!(packed(r#""x":[{"y":1,"y":2}]"#), "events[3].x[0].y: the key stands twice");
    assert_eq!(message(&with("counter", "")), "counter: missing");
    assert_eq!(message(&with("", r#""counter":"d""#)), "counter: the key stands twice");
    assert_eq!(message(r#"{"events":[7]}"#), "events[0]: not an object");
    assert_eq!(message("{}}"), "not JSON at byte 2: something after the document");
    assert!(
        message(&with("event_time", r#""event_time":"yesterday""#))
            .starts_with("event_time: integer milliseconds")
    );
    // Never the payload, and a key only in part.
    let long = with("", &format!(r#""{0}":1,"{0}":1"#, "k".repeat(100_000)));
    assert!(message(&long).len() < 200);
}

#[test]
fn a_batch_is_told_in_order_and_memory_is_kept() {
    let (good, packed) = (with("", ""), format!(r#"{{"events":[{},7]}}"#, with("", "")));
    let values = [good.as_bytes(), b"x", packed.as_bytes(), good.as_bytes()];
    let batch: Vec<RecordView<'_>> = values.iter().map(|value| record(value, &[])).collect();
    let mut decoder = JsonEvents::with_rules(rules());
    for _ in 0..2 {
        let mut sink = Remembering::default();
        decoder.decode(&batch, &mut sink);
        let order: Vec<_> =
            sink.told.iter().map(|told| (told.record, told.index, told.event.is_ok())).collect();
        let right =
            [(0, None, true), (1, None, false), (2, Some(0), true), (2, Some(1), false), (3, None, true)];
        assert_eq!(order, right);
        assert_eq!(sink.done, [0, 1, 2, 3]);
        assert!(decoder.keeps_memory());
    }
}
