//! The records of `dlq` and `late`: exact key, value and headers of the original, then ours (contract §4).
//!
//! Foreign headers pass unchanged and in order, repeats and nulls included. Headers of ours on a topic that is not
//! ours are stripped. Where the bytes are not at hand (a conflict found by count), the record is a stub with its
//! origin.

use tallyflow_core::headers as names;
use tallyflow_core::ids::{Coordinate, TopicId};
use tallyflow_core::record::{Header, OutRecord, RecordTime, RecordView};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Failure, LateReason, Verdict};

/// Where a record was first appended.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The topic's name.
    pub topic: &'a str,
    /// The coordinate, its index 0 for a plain record.
    pub coordinate: Coordinate,
    /// Whether the record is packed, so that the index matters.
    pub packed: bool,
    /// The time of the first append.
    pub time: RecordTime,
}

/// The largest value that is dead-lettered with its bytes. Topics of failures take 16 MiB; keys and headers need
/// room too.
pub const VALUE_LIMIT_BYTES: usize = 15 * 1024 * 1024;

/// A dead letter: what failed, where and why.
pub fn dead_letter(
    record: Option<&RecordView<'_>>,
    origin: &Origin<'_>,
    event_id: Option<&str>,
    stage: &str,
    failure: &Failure,
    now: TimestampMs,
) -> OutRecord {
    let mut out = carry(record, origin);
    if let Some(event_id) = event_id {
        put(&mut out, names::EVENT_ID, event_id);
    }
    put(&mut out, names::FAILURE_ID, &failure_id(stage, &origin.coordinate));
    put(&mut out, names::STAGE, stage);
    put(&mut out, names::CONSUMER_VERSION, env!("CARGO_PKG_VERSION"));
    put(&mut out, names::FIRST_FAILURE_TS, &now.0.to_string());
    put(&mut out, names::LAST_FAILURE_TS, &now.0.to_string());
    put(&mut out, names::ERROR_CLASS, failure.category.class().name());
    put(&mut out, names::ERROR_CATEGORY, failure.category.name());
    put(&mut out, names::ERROR_TYPE, failure.category.name());
    let (message, was_cut) = names::cut(&failure.message, names::ERROR_MESSAGE_LIMIT_BYTES);
    put(&mut out, names::ERROR_MESSAGE, message);
    if was_cut {
        put(&mut out, names::ERROR_TRUNCATED, "true");
    }
    out.timestamp = Some(now);
    out
}

/// A late or future event.
pub fn untimely(
    record: Option<&RecordView<'_>>,
    origin: &Origin<'_>,
    verdict: Verdict,
    reason: LateReason,
    age_ms: Option<i64>,
    now: TimestampMs,
) -> OutRecord {
    let mut out = carry(record, origin);
    put(&mut out, names::VERDICT, verdict.name());
    put(&mut out, names::REASON, reason.name());
    if let Some(age_ms) = age_ms {
        put(&mut out, names::AGE_MS, &age_ms.to_string());
    }
    out.timestamp = Some(now);
    out
}

/// The original's bytes with its foreign headers and its origin; a stub where there is no original.
fn carry(record: Option<&RecordView<'_>>, origin: &Origin<'_>) -> OutRecord {
    let mut out = OutRecord::default();
    let mut omitted = record.is_none();
    if let Some(record) = record {
        out.key = record.key.map(<[u8]>::to_vec);
        omitted = record.value.is_some_and(|value| value.len() > VALUE_LIMIT_BYTES);
        if !omitted {
            out.value = record.value.map(<[u8]>::to_vec);
        }
        let foreign = record.headers.iter().filter(|h| !h.name.starts_with(names::PREFIX.as_bytes()));
        out.headers
            .extend(foreign.map(|h| Header { name: h.name.to_vec(), value: h.value.map(<[u8]>::to_vec) }));
    }
    if omitted {
        put(&mut out, names::PAYLOAD_OMITTED, "true");
    }
    put_origin(&mut out, origin);
    out
}

fn put_origin(out: &mut OutRecord, origin: &Origin<'_>) {
    let coordinate = &origin.coordinate;
    put(out, names::ORIG_TOPIC, origin.topic);
    if coordinate.source.topic_id != TopicId::ZERO {
        put(out, names::ORIG_TOPIC_ID, &coordinate.source.topic_id.to_string());
    }
    put(out, names::ORIG_PARTITION, &coordinate.source.partition.to_string());
    put(out, names::ORIG_OFFSET, &coordinate.offset.to_string());
    if origin.packed {
        put(out, names::ORIG_INDEX, &coordinate.index.to_string());
    }
    let (time, kind) = match origin.time {
        RecordTime::LogAppend(time) => (time, "LogAppendTime"),
        RecordTime::Create(time) => (time, "CreateTime"),
        RecordTime::Unknown => return,
    };
    put(out, names::ORIG_TIMESTAMP, &time.0.to_string());
    put(out, names::ORIG_TIMESTAMP_TYPE, kind);
}

/// One value per name: replaced, never appended.
fn put(out: &mut OutRecord, name: &str, value: &str) {
    out.headers.retain(|header| header.name != name.as_bytes());
    out.headers.push(Header { name: name.as_bytes().to_vec(), value: Some(value.as_bytes().to_vec()) });
}

/// `hash(stage, origin topic id, partition, offset, index)` as 32 lower-case hexadecimal digits: a redelivery of
/// the same failure has the same id.
pub fn failure_id(stage: &str, coordinate: &Coordinate) -> String {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(stage.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&coordinate.source.topic_id.0);
    bytes.extend_from_slice(&coordinate.source.partition.0.to_le_bytes());
    bytes.extend_from_slice(&coordinate.offset.0.to_le_bytes());
    bytes.extend_from_slice(&coordinate.index.to_le_bytes());
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes))
}

#[cfg(test)]
#[path = "failures_tests.rs"]
mod tests;
