//! Names: of the app, inputs, topics, namespaces, dimensions and windows.
//!
//! Kafka refuses a topic whose name differs from another's only in `.` and `_` (both become `_` in its metric names),
//! and databases fold upper and lower case: names that are alike in this way clash.
//!
//! Must not know: anything but names.

use std::collections::{HashMap, HashSet};

use tallyflow_core::outputs::RESERVED_FIELDS;

use crate::codes::Code;
use crate::place::{Placed, Report};
use crate::suggest;
use crate::written::Written;

/// The longest name of an app: the topics' limit of 249 leaves room for suffixes of ours.
const APP_LIMIT: usize = 100;
/// The longest name of a topic (Kafka's `Topic.MAX_NAME_LENGTH`).
const TOPIC_LIMIT: usize = 249;
/// The longest name of an input, window or dimension: PostgreSQL cuts column names behind 63 bytes.
const NAME_LIMIT: usize = 63;
/// The longest name of a namespace (contract §2).
const NAMESPACE_LIMIT: usize = 256;
/// The most window tables: each counted event costs one addition for each.
const WINDOWS_LIMIT: usize = 16;
/// The most dimensions: each is a part of every counter key.
const DIMENSIONS_LIMIT: usize = 8;
/// The most inputs.
const INPUTS_LIMIT: usize = 64;
/// Suffixes of the topics that an app has or will have (contract §1).
const OWN_SUFFIXES: [&str; 10] =
    ["entries", "deltas", "state", "windows", "counts", "ledger", "dlq", "late", "retry", "parked"];
/// Kafka's own topics.
const KAFKA_TOPICS: [&str; 4] =
    ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"];

/// Checks all names.
pub(super) fn check(written: &Written, report: &mut Report<'_>) {
    app(written, report);
    inputs(written, report);
    topics(written, report);
    from(written, report);
    namespaces(written, report);
    dimensions(written, report);
    windows(written, report);
}

fn app(written: &Written, report: &mut Report<'_>) {
    let Some(app) = &written.app else { return };
    let bad = if app.value.len() > APP_LIMIT {
        format!("is longer than {APP_LIMIT} characters")
    } else if !app.value.chars().all(is_topic_char) {
        "has characters that topic names cannot have".to_owned()
    } else if !app.value.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        "does not begin with a letter or digit".to_owned()
    } else {
        return;
    };
    let help = "use letters, digits, '.', '_' and '-', as in \"shop\"";
    report.add(app.at, Code::BadName, format!("`app` {bad}"), help);
}

fn inputs(written: &Written, report: &mut Report<'_>) {
    if let (true, Some(at)) = (written.inputs.is_empty(), written.inputs_at) {
        let help = "write a table like [input.events]: it reads the topic `events`";
        report.add(at, Code::Missing, "there is no input", help);
    }
    too_many(&written.inputs, |input| &input.name, INPUTS_LIMIT, "inputs", report);
    for input in &written.inputs {
        // Its topic's name is judged below; as the topic it is the stricter one.
        if input.topic.written {
            table_name("input", &input.name, report);
        }
    }
    clashes(written.inputs.iter().map(|input| &input.name), "input", report);
}

fn topics(written: &Written, report: &mut Report<'_>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let own: HashMap<String, String> = written.app.iter().flat_map(|app| own_topics(&app.value)).collect();
    for input in &written.inputs {
        let (topic, at) = (&input.topic.value, input.topic.at);
        let alike = collision_name(topic);
        if let Some(why) = bad_topic(topic) {
            let help = if input.topic.written {
                "write the topic as Kafka has it"
            } else {
                "write topic = \"…\": without it, the table's name is the topic's"
            };
            report.add(at, Code::BadName, format!("topic {topic:?} {why}"), help);
        } else if let Some(name) = own.get(&alike) {
            let message = format!(
                "input `{}` reads the topic {topic}, but `{name}` is the app's own",
                input.name.value
            );
            report.add(at, Code::OwnTopic, message, "read another topic, or give the app another name");
        } else if let Some(first) = seen.get(alike.as_str()) {
            let message = if *first == topic.as_str() {
                format!("the topic {topic} is read by two inputs")
            } else {
                format!("Kafka cannot hold both topics {first} and {topic}: '.' and '_' are the same to it")
            };
            report.add(at, Code::SharedTopic, message, "keep one of the two");
        }
        seen.entry(alike).or_insert(topic);
    }
}

fn from(written: &Written, report: &mut Report<'_>) {
    let Some(from) = &written.intake.from else {
        return;
    };
    let known: Vec<&str> = written.inputs.iter().map(|input| input.name.value.as_str()).collect();
    let set: HashSet<&str> = known.iter().copied().collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for name in &from.value {
        let text = name.value.as_str();
        if !seen.insert(text) {
            let message = format!("`stage.intake.from` names {text:?} twice");
            report.add(name.at, Code::NameClash, message, "name it once");
        } else if !set.contains(text) && written.inputs_at.is_some() {
            let message = format!("`stage.intake.from` names {text:?}, but there is no such input");
            report.add(name.at, Code::UnknownInput, message, unknown_input_help(text, &known));
        }
    }
    for input in &written.inputs {
        let text = input.name.value.as_str();
        if !seen.contains(text) {
            let message = format!("input `{text}` is read by no stage");
            let help = "add it to `from` in [stage.intake], or remove its table";
            report.add(input.name.at, Code::UnreadInput, message, help);
        }
    }
}

