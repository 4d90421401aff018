//! `tallyflow validate`: the topology was read, and this is what it says in short. Kafka is not asked.
//!
//! Problems are told where the topology is loaded, before a command begins.

use std::process::ExitCode;

use anyhow::Result;
use tallyflow_core::plan::WindowPlan;
use tallyflow_topology::Deployment;
use tallyflow_topology::units::duration_text;

use super::number;
use crate::context::Context;
use crate::output::Output;

/// Says that the topology is good, and what it amounts to.
///
/// # Errors
/// Where standard output cannot be written.
pub fn run(context: &Context) -> Result<ExitCode> {
    let mut output = Output::new();
    output.line(format!("{}: ok", context.path.display()))?;
    output.text(&summary(&context.deployment))?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn summary(deployment: &Deployment) -> String {
    let plan = &deployment.plan;
    let inputs: Vec<&str> = plan.inputs.iter().map(|input| &*input.topic).collect();
    let windows: Vec<String> = plan.windows.iter().map(window).collect();
    let dimensions = if plan.dimensions.is_empty() { "none".to_owned() } else { plan.dimensions.join(", ") };
    let lines = [
        ("app", plan.app.clone()),
        ("brokers", deployment.kafka.brokers.clone()),
        ("inputs", inputs.join(", ")),
        ("windows", windows.join(", ")),
        ("dimensions", dimensions),
        ("entries", number(plan.entries_partitions.into(), "partition")),
        ("accepts", format!("events up to {} old", duration_text(plan.limits.accept_ms))),
        ("remembers", format!("ids for {}", duration_text(plan.limits.remember_ms))),
        ("state", plan.engine.state_dir.display().to_string()),
    ];
    let text = lines.iter().map(|(name, value)| format!("  {name:<11} {value}\n"));
    text.collect()
}

fn window(window: &WindowPlan) -> String {
    let size = duration_text(window.size.ms());
    if *window.name == *size { size } else { format!("{} ({size})", window.name) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tallyflow_topology::{Source, SystemEnvironment, compile};

    use super::*;

    #[test]
    fn the_summary_is_short() {
        let text = "app = \"shop\"\nkafka.brokers = \"localhost:9092\"\n[input.events]\n[input.clicks]\n\
            topic = \"web.clicks\"\n[stage.count]\ndimensions = [\"region\"]\n[stage.count.window.minute]\n\
            size = \"1m\"\n[stage.count.window.1h]\nsize = \"1h\"\n";
        let source = Source::of(Path::new("topology.toml"));
        let deployment = compile(text.as_bytes(), source, &SystemEnvironment).unwrap();
        let right = "  app         shop
  brokers     localhost:9092
  inputs      events, web.clicks
  windows     minute (1m), 1h
  dimensions  region
  entries     8 partitions
  accepts     events up to 24h old
  remembers   ids for 24h10m
  state       state
";
        assert_eq!(summary(&deployment), right);
    }
}
