//! The published rows, read as a stranger would read them (contract §3).
//!
//! Rows of windows and counts are latest per key by revision; ledger rows by progress. What a row says of itself is
//! checked here (sum against its exact text, overflow, window bounds); whether it is right is not known here.

use serde_json::{Map, Value};

use crate::config::{AuditConfig, WindowSpec};

/// A window row or a count row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) sum: i128,
    pub(crate) events: u64,
    pub(crate) revision: i64,
    /// `update`, `final` or `correction`; empty for totals.
    pub(crate) state: String,
    pub(crate) complete_through_ms: Option<i64>,
}

/// Key of a published count: the names and the dimensions in configured order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowKey {
    pub(crate) namespace: String,
    pub(crate) counter: String,
    pub(crate) dimensions: Vec<String>,
}

/// A window row with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowRow {
    pub(crate) key: RowKey,
    /// Index of the table in the configuration.
    pub(crate) table: usize,
    pub(crate) start_ms: i64,
    pub(crate) row: Row,
}

/// The verdict tallies of a ledger row; moves may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LedgerRow {
    pub(crate) received: i64,
    pub(crate) admitted: i64,
    pub(crate) counted: i64,
    pub(crate) duplicate: i64,
    pub(crate) conflict: i64,
    pub(crate) late: i64,
    pub(crate) future: i64,
    pub(crate) invalid: i64,
    pub(crate) held: i64,
    pub(crate) discarded: i64,
    pub(crate) through_offset: i64,
    pub(crate) complete_through_ms: Option<i64>,
}

/// Whose row it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LedgerKey {
    pub(crate) topic_id: String,
    pub(crate) partition: i32,
    pub(crate) stage: String,
    pub(crate) task: String,
}

/// What a window row's bytes are.
pub(crate) enum WindowParse {
    Row(WindowRow),
    /// A table that cannot be recounted, as the configuration says.
    NotRecounted,
}

/// A window row, or what is wrong with it.
pub(crate) fn window_row(bytes: &[u8], config: &AuditConfig) -> Result<WindowParse, String> {
    let fields = object(bytes)?;
    let name = text(&fields, "window")?;
    if config.not_recounted.contains(&name) {
        return Ok(WindowParse::NotRecounted);
    }
    let found = config.windows.iter().enumerate().find(|(_, window)| window.name == name);
    let (table, window) = found.ok_or_else(|| format!("no window table is named {name}"))?;
    let start_ms = integer(&fields, "window_start")?;
    check_bounds(window, start_ms, integer(&fields, "window_end")?)?;
    let mut row = counted(&fields, "sum")?;
    row.state = text(&fields, "state")?;
    check_state(window, start_ms, &row)?;
    Ok(WindowParse::Row(WindowRow { key: row_key(&fields, config)?, table, start_ms, row }))
}

/// A count row with its key, or what is wrong with it.
pub(crate) fn count_row(bytes: &[u8], config: &AuditConfig) -> Result<(RowKey, Row), String> {
    let fields = object(bytes)?;
    let row = counted(&fields, "total")?;
    if integer(&fields, "epoch")? != 0 {
        return Err("epoch is not 0, though no namespace is clearable".to_owned());
    }
    Ok((row_key(&fields, config)?, row))
}

/// A ledger row; none for a note that is no tally (attempts of a crashed range).
pub(crate) fn ledger_row(bytes: &[u8]) -> Result<Option<(LedgerKey, LedgerRow, String)>, String> {
    let fields = object(bytes)?;
    if fields.contains_key("attempts") || !fields.contains_key("source_topic_id") {
        return Ok(None);
    }
    let partition = integer(&fields, "source_partition")?;
    let key = LedgerKey {
        topic_id: text(&fields, "source_topic_id")?,
        partition: i32::try_from(partition).map_err(|_| format!("source_partition is {partition}"))?,
        stage: text(&fields, "stage")?,
        task: text(&fields, "task")?,
    };
    let tally = |name: &str| {
        if fields.contains_key(name) { integer(&fields, name) } else { Ok(0) }
    };
    let row = LedgerRow {
        received: tally("received")?,
        admitted: tally("admitted")?,
        counted: tally("counted")?,
        duplicate: tally("duplicate")?,
        conflict: tally("conflict")?,
        late: tally("late")?,
        future: tally("future")?,
        invalid: tally("invalid")?,
        held: tally("held")?,
        discarded: tally("discarded")?,
        through_offset: tally("through_offset")?,
        complete_through_ms: nullable(&fields, "complete_through")?,
    };
    let topic = text(&fields, "source_topic").unwrap_or_default();
    Ok(Some((key, row, topic)))
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("not an object".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("{name} is no string"))
}

fn integer(fields: &Map<String, Value>, name: &str) -> Result<i64, String> {
    fields.get(name).and_then(Value::as_i64).ok_or_else(|| format!("{name} is no integer"))
}

fn nullable(fields: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => integer(fields, name).map(Some),
    }
}

fn row_key(fields: &Map<String, Value>, config: &AuditConfig) -> Result<RowKey, String> {
    let dimensions = config.dimensions.iter().map(|name| text(fields, name)).collect::<Result<_, _>>()?;
    Ok(RowKey { namespace: text(fields, "namespace")?, counter: text(fields, "counter")?, dimensions })
}

