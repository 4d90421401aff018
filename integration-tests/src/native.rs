//! The calls into librdkafka that the safe interface has no words for: header names that are not UTF-8.
//!
//! The only unsafe code of the harness beside the signals of `process`.
#![allow(unsafe_code, reason = "header names of any bytes exist only in the C interface")]
use std::ffi::{CStr, CString, c_void};
use std::ptr;

use rdkafka::bindings as sys;
use rdkafka::message::BorrowedMessage;

use crate::record::{Header, Outgoing};

type Variant = sys::rd_kafka_vu_s__bindgen_ty_1;

/// The client's own copy is taken of key and value (`RD_KAFKA_MSG_F_COPY`).
const COPY: i32 = 2;

/// Why a record was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The client's queue is full: poll and try again.
    QueueFull,
    /// Anything else, in librdkafka's words.
    Other(String),
}

/// Hands one record to `client`; `number` comes back in its delivery report.
///
/// `client` is a live producer whose delivery opaque is a `usize`.
pub(crate) fn produce(
    client: *mut sys::rd_kafka_t,
    topic: &str,
    record: &Outgoing,
    number: usize,
) -> Result<(), Refused> {
    use sys::rd_kafka_vtype_t as tag;
    let topic = CString::new(topic).expect("a topic name has no NUL");
    let headers = new_headers(&record.headers);
    let entry = |vtype, u| sys::rd_kafka_vu_t { vtype, u };
    let cstr = topic.as_ptr();
    let mut variants = vec![
        entry(tag::RD_KAFKA_VTYPE_TOPIC, Variant { cstr }),
        entry(tag::RD_KAFKA_VTYPE_MSGFLAGS, Variant { i: COPY }),
        entry(tag::RD_KAFKA_VTYPE_KEY, memory(record.key.as_deref())),
        entry(tag::RD_KAFKA_VTYPE_VALUE, memory(record.value.as_deref())),
        entry(tag::RD_KAFKA_VTYPE_HEADERS, Variant { headers }),
    ];
    let ptr = ptr::without_provenance_mut::<c_void>(number);
    variants.push(entry(tag::RD_KAFKA_VTYPE_OPAQUE, Variant { ptr }));
    if let Some(i32_) = record.partition {
        variants.push(entry(tag::RD_KAFKA_VTYPE_PARTITION, Variant { i32_ }));
    }
    if let Some(i64_) = record.timestamp {
        variants.push(entry(tag::RD_KAFKA_VTYPE_TIMESTAMP, Variant { i64_ }));
    }
    // SAFETY: all pointers live until the call returns, and key and value are copied by it. On success it owns the
    // headers, on failure we do; the error is ours to destroy.
    unsafe {
        let error = sys::rd_kafka_produceva(client, variants.as_ptr(), variants.len());
        if error.is_null() {
            return Ok(());
        }
        let full = sys::rd_kafka_error_code(error) == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__QUEUE_FULL;
        let text = CStr::from_ptr(sys::rd_kafka_error_string(error));
        let text = text.to_string_lossy().into_owned();
        sys::rd_kafka_error_destroy(error);
        sys::rd_kafka_headers_destroy(headers);
        Err(if full { Refused::QueueFull } else { Refused::Other(text) })
    }
}

/// Null for `None`; an empty slice keeps a pointer that is not null, which librdkafka takes for an empty value.
fn memory(bytes: Option<&[u8]>) -> Variant {
    let (ptr, size) = match bytes {
        Some(bytes) => (bytes.as_ptr().cast_mut().cast::<c_void>(), bytes.len()),
        None => (ptr::null_mut(), 0),
    };
    let mem = sys::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 { ptr, size };
    Variant { mem }
}

fn new_headers(headers: &[Header]) -> *mut sys::rd_kafka_headers_t {
    // SAFETY: names and values live until each call returns, which copies them.
    unsafe {
        let list = sys::rd_kafka_headers_new(headers.len());
        for header in headers {
            let (name, name_size) = (header.name.as_ptr().cast(), header.name.len() as isize);
            let (value, value_size) = match &header.value {
                Some(value) => (value.as_ptr().cast::<c_void>(), value.len() as isize),
                None => (ptr::null(), 0),
            };
            sys::rd_kafka_header_add(list, name, name_size, value, value_size);
        }
        list
    }
}

/// The headers of a message that was read, in order.
pub(crate) fn headers(message: &BorrowedMessage<'_>) -> Vec<Header> {
    let mut headers = Vec::new();
    // SAFETY: the list belongs to the message and is not kept; librdkafka ends names with NUL and gives each value's
    // size.
    unsafe {
        let mut list = ptr::null_mut();
        let found = sys::rd_kafka_message_headers(message.ptr(), &mut list);
        if found != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return headers;
        }
        for index in 0..sys::rd_kafka_header_cnt(list) {
            let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
            sys::rd_kafka_header_get_all(list, index, &mut name, &mut value, &mut size);
            let value =
                (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), size).to_vec());
            headers.push(Header { name: CStr::from_ptr(name).to_bytes().to_vec(), value });
        }
    }
    headers
}
