//! The ledger as intake's restart record: reading our own rows back, completely.
//!
//! The ledger is compacted, so its last markers may be gone and a position cannot prove that everything was read.
//! The reader therefore commits a *barrier row* of its own to each partition and reads read_committed until it sees
//! it: that also waits out a predecessor whose transaction is still open. The barrier speaks for no input offset and
//! is the one transaction without offsets; it carries no fact either.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tallyflow_core::codec::{LedgerDecoder, RowEncoder};
use tallyflow_core::ids::{NextOffset, Partition, Source, TopicId, TopicPartition};
use tallyflow_core::outputs::{LedgerRow, OwnedLedgerRow};
use tallyflow_core::record::{OutRecord, RecordView};
use tallyflow_core::tallies::Tallies;

use crate::commit::insist;
use crate::outbox::partition_of_key;
use crate::ports::{BatchSink, PortError, Reaction, Scan, ScanFrom};
use crate::stage::StagePorts;
use crate::status::StageName;

/// The stage name of barrier rows.
pub const BARRIER_STAGE: &str = "barrier";

/// The `ledger` partition of a source's rows.
pub fn ledger_partition(source: &Source, partitions: u32) -> Partition {
    let mut key = source.topic_id.0.to_vec();
    key.extend_from_slice(&source.partition.0.to_be_bytes());
    partition_of_key(&key, partitions)
}

/// A read of the ledger partitions that hold some sources' rows.
pub struct LedgerRead {
    lanes: Vec<Lane>,
    rows: HashMap<Source, OwnedLedgerRow>,
    barrier: NextOffset,
    task: String,
}

struct Lane {
    scan: Box<dyn Scan>,
    seen_barrier: bool,
}

impl LedgerRead {
    /// Commits the barrier and begins to read.
    ///
    /// `task` names the reader (its transactional id), `nonce` tells its barriers apart.
    ///
    /// # Errors
    ///
    /// The ports'.
    pub fn begin(
        ports: &mut StagePorts<'_>,
        encoder: &dyn RowEncoder,
        topic: &Arc<str>,
        partitions: &[Partition],
        task: &str,
        nonce: i64,
    ) -> Result<Self, PortError> {
        insist(&mut || ports.log.begin())?;
        for partition in partitions {
            let record = barrier_record(encoder, task, nonce);
            insist(&mut || ports.log.send(topic, *partition, &record))?;
        }
        insist(&mut || ports.log.commit())?;
        let mut lanes = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let place = TopicPartition { topic: Arc::clone(topic), partition: *partition };
            let scan = ports.reader.scan(&place, ScanFrom::Earliest)?;
            lanes.push(Lane { scan, seen_barrier: false });
        }
        Ok(Self { lanes, rows: HashMap::new(), barrier: NextOffset(nonce), task: task.to_owned() })
    }

    /// Reads on for at most `max_wait`. `true` once every barrier was seen.
    ///
    /// # Errors
    ///
    /// The reader's; a halt where a log ends without its barrier.
    pub fn advance(&mut self, decoder: &dyn LedgerDecoder, max_wait: Duration) -> Result<bool, PortError> {
        let Self { lanes, rows, barrier, task } = self;
        for lane in lanes.iter_mut().filter(|lane| !lane.seen_barrier) {
            let mut sink =
                RowSink { decoder, rows, barrier: *barrier, task, seen_barrier: &mut lane.seen_barrier };
            let progress = lane.scan.advance(max_wait, &mut sink)?;
            if progress.done && !lane.seen_barrier {
                return Err(PortError::new(
                    Reaction::Halt,
                    format!(
                        "the ledger ends at {} without the barrier row just committed to it",
                        progress.end
                    ),
                ));
            }
        }
        Ok(lanes.iter().all(|lane| lane.seen_barrier))
    }

    /// Intake's row of a source.
    pub fn row(&self, source: &Source) -> Option<&OwnedLedgerRow> {
        self.rows.get(source)
    }
}

struct RowSink<'a> {
    decoder: &'a dyn LedgerDecoder,
    rows: &'a mut HashMap<Source, OwnedLedgerRow>,
    barrier: NextOffset,
    task: &'a str,
    seen_barrier: &'a mut bool,
}

impl BatchSink for RowSink<'_> {
    fn batch(&mut self, _: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError> {
        for record in records {
            let Some(row) = self.decoder.ledger(record.key, record.value) else {
                continue;
            };
            if row.stage == BARRIER_STAGE {
                *self.seen_barrier |= row.task == self.task && row.through_offset == self.barrier;
            } else if row.stage == StageName::Intake.name() {
                let source = Source { topic_id: row.source_topic_id, partition: row.source_partition };
                self.rows.insert(source, row);
            }
        }
        Ok(())
    }
}

fn barrier_record(encoder: &dyn RowEncoder, task: &str, nonce: i64) -> OutRecord {
    let row = LedgerRow {
        stage: BARRIER_STAGE,
        task,
        source_topic_id: TopicId::ZERO,
        source_partition: Partition(0),
        source_topic: "",
        tallies: Tallies::default(),
        through_offset: NextOffset(nonce),
        complete_through: None,
    };
    let mut record = OutRecord::default();
    encoder.ledger(&row, &mut record);
    record
}
