//! The transactional calls, and producing with any header names.
//!
//! rdkafka's `commit_transaction` waits in quanta of 100 ms whenever a record is in flight, and its
//! `abort_transaction` on a lone producer waits for delivery events that nobody polls. The native calls take about a
//! millisecond, given that another thread serves delivery events: use them on a `ThreadedProducer`.
//!
//! Keeps: EO-2 (the group metadata that was looked at is the one that is sent).

use std::ffi::{CStr, c_void};
use std::ptr;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::client::{Client, ClientContext};
use rdkafka_sys as sys;
use rdkafka_sys::rd_kafka_vtype_t::{
    RD_KAFKA_VTYPE_END, RD_KAFKA_VTYPE_HEADERS, RD_KAFKA_VTYPE_KEY, RD_KAFKA_VTYPE_MSGFLAGS,
    RD_KAFKA_VTYPE_OPAQUE, RD_KAFKA_VTYPE_PARTITION, RD_KAFKA_VTYPE_TIMESTAMP, RD_KAFKA_VTYPE_TOPIC,
    RD_KAFKA_VTYPE_VALUE,
};
use tallyflow_core::record::{Header, OutRecord};

use super::consumer::GroupMetadata;
use super::{NativeError, millis};

/// `RD_KAFKA_PARTITION_UA` of rdkafka.h: the partitioner chooses.
const PARTITION_UNASSIGNED: i32 = -1;

/// Fences the previous holder of the transactional id and ends its transaction. Resumable.
pub(crate) fn init<C: ClientContext>(client: &Client<C>, wait: Duration) -> Result<(), NativeError> {
    // SAFETY: the handle is alive as long as `client`; the returned error is ours.
    unsafe { NativeError::take(sys::rd_kafka_init_transactions(client.native_ptr(), millis(wait))) }
}

/// Begins a transaction; nothing is sent.
pub(crate) fn begin<C: ClientContext>(client: &Client<C>) -> Result<(), NativeError> {
    // SAFETY: as in `init`.
    unsafe { NativeError::take(sys::rd_kafka_begin_transaction(client.native_ptr())) }
}

/// Adds offsets to the transaction. Not resumable: a call that timed out may be made again.
pub(crate) fn send_offsets<C: ClientContext>(
    client: &Client<C>,
    offsets: &TopicPartitionList,
    group: &GroupMetadata,
    wait: Duration,
) -> Result<(), NativeError> {
    // SAFETY: as in `init`; librdkafka copies the list and the metadata, which live through the call.
    unsafe {
        NativeError::take(sys::rd_kafka_send_offsets_to_transaction(
            client.native_ptr(),
            offsets.ptr(),
            group.ptr(),
            millis(wait),
        ))
    }
}

/// Waits for the records' acknowledgements and commits. Resumable, by the same call only.
pub(crate) fn commit<C: ClientContext>(client: &Client<C>, wait: Duration) -> Result<(), NativeError> {
    // SAFETY: as in `init`.
    unsafe { NativeError::take(sys::rd_kafka_commit_transaction(client.native_ptr(), millis(wait))) }
}

/// Drops what was not sent and aborts. Resumable, by the same call only.
pub(crate) fn abort<C: ClientContext>(client: &Client<C>, wait: Duration) -> Result<(), NativeError> {
    // SAFETY: as in `init`.
    unsafe { NativeError::take(sys::rd_kafka_abort_transaction(client.native_ptr(), millis(wait))) }
}

/// Waits until every record has been acknowledged or has failed. Somebody else polls the delivery events.
pub(crate) fn flush<C: ClientContext>(client: &Client<C>, wait: Duration) -> Result<(), NativeError> {
    // SAFETY: the handle is alive as long as `client`.
    NativeError::check(unsafe { sys::rd_kafka_flush(client.native_ptr(), millis(wait)) })
}

/// Records in the client that have neither been acknowledged nor failed.
pub(crate) fn waiting<C: ClientContext>(client: &Client<C>) -> u64 {
    // SAFETY: the handle is alive as long as `client`.
    u64::try_from(unsafe { sys::rd_kafka_outq_len(client.native_ptr()) }).unwrap_or(0)
}

/// Hands a record to the client, which copies it. No partition: the partitioner chooses by the key. The opaque comes
/// back with the delivery.
pub(crate) fn produce<C: ClientContext>(
    client: &Client<C>,
    topic: &CStr,
    partition: Option<i32>,
    record: &OutRecord,
    opaque: usize,
) -> Result<(), NativeError> {
    let headers = NativeHeaders::new(&record.headers)?;
    let (value, value_length) = field(record.value.as_deref());
    let (key, key_length) = field(record.key.as_deref());
    // SAFETY: the variadic arguments are those that rdkafka.h documents for each tag, in type and order; with F_COPY
    // key and value are copied before the call returns. The headers become librdkafka's only where it succeeds.
    let code = unsafe {
        sys::rd_kafka_producev(
            client.native_ptr(),
            RD_KAFKA_VTYPE_TOPIC,
            topic.as_ptr(),
            RD_KAFKA_VTYPE_PARTITION,
            partition.unwrap_or(PARTITION_UNASSIGNED),
            RD_KAFKA_VTYPE_MSGFLAGS,
            sys::RD_KAFKA_MSG_F_COPY,
            RD_KAFKA_VTYPE_VALUE,
            value,
            value_length,
            RD_KAFKA_VTYPE_KEY,
            key,
            key_length,
            RD_KAFKA_VTYPE_OPAQUE,
            opaque as *mut c_void,
            RD_KAFKA_VTYPE_TIMESTAMP,
            record.timestamp.map_or(0_i64, |time| time.0),
            RD_KAFKA_VTYPE_HEADERS,
            headers.0,
            RD_KAFKA_VTYPE_END,
        )
    };
    NativeError::check(code)?;
    headers.given_away();
    Ok(())
}

/// Null for a missing field; an empty one has an address and no length.
fn field(bytes: Option<&[u8]>) -> (*mut c_void, usize) {
    match bytes {
        None => (ptr::null_mut(), 0),
        Some(bytes) => (bytes.as_ptr().cast_mut().cast(), bytes.len()),
    }
}

/// Headers for a record to be produced; null where there are none.
struct NativeHeaders(*mut sys::rd_kafka_headers_t);

impl NativeHeaders {
    fn new(headers: &[Header]) -> Result<Self, NativeError> {
        if headers.is_empty() {
            return Ok(Self(ptr::null_mut()));
        }
        // SAFETY: takes no pointer; the list is ours, and given back by `Drop` also where adding fails.
        let list = Self(unsafe { sys::rd_kafka_headers_new(headers.len()) });
        for header in headers {
            let (value, length) = field(header.value.as_deref());
            // SAFETY: name and value are valid for their lengths and are copied.
            NativeError::check(unsafe {
                sys::rd_kafka_header_add(
                    list.0,
                    header.name.as_ptr().cast(),
                    header.name.len().cast_signed(),
                    value,
                    length.cast_signed(),
                )
            })?;
        }
        Ok(list)
    }

    /// librdkafka owns them now.
    fn given_away(mut self) {
        self.0 = ptr::null_mut();
    }
}

impl Drop for NativeHeaders {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: they are still ours.
            unsafe { sys::rd_kafka_headers_destroy(self.0) };
        }
    }
}
