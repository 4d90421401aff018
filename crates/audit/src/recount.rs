//! The recount as its caller sees it: feed raw records and published rows in any order of topics, then finish.
//!
//! ```text
//!   starts, raw, ends   ──► typing rules ──► time limits ──► sightings ─┐
//!   window_row, count_row, ledger_row ──► latest per key ───────────────┴─► finish ──► Report
//! ```
//!
//! Invariants: a record is judged by its own append time and nothing else; an offset is read once, whatever the caller
//! sends; no call fails: what cannot be read is a difference in the report.

use std::collections::{BTreeMap, HashMap};

use crate::books::{Books, Source, compare_books};
use crate::cells::Table;
use crate::compare::{Context, Rows, TOTALS, compare_table, compare_with_totals};
use crate::config::{AuditConfig, AuditError, Rules};
use crate::event::events_of;
use crate::keys::{Keys, identity};
use crate::ledger::Ledger;
use crate::raw::{Admission, RawRecord, admission};
use crate::report::{DifferenceKind, Findings, LeftOutReason, Outcome, Report, TableReport};
use crate::rows::{self, Row, RowKey, WindowParse};
use crate::sightings::{Lawful, Sighting, Sightings, SourceId};

/// An audit in progress.
#[derive(Debug)]
pub struct Recount {
    rules: Rules,
    keys: Keys,
    sources: Vec<Source>,
    source_ids: HashMap<String, HashMap<i32, usize>>,
    sightings: Sightings,
    invalid_by_category: BTreeMap<&'static str, u64>,
    windows: Vec<Rows>,
    totals: Rows,
    ledger: Ledger,
    retry_waiting: u64,
    complete_through_ms: Option<i64>,
    findings: Findings,
}

impl Recount {
    /// An empty recount.
    ///
    /// # Errors
    /// The configuration contradicts itself; nothing was read.
    pub fn new(config: AuditConfig) -> Result<Self, AuditError> {
        let windows = config.windows.iter().map(|_| Rows::new()).collect();
        Ok(Self {
            rules: Rules::new(config)?,
            keys: Keys::default(),
            sources: Vec::new(),
            source_ids: HashMap::new(),
            sightings: Sightings::default(),
            invalid_by_category: BTreeMap::new(),
            windows,
            totals: Rows::new(),
            ledger: Ledger::default(),
            retry_waiting: 0,
            complete_through_ms: None,
            findings: Findings::default(),
        })
    }

    /// Says the first retained offset of a raw partition (the log start). Without it the first record's offset is
    /// taken, which leaves out more than necessary when a topic begins with control records.
    pub fn starts(&mut self, topic: &str, topic_id: &str, partition: i32, start_offset: i64) {
        if let Some(source) = self.source(topic, topic_id, partition) {
            source.said_start = Some(start_offset);
        }
    }

    /// Says the end of a raw partition: the offset past its last record, control records included.
    pub fn ends(&mut self, topic: &str, topic_id: &str, partition: i32, end_offset: i64) {
        if let Some(source) = self.source(topic, topic_id, partition) {
            source.said_end = Some(end_offset);
        }
    }

    /// Says how many records wait in the retry topics; while any does, nothing is settled.
    pub fn retry_waiting(&mut self, records: u64) {
        self.retry_waiting = records;
    }

    /// Takes one record of a raw topic. Per partition offsets must grow; an offset already read is passed over.
    pub fn raw(&mut self, record: &RawRecord<'_>) {
        let Some(index) = self.source_index(record.topic, record.topic_id, record.partition) else {
            return;
        };
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        if record.offset < source.next_offset {
            return;
        }
        source.next_offset = record.offset.saturating_add(1);
        source.first_offset.get_or_insert(record.offset);
        source.first_append_ms.get_or_insert(record.append_time_ms);
        let config = &self.rules.config;
        // The worker's clock can only have been behind the caller's.
        let ahead = source.record_time
            && config.now_ms.is_some_and(|now| record.append_time_ms > now.saturating_add(config.future_ms));
        // Of several `id` headers the last holds, as Kafka's own lookup has it.
        let id =
            record.headers.iter().rev().find(|header| header.name == "id").and_then(|header| header.value);
        for typed in events_of(record.value, id, &self.rules) {
            source.received += 1;
            match typed {
                Err(category) => {
                    source.invalid += 1;
                    *self.invalid_by_category.entry(category.name()).or_default() += 1;
                }
                Ok(event) => match admission(&event, record.append_time_ms, ahead, config) {
                    Admission::Late => source.late += 1,
                    Admission::Future => source.future += 1,
                    Admission::Admitted => {
                        let sighting = Sighting {
                            append_ms: record.append_time_ms,
                            source: SourceId::try_from(index).unwrap_or(SourceId::MAX),
                            key: self.keys.id(&event.namespace, &event.counter, &event.dimensions),
                            delta: event.delta,
                            event_time_ms: event.event_time_ms,
                        };
                        let identity = identity(&event.namespace, &event.counter, &event.event_id);
                        self.sightings.add(identity, sighting);
                    }
                },
            }
        }
    }

