//! A whole life of both stores, told twice: every cold store must give the answers of the one in memory.

use std::sync::Arc;

use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::{Identity, PayloadCheck};
use tallyflow_core::processor::{Cell, CellId, Cells, SeenIds, Sighting, Table};
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;

use super::buckets::bucket;
use super::{Host, TASK, open};
use crate::cells::CellStore;
use crate::memory::MemoryStores;
use crate::seen::SeenStore;

/// A life of both stores, with everything that happens to them. Returns what they said.
fn live(host: &mut dyn Host) -> (Vec<Sighting>, Vec<(Vec<u8>, Cell)>) {
    let (mut said, mut cells) = (Vec::new(), Vec::new());
    let mut cold = open(host);
    let mut seen = SeenStore::new(Arc::clone(&cold));
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut store = CellStore::open(Arc::clone(&cold), &["1m"], 0).unwrap();
    for round in 0..60u64 {
        let ids: Vec<_> = (0..200).map(|_| entries_id(next(4000), next(2) as u32)).collect();
        seen.sight(&ids, &mut said).unwrap();
        let named: Vec<CellId> = (0..50)
            .map(|_| {
                let counter = store.intern(&next(300).to_le_bytes());
                CellId { table: Table(0), start: TimestampMs((round / 10) as i64 * 60), counter }
            })
            .collect();
        store.load(&named).unwrap();
        for id in &named {
            store.add(*id, Sum(i128::from(next(100)) - 50), 1);
        }
        seen.roll(bucket(round));
        if next(4) == 0 {
            seen.abort();
            store.abort();
            continue;
        }
        seen.forget(round.saturating_sub(8));
        seen.commit().unwrap();
        store.commit();
        store.expire(Table(0), TimestampMs((round as i64 / 10 - 3) * 60)).unwrap();
        store.flush(&round.to_le_bytes()).unwrap();
        store.evict().unwrap();
        if next(8) == 0 {
            cold.flush().unwrap();
            drop((seen, store));
            let list: Vec<Bucket> = cold.buckets().unwrap().iter().map(|found| found.bucket).collect();
            cold = host.crash().open(TASK).unwrap();
            seen = SeenStore::new(Arc::clone(&cold));
            assert_eq!(seen.adopt(&list).unwrap(), []);
            store = CellStore::open(Arc::clone(&cold), &["1m"], 0).unwrap();
        }
    }
    store.flush(b"end").unwrap();
    for slice in 0..HASH_SLICES {
        store.snapshot(slice, &mut |row| cells.push((row.key.to_vec(), row.cell))).unwrap();
    }
    (said, cells)
}

pub(super) fn entries_id(n: u64, check: u32) -> (Identity, PayloadCheck) {
    let mixed = (u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    (Identity::from_raw(mixed), PayloadCheck(check))
}

pub(super) fn answers_are_those_of_the_store_in_memory(host: &mut dyn Host) {
    let (said, cells) = live(host);
    assert!(
        said.contains(&Sighting::First)
            && said.contains(&Sighting::Same)
            && said.contains(&Sighting::Different)
    );
    assert!(cells.len() > 500, "{}", cells.len());
    assert_eq!((said, cells), live(&mut MemoryStores::new()));
}
