//! A consumer that is polled for whole events.
//!
//! rdkafka's `BaseConsumer` makes and closes the client; its `poll` is not used, because it answers rebalances on the
//! spot, drops topic, partition and offset of an error, and unwraps header names. Here a rebalance is only told:
//! librdkafka then waits for an incremental (un)assign for as long as `max.poll.interval.ms` (120 s), with every partition paused
//! (`rd_kafka_assignment_pause`), and goes on when it comes. While the consumer closes, `BaseConsumer::drop` polls,
//! and rdkafka's own answer lets all partitions go.
//!
//! Keeps: EO-3 (a position is the client's own, never a guess).

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::time::Duration;

use rdkafka::client::Client;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::{ClientConfig, TopicPartitionList};
use rdkafka_sys as sys;
use tallyflow_core::record::{HeaderView, RecordTime};
use tallyflow_core::time::TimestampMs;

use super::{ListEntry, NativeError, bytes, entries_at, entry_at, millis, text};
use crate::errors::{Context, from_kafka};
use crate::talk::Talker;
use tallyflow_runtime::ports::{PortError, Reaction};

/// A consumer and its queue of events. The queue is declared first: it is given back before the client.
pub(crate) struct Consumer {
    queue: EventQueue,
    base: BaseConsumer<Talker>,
}

struct EventQueue(NonNull<sys::rd_kafka_queue_t>);

// SAFETY: librdkafka's queues may be used from any thread.
unsafe impl Send for EventQueue {}

impl Drop for EventQueue {
    fn drop(&mut self) {
        // SAFETY: our reference, given back once.
        unsafe { sys::rd_kafka_queue_destroy(self.0.as_ptr()) };
    }
}

/// What a poll brought.
pub(crate) enum Event<'c> {
    Message(Message<'c>),
    Error(ErrorEvent),
    /// Waits for an answer.
    Rebalance {
        assigned: bool,
        partitions: Vec<ListEntry>,
    },
    /// Something that was dealt with.
    Served,
}

/// An error, and where it happened if that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ErrorEvent {
    pub(crate) error: NativeError,
    pub(crate) place: Option<ListEntry>,
}

impl Consumer {
    pub(crate) fn new(options: &ClientConfig, talker: Talker) -> Result<Self, PortError> {
        let base: BaseConsumer<Talker> = options
            .create_with_context(talker)
            .map_err(|error| from_kafka("making a consumer", &error, Context::Consumer))?;
        // SAFETY: the handle is alive as long as `base`; the reference to its queue is ours.
        let queue = unsafe { sys::rd_kafka_queue_get_consumer(base.client().native_ptr()) };
        match NonNull::new(queue) {
            Some(queue) => Ok(Self { queue: EventQueue(queue), base }),
            None => Err(PortError::new(Reaction::Halt, "making a consumer: it has no queue")),
        }
    }

    /// The safe calls.
    pub(crate) fn base(&self) -> &BaseConsumer<Talker> {
        &self.base
    }

    pub(crate) fn client(&self) -> &Client<Talker> {
        self.base.client()
    }

    fn handle(&self) -> *mut sys::rd_kafka_t {
        self.base.client().native_ptr()
    }

