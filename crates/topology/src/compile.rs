//! From the written form to the deployment, once nothing is wrong with it.
//!
//! References are resolved here too, and are problems with a place where they cannot be. `None` means that a value is
//! absent, so a problem was reported for it.
//!
//! Must not know: TOML, or what is allowed.

use std::path::Path;
use std::sync::Arc;

use tallyflow_core::plan::{
    AppendTime, Emit, EnginePlan, Format, InputPlan, Names, Plan, RecordLimits, TimePlan, WindowPlan,
};

use crate::Source;
use crate::codes::Code;
use crate::deployment::{Deployment, FailurePlan, KafkaPlan};
use crate::document::join;
use crate::environment::{Environment, Secret};
use crate::place::{Field, Placed, Report};
use crate::values::Setting;
use crate::written::{Input, Window, Written};

/// The values of `[kafka]`, with their references resolved.
pub(crate) struct Resolved {
    /// The addresses; `None` after a problem.
    pub brokers: Option<Placed<String>>,
    /// The properties that could be resolved.
    pub client: Vec<(String, Secret)>,
}

/// Resolves every reference.
pub(crate) fn resolve(
    written: &Written,
    source: Source<'_>,
    environment: &dyn Environment,
    report: &mut Report<'_>,
) -> Resolved {
    let folder = folder(source.path);
    let mut value = |path: &str, setting: &Placed<Setting>| {
        let found = resolve_one(&setting.value, folder, environment);
        found
            .map_err(|why| {
                let help = "set it, or write the value itself";
                report.add(setting.at, Code::Unresolved, format!("`{path}`: {why}"), help);
            })
            .ok()
    };
    let brokers = match source.brokers {
        Some(given) => Some(Placed { value: given.to_owned(), at: 0, written: false }),
        None => written.brokers.as_ref().and_then(|setting| {
            let text = value("kafka.brokers", setting)?;
            Some(setting.clone().map(|_| text.trim().to_owned()))
        }),
    };
    let mut client = Vec::new();
    for (name, setting) in &written.client {
        if let Some(text) = value(&join("kafka.client", &name.value), setting) {
            client.push((name.value.clone(), Secret::new(text)));
        }
    }
    Resolved { brokers, client }
}

/// The value, or why there is none; the reason names the variable or file and never a value.
fn resolve_one(setting: &Setting, folder: &Path, environment: &dyn Environment) -> Result<String, String> {
    match setting {
        Setting::Literal(text) => Ok(text.clone()),
        Setting::Variable(name) => {
            environment.variable(name).map_err(|why| format!("the environment variable {name} {why}"))
        }
        Setting::File(name) => {
            let path = folder.join(name);
            let text = environment.file(&path).map_err(|why| format!("the file {} {why}", path.display()))?;
            // Files of secrets end with a line break that is not part of the secret.
            let text = text.strip_suffix('\n').unwrap_or(&text);
            Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
        }
    }
}

/// The folder that paths in a file are relative to.
fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Builds the deployment.
pub(crate) fn deployment(written: &Written, resolved: Resolved, source: Source<'_>) -> Option<Deployment> {
    let app = written.app.as_ref()?.value.as_str();
    Some(Deployment {
        plan: plan(written, app, source)?,
        names: Names::of(app),
        kafka: KafkaPlan {
            brokers: resolved.brokers?.value,
            replication: u16::try_from(of(&written.replication)?).ok()?,
            client: resolved.client,
        },
        http_listen: written.listen.as_ref()?.value.parse().ok()?,
        create_topics: of(&written.engine.create_topics)?,
        schemas_registry: written.registry.as_ref().map(|url| Secret::new(url.value.as_str())),
        failures: FailurePlan {
            max_retries: of(&written.failures.max_retries)?,
            base_ms: of(&written.failures.base_ms)?,
            cap_ms: of(&written.failures.cap_ms)?,
        },
    })
}

fn plan(written: &Written, app: &str, source: Source<'_>) -> Option<Plan> {
    let Written { count, intake, engine, .. } = written;
    let dimensions = count.dimensions.iter().flat_map(|names| &names.value);
    let namespaces: Vec<String> =
        written.namespaces.iter().map(|namespace| namespace.name.value.clone()).collect();
    Some(Plan {
        app: app.to_owned(),
        inputs: written.inputs.iter().map(input).collect::<Option<_>>()?,
        limits: limits(written)?,
        record_limits: RecordLimits::default(),
        namespaces: (!namespaces.is_empty()).then_some(namespaces),
        dimensions: dimensions.map(|name| name.value.clone()).collect(),
        windows: count.windows.iter().map(window).collect::<Option<_>>()?,
        totals_emit_ms: of(&count.totals_emit_ms)?,
        slice: count.slice_or_default()?,
        keep_ms: of(&count.keep_ms)?,
        entries_partitions: of(&count.partitions)?,
        intake_workers: of(&intake.workers)?,
        count_workers: of(&count.workers)?,
        engine: EnginePlan {
            commit_interval_ms: of(&engine.commit_interval_ms)?,
            transaction_timeout_ms: of(&engine.transaction_timeout_ms)?,
            state_dir: folder(source.path).join(engine.state_dir.as_ref()?.value.as_str()),
            memory_bytes: of(&engine.memory_bytes)?,
        },
    })
}

fn input(input: &Input) -> Option<InputPlan> {
    let append_time = match input.append_time.as_ref()?.value.as_str() {
        "record" => AppendTime::Record,
        _ => AppendTime::Log,
    };
    Some(InputPlan {
        name: Arc::from(input.name.value.as_str()),
        topic: Arc::from(input.topic.value.as_str()),
        partitions: of(&input.partitions)?,
        append_time,
        format: Format::Json,
    })
}

fn limits(written: &Written) -> Option<TimePlan> {
    let limits = &written.limits;
    Some(TimePlan {
        accept_ms: of(&limits.accept_ms)?,
        future_ms: of(&limits.future_ms)?,
        remember_ms: limits.remember_or_default_ms()?,
        settle_lag_ms: of(&limits.settle_lag_ms)?,
        idle_timeout_ms: of(&limits.idle_timeout_ms)?,
    })
}

fn window(window: &Window) -> Option<WindowPlan> {
    Some(WindowPlan {
        name: Arc::from(window.name.value.as_str()),
        size: window.size()?,
        grace_ms: of(&window.grace_ms)?,
        emit: of(&window.emit_ms)?.map_or(Emit::Final, Emit::EveryMs),
    })
}

fn of<T: Copy>(field: &Field<T>) -> Option<T> {
    field.as_ref().map(|placed| placed.value)
}
