//! A transactional producer and the state of its transaction.
//!
//! ```text
//!  make ──open──► ready ──begin──► open ──send, send_offsets──► open ──commit──► ready
//!                                    └──────────abort──────────────────────────► ready
//! ```
//!
//! A call that timed out goes on in the background and is resumed by the same call: no other is let through before.
//! An abort right after the first record can overtake that record's AddPartitionsToTxn and cost the producer
//! (confluentinc/librdkafka#4849), so it waits, within bounds, for a first acknowledgement.
//!
//! Keeps: EO-2 (nothing is sent for a member without a generation).

use std::collections::HashMap;
use std::ffi::CString;
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::client::Client;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{Producer as _, ThreadedProducer};
use tallyflow_core::ids::Partition;
use tallyflow_core::record::OutRecord;
use tallyflow_runtime::ports::{PortError, Reaction};

use crate::config::Settings;
use crate::errors::{Context, describe, from_kafka, port_error};
use crate::lists::c_name;
use crate::native::consumer::GroupMetadata;
use crate::native::{NativeError, producer as native};
use crate::talk::Talker;

/// A call returns after this at the latest, so that the worker sees its clock; where it was not done it is resumed.
const CALL: Duration = Duration::from_secs(1);

/// Making a producer known costs several round trips, and waits for the predecessor's transaction to end.
const OPEN: Duration = Duration::from_secs(3);

/// Sending offsets cannot be resumed, only repeated: it gets more time.
const OFFSETS: Duration = Duration::from_secs(3);

/// How long an abort waits for a first acknowledgement.
const FIRST_ACKNOWLEDGEMENT: Duration = Duration::from_secs(1);

/// A call that takes part in the resumption rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Open,
    Begin,
    Offsets,
    Commit,
    Abort,
}

impl Call {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "opening the producer",
            Self::Begin => "beginning a transaction",
            Self::Offsets => "adding offsets to the transaction",
            Self::Commit => "committing",
            Self::Abort => "aborting",
        }
    }

    /// Whether the client goes on with it after a time out.
    const fn is_resumable(self) -> bool {
        matches!(self, Self::Open | Self::Commit | Self::Abort)
    }
}

/// One producer, from its making until it is fenced or closed.
pub(crate) struct Transactional {
    producer: ThreadedProducer<Talker>,
    id: String,
    topics: HashMap<String, CString>,
    ready: bool,
    /// Whether a transaction was begun and neither committed nor aborted.
    open: bool,
    /// A call that timed out and must be made again.
    unfinished: Option<Call>,
    /// Records handed over in this transaction.
    sent: u64,
    /// The coordinator knows of this transaction, or it failed: an abort need not wait.
    settled: bool,
}

impl Transactional {
    pub(crate) fn new(settings: &Settings, id: &str) -> Result<Self, PortError> {
        let producer = settings
            .transactional_producer(id)
            .create_with_context(Talker::new(&settings.talk, id))
            .map_err(|error| from_kafka("making a producer", &error, Context::Transaction))?;
        Ok(Self {
            producer,
            id: id.to_owned(),
            topics: HashMap::new(),
            ready: false,
            open: false,
            unfinished: None,
            sent: 0,
            settled: false,
        })
    }

    fn client(&self) -> &Client<Talker> {
        self.producer.client()
    }

    /// Whether [`Transactional::open`] has not succeeded yet and may be called (again).
    pub(crate) fn is_opening(&self) -> bool {
        !self.ready && self.client().fatal_error().is_none()
    }

    /// Fences the predecessor and ends its transaction.
    pub(crate) fn open(&mut self) -> Result<(), PortError> {
        let result = native::init(self.client(), OPEN);
        self.conclude(Call::Open, result)?;
        self.ready = true;
        Ok(())
    }

    pub(crate) fn begin(&mut self) -> Result<(), PortError> {
        self.admit(Call::Begin)?;
        // In a fatal state the call itself would never return: confluentinc/librdkafka#4420.
        if let Some((code, text)) = self.client().fatal_error() {
            let what = self.what(Call::Begin);
            return Err(PortError::new(Reaction::Fenced, describe(&what, code, &text)));
        }
        let result = native::begin(self.client());
        self.conclude(Call::Begin, result)?;
        self.open = true;
        self.sent = 0;
        self.settled = false;
        Ok(())
    }

