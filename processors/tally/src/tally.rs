//! Sums counted entries per counter and slice, in the order of first touch.
//!
//! The index holds positions in the caller's list and compares with what stands there, so it can never add to a
//! wrong row: with a list it does not know it merely begins new rows.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::plan::Plan;
use tallyflow_core::processor::{Consumed, CounterId, Delta, Processor, StateUnavailable};
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Verdict;
use tallyflow_core::window::WindowSize;

/// What tally reads: a frame's entries with what was decided about them.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The entries, in the order of the log.
    pub entries: &'a [Entry],
    /// Their verdicts, in the same order. Only `Counted` ones are summed.
    pub verdicts: &'a [Verdict],
    /// The task's id of each counter in the frame's dictionary: what `entry.counter` refers to.
    pub counters: &'a [CounterId],
}

/// Tally's processor.
#[derive(Debug)]
pub struct Tally {
    slice: WindowSize,
    index: HashTable<u32>,
}

impl Tally {
    /// The tally of a plan.
    pub fn new(plan: &Plan) -> Self {
        Self { slice: plan.slice, index: HashTable::new() }
    }
}

impl Processor for Tally {
    type Batch<'a> = Judged<'a>;
    type View<'a> = ();
    /// The deltas of one commit, or of a part of it: frames processed into the same list add to the rows that are
    /// there. An empty list begins anew. In the order of first touch.
    type Effects<'a> = &'a mut Vec<Delta>;

    /// Adds a frame. `now` is not looked at.
    ///
    /// # Errors
    ///
    /// Where verdicts or counters do not match the entries; the list is not to be used then.
    fn process(
        &mut self,
        judged: Self::Batch<'_>,
        _view: Self::View<'_>,
        _now: TimestampMs,
        deltas: Self::Effects<'_>,
    ) -> Result<Consumed, StateUnavailable> {
        if judged.entries.len() != judged.verdicts.len() {
            return Err(StateUnavailable("there is not one verdict for each entry".to_owned()));
        }
        if deltas.is_empty() {
            self.index.clear();
        }
        let counted = judged.entries.iter().zip(judged.verdicts).filter(|(_, v)| **v == Verdict::Counted);
        for (entry, _) in counted {
            let Some(counter) = judged.counters.get(entry.counter as usize).copied() else {
                return Err(StateUnavailable("an entry's counter has no id".to_owned()));
            };
            self.add(deltas, counter, self.slice.start_of(entry.event_time), entry.delta);
        }
        Ok(Consumed::All)
    }
}

impl Tally {
    fn add(&mut self, deltas: &mut Vec<Delta>, counter: CounterId, slice_start: TimestampMs, delta: i64) {
        let row = self.index.entry(
            hash(counter, slice_start),
            |at| {
                deltas.get(*at as usize).is_some_and(|d| d.counter == counter && d.slice_start == slice_start)
            },
            |at| deltas.get(*at as usize).map_or(0, |d| hash(d.counter, d.slice_start)),
        );
        match row {
            Slot::Occupied(at) => {
                if let Some(row) = deltas.get_mut(*at.get() as usize) {
                    row.sum = row.sum.add_delta(delta);
                    row.events += 1;
                }
            }
            Slot::Vacant(place) => {
                place.insert(deltas.len() as u32);
                deltas.push(Delta { counter, slice_start, sum: Sum::default().add_delta(delta), events: 1 });
            }
        }
    }
}

/// Mixes a counter and a slice (the finaliser of SplitMix64, Steele et al. 2014, over both).
const fn hash(counter: CounterId, slice_start: TimestampMs) -> u64 {
    let mut word = (counter.0 as u64) ^ (slice_start.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
