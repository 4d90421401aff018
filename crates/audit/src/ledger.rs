//! The published ledger, latest per key, summed as readers sum it.
//!
//! A source partition has a row of intake, rows of count (one per task) and rows of moves (stage `retry`, contract §3).
//! Every row must close by itself (LG-1); whether its numbers are right is decided in `books`.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::books::Source;
use crate::report::{DifferenceKind, Findings, Tally};
use crate::rows::{LedgerKey, LedgerRow};

/// The ledger's rows of one source partition, summed by stage.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Published {
    pub(crate) intake: Tally,
    pub(crate) count: Tally,
    pub(crate) moves: Tally,
    pub(crate) through_offset: Option<i64>,
}

impl Published {
    /// The verdicts as readers sum them; `admitted` is intake's.
    pub(crate) fn summed(&self) -> Tally {
        let mut sum = Tally { admitted: 0, ..self.count };
        sum.add(&self.intake);
        sum.add(&self.moves);
        sum
    }

    /// How many events went a way that the raw topic does not show.
    pub(crate) fn slack(&self) -> u64 {
        let moves = &self.moves;
        let moved = [
            moves.counted,
            moves.duplicate,
            moves.conflict,
            moves.late,
            moves.invalid,
            moves.held,
            moves.discarded,
        ];
        moved.iter().map(|number| number.unsigned_abs()).sum::<u64>() + self.intake.held.unsigned_abs()
    }
}

/// The published ledger, latest per key.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    rows: BTreeMap<LedgerKey, LedgerRow>,
    topics: HashMap<String, String>,
}

impl Ledger {
    /// Keeps the newer of two rows: progress only grows, moves are taken as they come.
    pub(crate) fn add(&mut self, key: LedgerKey, row: LedgerRow, topic: String) {
        self.topics.insert(key.topic_id.clone(), topic);
        let progress = |row: &LedgerRow| (row.through_offset, row.received, row.admitted);
        let is_move = key.stage == "retry";
        let older = self.rows.get(&key).is_some_and(|known| !is_move && progress(known) > progress(&row));
        if !older {
            self.rows.insert(key, row);
        }
    }

    /// The newest watermark in it.
    pub(crate) fn complete_through_ms(&self) -> Option<i64> {
        self.rows.values().filter_map(|row| row.complete_through_ms).max()
    }

    /// The rows of one source partition; none if it has none.
    pub(crate) fn of(&self, topic_id: &str, partition: i32) -> Option<Published> {
        let mut published = None;
        for (key, row) in &self.rows {
            if key.topic_id == topic_id && key.partition == partition {
                let sum: &mut Published = published.get_or_insert_default();
                match key.stage.as_str() {
                    "intake" => {
                        sum.intake.add(&tally(row));
                        sum.through_offset = sum.through_offset.max(Some(row.through_offset));
                    }
                    "count" => sum.count.add(&tally(row)),
                    _ => sum.moves.add(&tally(row)),
                }
            }
        }
        published
    }

    /// Every row closes by itself (LG-1).
    pub(crate) fn check_rows(&self, findings: &mut Findings) {
        for (key, row) in &self.rows {
            let (left, right) = match key.stage.as_str() {
                "intake" => (row.received, row.admitted + row.late + row.future + row.invalid + row.held),
                "count" => (row.admitted, row.counted + row.duplicate + row.conflict + row.late),
                // A reader of the ledger marks its end with a row that says nothing.
                "retry" | "barrier" => continue,
                other => {
                    let place = format!("ledger row of {}-{}", key.topic_id, key.partition);
                    findings.differ(DifferenceKind::RowMalformed, place, "intake, count or retry", other);
                    continue;
                }
            };
            if left != right {
                let place =
                    format!("ledger row {} {} of {}-{}", key.stage, key.task, key.topic_id, key.partition);
                findings.differ(DifferenceKind::BooksOpen, place, left, right);
            }
        }
    }

    /// Sources in the books whose topic was not read: (topic name, partition, events received).
    pub(crate) fn vanished(&self, sources: &[Source]) -> Vec<(String, i32, i64)> {
        let known: HashSet<(&str, i32)> =
            sources.iter().map(|source| (source.topic_id.as_str(), source.partition)).collect();
        let mut vanished = Vec::new();
        for (key, row) in self.rows.iter().filter(|(key, row)| key.stage == "intake" && row.received > 0) {
            if !known.contains(&(key.topic_id.as_str(), key.partition)) {
                let topic = self.topics.get(&key.topic_id).unwrap_or(&key.topic_id);
                vanished.push((topic.clone(), key.partition, row.received));
            }
        }
        vanished
    }
}

fn tally(row: &LedgerRow) -> Tally {
    Tally {
        received: row.received,
        admitted: row.admitted,
        counted: row.counted,
        duplicate: row.duplicate,
        conflict: row.conflict,
        late: row.late,
        future: row.future,
        invalid: row.invalid,
        held: row.held,
        discarded: row.discarded,
    }
}
