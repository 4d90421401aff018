//! The originals: every event that is counted, as a function of the seed and its number.
//!
//! Nothing is remembered: a copy a million events later makes its original anew. So far duplicates cost no memory, and
//! a run of any length needs the same.
//!
//! Invariant: `Originals::get(n)` is the same whenever it is asked, and so is the partition the original lives in.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

use crate::plan::Plan;
use crate::zipf::Zipf;

/// Keeps the seeds of different purposes apart.
const PACKED: u64 = 0x7061_636b_6564;

/// A counted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Original {
    pub(crate) number: u64,
    pub(crate) namespace: u32,
    pub(crate) counter: u32,
    /// Which combination of dimension values, first dimension first.
    pub(crate) combination: u64,
    pub(crate) delta: i64,
    pub(crate) event_time_ms: i64,
    /// Random bits for how it is written: what may be left out, unknown fields.
    pub(crate) style: u8,
}

/// Makes originals.
#[derive(Debug)]
pub(crate) struct Originals {
    plan: Plan,
    zipf: Zipf,
    combinations: u64,
}

impl Originals {
    pub(crate) fn new(plan: Plan) -> Self {
        let zipf = Zipf::new(plan.counters, plan.zipf);
        let combinations = plan.combinations();
        Self { plan, zipf, combinations }
    }

    pub(crate) fn get(&self, number: u64) -> Original {
        let plan = &self.plan;
        let mut rng = SmallRng::seed_from_u64(mix(plan.seed, number));
        let counter = self.zipf.draw(rng.next_u64());
        let namespace = below(rng.next_u32(), plan.namespaces.len() as u64) as u32;
        let combination = if self.combinations > 1 { rng.random_range(0..self.combinations) } else { 0 };
        let size = if plan.max_delta > 1 { rng.random_range(1..=plan.max_delta) } else { 1 };
        let negative = plan.negative > 0.0 && rng.random_bool(plan.negative);
        let behind = plan.out_of_order > 0.0 && rng.random_bool(plan.out_of_order);
        let lag_ms = if behind { rng.random_range(1..=plan.out_of_order_ms) } else { 0 };
        Original {
            number,
            namespace,
            counter,
            combination,
            delta: if negative { -size } else { size },
            event_time_ms: plan.clock_ms(number) - lag_ms,
            style: rng.next_u32() as u8,
        }
    }

    /// Whether this original and its neighbours travel in one packed record.
    pub(crate) fn is_packed(&self, number: u64) -> bool {
        let block = number / u64::from(self.plan.packed_events);
        let chance = mix(self.plan.seed ^ PACKED, block) >> 11;
        // 53 random bits, the precision of an f64.
        (chance as f64) < self.plan.packed * (1_u64 << 53) as f64
    }

    /// The original whose counter decides where this one goes: the first of its packed record, or itself.
    pub(crate) fn leader(&self, original: &Original) -> Original {
        if !self.is_packed(original.number) {
            return *original;
        }
        let size = u64::from(self.plan.packed_events);
        self.get(original.number / size * size)
    }

    /// The partition of an original's first sighting.
    pub(crate) fn home(&self, original: &Original) -> Option<u32> {
        let partitions = self.plan.partitions?;
        let leader = self.leader(original);
        let key = u64::from(leader.namespace) << 32 | u64::from(leader.counter);
        Some(below(mix(0, key) as u32, u64::from(partitions)) as u32)
    }
}

/// A number below `bound`, from 32 random bits.
pub(crate) fn below(bits: u32, bound: u64) -> u64 {
    (u64::from(bits) * bound) >> 32
}

/// SplitMix64's finalizer over seed and number (Steele, Lea, Flood 2014).
fn mix(seed: u64, number: u64) -> u64 {
    let mut bits = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan { packed: 0.5, partitions: Some(7), packed_events: 10, ..Plan::new(5, 1000, 1_800_000_000_000) }
    }

    #[test]
    fn an_original_is_a_function_of_seed_and_number() {
        let (one, other) = (Originals::new(plan()), Originals::new(plan()));
        let elsewhere = Originals::new(Plan { seed: 6, ..plan() });
        for number in [0, 1, 999, u64::from(u32::MAX)] {
            assert_eq!(one.get(number), other.get(number));
            assert_eq!(one.home(&one.get(number)), other.home(&other.get(number)));
        }
        assert!((0..100).any(|number| one.get(number) != elsewhere.get(number)));
    }

    #[test]
    fn a_packed_block_lives_in_one_partition() {
        let originals = Originals::new(plan());
        let mut packed = 0;
        for block in 0..200_u64 {
            let homes: Vec<_> = (0..10).map(|n| originals.home(&originals.get(block * 10 + n))).collect();
            if originals.is_packed(block * 10) {
                packed += 1;
                assert!(homes.iter().all(|home| *home == homes[0]), "block {block}");
            }
        }
        assert!((60..140).contains(&packed), "{packed}");
    }
}
