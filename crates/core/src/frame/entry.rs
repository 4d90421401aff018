//! Entry frames: what intake lets through, for one partition of `entries`.
//!
//! ```text
//! "TFE" 1
//! sections   n · { input name, topic id (16), partition, partitions of the source, from, through, progress?,
//!                  accept, future, received, admitted, late, future, invalid, held, entries }
//! dictionary n · encoded counter key
//! columns    kind        0 | 1 + one byte each            (0: all are `add`)
//!            identity    16 bytes each
//!            check       4 bytes each
//!            counter     dictionary reference each
//!            event time  zigzag difference to the previous one
//!            delta       0 | 1 + zigzag each              (0: all are 1)
//!            offset      difference to the previous one, within a section to `from` first
//!            index       0 | 1 + one each                 (0: all are 0)
//!            first append time where it differs           n · { position difference, zigzag time }
//! ```
//!
//! Sections' entries follow each other in the columns. The tallies of a section are those of the whole source range
//! `from..through`, whichever partition its entries went to; `entries` counts those that came here.
//!
//! Keeps: EO-3 (`from..through` of a source: gaps are legal, an overlap is not).

use super::wire::{self, FrameError, Reader};
use super::{Dictionary, FRAME_VERSION, read_dictionary};
use crate::event::Kind;
use crate::ids::{Identity, NextOffset, Offset, Partition, PayloadCheck, Source, TopicId};
use crate::tallies::Tallies;
use crate::time::{Limits, TimestampMs};

const MAGIC: [u8; 3] = *b"TFE";

/// What a section says about its source partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section<'a> {
    /// The input's name in topology.toml.
    pub input: &'a str,
    /// Source partition.
    pub source: Source,
    /// How many partitions the source has.
    pub source_partitions: u32,
    /// First offset of the range.
    pub from: NextOffset,
    /// The range's exclusive end.
    pub through: NextOffset,
    /// Everything appended before this has been read; `None` until known.
    pub progress: Option<TimestampMs>,
    /// The limits that judged this range.
    pub limits: Limits,
    /// Intake's tallies of the whole range.
    pub tallies: Tallies,
    /// How many entries of this frame belong to it.
    pub entries: usize,
}

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What it does.
    pub kind: Kind,
    /// Who it is.
    pub identity: Identity,
    /// What it carries, as a check.
    pub check: PayloadCheck,
    /// Position of its counter in the frame's dictionary.
    pub counter: u32,
    /// When it happened.
    pub event_time: TimestampMs,
    /// What it adds.
    pub delta: i64,
    /// Offset of its source record.
    pub offset: Offset,
    /// Which event of a packed record.
    pub index: u32,
    /// Its first append time, where that is not the record's.
    pub first_append: Option<TimestampMs>,
}

/// Collects entries for one partition of `entries` and writes frames. Reused from commit to commit.
#[derive(Debug, Default)]
pub struct EntryFrameBuilder {
    head: Vec<u8>,
    sections: usize,
    dictionary: Dictionary,
    entries: Vec<Entry>,
    section_lengths: Vec<(usize, i64)>,
}

impl EntryFrameBuilder {
    /// Whether nothing was put in since the last [`EntryFrameBuilder::finish`].
    pub const fn is_empty(&self) -> bool {
        self.sections == 0 && self.entries.is_empty()
    }

    /// A bound on the size of the frame so far: 64 bytes cover the columns of an entry at their widest
    /// (1 + 16 + 4 + 5 + 10 + 10 + 10 + 5 = 61, and first append times are rare).
    pub const fn size_bytes(&self) -> usize {
        self.head.len() + self.dictionary.size_bytes() + self.entries.len() * 64
    }

    /// Number of entries since the last section was closed.
    pub fn open_entries(&self) -> usize {
        let closed: usize = self.section_lengths.iter().map(|(entries, _)| entries).sum();
        self.entries.len().saturating_sub(closed)
    }

    /// The dictionary reference of an encoded counter key.
    pub fn counter(&mut self, key: &[u8]) -> u32 {
        self.dictionary.intern(key)
    }

