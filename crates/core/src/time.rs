//! Time limits as a pure function: is an event late, and may it come from the future?
//!
//! ```text
//!   event_time            append − accept          append            append + future
//! ──────────────late──────────────┤■■■■■■■ admitted ■■■■■■■■■■■■■■■■■■■■┤────── future ──
//! ```
//!
//! Both ends are included (R2). The judge is the *append time*, given by the broker at the first append, never the
//! wall clock at processing: a catch-up after an outage rejects nothing (T13).

/// Milliseconds since the epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// Before everything.
    pub const MIN: Self = Self(i64::MIN);

    /// This many milliseconds later, saturating.
    pub const fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This many milliseconds earlier, saturating.
    pub const fn minus(self, ms: i64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to this, saturating; negative if `earlier` is later.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The limits in force when a record is judged. Part of every entry frame, so that a replay judges alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How old an event may be when it is first appended (milliseconds, included).
    pub accept_ms: i64,
    /// How far ahead of its append an event may be dated (milliseconds, included).
    pub future_ms: i64,
}

/// What the time limits say of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Within the limits.
    Admitted,
    /// Older than `accept`; the age in milliseconds.
    Late(i64),
    /// Further ahead than `future`; the (negative) age in milliseconds.
    Future(i64),
}

impl Limits {
    /// Judges an event by its age at its first append (R2).
    pub const fn judge(&self, append_time: TimestampMs, event_time: TimestampMs) -> Admission {
        let age_ms = append_time.since(event_time);
        if age_ms > self.accept_ms {
            Admission::Late(age_ms)
        } else if age_ms < -self.future_ms {
            Admission::Future(age_ms)
        } else {
            Admission::Admitted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { accept_ms: 300_000, future_ms: 5_000 };

    #[test]
    fn both_ends_are_included() {
        // T19, and its neighbours one millisecond away.
        let append = TimestampMs(10_000_000);
        for (age_ms, right) in [
            (300_000, Admission::Admitted),
            (300_001, Admission::Late(300_001)),
            (301_000, Admission::Late(301_000)),
            (0, Admission::Admitted),
            (-5_000, Admission::Admitted),
            (-5_001, Admission::Future(-5_001)),
            (-6_000, Admission::Future(-6_000)),
        ] {
            assert_eq!(LIMITS.judge(append, append.minus(age_ms)), right, "age {age_ms} ms");
        }
    }

    #[test]
    fn extreme_times_do_not_wrap() {
        assert!(matches!(LIMITS.judge(TimestampMs(i64::MAX), TimestampMs(i64::MIN)), Admission::Late(_)));
        assert!(matches!(LIMITS.judge(TimestampMs(i64::MIN), TimestampMs(i64::MAX)), Admission::Future(_)));
    }
}
