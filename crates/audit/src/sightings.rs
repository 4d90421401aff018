//! Every admitted sighting of every identity, and which counts they allow.
//!
//! ```text
//!   one payload, near each other      ──► counted once: a fixed contribution
//!   several payloads                  ──► exactly one of them counted, either one: a group of one cluster
//!   further apart than the horizon    ──► each cluster may count once more: a group of several clusters
//! ```
//!
//! Invariants: the order in which sightings are added does not matter; a cluster is a run of sightings in append order
//! whose neighbours are at most the horizon apart, so its first is still remembered or answered by a later one, and
//! it counts at most once. The first identity ever seen counts at least once.
//!
//! It must not know what was published: it says what is lawful, not what is right.

use std::collections::HashMap;

use crate::keys::KeyId;
use crate::report::Range;
use crate::verdicts::{Verdicts, verdicts};

/// Number of a source partition.
pub(crate) type SourceId = u32;

/// One admitted copy of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sighting {
    pub(crate) append_ms: i64,
    pub(crate) source: SourceId,
    pub(crate) key: KeyId,
    pub(crate) delta: i64,
    pub(crate) event_time_ms: i64,
}

impl Sighting {
    pub(crate) fn payload(&self) -> Payload {
        Payload { key: self.key, delta: self.delta, event_time_ms: self.event_time_ms }
    }
}

/// What makes two copies equal: delta, kept dimensions (in the key) and event time; the kind is always `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Payload {
    pub(crate) key: KeyId,
    pub(crate) delta: i64,
    pub(crate) event_time_ms: i64,
}

/// A sum of contributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) sum: i128,
    pub(crate) events: u64,
    /// Newest of the contributions' first append times: a row with all of them cannot be older.
    pub(crate) newest_append_ms: i64,
}

impl Default for Cell {
    fn default() -> Self {
        Self { sum: 0, events: 0, newest_append_ms: i64::MIN }
    }
}

impl Cell {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sum += other.sum;
        self.events += other.events;
        self.newest_append_ms = self.newest_append_ms.max(other.newest_append_ms);
    }
}

/// An identity whose counted payload is not determined by the raw topics. Each cluster counts at most one of its
/// payloads, all together at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) clusters: Vec<Vec<Payload>>,
    pub(crate) first_append_ms: i64,
}

/// What all sightings together allow.
#[derive(Debug, Default)]
pub(crate) struct Lawful {
    /// Determined contributions per counter key and slice start.
    pub(crate) fixed: HashMap<(KeyId, i64), Cell>,
    pub(crate) groups: Vec<Group>,
    pub(crate) sources: HashMap<SourceId, Verdicts>,
    pub(crate) overall: Verdicts,
    /// Identities with several payloads within the horizon.
    pub(crate) conflict_ids: u64,
    /// Identities with sightings further apart than the horizon.
    pub(crate) horizon_ids: u64,
}

/// All sightings by identity; almost every identity is seen once, so the others have a map of their own.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    first: HashMap<u128, Sighting>,
    further: HashMap<u128, Vec<Sighting>>,
}

impl Sightings {
    pub(crate) fn add(&mut self, identity: u128, sighting: Sighting) {
        match self.first.get(&identity) {
            None => {
                self.first.insert(identity, sighting);
            }
            Some(_) => self.further.entry(identity).or_default().push(sighting),
        }
    }

    /// Judges every identity.
    pub(crate) fn judge(self, slice_ms: i64, remember_ms: i64) -> Lawful {
        let Self { first, mut further } = self;
        let mut lawful = Lawful::default();
        for (identity, sighting) in first {
            let mut copies = vec![sighting];
            copies.append(&mut further.remove(&identity).unwrap_or_default());
            copies.sort_unstable();
            judge_identity(&copies, slice_ms, remember_ms, &mut lawful);
        }
        lawful
    }
}

fn judge_identity(copies: &[Sighting], slice_ms: i64, remember_ms: i64, lawful: &mut Lawful) {
    let Some(first) = copies.first() else { return };
    if copies.len() == 1 {
        // Nearly all identities: determined, without a look at anything else.
        add_fixed(first, slice_ms, lawful);
        let once = Range::exactly(1);
        let verdicts = Verdicts { admitted: 1, counted: once, ..Verdicts::default() };
        lawful.overall.add(&verdicts);
        lawful.sources.entry(first.source).or_default().add(&verdicts);
        return;
    }
    let clusters: Vec<&[Sighting]> = copies
        .chunk_by(|earlier, later| later.append_ms.saturating_sub(earlier.append_ms) <= remember_ms)
        .collect();
    let payloads = distinct_payloads(copies);
    match (clusters.as_slice(), payloads.as_slice()) {
        ([_], [_]) => add_fixed(first, slice_ms, lawful),
        _ => {
            if clusters.len() > 1 {
                lawful.horizon_ids += 1;
            } else {
                lawful.conflict_ids += 1;
            }
            let clusters = clusters.iter().map(|cluster| distinct_payloads(cluster)).collect();
            lawful.groups.push(Group { clusters, first_append_ms: first.append_ms });
        }
    }
    lawful.overall.add(&verdicts(copies, None, &payloads, clusters.len(), remember_ms));
    for source in distinct_sources(copies) {
        let of_source = verdicts(copies, Some(source), &payloads, clusters.len(), remember_ms);
        lawful.sources.entry(source).or_default().add(&of_source);
    }
}

