//! Reading cells: the working set and the cold store as one view.
//!
//! ```text
//!   cold store, in key order ──┐
//!                              ├─ merge by (slice, key) ──► ids; values from the working set where it has them
//!   changed since the flush ───┘
//! ```
//!
//! A window that is complete in the working set is not read, and an expired one is not looked for on disk: its cells
//! may still be there until the next flush.

use hashbrown::HashSet;
use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::processor::{Cell, CellId, CellOrder, CounterId, Table};
use tallyflow_core::time::TimestampMs;

use super::CellStore;
use crate::cold::ColdError;
use crate::keys::{CellKey, window_prefix};

impl CellStore {
    /// Takes in every cell that is not here yet, with one read.
    pub(super) fn load_missing(&mut self, ids: &[CellId]) -> Result<(), ColdError> {
        self.not_broken()?;
        let (mut asked, mut missing) = (HashSet::new(), Vec::new());
        for id in ids {
            if self.working.get(*id).is_some() {
                continue;
            }
            if self.hides(id.table, id.start) || self.is_complete(id.table, id.start)? {
                self.reopen_before(id.table, id.start);
                self.working.insert_clean(*id, Cell::default());
            } else if asked.insert(*id) {
                missing.push(*id);
            }
        }
        if missing.is_empty() { Ok(()) } else { self.load_cold(missing) }
    }

    /// Reads cells, and marks windows that were expired as windows that may be written again.
    fn load_cold(&mut self, ids: Vec<CellId>) -> Result<(), ColdError> {
        let mut keyed = Vec::with_capacity(ids.len());
        for id in ids {
            let mut bytes = Vec::new();
            self.cold_key(id)?.write(&mut bytes);
            keyed.push((bytes, id));
        }
        keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let keys: Vec<&[u8]> = keyed.iter().map(|(bytes, _)| bytes.as_slice()).collect();
        let mut found = Vec::with_capacity(keys.len());
        self.cold.get_cells(&keys, &mut found)?;
        if found.len() != keyed.len() {
            return Err(ColdError::Other("the cold store did not answer for every cell".to_owned()));
        }
        for ((_, id), cell) in keyed.iter().zip(found) {
            self.reopen_before(id.table, id.start);
            self.working.insert_clean(*id, cell.unwrap_or_default());
        }
        Ok(())
    }

    /// Whether all cells of a window are in the working set. A window that is looked at for the first time is, if
    /// the cold store has none of it.
    fn is_complete(&mut self, table: Table, start: TimestampMs) -> Result<bool, ColdError> {
        if let Some(complete) = self.working.completeness(table, start) {
            return Ok(complete);
        }
        let before = TimestampMs(start.0.saturating_sub(1));
        // The first instant there is has none before it: it is read.
        let complete = before < start && self.next_cold(table, before)? != Some(start);
        self.working.begin(table, start, complete);
        Ok(complete)
    }

    /// Whether cells of this window that are still on disk are gone in truth.
    fn hides(&self, table: Table, start: TimestampMs) -> bool {
        let number = self.number(table).ok();
        self.expired
            .iter()
            .any(|range| Some(range.table) == number && range.before.is_none_or(|end| start < end))
    }

    /// The smallest start above `after` that has cells, on disk or changed.
    pub(super) fn next_merged(
        &mut self,
        table: Table,
        after: TimestampMs,
    ) -> Result<Option<TimestampMs>, ColdError> {
        self.not_broken()?;
        let number = self.number(table)?;
        let hidden =
            self.expired.iter().filter(|range| range.table == number).filter_map(|range| range.before);
        // Nothing on disk below the newest pending expiry counts.
        let visible_after = hidden.max().map_or(after, |end| end.minus(1).max(after));
        let cold = self.next_cold(table, visible_after)?;
        let changed = self.working.next_changed_start(table, after);
        Ok(cold.into_iter().chain(changed).min())
    }

    /// Asks the cold store, unless the last answer says it all.
    fn next_cold(&mut self, table: Table, after: TimestampMs) -> Result<Option<TimestampMs>, ColdError> {
        if let Some((asked, answer)) = self.next_cold.get(&table)
            && *asked <= after
            && answer.is_none_or(|answer| after < answer)
        {
            return Ok(*answer);
        }
        let answer = self.cold.next_start(self.number(table)?, after)?;
        self.next_cold.insert(table, (after, answer));
        Ok(answer)
    }

    /// The cells of a window after `after`, in order, at most `limit`; loads them.
    pub(super) fn scan_merged(
        &mut self,
        table: Table,
        start: TimestampMs,
        after: Option<&CellOrder>,
        limit: usize,
        out: &mut Vec<CellId>,
    ) -> Result<(), ColdError> {
        self.not_broken()?;
        let rows = if self.hides(table, start) {
            Vec::new()
        } else {
            self.scan_cold(self.number(table)?, start, after, limit)?
        };
        let mut cold: Vec<CounterId> = Vec::with_capacity(rows.len());
        for (bytes, cell) in &rows {
            let key = CellKey::read(bytes).map_or(&[][..], |key| key.key);
            let counter = self.interner.intern(key);
            self.working.insert_clean(CellId { table, start, counter }, *cell);
            cold.push(counter);
        }
        let after = after.map(|order| (order.slice, order.key.as_slice()));
        let mut changed = self.working.changed(table, start, after, &self.interner).peekable();
        let mut cold = cold.into_iter().peekable();
        for _ in 0..limit {
            // A cell on both sides is one cell: numbers are equal where keys are.
            let next = match (cold.peek().copied(), changed.peek().copied()) {
                (Some(a), Some(b)) if self.interner.order(b) < self.interner.order(a) => b,
                (Some(a), _) => a,
                (None, Some(b)) => b,
                (None, None) => break,
            };
            cold.next_if_eq(&next);
            changed.next_if_eq(&next);
            out.push(CellId { table, start, counter: next });
        }
        Ok(())
    }

    /// Cells of a window on disk, slice after slice.
    fn scan_cold(
        &self,
        number: u8,
        start: TimestampMs,
        after: Option<&CellOrder>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Cell)>, ColdError> {
        let mut rows = Vec::new();
        for slice in after.map_or(0, |order| order.slice)..HASH_SLICES {
            let prefix = window_prefix(slice, number, start);
            let key = after.filter(|order| order.slice == slice).map(|order| {
                let mut bytes = Vec::new();
                CellKey { slice, table: number, start, key: &order.key }.write(&mut bytes);
                bytes
            });
            let room = limit.saturating_sub(rows.len());
            if room == 0 {
                break;
            }
            self.cold.scan_cells(&prefix, key.as_deref(), room, &mut rows)?;
        }
        Ok(rows)
    }
}
