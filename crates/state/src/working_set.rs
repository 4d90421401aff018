//! The working set: the cells in memory, what is uncommitted of them, and what the cold store does not know yet.
//!
//! ```text
//!            add               commit              flush
//!   clean ────────► touched ────────────► dirty ────────────► clean
//!                      └──── abort: the value of the last commit ────► as before
//! ```
//!
//! Cells are kept by window, so that a whole window goes at once. A window knows which of its cells changed since the
//! last flush, in [`CellOrder`] when asked, and whether it is *complete*: every cell of it that is on disk is also
//! here, so nothing needs to be read for it. A window that begins while it has no cells on disk is complete from the
//! start; most are.
//!
//! Keeps: EO-1 (the values for a flush are committed ones).
//!
//! Must not know: the cold store.
//!
//! [`CellOrder`]: tallyflow_core::processor::CellOrder

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hashbrown::HashMap;
use tallyflow_core::processor::{Cell, CellId, CounterId, Table};
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;

use crate::interner::Interner;

/// The cells in memory.
#[derive(Default)]
pub(crate) struct WorkingSet {
    windows: BTreeMap<(Table, TimestampMs), Window>,
    /// The first change of each cell since the last commit, with the value before, oldest first.
    undo: Vec<(CellId, Cell)>,
    /// Cells whose committed value is not on disk.
    dirty: Vec<CellId>,
}

#[derive(Default)]
struct Window {
    cells: HashMap<CounterId, Slot>,
    /// Cells that changed since the last flush, aborted changes included; the first `sorted` are in order.
    changed: Vec<CounterId>,
    sorted: bool,
    complete: bool,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    cell: Cell,
    /// Changed since the last commit.
    touched: bool,
    /// The committed value is not on disk.
    dirty: bool,
    /// Named in the window's `changed`.
    listed: bool,
}

impl WorkingSet {
    /// The value of a cell that is here.
    pub(crate) fn get(&self, id: CellId) -> Option<Cell> {
        Some(self.windows.get(&(id.table, id.start))?.cells.get(&id.counter)?.cell)
    }

    /// Whether a window is here, and if so whether it is complete.
    pub(crate) fn completeness(&self, table: Table, start: TimestampMs) -> Option<bool> {
        self.windows.get(&(table, start)).map(|window| window.complete)
    }

    /// Begins a window, unless it is here.
    pub(crate) fn begin(&mut self, table: Table, start: TimestampMs, complete: bool) {
        if let Entry::Vacant(vacant) = self.windows.entry((table, start)) {
            vacant.insert(Window { complete, ..Window::default() });
        }
    }

    /// Takes in a cell as it is on disk (or is not), unless it is here.
    pub(crate) fn insert_clean(&mut self, id: CellId, cell: Cell) {
        let window = self.windows.entry((id.table, id.start)).or_default();
        window.cells.entry(id.counter).or_insert(Slot { cell, ..Slot::default() });
    }

    /// Adds to a cell, provisionally. Returns the value before; `None` if the cell is not here.
    pub(crate) fn add(&mut self, id: CellId, sum: Sum, events: u64) -> Option<Cell> {
        let window = self.windows.get_mut(&(id.table, id.start))?;
        let slot = window.cells.get_mut(&id.counter)?;
        let before = slot.cell;
        slot.cell = Cell { sum: before.sum.add(sum), events: before.events.saturating_add(events) };
        if !slot.touched {
            slot.touched = true;
            self.undo.push((id, before));
        }
        if !slot.listed {
            slot.listed = true;
            window.sorted = false;
            window.changed.push(id.counter);
        }
        Some(before)
    }

