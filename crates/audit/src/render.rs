//! The report as plain text: a table of the books, a table of the published rows, what was left out and what differs,
//! and in the end one plain sentence that says the outcome.
//!
//! It must not decide anything: the outcome and the numbers are the report's.

use std::fmt;

use crate::report::{LeftOutReason, Outcome, Report, Tallies, Tally};

/// Most lines of one kind in the text.
const SHOWN: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_sources(self, formatter)?;
        write_tables(self, formatter)?;
        let left_out = self.left_out.iter().map(|left| {
            let start = left.window_start.map_or_else(String::new, |start| format!(" window {start}"));
            format!("left out: {}{start}, {} rows ({})", left.table, left.rows, reason_text(left.reason))
        });
        write_lines(formatter, left_out)?;
        let differences = self.differences.iter().map(|difference| {
            format!(
                "difference: {}: expected {}, found {}",
                difference.place, difference.expected, difference.found
            )
        });
        write_lines(formatter, differences)?;
        write_lines(formatter, self.not_settled.iter().map(|reason| format!("not settled: {reason}")))?;
        write_lines(formatter, self.notes.iter().map(|note| format!("note: {note}")))?;
        writeln!(formatter)?;
        writeln!(formatter, "{}", self.sentence())
    }
}

fn write_sources(report: &Report, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        formatter,
        "{:<24} {:<8} {:>12} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "source", "", "received", "counted", "duplicate", "conflict", "late", "future", "invalid"
    )?;
    for source in &report.sources {
        let name = format!("{}-{}", source.topic, source.partition);
        write_recounted(formatter, &name, &source.recounted)?;
        match &source.published {
            Some(published) => write_published(formatter, published)?,
            None => writeln!(formatter, "{:<24} {:<8} no row", "", "ledger")?,
        }
    }
    write_recounted(formatter, "all", &report.recounted)?;
    write_published(formatter, &report.published)
}

fn write_recounted(formatter: &mut fmt::Formatter<'_>, name: &str, tallies: &Tallies) -> fmt::Result {
    writeln!(
        formatter,
        "{name:<24} {:<8} {:>12} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "recount",
        tallies.received,
        tallies.counted,
        tallies.duplicate,
        tallies.conflict,
        tallies.late,
        tallies.future,
        tallies.invalid
    )
}

fn write_published(formatter: &mut fmt::Formatter<'_>, tally: &Tally) -> fmt::Result {
    write!(
        formatter,
        "{:<24} {:<8} {:>12} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "",
        "ledger",
        tally.received,
        tally.counted,
        tally.duplicate,
        tally.conflict,
        tally.late,
        tally.future,
        tally.invalid
    )?;
    if tally.held != 0 || tally.discarded != 0 {
        write!(formatter, "  ({} held, {} discarded)", tally.held, tally.discarded)?;
    }
    writeln!(formatter)
}

fn write_tables(report: &Report, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(formatter)?;
    writeln!(
        formatter,
        "{:<24} {:>12} {:>12} {:>12} {:>12}",
        "table", "compared", "equal", "with choice", "left out"
    )?;
    for table in &report.tables {
        writeln!(
            formatter,
            "{:<24} {:>12} {:>12} {:>12} {:>12}",
            table.table, table.compared, table.equal, table.open, table.left_out
        )?;
    }
    Ok(())
}

fn write_lines(
    formatter: &mut fmt::Formatter<'_>,
    lines: impl ExactSizeIterator<Item = String>,
) -> fmt::Result {
    let more = lines.len().saturating_sub(SHOWN);
    for line in lines.take(SHOWN) {
        writeln!(formatter, "{line}")?;
    }
    if more > 0 {
        writeln!(formatter, "and {more} more of these")?;
    }
    Ok(())
}

fn reason_text(reason: LeftOutReason) -> &'static str {
    match reason {
        LeftOutReason::RawNotRetained => "raw records no longer retained",
        LeftOutReason::Expired => "older than the table keeps rows",
        LeftOutReason::NotFinal => "not final yet",
        LeftOutReason::NotRecounted => "not recounted",
    }
}

impl Report {
    fn sentence(&self) -> String {
        let beyond =
            if self.left_out.is_empty() { "" } else { " What is listed as left out was not compared." };
        match self.outcome {
            Outcome::NotSettled => {
                let reason = self.not_settled.first().map_or("the stages have not caught up", String::as_str);
                format!(
                    "Not settled: {reason}. {} differences so far say nothing yet.",
                    self.differences_total
                )
            }
            Outcome::Differences => {
                format!(
                    "Differences: {} between the raw topics and what is published.{beyond}",
                    self.differences_total
                )
            }
            Outcome::Equal => format!(
                "Equal: {} events received and {} counted, as recounted from the raw topics.{beyond}",
                self.recounted.received, self.recounted.counted
            ),
        }
    }
}
