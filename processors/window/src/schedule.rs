//! When a changed row may be said again: at most one update per cell and `emit`.
//!
//! ```text
//!              said                    emit over, changed meanwhile
//!   (free) ─────────► cooling ────────────────────────────► ready
//!     ▲                  │ ▲                                  │
//!     └──────────────────┘ └──────────────────────────────────┘
//!       emit over, unchanged              said
//! ```
//!
//! Holds only what is committed: a transaction's changes come in by [`Schedule::changed`], [`Schedule::said`] and
//! [`Schedule::close`] once it was committed. Time may move it at any moment ([`Schedule::tick`]): that is no change
//! that an abort would have to undo. Every queue is in the order of time, so nothing here is searched or sorted.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::processor::CellId;

/// The pace of all cells of a task.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    slots: HashMap<CellId, Slot>,
    /// Cells that changed and may be said, longest waiting first. Cells that were closed meanwhile are passed over.
    ready: VecDeque<CellId>,
    /// Per pace (milliseconds): when each cell may be said again.
    cooling: BTreeMap<u64, VecDeque<(u64, CellId)>>,
    /// How many cells wait since each offset.
    waiting: BTreeMap<NextOffset, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Since when its last row is out of date.
    changed_at: Option<NextOffset>,
    /// Whether it is in `ready`; in `cooling` otherwise.
    ready: bool,
}

impl Schedule {
    /// Lets the steady clock reach `now_ms`.
    pub(crate) fn tick(&mut self, now_ms: u64) {
        for queue in self.cooling.values_mut() {
            while let Some((_, cell)) = queue.pop_front_if(|(due_ms, _)| *due_ms <= now_ms) {
                let Entry::Occupied(mut slot) = self.slots.entry(cell) else {
                    continue;
                };
                if slot.get().changed_at.is_some() {
                    slot.get_mut().ready = true;
                    self.ready.push_back(cell);
                } else {
                    slot.remove();
                }
            }
        }
    }

    /// Whether the cell was said less than its pace ago, or waits already.
    pub(crate) fn holds(&self, cell: CellId) -> bool {
        self.slots.contains_key(&cell)
    }

    /// Since when the cell waits.
    pub(crate) fn waits_since(&self, cell: CellId) -> Option<NextOffset> {
        self.slots.get(&cell).and_then(|slot| slot.changed_at)
    }

    /// The cells that may be said now, longest waiting first.
    pub(crate) fn ready(&self) -> impl Iterator<Item = CellId> {
        self.ready.iter().copied().filter(|cell| self.slots.get(cell).is_some_and(|slot| slot.ready))
    }

    /// A cell changed and was not said.
    pub(crate) fn changed(&mut self, cell: CellId, at: NextOffset) {
        match self.slots.entry(cell) {
            Entry::Vacant(place) => {
                place.insert(Slot { changed_at: Some(at), ready: true });
                self.ready.push_back(cell);
                *self.waiting.entry(at).or_default() += 1;
            }
            Entry::Occupied(mut slot) if slot.get().changed_at.is_none() => {
                slot.get_mut().changed_at = Some(at);
                *self.waiting.entry(at).or_default() += 1;
            }
            Entry::Occupied(_) => {} // it waits since an earlier offset
        }
    }

    /// A cell was said at `now_ms`: the next time after `pace_ms`.
    pub(crate) fn said(&mut self, cell: CellId, now_ms: u64, pace_ms: u64) {
        self.close(cell);
        self.slots.insert(cell, Slot { changed_at: None, ready: false });
        self.cooling.entry(pace_ms).or_default().push_back((now_ms.saturating_add(pace_ms), cell));
    }

    /// A cell is said no more by the clock: it is final.
    pub(crate) fn close(&mut self, cell: CellId) {
        let Some(at) = self.slots.remove(&cell).and_then(|slot| slot.changed_at) else {
            return;
        };
        if let Some(count) = self.waiting.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&at);
            }
        }
    }

    /// Passes over what is not ready any more at the head of the queue.
    pub(crate) fn settle(&mut self) {
        let slots = &self.slots;
        while self.ready.pop_front_if(|cell| !slots.get(cell).is_some_and(|slot| slot.ready)).is_some() {}
    }

    /// The smallest offset since which a cell waits, leaving out as many as `said` names of each.
    pub(crate) fn waiting_from(&self, said: &BTreeMap<NextOffset, usize>) -> Option<NextOffset> {
        let left = self.waiting.iter().find(|(at, count)| said.get(*at).unwrap_or(&0) < *count);
        left.map(|(at, _)| *at)
    }

    /// Cells that wait.
    pub(crate) fn waiting_len(&self) -> usize {
        self.waiting.values().sum()
    }

    /// When the clock may make something ready: 0 if something is.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        if self.ready().next().is_some() {
            return Some(0);
        }
        if self.waiting.is_empty() {
            return None;
        }
        self.cooling.values().filter_map(|queue| queue.front().map(|(due_ms, _)| *due_ms)).min()
    }
}
