//! topology.toml as written: one struct a table, every value with its place, defaults filled in.
//!
//! A [`Field`] is absent where it is optional and not written, or where a problem was reported for it: checks pass over
//! what is absent. Values that follow from others (the slice, how long ids are remembered) are computed here, so that
//! checks and compilation see the same ones.
//!
//! Must not know: TOML, or what is allowed.

use tallyflow_core::window::{WindowSize, greatest_slice};

use crate::place::{Field, Placed};
use crate::table::Table;
use crate::values::Setting;

/// Beyond accept + future, ids are remembered for 5 more minutes by default: 5 · 60 · 1000 ms.
const REMEMBER_MARGIN_MS: i64 = 5 * 60 * 1000;

/// The whole file.
#[derive(Debug)]
pub(crate) struct Written {
    pub app: Field<String>,
    pub brokers: Field<Setting>,
    pub replication: Field<u32>,
    pub client: Vec<(Placed<String>, Placed<Setting>)>,
    pub registry: Field<String>,
    pub engine: Engine,
    pub listen: Field<String>,
    pub limits: Limits,
    /// Where the table of inputs stands; absent where a problem was reported that explains why one is missing.
    pub inputs_at: Option<usize>,
    pub inputs: Vec<Input>,
    pub output_format: Field<String>,
    pub namespaces: Vec<Namespace>,
    pub intake: Intake,
    pub count: Count,
    pub failures: Failures,
}

#[derive(Debug)]
pub(crate) struct Engine {
    pub commit_interval_ms: Field<i64>,
    pub transaction_timeout_ms: Field<i64>,
    pub state_dir: Field<String>,
    pub memory_bytes: Field<u64>,
    pub create_topics: Field<bool>,
}

#[derive(Debug)]
pub(crate) struct Limits {
    pub accept_ms: Field<i64>,
    pub future_ms: Field<i64>,
    /// As written; see [`Self::remember_or_default_ms`].
    pub remember_ms: Field<i64>,
    pub settle_lag_ms: Field<i64>,
    pub idle_timeout_ms: Field<i64>,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub name: Placed<String>,
    /// As written, or the name.
    pub topic: Placed<String>,
    pub partitions: Field<u32>,
    pub append_time: Field<String>,
}

#[derive(Debug)]
pub(crate) struct Namespace {
    pub name: Placed<String>,
    pub clearable: Field<bool>,
}

#[derive(Debug)]
pub(crate) struct Intake {
    pub from: Field<Vec<Placed<String>>>,
    pub workers: Field<u32>,
}

#[derive(Debug)]
pub(crate) struct Count {
    pub workers: Field<u32>,
    pub partitions: Field<u32>,
    pub dimensions: Field<Vec<Placed<String>>>,
    pub keep_ms: Field<i64>,
    /// As written; see [`Self::slice_or_default`].
    pub slice_ms: Field<i64>,
    /// Where the table of windows stands; absent where a problem was reported that explains why one is missing.
    pub windows_at: Option<usize>,
    pub windows: Vec<Window>,
    pub totals_emit_ms: Field<i64>,
}

#[derive(Debug)]
pub(crate) struct Window {
    pub name: Placed<String>,
    pub size_ms: Field<i64>,
    pub grace_ms: Field<i64>,
    /// Milliseconds; `None` inside is `final`.
    pub emit_ms: Field<Option<i64>>,
}

#[derive(Debug)]
pub(crate) struct Failures {
    pub max_retries: Field<u32>,
    pub base_ms: Field<i64>,
    pub cap_ms: Field<i64>,
}

