//! The oracle of the differential tests: the same contract, read straightforwardly over `serde_json`'s raw values, with
//! an allocation wherever one is handy. Also the sink that both are compared through.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tallyflow_core::codec::{EventDecoder, EventSink};
use tallyflow_core::event::Event;
use tallyflow_core::ids::{Offset, Partition};
use tallyflow_core::record::{HeaderView, RecordTime, RecordView};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Category, Failure};

use super::JsonEvents;
use crate::rules::EventRules;

/// A decoded event, owned: id, namespace, counter, delta, time, dimensions.
pub(crate) type Owned = (String, String, String, i64, i64, Vec<String>);

/// What was told: record, index, and the event or its failure with the id it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) record: usize,
    pub(crate) index: Option<u32>,
    pub(crate) event: Result<Owned, Failure>,
    pub(crate) id: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Remembering {
    pub(crate) told: Vec<Told>,
    pub(crate) done: Vec<usize>,
}

impl EventSink for Remembering {
    fn event(&mut self, record: usize, index: Option<u32>, event: &Event<'_>, dimensions: &[&str]) {
        assert_eq!(self.done.len(), record, "told after its record was done");
        let owned = (
            event.event_id.to_string(),
            event.namespace.to_string(),
            event.counter.to_string(),
            event.delta,
            event.event_time.0,
            dimensions.iter().map(|value| (*value).to_owned()).collect(),
        );
        self.told.push(Told { record, index, event: Ok(owned), id: None });
    }

    fn invalid(&mut self, record: usize, index: Option<u32>, event_id: Option<&str>, failure: Failure) {
        assert_eq!(self.done.len(), record, "told after its record was done");
        let id = event_id.map(str::to_owned);
        self.told.push(Told { record, index, event: Err(failure), id });
    }

    fn record_done(&mut self, record: usize) {
        self.done.push(record);
    }
}

/// Decodes one record.
pub(crate) fn decode(rules: &EventRules, value: Option<&[u8]>, id: Option<&[u8]>) -> Vec<Told> {
    let headers = [HeaderView { name: b"id", value: id }];
    let record = RecordView {
        partition: Partition(0),
        offset: Offset(0),
        time: RecordTime::LogAppend(TimestampMs(1)),
        key: None,
        value,
        headers: if id.is_some() { &headers } else { &[] },
    };
    let mut sink = Remembering::default();
    JsonEvents::with_rules(rules.clone()).decode(&[record], &mut sink);
    assert_eq!(sink.done, [0]);
    sink.told
}

/// What the oracle says of a record: the verdict of each event, by index.
pub(crate) type Right = Vec<(Option<u32>, Result<Owned, Category>)>;

pub(crate) fn right(rules: &EventRules, value: &[u8], id: Option<&[u8]>) -> Right {
    match document(rules, value, id) {
        Ok(events) => events,
        Err(category) => vec![(None, Err(category))],
    }
}

fn document(rules: &EventRules, value: &[u8], id: Option<&[u8]>) -> Result<Right, Category> {
    if value.len() > rules.limits.record_bytes {
        return Err(Category::TooLarge);
    }
    let text = std::str::from_utf8(value).map_err(|_| Category::Undecodable)?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| Category::Undecodable)?;
    if !raw.get().starts_with('{') {
        return Err(Category::Undecodable);
    }
    let members = members(raw);
    let is_events = |key: &Key| key.as_deref() == Some("events");
    let found = members.iter().find(|(key, value)| is_events(key) && value.get() != "null");
    let Some((_, list)) = found else {
        return Ok(vec![(None, event(rules, raw, id, 0))]);
    };
    let (lists, envelope): (Vec<_>, Vec<_>) =
        members.iter().partition(|(key, value)| is_events(key) && value.get().starts_with('['));
    if envelope.iter().any(|(_, value)| 1 + depth(value.get()) > rules.limits.depth) {
        return Err(Category::TooLarge);
    }
    let inside: usize = lists.iter().map(|(_, value)| colons(value.get())).sum();
    if colons(raw.get()) - inside > rules.limits.members {
        return Err(Category::TooLarge);
    }
    if has_wrong_key(&members) || envelope.iter().any(|(_, value)| !keys_are_right(value)) {
        return Err(Category::InvalidField);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(list.get()).map_err(|_| Category::InvalidField)?;
    if elements.len() > rules.limits.packed_events {
        return Err(Category::TooLarge);
    }
    if elements.is_empty() {
        return Err(Category::InvalidField);
    }
    Ok((0..).zip(elements).map(|(index, raw)| (Some(index), event(rules, raw, id, 2))).collect())
}

/// The limits and keys of everything in an event.
fn tree(rules: &EventRules, raw: &RawValue, outer: usize) -> Result<(), Category> {
    if outer + depth(raw.get()) > rules.limits.depth || colons(raw.get()) > rules.limits.members {
        return Err(Category::TooLarge);
    }
    if keys_are_right(raw) { Ok(()) } else { Err(Category::InvalidField) }
}

