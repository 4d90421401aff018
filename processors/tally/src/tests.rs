//! Sums per counter and slice, in any order and any cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tallyflow_core::event::Kind;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::{Identity, Offset, PayloadCheck};
use tallyflow_core::plan::{EnginePlan, Plan, RecordLimits, TimePlan};
use tallyflow_core::processor::{CounterId, Delta, Processor};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Verdict::{self, Conflict, Counted, Duplicate, Late};
use tallyflow_core::window::WindowSize;

use crate::{Judged, Tally};

fn tally() -> Tally {
    Tally::new(&Plan {
        app: "test".to_owned(),
        inputs: Vec::new(),
        limits: TimePlan {
            accept_ms: 300_000,
            future_ms: 5_000,
            remember_ms: 305_000,
            settle_lag_ms: 5_000,
            idle_timeout_ms: 5_000,
        },
        record_limits: RecordLimits::default(),
        namespaces: None,
        dimensions: Arc::from([]),
        windows: Vec::new(),
        totals_emit_ms: 1_000,
        slice: WindowSize::new(60_000).unwrap(),
        keep_ms: 0,
        entries_partitions: 1,
        intake_workers: 1,
        count_workers: 1,
        engine: EnginePlan {
            commit_interval_ms: 100,
            transaction_timeout_ms: 10_000,
            state_dir: "state".into(),
            memory_bytes: 1 << 30,
        },
    })
}

fn entry(counter: u32, seconds: i64, delta: i64) -> Entry {
    Entry {
        kind: Kind::Add,
        identity: Identity::from_raw(1),
        check: PayloadCheck(0),
        counter,
        event_time: TimestampMs(seconds * 1_000),
        delta,
        offset: Offset(0),
        index: 0,
        first_append: None,
    }
}

/// The ids of the dictionary's counters: not their positions.
const COUNTERS: [CounterId; 3] = [CounterId(70), CounterId(5), CounterId(6)];

fn add(tally: &mut Tally, entries: &[Entry], verdicts: &[Verdict], deltas: &mut Vec<Delta>) {
    let judged = Judged { entries, verdicts, counters: &COUNTERS };
    tally.process(judged, (), TimestampMs(0), deltas).unwrap();
}

/// (counter, slice in seconds, sum, events) of each row.
fn rows(deltas: &[Delta]) -> Vec<(u32, i64, i128, u64)> {
    deltas.iter().map(|d| (d.counter.0, d.slice_start.0 / 1_000, d.sum.0, d.events)).collect()
}

#[test]
fn only_what_counts_is_summed_in_the_order_of_first_touch() {
    let entries = [
        entry(0, 70, 1),
        entry(1, 5, 2),
        entry(0, 119, 3),
        entry(0, 60, 100),
        entry(0, 5, 4),
        entry(2, 5, 9),
    ];
    let verdicts = [Counted, Counted, Counted, Duplicate, Counted, Late];
    let mut deltas = Vec::new();
    add(&mut tally(), &entries, &verdicts, &mut deltas);
    assert_eq!(rows(&deltas), [(70, 60, 4, 2), (5, 0, 2, 1), (70, 0, 4, 1)]);
}

#[test]
fn t26_slices_are_half_open() {
    let mut deltas = Vec::new();
    add(&mut tally(), &[entry(0, 59, 1), entry(0, 61, 1), entry(0, 60, 1)], &[Counted; 3], &mut deltas);
    assert_eq!(rows(&deltas), [(70, 0, 1, 1), (70, 60, 2, 2)]);
}

#[test]
fn t21_t22_sums_neither_clamp_nor_wrap() {
    let mut deltas = Vec::new();
    let list = [5, -10, 10].map(|delta| entry(0, 0, delta));
    add(&mut tally(), &list, &[Counted; 3], &mut deltas);
    assert_eq!(rows(&deltas), [(70, 0, 5, 3)]);
    let list = [i64::MAX, 1, i64::MAX].map(|delta| entry(0, 0, delta));
    deltas.clear();
    add(&mut tally(), &list, &[Counted; 3], &mut deltas);
    assert_eq!(deltas[0].sum.public(), None);
    assert_eq!(deltas[0].sum.0, 2 * i128::from(i64::MAX) + 1);
}

