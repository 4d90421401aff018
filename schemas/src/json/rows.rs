//! The public rows as JSON (contract §3): flat, the key's fields repeated in the value, one column per dimension.
//!
//! The order of fields is fixed. 64-bit integers are numbers; a sum is a number beside its exact text, and null with
//! `overflow` outside i64 (R8). Times are milliseconds since the epoch, what is not known is null.

use std::sync::Arc;

use serde::Deserialize;
use tallyflow_core::codec::{LedgerDecoder, RowEncoder};
use tallyflow_core::counter::decode_key_text;
use tallyflow_core::ids::{NextOffset, Partition, TopicId};
use tallyflow_core::outputs::{CountRow, LedgerRow, OwnedLedgerRow, WindowRow};
use tallyflow_core::record::OutRecord;
use tallyflow_core::sum::Sum;
use tallyflow_core::tallies::Tallies;
use tallyflow_core::time::TimestampMs;

/// Encodes rows as JSON, and reads ledger rows back.
#[derive(Clone, Debug)]
pub struct JsonRows {
    /// The declared dimensions, in the order of the counter keys.
    dimensions: Arc<[String]>,
}

impl JsonRows {
    /// The encoder for rows with these dimensions.
    pub const fn new(dimensions: Arc<[String]>) -> Self {
        Self { dimensions }
    }

    /// Namespace, counter and dimensions of an encoded counter key.
    fn put_counter(&self, object: &mut Object<'_>, key: &[u8]) {
        let mut parts = decode_key_text(key).unwrap_or_default().into_iter();
        object.text("namespace", parts.next().unwrap_or(""));
        object.text("counter", parts.next().unwrap_or(""));
        for name in self.dimensions.iter() {
            object.text(name, parts.next().unwrap_or(""));
        }
    }
}

impl RowEncoder for JsonRows {
    fn window(&self, row: &WindowRow<'_>, out: &mut OutRecord) {
        let put_key = |object: &mut Object<'_>| {
            self.put_counter(object, row.key);
            object.text("window", row.window);
            object.integer("window_start", row.start.0);
        };
        let (key, value) = open(out);
        let mut object = Object::open(key);
        put_key(&mut object);
        object.close();
        let mut object = Object::open(value);
        put_key(&mut object);
        object.integer("window_end", row.end.0);
        put_sum(&mut object, ["sum", "sum_exact"], row.sum);
        object.integer("events", row.events);
        object.integer("revision", row.revision.0);
        object.text("state", row.state.name());
        object.time("complete_through", row.complete_through);
        object.close();
    }

    fn count(&self, row: &CountRow<'_>, out: &mut OutRecord) {
        let (key, value) = open(out);
        let mut object = Object::open(key);
        self.put_counter(&mut object, row.key);
        object.close();
        let mut object = Object::open(value);
        self.put_counter(&mut object, row.key);
        put_sum(&mut object, ["total", "total_exact"], row.total);
        object.integer("events", row.events);
        object.integer("epoch", row.epoch);
        object.integer("revision", row.revision.0);
        object.time("cleared_at", row.cleared_at);
        object.time("complete_through", row.complete_through);
        object.close();
    }

    fn ledger(&self, row: &LedgerRow<'_>, out: &mut OutRecord) {
        let topic_id = row.source_topic_id.to_string();
        let put_key = |object: &mut Object<'_>| {
            object.text("stage", row.stage);
            object.text("task", row.task);
            object.text("source_topic_id", &topic_id);
            object.integer("source_partition", row.source_partition.0);
        };
        let (key, value) = open(out);
        let mut object = Object::open(key);
        put_key(&mut object);
        object.close();
        let mut object = Object::open(value);
        put_key(&mut object);
        object.text("source_topic", row.source_topic);
        for (name, tally) in columns(&row.tallies) {
            object.integer(name, tally);
        }
        object.integer("through_offset", row.through_offset.0);
        object.time("complete_through", row.complete_through);
        object.close();
    }
}

