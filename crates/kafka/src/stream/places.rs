//! Where a partition is read: starting, pausing, and the place that was reached.
//!
//! Keeps: EO-3 (a position never from before a start, nor beyond what the sink took).
//!
//! Must not know: the group, transactions.

use std::thread;
use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::RDKafkaErrorCode;
use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_runtime::ports::{PortError, Reaction};

use super::assignment::Owned;
use super::{ASK, KafkaStream, closed};
use crate::errors::{Context, from_kafka, port_error};
use crate::lists::{check_each, list_of, name_of};
use crate::native::consumer::Event;
use crate::native::{ListEntry, entries};

/// A fetcher that is still being stopped or started refuses a seek; it is tried again for this long.
const SEEK: Duration = Duration::from_secs(2);

/// Fetching goes on for this long while the worker takes nothing: a commit under load takes up to a second.
const HOLD: Duration = Duration::from_secs(2);

impl KafkaStream {
    /// Seeks and resumes.
    pub(super) fn start_at(&mut self, offsets: &[(TopicPartition, NextOffset)]) -> Result<(), PortError> {
        if let Some((name, _)) = offsets.iter().find(|(name, _)| self.assignment.get(name).is_none()) {
            let message = format!("starting {name}: it is not ours any more");
            return Err(PortError::new(Reaction::Abort, message));
        }
        if offsets.is_empty() {
            return Ok(());
        }
        self.seek(offsets)?;
        // Resuming what is not paused would drop what is being fetched.
        let paused =
            offsets.iter().filter(|(name, _)| self.assignment.get(name).is_some_and(|o| o.paused || o.held));
        let list = list_of(paused.map(|(name, _)| (name, Offset::Invalid)))?;
        self.consumer()?
            .base()
            .resume(&list)
            .map_err(|error| from_kafka("resuming", &error, Context::Consumer))?;
        check_each("resuming", &list)?;
        for (name, at) in offsets {
            if let Some(owned) = self.assignment.get_mut(name) {
                owned.paused = false;
                owned.held = false;
                owned.started(*at);
            }
        }
        Ok(())
    }

    /// Pauses.
    pub(super) fn pause_all(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError> {
        let list = list_of(partitions.iter().map(|name| (name, Offset::Invalid)))?;
        self.consumer()?
            .base()
            .pause(&list)
            .map_err(|error| from_kafka("pausing", &error, Context::Consumer))?;
        check_each("pausing", &list)?;
        for partition in partitions {
            if let Some(owned) = self.assignment.get_mut(partition) {
                owned.paused = true;
            }
        }
        Ok(())
    }

    /// Serves rebalances for a worker that takes no records. Records and rebalances share the client's queue, and a
    /// pause throws away what was fetched. So nothing is done at first, since a worker is mostly full for less than a
    /// commit; only then the fetching is held back until the worker takes records again.
    pub(super) fn serve_rebalances(&mut self, wait: Duration) -> Result<(), PortError> {
        if self.full_since.get_or_insert_with(Instant::now).elapsed() < HOLD {
            thread::sleep(wait);
            return Ok(());
        }
        let flowing = self.assignment.those(Owned::is_flowing);
        if !flowing.is_empty() {
            let list = list_of(flowing.iter().map(|name| (name, Offset::Invalid)))?;
            self.consumer()?
                .base()
                .pause(&list)
                .map_err(|error| from_kafka("holding back", &error, Context::Consumer))?;
            self.assignment.all_mut().filter(|o| o.is_flowing()).for_each(|o| o.held = true);
        }
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.consumer.as_ref().ok_or_else(closed)?.poll(left) {
                Some(Event::Rebalance { assigned, partitions }) => {
                    return self.record(assigned, &partitions);
                }
                Some(Event::Error(event)) => return self.judge(&event).map_or(Ok(()), Err),
                Some(Event::Message(message)) => {
                    let place = (message.partition(), message.offset());
                    // A pause leaves nothing behind; a record of ours would be lost here.
                    if self.assignment.accept(message.topic(), place.0, place.1).is_some() {
                        let text = format!("record {place:?} came from a partition that is held back");
                        return Err(PortError::new(Reaction::Abort, text));
                    }
                }
                Some(Event::Served) => {}
                None if left.is_zero() => return Ok(()),
                None => {}
            }
        }
    }

    /// Ends what [`KafkaStream::serve_rebalances`] began.
    pub(super) fn release(&mut self) -> Result<(), PortError> {
        self.full_since = None;
        let held = self.assignment.those(|owned| owned.held);
        if held.is_empty() {
            return Ok(());
        }
        let list = list_of(held.iter().map(|name| (name, Offset::Invalid)))?;
        self.consumer()?
            .base()
            .resume(&list)
            .map_err(|error| from_kafka("resuming", &error, Context::Consumer))?;
        self.assignment.all_mut().for_each(|owned| owned.held = false);
        Ok(())
    }

    /// The place after what was handed on, if the client's position says it.
    pub(super) fn position_of(&self, partition: &TopicPartition) -> Option<NextOffset> {
        let owned = self.assignment.get(partition)?;
        let number = i32::try_from(partition.partition.0).ok()?;
        let position = self.consumer.as_ref()?.position(&partition.topic, number)?;
        // A seek makes the client forget its position, so what it says is from after the last start.
        (owned.is_telling() && position >= owned.expected()?).then_some(NextOffset(position))
    }

    /// Seeks until no fetcher is in between two states.
    fn seek(&self, offsets: &[(TopicPartition, NextOffset)]) -> Result<(), PortError> {
        let consumer = self.consumer()?;
        let deadline = Instant::now() + SEEK;
        loop {
            let list = list_of(offsets.iter().map(|(name, at)| (name, Offset::Offset(at.0))))?;
            consumer.seek(&list, ASK).map_err(|error| port_error("seeking", &error, Context::Consumer))?;
            let failed = entries(&list).into_iter().find_map(|entry| Some((entry.error?, entry)));
            let Some((code, entry)) = failed else {
                return Ok(());
            };
            let between = matches!(code, RDKafkaErrorCode::State | RDKafkaErrorCode::PreviousInProgress);
            if !between || !self.is_assigned(&entry)? || consumer.base().assignment_lost() {
                let message = format!("seeking {}: it is not ours any more ({code:?})", name_of(&entry));
                return Err(PortError::new(Reaction::Abort, message));
            }
            if Instant::now() >= deadline {
                let message = format!("seeking {}: the client is not ready ({code:?})", name_of(&entry));
                return Err(PortError::new(Reaction::Retry, message));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_assigned(&self, entry: &ListEntry) -> Result<bool, PortError> {
        let assigned = self
            .consumer()?
            .base()
            .assignment()
            .map_err(|error| from_kafka("asking for the assignment", &error, Context::Consumer))?;
        Ok(entries(&assigned)
            .iter()
            .any(|other| other.topic == entry.topic && other.partition == entry.partition))
    }
}
