//! A worker's group consumer and its transactional producer, as one thing.
//!
//! ```text
//!  poll ─► records ─► sink                        take_event ─► Assigned ─► acknowledge_assigned ─► start
//!     └──► rebalance ─► recorded, not answered                  Revoked, Lost ─► acknowledge_revoked
//! ```
//!
//! While a rebalance waits for its answer librdkafka pauses every partition of the consumer, so an answer should not
//! wait for more than a commit. An assignment of nothing is answered at once.
//!
//! Keeps: EO-2 (offsets only for partitions owned now, with fresh metadata of this very consumer), EO-3 (a position
//! never from before a start, nor beyond what the sink took).
//!
//! Must not know: tasks, restores, when to commit.

mod assignment;
#[cfg(test)]
mod live_tests;
mod offsets;
mod places;
mod trouble;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::{Offset, TopicPartitionList};
use tallyflow_core::ids::{NextOffset, Partition, TopicPartition};
use tallyflow_core::record::OutRecord;
use tallyflow_runtime::ports::{
    BatchSink, Committed, GroupEvent, PortError, Reaction, SentOffset, StreamLog,
};

use crate::batch::{Buffers, Refused, Slotted};
use crate::config::Settings;
use crate::errors::{Context, from_kafka, port_error};
use crate::lists::{check_each, list_of, name_of, retire, topic_ids};
use crate::native::ListEntry;
use crate::native::consumer::{Consumer, ErrorEvent, Event};
use crate::talk::Talker;
use crate::transaction::Transactional;
use assignment::Assignment;

/// A question to the cluster is given up after this; the worker asks again.
const ASK: Duration = Duration::from_secs(1);

/// Closing both clients may take this long; what is not done then goes on in the background.
const CLOSE: Duration = Duration::from_secs(5);

/// [`StreamLog`] over librdkafka. One worker thread owns it.
pub struct KafkaStream {
    settings: Arc<Settings>,
    group: String,
    transactional_id: String,
    consumer: Option<Consumer>,
    producer: Option<Transactional>,
    assignment: Assignment,
    events: VecDeque<GroupEvent>,
    /// Told to the worker and not acknowledged yet.
    unanswered: Vec<GroupEvent>,
    /// An error that came behind records: it is told by the next poll.
    pending: Option<PortError>,
    /// Since when the worker takes no records.
    full_since: Option<Instant>,
    buffers: Buffers,
}

/// What ended a poll early.
enum Interruption {
    Rebalance { assigned: bool, partitions: Vec<ListEntry> },
    Error(ErrorEvent),
}

impl KafkaStream {
    pub(crate) fn new(
        settings: &Arc<Settings>,
        group: &str,
        input_topics: &[String],
        transactional_id: &str,
    ) -> Result<Self, PortError> {
        let options = settings.stage_consumer(group, None);
        let talker = Talker::new(&settings.talk, group);
        let consumer = Consumer::new(&options, talker)?;
        let topics: Vec<&str> = input_topics.iter().map(String::as_str).collect();
        consumer
            .base()
            .subscribe(&topics)
            .map_err(|error| from_kafka("subscribing", &error, Context::Consumer))?;
        Ok(Self::with(settings, group, consumer, transactional_id))
    }

    /// A stream over a consumer that has subscribed.
    fn with(settings: &Arc<Settings>, group: &str, consumer: Consumer, transactional_id: &str) -> Self {
        Self {
            settings: Arc::clone(settings),
            group: group.to_owned(),
            transactional_id: transactional_id.to_owned(),
            consumer: Some(consumer),
            producer: None,
            assignment: Assignment::default(),
            events: VecDeque::new(),
            unanswered: Vec::new(),
            pending: None,
            full_since: None,
            buffers: Buffers::default(),
        }
    }

    fn consumer(&self) -> Result<&Consumer, PortError> {
        self.consumer.as_ref().ok_or_else(closed)
    }

    fn producer(&mut self) -> Result<&mut Transactional, PortError> {
        self.producer.as_mut().ok_or_else(|| {
            PortError::new(Reaction::Fenced, format!("{} has no producer yet", self.transactional_id))
        })
    }

    /// Remembers a rebalance, or answers one that changes nothing: until the answer nothing is fetched.
    fn record(&mut self, assigned: bool, partitions: &[ListEntry]) -> Result<(), PortError> {
        let partitions: Vec<TopicPartition> = partitions.iter().map(name_of).collect();
        tracing::debug!(target: "tallyflow::kafka", group = self.group, assigned, ?partitions, "rebalance");
        let consumer = self.consumer.as_ref().ok_or_else(closed)?;
        if partitions.is_empty() {
            let none = TopicPartitionList::new();
            let (what, result) = if assigned {
                ("taking over no partitions", consumer.incremental_assign(&none))
            } else {
                ("letting no partitions go", consumer.incremental_unassign(&none))
            };
            return result.map_err(|error| port_error(what, &error, Context::Consumer));
        }
        let event = if assigned {
            GroupEvent::Assigned(partitions)
        } else if consumer.base().assignment_lost() {
            GroupEvent::Lost(partitions)
        } else {
            GroupEvent::Revoked(partitions)
        };
        self.unanswered.push(event.clone());
        self.events.push_back(event);
        Ok(())
    }
}

