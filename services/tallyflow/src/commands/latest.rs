//! The latest row of each key of a public topic, and rows as they come: what `windows` and `counts` share.
//!
//! ```text
//!  read_committed from the start ──► Latest (highest revision per key) ──► up to the ends of now: a table, or JSON
//!                                                                     └──► --follow: each row as it comes
//! ```
//!
//! Memory: one row per key that passes the filter on keys.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Result, bail};
use tallyflow_core::record::RecordView;
use tallyflow_kafka::{ReadFrom, Seen};
use tallyflow_schemas::columns::RowError;

use super::number;
use super::table::{Column, Lines, whole};
use crate::args::ShowArgs;
use crate::context::Context;
use crate::output::{Output, is_terminal, talk};

/// A row of a public topic.
pub trait Row: Sized {
    /// Reads a value.
    ///
    /// # Errors
    /// Where it is no such row.
    fn read(value: &[u8]) -> Result<Self, RowError>;

    /// Grows with every emission of the key.
    fn revision(&self) -> i64;

    /// The order in which rows are shown.
    fn order(&self, other: &Self, dimensions: &[String]) -> Ordering;

    /// The columns of its table.
    fn columns(dimensions: &[String]) -> Vec<Column>;

    /// Its cells, one for each column.
    fn cells(&self, dimensions: &[String]) -> Vec<String>;
}

/// Which rows are wanted.
pub trait Filter<R> {
    /// By what belongs to the key: the same for every row of it.
    fn wants_key(&self, row: &R) -> bool;

    /// By what the latest row says.
    fn wants_row(&self, row: &R) -> bool;
}

/// A row and its bytes.
struct Known<R> {
    row: R,
    json: Vec<u8>,
}

/// The latest row of each key.
struct Latest<R> {
    rows: HashMap<Vec<u8>, Known<R>>,
    unreadable: u64,
    first_fault: Option<String>,
}

impl<R: Row> Latest<R> {
    fn new() -> Self {
        Self { rows: HashMap::new(), unreadable: 0, first_fault: None }
    }

    /// Takes a record; a higher revision wins, of equal ones the later.
    fn take(&mut self, record: &RecordView<'_>, filter: &dyn Filter<R>) {
        let Some(row) = self.read(record) else { return };
        if !filter.wants_key(&row) {
            return;
        }
        let json = record.value.unwrap_or_default().to_vec();
        match self.rows.entry(record.key.unwrap_or_default().to_vec()) {
            Entry::Occupied(mut known) => {
                if known.get().row.revision() <= row.revision() {
                    known.insert(Known { row, json });
                }
            }
            Entry::Vacant(place) => {
                place.insert(Known { row, json });
            }
        }
    }

    /// Reads a record; one without a value takes its key away.
    fn read(&mut self, record: &RecordView<'_>) -> Option<R> {
        let Some(value) = record.value else {
            self.rows.remove(record.key.unwrap_or_default());
            return None;
        };
        match R::read(value) {
            Ok(row) => Some(row),
            Err(error) => {
                self.unreadable += 1;
                let place = format!("partition {} offset {}", record.partition, record.offset);
                self.first_fault.get_or_insert_with(|| format!("{place}: {error}"));
                None
            }
        }
    }

    /// What is wanted of it, in order. Nothing stays.
    fn wanted(&mut self, filter: &dyn Filter<R>, dimensions: &[String]) -> Vec<Known<R>> {
        let all = std::mem::take(&mut self.rows).into_values();
        let mut rows: Vec<Known<R>> = all.filter(|known| filter.wants_row(&known.row)).collect();
        rows.sort_by(|a, b| a.row.order(&b.row, dimensions));
        rows
    }
}