#[test]
fn t10_a_conflict_adds_nothing_and_a_delta_of_zero_is_an_event() {
    let mut deltas = Vec::new();
    add(
        &mut tally(),
        &[entry(0, 0, 1), entry(0, 0, 5), entry(1, 0, 0)],
        &[Counted, Conflict, Counted],
        &mut deltas,
    );
    assert_eq!(rows(&deltas), [(70, 0, 1, 1), (5, 0, 0, 1)]);
}

#[test]
fn a_list_of_another_commit_is_never_mixed_up() {
    let mut tally = tally();
    let mut first = Vec::new();
    add(&mut tally, &[entry(0, 0, 1), entry(1, 0, 1)], &[Counted; 2], &mut first);
    // A list the index does not know gets rows of its own, whatever stands in it.
    let mut other = rows_of(&[(6, 0, 7), (70, 60, 7)]);
    add(&mut tally, &[entry(0, 0, 1), entry(1, 0, 1)], &[Counted; 2], &mut other);
    assert_eq!(rows(&other), [(6, 0, 7, 1), (70, 60, 7, 1), (70, 0, 1, 1), (5, 0, 1, 1)]);
}

fn rows_of(list: &[(u32, i64, i64)]) -> Vec<Delta> {
    let row = |(counter, seconds, sum): &(u32, i64, i64)| Delta {
        counter: CounterId(*counter),
        slice_start: TimestampMs(seconds * 1_000),
        sum: tallyflow_core::sum::Sum(i128::from(*sum)),
        events: 1,
    };
    list.iter().map(row).collect()
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let (mut tally, mut deltas) = (tally(), Vec::new());
    let entries = [entry(9, 0, 1)];
    let judged = |verdicts| Judged { entries: &entries, verdicts, counters: &COUNTERS };
    assert!(tally.process(judged(&[]), (), TimestampMs(0), &mut deltas).is_err());
    assert!(tally.process(judged(&[Counted]), (), TimestampMs(0), &mut deltas).is_err());
    assert!(tally.process(judged(&[Late]), (), TimestampMs(0), &mut deltas).is_ok());
}

proptest! {
    /// Cut into any frames, in any order, the same sums; Σ deltas = Σ counted entries (LG-2).
    #[test]
    fn any_order_and_any_frames_sum_the_same(
        mut list in prop::collection::vec((0..3u32, 0..300i64, any::<i64>(), any::<bool>()), 0..60),
        cut in 1..9usize, turn in any::<prop::sample::Index>(),
    ) {
        let sums = |list: &[(u32, i64, i64, bool)], cut: usize| {
            let (mut tally, mut deltas) = (tally(), Vec::new());
            for part in list.chunks(cut) {
                let entries: Vec<Entry> = part.iter().map(|(c, s, d, _)| entry(*c, *s, *d)).collect();
                let verdicts: Vec<Verdict> =
                    part.iter().map(|(.., counts)| if *counts { Counted } else { Duplicate }).collect();
                add(&mut tally, &entries, &verdicts, &mut deltas);
            }
            let map: BTreeMap<(u32, i64), (i128, u64)> =
                rows(&deltas).into_iter().map(|(c, s, sum, events)| ((c, s), (sum, events))).collect();
            assert_eq!(map.len(), deltas.len(), "a row stands twice");
            map
        };
        let mut right: BTreeMap<(u32, i64), (i128, u64)> = BTreeMap::new();
        for (counter, seconds, delta, _) in list.iter().filter(|(.., counts)| *counts) {
            let row = right.entry((COUNTERS[*counter as usize].0, seconds / 60 * 60)).or_default();
            *row = (row.0 + i128::from(*delta), row.1 + 1);
        }
        prop_assert_eq!(&sums(&list, cut), &right);
        let middle = turn.index(list.len().max(1));
        list.rotate_left(middle);
        list.reverse();
        prop_assert_eq!(&sums(&list, 60), &right);
    }
}
