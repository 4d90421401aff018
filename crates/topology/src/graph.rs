//! The pipeline as a picture: for terminals and for Mermaid. Drawn from the deployment, so it cannot go stale.
//!
//! ```text
//!  inputs ──► [intake] ──► entries ──► [count] ──► windows, counts, ledger      (for everyone)
//!                 └─► dlq, late            ├─────► deltas, state                (the engine's own)
//!                                          └─────► dlq, late
//! ```
//!
//! Equal deployments give equal text.
//!
//! Must not know: what is running.

use std::fmt::Write;

use tallyflow_core::plan::{AppendTime, Emit, InputPlan, WindowPlan};

use crate::deployment::Deployment;
use crate::units::duration_text;

/// The pipeline for a terminal.
pub fn ascii(deployment: &Deployment) -> String {
    let Deployment { plan, names, .. } = deployment;
    let inputs: Vec<String> = plan.inputs.iter().map(input_line).collect();
    let (intake, count) =
        (stage_title("intake", plan.intake_workers), stage_title("count", plan.count_workers));
    let mut lines = vec![format!("app {}", plan.app), String::new()];
    lines.extend(inputs);
    lines.extend([
        "  |".to_owned(),
        "  v".to_owned(),
        format!("[{intake}]"),
        format!("  |--> {}  failures", names.dlq),
        format!("  |--> {}  late and future events", names.late),
        format!("  |--> {}  its books", names.ledger),
        "  v".to_owned(),
        format!("{}  packed entries, {}", names.entries, partitions(plan.entries_partitions)),
        "  |".to_owned(),
        "  v".to_owned(),
        format!("[{count}]"),
    ]);
    lines.extend([
        format!("  |    dedup: ids are remembered for {}", duration_text(plan.limits.remember_ms)),
        format!(
            "  |    tally: per {}, slices of {}",
            counter_key(deployment),
            duration_text(plan.slice.ms())
        ),
    ]);
    lines.extend(
        plan.windows.iter().map(|window| format!("  |    window {}: {}", window.name, window_text(window))),
    );
    lines.extend([
        format!("  |--> {}  window counts", names.windows),
        format!("  |--> {}  totals, emitted every {}", names.counts, duration_text(plan.totals_emit_ms)),
        format!("  |--> {}  its books", names.ledger),
        format!("  |--> {}, {}  its changelog", names.deltas, names.state),
        format!("  |--> {}  conflicts", names.dlq),
        format!("  '--> {}  events beyond the horizon", names.late),
    ]);
    lines.iter().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// The pipeline as a Mermaid flowchart.
pub fn mermaid(deployment: &Deployment) -> String {
    let Deployment { plan, names, .. } = deployment;
    let mut text = String::from("flowchart LR\n");
    // Writing to a String cannot fail; errors of `writeln!` are of no concern below.
    for (at, input) in plan.inputs.iter().enumerate() {
        let _ = writeln!(text, "    input{at}[({})] --> intake", label(&input.topic));
    }
    let _ = writeln!(text, "    intake[{}]", label(&stage_title("intake", plan.intake_workers)));
    let _ = writeln!(text, "    count[{}]", label(&stage_title("count", plan.count_workers)));
    for (id, topic) in [
        ("entries", &names.entries),
        ("windows", &names.windows),
        ("counts", &names.counts),
        ("ledger", &names.ledger),
        ("deltas", &names.deltas),
        ("state", &names.state),
        ("dlq", &names.dlq),
        ("late", &names.late),
    ] {
        let _ = writeln!(text, "    {id}[({})]", label(topic));
    }
    text.push_str("    intake --> entries --> count\n");
    text.push_str("    intake --> ledger & dlq & late\n");
    let windows: Vec<String> =
        plan.windows.iter().map(|window| format!("{} {}", window.name, window_text(window))).collect();
    let _ = writeln!(text, "    count -- {} --> windows", label(&windows.join("; ")));
    text.push_str("    count --> counts & ledger & deltas & state & dlq & late\n");
    text
}

fn input_line(input: &InputPlan) -> String {
    let topic = if input.topic == input.name { String::new() } else { format!(" (input {})", input.name) };
    let append_time = match input.append_time {
        AppendTime::Log => "",
        AppendTime::Record => ", append time of the record",
    };
    format!("{}{topic}  JSON{append_time}", input.topic)
}

fn stage_title(name: &str, workers: u32) -> String {
    format!("{name}, {workers} {}", if workers == 1 { "worker" } else { "workers" })
}

fn partitions(count: u32) -> String {
    format!("{count} {}", if count == 1 { "partition" } else { "partitions" })
}

fn counter_key(deployment: &Deployment) -> String {
    let dimensions = &deployment.plan.dimensions;
    let fixed = ["namespace", "counter"].into_iter();
    fixed.chain(dimensions.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
}

fn window_text(window: &WindowPlan) -> String {
    let grace = match window.grace_ms {
        0 => String::new(),
        ms => format!(", grace {}", duration_text(ms)),
    };
    let emit = match window.emit {
        Emit::EveryMs(ms) => format!("emitted every {}", duration_text(ms)),
        Emit::Final => "emitted when final".to_owned(),
    };
    format!("{}{grace}, {emit}", duration_text(window.size.ms()))
}

/// A label in quotes. Names are checked to be free of what Mermaid reads otherwise; the quotes are for the rest.
fn label(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "#quot;"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::deployment;

    const TEXT: &str = r#"
        app = "shop"
        kafka.brokers = "localhost:9092"
        [input.events]
        [input.clicks]
        topic = "web.clicks"
        append_time = "record"
        [stage.count]
        workers = 2
        dimensions = ["region"]
        [stage.count.window.minute]
        size = "1m"
        grace = "5s"
        [stage.count.window.hour]
        size = "1h"
        emit = "final"
    "#;

    #[test]
    fn the_terminals_picture() {
        let right = "\
app shop

events  JSON
web.clicks (input clicks)  JSON, append time of the record
  |
  v
[intake, 1 worker]
  |--> shop.dlq  failures
  |--> shop.late  late and future events
  |--> shop.ledger  its books
  v
shop.entries  packed entries, 8 partitions
  |
  v
[count, 2 workers]
  |    dedup: ids are remembered for 24h10m
  |    tally: per namespace, counter, region, slices of 1m
  |    window minute: 1m, grace 5s, emitted every 1s
  |    window hour: 1h, emitted when final
  |--> shop.windows  window counts
  |--> shop.counts  totals, emitted every 1s
  |--> shop.ledger  its books
  |--> shop.deltas, shop.state  its changelog
  |--> shop.dlq  conflicts
  '--> shop.late  events beyond the horizon
";
        assert_eq!(ascii(&deployment(TEXT)), right);
        assert!(right.is_ascii());
    }

    #[test]
    fn the_mermaid_picture() {
        let right = r#"flowchart LR
    input0[("events")] --> intake
    input1[("web.clicks")] --> intake
    intake["intake, 1 worker"]
    count["count, 2 workers"]
    entries[("shop.entries")]
    windows[("shop.windows")]
    counts[("shop.counts")]
    ledger[("shop.ledger")]
    deltas[("shop.deltas")]
    state[("shop.state")]
    dlq[("shop.dlq")]
    late[("shop.late")]
    intake --> entries --> count
    intake --> ledger & dlq & late
    count -- "minute 1m, grace 5s, emitted every 1s; hour 1h, emitted when final" --> windows
    count --> counts & ledger & deltas & state & dlq & late
"#;
        assert_eq!(mermaid(&deployment(TEXT)), right);
    }
}
