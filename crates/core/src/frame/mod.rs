//! Frames: the packed records of the internal topics. The one place where their bytes are described.
//!
//! | frame | topic | file | what it carries |
//! | --- | --- | --- | --- |
//! | entry | `entries` | [`entry`] | admitted events, per source partition section |
//! | delta | `deltas` | [`delta`] | what one commit of a count task decided; its restart record |
//! | state | `state` | [`state`] | one slice of the rolling snapshot of cells |
//!
//! A frame begins with three magic bytes and a version. Numbers are LEB128 varints, signed ones zigzag; identities
//! and checks are little endian. Every decoder survives any bytes and refuses what it does not know; golden bytes
//! are tested. Version 1.

pub mod delta;
pub mod entry;
pub mod pins;
pub mod state;
pub mod wire;

pub use wire::FrameError;

/// The version every frame is written in.
pub const FRAME_VERSION: u8 = 1;

/// The size at which a frame is closed and another one begun: 768 KiB, below Kafka's default record limit of 1 MiB.
/// One packed source record may carry a frame beyond it, up to [`FRAME_LIMIT_BYTES`].
pub const FRAME_TARGET_BYTES: usize = 768 * 1024;

/// The largest frame: the target, plus one source record of 10 000 packed events. Each costs at most 64 bytes of
/// columns, and their keys together at most the record's 1 MiB plus 10 000 · (256 + 6) bytes of prefixes:
/// 0.75 + 0.61 + 1 + 2.5 MiB, rounded up. It is the `max.message.bytes` of the internal topics.
pub const FRAME_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// A dictionary of byte strings: each distinct one is stored once and referred to by its position.
#[derive(Debug, Default)]
pub struct Dictionary {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    table: hashbrown::HashTable<u32>,
}

impl Dictionary {
    /// The reference of `key`, added if it is new.
    pub fn intern(&mut self, key: &[u8]) -> u32 {
        let Self { bytes, ends, table } = self;
        let hash = xxhash_rust::xxh3::xxh3_64(key);
        let found = table.entry(
            hash,
            |at| slice_of(bytes, ends, *at) == key,
            |at| xxhash_rust::xxh3::xxh3_64(slice_of(bytes, ends, *at)),
        );
        match found {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let at = ends.len() as u32;
                entry.insert(at);
                bytes.extend_from_slice(key);
                ends.push(bytes.len() as u32);
                at
            }
        }
    }

    /// The string at a position; empty if there is none.
    pub fn get(&self, at: u32) -> &[u8] {
        slice_of(&self.bytes, &self.ends, at)
    }

    /// Number of distinct strings.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it holds nothing.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes held, without the index.
    pub const fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.table.clear();
    }

    /// Appends all strings in order.
    fn write(&self, out: &mut Vec<u8>) {
        wire::put_u64(out, self.ends.len() as u64);
        for at in 0..self.ends.len() as u32 {
            wire::put_bytes(out, self.get(at));
        }
    }
}

fn slice_of<'a>(bytes: &'a [u8], ends: &[u32], at: u32) -> &'a [u8] {
    let at = at as usize;
    let start = if at == 0 { 0 } else { ends.get(at - 1).copied().unwrap_or(0) as usize };
    let end = ends.get(at).copied().unwrap_or(0) as usize;
    bytes.get(start..end).unwrap_or(&[])
}

/// Reads a dictionary: a list of borrowed strings.
fn read_dictionary<'a>(reader: &mut wire::Reader<'a>, out: &mut Vec<&'a [u8]>) -> Result<(), FrameError> {
    let count = reader.count(1)?;
    out.reserve(count);
    for _ in 0..count {
        out.push(reader.bytes()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_reference() {
        let mut dictionary = Dictionary::default();
        let (a, b) = (dictionary.intern(b"a"), dictionary.intern(b"bb"));
        assert_eq!((a, b, dictionary.intern(b"a")), (0, 1, 0));
        for n in 0..10_000u32 {
            dictionary.intern(&n.to_le_bytes());
        }
        assert_eq!(dictionary.intern(b"bb"), 1);
        assert_eq!((dictionary.get(1), dictionary.get(99_999)), (b"bb".as_slice(), b"".as_slice()));
        dictionary.clear();
        assert!(dictionary.is_empty() && dictionary.intern(b"bb") == 0);
    }
}
