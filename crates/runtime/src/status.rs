//! What a worker tells of itself: one plain value, published after a commit and at least once a second.
//!
//! Everything in `/status` and `/metrics` comes from here. Counts are cumulative since the worker started.

use std::collections::BTreeMap;

use tallyflow_core::ids::NextOffset;
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::Category;

/// The stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum StageName {
    /// Reads events, writes entries.
    Intake,
    /// Reads entries, writes counts.
    Count,
}

impl StageName {
    /// The name in topics, metrics and the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intake => "intake",
            Self::Count => "count",
        }
    }
}

/// The life of a task.
///
/// ```text
/// assigned ──► Restoring ──► Running ──► (revoked) closed
///                  ▲            │
///                  └── dirty ───┘      any ──► Halted
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// Finding its place and rebuilding its state.
    Restoring,
    /// Processing.
    Running,
    /// Stopped until a person acts.
    Halted,
}

impl TaskState {
    /// The value in `/status`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restoring => "restoring",
            Self::Running => "running",
            Self::Halted => "halted",
        }
    }
}

/// How far a restore is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestoreStatus {
    /// Records read.
    pub done: u64,
    /// Records to read.
    pub total: u64,
    /// Seconds to go, at the rate so far.
    pub eta_seconds: u64,
}

/// One task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskStatus {
    /// `<topic>-<p>` of its input partition.
    pub task: String,
    /// Where in its life it is.
    pub state: TaskState,
    /// The next offset to read.
    pub position: Option<NextOffset>,
    /// The end of its input, when last asked.
    pub end: Option<NextOffset>,
    /// The watermark.
    pub complete_through: Option<TimestampMs>,
    /// While restoring.
    pub restore: Option<RestoreStatus>,
    /// Whether nothing is waiting: no lag, nothing changed that was not published.
    pub settled: bool,
    /// Append time of the last record read, for the lag in seconds.
    pub append_clock: Option<TimestampMs>,
    /// Cumulative tallies of the task.
    pub tallies: Tallies,
    /// LG-1 of the task: 0, or the books do not close.
    pub residual: i64,
    /// Ids in memory and on disk.
    pub seen_hot: u64,
    /// Ids on disk.
    pub seen_cold: u64,
    /// How far back copies are recognised (ms), if known.
    pub seen_horizon_ms: Option<i64>,
    /// Bytes of state in memory.
    pub memory_bytes: u64,
}

/// One worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerStatus {
    /// Its stage.
    pub stage: StageName,
    /// Its number within the stage and process.
    pub worker: u32,
    /// Whether the cluster answers, and if not, what was said last.
    pub disconnected: Option<String>,
    /// Why it halted, if it did.
    pub halted: Option<String>,
    /// Whether it has had an assignment (possibly of nothing) since it joined.
    pub joined: bool,
    /// Its tasks.
    pub tasks: Vec<TaskStatus>,
    /// Transactions committed.
    pub committed: u64,
    /// Transactions aborted.
    pub aborted: u64,
    /// Producers lost to fencing.
    pub fenced: u64,
    /// Duration of the last commit (ms).
    pub last_commit_ms: u64,
    /// Rebalances seen.
    pub rebalances: u64,
    /// Records written, per topic.
    pub output_records: BTreeMap<String, u64>,
    /// Dead letters written, per category.
    pub dead_letters: BTreeMap<Category, u64>,
    /// Verdicts given by this worker since it started.
    pub verdicts: Tallies,
}

/// Takes a worker's status. Must not block.
pub trait Observer: Send {
    /// The worker's standing, after a commit and at least once a second.
    fn publish(&mut self, status: &WorkerStatus);
}
