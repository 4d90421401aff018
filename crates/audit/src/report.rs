//! What the recount found, as a value; `render` makes a text of it.
//!
//! Differences are listed up to a bound and counted beyond it, so that a topic full of errors stays readable.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// Most differences that are listed; the rest is only counted.
const LISTED: usize = 1000;

/// A lawful range, both ends included; one number where nothing is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Range {
    /// Least lawful value.
    pub lo: u64,
    /// Greatest lawful value.
    pub hi: u64,
}

impl Range {
    pub(crate) fn exactly(value: u64) -> Self {
        Self { lo: value, hi: value }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.lo += other.lo;
        self.hi += other.hi;
    }

    pub(crate) fn plus(mut self, value: u64) -> Self {
        self.add(Self::exactly(value));
        self
    }

    /// The least range that holds both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Whether the published number is lawful.
    #[must_use]
    pub fn contains(&self, value: i64) -> bool {
        u64::try_from(value).is_ok_and(|value| (self.lo..=self.hi).contains(&value))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.lo == self.hi { self.lo.to_string() } else { format!("{}-{}", self.lo, self.hi) };
        formatter.pad(&text)
    }
}

/// Verdicts as recounted, in events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tallies {
    /// Events read.
    pub received: Range,
    /// Counted once.
    pub counted: Range,
    /// Copies of a counted event.
    pub duplicate: Range,
    /// Same id, other payload.
    pub conflict: Range,
    /// Too old when appended, or beyond the horizon.
    pub late: Range,
    /// Too far ahead when appended.
    pub future: Range,
    /// Not decodable or not well typed.
    pub invalid: Range,
}

impl Tallies {
    pub(crate) fn add(&mut self, other: &Self) {
        self.received.add(other.received);
        self.counted.add(other.counted);
        self.duplicate.add(other.duplicate);
        self.conflict.add(other.conflict);
        self.late.add(other.late);
        self.future.add(other.future);
        self.invalid.add(other.invalid);
    }
}

/// Verdicts as published: the ledger's rows of all stages, moves included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Events read.
    pub received: i64,
    /// Events that intake passed on.
    pub admitted: i64,
    /// Counted once.
    pub counted: i64,
    /// Copies of a counted event.
    pub duplicate: i64,
    /// Same id, other payload.
    pub conflict: i64,
    /// Too old when appended, or beyond the horizon.
    pub late: i64,
    /// Too far ahead when appended.
    pub future: i64,
    /// Not decodable or not well typed.
    pub invalid: i64,
    /// Waiting or parked after a failure.
    pub held: i64,
    /// Given up by a person.
    pub discarded: i64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.admitted += other.admitted;
        self.counted += other.counted;
        self.duplicate += other.duplicate;
        self.conflict += other.conflict;
        self.late += other.late;
        self.future += other.future;
        self.invalid += other.invalid;
        self.held += other.held;
        self.discarded += other.discarded;
    }
}

/// One source partition: what was recounted and what the ledger says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// Topic name.
    pub topic: String,
    /// Topic id, as text.
    pub topic_id: String,
    /// Partition.
    pub partition: i32,
    /// First retained offset.
    pub start_offset: i64,
    /// End offset up to which was recounted.
    pub end_offset: i64,
    /// Next offset that intake reads; none without a row.
    pub through_offset: Option<i64>,
    /// The recount of what is retained.
    pub recounted: Tallies,
    /// The ledger; none without rows.
    pub published: Option<Tally>,
    /// Whether both could be compared number by number: false when records are no longer retained.
    pub compared: bool,
}

/// One published table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TableReport {
    /// Name of the window table; `totals` for totals.
    pub table: String,
    /// Rows compared.
    pub compared: u64,
    /// Rows that are right.
    pub equal: u64,
    /// Compared rows for which more than one value was lawful.
    pub open: u64,
    /// Rows left out.
    pub left_out: u64,
}

