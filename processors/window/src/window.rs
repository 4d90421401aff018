//! The life of a window's row, and of a total's (which has updates only).
//!
//! ```text
//!            first event                  event, at most one per `emit`
//!  (none) ────────────────► update ◄────────────────┐
//!    │ │                      │ └───────────────────┘
//!    │ │                      │ the cursor passes: complete_through ≥ end + grace      revision 2 · through + 1
//!    │ │                      ▼
//!    │ └────────────────► final ◄── once per key                  event
//!    │   first event in     │ └───────────────────────► correction ◄────┐
//!    │   the transaction    │          event                  └─────────┘
//!    │   that passes it     │
//!    └──────────────────────┘ first event behind the cursor           revision 2 · through
//! ```
//!
//! With `emit = "final"` there are no updates. "Behind" is behind the cursor as it was committed *before* the
//! transaction; a touched cell that the cursor passes in this transaction is said once, as the final. One row per
//! key and commit (WN-1). First updates, corrections and finals of late keys go out with the commit that counts
//! them; finals by the cursor and timed updates share the budget, and what does not fit goes first next time (T40).
//!
//! Keeps: LG-2, WN-1. Must not know: how cells are stored, rows' bytes, which clock is asked.

use std::sync::Arc;

use tallyflow_core::frame::delta::Cursor;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::plan::{Emit, Plan, WindowPlan};
use tallyflow_core::processor::{
    CellId, Cells, Consumed, CounterId, Delta, Processor, StateUnavailable, Table,
};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::window::WindowSize;

use crate::cursor::{FinalCursor, first_not_due};
use crate::emission::{Due, RowSink, Taken, total_cell};
use crate::schedule::Schedule;
use crate::transaction::{Additions, Said, Touch, Transaction};

/// The windows and totals of one count task: merges deltas into cells, and says rows.
///
/// Per transaction: any number of [`Window::merge`], then one [`Window::take_due`], then [`Window::committed`] or
/// [`Window::aborted`].
#[derive(Debug)]
pub struct Window {
    pub(crate) tables: Vec<WindowTable>,
    totals_pace_ms: u64,
    keep_ms: i64,
    pub(crate) schedule: Schedule,
    pub(crate) transaction: Transaction,
    additions: Additions,
    pub(crate) cells: Vec<CellId>,
}

/// One window table of the plan.
#[derive(Debug)]
pub(crate) struct WindowTable {
    pub(crate) table: Table,
    pub(crate) name: Arc<str>,
    pub(crate) size: WindowSize,
    pub(crate) grace_ms: i64,
    /// At most one update per so long; `None`: no updates.
    pub(crate) pace_ms: Option<u64>,
    pub(crate) committed: FinalCursor,
    /// `committed` with this transaction's moves.
    pub(crate) moved: FinalCursor,
    /// The committed cursor's next window with cells, once looked up.
    next_start: Option<Option<TimestampMs>>,
}

impl WindowTable {
    const fn new(table: Table, name: Arc<str>, plan: &WindowPlan) -> Self {
        let pace_ms = match plan.emit {
            Emit::EveryMs(ms) => Some(ms.unsigned_abs()),
            Emit::Final => None,
        };
        let (size, grace_ms) = (plan.size, plan.grace_ms);
        let (committed, moved) = (FinalCursor::BEGIN, FinalCursor::BEGIN);
        Self { table, name, size, grace_ms, pace_ms, committed, moved, next_start: None }
    }
}

impl Window {
    /// The windows of a plan, none of them final. A plan has at most 255 tables.
    pub fn new(plan: &Plan) -> Self {
        let numbered = plan.windows.iter().zip(0..u8::MAX);
        let tables =
            numbered.map(|(window, at)| WindowTable::new(Table(at), Arc::clone(&window.name), window));
        Self {
            tables: tables.collect(),
            totals_pace_ms: plan.totals_emit_ms.unsigned_abs(),
            keep_ms: plan.keep_ms,
            schedule: Schedule::default(),
            transaction: Transaction::default(),
            additions: Additions::default(),
            cells: Vec::new(),
        }
    }

    /// The table with this name; the empty one is the totals', as in state frames.
    pub fn table(&self, name: &str) -> Option<Table> {
        if name.is_empty() {
            return Some(Table::TOTALS);
        }
        self.tables.iter().find(|table| &*table.name == name).map(|table| table.table)
    }

    /// The name of a table, empty for the totals.
    pub fn table_name(&self, table: Table) -> &str {
        self.of(table).map_or("", |table| &table.name)
    }

