//! One intake task: a source partition, how far it is, and what it has tallied.

use tallyflow_core::frame::entry::Section;
use tallyflow_core::ids::{NextOffset, Source, TopicId, TopicPartition};
use tallyflow_core::plan::{AppendTime, TimePlan};
use tallyflow_core::record::RecordView;
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::{Limits, TimestampMs};

use super::append_time;
use crate::ports::{Now, PortError, Reaction};
use crate::shuffle::Mark;
use crate::status::{TaskState, TaskStatus};

/// Where a task is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Waits for the next read of the ledger.
    New,
    /// The ledger is being read.
    Reading,
    /// Processes records.
    Running,
}

/// How far a task is: committed, or provisional.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Standing {
    pub(super) through: NextOffset,
    pub(super) tallies: Tallies,
    pub(super) progress: Option<TimestampMs>,
}

pub(super) struct IntakeTask {
    pub(super) partition: TopicPartition,
    pub(super) name: String,
    pub(super) input: usize,
    pub(super) source: Source,
    pub(super) source_partitions: u32,
    pub(super) phase: Phase,
    pub(super) now: Standing,
    committed: Standing,
    told: Standing,
    /// No transaction has spoken for this task yet.
    pub(super) first: bool,
    pub(super) last_record_ms: u64,
    pub(super) end: Option<NextOffset>,
}

impl IntakeTask {
    pub(super) fn new(partition: TopicPartition, input: usize, steady_ms: u64) -> Self {
        Self {
            name: partition.to_string(),
            source: Source { topic_id: TopicId::ZERO, partition: partition.partition },
            partition,
            input,
            source_partitions: 0,
            phase: Phase::New,
            now: Standing::default(),
            committed: Standing::default(),
            told: Standing::default(),
            first: true,
            last_record_ms: steady_ms,
            end: None,
        }
    }

    /// Stands where the ledger says; nothing of it is provisional but what `skip` added.
    pub(super) fn restored(&mut self, standing: Standing) {
        self.now = standing;
        self.committed = standing;
        self.told = standing;
        self.first = true;
    }

