//! Two questions that rdkafka cannot ask: a topic's id, and the end of a log whatever the isolation.
//!
//! `fetch_watermarks` answers with the last stable offset on a read_committed client; ListOffsets takes the isolation
//! level as an argument.

use std::collections::HashMap;
use std::ffi::{CString, c_char};
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use rdkafka::client::{Client, ClientContext};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use rdkafka_sys as sys;
use sys::rd_kafka_admin_op_t as Op;
use tallyflow_core::ids::{TopicId, TopicPartition};

use super::consumer::OwnedEvent;
use super::{ListEntry, NativeError, entry_at, millis, text};

/// The client gives up by itself at the timeout; its word is awaited for this much longer.
const GRACE: Duration = Duration::from_millis(500);

/// What the cluster says of a topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopicAnswer {
    pub(crate) name: String,
    pub(crate) id: TopicId,
    pub(crate) partitions: u32,
    pub(crate) error: Option<NativeError>,
}

/// Asks for topics by name. Names must not repeat.
pub(crate) fn describe_topics<C: ClientContext>(
    client: &Client<C>,
    names: &[CString],
    wait: Duration,
) -> Result<Vec<TopicAnswer>, NativeError> {
    let queue = Queue::new(client);
    let options = Options::new(client, Op::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS, wait)?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: the names are copied into the collection, which is ours; the call copies what it needs of all three.
    unsafe {
        let topics = sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        sys::rd_kafka_DescribeTopics(client.native_ptr(), topics, options.0.as_ptr(), queue.0.as_ptr());
        sys::rd_kafka_TopicCollection_destroy(topics);
    }
    let event = queue.wait(Instant::now() + wait + GRACE)?;
    event.error()?;
    let mut count = 0;
    // SAFETY: the result and its parts live as long as the event; `count` descriptions are at `topics`.
    unsafe {
        let result = sys::rd_kafka_event_DescribeTopics_result(event.ptr());
        if result.is_null() {
            return Err(NativeError::plain(RDKafkaErrorCode::InvalidType));
        }
        let topics = sys::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        Ok((0..count).map(|index| topic_answer(*topics.add(index))).collect())
    }
}

/// # Safety
///
/// A valid description.
unsafe fn topic_answer(topic: *const sys::rd_kafka_TopicDescription_t) -> TopicAnswer {
    // SAFETY: parts of the description live as long as it.
    unsafe {
        let error = sys::rd_kafka_TopicDescription_error(topic);
        let failed = !error.is_null()
            && sys::rd_kafka_error_code(error) != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
        let mut partitions = 0;
        sys::rd_kafka_TopicDescription_partitions(topic, &mut partitions);
        TopicAnswer {
            name: text(sys::rd_kafka_TopicDescription_name(topic)),
            id: topic_id(sys::rd_kafka_TopicDescription_topic_id(topic)),
            partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
            error: failed.then(|| NativeError::read(error)),
        }
    }
}

/// # Safety
///
/// Null or a valid id.
unsafe fn topic_id(id: *const sys::rd_kafka_Uuid_t) -> TopicId {
    if id.is_null() {
        return TopicId::ZERO;
    }
    // SAFETY: by the contract.
    let (high, low) = unsafe {
        (sys::rd_kafka_Uuid_most_significant_bits(id), sys::rd_kafka_Uuid_least_significant_bits(id))
    };
    let number = (u128::from(high.cast_unsigned()) << 64) | u128::from(low.cast_unsigned());
    TopicId(number.to_be_bytes())
}

/// Both ends of a partition, or why they are not known.
pub(crate) type Ends = Result<(i64, i64), RDKafkaErrorCode>;

