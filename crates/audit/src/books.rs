//! Source partitions and the ledger: what was read, what the stages say of it, and whether they have caught up.
//!
//! Per source partition the ledger has a row of intake, rows of count (one per task) and rows of moves (stage `retry`);
//! readers sum (contract §3). Intake's numbers follow exactly from the raw topic. Where copies came to several
//! partitions, only a range of count's numbers is determined per partition, and the sum over all.
//!
//! Invariants checked: LG-1 in every row and settled over both stages; intake's admitted equals count's.

use crate::ledger::{Ledger, Published};
use crate::report::{DifferenceKind, Findings, Range, SourceReport, Tallies, Tally};
use crate::sightings::{Lawful, SourceId};
use crate::verdicts::Verdicts;

/// One source partition as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) topic: String,
    pub(crate) topic_id: String,
    pub(crate) partition: i32,
    pub(crate) record_time: bool,
    pub(crate) first_offset: Option<i64>,
    pub(crate) first_append_ms: Option<i64>,
    pub(crate) said_start: Option<i64>,
    pub(crate) said_end: Option<i64>,
    /// Past the last record read.
    pub(crate) next_offset: i64,
    pub(crate) received: u64,
    pub(crate) late: u64,
    pub(crate) future: u64,
    pub(crate) invalid: u64,
}

impl Source {
    /// The first retained offset; unless it was said, nothing before the first record is assumed to be known.
    pub(crate) fn start_offset(&self) -> i64 {
        self.said_start.or(self.first_offset).or(self.said_end).unwrap_or(0)
    }

    pub(crate) fn end_offset(&self) -> i64 {
        self.said_end.unwrap_or(self.next_offset)
    }

    /// Greatest event time that an admitted record before the first retained one can have; none if all are retained.
    pub(crate) fn lost_through_ms(&self, future_ms: i64) -> Option<i64> {
        if self.start_offset() == 0 {
            return None;
        }
        let known = self.first_append_ms.filter(|_| !self.record_time);
        Some(known.map_or(i64::MAX, |first| first.saturating_add(future_ms)))
    }

    fn name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }

    fn tallies(&self, verdicts: &Verdicts) -> Tallies {
        Tallies {
            received: Range::exactly(self.received),
            counted: verdicts.counted,
            duplicate: verdicts.duplicate,
            conflict: verdicts.conflict,
            late: verdicts.late.plus(self.late),
            future: Range::exactly(self.future),
            invalid: Range::exactly(self.invalid),
        }
    }
}

/// Everything about the books, for the report.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) sources: Vec<SourceReport>,
    pub(crate) recounted: Tallies,
    pub(crate) published: Tally,
    pub(crate) not_settled: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// Compares the ledger with the recount; `all_known`: every record that was ever read is still retained.
pub(crate) fn compare_books(
    sources: &[Source],
    lawful: &Lawful,
    ledger: &Ledger,
    all_known: bool,
    findings: &mut Findings,
) -> Books {
    let mut books = Books::default();
    let (mut slack, mut count) = (0_u64, Tally::default());
    for (index, source) in sources.iter().enumerate() {
        let id = SourceId::try_from(index).unwrap_or(SourceId::MAX);
        let verdicts = lawful.sources.get(&id).copied().unwrap_or_default();
        let published = ledger.of(&source.topic_id, source.partition);
        check_settled(source, published.as_ref(), &mut books.not_settled);
        let recounted = source.tallies(&verdicts);
        let compared = source.start_offset() == 0;
        let found = published.unwrap_or_default();
        compare_source(source, &verdicts, &found, compared, findings);
        slack += found.slack();
        count.add(&found.count);
        count.add(&found.moves);
        books.published.add(&found.summed());
        add_intake(&mut books.recounted, &recounted);
        books.sources.push(SourceReport {
            topic: source.topic.clone(),
            topic_id: source.topic_id.clone(),
            partition: source.partition,
            start_offset: source.start_offset(),
            end_offset: source.end_offset(),
            through_offset: found.through_offset,
            recounted,
            published: published.map(|published| published.summed()),
            compared,
        });
    }
    books.sources.sort_by(|one, other| (&one.topic, one.partition).cmp(&(&other.topic, other.partition)));
    books.not_settled.sort();
    add_overall(&mut books.recounted, &lawful.overall);
    if all_known {
        compare_verdicts("all sources", &lawful.overall, &count, slack, findings);
    }
    if slack > 0 {
        let note =
            format!("{slack} held, retried or redriven events took a way that the raw topics do not show");
        books.notes.push(note);
    }
    books
}

