//! What every cold store must do: one suite, run against the one in memory and the one on disk.
//!
//! Each case says a promise of [`crate::cold`] that the stores above rely on; crashes included. Only for tests.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::{Identity, NextOffset, PayloadCheck};
use tallyflow_core::processor::{Cell, CellId, Cells, SeenIds, Sighting, Table};
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;

use crate::cells::CellStore;
use crate::cold::{CellBatch, ColdError, ColdStore, ColdStores, SeenEntry, WindowRange};
use crate::keys::{CellKey, window_prefix};
use crate::memory::MemoryStores;
use crate::seen::SeenStore;

/// A place where stores live, and can be killed.
pub trait Host {
    /// The stores of a process.
    fn stores(&mut self) -> Box<dyn ColdStores>;

    /// Kills that process and starts another one: what was not durable is lost. Handles of the old one may still be
    /// around, and are not used any more.
    fn crash(&mut self) -> Box<dyn ColdStores>;
}

impl Host for MemoryStores {
    fn stores(&mut self) -> Box<dyn ColdStores> {
        Box::new(self.clone())
    }

    fn crash(&mut self) -> Box<dyn ColdStores> {
        Self::crash(self, 0);
        Box::new(self.clone())
    }
}

/// Runs every case on a host of its own.
pub fn run_all(new_host: &mut dyn FnMut() -> Box<dyn Host>) {
    type Case = fn(&mut dyn Host);
    let cases: [Case; 9] = [
        cells_are_found_in_batches,
        scans_follow_the_bytes,
        next_starts_are_found_in_every_slice,
        deletes_come_before_puts,
        batches_survive_whole_and_in_order,
        buckets_are_durable_at_once,
        dropped_buckets_stay_dropped,
        one_handle_at_a_time,
        answers_are_those_of_the_store_in_memory,
    ];
    cases.iter().for_each(|case| case(new_host().as_mut()));
}

const TASK: &str = "app.entries-0";

fn open(host: &mut dyn Host) -> Arc<dyn ColdStore> {
    host.stores().open(TASK).unwrap()
}

fn key(slice: u8, table: u8, start: i64, key: &str) -> Vec<u8> {
    let mut out = Vec::new();
    CellKey { slice, table, start: TimestampMs(start), key: key.as_bytes() }.write(&mut out);
    out
}

fn cell(sum: i128) -> Cell {
    Cell { sum: Sum(sum), events: 1 }
}

fn put(store: &dyn ColdStore, mut puts: Vec<(Vec<u8>, Cell)>, progress: &str) {
    puts.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let progress = Some(progress.as_bytes().to_vec());
    store.apply(&CellBatch { puts, progress, ..CellBatch::default() }).unwrap();
}

fn get(store: &dyn ColdStore, key: &[u8]) -> Option<Cell> {
    let mut out = Vec::new();
    store.get_cells(&[key], &mut out).unwrap();
    out[0]
}

fn cells_are_found_in_batches(host: &mut dyn Host) {
    let store = open(host);
    let name = |n: i128| key((n % 16) as u8, 0, n as i64 * 60, &format!("k{n}"));
    // Extreme sums too; every third key is absent.
    let value = |n: i128| Cell { sum: Sum(i128::MIN + n * (i128::MAX / 3000)), events: n as u64 + 1 };
    put(store.as_ref(), (0..3000).filter(|n| n % 3 != 0).map(|n| (name(n), value(n))).collect(), "p");
    let mut keys: Vec<(Vec<u8>, i128)> = (0..3000).map(|n| (name(n), n)).collect();
    keys.sort_unstable();
    let slices: Vec<&[u8]> = keys.iter().map(|(key, _)| key.as_slice()).collect();
    let mut out = vec![None];
    store.get_cells(&slices, &mut out).unwrap();
    let right = keys.iter().map(|(_, n)| (n % 3 != 0).then(|| value(*n)));
    assert_eq!(out[1..], right.collect::<Vec<_>>());
}

