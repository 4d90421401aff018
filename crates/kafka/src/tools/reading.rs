//! Plain reads of a topic: up to the ends of now, or on and on.
//!
//! Must not know: what is printed.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::RDKafkaErrorCode;
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{HeaderView, RecordView};
use tallyflow_runtime::ports::{PortError, Reaction};

use crate::Kafka;
use crate::batch::view;
use crate::config::Settings;
use crate::errors::{Context, describe, from_kafka, port_error, reaction};
use crate::lists::{c_name, list_of, name_of};
use crate::native::admin::{describe_topics, log_ends};
use crate::native::consumer::{Consumer, ErrorEvent, Event};
use crate::talk::Talker;

/// A question to the cluster is given up after this.
const ASK: Duration = Duration::from_secs(5);

/// Somebody who follows a topic is asked this often whether to go on.
const IDLE: Duration = Duration::from_millis(200);

/// Where a read begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadFrom {
    /// At the first record that is there.
    Start,
    /// At these offsets, or the first record where those are gone; other partitions from the start.
    Offsets(Vec<(Partition, NextOffset)>),
    /// At what comes next.
    End,
}

/// What somebody who follows a topic sees.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A record.
    Record(&'a TopicPartition, RecordView<'a>),
    /// Everything that was there when the read began has been seen; said once.
    CaughtUp,
    /// Nothing came for a moment.
    Idle,
}

impl Kafka {
    /// Reads a topic up to its ends of now, partitions mixed, each in order.
    ///
    /// # Errors
    ///
    /// Where the topic does not exist, or nothing moves for `give_up`.
    pub fn read_topic(
        &self,
        topic: &str,
        from: &ReadFrom,
        give_up: Duration,
        each: &mut dyn FnMut(&TopicPartition, &RecordView<'_>),
    ) -> Result<(), PortError> {
        let mut read = TopicRead::open(&self.settings, topic, from)?;
        let mut moved = Instant::now();
        while !read.is_caught_up() {
            let step = read.step(IDLE, &mut |name, view| {
                each(name, view);
                ControlFlow::Continue(())
            })?;
            if step.moved {
                moved = Instant::now();
            } else if moved.elapsed() >= give_up {
                let message = format!("reading {topic}: nothing came for {:.1} s", give_up.as_secs_f64());
                return Err(PortError::new(Reaction::Retry, message));
            }
        }
        Ok(())
    }

    /// Reads a topic and goes on with what comes, until the caller breaks.
    ///
    /// # Errors
    ///
    /// Where the topic does not exist, or cannot be read on.
    pub fn follow_topic(
        &self,
        topic: &str,
        from: &ReadFrom,
        each: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
    ) -> Result<(), PortError> {
        let mut read = TopicRead::open(&self.settings, topic, from)?;
        let mut caught_up = false;
        loop {
            if !caught_up && read.is_caught_up() {
                caught_up = true;
                if each(Seen::CaughtUp).is_break() {
                    return Ok(());
                }
            }
            let step = read.step(IDLE, &mut |name, view| each(Seen::Record(name, *view)))?;
            if step.broken || (!step.moved && each(Seen::Idle).is_break()) {
                return Ok(());
            }
        }
    }
}

/// A read of all partitions of a topic.
struct TopicRead {
    consumer: Consumer,
    partitions: Vec<Part>,
}

struct Part {
    name: TopicPartition,
    number: i32,
    next: i64,
    end: i64,
}

struct Step {
    moved: bool,
    broken: bool,
}

impl TopicRead {
    fn open(settings: &Settings, topic: &str, from: &ReadFrom) -> Result<Self, PortError> {
        let consumer = Consumer::new(&settings.reader(), Talker::new(&settings.talk, "reader"))?;
        let names = partitions_of(settings, &consumer, topic)?;
        let what = format!("asking for the ends of {topic}");
        let ends = log_ends(consumer.client(), &names, ASK)
            .map_err(|error| port_error(&what, &error, Context::Admin))?;
        let mut partitions = Vec::with_capacity(names.len());
        for name in names {
            let number = i32::try_from(name.partition.0).unwrap_or(i32::MAX);
            let (start, end) = match ends.get(&(topic.to_owned(), number)) {
                Some(Ok(ends)) => *ends,
                Some(Err(code)) => {
                    let told = describe(&what, *code, "");
                    return Err(PortError::new(reaction(*code, Context::Admin), told));
                }
                None => return Err(PortError::new(Reaction::Retry, what)),
            };
            let next = match from {
                ReadFrom::Start => start,
                ReadFrom::End => end,
                ReadFrom::Offsets(offsets) => offsets
                    .iter()
                    .find(|(partition, _)| *partition == name.partition)
                    .map_or(start, |(_, at)| at.0.clamp(start, end)),
            };
            partitions.push(Part { name, number, next, end });
        }
        let list = list_of(partitions.iter().map(|part| (&part.name, Offset::Offset(part.next))))?;
        consumer
            .base()
            .assign(&list)
            .map_err(|error| from_kafka(&format!("reading {topic}"), &error, Context::Consumer))?;
        Ok(Self { consumer, partitions })
    }