/// Shows the latest rows of a topic, and goes on where that is asked for.
///
/// # Errors
/// Where Kafka does not answer, the topic does not exist, a record is no row, or standard output cannot be written.
pub fn show<R: Row>(
    context: &Context,
    topic: &str,
    args: &ShowArgs,
    filter: &dyn Filter<R>,
) -> Result<ExitCode> {
    drop(context.connect(&context.patience())?);
    let mut latest = Latest::new();
    if args.follow {
        follow(context, topic, args, filter, &mut latest)?;
        return Ok(ExitCode::SUCCESS);
    }
    let each = &mut |_: &_, record: &RecordView<'_>| latest.take(record, filter);
    context
        .kafka
        .read_topic(topic, &ReadFrom::Start, context.timeout, each)
        .map_err(|error| context.lost(error))?;
    let rows = latest.wanted(filter, &context.deployment.plan.dimensions);
    if rows.is_empty() {
        talk(format!("no rows in {topic}"));
    }
    let mut page = Page::new(context, args.json);
    page.print(&rows)?;
    match latest.first_fault {
        Some(fault) => {
            let records = number(latest.unreadable, "record");
            bail!("{records} of {topic} cannot be read and is not shown; the first at {fault}");
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn follow<R: Row>(
    context: &Context,
    topic: &str,
    args: &ShowArgs,
    filter: &dyn Filter<R>,
    latest: &mut Latest<R>,
) -> Result<()> {
    let mut page = Page::new(context, args.json);
    let mut caught_up = false;
    let mut printed = Ok(());
    let mut each = |seen: Seen<'_>| {
        printed = match seen {
            Seen::Record(_, record) if caught_up => match latest.read(&record) {
                Some(row) if filter.wants_key(&row) && filter.wants_row(&row) => {
                    page.one(&row, record.value.unwrap_or_default())
                }
                _ => Ok(()),
            },
            Seen::Record(_, record) => {
                latest.take(&record, filter);
                Ok(())
            }
            Seen::CaughtUp => {
                caught_up = true;
                page.print(&latest.wanted(filter, &context.deployment.plan.dimensions))
            }
            Seen::Idle => page.flush(),
        };
        if let Some(fault) = latest.first_fault.take() {
            talk(format!("warning: a record of {topic} cannot be read: {fault}"));
        }
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    context.kafka.follow_topic(topic, &ReadFrom::Start, &mut each).map_err(|error| context.lost(error))?;
    printed
}

/// Where rows are written.
struct Page<'a> {
    output: Output,
    json: bool,
    dimensions: &'a [String],
    lines: Option<Lines>,
}

impl<'a> Page<'a> {
    fn new(context: &'a Context, json: bool) -> Self {
        Self { output: Output::new(), json, dimensions: &context.deployment.plan.dimensions, lines: None }
    }

    fn print<R: Row>(&mut self, rows: &[Known<R>]) -> Result<()> {
        if self.json {
            for known in rows {
                self.output.line(&known.json)?;
            }
        } else {
            let columns = R::columns(self.dimensions);
            let cells: Vec<_> = rows.iter().map(|known| known.row.cells(self.dimensions)).collect();
            self.lines = Some(Lines::below(&columns, cells.iter(), is_terminal()));
            self.output.text(&whole(&columns, cells.into_iter(), is_terminal()))?;
        }
        self.flush()
    }

    /// A row that came later; handed over when there is a pause.
    fn one<R: Row>(&mut self, row: &R, json: &[u8]) -> Result<()> {
        match &self.lines {
            Some(lines) if !self.json => self.output.line(lines.line(&row.cells(self.dimensions)))?,
            _ => self.output.line(json)?,
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.output.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use tallyflow_core::ids::{Offset, Partition};
    use tallyflow_core::record::RecordTime;
    use tallyflow_schemas::columns::{self, CountColumns};

    use super::*;

    struct Only(&'static str, u64);

    impl Filter<CountColumns> for Only {
        fn wants_key(&self, row: &CountColumns) -> bool {
            row.counter.starts_with(self.0)
        }

        fn wants_row(&self, row: &CountColumns) -> bool {
            row.events >= self.1
        }
    }

    fn value(counter: &str, revision: i64, events: u64) -> Vec<u8> {
        let row = serde_json::json!({
            "namespace": "n", "counter": counter, "total": 1, "total_exact": "1", "overflow": false, "events": events,
            "epoch": 0, "revision": revision, "cleared_at": null, "complete_through": null,
        });
        row.to_string().into_bytes()
    }

    fn latest(records: &[(&str, Option<Vec<u8>>)], filter: &Only) -> Latest<CountColumns> {
        let mut latest = Latest::new();
        for (at, (key, value)) in (0..).zip(records) {
            let record = RecordView {
                partition: Partition(1),
                offset: Offset(at),
                time: RecordTime::Unknown,
                key: Some(key.as_bytes()),
                value: value.as_deref(),
                headers: &[],
            };
            latest.take(&record, filter);
        }
        latest
    }

    fn shown(records: &[(&str, Option<Vec<u8>>)], filter: &Only) -> Vec<(String, i64, u64)> {
        let rows = latest(records, filter).wanted(filter, &[]);
        for known in &rows {
            assert_eq!(columns::count(&known.json).unwrap(), known.row);
        }
        rows.into_iter().map(|known| (known.row.counter, known.row.revision, known.row.events)).collect()
    }

    #[test]
    fn the_highest_revision_holds_and_of_equal_ones_the_later() {
        let records = [
            ("b", Some(value("b", 4, 9))),
            ("a", Some(value("a", 2, 1))),
            ("b", Some(value("b", 2, 5))),
            ("a", Some(value("a", 2, 2))),
        ];
        let right = [("a".to_owned(), 2, 2), ("b".to_owned(), 4, 9)];
        assert_eq!(shown(&records, &Only("", 0)), right);
    }

    #[test]
    fn rows_are_judged_by_the_latest_only() {
        let records = [("a", Some(value("a", 2, 9))), ("a", Some(value("a", 4, 1)))];
        assert_eq!(shown(&records, &Only("", 5)), []);
        assert_eq!(shown(&records, &Only("b", 0)), []);
    }

    #[test]
    fn a_record_without_a_value_takes_the_key_away() {
        let records = [("a", Some(value("a", 2, 9))), ("a", None), ("b", None)];
        assert_eq!(shown(&records, &Only("", 0)), []);
    }

    #[test]
    fn what_cannot_be_read_is_counted_and_the_first_one_named() {
        let records = [("a", Some(b"{".to_vec())), ("b", Some(b"7".to_vec()))];
        let latest = latest(&records, &Only("", 0));
        assert_eq!(latest.unreadable, 2);
        assert!(latest.first_fault.unwrap().starts_with("partition 1 offset 0: not a row of counts"));
    }
}
