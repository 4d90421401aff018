//! Published tables against what they must hold.
//!
//! A row is right when its value is lawful; the rows a shared id can reach must also hold the right number of events
//! together (one of its payloads counts, never both), and the windows of a counter must add up to its total. Rows that
//! cannot be claimed are left out and listed, never guessed.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::cells::{Expected, Place, Table};
use crate::config::{AuditConfig, WindowSpec};
use crate::keys::{KeyId, Keys};
use crate::report::{DifferenceKind, Findings, LeftOutReason, TableReport};
use crate::rows::Row;

/// Name of the totals in reports.
pub(crate) const TOTALS: &str = "totals";

/// The rows of one published table, latest per key.
pub(crate) type Rows = HashMap<Place, Row>;

/// What every comparison needs to know.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a AuditConfig,
    pub(crate) keys: &'a Keys,
    /// Event times up to here may belong to records that are no longer retained.
    pub(crate) lost_through_ms: Option<i64>,
    /// The newest watermark that was said anywhere.
    pub(crate) complete_through_ms: Option<i64>,
}

/// One table after its comparison.
pub(crate) struct Checked {
    pub(crate) report: TableReport,
    /// Places that were left out.
    skipped: HashSet<Place>,
}

/// Compares one table; `window` is none for totals.
pub(crate) fn compare_table(
    context: &Context<'_>,
    window: Option<&WindowSpec>,
    expected: &Table,
    rows: &Rows,
    findings: &mut Findings,
) -> Checked {
    let name = window.map_or(TOTALS, |window| window.name.as_str());
    let mut checked = Checked {
        report: TableReport { table: name.to_owned(), ..TableReport::default() },
        skipped: HashSet::new(),
    };
    let places: BTreeSet<Place> = expected.rows.keys().chain(rows.keys()).copied().collect();
    let mut wrong = HashSet::new();
    for place in places {
        let (must, row) = (expected.rows.get(&place), rows.get(&place));
        if let Some(reason) = left_out(context, window, place, must, row) {
            findings.leave_out(name, window.map(|_| place.1), reason);
            checked.report.left_out += 1;
            checked.skipped.insert(place);
        } else if must.is_none_or(|must| row.is_some() || !must.allows(0, 0)) {
            checked.report.compared += 1;
            checked.report.open += u64::from(must.is_some_and(|must| !must.items.is_empty()));
            if compare_row(&describe(context, window, place), must, row, findings) {
                checked.report.equal += 1;
            } else {
                wrong.insert(place);
            }
        }
    }
    compare_components(context, window, expected, rows, (&checked.skipped, &wrong), findings);
    checked
}

/// Why a place cannot be compared, if it cannot.
fn left_out(
    context: &Context<'_>,
    window: Option<&WindowSpec>,
    (_, start_ms): Place,
    must: Option<&Expected>,
    row: Option<&Row>,
) -> Option<LeftOutReason> {
    let Some(window) = window else {
        return context.lost_through_ms.map(|_| LeftOutReason::RawNotRetained);
    };
    if context.lost_through_ms.is_some_and(|lost_ms| start_ms <= lost_ms) {
        return Some(LeftOutReason::RawNotRetained);
    }
    let must = must.filter(|must| row.is_none() && !must.allows(0, 0))?;
    let oldest_kept_ms =
        context.config.now_ms.zip(context.config.keep_ms).map(|(now, keep)| now.saturating_sub(keep));
    if oldest_kept_ms.is_some_and(|oldest| must.fixed.newest_append_ms <= oldest) {
        return Some(LeftOutReason::Expired);
    }
    let final_ms = start_ms.saturating_add(window.size_ms).saturating_add(window.grace_ms);
    let is_final = context.complete_through_ms.is_some_and(|through| through >= final_ms);
    (window.finals_only && !is_final).then_some(LeftOutReason::NotFinal)
}

