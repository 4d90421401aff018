//! Draws from Zipf's law in constant time: Vose's alias method (Vose 1991, "A linear algorithm for generating random
//! numbers with a given distribution").
//!
//! The table costs 8 bytes per counter and one pass to build.

/// A table of probabilities and aliases.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// Chance, in 2^-32, to stay at the index; otherwise its alias is taken.
    slots: Vec<(u32, u32)>,
}

impl Zipf {
    /// The law over `count` ranks with weight rank^-skew; at least one rank.
    pub(crate) fn new(count: u32, skew: f64) -> Self {
        let count = count.max(1);
        let weights: Vec<f64> = (1..=count).map(|rank| f64::from(rank).powf(-skew)).collect();
        let scale = f64::from(count) / weights.iter().sum::<f64>();
        let mut scaled: Vec<(u32, f64)> =
            (0..count).zip(weights.iter().map(|weight| weight * scale)).collect();
        let mut slots: Vec<(u32, u32)> = (0..count).map(|index| (u32::MAX, index)).collect();
        let (mut small, mut large): (Vec<_>, Vec<_>) =
            scaled.drain(..).partition(|(_, weight)| *weight < 1.0);
        while let (Some((index, weight)), Some((other, rest))) = (small.pop(), large.pop()) {
            if let Some(slot) = slots.get_mut(index as usize) {
                *slot = ((weight * f64::from(u32::MAX)) as u32, other);
            }
            let rest = rest + weight - 1.0;
            if rest < 1.0 { small.push((other, rest)) } else { large.push((other, rest)) }
        }
        Self { slots }
    }

    /// A rank, from 0, for 64 random bits.
    pub(crate) fn draw(&self, bits: u64) -> u32 {
        let (high, low) = (bits >> 32, bits as u32);
        let index = (high * self.slots.len() as u64) >> 32;
        match self.slots.get(index as usize) {
            Some((stay, alias)) if low > *stay => *alias,
            _ => index as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngCore, SeedableRng, rngs::SmallRng};

    #[test]
    fn draws_follow_the_law() {
        for skew in [0.0, 1.0, 1.5] {
            let (count, draws) = (50_u32, 400_000);
            let zipf = Zipf::new(count, skew);
            let mut rng = SmallRng::seed_from_u64(3);
            let mut found = vec![0_u32; count as usize];
            (0..draws).for_each(|_| found[zipf.draw(rng.next_u64()) as usize] += 1);
            let all: f64 = (1..=count).map(|rank| f64::from(rank).powf(-skew)).sum();
            for rank in [0_u32, 1, 7, 49] {
                let right = f64::from(rank + 1).powf(-skew) / all * f64::from(draws);
                let off = f64::from(found[rank as usize]) - right;
                assert!(off.abs() < 6.0 * right.sqrt() + 1.0, "skew {skew} rank {rank}: {off} of {right}");
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn() {
        let zipf = Zipf::new(1, 1.0);
        assert!([0, u64::MAX, 1 << 32].iter().all(|bits| zipf.draw(*bits) == 0));
    }
}
