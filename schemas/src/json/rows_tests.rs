//! Golden bytes of the rows, and what comes back.

use proptest::prelude::*;
use tallyflow_core::counter::encode_key;
use tallyflow_core::outputs::{Revision, RowState};

use super::*;
use crate::columns;

fn rows() -> JsonRows {
    JsonRows::new(Arc::from(["region".to_owned(), "tier".to_owned()]))
}

fn key(parts: [&str; 4]) -> Vec<u8> {
    let mut key = Vec::new();
    let [namespace, counter, dimensions @ ..] = parts.map(str::as_bytes);
    encode_key(&mut key, namespace, counter, dimensions.into_iter());
    key
}

fn texts(record: &OutRecord) -> (&str, &str) {
    let [key, value] = [&record.key, &record.value].map(|bytes| bytes.as_deref().unwrap());
    (std::str::from_utf8(key).unwrap(), std::str::from_utf8(value).unwrap())
}

fn window_row(key: &[u8], sum: i128) -> WindowRow<'_> {
    WindowRow {
        key,
        window: "minute",
        start: TimestampMs(60_000),
        end: TimestampMs(120_000),
        sum: Sum(sum),
        events: 2,
        revision: Revision(9),
        state: RowState::Final,
        complete_through: Some(TimestampMs(120_000)),
    }
}

#[test]
fn golden_window() {
    let (key, mut out) = (key(["shop", "sold", "eu", ""]), OutRecord::default());
    rows().window(&window_row(&key, -5), &mut out);
    let (key, value) = texts(&out);
    assert_eq!(
        key,
        r#"{"namespace":"shop","counter":"sold","region":"eu","tier":"","window":"minute","window_start":60000}"#
    );
    assert_eq!(
        value,
        concat!(
            r#"{"namespace":"shop","counter":"sold","region":"eu","tier":"","window":"minute","window_start":60000,"#,
            r#""window_end":120000,"sum":-5,"sum_exact":"-5","overflow":false,"events":2,"revision":9,"#,
            r#""state":"final","complete_through":120000}"#
        )
    );
}

