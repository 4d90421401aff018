//! Records as they are read and written, borrowed and owned.

use crate::ids::{Offset, Partition};
use crate::time::TimestampMs;

/// One header as read: the name may be any bytes, the value may be null. Order and repeats are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderView<'a> {
    /// The raw name.
    pub name: &'a [u8],
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
}

/// The timestamp of a record and who gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordTime {
    /// The broker, at append.
    LogAppend(TimestampMs),
    /// The producer.
    Create(TimestampMs),
    /// None at all.
    Unknown,
}

impl RecordTime {
    /// The instant, whoever gave it.
    pub const fn timestamp(self) -> Option<TimestampMs> {
        match self {
            Self::LogAppend(time) | Self::Create(time) => Some(time),
            Self::Unknown => None,
        }
    }
}

/// A record of an input, borrowed from the client's buffers.
///
/// `headers` is filled only where a record has some.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    /// The partition it was read from; the topic is known from the task.
    pub partition: Partition,
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp.
    pub time: RecordTime,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// The headers in order.
    pub headers: &'a [HeaderView<'a>],
}

/// A header to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The raw name.
    pub name: Vec<u8>,
    /// The value; `None` is null.
    pub value: Option<Vec<u8>>,
}

/// A record to be written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OutRecord {
    /// The key; `None` is null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is null.
    pub value: Option<Vec<u8>>,
    /// The headers in order.
    pub headers: Vec<Header>,
    /// The timestamp to ask for; `None` leaves it to the client. Never 0, which clients take for "now".
    pub timestamp: Option<TimestampMs>,
}
