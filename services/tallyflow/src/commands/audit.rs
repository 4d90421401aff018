//! `tallyflow audit`: recounts the raw topics and compares with windows, totals and ledger.
//!
//! ```text
//!  raw topics ──► Recount ◄── ledger ── settled? ── no, and it moves: read what came meanwhile, look again
//!                    ▲                     │ yes, or it stands still
//!                    └── windows, counts ◄─┘
//! ```
//!
//! Everything is read once and then only what was added, so that waiting costs little. A row that changed goes out
//! within one emit interval after it was counted, which no ledger shows: rows that differ in settled books are looked
//! at a second time after the longest interval and a second.
//!
//! Memory: what the recount remembers of each id, counter and window; records are passed through.
//!
//! Must not know: what is compared, or how.

mod config;
mod reading;
mod settled;

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tallyflow_audit::{DifferenceKind, Outcome, Recount, Report};
use tallyflow_core::plan::{Emit, Plan};
use tallyflow_topology::units::duration_text;

use self::reading::{Raw, Tail};
use self::settled::Books;
use super::now_ms;
use crate::args::AuditArgs;
use crate::context::Context;
use crate::output::{Output, forgive_closed, talk};

/// Books that have not moved for so long are those of an engine that does not work: count tells them once a second.
const STANDSTILL: Duration = Duration::from_secs(5);
/// Between two looks at books that move.
const PAUSE: Duration = Duration::from_millis(300);

/// Recounts, compares, and says what came of it.
///
/// # Errors
/// Where Kafka does not answer or a topic does not exist, or standard output cannot be written.
pub fn run(context: &Context, args: &AuditArgs) -> Result<ExitCode> {
    let mut report = recount(context)?;
    if may_be_unpublished(&report) {
        let wait = longest_emit(&context.deployment.plan) + Duration::from_secs(1);
        let granted = wait.min(context.timeout);
        talk(format!(
            "rows differ: looking again in {:.1} s, when all changed rows must be out",
            granted.as_secs_f64()
        ));
        if granted < wait {
            let wait = duration_text(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            talk(format!("warning: rows may be due later than that; --timeout {wait} waits for them"));
        }
        thread::sleep(granted);
        report = recount(context)?;
    }
    forgive_closed(print(&report, args.json))?;
    Ok(ExitCode::from(report.outcome().exit_code()))
}

fn print(report: &Report, json: bool) -> io::Result<()> {
    let mut output = Output::new();
    if json {
        output.line(serde_json::to_vec(report).map_err(io::Error::from)?)?;
    } else {
        output.text(&report.to_string())?;
    }
    output.flush()
}

/// Whether everything that differs are published rows, in books that are settled.
fn may_be_unpublished(report: &Report) -> bool {
    let is_of_rows = |kind: DifferenceKind| {
        use DifferenceKind::{ChoiceDiffers, CountDiffers, RowMissing, RowUnexpected, TotalDiffers};
        matches!(kind, RowMissing | RowUnexpected | CountDiffers | ChoiceDiffers | TotalDiffers)
    };
    report.outcome() == Outcome::Differences
        && report.differences.iter().all(|difference| is_of_rows(difference.kind))
}

fn longest_emit(plan: &Plan) -> Duration {
    let windows = plan.windows.iter().map(|window| match window.emit {
        Emit::EveryMs(ms) => ms,
        Emit::Final => 0,
    });
    let longest = windows.chain([plan.totals_emit_ms]).max().unwrap_or(0);
    Duration::from_millis(u64::try_from(longest).unwrap_or(0))
}

fn recount(context: &Context) -> Result<Report> {
    let names = &context.deployment.names;
    let connection = context.connect(&context.patience())?;
    let config = config::of(&context.deployment, now_ms());
    let mut recount =
        Recount::new(config).map_err(|error| anyhow!("the recount refuses the topology: {error}"))?;
    let mut raw = Raw::new(context, connection);
    let mut ledger = Tail::new(&names.ledger);
    let (mut windows, mut counts) = (Tail::new(&names.windows), Tail::new(&names.counts));
    let mut books = Books::default();
    raw.read_on(&mut recount)?;
    // The raw topics may take long; patience is for the engine.
    let patience = context.patience();
    let mut moved = Instant::now();
    let mut before = None;
    loop {
        ledger.read_on(context, &mut |value| {
            books.take(value);
            recount.ledger_row(value);
        })?;
        let unsettled = books.unsettled(raw.ends());
        if unsettled.is_none() || patience.is_over() || moved.elapsed() >= STANDSTILL {
            windows.read_on(context, &mut |value| recount.window_row(value))?;
            counts.read_on(context, &mut |value| recount.count_row(value))?;
            // Rows know of records that came meanwhile; then the recount has to know them too.
            let grown = raw.ask_ends()?;
            if !grown || patience.is_over() {
                raw.tell_ends(&mut recount);
                return Ok(recount.finish());
            }
        }
        let now = (books.progress(), raw.ends().iter().map(|end| end.end).sum::<i64>());
        match (&before, &unsettled) {
            (None, Some(why)) => talk(format!("waiting for the stages: {why}")),
            (Some(before), _) if *before != now => moved = Instant::now(),
            _ => {}
        }
        before = Some(now);
        patience.pause(PAUSE);
        raw.read_on(&mut recount)?;
    }
}

#[cfg(test)]
mod tests {
    use tallyflow_audit::{AuditConfig, WindowSpec};

    use super::*;
    use crate::topics::tests::deployment;

    fn report(feed: impl FnOnce(&mut Recount)) -> Report {
        let windows = vec![WindowSpec::new("minute", 60_000)];
        let mut recount = Recount::new(AuditConfig { windows, ..AuditConfig::default() }).unwrap();
        feed(&mut recount);
        recount.finish()
    }

    fn row(exact: &str) -> String {
        format!(
            r#"{{"namespace":"n","counter":"c","total":1,"total_exact":"{exact}","overflow":false,"events":1,"epoch":0,
            "revision":2,"cleared_at":null,"complete_through":null}}"#
        )
    }

    #[test]
    fn only_rows_that_differ_are_looked_at_again() {
        let equal = report(|_| {});
        assert!(equal.outcome() == Outcome::Equal && !may_be_unpublished(&equal));
        let unexpected = report(|recount| recount.count_row(row("1").as_bytes()));
        assert!(unexpected.outcome() == Outcome::Differences && may_be_unpublished(&unexpected));
        let malformed = report(|recount| recount.count_row(row("01").as_bytes()));
        assert!(malformed.outcome() == Outcome::Differences && !may_be_unpublished(&malformed));
        let unsettled = report(|recount| {
            recount.count_row(row("1").as_bytes());
            recount.ends("events", "id", 0, 5);
        });
        assert!(unsettled.outcome() == Outcome::NotSettled && !may_be_unpublished(&unsettled));
    }

    #[test]
    fn the_longest_interval_counts() {
        let mut plan = deployment().plan;
        assert_eq!(longest_emit(&plan), Duration::from_secs(1));
        plan.windows[0].emit = Emit::EveryMs(60_000);
        assert_eq!(longest_emit(&plan), Duration::from_secs(60));
        plan.windows[0].emit = Emit::Final;
        plan.totals_emit_ms = 2_000;
        assert_eq!(longest_emit(&plan), Duration::from_secs(2));
    }
}
