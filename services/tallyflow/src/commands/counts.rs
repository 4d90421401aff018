//! `tallyflow counts`: the latest total of each counter.

use std::cmp::Ordering;
use std::process::ExitCode;

use anyhow::Result;
use tallyflow_schemas::columns::{self, CountColumns, RowError};

use super::latest::{self, Filter, Row};
use super::table::{Column, shown, time_or_none};
use crate::args::{CountsArgs, ShowArgs};
use crate::context::Context;

/// Shows the totals.
///
/// # Errors
/// As [`latest::show`].
pub fn run(context: &Context, args: &CountsArgs) -> Result<ExitCode> {
    let wanted = Wanted(&args.show);
    latest::show(context, &context.deployment.names.counts, &args.show, &wanted)
}

/// Which counters are wanted.
struct Wanted<'a>(&'a ShowArgs);

impl Filter<CountColumns> for Wanted<'_> {
    fn wants_key(&self, row: &CountColumns) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
        is(&self.0.namespace, &row.namespace) && is(&self.0.counter, &row.counter)
    }

    fn wants_row(&self, _: &CountColumns) -> bool {
        true
    }
}

impl Row for CountColumns {
    fn read(value: &[u8]) -> Result<Self, RowError> {
        columns::count(value)
    }

    fn revision(&self) -> i64 {
        self.revision
    }

    fn order(&self, other: &Self, dimensions: &[String]) -> Ordering {
        let mine = dimensions.iter().map(|name| self.dimension(name));
        let theirs = dimensions.iter().map(|name| other.dimension(name));
        (&self.namespace, &self.counter)
            .cmp(&(&other.namespace, &other.counter))
            .then_with(|| mine.cmp(theirs))
    }

    fn columns(dimensions: &[String]) -> Vec<Column> {
        let mut columns = vec![Column::text("namespace"), Column::text("counter")];
        columns.extend(dimensions.iter().map(|name| Column::text(name)));
        columns.extend(["total", "events", "revision"].map(Column::number));
        columns.push(Column::text("complete_through"));
        columns
    }

    fn cells(&self, dimensions: &[String]) -> Vec<String> {
        let mut cells = vec![shown(&self.namespace), shown(&self.counter)];
        cells
            .extend(dimensions.iter().map(|name| self.dimension(name).map_or_else(|| "-".to_owned(), shown)));
        cells.extend([
            shown(&self.total_exact),
            self.events.to_string(),
            self.revision.to_string(),
            time_or_none(self.complete_through),
        ]);
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(counter: &str) -> CountColumns {
        let value = serde_json::json!({
            "namespace": "default", "counter": counter, "region": "", "total": 7, "total_exact": "7",
            "overflow": false, "events": 3, "epoch": 0, "revision": 8, "cleared_at": null,
            "complete_through": 1_000,
        });
        columns::count(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn cells_stand_below_their_columns() {
        let dimensions = ["region".to_owned()];
        let cells = row("clicks").cells(&dimensions);
        assert_eq!(cells.len(), CountColumns::columns(&dimensions).len());
        assert_eq!(cells, ["default", "clicks", "\"\"", "7", "3", "8", "1970-01-01T00:00:01Z"]);
    }

    #[test]
    fn counters_are_chosen_by_name() {
        let args = |namespace: Option<&str>, counter: Option<&str>| ShowArgs {
            namespace: namespace.map(str::to_owned),
            counter: counter.map(str::to_owned),
            json: false,
            follow: false,
        };
        for (namespace, counter, right) in [
            (None, None, true),
            (Some("default"), Some("clicks"), true),
            (Some("other"), None, false),
            (None, Some("Clicks"), false),
        ] {
            assert_eq!(Wanted(&args(namespace, counter)).wants_key(&row("clicks")), right);
        }
    }
}
