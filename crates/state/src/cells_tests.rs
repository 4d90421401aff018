//! The rules of cells, case by case; `cells_model_tests.rs` tries everything else.

use super::*;
use crate::cold::ColdStores;
use crate::memory::MemoryStores;

const M1: Table = Table(0);
const H1: Table = Table(1);
const TABLES: [&str; 2] = ["1m", "1h"];

fn at(ms: i64) -> TimestampMs {
    TimestampMs(ms)
}

fn fresh() -> (MemoryStores, CellStore) {
    let mut stores = MemoryStores::new();
    let store = open(&mut stores, &TABLES);
    (stores, store)
}

fn open(stores: &mut MemoryStores, tables: &[&str]) -> CellStore {
    CellStore::open(stores.open("count-0").unwrap(), tables, u64::MAX).unwrap()
}

fn key(n: usize) -> Vec<u8> {
    format!("key {n}").into_bytes()
}

fn id(store: &mut CellStore, n: usize, table: Table, start: i64) -> CellId {
    CellId { table, start: at(start), counter: store.intern(&key(n)) }
}

fn add(store: &mut CellStore, n: usize, table: Table, start: i64, sum: i128) -> Cell {
    let id = id(store, n, table, start);
    store.load(&[id]).unwrap();
    store.add(id, Sum(sum), 1)
}

fn get(store: &mut CellStore, n: usize, table: Table, start: i64) -> (i128, u64) {
    let id = id(store, n, table, start);
    store.load(&[id]).unwrap();
    let cell = store.cell(id);
    (cell.sum.0, cell.events)
}

fn scan(
    store: &mut CellStore,
    table: Table,
    start: i64,
    after: Option<&CellOrder>,
    limit: usize,
) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    store.scan(table, at(start), after, limit, &mut out).unwrap();
    assert!(out.iter().all(|id| store.cell(*id).events > 0), "a scanned cell is loaded and exists");
    out.iter().map(|id| store.key(id.counter).to_vec()).collect()
}

#[test]
fn aborted_changes_are_gone_and_committed_ones_stay() {
    let (_, mut store) = fresh();
    assert_eq!(add(&mut store, 1, M1, 0, 5), Cell::default());
    store.commit();
    assert_eq!(add(&mut store, 1, M1, 0, 7), Cell { sum: Sum(5), events: 1 });
    add(&mut store, 1, M1, 0, 1);
    add(&mut store, 2, M1, 0, 1);
    store.abort();
    assert_eq!(get(&mut store, 1, M1, 0), (5, 1));
    assert_eq!(scan(&mut store, M1, 0, None, 10), [key(1)]);
    assert_eq!((store.dirty_len(), store.has_uncommitted()), (1, false));
}

#[test]
fn nothing_uncommitted_can_be_flushed_dropped_or_shown() {
    // EO-1
    let (_, mut store) = fresh();
    add(&mut store, 1, M1, 0, 5);
    let row = CellRow { key: b"k", table: M1, start: at(0), cell: Cell { sum: Sum(1), events: 1 } };
    for refused in [
        store.flush(b"p"),
        store.expire(M1, at(100)),
        store.evict().map(drop),
        store.snapshot(0, &mut |_| ()),
        store.put_restored(&[row]),
        store.add_restored(&[row]),
    ] {
        assert!(matches!(refused, Err(ColdError::Invariant(_))), "{refused:?}");
    }
    assert_eq!(store.cold.progress().unwrap(), None);
    store.commit();
    assert!(matches!(store.snapshot(0, &mut |_| ()), Err(ColdError::Invariant(_))), "not flushed");
    store.flush(b"p").unwrap();
    store.snapshot(0, &mut |_| ()).unwrap();
}

#[test]
fn a_cell_that_was_not_loaded_cannot_be_changed() {
    let (_, mut store) = fresh();
    let id = id(&mut store, 1, M1, 0);
    store.add(id, Sum(1), 1);
    assert!(store.load(&[]).is_err());
    assert!(matches!(store.take_error(), Some(ColdError::Invariant(_))));
    assert!(store.flush(b"p").is_err());
    store.abort();
    assert!(store.load(&[id]).is_ok());
    assert_eq!(store.cell(id), Cell::default());
}

#[test]
fn totals_do_not_expire_and_unknown_tables_are_refused() {
    let (_, mut store) = fresh();
    assert!(matches!(store.expire(Table::TOTALS, at(9)), Err(ColdError::Invariant(_))));
    let stranger = id(&mut store, 1, Table(2), 0);
    assert!(store.load(&[stranger]).is_err());
}

#[test]
fn a_failed_flush_is_taken_along_by_the_next() {
    let (stores, mut store) = fresh();
    add(&mut store, 1, M1, 0, 5);
    store.commit();
    stores.fail_writes(ColdError::Full("no room".to_owned()), 1);
    assert_eq!(store.flush(b"1"), Err(ColdError::Full("no room".to_owned())));
    assert_eq!((store.dirty_len(), store.cold.progress().unwrap()), (1, None));
    store.flush(b"2").unwrap();
    assert_eq!((store.dirty_len(), store.cold.progress().unwrap()), (0, Some(b"2".to_vec())));
}

#[test]
fn a_table_is_its_name_across_edits_of_the_topology() {
    let (mut stores, mut store) = fresh();
    add(&mut store, 1, M1, 60, 1);
    add(&mut store, 1, H1, 3600, 2);
    add(&mut store, 1, Table::TOTALS, 0, 3);
    store.commit();
    store.flush(b"p").unwrap();
    drop(store);
    let mut store = open(&mut stores, &["1d", "1h", "1m"]);
    assert_eq!(get(&mut store, 1, Table(2), 60), (1, 1));
    assert_eq!(get(&mut store, 1, Table(1), 3600), (2, 1));
    assert_eq!(store.next_start(Table(0), TimestampMs::MIN).unwrap(), None);
    assert_eq!(get(&mut store, 1, Table::TOTALS, 0), (3, 1));
    drop(store);
    // Gone, and back: empty, not with a gap.
    drop(open(&mut stores, &["1d", "1m"]));
    let mut store = open(&mut stores, &["1h", "1m"]);
    assert_eq!(store.next_start(Table(0), TimestampMs::MIN).unwrap(), None);
    assert_eq!(get(&mut store, 1, Table(1), 60), (1, 1));
    assert_eq!(store.cold.progress().unwrap(), Some(b"p".to_vec()));
}

#[test]
fn an_eviction_keeps_what_is_not_on_disk() {
    let (_, mut store) = fresh();
    store.budget_bytes = 0;
    for n in 0..100 {
        add(&mut store, n, M1, 0, n as i128);
    }
    store.commit();
    store.flush(b"p").unwrap();
    add(&mut store, 5, M1, 0, 1000);
    add(&mut store, 777, M1, 60, 1);
    store.commit();
    let before = store.memory_bytes();
    assert!(store.evict().unwrap());
    assert!(store.memory_bytes() < before / 4, "{} of {before}", store.memory_bytes());
    assert_eq!(get(&mut store, 5, M1, 0), (1005, 2));
    assert_eq!(get(&mut store, 6, M1, 0), (6, 1));
    assert_eq!(get(&mut store, 777, M1, 60), (1, 1));
    assert_eq!(scan(&mut store, M1, 0, None, 1000).len(), 100);
    store.budget_bytes = u64::MAX;
    assert!(!store.evict().unwrap());
}

#[path = "cells_model_tests.rs"]
mod model;
