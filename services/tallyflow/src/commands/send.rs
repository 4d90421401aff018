//! `tallyflow send`: one record a line, keyed by its counter, every one acknowledged by all replicas.
//!
//! The bytes of a line are sent as they are. A line that is no event is sent as well, with a warning: what becomes of
//! such records is the pipeline's to show.
//!
//! Keeps: memory is bounded by the longest line, the client's queue and [`CHUNK`] reports, however large the file is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tallyflow_kafka::PlainProducer;
use tallyflow_runtime::ports::{Admin, PortError, Reaction};

use super::number;
use crate::args::SendArgs;
use crate::context::Context;
use crate::exit::{self, Usage};
use crate::output::talk;

/// Reports are taken after so many records.
const CHUNK: usize = 100_000;
/// The longest line: what a client of ours can send at all, 16 MiB.
const LINE_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// So many warnings of a kind are said one by one.
const SAID: u64 = 10;

/// Sends the lines.
///
/// # Errors
/// Where Kafka does not answer, the topic does not exist, or the file cannot be read. Records that fail are counted
/// and cost exit code 1.
pub fn run(context: &Context, args: &SendArgs) -> Result<ExitCode> {
    let topic = input_topic(context, args.input.as_deref())?;
    let mut lines = open(&args.file)?;
    let patience = context.patience();
    let mut admin = context.connect(&patience)?;
    let found = patience.ask(|| admin.topics(&[&topic])).map_err(|error| context.lost(error))?;
    if found.into_iter().flatten().next().is_none() {
        anyhow::bail!("the topic {topic} does not exist: create it with tallyflow topics --execute");
    }
    drop(admin);
    let producer = context.kafka.producer().map_err(|error| context.lost(error))?;
    let mut sending = Sending {
        context,
        topic: &topic,
        producer,
        waiting: Vec::new(),
        reported: 0,
        tally: Tally::default(),
    };
    let sent = sending.all(&mut lines);
    let finished = sending.collect();
    talk(sending.tally.last_words(&topic));
    sent.and(finished)?;
    let failed = sending.tally.failed > 0;
    Ok(if failed { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

/// The topic of an input; of the only one where none is named.
fn input_topic(context: &Context, name: Option<&str>) -> Result<String, Usage> {
    let inputs = &context.deployment.plan.inputs;
    let found = match (name, inputs.as_slice()) {
        (Some(name), inputs) => inputs.iter().find(|input| &*input.name == name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let names: Vec<&str> = inputs.iter().map(|input| &*input.name).collect();
    match (found, name) {
        (Some(input), _) => Ok(input.topic.to_string()),
        (None, Some(name)) => Err(Usage(format!("there is no input {name}; there is {}", names.join(", ")))),
        (None, None) => Err(Usage(format!("choose one with --input: {}", names.join(", ")))),
    }
}

fn open(file: &Path) -> Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        if io::stdin().is_terminal() {
            talk("reading events from the terminal, one a line; Ctrl-D ends");
        }
        return Ok(Box::new(io::stdin().lock()));
    }
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, opened)))
}

/// What has been done so far.
#[derive(Default)]
struct Tally {
    acknowledged: u64,
    failed: u64,
    not_json: u64,
}

impl Tally {
    fn fail(&mut self, what: &str) {
        self.failed += 1;
        if self.failed <= SAID {
            talk(format!("failed: {what}"));
        }
    }

    fn warn(&mut self, line: u64, why: &str) {
        self.not_json += 1;
        if self.not_json <= SAID {
            talk(format!("warning: line {line} is not JSON and was sent as it is: {why}"));
        }
    }

    fn last_words(&self, topic: &str) -> String {
        let mut words = format!("{} sent to {topic}", number(self.acknowledged, "record"));
        if self.not_json > 0 {
            words += &format!(", {} of them not JSON", self.not_json);
        }
        if self.failed > 0 {
            words += &format!("; {} failed", self.failed);
        }
        words
    }
}

struct Sending<'a> {
    context: &'a Context,
    topic: &'a str,
    producer: PlainProducer,
    /// The lines of the records that were handed over since reports were taken.
    waiting: Vec<u64>,
    /// How many records were handed over before those.
    reported: u64,
    tally: Tally,
}

