//! Arithmetic of counts: i128 inside, order-independent, never clamped (R8).

use std::fmt;

/// An exact sum of i64 deltas. 2^64 of them cannot overflow it: 2^63 · 2^64 = 2^127.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sum(pub i128);

impl Sum {
    /// Adds another sum. Wraps only beyond 2^127, which no log can hold.
    pub const fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// Adds one event's delta.
    pub const fn add_delta(self, delta: i64) -> Self {
        Self(self.0.wrapping_add(delta as i128))
    }

    /// The public number: `None` (and `overflow = true`) outside i64.
    pub fn public(self) -> Option<i64> {
        i64::try_from(self.0).ok()
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn overflow_is_said_and_undone() {
        // T22
        let sum = Sum::default().add_delta(i64::MAX).add_delta(1);
        assert_eq!(sum.public(), None);
        assert_eq!(sum.to_string(), "9223372036854775808");
        assert_eq!(sum.add_delta(-1).public(), Some(i64::MAX));
    }

    proptest! {
        #[test]
        fn order_does_not_matter(mut deltas in proptest::collection::vec(any::<i64>(), 0..50), seed in any::<u64>()) {
            let sum = |list: &[i64]| list.iter().fold(Sum::default(), |s, d| s.add_delta(*d));
            let one = sum(&deltas);
            let at = if deltas.is_empty() { 0 } else { (seed as usize) % deltas.len() };
            deltas.rotate_left(at);
            deltas.reverse();
            prop_assert_eq!(one, sum(&deltas));
        }
    }
}
