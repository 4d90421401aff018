//! Plain writing and reading, for the commands: no group, no transaction of ours.
//!
//! Reads are read_committed, like everybody's who is meant to see results.
//!
//! Must not know: the engine's ports, formats, what is printed.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::Offset;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{DeliveryResult, Producer as _, ProducerContext, ThreadedProducer};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::{Header, HeaderView, OutRecord, RecordView};
use tallyflow_runtime::ports::{PortError, Reaction};

use crate::Kafka;
use crate::batch::view;
use crate::config::Settings;
use crate::errors::{Context, describe, from_kafka, port_error, reaction};
use crate::lists::{list_of, name_of};
use crate::native::admin::{describe_topics, log_ends};
use crate::native::consumer::{Consumer, ErrorEvent, Event, c_name};
use crate::native::producer as native;
use crate::talk::Talker;

/// A question to the cluster is given up after this.
const ASK: Duration = Duration::from_secs(5);

/// Somebody who follows a topic is asked this often whether to go on.
const IDLE: Duration = Duration::from_millis(200);

/// A record is offered to a full client for this long.
const OFFER: Duration = Duration::from_secs(30);

/// A record that was not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeliveryFailure {
    /// Which one, counted from 0 over the producer's life.
    pub number: u64,
    /// Its topic.
    pub topic: String,
    /// Why, in one line.
    pub why: String,
}

/// What became of the records since the last time somebody asked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivered {
    /// How many all replicas have.
    pub acknowledged: u64,
    /// The others.
    pub failures: Vec<DeliveryFailure>,
}

/// An idempotent producer whose deliveries are collected. Acknowledged means by all in-sync replicas.
pub struct PlainProducer {
    producer: ThreadedProducer<Collector>,
    sent: usize,
}

/// The context of a [`PlainProducer`].
struct Collector {
    talker: Talker,
    acknowledged: AtomicU64,
    failures: Mutex<Vec<DeliveryFailure>>,
}

impl ClientContext for Collector {
    fn log(&self, level: RDKafkaLogLevel, kind: &str, text: &str) {
        self.talker.log(level, kind, text);
    }

    fn stats_raw(&self, _: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        self.talker.error(error, reason);
    }
}

impl ProducerContext for Collector {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        match result {
            Ok(_) => {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err((error, message)) => {
                let failure = DeliveryFailure {
                    number: number as u64,
                    topic: message.topic().to_owned(),
                    why: from_kafka("writing", error, Context::Produce).message,
                };
                self.failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(failure);
            }
        }
    }
}

impl PlainProducer {
    pub(crate) fn new(settings: &Settings) -> Result<Self, PortError> {
        let collector = Collector {
            talker: Talker::new(&settings.talk, "producer"),
            acknowledged: AtomicU64::new(0),
            failures: Mutex::default(),
        };
        let producer = settings
            .plain_producer()
            .create_with_context(collector)
            .map_err(|error| from_kafka("making a producer", &error, Context::Produce))?;
        Ok(Self { producer, sent: 0 })
    }

    /// Hands a record over; the partition is chosen by Java's murmur2 of the key. Waits while the client is full.
    ///
    /// # Errors
    ///
    /// Where the record can never be sent, or the client stays full.
    pub fn send(
        &mut self,
        topic: &str,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header],
    ) -> Result<(), PortError> {
        let record = OutRecord {
            key: key.map(<[u8]>::to_vec),
            value: value.map(<[u8]>::to_vec),
            headers: headers.to_vec(),
            timestamp: None,
        };
        self.send_record(topic, None, &record)
    }

    /// Hands a record over, to a partition of the caller's choice if there is one.
    ///
    /// # Errors
    ///
    /// As [`PlainProducer::send`].
    pub fn send_record(
        &mut self,
        topic: &str,
        partition: Option<Partition>,
        record: &OutRecord,
    ) -> Result<(), PortError> {
        let name = c_name(topic)?;
        let number = partition.map(|number| i32::try_from(number.0).unwrap_or(i32::MAX));
        let deadline = Instant::now() + OFFER;
        loop {
            match native::produce(self.producer.client(), &name, number, record, self.sent) {
                Ok(()) => {
                    self.sent += 1;
                    return Ok(());
                }
                Err(error) => {
                    let told = port_error(&format!("writing to {topic}"), &error, Context::Produce);
                    if told.reaction != Reaction::Retry || Instant::now() >= deadline {
                        return Err(told);
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Waits until every record has been acknowledged or has failed, and says what became of them.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where some are still waiting after `timeout`.
    pub fn finish(&mut self, timeout: Duration) -> Result<Delivered, PortError> {
        let deadline = Instant::now() + timeout;
        native::flush(self.producer.client(), timeout).map_err(|error| {
            port_error("waiting for acknowledgements", &error, Context::Produce)
        })?;
        // The last reports may be with the polling thread.
        while native::waiting(self.producer.client()) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let collector = self.producer.client().context();
        let mut failures = collector
            .failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(Delivered {
            acknowledged: collector.acknowledged.swap(0, Ordering::Relaxed),
            failures: std::mem::take(&mut *failures),
        })
    }
}

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
                let message = format!(
                    "reading {topic}: nothing came for {:.1} s",
                    give_up.as_secs_f64()
                );
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
            partitions.push(Part {
                name,
                number,
                next,
                end,
            });
        }
        let list = list_of(
            partitions
                .iter()
                .map(|part| (&part.name, Offset::Offset(part.next))),
        )?;
        consumer
            .base()
            .assign(&list)
            .map_err(|error| from_kafka(&format!("reading {topic}"), &error, Context::Consumer))?;
        Ok(Self {
            consumer,
            partitions,
        })
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
        let mut step = Step {
            moved: false,
            broken: false,
        };
        let deadline = Instant::now() + wait;
        while !step.broken {
            let wait = if step.moved {
                Duration::ZERO
            } else {
                deadline.saturating_duration_since(Instant::now())
            };
            match self.consumer.poll(wait) {
                Some(Event::Message(message)) => {
                    let number = message.partition();
                    let Some(part) = self
                        .partitions
                        .iter_mut()
                        .find(|part| part.number == number)
                    else {
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
        for part in self
            .partitions
            .iter_mut()
            .filter(|part| part.next < part.end)
        {
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
                let part = self
                    .partitions
                    .iter_mut()
                    .find(|part| part.number == place.partition);
                Ok(part.is_some_and(|part| {
                    let moved = place.offset > part.next;
                    part.next = part.next.max(place.offset);
                    moved
                }))
            }
            (_, place) => {
                let what = place.as_ref().map_or_else(
                    || "reading".to_owned(),
                    |place| format!("reading {}", name_of(place)),
                );
                let told = port_error(&what, &event.error, Context::Consumer);
                if told.reaction == Reaction::Retry {
                    Ok(false)
                } else {
                    Err(told)
                }
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
            None => Ok((0..answer.partitions)
                .map(|number| TopicPartition::new(topic, number))
                .collect()),
            Some(error) => Err(port_error(&what, &error, Context::Admin)),
        },
        None => {
            let message = format!("{what}: no broker answers at {}", settings.brokers());
            Err(PortError::new(Reaction::Retry, message))
        }
    }
}
