//! librdkafka's own calls, where rdkafka has none, makes them slow, or would panic. The only `unsafe` of the crate.
//!
//! | file | calls | why not through rdkafka |
//! | --- | --- | --- |
//! | [`producer`] | init, begin, offsets, commit, abort, produce, flush | its commit takes 100 ms at least, its header names must be UTF-8 |
//! | [`consumer`] | poll, assign, seek, position, group metadata | it drops where an error happened, unwraps header names, hides the generation |
//! | [`admin`] | DescribeTopics, ListOffsets | it has neither |
//!
//! Rules: each pointer is owned by one value whose `Drop` gives it back; nothing read from a pointer outlives its
//! owner; functions that are not `unsafe` are sound for every argument.
//!
//! A known hole that we inherit: error codes come as a Rust enum straight from C, and a code the enum lacks would be
//! undefined behaviour. The protocol versions that librdkafka 2.12 speaks carry no such code.

// rdkafka-sys is a C interface.
#![allow(unsafe_code)]

pub(crate) mod admin;
pub(crate) mod consumer;
pub(crate) mod producer;

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka_sys as sys;

/// An error of a native call, with librdkafka's flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NativeError {
    /// Which.
    pub(crate) code: RDKafkaErrorCode,
    /// librdkafka's words.
    pub(crate) text: String,
    /// The client is unusable from now on.
    pub(crate) fatal: bool,
    /// The same call may be made again.
    pub(crate) retriable: bool,
    /// The transaction must be aborted.
    pub(crate) requires_abort: bool,
}

impl NativeError {
    /// An error that has only a code.
    pub(crate) fn plain(code: RDKafkaErrorCode) -> Self {
        Self { code, text: String::new(), fatal: false, retriable: false, requires_abort: false }
    }

    /// Takes an error object over; null is no error.
    ///
    /// # Safety
    ///
    /// `error` is null, or was returned to the caller, who owned it.
    unsafe fn take(error: *mut sys::rd_kafka_error_t) -> Result<(), Self> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: by the contract `error` is valid until it is destroyed, here and once.
        unsafe {
            let taken = Self::read(error);
            sys::rd_kafka_error_destroy(error);
            Err(taken)
        }
    }

    /// Reads an error object that stays somebody else's.
    ///
    /// # Safety
    ///
    /// `error` is not null and valid.
    unsafe fn read(error: *const sys::rd_kafka_error_t) -> Self {
        // SAFETY: by the contract.
        unsafe {
            Self {
                code: sys::rd_kafka_error_code(error).into(),
                text: text(sys::rd_kafka_error_string(error)),
                fatal: sys::rd_kafka_error_is_fatal(error) != 0,
                retriable: sys::rd_kafka_error_is_retriable(error) != 0,
                requires_abort: sys::rd_kafka_error_txn_requires_abort(error) != 0,
            }
        }
    }

    fn check(code: sys::rd_kafka_resp_err_t) -> Result<(), Self> {
        match code {
            sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(Self::plain(code.into())),
        }
    }
}

/// An element of a list of partitions, copied out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListEntry {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// Commit metadata; bytes that are no text are replaced, not unwrapped.
    pub(crate) metadata: String,
    /// What went wrong with this element.
    pub(crate) error: Option<RDKafkaErrorCode>,
}

/// Copies a list out.
pub(crate) fn entries(list: &TopicPartitionList) -> Vec<ListEntry> {
    // SAFETY: the pointer belongs to `list`, which lives on.
    unsafe { entries_at(list.ptr()) }
}

/// # Safety
///
/// `list` is null or valid.
unsafe fn entries_at(list: *const sys::rd_kafka_topic_partition_list_t) -> Vec<ListEntry> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: a valid list holds `cnt` elements at `elems`.
    unsafe {
        let count = usize::try_from((*list).cnt).unwrap_or(0);
        (0..count).map(|index| entry_at((*list).elems.add(index))).collect()
    }
}

/// # Safety
///
/// `element` is not null and valid.
unsafe fn entry_at(element: *const sys::rd_kafka_topic_partition_t) -> ListEntry {
    // SAFETY: by the contract.
    let element = unsafe { &*element };
    // SAFETY: metadata is null or `metadata_size` bytes long, and lives as long as the element.
    let metadata = unsafe { bytes(element.metadata.cast(), element.metadata_size) };
    ListEntry {
        // SAFETY: a topic's name is a C string that lives as long as the element.
        topic: unsafe { text(element.topic) },
        partition: element.partition,
        offset: element.offset,
        metadata: String::from_utf8_lossy(metadata.unwrap_or_default()).into_owned(),
        error: NativeError::check(element.err).err().map(|error| error.code),
    }
}

/// Copies a C string; null is empty, what is no text is replaced.
///
/// # Safety
///
/// `text` is null or a valid C string.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A field that may be null.
///
/// # Safety
///
/// `start` is null, or `length` bytes at it are valid for `'a`.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> Option<&'a [u8]> {
    if start.is_null() {
        return None;
    }
    // SAFETY: by the contract.
    Some(unsafe { std::slice::from_raw_parts(start, length) })
}

/// librdkafka's timeouts are whole milliseconds; what is left of one is rounded up, lest a wait become a busy loop.
fn millis(duration: Duration) -> c_int {
    c_int::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(c_int::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::Offset;

    #[test]
    fn lists_are_copied_out() {
        let mut list = TopicPartitionList::new();
        let mut element = list.add_partition("events", 3);
        element.set_offset(Offset::Offset(7)).unwrap();
        element.set_metadata("0123");
        let all = entries(&list);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].topic.as_str(), all[0].partition, all[0].offset), ("events", 3, 7));
        assert_eq!((all[0].metadata.as_str(), all[0].error), ("0123", None));
        assert!(entries(&TopicPartitionList::new()).is_empty());
    }

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!(millis(Duration::ZERO), 0);
        assert_eq!(millis(Duration::from_micros(1)), 1);
        assert_eq!(millis(Duration::from_millis(20)), 20);
        assert_eq!(millis(Duration::MAX), c_int::MAX);
    }
}
