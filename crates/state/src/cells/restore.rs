//! Restores and snapshots: cells as rows, in and out.
//!
//! What a restore brings is committed already, so it needs no undo; a snapshot is read from disk only, so that it is
//! exactly what the last flush's progress stands for.

use tallyflow_core::processor::{Cell, CellId, Table};
use tallyflow_core::time::TimestampMs;

use super::CellStore;
use crate::cold::ColdError;
use crate::keys::{CellKey, TOTALS_TABLE};

/// How many cells a snapshot reads at a time.
const SNAPSHOT_CELLS: usize = 4096;

/// A cell with everything that names it, as restores write and snapshots read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellRow<'a> {
    /// The encoded counter key.
    pub key: &'a [u8],
    /// The table.
    pub table: Table,
    /// Start of the window; 0 for totals.
    pub start: TimestampMs,
    /// The value.
    pub cell: Cell,
}

impl CellStore {
    /// Sets cells from state frames: committed at once, on disk with the next flush. Reads nothing. Rows without
    /// events are passed over.
    ///
    /// # Errors
    ///
    /// [`ColdError::Invariant`] while anything is uncommitted, or for a table that the plan does not have.
    pub fn put_restored(&mut self, rows: &[CellRow<'_>]) -> Result<(), ColdError> {
        self.only_committed("a restore")?;
        for row in rows.iter().filter(|row| row.cell.events > 0) {
            self.number(row.table)?;
            self.reopen_before(row.table, row.start);
            let counter = self.interner.intern(row.key);
            self.working.set_committed(CellId { table: row.table, start: row.start, counter }, row.cell);
        }
        Ok(())
    }

    /// Adds the sums of delta frames: one read for all rows, committed at once, on disk with the next flush.
    ///
    /// # Errors
    ///
    /// [`ColdError::Invariant`] while anything is uncommitted, or where the cold store could not be read: nothing
    /// was added then.
    pub fn add_restored(&mut self, rows: &[CellRow<'_>]) -> Result<(), ColdError> {
        self.only_committed("a restore")?;
        let ids: Vec<CellId> = rows
            .iter()
            .map(|row| CellId { table: row.table, start: row.start, counter: self.interner.intern(row.key) })
            .collect();
        self.load_missing(&ids)?;
        for (id, row) in ids.iter().zip(rows) {
            self.working.add(*id, row.cell.sum, row.cell.events);
        }
        self.commit();
        Ok(())
    }

    /// Calls `f` with every cell of a hash slice in order of (number of the table, start, key), as of the last
    /// flush.
    ///
    /// # Errors
    ///
    /// [`ColdError::Invariant`] unless everything is committed and flushed: the rows would not be those of the
    /// caller's progress. Or where the cold store could not be read; `f` has seen a part then.
    pub fn snapshot(&mut self, slice: u8, f: &mut dyn FnMut(CellRow<'_>)) -> Result<(), ColdError> {
        self.only_committed("a snapshot")?;
        if self.dirty_len() > 0 || !self.expired.is_empty() {
            return Err(ColdError::Invariant("a snapshot was asked for before a flush".to_owned()));
        }
        let mut after: Option<Vec<u8>> = None;
        loop {
            let mut rows = Vec::new();
            self.cold.scan_cells(&[slice], after.as_deref(), SNAPSHOT_CELLS, &mut rows)?;
            for (bytes, cell) in &rows {
                let key = CellKey::read(bytes);
                let (table, key) =
                    key.and_then(|key| Some((self.table_of(key.table)?, key))).ok_or_else(|| {
                        ColdError::Damaged("a cell on disk belongs to no window table".to_owned())
                    })?;
                f(CellRow { key: key.key, table, start: key.start, cell: *cell });
            }
            match rows.pop() {
                Some((last, _)) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// The table with a stable number.
    fn table_of(&self, number: u8) -> Option<Table> {
        if number == TOTALS_TABLE {
            return Some(Table::TOTALS);
        }
        let position = self.numbers.iter().position(|n| *n == number)?;
        u8::try_from(position).ok().map(Table)
    }

    /// A window that was expired gets cells again: the next expiry must cover it once more.
    pub(super) fn reopen_before(&mut self, table: Table, start: TimestampMs) {
        if self.expired_before.get(&table).is_some_and(|end| start < *end) {
            self.expired_before.remove(&table);
        }
    }
}
