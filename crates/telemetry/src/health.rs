//! Is this process ready, and is everything counted? Pure functions of what the workers said.
//!
//! ```text
//! halted ▸ ended ▸ stalled ▸ disconnected ▸ starting ▸ not joined ▸ restoring ▸ ready ▸ settled
//! ```
//!
//! The reason said is the leftmost of any worker: what a person must act on comes before what passes by itself.

use std::fmt;
use std::time::Duration;

use tallyflow_runtime::status::{StageName, TaskState, TaskStatus, WorkerStatus};

use crate::snapshot::WorkerView;

/// A worker publishes at least once a second; a silence of 30 of those, three times the default transaction timeout
/// (10 s), is no slow commit any more.
pub const STALLED_AFTER: Duration = Duration::from_secs(30);

/// Names a worker for people: `count worker 0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WorkerId {
    /// Its stage.
    pub stage: StageName,
    /// Its number within the stage and process.
    pub worker: u32,
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} worker {}", self.stage.name(), self.worker)
    }
}

/// Why a process is not ready, the gravest first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum NotReady {
    /// A worker or a task of it waits for a person.
    #[error("{0} halted: {1}")]
    Halted(WorkerId, String),
    /// The thread of a worker is gone.
    #[error("{0} has ended")]
    Ended(WorkerId),
    /// A worker hangs: nothing was heard of it for [`STALLED_AFTER`].
    #[error("{0} stalled: no sign of life for {1} s")]
    Stalled(WorkerId, u64),
    /// The cluster does not answer a worker.
    #[error("{0} disconnected: {1}")]
    Disconnected(WorkerId, String),
    /// No worker has been started yet.
    #[error("starting: no worker yet")]
    NoWorker,
    /// A worker has not said anything yet.
    #[error("{0} is starting")]
    Starting(WorkerId),
    /// A worker has had no assignment since it joined.
    #[error("{0} has not joined its group yet")]
    NotJoined(WorkerId),
    /// A task rebuilds its state.
    #[error("{0} is restoring {1}")]
    Restoring(WorkerId, String),
}

/// Whether every worker does its work; if not, the gravest reason.
///
/// # Errors
///
/// The reason.
pub fn readiness(workers: &[WorkerView]) -> Result<(), NotReady> {
    if workers.is_empty() {
        return Err(NotReady::NoWorker);
    }
    workers.iter().filter_map(trouble).min().map_or(Ok(()), Err)
}

/// Whether everything that was read is counted and published: every worker is ready, and every task of it settled.
///
/// It speaks of the tasks in this process only.
pub fn settled(workers: &[WorkerView]) -> bool {
    let all_settled = |status: &WorkerStatus| status.tasks.iter().all(|task| task.settled);
    readiness(workers).is_ok() && workers.iter().all(|w| w.status.as_ref().is_some_and(all_settled))
}

fn trouble(view: &WorkerView) -> Option<NotReady> {
    let id = WorkerId { stage: view.stage, worker: view.worker };
    if let Some(reason) = view.status.as_ref().and_then(halted) {
        return Some(NotReady::Halted(id, reason));
    }
    if view.ended {
        return Some(NotReady::Ended(id));
    }
    if view.silent > STALLED_AFTER {
        return Some(NotReady::Stalled(id, view.silent.as_secs()));
    }
    let Some(status) = &view.status else {
        return Some(NotReady::Starting(id));
    };
    if let Some(reason) = &status.disconnected {
        return Some(NotReady::Disconnected(id, reason.clone()));
    }
    if !status.joined {
        return Some(NotReady::NotJoined(id));
    }
    let restoring = status.tasks.iter().find(|task| task.state == TaskState::Restoring)?;
    Some(NotReady::Restoring(id, restore_progress(restoring)))
}

fn halted(status: &WorkerStatus) -> Option<String> {
    let task = || status.tasks.iter().find(|task| task.state == TaskState::Halted);
    status.halted.clone().or_else(|| task().map(|task| format!("task {}", task.task)))
}

fn restore_progress(task: &TaskStatus) -> String {
    match task.restore {
        Some(r) => {
            format!("{}: {} of {} records, about {} s to go", task.task, r.done, r.total, r.eta_seconds)
        }
        None => task.task.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{task, worker};
    use tallyflow_runtime::status::RestoreStatus;

    type Change = fn(&mut WorkerView);

    fn status(view: &mut WorkerView) -> &mut WorkerStatus {
        view.status.as_mut().unwrap()
    }

    /// Each change to one worker of two, and the reason it makes; the gravest first.
    const CASES: [(Change, &str); 10] = [
        (|w| status(w).halted = Some("wrong topic".to_owned()), "count worker 1 halted: wrong topic"),
        (|w| status(w).tasks[0].state = TaskState::Halted, "count worker 1 halted: task e-1"),
        (|w| w.ended = true, "count worker 1 has ended"),
        (|w| w.silent = Duration::from_millis(31_900), "count worker 1 stalled: no sign of life for 31 s"),
        (
            |w| status(w).disconnected = Some("all brokers down".to_owned()),
            "count worker 1 disconnected: all brokers down",
        ),
        (|w| w.status = None, "count worker 1 is starting"),
        (|w| status(w).joined = false, "count worker 1 has not joined its group yet"),
        (
            |w| {
                let task = &mut status(w).tasks[0];
                task.state = TaskState::Restoring;
                task.restore = Some(RestoreStatus { done: 30, total: 100, eta_seconds: 7 });
            },
            "count worker 1 is restoring e-1: 30 of 100 records, about 7 s to go",
        ),
        (|w| status(w).tasks[0].state = TaskState::Restoring, "count worker 1 is restoring e-1"),
        (|w| w.silent = STALLED_AFTER, "ready"),
    ];

    fn two_workers() -> Vec<WorkerView> {
        vec![
            worker(StageName::Intake, 0, vec![task("events-0", 5, 5)]),
            worker(StageName::Count, 1, vec![task("e-1", 7, 7)]),
        ]
    }

    fn said(workers: &[WorkerView]) -> String {
        readiness(workers).map_or_else(|reason| reason.to_string(), |()| "ready".to_owned())
    }

    #[test]
    fn each_trouble_has_its_reason() {
        assert_eq!(said(&[]), "starting: no worker yet");
        assert_eq!(said(&two_workers()), "ready");
        for (change, expected) in CASES {
            let mut workers = two_workers();
            change(&mut workers[1]);
            assert_eq!(said(&workers), expected);
            assert_eq!(settled(&workers), expected == "ready", "{expected}");
        }
    }

    #[test]
    fn the_gravest_of_all_workers_is_said() {
        for (graver, expected) in &CASES[..7] {
            let mut workers = two_workers();
            status(&mut workers[0]).tasks[0].state = TaskState::Restoring;
            graver(&mut workers[1]);
            assert_eq!(said(&workers), *expected);
        }
    }

    #[test]
    fn lag_is_no_reason_to_be_not_ready_but_is_not_settled() {
        let mut workers = two_workers();
        workers.push(worker(StageName::Count, 2, vec![task("e-2", 7, 7), task("e-3", 7, 9)]));
        assert_eq!((said(&workers).as_str(), settled(&workers)), ("ready", false));
    }

    #[test]
    fn an_assignment_of_nothing_is_settled_and_no_worker_is_not() {
        assert!(settled(&[worker(StageName::Count, 0, vec![])]));
        assert!(!settled(&[]));
    }
}
