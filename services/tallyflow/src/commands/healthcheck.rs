//! `tallyflow healthcheck`: are the processes of this state directory ready, and is everything counted?
//!
//! ```text
//!  <state_dir>/slot-*/http ──► GET /ready, /status ──► decide ──► 0, or 1 and the reason
//!
//!  --settled:  ends of the inputs ─► all settled, intake beyond them ─► ends of entries ─► all settled, count beyond
//! ```
//!
//! A process knows the ends of its partitions as of a moment ago. Settled is what was in the inputs when the command
//! began, so the ends are asked here too: in the order in which events travel, each before the look that has to have
//! reached it. That the stages were settled one after the other is enough then. It speaks of the processes of this
//! state directory: where others elsewhere have partitions of their own, their part cannot be seen and it is not said.

mod decide;
mod probe;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use tallyflow_core::ids::TopicPartition;
use tallyflow_kafka::KafkaAdmin;

use self::decide::End;
use self::probe::Prober;
use crate::args::HealthcheckArgs;
use crate::context::Context;
use crate::exit;
use crate::output::{Output, forgive_closed, talk};
use crate::patience::Patience;

/// Between two looks of `--wait`.
const PAUSE: Duration = Duration::from_millis(200);

/// Asks the processes.
///
/// # Errors
/// Where Kafka does not answer the questions of `--settled`, or standard output cannot be written.
pub fn run(context: &Context, args: &HealthcheckArgs) -> Result<ExitCode> {
    let patience = context.patience();
    let prober = Prober::new(&context.deployment.plan);
    let mut kafka = if args.settled { Some(Ends::ask(context, &patience)?) } else { None };
    loop {
        let found = match &mut kafka {
            Some(ends) => settled(&prober, ends, &patience)?,
            None => decide::ready(&prober.look()),
        };
        match found {
            Ok(()) => return said(if args.settled { "settled" } else { "ready" }),
            Err(why) if !args.wait || patience.is_over() => {
                talk(format!("{}: {why}", if args.settled { "not settled" } else { "not ready" }));
                return Ok(ExitCode::from(exit::FAILED));
            }
            Err(_) => patience.pause(PAUSE),
        }
    }
}

fn said(word: &str) -> Result<ExitCode> {
    let mut output = Output::new();
    forgive_closed(output.line(word).and_then(|()| output.flush()))?;
    Ok(ExitCode::SUCCESS)
}

/// One round; the inner result is the reason.
fn settled(prober: &Prober, ends: &mut Ends<'_>, patience: &Patience) -> Result<Result<(), String>> {
    let first = prober.look();
    if let Err(why) = decide::settled(&first).and_then(|()| decide::beyond(&first, "intake", &ends.inputs)) {
        return Ok(Err(why));
    }
    let entries = ends.entries(patience)?;
    let second = prober.look();
    Ok(decide::settled(&second).and_then(|()| decide::beyond(&second, "count", &entries)))
}

/// The ends of logs, as Kafka says them.
struct Ends<'a> {
    context: &'a Context,
    admin: KafkaAdmin,
    /// Of the inputs when the command began.
    inputs: Vec<End>,
}

impl<'a> Ends<'a> {
    fn ask(context: &'a Context, patience: &Patience) -> Result<Self> {
        let admin = context.connect(patience)?;
        let mut ends = Self { context, admin, inputs: Vec::new() };
        for input in &context.deployment.plan.inputs {
            let found = ends.of_topic(&input.topic, patience)?;
            ends.inputs.extend(found);
        }
        Ok(ends)
    }

    /// Of `entries`, now.
    fn entries(&mut self, patience: &Patience) -> Result<Vec<End>> {
        let context = self.context;
        self.of_topic(&context.deployment.names.entries, patience)
    }

    fn of_topic(&mut self, topic: &str, patience: &Patience) -> Result<Vec<End>> {
        let found = patience.ask(|| self.admin.topic_ends(topic));
        let found = found.map_err(|error| self.context.lost(error))?;
        let Some(found) = found else {
            anyhow::bail!("the topic {topic} does not exist: create it with tallyflow topics --execute");
        };
        let ends = (0..).zip(found).map(|(partition, ends)| End {
            task: TopicPartition::new(topic, partition).to_string(),
            offset: ends.high_watermark_offset.0,
        });
        Ok(ends.collect())
    }
}
