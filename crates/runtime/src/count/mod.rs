//! The count stage: entry frames in, window rows, totals, delta frames, state frames and ledger rows out.
//!
//! ```text
//!  frames ─► task (per entries partition): judge ─► tally ─► clocks
//!                │ at a commit: merge ─► due rows ─► windows, counts
//!                │                      └─ deltas, ledger, dlq, late
//!                └ after it: seal buckets, write cells behind, now and then a slice of state
//! ```
//!
//! Keeps: EO-1, EO-2, EO-3, LG-1, LG-2, TM-1, TM-2, WN-1.
//!
//! Must not know: the processors (they come as a [`CountChain`]), formats, Kafka clients, RocksDB.

mod books;
mod clock;
mod maintenance;
mod replay;
mod restore;
mod task;

use std::sync::Arc;

use tallyflow_core::chain::CountChain;
use tallyflow_core::codec::RowEncoder;
use tallyflow_core::ids::{NextOffset, TopicId, TopicPartition};
use tallyflow_core::plan::{Emit, Names, Plan};
use tallyflow_core::record::RecordView;
use tallyflow_core::tallies::Tallies;
use tallyflow_state::cold::ColdStores;

use self::clock::ClockPlan;
use self::task::{CountTask, Phase};
use crate::outbox::Outbox;
use crate::ports::{Now, PortError, Reaction, SentOffset, StreamLog};
use crate::stage::{Housekeeping, Stage, StagePorts};
use crate::status::{StageName, TaskStatus};

/// Partition counts of the topics that count writes to by number.
#[derive(Clone, Copy, Debug)]
pub struct CountPartitions {
    /// Of `ledger`.
    pub ledger: u32,
    /// Of `dlq`.
    pub dlq: u32,
    /// Of `late`.
    pub late: u32,
}

/// What the wiring gives the stage.
pub struct CountParts {
    /// The compiled plan.
    pub plan: Arc<Plan>,
    /// The app's topics.
    pub names: Names,
    /// Their partitions.
    pub partitions: CountPartitions,
    /// Makes the chain of a task.
    pub chain: Box<dyn Fn() -> Box<dyn CountChain>>,
    /// Writes public rows.
    pub encoder: Box<dyn RowEncoder>,
    /// Opens local state.
    pub stores: Box<dyn ColdStores>,
    /// `--accept-loss`: go on where offsets are lost, and book them.
    pub accept_loss: bool,
}

/// What every task of the stage shares.
pub(crate) struct Shared {
    pub(crate) parts: CountParts,
    pub(crate) clocks: ClockPlan,
}

impl Shared {
    /// The share of one task in the memory for cells: half of it, divided among all tasks of the app.
    pub(crate) fn cells_budget_bytes(&self) -> u64 {
        let plan = &self.parts.plan;
        plan.engine.memory_bytes / 2 / u64::from(plan.entries_partitions.max(1))
    }

    /// The longest pace of updates.
    pub(crate) fn longest_emit_ms(&self) -> u64 {
        let plan = &self.parts.plan;
        let windows = plan.windows.iter().map(|window| match window.emit {
            Emit::EveryMs(ms) => ms,
            Emit::Final => 0,
        });
        windows.chain([plan.totals_emit_ms]).max().unwrap_or(0).unsigned_abs()
    }
}

/// A transaction takes no more input beyond this many distinct counters and slices: each is a few rows.
const DELTAS_LIMIT: usize = 100_000;
/// Bytes of dead letters and late stubs of a transaction: 16 MiB.
const FAILURES_LIMIT_BYTES: usize = 16 * 1024 * 1024;

/// The tasks of one count worker.
pub struct CountStage {
    shared: Shared,
    tasks: Vec<CountTask>,
    uncommitted_since_ms: Option<u64>,
    asked_at_ms: u64,
    verdicts: Tallies,
}

