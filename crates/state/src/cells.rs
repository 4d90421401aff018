//! Cells and totals: a working set over the cold store.
//!
//! ```text
//!   load ── one sorted read of what is missing ──► working set ◄── add (provisional)
//!   scan, next_start = cold store merged with what changed since the last flush; the working set's values win
//!   flush(progress)  = expired windows, committed changes and progress, as one batch ──► cold store
//! ```
//!
//! Expired windows vanish from view at once and from disk with the next flush. A cell without events does not exist.
//!
//! Keeps: EO-1 (a flush is refused while anything is uncommitted), LG-2 (a cell is read before it is added to).
//!
//! Must not know: when to flush, expire or evict; what the progress says; Kafka.

use std::collections::BTreeMap;
use std::sync::Arc;

use tallyflow_core::processor::{Cell, CellId, CellOrder, Cells, CounterId, StateUnavailable, Table};
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;

use crate::cold::{CellBatch, ColdError, ColdStore, WindowRange};
use crate::interner::Interner;
use crate::keys::{CellKey, TOTALS_TABLE};
use crate::tables;
use crate::working_set::WorkingSet;

mod read;
mod restore;

pub use restore::CellRow;

/// Cells and totals. Provisional until `commit`; `abort` goes back to the last commit.
pub struct CellStore {
    cold: Arc<dyn ColdStore>,
    /// The stable number of each window table, by position.
    numbers: Vec<u8>,
    interner: Interner,
    working: WorkingSet,
    /// Windows that are gone, but not from disk yet.
    expired: Vec<WindowRange>,
    /// Nothing of a table starts before this, on disk or, until the next flush, in truth.
    expired_before: BTreeMap<Table, TimestampMs>,
    /// What the cold store answered last when asked for the next window: (asked after, answer). Its windows change
    /// with a flush only.
    next_cold: BTreeMap<Table, (TimestampMs, Option<TimestampMs>)>,
    budget_bytes: u64,
    /// A cell was changed before it was loaded: nothing may be committed.
    broken: bool,
    last_error: Option<ColdError>,
}

impl CellStore {
    /// Opens the cells of a task.
    ///
    /// `tables` are the names of the plan's windows, in order: [`Table`] is a position in it. A table is found again
    /// by its name wherever it stands; the cells of one that is gone are deleted. `budget_bytes` bounds the working
    /// set, see [`CellStore::evict`].
    ///
    /// # Errors
    ///
    /// Where the cold store could not be read or written, or its list of tables is not readable.
    pub fn open(cold: Arc<dyn ColdStore>, tables: &[&str], budget_bytes: u64) -> Result<Self, ColdError> {
        let resolved = tables::resolve(cold.tables()?.as_deref(), tables)?;
        if resolved.changed.is_some() {
            let all = |table: &u8| WindowRange { table: *table, from: TimestampMs::MIN, before: None };
            let deletes = resolved.gone.iter().map(all).collect();
            cold.apply(&CellBatch { deletes, tables: resolved.changed, ..CellBatch::default() })?;
        }
        Ok(Self {
            cold,
            numbers: resolved.numbers,
            interner: Interner::default(),
            working: WorkingSet::default(),
            expired: Vec::new(),
            expired_before: BTreeMap::new(),
            next_cold: BTreeMap::new(),
            budget_bytes,
            broken: false,
            last_error: None,
        })
    }

    /// The id of an encoded counter key, valid until [`CellStore::evict`] says otherwise.
    pub fn intern(&mut self, key: &[u8]) -> CounterId {
        self.interner.intern(key)
    }

    /// Keeps the changes since the last commit. Call it after the Kafka commit. Touches nothing on disk.
    pub fn commit(&mut self) {
        self.working.commit();
    }

    /// Goes back to the last commit.
    pub fn abort(&mut self) {
        self.working.abort();
        self.broken = false;
    }

    /// Whether anything changed since the last commit.
    pub const fn has_uncommitted(&self) -> bool {
        self.working.has_uncommitted()
    }

    /// Writes everything that is committed and not on disk, with the progress it stands for, as one batch. It is
    /// durable after [`ColdStore::flush`], and may be earlier.
    ///
    /// # Errors
    ///
    /// [`ColdError::Invariant`] while anything is uncommitted (EO-1), or where the cold store could not be written:
    /// nothing was, and the next flush takes it along.
    pub fn flush(&mut self, progress: &[u8]) -> Result<(), ColdError> {
        self.only_committed("a flush")?;
        let mut puts = Vec::with_capacity(self.working.dirty_len());
        for (id, cell) in self.working.dirty().filter(|(_, cell)| cell.events > 0) {
            let mut bytes = Vec::new();
            self.cold_key(id)?.write(&mut bytes);
            puts.push((bytes, cell));
        }
        puts.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let deletes = self.expired.clone();
        self.cold.apply(&CellBatch { deletes, puts, tables: None, progress: Some(progress.to_vec()) })?;
        self.working.flushed();
        self.expired.clear();
        self.next_cold.clear();
        Ok(())
    }

