//! One count task: an `entries` partition, its state, and the transaction under way.
//!
//! ```text
//!   Restoring ──► Running ──frame*──► take_due ──► committed ──► maintain
//!                    ▲                    └──► aborted ──┘
//! ```

use std::sync::Arc;

use tallyflow_core::chain::{CountChain, Due};
use tallyflow_core::frame::delta::{DeltaFrameBuilder, DeltaRow, Standing};
use tallyflow_core::frame::entry::EntryFrame;
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::processor::{CounterId, Delta, StateUnavailable};
use tallyflow_core::record::{OutRecord, RecordView};
use tallyflow_core::tallies::Tallies;
use tallyflow_core::verdict::Verdict;
use tallyflow_state::cells::CellStore;
use tallyflow_state::cold::ColdStore;
use tallyflow_state::seen::SeenStore;

use super::books::{Books, OutboxRows, letter};
use super::maintenance::Maintenance;
use super::restore::Restore;
use super::{Shared, clock};
use crate::outbox::Outbox;
use crate::ports::{Now, PortError, Reaction};
use crate::status::{TaskState, TaskStatus};

/// Where a task is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Restoring,
    Running,
}

/// Finals and timed updates of one commit: 20 000 rows of about 400 bytes are 8 MiB.
const BUDGET_ROWS: usize = 20_000;

/// Local state of a task that has been opened.
pub(super) struct Stores {
    pub(super) cold: Arc<dyn ColdStore>,
    pub(super) seen: SeenStore,
    pub(super) cells: CellStore,
}

pub(super) struct CountTask {
    pub(super) partition: TopicPartition,
    pub(super) name: String,
    pub(super) phase: Phase,
    pub(super) restore: Option<Box<Restore>>,
    pub(super) stores: Option<Stores>,
    pub(super) chain: Box<dyn CountChain>,
    /// As it will be committed.
    pub(super) standing: Standing,
    /// As it was committed last.
    pub(super) settled: Standing,
    pub(super) deltas: Vec<Delta>,
    pub(super) failures: Outbox,
    pub(super) open_ids: u64,
    pub(super) open_ids_settled: u64,
    pub(super) first: bool,
    pub(super) books: Books,
    pub(super) maintenance: Maintenance,
    /// Why local state could not be written: no input is taken, and the task is restored.
    pub(super) failed: Option<String>,
    end: Option<NextOffset>,
    verdicts: Vec<Verdict>,
    counters: Vec<CounterId>,
    builder: DeltaFrameBuilder,
}

impl CountTask {
    pub(super) fn new(partition: TopicPartition, shared: &Shared) -> Self {
        Self {
            name: partition.to_string(),
            partition,
            phase: Phase::Restoring,
            restore: Some(Box::default()),
            stores: None,
            chain: (shared.parts.chain)(),
            standing: Standing::default(),
            settled: Standing::default(),
            deltas: Vec::new(),
            failures: Outbox::default(),
            open_ids: 0,
            open_ids_settled: 0,
            first: true,
            books: Books::default(),
            maintenance: Maintenance::default(),
            failed: None,
            end: None,
            verdicts: Vec::new(),
            counters: Vec::new(),
            builder: DeltaFrameBuilder::default(),
        }
    }

