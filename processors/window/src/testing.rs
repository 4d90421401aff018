//! What the tests stand on: cells in a map with an overlay, a sink that remembers, a small plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use tallyflow_core::counter::{encode_key, hash_slice};
use tallyflow_core::ids::NextOffset;
use tallyflow_core::outputs::{CountRow, RowState, WindowRow};
use tallyflow_core::plan::{Emit, EnginePlan, Plan, RecordLimits, TimePlan, WindowPlan};
use tallyflow_core::processor::{Cell, CellId, CellOrder, Cells, CounterId, Delta, StateUnavailable, Table};
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;
use tallyflow_core::window::WindowSize;

use crate::{Due, RowSink, Window};

/// Seconds as a timestamp: the cases' unit.
pub(crate) const fn at(seconds: i64) -> TimestampMs {
    TimestampMs(seconds * 1000)
}

pub(crate) fn window_plan(name: &str, size_s: i64, grace_s: i64, emit: Emit) -> WindowPlan {
    let size = WindowSize::new(size_s * 1000).unwrap();
    WindowPlan { name: Arc::from(name), size, grace_ms: grace_s * 1000, emit }
}

pub(crate) fn plan(windows: Vec<WindowPlan>) -> Plan {
    Plan {
        app: "test".to_owned(),
        inputs: Vec::new(),
        limits: TimePlan {
            accept_ms: 300_000,
            future_ms: 5_000,
            remember_ms: 305_000,
            settle_lag_ms: 5_000,
            idle_timeout_ms: 5_000,
        },
        record_limits: RecordLimits::default(),
        namespaces: None,
        dimensions: Arc::from([]),
        windows,
        totals_emit_ms: 1_000,
        slice: WindowSize::new(60_000).unwrap(),
        keep_ms: 3_600_000,
        entries_partitions: 1,
        intake_workers: 1,
        count_workers: 1,
        engine: EnginePlan {
            commit_interval_ms: 100,
            transaction_timeout_ms: 10_000,
            state_dir: "state".into(),
            memory_bytes: 1 << 30,
        },
    }
}

/// Cells as a map: what is committed, and what the open transaction made of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct MapCells {
    pub(crate) committed: BTreeMap<CellId, Cell>,
    pub(crate) current: BTreeMap<CellId, Cell>,
    keys: Vec<Vec<u8>>,
    loaded: std::collections::BTreeSet<CellId>,
    /// Calls of `next_start`: empty windows must cost nothing.
    pub(crate) lookups: usize,
}

impl MapCells {
    /// With counters named `c0`, `c1`, ….
    pub(crate) fn new(counters: u32) -> Self {
        let key = |n: u32| {
            let mut key = Vec::new();
            encode_key(&mut key, b"default", format!("c{n}").as_bytes(), std::iter::empty());
            key
        };
        Self { keys: (0..counters).map(key).collect(), ..Self::default() }
    }

    pub(crate) fn commit(&mut self) {
        self.committed = self.current.clone();
        self.loaded.clear();
    }

    pub(crate) fn abort(&mut self) {
        self.current = self.committed.clone();
        self.loaded.clear();
    }

    fn order(&self, cell: CellId) -> CellOrder {
        let key = self.key(cell.counter).to_vec();
        CellOrder { slice: hash_slice(&key), key }
    }
}

impl Cells for MapCells {
    fn load(&mut self, ids: &[CellId]) -> Result<(), StateUnavailable> {
        self.loaded.extend(ids);
        Ok(())
    }

    fn cell(&self, id: CellId) -> Cell {
        assert!(self.loaded.contains(&id), "{id:?} was read without a load");
        self.current.get(&id).copied().unwrap_or_default()
    }

    fn add(&mut self, id: CellId, sum: Sum, events: u64) -> Cell {
        let before = self.cell(id);
        self.current.insert(id, Cell { sum: before.sum.add(sum), events: before.events + events });
        before
    }

    fn key(&self, counter: CounterId) -> &[u8] {
        &self.keys[counter.0 as usize]
    }