/// The number, its exact text and the overflow flag must say the same (rule R8).
fn counted(fields: &Map<String, Value>, name: &str) -> Result<Row, String> {
    let exact_name = format!("{name}_exact");
    let exact_text = text(fields, &exact_name)?;
    let sum: i128 = exact_text.parse().map_err(|_| format!("{exact_name} is {exact_text:?}"))?;
    if sum.to_string() != exact_text {
        return Err(format!("{exact_name} is {exact_text:?}, not a plain decimal"));
    }
    let fits = i64::try_from(sum).ok();
    let number = nullable(fields, name)?;
    if number != fits {
        return Err(format!("{name} is {}, {exact_name} {exact_text}", shown(number)));
    }
    let overflow = fields.get("overflow").and_then(Value::as_bool);
    if overflow != Some(fits.is_none()) {
        return Err(format!("overflow is {overflow:?}, {exact_name} {exact_text}"));
    }
    let events = integer(fields, "events")?;
    Ok(Row {
        sum,
        events: u64::try_from(events).map_err(|_| format!("events is {events}"))?,
        revision: integer(fields, "revision")?,
        state: String::new(),
        complete_through_ms: nullable(fields, "complete_through")?,
    })
}

fn check_bounds(window: &WindowSpec, start_ms: i64, end_ms: i64) -> Result<(), String> {
    let aligned = start_ms.rem_euclid(window.size_ms) == 0;
    if !aligned || start_ms.checked_add(window.size_ms) != Some(end_ms) {
        return Err(format!("[{start_ms}, {end_ms}) is no window of {} ms", window.size_ms));
    }
    Ok(())
}

/// A window is final only when everything through its end and grace is complete.
fn check_state(window: &WindowSpec, start_ms: i64, row: &Row) -> Result<(), String> {
    let due_ms = start_ms.saturating_add(window.size_ms).saturating_add(window.grace_ms);
    match row.state.as_str() {
        "update" => Ok(()),
        "final" | "correction" if row.complete_through_ms.is_some_and(|through| through >= due_ms) => Ok(()),
        "final" | "correction" => Err(format!(
            "{} though complete_through is {} and the window closes at {due_ms}",
            row.state,
            shown(row.complete_through_ms)
        )),
        other => Err(format!("state is {other:?}")),
    }
}

fn shown(number: Option<i64>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(changes: &[(&str, Value)]) -> Result<WindowParse, String> {
        let mut fields = serde_json::json!({
            "namespace": "n", "counter": "c", "region": "eu", "window": "minute", "window_start": 60_000,
            "window_end": 120_000, "sum": 5, "sum_exact": "5", "overflow": false, "events": 2, "revision": 8,
            "state": "update", "complete_through": null,
        });
        for (name, value) in changes {
            fields[*name] = value.clone();
        }
        let config = AuditConfig {
            dimensions: vec!["region".into()],
            not_recounted: vec!["day".into()],
            ..AuditConfig::default()
        };
        window_row(fields.to_string().as_bytes(), &config)
    }

    #[test]
    fn a_row_is_read_whole() {
        let Ok(WindowParse::Row(row)) = window(&[]) else { panic!() };
        assert_eq!(
            (row.table, row.start_ms, row.row.sum, row.row.events, row.row.revision),
            (0, 60_000, 5, 2, 8)
        );
        assert_eq!(row.key.dimensions, ["eu"]);
        assert!(matches!(window(&[("window", "day".into())]), Ok(WindowParse::NotRecounted)));
    }

    #[test]
    fn a_row_that_contradicts_itself_is_refused() {
        let too_long = "9223372036854775808";
        let refused: Vec<Vec<(&str, Value)>> = vec![
            vec![("sum", 6.into())],
            vec![("sum_exact", "05".into())],
            vec![("sum_exact", "x".into())],
            vec![("sum", Value::Null)],
            vec![("overflow", true.into())],
            vec![("overflow", Value::Null)],
            vec![("sum_exact", too_long.into()), ("sum", Value::Null)],
            vec![("events", (-1).into())],
            vec![("window_end", 60_001.into())],
            vec![("window_start", 60_001.into()), ("window_end", 120_001.into())],
            vec![("window", "hour".into())],
            vec![("region", Value::Null)],
            vec![("state", "done".into())],
            vec![("state", "final".into())],
            vec![("state", "correction".into()), ("complete_through", 119_999.into())],
        ];
        for changes in refused {
            assert!(window(&changes).is_err(), "{changes:?}");
        }
        assert!(
            window(&[("sum_exact", too_long.into()), ("sum", Value::Null), ("overflow", true.into())])
                .is_ok()
        );
        assert!(window(&[("state", "final".into()), ("complete_through", 120_000.into())]).is_ok());
    }

    #[test]
    fn a_note_in_the_ledger_is_no_tally() {
        assert_eq!(ledger_row(br#"{"stage":"intake","task":"events-0","attempts":2}"#), Ok(None));
        assert!(ledger_row(b"[]").is_err());
        let row = br#"{"stage":"count","task":"x-0","source_topic_id":"id","source_topic":"events","source_partition":3,
            "admitted":7,"counted":7,"through_offset":9,"complete_through":5}"#;
        let (key, tallies, topic) = ledger_row(row).unwrap().unwrap();
        assert_eq!((key.partition, key.stage.as_str(), topic.as_str()), (3, "count", "events"));
        assert_eq!((tallies.admitted, tallies.received, tallies.complete_through_ms), (7, 0, Some(5)));
    }
}
