//! Intake's effects made provisional: entries go to the shuffle, the others become records of `late` and `dlq`.

use std::sync::Arc;

use tallyflow_core::effects::{IntakeEffects, Untimely};
use tallyflow_core::frame::entry::Entry;
use tallyflow_core::ids::{Coordinate, Offset, Partition, Source, TopicId};
use tallyflow_core::plan::Names;
use tallyflow_core::record::RecordView;
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Failure, LateReason, Verdict};

use super::IntakePartitions;
use super::task::IntakeTask;
use crate::failures::{self, Origin};
use crate::outbox::Outbox;
use crate::shuffle::Shuffle;
use crate::status::StageName;

/// Copies of one packed record's bytes in one transaction. Its further failing events are stubs that name the
/// record: 10 000 bad events in a record of 1 MiB would write 10 GiB otherwise.
const COPIES_LIMIT: u32 = 16;

/// The records of `late` and `dlq` of the open transaction.
pub(super) struct Failures {
    late: Arc<str>,
    dlq: Arc<str>,
    partitions: IntakePartitions,
    pub(super) outbox: Outbox,
    source: Source,
    topic: Arc<str>,
    now: TimestampMs,
    copies: (Offset, u32),
}

impl Failures {
    pub(super) fn new(names: &Names, partitions: IntakePartitions) -> Self {
        Self {
            late: Arc::clone(&names.late),
            dlq: Arc::clone(&names.dlq),
            partitions,
            outbox: Outbox::default(),
            source: Source { topic_id: TopicId::ZERO, partition: Partition(0) },
            topic: Arc::from(""),
            now: TimestampMs(0),
            copies: (Offset(-1), 0),
        }
    }

    /// The records that follow come from this task.
    pub(super) fn begin(&mut self, task: &IntakeTask, now: TimestampMs) {
        self.source = task.source;
        self.topic = Arc::clone(&task.partition.topic);
        self.now = now;
        self.copies = (Offset(-1), 0);
    }

    pub(super) const fn size_bytes(&self) -> usize {
        self.outbox.size_bytes()
    }

    fn origin<'a>(&self, topic: &'a str, record: &RecordView<'_>, index: Option<u32>) -> Origin<'a> {
        let coordinate = Coordinate { source: self.source, offset: record.offset, index: index.unwrap_or(0) };
        Origin { topic, coordinate, packed: index.is_some(), time: record.time }
    }

    /// The record itself while its copies are few, then nothing.
    fn original<'a>(&mut self, record: &'a RecordView<'a>) -> Option<&'a RecordView<'a>> {
        if self.copies.0 != record.offset {
            self.copies = (record.offset, 0);
        }
        self.copies.1 += 1;
        (self.copies.1 <= COPIES_LIMIT).then_some(record)
    }

    fn untimely(&mut self, event: &Untimely<'_>) {
        let topic = Arc::clone(&self.topic);
        let origin = self.origin(&topic, event.record, event.index);
        let original = self.original(event.record);
        let record = failures::untimely(
            original,
            &origin,
            event.verdict,
            LateReason::Age,
            Some(event.age_ms),
            self.now,
        );
        let partition = Partition(self.source.partition.0 % self.partitions.late.max(1));
        self.outbox.push(&Arc::clone(&self.late), partition, record);
    }

    fn invalid(
        &mut self,
        record: &RecordView<'_>,
        index: Option<u32>,
        event_id: Option<&str>,
        failure: &Failure,
    ) {
        let topic = Arc::clone(&self.topic);
        let origin = self.origin(&topic, record, index);
        let original = self.original(record);
        let stage = StageName::Intake.name();
        let letter = failures::dead_letter(original, &origin, event_id, stage, failure, self.now);
        let partition = Partition(self.source.partition.0 % self.partitions.dlq.max(1));
        self.outbox.push_dead_letter(&Arc::clone(&self.dlq), partition, letter, failure.category);
    }
}

/// The effects of one chunk of one task.
pub(super) struct TaskEffects<'a> {
    pub(super) slot: usize,
    pub(super) task: &'a mut IntakeTask,
    pub(super) shuffle: &'a mut Shuffle,
    pub(super) failures: &'a mut Failures,
}

impl IntakeEffects for TaskEffects<'_> {
    fn entry(&mut self, target: u32, key: &[u8], entry: Entry) {
        self.task.now.tallies.received += 1;
        self.task.now.tallies.admitted += 1;
        self.shuffle.push(self.slot, target, key, entry);
    }

    fn untimely(&mut self, event: &Untimely<'_>) {
        self.task.now.tallies.received += 1;
        self.task.now.tallies.count(event.verdict);
        self.failures.untimely(event);
    }

    fn invalid(
        &mut self,
        record: &RecordView<'_>,
        index: Option<u32>,
        event_id: Option<&str>,
        failure: Failure,
    ) {
        self.task.now.tallies.received += 1;
        self.task.now.tallies.count(Verdict::Invalid);
        self.failures.invalid(record, index, event_id, &failure);
    }

    fn record_done(&mut self, offset: Offset) {
        self.task.now.through = offset.next();
    }
}
