//! How a count task comes back: from its own disk, or from the log alone.
//!
//! ```text
//!              ┌ progress on disk ──────────────┐
//!  group's offset (stable), ends                ├─► deltas ─► decide ─► entries (ids) ─► running
//!              └ none: state slices ────────────┘
//! ```
//!
//! The last delta frame is the authority; the group's offset is a hint (architecture §7). Every step is a bounded
//! slice of the worker's round.
//!
//! Keeps: EO-3 (delta frames join), TM-2 (buckets and thresholds are read, not computed again).

use std::sync::Arc;
use std::time::Duration;

use tallyflow_core::frame::delta::Standing;
use tallyflow_core::ids::{NextOffset, TopicId, TopicPartition};
use tallyflow_core::processor::Cells;
use tallyflow_state::cells::CellStore;
use tallyflow_state::cold::{ColdError, ColdStore};
use tallyflow_state::seen::SeenStore;

use super::Shared;
use super::clock;
use super::maintenance::Progress;
use super::replay::{DeltaReplay, IdReplay, StateReplay};
use super::task::{CountTask, Stores};
use crate::ports::{Committed, LogEnds, Now, PortError, Reaction, Scan, ScanFrom, ScanProgress};
use crate::stage::StagePorts;
use crate::status::RestoreStatus;

/// Longest single wait for a log within one step.
const SLICE: Duration = Duration::from_millis(50);

/// How far a restore is.
#[derive(Default)]
pub(super) struct Restore {
    step: Step,
    facts: Option<Facts>,
    progress: Option<Progress>,
    done: u64,
    scan: Option<ScanProgress>,
    began_at_ms: Option<u64>,
}

#[derive(Default)]
enum Step {
    #[default]
    Begin,
    State(Box<dyn Scan>, StateReplay),
    Deltas(Box<dyn Scan>, DeltaReplay),
    Ids(Box<dyn Scan>, IdReplay),
    Done,
}

/// What was asked at the beginning, in this order: the group's offset waits out a predecessor.
struct Facts {
    topic_id: TopicId,
    committed: Option<Committed>,
    entries: LogEnds,
}

impl Restore {
    /// Records of the log that is being read; the logs after it are not known yet.
    pub(super) fn status(&self, now: Now) -> RestoreStatus {
        let left = self.scan.map_or(0, |scan| u64::try_from(scan.end.0 - scan.position.0).unwrap_or(0));
        let took_ms = now.steady_ms.saturating_sub(self.began_at_ms.unwrap_or(now.steady_ms));
        let eta_seconds = left.saturating_mul(took_ms) / self.done.max(1) / 1_000;
        RestoreStatus { done: self.done, total: self.done + left, eta_seconds }
    }

    fn note(&mut self, progress: ScanProgress) {
        let before = self.scan.map_or(progress.position.0, |scan| scan.position.0);
        self.done += u64::try_from(progress.position.0 - before).unwrap_or(0);
        self.scan = Some(progress);
    }
}

/// One slice of a task's restore. `true` once it is done.
///
/// # Errors
///
/// A halt where the task may not go on; a retry where the cluster did not answer.
pub(super) fn advance(
    task: &mut CountTask,
    shared: &mut Shared,
    ports: &mut StagePorts<'_>,
    now: Now,
) -> Result<bool, PortError> {
    let Some(mut restore) = task.restore.take() else {
        return Ok(true);
    };
    restore.began_at_ms.get_or_insert(now.steady_ms);
    let step = std::mem::take(&mut restore.step);
    let next = slice(task, shared, ports, &mut restore, step);
    match next {
        Ok(Step::Done) => Ok(true),
        Ok(step) => {
            restore.step = step;
            task.restore = Some(restore);
            Ok(false)
        }
        Err(error) => {
            // Begin again: nothing of a half restore is trusted, nor rows due under counters of that store.
            task.stores = None;
            task.chain = (shared.parts.chain)();
            task.restore = Some(Box::default());
            Err(error)
        }
    }
}