fn add_fixed(copy: &Sighting, slice_ms: i64, lawful: &mut Lawful) {
    let slice_start = copy.event_time_ms.div_euclid(slice_ms) * slice_ms;
    let one = Cell { sum: copy.delta.into(), events: 1, newest_append_ms: copy.append_ms };
    lawful.fixed.entry((copy.key, slice_start)).or_default().add(&one);
}

fn distinct_payloads(copies: &[Sighting]) -> Vec<Payload> {
    let mut payloads: Vec<_> = copies.iter().map(Sighting::payload).collect();
    payloads.sort_unstable();
    payloads.dedup();
    payloads
}

fn distinct_sources(copies: &[Sighting]) -> Vec<SourceId> {
    let mut sources: Vec<_> = copies.iter().map(|copy| copy.source).collect();
    sources.sort_unstable();
    sources.dedup();
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMEMBER_MS: i64 = 305_000;

    fn at(append_ms: i64, source: SourceId, delta: i64, event_time_ms: i64) -> Sighting {
        Sighting { append_ms, source, key: 0, delta, event_time_ms }
    }

    fn judged(copies: &[Sighting]) -> Lawful {
        let mut sightings = Sightings::default();
        for copy in copies {
            sightings.add(7, *copy);
        }
        sightings.judge(60_000, REMEMBER_MS)
    }

    fn range(lo: u64, hi: u64) -> Range {
        Range { lo, hi }
    }

    #[test]
    fn copies_of_one_partition_are_determined() {
        let lawful = judged(&[at(1, 0, 5, 60_001), at(2, 0, 5, 60_001), at(3, 0, 5, 60_001)]);
        assert_eq!(lawful.fixed[&(0, 60_000)], Cell { sum: 5, events: 1, newest_append_ms: 1 });
        assert_eq!(lawful.sources[&0], lawful.overall);
        assert_eq!((lawful.overall.counted, lawful.overall.duplicate), (range(1, 1), range(2, 2)));
        assert_eq!((lawful.overall.conflict, lawful.overall.late), (range(0, 0), range(0, 0)));
    }

    #[test]
    fn copies_across_partitions_leave_open_where_one_counts() {
        let lawful = judged(&[at(1, 0, 5, 9), at(2, 3, 5, 9), at(3, 3, 5, 9)]);
        assert_eq!((lawful.overall.counted, lawful.overall.duplicate), (range(1, 1), range(2, 2)));
        assert_eq!((lawful.sources[&0].counted, lawful.sources[&0].duplicate), (range(0, 1), range(0, 1)));
        assert_eq!((lawful.sources[&3].counted, lawful.sources[&3].duplicate), (range(0, 1), range(1, 2)));
    }

    #[test]
    fn of_two_payloads_either_may_count() {
        let lawful = judged(&[at(1, 0, 1, 9), at(2, 0, 5, 9), at(3, 0, 5, 9)]);
        assert!(lawful.fixed.is_empty());
        assert_eq!(lawful.groups[0].clusters.len(), 1);
        assert_eq!(lawful.groups[0].clusters[0].len(), 2);
        assert_eq!(lawful.overall.counted, range(1, 1));
        assert_eq!(lawful.overall.duplicate, range(0, 1));
        assert_eq!(lawful.overall.conflict, range(1, 2));
        assert_eq!((lawful.conflict_ids, lawful.horizon_ids), (1, 0));
    }

    #[test]
    fn beyond_the_horizon_both_outcomes_are_lawful() {
        let near = judged(&[at(0, 0, 1, 9), at(REMEMBER_MS, 0, 1, 300_000)]);
        assert_eq!((near.conflict_ids, near.horizon_ids), (1, 0));
        let far = judged(&[at(0, 0, 1, 9), at(REMEMBER_MS + 1, 0, 1, 300_000)]);
        assert_eq!((far.conflict_ids, far.horizon_ids), (0, 1));
        assert_eq!(far.overall.counted, range(1, 2));
        assert_eq!(far.overall.late, range(0, 1));
        assert_eq!(far.groups[0].clusters.len(), 2);
    }

    #[test]
    fn a_chain_of_copies_stays_one_cluster() {
        let lawful = judged(&[at(0, 0, 1, 1), at(300_000, 0, 1, 2), at(600_000, 0, 1, 3)]);
        assert_eq!(lawful.groups[0].clusters.len(), 1);
        assert_eq!(lawful.overall.counted, range(1, 1));
        assert_eq!(lawful.overall.conflict, range(0, 2));
    }
}
