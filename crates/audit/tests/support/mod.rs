//! A small engine written from the rules, to publish what a correct or an incorrect Tallyflow would.
//!
//! It takes events as values, not as JSON, and processes records in an order the test chooses (each partition's own
//! order is kept), so that its outcome is one of the lawful ones. Tests then bend what it published.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};

use serde_json::json;
use tallyflow_audit::{AuditConfig, RawRecord, Recount, Report, WindowSpec};

pub const ACCEPT_MS: i64 = 300_000;
pub const FUTURE_MS: i64 = 5_000;
pub const REMEMBER_MS: i64 = 305_000;
pub const MINUTE_MS: i64 = 60_000;
pub const TOPIC_ID: &str = "topic-id";

/// What a record holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub counter: String,
    pub region: String,
    pub delta: i64,
    pub time_ms: i64,
}

pub fn event(id: &str, delta: i64, time_ms: i64) -> Event {
    Event { id: id.into(), counter: "c".into(), region: "eu".into(), delta, time_ms }
}

/// A raw record; no event means undecodable.
#[derive(Debug, Clone)]
pub struct Record {
    pub partition: i32,
    pub append_ms: i64,
    pub events: Vec<Option<Event>>,
}

pub fn record(partition: i32, append_ms: i64, event: Event) -> Record {
    Record { partition, append_ms, events: vec![Some(event)] }
}

impl Record {
    pub fn value(&self) -> Vec<u8> {
        let texts: Vec<_> = self.events.iter().map(event_json).collect();
        match texts.as_slice() {
            [one] => one.clone().into_bytes(),
            many => format!("{{\"events\":[{}]}}", many.join(",")).into_bytes(),
        }
    }
}

fn event_json(event: &Option<Event>) -> String {
    let Some(event) = event else {
        return r#"{"broken":true}"#.to_owned();
    };
    json!({"event_id": event.id, "counter": event.counter, "delta": event.delta, "event_time": event.time_ms,
        "dimensions": {"region": event.region}})
    .to_string()
}

/// Verdicts of one source partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub received: i64,
    pub counted: i64,
    pub duplicate: i64,
    pub conflict: i64,
    pub late: i64,
    pub future: i64,
    pub invalid: i64,
    pub through: i64,
}

impl Tally {
    pub fn admitted(&self) -> i64 {
        self.counted + self.duplicate + self.conflict
    }
}

/// A counter key as this engine keeps it: counter and region.
pub type Key = (String, String);

/// What was published.
#[derive(Debug, Clone, Default)]
pub struct Published {
    pub windows: BTreeMap<(Key, i64), (i128, i64)>,
    pub totals: BTreeMap<Key, (i128, i64)>,
    pub tallies: BTreeMap<i32, Tally>,
}

impl Published {
    pub fn count(&mut self, partition: i32, event: &Event) {
        self.tallies.entry(partition).or_default().counted += 1;
        let key = (event.counter.clone(), event.region.clone());
        let start = event.time_ms.div_euclid(MINUTE_MS) * MINUTE_MS;
        for sum in
            [self.windows.entry((key.clone(), start)).or_default(), self.totals.entry(key).or_default()]
        {
            *sum = (sum.0 + i128::from(event.delta), sum.1 + 1);
        }
    }

    pub fn uncount(&mut self, event: &Event) {
        let key = (event.counter.clone(), event.region.clone());
        let start = event.time_ms.div_euclid(MINUTE_MS) * MINUTE_MS;
        for sum in [self.windows.get_mut(&(key.clone(), start)).unwrap(), self.totals.get_mut(&key).unwrap()]
        {
            *sum = (sum.0 - i128::from(event.delta), sum.1 - 1);
        }
    }
}

/// Processes the records in this order; an id is forgotten when its first sighting is more than `forget_ms` old.
pub fn engine(records: &[Record], order: &[usize], forget_ms: i64) -> Published {
    let mut published = Published::default();
    let mut seen: HashMap<(String, String), (Event, i64)> = HashMap::new();
    for record in order.iter().filter_map(|index| records.get(*index)) {
        let partition = record.partition;
        published.tallies.entry(partition).or_default().through += 1;
        for event in &record.events {
            let tally = published.tallies.entry(partition).or_default();
            tally.received += 1;
            let Some(event) = event else {
                tally.invalid += 1;
                continue;
            };
            let age = record.append_ms - event.time_ms;
            let identity = (event.counter.clone(), event.id.clone());
            match seen.get(&identity) {
                _ if age > ACCEPT_MS => tally.late += 1,
                _ if age < -FUTURE_MS => tally.future += 1,
                Some((first, at)) if record.append_ms - at <= forget_ms => {
                    if first == event {
                        tally.duplicate += 1
                    } else {
                        tally.conflict += 1
                    }
                }
                _ => {
                    seen.insert(identity, (event.clone(), record.append_ms));
                    published.count(partition, event);
                }
            }
        }
    }
    published
}

