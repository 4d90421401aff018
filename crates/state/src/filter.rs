//! The filter of a sealed bucket: who surely is not in it, in nine bits per id.
//!
//! A binary fuse filter with 8-bit fingerprints (Graf and Lemire, "Binary Fuse Filters", 2022): no false negatives,
//! one false positive in 256. It is built once, when the bucket is sealed, stored beside the bucket and kept in
//! memory.
//!
//! ```text
//!   u8 kind: 0 everything may be in · 1 nothing is in · 2 fuse, then descriptor (20) · fingerprints
//! ```
//!
//! Keeps: ID-1 (a wrong "no" would be a double count, so a filter that cannot be built says "maybe" to everything).
//!
//! Must not know: the cold store.

use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter, FilterRef};

use crate::cold::SeenEntry;

const EVERYTHING: u8 = 0;
const NOTHING: u8 = 1;
const FUSE: u8 = 2;
const DESCRIPTOR_BYTES: usize = BinaryFuse8::DESCRIPTOR_LEN;

/// Says of an id whether it may be in a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BucketFilter {
    /// Any id may be in.
    Everything,
    /// The bucket is empty.
    Nothing,
    /// A binary fuse filter.
    Fuse {
        /// Its seed and segment lengths.
        descriptor: [u8; DESCRIPTOR_BYTES],
        /// About nine bits per id.
        fingerprints: Vec<u8>,
    },
}

impl BucketFilter {
    /// The filter of these entries, which are in order of their ids.
    pub fn build(entries: &[SeenEntry]) -> Self {
        if entries.is_empty() {
            return Self::Nothing;
        }
        let mut keys: Vec<u64> = entries.iter().map(|entry| key(*entry)).collect();
        // Ids that differ in their last 32 bits only: the construction needs distinct keys.
        keys.dedup();
        match BinaryFuse8::try_from(&keys) {
            Err(_) => Self::Everything,
            Ok(filter) => {
                let mut descriptor = [0; DESCRIPTOR_BYTES];
                filter.dma_copy_descriptor_to(&mut descriptor);
                Self::Fuse { descriptor, fingerprints: filter.fingerprints.into_vec() }
            }
        }
    }

    /// Calls `hit` with the position of each entry that may be in the bucket.
    pub fn probe(
        &self,
        entries: impl Iterator<Item = (usize, SeenEntry)>,
        mut hit: impl FnMut(usize, SeenEntry),
    ) {
        match self {
            Self::Nothing => {}
            Self::Everything => entries.for_each(|(at, entry)| hit(at, entry)),
            Self::Fuse { descriptor, fingerprints } => {
                let filter = BinaryFuse8Ref::from_dma(descriptor, fingerprints);
                entries
                    .filter(|(_, entry)| filter.contains(&key(*entry)))
                    .for_each(|(at, entry)| hit(at, entry));
            }
        }
    }

    /// Bytes of memory held.
    pub const fn memory_bytes(&self) -> usize {
        match self {
            Self::Everything | Self::Nothing => 0,
            Self::Fuse { fingerprints, .. } => fingerprints.capacity(),
        }
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Everything => vec![EVERYTHING],
            Self::Nothing => vec![NOTHING],
            Self::Fuse { descriptor, fingerprints } => {
                let mut out = Vec::with_capacity(1 + DESCRIPTOR_BYTES + fingerprints.len());
                out.push(FUSE);
                out.extend_from_slice(descriptor);
                out.extend_from_slice(fingerprints);
                out
            }
        }
    }

    /// Reads the stored form; `None` if the bytes are no filter.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&EVERYTHING, []) => Some(Self::Everything),
            (&NOTHING, []) => Some(Self::Nothing),
            (&FUSE, rest) => {
                let (descriptor, fingerprints) = rest.split_first_chunk::<DESCRIPTOR_BYTES>()?;
                fits(descriptor, fingerprints.len())
                    .then(|| Self::Fuse { descriptor: *descriptor, fingerprints: fingerprints.to_vec() })
            }
            _ => None,
        }
    }
}

/// Whether every index that the filter computes lies within its fingerprints: the library does not check.
fn fits(descriptor: &[u8; DESCRIPTOR_BYTES], fingerprints: usize) -> bool {
    let number = |at: usize| {
        let bytes = descriptor.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
        bytes.map_or(0, |b| u64::from(u32::from_le_bytes(b)))
    };
    // After the seed (8 bytes): length of a segment, its mask, length of all segments an id may begin in. An id
    // touches three segments in a row.
    let (segment, mask, all) = (number(8), number(12), number(16));
    segment.is_power_of_two()
        && mask == segment - 1
        && all % segment == 0
        && all + 2 * segment == fingerprints as u64
}

fn key(entry: SeenEntry) -> u64 {
    (entry.0 >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: u64) -> Vec<SeenEntry> {
        let mixed = |n: u64| (u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let mut all: Vec<SeenEntry> = (0..count).map(|n| SeenEntry(mixed(n))).collect();
        all.sort_unstable();
        all
    }

    fn hits(filter: &BucketFilter, entries: &[SeenEntry]) -> usize {
        let mut hits = 0;
        filter.probe(entries.iter().copied().enumerate(), |_, _| hits += 1);
        hits
    }

    #[test]
    fn nobody_who_is_in_is_missed_whatever_the_size() {
        for count in (0..300).chain([1000, 4097, 70_000]) {
            let all = entries(count);
            let filter = BucketFilter::build(&all);
            assert_eq!(hits(&filter, &all), all.len(), "{count} ids");
            assert_eq!(BucketFilter::from_bytes(&filter.to_bytes()), Some(filter));
        }
    }

    #[test]
    fn ids_that_share_64_bits_are_both_in() {
        let pair = [SeenEntry((7 << 64) | (1 << 32)), SeenEntry((7 << 64) | (2 << 32))];
        assert_eq!(hits(&BucketFilter::build(&pair), &pair), 2);
    }

    #[test]
    fn strangers_seldom_pass_and_an_id_costs_nine_bits() {
        let all = entries(200_000);
        let (inside, outside) = all.split_at(100_000);
        let filter = BucketFilter::build(inside);
        assert!(hits(&filter, outside) < 100_000 / 200, "{}", hits(&filter, outside));
        assert!(filter.memory_bytes() < 100_000 * 10 / 8, "{}", filter.memory_bytes());
    }

    #[test]
    fn other_bytes_are_no_filter() {
        let good = BucketFilter::build(&entries(1000)).to_bytes();
        assert!(BucketFilter::from_bytes(&good).is_some());
        for bad in [&[][..], &[9], &[NOTHING, 1], &[FUSE, 1, 2], &good[..good.len() - 1]] {
            assert_eq!(BucketFilter::from_bytes(bad), None, "{} bytes", bad.len());
        }
        let mut long = good;
        long.push(0);
        assert_eq!(BucketFilter::from_bytes(&long), None);
    }
}
