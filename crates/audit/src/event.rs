//! The typing rules of contract §2: which events a raw record holds, and which of them are invalid.
//!
//! Written from the contract's table alone. A record is one event, or `{"events": […]}` with a verdict for each; what
//! cannot be decoded as a whole is one invalid event. Null counts as missing, unknown fields are ignored, duplicate
//! keys are invalid wherever they stand.
//!
//! It must not know time limits, identities or counts: an event of the year 2100 is well typed.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::config::Rules;
use crate::json::{self, MemberList, Shape, TreeFault};
use crate::time::rfc3339_ms;

/// Longest event id and namespace, in bytes.
const NAME_BYTES: usize = 256;
/// Longest counter, in bytes.
const COUNTER_BYTES: usize = 512;
/// Longest value of a dimension that is kept, in bytes.
const DIMENSION_BYTES: usize = 1024;
/// Containers around a packed event: the record's object and its array.
const PACKED_DEPTH: usize = 2;

/// A well-typed event; absent fields have their defaults, dimensions are in the configured order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    pub(crate) event_id: Cow<'a, str>,
    pub(crate) namespace: Cow<'a, str>,
    pub(crate) counter: Cow<'a, str>,
    pub(crate) delta: i64,
    pub(crate) event_time_ms: i64,
    pub(crate) dimensions: Vec<Cow<'a, str>>,
}

/// Why an event is invalid; the words are those of contract §4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    Undecodable,
    MissingField,
    InvalidField,
    UnknownNamespace,
    TooLarge,
}

impl Category {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::MissingField => "missing_field",
            Self::InvalidField => "invalid_field",
            Self::UnknownNamespace => "unknown_namespace",
            Self::TooLarge => "too_large",
        }
    }
}

impl From<TreeFault> for Category {
    fn from(fault: TreeFault) -> Self {
        match fault {
            TreeFault::Key(_) => Self::InvalidField,
            TreeFault::Members(_) => Self::TooLarge,
        }
    }
}

/// One event's verdict by type.
pub(crate) type Typed<'a> = Result<Event<'a>, Category>;

/// Every event of a record, in order. `header_id` is the value of the record's `id` header.
pub(crate) fn events_of<'a>(
    value: Option<&'a [u8]>,
    header_id: Option<&'a [u8]>,
    rules: &Rules,
) -> Vec<Typed<'a>> {
    match record_of(value, header_id, rules) {
        Ok(events) => events,
        Err(category) => vec![Err(category)],
    }
}

fn record_of<'a>(
    value: Option<&'a [u8]>,
    header_id: Option<&'a [u8]>,
    rules: &Rules,
) -> Result<Vec<Typed<'a>>, Category> {
    let bytes = value.ok_or(Category::Undecodable)?;
    if bytes.len() > rules.config.limits.record_bytes {
        return Err(Category::TooLarge);
    }
    let text = str::from_utf8(bytes).map_err(|_| Category::Undecodable)?;
    let raw = json::parse(text).ok_or(Category::Undecodable)?;
    if json::shape(raw) != Shape::Object {
        return Err(Category::Undecodable);
    }
    let members = json::members(raw).ok_or(Category::InvalidField)?;
    let packed = members.iter().find(|(key, value)| key == "events" && json::shape(value) != Shape::Null);
    match packed {
        None => Ok(vec![event_of(raw, members, header_id, 0, rules)]),
        Some((_, list)) => packed_events(&members, list, header_id, rules),
    }
}

/// The events of `{"events": […]}`. What is wrong with the envelope is wrong with the record.
fn packed_events<'a>(
    envelope: &[(Cow<'a, str>, &'a RawValue)],
    list: &'a RawValue,
    header_id: Option<&'a [u8]>,
    rules: &Rules,
) -> Result<Vec<Typed<'a>>, Category> {
    let limits = rules.config.limits;
    let mut budget = limits.members;
    json::check_members(envelope, &mut budget, "")?;
    for (key, value) in envelope.iter().filter(|(key, value)| key != "events" && json::is_container(value)) {
        check_depth(value, 1, rules)?;
        json::check_tree(value, &mut budget, key)?;
    }
    if json::shape(list) != Shape::Array {
        return Err(Category::InvalidField);
    }
    let elements = json::elements(list).ok_or(Category::Undecodable)?;
    if elements.is_empty() {
        return Err(Category::InvalidField);
    }
    if elements.len() > limits.packed_events {
        return Err(Category::TooLarge);
    }
    let event = |raw: &'a RawValue| match json::shape(raw) {
        Shape::Object => {
            let members = json::members(raw).ok_or(Category::InvalidField)?;
            event_of(raw, members, header_id, PACKED_DEPTH, rules)
        }
        _ => Err(Category::InvalidField),
    };
    Ok(elements.into_iter().map(event).collect())
}

