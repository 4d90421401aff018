//! What one transaction did, until it is known whether it counts: the cells it touched and the rows it said.
//!
//! Nothing of it reaches the schedule or the committed cursors before the commit, so an abort drops it and is done.

use std::collections::BTreeMap;

use hashbrown::hash_map::{Entry, HashMap};
use tallyflow_core::ids::NextOffset;
use tallyflow_core::processor::CellId;

/// The changes of the open transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    touched: Vec<Touch>,
    positions: HashMap<CellId, Position>,
    said: Vec<(CellId, Said)>,
    /// How many of the rows said ended a wait since each offset.
    pub(crate) waits_ended: BTreeMap<NextOffset, usize>,
    /// The steady clock of its rows.
    pub(crate) steady_ms: u64,
}

/// A cell it touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) cell: CellId,
    /// Whether the cell existed before the transaction.
    pub(crate) existed: bool,
    /// Where the first change is, or below.
    pub(crate) from: NextOffset,
}

/// How a row was said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    /// As an update: the next one after the pace.
    Update,
    /// As a final or a correction.
    Closed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Position {
    touched: bool,
    said: bool,
}

impl Transaction {
    /// A cell was added to. Only its first touch is kept.
    pub(crate) fn touch(&mut self, touch: Touch) {
        let position = self.positions.entry(touch.cell).or_default();
        if !position.touched {
            position.touched = true;
            self.touched.push(touch);
        }
    }

    /// A row of the cell goes out. `waited_since` is the offset since which it waited before this transaction.
    pub(crate) fn say(&mut self, cell: CellId, how: Said, waited_since: Option<NextOffset>) {
        self.positions.entry(cell).or_default().said = true;
        self.said.push((cell, how));
        if let Some(at) = waited_since {
            *self.waits_ended.entry(at).or_default() += 1;
        }
    }

    /// Whether a row of the cell goes out with this transaction.
    pub(crate) fn has_said(&self, cell: CellId) -> bool {
        self.positions.get(&cell).is_some_and(|position| position.said)
    }

    /// The cells it touched, in the order of first touch.
    pub(crate) fn touched(&self) -> &[Touch] {
        &self.touched
    }

    /// The touched cells of which no row goes out.
    pub(crate) fn unsaid(&self) -> impl Iterator<Item = &Touch> {
        self.touched.iter().filter(|touch| !self.has_said(touch.cell))
    }

    /// The rows said, in order.
    pub(crate) fn said(&self) -> &[(CellId, Said)] {
        &self.said
    }

    /// Whether it touched or said nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.touched.is_empty() && self.said.is_empty()
    }

    /// Starts over, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.touched.clear();
        self.positions.clear();
        self.said.clear();
        self.waits_ended.clear();
    }
}

/// Sums added to cells, one row a cell, in the order of first touch. Reused from merge to merge.
#[derive(Debug, Default)]
pub(crate) struct Additions {
    positions: HashMap<CellId, usize>,
    /// The cells.
    pub(crate) cells: Vec<CellId>,
    /// What each gets, in the same order.
    pub(crate) amounts: Vec<(tallyflow_core::sum::Sum, u64)>,
}

impl Additions {
    /// Adds to a cell's row.
    pub(crate) fn add(&mut self, cell: CellId, sum: tallyflow_core::sum::Sum, events: u64) {
        match self.positions.entry(cell) {
            Entry::Vacant(place) => {
                place.insert(self.cells.len());
                self.cells.push(cell);
                self.amounts.push((sum, events));
            }
            Entry::Occupied(at) => {
                if let Some(amount) = self.amounts.get_mut(*at.get()) {
                    *amount = (amount.0.add(sum), amount.1.saturating_add(events));
                }
            }
        }
    }

    /// Starts over, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.positions.clear();
        self.cells.clear();
        self.amounts.clear();
    }
}
