//! The document of `/status`: for `healthcheck`, for scripts and for people.
//!
//! The fields app, slot, version, settled, stages, stage, tasks, task, state, position, end, lag_records, lag_seconds,
//! complete_through and restore (done, total, eta_seconds) are promised to users; the others explain them. Unknown
//! values are null, times are epoch milliseconds, lags are seconds.

use serde::Serialize;
use tallyflow_core::tallies::Tallies;
use tallyflow_runtime::status::{RestoreStatus, StageName};

use crate::health;
use crate::snapshot::{Snapshot, TaskView, WorkerView};
use crate::totals::seconds;

/// What does not change while a process lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    /// The app of topology.toml.
    pub(crate) app: String,
    /// The slot of the state directory.
    pub(crate) slot: u32,
    /// The version of the program.
    pub(crate) version: String,
}

/// The document for this moment.
pub(crate) fn status(process: &Process, snapshot: &Snapshot) -> serde_json::Value {
    let ready = health::readiness(&snapshot.workers);
    let document = Document {
        app: &process.app,
        slot: process.slot,
        version: &process.version,
        settled: health::settled(&snapshot.workers),
        ready: ready.is_ok(),
        reason: ready.err().map(|reason| reason.to_string()),
        stages: snapshot.stages().into_iter().map(|stage| StageReport::of(snapshot, stage)).collect(),
    };
    // Only maps with keys that are not text fail, and there are none.
    serde_json::to_value(document).unwrap_or_default()
}

#[derive(Serialize)]
struct Document<'a> {
    app: &'a str,
    slot: u32,
    version: &'a str,
    settled: bool,
    ready: bool,
    reason: Option<String>,
    stages: Vec<StageReport<'a>>,
}

#[derive(Serialize)]
struct StageReport<'a> {
    stage: &'static str,
    tasks: Vec<TaskReport<'a>>,
    workers: Vec<WorkerReport<'a>>,
}