/// Asks for the first offset and the high watermark of each partition, read_uncommitted. Both questions travel at
/// once. Partitions must not repeat.
pub(crate) fn log_ends<C: ClientContext>(
    client: &Client<C>,
    partitions: &[TopicPartition],
    wait: Duration,
) -> Result<HashMap<(String, i32), Ends>, NativeError> {
    let queue = Queue::new(client);
    // `Beginning` and `End` are ListOffsets' own marks for earliest and latest.
    for (mark, spec) in [Offset::Beginning, Offset::End].into_iter().enumerate() {
        let mut list = TopicPartitionList::with_capacity(partitions.len());
        for partition in partitions {
            let number = i32::try_from(partition.partition.0).unwrap_or(i32::MAX);
            list.add_partition_offset(&partition.topic, number, spec)
                .map_err(|_| NativeError::plain(RDKafkaErrorCode::InvalidArgument))?;
        }
        let options = Options::new(client, Op::RD_KAFKA_ADMIN_OP_LISTOFFSETS, wait)?;
        options.read_uncommitted()?;
        // SAFETY: the call copies the list and the options; the opaque is a number, not an address.
        unsafe {
            sys::rd_kafka_AdminOptions_set_opaque(options.0.as_ptr(), ptr::without_provenance_mut(mark));
            sys::rd_kafka_ListOffsets(client.native_ptr(), list.ptr(), options.0.as_ptr(), queue.0.as_ptr());
        }
    }
    let deadline = Instant::now() + wait + GRACE;
    let mut ends: HashMap<(String, i32), Ends> = HashMap::new();
    for _ in 0..2 {
        let event = queue.wait(deadline)?;
        event.error()?;
        // SAFETY: the opaque is the number set above.
        let is_end = unsafe { sys::rd_kafka_event_opaque(event.ptr()) }.addr() == 1;
        for entry in listed(&event)? {
            let end = ends.entry((entry.topic, entry.partition)).or_insert(Ok((0, 0)));
            match (entry.error, end) {
                (Some(code), end) => *end = Err(code),
                (None, Ok((_, high))) if is_end => *high = entry.offset,
                (None, Ok((low, _))) => *low = entry.offset,
                (None, Err(_)) => {}
            }
        }
    }
    Ok(ends)
}

fn listed(event: &OwnedEvent) -> Result<Vec<ListEntry>, NativeError> {
    let mut count = 0;
    // SAFETY: the result and its parts live as long as the event; `count` of them are at `infos`.
    unsafe {
        let result = sys::rd_kafka_event_ListOffsets_result(event.ptr());
        if result.is_null() {
            return Err(NativeError::plain(RDKafkaErrorCode::InvalidType));
        }
        let infos = sys::rd_kafka_ListOffsets_result_infos(result, &mut count);
        Ok((0..count)
            .map(|index| entry_at(sys::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(index))))
            .collect())
    }
}

/// A queue for the answers of one question.
struct Queue(NonNull<sys::rd_kafka_queue_t>);

impl Queue {
    fn new<C: ClientContext>(client: &Client<C>) -> Self {
        // SAFETY: the handle is alive as long as `client`; the queue is ours and never null (librdkafka aborts
        // where memory is exhausted).
        Self(unsafe { NonNull::new_unchecked(sys::rd_kafka_queue_new(client.native_ptr())) })
    }

    fn wait(&self, deadline: Instant) -> Result<OwnedEvent, NativeError> {
        let wait = deadline.saturating_duration_since(Instant::now());
        // SAFETY: the queue is ours; the event, if any, is ours.
        match NonNull::new(unsafe { sys::rd_kafka_queue_poll(self.0.as_ptr(), millis(wait)) }) {
            Some(event) => Ok(OwnedEvent(event)),
            None => Err(NativeError::plain(RDKafkaErrorCode::OperationTimedOut)),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: ours, given back once; what still comes is dropped by librdkafka.
        unsafe { sys::rd_kafka_queue_destroy(self.0.as_ptr()) };
    }
}

/// The options of one question.
struct Options(NonNull<sys::rd_kafka_AdminOptions_t>);

impl Options {
    fn new<C: ClientContext>(client: &Client<C>, op: Op, wait: Duration) -> Result<Self, NativeError> {
        // SAFETY: as for `Queue`; null for an operation that does not exist.
        let options = NonNull::new(unsafe { sys::rd_kafka_AdminOptions_new(client.native_ptr(), op) })
            .map(Self)
            .ok_or_else(|| NativeError::plain(RDKafkaErrorCode::InvalidArgument))?;
        // SAFETY: the options are ours; no error text is asked for.
        NativeError::check(unsafe {
            sys::rd_kafka_AdminOptions_set_request_timeout(
                options.0.as_ptr(),
                millis(wait),
                ptr::null_mut(),
                0,
            )
        })?;
        Ok(options)
    }

    fn read_uncommitted(&self) -> Result<(), NativeError> {
        let level = sys::rd_kafka_IsolationLevel_t::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED;
        // SAFETY: the options are ours, and so is the error.
        unsafe { NativeError::take(sys::rd_kafka_AdminOptions_set_isolation_level(self.0.as_ptr(), level)) }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: ours, given back once.
        unsafe { sys::rd_kafka_AdminOptions_destroy(self.0.as_ptr()) };
    }
}
