//! `tallyflow topics`: a dry run unless told otherwise, and nothing that exists is changed.
use tallyflow_integration_tests::kafka;

use super::{App, topology};

/// The topics of an app, its input first, as `tallyflow topics` lists them.
const TOPICS: [&str; 9] =
    ["events", "entries", "deltas", "state", "windows", "counts", "ledger", "dlq", "late"];

/// The first word of each line that names a topic of ours, in order.
fn verdicts<'a>(app: &App, stdout: &'a str) -> Vec<(&'a str, String)> {
    let prefix = format!("{}.", app.name);
    let lines = stdout.lines().filter(|line| !line.starts_with(' '));
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let word = words.next().expect("a word");
            let topic = words.next().expect("a topic");
            (word, topic.strip_prefix(&prefix).expect("ours").to_owned())
        })
        .collect()
}

fn all(word: &str) -> Vec<(&str, String)> {
    TOPICS.iter().map(|topic| (word, (*topic).to_owned())).collect()
}

#[test]
fn topics_are_created_only_when_asked_for() {
    let app = App::new("topics");
    let dry = app.call(&["topics"]);
    assert_eq!((dry.code, verdicts(&app, &dry.stdout)), (Some(0), all("create")));
    assert!(dry.stderr.contains("dry run: 9 topics would be created"), "{}", dry.stderr);
    assert!(dry.stdout.contains("2 partitions, replication 1, message.timestamp.type=LogAppendTime"));
    assert_eq!(kafka().topics(&app.name), Vec::<String>::new());

    let made = app.call(&["topics", "--execute"]);
    assert_eq!((made.code, verdicts(&app, &made.stdout)), (Some(0), all("created")));
    let mut names: Vec<String> = TOPICS.iter().map(|topic| app.topic(topic)).collect();
    names.sort();
    assert_eq!(kafka().topics(&app.name), names);
    let partitions = |topic: &str| kafka().partitions(&app.topic(topic));
    assert_eq!(
        (partitions("events"), partitions("entries"), partitions("counts"), partitions("ledger")),
        (Some(2), Some(3), Some(3), Some(4))
    );

    for arguments in [&["topics"] as &[&str], &["topics", "--execute"]] {
        let again = app.call(arguments);
        assert_eq!((again.code, verdicts(&app, &again.stdout)), (Some(0), all("ok")));
        assert_eq!(again.stderr, "nothing to create\n");
    }
}

#[test]
fn topics_that_are_wrong_are_named_with_the_way_out_and_left_alone() {
    let app = App::new("wrong");
    kafka().create_topic(&app.topic("entries"), 5, &[("retention.ms", "-1")]);
    kafka().create_topic(&app.topic("events"), 1, &[]);
    let found = app.call(&["topics", "--execute"]);
    assert_eq!(found.code, Some(1), "{}", found.stdout);
    let verdicts = verdicts(&app, &found.stdout);
    let word_of = |topic: &str| verdicts.iter().find(|(_, name)| name == topic).expect("it is listed").0;
    assert_eq!((word_of("entries"), word_of("events"), word_of("counts")), ("mend", "mend", "created"));
    for part in [
        "TF0602: it has 5 partitions instead of 3",
        "TF0603: ",
        "help: write append_time = \"record\" in [input.events], or: kafka-configs.sh",
    ] {
        assert!(found.stdout.contains(part), "{part} in\n{}", found.stdout);
    }
    assert!(found.stderr.starts_with("7 topics created; "), "{}", found.stderr);
    assert_eq!(kafka().partitions(&app.topic("entries")), Some(5));

    // A user's input may have any number of partitions, and may say whose timestamps they are.
    let by_record = topology(&app.name, "").replace("partitions = 2", "append_time = \"record\"");
    app.tallyflow.write_topology(&by_record);
    let after = app.call(&["topics"]);
    assert!(after.stdout.contains(&format!("ok      {}", app.topic("events"))), "{}", after.stdout);
    assert_eq!(after.code, Some(1));
}