fn unknown_input_help(text: &str, known: &[&str]) -> String {
    if let Some(near) = suggest::nearest(text, known.iter().copied()) {
        return format!("did you mean \"{near}\"?");
    }
    let list: Vec<_> = known.iter().map(|name| format!("\"{name}\"")).collect();
    match list.as_slice() {
        [] => format!("write a table [input.{}]", suggest::quoted(text)),
        list => format!("known inputs: {}", list.join(", ")),
    }
}

fn namespaces(written: &Written, report: &mut Report<'_>) {
    for namespace in &written.namespaces {
        let length = namespace.name.value.len();
        if !(1..=NAMESPACE_LIMIT).contains(&length) {
            let message = format!("the name of a namespace has {length} bytes");
            report.add(namespace.name.at, Code::BadName, message, "use 1 to 256 bytes");
        }
    }
}

fn dimensions(written: &Written, report: &mut Report<'_>) {
    let Some(dimensions) = &written.count.dimensions else {
        return;
    };
    too_many(&dimensions.value, |name| name, DIMENSIONS_LIMIT, "dimensions", report);
    for name in &dimensions.value {
        let text = name.value.as_str();
        let first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if text.len() > NAME_LIMIT || !text.starts_with(first) || !text.chars().all(rest) {
            let message = format!("dimension {text:?} cannot be the name of a column");
            let help = "use letters, digits and '_', at most 63, and no digit in front";
            report.add(name.at, Code::BadName, message, help);
        } else if RESERVED_FIELDS.iter().any(|field| field.eq_ignore_ascii_case(text)) {
            let message = format!("dimension {text:?} is named like a field of our own rows");
            let help = format!("give it another name, as \"event_{text}\"");
            report.add(name.at, Code::ReservedDimension, message, help);
        }
    }
    clashes(dimensions.value.iter(), "dimension", report);
}

fn windows(written: &Written, report: &mut Report<'_>) {
    let windows = &written.count.windows;
    if let (true, Some(at)) = (windows.is_empty(), written.count.windows_at) {
        let help = "write a table [stage.count.window.minute] with size = \"1m\"";
        report.add(at, Code::Missing, "there is no window", help);
    }
    too_many(windows, |window| &window.name, WINDOWS_LIMIT, "windows", report);
    for window in windows {
        table_name("window", &window.name, report);
    }
    clashes(windows.iter().map(|window| &window.name), "window", report);
}

fn table_name(noun: &str, name: &Placed<String>, report: &mut Report<'_>) {
    let text = name.value.as_str();
    let good = (1..=NAME_LIMIT).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_topic_char);
    if !good {
        let message = format!("{noun} {text:?}: this cannot be its name");
        let help = "use letters, digits, '.', '_' and '-', at most 63, with a letter or digit in front";
        report.add(name.at, Code::BadName, message, help);
    }
}

/// Reports names that are the same when upper and lower case are.
fn clashes<'a>(names: impl Iterator<Item = &'a Placed<String>>, noun: &str, report: &mut Report<'_>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in names {
        let text = name.value.as_str();
        match seen.get(&text.to_ascii_lowercase()) {
            Some(first) if *first == text => {
                let message = format!("{noun} {text:?} stands here twice");
                report.add(name.at, Code::NameClash, message, "name it once");
            }
            Some(first) => {
                let message = format!("{noun} {text:?} differs from {first:?} only in upper and lower case");
                report.add(name.at, Code::NameClash, message, "give one of them another name");
            }
            None => {
                seen.insert(text.to_ascii_lowercase(), text);
            }
        }
    }
}

fn too_many<T>(
    list: &[T],
    name: impl Fn(&T) -> &Placed<String>,
    limit: usize,
    noun: &str,
    report: &mut Report<'_>,
) {
    if let Some(extra) = list.get(limit) {
        let message = format!("there are {} {noun}, more than {limit}", list.len());
        report.add(name(extra).at, Code::TooMany, message, "remove some, or run a second app for them");
    }
}

const fn is_topic_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn bad_topic(topic: &str) -> Option<&'static str> {
    if topic.is_empty() {
        Some("is empty")
    } else if topic.len() > TOPIC_LIMIT {
        Some("is longer than 249 characters")
    } else if topic == "." || topic == ".." {
        Some("is not a name")
    } else if !topic.chars().all(is_topic_char) {
        Some("has characters that topic names cannot have")
    } else if KAFKA_TOPICS.contains(&topic) {
        Some("belongs to Kafka itself")
    } else {
        None
    }
}

/// What Kafka compares when it looks for collisions.
fn collision_name(topic: &str) -> String {
    topic.replace('.', "_")
}

fn own_topics(app: &str) -> impl Iterator<Item = (String, String)> {
    OWN_SUFFIXES.iter().map(move |suffix| {
        let name = format!("{app}.{suffix}");
        (collision_name(&name), name)
    })
}