    /// Takes the JSON value of a window row. Of several rows of a key the highest revision holds, of equal ones the
    /// later.
    pub fn window_row(&mut self, value: &[u8]) {
        match rows::window_row(value, &self.rules.config) {
            Ok(WindowParse::NotRecounted) => {}
            Ok(WindowParse::Row(row)) => {
                self.note_complete(row.row.complete_through_ms);
                let key = self.key_id(&row.key);
                let name = self.rules.config.windows.get(row.table).map_or("", |window| window.name.as_str());
                if let Some(table) = self.windows.get_mut(row.table) {
                    let place = format!("{name} {} {}/{}", row.start_ms, row.key.namespace, row.key.counter);
                    keep_latest(table, (key, row.start_ms), row.row, place, &mut self.findings);
                }
            }
            Err(fault) => self.malformed("window row", value, &fault),
        }
    }

    /// Takes the JSON value of a count row; as [`Recount::window_row`].
    pub fn count_row(&mut self, value: &[u8]) {
        match rows::count_row(value, &self.rules.config) {
            Ok((key, row)) => {
                self.note_complete(row.complete_through_ms);
                let id = self.key_id(&key);
                let place = format!("{TOTALS} {}/{}", key.namespace, key.counter);
                keep_latest(&mut self.totals, (id, 0), row, place, &mut self.findings);
            }
            Err(fault) => self.malformed("count row", value, &fault),
        }
    }

    /// Takes the JSON value of a ledger row. Of several rows of a key the one with more progress holds, of equal ones
    /// the later; notes that are no tallies are passed over.
    pub fn ledger_row(&mut self, value: &[u8]) {
        match rows::ledger_row(value) {
            Ok(None) => {}
            Ok(Some((key, row, topic))) => self.ledger.add(key, row, topic),
            Err(fault) => self.malformed("ledger row", value, &fault),
        }
    }

    /// Compares everything.
    #[must_use]
    pub fn finish(mut self) -> Report {
        let config = &self.rules.config;
        let lawful = std::mem::take(&mut self.sightings).judge(config.slice_ms, config.remember_ms);
        let vanished = self.ledger.vanished(&self.sources);
        let lost_through_ms = self.lost_through_ms(&vanished);
        self.ledger.check_rows(&mut self.findings);
        let all_known = lost_through_ms.is_none();
        let mut books = compare_books(&self.sources, &lawful, &self.ledger, all_known, &mut self.findings);
        if self.retry_waiting > 0 {
            books.not_settled.push(format!("{} records wait in the retry topics", self.retry_waiting));
        }
        for (topic, partition, received) in &vanished {
            books.notes.push(format!("{topic}-{partition} of an earlier topic id is in the books with {received} events and was not read"));
        }
        let tables = self.compare_tables(&lawful, lost_through_ms);
        self.report(&lawful, books, tables)
    }

    fn compare_tables(&mut self, lawful: &Lawful, lost_through_ms: Option<i64>) -> Vec<TableReport> {
        let findings = &mut self.findings;
        let config = &self.rules.config;
        let context = Context {
            config,
            keys: &self.keys,
            lost_through_ms,
            complete_through_ms: self.complete_through_ms.max(self.ledger.complete_through_ms()),
        };
        let totals = Table::new(lawful, None);
        let mut tables = Vec::new();
        for (window, rows) in config.windows.iter().zip(&self.windows) {
            let expected = Table::new(lawful, Some(window.size_ms));
            let checked = compare_table(&context, Some(window), &expected, rows, findings);
            if config.totals && all_retained(&context) {
                compare_with_totals(&context, (window, &checked, rows), (&totals, &self.totals), findings);
            }
            tables.push(checked.report);
        }
        if config.totals {
            tables.push(compare_table(&context, None, &totals, &self.totals, findings).report);
        }
        for table in &config.not_recounted {
            findings.leave_out(table, None, LeftOutReason::NotRecounted);
        }
        tables
    }

