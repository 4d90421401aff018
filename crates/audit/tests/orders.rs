//! Properties over orders: whichever lawful order the records were processed in, the recount agrees; bent, never.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use proptest::prelude::*;
use support::*;
use tallyflow_audit::Outcome;

const NOW: i64 = 10_020_000;

/// Sightings of a few ids on a few partitions, at growing append times.
fn sightings() -> impl Strategy<Value = Vec<(u8, i32, bool)>> {
    prop::collection::vec((0_u8..12, 0_i32..3, prop::bool::weighted(0.15)), 1..60)
}

fn records_of(sightings: &[(u8, i32, bool)]) -> Vec<Record> {
    let at = |(n, (id, partition, other)): (usize, &(u8, i32, bool))| {
        let time_ms = NOW + i64::from(*id) * 13_000;
        let mut one = event(&format!("e{id}"), i64::from(*id) - 5, time_ms);
        if *other {
            one.delta += 1 + i64::from(*id % 2);
        }
        record(*partition, NOW + 150_000 + n as i64, one)
    };
    sightings.iter().enumerate().map(at).collect()
}

/// An order in which each partition's records stay in theirs, chosen by a seed.
fn interleaving(records: &[Record], mut seed: u64) -> Vec<usize> {
    let mut queues: Vec<Vec<usize>> = vec![Vec::new(); 3];
    for (index, record) in records.iter().enumerate().rev() {
        queues[record.partition as usize].push(index);
    }
    let mut order = Vec::new();
    while order.len() < records.len() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.extend(queues[(seed >> 33) as usize % 3].pop());
    }
    order
}

proptest! {
    #[test]
    fn every_interleaving_of_a_correct_engine_is_equal(list in sightings(), seed in any::<u64>()) {
        let records = records_of(&list);
        let published = engine(&records, &interleaving(&records, seed), REMEMBER_MS);
        let report = audit(&records, &published);
        prop_assert_eq!(report.outcome(), Outcome::Equal, "{}", report);
    }

    #[test]
    fn a_permutation_of_copies_gives_the_same_counts(list in sightings(), shift in 0_usize..60) {
        let mut plain: Vec<_> = list.into_iter().map(|(id, partition, _)| (id, partition, false)).collect();
        let records = records_of(&plain);
        let (middle, length) = (shift % plain.len(), plain.len());
        plain.rotate_left(middle);
        plain[..length / 2].reverse();
        let permuted = records_of(&plain);
        let before = audit(&records, &engine_in_order(&records));
        let after = audit(&permuted, &engine_in_order(&records));
        prop_assert_eq!(before.recounted, after.recounted);
        prop_assert_eq!(before.tables, after.tables);
    }

    #[test]
    fn a_bent_sum_is_never_equal(list in sightings(), at in any::<prop::sample::Index>(), by in prop_oneof![-9_i128..0, 1_i128..9]) {
        let records = records_of(&list);
        let mut published = engine_in_order(&records);
        let places: Vec<_> = published.windows.keys().cloned().collect();
        published.windows.get_mut(&places[at.index(places.len())]).unwrap().0 += by;
        prop_assert_eq!(audit(&records, &published).outcome(), Outcome::Differences);
    }

    #[test]
    fn a_row_with_one_event_more_or_less_is_never_equal(list in sightings(), at in any::<prop::sample::Index>(), more in any::<bool>()) {
        let records = records_of(&list);
        let mut published = engine_in_order(&records);
        let places: Vec<_> = published.windows.keys().cloned().collect();
        published.windows.get_mut(&places[at.index(places.len())]).unwrap().1 += if more { 1 } else { -1 };
        prop_assert_eq!(audit(&records, &published).outcome(), Outcome::Differences);
    }
}
