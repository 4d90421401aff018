//! What every cold store must do: one suite, run against the one in memory and the one on disk.
//!
//! Each case says a promise of [`crate::cold`] that the stores above rely on; crashes included. Only for tests.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use tallyflow_core::processor::Cell;
use tallyflow_core::sum::Sum;
use tallyflow_core::time::TimestampMs;

use crate::cold::{CellBatch, ColdError, ColdStore, ColdStores};
use crate::keys::CellKey;
use crate::memory::MemoryStores;

mod batches;
mod buckets;
mod lives;

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
        batches::cells_are_found_in_batches,
        batches::scans_follow_the_bytes,
        batches::next_starts_are_found_in_every_slice,
        batches::deletes_come_before_puts,
        batches::batches_survive_whole_and_in_order,
        buckets::buckets_are_durable_at_once,
        buckets::dropped_buckets_stay_dropped,
        one_handle_at_a_time,
        lives::answers_are_those_of_the_store_in_memory,
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
    assert_eq!((store.progress().unwrap(), batches::get(store.as_ref(), &key(0, 0, 0, "k"))), (None, None));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_in_memory_conforms() {
        run_all(&mut || Box::new(MemoryStores::new()));
    }
}
