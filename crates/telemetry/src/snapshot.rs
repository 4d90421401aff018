//! What the board knows at one moment, and what follows from it for a task: its lag.
//!
//! A task can be in two statuses for a moment while it moves from one worker of this process to another; a snapshot
//! shows it once, as the worker says that was heard last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tallyflow_core::time::TimestampMs;
use tallyflow_runtime::status::{StageName, TaskStatus, WorkerStatus};

use crate::totals::StageTotals;

/// One worker, as last heard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerView {
    /// Its stage.
    pub stage: StageName,
    /// Its number within the stage and process.
    pub worker: u32,
    /// What it published last.
    pub status: Option<WorkerStatus>,
    /// Time since then, or since it was started.
    pub silent: Duration,
    /// Whether its thread has let go of its observer.
    pub ended: bool,
    /// When each of its tasks was last seen without lag.
    pub caught_up: BTreeMap<String, TimestampMs>,
}

/// One task, with its lag.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskView<'a> {
    /// The number of its worker.
    pub worker: u32,
    /// Whether its worker has ended: then the task is somewhere else by now, or nowhere.
    pub ended: bool,
    /// What the worker says of it.
    pub status: &'a TaskStatus,
    /// Offsets between position and end, if both are known.
    pub lag_records: Option<u64>,
    /// See [`lag_ms`].
    pub lag_ms: Option<i64>,
}

/// All workers at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The moment.
    pub wall: TimestampMs,
    /// Every worker that was started, by stage and number.
    pub workers: Vec<WorkerView>,
    /// Sums over the workers of a stage, those that were replaced included.
    pub totals: BTreeMap<StageName, StageTotals>,
}

impl Snapshot {
    /// The stages that run in this process.
    pub fn stages(&self) -> BTreeSet<StageName> {
        self.workers.iter().map(|worker| worker.stage).collect()
    }

    /// The tasks of a stage by topic and partition, each once.
    pub fn tasks(&self, stage: StageName) -> Vec<TaskView<'_>> {
        let mut workers: Vec<_> = self.workers.iter().filter(|w| w.stage == stage).collect();
        // The last one inserted wins: running before ended, then the one heard last.
        workers.sort_by(|a, b| b.ended.cmp(&a.ended).then(b.silent.cmp(&a.silent)));
        let mut tasks = BTreeMap::new();
        for worker in workers {
            for task in worker.status.iter().flat_map(|status| &status.tasks) {
                tasks.insert(split_task(&task.task), self.view(worker, task));
            }
        }
        tasks.into_values().collect()
    }

    fn view<'a>(&self, worker: &WorkerView, task: &'a TaskStatus) -> TaskView<'a> {
        TaskView {
            worker: worker.worker,
            ended: worker.ended,
            status: task,
            lag_records: lag_records(task),
            lag_ms: lag_ms(task, worker.caught_up.get(&task.task).copied(), self.wall),
        }
    }
}

/// Takes `<topic>-<p>` apart; a name without a number is a topic's partition 0.
pub fn split_task(task: &str) -> (&str, u32) {
    task.rsplit_once('-')
        .and_then(|(topic, partition)| Some((topic, partition.parse().ok()?)))
        .unwrap_or((task, 0))
}

/// Offsets between a task's position and the end of its partition, if both are known. The end may be the older one.
pub fn lag_records(task: &TaskStatus) -> Option<u64> {
    let (position, end) = (task.position?, task.end?);
    Some(u64::try_from(end.0.saturating_sub(position.0)).unwrap_or(0))
}

/// How long the oldest unread record can have waited (ms), if that is known.
///
/// It was appended after the last record read, and after the task was last seen without lag: so an input that was
/// silent for an hour does not show an hour of lag with its next record.
pub fn lag_ms(task: &TaskStatus, caught_up: Option<TimestampMs>, wall: TimestampMs) -> Option<i64> {
    if lag_records(task)? == 0 {
        return Some(0);
    }
    let since = task.append_clock.max(caught_up)?;
    Some(wall.0.saturating_sub(since.0).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, snapshot, task, worker};
    use tallyflow_core::ids::NextOffset;

    #[test]
    fn task_names_come_apart_at_the_last_dash() {
        for (name, parts) in [
            ("events-3", ("events", 3)),
            ("shop.entries-12", ("shop.entries", 12)),
            ("a-b-0", ("a-b", 0)),
            ("a-b", ("a-b", 0)),
            ("events", ("events", 0)),
        ] {
            assert_eq!(split_task(name), parts);
        }
    }

    #[test]
    fn lag_in_records() {
        for (position, end, lag) in [
            (Some(10), Some(15), Some(5)),
            (Some(15), Some(15), Some(0)),
            (Some(16), Some(15), Some(0)),
            (None, Some(15), None),
            (Some(10), None, None),
        ] {
            let mut task = task("events-0", 0, 0);
            task.position = position.map(NextOffset);
            task.end = end.map(NextOffset);
            assert_eq!(lag_records(&task), lag);
        }
    }

    #[test]
    fn lag_in_time() {
        let ago = |ms| Some(TimestampMs(NOW.0 - ms));
        for (name, end, append_clock, caught_up, lag) in [
            ("nothing unread", 10, ago(9_000), None, Some(0)),
            ("never read", 15, None, None, None),
            ("behind", 15, ago(9_000), None, Some(9_000)),
            ("silent for long, then a record", 15, ago(3_600_000), ago(40), Some(40)),
            ("fell behind long ago", 15, ago(2_000), ago(60_000), Some(2_000)),
            ("a clock that runs ahead", 15, ago(-500), None, Some(0)),
        ] {
            let mut task = task("events-0", 10, end);
            task.append_clock = append_clock;
            assert_eq!(lag_ms(&task, caught_up, NOW), lag, "{name}");
        }
    }

    #[test]
    fn a_task_between_two_workers_is_shown_once() {
        let mut old = worker(StageName::Count, 0, vec![task("e-2", 10, 90), task("e-10", 1, 1)]);
        old.silent = Duration::from_millis(900);
        let new = worker(StageName::Count, 1, vec![task("e-2", 80, 90)]);
        let board = snapshot(vec![old, new]);
        let seen: Vec<_> = board
            .tasks(StageName::Count)
            .iter()
            .map(|t| (t.status.task.clone(), t.worker, t.lag_records))
            .collect();
        assert_eq!(seen, [("e-2".to_owned(), 1, Some(10)), ("e-10".to_owned(), 0, Some(0))]);
    }

    #[test]
    fn a_running_worker_is_believed_before_an_ended_one() {
        let mut ended = worker(StageName::Count, 0, vec![task("e-2", 10, 90)]);
        ended.ended = true;
        let mut running = worker(StageName::Count, 1, vec![task("e-2", 80, 90)]);
        running.silent = Duration::from_millis(900);
        let board = snapshot(vec![ended, running]);
        assert_eq!(board.tasks(StageName::Count).first().map(|t| t.worker), Some(1));
    }
}
