//! What goes out with a commit, in this order: finals by the cursors, what is not held back, updates whose time has
//! come. The order matters: what the cursor passes must not be said as an update too.
//!
//! Keeps: WN-1 (one row per key and commit).

use tallyflow_core::processor::{CellId, Cells, StateUnavailable};

use crate::cursor::first_not_due;
use crate::emission::{Due, RowSink, Saying, Taken, emit};
use crate::transaction::{Said, Touch};
use crate::window::Window;

impl Window {
    /// The finals that the cursors come to, at most `limit`; returns how many.
    pub(crate) fn say_finals(
        &mut self,
        limit: usize,
        due: &Due,
        view: &mut dyn Cells,
        sink: &mut dyn RowSink,
        taken: &mut Taken,
    ) -> Result<usize, StateUnavailable> {
        let Some(clock) = due.complete_through else {
            return Ok(0);
        };
        let Self { tables, schedule, transaction, cells, .. } = self;
        let mut passed = 0;
        for table in tables {
            cells.clear();
            let until = first_not_due(table.size, table.grace_ms, clock);
            let place = (table.table, table.size);
            let arrived = table.moved.advance(place, until, limit.saturating_sub(passed), view, cells)?;
            taken.more |= !arrived;
            passed += cells.len();
            for cell in cells.iter() {
                let window = Some((&*table.name, table.size.end_of(cell.start)));
                taken.rows += emit(*cell, Saying::FINAL_BY_CURSOR, window, due, view, sink);
                transaction.say(*cell, Said::Closed, schedule.waits_since(*cell));
            }
        }
        Ok(passed)
    }

    /// What is not held back: rows behind the cursor, and first updates.
    pub(crate) fn say_touched(
        &mut self,
        due: &Due,
        view: &dyn Cells,
        sink: &mut dyn RowSink,
        taken: &mut Taken,
    ) {
        for at in 0..self.transaction.touched().len() {
            let Some(touch) = self.transaction.touched().get(at).copied() else {
                break;
            };
            let Some(saying) = self.saying(&touch, view.key(touch.cell.counter)) else {
                continue;
            };
            self.say(touch.cell, saying, due, view, sink, taken);
        }
    }

    /// What has to be said of a touched cell at once.
    fn saying(&self, touch: &Touch, key: &[u8]) -> Option<Saying> {
        if self.transaction.has_said(touch.cell) {
            return None;
        }
        if let Some(table) = self.of(touch.cell.table) {
            if table.committed.has_passed(touch.cell.start, key) {
                return Some(Saying::behind(touch.existed));
            }
            // The view's scan shows every cell that exists, so this is a cell it lost: say it rather than nothing.
            if table.moved.has_passed(touch.cell.start, key) {
                return Some(Saying::FINAL_BY_CURSOR);
            }
            table.pace_ms?;
        }
        if touch.existed { None } else { Some(Saying::UPDATE) }
    }

    /// The updates whose time has come, at most `limit`: those that wait, then cells of this transaction that were
    /// not said lately.
    pub(crate) fn say_ready(
        &mut self,
        limit: usize,
        due: &Due,
        view: &mut dyn Cells,
        sink: &mut dyn RowSink,
        taken: &mut Taken,
    ) -> Result<(), StateUnavailable> {
        let mut cells = std::mem::take(&mut self.cells);
        cells.clear();
        let fresh = self.transaction.touched().iter().map(|touch| touch.cell);
        let fresh = fresh.filter(|cell| !self.schedule.holds(*cell) && self.pace_of(*cell).is_some());
        let mut ready = self.schedule.ready().chain(fresh).filter(|cell| !self.transaction.has_said(*cell));
        cells.extend(ready.by_ref().take(limit));
        taken.more |= ready.next().is_some();
        drop(ready);
        let loaded = view.load(&cells);
        if loaded.is_ok() {
            for cell in &cells {
                self.say(*cell, Saying::UPDATE, due, view, sink, taken);
            }
        }
        self.cells = cells;
        loaded
    }

    fn say(
        &mut self,
        cell: CellId,
        saying: Saying,
        due: &Due,
        view: &dyn Cells,
        sink: &mut dyn RowSink,
        taken: &mut Taken,
    ) {
        let window = self.of(cell.table).map(|table| (&*table.name, table.size.end_of(cell.start)));
        taken.rows += emit(cell, saying, window, due, view, sink);
        let how = if saying == Saying::UPDATE { Said::Update } else { Said::Closed };
        self.transaction.say(cell, how, self.schedule.waits_since(cell));
    }
}
