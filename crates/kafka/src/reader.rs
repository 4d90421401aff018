//! Bounded reads of one partition, read_committed, for restores.
//!
//! ```text
//!  scan ─► both ends are asked, read_uncommitted ─► assigned by hand ─► advance … advance ─► position ≥ end: done
//! ```
//!
//! The *position* ends a scan, not a record: a log may end in markers, in aborted records, or in a batch that
//! compaction emptied. Markers move the client's position; for the last case the client tells at which offset it
//! found nothing more.
//!
//! A client is kept for the next scan when one is dropped. No group is joined and nothing committed.
//!
//! Keeps: EO-3 (each record once, in order, up to the end and not beyond).
//!
//! Must not know: what is restored.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::Offset;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::RDKafkaErrorCode;
use tallyflow_core::ids::{NextOffset, TopicPartition};
use tallyflow_runtime::ports::{BatchSink, LogReader, PortError, Reaction, Scan, ScanFrom, ScanProgress};

use crate::batch::{Buffers, Refused};
use crate::config::Settings;
use crate::errors::{Context, describe, from_kafka, port_error, reaction};
use crate::lists::{list_of, name_of, number_of, retire};
use crate::native::admin::log_ends;
use crate::native::consumer::{Consumer, ErrorEvent, Event};
use crate::talk::Talker;

/// A question to the cluster is given up after this.
const ASK: Duration = Duration::from_secs(1);

/// At most this many records are handed on by one call.
const BATCH: usize = 8_192;

/// At most this many clients wait for another scan.
const IDLE: usize = 4;

/// A client whose fetcher has not stopped after this is not used again.
const STOP: Duration = Duration::from_millis(500);

/// [`LogReader`] over librdkafka.
pub struct KafkaReader {
    settings: Arc<Settings>,
    idle: Pool,
}

type Pool = Arc<Mutex<Vec<Consumer>>>;

impl KafkaReader {
    pub(crate) fn new(settings: &Arc<Settings>) -> Self {
        Self { settings: Arc::clone(settings), idle: Arc::default() }
    }

    fn client(&self) -> Result<Consumer, PortError> {
        if let Some(consumer) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(consumer);
        }
        let talker = Talker::new(&self.settings.talk, "reader");
        Consumer::new(&self.settings.reader(), talker)
    }
}

impl LogReader for KafkaReader {
    fn scan(&mut self, partition: &TopicPartition, from: ScanFrom) -> Result<Box<dyn Scan>, PortError> {
        let consumer = self.client()?;
        let mut scan = KafkaScan {
            consumer: Some(consumer),
            idle: Arc::clone(&self.idle),
            number: number_of(partition)?,
            partition: partition.clone(),
            position: NextOffset::START,
            end: NextOffset::START,
            buffers: Buffers::default(),
        };
        scan.open(from)?;
        Ok(Box::new(scan))
    }
}

struct KafkaScan {
    /// `None` once it was given back.
    consumer: Option<Consumer>,
    idle: Pool,
    partition: TopicPartition,
    number: i32,
    position: NextOffset,
    end: NextOffset,
    buffers: Buffers,
}

impl KafkaScan {
    fn consumer(&self) -> Result<&Consumer, PortError> {
        let closed = || PortError::new(Reaction::Halt, format!("the scan of {} is over", self.partition));
        self.consumer.as_ref().ok_or_else(closed)
    }

    fn open(&mut self, from: ScanFrom) -> Result<(), PortError> {
        let (start, end) = ends(self.consumer()?, &self.partition)?;
        self.position = first(&self.partition, from, start, end)?;
        self.end = end;
        if self.position >= self.end {
            return Ok(());
        }
        let list = list_of([(&self.partition, Offset::Offset(self.position.0))].into_iter())?;
        self.consumer()?
            .base()
            .assign(&list)
            .map_err(|error| from_kafka(&format!("reading {}", self.partition), &error, Context::Consumer))
    }

    /// What an error event means: `Ok` moves the position at most.
    fn judge(&self, event: &ErrorEvent) -> Result<Option<i64>, PortError> {
        let what = format!("reading {}", self.partition);
        match (event.error.code, &event.place) {
            (RDKafkaErrorCode::PartitionEOF, Some(place)) if name_of(place) == self.partition => {
                Ok(Some(place.offset))
            }
            // Of another scan.
            (RDKafkaErrorCode::PartitionEOF, _) => Ok(None),
            // The client goes on by itself and its log says so. A client that was kept through an outage still has
            // one such event for each second of it: a scan that ended with each would begin again as often.
            (
                RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::Resolve,
                _,
            ) => Ok(None),
            (RDKafkaErrorCode::AutoOffsetReset, _) => Err(PortError::new(
                Reaction::Abort,
                format!("{what}: offset {} was deleted while it was being read", self.position),
            )),
            _ => Err(port_error(&what, &event.error, Context::Consumer)),
        }
    }

    /// The client's position, and what an end of the log told, up to the end of this scan.
    fn moved_to(&mut self, told: Option<i64>) -> ScanProgress {
        let consumer = self.consumer.as_ref();
        let consumed = consumer.and_then(|consumer| consumer.position(&self.partition.topic, self.number));
        for offset in [told, consumed].into_iter().flatten() {
            self.position = self.position.max(NextOffset(offset)).min(self.end);
        }
        self.progress()
    }

