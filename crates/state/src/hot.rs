//! The hot table: the ids of one bucket in memory, with undo.
//!
//! ```text
//!   slot (16 bytes) = id (96 bits) · payload check (32 bits)          0 is an empty slot; 4 slots to a cache line
//!   home of an id   = ⌊ top 64 bits of the id · slots / 2^64 ⌋         so slots are almost in the order of ids
//! ```
//!
//! Open addressing with linear probing. Ids are hashes already, so the home is a multiplication, works for every
//! number of slots, and growing is one sweep in order.
//!
//! Undo: inserts since the last commit are logged with their slots; clearing them, newest first, is the table as it
//! was, because nothing was moved since. Growing moves things: it takes the uncommitted inserts out first and puts
//! them back after.
//!
//! Keeps: EO-1 (an aborted sighting leaves no trace).
//!
//! Must not know: buckets, filters, the cold store.

use std::hint::black_box;

use crate::cold::SeenEntry;

/// Slots of the first allocation: 16 KiB.
const FIRST_SLOTS: usize = 1024;
/// Up to here (1 MiB) the table doubles; beyond, it grows by a fifth.
const DOUBLING_LIMIT_SLOTS: usize = 64 * 1024;
// At most 4/5 of the slots are taken: a miss looks at 13 slots on average (Knuth 6.4: (1 + 1/(1 − 4/5)²) / 2), about
// four neighbouring cache lines. Grown by 6/5, at least 2/3 are taken: at most 16 / (2/3) = 24 bytes per id.
const MAX_LOAD: (usize, usize) = (4, 5);
const GROWTH: (usize, usize) = (6, 5);

/// A set of ids with their payload checks.
#[derive(Clone, Debug, Default)]
pub struct HotTable {
    /// The numbers of [`SeenEntry`]: zeroes come from the system untouched, so unused room costs no memory.
    slots: Vec<u128>,
    taken: usize,
    /// Slots of the inserts since the last commit, oldest first.
    undo: Vec<usize>,
}

impl HotTable {
    /// A table of these entries, all committed. Their ids must be distinct.
    pub fn from_entries(entries: &[SeenEntry]) -> Self {
        let mut table = Self::with_room_for(entries.len());
        entries.iter().for_each(|entry| table.place(*entry));
        table
    }

    /// A table of what a log tells, all committed: in the log's order, the first sighting of an id stays. Sorted
    /// first, they go in side by side: a third of the time of single inserts, and no growing.
    pub fn from_log(mut entries: Vec<SeenEntry>) -> Self {
        entries.sort_by_key(|entry| entry.0 >> 32);
        entries.dedup_by_key(|entry| entry.0 >> 32);
        Self::from_entries(&entries)
    }

    /// An empty table in which so many ids find room without growing. Room that is not used costs no memory.
    pub fn with_room_for(ids: usize) -> Self {
        let mut table = Self::default();
        if ids > 0 {
            table.resize(slots_for(ids));
        }
        table
    }

    /// Number of ids, uncommitted ones included.
    pub const fn len(&self) -> usize {
        self.taken
    }

