//! RFC 3339 text to epoch milliseconds.
//!
//! The calendar is jiff's; its parser takes more than RFC 3339 (a space for the `T`, offsets without minutes, bracketed
//! zones), so the grammar of RFC 3339 §5.6 is checked here first, to the letter: `T` and `Z` in either case, an offset
//! is required, a fraction may have any number of digits.

/// Epoch milliseconds of an RFC 3339 date-time, floored; none if it is none.
pub(crate) fn rfc3339_ms(text: &str) -> Option<i64> {
    let (date_time, rest) = text.split_at_checked(19)?;
    if !has_shape(date_time, "dddd-dd-ddTdd:dd:dd") {
        return None;
    }
    let (fraction, zone) = split_fraction(rest)?;
    let zone = offset(zone)?;
    // Below a nanosecond nothing can move a floor to milliseconds, and jiff takes nine digits.
    let fraction: String = fraction.chars().take(9).collect();
    let dot = if fraction.is_empty() { "" } else { "." };
    let exact = format!("{}{dot}{fraction}{zone}", date_time.to_ascii_uppercase());
    let timestamp: jiff::Timestamp = exact.parse().ok()?;
    i64::try_from(timestamp.as_nanosecond().div_euclid(1_000_000)).ok()
}

/// Whether every character is what the pattern says: `d` a digit, anything else itself in either case.
fn has_shape(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(&wanted),
        })
}

/// The digits of the fraction (none without one) and what follows.
fn split_fraction(rest: &str) -> Option<(&str, &str)> {
    let Some(after_dot) = rest.strip_prefix('.') else {
        return Some(("", rest));
    };
    let digits = after_dot.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { None } else { after_dot.split_at_checked(digits) }
}

/// The offset as jiff reads it: `Z`, or hours 00–23 and minutes 00–59.
fn offset(zone: &str) -> Option<String> {
    if zone.eq_ignore_ascii_case("z") {
        return Some("Z".to_owned());
    }
    let digits = zone.strip_prefix(['+', '-'])?;
    if !has_shape(digits, "dd:dd") {
        return None;
    }
    let (hours, minutes) = digits.split_once(':')?;
    let within = hours.parse::<u8>().ok()? <= 23 && minutes.parse::<u8>().ok()? <= 59;
    within.then(|| zone.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("2025-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01T24:00:00Z", None),
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
            ("", None),
        ];
        for (text, right) in cases {
            assert_eq!(rfc3339_ms(text), right, "{text}");
        }
    }

    #[test]
    fn a_leap_second_is_rfc_3339() {
        assert!(rfc3339_ms("1990-12-31T23:59:60Z").is_some());
    }
}