fn slice(
    task: &mut CountTask,
    shared: &mut Shared,
    ports: &mut StagePorts<'_>,
    restore: &mut Restore,
    step: Step,
) -> Result<Step, PortError> {
    match step {
        Step::Begin => begin(task, shared, ports, restore),
        Step::State(mut scan, mut replay) => {
            let progress = scan.advance(SLICE, &mut replay.sink(task, shared)?)?;
            restore.note(progress);
            if !progress.done {
                return Ok(Step::State(scan, replay));
            }
            let (as_of, from) = replay.finish();
            restore.scan = None;
            let place = place(&shared.parts.names.deltas, task);
            let scan = ports.reader.scan(&place, from)?;
            Ok(Step::Deltas(scan, DeltaReplay::new(as_of)))
        }
        Step::Deltas(mut scan, mut replay) => {
            let progress = scan.advance(SLICE, &mut replay.sink(task, shared)?)?;
            restore.note(progress);
            if !progress.done {
                return Ok(Step::Deltas(scan, replay));
            }
            decide(task, shared, ports, restore, replay)
        }
        Step::Ids(mut scan, mut replay) => {
            let progress = scan.advance(SLICE, &mut replay.sink(task)?)?;
            restore.note(progress);
            if !progress.done && progress.position < task.standing.through {
                return Ok(Step::Ids(scan, replay));
            }
            replay.finish(task)?;
            Ok(Step::Done)
        }
        Step::Done => Ok(Step::Done),
    }
}

fn place(topic: &Arc<str>, task: &CountTask) -> TopicPartition {
    TopicPartition { topic: Arc::clone(topic), partition: task.partition.partition }
}

fn begin(
    task: &mut CountTask,
    shared: &mut Shared,
    ports: &mut StagePorts<'_>,
    restore: &mut Restore,
) -> Result<Step, PortError> {
    let names = shared.parts.names.clone();
    let topics = [names.entries.as_ref(), names.deltas.as_ref(), names.state.as_ref()];
    let found = ports.admin.topics(&topics)?;
    if let Some((missing, _)) = topics.iter().zip(&found).find(|(_, info)| info.is_none()) {
        let message = format!("topic {missing} does not exist; run tallyflow topics --execute");
        return Err(PortError::new(Reaction::Retry, message));
    }
    let topic_id = found.first().and_then(Option::as_ref).map_or(TopicId::ZERO, |info| info.id);
    let places = [task.partition.clone()];
    let committed = ports.log.committed(&places)?.pop().flatten();
    let ends = ports.admin.ends(&places)?.pop();
    let Some(entries) = ends else {
        return Err(PortError::new(Reaction::Retry, "the broker did not say where the log ends"));
    };
    restore.facts = Some(Facts { topic_id, committed, entries });
    let (stores, progress) = open(task, shared)?;
    if progress.is_some_and(|progress| progress.topic_id != topic_id) {
        return Err(recreated(task));
    }
    task.stores = Some(stores);
    restore.progress = progress;
    match progress {
        Some(progress) => {
            let from = ScanFrom::Offset(progress.deltas_mark);
            let scan = ports.reader.scan(&place(&names.deltas, task), from)?;
            Ok(Step::Deltas(scan, DeltaReplay::from_disk(progress.through)))
        }
        None => {
            let scan = ports.reader.scan(&place(&names.state, task), ScanFrom::Earliest)?;
            Ok(Step::State(scan, StateReplay::new(topic_id)))
        }
    }
}

/// Opens the task's local state; what is damaged or half restored is discarded, since the log has everything.
fn open(task: &CountTask, shared: &mut Shared) -> Result<(Stores, Option<Progress>), PortError> {
    let name = format!("count-{}", task.partition.partition);
    let mut cold = match shared.parts.stores.open(&name) {
        Ok(cold) => cold,
        Err(ColdError::Damaged(what)) => {
            tracing::warn!(task = %task.partition, "{what}; discarding local state, rebuilding it from the log");
            shared.parts.stores.discard(&name).map_err(cold_error)?;
            shared.parts.stores.open(&name).map_err(cold_error)?
        }
        Err(error) => return Err(cold_error(error)),
    };
    let progress = cold.progress().map_err(cold_error)?;
    let known = progress.as_deref().and_then(Progress::decode);
    if progress.is_some() && known.is_none() {
        drop(cold);
        shared.parts.stores.discard(&name).map_err(cold_error)?;
        cold = shared.parts.stores.open(&name).map_err(cold_error)?;
    }
    let tables: Vec<&str> = shared.parts.plan.windows.iter().map(|window| window.name.as_ref()).collect();
    let cells =
        CellStore::open(Arc::clone(&cold), &tables, shared.cells_budget_bytes()).map_err(cold_error)?;
    let seen = SeenStore::new(Arc::clone(&cold));
    Ok((Stores { cold: Arc::<dyn ColdStore>::clone(&cold), seen, cells }, known))
}

