//! A cold store in memory that can crash: what RocksDB without a write-ahead log keeps, and what it loses.
//!
//! ```text
//!   apply ──► current view + pending batches ──flush──► durable
//!   seal, drop_bucket ────────────────────────────────► durable at once
//!   crash(kept) ──► durable + the first `kept` pending batches; old handles are dead
//! ```
//!
//! `kept` stands for what a store may have flushed on its own: after a crash the batches are a prefix, never less
//! than what was flushed. Used by tests and by simulations, with faults on demand.
//!
//! Must not know: files.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tallyflow_core::counter::HASH_SLICES;
use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::processor::Cell;
use tallyflow_core::time::TimestampMs;

use crate::cold::{
    CellBatch, ColdError, ColdStore, ColdStores, SealedBucket, SeenEntry, SeenId, WindowRange,
};
use crate::keys::{CellKey, window_prefix};

/// The stores of any number of tasks. Clones are the same stores.
#[derive(Clone, Default)]
pub struct MemoryStores {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    tasks: BTreeMap<String, Task>,
    /// Grows with each crash: handles of earlier lives are dead.
    life: u64,
    /// The error of the next so many calls that write.
    fault: Option<(ColdError, u32)>,
}

#[derive(Default)]
struct Task {
    open: bool,
    durable: Layer,
    pending: Vec<CellBatch>,
    current: Layer,
    sealed: BTreeMap<u64, Sealed>,
}

#[derive(Clone, Default)]
struct Layer {
    cells: BTreeMap<Vec<u8>, Cell>,
    tables: Option<Vec<u8>>,
    progress: Option<Vec<u8>>,
}

struct Sealed {
    bucket: Bucket,
    ids: BTreeMap<SeenId, u32>,
    filter: Vec<u8>,
}

impl MemoryStores {
    /// No store at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills the process: every task goes back to its last durable point, and to the first `kept` batches after it.
    /// Handles that are still around are dead, as the process is.
    pub fn crash(&self, kept: usize) {
        let mut shared = lock(&self.shared);
        shared.life += 1;
        for task in shared.tasks.values_mut() {
            task.open = false;
            let pending = std::mem::take(&mut task.pending);
            pending.iter().take(kept).for_each(|batch| task.durable.apply(batch));
            task.current = task.durable.clone();
        }
    }

    /// Makes the next `calls` calls that write fail with this error.
    pub fn fail_writes(&self, error: ColdError, calls: u32) {
        lock(&self.shared).fault = Some((error, calls));
    }
}

impl ColdStores for MemoryStores {
    fn open(&mut self, task: &str) -> Result<Arc<dyn ColdStore>, ColdError> {
        let mut shared = lock(&self.shared);
        let life = shared.life;
        let entry = shared.tasks.entry(task.to_owned()).or_default();
        if entry.open {
            return Err(ColdError::Locked(format!("the state of {task} is open already")));
        }
        entry.open = true;
        Ok(Arc::new(MemoryStore { shared: Arc::clone(&self.shared), task: task.to_owned(), life }))
    }

    fn discard(&mut self, task: &str) -> Result<(), ColdError> {
        let mut shared = lock(&self.shared);
        if shared.tasks.get(task).is_some_and(|task| task.open) {
            return Err(ColdError::Locked(format!("the state of {task} is in use")));
        }
        shared.tasks.remove(task);
        Ok(())
    }
}

/// A handle of one task.
struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    task: String,
    life: u64,
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        if shared.life == self.life
            && let Some(task) = shared.tasks.get_mut(&self.task)
        {
            task.open = false;
        }
    }
}

impl MemoryStore {
    fn read<T>(&self, look: impl FnOnce(&Task) -> T) -> Result<T, ColdError> {
        self.with(|_, task| Ok(look(task)))
    }

    fn write(&self, change: impl FnOnce(&mut Task)) -> Result<(), ColdError> {
        self.with(|fault, task| {
            if let Some((error, calls)) = fault
                && *calls > 0
            {
                *calls -= 1;
                return Err(error.clone());
            }
            change(task);
            Ok(())
        })
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&mut Option<(ColdError, u32)>, &mut Task) -> Result<T, ColdError>,
    ) -> Result<T, ColdError> {
        let mut shared = lock(&self.shared);
        let Shared { tasks, life, fault } = &mut *shared;
        match tasks.get_mut(&self.task) {
            Some(task) if *life == self.life => act(fault, task),
            _ => Err(ColdError::Other(format!("the process that had {} open is gone", self.task))),
        }
    }
}