    /// Applies one frame, provisionally.
    pub(super) fn frame(
        &mut self,
        record: &RecordView<'_>,
        shared: &Shared,
        now: Now,
    ) -> Result<(), PortError> {
        let place = format_args!("{} offset {}", self.partition, record.offset).to_string();
        let foreign = |why: String| {
            PortError::new(
                Reaction::Halt,
                format!("{place}: {why}; somebody else wrote to this topic, or it is damaged"),
            )
        };
        let bytes = record.value.ok_or_else(|| foreign("the record has no value".to_owned()))?;
        let frame = EntryFrame::decode(bytes).map_err(|error| foreign(error.to_string()))?;
        let Some(stores) = &mut self.stores else {
            return Ok(());
        };
        let horizon = clock::horizon_at(&self.standing, record.offset);
        self.counters.clear();
        self.counters.extend(frame.counters.iter().map(|key| stores.cells.intern(key)));
        for (section, entries) in frame.by_section() {
            let row = clock::source_row(&mut self.standing, section).map_err(|overlap| {
                foreign(format!(
                    "source {} comes again: offsets from {} though {} is known already",
                    section.source, overlap.from, overlap.known,
                ))
            })?;
            self.verdicts.clear();
            let seen = &mut stores.seen;
            self.chain.judge(entries, horizon, seen, &mut self.verdicts).map_err(unreadable)?;
            self.chain
                .tally(entries, &self.verdicts, &self.counters, &mut self.deltas)
                .map_err(unreadable)?;
            row.tallies.admitted += entries.len() as u64;
            for (entry, verdict) in entries.iter().zip(&self.verdicts) {
                row.tallies.count(*verdict);
                if *verdict != Verdict::Late {
                    self.open_ids += 1;
                }
                if matches!(verdict, Verdict::Late | Verdict::Conflict) {
                    letter(&mut self.failures, shared, section, entry, *verdict, now.wall);
                }
            }
        }
        let turn = clock::advance(
            &mut self.standing,
            &frame.sections,
            record.offset.next(),
            self.open_ids,
            &shared.clocks,
        );
        if let Some(bucket) = turn.closed {
            stores.seen.roll(bucket);
            self.open_ids = 0;
        }
        turn.forgotten.into_iter().for_each(|bucket| stores.seen.forget(bucket));
        Ok(())
    }

    pub(super) fn has_due(&mut self, now: Now) -> Result<bool, PortError> {
        let Some(stores) = &mut self.stores else {
            return Ok(false);
        };
        if self.first || self.maintenance.has_snapshot() || self.books.due(&self.settled, now) {
            return Ok(true);
        }
        self.chain
            .has_due(now.steady_ms, self.standing.complete_through, &mut stores.cells)
            .map_err(unreadable)
    }

    /// Step 1 of the commit for this task.
    pub(super) fn take_due(
        &mut self,
        shared: &Shared,
        now: Now,
        last: bool,
        out: &mut Outbox,
    ) -> Result<(), PortError> {
        let Some(stores) = &mut self.stores else {
            return Ok(());
        };
        let names = &shared.parts.names;
        self.standing.from = self.settled.through;
        self.standing.committed_at = self.settled.committed_at.max(now.wall);
        self.chain.merge(&self.deltas, self.standing.from, &mut stores.cells).map_err(unreadable)?;
        // Over the memory budget everything that waits goes out now: nothing refers to the counters after that.
        let purge = stores.cells.memory_bytes() > shared.cells_budget_bytes();
        let ahead_ms = if purge { shared.longest_emit_ms() } else { 0 };
        let due = Due {
            steady_ms: now.steady_ms + ahead_ms,
            through: self.standing.through,
            complete_through: self.standing.complete_through,
            budget_rows: if purge { usize::MAX } else { BUDGET_ROWS },
        };
        let mut sink = OutboxRows::new(shared, &self.standing, out);
        let taken = self.chain.take_due(&due, &mut stores.cells, &mut sink).map_err(unreadable)?;
        self.standing.cursors = self.chain.cursors();
        self.standing.emitted_through = self.chain.emitted_through(self.standing.through);
        out.append(&mut self.failures);
        let moved = self.standing.through != self.settled.through
            || self.standing.cursors != self.settled.cursors
            || self.standing.emitted_through != self.settled.emitted_through;
        if self.first || moved || taken.rows > 0 {
            for delta in &self.deltas {
                let key = tallyflow_core::processor::Cells::key(&stores.cells, delta.counter);
                let row =
                    DeltaRow { key, slice_start: delta.slice_start, sum: delta.sum, events: delta.events };
                self.builder.push(&row);
            }
            push_frames(out, &names.deltas, self.partition.partition, self.builder.finish(&self.standing));
        }
        push_frames(out, &names.state, self.partition.partition, self.maintenance.take_snapshot());
        self.books.take(&self.name, &self.standing, shared, now, last, out);
        Ok(())
    }

