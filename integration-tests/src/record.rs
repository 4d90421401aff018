//! Records as the tests write and read them: bytes everywhere, since a header's name need not be UTF-8.
use std::fmt;

/// A header, its name and value exactly as they are on the wire.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Any bytes but NUL.
    pub name: Vec<u8>,
    /// `None` is Kafka's null, which is not the empty value.
    pub value: Option<Vec<u8>>,
}

impl Header {
    /// A header with a value.
    pub fn new(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        let (name, value) = (name.as_ref().to_vec(), Some(value.as_ref().to_vec()));
        Self { name, value }
    }

    /// A header whose value is null.
    pub fn null(name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref().to_vec();
        Self { name, value: None }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_deref().map(<[u8]>::escape_ascii);
        match value {
            Some(value) => write!(f, "{}={value}", self.name.escape_ascii()),
            None => write!(f, "{} (null)", self.name.escape_ascii()),
        }
    }
}

/// A record to be written with [`Kafka::produce`](crate::Kafka::produce).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// `None`: chosen by the murmur2 hash of the key, at random without a key.
    pub partition: Option<i32>,
    /// Epoch ms; `None`: now. A topic with LogAppendTime replaces it.
    pub timestamp: Option<i64>,
    /// `None` is a null key.
    pub key: Option<Vec<u8>>,
    /// `None` is a null value, a tombstone.
    pub value: Option<Vec<u8>>,
    /// In this order, duplicates included.
    pub headers: Vec<Header>,
}

impl Outgoing {
    /// A record with a value and nothing else.
    pub fn value(value: impl AsRef<[u8]>) -> Self {
        Self { value: Some(value.as_ref().to_vec()), ..Self::default() }
    }

    /// The same record with this key.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Self {
        self.key = Some(key.as_ref().to_vec());
        self
    }

    /// The same record for this partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// The same record with this timestamp, epoch ms.
    #[must_use]
    pub fn timestamp(mut self, timestamp_ms: i64) -> Self {
        self.timestamp = Some(timestamp_ms);
        self
    }

    /// The same record with one header more.
    #[must_use]
    pub fn header(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }
}

/// Who set a record's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampKind {
    /// The producer.
    CreateTime,
    /// The broker, when it appended the record.
    LogAppendTime,
    /// A record without a timestamp.
    Missing,
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The partition it is in.
    pub partition: i32,
    /// Its offset in that partition.
    pub offset: i64,
    /// Epoch ms; -1 when missing.
    pub timestamp: i64,
    /// Who set the timestamp.
    pub timestamp_kind: TimestampKind,
    /// `None` is a null key.
    pub key: Option<Vec<u8>>,
    /// `None` is a null value.
    pub value: Option<Vec<u8>>,
    /// In the order of the record, duplicates included.
    pub headers: Vec<Header>,
}

impl Record {
    /// The value as text.
    ///
    /// # Panics
    /// When the value is null or not UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.value.as_deref().expect("the record has a value"))
            .expect("the record's value is UTF-8")
    }

    /// The value as JSON.
    ///
    /// # Panics
    /// When the value is null or not JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.text()).expect("the record's value is JSON")
    }

    /// The key as JSON.
    ///
    /// # Panics
    /// When the key is null or not JSON.
    #[must_use]
    pub fn key_json(&self) -> serde_json::Value {
        serde_json::from_slice(self.key.as_deref().expect("the record has a key"))
            .expect("the record's key is JSON")
    }

    /// The value of the last header of this name as text; `None` when there is none, or its value is null or not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().rfind(|h| h.name == name.as_bytes())?;
        std::str::from_utf8(header.value.as_deref()?).ok()
    }
}