impl Sending<'_> {
    fn all(&mut self, lines: &mut dyn BufRead) -> Result<()> {
        let mut buffer = Vec::new();
        for at in 1.. {
            match next_line(lines, &mut buffer, LINE_LIMIT_BYTES).context("cannot read on")? {
                Line::End => break,
                Line::TooLong => self.tally.fail(&format!("line {at} is longer than 16 MiB")),
                Line::Here if buffer.trim_ascii().is_empty() => {}
                Line::Here => self.one(at, &buffer)?,
            }
        }
        Ok(())
    }

    fn one(&mut self, at: u64, line: &[u8]) -> Result<()> {
        let key = key(line).unwrap_or_else(|error| {
            self.tally.warn(at, &error.to_string());
            None
        });
        match self.producer.send(self.topic, key.as_deref().map(str::as_bytes), Some(line), &[]) {
            Ok(()) => self.waiting.push(at),
            // The client's queue stayed full: nothing is going out any more.
            Err(error) if error.reaction == Reaction::Retry => {
                return Err(self.context.lost(error));
            }
            Err(error) => self.tally.fail(&format!("line {at}: {}", error.message)),
        }
        if self.waiting.len() >= CHUNK { self.collect() } else { Ok(()) }
    }

    /// Waits for what was handed over and counts it.
    fn collect(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let told = |error: PortError| {
            let records = number(waiting.len() as u64, "record");
            let error = self.context.lost(error);
            error.context(format!("not all of the last {records} are acknowledged"))
        };
        let delivered = self.producer.finish(self.context.timeout).map_err(told)?;
        self.tally.acknowledged += delivered.acknowledged;
        for failure in delivered.failures {
            let line = line_of(&waiting, self.reported, failure.number);
            self.tally.fail(&format!("line {line}: {}", failure.why));
        }
        self.reported += waiting.len() as u64;
        Ok(())
    }
}

/// The line of a record, by its number over the producer's life.
fn line_of(waiting: &[u64], reported: u64, number: u64) -> u64 {
    let at = number.checked_sub(reported).and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| waiting.get(at)).copied().unwrap_or(0)
}

/// What was found where a line should be.
#[derive(PartialEq, Eq, Debug)]
enum Line {
    /// One, in the buffer, without its end.
    Here,
    /// One that is longer than the limit; it was passed over.
    TooLong,
    /// The end.
    End,
}

fn next_line(lines: &mut dyn BufRead, buffer: &mut Vec<u8>, limit: usize) -> io::Result<Line> {
    buffer.clear();
    // Two more than the limit: the end of the line may be two bytes.
    let most = limit as u64 + 2;
    if (&mut *lines).take(most).read_until(b'\n', buffer)? == 0 {
        return Ok(Line::End);
    }
    let ended = buffer.last() == Some(&b'\n');
    if ended {
        buffer.pop();
        if buffer.last() == Some(&b'\r') {
            buffer.pop();
        }
    }
    if buffer.len() <= limit {
        return Ok(Line::Here);
    }
    if !ended {
        lines.skip_until(b'\n')?;
    }
    Ok(Line::TooLong)
}

/// The counter of an event, of the first one of a packed record; none where it names none.
fn key(line: &[u8]) -> serde_json::Result<Option<String>> {
    let value: Value = serde_json::from_slice(line)?;
    let event = match value.get("events") {
        Some(Value::Array(events)) => events.first(),
        _ => Some(&value),
    };
    let counter = event.and_then(|event| event.get("counter"));
    Ok(counter.and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_counter() {
        for (line, right) in [
            (r#"{"counter":"clicks","delta":2}"#, Some("clicks")),
            (r#"{"events":[{"counter":"a"},{"counter":"b"}]}"#, Some("a")),
            (r#"{"events":[],"counter":"x"}"#, None),
            (r#"{"events":7,"counter":"x"}"#, Some("x")),
            (r#"{"counter":7}"#, None),
            (r#"{"counter":"caf\u00e9"}"#, Some("café")),
            ("[1]", None),
            ("7", None),
        ] {
            assert_eq!(key(line.as_bytes()).unwrap().as_deref(), right, "{line}");
        }
        for wrong in ["{", "hello", "{} {}", "\u{0}"] {
            assert!(key(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_end_in_every_way_and_are_bounded() {
        let mut text: &[u8] = b"one\r\n\ntoolong\nfour\nabcd\r\nlast";
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        loop {
            match next_line(&mut text, &mut buffer, 4).unwrap() {
                Line::End => break,
                Line::TooLong => seen.push("(too long)".to_owned()),
                Line::Here => seen.push(String::from_utf8(buffer.clone()).unwrap()),
            }
        }
        assert_eq!(seen, ["one", "", "(too long)", "four", "abcd", "last"]);
    }

    #[test]
    fn a_long_last_line_ends_too() {
        let mut text: &[u8] = b"123456789";
        let mut buffer = Vec::new();
        assert_eq!(next_line(&mut text, &mut buffer, 4).unwrap(), Line::TooLong);
        assert_eq!(next_line(&mut text, &mut buffer, 4).unwrap(), Line::End);
    }

    #[test]
    fn a_failure_is_told_by_its_line() {
        assert_eq!(line_of(&[3, 5, 6], 100, 101), 5);
        assert_eq!(line_of(&[3, 5, 6], 100, 99), 0);
        assert_eq!(line_of(&[3, 5, 6], 100, 103), 0);
    }

    #[test]
    fn the_last_words_count() {
        let mut tally = Tally { acknowledged: 1, ..Tally::default() };
        assert_eq!(tally.last_words("events"), "1 record sent to events");
        tally = Tally { acknowledged: 5, failed: 2, not_json: 1 };
        assert_eq!(tally.last_words("events"), "5 records sent to events, 1 of them not JSON; 2 failed");
    }
}
