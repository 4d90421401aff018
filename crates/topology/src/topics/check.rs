//! Are the topics of the cluster what the app needs? Pure: what was found comes as an argument.
//!
//! A topic of ours has to have the settings that exactness rests on; an input is the user's, and only the type of its
//! timestamps matters. Each problem names the command or the change of topology.toml that mends it.
//!
//! Must not know: admin clients.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tallyflow_core::plan::AppendTime;

use super::{FoundTopic, Role, TopicProblem, TopicSpec, specs};
use crate::codes::Code;
use crate::deployment::Deployment;
use crate::suggest;

/// Kafka's defaults, for settings that were not told.
const KAFKA_DEFAULTS: [(&str, &str); 6] = [
    ("cleanup.policy", "delete"),
    ("retention.ms", "604800000"),
    ("retention.bytes", "-1"),
    ("message.timestamp.type", "CreateTime"),
    ("max.message.bytes", "1048588"),
    ("min.compaction.lag.ms", "0"),
];

/// Compares the topics of the cluster with what the deployment needs; an empty list says that all is well.
///
/// Topics that are not the app's are passed over; more partitions of an input are no problem at any time.
pub fn check(deployment: &Deployment, found: &[FoundTopic]) -> Vec<TopicProblem> {
    let look = |name: &str| found.iter().find(|topic| topic.name == name);
    let entries = look(&deployment.names.entries).map(|topic| topic.partitions);
    let mut problems = Vec::new();
    for spec in specs(deployment) {
        let check = Check { deployment, spec: &spec, entries };
        match look(&spec.name) {
            None => problems.push(check.problem(
                Code::TopicMissing,
                "it does not exist".to_owned(),
                "tallyflow topics --execute".to_owned(),
            )),
            Some(topic) => check.found(topic, &mut problems),
        }
    }
    problems
}

struct Check<'a> {
    deployment: &'a Deployment,
    spec: &'a TopicSpec,
    /// Partitions of `entries`, if it exists.
    entries: Option<u32>,
}

impl Check<'_> {
    fn found(&self, topic: &FoundTopic, problems: &mut Vec<TopicProblem>) {
        if self.spec.role.follows_entries() && topic.partitions != self.spec.partitions {
            problems.push(self.partitions(topic.partitions));
        }
        for (key, wanted) in &self.spec.configs {
            let default = KAFKA_DEFAULTS.iter().find(|(name, _)| name == key);
            let told = topic.configs.get(*key).map(String::as_str);
            if let Some(value) = told.or(default.map(|(_, value)| *value))
                && !suffices(key, value, wanted)
            {
                problems.push(self.setting(key, value, wanted));
            }
        }
    }

    fn partitions(&self, found: u32) -> TopicProblem {
        let (name, wanted) = (&self.spec.name, self.spec.partitions);
        let what = format!("it has {found} partitions instead of {wanted}");
        let grows = self.spec.role.is_internal() && self.spec.role != Role::Entries;
        let fix = match (self.entries, found.cmp(&wanted)) {
            // The file was changed: the number is fixed for the life of the app.
            (Some(entries), _) if found == entries => {
                format!("write partitions = {found} in [stage.count]: it is fixed for the life of an app")
            }
            // Tasks own whole partitions of these: new ones take nothing away from the old.
            (_, Ordering::Less) if grows => format!(
                "kafka-topics.sh --bootstrap-server {} --alter --topic {name} --partitions {wanted}",
                self.deployment.kafka.brokers,
            ),
            _ => format!(
                "give the app another name; or, if nobody needs what is in it, kafka-topics.sh --bootstrap-server {} \
                 --delete --topic {name}, then tallyflow topics --execute",
                self.deployment.kafka.brokers,
            ),
        };
        self.problem(Code::TopicPartitions, what, fix)
    }

    fn setting(&self, key: &str, found: &str, wanted: &str) -> TopicProblem {
        let command = format!(
            "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {} --add-config {}",
            self.deployment.kafka.brokers,
            self.spec.name,
            // Commas separate settings, unless they stand in brackets.
            if wanted.contains(',') { format!("{key}=[{wanted}]") } else { format!("{key}={wanted}") },
        );
        if key == "message.timestamp.type" {
            let what = format!("its records have {found} instead of {wanted} timestamps");
            return self.problem(Code::TopicTimestamps, what, self.timestamp_fix(command));
        }
        self.problem(Code::TopicSetting, format!("{key} is {found}: {}", wants(key, wanted)), command)
    }

    /// An input can be taken as it is; a topic of ours cannot.
    fn timestamp_fix(&self, command: String) -> String {
        let input = self
            .deployment
            .plan
            .inputs
            .iter()
            .find(|input| self.spec.role == Role::Input && input.topic == self.spec.name);
        match input.map(|input| (suggest::quoted(&input.name), input.append_time)) {
            Some((name, AppendTime::Log)) => {
                format!("write append_time = \"record\" in [input.{name}], or: {command}")
            }
            Some((name, AppendTime::Record)) => {
                format!("leave append_time out of [input.{name}], or: {command}")
            }
            None => command,
        }
    }

    fn problem(&self, code: Code, what: String, fix: String) -> TopicProblem {
        TopicProblem { topic: self.spec.name.to_string(), code, what, fix }
    }
}

/// Whether a setting is good enough. Those that only cost time or disk are not judged.
fn suffices(key: &str, found: &str, wanted: &str) -> bool {
    match key {
        "cleanup.policy" => words(found) == words(wanted),
        "message.timestamp.type" => found == wanted,
        "retention.ms" | "retention.bytes" => at_least(unlimited(found), unlimited(wanted)),
        "max.message.bytes" => at_least(found.parse().ok(), wanted.parse().ok()),
        "min.compaction.lag.ms" => at_least(wanted.parse().ok(), found.parse().ok()),
        _ => true,
    }
}

fn wants(key: &str, wanted: &str) -> String {
    match key {
        "retention.ms" | "retention.bytes" if wanted == "-1" => {
            "it has to be -1, or what is still needed would be deleted".to_owned()
        }
        "retention.ms" => format!("it has to be at least {wanted}, or -1"),
        "max.message.bytes" => format!("it has to be at least {wanted}"),
        "min.compaction.lag.ms" => format!("it has to be at most {wanted}"),
        _ => format!("it has to be {wanted}"),
    }
}

fn words(list: &str) -> BTreeSet<&str> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// A retention, where any negative number means that nothing is deleted.
fn unlimited(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    Some(if value < 0 { i64::MAX } else { value })
}

/// What is not a number suffices for nothing.
fn at_least(found: Option<i64>, wanted: Option<i64>) -> bool {
    matches!((found, wanted), (Some(found), Some(wanted)) if found >= wanted)
}
