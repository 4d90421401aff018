//! Where a record stands and who an event is.
//!
//! `Offset` names a record, `NextOffset` names the place after it: the two are different types because mixing them
//! up is the classic off-by-one of every consumer. An identity is the 128-bit keyed hash of
//! (namespace, counter, event id): rule R1.
//!
//! Keeps: ID-1 (the hash never depends on worker, partition or time).

use std::fmt;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

/// The UUID that Kafka gives a topic when it is created; a re-created topic has another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// The id of no topic: brokers that predate topic ids say this.
    pub const ZERO: Self = Self([0; 16]);

    /// Reads the 32 hexadecimal digits that [`fmt::Display`] writes.
    pub fn parse_hex(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The number of a partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Partition(pub u32);

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The offset of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Offset(pub i64);

impl Offset {
    /// The place after this record: what is committed once it is done.
    pub const fn next(self) -> NextOffset {
        NextOffset(self.0.saturating_add(1))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The next offset to read: everything below it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NextOffset(pub i64);

impl NextOffset {
    /// The beginning of a log.
    pub const START: Self = Self(0);

    /// Whether the record at `offset` is done already.
    pub const fn covers(self, offset: Offset) -> bool {
        offset.0 < self.0
    }
}

impl fmt::Display for NextOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A topic and one of its partitions, by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: std::sync::Arc<str>,
    /// The partition's number.
    pub partition: Partition,
}

impl TopicPartition {
    /// Names a partition.
    pub fn new(topic: impl Into<std::sync::Arc<str>>, partition: u32) -> Self {
        Self { topic: topic.into(), partition: Partition(partition) }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A partition of one incarnation of an input: the key of everything the books say about a source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source {
    /// Which incarnation of the topic.
    pub topic_id: TopicId,
    /// Which of its partitions.
    pub partition: Partition,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic_id, self.partition)
    }
}

/// Where an event was first appended: for ever its name in failures, pins and redrives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Coordinate {
    /// The source partition.
    pub source: Source,
    /// The record.
    pub offset: Offset,
    /// Which event of a packed record; 0 otherwise.
    pub index: u32,
}

/// 128-bit keyed hash of (namespace, counter, event id). Never 0: 0 marks an empty slot in tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u128);

impl Identity {
    /// Takes a stored hash back; 0 is moved to 1, as [`Hasher::identity`] does.
    pub const fn from_raw(raw: u128) -> Self {
        Self(if raw == 0 { 1 } else { raw })
    }

    /// The stored form.
    pub const fn raw(self) -> u128 {
        self.0
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// 32-bit check of an event's payload (kind, delta, dimensions as sent, event time): tells a duplicate from a
/// conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PayloadCheck(pub u32);

/// The version of the identity hash. It is part of the key, so another version is another identity.
pub const IDENTITY_HASH_VERSION: u8 = 1;

/// Hashes identities and payloads the same way on every worker, for ever.
///
/// XXH3-128 (Yann Collet, xxHash 0.8 specification) over length-prefixed parts, seeded by a key derived from the
/// app's name and the hash's version: two apps on one cluster do not share identities.
#[derive(Clone, Debug)]
pub struct Hasher {
    seed: u64,
    buffer: Vec<u8>,
}

impl Hasher {
    /// The hasher of an app.
    pub fn new(app: &str) -> Self {
        let mut key = vec![IDENTITY_HASH_VERSION];
        key.extend_from_slice(app.as_bytes());
        Self { seed: xxh3_64(&key), buffer: Vec::with_capacity(256) }
    }

    /// The identity of an event id within a counter (R1). Ids are opaque bytes: no trimming, no case folding.
    pub fn identity(&mut self, namespace: &[u8], counter: &[u8], event_id: &[u8]) -> Identity {
        self.buffer.clear();
        for part in [namespace, counter, event_id] {
            push_part(&mut self.buffer, part);
        }
        Identity::from_raw(xxh3_128_with_seed(&self.buffer, self.seed))
    }

    /// The check of a payload: kind, delta, event time, then every declared dimension in order, as sent.
    pub fn payload<'a>(
        &mut self,
        kind: u8,
        delta: i64,
        event_time_ms: i64,
        dimensions: impl Iterator<Item = &'a [u8]>,
    ) -> PayloadCheck {
        self.buffer.clear();
        self.buffer.push(kind);
        self.buffer.extend_from_slice(&delta.to_le_bytes());
        self.buffer.extend_from_slice(&event_time_ms.to_le_bytes());
        for part in dimensions {
            push_part(&mut self.buffer, part);
        }
        let hash = xxh3_128_with_seed(&self.buffer, self.seed);
        PayloadCheck((hash & u128::from(u32::MAX)) as u32)
    }
}

fn push_part(buffer: &mut Vec<u8>, part: &[u8]) {
    buffer.extend_from_slice(&(part.len() as u32).to_le_bytes());
    buffer.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_stored_for_ever() {
        let mut hasher = Hasher::new("shop");
        let identity = hasher.identity(b"default", b"clicks", b"e1");
        assert_eq!(format!("{identity:?}"), GOLDEN_IDENTITY);
        assert_eq!(hasher.payload(0, 1, 1_000, [b"eu".as_slice()].into_iter()), PayloadCheck(GOLDEN_CHECK));
    }

    // Changing either of these makes every running deployment forget what it has seen.
    const GOLDEN_IDENTITY: &str = "7a4161ee73d25ec21899d6f1ab04f867";
    const GOLDEN_CHECK: u32 = 1_106_851_720;

    #[test]
    fn parts_cannot_run_into_each_other() {
        let mut hasher = Hasher::new("shop");
        // T9: joined with "-" these are equal.
        assert_ne!(hasher.identity(b"a", b"b-c", b"d"), hasher.identity(b"a-b", b"c", b"d"));
        assert_ne!(hasher.identity(b"", b"ab", b"c"), hasher.identity(b"a", b"b", b"c"));
        assert_ne!(hasher.identity(b"n", b"A", b"e1"), hasher.identity(b"n", b"B", b"e1"));
    }

    #[test]
    fn apps_do_not_share_identities() {
        let one = Hasher::new("shop").identity(b"n", b"c", b"e");
        let two = Hasher::new("shop2").identity(b"n", b"c", b"e");
        assert_ne!(one, two);
    }

    #[test]
    fn payload_check_sees_every_field() {
        let mut hasher = Hasher::new("shop");
        let mut check = |kind, delta, time, dims: &[&str]| {
            hasher.payload(kind, delta, time, dims.iter().map(|d| d.as_bytes()))
        };
        let base = check(0, 1, 1_000, &["eu", ""]);
        assert_eq!(base, check(0, 1, 1_000, &["eu", ""]));
        for other in [
            check(1, 1, 1_000, &["eu", ""]),
            check(0, 2, 1_000, &["eu", ""]),
            check(0, 1, 1_001, &["eu", ""]),
            check(0, 1, 1_000, &["us", ""]),
            check(0, 1, 1_000, &["", "eu"]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn topic_id_text_round_trips() {
        let id = TopicId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(TopicId::parse_hex(&id.to_string()), Some(id));
        assert_eq!(TopicId::parse_hex("xyz"), None);
    }

    #[test]
    fn next_offset_covers_what_is_below() {
        assert!(Offset(9).next().covers(Offset(9)));
        assert!(!Offset(9).next().covers(Offset(10)));
    }
}
