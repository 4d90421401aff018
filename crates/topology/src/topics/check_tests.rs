//! What is said about topics that are not as they should be.

use super::{FoundTopic, TopicSpec, check, specs};
use crate::codes::Code;
use crate::deployment::Deployment;
use crate::testing::{deployment, minimal};

fn shop() -> Deployment {
    deployment(&minimal("app = \"shop\"", ""))
}

/// The cluster as `tallyflow topics --execute` leaves it.
fn created(deployment: &Deployment) -> Vec<FoundTopic> {
    let found = |spec: TopicSpec| FoundTopic {
        name: spec.name.to_string(),
        partitions: spec.partitions,
        configs: spec.configs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    };
    specs(deployment).into_iter().map(found).collect()
}

fn change(topics: &mut [FoundTopic], name: &str, change: impl FnOnce(&mut FoundTopic)) {
    change(topics.iter_mut().find(|topic| topic.name == name).unwrap());
}

/// The problems after one setting was changed, each as text.
fn after(name: &str, key: &str, value: &str) -> Vec<String> {
    let (deployment, value) = (shop(), value.to_owned());
    let mut topics = created(&deployment);
    change(&mut topics, name, |topic| {
        topic.configs.insert(key.to_owned(), value);
    });
    check(&deployment, &topics).iter().map(ToString::to_string).collect()
}

#[test]
fn what_we_create_is_well() {
    let deployment = shop();
    assert_eq!(check(&deployment, &created(&deployment)), []);
}

#[test]
fn all_missing_topics_are_named() {
    let problems = check(&shop(), &[]);
    assert_eq!(problems.len(), 9);
    assert!(problems.iter().all(|problem| problem.code == Code::TopicMissing));
    assert!(problems.iter().all(|problem| problem.fix == "tallyflow topics --execute"));
}

#[test]
fn inputs_may_gain_partitions_and_keep_their_settings() {
    let deployment = shop();
    let mut topics = created(&deployment);
    change(&mut topics, "events", |topic| {
        topic.partitions = 400;
        topic.configs.insert("retention.ms".to_owned(), "1000".to_owned());
    });
    change(&mut topics, "shop.dlq", |topic| topic.partitions = 1);
    assert_eq!(check(&deployment, &topics), []);
}

#[test]
fn a_changed_number_of_partitions_is_sent_back_to_the_file() {
    let mut deployment = shop();
    let topics = created(&deployment);
    deployment.plan.entries_partitions = 16;
    let problems = check(&deployment, &topics);
    assert_eq!(problems.len(), 5, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.fix.contains("partitions = 8 in [stage.count]")));
}

#[test]
fn odd_partitions_have_a_command() {
    for (name, partitions, right) in [
        ("shop.deltas", 4, "--alter --topic shop.deltas --partitions 8"),
        ("shop.deltas", 9, "--delete --topic shop.deltas"),
        ("shop.windows", 4, "--delete --topic shop.windows"),
    ] {
        let deployment = shop();
        let mut topics = created(&deployment);
        change(&mut topics, name, |topic| topic.partitions = partitions);
        let problems = check(&deployment, &topics);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].fix.contains(right), "{}", problems[0]);
    }
}

#[test]
fn bad_settings_have_a_command() {
    for (name, key, value, right) in [
        ("shop.entries", "retention.ms", "604800000", "--add-config retention.ms=-1"),
        ("shop.deltas", "retention.bytes", "1000000", "--add-config retention.bytes=-1"),
        ("shop.state", "cleanup.policy", "compact", "--add-config cleanup.policy=delete"),
        ("shop.entries", "max.message.bytes", "1048588", "max.message.bytes=8388608"),
        ("shop.windows", "cleanup.policy", "compact", "cleanup.policy=[compact,delete]"),
        ("shop.windows", "retention.ms", "86400000", "retention.ms=604800000"),
        ("shop.counts", "cleanup.policy", "delete", "cleanup.policy=compact"),
        ("shop.ledger", "min.compaction.lag.ms", "1000", "min.compaction.lag.ms=0"),
        ("shop.late", "message.timestamp.type", "CreateTime", "message.timestamp.type=LogAppendTime"),
        ("shop.dlq", "retention.ms", "soon", "retention.ms=2592000000"),
    ] {
        let problems = after(name, key, value);
        assert_eq!(problems.len(), 1, "{name} {key}: {problems:?}");
        assert!(problems[0].ends_with(right), "{}", problems[0]);
    }
}

#[test]
fn better_settings_are_no_problem() {
    for (name, key, value) in [
        ("shop.windows", "retention.ms", "-1"),
        ("shop.windows", "cleanup.policy", "delete, compact"),
        ("shop.late", "retention.ms", "99999999999"),
        ("shop.entries", "max.message.bytes", "99999999"),
        ("shop.entries", "segment.bytes", "1073741824"),
    ] {
        assert_eq!(after(name, key, value), Vec::<String>::new(), "{name} {key}");
    }
}

#[test]
fn an_input_with_create_time_needs_a_word_in_the_file() {
    let problems = after("events", "message.timestamp.type", "CreateTime");
    assert_eq!(
        problems,
        [
            "topic events: TF0603: its records have CreateTime instead of LogAppendTime timestamps\n  help: write \
          append_time = \"record\" in [input.events], or: kafka-configs.sh --bootstrap-server localhost:9092 --alter \
          --entity-type topics --entity-name events --add-config message.timestamp.type=LogAppendTime"
        ]
    );
    let deployment = deployment(
        &minimal("app = \"shop\"", "").replace("[input.events]", "[input.events]\nappend_time = \"record\""),
    );
    let mut topics = created(&deployment);
    assert_eq!(check(&deployment, &topics), []);
    change(&mut topics, "events", |topic| {
        topic.configs.insert("message.timestamp.type".to_owned(), "LogAppendTime".to_owned());
    });
    assert_eq!(check(&deployment, &topics).len(), 1);
}

#[test]
fn settings_that_were_not_told_are_kafkas_defaults() {
    let deployment = shop();
    let mut topics = created(&deployment);
    change(&mut topics, "events", |topic| topic.configs.clear());
    change(&mut topics, "shop.counts", |topic| topic.configs.clear());
    let problems = check(&deployment, &topics);
    let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::TopicTimestamps, Code::TopicSetting]);
}