impl Written {
    /// Takes the values out of the tree. `None` only if a table of the keys is missing in it.
    pub fn of(root: &Table) -> Option<Self> {
        let (kafka, inputs) = (root.table("kafka")?, root.table("input")?);
        let stage = root.table("stage")?;
        Some(Self {
            app: root.text("app"),
            brokers: kafka.setting("brokers"),
            replication: kafka.number("replication"),
            client: kafka.properties("client"),
            registry: root.table("schemas")?.text("registry"),
            engine: Engine::of(root.table("engine")?),
            listen: root.table("http")?.text("listen"),
            limits: Limits::of(root.table("limits")?),
            inputs_at: inputs.sound.then_some(inputs.at),
            inputs: inputs.named.iter().map(|(name, table)| Input::of(name, table)).collect(),
            output_format: root.table("output")?.text("format"),
            namespaces: root.table("namespace")?.named.iter().map(Namespace::of).collect(),
            intake: Intake::of(stage.table("intake")?),
            count: Count::of(stage.table("count")?)?,
            failures: Failures::of(root.table("failures")?),
        })
    }
}

impl Engine {
    fn of(table: &Table) -> Self {
        Self {
            commit_interval_ms: table.duration_ms("commit_interval"),
            transaction_timeout_ms: table.duration_ms("transaction_timeout"),
            state_dir: table.text("state_dir"),
            memory_bytes: table.size_bytes("memory"),
            create_topics: table.boolean("create_topics"),
        }
    }
}

impl Limits {
    fn of(table: &Table) -> Self {
        Self {
            accept_ms: table.duration_ms("accept"),
            future_ms: table.duration_ms("future"),
            remember_ms: table.duration_ms("remember"),
            settle_lag_ms: table.duration_ms("settle_lag"),
            idle_timeout_ms: table.duration_ms("idle_timeout"),
        }
    }

    /// How long ids are remembered: as written, or accept + future + 5 minutes.
    pub fn remember_or_default_ms(&self) -> Option<i64> {
        let computed = || {
            let together = self.accept_ms.as_ref()?.value.checked_add(self.future_ms.as_ref()?.value)?;
            together.checked_add(REMEMBER_MARGIN_MS)
        };
        self.remember_ms.as_ref().map(|written| written.value).or_else(computed)
    }
}

impl Input {
    fn of(name: &Placed<String>, table: &Table) -> Self {
        let named = || Placed { written: false, ..name.clone() };
        Self {
            name: name.clone(),
            topic: table.text("topic").unwrap_or_else(named),
            partitions: table.number("partitions"),
            append_time: table.text("append_time"),
        }
    }
}

impl Namespace {
    fn of((name, table): &(Placed<String>, Table)) -> Self {
        Self { name: name.clone(), clearable: table.boolean("clearable") }
    }
}

impl Intake {
    fn of(table: &Table) -> Self {
        Self { from: table.names("from"), workers: table.number("workers") }
    }
}

impl Count {
    fn of(table: &Table) -> Option<Self> {
        let windows = table.table("window")?;
        Some(Self {
            workers: table.number("workers"),
            partitions: table.number("partitions"),
            dimensions: table.names("dimensions"),
            keep_ms: table.duration_ms("keep"),
            slice_ms: table.duration_ms("slice"),
            windows_at: windows.sound.then_some(windows.at),
            windows: windows.named.iter().map(|(name, table)| Window::of(name, table)).collect(),
            totals_emit_ms: table.table("totals")?.duration_ms("emit"),
        })
    }

    /// The slice: as written, or the greatest length that divides every window.
    pub fn slice_or_default(&self) -> Option<WindowSize> {
        match &self.slice_ms {
            Some(written) => WindowSize::new(written.value),
            None => greatest_slice(self.windows.iter().filter_map(Window::size)),
        }
    }
}

impl Window {
    fn of(name: &Placed<String>, table: &Table) -> Self {
        let every = table.duration_ms("emit").map(|emit| emit.map(Some));
        Self {
            name: name.clone(),
            size_ms: table.duration_ms("size"),
            grace_ms: table.duration_ms("grace"),
            emit_ms: every.or_else(|| table.text("emit").map(|emit| emit.map(|_| None))),
        }
    }

    /// Its length.
    pub fn size(&self) -> Option<WindowSize> {
        WindowSize::new(self.size_ms.as_ref()?.value)
    }
}

impl Failures {
    fn of(table: &Table) -> Self {
        Self {
            max_retries: table.number("max_retries"),
            base_ms: table.duration_ms("base"),
            cap_ms: table.duration_ms("cap"),
        }
    }
}
