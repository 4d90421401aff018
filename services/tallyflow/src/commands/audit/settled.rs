//! Whether the books are settled, as far as the ledger shows it: is it worth to wait?
//!
//! It only decides when to stop reading. The recount judges by itself what it was given.

use std::collections::HashMap;

use serde::Deserialize;

use super::reading::SourceEnd;

/// What is needed of a ledger row.
#[derive(Deserialize)]
struct Row {
    stage: String,
    task: String,
    source_topic_id: String,
    source_partition: u32,
    admitted: i64,
    through_offset: i64,
}

/// Whose row it is: topic id, partition, stage, task.
type Key = (String, u32, String, String);

/// The newest rows of intake and count.
#[derive(Default)]
pub struct Books {
    rows: HashMap<Key, (i64, i64)>,
}

impl Books {
    /// Takes a ledger row; anything else is passed over.
    pub fn take(&mut self, value: &[u8]) {
        let Ok(row) = serde_json::from_slice::<Row>(value) else {
            return;
        };
        let key = (row.source_topic_id, row.source_partition, row.stage, row.task);
        let new = (row.through_offset, row.admitted);
        // Both only grow; a takeover may leave the older row in another partition's order.
        let known = self.rows.entry(key).or_insert(new);
        *known = (*known).max(new);
    }

    /// Grows while the engine works.
    pub fn progress(&self) -> (i64, i64) {
        let rows = self.rows.values();
        rows.fold((0, 0), |sum, row| (sum.0.saturating_add(row.0), sum.1.saturating_add(row.1)))
    }

    /// Why it is not settled; none where it is.
    pub fn unsettled(&self, ends: &[SourceEnd]) -> Option<String> {
        ends.iter().find_map(|source| self.unsettled_source(source))
    }

    fn unsettled_source(&self, source: &SourceEnd) -> Option<String> {
        let (mut through, mut admitted, mut applied) = (0, 0, 0);
        for ((topic_id, partition, stage, _), (row_through, row_admitted)) in &self.rows {
            if *topic_id == source.topic_id && *partition == source.partition {
                match stage.as_str() {
                    "intake" => {
                        through = through.max(*row_through);
                        admitted += row_admitted;
                    }
                    "count" => applied += row_admitted,
                    _ => {}
                }
            }
        }
        let name = format!("{}-{}", source.topic, source.partition);
        if through != source.end {
            Some(format!("intake has read {name} through offset {through}, its end is {}", source.end))
        } else if admitted != applied {
            Some(format!("intake admitted {admitted} events of {name}, count has applied {applied}"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(end: i64) -> Vec<SourceEnd> {
        let source = SourceEnd { topic: "events".into(), topic_id: "ab".into(), partition: 1, start: 0, end };
        vec![source]
    }

    fn take(books: &mut Books, stage: &str, task: &str, through: i64, admitted: i64) {
        let row = serde_json::json!({
            "stage": stage, "task": task, "source_topic_id": "ab", "source_partition": 1, "source_topic": "events",
            "received": 9, "admitted": admitted, "through_offset": through, "complete_through": null,
        });
        books.take(row.to_string().as_bytes());
    }

    #[test]
    fn books_are_settled_when_both_stages_have_everything() {
        let mut books = Books::default();
        assert_eq!(books.unsettled(&end(0)), None);
        assert!(books.unsettled(&end(9)).unwrap().contains("through offset 0, its end is 9"));
        take(&mut books, "intake", "events-1", 7, 5);
        assert!(books.unsettled(&end(9)).unwrap().starts_with("intake has read events-1 through offset 7"));
        take(&mut books, "intake", "events-1", 9, 6);
        assert!(books.unsettled(&end(9)).unwrap().ends_with("count has applied 0"));
        take(&mut books, "count", "shop.entries-0", 3, 2);
        take(&mut books, "count", "shop.entries-1", 3, 4);
        assert_eq!(books.unsettled(&end(9)), None);
        assert!(books.unsettled(&end(10)).is_some());
    }

    #[test]
    fn older_rows_and_notes_change_nothing() {
        let mut books = Books::default();
        take(&mut books, "intake", "events-1", 9, 6);
        let before = books.progress();
        take(&mut books, "intake", "events-1", 7, 5);
        books.take(br#"{"stage":"intake","task":"events-1","attempts":2}"#);
        books.take(b"\xff");
        assert_eq!(books.progress(), before);
        take(&mut books, "intake", "events-1", 10, 6);
        assert_ne!(books.progress(), before);
    }
}