/// The deltas are read: where does the task stand, and may it go on?
fn decide(
    task: &mut CountTask,
    shared: &Shared,
    ports: &mut StagePorts<'_>,
    restore: &mut Restore,
    replay: DeltaReplay,
) -> Result<Step, PortError> {
    let Some(facts) = restore.facts.take() else {
        return Err(PortError::new(Reaction::Retry, "the restore lost its facts"));
    };
    let (standing, unpublished) = replay.finish(restore.progress.as_ref(), &task.partition)?;
    let standing = stand(task, standing, &facts, shared.parts.accept_loss)?;
    let Some(stores) = &mut task.stores else {
        return Ok(Step::Done);
    };
    task.chain.restore(&standing.cursors);
    let mut cells = Vec::new();
    for (changed_at, key, slice_start) in unpublished {
        cells.clear();
        let counter = stores.cells.intern(&key);
        task.chain.cells_of(counter, slice_start, &mut cells);
        stores.cells.load(&cells).map_err(super::task::unreadable)?;
        task.chain.mark_due(&cells, changed_at, &stores.cells);
    }
    task.maintenance.restored(restore.progress.as_ref());
    let missing = stores.seen.adopt(&standing.buckets).map_err(cold_error)?;
    task.standing = standing.clone();
    task.settled = standing;
    task.first = true;
    let first = missing.first().map_or(task.standing.through, |bucket| bucket.first);
    if first >= task.standing.through {
        return Ok(Step::Done);
    }
    if first < facts.entries.start {
        return Err(PortError::new(
            Reaction::Halt,
            format!(
                "{}: offsets {first} to {} of the remembered range are no longer retained, so copies of their events could not be recognised",
                task.partition,
                facts.entries.start.0 - 1,
            ),
        ));
    }
    restore.scan = None;
    let scan = ports.reader.scan(&task.partition, ScanFrom::Offset(first))?;
    Ok(Step::Ids(scan, IdReplay::new(missing)))
}

/// The table of §7 for `entries`.
fn stand(
    task: &CountTask,
    last: Option<Standing>,
    facts: &Facts,
    accept_loss: bool,
) -> Result<Standing, PortError> {
    let halt = |what: String| Err(PortError::new(Reaction::Halt, format!("{}: {what}", task.partition)));
    let metadata = facts.topic_id.to_string();
    let ours = facts.committed.as_ref().filter(|group| group.metadata == metadata);
    let Some(mut standing) = last else {
        if let Some(ours) = ours.filter(|_| !accept_loss) {
            return halt(format!(
                "the group has committed offset {}, but the deltas topic has no frame for it: it was lost; restore it, or start with --accept-loss to count again",
                ours.offset,
            ));
        }
        return Ok(clock::fresh(facts.topic_id, facts.entries.start));
    };
    if standing.entries_topic_id != facts.topic_id {
        return Err(recreated(task));
    }
    let through = standing.through;
    match ours.map(|group| group.offset) {
        Some(offset) if offset > through => {
            return halt(format!(
                "the group stands at offset {offset}, but the last delta frame accounts only for offsets below {through}: reset the group to {through}",
            ));
        }
        Some(offset) => standing.skipped += gap(offset, through),
        None => standing.skipped += gap(facts.entries.start, through),
    }
    if through < facts.entries.start {
        return halt(format!(
            "offsets {through} to {} were not counted and are no longer retained",
            facts.entries.start.0 - 1,
        ));
    }
    if through > facts.entries.high_watermark_offset {
        return halt(format!(
            "offsets below {through} were counted, but the log ends at {}: it was cut; restore it from a replica",
            facts.entries.high_watermark_offset,
        ));
    }
    Ok(standing)
}

fn recreated(task: &CountTask) -> PortError {
    PortError::new(
        Reaction::Halt,
        format!(
            "{}: the topic was created again while its counts live: restore it, or start a new app with a new state directory",
            task.partition,
        ),
    )
}

fn gap(from: NextOffset, to: NextOffset) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

/// What an unusable store means for a restore: wait where waiting helps.
pub(super) fn cold_error(error: ColdError) -> PortError {
    let reaction = match &error {
        ColdError::Full(_) | ColdError::NotWritable(_) | ColdError::Locked(_) | ColdError::Other(_) => {
            Reaction::Retry
        }
        ColdError::Foreign(_) | ColdError::Damaged(_) | ColdError::Invariant(_) => Reaction::Halt,
    };
    PortError::new(reaction, error.to_string())
}