    /// Appends the cells that a delta goes to: one in each window table, and the total.
    pub fn cells_of(&self, counter: CounterId, slice_start: TimestampMs, out: &mut Vec<CellId>) {
        out.extend(self.tables.iter().map(|table| CellId {
            table: table.table,
            start: table.size.start_of(slice_start),
            counter,
        }));
        out.push(total_cell(counter));
    }

    /// Takes the cursors of the last committed delta frame over. Tables are matched by name; one that is not named
    /// begins anew.
    pub fn restore(&mut self, cursors: &[Cursor]) {
        for table in &mut self.tables {
            let found = cursors.iter().find(|cursor| cursor.table == *table.name);
            table.committed = found.map_or(FinalCursor::BEGIN, |cursor| FinalCursor {
                start: cursor.start,
                after: cursor.after.clone(),
            });
            table.moved = table.committed.clone();
            table.next_start = None;
        }
    }

    /// The cursors as this transaction will commit them.
    pub fn cursors(&self) -> Vec<Cursor> {
        let cursor = |table: &WindowTable| Cursor {
            table: table.name.to_string(),
            start: table.moved.start,
            after: table.moved.after.clone(),
        };
        self.tables.iter().map(cursor).collect()
    }

    /// After a restore, when [`Window::restore`] was called: rows of these cells may not have been published since
    /// they changed at or after `changed_at`. Cells that are final are passed over: their rows were published with
    /// the commit that changed them.
    pub fn mark_due(&mut self, cells: &[CellId], changed_at: NextOffset, view: &dyn Cells) {
        for cell in cells {
            let passed = self
                .of(cell.table)
                .is_some_and(|table| table.committed.has_passed(cell.start, view.key(cell.counter)));
            if !passed && self.pace_of(*cell).is_some() {
                self.schedule.changed(*cell, changed_at);
            }
        }
    }

    /// Adds deltas to their cells: [`Processor::process`] without what is not looked at.
    ///
    /// `from` is the entries offset at which the deltas' entries begin.
    ///
    /// # Errors
    ///
    /// Where the cells could not be read; nothing was added then.
    pub fn merge(
        &mut self,
        deltas: &[Delta],
        from: NextOffset,
        view: &mut dyn Cells,
    ) -> Result<(), StateUnavailable> {
        self.additions.clear();
        for delta in deltas {
            self.cells.clear();
            let mut cells = std::mem::take(&mut self.cells);
            self.cells_of(delta.counter, delta.slice_start, &mut cells);
            cells.iter().for_each(|cell| self.additions.add(*cell, delta.sum, delta.events));
            self.cells = cells;
        }
        view.load(&self.additions.cells)?;
        for (cell, (sum, events)) in self.additions.cells.iter().zip(&self.additions.amounts) {
            let before = view.add(*cell, *sum, *events);
            self.transaction.touch(Touch { cell: *cell, existed: before.events > 0, from });
        }
        Ok(())
    }

    /// Gives the rows that go out with this commit to the sink. Once in a transaction, after its merges.
    ///
    /// # Errors
    ///
    /// Where the cells could not be read; the transaction has to be aborted then.
    pub fn take_due(
        &mut self,
        due: &Due,
        view: &mut dyn Cells,
        sink: &mut dyn RowSink,
    ) -> Result<Taken, StateUnavailable> {
        self.schedule.tick(due.steady_ms);
        self.transaction.steady_ms = due.steady_ms;
        let budget = due.budget_rows.max(1);
        // While finals fill every commit, a quarter is kept for timed updates: neither starves.
        let kept = self.schedule.ready().take(budget / 4).count();
        let mut taken = Taken::default();
        let finals = self.say_finals(budget.saturating_sub(kept), due, view, sink, &mut taken)?;
        self.say_touched(due, view, sink, &mut taken);
        self.say_ready(budget.saturating_sub(finals), due, view, sink, &mut taken)?;
        Ok(taken)
    }

    /// The transaction was committed.
    pub fn committed(&mut self) {
        let transaction = std::mem::take(&mut self.transaction);
        for (cell, how) in transaction.said() {
            match (how, self.pace_of(*cell)) {
                (Said::Update, Some(pace_ms)) => self.schedule.said(*cell, transaction.steady_ms, pace_ms),
                _ => self.schedule.close(*cell),
            }
        }
        for touch in transaction.unsaid() {
            if self.pace_of(touch.cell).is_some() {
                self.schedule.changed(touch.cell, touch.from);
            }
        }
        self.schedule.settle();
        for table in &mut self.tables {
            table.committed.clone_from(&table.moved);
        }
        self.start_over(transaction);
    }

