//! The cases of the rules that are dedup's, over ids in a map.

use std::collections::HashMap;

use proptest::prelude::*;
use tallyflow_core::event::Kind;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::{Hasher, Identity, Offset, PayloadCheck};
use tallyflow_core::processor::{Processor, SeenIds, Sighting, StateUnavailable};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Verdict::{self, Conflict, Counted, Duplicate, Late};

use crate::{Dedup, Frame, Judged};

/// The oldest sighting of each id, kept for ever.
#[derive(Default)]
struct MapIds {
    seen: HashMap<Identity, PayloadCheck>,
    sighted: usize,
    broken: bool,
}

impl SeenIds for MapIds {
    fn sight(
        &mut self,
        ids: &[(Identity, PayloadCheck)],
        out: &mut Vec<Sighting>,
    ) -> Result<(), StateUnavailable> {
        if self.broken {
            return Err(StateUnavailable("disk".to_owned()));
        }
        self.sighted += ids.len();
        out.extend(ids.iter().map(|(identity, check)| match self.seen.get(identity) {
            None => {
                self.seen.insert(*identity, *check);
                Sighting::First
            }
            Some(first) if first == check => Sighting::Same,
            Some(_) => Sighting::Different,
        }));
        Ok(())
    }
}

/// An entry of (namespace, counter, id) with a delta; everything else alike.
fn entry(namespace: &str, counter: &str, id: &str, delta: i64) -> Entry {
    let mut hasher = Hasher::new("test");
    Entry {
        kind: Kind::Add,
        identity: hasher.identity(namespace.as_bytes(), counter.as_bytes(), id.as_bytes()),
        check: hasher.payload(0, delta, 1_000_000, std::iter::empty()),
        counter: 0,
        event_time: TimestampMs(1_000_000),
        delta,
        offset: Offset(0),
        index: 0,
        first_append: None,
    }
}

fn judge(ids: &mut MapIds, entries: &[Entry], horizon: Option<TimestampMs>) -> Vec<Verdict> {
    let mut judged = Judged::default();
    Dedup::new().process(Frame { entries, horizon }, ids, TimestampMs(0), &mut judged).unwrap();
    assert_eq!(judged.refused, None);
    judged.verdicts
}

#[test]
fn t1_a_copy_by_another_way_is_a_duplicate() {
    // Whichever partition it came from, its entries meet at one owner: two frames here.
    let (mut ids, e1) = (MapIds::default(), entry("n", "A", "e1", 1));
    assert_eq!(judge(&mut ids, &[e1], None), [Counted]);
    let copy = Entry { offset: Offset(77), index: 3, ..e1 };
    assert_eq!(judge(&mut ids, &[copy], None), [Duplicate]);
}

#[test]
fn t6_t30_beyond_the_horizon_is_late_and_not_sighted() {
    let mut ids = MapIds::default();
    let at = |ms| Entry { event_time: TimestampMs(ms), ..entry("n", "A", "e1", 1) };
    let horizon = Some(TimestampMs(1_000));
    assert_eq!(judge(&mut ids, &[at(999), at(1_000)], horizon), [Late, Late]);
    assert_eq!(ids.sighted, 0);
    assert_eq!(judge(&mut ids, &[at(1_001), at(1_000), at(1_001)], horizon), [Counted, Late, Duplicate]);
    assert_eq!(ids.sighted, 2);
    // The rule comes before any look-up: a known id beyond it is late, not a duplicate.
    assert_eq!(judge(&mut ids, &[at(1_001)], Some(TimestampMs(1_001))), [Late]);
}

#[test]
fn t8_t9_identities_are_of_their_counter() {
    let mut ids = MapIds::default();
    let entries = [
        entry("n", "A", "e1", 1),
        entry("n", "B", "e1", 1),
        entry("a", "b-c", "d", 1),
        entry("a-b", "c", "d", 1),
    ];
    assert_eq!(judge(&mut ids, &entries, None), [Counted; 4]);
}

#[test]
fn t10_another_payload_is_a_conflict_and_the_first_one_answers() {
    let mut ids = MapIds::default();
    let entries = [1, 5, 5, 1].map(|delta| entry("n", "A", "e1", delta));
    assert_eq!(judge(&mut ids, &entries, None), [Counted, Conflict, Conflict, Duplicate]);
}

#[test]
fn t12_two_copies_in_one_batch_count_one() {
    let e1 = entry("n", "A", "e1", 1);
    assert_eq!(judge(&mut MapIds::default(), &[e1, e1], None), [Counted, Duplicate]);
}

#[test]
fn kinds_of_a_later_version_are_refused_before_anything_is_sighted() {
    for kind in [Kind::Clear, Kind::Hold, Kind::Release, Kind::Discard] {
        let entries = [entry("n", "A", "e1", 1), Entry { kind, ..entry("n", "A", "e2", 1) }];
        let (mut ids, mut judged) = (MapIds::default(), Judged::default());
        let frame = Frame { entries: &entries, horizon: None };
        Dedup::new().process(frame, &mut ids, TimestampMs(0), &mut judged).unwrap();
        let refusal = judged.refused.unwrap();
        assert_eq!((refusal.position, refusal.kind), (1, kind));
        assert_eq!((ids.sighted, judged.verdicts.len()), (0, 0));
        assert!(refusal.to_string().starts_with("entry 1 of the frame is of the kind"));
    }
}

#[test]
fn state_that_cannot_be_read_is_no_verdict() {
    let mut ids = MapIds { broken: true, ..MapIds::default() };
    let frame = Frame { entries: &[entry("n", "A", "e1", 1)], horizon: None };
    let mut judged = Judged { verdicts: vec![Counted], refused: None };
    assert!(Dedup::new().process(frame, &mut ids, TimestampMs(0), &mut judged).is_err());
    assert_eq!(judged.verdicts, []);
}

proptest! {
    /// Of any entries, in any frames, each identity's first judgeable one counts and no other (ID-1, R13).
    #[test]
    fn the_first_of_each_identity_counts(
        list in prop::collection::vec((0..6u8, 1..3i64, 0..4i64), 0..40), cut in 1..7usize, horizon in prop::option::of(0..3i64),
    ) {
        let make = |(id, delta, ms): &(u8, i64, i64)| Entry {
            event_time: TimestampMs(*ms),
            ..entry("n", "A", &format!("e{id}"), *delta)
        };
        let entries: Vec<Entry> = list.iter().map(make).collect();
        let horizon = horizon.map(TimestampMs);
        let mut ids = MapIds::default();
        let found: Vec<Verdict> =
            entries.chunks(cut).flat_map(|frame| judge(&mut ids, frame, horizon)).collect();
        let mut first: HashMap<u8, i64> = HashMap::new();
        for ((id, delta, ms), verdict) in list.iter().zip(found) {
            let right = if horizon.is_some_and(|h| TimestampMs(*ms) <= h) {
                Late
            } else {
                match first.get(id) {
                    None => Counted,
                    Some(seen) if seen == delta => Duplicate,
                    Some(_) => Conflict,
                }
            };
            if right == Counted {
                first.insert(*id, *delta);
            }
            prop_assert_eq!(verdict, right);
        }
    }
}