    /// Adds an entry to the open section. Entries of a section come in the order of their offsets.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Closes the open section: it describes the entries pushed since the last one. `section.entries` is ignored.
    pub fn close_section(&mut self, section: &Section<'_>) {
        let entries = self.open_entries();
        let out = &mut self.head;
        wire::put_bytes(out, section.input.as_bytes());
        out.extend_from_slice(&section.source.topic_id.0);
        wire::put_u64(out, u64::from(section.source.partition.0));
        wire::put_u64(out, u64::from(section.source_partitions));
        wire::put_i64(out, section.from.0);
        wire::put_i64(out, section.through.0);
        wire::put_option(out, section.progress.map(|t| t.0));
        wire::put_i64(out, section.limits.accept_ms);
        wire::put_i64(out, section.limits.future_ms);
        let t = &section.tallies;
        for tally in [t.received, t.admitted, t.late, t.future, t.invalid, t.held] {
            wire::put_u64(out, tally);
        }
        wire::put_u64(out, entries as u64);
        self.sections += 1;
        self.section_lengths.push((entries, section.from.0));
    }

    /// Appends the frame to `out` and starts over.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.push(FRAME_VERSION);
        wire::put_u64(out, self.sections as u64);
        out.extend_from_slice(&self.head);
        self.dictionary.write(out);
        write_columns(out, &self.entries, &self.section_lengths);
        self.clear();
    }

    /// Drops everything that was put in.
    pub fn clear(&mut self) {
        self.head.clear();
        self.sections = 0;
        self.dictionary.clear();
        self.entries.clear();
        self.section_lengths.clear();
    }
}

fn write_columns(out: &mut Vec<u8>, entries: &[Entry], sections: &[(usize, i64)]) {
    let all_adds = entries.iter().all(|e| e.kind == Kind::Add);
    out.push(u8::from(!all_adds));
    if !all_adds {
        out.extend(entries.iter().map(|e| e.kind as u8));
    }
    entries.iter().for_each(|e| out.extend_from_slice(&e.identity.raw().to_le_bytes()));
    entries.iter().for_each(|e| out.extend_from_slice(&e.check.0.to_le_bytes()));
    entries.iter().for_each(|e| wire::put_u64(out, u64::from(e.counter)));
    let mut previous = 0i64;
    for entry in entries {
        wire::put_i64(out, entry.event_time.0.wrapping_sub(previous));
        previous = entry.event_time.0;
    }
    let all_ones = entries.iter().all(|e| e.delta == 1);
    out.push(u8::from(!all_ones));
    if !all_ones {
        entries.iter().for_each(|e| wire::put_i64(out, e.delta));
    }
    let mut rest = entries.iter();
    for (length, from) in sections {
        let mut previous = *from;
        for entry in rest.by_ref().take(*length) {
            wire::put_u64(out, entry.offset.0.wrapping_sub(previous) as u64);
            previous = entry.offset.0;
        }
    }
    let all_first = entries.iter().all(|e| e.index == 0);
    out.push(u8::from(!all_first));
    if !all_first {
        entries.iter().for_each(|e| wire::put_u64(out, u64::from(e.index)));
    }
    let moved = entries.iter().enumerate().filter_map(|(at, e)| Some((at, e.first_append?)));
    wire::put_u64(out, moved.clone().count() as u64);
    let mut previous = 0;
    for (at, time) in moved {
        wire::put_u64(out, (at - previous) as u64);
        wire::put_i64(out, time.0);
        previous = at;
    }
}

/// A decoded frame. Its columns are reused by the next [`EntryFrame::decode`] into the same buffers.
#[derive(Debug, Default)]
pub struct EntryFrame<'a> {
    /// The sections in order.
    pub sections: Vec<Section<'a>>,
    /// The dictionary of encoded counter keys.
    pub counters: Vec<&'a [u8]>,
    /// The entries of all sections, in order.
    pub entries: Vec<Entry>,
}

impl<'a> EntryFrame<'a> {
    /// Decodes a frame.
    ///
    /// # Errors
    ///
    /// Whatever the bytes are, a [`FrameError`] rather than a panic; everything in a decoded frame is consistent.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader::open(bytes, MAGIC, FRAME_VERSION)?;
        let mut frame = Self::default();
        let sections = reader.count(30)?;
        for _ in 0..sections {
            frame.sections.push(read_section(&mut reader)?);
        }
        read_dictionary(&mut reader, &mut frame.counters)?;
        let total = frame
            .sections
            .iter()
            .try_fold(0usize, |sum, s| sum.checked_add(s.entries))
            .filter(|total| total.saturating_mul(20) <= reader.remaining())
            .ok_or(FrameError::Truncated)?;
        frame.entries = read_columns(&mut reader, total, &frame.sections, frame.counters.len())?;
        reader.finish()?;
        Ok(frame)
    }

    /// Each section with its entries.
    pub fn by_section(&self) -> impl Iterator<Item = (&Section<'a>, &[Entry])> {
        let mut rest = self.entries.as_slice();
        self.sections.iter().map(move |section| {
            let (head, tail) = rest.split_at_checked(section.entries).unwrap_or((rest, &[]));
            rest = tail;
            (section, head)
        })
    }
}

