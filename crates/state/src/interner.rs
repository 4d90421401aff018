//! Counter keys as small numbers: encoded key ↔ [`CounterId`], one copy of each key in one arena.
//!
//! Numbers are dense and mean something only until the interner is replaced. Beside each key stands its hash slice,
//! because every order of cells begins with it.
//!
//! Must not know: cells.

use std::hash::BuildHasher;

use hashbrown::hash_table::{Entry, HashTable};
use tallyflow_core::counter::hash_slice;
use tallyflow_core::processor::CounterId;

/// The interned keys.
#[derive(Default)]
pub(crate) struct Interner {
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`, and its slice.
    keys: Vec<(usize, u8)>,
    table: HashTable<u32>,
    hasher: hashbrown::DefaultHashBuilder,
}

impl Interner {
    /// The number of a key, new or known. Numbers run out after 2^32 keys: 170 GB at 40 bytes each, far beyond any
    /// budget.
    pub(crate) fn intern(&mut self, key: &[u8]) -> CounterId {
        let Self { bytes, keys, table, hasher } = self;
        let found = table.entry(
            hasher.hash_one(key),
            |at| key_at(bytes, keys, *at) == key,
            |at| hasher.hash_one(key_at(bytes, keys, *at)),
        );
        match found {
            Entry::Occupied(entry) => CounterId(*entry.get()),
            Entry::Vacant(entry) => {
                let at = keys.len() as u32;
                entry.insert(at);
                bytes.extend_from_slice(key);
                keys.push((bytes.len(), hash_slice(key)));
                CounterId(at)
            }
        }
    }

    /// The key of a number; empty if there is none.
    pub(crate) fn key(&self, counter: CounterId) -> &[u8] {
        key_at(&self.bytes, &self.keys, counter.0)
    }

    /// The place of a counter among the cells of a window: [`tallyflow_core::processor::CellOrder`], borrowed.
    pub(crate) fn order(&self, counter: CounterId) -> (u8, &[u8]) {
        let slice = self.keys.get(counter.0 as usize).map_or(0, |(_, slice)| *slice);
        (slice, self.key(counter))
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.keys.capacity() * size_of::<(usize, u8)>() + self.table.allocation_size()
    }
}

fn key_at<'a>(bytes: &'a [u8], keys: &[(usize, u8)], at: u32) -> &'a [u8] {
    let at = at as usize;
    let end_of = |at: usize| keys.get(at).map_or(0, |(end, _)| *end);
    let start = at.checked_sub(1).map_or(0, end_of);
    bytes.get(start..end_of(at)).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_share_a_number() {
        let mut interner = Interner::default();
        let keys: Vec<String> = (0..5000).map(|n| "x".repeat(n % 7) + &n.to_string()).collect();
        let numbers: Vec<CounterId> = keys.iter().map(|key| interner.intern(key.as_bytes())).collect();
        for (key, number) in keys.iter().zip(numbers) {
            assert_eq!(interner.intern(key.as_bytes()), number);
            assert_eq!(interner.order(number), (hash_slice(key.as_bytes()), key.as_bytes()));
        }
        assert_eq!(interner.key(CounterId(5000)), b"");
    }
}
