//! The topics of an app: how each is created (contract §1), and the vocabulary of their check.
//!
//! Pure: the cluster is asked and told by others. `tallyflow topics` and `run` create what [`specs`] says.
//!
//! Must not know: admin clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use tallyflow_core::frame::FRAME_LIMIT_BYTES;
use tallyflow_core::plan::{AppendTime, InputPlan};

use crate::codes::Code;
use crate::deployment::Deployment;

mod check;
#[cfg(test)]
mod check_tests;

pub use check::check;

/// Milliseconds of a day: 24 · 60 · 60 · 1000.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How long failures, late and future events are kept: 30 days.
const FAILURES_KEPT_MS: i64 = 30 * DAY_MS;
/// The largest record of `dlq` and `late`: 16 MiB, so that any input's record fits with our headers.
const FAILURE_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// Segments of the engine's logs: 64 MiB, so that trimming frees disk soon.
const LOG_SEGMENT_BYTES: usize = 64 * 1024 * 1024;
/// Segments of the ledger: 16 MiB, so that compaction reaches them soon.
const LEDGER_SEGMENT_BYTES: usize = 16 * 1024 * 1024;
/// A segment of the ledger is closed after 10 minutes at the latest.
const LEDGER_SEGMENT_MS: i64 = 10 * 60 * 1000;
/// Partitions of the ledger, which is keyed by source partition and small.
const LEDGER_PARTITIONS: u32 = 4;

/// What a topic is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Events from outside; the topic is the user's.
    Input,
    /// Packed admitted events, from intake to count.
    Entries,
    /// What count decided: its restart record.
    Deltas,
    /// The rolling snapshot of cells.
    State,
    /// Window counts, for everyone.
    Windows,
    /// Totals, for everyone.
    Counts,
    /// The books, for everyone.
    Ledger,
    /// Failures.
    Dlq,
    /// Late and future events.
    Late,
}

impl Role {
    /// Whether only the engine reads it.
    pub const fn is_internal(self) -> bool {
        matches!(self, Self::Entries | Self::Deltas | Self::State)
    }

    /// Whether it has to have as many partitions as `entries`.
    pub const fn follows_entries(self) -> bool {
        self.is_internal() || matches!(self, Self::Windows | Self::Counts)
    }
}

/// How a topic is created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicSpec {
    /// Its name.
    pub name: Arc<str>,
    /// Its partitions.
    pub partitions: u32,
    /// Its settings, by Kafka's names.
    pub configs: Vec<(&'static str, String)>,
    /// What it is for.
    pub role: Role,
}

/// A topic of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundTopic {
    /// Its name.
    pub name: String,
    /// Its partitions.
    pub partitions: u32,
    /// Its effective settings, defaults included, by Kafka's names.
    pub configs: BTreeMap<String, String>,
}

/// What is wrong with a topic of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicProblem {
    /// The topic.
    pub topic: String,
    /// Which kind of problem.
    pub code: Code,
    /// What is wrong.
    pub what: String,
    /// The command or the change of topology.toml that mends it.
    pub fix: String,
}

impl std::fmt::Display for TopicProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "topic {}: {}: {}\n  help: {}", self.topic, self.code, self.what, self.fix)
    }
}

/// Every topic the app uses: the inputs in the order of the file, then its own.
pub fn specs(deployment: &Deployment) -> Vec<TopicSpec> {
    let Deployment { plan, names, .. } = deployment;
    let entries = plan.entries_partitions;
    let widest_input = plan.inputs.iter().map(|input| input.partitions).max().unwrap_or(1);
    let own = |role, name: &Arc<str>, partitions| TopicSpec {
        name: Arc::clone(name),
        partitions,
        configs: own_configs(role, deployment),
        role,
    };
    let mut specs: Vec<TopicSpec> = plan.inputs.iter().map(input_spec).collect();
    specs.extend([
        own(Role::Entries, &names.entries, entries),
        own(Role::Deltas, &names.deltas, entries),
        own(Role::State, &names.state, entries),
        own(Role::Windows, &names.windows, entries),
        own(Role::Counts, &names.counts, entries),
        own(Role::Ledger, &names.ledger, LEDGER_PARTITIONS),
        own(Role::Dlq, &names.dlq, widest_input),
        own(Role::Late, &names.late, widest_input),
    ]);
    specs
}

fn input_spec(input: &InputPlan) -> TopicSpec {
    TopicSpec {
        name: Arc::clone(&input.topic),
        partitions: input.partitions,
        configs: vec![("message.timestamp.type", timestamp_type(input.append_time).to_owned())],
        role: Role::Input,
    }
}

/// Kafka's word for the timestamps that an input has to have.
const fn timestamp_type(append_time: AppendTime) -> &'static str {
    match append_time {
        AppendTime::Log => "LogAppendTime",
        AppendTime::Record => "CreateTime",
    }
}

