//! From workers to stages: what is summed, and what is the worst of all.
//!
//! Counts are cumulative per worker, so the sum over a stage's workers only grows as long as a worker that is replaced
//! leaves its own behind: the board keeps them. Gauges are taken from the tasks that are here at the moment.

use std::collections::BTreeMap;

use tallyflow_core::tallies::Tallies;
use tallyflow_core::verdict::Category;
use tallyflow_runtime::status::{StageName, WorkerStatus};

use crate::snapshot::{Snapshot, TaskView, split_task};

/// What the workers of a stage have done since the process started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageTotals {
    /// Events by verdict.
    pub verdicts: Tallies,
    /// Transactions committed.
    pub committed: u64,
    /// Transactions aborted.
    pub aborted: u64,
    /// Producers lost to fencing.
    pub fenced: u64,
    /// Rebalances seen.
    pub rebalances: u64,
    /// Records written, per topic.
    pub output_records: BTreeMap<String, u64>,
    /// Dead letters written, per category.
    pub dead_letters: BTreeMap<Category, u64>,
}

impl StageTotals {
    /// Adds what a worker has done.
    pub fn add_worker(&mut self, status: &WorkerStatus) {
        self.verdicts.add(&status.verdicts);
        self.committed += status.committed;
        self.aborted += status.aborted;
        self.fenced += status.fenced;
        self.rebalances += status.rebalances;
        for (topic, records) in &status.output_records {
            if let Some(sum) = self.output_records.get_mut(topic) {
                *sum += records;
            } else {
                self.output_records.insert(topic.clone(), *records);
            }
        }
        for (category, records) in &status.dead_letters {
            *self.dead_letters.entry(*category).or_default() += records;
        }
    }
}

/// How a stage stands at one moment, in this process. `None` is "not known", which is not 0.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StageGauges {
    /// Offsets to go, per (topic, partition), where they are known.
    pub lag_records: BTreeMap<(String, u32), u64>,
    /// The greatest lag in time of a task.
    pub lag_seconds: Option<f64>,
    /// The least watermark of a task, since the epoch; unknown while one task does not know its own.
    pub complete_through_seconds: Option<f64>,
    /// Records to read until every task runs.
    pub restore_remaining: u64,
    /// Residuals without their signs: two that are wrong must not cancel out.
    pub residual: u64,
    /// Ids in open buckets.
    pub seen_hot: u64,
    /// Ids in sealed buckets.
    pub seen_cold: u64,
    /// The least reach of a task's memory.
    pub seen_horizon_seconds: Option<f64>,
    /// State in memory.
    pub memory_bytes: u64,
}

impl StageGauges {
    /// The stage's standing; tasks of workers that have ended are no part of it.
    pub fn of(snapshot: &Snapshot, stage: StageName) -> Self {
        let mut tasks = snapshot.tasks(stage);
        tasks.retain(|task| !task.ended);
        let mut gauges = Self {
            lag_seconds: tasks.iter().filter_map(|task| task.lag_ms).max().map(seconds),
            complete_through_seconds: least_watermark(&tasks).map(seconds),
            seen_horizon_seconds: tasks.iter().filter_map(|t| t.status.seen_horizon_ms).min().map(seconds),
            ..Self::default()
        };
        for task in &tasks {
            gauges.add(task);
        }
        gauges
    }

    fn add(&mut self, task: &TaskView<'_>) {
        let status = task.status;
        if let Some(lag) = task.lag_records {
            let (topic, partition) = split_task(&status.task);
            self.lag_records.insert((topic.to_owned(), partition), lag);
        }
        if let Some(restore) = status.restore {
            self.restore_remaining += restore.total.saturating_sub(restore.done);
        }
        self.residual = self.residual.saturating_add(status.residual.unsigned_abs());
        self.seen_hot += status.seen_hot;
        self.seen_cold += status.seen_cold;
        self.memory_bytes += status.memory_bytes;
    }
}