fn scans_follow_the_bytes(host: &mut dyn Host) {
    let store = open(host);
    let names = ["", "a", "ab", "b", "\u{7f}"];
    let windows = [(0u8, 0u8, 0i64), (0, 0, 60), (0, 1, 0), (3, 0, -60), (15, 255, 0), (15, 255, i64::MAX)];
    let all = windows.iter().flat_map(|(slice, table, start)| {
        names.iter().map(move |name| (key(*slice, *table, *start, name), cell(1)))
    });
    put(store.as_ref(), all.collect(), "p");
    let scan = |prefix: &[u8], after: Option<&[u8]>, limit: usize| {
        let mut out = Vec::new();
        store.scan_cells(prefix, after, limit, &mut out).unwrap();
        out.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    for (slice, table, start) in windows {
        let right: Vec<Vec<u8>> = names.iter().map(|name| key(slice, table, start, name)).collect();
        let prefix = window_prefix(slice, table, TimestampMs(start));
        assert_eq!(scan(&prefix, None, 100), right);
        assert_eq!(scan(&prefix, Some(&right[1]), 2), right[2..4]);
        assert_eq!(scan(&prefix, Some(&right[4]), 2), Vec::<Vec<u8>>::new());
        assert_eq!(scan(&prefix, Some(&key(slice, table, start, "aa")), 100), right[2..]);
        // From before the prefix: from its beginning.
        assert_eq!(scan(&prefix, Some(&[]), 100), right);
    }
    assert_eq!(scan(&[15], None, 100).len(), 10);
    assert_eq!(scan(&[0, 0], None, 100).len(), 10);
    assert_eq!(scan(&[], None, 100).len(), 30);
    assert_eq!(scan(&[], None, 0).len(), 0);
}

fn next_starts_are_found_in_every_slice(host: &mut dyn Host) {
    let store = open(host);
    let next = |table, after| store.next_start(table, TimestampMs(after)).unwrap().map(|start| start.0);
    assert_eq!(next(0, i64::MIN), None);
    let cells = [(15u8, 0u8, -120i64), (3, 0, -60), (0, 0, 60), (7, 0, 60), (1, 1, 0), (2, 255, 0)];
    put(store.as_ref(), cells.iter().map(|(s, t, start)| (key(*s, *t, *start, "k"), cell(1))).collect(), "p");
    for (after, right) in [(i64::MIN, Some(-120)), (-121, Some(-120)), (-120, Some(-60)), (-60, Some(60)), (59, Some(60)), (60, None), (i64::MAX, None)] {
        assert_eq!(next(0, after), right, "after {after}");
    }
    assert_eq!((next(1, -1), next(1, 0), next(255, -1), next(2, -1)), (Some(0), None, Some(0), None));
}

fn deletes_come_before_puts(host: &mut dyn Host) {
    let store = open(host);
    let starts = [i64::MIN, -60, 0, 60, 120];
    let all = (0..HASH_SLICES).flat_map(|s| (0..3).flat_map(move |t| starts.map(|start| (key(s, t, start, "k"), cell(1)))));
    put(store.as_ref(), all.collect(), "p");
    store.flush().unwrap();
    let range = |table, from, before| WindowRange { table, from: TimestampMs(from), before };
    let deletes = vec![range(1, i64::MIN, Some(TimestampMs(60))), range(2, 0, None)];
    let puts = vec![(key(5, 1, 0, "k"), cell(2))];
    store.apply(&CellBatch { deletes, puts, ..CellBatch::default() }).unwrap();
    for slice in 0..HASH_SLICES {
        for (table, left) in [(0, &starts[..]), (1, &starts[3..]), (2, &starts[..2])] {
            for start in starts {
                let put = (slice, table, start) == (5, 1, 0);
                let right = if put { Some(cell(2)) } else { left.contains(&start).then(|| cell(1)) };
                assert_eq!(get(store.as_ref(), &key(slice, table, start, "k")), right, "{slice} {table} {start}");
            }
        }
    }
    assert_eq!(store.next_start(2, TimestampMs(-60)).unwrap(), None);
    assert_eq!(store.next_start(1, TimestampMs::MIN).unwrap(), Some(TimestampMs(0)));
}

fn batches_survive_whole_and_in_order(host: &mut dyn Host) {
    let store = open(host);
    assert_eq!((store.progress().unwrap(), store.tables().unwrap()), (None, None));
    let tables = Some(b"tables".to_vec());
    store.apply(&CellBatch { tables: tables.clone(), ..CellBatch::default() }).unwrap();
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(1))], "1");
    store.flush().unwrap();
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(2)), (key(9, 9, 9, "new"), cell(2))], "2");
    assert_eq!(store.progress().unwrap(), Some(b"2".to_vec()));
    let store = host.crash().open(TASK).unwrap();
    // Progress and cells agree, and what was not part of a batch is as it was.
    let found = (store.progress().unwrap(), get(store.as_ref(), &key(0, 0, 0, "k")));
    assert_eq!(found, (Some(b"1".to_vec()), Some(cell(1))));
    assert_eq!(get(store.as_ref(), &key(9, 9, 9, "new")), None);
    assert_eq!(store.tables().unwrap(), tables);
}

fn bucket(id: u64) -> Bucket {
    Bucket { id, first: NextOffset(id as i64 * 10), end: Some((NextOffset(id as i64 * 10 + 10), TimestampMs(-1))) }
}