fn event(rules: &EventRules, raw: &RawValue, id: Option<&[u8]>, outer: usize) -> Result<Owned, Category> {
    if !raw.get().starts_with('{') {
        return Err(Category::InvalidField);
    }
    tree(rules, raw, outer)?;
    let members = members(raw);
    let field = |name: &str| {
        let found =
            members.iter().find(|(key, _)| key.as_deref() == Some(name)).map(|(_, value)| value.get());
        found.filter(|value| *value != "null")
    };
    let name = |text: &str, limit: usize| {
        let text: String = serde_json::from_str(text).map_err(|_| Category::InvalidField)?;
        if (1..=limit).contains(&text.len()) { Ok(text) } else { Err(Category::InvalidField) }
    };
    let event_id = match (field("event_id"), id) {
        (Some(text), _) => name(text, 256)?,
        (None, None) => return Err(Category::MissingField),
        (None, Some(bytes)) => {
            let id = std::str::from_utf8(bytes).map_err(|_| Category::InvalidField)?;
            if id.is_empty() || id.len() > 256 {
                return Err(Category::InvalidField);
            }
            id.to_owned()
        }
    };
    let namespace = field("namespace").map_or(Ok("default".to_owned()), |text| name(text, 256))?;
    if rules.namespaces.as_ref().is_some_and(|known| !known.contains(&namespace)) {
        return Err(Category::UnknownNamespace);
    }
    let counter = name(field("counter").ok_or(Category::MissingField)?, 512)?;
    let delta = field("delta").map_or(Ok(1), whole)?;
    let time = field("event_time").ok_or(Category::MissingField)?;
    let time = match serde_json::from_str::<String>(time) {
        Ok(text) => crate::rfc3339::parse_ms(&text).ok_or(Category::InvalidField)?,
        Err(_) => whole(time)?,
    };
    if time <= 0 {
        return Err(Category::InvalidField);
    }
    let dimensions = dimensions(rules, field("dimensions"))?;
    match field("kind") {
        None | Some("\"add\"") => {}
        Some(text) if serde_json::from_str::<String>(text).is_ok_and(|kind| kind == "add") => {}
        Some(_) => return Err(Category::InvalidField),
    }
    Ok((event_id, namespace, counter, delta, time, dimensions))
}

fn dimensions(rules: &EventRules, field: Option<&str>) -> Result<Vec<String>, Category> {
    let Some(text) = field else {
        return Ok(vec![String::new(); rules.dimensions.len()]);
    };
    let all: std::collections::HashMap<String, Option<String>> =
        serde_json::from_str(text).map_err(|_| Category::InvalidField)?;
    let value = |name: &String| {
        let value = all.get(name).cloned().flatten().unwrap_or_default();
        if value.len() > 1024 { Err(Category::InvalidField) } else { Ok(value) }
    };
    rules.dimensions.iter().map(value).collect()
}

fn whole(text: &str) -> Result<i64, Category> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten().ok_or(Category::InvalidField)
}

/// A key twice, or one that is no text.
fn has_wrong_key(members: &[(Key, &RawValue)]) -> bool {
    let mut seen = HashSet::new();
    members.iter().any(|(key, _)| key.is_none() || !seen.insert(key))
}

/// No key twice, each of them a text, at any depth.
fn keys_are_right(raw: &RawValue) -> bool {
    match raw.get().as_bytes()[0] {
        b'{' => {
            let members = members(raw);
            !has_wrong_key(&members) && members.iter().all(|(_, value)| keys_are_right(value))
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap();
            elements.into_iter().all(keys_are_right)
        }
        _ => true,
    }
}

fn depth(text: &str) -> usize {
    let mut open = 0usize;
    outside_strings(text).fold(0, |deepest, byte| {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        deepest.max(open)
    })
}

/// Each member has one colon.
fn colons(text: &str) -> usize {
    outside_strings(text).filter(|byte| *byte == b':').count()
}

fn outside_strings(text: &str) -> impl Iterator<Item = u8> {
    let (mut quoted, mut escaped) = (false, false);
    text.bytes().filter(move |byte| {
        let was_quoted = quoted;
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        !was_quoted
    })
}

/// The members in order, twice where they stand twice.
fn members(raw: &RawValue) -> Vec<(Key, &RawValue)> {
    serde_json::from_str::<Members<'_>>(raw.get()).unwrap().0
}

/// A key; `None` where it is no text. As bytes `serde_json` decodes such a one too.
type Key = Option<String>;

struct KeyBytes(Key);

impl<'de> Deserialize<'de> for KeyBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = KeyBytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_bytes<E>(self, key: &[u8]) -> Result<KeyBytes, E> {
                Ok(KeyBytes(String::from_utf8(key.to_vec()).ok()))
            }
        }
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

struct Members<'a>(Vec<(Key, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<KeyBytes, &'de RawValue>()? {
                    members.push((key.0, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}
