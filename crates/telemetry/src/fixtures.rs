//! Statuses for tests: a worker without trouble, to which a test does what it is about.

use std::collections::BTreeMap;
use std::time::Duration;

use tallyflow_core::ids::NextOffset;
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::TimestampMs;
use tallyflow_runtime::status::{StageName, TaskState, TaskStatus, WorkerStatus};

use crate::snapshot::{Snapshot, WorkerView};
use crate::totals::StageTotals;

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: TimestampMs = TimestampMs(1_767_225_600_000);

/// A running task.
pub(crate) fn task(name: &str, position: i64, end: i64) -> TaskStatus {
    TaskStatus {
        task: name.to_owned(),
        state: TaskState::Running,
        position: Some(NextOffset(position)),
        end: Some(NextOffset(end)),
        complete_through: Some(TimestampMs(NOW.0 - 6_500)),
        restore: None,
        settled: position == end,
        append_clock: Some(TimestampMs(NOW.0 - 1_500)),
        tallies: Tallies::default(),
        residual: 0,
        seen_hot: 0,
        seen_cold: 0,
        seen_horizon_ms: None,
        memory_bytes: 0,
    }
}

/// What a worker with these tasks publishes.
pub(crate) fn status(stage: StageName, worker: u32, tasks: Vec<TaskStatus>) -> WorkerStatus {
    WorkerStatus {
        stage,
        worker,
        disconnected: None,
        halted: None,
        joined: true,
        tasks,
        committed: 0,
        aborted: 0,
        fenced: 0,
        last_commit_ms: 0,
        rebalances: 0,
        output_records: BTreeMap::new(),
        dead_letters: BTreeMap::new(),
        verdicts: Tallies::default(),
    }
}

/// A worker that has just published.
pub(crate) fn worker(stage: StageName, number: u32, tasks: Vec<TaskStatus>) -> WorkerView {
    WorkerView {
        stage,
        worker: number,
        status: Some(status(stage, number, tasks)),
        silent: Duration::ZERO,
        ended: false,
        caught_up: BTreeMap::new(),
    }
}

/// These workers, with their sums.
pub(crate) fn snapshot(workers: Vec<WorkerView>) -> Snapshot {
    let mut totals: BTreeMap<StageName, StageTotals> = BTreeMap::new();
    for worker in &workers {
        let sum = totals.entry(worker.stage).or_default();
        sum.add_worker(worker.status.as_ref().unwrap());
    }
    Snapshot { wall: NOW, workers, totals }
}
