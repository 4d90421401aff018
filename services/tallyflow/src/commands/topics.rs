//! `tallyflow topics`: what would be created and what has to be mended; `--execute` creates.
//!
//! ```text
//! ok      events         4 partitions
//! create  shop.entries   8 partitions, replication 1, cleanup.policy=delete …
//! mend    shop.windows   8 partitions
//!           TF0604: …
//!           help: kafka-configs.sh …
//! ```
//!
//! Only missing topics are created. What exists is never changed: it may hold data that somebody needs. A problem of
//! an existing one is exit code 1; a missing one is none, as long as it was only a dry run.

use std::process::ExitCode;

use anyhow::Result;
use tallyflow_topology::topics::TopicSpec;

use super::number;
use crate::args::TopicsArgs;
use crate::context::Context;
use crate::exit;
use crate::output::{Output, forgive_closed, talk};
use crate::topics::Survey;

/// What becomes of missing topics.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// They would be created.
    Planned,
    /// They have been.
    Created,
}

/// Shows the topics, and creates the missing ones where that is asked for.
///
/// # Errors
/// Where Kafka does not answer or refuses, or standard output cannot be written.
pub fn run(context: &Context, args: &TopicsArgs) -> Result<ExitCode> {
    let deployment = &context.deployment;
    let patience = context.patience();
    let mut admin = context.connect(&patience)?;
    let before = Survey::take(deployment, &mut admin, &patience).map_err(|e| context.lost(e))?;
    let missing = before.missing().count() as u64;
    let (missing_are, after) = if args.execute && missing > 0 {
        before.create_missing(deployment, &mut admin, &patience).map_err(|error| context.lost(error))?;
        let after = Survey::take(deployment, &mut admin, &patience).map_err(|e| context.lost(e))?;
        (Missing::Created, after)
    } else {
        (Missing::Planned, before.clone())
    };
    let mut output = Output::new();
    let text = shown(&before, &after, missing_are, deployment.kafka.replication);
    forgive_closed(output.text(&text).and_then(|()| output.flush()))?;
    talk(last_words(missing, missing_are, after.problems.len() as u64));
    let done = after.problems.is_empty() && (missing_are == Missing::Planned || after.absent.is_empty());
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Every topic with what is, will be or was done about it; problems are those that remain.
fn shown(before: &Survey, after: &Survey, missing: Missing, replication: u16) -> String {
    let width = before.specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for spec in &before.specs {
        let problems = after.problems.iter().filter(|problem| problem.topic == *spec.name);
        let problems: Vec<String> = problems
            .map(|problem| {
                format!("          {}: {}\n          help: {}\n", problem.code, problem.what, problem.fix)
            })
            .collect();
        let (word, about) = match (before.found(&spec.name), missing) {
            (None, Missing::Planned) => ("create", made(spec, replication)),
            (None, Missing::Created) => ("created", made(spec, replication)),
            (Some(topic), _) => {
                let word = if problems.is_empty() { "ok" } else { "mend" };
                (word, number(topic.partitions.into(), "partition"))
            }
        };
        text += &format!("{word:<7} {:<width$} {about}\n", spec.name);
        text.extend(problems);
    }
    text
}

fn made(spec: &TopicSpec, replication: u16) -> String {
    let configs = spec.configs.iter();
    let configs: String = configs.map(|(name, value)| format!(" {name}={value}")).collect();
    let partitions = number(spec.partitions.into(), "partition");
    format!("{partitions}, replication {replication},{configs}")
}

fn last_words(missing: u64, missing_are: Missing, problems: u64) -> String {
    let topics = number(missing, "topic");
    let first = match (missing, missing_are) {
        (0, _) => "nothing to create".to_owned(),
        (_, Missing::Created) => format!("{topics} created"),
        (_, Missing::Planned) => {
            format!("dry run: {topics} would be created; --execute creates them")
        }
    };
    match problems {
        0 => first,
        _ => format!("{first}; {} to mend", number(problems, "problem")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::tests::survey;

    #[test]
    fn a_dry_run_says_what_would_be_done() {
        let survey = survey(|found| {
            found.retain(|topic| topic.name != "shop.counts");
            found[4].configs.insert("retention.ms".to_owned(), "1".to_owned());
        });
        let text = shown(&survey, &survey, Missing::Planned, 3);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ok      events       4 partitions");
        assert_eq!(lines[4], "mend    shop.windows 8 partitions");
        assert!(lines[5].starts_with("          TF0604: "), "{text}");
        assert!(lines[6].starts_with("          help: kafka-configs.sh "), "{text}");
        assert_eq!(
            lines[7],
            "create  shop.counts  8 partitions, replication 3, cleanup.policy=compact \
             message.timestamp.type=CreateTime"
        );
    }

    #[test]
    fn the_last_words_count() {
        for (missing, are, problems, right) in [
            (0, Missing::Planned, 0, "nothing to create"),
            (1, Missing::Created, 0, "1 topic created"),
            (0, Missing::Planned, 2, "nothing to create; 2 problems to mend"),
            (
                9,
                Missing::Planned,
                1,
                "dry run: 9 topics would be created; --execute creates them; 1 problem to mend",
            ),
        ] {
            assert_eq!(last_words(missing, are, problems), right);
        }
    }
}
