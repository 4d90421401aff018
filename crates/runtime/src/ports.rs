//! The ports: everything the engine needs from outside, as small traits.
//!
//! | port | implemented by | what for |
//! | --- | --- | --- |
//! | [`StreamLog`] | crates/kafka | one stage's group consumer and its transactional producer, as one thing |
//! | [`LogReader`] | crates/kafka | bounded, read-committed reads for restores |
//! | [`Admin`] | crates/kafka | topic ids, ends of logs |
//! | [`tallyflow_state::cold::ColdStores`] | crates/rocks | local state |
//! | [`crate::status::Observer`] | crates/telemetry | what the worker did |
//!
//! Consumer and producer are one port because their pairing is the point: offsets are sent with the group metadata
//! of this very consumer, fresh in each transaction (EO-2).

use std::time::Duration;

use tallyflow_core::ids::{NextOffset, Partition, TopicId, TopicPartition};
use tallyflow_core::record::{OutRecord, RecordView};
use tallyflow_core::time::TimestampMs;

/// The instant of a step: the wall clock, which goes into records, and a steady clock, which drives timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Milliseconds since the epoch.
    pub wall: TimestampMs,
    /// Milliseconds since some start; never goes back.
    pub steady_ms: u64,
}

/// The only three reactions to an error of a port, and what to tell people.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PortError {
    /// What the engine does.
    pub reaction: Reaction,
    /// What, where, why, what to do; lower case, no full stop, no secrets.
    pub message: String,
}

/// What the engine does about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Reaction {
    /// Call the same function again; nothing else in between.
    Retry,
    /// Close dirty: abort, drop what is provisional, rewind, go on with the same producer.
    Abort,
    /// Close dirty and make a new producer: this one was fenced or is unusable.
    Fenced,
    /// Stop the worker: nothing it could do by itself is right.
    Halt,
}

impl PortError {
    /// An error with this reaction.
    pub fn new(reaction: Reaction, message: impl Into<String>) -> Self {
        Self { reaction, message: message.into() }
    }
}

/// A change of the group's assignment. Each one waits for its acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupEvent {
    /// These partitions are new; answer with [`StreamLog::acknowledge_assigned`].
    Assigned(Vec<TopicPartition>),
    /// These go: commit, then answer with [`StreamLog::acknowledge_revoked`].
    Revoked(Vec<TopicPartition>),
    /// These are gone already: close dirty, then answer with [`StreamLog::acknowledge_revoked`].
    Lost(Vec<TopicPartition>),
}

/// What a group has committed for a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// The next offset to read.
    pub offset: NextOffset,
    /// The metadata written beside it: the topic id of the incarnation it speaks of.
    pub metadata: String,
}

/// An input offset a transaction speaks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentOffset {
    /// The partition.
    pub partition: TopicPartition,
    /// The next offset to read.
    pub offset: NextOffset,
    /// The topic id, as text.
    pub metadata: String,
}

