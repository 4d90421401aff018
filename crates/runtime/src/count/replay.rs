//! What a restore does with each log: state slices set cells, delta frames add to them, entry frames give ids.
//!
//! A delta frame is added only to the slices whose snapshot is older than it. Entry frames are insert-only: their
//! verdicts were given once and are not given again; late ones left no sighting then and leave none now (TM-2).

use std::collections::VecDeque;

use tallyflow_core::counter::{HASH_SLICES, hash_slice};
use tallyflow_core::frame::delta::{Bucket, DeltaFrame, Standing};
use tallyflow_core::frame::entry::EntryFrame;
use tallyflow_core::frame::state::StateFrame;
use tallyflow_core::ids::{NextOffset, TopicId, TopicPartition};
use tallyflow_core::processor::{Cell, CellId, CounterId, Table};
use tallyflow_core::record::RecordView;
use tallyflow_core::time::TimestampMs;
use tallyflow_state::cells::{CellRow, CellStore};

use super::maintenance::Progress;
use super::restore::cold_error;
use super::task::CountTask;
use super::{Shared, clock};
use crate::ports::{BatchSink, PortError, Reaction, ScanFrom};

const SLICES: usize = HASH_SLICES as usize;
/// Cells held in memory before they are written behind during a restore.
const WRITE_CELLS: usize = 200_000;

fn halt(
    partition: &TopicPartition,
    offset: impl std::fmt::Display,
    why: impl std::fmt::Display,
) -> PortError {
    PortError::new(
        Reaction::Halt,
        format!("{partition} offset {offset}: {why}; somebody else wrote to this topic, or it is damaged",),
    )
}

fn no_stores() -> PortError {
    PortError::new(Reaction::Retry, "local state is not open")
}

/// Keeps memory bounded. The progress written beside is none: a restore cut short begins again.
fn write_behind(cells: &mut CellStore) -> Result<(), PortError> {
    if cells.dirty_len() >= WRITE_CELLS {
        cells.flush(b"").map_err(cold_error)?;
    }
    Ok(())
}

/// Reads the rolling snapshot.
pub(super) struct StateReplay {
    topic_id: TopicId,
    as_of: [Option<NextOffset>; SLICES],
    marks: [i64; SLICES],
    parts_done: u64,
}

impl StateReplay {
    pub(super) const fn new(topic_id: TopicId) -> Self {
        Self { topic_id, as_of: [None; SLICES], marks: [0; SLICES], parts_done: 0 }
    }

    pub(super) fn sink<'a>(
        &'a mut self,
        task: &'a mut CountTask,
        shared: &'a Shared,
    ) -> Result<impl BatchSink + 'a, PortError> {
        let stores = task.stores.as_mut().ok_or_else(no_stores)?;
        Ok(StateSink { replay: self, cells: &mut stores.cells, shared })
    }

    /// As of when each slice's cells are, and where in `deltas` to go on.
    pub(super) fn finish(self) -> ([NextOffset; SLICES], ScanFrom) {
        let from = if self.as_of.iter().all(Option::is_some) {
            ScanFrom::Offset(NextOffset(self.marks.into_iter().min().unwrap_or(0)))
        } else {
            ScanFrom::Earliest
        };
        (self.as_of.map(|as_of| as_of.unwrap_or(NextOffset::START)), from)
    }
}

struct StateSink<'a> {
    replay: &'a mut StateReplay,
    cells: &'a mut CellStore,
    shared: &'a Shared,
}

