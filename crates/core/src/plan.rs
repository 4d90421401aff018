//! The compiled plan: what topology.toml means to the engine, checked, with every default filled in.
//!
//! Written by `crates/topology`, read by everyone. Units stand last in names; durations are milliseconds.

use std::path::PathBuf;
use std::sync::Arc;

use crate::time::Limits;
use crate::window::WindowSize;

/// Everything the engine needs to know about counting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The app's name: prefixes topics, groups and transactional ids, and keys the identity hash.
    pub app: String,
    /// The inputs, in the order of the file.
    pub inputs: Vec<InputPlan>,
    /// Time limits.
    pub limits: TimePlan,
    /// Size limits of a record.
    pub record_limits: RecordLimits,
    /// The declared namespaces; `None` where none are declared and every name is allowed.
    pub namespaces: Option<Vec<String>>,
    /// The declared dimensions, in order: they are part of every counter key.
    pub dimensions: Arc<[String]>,
    /// The window tables, in the order of the file.
    pub windows: Vec<WindowPlan>,
    /// Totals: how often a changed one is emitted (milliseconds).
    pub totals_emit_ms: i64,
    /// The slice: divides every window.
    pub slice: WindowSize,
    /// How long cells are kept after their window's end.
    pub keep_ms: i64,
    /// Partitions of `entries`: fixed for the life of the app.
    pub entries_partitions: u32,
    /// Worker threads of intake per process.
    pub intake_workers: u32,
    /// Worker threads of count per process.
    pub count_workers: u32,
    /// How commits are paced and bounded.
    pub engine: EnginePlan,
}

/// One input topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPlan {
    /// Its table's name in topology.toml.
    pub name: Arc<str>,
    /// The topic.
    pub topic: Arc<str>,
    /// Partitions, used only when we create it.
    pub partitions: u32,
    /// Which timestamp is the append time.
    pub append_time: AppendTime,
    /// The format of its records.
    pub format: Format,
}

/// Which timestamp is the append time of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendTime {
    /// LogAppendTime, given by the broker.
    Log,
    /// The record's own timestamp (topics with CreateTime).
    Record,
}

/// The format of an input's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON document a record.
    Json,
}

/// Time limits, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimePlan {
    /// How old an event may be at its first append.
    pub accept_ms: i64,
    /// How far ahead of it.
    pub future_ms: i64,
    /// How long ids are remembered (D): at least accept + future.
    pub remember_ms: i64,
    /// How far complete_through stays behind the append clocks.
    pub settle_lag_ms: i64,
    /// After how long without records a source partition is asked whether it is idle.
    pub idle_timeout_ms: i64,
}

impl TimePlan {
    /// The limits that judge an event.
    pub const fn limits(&self) -> Limits {
        Limits { accept_ms: self.accept_ms, future_ms: self.future_ms }
    }
}

/// Size limits of a record (contract §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Bytes of a value.
    pub record_bytes: usize,
    /// Nesting of a document.
    pub depth: usize,
    /// Members of all its objects together.
    pub members: usize,
    /// Events packed into it.
    pub packed_events: usize,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { record_bytes: 1024 * 1024, depth: 64, members: 10_000, packed_events: 10_000 }
    }
}

/// One window table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPlan {
    /// Its name.
    pub name: Arc<str>,
    /// Its length.
    pub size: WindowSize,
    /// How long after its end a window stays provisional.
    pub grace_ms: i64,
    /// When changed rows are emitted.
    pub emit: Emit,
}

/// When changed window rows are emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// At most once per so many milliseconds and key.
    EveryMs(i64),
    /// Finals and corrections only.
    Final,
}

/// Pacing and bounds of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnginePlan {
    /// The target time between two commits.
    pub commit_interval_ms: i64,
    /// The broker aborts a transaction that is open longer.
    pub transaction_timeout_ms: i64,
    /// Where state lives.
    pub state_dir: PathBuf,
    /// Budget of the process for state.
    pub memory_bytes: u64,
}

/// Names of the app's own topics and groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// `<app>.entries`
    pub entries: Arc<str>,
    /// `<app>.deltas`
    pub deltas: Arc<str>,
    /// `<app>.state`
    pub state: Arc<str>,
    /// `<app>.windows`
    pub windows: Arc<str>,
    /// `<app>.counts`
    pub counts: Arc<str>,
    /// `<app>.ledger`
    pub ledger: Arc<str>,
    /// `<app>.dlq`
    pub dlq: Arc<str>,
    /// `<app>.late`
    pub late: Arc<str>,
    /// `<app>.intake`, a group
    pub intake_group: Arc<str>,
    /// `<app>.count`, a group
    pub count_group: Arc<str>,
}

impl Names {
    /// The names of an app.
    pub fn of(app: &str) -> Self {
        let name = |suffix: &str| Arc::from(format!("{app}.{suffix}"));
        Self {
            entries: name("entries"),
            deltas: name("deltas"),
            state: name("state"),
            windows: name("windows"),
            counts: name("counts"),
            ledger: name("ledger"),
            dlq: name("dlq"),
            late: name("late"),
            intake_group: name("intake"),
            count_group: name("count"),
        }
    }
}
