//! The commands as a user meets them: what they print, where, and with which exit code. Workers are not needed here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "commands/rows.rs"]
mod rows;
#[path = "commands/send.rs"]
mod send;
#[path = "commands/topics.rs"]
mod topics;

use std::time::{Duration, Instant};

use tallyflow_integration_tests::{Finished, Tallyflow, kafka, unique};

/// Where nobody listens: the discard port of loopback.
const NOBODY: &str = "127.0.0.1:9";

struct App {
    name: String,
    tallyflow: Tallyflow,
}

impl App {
    fn new(name: &str) -> Self {
        let name = unique(name);
        let tallyflow = Tallyflow::new(&topology(&name, ""));
        Self { name, tallyflow }
    }

    /// Whose topics exist.
    fn with_topics(name: &str) -> Self {
        let app = Self::new(name);
        let _ = app.call(&["topics", "--execute"]).success();
        app
    }

    fn topic(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }

    fn call(&self, arguments: &[&str]) -> Finished {
        self.tallyflow.call(arguments)
    }
}

fn topology(app: &str, more: &str) -> String {
    format!(
        r#"
app = "{app}"
[kafka]
brokers = "{brokers}"
[input.events]
topic = "{app}.events"
partitions = 2
[stage.count]
partitions = 3
dimensions = ["region"]
[stage.count.window.minute]
size = "1m"
{more}
"#,
        brokers = kafka().brokers(),
    )
}

#[test]
fn without_a_broker_every_command_gives_up_in_time_and_names_the_address() {
    let app = App::new("nobody");
    for command in ["topics", "send", "windows", "counts", "audit"] {
        let started = Instant::now();
        let finished = app.call(&[command, "--brokers", NOBODY, "--timeout", "1s"]);
        let took = started.elapsed();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{command}");
        assert_eq!(finished.stderr.lines().count(), 1, "{command}: {}", finished.stderr);
        assert!(finished.stderr.contains(NOBODY), "{command}: {}", finished.stderr);
        assert!(took < Duration::from_secs(10), "{command} took {took:?}");
    }
}

#[test]
fn validate_says_every_problem_of_a_topology_at_once() {
    let app = App::new("valid");
    let fine = app.call(&["validate", "--brokers", NOBODY]).success();
    assert!(fine.starts_with("topology.toml: ok\n"), "{fine}");
    assert!(fine.contains(&app.name) && fine.contains(NOBODY), "{fine}");

    app.tallyflow.write_topology(
        "app = \"shop\"\nkafka.brokers = \"localhost:9092\"\n[input.events]\npartitons = 4\n\
         [stage.count.window.minute]\nsize = 60\n[stage.count]\nworkers = 0\n",
    );
    for command in ["validate", "run", "graph", "healthcheck"] {
        let finished = app.call(&[command]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(78), ""), "{command}");
        for part in ["topology.toml:4:1: TF0102: ", "topology.toml:6:", "topology.toml:8:", "3 problems"] {
            assert!(finished.stderr.contains(part), "{command}: {part} in\n{}", finished.stderr);
        }
    }
    let absent = app.call(&["validate", "--topology", "absent.toml"]);
    assert_eq!(absent.code, Some(78));
    assert!(absent.stderr.contains("absent.toml"), "{}", absent.stderr);
    app.tallyflow.write_topology(&topology(&app.name, "[kafka.client]\n\"sasl.pasword\" = \"hunter2\"\n"));
    let refused = app.call(&["validate"]);
    assert_eq!(refused.code, Some(78));
    assert!(
        refused.stderr.contains("sasl.pasword") && !refused.stderr.contains("hunter2"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_graph_is_drawn_without_kafka() {
    let app = App::new("graph");
    let ascii = app.call(&["graph", "--brokers", NOBODY]).success();
    assert!(ascii.is_ascii() && ascii.contains(&app.topic("windows")), "{ascii}");
    let mermaid = app.call(&["graph", "--format", "mermaid"]).success();
    assert!(mermaid.starts_with("flowchart "), "{mermaid}");
}

#[test]
fn an_audit_without_an_engine_says_what_is_missing() {
    let app = App::with_topics("audit");
    let empty = app.call(&["audit"]);
    assert_eq!(empty.code, Some(0), "{}\n{}", empty.stdout, empty.stderr);
    let _ = app
        .tallyflow
        .call_with(&["send"], b"{\"event_id\":\"1\",\"counter\":\"c\",\"event_time\":1}\n")
        .success();
    let waiting = app.call(&["audit", "--json", "--timeout", "2s"]);
    assert_eq!(waiting.code, Some(1), "{}", waiting.stdout);
    let report: serde_json::Value = serde_json::from_str(&waiting.stdout).expect("one document");
    assert_eq!((&report["outcome"], &report["recounted"]["late"]["lo"]), (&"not_settled".into(), &1.into()));
}

#[test]
fn a_healthcheck_without_a_process_fails() {
    let app = App::with_topics("health");
    for arguments in [&["healthcheck"] as &[&str], &["healthcheck", "--settled", "--wait", "--timeout", "1s"]]
    {
        let finished = app.call(arguments);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
        assert!(finished.stderr.contains("no process has been started"), "{}", finished.stderr);
    }
    // What a process that was killed leaves behind.
    std::fs::create_dir_all(app.tallyflow.state_dir().join("slot-0")).unwrap();
    std::fs::write(app.tallyflow.state_dir().join("slot-0").join("http"), NOBODY).unwrap();
    let finished = app.call(&["healthcheck"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("slot 0 (127.0.0.1:9): nobody answers"), "{}", finished.stderr);
}

/// The commands and what each one takes beside what all take: a promise to those who write scripts.
const COMMANDS: &[(&str, &str)] = &[
    ("run", "[FILE] --stage --slot --listen --accept-loss --log-json"),
    ("validate", ""),
    ("graph", "--format"),
    ("topics", "--execute"),
    ("send", "[FILE] --input"),
    ("windows", "--namespace --counter --json --follow --window --since --until --state"),
    ("counts", "--namespace --counter --json --follow"),
    ("audit", "--json"),
    ("healthcheck", "--wait --settled"),
];

#[test]
fn every_command_explains_itself() {
    let tallyflow = Tallyflow::new("");
    let help = tallyflow.call(&["--help"]).success();
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut right: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
    right.push("help");
    assert_eq!(listed, right);
    for (name, options) in COMMANDS {
        let help = tallyflow.call(&[name, "--help"]).success();
        let first_words = help.lines().filter(|line| line.starts_with(' '));
        let mut found: Vec<&str> = first_words
            .filter_map(|line| {
                line.split([' ', ',']).find(|word| word.starts_with("--") || *word == "[FILE]")
            })
            .filter(|word| help.contains(&format!("  {word}")))
            .collect();
        found.retain(|word| !["--help", "--topology", "--brokers", "--timeout"].contains(word));
        let right: Vec<&str> = options.split_whitespace().collect();
        assert_eq!(found, right, "{name}:\n{help}");
        for option in ["--topology", "--brokers", "--timeout"] {
            assert!(help.contains(option), "{name} {option}");
        }
    }
    assert!(tallyflow.call(&["--version"]).success().starts_with("tallyflow "));
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let app = App::new("usage");
    for arguments in [
        &[] as &[&str],
        &["rnu"],
        &["run", "--stage", "sink"],
        &["run", "topology.toml", "--topology", "topology.toml"],
        &["windows", "--since", "yesterday"],
        &["graph", "--format", "dot"],
        &["validate", "--timeout", "30"],
    ] {
        let finished = app.call(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