impl CountStage {
    /// A stage without tasks.
    pub fn new(parts: CountParts) -> Self {
        let clocks = ClockPlan::of(&parts.plan);
        Self {
            shared: Shared { parts, clocks },
            tasks: Vec::new(),
            uncommitted_since_ms: None,
            asked_at_ms: 0,
            verdicts: Tallies::default(),
        }
    }

    fn running(&mut self) -> impl Iterator<Item = &mut CountTask> {
        self.tasks.iter_mut().filter(|task| task.phase == Phase::Running)
    }

    fn interval_ms(&self) -> u64 {
        self.shared.parts.plan.engine.commit_interval_ms.unsigned_abs()
    }

    /// Whether a task has something to say though no input came. Asked once per commit interval.
    fn timed(&mut self, now: Now) -> Result<bool, PortError> {
        if now.steady_ms < self.asked_at_ms + self.interval_ms() {
            return Ok(false);
        }
        self.asked_at_ms = now.steady_ms;
        for task in self.running() {
            if task.has_due(now)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what is due to local state. A task whose store cannot be written is restored once it can: the store's
    /// handle is not trusted after a failed write.
    fn maintain(&mut self, now: Now) -> Result<(), PortError> {
        for task in self.tasks.iter_mut().filter(|task| task.phase == Phase::Running) {
            if let Err(error) = task.maintain(now) {
                task.failed = Some(maintenance::environment(error)?);
            }
        }
        Ok(())
    }
}

impl Stage for CountStage {
    fn name(&self) -> StageName {
        StageName::Count
    }

    fn assigned(&mut self, partitions: &[TopicPartition], _now: Now) {
        for partition in partitions {
            self.tasks.push(CountTask::new(partition.clone(), &self.shared));
        }
    }

    fn closed(&mut self, partitions: &[TopicPartition]) {
        self.tasks.retain(|task| !partitions.contains(&task.partition));
        if self.tasks.is_empty() {
            self.uncommitted_since_ms = None;
        }
    }

    fn partitions(&self) -> Vec<TopicPartition> {
        self.tasks.iter().map(|task| task.partition.clone()).collect()
    }

    fn advance_restores(
        &mut self,
        ports: &mut StagePorts<'_>,
        now: Now,
    ) -> Result<Vec<(TopicPartition, NextOffset)>, PortError> {
        let mut ready = Vec::new();
        for task in self.tasks.iter_mut().filter(|task| task.phase == Phase::Restoring) {
            if restore::advance(task, &mut self.shared, ports, now)? {
                task.phase = Phase::Running;
                ready.push((task.partition.clone(), task.standing.through));
            }
        }
        if !ready.is_empty() {
            self.uncommitted_since_ms.get_or_insert(now.steady_ms);
        }
        Ok(ready)
    }

    fn restoring(&self) -> bool {
        self.tasks.iter().any(|task| task.phase == Phase::Restoring)
    }

    fn batch(
        &mut self,
        partition: &TopicPartition,
        records: &[RecordView<'_>],
        now: Now,
    ) -> Result<(), PortError> {
        let Some(task) = self.tasks.iter_mut().find(|task| task.partition == *partition) else {
            return Ok(());
        };
        if task.phase != Phase::Running {
            return Ok(());
        }
        for record in records {
            if !task.standing.through.covers(record.offset) {
                task.frame(record, &self.shared, now)?;
                self.uncommitted_since_ms.get_or_insert(now.steady_ms);
            }
        }
        Ok(())
    }

    fn positions(&mut self, log: &dyn StreamLog) {
        let mut moved = false;
        for task in self.running() {
            if let Some(position) = log.position(&task.partition)
                && position > task.standing.through
            {
                task.standing.through = position;
                moved = true;
            }
        }
        if moved {
            self.uncommitted_since_ms.get_or_insert(self.asked_at_ms);
        }
    }

    fn housekeeping(&mut self, ports: &mut StagePorts<'_>, _now: Now) -> Result<Housekeeping, PortError> {
        let failed = self.tasks.iter().filter_map(|t| Some((t.partition.clone(), t.failed.clone()?)));
        let restart: Vec<_> = failed.collect();
        if !restart.is_empty() {
            return Ok(Housekeeping { restart });
        }
        let names = &self.shared.parts.names;
        let topics = [names.entries.as_ref(), names.deltas.as_ref()];
        let found = ports.admin.topics(&topics)?;
        let entries_id = found.first().and_then(Option::as_ref).map_or(TopicId::ZERO, |info| info.id);
        let mut places = Vec::new();
        let deltas = Arc::clone(&names.deltas);
        for task in self.running() {
            if task.standing.entries_topic_id != entries_id {
                return Err(PortError::new(
                    Reaction::Halt,
                    format!(
                        "topic {} was deleted or created again while its counts live: restore it, or start a new app",
                        task.partition.topic,
                    ),
                ));
            }
            places.push(task.partition.clone());
            places.push(TopicPartition { topic: Arc::clone(&deltas), partition: task.partition.partition });
        }
        if places.is_empty() {
            return Ok(Housekeeping::default());
        }
        let ends = ports.admin.ends(&places)?;
        for (task, ends) in self.running().zip(ends.chunks(2)) {
            if let [entries, deltas] = ends {
                task.heard_ends(entries.high_watermark_offset, deltas.high_watermark_offset);
            }
        }
        Ok(Housekeeping::default())
    }

    fn due(&mut self, now: Now) -> Result<bool, PortError> {
        let interval = self.interval_ms();
        let input = self.uncommitted_since_ms.is_some_and(|since| now.steady_ms >= since + interval);
        Ok(self.full() || input || self.timed(now)?)
    }

    fn next_due_ms(&self, now: Now) -> u64 {
        let asked = self.asked_at_ms + self.interval_ms();
        let input = self.uncommitted_since_ms.map_or(u64::MAX, |since| since + self.interval_ms());
        input.min(asked).max(now.steady_ms)
    }

    fn full(&self) -> bool {
        let deltas: usize = self.tasks.iter().map(|task| task.deltas.len()).sum();
        let failures: usize = self.tasks.iter().map(|task| task.failures.size_bytes()).sum();
        deltas >= DELTAS_LIMIT || failures >= FAILURES_LIMIT_BYTES
    }

    fn take_due(&mut self, now: Now, last: bool, out: &mut Outbox) -> Result<(), PortError> {
        for task in self.tasks.iter_mut().filter(|task| task.phase == Phase::Running) {
            task.take_due(&self.shared, now, last, out)?;
        }
        Ok(())
    }

    fn offsets(&self) -> Vec<SentOffset> {
        let running = self.tasks.iter().filter(|task| task.phase == Phase::Running);
        running
            .map(|task| SentOffset {
                partition: task.partition.clone(),
                offset: task.standing.through,
                metadata: task.standing.entries_topic_id.to_string(),
            })
            .collect()
    }

    fn committed(&mut self, now: Now) -> Result<(), PortError> {
        self.uncommitted_since_ms = None;
        for task in self.tasks.iter_mut().filter(|task| task.phase == Phase::Running) {
            self.verdicts.add(&task.committed());
        }
        // Memory is committed everywhere before the first file is touched: a full disk loses nothing.
        self.maintain(now)
    }

    fn aborted(&mut self) -> Vec<(TopicPartition, NextOffset)> {
        self.uncommitted_since_ms = None;
        let mut starts = Vec::new();
        for task in self.running() {
            task.aborted();
            starts.push((task.partition.clone(), task.standing.through));
        }
        starts
    }

    fn verdicts(&self) -> Tallies {
        self.verdicts
    }

    fn blocked(&self) -> Option<String> {
        self.tasks.iter().find_map(|task| task.failed.clone())
    }

    fn status(&self, now: Now) -> Vec<TaskStatus> {
        let uncommitted = self.uncommitted_since_ms.is_some();
        self.tasks.iter().map(|task| task.status(uncommitted, now)).collect()
    }
}
