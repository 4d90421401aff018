//! Where an intake task begins: its own ledger row is the authority, the group's offset a hint (architecture §7).
//!
//! ```text
//!  topic ids ─► group offsets (stable) ─► ends ─► barrier ─► ledger ─► decide, per task
//! ```

use std::time::Duration;

use tallyflow_core::ids::{NextOffset, Source, TopicPartition};
use tallyflow_core::outputs::OwnedLedgerRow;

use super::IntakeParts;
use super::task::{IntakeTask, Phase, Standing};
use crate::ledger::{LedgerRead, ledger_partition};
use crate::ports::{Committed, LogEnds, Now, PortError, Reaction};
use crate::stage::StagePorts;

/// Longest single wait for the ledger within one step.
const SLICE: Duration = Duration::from_millis(50);

/// The restore of all tasks that were new when it began.
#[derive(Default)]
pub(super) struct Restore {
    read: Option<LedgerRead>,
    questions: Vec<Question>,
}

struct Question {
    slot: usize,
    committed: Option<Committed>,
    ends: LogEnds,
}

impl Restore {
    /// One slice. Returns the slots of the tasks that are ready to start.
    pub(super) fn advance<P>(
        &mut self,
        parts: &IntakeParts<P>,
        slots: &mut [Option<IntakeTask>],
        ports: &mut StagePorts<'_>,
        now: Now,
    ) -> Result<Vec<usize>, PortError> {
        if self.read.is_none() {
            self.begin(parts, slots, ports, now)?;
        }
        let Some(read) = &mut self.read else {
            return Ok(Vec::new());
        };
        if !read.advance(&*parts.decoder, SLICE)? {
            return Ok(Vec::new());
        }
        let mut ready = Vec::new();
        for question in self.questions.drain(..) {
            let Some(Some(task)) = slots.get_mut(question.slot) else {
                continue;
            };
            if task.phase != Phase::Reading {
                continue;
            }
            let row = read.row(&task.source);
            let place = Place { partition: &task.partition, source: task.source };
            let standing =
                decide(&place, row, question.committed.as_ref(), &question.ends, parts.accept_loss)?;
            task.restored(standing);
            task.end = Some(question.ends.high_watermark_offset);
            ready.push(question.slot);
        }
        self.read = None;
        Ok(ready)
    }

    fn begin<P>(
        &mut self,
        parts: &IntakeParts<P>,
        slots: &mut [Option<IntakeTask>],
        ports: &mut StagePorts<'_>,
        now: Now,
    ) -> Result<(), PortError> {
        let new: Vec<usize> = slots
            .iter()
            .enumerate()
            .filter_map(|(at, slot)| slot.as_ref().filter(|t| t.phase == Phase::New).map(|_| at))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let topics: Vec<&str> = parts.plan.inputs.iter().map(|input| input.topic.as_ref()).collect();
        let found = ports.admin.topics(&topics)?;
        let mut places = Vec::with_capacity(new.len());
        let mut ledgers = Vec::new();
        for slot in &new {
            let Some(Some(task)) = slots.get_mut(*slot) else {
                continue;
            };
            let Some(info) = found.get(task.input).and_then(Option::as_ref) else {
                return Err(PortError::new(
                    Reaction::Retry,
                    format!(
                        "topic {} does not exist; create it, or run tallyflow topics --execute",
                        task.partition.topic
                    ),
                ));
            };
            task.source = Source { topic_id: info.id, partition: task.partition.partition };
            task.source_partitions = info.partitions;
            places.push(task.partition.clone());
            ledgers.push(ledger_partition(&task.source, parts.partitions.ledger));
        }
        // The stable group offset first: it waits out a predecessor's transaction. Rows read later are newer.
        let committed = ports.log.committed(&places)?;
        let ends = ports.admin.ends(&places)?;
        ledgers.sort_unstable();
        ledgers.dedup();
        let read = LedgerRead::begin(
            ports,
            &*parts.encoder,
            &parts.names.ledger,
            &ledgers,
            &parts.transactional_id,
            now.wall.0,
        )?;
        self.read = Some(read);
        self.questions = new
            .iter()
            .zip(committed)
            .zip(ends)
            .map(|((slot, committed), ends)| Question { slot: *slot, committed, ends })
            .collect();
        for slot in new {
            if let Some(Some(task)) = slots.get_mut(slot) {
                task.phase = Phase::Reading;
            }
        }
        Ok(())
    }
}

struct Place<'a> {
    partition: &'a TopicPartition,
    source: Source,
}

/// Where to begin, and what to book as passed over. The whole table of §7 for an input.
fn decide(
    place: &Place<'_>,
    row: Option<&OwnedLedgerRow>,
    group: Option<&Committed>,
    ends: &LogEnds,
    accept_loss: bool,
) -> Result<Standing, PortError> {
    let halt = |what: String| Err(PortError::new(Reaction::Halt, format!("{}: {what}", place.partition)));
    let ours = group.filter(|group| group.metadata == place.source.topic_id.to_string());
    let Some(row) = row else {
        if let Some(ours) = ours.filter(|_| !accept_loss) {
            return halt(format!(
                "the group has committed offset {} of this very topic, but the ledger has no row for it: the ledger was lost; restore it, or start with --accept-loss to count from the earliest offset again",
                ours.offset,
            ));
        }
        return Ok(Standing { through: ends.start, ..Standing::default() });
    };
    let mut standing =
        Standing { through: row.through_offset, tallies: row.tallies, progress: row.complete_through };
    let through = row.through_offset;
    match ours.map(|group| group.offset) {
        Some(offset) if offset > through => {
            if !accept_loss {
                return halt(format!(
                    "the group stands at offset {offset}, but the ledger accounts only for offsets below {through}: offsets {through} to {} would not be counted; reset the group to {through}, or start with --accept-loss",
                    offset.0 - 1,
                ));
            }
            standing.tallies.skipped += gap(through, offset);
            standing.through = offset;
        }
        Some(offset) if offset < through => standing.tallies.skipped += gap(offset, through),
        Some(_) => {}
        None => standing.tallies.skipped += gap(ends.start, through),
    }
    if standing.through < ends.start {
        if !accept_loss {
            return halt(format!(
                "offsets {} to {} were not counted and are no longer retained; start with --accept-loss to go on at {} and book them as skipped",
                standing.through,
                ends.start.0 - 1,
                ends.start,
            ));
        }
        standing.tallies.skipped += gap(standing.through, ends.start);
        standing.through = ends.start;
    }
    if standing.through > ends.high_watermark_offset {
        return halt(format!(
            "the ledger accounts for offsets below {}, but the log ends at {}: it was cut; restore it from a replica",
            standing.through, ends.high_watermark_offset,
        ));
    }
    Ok(standing)
}

fn gap(from: NextOffset, to: NextOffset) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
