//! Delta frames: what one commit of a count task decided. The task's changelog and its restart record.
//!
//! ```text
//! "TFD" 1
//! head       topic id of `entries` (16), part, parts, from, through, committed at
//! clocks     append clock?, complete through?, greatest future limit
//! skipped    offsets passed over, cumulative
//! vector     n · { input, topic id (16), partition, partitions, through, progress?,
//!                  admitted, counted, duplicate, conflict, late }          (tallies cumulative)
//! buckets    n · { id, first offset, end offset?, end clock? }             (the open one has no end)
//! opened     append clock when the open bucket began?
//! horizon    n · { from offset, threshold }
//! cursors    n · { window table, start, done?, slice, key }
//! bounds     emitted through, trim bound
//! pins       n · { identity (16), topic id (16), partition, offset, index } set, then released
//! dictionary n · encoded counter key
//! rows       n · { counter, slice start difference, sum, events }
//! ```
//!
//! A commit with more rows than a record holds writes several parts; the rows are spread over them, the rest is
//! repeated. A commit counts only when all its parts are there.
//!
//! Keeps: EO-3 (ranges join), TM-1, TM-2 (clocks, buckets and thresholds are the log's).

use super::pins::{Pin, read_pins, write_pins};
use super::wire::{self, FrameError, Reader};
use super::{Dictionary, FRAME_TARGET_BYTES, FRAME_VERSION, read_dictionary};
use crate::ids::{NextOffset, Partition, Source, TopicId};
use crate::processor::CellOrder;
use crate::sum::Sum;
use crate::tallies::Tallies;
use crate::time::TimestampMs;

const MAGIC: [u8; 3] = *b"TFD";

/// What a task knows of one source partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceRow {
    /// The input's name in topology.toml.
    pub input: String,
    /// The source partition.
    pub source: Source,
    /// How many partitions the source had when last heard from.
    pub source_partitions: u32,
    /// The next source offset to arrive.
    pub through: NextOffset,
    /// Everything appended before this has been read.
    pub progress: Option<TimestampMs>,
    /// This task's verdicts about the source's entries: admitted, counted, duplicate, conflict, late.
    pub tallies: Tallies,
}

/// A range of `entries` offsets whose ids are remembered and forgotten together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Grows by one from bucket to bucket.
    pub id: u64,
    /// First offset whose ids it holds.
    pub first: NextOffset,
    /// Exclusive end and the append clock there; `None` while it is open.
    pub end: Option<(NextOffset, TimestampMs)>,
}

/// From an offset on, entries with `event_time ≤ threshold` (F + U) cannot be judged any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HorizonStep {
    /// First offset judged by it.
    pub from: NextOffset,
    /// F + U.
    pub threshold: TimestampMs,
}

/// How far the finals of a window table have been said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The table's name.
    pub table: String,
    /// Every window that starts before this one is final.
    pub start: TimestampMs,
    /// Cells of the window at `start` up to and with this one are final; `None`: none of them.
    pub after: Option<CellOrder>,
}

/// What a batch added to one counter in one slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeltaRow<'a> {
    /// The encoded counter key.
    pub key: &'a [u8],
    /// Start of the slice.
    pub slice_start: TimestampMs,
    /// Σ deltas.
    pub sum: Sum,
    /// Number of events.
    pub events: u64,
}

/// Everything in a delta frame but its rows: the standing of the task after the commit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Which incarnation of `entries`.
    pub entries_topic_id: TopicId,
    /// First entries offset of the commit.
    pub from: NextOffset,
    /// The next entries offset to read.
    pub through: NextOffset,
    /// Wall clock of the commit, never before an earlier commit's: the timestamp of its rows.
    pub committed_at: TimestampMs,
    /// Highest append time heard of.
    pub append_clock: Option<TimestampMs>,
    /// The watermark.
    pub complete_through: Option<TimestampMs>,
    /// U: the greatest `future` limit of any frame (ms).
    pub future_max_ms: i64,
    /// Entries offsets passed over, cumulative.
    pub skipped: u64,
    /// The watermark vector with the tallies of each source partition.
    pub sources: Vec<SourceRow>,
    /// Remembered buckets, oldest first; the last one is open.
    pub buckets: Vec<Bucket>,
    /// The append clock when the open bucket began; `None` until the first clock was heard.
    pub bucket_opened_at: Option<TimestampMs>,
    /// Horizon thresholds that matter for remembered offsets, oldest first.
    pub horizon: Vec<HorizonStep>,
    /// Final cursors.
    pub cursors: Vec<Cursor>,
    /// Rows changed below this entries offset have been published.
    pub emitted_through: NextOffset,
    /// No entries offset below this is needed by anyone.
    pub trim_bound: NextOffset,
    /// Pins set by this commit.
    pub pins_set: Vec<Pin>,
    /// Pins released by this commit.
    pub pins_released: Vec<Pin>,
}

