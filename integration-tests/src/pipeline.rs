//! A whole pipeline under test: an app of its own, its topics, events from the generator, and the audit's word.
//!
//! The audit is the judge of every promise: it recounts the raw topic with code of its own and compares windows,
//! totals and the ledger.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tallyflow_generator::{Generator, Plan};

use crate::{Outgoing, Tallyflow, Worker, kafka, unique, wait_until};

/// Records of one write of [`Pipeline::feed`].
const WRITE_RECORDS: usize = 500;

/// One app with its own topics.
pub struct Pipeline {
    /// The app's name, which prefixes its topics and groups.
    pub app: String,
    /// The input topic.
    pub input: String,
    /// The binary with its topology and state directory.
    pub tallyflow: Tallyflow,
    partitions: i32,
}

impl Pipeline {
    /// An app with an input of so many partitions. Its topics are made by `tallyflow topics --execute`.
    pub fn new(name: &str, partitions: i32) -> Self {
        Self::with(name, partitions, "")
    }

    /// The same, with more lines at the end of the topology.
    pub fn with(name: &str, partitions: i32, more: &str) -> Self {
        Self::make(name, partitions, more, None)
    }

    /// An app with an input of one partition that takes records of 12 MB.
    pub fn large_records(name: &str) -> Self {
        let settings = [("message.timestamp.type", "LogAppendTime"), ("max.message.bytes", "12000000")];
        Self::make(name, 1, "", Some(&settings))
    }

    fn make(name: &str, partitions: i32, more: &str, input_settings: Option<&[(&str, &str)]>) -> Self {
        let app = unique(name);
        let input = format!("{app}.events");
        if let Some(settings) = input_settings {
            kafka().create_topic(&input, partitions, settings);
        }
        let tallyflow = Tallyflow::new(&topology(&app, &input, partitions, more));
        let _ = tallyflow.call(&["topics", "--execute"]).success();
        Self { app, input, tallyflow, partitions }
    }

    /// Changes the topology's text before a process is started.
    pub fn rewrite(&self, from: &str, to: &str) {
        let text = topology(&self.app, &self.input, self.partitions, "");
        assert!(text.contains(from), "the topology has no {from}");
        self.tallyflow.write_topology(&text.replace(from, to));
    }

    /// A process in this slot, ready.
    pub fn start(&self, slot: u32) -> Worker {
        let mut worker = self.tallyflow.run(slot);
        worker.wait_ready();
        worker
    }

    /// The name of one of the app's topics.
    pub fn topic(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.app)
    }

    /// Writes everything that a plan of this seed generates; returns how many records.
    pub fn feed(&self, seed: u64, events: u64) -> usize {
        self.feed_with(seed, events, |_| {})
    }

    /// The same, calling `between` with the number of records so far after every write.
    pub fn feed_with(&self, seed: u64, events: u64, mut between: impl FnMut(usize)) -> usize {
        let mut plan = Plan::new(seed, events, 0);
        plan.partitions = u32::try_from(self.partitions).ok();
        plan.id_prefix = format!("s{seed}-");
        plan.counters = 50;
        let length_ms = plan.end_ms();
        plan.start_ms = now_ms() - length_ms - 1_000;
        let mut records = Vec::with_capacity(WRITE_RECORDS);
        let mut written = 0;
        for generated in Generator::new(plan).expect("the plan is valid") {
            records.push(Outgoing {
                key: generated.key,
                value: generated.value,
                partition: generated.partition_hint.and_then(|p| i32::try_from(p).ok()),
                ..Outgoing::default()
            });
            if records.len() == WRITE_RECORDS {
                written += kafka().produce(&self.input, &records).len();
                records.clear();
                between(written);
            }
        }
        written + kafka().produce(&self.input, &records).len()
    }

    /// The audit says that every event is accounted for and every window is right. It gives up after a while without
    /// progress, so it is asked again while a pipeline recovers. Returns its report.
    pub fn audited(&self) -> serde_json::Value {
        let finished = wait_until(Duration::from_secs(180), "the pipeline settles", || {
            let finished = self.tallyflow.call(&["audit", "--json", "--timeout", "90s"]);
            (finished.code != Some(1)).then_some(finished)
        });
        let start: String = finished.stdout.chars().take(2_000).collect();
        assert_eq!(finished.code, Some(0), "audit:\n{start}\n{}", finished.stderr);
        serde_json::from_str(&finished.stdout).expect("the audit's report is JSON")
    }

    /// The sum over all totals of a counter in the default namespace, whatever its dimensions.
    pub fn total(&self, counter: &str) -> i64 {
        let lines = self.tallyflow.call(&["counts", "--json", "--counter", counter]).success();
        lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("rows are JSON"))
            .map(|row| row["total"].as_i64().expect("a total within i64"))
            .sum()
    }

    /// The sum of one tally over the ledger's rows of a stage.
    pub fn tally(&self, stage: &str, column: &str) -> u64 {
        let mut latest = std::collections::BTreeMap::new();
        for record in kafka().read(&self.topic("ledger")) {
            latest.insert(record.key.clone(), record.json());
        }
        let rows = latest.values().filter(|row| row["stage"] == stage);
        rows.map(|row| row[column].as_u64().expect("a tally")).sum()
    }
}

impl Drop for Pipeline {
    /// A broker with the topics of every test before would take a minute to restart. The processes end first: they
    /// are declared after the pipeline.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            kafka().topics(&self.app).iter().for_each(|topic| kafka().delete_topic(topic));
        }
    }
}

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// One event as JSON, an id within `counter`, dated now.
pub fn event(id: &str, counter: &str, delta: i64) -> Vec<u8> {
    event_at(id, counter, delta, now_ms())
}

/// The same, dated.
pub fn event_at(id: &str, counter: &str, delta: i64, event_time_ms: i64) -> Vec<u8> {
    format!(r#"{{"event_id":"{id}","counter":"{counter}","delta":{delta},"event_time":{event_time_ms}}}"#)
        .into_bytes()
}

fn topology(app: &str, input: &str, partitions: i32, more: &str) -> String {
    format!(
        r#"
app = "{app}"
[kafka]
brokers = "{brokers}"
[engine]
commit_interval = "50ms"
transaction_timeout = "5s"
memory = "128MiB"
[limits]
settle_lag = "500ms"
idle_timeout = "500ms"
[input.events]
topic = "{input}"
partitions = {partitions}
[input.events.format.json]
[stage.intake]
from = ["events"]
[stage.count]
partitions = 4
[stage.count.window.minute]
size = "1m"
emit = "200ms"
[stage.count.window.hour]
size = "1h"
emit = "final"
[stage.count.totals]
emit = "200ms"
{more}
"#,
        brokers = kafka().brokers(),
    )
}