    fn scan(
        &mut self,
        table: Table,
        start: TimestampMs,
        after: Option<&CellOrder>,
        limit: usize,
        out: &mut Vec<CellId>,
    ) -> Result<(), StateUnavailable> {
        let of_window = self.current.keys().filter(|id| (id.table, id.start) == (table, start));
        let mut cells: Vec<(CellOrder, CellId)> = of_window.map(|id| (self.order(*id), *id)).collect();
        cells.retain(|(order, _)| after.is_none_or(|after| order > after));
        cells.sort();
        let found: Vec<CellId> = cells.into_iter().take(limit).map(|(_, id)| id).collect();
        self.load(&found)?;
        out.extend(found);
        Ok(())
    }

    fn next_start(
        &mut self,
        table: Table,
        after: TimestampMs,
    ) -> Result<Option<TimestampMs>, StateUnavailable> {
        self.lookups += 1;
        let starts = self.current.keys().filter(|id| id.table == table && id.start > after);
        Ok(starts.map(|id| id.start).min())
    }
}

/// A row as it went out; a total has no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) cell: CellId,
    pub(crate) state: Option<RowState>,
    pub(crate) sum: i128,
    pub(crate) events: u64,
    pub(crate) revision: i64,
    pub(crate) complete_through: Option<TimestampMs>,
}

/// The rows that went out, in order.
#[derive(Debug, Default)]
pub(crate) struct Rows(pub(crate) Vec<Said>);

impl RowSink for Rows {
    fn window(&mut self, cell: CellId, row: &WindowRow<'_>) {
        assert!(row.end > row.start && row.start == cell.start && !row.key.is_empty());
        self.0.push(Said {
            cell,
            state: Some(row.state),
            sum: row.sum.0,
            events: row.events,
            revision: row.revision.0,
            complete_through: row.complete_through,
        });
    }

    fn total(&mut self, cell: CellId, row: &CountRow<'_>) {
        assert_eq!(cell.table, Table::TOTALS);
        self.0.push(Said {
            cell,
            state: None,
            sum: row.total.0,
            events: row.events,
            revision: row.revision.0,
            complete_through: row.complete_through,
        });
    }
}

/// A task of one window logic over cells, with a transaction as one call.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) window: Window,
    pub(crate) cells: MapCells,
    pub(crate) through: i64,
    pub(crate) clock: Option<TimestampMs>,
    pub(crate) budget: usize,
}

impl Task {
    pub(crate) fn new(windows: Vec<WindowPlan>) -> Self {
        let window = Window::new(&plan(windows));
        Self { window, cells: MapCells::new(2_000), through: 0, clock: None, budget: usize::MAX }
    }

    /// Merges and takes what is due, without an end. One entries offset per call.
    pub(crate) fn take(&mut self, steady_ms: u64, deltas: &[Delta]) -> Vec<Said> {
        if !deltas.is_empty() {
            self.window.merge(deltas, NextOffset(self.through), &mut self.cells).unwrap();
            self.through += 1;
        }
        let due = Due {
            steady_ms,
            through: NextOffset(self.through),
            complete_through: self.clock,
            budget_rows: self.budget,
        };
        let mut rows = Rows::default();
        let taken = self.window.take_due(&due, &mut self.cells, &mut rows).unwrap();
        assert_eq!(taken.rows, rows.0.len());
        rows.0
    }

    /// A committed transaction.
    pub(crate) fn commit(&mut self, steady_ms: u64, deltas: &[Delta]) -> Vec<Said> {
        let rows = self.take(steady_ms, deltas);
        self.window.committed();
        self.cells.commit();
        rows
    }

    /// A transaction that fails.
    pub(crate) fn abort(&mut self, steady_ms: u64, deltas: &[Delta]) -> Vec<Said> {
        let before = self.through;
        let rows = self.take(steady_ms, deltas);
        self.window.aborted();
        self.cells.abort();
        self.through = before;
        rows
    }
}

/// A delta of one event.
pub(crate) fn delta(counter: u32, seconds: i64, sum: i128) -> Delta {
    let slice_start = WindowSize::new(60_000).unwrap().start_of(at(seconds));
    Delta { counter: CounterId(counter), slice_start, sum: Sum(sum), events: 1 }
}

/// The window rows of a commit, as (counter, window start in seconds, state, sum, revision).
pub(crate) fn of_windows(rows: &[Said]) -> Vec<(u32, i64, RowState, i128, i64)> {
    let row =
        |row: &Said| Some((row.cell.counter.0, row.cell.start.0 / 1000, row.state?, row.sum, row.revision));
    rows.iter().filter_map(row).collect()
}