#[test]
fn golden_count() {
    let (key, mut out) = (key(["shop", "sold", "eu", ""]), OutRecord::default());
    let row = CountRow {
        key: &key,
        total: Sum(7),
        events: 3,
        epoch: 0,
        revision: Revision(8),
        cleared_at: None,
        complete_through: None,
    };
    rows().count(&row, &mut out);
    let (key, value) = texts(&out);
    assert_eq!(key, r#"{"namespace":"shop","counter":"sold","region":"eu","tier":""}"#);
    assert_eq!(
        value,
        concat!(
            r#"{"namespace":"shop","counter":"sold","region":"eu","tier":"","total":7,"total_exact":"7","#,
            r#""overflow":false,"events":3,"epoch":0,"revision":8,"cleared_at":null,"complete_through":null}"#
        )
    );
}

fn ledger_row() -> (TopicId, Tallies) {
    let tallies = Tallies { received: 9, admitted: 5, late: 1, future: 1, invalid: 2, ..Tallies::default() };
    (TopicId([0xab; 16]), tallies)
}

fn ledger_record() -> OutRecord {
    let (source_topic_id, tallies) = ledger_row();
    let row = LedgerRow {
        stage: "intake",
        task: "events-3",
        source_topic_id,
        source_partition: Partition(3),
        source_topic: "events",
        tallies,
        through_offset: NextOffset(17),
        complete_through: Some(TimestampMs(5)),
    };
    let mut out = OutRecord::default();
    RowEncoder::ledger(&rows(), &row, &mut out);
    out
}

#[test]
fn golden_ledger() {
    let out = ledger_record();
    let (key, value) = texts(&out);
    let head = concat!(
        r#"{"stage":"intake","task":"events-3","source_topic_id":"abababababababababababababababab","#,
        r#""source_partition":3"#
    );
    assert_eq!(key, format!("{head}}}"));
    let tail = concat!(
        r#","source_topic":"events","received":9,"admitted":5,"counted":0,"duplicate":0,"conflict":0,"late":1,"#,
        r#""future":1,"invalid":2,"held":0,"discarded":0,"skipped":0,"through_offset":17,"complete_through":5}"#
    );
    assert_eq!(value, format!("{head}{tail}"));
}

#[test]
fn a_ledger_row_comes_back() {
    let out = ledger_record();
    let read = |key: Option<&[u8]>, value: Option<&[u8]>| LedgerDecoder::ledger(&rows(), key, value);
    let (key, value) = (out.key.as_deref(), out.value.as_deref());
    let (source_topic_id, tallies) = ledger_row();
    let right = OwnedLedgerRow {
        stage: "intake".to_owned(),
        task: "events-3".to_owned(),
        source_topic_id,
        source_partition: Partition(3),
        source_topic: "events".to_owned(),
        tallies,
        through_offset: NextOffset(17),
        complete_through: Some(TimestampMs(5)),
    };
    assert_eq!(read(key, value), Some(right.clone()));
    let later = String::from_utf8(value.unwrap().to_vec()).unwrap().replacen('{', r#"{"new":[1],"#, 1);
    assert_eq!(read(key, Some(later.as_bytes())), Some(right));
    let other = br#"{"stage":"count","task":"x-0","source_topic_id":"00","source_partition":0}"#;
    let note = br#"{"stage":"intake","task":"events-3","attempts":2}"#;
    for (key, value) in [
        (None, value),
        (key, None),
        (Some(other.as_slice()), value),
        (Some(note.as_slice()), Some(note.as_slice())),
        (Some(b"\xff".as_slice()), Some(b"barrier".as_slice())),
        (key, key),
    ] {
        assert_eq!(read(key, value), None);
    }
}

#[test]
fn r8_a_sum_outside_i64_is_null_and_exact_beside_it() {
    let (key, mut out) = (key(["n", "c", "", ""]), OutRecord::default());
    let max = i128::from(i64::MAX);
    for (sum, right) in [
        (max, r#""sum":9223372036854775807,"sum_exact":"9223372036854775807","overflow":false"#),
        (max + 1, r#""sum":null,"sum_exact":"9223372036854775808","overflow":true"#),
        (i128::MIN, r#""sum":null,"sum_exact":"-170141183460469231731687303715884105728","overflow":true"#),
    ] {
        rows().window(&window_row(&key, sum), &mut out);
        assert!(texts(&out).1.contains(right), "{sum}");
    }
}

#[test]
fn a_record_is_reused_without_what_was_in_it() {
    let (key, mut out) = (key(["n", "c", "", ""]), OutRecord::default());
    rows().window(&window_row(&key, 1), &mut out);
    let once = out.clone();
    out.headers.push(tallyflow_core::record::Header { name: b"x".to_vec(), value: None });
    rows().window(&window_row(&key, 1), &mut out);
    assert_eq!(out, once);
}

proptest! {
    #[test]
    fn any_text_and_number_is_read_back(
        parts in prop::array::uniform4(".{0,20}"), window in ".{0,10}", sum in any::<i128>(), events in any::<u64>(),
    ) {
        let encoded = key([&parts[0], &parts[1], &parts[2], &parts[3]]);
        let mut out = OutRecord::default();
        let row = WindowRow { window: &window, events, ..window_row(&encoded, sum) };
        rows().window(&row, &mut out);
        let back = columns::window(out.value.as_deref().unwrap()).unwrap();
        prop_assert_eq!([&back.namespace, &back.counter], [&parts[0], &parts[1]]);
        prop_assert_eq!(back.dimension("region"), Some(&*parts[2]));
        prop_assert_eq!(back.dimension("tier"), Some(&*parts[3]));
        prop_assert_eq!(back.dimension("sum"), None);
        prop_assert_eq!((&back.window, back.events), (&window, events));
        prop_assert_eq!((back.sum, back.overflow), (Sum(sum).public(), Sum(sum).public().is_none()));
        prop_assert_eq!(back.sum_exact.parse(), Ok(sum));
    }
}
