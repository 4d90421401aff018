//! The hot table against a map with snapshots.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A well-mixed id from a small number, as a hash would be.
fn entry(n: u64, check: u32) -> SeenEntry {
    let mixed = (u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    SeenEntry(((mixed >> 32).max(1) << 32) | u128::from(check))
}

fn content(table: &HotTable) -> Vec<SeenEntry> {
    table.clone().into_sorted()
}

#[test]
fn the_first_check_of_an_id_stays() {
    let mut table = HotTable::default();
    assert_eq!(table.get(entry(1, 7)), None);
    assert_eq!(table.insert(entry(1, 7)), None);
    assert_eq!(table.insert(entry(1, 8)), Some(7));
    assert_eq!((table.get(entry(1, 9)), table.len()), (Some(7), 1));
}

#[test]
fn an_abort_leaves_no_trace_even_after_growing() {
    let mut table = HotTable::default();
    for n in 0..600 {
        table.insert(entry(n, 1));
    }
    table.commit();
    let before = content(&table);
    for n in 600..200_000 {
        table.insert(entry(n, 2));
    }
    table.abort();
    assert_eq!(content(&table), before);
    assert!((600..200_000).all(|n| table.get(entry(n, 2)).is_none()));
    assert!((0..600).all(|n| table.get(entry(n, 2)) == Some(1)));
}

#[test]
fn an_id_costs_at_most_24_bytes() {
    let mut table = HotTable::default();
    for n in 0..2_000_000u64 {
        table.insert(entry(n, 0));
        table.commit();
        if n > 70_000 {
            let bytes_per_id = (table.memory_bytes()) as f64 / table.len() as f64;
            assert!(bytes_per_id <= 24.01, "{bytes_per_id} bytes per id at {n}");
        }
    }
}

#[test]
fn ids_that_share_a_home_wrap_around_the_end() {
    // All of them belong into the last slot.
    let same = |n: u32| SeenEntry((u128::MAX << 64) | (u128::from(n) << 32) | 5);
    let mut table = HotTable::default();
    (0..500).for_each(|n| assert_eq!(table.insert(same(n)), None));
    table.commit();
    (500..800).for_each(|n| assert_eq!(table.insert(same(n)), None));
    assert!((0..800).all(|n| table.get(same(n)) == Some(5)));
    table.abort();
    assert!((0..500).all(|n| table.get(same(n)) == Some(5)));
    assert!((500..800).all(|n| table.get(same(n)).is_none()));
}

#[test]
fn a_table_made_of_a_log_keeps_first_sightings() {
    let log: Vec<SeenEntry> = (0..5000u64).map(|n| entry(n * 7919 % 1000, n as u32)).collect();
    let mut one_by_one = HotTable::default();
    log.iter().for_each(|entry| one_by_one.insert_committed(*entry));
    let table = HotTable::from_log(log);
    assert_eq!(table.len(), 1000);
    assert_eq!(content(&table), content(&one_by_one));
    assert!(HotTable::from_log(Vec::new()).is_empty());
}

#[test]
fn a_table_made_of_entries_knows_them_all() {
    for count in [0, 1, 818, 819, 820, 10_000] {
        let entries: Vec<SeenEntry> = (0..count).map(|n| entry(n, n as u32)).collect();
        let table = HotTable::from_entries(&entries);
        assert_eq!(table.len() as u64, count);
        assert!((0..count).all(|n| table.get(entry(n, 0)) == Some(n as u32)));
        assert_eq!(table.get(entry(count, 0)), None);
    }
}

proptest! {
    #[test]
    fn agrees_with_a_map(steps in proptest::collection::vec((0u8..10, 0u64..3000, 0u32..4, 1u64..400), 1..60)) {
        let mut table = HotTable::default();
        let (mut now, mut committed) = (BTreeMap::new(), BTreeMap::new());
        for (kind, n, check, run) in steps {
            match kind {
                0 => { table.commit(); committed = now.clone(); }
                1 => { table.abort(); now = committed.clone(); }
                // The replay of an id that is uncommitted would win over it; no caller does this.
                2 if now.contains_key(&n) && !committed.contains_key(&n) => {}
                2 => {
                    table.insert_committed(entry(n, check));
                    now.entry(n).or_insert(check);
                    committed.entry(n).or_insert(check);
                }
                _ => for n in n..n + run {
                    prop_assert_eq!(table.insert(entry(n, check)), now.get(&n).copied());
                    now.entry(n).or_insert(check);
                },
            }
            prop_assert_eq!(table.len(), now.len());
        }
        for n in 0..3400 {
            prop_assert_eq!(table.get(entry(n, 9)), now.get(&n).copied());
        }
        let sorted = table.into_sorted();
        prop_assert!(sorted.windows(2).all(|pair| pair[0].id() < pair[1].id()));
        prop_assert_eq!(sorted.len(), now.len());
    }
}