/// Collects the rows of a commit and writes its frames.
#[derive(Debug, Default)]
pub struct DeltaFrameBuilder {
    dictionary: Dictionary,
    rows: Vec<(u32, TimestampMs, Sum, u64)>,
}

impl DeltaFrameBuilder {
    /// Adds a row.
    pub fn push(&mut self, row: &DeltaRow<'_>) {
        let counter = self.dictionary.intern(row.key);
        self.rows.push((counter, row.slice_start, row.sum, row.events));
    }

    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it holds no row.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Drops all rows.
    pub fn clear(&mut self) {
        self.dictionary.clear();
        self.rows.clear();
    }

    /// Writes the commit's frames, one at least, and starts over.
    pub fn finish(&mut self, standing: &Standing) -> Vec<Vec<u8>> {
        let parts = split_rows(&self.dictionary, &self.rows);
        let count = parts.len() as u64;
        let mut frames = Vec::with_capacity(parts.len());
        for (part, range) in parts.into_iter().enumerate() {
            let mut out = Vec::with_capacity(1024);
            write_standing(&mut out, standing, part as u64, count);
            write_rows(&mut out, &self.dictionary, self.rows.get(range).unwrap_or(&[]));
            frames.push(out);
        }
        self.clear();
        frames
    }
}

/// Ranges of rows that each fit a record: a row costs at most 45 bytes (5 + 10 + 19 + 10, and its key's prefix).
fn split_rows(dictionary: &Dictionary, rows: &[(u32, TimestampMs, Sum, u64)]) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, (counter, ..)) in rows.iter().enumerate() {
        bytes += 45 + dictionary.get(*counter).len();
        if bytes >= FRAME_TARGET_BYTES {
            parts.push(start..at + 1);
            (start, bytes) = (at + 1, 0);
        }
    }
    if start < rows.len() || parts.is_empty() {
        parts.push(start..rows.len());
    }
    parts
}

fn write_standing(out: &mut Vec<u8>, s: &Standing, part: u64, parts: u64) {
    out.extend_from_slice(&MAGIC);
    out.push(FRAME_VERSION);
    out.extend_from_slice(&s.entries_topic_id.0);
    wire::put_u64(out, part);
    wire::put_u64(out, parts);
    wire::put_i64(out, s.from.0);
    wire::put_i64(out, s.through.0);
    wire::put_i64(out, s.committed_at.0);
    wire::put_option(out, s.append_clock.map(|t| t.0));
    wire::put_option(out, s.complete_through.map(|t| t.0));
    wire::put_i64(out, s.future_max_ms);
    wire::put_u64(out, s.skipped);
    wire::put_u64(out, s.sources.len() as u64);
    s.sources.iter().for_each(|row| write_source(out, row));
    wire::put_u64(out, s.buckets.len() as u64);
    for bucket in &s.buckets {
        wire::put_u64(out, bucket.id);
        wire::put_i64(out, bucket.first.0);
        wire::put_option(out, bucket.end.map(|(offset, _)| offset.0));
        wire::put_option(out, bucket.end.map(|(_, clock)| clock.0));
    }
    wire::put_option(out, s.bucket_opened_at.map(|t| t.0));
    wire::put_u64(out, s.horizon.len() as u64);
    for step in &s.horizon {
        wire::put_i64(out, step.from.0);
        wire::put_i64(out, step.threshold.0);
    }
    wire::put_u64(out, s.cursors.len() as u64);
    for cursor in &s.cursors {
        wire::put_bytes(out, cursor.table.as_bytes());
        wire::put_i64(out, cursor.start.0);
        out.push(u8::from(cursor.after.is_some()));
        if let Some(after) = &cursor.after {
            out.push(after.slice);
            wire::put_bytes(out, &after.key);
        }
    }
    wire::put_i64(out, s.emitted_through.0);
    wire::put_i64(out, s.trim_bound.0);
    write_pins(out, &s.pins_set);
    write_pins(out, &s.pins_released);
}

fn write_source(out: &mut Vec<u8>, row: &SourceRow) {
    wire::put_bytes(out, row.input.as_bytes());
    out.extend_from_slice(&row.source.topic_id.0);
    wire::put_u64(out, u64::from(row.source.partition.0));
    wire::put_u64(out, u64::from(row.source_partitions));
    wire::put_i64(out, row.through.0);
    wire::put_option(out, row.progress.map(|t| t.0));
    let t = &row.tallies;
    for tally in [t.admitted, t.counted, t.duplicate, t.conflict, t.late] {
        wire::put_u64(out, tally);
    }
}

fn write_rows(out: &mut Vec<u8>, all: &Dictionary, rows: &[(u32, TimestampMs, Sum, u64)]) {
    let mut dictionary = Dictionary::default();
    let counters: Vec<u32> = rows.iter().map(|(c, ..)| dictionary.intern(all.get(*c))).collect();
    dictionary.write(out);
    wire::put_u64(out, rows.len() as u64);
    let mut previous = 0i64;
    for ((_, slice_start, sum, events), counter) in rows.iter().zip(counters) {
        wire::put_u64(out, u64::from(counter));
        wire::put_i64(out, slice_start.0.wrapping_sub(previous));
        previous = slice_start.0;
        wire::put_i128(out, sum.0);
        wire::put_u64(out, *events);
    }
}

