//! The intake stage: records in, entry frames, late records, dead letters and ledger rows out.
//!
//! ```text
//!  records ─► task (per source partition) ─► Intake processor ─► shuffle ─► frames per target
//!                     │ tallies, through, progress      └─► late, dlq
//!                     └─► ledger row: also the task's restart record
//! ```
//!
//! Its only state is the ledger row per source partition. Keeps: EO-2, EO-3, LG-1, TM-1.
//!
//! Must not know: formats (a decoder sits in the processor), Kafka clients.

mod effects;
mod parts;
mod restore;
mod task;

use std::collections::HashMap;
use std::sync::Arc;

use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_core::outputs::LedgerRow;
use tallyflow_core::plan::AppendTime;
use tallyflow_core::processor::Consumed;
use tallyflow_core::record::{OutRecord, RecordTime, RecordView};
use tallyflow_core::tallies::Tallies;

use self::effects::{Failures, TaskEffects};
pub use self::parts::{IntakePartitions, IntakeParts, IntakeProcessor};
use self::restore::Restore;
use self::task::{IntakeTask, Phase};
use crate::ledger::ledger_partition;
use crate::outbox::Outbox;
use crate::ports::{Now, PortError, Reaction, SentOffset, StreamLog};
use crate::shuffle::{Shuffle, SourceMark};
use crate::stage::{Housekeeping, Stage, StagePorts};
use crate::status::{StageName, TaskStatus};

/// A chunk of a batch: at most so many bytes of values (256 KiB), or one record.
const CHUNK_BYTES: usize = 256 * 1024;
/// A transaction takes no more input beyond this: 16 MiB of frames, late records and dead letters.
const TRANSACTION_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// Progress older than this is told to every target (architecture §3).
const PROGRESS_INTERVAL_MS: u64 = 1_000;

/// The tasks of one intake worker.
pub struct IntakeStage<P> {
    parts: IntakeParts<P>,
    inputs: HashMap<Arc<str>, usize>,
    slots: Vec<Option<IntakeTask>>,
    shuffle: Shuffle,
    failures: Failures,
    restore: Restore,
    uncommitted_since_ms: Option<u64>,
    heartbeat_at_ms: u64,
    verdicts: Tallies,
}

impl<P: IntakeProcessor> IntakeStage<P> {
    /// A stage without tasks.
    pub fn new(parts: IntakeParts<P>) -> Self {
        let inputs = parts.plan.inputs.iter().enumerate();
        Self {
            inputs: inputs.map(|(at, input)| (Arc::clone(&input.topic), at)).collect(),
            slots: Vec::new(),
            shuffle: Shuffle::new(parts.plan.entries_partitions),
            failures: Failures::new(&parts.names, parts.partitions),
            restore: Restore::default(),
            uncommitted_since_ms: None,
            heartbeat_at_ms: 0,
            verdicts: Tallies::default(),
            parts,
        }
    }

    fn tasks(&self) -> impl Iterator<Item = &IntakeTask> {
        self.slots.iter().flatten()
    }

    fn running(&mut self) -> impl Iterator<Item = &mut IntakeTask> {
        self.slots.iter_mut().flatten().filter(|task| task.phase == Phase::Running)
    }

    fn slot_of(&self, partition: &TopicPartition) -> Option<usize> {
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(|t| t.partition == *partition))
    }

    /// Processes a chunk and closes the frames that it filled.
    fn chunk(&mut self, slot: usize, records: &[RecordView<'_>], now: Now) -> Result<(), PortError> {
        let Self { parts, slots, shuffle, failures, .. } = self;
        let Some(Some(task)) = slots.get_mut(slot) else {
            return Ok(());
        };
        let input = task.input;
        failures.begin(task, now.wall);
        let mut effects = TaskEffects { slot, task, shuffle, failures };
        let consumed = parts.processor.process((records, input), (), now.wall, &mut effects);
        match consumed {
            Ok(Consumed::All) => {}
            // Only a stage with timers may wait; intake has none, and a batch half read must not be committed.
            Ok(Consumed::Part { .. }) => {
                return Err(PortError::new(Reaction::Halt, "intake's processor asked to wait"));
            }
            Err(error) => return Err(PortError::new(Reaction::Halt, error.to_string())),
        }
        while let Some(target) = self.shuffle.oversized() {
            self.close_target(target, false);
        }
        Ok(())
    }

    fn close_target(&mut self, target: u32, always: bool) {
        let plan = &self.parts.plan;
        let marks: Vec<Option<SourceMark<'_>>> = self
            .slots
            .iter()
            .map(|slot| {
                let task = slot.as_ref().filter(|task| task.phase == Phase::Running)?;
                let input = plan.inputs.get(task.input)?;
                let section = task.section(&input.name, plan.limits.limits());
                Some(SourceMark { section, always })
            })
            .collect();
        self.shuffle.close(target, &marks);
    }

    fn ledger_record(&self, task: &IntakeTask) -> OutRecord {
        let row = LedgerRow {
            stage: StageName::Intake.name(),
            task: &task.name,
            source_topic_id: task.source.topic_id,
            source_partition: task.source.partition,
            source_topic: &task.partition.topic,
            tallies: task.now.tallies,
            through_offset: task.now.through,
            complete_through: task.now.progress,
        };
        let mut record = OutRecord::default();
        self.parts.encoder.ledger(&row, &mut record);
        record
    }

    fn heartbeat_due(&self, now: Now) -> bool {
        let stale = now.steady_ms >= self.heartbeat_at_ms.saturating_add(PROGRESS_INTERVAL_MS);
        self.tasks().any(|t| t.phase == Phase::Running && (t.first || (stale && t.news())))
    }
}

