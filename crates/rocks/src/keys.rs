//! Every byte that is stored, except a cell's key, which is [`tallyflow_state::keys`]'.
//!
//! ```text
//!   column family  key                                     value
//!   default        cell key                                i128 sum · u64 events               (little endian)
//!   seen           u64 bucket, big endian · id (12)        u32 payload check                    (little endian)
//!                  u64 bucket, big endian · 12 × FF · 01   u8 version 1 · bucket's bounds · ids · filter
//!   meta           "progress", "tables"                    opaque
//! ```
//!
//! The marker is the last key of its bucket and comes in the same ingested file as the last ids: a bucket with a
//! marker is a whole bucket.

use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::NextOffset;
use tallyflow_core::processor::Cell;
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;
use tallyflow_state::cold::{SealedBucket, SeenId};

/// The key of the progress.
pub(crate) const PROGRESS: &[u8] = b"progress";
/// The key of the list of tables.
pub(crate) const TABLES: &[u8] = b"tables";

const MARKER_VERSION: u8 = 1;

/// The value of a cell.
pub(crate) fn encode_cell(cell: Cell) -> [u8; 24] {
    let mut out = [0; 24];
    let bytes = cell.sum.0.to_le_bytes().into_iter().chain(cell.events.to_le_bytes());
    out.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    out
}

/// Reads the value of a cell.
pub(crate) fn decode_cell(bytes: &[u8]) -> Option<Cell> {
    let (sum, events) = bytes.split_first_chunk::<16>()?;
    let events = u64::from_le_bytes(events.try_into().ok()?);
    Some(Cell { sum: Sum(i128::from_le_bytes(*sum)), events })
}

/// The key of an id in a bucket.
pub(crate) fn seen_key(bucket_id: u64, id: &SeenId) -> [u8; 20] {
    let mut out = [0; 20];
    out.iter_mut().zip(bucket_id.to_be_bytes().iter().chain(id)).for_each(|(to, from)| *to = *from);
    out
}

/// The key of a bucket's marker: after every id.
pub(crate) fn marker_key(bucket_id: u64) -> [u8; 21] {
    with_tail(bucket_id, 1)
}

/// After everything of a bucket.
pub(crate) fn bucket_end(bucket_id: u64) -> [u8; 21] {
    with_tail(bucket_id, 2)
}

fn with_tail(bucket_id: u64, tail: u8) -> [u8; 21] {
    let mut out = [0xFF; 21];
    out.iter_mut().zip(bucket_id.to_be_bytes()).for_each(|(to, from)| *to = from);
    if let Some(last) = out.last_mut() {
        *last = tail;
    }
    out
}

/// The bucket of a key of the family `seen`.
pub(crate) fn bucket_of(key: &[u8]) -> Option<u64> {
    key.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}

/// The marker of a bucket.
pub(crate) fn encode_marker(bucket: &Bucket, ids: u64, filter: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(42 + filter.len());
    out.push(MARKER_VERSION);
    out.extend_from_slice(&bucket.id.to_le_bytes());
    out.extend_from_slice(&bucket.first.0.to_le_bytes());
    out.push(u8::from(bucket.end.is_some()));
    let (offset, clock) = bucket.end.unwrap_or_default();
    out.extend_from_slice(&offset.0.to_le_bytes());
    out.extend_from_slice(&clock.0.to_le_bytes());
    out.extend_from_slice(&ids.to_le_bytes());
    out.extend_from_slice(filter);
    out
}

/// Reads a marker; `None` for one of another version.
pub(crate) fn decode_marker(bytes: &[u8]) -> Option<SealedBucket> {
    let (&MARKER_VERSION, rest) = bytes.split_first()? else {
        return None;
    };
    let (id, rest) = rest.split_first_chunk::<8>()?;
    let (first, rest) = rest.split_first_chunk::<8>()?;
    let (ended, rest) = rest.split_first()?;
    let (offset, rest) = rest.split_first_chunk::<8>()?;
    let (clock, rest) = rest.split_first_chunk::<8>()?;
    let (ids, filter) = rest.split_first_chunk::<8>()?;
    let end = (NextOffset(i64::from_le_bytes(*offset)), TimestampMs(i64::from_le_bytes(*clock)));
    let bucket = Bucket {
        id: u64::from_le_bytes(*id),
        first: NextOffset(i64::from_le_bytes(*first)),
        end: (*ended == 1).then_some(end),
    };
    Some(SealedBucket { bucket, ids: u64::from_le_bytes(*ids), filter: filter.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let cell = Cell { sum: Sum(-2), events: 258 };
        let bytes = encode_cell(cell);
        assert_eq!(bytes[..], [[0xFE].as_slice(), &[0xFF; 15], &[2, 1, 0, 0, 0, 0, 0, 0]].concat());
        assert_eq!((decode_cell(&bytes), decode_cell(&bytes[1..])), (Some(cell), None));
        let id = *b"abcdefghijkl";
        assert_eq!(seen_key(258, &id), *b"\0\0\0\0\0\0\x01\x02abcdefghijkl");
        assert_eq!(bucket_of(&seen_key(258, &id)), Some(258));
    }

    #[test]
    fn a_marker_is_the_last_key_of_its_bucket() {
        for id in [0, 1, u64::MAX - 1] {
            assert!(seen_key(id, &[0xFF; 12]).as_slice() < marker_key(id).as_slice());
            assert!(marker_key(id) < bucket_end(id));
            assert!(bucket_end(id).as_slice() < seen_key(id + 1, &[0; 12]).as_slice());
        }
    }

    #[test]
    fn markers_are_read_back() {
        let ended = Bucket { id: 7, first: NextOffset(-1), end: Some((NextOffset(9), TimestampMs(-5))) };
        for bucket in [ended, Bucket { end: None, ..ended }] {
            for filter in [&b""[..], b"filter"] {
                let sealed = SealedBucket { bucket, ids: 3, filter: filter.to_vec() };
                let bytes = encode_marker(&bucket, 3, filter);
                assert_eq!(decode_marker(&bytes), Some(sealed));
                assert_eq!(decode_marker(&bytes[..41]), None);
            }
        }
        assert_eq!(encode_marker(&ended, 3, b"f")[..10], *b"\x01\x07\0\0\0\0\0\0\0\xff");
        assert_eq!(decode_marker(&[2; 60]), None);
    }
}
