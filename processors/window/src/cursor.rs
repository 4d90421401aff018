//! How far the finals of one window table have been said.
//!
//! ```text
//!   windows   │ final │ final │ a b c d e │ not due │ not due
//!                             ▲     ▲     ▲
//!                          start  after   until = the first window with end + grace > complete_through
//! ```
//!
//! Every window that starts before `start` is final, also one that has no cells yet: so a key first counted in it
//! later is known to be behind. When everything due has been said, `start` stands at `until`. Windows without cells
//! cost nothing: the cursor jumps from one that has cells to the next.
//!
//! Keeps: WN-1 (it never goes back, so it passes a cell once).

use tallyflow_core::counter::hash_slice;
use tallyflow_core::processor::{CellId, CellOrder, Cells, StateUnavailable, Table};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::window::WindowSize;

/// A place in the order of finals: (window start, [`CellOrder`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FinalCursor {
    /// Every window that starts before this one is final.
    pub(crate) start: TimestampMs,
    /// Cells of the window at `start` up to and with this one are final; `None`: none of them.
    pub(crate) after: Option<CellOrder>,
}

impl FinalCursor {
    /// Nothing is final.
    pub(crate) const BEGIN: Self = Self { start: TimestampMs::MIN, after: None };

    /// Whether the cell of this key in the window at `start` is final already.
    pub(crate) fn has_passed(&self, start: TimestampMs, key: &[u8]) -> bool {
        start < self.start
            || start == self.start
                && self
                    .after
                    .as_ref()
                    .is_some_and(|after| (hash_slice(key), key) <= (after.slice, after.key.as_slice()))
    }

    /// The start of the first window of at or above this place that has cells, or may have some left.
    pub(crate) fn next_start(
        &self,
        table: Table,
        view: &mut dyn Cells,
    ) -> Result<Option<TimestampMs>, StateUnavailable> {
        match self.after {
            Some(_) => Ok(Some(self.start)),
            None => view.next_start(table, self.start.minus(1)),
        }
    }

    /// Moves on towards `until`, past at most `limit` cells, which are appended to `out` and loaded. Returns whether
    /// it got there; if not, it stands in the middle of a window and goes on from there next time.
    pub(crate) fn advance(
        &mut self,
        (table, size): (Table, WindowSize),
        until: TimestampMs,
        limit: usize,
        view: &mut dyn Cells,
        out: &mut Vec<CellId>,
    ) -> Result<bool, StateUnavailable> {
        let end = out.len().saturating_add(limit);
        while self.start < until {
            match self.next_start(table, view)? {
                Some(start) if start < until => self.start = start,
                _ => {
                    self.start = until;
                    break;
                }
            }
            let (before, room) = (out.len(), end.saturating_sub(out.len()));
            if room == 0 {
                return Ok(false);
            }
            view.scan(table, self.start, self.after.as_ref(), room, out)?;
            match out.last() {
                Some(last) if out.len() - before >= room => {
                    let key = view.key(last.counter).to_vec();
                    self.after = Some(CellOrder { slice: hash_slice(&key), key });
                }
                _ => *self = Self { start: size.end_of(self.start), after: None },
            }
        }
        Ok(true)
    }
}

/// The first window that is not due: every earlier one has end + `delay_ms` ≤ `clock`.
///
/// `start + size + delay ≤ clock` holds exactly for the starts below `start_of(clock − delay)`.
pub(crate) const fn first_not_due(size: WindowSize, delay_ms: i64, clock: TimestampMs) -> TimestampMs {
    size.start_of(clock.minus(delay_ms))
}
