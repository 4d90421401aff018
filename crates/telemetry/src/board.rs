//! The board: where workers leave their status, and where everybody who asks finds it.
//!
//! A worker's thread does three things per commit: take the lock, copy its status, record one histogram sample. The
//! lock is never held while something is rendered or sent. Counts of a worker that is replaced by a new one of the same
//! number are kept, so that the stage's counters go on where they were.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use metrics::Histogram;
use tallyflow_core::time::TimestampMs;
use tallyflow_runtime::status::{Observer, StageName, WorkerStatus};

use crate::TelemetryError;
use crate::exporter::Exporter;
use crate::health::{self, NotReady};
use crate::report::{self, Process};
use crate::snapshot::{Snapshot, WorkerView, lag_records};
use crate::totals::StageTotals;

/// What a process knows of its workers. Clones share it.
#[derive(Clone)]
pub struct Board {
    shared: Arc<Shared>,
}

struct Shared {
    process: Process,
    exporter: Exporter,
    workers: Mutex<Workers>,
}

#[derive(Default)]
struct Workers {
    /// By stage and number.
    slots: BTreeMap<(StageName, u32), Slot>,
    /// What workers did that were replaced.
    replaced: BTreeMap<StageName, StageTotals>,
    started: u64,
}

struct Slot {
    /// Which observer may write here: that of a worker that was replaced may not.
    observer: u64,
    status: Option<WorkerStatus>,
    heard: Instant,
    ended: bool,
    caught_up: BTreeMap<String, TimestampMs>,
}

/// The two clocks at one moment.
#[derive(Clone, Copy)]
struct Moment {
    steady: Instant,
    wall: TimestampMs,
}

impl Moment {
    fn now() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = TimestampMs(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
        Self { steady: Instant::now(), wall }
    }
}

impl Board {
    /// The empty board of a process: `app` from topology.toml, `slot` in the state directory, `version` of the program.
    ///
    /// # Errors
    ///
    /// [`TelemetryError::Exporter`], see [`Exporter::new`].
    pub fn new(app: &str, slot: u32, version: &str) -> Result<Self, TelemetryError> {
        let process = Process { app: app.to_owned(), slot, version: version.to_owned() };
        let exporter = Exporter::new(version)?;
        Ok(Self { shared: Arc::new(Shared { process, exporter, workers: Mutex::default() }) })
    }

    /// The observer for a worker that is about to start. From now on the process is ready only if this worker is.
    ///
    /// To be dropped with the worker's thread: a worker without its observer has ended. An observer for the same stage
    /// and number replaces the one before.
    pub fn observer(&self, stage: StageName, worker: u32) -> BoardObserver {
        let mut workers = self.workers();
        workers.started += 1;
        let observer = workers.started;
        let slot =
            Slot { observer, status: None, heard: Instant::now(), ended: false, caught_up: BTreeMap::new() };
        let before = workers.slots.insert((stage, worker), slot).and_then(|slot| slot.status);
        if let Some(status) = before {
            workers.replaced.entry(stage).or_default().add_worker(&status);
        }
        drop(workers);
        BoardObserver {
            board: self.clone(),
            stage,
            worker,
            observer,
            committed: 0,
            commit_seconds: self.shared.exporter.commit_seconds(),
        }
    }

    /// What the board knows now.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_at(Moment::now())
    }

    /// Whether the process is ready; if not, why.
    ///
    /// # Errors
    ///
    /// The gravest reason of any worker.
    pub fn readiness(&self) -> Result<(), NotReady> {
        health::readiness(&self.snapshot().workers)
    }

    /// Whether everything that the tasks here have read is counted and published.
    pub fn settled(&self) -> bool {
        health::settled(&self.snapshot().workers)
    }

    /// The page of `/metrics`.
    pub fn metrics(&self) -> String {
        self.shared.exporter.render(&self.snapshot())
    }

    /// The document of `/status`.
    pub fn status(&self) -> serde_json::Value {
        report::status(&self.shared.process, &self.snapshot())
    }

    /// See [`Exporter::upkeep`].
    pub fn upkeep(&self) {
        self.shared.exporter.upkeep();
    }

    fn snapshot_at(&self, moment: Moment) -> Snapshot {
        let workers = self.workers();
        let mut totals = workers.replaced.clone();
        let mut views = Vec::with_capacity(workers.slots.len());
        for ((stage, worker), slot) in &workers.slots {
            let sum = totals.entry(*stage).or_default();
            if let Some(status) = &slot.status {
                sum.add_worker(status);
            }
            views.push(WorkerView {
                stage: *stage,
                worker: *worker,
                status: slot.status.clone(),
                silent: moment.steady.saturating_duration_since(slot.heard),
                ended: slot.ended,
                caught_up: slot.caught_up.clone(),
            });
        }
        Snapshot { wall: moment.wall, workers: views, totals }
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        // A panic of another thread leaves a status that is old at worst.
        self.shared.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn take(&mut self, status: &WorkerStatus, moment: Moment) {
        self.caught_up.retain(|name, _| status.tasks.iter().any(|task| task.task == *name));
        for task in status.tasks.iter().filter(|task| lag_records(task) == Some(0)) {
            if let Some(time) = self.caught_up.get_mut(&task.task) {
                *time = moment.wall;
            } else {
                self.caught_up.insert(task.task.clone(), moment.wall);
            }
        }
        self.status = Some(status.clone());
        self.heard = moment.steady;
    }
}

