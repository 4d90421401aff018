//! RFC 3339 text to milliseconds since the epoch, floored.
//!
//! The calendar is jiff's. Its parser takes more than RFC 3339 (a space for the `T`, hours alone as an offset,
//! bracketed zones) and an allocation is not needed, so the grammar of RFC 3339 §5.6 is read here, to the letter: `T`
//! and `Z` in either case, an offset is required, a fraction may have any number of digits. A leap second is the
//! second before it, as in jiff.

use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The instant of an RFC 3339 date-time; `None` if the text is none.
pub fn parse_ms(text: &str) -> Option<i64> {
    let mut rest = text.as_bytes();
    let year = digits(&mut rest, 4)?;
    let month = mark(&mut rest, b'-').and_then(|()| digits(&mut rest, 2))?;
    let day = mark(&mut rest, b'-').and_then(|()| digits(&mut rest, 2))?;
    let hour = mark(&mut rest, b'T').and_then(|()| digits(&mut rest, 2))?;
    let minute = mark(&mut rest, b':').and_then(|()| digits(&mut rest, 2))?;
    let second = mark(&mut rest, b':').and_then(|()| digits(&mut rest, 2))?;
    let nanosecond = if mark(&mut rest, b'.').is_some() { fraction(&mut rest)? } else { 0 };
    let offset_s = offset(&mut rest)?;
    if !rest.is_empty() {
        return None;
    }
    let second = if second == 60 { 59 } else { second };
    let local = DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second).ok()?,
        nanosecond,
    );
    let instant = Offset::from_seconds(offset_s).ok()?.to_timestamp(local.ok()?).ok()?;
    i64::try_from(instant.as_nanosecond().div_euclid(1_000_000)).ok()
}

/// Takes exactly `count` digits.
fn digits(rest: &mut &[u8], count: usize) -> Option<i32> {
    let (head, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    head.iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i32::from(byte - b'0')))
}

/// Takes this character, in either case.
fn mark(rest: &mut &[u8], wanted: u8) -> Option<()> {
    let (first, tail) = rest.split_first()?;
    first.eq_ignore_ascii_case(&wanted).then(|| *rest = tail)
}

/// Takes one digit or more, as nanoseconds: those below cannot move a floor.
fn fraction(rest: &mut &[u8]) -> Option<i32> {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (all, tail) = rest.split_at_checked(count).filter(|(all, _)| !all.is_empty())?;
    *rest = tail;
    let padded = all.iter().chain(std::iter::repeat(&b'0')).take(9);
    Some(padded.fold(0, |number, byte| number * 10 + i32::from(byte - b'0')))
}

/// Takes `Z`, or hours 00–23 and minutes 00–59 with their sign, as seconds.
fn offset(rest: &mut &[u8]) -> Option<i32> {
    if mark(rest, b'Z').is_some() {
        return Some(0);
    }
    let sign = match mark(rest, b'+') {
        Some(()) => 1,
        None => mark(rest, b'-').map(|()| -1)?,
    };
    let hours = digits(rest, 2).filter(|hours| *hours <= 23)?;
    mark(rest, b':')?;
    let minutes = digits(rest, 2).filter(|minutes| *minutes <= 59)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc_3339_and_nothing_else() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-01T00:00:01.5Z", Some(1_500)),
            ("1970-01-01T00:00:00.0019999Z", Some(1)),
            ("1970-01-01T00:00:00.001999999999999Z", Some(1)),
            ("1969-12-31T23:59:59.9999Z", Some(-1)),
            ("2026-01-01T00:00:00+05:30", Some(1_767_205_800_000)),
            ("2026-01-01T00:00:00-00:00", Some(1_767_225_600_000)),
            ("2026-01-01t00:00:00z", Some(1_767_225_600_000)),
            ("2024-02-29T00:00:00Z", Some(1_709_164_800_000)),
            ("1990-12-31T23:59:60Z", Some(662_687_999_000)),
            ("0000-01-01T00:00:00Z", Some(-62_167_219_200_000)),
            ("2025-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01T24:00:00Z", None),
            ("2026-01-01T00:00:61Z", None),
            ("2026-01-01 00:00:00Z", None),
            ("2026-01-01T00:00:00", None),
            ("2026-01-01T00:00Z", None),
            ("2026-01-01", None),
            ("2026-01-01T00:00:00+0530", None),
            ("2026-01-01T00:00:00+05", None),
            ("2026-01-01T00:00:00+24:00", None),
            ("2026-01-01T00:00:00+05:60", None),
            ("2026-01-01T00:00:00.Z", None),
            ("2026-01-01T00:00:00,5Z", None),
            ("2026-01-01T00:00:00Z[UTC]", None),
            ("2026-01-01T00:00:00ZZ", None),
            ("+002026-01-01T00:00:00Z", None),
            (" 2026-01-01T00:00:00Z", None),
            ("1767225600000", None),
            ("é026-01-01T00:00:00Z", None),
            ("9999-12-31T23:59:59-23:59", None),
            ("", None),
        ];
        for (text, right) in cases {
            assert_eq!(parse_ms(text), right, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_jiff_where_jiff_reads_it_too(
            year in 0..10_000i32, month in 0..14, day in 0..33, hour in 0..25, minute in 0..61, second in 0..62,
            fraction in "(\\.[0-9]{1,9})?", zone in "Z|[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9]",
        ) {
            let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}");
            let jiff: Option<jiff::Timestamp> = text.parse().ok();
            let right = jiff.map(|instant| instant.as_nanosecond().div_euclid(1_000_000) as i64);
            prop_assert_eq!(parse_ms(&text), right, "{}", text);
        }

        #[test]
        fn any_text_is_survived(text in ".{0,40}") {
            let _ = parse_ms(&text);
        }
    }
}
