//! The bytes beneath every frame: LEB128 varints, zigzag, length-prefixed strings; a reader that survives any input.

use thiserror::Error;

/// Why bytes are not a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// The first three bytes are not ours.
    #[error("not a frame of this kind: the magic bytes do not match")]
    Magic,
    /// Written by a later version of Tallyflow.
    #[error("frame version {0} is not known to this version of tallyflow: upgrade it")]
    Version(u8),
    /// The frame ends within a field.
    #[error("the frame is cut short")]
    Truncated,
    /// A number needs more bits than its field has.
    #[error("a number in the frame is out of range")]
    Number,
    /// Bytes follow the last field.
    #[error("{0} bytes follow the end of the frame")]
    Trailing(usize),
    /// A reference or a count that contradicts the rest of the frame.
    #[error("the frame contradicts itself: {0}")]
    Inconsistent(&'static str),
}

/// Appends `value` as LEB128.
pub fn put_u128(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` as LEB128.
pub fn put_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` as zigzag LEB128.
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_u64(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends `value` as zigzag LEB128.
pub fn put_i128(out: &mut Vec<u8>, value: i128) {
    put_u128(out, ((value << 1) ^ (value >> 127)) as u128);
}

/// Appends an optional number: a flag byte, then the number.
pub fn put_option(out: &mut Vec<u8>, value: Option<i64>) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put_i64(out, value);
        }
    }
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads fields off the front of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Checks magic and version and stands at the first field.
    ///
    /// # Errors
    ///
    /// [`FrameError::Magic`] or [`FrameError::Version`].
    pub fn open(bytes: &'a [u8], magic: [u8; 3], version: u8) -> Result<Self, FrameError> {
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or(FrameError::Magic)?;
        let [a, b, c, found] = *head;
        if [a, b, c] != magic {
            return Err(FrameError::Magic);
        }
        if found != version {
            return Err(FrameError::Version(found));
        }
        Ok(Self { rest })
    }

    /// How many bytes are left.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next byte.
    ///
    /// # Errors
    ///
    /// [`FrameError::Truncated`] at the end; so do all the others.
    pub fn byte(&mut self) -> Result<u8, FrameError> {
        let (first, rest) = self.rest.split_first().ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    ///
    /// [`FrameError::Truncated`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    ///
    /// [`FrameError::Truncated`].
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// A LEB128 number.
    ///
    /// # Errors
    ///
    /// [`FrameError::Number`] beyond 64 bits.
    pub fn u64(&mut self) -> Result<u64, FrameError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(FrameError::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(FrameError::Number)
    }

    /// A LEB128 number.
    ///
    /// # Errors
    ///
    /// [`FrameError::Number`] beyond 128 bits.
    pub fn u128(&mut self) -> Result<u128, FrameError> {
        let mut value = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift == 126 && bits > 3 {
                return Err(FrameError::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(FrameError::Number)
    }

    /// A LEB128 number of at most 32 bits.
    ///
    /// # Errors
    ///
    /// [`FrameError::Number`] beyond.
    pub fn u32(&mut self) -> Result<u32, FrameError> {
        u32::try_from(self.u64()?).map_err(|_| FrameError::Number)
    }

    /// A zigzag number.
    ///
    /// # Errors
    ///
    /// As [`Reader::u64`].
    pub fn i64(&mut self) -> Result<i64, FrameError> {
        let raw = self.u64()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A zigzag number.
    ///
    /// # Errors
    ///
    /// As [`Reader::u128`].
    pub fn i128(&mut self) -> Result<i128, FrameError> {
        let raw = self.u128()?;
        Ok((raw >> 1) as i128 ^ -((raw & 1) as i128))
    }

    /// An optional number.
    ///
    /// # Errors
    ///
    /// [`FrameError::Inconsistent`] for a flag other than 0 and 1.
    pub fn option(&mut self) -> Result<Option<i64>, FrameError> {
        if self.flag()? { Ok(Some(self.i64()?)) } else { Ok(None) }
    }

    /// A byte that is 0 or 1.
    ///
    /// # Errors
    ///
    /// [`FrameError::Inconsistent`] otherwise.
    pub fn flag(&mut self) -> Result<bool, FrameError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FrameError::Inconsistent("a flag is neither 0 nor 1")),
        }
    }

    /// A length-prefixed byte string.
    ///
    /// # Errors
    ///
    /// [`FrameError::Truncated`].
    pub fn bytes(&mut self) -> Result<&'a [u8], FrameError> {
        let length = usize::try_from(self.u64()?).map_err(|_| FrameError::Number)?;
        self.take(length)
    }

    /// A length-prefixed text.
    ///
    /// # Errors
    ///
    /// [`FrameError::Inconsistent`] where it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, FrameError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| FrameError::Inconsistent("a name is not UTF-8"))
    }

    /// A count of things that take at least `least_bytes` each: more than the frame can hold is refused before
    /// anything is allocated for them.
    ///
    /// # Errors
    ///
    /// [`FrameError::Truncated`].
    pub fn count(&mut self, least_bytes: usize) -> Result<usize, FrameError> {
        let count = usize::try_from(self.u64()?).map_err(|_| FrameError::Number)?;
        if count.saturating_mul(least_bytes.max(1)) > self.rest.len() {
            return Err(FrameError::Truncated);
        }
        Ok(count)
    }

    /// Ends the frame.
    ///
    /// # Errors
    ///
    /// [`FrameError::Trailing`] if bytes are left.
    pub const fn finish(self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(FrameError::Trailing(self.rest.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(a in any::<u64>(), b in any::<i64>(), c in any::<i128>(), d in any::<u128>(), e in any::<Option<i64>>()) {
            let mut out = b"TFX\x01".to_vec();
            put_u64(&mut out, a);
            put_i64(&mut out, b);
            put_i128(&mut out, c);
            put_u128(&mut out, d);
            put_option(&mut out, e);
            let mut reader = Reader::open(&out, *b"TFX", 1).unwrap();
            prop_assert_eq!(reader.u64(), Ok(a));
            prop_assert_eq!(reader.i64(), Ok(b));
            prop_assert_eq!(reader.i128(), Ok(c));
            prop_assert_eq!(reader.u128(), Ok(d));
            prop_assert_eq!(reader.option(), Ok(e));
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn too_many_bits_are_refused() {
        let reader = |bytes: &'static [u8]| Reader::open(bytes, *b"TFX", 1).unwrap();
        assert_eq!(reader(b"TFX\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02").u64(), Err(FrameError::Number));
        assert_eq!(reader(b"TFX\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").u64(), Ok(u64::MAX));
        assert_eq!(
            reader(b"TFX\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").u64(),
            Err(FrameError::Number)
        );
        assert_eq!(reader(b"TFX\x01\x80").u64(), Err(FrameError::Truncated));
        assert_eq!(reader(b"TFX\x01\xff\xff\xff\xff\x7f").count(20), Err(FrameError::Truncated));
    }

    #[test]
    fn magic_and_version_come_first() {
        assert_eq!(Reader::open(b"", *b"TFX", 1).unwrap_err(), FrameError::Magic);
        assert_eq!(Reader::open(b"TFY\x01", *b"TFX", 1).unwrap_err(), FrameError::Magic);
        assert_eq!(Reader::open(b"TFX\x02", *b"TFX", 1).unwrap_err(), FrameError::Version(2));
    }
}