fn entries(count: u64, check: u32) -> Vec<SeenEntry> {
    let identity = |n: u64| Identity::from_raw((u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
    let mut all: Vec<SeenEntry> = (0..count).map(|n| SeenEntry::new(identity(n), PayloadCheck(check + n as u32))).collect();
    all.sort_unstable();
    all
}

fn lookup(store: &dyn ColdStore, bucket_id: u64, entries: &[SeenEntry]) -> Vec<Option<u32>> {
    let ids: Vec<_> = entries.iter().map(|entry| entry.id()).collect();
    let mut out = Vec::new();
    store.lookup(bucket_id, &ids, &mut out).unwrap();
    out
}

fn buckets_are_durable_at_once(host: &mut dyn Host) {
    let store = open(host);
    let all = entries(5000, 7);
    let (inside, outside) = (all.iter().copied().step_by(2).collect::<Vec<_>>(), all.iter().copied().skip(1).step_by(2).collect::<Vec<_>>());
    let filter = vec![0xAB; 300_000];
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(1))], "lost");
    store.seal(&bucket(1), &inside, &filter).unwrap();
    store.seal(&bucket(u64::MAX), &outside, b"").unwrap();
    store.seal(&bucket(2), &[], b"empty").unwrap();
    let store = host.crash().open(TASK).unwrap();
    let checks = |list: &[SeenEntry]| list.iter().map(|entry| Some(entry.check())).collect::<Vec<_>>();
    assert_eq!(lookup(store.as_ref(), 1, &inside), checks(&inside));
    assert_eq!(lookup(store.as_ref(), 1, &outside), vec![None; outside.len()]);
    assert_eq!(lookup(store.as_ref(), u64::MAX, &outside), checks(&outside));
    for nothing in [0, 2, 3] {
        assert_eq!(lookup(store.as_ref(), nothing, &all), vec![None; all.len()]);
    }
    let found = store.buckets().unwrap();
    let right = [(bucket(1), 2500, filter), (bucket(2), 0, b"empty".to_vec()), (bucket(u64::MAX), 2500, vec![])];
    assert_eq!(found.into_iter().map(|b| (b.bucket, b.ids, b.filter)).collect::<Vec<_>>(), right);
    // Sealed again, with other ids: the new content counts.
    store.seal(&bucket(1), &outside[..10], b"new").unwrap();
    assert_eq!(lookup(store.as_ref(), 1, &inside), vec![None; inside.len()]);
    assert_eq!(lookup(store.as_ref(), 1, &outside[..10]), checks(&outside[..10]));
    assert_eq!(store.buckets().unwrap()[0].ids, 10);
}

fn dropped_buckets_stay_dropped(host: &mut dyn Host) {
    let store = open(host);
    let all = entries(2000, 1);
    (1..=3).for_each(|id| store.seal(&bucket(id), &all, b"f").unwrap());
    store.drop_bucket(2).unwrap();
    store.drop_bucket(9).unwrap();
    let right = vec![Some(all[0].check())];
    let look = |store: &dyn ColdStore| (1..=3).map(|id| lookup(store, id, &all[..1])).collect::<Vec<_>>();
    assert_eq!(look(store.as_ref()), [right.clone(), vec![None], right.clone()]);
    let store = host.crash().open(TASK).unwrap();
    assert_eq!(look(store.as_ref()), [right.clone(), vec![None], right.clone()]);
    assert_eq!(store.buckets().unwrap().iter().map(|b| b.bucket.id).collect::<Vec<_>>(), [1, 3]);
    store.seal(&bucket(2), &all, b"f").unwrap();
    assert_eq!(look(store.as_ref()), [right.clone(), right.clone(), right]);
}

fn one_handle_at_a_time(host: &mut dyn Host) {
    let mut stores = host.stores();
    let store = stores.open(TASK).unwrap();
    put(store.as_ref(), vec![(key(0, 0, 0, "k"), cell(1))], "p");
    assert!(matches!(stores.open(TASK), Err(ColdError::Locked(_))));
    assert!(matches!(stores.discard(TASK), Err(ColdError::Locked(_))));
    drop(stores.open("app.entries-1").unwrap());
    store.flush().unwrap();
    drop(store);
    let store = stores.open(TASK).unwrap();
    assert_eq!(store.progress().unwrap(), Some(b"p".to_vec()));
    drop(store);
    stores.discard(TASK).unwrap();
    stores.discard(TASK).unwrap();
    let store = stores.open(TASK).unwrap();
    assert_eq!((store.progress().unwrap(), get(store.as_ref(), &key(0, 0, 0, "k"))), (None, None));
}

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
        let named: Vec<CellId> = (0..50).map(|_| {
            let counter = store.intern(&next(300).to_le_bytes());
            CellId { table: Table(0), start: TimestampMs((round / 10) as i64 * 60), counter }
        }).collect();
        store.load(&named).unwrap();
        named.iter().for_each(|id| drop_value(store.add(*id, Sum(i128::from(next(100)) - 50), 1)));
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

fn entries_id(n: u64, check: u32) -> (Identity, PayloadCheck) {
    let mixed = (u128::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    (Identity::from_raw(mixed), PayloadCheck(check))
}

const fn drop_value(_: Cell) {}

fn answers_are_those_of_the_store_in_memory(host: &mut dyn Host) {
    let (said, cells) = live(host);
    assert!(said.contains(&Sighting::First) && said.contains(&Sighting::Same) && said.contains(&Sighting::Different));
    assert!(cells.len() > 500, "{}", cells.len());
    assert_eq!((said, cells), live(&mut MemoryStores::new()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_in_memory_conforms() {
        run_all(&mut || Box::new(MemoryStores::new()));
    }
}