/// The engine in the order the records are listed, forgetting nothing.
pub fn engine_in_order(records: &[Record]) -> Published {
    let order: Vec<usize> = (0..records.len()).collect();
    engine(records, &order, i64::MAX / 2)
}

pub fn config() -> AuditConfig {
    AuditConfig {
        accept_ms: ACCEPT_MS,
        future_ms: FUTURE_MS,
        remember_ms: REMEMBER_MS,
        dimensions: vec!["region".into()],
        windows: vec![WindowSpec::new("minute", MINUTE_MS), WindowSpec::new("hour", 60 * MINUTE_MS)],
        ..AuditConfig::default()
    }
}

pub fn window_json(
    table: &str,
    size_ms: i64,
    (key, start): (&Key, i64),
    (sum, events): (i128, i64),
    revision: i64,
) -> String {
    let number = i64::try_from(sum).ok();
    json!({"namespace": "default", "counter": key.0, "region": key.1, "window": table, "window_start": start,
        "window_end": start + size_ms, "sum": number, "sum_exact": sum.to_string(), "overflow": number.is_none(),
        "events": events, "revision": revision, "state": "update", "complete_through": null})
    .to_string()
}

pub fn count_json(key: &Key, (sum, events): (i128, i64), revision: i64) -> String {
    let number = i64::try_from(sum).ok();
    json!({"namespace": "default", "counter": key.0, "region": key.1, "total": number,
        "total_exact": sum.to_string(), "overflow": number.is_none(), "events": events, "epoch": 0,
        "revision": revision, "cleared_at": null, "complete_through": null})
    .to_string()
}

pub fn ledger_json(stage: &str, partition: i32, tally: &Tally) -> String {
    let mut row = json!({"stage": stage, "task": format!("{stage}-{partition}"), "source_topic_id": TOPIC_ID,
        "source_partition": partition, "source_topic": "events", "admitted": tally.admitted(),
        "through_offset": tally.through, "complete_through": null, "skipped": 0, "held": 0, "discarded": 0});
    let fields = row.as_object_mut().unwrap();
    let own: &[(&str, i64)] = if stage == "intake" {
        &[
            ("received", tally.received),
            ("late", tally.late),
            ("future", tally.future),
            ("invalid", tally.invalid),
        ]
    } else {
        &[("counted", tally.counted), ("duplicate", tally.duplicate), ("conflict", tally.conflict)]
    };
    for (name, value) in own {
        fields.insert((*name).to_owned(), (*value).into());
    }
    row.to_string()
}

/// Feeds the raw records with their offsets counted per partition from `first_offset`.
pub fn feed_raw(recount: &mut Recount, records: &[Record], first_offset: i64) {
    let mut offsets: HashMap<i32, i64> = HashMap::new();
    for record in records {
        let offset = offsets.entry(record.partition).or_insert(first_offset);
        let value = record.value();
        recount.raw(&RawRecord {
            topic: "events",
            topic_id: TOPIC_ID,
            partition: record.partition,
            offset: *offset,
            append_time_ms: record.append_ms,
            key: None,
            value: Some(&value),
            headers: &[],
        });
        *offset += 1;
    }
}

/// Feeds everything that was published.
pub fn feed_published(recount: &mut Recount, published: &Published) {
    let mut hours: BTreeMap<(Key, i64), (i128, i64)> = BTreeMap::new();
    for ((key, start), sum) in &published.windows {
        recount.window_row(window_json("minute", MINUTE_MS, (key, *start), *sum, 2).as_bytes());
        let hour = hours.entry((key.clone(), start.div_euclid(60 * MINUTE_MS) * 60 * MINUTE_MS)).or_default();
        *hour = (hour.0 + sum.0, hour.1 + sum.1);
    }
    for ((key, start), sum) in &hours {
        recount.window_row(window_json("hour", 60 * MINUTE_MS, (key, *start), *sum, 2).as_bytes());
    }
    for (key, sum) in &published.totals {
        recount.count_row(count_json(key, *sum, 2).as_bytes());
    }
    for (partition, tally) in &published.tallies {
        recount.ledger_row(ledger_json("intake", *partition, tally).as_bytes());
        recount.ledger_row(ledger_json("count", *partition, tally).as_bytes());
    }
}

/// The audit of these records against what was published.
pub fn audit(records: &[Record], published: &Published) -> Report {
    let mut recount = Recount::new(config()).unwrap();
    feed_raw(&mut recount, records, 0);
    feed_published(&mut recount, published);
    recount.finish()
}
