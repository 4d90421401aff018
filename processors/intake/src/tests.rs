//! The cases of the rules that are intake's.

use proptest::prelude::*;
use tallyflow_core::counter::{owner, routing_hash};
use tallyflow_core::event::Kind;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::headers::ORIG_TIMESTAMP;
use tallyflow_core::ids::{Hasher, Offset, Partition};
use tallyflow_core::plan::AppendTime;
use tallyflow_core::processor::Processor;
use tallyflow_core::record::{HeaderView, RecordTime, RecordView};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Category, Verdict};

use crate::Intake;

use crate::testing::{Lines, Telling, Told, log, plan, read, record};

/// The verdict of the one event of a record: `None` is admitted.
fn verdict(append_time: AppendTime, now_ms: i64, time: RecordTime, event_ms: i64) -> Option<Verdict> {
    let value = format!("n e1 A {event_ms} 1 eu");
    match &read(append_time, now_ms, &[record(7, time, &value)])[..] {
        [Told::Entry(..), Told::Done(7)] => None,
        [Told::Untimely(7, None, _, verdict, _), Told::Done(7)] => Some(*verdict),
        [Told::Invalid(7, None, Some(_), Category::InvalidField), Told::Done(7)] => Some(Verdict::Invalid),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_entry_has_everything_of_its_event() {
    let told = read(AppendTime::Log, 0, &[record(41, log(10_000), "n e1 A 9000 -3 eu")]);
    let mut hasher = Hasher::new("test");
    let entry = Entry {
        kind: Kind::Add,
        identity: hasher.identity(b"n", b"A", b"e1"),
        check: hasher.payload(0, -3, 9_000, [b"eu".as_slice()].into_iter()),
        counter: 0,
        event_time: TimestampMs(9_000),
        delta: -3,
        offset: Offset(41),
        index: 0,
        first_append: None,
    };
    let key = ["n", "A", "eu"].map(str::to_owned).to_vec();
    assert_eq!(told, [Told::Entry(owner(routing_hash(b"n", b"A"), 8), key, entry), Told::Done(41)]);
}

#[test]
fn t1_a_copy_has_the_same_owner_whichever_partition_brings_it() {
    let value = "n e1 A 9000 1 eu";
    let one = record(41, log(10_000), value);
    let other = RecordView { partition: Partition(3), ..record(7, log(11_000), value) };
    let place = |record| match &read(AppendTime::Log, 0, &[record])[0] {
        Told::Entry(target, _, entry) => (*target, entry.identity, entry.check),
        other => panic!("{other:?}"),
    };
    assert_eq!(place(one), place(other));
}

#[test]
fn t8_t9_identities_are_of_their_counter_and_dimensions_have_no_part_in_them() {
    let identity = |value: &str| match &read(AppendTime::Log, 0, &[record(0, log(10_000), value)])[0] {
        Told::Entry(target, _, entry) => (*target, entry.identity, entry.check),
        other => panic!("{other:?}"),
    };
    assert_ne!(identity("n e1 A 9000 1 eu").1, identity("n e1 B 9000 1 eu").1);
    assert_ne!(identity("a d b-c 9000 1 eu").1, identity("a-b d c 9000 1 eu").1);
    // Another dimension: the same identity at the same owner, and another payload (R5).
    let (one, other) = (identity("n e1 A 9000 1 eu"), identity("n e1 A 9000 1 us"));
    assert_eq!((one.0, one.1), (other.0, other.1));
    assert_ne!(one.2, other.2);
    // T10: so is another delta, and a time that was stamped anew.
    assert_ne!(one.2, identity("n e1 A 9000 5 eu").2);
    assert_ne!(one.2, identity("n e1 A 9001 1 eu").2);
}

#[test]
fn t6_t19_both_ends_of_the_limits_are_included() {
    let append = 10_000_000;
    for (age_s, right) in
        [(300, None), (301, Some(Verdict::Late)), (-5, None), (-6, Some(Verdict::Future)), (299, None)]
    {
        let found = verdict(AppendTime::Log, 0, log(append), append - age_s * 1_000);
        assert_eq!(found, right, "age {age_s} s");
    }
    let told = read(AppendTime::Log, 0, &[record(9, log(10_000_000), "n e1 A 1000 1 eu")]);
    assert_eq!(told[0], Told::Untimely(9, None, "e1".to_owned(), Verdict::Late, 9_999_000));
}

#[test]
fn t13_the_wall_clock_makes_nothing_late() {
    let (append, two_hours) = (10_000_000, 7_200_000);
    for now in [append, append + two_hours, 0] {
        assert_eq!(verdict(AppendTime::Log, now, log(append), append - 1_000), None);
    }
}

#[test]
fn t18_one_event_of_the_year_2100_is_future_and_touches_no_other() {
    let values: Vec<String> = (0..21)
        .map(|n| format!("n e{n} A {} 1 eu", if n == 10 { 4_102_444_800_000i64 } else { 100_000 }))
        .collect();
    let records: Vec<RecordView<'_>> =
        (0..).zip(&values).map(|(n, value)| record(n, log(100_500), value)).collect();
    let told = read(AppendTime::Log, 0, &records);
    let entries = told.iter().filter(|told| matches!(told, Told::Entry(..))).count();
    let future =
        told.iter().filter(|told| matches!(told, Told::Untimely(10, None, _, Verdict::Future, _))).count();
    assert_eq!((entries, future), (20, 1));
}

#[test]
fn a_producers_timestamp_ahead_of_the_clock_makes_the_event_future() {
    let create = |ms| RecordTime::Create(TimestampMs(ms));
    let now = 1_000_000;
    for (append_time, time, right) in [
        (AppendTime::Record, create(now + 5_000), None),
        (AppendTime::Record, create(now + 5_001), Some(Verdict::Future)),
        (AppendTime::Record, log(now + 5_001), Some(Verdict::Future)),
        (AppendTime::Log, log(now + 5_001), None), // the broker's clock is the judge
        (AppendTime::Log, create(now + 5_001), Some(Verdict::Future)),
        (AppendTime::Log, create(now), None),
        (AppendTime::Log, RecordTime::Unknown, Some(Verdict::Invalid)),
        (AppendTime::Record, RecordTime::Unknown, Some(Verdict::Invalid)),
    ] {
        let event_ms = time.timestamp().map_or(now, |time| time.0);
        assert_eq!(verdict(append_time, now, time, event_ms), right, "{append_time:?} {time:?}");
    }
    // The older limit holds too.
    assert_eq!(verdict(AppendTime::Record, now, create(now), now - 300_001), Some(Verdict::Late));
}

#[test]
fn headers_of_ours_on_an_input_are_foreign() {
    let name = ORIG_TIMESTAMP.as_bytes();
    let headers = [HeaderView { name, value: Some(b"1") }];
    let value = "n e1 A 10000000 1 eu";
    let record = RecordView { headers: &headers, ..record(7, log(10_000_000), value) };
    let told = read(AppendTime::Log, 0, &[record]);
    assert!(matches!(&told[0], Told::Entry(_, _, entry) if entry.first_append.is_none()));
}

#[test]
fn a_packed_record_has_a_verdict_for_each_event() {
    let value = "n e1 A 9000 1 eu\n!\nn e3 B 99000 1 us";
    let told = read(AppendTime::Log, 0, &[record(5, log(10_000), value), record(6, log(10_000), "!")]);
    assert!(matches!(&told[0], Told::Entry(_, _, entry) if entry.index == 0 && entry.offset == Offset(5)));
    assert_eq!(told[1], Told::Invalid(5, Some(1), Some("?".to_owned()), Category::Undecodable));
    assert_eq!(told[2], Told::Untimely(5, Some(2), "e3".to_owned(), Verdict::Future, -89_000));
    assert_eq!(told[3], Told::Done(5));
    assert_eq!(told[4], Told::Invalid(6, None, Some("?".to_owned()), Category::Undecodable));
    assert_eq!(told[5], Told::Done(6));
}

#[test]
fn an_input_without_a_decoder_is_not_read() {
    let mut intake = Intake::new(&plan(AppendTime::Log), vec![Box::new(Lines)]);
    let mut told = Telling::default();
    let records = [record(0, log(0), "!")];
    assert!(intake.process((&records, 1), (), TimestampMs(0), &mut told).is_err());
    assert_eq!(told.0, []);
}

proptest! {
    /// Every event of a batch is told once, every record is done in order (LG-1), however the batch is cut.
    #[test]
    fn any_batch_is_told_alike(ages in prop::collection::vec(prop::option::of(-10_000..400_000i64), 0..30), cut in 1..9usize) {
        let append = 10_000_000;
        let value = |(n, age): (usize, &Option<i64>)| match age {
            Some(age) => format!("n e{n} c{} {} 1 eu", n % 3, append - age),
            None => "!".to_owned(),
        };
        let values: Vec<String> = ages.iter().enumerate().map(value).collect();
        let records: Vec<RecordView<'_>> =
            (0..).zip(&values).map(|(n, value)| record(n, log(append), value)).collect();
        let whole = read(AppendTime::Log, 0, &records);
        let parts: Vec<Told> = records.chunks(cut).flat_map(|part| read(AppendTime::Log, 0, part)).collect();
        prop_assert_eq!(&whole, &parts);
        prop_assert_eq!(whole.len(), 2 * ages.len());
        for (age, told) in ages.iter().zip(whole.chunks(2)) {
            let right = match age {
                None => matches!(told[0], Told::Invalid(..)),
                Some(age) if *age > 300_000 => matches!(told[0], Told::Untimely(_, _, _, Verdict::Late, _)),
                Some(age) if *age < -5_000 => matches!(told[0], Told::Untimely(_, _, _, Verdict::Future, _)),
                Some(_) => matches!(told[0], Told::Entry(..)),
            };
            prop_assert!(right && matches!(told[1], Told::Done(_)));
        }
    }
}
