//! Rows on their way out: where they go, for which commit, and how one is made of a cell.

use tallyflow_core::outputs::{CountRow, Revision, RowState, WindowRow};
use tallyflow_core::processor::{CellId, Cells, Table};
use tallyflow_core::time::TimestampMs;

pub use tallyflow_core::chain::{Due, RowSink, Taken};

/// Names what is said of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saying {
    pub(crate) state: RowState,
    pub(crate) by_cursor: bool,
}

impl Saying {
    pub(crate) const UPDATE: Self = Self { state: RowState::Update, by_cursor: false };
    pub(crate) const FINAL_BY_CURSOR: Self = Self { state: RowState::Final, by_cursor: true };

    /// Of a cell behind the cursor: its final was said, unless it did not exist.
    pub(crate) const fn behind(existed: bool) -> Self {
        let state = if existed { RowState::Correction } else { RowState::Final };
        Self { state, by_cursor: false }
    }
}

/// Gives one row of a loaded cell to the sink. A cell that does not exist has no row; returns how many were given.
pub(crate) fn emit(
    cell: CellId,
    saying: Saying,
    window: Option<(&str, TimestampMs)>,
    due: &Due,
    view: &dyn Cells,
    sink: &mut dyn RowSink,
) -> usize {
    let value = view.cell(cell);
    if value.events == 0 {
        return 0;
    }
    let key = view.key(cell.counter);
    let revision = Revision::at(due.through, saying.by_cursor);
    match window {
        Some((window, end)) => sink.window(
            cell,
            &WindowRow {
                key,
                window,
                start: cell.start,
                end,
                sum: value.sum,
                events: value.events,
                revision,
                state: saying.state,
                complete_through: due.complete_through,
            },
        ),
        None => sink.total(
            cell,
            &CountRow {
                key,
                total: value.sum,
                events: value.events,
                epoch: 0, // no clears in this version (R7)
                revision,
                cleared_at: None,
                complete_through: due.complete_through,
            },
        ),
    }
    1
}

/// A cell of the totals.
pub(crate) const fn total_cell(counter: tallyflow_core::processor::CounterId) -> CellId {
    CellId { table: Table::TOTALS, start: TimestampMs(0), counter }
}