impl<'a> StageReport<'a> {
    fn of(snapshot: &'a Snapshot, stage: StageName) -> Self {
        let workers = snapshot.workers.iter().filter(|worker| worker.stage == stage);
        Self {
            stage: stage.name(),
            tasks: snapshot.tasks(stage).iter().map(TaskReport::of).collect(),
            workers: workers.map(WorkerReport::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct TaskReport<'a> {
    task: &'a str,
    worker: u32,
    state: &'static str,
    settled: bool,
    position: Option<i64>,
    end: Option<i64>,
    lag_records: Option<u64>,
    lag_seconds: Option<f64>,
    complete_through: Option<i64>,
    restore: Option<RestoreReport>,
    residual: i64,
    tallies: TalliesReport,
}

impl<'a> TaskReport<'a> {
    fn of(view: &TaskView<'a>) -> Self {
        let task = view.status;
        Self {
            task: &task.task,
            worker: view.worker,
            state: task.state.name(),
            settled: task.settled,
            position: task.position.map(|offset| offset.0),
            end: task.end.map(|offset| offset.0),
            lag_records: view.lag_records,
            lag_seconds: view.lag_ms.map(seconds),
            complete_through: task.complete_through.map(|time| time.0),
            restore: task.restore.map(RestoreReport::from),
            residual: task.residual,
            tallies: TalliesReport::from(task.tallies),
        }
    }
}

#[derive(Serialize)]
struct RestoreReport {
    done: u64,
    total: u64,
    eta_seconds: u64,
}

impl From<RestoreStatus> for RestoreReport {
    fn from(restore: RestoreStatus) -> Self {
        Self { done: restore.done, total: restore.total, eta_seconds: restore.eta_seconds }
    }
}

/// The columns of the ledger.
#[derive(Serialize)]
struct TalliesReport {
    received: u64,
    admitted: u64,
    counted: u64,
    duplicate: u64,
    conflict: u64,
    late: u64,
    future: u64,
    invalid: u64,
    held: u64,
    discarded: u64,
    skipped: u64,
}

impl From<Tallies> for TalliesReport {
    fn from(tallies: Tallies) -> Self {
        let Tallies {
            received,
            admitted,
            counted,
            duplicate,
            conflict,
            late,
            future,
            invalid,
            held,
            discarded,
            skipped,
        } = tallies;
        Self {
            received,
            admitted,
            counted,
            duplicate,
            conflict,
            late,
            future,
            invalid,
            held,
            discarded,
            skipped,
        }
    }
}

#[derive(Serialize)]
struct WorkerReport<'a> {
    worker: u32,
    joined: bool,
    ended: bool,
    disconnected: Option<&'a str>,
    halted: Option<&'a str>,
    silent_seconds: u64,
}

impl<'a> WorkerReport<'a> {
    fn of(view: &'a WorkerView) -> Self {
        let status = view.status.as_ref();
        Self {
            worker: view.worker,
            joined: status.is_some_and(|status| status.joined),
            ended: view.ended,
            disconnected: status.and_then(|status| status.disconnected.as_deref()),
            halted: status.and_then(|status| status.halted.as_deref()),
            silent_seconds: view.silent.as_secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tallyflow_runtime::status::TaskState;

    use super::*;
    use crate::fixtures::{snapshot, task, worker};

    fn process() -> Process {
        Process { app: "shop".to_owned(), slot: 3, version: "1.2.3".to_owned() }
    }

    fn tallies(set: &[(&str, u64)]) -> serde_json::Value {
        let mut all = serde_json::to_value(TalliesReport::from(Tallies::default())).unwrap();
        for (column, value) in set {
            all[*column] = json!(value);
        }
        all
    }

    #[test]
    fn golden_status() {
        let mut intake = task("events-0", 40, 45);
        intake.tallies = Tallies { received: 40, admitted: 38, late: 2, ..Tallies::default() };
        let mut count = task("shop.entries-2", 0, 0);
        count.state = TaskState::Restoring;
        (count.position, count.end, count.complete_through) = (None, None, None);
        count.restore = Some(RestoreStatus { done: 30, total: 100, eta_seconds: 7 });
        let mut silent = worker(StageName::Count, 1, vec![count]);
        silent.silent = Duration::from_millis(2_700);
        silent.status.as_mut().unwrap().disconnected = Some("all brokers down".to_owned());
        let board = snapshot(vec![worker(StageName::Intake, 0, vec![intake]), silent]);
        let expected = json!({
            "app": "shop", "slot": 3, "version": "1.2.3", "settled": false,
            "ready": false, "reason": "count worker 1 disconnected: all brokers down",
            "stages": [
                {"stage": "intake", "tasks": [{
                    "task": "events-0", "worker": 0, "state": "running", "settled": false,
                    "position": 40, "end": 45, "lag_records": 5, "lag_seconds": 1.5,
                    "complete_through": 1_767_225_593_500_i64, "restore": null, "residual": 0,
                    "tallies": tallies(&[("received", 40), ("admitted", 38), ("late", 2)]),
                }], "workers": [{
                    "worker": 0, "joined": true, "ended": false, "disconnected": null, "halted": null,
                    "silent_seconds": 0,
                }]},
                {"stage": "count", "tasks": [{
                    "task": "shop.entries-2", "worker": 1, "state": "restoring", "settled": true,
                    "position": null, "end": null, "lag_records": null, "lag_seconds": null,
                    "complete_through": null, "restore": {"done": 30, "total": 100, "eta_seconds": 7},
                    "residual": 0, "tallies": tallies(&[]),
                }], "workers": [{
                    "worker": 1, "joined": true, "ended": false, "disconnected": "all brokers down",
                    "halted": null, "silent_seconds": 2,
                }]},
            ],
        });
        assert_eq!(status(&process(), &board), expected);
    }

    #[test]
    fn settled_when_all_is_read_and_published() {
        let board = snapshot(vec![worker(StageName::Count, 0, vec![task("e-0", 9, 9)])]);
        let document = status(&process(), &board);
        assert_eq!(
            (&document["settled"], &document["ready"], &document["reason"]),
            (&json!(true), &json!(true), &json!(null))
        );
    }
}