    /// Sets a cell to a committed value that is not on disk.
    pub(crate) fn set_committed(&mut self, id: CellId, cell: Cell) {
        let window = self.windows.entry((id.table, id.start)).or_default();
        let slot = window.cells.entry(id.counter).or_default();
        slot.cell = cell;
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push(id);
        }
        if !slot.listed {
            slot.listed = true;
            window.sorted = false;
            window.changed.push(id.counter);
        }
    }

    /// Whether anything changed since the last commit.
    pub(crate) const fn has_uncommitted(&self) -> bool {
        !self.undo.is_empty()
    }

    /// Keeps the changes since the last commit.
    pub(crate) fn commit(&mut self) {
        for (id, _) in self.undo.drain(..) {
            if let Some(slot) = slot_mut(&mut self.windows, id) {
                slot.touched = false;
                if !slot.dirty {
                    slot.dirty = true;
                    self.dirty.push(id);
                }
            }
        }
    }

    /// Takes back the changes since the last commit.
    pub(crate) fn abort(&mut self) {
        for (id, before) in self.undo.drain(..) {
            if let Some(slot) = slot_mut(&mut self.windows, id) {
                slot.cell = before;
                slot.touched = false;
            }
        }
    }

    /// Cells whose value in memory is not on disk. Call it without uncommitted changes only.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = (CellId, Cell)> {
        self.dirty.iter().filter_map(|id| Some((*id, self.get(*id)?)))
    }

    /// How many cells are dirty, those of expired windows included.
    pub(crate) const fn dirty_len(&self) -> usize {
        self.dirty.len()
    }

    /// Everything that was dirty is on disk now.
    pub(crate) fn flushed(&mut self) {
        for id in self.dirty.drain(..) {
            if let Some(slot) = slot_mut(&mut self.windows, id) {
                slot.dirty = false;
            }
        }
        for window in self.windows.values_mut().filter(|window| !window.changed.is_empty()) {
            for counter in window.changed.drain(..) {
                if let Some(slot) = window.cells.get_mut(&counter) {
                    slot.listed = false;
                }
            }
        }
    }

    /// Drops the windows of a table that start before `before`.
    pub(crate) fn expire(&mut self, table: Table, before: TimestampMs) {
        let range = (table, TimestampMs::MIN)..(table, before);
        let gone: Vec<_> = self.windows.range(range).map(|(window, _)| *window).collect();
        gone.iter().for_each(|window| drop(self.windows.remove(window)));
        if !gone.is_empty() {
            self.dirty.retain(|id| id.table != table || id.start >= before);
        }
    }

    /// The changed cells of a window that exist and stand after `after`, in order.
    pub(crate) fn changed<'a>(
        &'a mut self,
        table: Table,
        start: TimestampMs,
        after: Option<(u8, &[u8])>,
        interner: &'a Interner,
    ) -> impl Iterator<Item = CounterId> + use<'a> {
        let window = self.windows.get_mut(&(table, start)).map(|window| {
            if !window.sorted {
                // Mostly sorted already: the stable sort finds the runs.
                window.changed.sort_by(|a, b| interner.order(*a).cmp(&interner.order(*b)));
                window.sorted = true;
            }
            &*window
        });
        let list = window.map_or(&[][..], |window| &window.changed);
        let from = after.map_or(0, |after| list.partition_point(|c| interner.order(*c) <= after));
        let rest = list.get(from..).unwrap_or(&[]).iter().copied();
        rest.filter(move |counter| window.is_some_and(|window| window.exists(*counter)))
    }

    /// The smallest start above `after` of a window with a changed cell that exists.
    pub(crate) fn next_changed_start(&self, table: Table, after: TimestampMs) -> Option<TimestampMs> {
        let from = TimestampMs(after.0.checked_add(1)?);
        let mut windows = self.windows.range((table, from)..=(table, TimestampMs(i64::MAX)));
        let found = windows.find(|(_, window)| window.changed.iter().any(|c| window.exists(*c)));
        found.map(|((_, start), _)| *start)
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        let windows = self.windows.values().map(|window| {
            size_of::<Window>()
                + window.cells.allocation_size()
                + window.changed.capacity() * size_of::<CounterId>()
        });
        windows.sum::<usize>()
            + self.undo.capacity() * size_of::<(CellId, Cell)>()
            + self.dirty.capacity() * size_of::<CellId>()
    }
}

impl Window {
    fn exists(&self, counter: CounterId) -> bool {
        self.cells.get(&counter).is_some_and(|slot| slot.cell.events > 0)
    }
}

fn slot_mut(windows: &mut BTreeMap<(Table, TimestampMs), Window>, id: CellId) -> Option<&mut Slot> {
    windows.get_mut(&(id.table, id.start))?.cells.get_mut(&id.counter)
}
