//! The chain of count: dedup, tally and window put together, as the runtime drives them.

use std::sync::Arc;

use tallyflow_core::chain::{CountChain, Due, RowSink, Taken};
use tallyflow_core::frame::delta::Cursor;
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::plan::Plan;
use tallyflow_core::processor::{
    CellId, Cells, CounterId, Delta, Processor, SeenIds, StateUnavailable, Table,
};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Verdict;
use tallyflow_dedup::{Dedup, Frame, Judged};
use tallyflow_tally::Tally;
use tallyflow_window::Window;

/// `dedup → tally → window` for one task.
pub struct Chain {
    plan: Arc<Plan>,
    dedup: Dedup,
    judged: Judged,
    tally: Tally,
    window: Window,
}

impl Chain {
    /// The chain of a plan.
    pub fn new(plan: &Arc<Plan>) -> Self {
        Self {
            plan: Arc::clone(plan),
            dedup: Dedup::new(),
            judged: Judged::default(),
            tally: Tally::new(plan),
            window: Window::new(plan),
        }
    }
}

/// No processor of the chain asks for the time of day: a verdict is the log's.
const NO_CLOCK: TimestampMs = TimestampMs(0);

impl CountChain for Chain {
    fn judge(
        &mut self,
        entries: &[Entry],
        horizon: Option<TimestampMs>,
        seen: &mut dyn SeenIds,
        verdicts: &mut Vec<Verdict>,
    ) -> Result<(), StateUnavailable> {
        self.dedup.process(Frame { entries, horizon }, seen, NO_CLOCK, &mut self.judged)?;
        if let Some(refusal) = &self.judged.refused {
            return Err(StateUnavailable(refusal.to_string()));
        }
        verdicts.append(&mut self.judged.verdicts);
        Ok(())
    }

    fn tally(
        &mut self,
        entries: &[Entry],
        verdicts: &[Verdict],
        counters: &[CounterId],
        deltas: &mut Vec<Delta>,
    ) -> Result<(), StateUnavailable> {
        let batch = tallyflow_tally::Judged { entries, verdicts, counters };
        self.tally.process(batch, (), NO_CLOCK, deltas).map(|_| ())
    }

    fn merge(
        &mut self,
        deltas: &[Delta],
        from: NextOffset,
        cells: &mut dyn Cells,
    ) -> Result<(), StateUnavailable> {
        self.window.merge(deltas, from, cells)
    }

    fn take_due(
        &mut self,
        due: &Due,
        cells: &mut dyn Cells,
        sink: &mut dyn RowSink,
    ) -> Result<Taken, StateUnavailable> {
        self.window.take_due(due, cells, sink)
    }

    fn committed(&mut self) {
        self.window.committed();
    }

    fn aborted(&mut self) {
        self.window.aborted();
    }

    fn cursors(&self) -> Vec<Cursor> {
        self.window.cursors()
    }

    fn restore(&mut self, cursors: &[Cursor]) {
        self.window.restore(cursors);
    }

    fn cells_of(&self, counter: CounterId, slice_start: TimestampMs, out: &mut Vec<CellId>) {
        self.window.cells_of(counter, slice_start, out);
    }

    fn emitted_through(&self, through: NextOffset) -> NextOffset {
        self.window.emitted_through(through)
    }

    fn mark_due(&mut self, cells: &[CellId], changed_at: NextOffset, view: &dyn Cells) {
        self.window.mark_due(cells, changed_at, view);
    }

    fn has_due(
        &mut self,
        steady_ms: u64,
        complete_through: Option<TimestampMs>,
        cells: &mut dyn Cells,
    ) -> Result<bool, StateUnavailable> {
        self.window.has_due(steady_ms, complete_through, cells)
    }

    fn next_deadline(&self) -> Option<u64> {
        self.window.next_deadline()
    }

    fn pending_len(&self) -> usize {
        self.window.pending_len()
    }

    fn counters_renumbered(&mut self) {
        let cursors = self.window.cursors();
        self.window = Window::new(&self.plan);
        self.window.restore(&cursors);
    }

    fn expired_before(&self, complete_through: TimestampMs) -> Vec<(Table, TimestampMs)> {
        self.window.expired_before(complete_through)
    }
}