/// Puts one worker's status on the board.
pub struct BoardObserver {
    board: Board,
    stage: StageName,
    worker: u32,
    observer: u64,
    committed: u64,
    commit_seconds: Histogram,
}

impl BoardObserver {
    fn publish_at(&mut self, status: &WorkerStatus, moment: Moment) {
        if status.committed > self.committed {
            self.committed = status.committed;
            self.commit_seconds.record(status.last_commit_ms as f64 / 1_000.0);
        }
        self.with_slot(|slot| slot.take(status, moment));
    }

    fn with_slot(&self, change: impl FnOnce(&mut Slot)) {
        let mut workers = self.board.workers();
        let slot = workers.slots.get_mut(&(self.stage, self.worker));
        if let Some(slot) = slot.filter(|slot| slot.observer == self.observer) {
            change(slot);
        }
    }
}

impl Observer for BoardObserver {
    fn publish(&mut self, status: &WorkerStatus) {
        self.publish_at(status, Moment::now());
    }
}

impl Drop for BoardObserver {
    fn drop(&mut self) {
        self.with_slot(|slot| slot.ended = true);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixtures::{NOW, status, task};

    fn board() -> Board {
        Board::new("shop", 0, "1.2.3").unwrap()
    }

    fn at(start: Instant, seconds: u64) -> Moment {
        let wall = TimestampMs(NOW.0 + 1_000 * seconds as i64);
        Moment { steady: start + Duration::from_secs(seconds), wall }
    }

    fn counted(n: u64) -> WorkerStatus {
        let mut status = status(StageName::Count, 0, vec![]);
        status.verdicts.counted = n;
        status
    }

    fn line<'a>(page: &'a str, series: &str) -> Option<&'a str> {
        page.lines().find_map(|line| line.strip_prefix(series)).map(str::trim)
    }

    const COUNTED: &str = "tallyflow_records_total{stage=\"count\",verdict=\"counted\"}";

    #[test]
    fn two_workers_of_a_stage_add_up() {
        let board = board();
        let mut one = board.observer(StageName::Count, 0);
        let mut two = board.observer(StageName::Count, 1);
        one.publish(&counted(5));
        two.publish(&counted(7));
        assert_eq!(line(&board.metrics(), COUNTED), Some("12"));
        one.publish(&counted(6));
        assert_eq!(line(&board.metrics(), COUNTED), Some("13"));
    }

    #[test]
    fn a_worker_that_is_replaced_leaves_its_counts() {
        let board = board();
        let mut old = board.observer(StageName::Count, 0);
        old.publish(&counted(5));
        let mut new = board.observer(StageName::Count, 0);
        assert_eq!(line(&board.metrics(), COUNTED), Some("5"));
        new.publish(&counted(2));
        old.publish(&counted(100));
        drop(old);
        assert_eq!(line(&board.metrics(), COUNTED), Some("7"));
        assert_eq!(board.readiness(), Ok(()), "the old one's end is not the new one's");
    }

    #[test]
    fn a_commit_is_recorded_once() {
        let board = board();
        let mut observer = board.observer(StageName::Count, 0);
        let mut status = counted(0);
        observer.publish(&status);
        for committed in [1, 1, 2, 2, 2] {
            (status.committed, status.last_commit_ms) = (committed, 20);
            observer.publish(&status);
        }
        let page = board.metrics();
        assert_eq!(line(&page, "tallyflow_commit_duration_seconds_count"), Some("2"));
        assert_eq!(line(&page, "tallyflow_commit_duration_seconds_sum"), Some("0.04"));
    }

    #[test]
    fn silence_is_measured_from_the_last_publish() {
        let board = board();
        let start = Instant::now();
        let mut observer = board.observer(StageName::Count, 0);
        let said = |seconds| {
            health::readiness(&board.snapshot_at(at(start, seconds)).workers).map_err(|e| e.to_string())
        };
        assert_eq!(said(29), Err("count worker 0 is starting".to_owned()));
        assert_eq!(said(40), Err("count worker 0 stalled: no sign of life for 39 s".to_owned()));
        observer.publish_at(&counted(0), at(start, 40));
        assert_eq!(said(70), Ok(()));
        assert_eq!(said(71), Err("count worker 0 stalled: no sign of life for 31 s".to_owned()));
        drop(observer);
        assert_eq!(said(40), Err("count worker 0 has ended".to_owned()));
    }

    #[test]
    fn lag_grows_while_a_worker_hangs_and_starts_at_the_last_time_without() {
        let board = board();
        let start = Instant::now();
        let mut observer = board.observer(StageName::Count, 0);
        let mut publish = |position, end, second| {
            let tasks = vec![task("e-0", position, end)];
            observer.publish_at(&status(StageName::Count, 0, tasks), at(start, second));
        };
        let lag = |seconds| {
            let snapshot = board.snapshot_at(at(start, seconds));
            snapshot.tasks(StageName::Count).first().and_then(|task| task.lag_ms)
        };
        publish(10, 10, 3_600);
        assert_eq!(lag(3_600), Some(0));
        publish(10, 11, 3_601);
        assert_eq!(lag(3_601), Some(1_000));
        assert_eq!(lag(3_625), Some(25_000));
    }
}