/// One event object, and its members, that stands inside `outer` containers.
fn event_of<'a>(
    raw: &'a RawValue,
    members: MemberList<'a>,
    header_id: Option<&'a [u8]>,
    outer: usize,
    rules: &Rules,
) -> Typed<'a> {
    check_depth(raw, outer, rules)?;
    json::check_object(&members, &mut rules.config.limits.members.clone(), "")?;
    let field = |name: &str| {
        let found = members.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        found.filter(|value| json::shape(value) != Shape::Null)
    };
    let event = Event {
        event_id: event_id(field("event_id"), header_id)?,
        namespace: namespace(field("namespace"), rules)?,
        counter: required_name(field("counter"), COUNTER_BYTES)?,
        delta: field("delta").map_or(Ok(1), |raw| json::integer(raw).ok_or(Category::InvalidField))?,
        event_time_ms: event_time(field("event_time"))?,
        dimensions: dimensions(field("dimensions"), rules)?,
    };
    check_kind(field("kind"))?;
    Ok(event)
}

fn check_depth(raw: &RawValue, outer: usize, rules: &Rules) -> Result<(), Category> {
    if outer + json::depth(raw.get()) > rules.config.limits.depth { Err(Category::TooLarge) } else { Ok(()) }
}

/// The payload's id, or the header's where the payload has none.
fn event_id<'a>(field: Option<&'a RawValue>, header_id: Option<&'a [u8]>) -> Result<Cow<'a, str>, Category> {
    match (field, header_id) {
        (Some(raw), _) => name(raw, NAME_BYTES),
        (None, Some(bytes)) => {
            let text = str::from_utf8(bytes).map_err(|_| Category::InvalidField)?;
            checked_length(Cow::Borrowed(text), NAME_BYTES)
        }
        (None, None) => Err(Category::MissingField),
    }
}

fn namespace<'a>(field: Option<&'a RawValue>, rules: &Rules) -> Result<Cow<'a, str>, Category> {
    let namespace = field.map_or(Ok(Cow::Borrowed("default")), |raw| name(raw, NAME_BYTES))?;
    if rules.knows_namespace(&namespace) { Ok(namespace) } else { Err(Category::UnknownNamespace) }
}

fn required_name(field: Option<&RawValue>, most: usize) -> Result<Cow<'_, str>, Category> {
    name(field.ok_or(Category::MissingField)?, most)
}

fn name(raw: &RawValue, most: usize) -> Result<Cow<'_, str>, Category> {
    checked_length(json::text(raw).ok_or(Category::InvalidField)?, most)
}

fn checked_length(text: Cow<'_, str>, most: usize) -> Result<Cow<'_, str>, Category> {
    if (1..=most).contains(&text.len()) { Ok(text) } else { Err(Category::InvalidField) }
}

/// Integer epoch milliseconds or RFC 3339 text; numeric text is neither.
fn event_time(field: Option<&RawValue>) -> Result<i64, Category> {
    let raw = field.ok_or(Category::MissingField)?;
    let time_ms = match json::shape(raw) {
        Shape::Text => json::text(raw).and_then(|text| rfc3339_ms(&text)),
        _ => json::integer(raw),
    };
    time_ms.filter(|ms| *ms > 0).ok_or(Category::InvalidField)
}

/// The configured dimensions in their order. Every value must be a string, also one that is not kept.
fn dimensions<'a>(field: Option<&'a RawValue>, rules: &Rules) -> Result<Vec<Cow<'a, str>>, Category> {
    let wanted = &rules.config.dimensions;
    let Some(raw) = field else {
        return Ok(vec![Cow::Borrowed(""); wanted.len()]);
    };
    if json::shape(raw) != Shape::Object {
        return Err(Category::InvalidField);
    }
    let mut values = Vec::new();
    for (key, raw) in json::members(raw).ok_or(Category::InvalidField)? {
        if json::shape(raw) != Shape::Null {
            let value = json::text(raw).ok_or(Category::InvalidField)?;
            if value.len() > DIMENSION_BYTES && wanted.iter().any(|name| *name == key) {
                return Err(Category::InvalidField);
            }
            values.push((key, value));
        }
    }
    let value_of = |name: &String| {
        let found = values.iter().find(|(key, _)| key == name.as_str());
        found.map_or(Cow::Borrowed(""), |(_, value)| value.clone())
    };
    Ok(wanted.iter().map(value_of).collect())
}

/// `add` or nothing; `clear` needs a clearable namespace, and none can be declared yet.
fn check_kind(field: Option<&RawValue>) -> Result<(), Category> {
    match field.map(json::text) {
        None => Ok(()),
        Some(Some(kind)) if kind == "add" => Ok(()),
        Some(_) => Err(Category::InvalidField),
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
