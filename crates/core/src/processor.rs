//! The shape of a stage's logic: batch and state in, effects out, time as an argument.
//!
//! ```text
//!            now ──┐
//!  batch ──► process(batch, view, now, effects) ──► Consumed
//!              view ┘ (reads and provisional writes)      effects: entries, verdicts, deltas, rows, failures
//! ```
//!
//! A processor performs nothing: the runtime commits its effects or drops them. It may consume a batch in part and
//! ask to be called again later; pause, timer and expected offset are the runtime's.

use crate::ids::{Identity, PayloadCheck};
use crate::sum::Sum;
use crate::time::TimestampMs;

/// Pure logic of one step of a stage.
pub trait Processor {
    /// What it reads.
    type Batch<'a>;
    /// The state it may look at.
    type View<'a>;
    /// Where its effects go.
    type Effects<'a>;

    /// Processes a batch.
    ///
    /// # Errors
    ///
    /// Only where the state could not be read; nothing of the batch may be committed then.
    fn process(
        &mut self,
        batch: Self::Batch<'_>,
        view: Self::View<'_>,
        now: TimestampMs,
        effects: Self::Effects<'_>,
    ) -> Result<Consumed, StateUnavailable>;
}

/// How much of a batch was consumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consumed {
    /// All of it.
    All,
    /// The first `records` of it; the rest waits until then. The runtime pauses the partition.
    Part {
        /// How many records are done.
        records: usize,
        /// When to go on.
        wait_until: TimestampMs,
    },
}

/// Local state could not be read or written: an environment failure, never a verdict.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("local state is not available: {0}")]
pub struct StateUnavailable(pub String);

/// What is known of an identity when it is sighted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sighting {
    /// Never seen within the remembered range.
    First,
    /// Seen; the oldest remembered sighting had this payload.
    Same,
    /// Seen; the oldest remembered sighting had another payload.
    Different,
}

/// The state view of dedup: the ids seen within the remembered range.
pub trait SeenIds {
    /// Sights every id in order and remembers it provisionally; appends one answer each to `out`.
    ///
    /// # Errors
    ///
    /// Where the cold store could not be read. Answers are incomplete then.
    fn sight(
        &mut self,
        ids: &[(Identity, PayloadCheck)],
        out: &mut Vec<Sighting>,
    ) -> Result<(), StateUnavailable>;
}

/// A counter key interned by a task; valid until the task's working set is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CounterId(pub u32);

/// What a batch adds to one counter in one slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delta {
    /// The counter.
    pub counter: CounterId,
    /// Start of the slice.
    pub slice_start: TimestampMs,
    /// Σ deltas.
    pub sum: Sum,
    /// Number of events.
    pub events: u64,
}

/// Which table of cells: a position in the plan's windows, or the totals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table(pub u8);

impl Table {
    /// The totals: one cell per counter, with start 0.
    pub const TOTALS: Self = Self(u8::MAX);
}

/// Names a cell: counter × window, or a counter's total.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CellId {
    /// The table.
    pub table: Table,
    /// Start of the window; 0 for totals.
    pub start: TimestampMs,
    /// The counter.
    pub counter: CounterId,
}

/// The value of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// Σ deltas.
    pub sum: Sum,
    /// Number of events; 0 is a cell that does not exist.
    pub events: u64,
}

/// The place of a cell in the order of its window: the slice of its key's hash, then the encoded key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CellOrder {
    /// [`crate::counter::hash_slice`] of the key.
    pub slice: u8,
    /// The encoded key.
    pub key: Vec<u8>,
}

/// The state view of window: cells and totals.
pub trait Cells {
    /// Brings cells into the working set with one batched read, so that [`Cells::cell`] and [`Cells::add`] need
    /// none.
    ///
    /// # Errors
    ///
    /// Where the cold store could not be read.
    fn load(&mut self, ids: &[CellId]) -> Result<(), StateUnavailable>;

    /// The value of a loaded cell; a default cell where none exists.
    fn cell(&self, id: CellId) -> Cell;

    /// Adds to a loaded cell, provisionally. Returns the value before.
    fn add(&mut self, id: CellId, sum: Sum, events: u64) -> Cell;

    /// The encoded key of a counter; empty if the id is not interned.
    fn key(&self, counter: CounterId) -> &[u8];

    /// Appends to `out`, in [`CellOrder`], at most `limit` cells of one window after `after`, and loads them.
    ///
    /// # Errors
    ///
    /// Where the cold store could not be read.
    fn scan(
        &mut self,
        table: Table,
        start: TimestampMs,
        after: Option<&CellOrder>,
        limit: usize,
        out: &mut Vec<CellId>,
    ) -> Result<(), StateUnavailable>;

    /// The smallest start of a window of this table above `after` that has cells; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Where the cold store could not be read.
    fn next_start(
        &mut self,
        table: Table,
        after: TimestampMs,
    ) -> Result<Option<TimestampMs>, StateUnavailable>;
}