    /// Whether it holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Bytes of memory held.
    pub const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u128>() + self.undo.capacity() * size_of::<usize>()
    }

    /// The payload check remembered for the id of `entry`.
    pub fn get(&self, entry: SeenEntry) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        self.find(entry).err().map(SeenEntry::check)
    }

    /// Remembers an entry until the next abort, unless its id is known: then the check that is remembered stays and
    /// is returned.
    pub fn insert(&mut self, entry: SeenEntry) -> Option<u32> {
        self.make_room();
        match self.find(entry) {
            Err(known) => Some(known.check()),
            Ok(at) => {
                self.fill(at, entry);
                self.undo.push(at);
                None
            }
        }
    }

    /// Remembers an entry of a committed offset; nothing undoes it.
    pub fn insert_committed(&mut self, entry: SeenEntry) {
        if self.undo.is_empty() {
            self.make_room();
            self.place(entry);
        } else {
            // What is undone later must have been inserted later.
            let uncommitted = self.take_uncommitted();
            self.make_room();
            self.place(entry);
            self.put_back(&uncommitted);
        }
    }

    /// Loads the homes of these ids into the processor's cache: independent reads, which overlap.
    pub fn warm(&self, entries: &[SeenEntry]) {
        let slots = self.slots.len();
        let seen = entries
            .iter()
            .fold(0, |all, entry| all ^ self.slots.get(home(*entry, slots)).map_or(0, |slot| *slot));
        black_box(seen);
    }

    /// Keeps the inserts since the last commit.
    pub fn commit(&mut self) {
        self.undo.clear();
    }

    /// Takes back the inserts since the last commit.
    pub fn abort(&mut self) {
        self.take_uncommitted();
    }

    /// All entries in order of their ids, without a second copy in memory.
    pub fn into_sorted(self) -> Vec<SeenEntry> {
        let mut entries = self.slots;
        entries.retain(|slot| *slot != 0);
        entries.sort_unstable();
        // Collected in place: both types are 16 bytes.
        entries.into_iter().map(SeenEntry).collect()
    }

    /// `Ok` with the empty slot where the id belongs, or `Err` with the entry that has this id. The table must have
    /// an empty slot.
    fn find(&self, entry: SeenEntry) -> Result<usize, SeenEntry> {
        let mut at = home(entry, self.slots.len());
        loop {
            match self.slots.get(at) {
                Some(0) => return Ok(at),
                Some(slot) if slot >> 32 == entry.0 >> 32 => return Err(SeenEntry(*slot)),
                Some(_) => at += 1,
                None => at = 0,
            }
        }
    }

    fn fill(&mut self, at: usize, entry: SeenEntry) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = entry.0;
            self.taken += 1;
        }
    }

    fn place(&mut self, entry: SeenEntry) {
        if let Ok(at) = self.find(entry) {
            self.fill(at, entry);
        }
    }

    /// Clears the uncommitted slots, newest first, and returns what was in them, newest first.
    fn take_uncommitted(&mut self) -> Vec<SeenEntry> {
        let mut taken = Vec::with_capacity(self.undo.len());
        while let Some(at) = self.undo.pop() {
            if let Some(slot) = self.slots.get_mut(at) {
                taken.push(SeenEntry(std::mem::take(slot)));
                self.taken -= 1;
            }
        }
        taken
    }

    fn put_back(&mut self, newest_first: &[SeenEntry]) {
        for entry in newest_first.iter().rev() {
            if let Ok(at) = self.find(*entry) {
                self.fill(at, *entry);
                self.undo.push(at);
            }
        }
    }

    /// Makes sure that one more id fits.
    fn make_room(&mut self) {
        let slots = self.slots.len();
        if (self.taken + 1) * MAX_LOAD.1 <= slots * MAX_LOAD.0 {
            return;
        }
        let uncommitted = self.take_uncommitted();
        self.resize(grown(slots));
        self.put_back(&uncommitted);
    }

    /// Moves everything, all of it committed, to a table of this many slots.
    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        self.taken = 0;
        let taken = old.into_iter().filter(|slot| *slot != 0);
        taken.for_each(|slot| self.place(SeenEntry(slot)));
    }
}

fn home(entry: SeenEntry, slots: usize) -> usize {
    // 64 by 64 bits: one multiplication.
    ((u128::from((entry.0 >> 64) as u64) * slots as u128) >> 64) as usize
}

fn grown(slots: usize) -> usize {
    if slots < DOUBLING_LIMIT_SLOTS { (slots * 2).max(FIRST_SLOTS) } else { slots / GROWTH.1 * GROWTH.0 }
}

fn slots_for(ids: usize) -> usize {
    ((ids + 1) * MAX_LOAD.1).div_ceil(MAX_LOAD.0).max(FIRST_SLOTS)
}

#[cfg(test)]
#[path = "hot_tests.rs"]
mod tests;
