//! Tallies: how many events got which verdict. Cumulative, and they close (LG-1).

use crate::verdict::Verdict;

/// The tallies of one source partition, or of a part of it. Unit: events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tallies {
    /// Events read by intake (an undecodable record is one).
    pub received: u64,
    /// Events that intake let through.
    pub admitted: u64,
    /// First sights.
    pub counted: u64,
    /// Repeats.
    pub duplicate: u64,
    /// Repeats with another payload.
    pub conflict: u64,
    /// By age at intake, by the horizon rule at count.
    pub late: u64,
    /// Dated too far ahead.
    pub future: u64,
    /// Not an event.
    pub invalid: u64,
    /// Pinned.
    pub held: u64,
    /// Given up.
    pub discarded: u64,
    /// Offsets passed over without being read; part of no sum.
    pub skipped: u64,
}

impl Tallies {
    /// One more event with this verdict. Does not touch `received` and `admitted`.
    pub const fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Counted => self.counted += 1,
            Verdict::Duplicate => self.duplicate += 1,
            Verdict::Conflict => self.conflict += 1,
            Verdict::Late => self.late += 1,
            Verdict::Future => self.future += 1,
            Verdict::Invalid => self.invalid += 1,
            Verdict::Held => self.held += 1,
            Verdict::Discarded => self.discarded += 1,
        }
    }

    /// The tally of a verdict.
    pub const fn of(&self, verdict: Verdict) -> u64 {
        match verdict {
            Verdict::Counted => self.counted,
            Verdict::Duplicate => self.duplicate,
            Verdict::Conflict => self.conflict,
            Verdict::Late => self.late,
            Verdict::Future => self.future,
            Verdict::Invalid => self.invalid,
            Verdict::Held => self.held,
            Verdict::Discarded => self.discarded,
        }
    }

    /// Adds another set of tallies, column by column.
    pub const fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.admitted += other.admitted;
        self.counted += other.counted;
        self.duplicate += other.duplicate;
        self.conflict += other.conflict;
        self.late += other.late;
        self.future += other.future;
        self.invalid += other.invalid;
        self.held += other.held;
        self.discarded += other.discarded;
        self.skipped += other.skipped;
    }

    /// What was tallied since `earlier`, column by column. Never below zero.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            received: self.received.saturating_sub(earlier.received),
            admitted: self.admitted.saturating_sub(earlier.admitted),
            counted: self.counted.saturating_sub(earlier.counted),
            duplicate: self.duplicate.saturating_sub(earlier.duplicate),
            conflict: self.conflict.saturating_sub(earlier.conflict),
            late: self.late.saturating_sub(earlier.late),
            future: self.future.saturating_sub(earlier.future),
            invalid: self.invalid.saturating_sub(earlier.invalid),
            held: self.held.saturating_sub(earlier.held),
            discarded: self.discarded.saturating_sub(earlier.discarded),
            skipped: self.skipped.saturating_sub(earlier.skipped),
        }
    }

    /// Intake's books: received − (admitted + late + future + invalid + held). Zero, or something was lost (R12).
    pub const fn intake_residual(&self) -> i128 {
        self.received as i128
            - (self.admitted as i128
                + self.late as i128
                + self.future as i128
                + self.invalid as i128
                + self.held as i128)
    }

    /// Count's books: admitted − (counted + duplicate + conflict + late). Zero, or something was lost (R12).
    pub const fn count_residual(&self) -> i128 {
        self.admitted as i128
            - (self.counted as i128 + self.duplicate as i128 + self.conflict as i128 + self.late as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_its_own_column() {
        for verdict in Verdict::ALL {
            let mut tallies = Tallies::default();
            tallies.count(verdict);
            let sum: u64 = Verdict::ALL.iter().map(|v| tallies.of(*v)).sum();
            assert_eq!((tallies.of(verdict), sum), (1, 1), "{}", verdict.name());
        }
    }

    #[test]
    fn residuals_show_a_lost_event() {
        let mut tallies = Tallies { received: 3, admitted: 1, late: 1, invalid: 1, ..Tallies::default() };
        assert_eq!(tallies.intake_residual(), 0);
        tallies.received += 1;
        assert_eq!(tallies.intake_residual(), 1);
        let count =
            Tallies { admitted: 5, counted: 2, duplicate: 1, conflict: 1, late: 1, ..Tallies::default() };
        assert_eq!(count.count_residual(), 0);
    }
}
