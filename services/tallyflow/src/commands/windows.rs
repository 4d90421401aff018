//! `tallyflow windows`: the latest count of each window.

use std::cmp::Ordering;
use std::process::ExitCode;

use anyhow::Result;
use tallyflow_schemas::columns::{self, RowError, WindowColumns};

use super::latest::{self, Filter, Row};
use super::now_ms;
use super::table::{Column, shown, time, time_or_none};
use crate::args::WindowsArgs;
use crate::context::Context;
use crate::output::talk;

/// Shows the windows.
///
/// # Errors
/// As [`latest::show`].
pub fn run(context: &Context, args: &WindowsArgs) -> Result<ExitCode> {
    let tables = &context.deployment.plan.windows;
    if let Some(name) = &args.window
        && !tables.iter().any(|table| *table.name == **name)
    {
        // Rows of a table that was there once may still be there.
        let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
        talk(format!("warning: the topology has no window {name}; it has {}", names.join(", ")));
    }
    let wanted = Wanted::new(args, now_ms());
    latest::show(context, &context.deployment.names.windows, &args.show, &wanted)
}

/// Which windows are wanted.
struct Wanted<'a> {
    args: &'a WindowsArgs,
    since_ms: i64,
    until_ms: i64,
}

impl<'a> Wanted<'a> {
    fn new(args: &'a WindowsArgs, now_ms: i64) -> Self {
        Self {
            args,
            since_ms: args.since.map_or(i64::MIN, |when| when.at_ms(now_ms)),
            until_ms: args.until.map_or(i64::MAX, |when| when.at_ms(now_ms)),
        }
    }
}

impl Filter<WindowColumns> for Wanted<'_> {
    fn wants_key(&self, row: &WindowColumns) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
        is(&self.args.show.namespace, &row.namespace)
            && is(&self.args.show.counter, &row.counter)
            && is(&self.args.window, &row.window)
            && row.window_end > self.since_ms
            && row.window_start < self.until_ms
    }

    fn wants_row(&self, row: &WindowColumns) -> bool {
        self.args.state.as_ref().is_none_or(|state| *state == row.state)
    }
}

impl Row for WindowColumns {
    fn read(value: &[u8]) -> Result<Self, RowError> {
        columns::window(value)
    }

    fn revision(&self) -> i64 {
        self.revision
    }

    /// By counter, then by time.
    fn order(&self, other: &Self, dimensions: &[String]) -> Ordering {
        let mine = dimensions.iter().map(|name| self.dimension(name));
        let theirs = dimensions.iter().map(|name| other.dimension(name));
        (&self.namespace, &self.counter)
            .cmp(&(&other.namespace, &other.counter))
            .then_with(|| mine.cmp(theirs))
            .then_with(|| self.window.cmp(&other.window))
            .then_with(|| self.window_start.cmp(&other.window_start))
    }

    fn columns(dimensions: &[String]) -> Vec<Column> {
        let mut columns = vec![Column::text("namespace"), Column::text("counter")];
        columns.extend(dimensions.iter().map(|name| Column::text(name)));
        columns.extend(["window", "window_start", "window_end"].map(Column::text));
        columns.extend(["sum", "events"].map(Column::number));
        columns.push(Column::text("state"));
        columns.push(Column::number("revision"));
        columns.push(Column::text("complete_through"));
        columns
    }

    fn cells(&self, dimensions: &[String]) -> Vec<String> {
        let mut cells = vec![shown(&self.namespace), shown(&self.counter)];
        cells
            .extend(dimensions.iter().map(|name| self.dimension(name).map_or_else(|| "-".to_owned(), shown)));
        cells.extend([
            shown(&self.window),
            time(self.window_start),
            time(self.window_end),
            shown(&self.sum_exact),
            self.events.to_string(),
            shown(&self.state),
            self.revision.to_string(),
            time_or_none(self.complete_through),
        ]);
        cells
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn row(counter: &str, region: &str, start: i64, state: &str) -> WindowColumns {
        let value = serde_json::json!({
            "namespace": "default", "counter": counter, "region": region, "window": "minute", "window_start": start,
            "window_end": start + 60_000, "sum": null, "sum_exact": "9223372036854775808", "overflow": true,
            "events": 2, "revision": 8, "state": state, "complete_through": null,
        });
        columns::window(value.to_string().as_bytes()).unwrap()
    }

    fn wants(line: &str, row: &WindowColumns) -> bool {
        let words = format!("tallyflow windows {line}");
        let Command::Windows(args) = Cli::parse_from(words.split_whitespace()).command else {
            panic!("{words}")
        };
        let wanted = Wanted::new(&args, 600_000);
        wanted.wants_key(row) && wanted.wants_row(row)
    }

    #[test]
    fn every_filter_filters() {
        let row = row("clicks", "eu", 120_000, "final");
        for (line, right) in [
            ("", true),
            ("--namespace default --counter clicks --window minute --state final", true),
            ("--namespace other", false),
            ("--counter click", false),
            ("--window hour", false),
            ("--state update", false),
            ("--since 179999", true),
            ("--since 180000", false),
            ("--until 120001", true),
            ("--until 120000", false),
            ("--since 8m", true),
            ("--since 1970-01-01T00:03:00Z", false),
        ] {
            assert_eq!(wants(line, &row), right, "{line}");
        }
    }

    #[test]
    fn dimensions_are_columns_and_the_exact_sum_is_shown() {
        let dimensions = ["region".to_owned(), "tier".to_owned()];
        let cells = row("clicks", "eu", 60_000, "update").cells(&dimensions);
        assert_eq!(cells.len(), WindowColumns::columns(&dimensions).len());
        assert_eq!(cells[2..5], ["eu", "-", "minute"]);
        assert_eq!(cells[5..8], ["1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z", "9223372036854775808"]);
    }

    #[test]
    fn windows_of_a_counter_stand_together() {
        let dimensions = ["region".to_owned()];
        let mut rows = [
            row("b", "eu", 0, "final"),
            row("a", "us", 0, "final"),
            row("a", "eu", 60_000, "final"),
            row("a", "eu", 0, "final"),
        ];
        rows.sort_by(|a, b| a.order(b, &dimensions));
        let order: Vec<_> = rows
            .iter()
            .map(|row| (row.counter.as_str(), row.dimension("region").unwrap(), row.window_start))
            .collect();
        assert_eq!(order, [("a", "eu", 0), ("a", "eu", 60_000), ("a", "us", 0), ("b", "eu", 0)]);
    }
}