/// What kind of difference it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// A published row cannot be read, or contradicts itself.
    RowMalformed,
    /// One revision of a key says two things.
    RevisionReused,
    /// A count that must be published is not.
    RowMissing,
    /// A row is published for which no event is known.
    RowUnexpected,
    /// A sum or a number of events is not lawful.
    CountDiffers,
    /// The choices for shared ids do not add up over several rows.
    ChoiceDiffers,
    /// The windows of a counter do not add up to its total.
    TotalDiffers,
    /// A ledger number differs from the recount.
    LedgerDiffers,
    /// A ledger row, or the books as a whole, do not close.
    BooksOpen,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// Its kind.
    pub kind: DifferenceKind,
    /// Where: table and key, or source partition and field.
    pub place: String,
    /// What is lawful.
    pub expected: String,
    /// What is published.
    pub found: String,
}

/// Why a row was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// The window reaches back before the first retained raw record.
    RawNotRetained,
    /// The row is older than the table keeps rows.
    Expired,
    /// The table publishes finals only, and the window is not final.
    NotFinal,
    /// The table cannot be recounted here.
    NotRecounted,
}

/// Rows that were left out, by window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The table.
    pub table: String,
    /// Start of the window, in epoch milliseconds; none for totals and whole tables.
    pub window_start: Option<i64>,
    /// Why.
    pub reason: LeftOutReason,
    /// How many rows.
    pub rows: u64,
}

/// The three outcomes of an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything that can be claimed is equal.
    Equal,
    /// Something differs.
    Differences,
    /// The stages have not caught up; differences say nothing yet.
    NotSettled,
}

impl Outcome {
    /// The exit code of the command (contract §6).
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Equal => 0,
            Self::Differences => 3,
            Self::NotSettled => 1,
        }
    }
}

/// The whole finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The outcome, as [`Report::outcome`] says it.
    pub outcome: Outcome,
    /// Why it is not settled; empty when it is.
    pub not_settled: Vec<String>,
    /// Every source partition.
    pub sources: Vec<SourceReport>,
    /// All source partitions together, as recounted.
    pub recounted: Tallies,
    /// All source partitions together, as published.
    pub published: Tally,
    /// Recounted invalid events by category.
    pub invalid_by_category: BTreeMap<&'static str, u64>,
    /// Ids with several payloads inside the horizon: one of them counts, either one.
    pub conflict_ids: u64,
    /// Ids with sightings further apart than the horizon: each may count or not.
    pub horizon_ids: u64,
    /// Every published table.
    pub tables: Vec<TableReport>,
    /// The first differences, sorted.
    pub differences: Vec<Difference>,
    /// How many differences there are.
    pub differences_total: u64,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
    /// What a reader should know beside the numbers.
    pub notes: Vec<String>,
}

impl Report {
    /// Equal, differences, or not settled.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

/// Differences and left-out rows while they are found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    differences: Vec<Difference>,
    total: u64,
    left_out: BTreeMap<(String, Option<i64>, LeftOutReason), u64>,
}

impl Findings {
    pub(crate) fn differ(
        &mut self,
        kind: DifferenceKind,
        place: String,
        expected: impl ToString,
        found: impl ToString,
    ) {
        self.total += 1;
        if self.differences.len() < LISTED {
            let (expected, found) = (expected.to_string(), found.to_string());
            self.differences.push(Difference { kind, place, expected, found });
        }
    }

    pub(crate) fn leave_out(&mut self, table: &str, window_start: Option<i64>, reason: LeftOutReason) {
        *self.left_out.entry((table.to_owned(), window_start, reason)).or_default() += 1;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Sorted differences and left-out rows.
    pub(crate) fn into_lists(mut self) -> (Vec<Difference>, Vec<LeftOut>) {
        self.differences.sort();
        let left_out = self.left_out.into_iter().map(|((table, window_start, reason), rows)| LeftOut {
            table,
            window_start,
            reason,
            rows,
        });
        (self.differences, left_out.collect())
    }
}
