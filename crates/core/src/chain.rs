//! The chain of count's processors as the runtime drives it: `dedup → tally → window`.
//!
//! The runtime may not see the processors and the processors may not see each other; the wiring puts them together
//! behind this trait. One dynamic call per frame or commit, none per event.

use crate::frame::delta::Cursor;
use crate::frame::entry::Entry;
use crate::ids::NextOffset;
use crate::outputs::{CountRow, WindowRow};
use crate::processor::{CellId, Cells, CounterId, Delta, SeenIds, StateUnavailable, Table};
use crate::time::TimestampMs;
use crate::verdict::Verdict;

/// Where rows go. The key of a row is the encoded counter key.
pub trait RowSink {
    /// A row of `<app>.windows`.
    fn window(&mut self, cell: CellId, row: &WindowRow<'_>);
    /// A row of `<app>.counts`.
    fn total(&mut self, cell: CellId, row: &CountRow<'_>);
}

/// The commit that rows are taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// The steady clock: paces updates.
    pub steady_ms: u64,
    /// The next entries offset after everything merged: the rows hold through it.
    pub through: NextOffset,
    /// The watermark as it will be committed.
    pub complete_through: Option<TimestampMs>,
    /// At most so many finals and timed updates, at least 1. First updates, corrections and keys first counted in a
    /// final window are never held back by it: the transaction's own bounds bound them.
    pub budget_rows: usize,
}

/// What was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Rows given to the sink.
    pub rows: usize,
    /// Whether rows that are due were held back by the budget.
    pub more: bool,
}

/// The chain of one count task.
pub trait CountChain {
    /// Judges the entries of a frame: one verdict each, in order. `horizon` is F + U at the frame's offset.
    ///
    /// # Errors
    ///
    /// Where state could not be read, or the frame holds what this version cannot process.
    fn judge(
        &mut self,
        entries: &[Entry],
        horizon: Option<TimestampMs>,
        seen: &mut dyn SeenIds,
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), StateUnavailable>;

    /// Adds a frame's counted entries to the deltas of the transaction. `counters` are the task's ids of the
    /// frame's dictionary. An empty list begins anew.
    ///
    /// # Errors
    ///
    /// Where the arguments do not match.
    fn tally(
        &mut self,
        entries: &[Entry],
        verdicts: &[Verdict],
        counters: &[CounterId],
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StateUnavailable>;

    /// Adds the deltas of a transaction, whose first entries offset is `from`, to the cells.
    ///
    /// # Errors
    ///
    /// Where state could not be read.
    fn merge(
        &mut self,
        deltas: &[Delta],
        from: NextOffset,
        cells: &mut dyn Cells,
    ) -> Result<(), StateUnavailable>;

    /// After the merge of a transaction, once: gives the rows that go out with it.
    ///
    /// # Errors
    ///
    /// Where state could not be read.
    fn take_due(
        &mut self,
        due: &Due,
        cells: &mut dyn Cells,
        sink: &mut dyn RowSink,
    ) -> Result<Taken, StateUnavailable>;

    /// The transaction was committed.
    fn committed(&mut self);

    /// The transaction was aborted: back to the last commit.
    fn aborted(&mut self);

    /// The cursors of the finals, this transaction's moves included.
    fn cursors(&self) -> Vec<Cursor>;

    /// Sets the cursors of the last committed delta frame.
    fn restore(&mut self, cursors: &[Cursor]);

    /// The cells that a delta goes to: one per window table, and the total.
    fn cells_of(&self, counter: CounterId, slice_start: TimestampMs, out: &mut Vec<CellId>);

    /// Every row changed below this entries offset has been published, this transaction's rows counted in.
    fn emitted_through(&self, through: NextOffset) -> NextOffset;

    /// After a restore: rows that may not have been published since they changed at `changed_at`.
    fn mark_due(&mut self, cells: &[CellId], changed_at: NextOffset, view: &dyn Cells);

    /// Whether a transaction would say something though nothing was merged.
    ///
    /// # Errors
    ///
    /// Where state could not be read.
    fn has_due(
        &mut self,
        steady_ms: u64,
        complete_through: Option<TimestampMs>,
        cells: &mut dyn Cells,
    ) -> Result<bool, StateUnavailable>;

    /// When, on the steady clock, to ask [`CountChain::has_due`] again at the latest.
    fn next_deadline(&self) -> Option<u64>;

    /// Rows that wait for their time.
    fn pending_len(&self) -> usize;

    /// Counter ids are about to change: forget what is keyed by them. Only between transactions, with nothing
    /// pending.
    fn counters_renumbered(&mut self);

    /// Per table: windows that start before this may be dropped.
    fn expired_before(&self, complete_through: TimestampMs) -> Vec<(Table, TimestampMs)>;
}
