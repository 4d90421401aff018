//! The bytes of a cell's cold key: the one layout that both the stores and the merge of scans rely on.
//!
//! ```text
//!   u8 hash slice · u8 table · i64 start, big endian, sign bit flipped · encoded counter key
//! ```
//!
//! Byte order is therefore: slice, table, start, key. Within one window of one slice it is [`CellOrder`], and a
//! slice, or a window of a slice, is one range. The table is the cold store's stable number (`crate::tables`), not
//! the position in the plan.
//!
//! Must not know: values, buckets, files.
//!
//! [`CellOrder`]: tallyflow_core::processor::CellOrder

use tallyflow_core::time::TimestampMs;

/// Bytes before the encoded counter key: 1 + 1 + 8.
pub const PREFIX_BYTES: usize = 10;

/// The stable number of the totals: the last one, in every deployment.
pub const TOTALS_TABLE: u8 = u8::MAX;

/// The parts of a cold key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellKey<'a> {
    /// The hash slice of the counter key.
    pub slice: u8,
    /// The stable number of the table.
    pub table: u8,
    /// Start of the window; 0 for totals.
    pub start: TimestampMs,
    /// The encoded counter key.
    pub key: &'a [u8],
}

impl<'a> CellKey<'a> {
    /// Appends the bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&window_prefix(self.slice, self.table, self.start));
        out.extend_from_slice(self.key);
    }

    /// Reads the bytes; `None` if they are too short.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let ([slice, table], rest) = bytes.split_first_chunk::<2>()?;
        let (start, key) = rest.split_first_chunk::<8>()?;
        Some(Self { slice: *slice, table: *table, start: read_start(*start), key })
    }
}

/// What every cell of one window in one slice begins with.
pub fn window_prefix(slice: u8, table: u8, start: TimestampMs) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d, e, f, g, h] = write_start(start);
    [slice, table, a, b, c, d, e, f, g, h]
}

/// The smallest byte string above everything that begins with `prefix`; `None` where there is none (all 0xFF).
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=kept)?.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.wrapping_add(1);
    }
    Some(end)
}

fn write_start(start: TimestampMs) -> [u8; 8] {
    // With the sign bit flipped, negative numbers sort below positive ones.
    ((start.0 as u64) ^ (1 << 63)).to_be_bytes()
}

fn read_start(bytes: [u8; 8]) -> TimestampMs {
    TimestampMs((u64::from_be_bytes(bytes) ^ (1 << 63)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(slice: u8, table: u8, start: i64, key: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        CellKey { slice, table, start: TimestampMs(start), key }.write(&mut out);
        out
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(bytes(3, 1, 60_000, b"key"), b"\x03\x01\x80\0\0\0\0\0\xea\x60key");
        assert_eq!(bytes(3, 255, -1, b""), b"\x03\xff\x7f\xff\xff\xff\xff\xff\xff\xff");
    }

    #[test]
    fn the_end_of_a_prefix() {
        for (prefix, right) in [
            (b"ab".as_slice(), Some(b"ac".to_vec())),
            (b"a\xff", Some(b"b".to_vec())),
            (b"\xff\xff", None),
            (b"", None),
        ] {
            assert_eq!(after_prefix(prefix), right, "{prefix:?}");
        }
    }

    #[test]
    fn short_bytes_are_no_key() {
        assert_eq!(CellKey::read(b"123456789"), None);
    }

    proptest! {
        #[test]
        fn order_is_slice_table_start_key(
            a in (0u8..3, any::<u8>(), any::<i64>(), proptest::collection::vec(any::<u8>(), 0..4)),
            b in (0u8..3, any::<u8>(), any::<i64>(), proptest::collection::vec(any::<u8>(), 0..4)),
        ) {
            let (x, y) = (bytes(a.0, a.1, a.2, &a.3), bytes(b.0, b.1, b.2, &b.3));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            let read = CellKey::read(&x).unwrap();
            prop_assert_eq!((read.slice, read.table, read.start.0, read.key.to_vec()), a);
        }
    }
}