/// A decoded delta frame.
#[derive(Debug)]
pub struct DeltaFrame<'a> {
    /// Which part of the commit this is, from 0.
    pub part: u64,
    /// How many parts the commit has.
    pub parts: u64,
    /// The task after the commit.
    pub standing: Standing,
    /// The rows of this part.
    pub rows: Vec<DeltaRow<'a>>,
}

impl<'a> DeltaFrame<'a> {
    /// Decodes a frame.
    ///
    /// # Errors
    ///
    /// Whatever the bytes are, a [`FrameError`] rather than a panic.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::open(bytes, MAGIC, FRAME_VERSION)?;
        let (standing, part, parts) = read_standing(&mut reader)?;
        let rows = read_rows(&mut reader)?;
        reader.finish()?;
        Ok(Self { part, parts, standing, rows })
    }
}

fn read_standing(reader: &mut Reader<'_>) -> Result<(Standing, u64, u64), FrameError> {
    let entries_topic_id = TopicId(reader.array()?);
    let (part, parts) = (reader.u64()?, reader.u64()?);
    let (from, through) = (NextOffset(reader.i64()?), NextOffset(reader.i64()?));
    if part >= parts || through < from {
        return Err(FrameError::Inconsistent("a delta frame's part or range"));
    }
    let mut s = Standing { entries_topic_id, from, through, ..Standing::default() };
    s.committed_at = TimestampMs(reader.i64()?);
    s.append_clock = reader.option()?.map(TimestampMs);
    s.complete_through = reader.option()?.map(TimestampMs);
    s.future_max_ms = reader.i64()?;
    s.skipped = reader.u64()?;
    for _ in 0..reader.count(26)? {
        s.sources.push(read_source(reader)?);
    }
    for _ in 0..reader.count(4)? {
        let (id, first) = (reader.u64()?, NextOffset(reader.i64()?));
        let end = match (reader.option()?, reader.option()?) {
            (None, None) => None,
            (Some(offset), Some(clock)) => Some((NextOffset(offset), TimestampMs(clock))),
            _ => return Err(FrameError::Inconsistent("a bucket's end")),
        };
        s.buckets.push(Bucket { id, first, end });
    }
    s.bucket_opened_at = reader.option()?.map(TimestampMs);
    for _ in 0..reader.count(2)? {
        let (from, threshold) = (NextOffset(reader.i64()?), TimestampMs(reader.i64()?));
        s.horizon.push(HorizonStep { from, threshold });
    }
    for _ in 0..reader.count(3)? {
        let (table, start) = (reader.text()?.to_owned(), TimestampMs(reader.i64()?));
        let after = if reader.flag()? {
            Some(CellOrder { slice: reader.byte()?, key: reader.bytes()?.to_vec() })
        } else {
            None
        };
        s.cursors.push(Cursor { table, start, after });
    }
    s.emitted_through = NextOffset(reader.i64()?);
    s.trim_bound = NextOffset(reader.i64()?);
    s.pins_set = read_pins(reader)?;
    s.pins_released = read_pins(reader)?;
    Ok((s, part, parts))
}

fn read_source(reader: &mut Reader<'_>) -> Result<SourceRow, FrameError> {
    let input = reader.text()?.to_owned();
    let source = Source { topic_id: TopicId(reader.array()?), partition: Partition(reader.u32()?) };
    let source_partitions = reader.u32()?;
    let through = NextOffset(reader.i64()?);
    let progress = reader.option()?.map(TimestampMs);
    let tallies = Tallies {
        admitted: reader.u64()?,
        counted: reader.u64()?,
        duplicate: reader.u64()?,
        conflict: reader.u64()?,
        late: reader.u64()?,
        ..Tallies::default()
    };
    Ok(SourceRow { input, source, source_partitions, through, progress, tallies })
}

fn read_rows<'a>(reader: &mut Reader<'a>) -> Result<Vec<DeltaRow<'a>>, FrameError> {
    let mut counters = Vec::new();
    read_dictionary(reader, &mut counters)?;
    let count = reader.count(4)?;
    let mut rows = Vec::with_capacity(count);
    let mut previous = 0i64;
    for _ in 0..count {
        let key = counters
            .get(reader.u32()? as usize)
            .copied()
            .ok_or(FrameError::Inconsistent("a counter that is not in the dictionary"))?;
        previous = previous.wrapping_add(reader.i64()?);
        let (sum, events) = (Sum(reader.i128()?), reader.u64()?);
        rows.push(DeltaRow { key, slice_start: TimestampMs(previous), sum, events });
    }
    Ok(rows)
}

#[cfg(test)]
#[path = "delta_tests.rs"]
mod tests;
