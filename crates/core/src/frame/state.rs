//! State frames: the rolling snapshot of a count task's cells, totals and pins.
//!
//! ```text
//! "TFS" 1
//! head       topic id of `entries` (16), slice, slices (N), part, parts, through, deltas mark
//! tables     n · window table name                     ("" is the totals)
//! dictionary n · encoded counter key
//! rows       n · { table, counter, start difference, sum, events }
//! pins       n · as in delta frames
//! ```
//!
//! Each checkpoint writes one slice of the counter-hash range whole, as of `through`. A slice counts only when all
//! its parts are there; N complete slices, with the deltas after each one's `through`, are the whole state. The
//! deltas mark is an offset of `deltas`: every frame with `from ≥ through` stands at or after it.

use super::wire::{self, FrameError, Reader};
use super::{Dictionary, FRAME_TARGET_BYTES, FRAME_VERSION, pins::Pin, read_dictionary};
use crate::ids::{NextOffset, TopicId};
use crate::sum::Sum;
use crate::time::TimestampMs;

const MAGIC: [u8; 3] = *b"TFS";

/// Which slice a frame is part of, and as of when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateHead {
    /// Which incarnation of `entries`.
    pub entries_topic_id: TopicId,
    /// The slice, below `slices`.
    pub slice: u8,
    /// N.
    pub slices: u8,
    /// Which part of the slice, from 0.
    pub part: u64,
    /// How many parts the slice has.
    pub parts: u64,
    /// The cells hold everything below this entries offset.
    pub through: NextOffset,
    /// Where in `deltas` to go on from.
    pub deltas_mark: i64,
}

/// One cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateRow<'a> {
    /// The window table's name; empty for totals.
    pub table: &'a str,
    /// The encoded counter key.
    pub key: &'a [u8],
    /// Start of the window; 0 for totals.
    pub start: TimestampMs,
    /// Σ deltas.
    pub sum: Sum,
    /// Number of events.
    pub events: u64,
}

/// Writes the frames of one slice.
///
/// `head.part` and `head.parts` are filled in here. A slice without cells still is one frame: it says so.
pub fn write_slice(head: &StateHead, rows: &[StateRow<'_>], pins: &[Pin]) -> Vec<Vec<u8>> {
    // A row costs at most 5 + 5 + 10 + 19 + 10 bytes beside its key.
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        bytes += 49 + row.key.len();
        if bytes >= FRAME_TARGET_BYTES {
            parts.push(start..at + 1);
            (start, bytes) = (at + 1, 0);
        }
    }
    if start < rows.len() || parts.is_empty() {
        parts.push(start..rows.len());
    }
    let count = parts.len() as u64;
    let frames = parts.into_iter().enumerate().map(|(part, range)| {
        let head = StateHead { part: part as u64, parts: count, ..*head };
        write_part(&head, rows.get(range).unwrap_or(&[]), if part == 0 { pins } else { &[] })
    });
    frames.collect()
}

fn write_part(head: &StateHead, rows: &[StateRow<'_>], pins: &[Pin]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&MAGIC);
    out.push(FRAME_VERSION);
    out.extend_from_slice(&head.entries_topic_id.0);
    out.extend_from_slice(&[head.slice, head.slices]);
    wire::put_u64(&mut out, head.part);
    wire::put_u64(&mut out, head.parts);
    wire::put_i64(&mut out, head.through.0);
    wire::put_i64(&mut out, head.deltas_mark);
    let (mut tables, mut counters) = (Dictionary::default(), Dictionary::default());
    let references: Vec<(u32, u32)> =
        rows.iter().map(|r| (tables.intern(r.table.as_bytes()), counters.intern(r.key))).collect();
    tables.write(&mut out);
    counters.write(&mut out);
    wire::put_u64(&mut out, rows.len() as u64);
    let mut previous = 0i64;
    for (row, (table, counter)) in rows.iter().zip(references) {
        wire::put_u64(&mut out, u64::from(table));
        wire::put_u64(&mut out, u64::from(counter));
        wire::put_i64(&mut out, row.start.0.wrapping_sub(previous));
        previous = row.start.0;
        wire::put_i128(&mut out, row.sum.0);
        wire::put_u64(&mut out, row.events);
    }
    super::pins::write_pins(&mut out, pins);
    out
}

/// A decoded state frame.
#[derive(Debug)]
pub struct StateFrame<'a> {
    /// Which slice, as of when.
    pub head: StateHead,
    /// Its cells.
    pub rows: Vec<StateRow<'a>>,
    /// Its pins.
    pub pins: Vec<Pin>,
}

impl<'a> StateFrame<'a> {
    /// Decodes a frame.
    ///
    /// # Errors
    ///
    /// Whatever the bytes are, a [`FrameError`] rather than a panic.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::open(bytes, MAGIC, FRAME_VERSION)?;
        let head = StateHead {
            entries_topic_id: TopicId(reader.array()?),
            slice: reader.byte()?,
            slices: reader.byte()?,
            part: reader.u64()?,
            parts: reader.u64()?,
            through: NextOffset(reader.i64()?),
            deltas_mark: reader.i64()?,
        };
        if head.slice >= head.slices || head.part >= head.parts {
            return Err(FrameError::Inconsistent("a state frame's slice or part"));
        }
        let (mut tables, mut counters) = (Vec::new(), Vec::new());
        read_dictionary(&mut reader, &mut tables)?;
        read_dictionary(&mut reader, &mut counters)?;
        let count = reader.count(5)?;
        let mut rows = Vec::with_capacity(count);
        let mut previous = 0i64;
        for _ in 0..count {
            let table = tables.get(reader.u32()? as usize).and_then(|t| std::str::from_utf8(t).ok());
            let key = counters.get(reader.u32()? as usize).copied();
            let (Some(table), Some(key)) = (table, key) else {
                return Err(FrameError::Inconsistent("a reference that is not in the dictionary"));
            };
            previous = previous.wrapping_add(reader.i64()?);
            let (sum, events) = (Sum(reader.i128()?), reader.u64()?);
            rows.push(StateRow { table, key, start: TimestampMs(previous), sum, events });
        }
        let pins = super::pins::read_pins(&mut reader)?;
        reader.finish()?;
        Ok(Self { head, rows, pins })
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
