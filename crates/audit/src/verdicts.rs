//! The lawful verdicts of one identity: as numbers where they follow, as ranges where copies at several partitions,
//! several payloads or the horizon leave a choice.
//!
//! A partition's share of an identity is open as soon as copies came elsewhere too: which of them was first in
//! `entries` is not to be seen in the raw topics. All together exactly one counts.

use crate::report::Range;
use crate::sightings::{Payload, Sighting, SourceId};

/// The lawful verdicts of a source partition, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verdicts {
    pub(crate) admitted: u64,
    pub(crate) counted: Range,
    pub(crate) duplicate: Range,
    pub(crate) conflict: Range,
    /// Late by the horizon rule.
    pub(crate) late: Range,
}

impl Verdicts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.admitted += other.admitted;
        self.counted.add(other.counted);
        self.duplicate.add(other.duplicate);
        self.conflict.add(other.conflict);
        self.late.add(other.late);
    }
}

/// The lawful verdicts of one identity, at one source partition or (`None`) at all together.
pub(crate) fn verdicts(
    copies: &[Sighting],
    source: Option<SourceId>,
    payloads: &[Payload],
    clusters: usize,
    remember_ms: i64,
) -> Verdicts {
    let here = |copy: &Sighting| source.is_none_or(|source| copy.source == source);
    let admitted = count(copies, here);
    let elsewhere = count(copies, |copy| !here(copy));
    if clusters > 1 {
        return beyond_horizon(admitted, elsewhere, clusters);
    }
    let mut all =
        Verdicts { admitted, counted: Range { lo: u64::from(elsewhere == 0), hi: 1 }, ..Verdicts::default() };
    // A chain longer than the horizon: which of its sightings still answers decides duplicate or conflict.
    if payloads.len() > 1 && span_ms(copies) > remember_ms {
        let uncounted = Range { lo: 0, hi: admitted.saturating_sub(all.counted.lo) };
        (all.duplicate, all.conflict) = (uncounted, uncounted);
        return all;
    }
    let outcomes = payloads.iter().map(|counted| {
        let same_here = count(copies, |copy| here(copy) && copy.payload() == *counted);
        let same_elsewhere = count(copies, |copy| !here(copy) && copy.payload() == *counted);
        let duplicate = Range {
            lo: same_here.saturating_sub(1),
            hi: if same_elsewhere == 0 { same_here.saturating_sub(1) } else { same_here },
        };
        (duplicate, admitted - same_here)
    });
    let mut first = true;
    for (duplicate, conflict) in outcomes {
        let conflict = Range { lo: conflict, hi: conflict };
        if first {
            (all.duplicate, all.conflict) = (duplicate, conflict);
        } else {
            all.duplicate = all.duplicate.hull(duplicate);
            all.conflict = all.conflict.hull(conflict);
        }
        first = false;
    }
    all
}

/// Beyond the horizon each further cluster may count again, be known still, or be late by the horizon rule.
fn beyond_horizon(admitted: u64, elsewhere: u64, clusters: usize) -> Verdicts {
    let lo = u64::from(elsewhere == 0);
    let most = u64::try_from(clusters).unwrap_or(u64::MAX);
    let uncounted = Range { lo: 0, hi: admitted - lo };
    Verdicts {
        admitted,
        counted: Range { lo, hi: admitted.min(most) },
        duplicate: uncounted,
        conflict: uncounted,
        late: uncounted,
    }
}

fn count(copies: &[Sighting], which: impl Fn(&Sighting) -> bool) -> u64 {
    copies.iter().filter(|copy| which(copy)).map(|_| 1_u64).sum()
}

fn span_ms(copies: &[Sighting]) -> i64 {
    match (copies.first(), copies.last()) {
        (Some(first), Some(last)) => last.append_ms.saturating_sub(first.append_ms),
        _ => 0,
    }
}