    fn is_caught_up(&self) -> bool {
        self.partitions.iter().all(|part| part.next >= part.end)
    }

    /// Reads what is there, waiting up to `wait` for the first record.
    fn step(
        &mut self,
        wait: Duration,
        each: &mut dyn FnMut(&TopicPartition, &RecordView<'_>) -> ControlFlow<()>,
    ) -> Result<Step, PortError> {
        let mut step = Step { moved: false, broken: false };
        let deadline = Instant::now() + wait;
        while !step.broken {
            let wait =
                if step.moved { Duration::ZERO } else { deadline.saturating_duration_since(Instant::now()) };
            match self.consumer.poll(wait) {
                Some(Event::Message(message)) => {
                    let number = message.partition();
                    let Some(part) = self.partitions.iter_mut().find(|part| part.number == number) else {
                        continue;
                    };
                    part.next = message.offset().saturating_add(1);
                    step.moved = true;
                    let headers: Vec<HeaderView<'_>> = message.headers().collect();
                    step.broken = each(&part.name, &view(&message, &headers)).is_break();
                }
                Some(Event::Error(event)) => step.moved |= self.judge(&event)?,
                Some(_) => {}
                None => break,
            }
        }
        // Markers and aborted records move the position without a record.
        for part in self.partitions.iter_mut().filter(|part| part.next < part.end) {
            if let Some(position) = self.consumer.position(&part.name.topic, part.number) {
                step.moved |= position > part.next;
                part.next = part.next.max(position);
            }
        }
        Ok(step)
    }

    /// Whether the event moved a partition.
    fn judge(&mut self, event: &ErrorEvent) -> Result<bool, PortError> {
        match (event.error.code, &event.place) {
            (RDKafkaErrorCode::PartitionEOF, Some(place)) => {
                let part = self.partitions.iter_mut().find(|part| part.number == place.partition);
                Ok(part.is_some_and(|part| {
                    let moved = place.offset > part.next;
                    part.next = part.next.max(place.offset);
                    moved
                }))
            }
            (_, place) => {
                let what = place
                    .as_ref()
                    .map_or_else(|| "reading".to_owned(), |place| format!("reading {}", name_of(place)));
                let told = port_error(&what, &event.error, Context::Consumer);
                if told.reaction == Reaction::Retry { Ok(false) } else { Err(told) }
            }
        }
    }
}

fn partitions_of(
    settings: &Settings,
    consumer: &Consumer,
    topic: &str,
) -> Result<Vec<TopicPartition>, PortError> {
    let what = format!("asking for the topic {topic}");
    let answers = describe_topics(consumer.client(), &[c_name(topic)?], ASK)
        .map_err(|error| port_error(&what, &error, Context::Admin))?;
    match answers.into_iter().next() {
        Some(answer) => match answer.error {
            None => Ok((0..answer.partitions).map(|number| TopicPartition::new(topic, number)).collect()),
            Some(error) => Err(port_error(&what, &error, Context::Admin)),
        },
        None => {
            let message = format!("{what}: no broker answers at {}", settings.brokers());
            Err(PortError::new(Reaction::Retry, message))
        }
    }
}