impl StreamLog for KafkaStream {
    fn poll(
        &mut self,
        max_wait: Duration,
        max_records: usize,
        sink: &mut dyn BatchSink,
    ) -> Result<usize, PortError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if max_records == 0 {
            return self.serve_rebalances(max_wait).map(|()| 0);
        }
        self.release()?;
        let consumer = self.consumer.as_ref().ok_or_else(closed)?;
        let deadline = Instant::now() + max_wait;
        let mut messages = self.buffers.collect();
        let interruption = gather(consumer, &mut self.assignment, deadline, max_records, &mut messages);
        let count = messages.len();
        let delivered = self.buffers.deliver(messages, |slot| self.assignment.slot(slot), sink);
        let interruption = match interruption {
            Some(Interruption::Rebalance { assigned, partitions }) => {
                self.record(assigned, &partitions).err()
            }
            Some(Interruption::Error(event)) => self.judge(&event),
            None => None,
        };
        if let Err(Refused { error, slots }) = delivered {
            self.assignment.refused(&slots);
            self.pending = interruption;
            return Err(error);
        }
        match interruption {
            // Records were handed on: the worker must see their number first.
            Some(error) if count > 0 => self.pending = Some(error),
            Some(error) => return Err(error),
            None => {}
        }
        Ok(count)
    }

    fn take_event(&mut self) -> Option<GroupEvent> {
        self.events.pop_front()
    }

    fn acknowledge_assigned(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError> {
        self.unanswered.retain(|event| !matches!(event, GroupEvent::Assigned(_)));
        let consumer = self.consumer.as_ref().ok_or_else(closed)?;
        // "End" never fails, where an offset may be out of range before the pause comes.
        let list = list_of(partitions.iter().map(|name| (name, Offset::End)))?;
        consumer
            .incremental_assign(&list)
            .map_err(|error| port_error("taking partitions over", &error, Context::Consumer))?;
        consumer.base().pause(&list).map_err(|error| from_kafka("pausing", &error, Context::Consumer))?;
        check_each("pausing", &list)?;
        let ids = topic_ids(consumer, partitions, ASK);
        for partition in partitions {
            self.assignment.add(partition.clone(), ids.get(&*partition.topic).copied());
        }
        Ok(())
    }

    fn acknowledge_revoked(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError> {
        self.unanswered.retain(|event| matches!(event, GroupEvent::Assigned(_)));
        let consumer = self.consumer.as_ref().ok_or_else(closed)?;
        let owned = partitions.iter().filter(|name| self.assignment.get(name).is_some());
        let list = list_of(owned.map(|name| (name, Offset::Invalid)))?;
        consumer
            .incremental_unassign(&list)
            .map_err(|error| port_error("letting partitions go", &error, Context::Consumer))?;
        self.assignment.remove(partitions);
        Ok(())
    }

    fn start(&mut self, offsets: &[(TopicPartition, NextOffset)]) -> Result<(), PortError> {
        self.start_at(offsets)
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError> {
        self.pause_all(partitions)
    }

    fn position(&self, partition: &TopicPartition) -> Option<NextOffset> {
        self.position_of(partition)
    }

    fn assignment_lost(&self) -> bool {
        self.consumer.as_ref().is_none_or(|consumer| consumer.base().assignment_lost())
    }

    fn committed(&mut self, partitions: &[TopicPartition]) -> Result<Vec<Option<Committed>>, PortError> {
        self.committed_of(partitions)
    }

    fn open_producer(&mut self) -> Result<(), PortError> {
        if !self.producer.as_ref().is_some_and(Transactional::is_opening) {
            if let Some(old) = self.producer.take() {
                retire("a producer", old, Duration::ZERO);
            }
            self.producer = Some(Transactional::new(&self.settings, &self.transactional_id)?);
        }
        self.producer()?.open()
    }

    fn begin(&mut self) -> Result<(), PortError> {
        self.producer()?.begin()
    }

    fn send(&mut self, topic: &str, partition: Partition, record: &OutRecord) -> Result<(), PortError> {
        self.producer()?.send(topic, partition, record)
    }

    fn send_offsets(&mut self, offsets: &[SentOffset]) -> Result<(), PortError> {
        let (list, group) = self.offsets_to_send(offsets)?;
        self.producer()?.send_offsets(&list, &group)
    }

    fn commit(&mut self) -> Result<(), PortError> {
        self.producer()?.commit()
    }

    fn abort(&mut self) -> Result<(), PortError> {
        match &mut self.producer {
            Some(producer) => producer.abort(),
            None => Ok(()),
        }
    }

    fn close(&mut self) {
        self.answer_all();
        self.events.clear();
        self.assignment = Assignment::default();
        self.pending = None;
        let clients = (self.consumer.take(), self.producer.take());
        if clients.0.is_some() || clients.1.is_some() {
            retire("a worker's clients", clients, CLOSE);
        }
    }
}

impl Drop for KafkaStream {
    fn drop(&mut self) {
        self.close();
    }
}

/// Collects records until there are none, enough, or something else comes up.
fn gather<'c>(
    consumer: &'c Consumer,
    assignment: &mut Assignment,
    deadline: Instant,
    max_records: usize,
    messages: &mut Vec<Slotted<'c>>,
) -> Option<Interruption> {
    while messages.len() < max_records {
        let wait = match messages.len() {
            0 => deadline.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        };
        match consumer.poll(wait) {
            Some(Event::Message(message)) => {
                let place = (message.topic(), message.partition(), message.offset());
                if let Some(slot) = assignment.accept(place.0, place.1, place.2) {
                    messages.push((slot, message));
                }
            }
            Some(Event::Rebalance { assigned, partitions }) => {
                return Some(Interruption::Rebalance { assigned, partitions });
            }
            Some(Event::Error(event)) => return Some(Interruption::Error(event)),
            Some(Event::Served) => {}
            None if wait.is_zero() || Instant::now() >= deadline => return None,
            None => {}
        }
    }
    None
}

fn closed() -> PortError {
    PortError::new(Reaction::Halt, "the clients of this worker are closed")
}