impl ColdStore for MemoryStore {
    fn progress(&self) -> Result<Option<Vec<u8>>, ColdError> {
        self.read(|task| task.current.progress.clone())
    }

    fn tables(&self) -> Result<Option<Vec<u8>>, ColdError> {
        self.read(|task| task.current.tables.clone())
    }

    fn get_cells(&self, keys: &[&[u8]], out: &mut Vec<Option<Cell>>) -> Result<(), ColdError> {
        self.read(|task| out.extend(keys.iter().map(|key| task.current.cells.get(*key).copied())))
    }

    fn scan_cells(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        out: &mut Vec<(Vec<u8>, Cell)>,
    ) -> Result<(), ColdError> {
        self.read(|task| {
            let from = match after {
                Some(after) if after >= prefix => Bound::Excluded(after),
                _ => Bound::Included(prefix),
            };
            let cells = task.current.cells.range::<[u8], _>((from, Bound::Unbounded));
            let cells = cells.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
            out.extend(cells.map(|(key, cell)| (key.clone(), *cell)));
        })
    }

    fn next_start(&self, table: u8, after: TimestampMs) -> Result<Option<TimestampMs>, ColdError> {
        self.read(|task| {
            let keys = task.current.cells.keys().filter_map(|bytes| CellKey::read(bytes));
            keys.filter(|key| key.table == table && key.start > after).map(|key| key.start).min()
        })
    }

    fn apply(&self, batch: &CellBatch) -> Result<(), ColdError> {
        self.write(|task| {
            task.current.apply(batch);
            task.pending.push(batch.clone());
        })
    }

    fn flush(&self) -> Result<(), ColdError> {
        self.write(|task| {
            let pending = std::mem::take(&mut task.pending);
            pending.iter().for_each(|batch| task.durable.apply(batch));
        })
    }

    fn seal(&self, bucket: &Bucket, ids: &[SeenEntry], filter: &[u8]) -> Result<(), ColdError> {
        let ids = ids.iter().map(|entry| (entry.id(), entry.check())).collect();
        let sealed = Sealed { bucket: *bucket, ids, filter: filter.to_vec() };
        self.write(|task| drop(task.sealed.insert(bucket.id, sealed)))
    }

    fn lookup(&self, bucket_id: u64, ids: &[SeenId], out: &mut Vec<Option<u32>>) -> Result<(), ColdError> {
        self.read(|task| {
            let sealed = task.sealed.get(&bucket_id);
            out.extend(ids.iter().map(|id| sealed.and_then(|sealed| sealed.ids.get(id).copied())));
        })
    }

    fn buckets(&self) -> Result<Vec<SealedBucket>, ColdError> {
        self.read(|task| {
            let sealed = task.sealed.values().map(|sealed| SealedBucket {
                bucket: sealed.bucket,
                ids: sealed.ids.len() as u64,
                filter: sealed.filter.clone(),
            });
            sealed.collect()
        })
    }

    fn drop_bucket(&self, bucket_id: u64) -> Result<(), ColdError> {
        self.write(|task| drop(task.sealed.remove(&bucket_id)))
    }
}

impl Layer {
    fn apply(&mut self, batch: &CellBatch) {
        batch.deletes.iter().for_each(|range| self.delete(range));
        self.cells.extend(batch.puts.iter().cloned());
        if batch.tables.is_some() {
            self.tables.clone_from(&batch.tables);
        }
        if batch.progress.is_some() {
            self.progress.clone_from(&batch.progress);
        }
    }

    fn delete(&mut self, range: &WindowRange) {
        let gone = |start: TimestampMs| start >= range.from && range.before.is_none_or(|end| start < end);
        for slice in 0..HASH_SLICES {
            let from = window_prefix(slice, range.table, range.from).to_vec();
            let cells = self.cells.range(from..).map(|(key, _)| key);
            let of_table = cells.take_while(|key| key.starts_with(&[slice, range.table]));
            let keys: Vec<Vec<u8>> = of_table
                .filter(|key| CellKey::read(key).is_some_and(|key| gone(key.start)))
                .cloned()
                .collect();
            for key in keys {
                self.cells.remove(&key);
            }
        }
    }
}

/// A panic in another thread does not make the data wrong: every change is complete before the lock is released.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