/// The ledger's columns, in order.
const fn columns(tallies: &Tallies) -> [(&'static str, u64); 11] {
    [
        ("received", tallies.received),
        ("admitted", tallies.admitted),
        ("counted", tallies.counted),
        ("duplicate", tallies.duplicate),
        ("conflict", tallies.conflict),
        ("late", tallies.late),
        ("future", tallies.future),
        ("invalid", tallies.invalid),
        ("held", tallies.held),
        ("discarded", tallies.discarded),
        ("skipped", tallies.skipped),
    ]
}

fn put_sum(object: &mut Object<'_>, [number, exact]: [&str; 2], sum: Sum) {
    match sum.public() {
        Some(public) => object.integer(number, public),
        None => object.null(number),
    }
    object.decimal(exact, sum.0);
    object.boolean("overflow", sum.public().is_none());
}

/// Empties the record's key, value and headers, keeping their memory. The timestamp is the caller's.
fn open(out: &mut OutRecord) -> (&mut Vec<u8>, &mut Vec<u8>) {
    out.headers.clear();
    let key = out.key.get_or_insert_default();
    let value = out.value.get_or_insert_default();
    key.clear();
    value.clear();
    (key, value)
}

/// Writes one flat object.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    mark: u8,
}

impl<'a> Object<'a> {
    const fn open(out: &'a mut Vec<u8>) -> Self {
        Self { out, mark: b'{' }
    }

    fn name(&mut self, name: &str) {
        self.out.push(self.mark);
        self.mark = b',';
        put_text(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        put_text(self.out, value);
    }

    fn integer(&mut self, name: &str, value: impl itoa::Integer) {
        self.name(name);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    fn decimal(&mut self, name: &str, value: i128) {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.out.push(b'"');
    }

    fn boolean(&mut self, name: &str, value: bool) {
        self.name(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn null(&mut self, name: &str) {
        self.name(name);
        self.out.extend_from_slice(b"null");
    }

    fn time(&mut self, name: &str, value: Option<TimestampMs>) {
        match value {
            Some(time) => self.integer(name, time.0),
            None => self.null(name),
        }
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

/// Appends a string with its quotes (RFC 8259 §7).
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else {
            break;
        };
        put_escape(out, *byte);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn put_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// A ledger key as it was written.
#[derive(Deserialize, PartialEq, Eq)]
struct LedgerKey {
    stage: String,
    task: String,
    source_topic_id: String,
    source_partition: u32,
}

/// A ledger value as it was written.
#[derive(Deserialize)]
struct LedgerValue {
    #[serde(flatten)]
    key: LedgerKey,
    source_topic: String,
    received: u64,
    admitted: u64,
    counted: u64,
    duplicate: u64,
    conflict: u64,
    late: u64,
    future: u64,
    invalid: u64,
    held: u64,
    discarded: u64,
    skipped: u64,
    through_offset: i64,
    complete_through: Option<i64>,
}

impl LedgerDecoder for JsonRows {
    /// The row, where value and key are a ledger row's and the key names the same row as the value. Fields of later
    /// versions are passed over.
    fn ledger<'a>(&self, key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Option<OwnedLedgerRow> {
        let key: LedgerKey = serde_json::from_slice(key?).ok()?;
        let row: LedgerValue = serde_json::from_slice(value?).ok()?;
        if row.key != key {
            return None;
        }
        Some(OwnedLedgerRow {
            source_topic_id: TopicId::parse_hex(&key.source_topic_id)?,
            source_partition: Partition(key.source_partition),
            stage: key.stage,
            task: key.task,
            source_topic: row.source_topic,
            tallies: Tallies {
                received: row.received,
                admitted: row.admitted,
                counted: row.counted,
                duplicate: row.duplicate,
                conflict: row.conflict,
                late: row.late,
                future: row.future,
                invalid: row.invalid,
                held: row.held,
                discarded: row.discarded,
                skipped: row.skipped,
            },
            through_offset: NextOffset(row.through_offset),
            complete_through: row.complete_through.map(TimestampMs),
        })
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