    /// The next event, or `None` after `wait`. Control records are passed over inside and move the position.
    pub(crate) fn poll(&self, wait: Duration) -> Option<Event<'_>> {
        // SAFETY: the queue is alive as long as `self`; the event, if any, is ours.
        let event = unsafe { sys::rd_kafka_queue_poll(self.queue.0.as_ptr(), millis(wait)) };
        let event = OwnedEvent(NonNull::new(event)?);
        // SAFETY: the event is valid; each reading function is called for its own type of event.
        Some(unsafe {
            match sys::rd_kafka_event_type(event.ptr()) {
                sys::RD_KAFKA_EVENT_FETCH => Message::take(event),
                sys::RD_KAFKA_EVENT_ERROR => Event::Error(ErrorEvent::read(&event)),
                sys::RD_KAFKA_EVENT_REBALANCE => Event::Rebalance {
                    assigned: sys::rd_kafka_event_error(event.ptr())
                        == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS,
                    partitions: entries_at(sys::rd_kafka_event_topic_partition_list(event.ptr())),
                },
                sys::RD_KAFKA_EVENT_LOG => {
                    self.log(&event);
                    Event::Served
                }
                _ => Event::Served,
            }
        })
    }

    fn log(&self, event: &OwnedEvent) {
        let (mut kind, mut line, mut level) = (ptr::null(), ptr::null(), 0);
        // SAFETY: a log event; the strings live as long as it.
        let (kind, line) = unsafe {
            if sys::rd_kafka_event_log(event.ptr(), &mut kind, &mut line, &mut level) != 0 {
                return;
            }
            (text(kind), text(line))
        };
        self.base.context().line(level, kind.trim(), line.trim());
    }

    /// Answers an assignment.
    pub(crate) fn incremental_assign(&self, list: &TopicPartitionList) -> Result<(), NativeError> {
        // SAFETY: handle and list are alive; the list is copied, the error is ours.
        unsafe { NativeError::take(sys::rd_kafka_incremental_assign(self.handle(), list.ptr())) }
    }

    /// Answers a revocation.
    pub(crate) fn incremental_unassign(&self, list: &TopicPartitionList) -> Result<(), NativeError> {
        // SAFETY: as in `incremental_assign`.
        unsafe { NativeError::take(sys::rd_kafka_incremental_unassign(self.handle(), list.ptr())) }
    }

    /// Seeks, and leaves each element's error in the list.
    pub(crate) fn seek(&self, list: &TopicPartitionList, wait: Duration) -> Result<(), NativeError> {
        // SAFETY: as in `incremental_assign`; the list is written to during the call only.
        unsafe { NativeError::take(sys::rd_kafka_seek_partitions(self.handle(), list.ptr(), millis(wait))) }
    }

    /// The place after what was polled last; `None` until something was since the last assign or seek.
    /// It asks for one partition and makes no round trip to the client's thread, unlike rdkafka's.
    pub(crate) fn position(&self, topic: &str, partition: i32) -> Option<i64> {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition(topic, partition);
        // SAFETY: handle and list are alive.
        let code = unsafe { sys::rd_kafka_position(self.handle(), list.ptr()) };
        NativeError::check(code).ok()?;
        let entry = super::entries(&list).into_iter().next()?;
        (entry.error.is_none() && entry.offset >= 0).then_some(entry.offset)
    }

    /// What the group knows of this member, now.
    pub(crate) fn group_metadata(&self) -> Option<GroupMetadata> {
        // SAFETY: the handle is alive; the metadata is ours.
        NonNull::new(unsafe { sys::rd_kafka_consumer_group_metadata(self.handle()) }).map(GroupMetadata)
    }
}

/// A member's place in its group, as sent with offsets.
pub(crate) struct GroupMetadata(NonNull<sys::rd_kafka_consumer_group_metadata_t>);

impl GroupMetadata {
    pub(super) fn ptr(&self) -> *const sys::rd_kafka_consumer_group_metadata_t {
        self.0.as_ptr()
    }

    /// The generation; below 0 outside a group.
    pub(crate) fn generation(&self) -> i32 {
        // SAFETY: ours and alive.
        unsafe { sys::rd_kafka_consumer_group_metadata_generation_id(self.ptr()) }
    }

    /// The member id; empty outside a group.
    pub(crate) fn member_id(&self) -> String {
        // SAFETY: ours and alive, and so is the string in it.
        unsafe { text(sys::rd_kafka_consumer_group_metadata_member_id(self.ptr())) }
    }

    #[cfg(test)]
    pub(crate) fn outside(group: &CStr) -> Self {
        // SAFETY: the name is copied; the metadata is ours.
        Self(NonNull::new(unsafe { sys::rd_kafka_consumer_group_metadata_new(group.as_ptr()) }).unwrap())
    }
}

impl Drop for GroupMetadata {
    fn drop(&mut self) {
        // SAFETY: ours, given back once.
        unsafe { sys::rd_kafka_consumer_group_metadata_destroy(self.0.as_ptr()) };
    }
}

/// An event that is ours.
pub(super) struct OwnedEvent(pub(super) NonNull<sys::rd_kafka_event_t>);

// SAFETY: an event may be read and destroyed on any thread.
unsafe impl Send for OwnedEvent {}

impl OwnedEvent {
    pub(super) fn ptr(&self) -> *mut sys::rd_kafka_event_t {
        self.0.as_ptr()
    }

    /// The error it carries.
    pub(super) fn error(&self) -> Result<(), NativeError> {
        // SAFETY: every event answers these two; the string lives as long as it. Whether it is fatal may be asked of
        // an error event alone: for others librdkafka reads another member of its union.
        unsafe {
            NativeError::check(sys::rd_kafka_event_error(self.ptr())).map_err(|error| NativeError {
                text: text(sys::rd_kafka_event_error_string(self.ptr())),
                fatal: sys::rd_kafka_event_type(self.ptr()) == sys::RD_KAFKA_EVENT_ERROR
                    && sys::rd_kafka_event_error_is_fatal(self.ptr()) != 0,
                ..error
            })
        }
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once.
        unsafe { sys::rd_kafka_event_destroy(self.ptr()) };
    }
}

