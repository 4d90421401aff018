//! Durations and sizes: text with units, `24h10m` and `64MiB`.
//!
//! Strict on purpose: a number without a unit, a fraction or an unknown unit is explained, never guessed.
//!
//! Must not know: which keys hold them.

use std::fmt::Write;

/// Units of durations, largest first, in milliseconds.
const DURATION_UNITS: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Units of sizes, in bytes.
const SIZE_UNITS: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// Reads a duration as `24h10m`: whole numbers with `d`, `h`, `m`, `s` or `ms`, the largest first, each once.
///
/// # Errors
/// What is wrong, as a clause that follows the text.
pub fn duration_ms(text: &str) -> Result<i64, String> {
    let (mut rest, mut total, mut smallest) = (text, 0_i64, i64::MAX);
    if rest.is_empty() {
        return Err("is empty".to_owned());
    }
    while !rest.is_empty() {
        let (number, unit, after) = part(rest)?;
        let Some((_, length)) = DURATION_UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(unknown_duration_unit(unit));
        };
        if *length >= smallest {
            return Err(format!("has `{unit}` out of order: the largest unit comes first, each once"));
        }
        smallest = *length;
        let value: i64 = number.parse().map_err(|_| "is too long".to_owned())?;
        total = value
            .checked_mul(*length)
            .and_then(|value| total.checked_add(value))
            .ok_or_else(|| "is too long".to_owned())?;
        rest = after;
    }
    Ok(total)
}

/// Reads a size as `64MiB`: a whole number with `B`, `KiB`, `MiB`, `GiB` or `TiB`.
///
/// # Errors
/// What is wrong, as a clause that follows the text.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    let (number, unit, after) = part(text)?;
    if !after.is_empty() {
        return Err("has more than one unit".to_owned());
    }
    let Some((_, length)) = SIZE_UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_size_unit(unit));
    };
    let value: u64 = number.parse().map_err(|_| "is too large".to_owned())?;
    value.checked_mul(*length).ok_or_else(|| "is too large".to_owned())
}

/// Writes a duration as one would in the file: `24h10m`, `7d`, `0s`.
pub fn duration_text(ms: i64) -> String {
    if ms <= 0 {
        return "0s".to_owned();
    }
    // 24h and not 1d: days are for whole numbers of two and more.
    let (mut rest, mut text) = (ms, String::new());
    for (unit, length) in DURATION_UNITS {
        let count = rest / length;
        let skip_days = unit == "d" && (count < 2 || rest % length != 0);
        if count > 0 && !skip_days {
            // Writing to a String cannot fail.
            let _ = write!(text, "{count}{unit}");
            rest %= length;
        }
    }
    text
}

/// Writes a size with the largest unit that leaves a whole number.
pub fn size_text(bytes: u64) -> String {
    let unit = SIZE_UNITS.iter().rev().find(|(_, length)| bytes >= *length && bytes.is_multiple_of(*length));
    unit.map_or_else(|| "0B".to_owned(), |(name, length)| format!("{}{name}", bytes / length))
}

/// Takes a number, the letters behind it, and what follows.
fn part(text: &str) -> Result<(&str, &str, &str), String> {
    let (number, rest) = split_at_first(text, |c| !c.is_ascii_digit());
    let (unit, after) = split_at_first(rest, |c| !c.is_ascii_alphabetic());
    if text.starts_with('-') {
        Err("is negative".to_owned())
    } else if rest.starts_with(['.', ',']) {
        Err("has a fraction: use a smaller unit instead".to_owned())
    } else if text.starts_with(char::is_whitespace) || rest.starts_with(char::is_whitespace) {
        Err("has a space in it".to_owned())
    } else if number.is_empty() {
        Err("does not have a number in front of each unit".to_owned())
    } else if unit.is_empty() {
        Err(format!("has no unit behind {number}"))
    } else {
        Ok((number, unit, after))
    }
}

fn split_at_first(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    let at = text.find(wanted).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or((text, ""))
}

fn unknown_duration_unit(unit: &str) -> String {
    let meant = match unit.to_ascii_lowercase().as_str() {
        "day" | "days" | "d" => "d",
        "hour" | "hours" | "hr" | "hrs" | "h" => "h",
        "min" | "mins" | "minute" | "minutes" | "m" => "m",
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "millis" | "msec" | "milliseconds" | "ms" => "ms",
        _ => return format!("has an unknown unit `{unit}`"),
    };
    format!("has an unknown unit `{unit}`, which is written `{meant}`")
}

fn unknown_size_unit(unit: &str) -> String {
    let meant = match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => "B",
        "k" | "kb" | "kib" => "KiB",
        "m" | "mb" | "mib" => "MiB",
        "g" | "gb" | "gib" => "GiB",
        "t" | "tb" | "tib" => "TiB",
        _ => return format!("has an unknown unit `{unit}`"),
    };
    format!("has an unknown unit `{unit}`: only powers of 1024 are known, like `{meant}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, ms) in [
            ("100ms", 100),
            ("0s", 0),
            ("5m", 300_000),
            ("24h10m", 87_000_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("1m500ms", 60_500),
        ] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
            assert_eq!(duration_text(ms), text);
        }
        assert_eq!(duration_ms("1d1h1m1s1ms"), Ok(90_061_001));
    }

    #[test]
    fn bad_durations_are_explained() {
        for (text, why) in [
            ("", "is empty"),
            ("5", "no unit"),
            ("m", "number"),
            ("5 m", "space"),
            (" 5m", "space"),
            ("1.5h", "fraction"),
            ("-5m", "negative"),
            ("5min", "written `m`"),
            ("5M", "written `m`"),
            ("3w", "unknown unit `w`"),
            ("10m24h", "out of order"),
            ("1m1m", "out of order"),
            ("99999999999999999999s", "too long"),
            ("9223372036854775807d", "too long"),
            ("5µs", "no unit"),
        ] {
            let said = duration_ms(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [("1GiB", 1 << 30), ("64MiB", 64 << 20), ("1KiB", 1024), ("7B", 7)] {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
            assert_eq!(size_text(bytes), text);
        }
        for (text, why) in [
            ("1GB", "like `GiB`"),
            ("1", "no unit"),
            ("1GiB1MiB", "more than one"),
            ("99999999TiB", "too large"),
            ("1.5GiB", "fraction"),
            ("1PiB", "unknown unit"),
            ("", "is empty"),
        ] {
            let said = size_bytes(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(ms in 0_i64..1 << 50, bytes in 0_u64..1 << 60) {
            prop_assert_eq!(duration_ms(&duration_text(ms)), Ok(ms));
            prop_assert_eq!(size_bytes(&size_text(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = (duration_ms(&text), size_bytes(&text));
        }
    }
}