    fn report(self, lawful: &Lawful, books: Books, tables: Vec<TableReport>) -> Report {
        let differences_total = self.findings.total();
        let (differences, left_out) = self.findings.into_lists();
        let outcome = match (books.not_settled.is_empty(), differences_total) {
            (false, _) => Outcome::NotSettled,
            (true, 0) => Outcome::Equal,
            (true, _) => Outcome::Differences,
        };
        Report {
            outcome,
            not_settled: books.not_settled,
            sources: books.sources,
            recounted: books.recounted,
            published: books.published,
            invalid_by_category: self.invalid_by_category,
            conflict_ids: lawful.conflict_ids,
            horizon_ids: lawful.horizon_ids,
            tables,
            differences,
            differences_total,
            left_out,
            notes: books.notes,
        }
    }

    /// Event times up to here may be missing from what was read: a log that starts late, or a topic that is gone. The
    /// log of a re-created topic ended before the new one began.
    fn lost_through_ms(&self, vanished: &[(String, i32, i64)]) -> Option<i64> {
        let future_ms = self.rules.config.future_ms;
        let retained = self.sources.iter().filter_map(|source| source.lost_through_ms(future_ms)).max();
        let gone = vanished.iter().map(|(topic, _, _)| {
            let successors =
                self.sources.iter().filter(|source| source.topic == *topic && !source.record_time);
            let began = successors.filter_map(|source| source.first_append_ms).min();
            began.map_or(i64::MAX, |began| began.saturating_add(future_ms))
        });
        retained.max(gone.max())
    }

    fn source_index(&mut self, topic: &str, topic_id: &str, partition: i32) -> Option<usize> {
        if let Some(index) = self.source_ids.get(topic_id).and_then(|partitions| partitions.get(&partition)) {
            return Some(*index);
        }
        let index = self.sources.len();
        SourceId::try_from(index).ok()?;
        self.sources.push(Source {
            topic: topic.to_owned(),
            topic_id: topic_id.to_owned(),
            partition,
            record_time: self.rules.takes_record_time(topic),
            ..Source::default()
        });
        self.source_ids.entry(topic_id.to_owned()).or_default().insert(partition, index);
        Some(index)
    }

    fn source(&mut self, topic: &str, topic_id: &str, partition: i32) -> Option<&mut Source> {
        let index = self.source_index(topic, topic_id, partition)?;
        self.sources.get_mut(index)
    }

    fn key_id(&mut self, key: &RowKey) -> crate::keys::KeyId {
        self.keys.id(&key.namespace, &key.counter, &key.dimensions)
    }

    fn note_complete(&mut self, complete_through_ms: Option<i64>) {
        self.complete_through_ms = self.complete_through_ms.max(complete_through_ms);
    }

    fn malformed(&mut self, what: &str, value: &[u8], fault: &str) {
        let start: String = String::from_utf8_lossy(value).chars().take(120).collect();
        self.findings.differ(
            DifferenceKind::RowMalformed,
            format!("{what} {start}"),
            "a row of the contract",
            fault,
        );
    }
}

fn all_retained(context: &Context<'_>) -> bool {
    context.lost_through_ms.is_none()
}

fn keep_latest(rows: &mut Rows, place: (u32, i64), row: Row, name: String, findings: &mut Findings) {
    if let Some(known) = rows.get(&place) {
        if known.revision > row.revision {
            return;
        }
        let says = |row: &Row| format!("{} in {} events, {}", row.sum, row.events, row.state);
        let same = (known.sum, known.events, &known.state) == (row.sum, row.events, &row.state);
        if known.revision == row.revision && !same {
            let what = format!("{name} revision {}", row.revision);
            findings.differ(DifferenceKind::RevisionReused, what, says(known), says(&row));
        }
    }
    rows.insert(place, row);
}