    /// Takes note of the append times of records that are about to be processed.
    ///
    /// # Errors
    ///
    /// A halt where the topic has CreateTime and the topology does not say so.
    pub(super) fn hear(
        &mut self,
        records: &[RecordView<'_>],
        policy: AppendTime,
        limits: &TimePlan,
        now: Now,
    ) -> Result<(), PortError> {
        self.last_record_ms = now.steady_ms;
        let horizon = now.wall.plus(limits.future_ms);
        for record in records {
            let Some(time) = append_time(record.time, policy) else {
                return Err(PortError::new(
                    Reaction::Halt,
                    format!(
                        "{} offset {}: the record has no LogAppendTime; set message.timestamp.type=LogAppendTime on the topic, or append_time = \"record\" on the input",
                        self.partition, record.offset,
                    ),
                ));
            };
            // A producer's clock in the future moves no progress (contract §2).
            if policy == AppendTime::Log || time <= horizon {
                self.now.progress = Some(self.now.progress.map_or(time, |before| before.max(time)));
            }
        }
        Ok(())
    }

    /// The end of the log as of `now`, asked read_uncommitted. An idle partition's progress is that instant: every
    /// record appended later carries a later time, up to clock skew, which `settle_lag` covers.
    pub(super) fn heard_end(&mut self, end: NextOffset, idle_ms: i64, now: Now) {
        self.end = Some(end);
        let idle = now.steady_ms.saturating_sub(self.last_record_ms) >= idle_ms.unsigned_abs();
        if idle && self.now.through >= end {
            let before = self.now.progress.unwrap_or(TimestampMs::MIN);
            self.now.progress = Some(before.max(now.wall));
        }
    }

    pub(super) fn section<'a>(&self, input: &'a str, limits: Limits) -> Section<'a> {
        Section {
            input,
            source: self.source,
            source_partitions: self.source_partitions,
            from: self.now.through,
            through: self.now.through,
            progress: self.now.progress,
            limits,
            tallies: self.now.tallies,
            entries: 0,
        }
    }

    pub(super) const fn mark(&self) -> Mark {
        Mark { from: self.now.through, tallies: self.now.tallies }
    }

    /// Whether the ledger row must be written.
    pub(super) fn changed(&self) -> bool {
        self.first || self.now.through != self.committed.through || self.now.tallies != self.committed.tallies
    }

    /// Whether the targets have not heard of the newest progress.
    pub(super) fn news(&self) -> bool {
        self.now.progress != self.told.progress || self.now.through != self.told.through
    }

    pub(super) const fn told(&mut self) {
        self.told = self.now;
    }

    /// Makes the standing good; returns what was tallied since the last commit.
    pub(super) const fn committed(&mut self) -> Tallies {
        let verdicts = self.now.tallies.since(&self.committed.tallies);
        self.committed = self.now;
        self.first = false;
        verdicts
    }

    pub(super) const fn aborted(&mut self) {
        self.now = self.committed;
        self.told = Standing { progress: None, ..self.committed };
        self.first = true;
    }

    pub(super) fn status(&self, uncommitted: bool) -> TaskStatus {
        let running = self.phase == Phase::Running;
        let caught_up = self.end.is_some_and(|end| self.now.through >= end);
        TaskStatus {
            task: self.name.clone(),
            state: if running { TaskState::Running } else { TaskState::Restoring },
            position: running.then_some(self.now.through),
            end: self.end,
            complete_through: self.now.progress,
            restore: None,
            settled: running && caught_up && !uncommitted && !self.first && !self.changed(),
            append_clock: self.now.progress,
            tallies: self.now.tallies,
            residual: i64::try_from(self.now.tallies.intake_residual()).unwrap_or(i64::MAX),
            seen_hot: 0,
            seen_cold: 0,
            seen_horizon_ms: None,
            memory_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tallyflow_core::ids::{Offset, Partition};
    use tallyflow_core::record::RecordTime;

    fn at(wall: i64, steady_ms: u64) -> Now {
        Now { wall: TimestampMs(wall), steady_ms }
    }

    fn record(time: RecordTime) -> RecordView<'static> {
        RecordView { partition: Partition(0), offset: Offset(4), time, key: None, value: None, headers: &[] }
    }

    const LIMITS: TimePlan = TimePlan {
        accept_ms: 300_000,
        future_ms: 5_000,
        remember_ms: 305_000,
        settle_lag_ms: 5_000,
        idle_timeout_ms: 5_000,
    };

    #[test]
    fn an_idle_partition_is_as_new_as_the_question() {
        let mut task = IntakeTask::new(TopicPartition::new("events", 0), 0, 1_000);
        task.now.through = NextOffset(7);
        task.heard_end(NextOffset(7), 5_000, at(90_000, 5_999));
        assert_eq!(task.now.progress, None, "not idle for long enough");
        task.heard_end(NextOffset(8), 5_000, at(90_000, 6_000));
        assert_eq!(task.now.progress, None, "an unread record holds it");
        task.heard_end(NextOffset(7), 5_000, at(90_000, 6_000));
        assert_eq!(task.now.progress, Some(TimestampMs(90_000)));
        task.heard_end(NextOffset(7), 5_000, at(80_000, 7_000));
        assert_eq!(
            task.now.progress,
            Some(TimestampMs(90_000)),
            "a clock that ran back does not take it back"
        );
    }

    #[test]
    fn a_future_producer_clock_moves_no_progress() {
        let mut task = IntakeTask::new(TopicPartition::new("events", 0), 0, 0);
        task.hear(
            &[record(RecordTime::Create(TimestampMs(105_001)))],
            AppendTime::Record,
            &LIMITS,
            at(100_000, 1),
        )
        .unwrap();
        assert_eq!(task.now.progress, None);
        task.hear(
            &[record(RecordTime::Create(TimestampMs(105_000)))],
            AppendTime::Record,
            &LIMITS,
            at(100_000, 1),
        )
        .unwrap();
        assert_eq!(task.now.progress, Some(TimestampMs(105_000)));
        let error = task
            .hear(&[record(RecordTime::Create(TimestampMs(1)))], AppendTime::Log, &LIMITS, at(1, 1))
            .unwrap_err();
        assert_eq!(error.reaction, Reaction::Halt);
        assert!(error.message.contains("append_time = \"record\""), "{error}");
    }

    #[test]
    fn an_abort_goes_back_and_speaks_up_again() {
        let mut task = IntakeTask::new(TopicPartition::new("events", 0), 0, 0);
        task.restored(Standing { through: NextOffset(5), ..Standing::default() });
        task.committed();
        assert!(!task.changed());
        task.now.through = NextOffset(9);
        task.now.tallies.received = 4;
        assert!(task.changed());
        task.aborted();
        assert_eq!((task.now.through, task.now.tallies.received, task.first), (NextOffset(5), 0, true));
    }
}