    /// Drops every cell of a table's windows that start before `before`: from view now, from disk with the next
    /// flush.
    ///
    /// # Errors
    ///
    /// [`ColdError::Invariant`] while anything is uncommitted, or for the totals, which never expire.
    pub fn expire(&mut self, table: Table, before: TimestampMs) -> Result<(), ColdError> {
        self.only_committed("an expiry")?;
        if table == Table::TOTALS {
            return Err(ColdError::Invariant("totals do not expire".to_owned()));
        }
        let number = self.number(table)?;
        let from = self.expired_before.get(&table).copied().unwrap_or(TimestampMs::MIN);
        if before > from {
            self.working.expire(table, before);
            // Each range begins where the last one ended: nested ranges cost the cold store their square.
            self.expired.push(WindowRange { table: number, from, before: Some(before) });
            self.expired_before.insert(table, before);
        }
        Ok(())
    }

    /// If over the budget: drops every cell that is on disk, and numbers the counters of the others anew. `true`
    /// means that every [`CounterId`] given out before is invalid. It helps most right after a flush.
    ///
    /// # Errors
    ///
    /// [`ColdError::Invariant`] while anything is uncommitted.
    pub fn evict(&mut self) -> Result<bool, ColdError> {
        self.only_committed("an eviction")?;
        if self.memory_bytes() <= self.budget_bytes {
            return Ok(false);
        }
        let (mut interner, mut working) = (Interner::default(), WorkingSet::default());
        for (id, cell) in self.working.dirty() {
            let counter = interner.intern(self.interner.key(id.counter));
            working.set_committed(CellId { counter, ..id }, cell);
        }
        (self.interner, self.working) = (interner, working);
        Ok(true)
    }

    /// Bytes of the working set.
    pub fn memory_bytes(&self) -> u64 {
        (self.interner.memory_bytes() + self.working.memory_bytes()) as u64
    }

    /// Cells that the next flush writes.
    pub const fn dirty_len(&self) -> usize {
        self.working.dirty_len()
    }

    /// The error behind the last [`StateUnavailable`]: the trait of the processors carries only its words.
    pub const fn take_error(&mut self) -> Option<ColdError> {
        self.last_error.take()
    }

    /// Refuses `what` while anything is uncommitted or wrong.
    fn only_committed(&self, what: &str) -> Result<(), ColdError> {
        self.not_broken()?;
        if self.has_uncommitted() {
            return Err(ColdError::Invariant(format!(
                "{what} was asked for while changes are not committed"
            )));
        }
        Ok(())
    }

    fn not_broken(&self) -> Result<(), ColdError> {
        if self.broken {
            return Err(ColdError::Invariant("a cell was changed before it was loaded".to_owned()));
        }
        Ok(())
    }

    /// The stable number of a table.
    fn number(&self, table: Table) -> Result<u8, ColdError> {
        if table == Table::TOTALS {
            return Ok(TOTALS_TABLE);
        }
        let number = self.numbers.get(usize::from(table.0)).copied();
        number.ok_or_else(|| ColdError::Invariant(format!("the plan has no window table {}", table.0)))
    }

    fn cold_key(&self, id: CellId) -> Result<CellKey<'_>, ColdError> {
        let (slice, key) = self.interner.order(id.counter);
        Ok(CellKey { slice, table: self.number(id.table)?, start: id.start, key })
    }

    /// Remembers an error's reaction and hands its words on.
    fn unavailable(&mut self, error: ColdError) -> StateUnavailable {
        self.last_error = Some(error.clone());
        error.into()
    }
}

impl Cells for CellStore {
    fn load(&mut self, ids: &[CellId]) -> Result<(), StateUnavailable> {
        self.load_missing(ids).map_err(|error| self.unavailable(error))
    }

    fn cell(&self, id: CellId) -> Cell {
        self.working.get(id).unwrap_or_default()
    }

    fn add(&mut self, id: CellId, sum: Sum, events: u64) -> Cell {
        if let Some(before) = self.working.add(id, sum, events) {
            return before;
        }
        self.broken = true;
        Cell::default()
    }

    fn key(&self, counter: CounterId) -> &[u8] {
        self.interner.key(counter)
    }

    fn scan(
        &mut self,
        table: Table,
        start: TimestampMs,
        after: Option<&CellOrder>,
        limit: usize,
        out: &mut Vec<CellId>,
    ) -> Result<(), StateUnavailable> {
        self.scan_merged(table, start, after, limit, out).map_err(|error| self.unavailable(error))
    }

    fn next_start(
        &mut self,
        table: Table,
        after: TimestampMs,
    ) -> Result<Option<TimestampMs>, StateUnavailable> {
        let next = self.next_merged(table, after);
        next.map_err(|error| self.unavailable(error))
    }
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