    /// The transaction was aborted: nothing of it was said. The cells it added to are the view's to undo.
    pub fn aborted(&mut self) {
        for table in &mut self.tables {
            table.moved.clone_from(&table.committed);
        }
        let transaction = std::mem::take(&mut self.transaction);
        self.start_over(transaction);
    }

    /// Every row changed below this entries offset has been published, or is with this commit; asked after
    /// [`Window::take_due`]. At most `through`.
    ///
    /// A table with `emit = "final"` has no row to publish before its final, which the cursor says.
    pub fn emitted_through(&self, through: NextOffset) -> NextOffset {
        let waiting = self.schedule.waiting_from(&self.transaction.waits_ended);
        let held = self.transaction.unsaid().filter(|touch| self.pace_of(touch.cell).is_some());
        let held = held.map(|touch| touch.from).min();
        [waiting, held].into_iter().flatten().fold(through, NextOffset::min)
    }

    /// Whether a transaction would say something, though nothing was merged.
    ///
    /// # Errors
    ///
    /// Where the cells could not be read.
    pub fn has_due(
        &mut self,
        steady_ms: u64,
        complete_through: Option<TimestampMs>,
        view: &mut dyn Cells,
    ) -> Result<bool, StateUnavailable> {
        self.schedule.tick(steady_ms);
        if !self.transaction.is_empty() || self.schedule.ready().next().is_some() {
            return Ok(true);
        }
        let Some(clock) = complete_through else {
            return Ok(false);
        };
        for table in &mut self.tables {
            let until = first_not_due(table.size, table.grace_ms, clock);
            if table.committed.start >= until {
                continue;
            }
            let next = match table.next_start {
                Some(known) => known,
                None => table.committed.next_start(table.table, view)?,
            };
            table.next_start = Some(next);
            if next.is_some_and(|start| start < until) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When, by the steady clock, [`Window::has_due`] may become true without input: 0 if an update is due already,
    /// `None` if nothing waits for that clock. Finals wait for `complete_through`, not for it.
    pub fn next_deadline(&self) -> Option<u64> {
        self.schedule.next_deadline()
    }

    /// Rows that changed and were not published yet. Finals that are not said are not counted.
    pub fn pending_len(&self) -> usize {
        self.schedule.waiting_len()
    }

    /// Counter ids are about to change: forgets the pace of every cell, so an update may come before its `emit` once.
    ///
    /// Only between transactions, while [`Window::pending_len`] is 0: what waits would be forgotten too.
    pub fn counters_renumbered(&mut self) {
        self.schedule = Schedule::default();
    }

    /// For each table the start of the first window that has to be kept: earlier ones are final and
    /// end + keep ≤ `complete_through`. Tables with nothing to drop are left out.
    pub fn expired_before(&self, complete_through: TimestampMs) -> Vec<(Table, TimestampMs)> {
        let bound = |table: &WindowTable| {
            let by_time = first_not_due(table.size, self.keep_ms, complete_through);
            let start = by_time.min(table.committed.start);
            (start > TimestampMs::MIN).then_some((table.table, start))
        };
        self.tables.iter().filter_map(bound).collect()
    }
}

impl Processor for Window {
    /// Deltas, and the entries offset at which their entries begin.
    type Batch<'a> = (&'a [Delta], NextOffset);
    type View<'a> = &'a mut dyn Cells;
    /// Rows are not an effect of a batch but of a commit: [`Window::take_due`].
    type Effects<'a> = ();

    /// Adds deltas to their cells.
    ///
    /// # Errors
    ///
    /// As [`Window::merge`].
    fn process(
        &mut self,
        (deltas, from): Self::Batch<'_>,
        view: Self::View<'_>,
        _now: TimestampMs,
        _effects: Self::Effects<'_>,
    ) -> Result<Consumed, StateUnavailable> {
        self.merge(deltas, from, view).map(|()| Consumed::All)
    }
}

impl Window {
    /// The window table; `None` for the totals.
    pub(crate) fn of(&self, table: Table) -> Option<&WindowTable> {
        self.tables.get(usize::from(table.0))
    }

    /// How often the cell may be said as an update; `None`: never.
    pub(crate) fn pace_of(&self, cell: CellId) -> Option<u64> {
        if cell.table == Table::TOTALS {
            return Some(self.totals_pace_ms);
        }
        self.of(cell.table)?.pace_ms
    }

    /// Ready for the next transaction; cells may have come or gone, so what was looked up is not known any more.
    fn start_over(&mut self, mut transaction: Transaction) {
        transaction.clear();
        self.transaction = transaction;
        self.tables.iter_mut().for_each(|table| table.next_start = None);
    }
}
