//! After a commit: seal buckets, write cells behind, and now and then a slice of the rolling snapshot.
//!
//! ```text
//!  every commit   seal closed buckets, drop forgotten ones
//!  2 s            cells and progress as one batch, not yet durable
//!  10 s           durable; then one slice of state goes out with the next commit; old windows expire
//! ```
//!
//! Keeps: EO-1 (all of it is committed data), EO-3 (progress is written with the data it belongs to).

use std::collections::VecDeque;

use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::frame::state::{StateHead, StateRow, write_slice};
use tallyflow_core::frame::wire::{Reader, put_i64};
use tallyflow_core::ids::{NextOffset, TopicId};
use tallyflow_core::processor::{Cell, Table};
use tallyflow_core::time::TimestampMs;
use tallyflow_state::cold::ColdError;

use super::task::CountTask;
use crate::ports::{Now, PortError, Reaction};

const WRITE_INTERVAL_MS: u64 = 2_000;
const WRITE_CELLS: usize = 100_000;
const CHECKPOINT_INTERVAL_MS: u64 = 10_000;

/// Timers and what waits for the next transaction.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    /// Cells changed since the last written batch.
    pub(super) changed: bool,
    written_at_ms: u64,
    checkpoint_at_ms: u64,
    /// (entries offset, deltas offset): frames with `from ≥` the first stand at or after the second.
    marks: VecDeque<(NextOffset, NextOffset)>,
    next_slice: u8,
    slice_through: [Option<NextOffset>; HASH_SLICES as usize],
    written_through: NextOffset,
    snapshot: Vec<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

impl Maintenance {
    /// Every frame committed so far stands below `deltas` in its log, every later one at or after it.
    pub(super) fn mark(&mut self, through: NextOffset, deltas: NextOffset) {
        if self.marks.back().is_none_or(|(known, _)| *known < through) {
            self.marks.push_back((through, deltas));
        }
    }

    /// The deltas offset from which every frame after `needed` can be read; drops older marks.
    fn deltas_mark(&mut self, needed: NextOffset) -> NextOffset {
        while self.marks.get(1).is_some_and(|(through, _)| *through <= needed) {
            self.marks.pop_front();
        }
        match self.marks.front() {
            Some((through, deltas)) if *through <= needed => *deltas,
            _ => NextOffset::START,
        }
    }

    pub(super) const fn has_snapshot(&self) -> bool {
        !self.snapshot.is_empty()
    }

    /// The frames of a slice, for the transaction under way.
    pub(super) fn take_snapshot(&mut self) -> Vec<Vec<u8>> {
        self.sent = std::mem::take(&mut self.snapshot);
        self.sent.clone()
    }

    pub(super) fn committed(&mut self) {
        self.sent.clear();
    }

    /// The frames were not written: they hold committed data, so they go with the next transaction.
    pub(super) fn aborted(&mut self) {
        if !self.sent.is_empty() {
            self.snapshot = std::mem::take(&mut self.sent);
        }
    }

    /// Goes on from restored progress.
    pub(super) fn restored(&mut self, progress: Option<&Progress>) {
        if let Some(progress) = progress {
            self.marks.push_back((progress.marked, progress.deltas_mark));
        }
    }
}

impl CountTask {
    /// Everything that is due on local state.
    ///
    /// # Errors
    ///
    /// The store's; what was not done stays due.
    pub(super) fn maintain(&mut self, now: Now) -> Result<(), ColdError> {
        let Some(stores) = &mut self.stores else {
            return Ok(());
        };
        stores.seen.commit()?;
        let state = &mut self.maintenance;
        let checkpoint = now.steady_ms >= state.checkpoint_at_ms + CHECKPOINT_INTERVAL_MS;
        let write = now.steady_ms >= state.written_at_ms + WRITE_INTERVAL_MS;
        if !checkpoint && !write && stores.cells.dirty_len() < WRITE_CELLS {
            return Ok(());
        }
        if checkpoint && let Some(complete) = self.settled.complete_through {
            for (table, before) in self.chain.expired_before(complete) {
                stores.cells.expire(table, before)?;
            }
        }
        let through = self.settled.through;
        let marked = through.min(self.settled.emitted_through);
        let deltas_mark = state.deltas_mark(marked);
        let topic_id = self.settled.entries_topic_id;
        let progress = Progress { topic_id, through, marked, deltas_mark };
        stores.cells.flush(&progress.encode())?;
        state.written_at_ms = now.steady_ms;
        if std::mem::take(&mut state.changed) {
            state.written_through = through;
        }
        if checkpoint {
            stores.cold.flush()?;
            state.checkpoint_at_ms = now.steady_ms;
            self.snapshot(&progress)?;
            self.evict()?;
        }
        Ok(())
    }