/// What intake decides adds up over partitions; what count decides is known more exactly for all together.
fn add_intake(all: &mut Tallies, source: &Tallies) {
    let mut own = *source;
    (own.counted, own.duplicate, own.conflict) = (Range::default(), Range::default(), Range::default());
    // The horizon's part of late is open per partition and added once for all; intake's is the least here.
    own.late = Range::exactly(source.late.lo);
    all.add(&own);
}

fn add_overall(all: &mut Tallies, overall: &Verdicts) {
    all.counted = overall.counted;
    all.duplicate = overall.duplicate;
    all.conflict = overall.conflict;
    all.late.add(overall.late);
}

/// Settled, as far as the ledger shows it (contract §3).
fn check_settled(source: &Source, published: Option<&Published>, reasons: &mut Vec<String>) {
    let end = source.end_offset();
    let through = published.and_then(|published| published.through_offset);
    match through {
        None if end == 0 => return,
        None => {
            reasons.push(format!("the ledger has no intake row of {}, its end is {end}", source.name()));
            return;
        }
        Some(through) if through != end => {
            reasons.push(format!(
                "intake has read {} through offset {through}, its end is {end}",
                source.name()
            ));
            return;
        }
        Some(_) => {}
    }
    let (admitted, applied) = published.map_or((0, 0), |row| (row.intake.admitted, row.count.admitted));
    if admitted != applied {
        reasons.push(format!(
            "intake admitted {admitted} events of {}, count has applied {applied}",
            source.name()
        ));
    }
}

fn compare_source(
    source: &Source,
    verdicts: &Verdicts,
    found: &Published,
    complete: bool,
    findings: &mut Findings,
) {
    let name = source.name();
    let intake = &found.intake;
    let exact = [
        ("received", source.received, intake.received),
        ("admitted and held", verdicts.admitted, intake.admitted + intake.held),
        ("late", source.late, intake.late),
        ("future", source.future, intake.future),
        ("invalid", source.invalid, intake.invalid),
    ];
    for (field, recounted, published) in exact {
        let least = i64::try_from(recounted).unwrap_or(i64::MAX);
        if published < least || (complete && published != least) {
            let expected = if complete { least.to_string() } else { format!("at least {least}") };
            findings.differ(
                DifferenceKind::LedgerDiffers,
                format!("{name} intake {field}"),
                expected,
                published,
            );
        }
    }
    if complete {
        let mut count = found.count;
        count.add(&found.moves);
        compare_verdicts(&name, verdicts, &count, found.slack(), findings);
        check_closed(&name, &found.summed(), findings);
    }
}

/// Count's verdicts within what is lawful, give or take what was moved.
fn compare_verdicts(name: &str, lawful: &Verdicts, count: &Tally, slack: u64, findings: &mut Findings) {
    let open = [
        ("counted", lawful.counted, count.counted),
        ("duplicate", lawful.duplicate, count.duplicate),
        ("conflict", lawful.conflict, count.conflict),
        ("late by horizon", lawful.late, count.late),
    ];
    for (field, range, published) in open {
        let wide = Range { lo: range.lo.saturating_sub(slack), hi: range.hi.saturating_add(slack) };
        if !wide.contains(published) {
            findings.differ(DifferenceKind::LedgerDiffers, format!("{name} count {field}"), wide, published);
        }
    }
}

/// Received equals the sum of all verdicts, over both stages.
fn check_closed(name: &str, all: &Tally, findings: &mut Findings) {
    let verdicts = all.counted
        + all.duplicate
        + all.conflict
        + all.late
        + all.future
        + all.invalid
        + all.held
        + all.discarded;
    if all.received != verdicts {
        findings.differ(DifferenceKind::BooksOpen, format!("{name} books"), all.received, verdicts);
    }
}