    fn progress(&self) -> ScanProgress {
        ScanProgress { done: self.position >= self.end, position: self.position, end: self.end }
    }
}

impl Scan for KafkaScan {
    fn advance(&mut self, max_wait: Duration, sink: &mut dyn BatchSink) -> Result<ScanProgress, PortError> {
        if self.position >= self.end {
            return Ok(self.progress());
        }
        let (mut next, end, number) = (self.position.0, self.end.0, self.number);
        let closed = || PortError::new(Reaction::Halt, "the scan is over");
        let consumer = self.consumer.as_ref().ok_or_else(closed)?;
        let deadline = Instant::now() + max_wait;
        let mut messages = self.buffers.collect();
        let mut interruption = None;
        while messages.len() < BATCH && next < end {
            let wait = match messages.len() {
                0 => deadline.saturating_duration_since(Instant::now()),
                _ => Duration::ZERO,
            };
            match consumer.poll(wait) {
                Some(Event::Message(message)) => {
                    let offset = message.offset();
                    let ours =
                        message.partition() == number && message.topic() == self.partition.topic.as_bytes();
                    if ours && (next..end).contains(&offset) {
                        next = offset.saturating_add(1);
                        messages.push((0, message));
                    } else if ours && offset >= end {
                        break;
                    }
                }
                Some(Event::Error(event)) => {
                    interruption = Some(event);
                    break;
                }
                Some(Event::Served | Event::Rebalance { .. }) => {}
                None if wait.is_zero() || Instant::now() >= deadline => break,
                None => {}
            }
        }
        let delivered = self.buffers.deliver(messages, |_| Some(&self.partition), sink);
        if let Err(Refused { error, .. }) = delivered {
            // The client's position is beyond what was taken: nothing may be read on from it.
            if let Some(consumer) = self.consumer.take() {
                retire("a reader", consumer, Duration::ZERO);
            }
            return Err(error);
        }
        let told = match interruption {
            Some(event) => self.judge(&event),
            None => Ok(None),
        };
        match told {
            Ok(told) => Ok(self.moved_to(told)),
            Err(error) => {
                self.moved_to(None);
                Err(error)
            }
        }
    }
}

impl Drop for KafkaScan {
    /// Gives the client back once it has forgotten this partition: a position of this scan must not be taken for one
    /// of the next.
    fn drop(&mut self) {
        let Some(consumer) = self.consumer.take() else {
            return;
        };
        let deadline = Instant::now() + STOP;
        let mut clean = consumer.base().unassign().is_ok();
        while clean && consumer.position(&self.partition.topic, self.number).is_some() {
            clean = Instant::now() < deadline;
            thread::sleep(Duration::from_millis(1));
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if clean && idle.len() < IDLE {
            idle.push(consumer);
        } else {
            drop(idle);
            retire("a reader", consumer, Duration::ZERO);
        }
    }
}

/// Both ends of a log, read_uncommitted.
fn ends(consumer: &Consumer, partition: &TopicPartition) -> Result<(NextOffset, NextOffset), PortError> {
    let what = format!("asking for the ends of {partition}");
    let answer = log_ends(consumer.client(), std::slice::from_ref(partition), ASK)
        .map_err(|error| port_error(&what, &error, Context::Admin))?;
    match answer.into_values().next() {
        Some(Ok((start, end))) => Ok((NextOffset(start), NextOffset(end))),
        Some(Err(code)) => Err(PortError::new(reaction(code, Context::Admin), describe(&what, code, ""))),
        None => Err(PortError::new(Reaction::Retry, format!("{what}: the brokers did not say"))),
    }
}

/// Where to begin, if that is still there.
fn first(
    partition: &TopicPartition,
    from: ScanFrom,
    start: NextOffset,
    end: NextOffset,
) -> Result<NextOffset, PortError> {
    match from {
        ScanFrom::Earliest => Ok(start),
        ScanFrom::Offset(at) if (start..=end).contains(&at) => Ok(at),
        ScanFrom::Offset(at) if at < start => Err(PortError::new(
            Reaction::Halt,
            format!("offsets {at} to {start} of {partition} are not retained any more"),
        )),
        ScanFrom::Offset(at) => Err(PortError::new(
            Reaction::Halt,
            format!("offset {at} of {partition} is beyond the end of the log, which is {end}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_begins_only_at_what_is_there() {
        let partition = TopicPartition::new("shop.deltas", 2);
        let begin = |from| first(&partition, from, NextOffset(10), NextOffset(20));
        assert_eq!(begin(ScanFrom::Earliest), Ok(NextOffset(10)));
        for at in [10, 15, 20] {
            assert_eq!(begin(ScanFrom::Offset(NextOffset(at))), Ok(NextOffset(at)));
        }
        let gone = begin(ScanFrom::Offset(NextOffset(9))).unwrap_err();
        assert_eq!(gone.reaction, Reaction::Halt);
        assert_eq!(gone.message, "offsets 9 to 10 of shop.deltas-2 are not retained any more");
        let beyond = begin(ScanFrom::Offset(NextOffset(21))).unwrap_err();
        assert_eq!(beyond.reaction, Reaction::Halt);
    }
}