impl BatchSink for StateSink<'_> {
    fn batch(&mut self, partition: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError> {
        for record in records {
            let bytes = record.value.unwrap_or_default();
            let frame = StateFrame::decode(bytes).map_err(|why| halt(partition, record.offset, why))?;
            let head = frame.head;
            let slice = usize::from(head.slice);
            if head.entries_topic_id != self.replay.topic_id || head.slices != HASH_SLICES {
                return Err(halt(partition, record.offset, "the frame belongs to another entries topic"));
            }
            if head.part != self.replay.parts_done {
                return Err(halt(partition, record.offset, "a part of a slice is missing"));
            }
            let windows = &self.shared.parts.plan.windows;
            let rows: Vec<CellRow<'_>> = frame
                .rows
                .iter()
                .filter_map(|row| {
                    let table = if row.table.is_empty() {
                        Table::TOTALS
                    } else {
                        Table(windows.iter().position(|w| *w.name == *row.table)? as u8)
                    };
                    let cell = Cell { sum: row.sum, events: row.events };
                    Some(CellRow { key: row.key, table, start: row.start, cell })
                })
                .collect();
            self.cells.put_restored(&rows).map_err(cold_error)?;
            write_behind(self.cells)?;
            self.replay.parts_done = (head.part + 1) % head.parts;
            if self.replay.parts_done == 0
                && let (Some(as_of), Some(mark)) =
                    (self.replay.as_of.get_mut(slice), self.replay.marks.get_mut(slice))
            {
                *as_of = Some(head.through);
                *mark = head.deltas_mark;
            }
        }
        Ok(())
    }
}

/// A row that may not have been published: since when, its key and slice.
type Unpublished = (NextOffset, Vec<u8>, TimestampMs);

/// Reads the changelog.
pub(super) struct DeltaReplay {
    as_of: [NextOffset; SLICES],
    standing: Option<Standing>,
    unpublished: VecDeque<Unpublished>,
    parts_done: u64,
}

impl DeltaReplay {
    pub(super) const fn new(as_of: [NextOffset; SLICES]) -> Self {
        Self { as_of, standing: None, unpublished: VecDeque::new(), parts_done: 0 }
    }

    /// All cells are as of `through`.
    pub(super) const fn from_disk(through: NextOffset) -> Self {
        Self::new([through; SLICES])
    }

    pub(super) fn sink<'a>(
        &'a mut self,
        task: &'a mut CountTask,
        _shared: &'a Shared,
    ) -> Result<impl BatchSink + 'a, PortError> {
        let stores = task.stores.as_mut().ok_or_else(no_stores)?;
        Ok(DeltaSink { replay: self, cells: &mut stores.cells, chain: &*task.chain, ids: Vec::new() })
    }

    /// The standing of the last commit, and what it had not published yet.
    pub(super) fn finish(
        self,
        progress: Option<&Progress>,
        partition: &TopicPartition,
    ) -> Result<(Option<Standing>, VecDeque<Unpublished>), PortError> {
        let reached = self.standing.as_ref().map_or(NextOffset::START, |standing| standing.through);
        let needed = self.as_of.iter().copied().max().unwrap_or(NextOffset::START);
        let needed = progress.map_or(needed, |progress| progress.through.max(needed));
        if reached < needed {
            return Err(PortError::new(
                Reaction::Halt,
                format!(
                    "{partition}: local state or snapshots hold offsets below {needed}, but the deltas topic ends at {reached}: it was cut; restore it, or remove the state directory",
                ),
            ));
        }
        Ok((self.standing, self.unpublished))
    }

    /// Frames join: the first one reaches back to the oldest slice, each other one begins where the last ended.
    fn joins(&self, frame: &DeltaFrame<'_>) -> bool {
        match &self.standing {
            Some(last) => frame.standing.from == last.through,
            None => {
                let oldest = self.as_of.iter().copied().min().unwrap_or(NextOffset::START);
                frame.standing.from <= oldest || oldest == NextOffset::START
            }
        }
    }
}

struct DeltaSink<'a> {
    replay: &'a mut DeltaReplay,
    cells: &'a mut CellStore,
    chain: &'a dyn tallyflow_core::chain::CountChain,
    ids: Vec<CellId>,
}

impl DeltaSink<'_> {
    fn add(&mut self, frame: &DeltaFrame<'_>) -> Result<(), PortError> {
        let mut rows = Vec::with_capacity(frame.rows.len() * 2);
        for row in &frame.rows {
            let as_of = self.replay.as_of.get(usize::from(hash_slice(row.key)));
            if as_of.is_none_or(|as_of| frame.standing.from < *as_of) {
                continue;
            }
            self.ids.clear();
            self.chain.cells_of(CounterId(0), row.slice_start, &mut self.ids);
            let cell = Cell { sum: row.sum, events: row.events };
            rows.extend(self.ids.iter().map(|id| CellRow {
                key: row.key,
                table: id.table,
                start: id.start,
                cell,
            }));
        }
        self.cells.add_restored(&rows).map_err(cold_error)?;
        write_behind(self.cells)
    }
}