/// Milliseconds as seconds, in the precision of the exposition format.
pub fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

fn least_watermark(tasks: &[TaskView<'_>]) -> Option<i64> {
    let known: Option<Vec<i64>> =
        tasks.iter().map(|task| task.status.complete_through.map(|time| time.0)).collect();
    known?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, snapshot, task, worker};
    use tallyflow_core::time::TimestampMs;
    use tallyflow_runtime::status::RestoreStatus;

    #[test]
    fn two_workers_add_up() {
        let mut workers = vec![worker(StageName::Intake, 0, vec![]), worker(StageName::Intake, 1, vec![])];
        for (view, n) in workers.iter_mut().zip([1, 10]) {
            let status = view.status.as_mut().unwrap();
            status.verdicts = Tallies { received: 3 * n, admitted: 2 * n, late: n, ..Tallies::default() };
            (status.committed, status.aborted, status.fenced, status.rebalances) = (n, 2 * n, 3 * n, 4 * n);
            status.output_records.insert("shop.entries".to_owned(), n);
            status.output_records.insert(format!("only-{n}"), n);
            status.dead_letters.insert(Category::TooLarge, n);
        }
        let sums = &snapshot(workers).totals[&StageName::Intake];
        assert_eq!((sums.verdicts.received, sums.verdicts.admitted, sums.verdicts.late), (33, 22, 11));
        assert_eq!((sums.committed, sums.aborted, sums.fenced, sums.rebalances), (11, 22, 33, 44));
        assert_eq!(sums.output_records.values().copied().collect::<Vec<_>>(), [1, 10, 11]);
        assert_eq!(sums.dead_letters[&Category::TooLarge], 11);
    }

    #[test]
    fn gauges_are_sums_or_the_worst() {
        let mut one = task("e-0", 10, 10);
        (one.seen_hot, one.seen_cold, one.memory_bytes) = (1, 2, 3);
        one.seen_horizon_ms = Some(86_400_000);
        one.residual = 4;
        let mut two = task("e-1", 10, 70);
        (two.seen_hot, two.seen_cold, two.memory_bytes) = (10, 20, 30);
        two.seen_horizon_ms = Some(43_200_500);
        two.residual = -4;
        two.restore = Some(RestoreStatus { done: 30, total: 100, eta_seconds: 7 });
        two.complete_through = Some(TimestampMs(NOW.0 - 60_000));
        let board =
            snapshot(vec![worker(StageName::Count, 0, vec![one]), worker(StageName::Count, 1, vec![two])]);
        let gauges = StageGauges::of(&board, StageName::Count);
        let lags = BTreeMap::from([(("e".to_owned(), 0), 0), (("e".to_owned(), 1), 60)]);
        let expected = StageGauges {
            lag_records: lags,
            lag_seconds: Some(1.5),
            complete_through_seconds: Some(1_767_225_540.0),
            restore_remaining: 70,
            residual: 8,
            seen_hot: 11,
            seen_cold: 22,
            seen_horizon_seconds: Some(43_200.5),
            memory_bytes: 33,
        };
        assert_eq!(gauges, expected);
        assert_eq!(StageGauges::of(&board, StageName::Intake), StageGauges::default());
    }

    #[test]
    fn one_unknown_watermark_makes_the_stage_unknown() {
        let mut unknown = task("e-1", 0, 0);
        unknown.complete_through = None;
        let board = snapshot(vec![worker(StageName::Count, 0, vec![task("e-0", 0, 0), unknown])]);
        assert_eq!(StageGauges::of(&board, StageName::Count).complete_through_seconds, None);
    }

    #[test]
    fn what_an_ended_worker_had_is_not_here() {
        let mut ended = worker(StageName::Count, 0, vec![task("e-0", 0, 50)]);
        ended.ended = true;
        let board = snapshot(vec![ended]);
        assert_eq!(StageGauges::of(&board, StageName::Count), StageGauges::default());
    }
}
