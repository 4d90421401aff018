//! Half-open windows: `[start, start + size)`, tumbling, aligned to the epoch (R9).
//!
//! The *slice* is the greatest length that divides every window and is at most 15 minutes (half-hour time zones):
//! the tally sums per slice, and every window is a sum of slices.

use crate::time::TimestampMs;

/// The longest slice: 15 min = 15 · 60 · 1000 ms.
pub const SLICE_LIMIT_MS: i64 = 15 * 60 * 1000;

/// The length of a tumbling window in milliseconds; at least 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WindowSize(i64);

impl WindowSize {
    /// A size in milliseconds; `None` unless positive.
    pub const fn new(size_ms: i64) -> Option<Self> {
        if size_ms > 0 { Some(Self(size_ms)) } else { None }
    }

    /// The length in milliseconds.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// The start of the window that holds `time`. Floors, also before 1970.
    pub const fn start_of(self, time: TimestampMs) -> TimestampMs {
        TimestampMs(time.0.saturating_sub(time.0.rem_euclid(self.0)))
    }

    /// The exclusive end of the window that starts at `start`.
    pub const fn end_of(self, start: TimestampMs) -> TimestampMs {
        start.plus(self.0)
    }
}

/// The greatest length that divides every window and is at most [`SLICE_LIMIT_MS`].
///
/// Returns `None` without windows.
pub fn greatest_slice(windows: impl IntoIterator<Item = WindowSize>) -> Option<WindowSize> {
    let common = windows.into_iter().map(WindowSize::ms).reduce(greatest_common_divisor)?;
    let limit = common.min(SLICE_LIMIT_MS);
    // Downwards from the limit: at most 900 000 steps, once at start.
    (1..=limit).rev().find(|length| common % length == 0).and_then(WindowSize::new)
}

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(ms: i64) -> WindowSize {
        WindowSize::new(ms).unwrap()
    }

    #[test]
    fn ends_are_exclusive() {
        // T26
        let minute = size(60_000);
        assert_eq!(minute.start_of(TimestampMs(59_999)), TimestampMs(0));
        assert_eq!(minute.start_of(TimestampMs(60_000)), TimestampMs(60_000));
        assert_eq!(minute.end_of(TimestampMs(0)), TimestampMs(60_000));
        assert_eq!(minute.start_of(TimestampMs(-1)), TimestampMs(-60_000));
    }

    #[test]
    fn slices_divide_every_window() {
        let slice = |list: &[i64]| greatest_slice(list.iter().map(|s| size(*s))).map(WindowSize::ms);
        assert_eq!(slice(&[60_000]), Some(60_000));
        assert_eq!(slice(&[60_000, 3_600_000]), Some(60_000));
        assert_eq!(slice(&[3_600_000]), Some(900_000));
        assert_eq!(slice(&[86_400_000]), Some(900_000));
        assert_eq!(slice(&[90_000, 60_000]), Some(30_000));
        assert_eq!(slice(&[1_000_000]), Some(500_000));
        assert_eq!(slice(&[7]), Some(7));
        assert_eq!(slice(&[]), None);
    }
}