    pub(crate) fn send(
        &mut self,
        topic: &str,
        partition: Partition,
        record: &OutRecord,
    ) -> Result<(), PortError> {
        // Clients take 0 for "now": a record would get another time on every attempt.
        if record.timestamp.is_some_and(|time| time.0 <= 0) {
            let message = format!("writing to {topic}: a timestamp must be above 0");
            return Err(PortError::new(Reaction::Halt, message));
        }
        let number = i32::try_from(partition.0).map_err(|_| {
            PortError::new(Reaction::Halt, format!("writing to {topic}: no partition {partition}"))
        })?;
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.to_owned(), c_name(topic)?);
        }
        let Some(name) = self.topics.get(topic) else {
            return Ok(());
        };
        let deadline = Instant::now() + CALL;
        loop {
            match native::produce(self.client(), name, Some(number), record, 0) {
                Ok(()) => {
                    self.sent += 1;
                    return Ok(());
                }
                // The client is full: its threads need time and the processor.
                Err(error) if error.code == RDKafkaErrorCode::QueueFull && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(self.not_sent(topic, number, &error)),
            }
        }
    }

    /// After a failure in the background the client refuses records with a mere "wrong state".
    fn not_sent(&mut self, topic: &str, partition: i32, error: &NativeError) -> PortError {
        let what = format!("writing to {topic}-{partition} as {}", self.id);
        if let Some((code, text)) = self.client().fatal_error() {
            return PortError::new(Reaction::Fenced, describe(&what, code, &text));
        }
        if error.code == RDKafkaErrorCode::State {
            self.settled = true;
            let message = format!("{what}: the transaction has failed before; it is repeated");
            return PortError::new(Reaction::Abort, message);
        }
        port_error(&what, error, Context::Produce)
    }

    pub(crate) fn send_offsets(
        &mut self,
        offsets: &TopicPartitionList,
        group: &GroupMetadata,
    ) -> Result<(), PortError> {
        self.admit(Call::Offsets)?;
        check_membership(group.generation(), &group.member_id())?;
        let result = native::send_offsets(self.client(), offsets, group, OFFSETS);
        self.conclude(Call::Offsets, result)?;
        self.settled = true;
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<(), PortError> {
        self.admit(Call::Commit)?;
        let result = native::commit(self.client(), CALL);
        self.conclude(Call::Commit, result)?;
        self.open = false;
        Ok(())
    }

    /// Does nothing where no transaction is open: whoever closes dirty need not know.
    pub(crate) fn abort(&mut self) -> Result<(), PortError> {
        if !self.open {
            return Ok(());
        }
        self.admit(Call::Abort)?;
        if self.unfinished.is_none() {
            self.await_first_acknowledgement();
        }
        let result = native::abort(self.client(), CALL);
        self.conclude(Call::Abort, result)?;
        self.open = false;
        Ok(())
    }

    /// Whatever was handed over and is not waiting any more was acknowledged, or failed.
    fn await_first_acknowledgement(&self) {
        let deadline = Instant::now() + FIRST_ACKNOWLEDGEMENT;
        while self.sent > 0
            && !self.settled
            && native::waiting(self.client()) >= self.sent
            && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a call through only where no other one is unfinished.
    fn admit(&self, call: Call) -> Result<(), PortError> {
        if !self.ready {
            let message = format!("{}: the producer was not opened", self.what(call));
            return Err(PortError::new(Reaction::Fenced, message));
        }
        match self.unfinished {
            Some(other) if other != call => {
                let message = format!("{}: {} is not finished", self.what(call), other.name());
                Err(PortError::new(Reaction::Halt, message))
            }
            _ => Ok(()),
        }
    }

    fn conclude(&mut self, call: Call, result: Result<(), NativeError>) -> Result<(), PortError> {
        let error = match result {
            Ok(()) => {
                self.unfinished = None;
                return Ok(());
            }
            Err(error) => port_error(&self.what(call), &error, Context::Transaction),
        };
        self.unfinished = (error.reaction == Reaction::Retry && call.is_resumable()).then_some(call);
        self.settled |= error.reaction != Reaction::Retry;
        Err(error)
    }

    fn what(&self, call: Call) -> String {
        format!("{} as {}", call.name(), self.id)
    }
}

/// A broker takes offsets of generation −1 and of nobody without a check: they must never be sent.
fn check_membership(generation: i32, member_id: &str) -> Result<(), PortError> {
    if generation >= 0 && !member_id.is_empty() {
        return Ok(());
    }
    Err(PortError::new(
        Reaction::Abort,
        "adding offsets to the transaction: this consumer is no member of its group now",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_members_send_offsets() {
        assert!(check_membership(0, "member").is_ok());
        for (generation, member_id) in [(-1, "member"), (3, ""), (-1, "")] {
            let error = check_membership(generation, member_id).unwrap_err();
            assert_eq!(error.reaction, Reaction::Abort);
        }
        // What librdkafka says of a consumer that has not joined.
        let outside = GroupMetadata::outside(c"shop.intake");
        assert!(check_membership(outside.generation(), &outside.member_id()).is_err());
    }

    #[test]
    fn the_slow_calls_of_rdkafka_are_not_used() {
        // They take at least 100 ms with a record in flight, or wait for events that nobody serves.
        for (file, source) in [
            ("transaction.rs", include_str!("transaction.rs")),
            ("stream.rs", include_str!("stream.rs")),
            ("stream/offsets.rs", include_str!("stream/offsets.rs")),
            ("tools.rs", include_str!("tools.rs")),
        ] {
            for method in ["commit_transaction", "abort_transaction", "flush"] {
                let call = format!(".{method}(");
                assert!(!source.contains(&call), "{file} calls {method}");
            }
        }
    }
}