impl BatchSink for DeltaSink<'_> {
    fn batch(&mut self, partition: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError> {
        for record in records {
            let bytes = record.value.unwrap_or_default();
            let frame = DeltaFrame::decode(bytes).map_err(|why| halt(partition, record.offset, why))?;
            if frame.part != self.replay.parts_done {
                return Err(halt(partition, record.offset, "a part of a commit is missing"));
            }
            if frame.part == 0 && !self.replay.joins(&frame) {
                let from = frame.standing.from;
                return Err(halt(
                    partition,
                    record.offset,
                    format_args!("the frame begins at {from}, which does not join what was read before",),
                ));
            }
            self.add(&frame)?;
            let unpublished = &mut self.replay.unpublished;
            unpublished.extend(
                frame.rows.iter().map(|row| (frame.standing.from, row.key.to_vec(), row.slice_start)),
            );
            self.replay.parts_done = (frame.part + 1) % frame.parts;
            if self.replay.parts_done == 0 {
                let emitted = frame.standing.emitted_through;
                while unpublished.front().is_some_and(|(changed_at, ..)| *changed_at < emitted) {
                    unpublished.pop_front();
                }
                self.replay.standing = Some(frame.standing);
            }
        }
        Ok(())
    }
}

/// Reads ids back into the buckets that are not on disk.
pub(super) struct IdReplay {
    /// Oldest first; the last one may be open.
    missing: VecDeque<Bucket>,
    open_ids: u64,
}

impl IdReplay {
    pub(super) fn new(missing: Vec<Bucket>) -> Self {
        Self { missing: missing.into(), open_ids: 0 }
    }

    pub(super) fn sink<'a>(&'a mut self, task: &'a mut CountTask) -> Result<impl BatchSink + 'a, PortError> {
        if task.stores.is_none() {
            return Err(no_stores());
        }
        Ok(IdSink { replay: self, task })
    }

    /// Everything below `through` is read: closes what is still to be closed.
    pub(super) fn finish(mut self, task: &mut CountTask) -> Result<(), PortError> {
        self.close_below(task, task.standing.through)?;
        task.open_ids = self.open_ids;
        task.open_ids_settled = self.open_ids;
        let stores = task.stores.as_mut().ok_or_else(no_stores)?;
        stores.seen.commit().map_err(cold_error)
    }

    /// Seals the buckets that end at or below `offset`.
    fn close_below(&mut self, task: &mut CountTask, offset: NextOffset) -> Result<(), PortError> {
        let stores = task.stores.as_mut().ok_or_else(no_stores)?;
        while let Some(bucket) = self.missing.front().copied() {
            if bucket.end.is_none_or(|(end, _)| end > offset) {
                break;
            }
            stores.seen.roll(bucket);
            stores.seen.commit().map_err(cold_error)?;
            self.open_ids = 0;
            self.missing.pop_front();
        }
        Ok(())
    }
}

struct IdSink<'a> {
    replay: &'a mut IdReplay,
    task: &'a mut CountTask,
}

impl BatchSink for IdSink<'_> {
    fn batch(&mut self, partition: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError> {
        for record in records {
            let at = NextOffset(record.offset.0);
            if at >= self.task.standing.through {
                break;
            }
            self.replay.close_below(self.task, at)?;
            let wanted = self.replay.missing.front().is_some_and(|bucket| bucket.first <= at);
            if !wanted {
                continue;
            }
            let bytes = record.value.unwrap_or_default();
            let frame = EntryFrame::decode(bytes).map_err(|why| halt(partition, record.offset, why))?;
            let horizon = clock::horizon_at(&self.task.standing, record.offset);
            let stores = self.task.stores.as_mut().ok_or_else(no_stores)?;
            let judged = frame.entries.iter().filter(|e| horizon.is_none_or(|h| e.event_time > h));
            for entry in judged {
                stores.seen.replay(entry.identity, entry.check);
                self.replay.open_ids += 1;
            }
        }
        Ok(())
    }
}