impl ErrorEvent {
    /// # Safety
    ///
    /// An error event.
    unsafe fn read(event: &OwnedEvent) -> Self {
        let error = event.error().err().unwrap_or_else(|| NativeError::plain(RDKafkaErrorCode::NoError));
        // SAFETY: the element, where there is one, is ours and destroyed once.
        let place = unsafe {
            let element = sys::rd_kafka_event_topic_partition(event.ptr());
            (!element.is_null()).then(|| {
                let entry = entry_at(element);
                sys::rd_kafka_topic_partition_destroy(element);
                entry
            })
        };
        Self { error, place }
    }
}

/// A record in librdkafka's memory. Lives no longer than its consumer.
pub(crate) struct Message<'c> {
    message: NonNull<sys::rd_kafka_message_t>,
    headers: Option<NonNull<sys::rd_kafka_headers_t>>,
    _event: OwnedEvent,
    _consumer: PhantomData<&'c Consumer>,
}

// SAFETY: as for its event.
unsafe impl Send for Message<'_> {}

impl<'c> Message<'c> {
    /// # Safety
    ///
    /// A fetch event, whose message was not taken yet.
    unsafe fn take(event: OwnedEvent) -> Event<'c> {
        // SAFETY: by the contract; the message lives as long as the event, which moves into the same value.
        let Some(message) = NonNull::new(unsafe { sys::rd_kafka_event_message_next(event.ptr()) }.cast_mut())
        else {
            return Event::Served;
        };
        // SAFETY: the message is valid.
        if let Err(error) = NativeError::check(unsafe { message.as_ref() }.err) {
            return Event::Error(ErrorEvent { error, place: None });
        }
        let mut headers = ptr::null_mut();
        // SAFETY: the message is valid; headers are parsed on this first call and live as long as it.
        let code = unsafe { sys::rd_kafka_message_headers(message.as_ptr(), &mut headers) };
        let headers = NativeError::check(code).ok().and_then(|()| NonNull::new(headers));
        Event::Message(Self { message, headers, _event: event, _consumer: PhantomData })
    }

    fn read(&self) -> &sys::rd_kafka_message_t {
        // SAFETY: valid as long as its event.
        unsafe { self.message.as_ref() }
    }

    /// The topic's name; topic names are ASCII.
    pub(crate) fn topic(&self) -> &[u8] {
        // SAFETY: a fetched message has a topic, whose name lives as long as it.
        unsafe { CStr::from_ptr(sys::rd_kafka_topic_name(self.read().rkt)) }.to_bytes()
    }

    pub(crate) fn partition(&self) -> i32 {
        self.read().partition
    }

    pub(crate) fn offset(&self) -> i64 {
        self.read().offset
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        // SAFETY: null or `key_len` bytes, as long as the event.
        unsafe { bytes(self.read().key.cast(), self.read().key_len) }
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        // SAFETY: null or `len` bytes, as long as the event.
        unsafe { bytes(self.read().payload.cast(), self.read().len) }
    }

    pub(crate) fn time(&self) -> RecordTime {
        use sys::rd_kafka_timestamp_type_t::{
            RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME, RD_KAFKA_TIMESTAMP_NOT_AVAILABLE,
        };
        let mut kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
        // SAFETY: the message is valid.
        let time = unsafe { sys::rd_kafka_message_timestamp(self.message.as_ptr(), &mut kind) };
        match kind {
            _ if time < 0 => RecordTime::Unknown,
            RD_KAFKA_TIMESTAMP_NOT_AVAILABLE => RecordTime::Unknown,
            RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME => RecordTime::LogAppend(TimestampMs(time)),
            _ => RecordTime::Create(TimestampMs(time)),
        }
    }

    /// The headers in order, repeats included; names are bytes, values may be null. A name ends at its first null
    /// byte, since librdkafka does not tell its length.
    pub(crate) fn headers(&self) -> impl Iterator<Item = HeaderView<'_>> {
        // SAFETY: headers live as long as the message.
        let count = self.headers.map_or(0, |headers| unsafe { sys::rd_kafka_header_cnt(headers.as_ptr()) });
        (0..count).map_while(|index| self.header(index))
    }

    fn header(&self, index: usize) -> Option<HeaderView<'_>> {
        let (mut name, mut value, mut length) = (ptr::null(), ptr::null(), 0);
        // SAFETY: headers, and name and value in them, live as long as the message.
        unsafe {
            NativeError::check(sys::rd_kafka_header_get_all(
                self.headers?.as_ptr(),
                index,
                &mut name,
                &mut value,
                &mut length,
            ))
            .ok()?;
            Some(HeaderView { name: CStr::from_ptr(name).to_bytes(), value: bytes(value.cast(), length) })
        }
    }
}
