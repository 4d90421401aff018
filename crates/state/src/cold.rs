//! The cold store of a count task, as a port: what survives a crash, behind a trait.
//!
//! ```text
//!   CellStore ──apply──► cells + tables + progress: one atomic batch, volatile until flushed ─┐
//!                                                                              flush() ──────► durable
//!   SeenStore ──seal───► one bucket: ids + marker, atomic and durable at once ────────────────►
//! ```
//!
//! Two kinds of durability, as RocksDB without a write-ahead log has them: batches survive a crash as a *prefix* of
//! what was applied (never a part of a batch), sealed buckets survive as soon as `seal` returns. So cells and
//! progress always agree, and a bucket is on disk whole or not at all.
//!
//! Keeps: EO-1, together with its callers: nothing here is given anything that is not committed.
//!
//! Must not know: Kafka, transactions, the hot side.

use std::sync::Arc;

use tallyflow_core::frame::delta::Bucket;
use tallyflow_core::ids::{Identity, PayloadCheck};
use tallyflow_core::processor::{Cell, StateUnavailable};
use tallyflow_core::time::TimestampMs;

/// Why local state could not be used: a variant for each reaction, a plain sentence in each.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ColdError {
    /// Someone else has it open: wait, or take another slot.
    #[error("{0}")]
    Locked(String),
    /// It belongs to another app: halt, a person must choose another directory.
    #[error("{0}")]
    Foreign(String),
    /// The directory may not be written: wait for a person, retry.
    #[error("{0}")]
    NotWritable(String),
    /// The disk is full: wait for room. After a failed `apply` or `flush` the handle may refuse every later write, as
    /// RocksDB does: drop it, open the store again when there is room, replay the gap. Reads go on meanwhile.
    #[error("{0}")]
    Full(String),
    /// The files are not intact: discard and rebuild from the log.
    #[error("{0}")]
    Damaged(String),
    /// The caller broke a rule of this crate: halt.
    #[error("{0}")]
    Invariant(String),
    /// Anything else the environment does: retry with backoff.
    #[error("{0}")]
    Other(String),
}

impl From<ColdError> for StateUnavailable {
    fn from(error: ColdError) -> Self {
        Self(error.to_string())
    }
}

/// Opens the cold stores of count tasks. One per worker; clones share what the process shares.
pub trait ColdStores: Send {
    /// Opens a task's store, empty if there was none.
    ///
    /// # Errors
    ///
    /// [`ColdError::Locked`] while another handle of the task exists, [`ColdError::Damaged`] where it must be
    /// discarded, and whatever the disk says.
    fn open(&mut self, task: &str) -> Result<Arc<dyn ColdStore>, ColdError>;

    /// Deletes a task's store. Every handle of it must have been dropped. A store that does not exist is fine.
    ///
    /// # Errors
    ///
    /// [`ColdError::Locked`] while a handle exists, and whatever the disk says.
    fn discard(&mut self, task: &str) -> Result<(), ColdError>;
}

/// A remembered sighting: 96 bits of identity and the 32-bit payload check, as one number that orders by id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SeenEntry(pub u128);

/// The top 96 bits of an identity, big endian. Never all zero.
pub type SeenId = [u8; 12];

impl SeenEntry {
    /// The sighting of an identity. An identity whose top 96 bits are zero is moved to 1: 0 marks an empty slot.
    pub const fn new(identity: Identity, check: PayloadCheck) -> Self {
        let id = identity.raw() >> 32;
        let id = if id == 0 { 1 } else { id };
        Self((id << 32) | check.0 as u128)
    }

    /// The id.
    pub const fn id(self) -> SeenId {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.0.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    /// The payload check.
    pub const fn check(self) -> u32 {
        self.0 as u32
    }
}

/// A bucket that is on disk, intact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedBucket {
    /// Its bounds, as they were when it was sealed.
    pub bucket: Bucket,
    /// How many ids it holds.
    pub ids: u64,
    /// The bytes of its filter, as they were given.
    pub filter: Vec<u8>,
}

/// Windows of one table whose cells go: `from ≤ start < before`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowRange {
    /// The stable number of the table.
    pub table: u8,
    /// First start.
    pub from: TimestampMs,
    /// Exclusive last start; `None` for all of them.
    pub before: Option<TimestampMs>,
}

/// One atomic change of cells and progress. Deletes come before puts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CellBatch {
    /// Windows whose cells are deleted, in every slice.
    pub deletes: Vec<WindowRange>,
    /// Cold key ([`crate::keys`]) and value, in the order of the keys.
    pub puts: Vec<(Vec<u8>, Cell)>,
    /// The new list of tables, if it changed.
    pub tables: Option<Vec<u8>>,
    /// The new progress, if it changed.
    pub progress: Option<Vec<u8>>,
}

/// The cold store of one count task. Calls block; one thread uses it.
pub trait ColdStore: Send + Sync {
    /// The progress of the last batch that had one: opaque bytes.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn progress(&self) -> Result<Option<Vec<u8>>, ColdError>;

    /// The table list of the last batch that had one: opaque bytes.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn tables(&self) -> Result<Option<Vec<u8>>, ColdError>;

    /// Reads cells by cold key; appends one answer each to `out`. Keys are in strictly ascending order.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn get_cells(&self, keys: &[&[u8]], out: &mut Vec<Option<Cell>>) -> Result<(), ColdError>;

    /// Appends to `out` at most `limit` cells, in order of their cold keys, that begin with `prefix` and stand
    /// after the cold key `after`.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn scan_cells(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        out: &mut Vec<(Vec<u8>, Cell)>,
    ) -> Result<(), ColdError>;

    /// The smallest start above `after` of a window of this table that has cells, in any slice.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn next_start(&self, table: u8, after: TimestampMs) -> Result<Option<TimestampMs>, ColdError>;

    /// Applies a batch: visible at once, durable later, never in part.
    ///
    /// # Errors
    ///
    /// Nothing was applied then. See [`ColdError::Full`] for whether the handle is still of use.
    fn apply(&self, batch: &CellBatch) -> Result<(), ColdError>;

    /// Makes everything applied so far durable.
    ///
    /// # Errors
    ///
    /// It may or may not be durable then; nothing is lost from view. See [`ColdError::Full`].
    fn flush(&self) -> Result<(), ColdError>;

    /// Writes a bucket: all of it, durable, or nothing. `ids` are in strictly ascending order of id. A bucket of
    /// the same number is replaced.
    ///
    /// # Errors
    ///
    /// Nothing of it is trusted then; it may be sealed again.
    fn seal(&self, bucket: &Bucket, ids: &[SeenEntry], filter: &[u8]) -> Result<(), ColdError>;

    /// Looks ids up in one bucket; appends the payload check, or `None`, of each to `out`. Ids are in strictly
    /// ascending order.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn lookup(&self, bucket_id: u64, ids: &[SeenId], out: &mut Vec<Option<u32>>) -> Result<(), ColdError>;

    /// The intact buckets, oldest first.
    ///
    /// # Errors
    ///
    /// Where the store could not be read.
    fn buckets(&self) -> Result<Vec<SealedBucket>, ColdError>;

    /// Deletes a bucket; one that does not exist is fine.
    ///
    /// # Errors
    ///
    /// It may still be there in part then, and is not trusted; call again.
    fn drop_bucket(&self, bucket_id: u64) -> Result<(), ColdError>;
}