    /// Prepares the next slice whose cells changed since it was written last.
    fn snapshot(&mut self, progress: &Progress) -> Result<(), ColdError> {
        let Some(stores) = &mut self.stores else {
            return Ok(());
        };
        let state = &mut self.maintenance;
        if state.has_snapshot() {
            return Ok(());
        }
        let slice = state.next_slice;
        state.next_slice = (slice + 1) % HASH_SLICES;
        let written = state.slice_through.get_mut(usize::from(slice));
        let Some(written) = written.filter(|w| w.is_none_or(|at| at < state.written_through)) else {
            return Ok(());
        };
        *written = Some(progress.through);
        let mut rows: Vec<(String, Vec<u8>, TimestampMs, Cell)> = Vec::new();
        let cursors = &self.settled.cursors;
        let name = |table: Table| {
            if table == Table::TOTALS {
                Some("")
            } else {
                cursors.get(usize::from(table.0)).map(|c| c.table.as_str())
            }
        };
        stores.cells.snapshot(slice, &mut |row| {
            if let Some(name) = name(row.table) {
                rows.push((name.to_owned(), row.key.to_vec(), row.start, row.cell));
            }
        })?;
        let rows: Vec<StateRow<'_>> = rows
            .iter()
            .map(|(table, key, start, cell)| StateRow {
                table,
                key,
                start: *start,
                sum: cell.sum,
                events: cell.events,
            })
            .collect();
        let head = StateHead {
            entries_topic_id: progress.topic_id,
            slice,
            slices: HASH_SLICES,
            part: 0,
            parts: 1,
            through: progress.through,
            deltas_mark: progress.deltas_mark.0,
        };
        state.snapshot = write_slice(&head, &rows, &[]);
        Ok(())
    }

    /// Over its budget the working set is dropped, once nothing refers to its counters.
    fn evict(&mut self) -> Result<(), ColdError> {
        let Some(stores) = &mut self.stores else {
            return Ok(());
        };
        if self.chain.pending_len() == 0 && stores.cells.evict()? {
            self.chain.counters_renumbered();
        }
        Ok(())
    }
}

/// What is written beside the cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Progress {
    /// Which incarnation of `entries`.
    pub(super) topic_id: TopicId,
    /// The cells hold everything below this.
    pub(super) through: NextOffset,
    /// Frames from here on …
    pub(super) marked: NextOffset,
    /// … stand at or after this offset of `deltas`.
    pub(super) deltas_mark: NextOffset,
}

const MAGIC: [u8; 3] = *b"TFP";

impl Progress {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.push(1);
        out.extend_from_slice(&self.topic_id.0);
        put_i64(&mut out, self.through.0);
        put_i64(&mut out, self.marked.0);
        put_i64(&mut out, self.deltas_mark.0);
        out
    }

    /// `None` for bytes that are no progress: a restore that was interrupted leaves none.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::open(bytes, MAGIC, 1).ok()?;
        Some(Self {
            topic_id: TopicId(reader.array().ok()?),
            through: NextOffset(reader.i64().ok()?),
            marked: NextOffset(reader.i64().ok()?),
            deltas_mark: NextOffset(reader.i64().ok()?),
        })
    }
}

/// What to say while local state cannot be written, if waiting may help.
///
/// # Errors
///
/// A halt where it cannot.
pub(super) fn environment(error: ColdError) -> Result<String, PortError> {
    match error {
        ColdError::Full(what) | ColdError::NotWritable(what) | ColdError::Other(what) => {
            tracing::warn!("{what}; no input is taken until it can be written");
            Ok(what)
        }
        ColdError::Locked(what)
        | ColdError::Foreign(what)
        | ColdError::Damaged(what)
        | ColdError::Invariant(what) => Err(PortError::new(Reaction::Halt, what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_never_point_past_what_is_needed() {
        let mut state = Maintenance::default();
        assert_eq!(state.deltas_mark(NextOffset(5)), NextOffset(0));
        for (through, deltas) in [(0, 0), (10, 4), (20, 9), (20, 11)] {
            state.mark(NextOffset(through), NextOffset(deltas));
        }
        assert_eq!(state.deltas_mark(NextOffset(9)), NextOffset(0));
        assert_eq!(state.deltas_mark(NextOffset(15)), NextOffset(4));
        assert_eq!(state.deltas_mark(NextOffset(20)), NextOffset(9));
        assert_eq!(state.deltas_mark(NextOffset(99)), NextOffset(9));
    }

    #[test]
    fn progress_round_trips_and_nothing_else_is_progress() {
        let progress = Progress {
            topic_id: TopicId([4; 16]),
            through: NextOffset(9),
            marked: NextOffset(7),
            deltas_mark: NextOffset(3),
        };
        assert_eq!(Progress::decode(&progress.encode()), Some(progress));
        assert_eq!(Progress::decode(b""), None);
        assert_eq!(Progress::decode(b"TFP\x02"), None);
    }
}
