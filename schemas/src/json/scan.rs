//! The tokens of a JSON text (RFC 8259), pulled one by one and borrowed from it.
//!
//! A token is checked to the letter, but not converted: a string keeps its escapes until somebody wants its text, a
//! number stays as it was written. Must not know what nests in what.

use std::borrow::Cow;

/// Where a text stops being JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SyntaxError {
    /// The byte, from 0.
    pub(crate) at: usize,
    /// What is wrong there.
    pub(crate) what: &'static str,
}

/// A string token: what stands between the quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Text<'r> {
    raw: &'r str,
    escaped: bool,
}

impl<'r> Text<'r> {
    /// The text; borrowed where nothing is escaped. `None` if it is no Unicode text: a surrogate stands alone.
    #[inline]
    pub(crate) fn decode(self) -> Option<Cow<'r, str>> {
        if self.escaped { unescape(self.raw).map(Cow::Owned) } else { Some(Cow::Borrowed(self.raw)) }
    }
}

/// A scalar token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scalar<'r> {
    Null,
    Boolean,
    Number(&'r str),
    Text(Text<'r>),
}

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner<'r> {
    text: &'r str,
    at: usize,
}

impl<'r> Scanner<'r> {
    pub(crate) const fn new(text: &'r str) -> Self {
        Self { text, at: 0 }
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    #[inline]
    fn slice(&self, from: usize, to: usize) -> &'r str {
        self.text.get(from..to).unwrap_or("")
    }

    /// The next byte that is no white space, without taking it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = self.byte(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Takes the byte that was peeked at.
    #[inline]
    pub(crate) const fn take(&mut self) {
        self.at += 1;
    }

    /// Takes this punctuation mark.
    #[inline]
    pub(crate) fn expect(&mut self, mark: u8, what: &'static str) -> Result<(), SyntaxError> {
        if self.peek() != Some(mark) {
            return Err(self.error(what));
        }
        self.take();
        Ok(())
    }

    pub(crate) const fn error(&self, what: &'static str) -> SyntaxError {
        SyntaxError { at: self.at, what }
    }

    /// Takes a value that is no container.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Result<Scalar<'r>, SyntaxError> {
        match self.peek() {
            Some(b'"') => self.string().map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(Scalar::Number),
            Some(b'n') => self.word("null").map(|()| Scalar::Null),
            Some(b't') => self.word("true").map(|()| Scalar::Boolean),
            Some(b'f') => self.word("false").map(|()| Scalar::Boolean),
            Some(_) => Err(self.error("not a value")),
            None => Err(self.error("the text ends in the middle")),
        }
    }

    /// Takes a string; the next byte is its quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Text<'r>, SyntaxError> {
        self.expect(b'"', "not a string")?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at = plain_end(self.text.as_bytes(), self.at);
            match self.byte(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("the text ends in a string")),
            }
        }
        let raw = self.slice(from, self.at);
        self.take();
        Ok(Text { raw, escaped })
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let length = match self.byte(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if hex4(self.text.as_bytes(), self.at + 2).is_some() => 6,
            _ => return Err(self.error("not an escape")),
        };
        self.at += length;
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<&'r str, SyntaxError> {
        let from = self.at;
        if self.byte(self.at) == Some(b'-') {
            self.at += 1;
        }
        match self.byte(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte(self.at) == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.slice(from, self.at))
    }

    #[inline]
    fn digits(&mut self) -> Result<(), SyntaxError> {
        let from = self.at;
        while self.byte(self.at).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == from { Err(self.error("not a number")) } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        let end = self.at.saturating_add(word.len());
        if self.text.as_bytes().get(self.at..end) != Some(word.as_bytes()) {
            return Err(self.error("not a value"));
        }
        self.at = end;
        Ok(())
    }
}

/// Whether the number was written as an integer, and is within i64: `1.0` and `1e2` are none.
#[inline]
pub(crate) fn integer(number: &str) -> Option<i64> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { number.parse().ok() } else { None }
}

