//! The shuffle: admitted entries of all the worker's source partitions, gathered per partition of `entries`.
//!
//! ```text
//!   source 0 ──┐ entries     target 0: dictionary · source 0 [from..through) entries · source 1 …
//!   source 1 ──┼──────────►  target 1: …                                                ──► frames
//!   source 2 ──┘             target P−1
//! ```
//!
//! A target's frame has one section per source partition. It is closed early, between two source records, when it
//! reaches its target size; the next section of that source begins where it ended. Ranges of one source at one
//! target never overlap (EO-3); gaps are legal.

use tallyflow_core::frame::FRAME_TARGET_BYTES;
use tallyflow_core::frame::entry::{Entry, EntryFrameBuilder, Section};
use tallyflow_core::ids::{NextOffset, Partition};
use tallyflow_core::tallies::Tallies;

/// Where a source's next section at one target begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// First offset of the section.
    pub from: NextOffset,
    /// The source's tallies there.
    pub tallies: Tallies,
}

/// What the shuffle must know of a source to close its section.
#[derive(Clone, Copy, Debug)]
pub struct SourceMark<'a> {
    /// Section with `from` and `entries` not yet filled in; its tallies are cumulative.
    pub section: Section<'a>,
    /// Whether a section must be written even without entries.
    pub always: bool,
}

#[derive(Debug, Default)]
struct Lane {
    entries: Vec<Entry>,
    mark: Mark,
}

#[derive(Debug, Default)]
struct Target {
    builder: EntryFrameBuilder,
    lanes: Vec<Lane>,
    pending: usize,
}

/// Entries gathered for all targets. Sources are numbered by the caller (slots).
#[derive(Debug)]
pub struct Shuffle {
    targets: Vec<Target>,
    ready: Vec<(Partition, Vec<u8>)>,
    ready_bytes: usize,
}

impl Shuffle {
    /// A shuffle to this many partitions.
    pub fn new(partitions: u32) -> Self {
        let targets = (0..partitions).map(|_| Target::default()).collect();
        Self { targets, ready: Vec::new(), ready_bytes: 0 }
    }

    /// Source `slot` begins (again) at `mark`, at every target.
    pub fn open(&mut self, slot: usize, mark: Mark) {
        for target in &mut self.targets {
            if target.lanes.len() <= slot {
                target.lanes.resize_with(slot + 1, Lane::default);
            }
            if let Some(lane) = target.lanes.get_mut(slot) {
                target.pending -= lane.entries.len();
                *lane = Lane { entries: std::mem::take(&mut lane.entries), mark };
                lane.entries.clear();
            }
        }
    }

    /// Adds an entry of a source to a target.
    pub fn push(&mut self, slot: usize, target: u32, key: &[u8], mut entry: Entry) {
        let Some(target) = self.targets.get_mut(target as usize) else {
            return;
        };
        let Some(lane) = target.lanes.get_mut(slot) else {
            return;
        };
        entry.counter = target.builder.counter(key);
        lane.entries.push(entry);
        target.pending += 1;
    }

    /// Bytes gathered, an upper bound.
    pub fn size_bytes(&self) -> usize {
        self.ready_bytes + self.targets.iter().map(Target::size_bytes).sum::<usize>()
    }

    /// Whether a target has reached the size of a frame: call [`Shuffle::close`] for it between two records.
    pub fn oversized(&self) -> Option<u32> {
        self.targets.iter().position(|t| t.size_bytes() >= FRAME_TARGET_BYTES).map(|at| at as u32)
    }

    /// Whether anything is gathered for a target.
    pub fn has_entries(&self, target: u32) -> bool {
        self.targets.get(target as usize).is_some_and(|t| t.pending > 0)
    }

    /// Closes the frame of a target. `sources` says, per slot, how far each one is; `None` for a free slot.
    pub fn close(&mut self, target: u32, sources: &[Option<SourceMark<'_>>]) {
        let Some(lanes) = self.targets.get_mut(target as usize) else {
            return;
        };
        let Target { builder, lanes, pending } = lanes;
        for (lane, source) in lanes.iter_mut().zip(sources) {
            let Some(source) = source else { continue };
            if lane.entries.is_empty() && !source.always {
                continue;
            }
            *pending -= lane.entries.len();
            lane.entries.drain(..).for_each(|entry| builder.push(entry));
            let tallies = source.section.tallies.since(&lane.mark.tallies);
            builder.close_section(&Section { from: lane.mark.from, tallies, ..source.section });
            lane.mark = Mark { from: source.section.through, tallies: source.section.tallies };
        }
        if !builder.is_empty() {
            let mut bytes = Vec::with_capacity(builder.size_bytes() / 2);
            builder.finish(&mut bytes);
            self.ready_bytes += bytes.len();
            self.ready.push((Partition(target), bytes));
        }
    }

    /// The closed frames, in order.
    pub fn take_ready(&mut self) -> Vec<(Partition, Vec<u8>)> {
        self.ready_bytes = 0;
        std::mem::take(&mut self.ready)
    }

    /// Drops everything gathered; every source must be opened again.
    pub fn clear(&mut self) {
        self.ready.clear();
        self.ready_bytes = 0;
        for target in &mut self.targets {
            target.builder.clear();
            target.pending = 0;
            target.lanes.iter_mut().for_each(|lane| lane.entries.clear());
        }
    }
}

impl Target {
    fn size_bytes(&self) -> usize {
        self.builder.size_bytes() + self.pending * 64
    }
}

#[cfg(test)]
#[path = "shuffle_tests.rs"]
mod tests;
