//! The rows that users read: window, count and ledger (contract §3), independent of their format.

use crate::ids::{NextOffset, Partition, TopicId};
use crate::sum::Sum;
use crate::tallies::Tallies;
use crate::time::TimestampMs;

/// What a window row says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowState {
    /// Provisional.
    Update,
    /// Complete as far as the watermark can tell; said once.
    Final,
    /// An accepted event came after the final.
    Correction,
}

impl RowState {
    /// The value of the `state` field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Final => "final",
            Self::Correction => "correction",
        }
    }
}

/// The revision of a row: 2 · (entries offset through which it holds), + 1 for a final said by the cursor (R10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Revision(pub i64);

impl Revision {
    /// The revision of a row that holds through this offset.
    pub const fn at(through: NextOffset, said_by_cursor: bool) -> Self {
        Self(through.0.saturating_mul(2).saturating_add(said_by_cursor as i64))
    }
}

/// One row of `<app>.windows`.
#[derive(Clone, Copy, Debug)]
pub struct WindowRow<'a> {
    /// The encoded counter key ([`crate::counter`]).
    pub key: &'a [u8],
    /// The name of the window's table in topology.toml.
    pub window: &'a str,
    /// Inclusive start.
    pub start: TimestampMs,
    /// Exclusive end.
    pub end: TimestampMs,
    /// Σ deltas.
    pub sum: Sum,
    /// Number of events counted into it.
    pub events: u64,
    /// Grows with every emission of the key.
    pub revision: Revision,
    /// Provisional, final or correction.
    pub state: RowState,
    /// The watermark when this was said; `None` until known.
    pub complete_through: Option<TimestampMs>,
}

/// One row of `<app>.counts`.
#[derive(Clone, Copy, Debug)]
pub struct CountRow<'a> {
    /// The encoded counter key.
    pub key: &'a [u8],
    /// Σ deltas since the last clear.
    pub total: Sum,
    /// Number of events in it.
    pub events: u64,
    /// Number of accepted clears.
    pub epoch: u64,
    /// Grows with every emission of the key.
    pub revision: Revision,
    /// Instant of the last accepted clear.
    pub cleared_at: Option<TimestampMs>,
    /// The watermark when this was said.
    pub complete_through: Option<TimestampMs>,
}

/// One row of `<app>.ledger`.
#[derive(Clone, Copy, Debug)]
pub struct LedgerRow<'a> {
    /// `intake`, `count` or `retry`.
    pub stage: &'a str,
    /// The stage's own input topic and partition, `<topic>-<p>`.
    pub task: &'a str,
    /// Topic id of the source.
    pub source_topic_id: TopicId,
    /// Partition of the source.
    pub source_partition: Partition,
    /// Name of the source.
    pub source_topic: &'a str,
    /// Cumulative tallies.
    pub tallies: Tallies,
    /// The next offset to read.
    pub through_offset: NextOffset,
    /// The watermark when this was said.
    pub complete_through: Option<TimestampMs>,
}

/// A ledger row read back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedLedgerRow {
    /// `intake`, `count` or `retry`.
    pub stage: String,
    /// The stage's own input topic and partition.
    pub task: String,
    /// Topic id of the source.
    pub source_topic_id: TopicId,
    /// Partition of the source.
    pub source_partition: Partition,
    /// Name of the source.
    pub source_topic: String,
    /// Cumulative tallies.
    pub tallies: Tallies,
    /// The next offset to read.
    pub through_offset: NextOffset,
    /// The watermark when this was said.
    pub complete_through: Option<TimestampMs>,
}

/// The fields of our own rows: a dimension may not be named like one of them.
pub const RESERVED_FIELDS: [&str; 25] = [
    "namespace",
    "counter",
    "window",
    "window_start",
    "window_end",
    "sum",
    "sum_exact",
    "overflow",
    "events",
    "revision",
    "state",
    "complete_through",
    "total",
    "total_exact",
    "epoch",
    "cleared_at",
    "event_id",
    "delta",
    "event_time",
    "dimensions",
    "kind",
    "stage",
    "task",
    "reason",
    "key",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_is_above_the_update_of_the_same_offset_and_below_the_next() {
        let through = NextOffset(7);
        assert!(Revision::at(through, false) < Revision::at(through, true));
        assert!(Revision::at(through, true) < Revision::at(NextOffset(8), false));
    }
}