/// The first byte at or after `at` that ends a plain piece of string: a quote, a backslash, a control character.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Eight bytes at a time. `(x − 1…1) & !x & 80…80` is not 0 exactly where a byte of x is 0 ("Determine if a word
    // has a zero byte", Anderson, Bit Twiddling Hacks); a byte below 0x20 shows likewise with 0x20 for 1.
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        // Only above a true one can a false mark stand: the lowest is the first.
        if found & HIGH != 0 {
            return at + ((found & HIGH).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let tail = bytes.get(at..).unwrap_or(&[]);
    at + tail.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count()
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(4)?)?;
    digits.iter().try_fold(0, |number, byte| Some(number * 16 + char::from(*byte).to_digit(16)?))
}

/// The text of a string whose escapes are well formed; `None` where a surrogate stands alone.
fn unescape(raw: &str) -> Option<String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at)?);
        let escape = rest.get(at..)?;
        let (character, length) = match escape.as_bytes().get(1)? {
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => unicode(escape.as_bytes())?,
            other => (char::from(*other), 2),
        };
        out.push(character);
        rest = escape.get(length..)?;
    }
    out.push_str(rest);
    Some(out)
}

/// The character of `\uXXXX`, or of a pair of surrogates, and its length.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    let first = hex4(escape, 2)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    let is_pair = (0xd800..0xdc00).contains(&first) && escape.get(6..8) == Some(b"\\u");
    let second = hex4(escape, 8).filter(|second| is_pair && (0xdc00..0xe000).contains(second))?;
    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).map(|character| (character, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_pieces_end_where_they_must() {
        for length in 0..40 {
            for end in [b'"', b'\\', 0, 0x1f, b'\n'] {
                let mut bytes = vec![b'x'; length];
                bytes.push(end);
                bytes.extend_from_slice(b"\x7f\xc3\xa9 !#[]\xff abcdefgh\"");
                assert_eq!(plain_end(&bytes, 0), length, "{end}");
            }
            assert_eq!(plain_end(&vec![0xff; length], 0), length);
            assert_eq!(plain_end(&vec![b' '; length], 0), length);
        }
    }

    #[test]
    fn integers_are_judged_by_their_text() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("1.0", None),
            ("1e2", None),
        ];
        for (text, right) in cases {
            assert_eq!(integer(text), right, "{text}");
        }
    }

    #[test]
    fn escapes() {
        let cases = [
            (r#""a\"\\\/\b\f\n\r\tz""#, Some("a\"\\/\u{8}\u{c}\n\r\tz")),
            (r#""\u0041\u00e9\ud83d\ude00é""#, Some("Aé😀é")),
            (r#""\ud83d""#, None),
            (r#""\ude00""#, None),
            (r#""\ud83dx\ude00""#, None),
            (r#""\ud83d\ud83d""#, None),
        ];
        for (text, right) in cases {
            let found = Scanner::new(text).string().unwrap().decode();
            assert_eq!(found.as_deref(), right, "{text}");
        }
        for text in [r#""\x""#, r#""\u12g4""#, r#""\u123"#, r#""\"#, "\"a\nb\"", "\"a"] {
            assert!(Scanner::new(text).string().is_err(), "{text}");
        }
    }

    #[test]
    fn scalars() {
        for text in ["0", "-0", "10", "1.5", "1e5", "1E+5", "-1.25e-3", "null", "true", "false", "\"\""] {
            let mut scanner = Scanner::new(text);
            assert!(scanner.scalar().is_ok() && scanner.peek().is_none(), "{text}");
        }
        for text in ["01", "+1", ".5", "1.", "1e", "-", "nul", "nulll", "True", "NaN", "'a'", ""] {
            let mut scanner = Scanner::new(text);
            assert!(scanner.scalar().is_err() || scanner.peek().is_some(), "{text}");
        }
    }
}
