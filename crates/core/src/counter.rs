//! Counter keys: namespace, counter and the values of the declared dimensions, as one length-prefixed byte string.
//!
//! ```text
//!   u16 length, namespace · u16 length, counter · u16 length, value of dimension 1 · …      (little endian)
//! ```
//!
//! The encoding is injective (T9) and the same in frames, in the cold store and as a key in memory.

use xxhash_rust::xxh3::xxh3_64;

/// The longest namespace in bytes (contract §2).
pub const NAMESPACE_LIMIT_BYTES: usize = 256;
/// The longest counter name in bytes.
pub const COUNTER_LIMIT_BYTES: usize = 512;
/// The longest value of a dimension in bytes.
pub const DIMENSION_LIMIT_BYTES: usize = 1024;

/// The number of slices of the counter-hash range in which state is laid out and snapshotted.
pub const HASH_SLICES: u8 = 16;

/// Appends the key's encoding to `out`. Parts longer than 65 535 bytes cannot occur: the limits are far below.
pub fn encode_key<'a>(
    out: &mut Vec<u8>,
    namespace: &[u8],
    counter: &[u8],
    dimensions: impl Iterator<Item = &'a [u8]>,
) {
    push(out, namespace);
    push(out, counter);
    for value in dimensions {
        push(out, value);
    }
}

fn push(out: &mut Vec<u8>, part: &[u8]) {
    let length = part.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(length as u16).to_le_bytes());
    out.extend_from_slice(part.get(..length).unwrap_or(part));
}

/// The parts of an encoded key: namespace, counter, dimensions. `None` if the bytes are no key.
pub fn decode_key(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::with_capacity(4);
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*head));
        parts.push(rest.get(..length)?);
        bytes = rest.get(length..)?;
    }
    if parts.len() < 2 { None } else { Some(parts) }
}

/// Like [`decode_key`], as text; `None` also where a part is not UTF-8.
pub fn decode_key_text(bytes: &[u8]) -> Option<Vec<&str>> {
    decode_key(bytes)?.into_iter().map(|part| std::str::from_utf8(part).ok()).collect()
}

/// The 64-bit hash of (namespace, counter) that picks the owner: dimensions stay out of it, so that all the
/// variants of one counter meet in one task and an identity has one owner. `app`-independent and stable for ever.
pub fn routing_hash(namespace: &[u8], counter: &[u8]) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
    hasher.update(&(namespace.len() as u32).to_le_bytes());
    hasher.update(namespace);
    hasher.update(counter);
    hasher.digest()
}

/// The `entries` partition of a counter.
pub const fn owner(routing_hash: u64, partitions: u32) -> u32 {
    // Lemire's multiply-shift on the upper half: even, and needs no division.
    (((routing_hash >> 32) * (partitions as u64)) >> 32) as u32
}

/// The slice of the hash range that an encoded key belongs to, below [`HASH_SLICES`].
pub fn hash_slice(encoded_key: &[u8]) -> u8 {
    (xxh3_64(encoded_key) % u64::from(HASH_SLICES)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(parts: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_key(
            &mut out,
            parts[0].as_bytes(),
            parts[1].as_bytes(),
            parts[2..].iter().map(|p| p.as_bytes()),
        );
        out
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(key(&["n", "clicks", "eu"]), b"\x01\0n\x06\0clicks\x02\0eu");
        assert_eq!(decode_key_text(&key(&["n", "clicks", ""])).unwrap(), ["n", "clicks", ""]);
    }

    #[test]
    fn owners_are_stored_for_ever() {
        let hash = routing_hash(b"default", b"clicks");
        assert_eq!((hash, owner(hash, 8)), (GOLDEN_HASH, GOLDEN_OWNER));
        assert_eq!(hash_slice(&key(&["default", "clicks"])), GOLDEN_SLICE);
    }

    // Another value would send a counter's later events to another owner, which has not seen their first copies.
    const GOLDEN_HASH: u64 = 9_990_771_389_138_941_028;
    const GOLDEN_OWNER: u32 = 4;
    const GOLDEN_SLICE: u8 = 4;

    proptest! {
        #[test]
        fn encoding_is_injective(a in proptest::collection::vec("[a-c-]{0,3}", 2..5), b in proptest::collection::vec("[a-c-]{0,3}", 2..5)) {
            let (left, right) = (
                key(&a.iter().map(String::as_str).collect::<Vec<_>>()),
                key(&b.iter().map(String::as_str).collect::<Vec<_>>()),
            );
            prop_assert_eq!(left == right, a == b);
            prop_assert_eq!(decode_key_text(&left).unwrap(), a);
        }

        #[test]
        fn decoding_survives_any_input(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode_key(&bytes);
        }

        #[test]
        fn owners_are_in_range(hash in any::<u64>(), partitions in 1u32..1000) {
            prop_assert!(owner(hash, partitions) < partitions);
        }
    }
}