fn own_configs(role: Role, deployment: &Deployment) -> Vec<(&'static str, String)> {
    let text = |value: &str| value.to_owned();
    let mut configs = match role {
        Role::Input => Vec::new(),
        // The engine trims its logs itself; a clock or a size could delete what a lagging stage still needs.
        Role::Entries | Role::Deltas | Role::State => vec![
            ("cleanup.policy", text("delete")),
            ("retention.ms", text("-1")),
            ("retention.bytes", text("-1")),
            ("message.timestamp.type", text("LogAppendTime")),
            ("max.message.bytes", FRAME_LIMIT_BYTES.to_string()),
            ("segment.bytes", LOG_SEGMENT_BYTES.to_string()),
        ],
        Role::Windows => vec![
            ("cleanup.policy", text("compact,delete")),
            ("retention.ms", deployment.plan.keep_ms.to_string()),
            ("retention.bytes", text("-1")),
            ("message.timestamp.type", text("CreateTime")),
        ],
        Role::Counts => {
            vec![("cleanup.policy", text("compact")), ("message.timestamp.type", text("CreateTime"))]
        }
        Role::Ledger => vec![
            ("cleanup.policy", text("compact")),
            ("min.compaction.lag.ms", text("0")),
            ("min.cleanable.dirty.ratio", text("0.1")),
            ("segment.bytes", LEDGER_SEGMENT_BYTES.to_string()),
            ("segment.ms", LEDGER_SEGMENT_MS.to_string()),
        ],
        Role::Dlq | Role::Late => vec![
            ("cleanup.policy", text("delete")),
            ("retention.ms", FAILURES_KEPT_MS.to_string()),
            ("retention.bytes", text("-1")),
            ("message.timestamp.type", text("LogAppendTime")),
            ("max.message.bytes", FAILURE_LIMIT_BYTES.to_string()),
        ],
    };
    // With three copies a write is acknowledged by two: the loss of one broker loses nothing and stops nothing.
    if deployment.kafka.replication >= 3 {
        configs.push(("min.insync.replicas", text("2")));
    }
    configs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{deployment, minimal};

    #[test]
    fn every_topic_of_the_contract_is_there() {
        let text = minimal("app = \"shop\"", "[input.clicks]\npartitions = 12\nappend_time = \"record\"");
        let specs = specs(&deployment(&text));
        let shape: Vec<_> = specs.iter().map(|spec| (&*spec.name, spec.partitions, spec.role)).collect();
        assert_eq!(
            shape,
            [
                ("events", 4, Role::Input),
                ("clicks", 12, Role::Input),
                ("shop.entries", 8, Role::Entries),
                ("shop.deltas", 8, Role::Deltas),
                ("shop.state", 8, Role::State),
                ("shop.windows", 8, Role::Windows),
                ("shop.counts", 8, Role::Counts),
                ("shop.ledger", 4, Role::Ledger),
                ("shop.dlq", 12, Role::Dlq),
                ("shop.late", 12, Role::Late),
            ]
        );
    }

    /// Settings of a topic as one line, so that a change of any is seen here.
    fn settings(specs: &[TopicSpec], name: &str) -> String {
        let spec = specs.iter().find(|spec| &*spec.name == name).unwrap();
        let list: Vec<_> = spec.configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        list.join(" ")
    }

    #[test]
    fn settings_are_those_of_the_contract() {
        let text = minimal("app = \"shop\"", "[input.clicks]\nappend_time = \"record\"");
        let specs = specs(&deployment(&text));
        let log = "cleanup.policy=delete retention.ms=-1 retention.bytes=-1 message.timestamp.type=LogAppendTime \
                   max.message.bytes=8388608 segment.bytes=67108864";
        let failures = "cleanup.policy=delete retention.ms=2592000000 retention.bytes=-1 \
                        message.timestamp.type=LogAppendTime max.message.bytes=16777216";
        for (name, right) in [
            ("events", "message.timestamp.type=LogAppendTime"),
            ("clicks", "message.timestamp.type=CreateTime"),
            ("shop.entries", log),
            ("shop.deltas", log),
            ("shop.state", log),
            (
                "shop.windows",
                "cleanup.policy=compact,delete retention.ms=604800000 retention.bytes=-1 \
                 message.timestamp.type=CreateTime",
            ),
            ("shop.counts", "cleanup.policy=compact message.timestamp.type=CreateTime"),
            (
                "shop.ledger",
                "cleanup.policy=compact min.compaction.lag.ms=0 min.cleanable.dirty.ratio=0.1 \
                 segment.bytes=16777216 segment.ms=600000",
            ),
            ("shop.dlq", failures),
            ("shop.late", failures),
        ] {
            assert_eq!(settings(&specs, name), right, "{name}");
        }
    }

    #[test]
    fn three_copies_need_two_acknowledgements() {
        let text = minimal("app = \"shop\"", "").replace("[kafka]", "[kafka]\nreplication = 3");
        assert!(settings(&specs(&deployment(&text)), "shop.entries").ends_with("min.insync.replicas=2"));
    }
}