/// Takes the records of a poll, partition by partition.
pub trait BatchSink {
    /// Records of one partition, in order. They borrow from the client's buffers and end with the call.
    ///
    /// # Errors
    ///
    /// The poll ends with the sink's error; the records are not delivered again until a seek.
    fn batch(&mut self, partition: &TopicPartition, records: &[RecordView<'_>]) -> Result<(), PortError>;
}

/// One stage's group consumer and transactional producer.
pub trait StreamLog {
    /// Waits up to `max_wait` for the first record, then takes what is there, up to `max_records`, and hands it on
    /// grouped by partition. Also serves rebalances; see [`StreamLog::take_event`]. Returns the number of records.
    ///
    /// # Errors
    ///
    /// The sink's, or the client's.
    fn poll(
        &mut self,
        max_wait: Duration,
        max_records: usize,
        sink: &mut dyn BatchSink,
    ) -> Result<usize, PortError>;

    /// The next change of the assignment that waits for an acknowledgement.
    fn take_event(&mut self) -> Option<GroupEvent>;

    /// Takes partitions over: paused, at no particular offset. [`StreamLog::start`] begins delivery.
    ///
    /// # Errors
    ///
    /// Where the client refuses.
    fn acknowledge_assigned(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError>;

    /// Lets partitions go.
    ///
    /// # Errors
    ///
    /// Where the client refuses.
    fn acknowledge_revoked(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError>;

    /// Seeks to an offset and resumes. Each element's error is checked.
    ///
    /// # Errors
    ///
    /// Where a partition is not ours any more ([`Reaction::Abort`]) or the seek did not succeed.
    fn start(&mut self, offsets: &[(TopicPartition, NextOffset)]) -> Result<(), PortError>;

    /// Stops delivery of partitions. Records fetched before may still come.
    ///
    /// # Errors
    ///
    /// Where the client refuses.
    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), PortError>;

    /// The place after the last record delivered, control records included; `None` until something was consumed
    /// since the last start.
    fn position(&self, partition: &TopicPartition) -> Option<NextOffset>;

    /// Whether the client knows that the assignment was lost.
    fn assignment_lost(&self) -> bool;

    /// What the group has committed; waits out transactions that are still open on it.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the broker did not answer in time.
    fn committed(&mut self, partitions: &[TopicPartition]) -> Result<Vec<Option<Committed>>, PortError>;

    /// Makes a new producer under the transactional id: fences the previous one and ends its transaction.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the broker did not answer in time.
    fn open_producer(&mut self) -> Result<(), PortError>;

    /// Begins a transaction.
    ///
    /// # Errors
    ///
    /// By the error table.
    fn begin(&mut self) -> Result<(), PortError>;

    /// Produces a record in the open transaction. Copies what it needs.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the client's queue is full: poll nothing, call again.
    fn send(&mut self, topic: &str, partition: Partition, record: &OutRecord) -> Result<(), PortError>;

    /// Adds input offsets to the transaction, with fresh group metadata. Refuses an empty list, a generation below
    /// 0, an empty member id and a lost assignment.
    ///
    /// # Errors
    ///
    /// [`Reaction::Abort`] where this consumer does not own its partitions any more.
    fn send_offsets(&mut self, offsets: &[SentOffset]) -> Result<(), PortError>;

    /// Commits the transaction: waits for its records' acknowledgements and the broker's word.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] means "not yet": call it again, do not abort.
    fn commit(&mut self) -> Result<(), PortError>;

    /// Aborts the transaction.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] means "not yet".
    fn abort(&mut self) -> Result<(), PortError>;

    /// Leaves the group and closes both clients. Bounded in time.
    fn close(&mut self);
}

/// Where a scan begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanFrom {
    /// At the first record that is still there.
    Earliest,
    /// At this offset; refused ([`Reaction::Halt`]) where it is no longer there.
    Offset(NextOffset),
}

/// How far a scan is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanProgress {
    /// Whether the position has reached the end.
    pub done: bool,
    /// The next offset.
    pub position: NextOffset,
    /// The end, fixed when the scan began.
    pub end: NextOffset,
}

/// A bounded read of one partition.
pub trait Scan {
    /// Reads on for at most `max_wait`.
    ///
    /// # Errors
    ///
    /// The client's.
    fn advance(&mut self, max_wait: Duration, sink: &mut dyn BatchSink) -> Result<ScanProgress, PortError>;
}

/// Opens bounded reads.
pub trait LogReader {
    /// A read_committed scan up to the high watermark (read_uncommitted) of this moment. It is done when its
    /// *position* reaches that end: markers arrive partition by partition.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the broker did not answer in time.
    fn scan(&mut self, partition: &TopicPartition, from: ScanFrom) -> Result<Box<dyn Scan>, PortError>;
}

/// What the cluster says of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicInfo {
    /// Its name.
    pub name: String,
    /// Its incarnation.
    pub id: TopicId,
    /// Its partitions.
    pub partitions: u32,
}

/// Both ends of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEnds {
    /// The first offset that is still there.
    pub start: NextOffset,
    /// The high watermark, whatever the isolation.
    pub high_watermark_offset: NextOffset,
}

/// Questions to the cluster. Calls block for at most about a second.
pub trait Admin {
    /// Ids and partitions; `None` for a topic that does not exist.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the broker did not answer in time.
    fn topics(&mut self, names: &[&str]) -> Result<Vec<Option<TopicInfo>>, PortError>;

    /// Both ends of each partition, read_uncommitted.
    ///
    /// # Errors
    ///
    /// [`Reaction::Retry`] where the broker did not answer in time.
    fn ends(&mut self, partitions: &[TopicPartition]) -> Result<Vec<LogEnds>, PortError>;
}