/// Whether one row is right; says so if it is not.
fn compare_row(place: &str, must: Option<&Expected>, row: Option<&Row>, findings: &mut Findings) -> bool {
    let (kind, lawful, found) = match (must, row) {
        (Some(must), Some(row)) if must.allows(row.sum, row.events) => return true,
        (Some(must), Some(row)) => (DifferenceKind::CountDiffers, shown(must), shown_row(row)),
        (Some(must), None) => (DifferenceKind::RowMissing, shown(must), "no row".to_owned()),
        (None, Some(row)) => (DifferenceKind::RowUnexpected, "no row".to_owned(), shown_row(row)),
        (None, None) => return true,
    };
    findings.differ(kind, place.to_owned(), lawful, found);
    false
}

/// The rows that shared ids tie together must hold the right number of events. Rows that are wrong by themselves have
/// been said already.
fn compare_components(
    context: &Context<'_>,
    window: Option<&WindowSpec>,
    expected: &Table,
    rows: &Rows,
    (skipped, wrong): (&HashSet<Place>, &HashSet<Place>),
    findings: &mut Findings,
) {
    for component in &expected.components {
        if component.places.iter().any(|place| skipped.contains(place) || wrong.contains(place)) {
            continue;
        }
        let held: u64 =
            component.places.iter().filter_map(|place| rows.get(place)).map(|row| row.events).sum();
        if !(component.least_events..=component.most_events).contains(&held) {
            let names: Vec<_> =
                component.places.iter().take(4).map(|place| describe(context, window, *place)).collect();
            let lawful = format!("{} to {} events together", component.least_events, component.most_events);
            findings.differ(
                DifferenceKind::ChoiceDiffers,
                names.join(", "),
                lawful,
                format!("{held} events"),
            );
        }
    }
}

/// Windows add up to totals (LG-2) for every counter whose rows had a choice; the others are exact already.
pub(crate) fn compare_with_totals(
    context: &Context<'_>,
    (window, checked, rows): (&WindowSpec, &Checked, &Rows),
    (totals, total_rows): (&Table, &Rows),
    findings: &mut Findings,
) {
    let skipped: HashSet<KeyId> = checked.skipped.iter().map(|(key, _)| *key).collect();
    let mut sums: HashMap<KeyId, (i128, u64)> = HashMap::new();
    for ((key, _), row) in rows {
        let sum = sums.entry(*key).or_default();
        *sum = (sum.0.saturating_add(row.sum), sum.1.saturating_add(row.events));
    }
    let open: BTreeSet<KeyId> =
        totals.rows.iter().filter(|(_, row)| !row.items.is_empty()).map(|((key, _), _)| *key).collect();
    for key in open.difference(&skipped.into_iter().collect()) {
        let held = sums.get(key).copied().unwrap_or_default();
        let total = total_rows.get(&(*key, 0)).map_or((0, 0), |row| (row.sum, row.events));
        if held != total {
            let place = format!(
                "{} against {TOTALS} of {}",
                window.name,
                context.keys.name(*key, &context.config.dimensions)
            );
            let text = |(sum, events): (i128, u64)| format!("{sum} in {events} events");
            findings.differ(DifferenceKind::TotalDiffers, place, text(total), text(held));
        }
    }
}

fn describe(context: &Context<'_>, window: Option<&WindowSpec>, (key, start_ms): Place) -> String {
    let name = context.keys.name(key, &context.config.dimensions);
    match window {
        Some(window) => format!("{} {start_ms} {name}", window.name),
        None => format!("{TOTALS} {name}"),
    }
}

fn shown(must: &Expected) -> String {
    let (sums, events) = must.bounds();
    if must.items.is_empty() {
        format!("{} in {} events", sums.0, events.0)
    } else {
        format!("{} to {} in {} to {} events, by choice", sums.0, sums.1, events.0, events.1)
    }
}

fn shown_row(row: &Row) -> String {
    format!("{} in {} events, revision {}", row.sum, row.events, row.revision)
}