    /// Step 5, the part in memory. Returns the verdicts given since the last commit.
    pub(super) fn committed(&mut self) -> Tallies {
        let mut verdicts = Tallies::default();
        for row in &self.standing.sources {
            let before = self.settled.sources.iter().find(|r| r.source == row.source);
            verdicts.add(&row.tallies.since(&before.map(|r| r.tallies).unwrap_or_default()));
        }
        verdicts.skipped += self.standing.skipped - self.settled.skipped;
        self.maintenance.changed |= !self.deltas.is_empty();
        self.settled.clone_from(&self.standing);
        self.open_ids_settled = self.open_ids;
        self.deltas.clear();
        self.first = false;
        self.chain.committed();
        self.books.committed();
        self.maintenance.committed();
        if let Some(stores) = &mut self.stores {
            stores.cells.commit();
        }
        verdicts
    }

    /// Drops the transaction.
    pub(super) fn aborted(&mut self) {
        self.standing.clone_from(&self.settled);
        self.open_ids = self.open_ids_settled;
        self.deltas.clear();
        self.failures.clear();
        self.builder.clear();
        self.first = true;
        self.chain.aborted();
        self.books.aborted();
        self.maintenance.aborted();
        if let Some(stores) = &mut self.stores {
            stores.cells.abort();
            stores.seen.abort();
        }
    }

    /// The ends of `entries` and `deltas`, asked between two commits.
    pub(super) fn heard_ends(&mut self, entries: NextOffset, deltas: NextOffset) {
        self.end = Some(entries);
        self.maintenance.mark(self.settled.through, deltas);
    }

    pub(super) fn status(&self, uncommitted: bool, now: Now) -> TaskStatus {
        let running = self.phase == Phase::Running;
        let caught_up = self.end.is_some_and(|end| self.standing.through >= end);
        let mut tallies = Tallies { skipped: self.settled.skipped, ..Tallies::default() };
        self.settled.sources.iter().for_each(|row| tallies.add(&row.tallies));
        let stores = self.stores.as_ref();
        let horizon = self.settled.complete_through.zip(self.settled.horizon.last());
        TaskStatus {
            task: self.name.clone(),
            state: if running { TaskState::Running } else { TaskState::Restoring },
            position: running.then_some(self.standing.through),
            end: self.end,
            complete_through: self.settled.complete_through,
            restore: self.restore.as_ref().map(|restore| restore.status(now)).filter(|_| !running),
            settled: running
                && caught_up
                && !uncommitted
                && !self.first
                && self.chain.pending_len() == 0
                && self.books.told(&self.settled),
            append_clock: self.settled.append_clock,
            tallies,
            residual: i64::try_from(tallies.count_residual()).unwrap_or(i64::MAX),
            seen_hot: stores.map_or(0, |stores| stores.seen.hot_len()),
            seen_cold: stores.map_or(0, |stores| stores.seen.cold_len()),
            seen_horizon_ms: horizon.map(|(now, step)| now.since(step.threshold)),
            memory_bytes: stores.map_or(0, |s| s.seen.memory_bytes() + s.cells.memory_bytes()),
        }
    }
}

fn push_frames(out: &mut Outbox, topic: &Arc<str>, partition: Partition, frames: Vec<Vec<u8>>) {
    for value in frames {
        out.push(topic, partition, OutRecord { value: Some(value), ..OutRecord::default() });
    }
}

/// Local state that cannot be read: nothing can be judged, and nothing provisional is lost by stopping.
pub(super) fn unreadable(error: StateUnavailable) -> PortError {
    PortError::new(Reaction::Halt, error.to_string())
}