fn read_section<'a>(reader: &mut Reader<'a>) -> Result<Section<'a>, FrameError> {
    let input = reader.text()?;
    let topic_id = TopicId(reader.array()?);
    let partition = Partition(reader.u32()?);
    let source_partitions = reader.u32()?;
    let (from, through) = (NextOffset(reader.i64()?), NextOffset(reader.i64()?));
    if through < from || partition.0 >= source_partitions {
        return Err(FrameError::Inconsistent("a section's range or partition"));
    }
    let progress = reader.option()?.map(TimestampMs);
    let limits = Limits { accept_ms: reader.i64()?, future_ms: reader.i64()? };
    let tallies = Tallies {
        received: reader.u64()?,
        admitted: reader.u64()?,
        late: reader.u64()?,
        future: reader.u64()?,
        invalid: reader.u64()?,
        held: reader.u64()?,
        ..Tallies::default()
    };
    let entries = usize::try_from(reader.u64()?).map_err(|_| FrameError::Number)?;
    let source = Source { topic_id, partition };
    Ok(Section { input, source, source_partitions, from, through, progress, limits, tallies, entries })
}

fn read_columns(
    reader: &mut Reader<'_>,
    total: usize,
    sections: &[Section<'_>],
    counters: usize,
) -> Result<Vec<Entry>, FrameError> {
    let kinds = if reader.flag()? { Some(reader.take(total)?) } else { None };
    let identities = reader.take(total * 16)?.chunks_exact(16);
    let checks = reader.take(total * 4)?.chunks_exact(4);
    let mut entries = Vec::with_capacity(total);
    for (at, (identity, check)) in identities.zip(checks).enumerate() {
        let kind = match kinds.and_then(|k| k.get(at)) {
            None => Kind::Add,
            Some(byte) => Kind::from_byte(*byte).ok_or(FrameError::Inconsistent("an entry's kind"))?,
        };
        let counter = reader.u32()?;
        if counter as usize >= counters {
            return Err(FrameError::Inconsistent("a counter that is not in the dictionary"));
        }
        entries.push(Entry {
            kind,
            identity: Identity::from_raw(u128::from_le_bytes(fixed(identity))),
            check: PayloadCheck(u32::from_le_bytes(fixed(check))),
            counter,
            event_time: TimestampMs(0),
            delta: 1,
            offset: Offset(0),
            index: 0,
            first_append: None,
        });
    }
    read_numbers(reader, sections, &mut entries)?;
    Ok(entries)
}

/// The rest of the columns: event time, delta, offset, index, first append time.
fn read_numbers(
    reader: &mut Reader<'_>,
    sections: &[Section<'_>],
    entries: &mut [Entry],
) -> Result<(), FrameError> {
    let mut previous = 0i64;
    for entry in entries.iter_mut() {
        previous = previous.wrapping_add(reader.i64()?);
        entry.event_time = TimestampMs(previous);
    }
    if reader.flag()? {
        for entry in entries.iter_mut() {
            entry.delta = reader.i64()?;
        }
    }
    let mut rest = entries.iter_mut();
    for section in sections {
        let mut previous = section.from.0;
        for entry in rest.by_ref().take(section.entries) {
            let step = i64::try_from(reader.u64()?).map_err(|_| FrameError::Number)?;
            previous = previous.checked_add(step).ok_or(FrameError::Number)?;
            if !section.through.covers(Offset(previous)) {
                return Err(FrameError::Inconsistent("an entry outside its section"));
            }
            entry.offset = Offset(previous);
        }
    }
    if reader.flag()? {
        for entry in entries.iter_mut() {
            entry.index = reader.u32()?;
        }
    }
    let moved = reader.count(2)?;
    let mut at = 0usize;
    for _ in 0..moved {
        at = at.saturating_add(usize::try_from(reader.u64()?).map_err(|_| FrameError::Number)?);
        let time = TimestampMs(reader.i64()?);
        let entry = entries.get_mut(at).ok_or(FrameError::Inconsistent("a first append time"))?;
        entry.first_append = Some(time);
    }
    Ok(())
}

fn fixed<const N: usize>(chunk: &[u8]) -> [u8; N] {
    chunk.first_chunk::<N>().copied().unwrap_or([0; N])
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