impl<P: IntakeProcessor> Stage for IntakeStage<P> {
    fn name(&self) -> StageName {
        StageName::Intake
    }

    fn assigned(&mut self, partitions: &[TopicPartition], now: Now) {
        for partition in partitions {
            let Some(input) = self.inputs.get(&partition.topic).copied() else {
                continue;
            };
            let task = IntakeTask::new(partition.clone(), input, now.steady_ms);
            match self.slots.iter().position(Option::is_none) {
                Some(free) => {
                    if let Some(slot) = self.slots.get_mut(free) {
                        *slot = Some(task);
                    }
                }
                None => self.slots.push(Some(task)),
            }
        }
    }

    fn closed(&mut self, partitions: &[TopicPartition]) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|task| partitions.contains(&task.partition)) {
                *slot = None;
            }
        }
    }

    fn partitions(&self) -> Vec<TopicPartition> {
        self.tasks().map(|task| task.partition.clone()).collect()
    }

    fn advance_restores(
        &mut self,
        ports: &mut StagePorts<'_>,
        now: Now,
    ) -> Result<Vec<(TopicPartition, NextOffset)>, PortError> {
        let ready = self.restore.advance(&self.parts, &mut self.slots, ports, now)?;
        let mut starts = Vec::with_capacity(ready.len());
        for slot in ready {
            let Some(Some(task)) = self.slots.get_mut(slot) else {
                continue;
            };
            task.phase = Phase::Running;
            task.last_record_ms = now.steady_ms;
            self.shuffle.open(slot, task.mark());
            starts.push((task.partition.clone(), task.now.through));
            self.uncommitted_since_ms.get_or_insert(now.steady_ms);
        }
        Ok(starts)
    }

    fn restoring(&self) -> bool {
        self.tasks().any(|task| task.phase != Phase::Running)
    }

    fn batch(
        &mut self,
        partition: &TopicPartition,
        records: &[RecordView<'_>],
        now: Now,
    ) -> Result<(), PortError> {
        let Some(slot) = self.slot_of(partition) else {
            return Ok(());
        };
        let Some(Some(task)) = self.slots.get_mut(slot) else {
            return Ok(());
        };
        let known = records.partition_point(|record| task.now.through.covers(record.offset));
        let records = records.get(known..).unwrap_or(&[]);
        if task.phase != Phase::Running || records.is_empty() {
            return Ok(());
        }
        let policy = self.parts.plan.inputs.get(task.input).map(|input| input.append_time);
        task.hear(records, policy.unwrap_or(AppendTime::Log), &self.parts.plan.limits, now)?;
        self.uncommitted_since_ms.get_or_insert(now.steady_ms);
        let (mut start, mut bytes) = (0, 0);
        for (at, record) in records.iter().enumerate() {
            bytes += record.value.map_or(0, <[u8]>::len);
            if bytes >= CHUNK_BYTES {
                self.chunk(slot, records.get(start..=at).unwrap_or(&[]), now)?;
                (start, bytes) = (at + 1, 0);
            }
        }
        self.chunk(slot, records.get(start..).unwrap_or(&[]), now)
    }

    fn positions(&mut self, log: &dyn StreamLog) {
        let mut moved = false;
        for task in self.running() {
            if let Some(position) = log.position(&task.partition)
                && position > task.now.through
            {
                task.now.through = position;
                moved = true;
            }
        }
        if moved {
            self.uncommitted_since_ms.get_or_insert(0);
        }
    }

    fn housekeeping(&mut self, ports: &mut StagePorts<'_>, now: Now) -> Result<Housekeeping, PortError> {
        let topics: Vec<Arc<str>> = self.parts.plan.inputs.iter().map(|i| Arc::clone(&i.topic)).collect();
        let names: Vec<&str> = topics.iter().map(AsRef::as_ref).collect();
        let found = ports.admin.topics(&names)?;
        let mut report = Housekeeping::default();
        for task in self.running() {
            let info = found.get(task.input).and_then(Option::as_ref);
            match info {
                Some(info) if info.id == task.source.topic_id => task.source_partitions = info.partitions,
                Some(_) => {
                    let reason = "the topic was created again: it is a new source";
                    report.restart.push((task.partition.clone(), reason.to_owned()));
                }
                None => {
                    let reason = "the topic is gone: waiting for it";
                    report.restart.push((task.partition.clone(), reason.to_owned()));
                }
            }
        }
        let places: Vec<TopicPartition> = self.running().map(|task| task.partition.clone()).collect();
        if places.is_empty() || !report.restart.is_empty() {
            return Ok(report);
        }
        let ends = ports.admin.ends(&places)?;
        let idle_ms = self.parts.plan.limits.idle_timeout_ms;
        for (task, ends) in self.running().zip(ends) {
            task.heard_end(ends.high_watermark_offset, idle_ms, now);
        }
        Ok(report)
    }

    fn due(&mut self, now: Now) -> Result<bool, PortError> {
        let interval = self.parts.plan.engine.commit_interval_ms.unsigned_abs();
        let input = self.uncommitted_since_ms.is_some_and(|since| now.steady_ms >= since + interval);
        Ok(self.full() || input || self.heartbeat_due(now))
    }

    fn next_due_ms(&self, now: Now) -> u64 {
        let interval = self.parts.plan.engine.commit_interval_ms.unsigned_abs();
        let heartbeat = self.heartbeat_at_ms + PROGRESS_INTERVAL_MS;
        let later = now.steady_ms + PROGRESS_INTERVAL_MS;
        self.uncommitted_since_ms.map_or(later, |since| since + interval).min(heartbeat.max(now.steady_ms))
    }

    fn full(&self) -> bool {
        self.shuffle.size_bytes() + self.failures.size_bytes() >= TRANSACTION_LIMIT_BYTES
    }

    fn take_due(&mut self, now: Now, _last: bool, out: &mut Outbox) -> Result<(), PortError> {
        let heartbeat = self.heartbeat_due(now);
        for target in 0..self.parts.plan.entries_partitions {
            if heartbeat || self.shuffle.has_entries(target) {
                self.close_target(target, heartbeat);
            }
        }
        if heartbeat {
            self.heartbeat_at_ms = now.steady_ms;
            self.running().for_each(IntakeTask::told);
        }
        let entries = Arc::clone(&self.parts.names.entries);
        for (partition, bytes) in self.shuffle.take_ready() {
            out.push(&entries, partition, OutRecord { value: Some(bytes), ..OutRecord::default() });
        }
        out.append(&mut self.failures.outbox);
        let ledger = Arc::clone(&self.parts.names.ledger);
        for task in self.tasks().filter(|task| task.phase == Phase::Running && task.changed()) {
            let partition = ledger_partition(&task.source, self.parts.partitions.ledger);
            out.push(&ledger, partition, self.ledger_record(task));
        }
        Ok(())
    }

    fn offsets(&self) -> Vec<SentOffset> {
        let running = self.tasks().filter(|task| task.phase == Phase::Running);
        running
            .map(|task| SentOffset {
                partition: task.partition.clone(),
                offset: task.now.through,
                metadata: task.source.topic_id.to_string(),
            })
            .collect()
    }

    fn committed(&mut self, _now: Now) -> Result<(), PortError> {
        let mut verdicts = self.verdicts;
        self.running().for_each(|task| verdicts.add(&task.committed()));
        self.verdicts = verdicts;
        self.uncommitted_since_ms = None;
        Ok(())
    }

    fn aborted(&mut self) -> Vec<(TopicPartition, NextOffset)> {
        self.shuffle.clear();
        self.failures.outbox.clear();
        self.restore = Restore::default();
        self.uncommitted_since_ms = None;
        let mut starts = Vec::new();
        for (slot, task) in self.slots.iter_mut().enumerate() {
            let Some(task) = task else { continue };
            if task.phase == Phase::Running {
                task.aborted();
                self.shuffle.open(slot, task.mark());
                starts.push((task.partition.clone(), task.now.through));
            } else {
                task.phase = Phase::New;
            }
        }
        starts
    }

    fn verdicts(&self) -> Tallies {
        self.verdicts
    }

    fn blocked(&self) -> Option<String> {
        None
    }

    fn status(&self, _now: Now) -> Vec<TaskStatus> {
        let uncommitted = self.uncommitted_since_ms.is_some();
        self.tasks().map(|task| task.status(uncommitted)).collect()
    }
}

/// The append time of a record under a policy; `None` where the topic does not fit the policy.
pub(crate) const fn append_time(
    time: RecordTime,
    policy: AppendTime,
) -> Option<tallyflow_core::time::TimestampMs> {
    match (time, policy) {
        (RecordTime::LogAppend(time), _) | (RecordTime::Create(time), AppendTime::Record) => Some(time),
        _ => None,
    }
}
