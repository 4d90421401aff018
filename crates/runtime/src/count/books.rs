//! What a count task tells the public: rows of windows and totals, ledger rows, dead letters and late stubs.
//!
//! A ledger row per source partition, written when its tallies changed, at most once a second and at drain.

use std::collections::HashMap;

use tallyflow_core::chain::RowSink;
use tallyflow_core::frame::delta::{SourceRow, Standing};
use tallyflow_core::frame::entry::{Entry, Section};
use tallyflow_core::ids::{Coordinate, Partition, Source};
use tallyflow_core::outputs::{CountRow, LedgerRow, WindowRow};
use tallyflow_core::processor::CellId;
use tallyflow_core::record::{OutRecord, RecordTime};
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Category, Failure, LateReason, Verdict};

use super::Shared;
use crate::failures::{self, Origin};
use crate::ledger::ledger_partition;
use crate::outbox::{Outbox, partition_of_key};
use crate::ports::Now;
use crate::status::StageName;

/// Shortest time between two ledger rows of a source.
const LEDGER_INTERVAL_MS: u64 = 1_000;

/// Which tallies the ledger knows.
#[derive(Debug, Default)]
pub(super) struct Books {
    told: HashMap<Source, Tallies>,
    telling: Vec<(Source, Tallies)>,
    told_at_ms: u64,
}

impl Books {
    /// Whether the ledger knows everything that is committed.
    pub(super) fn told(&self, settled: &Standing) -> bool {
        settled.sources.iter().all(|row| self.told.get(&row.source) == Some(&row.tallies))
    }

    /// Whether rows are due.
    pub(super) fn due(&self, settled: &Standing, now: Now) -> bool {
        now.steady_ms >= self.told_at_ms + LEDGER_INTERVAL_MS && !self.told(settled)
    }

    /// Puts the rows that are due into the outbox.
    pub(super) fn take(
        &mut self,
        task: &str,
        standing: &Standing,
        shared: &Shared,
        now: Now,
        last: bool,
        out: &mut Outbox,
    ) {
        if !last && now.steady_ms < self.told_at_ms + LEDGER_INTERVAL_MS {
            return;
        }
        self.told_at_ms = now.steady_ms;
        for row in standing.sources.iter().filter(|r| self.told.get(&r.source) != Some(&r.tallies)) {
            let partition = ledger_partition(&row.source, shared.parts.partitions.ledger);
            out.push(&shared.parts.names.ledger, partition, ledger_record(task, row, standing, shared));
            self.telling.push((row.source, row.tallies));
        }
    }

    pub(super) fn committed(&mut self) {
        self.told.extend(self.telling.drain(..));
    }

    pub(super) fn aborted(&mut self) {
        self.telling.clear();
        self.told_at_ms = 0;
    }
}

fn ledger_record(task: &str, row: &SourceRow, standing: &Standing, shared: &Shared) -> OutRecord {
    let input = shared.parts.plan.inputs.iter().find(|input| *input.name == *row.input);
    let ledger = LedgerRow {
        stage: StageName::Count.name(),
        task,
        source_topic_id: row.source.topic_id,
        source_partition: row.source.partition,
        source_topic: input.map_or(row.input.as_str(), |input| &input.topic),
        tallies: Tallies { skipped: standing.skipped, ..row.tallies },
        through_offset: standing.through,
        complete_through: standing.complete_through,
    };
    let mut record = OutRecord::default();
    shared.parts.encoder.ledger(&ledger, &mut record);
    record
}

/// A conflict becomes a dead letter, an entry behind the horizon a late record: stubs, their bytes are not here.
pub(super) fn letter(
    out: &mut Outbox,
    shared: &Shared,
    section: &Section<'_>,
    entry: &Entry,
    verdict: Verdict,
    now: TimestampMs,
) {
    let parts = &shared.parts;
    let input = parts.plan.inputs.iter().find(|input| *input.name == *section.input);
    let origin = Origin {
        topic: input.map_or(section.input, |input| &input.topic),
        coordinate: Coordinate { source: section.source, offset: entry.offset, index: entry.index },
        packed: entry.index > 0,
        time: entry.first_append.map_or(RecordTime::Unknown, RecordTime::LogAppend),
    };
    let source = section.source.partition.0;
    if verdict == Verdict::Conflict {
        let failure = Failure::new(Category::IdConflict, "the id was seen with another payload");
        let record = failures::dead_letter(None, &origin, None, StageName::Count.name(), &failure, now);
        let partition = Partition(source % parts.partitions.dlq.max(1));
        out.push_dead_letter(&parts.names.dlq, partition, record, failure.category);
    } else {
        let record = failures::untimely(None, &origin, verdict, LateReason::Horizon, None, now);
        out.push(&parts.names.late, Partition(source % parts.partitions.late.max(1)), record);
    }
}

/// Encodes rows into the outbox, with the commit's timestamp.
pub(super) struct OutboxRows<'a> {
    shared: &'a Shared,
    timestamp: TimestampMs,
    out: &'a mut Outbox,
}

impl<'a> OutboxRows<'a> {
    pub(super) const fn new(shared: &'a Shared, standing: &Standing, out: &'a mut Outbox) -> Self {
        Self { shared, timestamp: standing.committed_at, out }
    }

    fn push(&mut self, topic: &std::sync::Arc<str>, mut record: OutRecord) {
        record.timestamp = Some(self.timestamp);
        let partitions = self.shared.parts.plan.entries_partitions;
        let partition = partition_of_key(record.key.as_deref().unwrap_or_default(), partitions);
        self.out.push(topic, partition, record);
    }
}

impl RowSink for OutboxRows<'_> {
    fn window(&mut self, _cell: CellId, row: &WindowRow<'_>) {
        let mut record = OutRecord::default();
        self.shared.parts.encoder.window(row, &mut record);
        self.push(&self.shared.parts.names.windows, record);
    }

    fn total(&mut self, _cell: CellId, row: &CountRow<'_>) {
        let mut record = OutRecord::default();
        self.shared.parts.encoder.count(row, &mut record);
        self.push(&self.shared.parts.names.counts, record);
    }
}
