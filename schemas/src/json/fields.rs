//! The fields of one event object: found in one pass, then held against the rules in the order of the contract's table.
//!
//! Null counts as missing. What is missing or wrong is said with the field's path.

use std::borrow::Cow;

use tallyflow_core::event::{Event, Kind};
use tallyflow_core::time::TimestampMs;
use tallyflow_core::verdict::{Category, Failure};

use super::scan::{Scalar, Scanner, SyntaxError, Text, integer};
use super::walk::Walker;
use crate::rfc3339;
use crate::rules::{DEFAULT_NAMESPACE, EventRules};

/// A value as it was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Found<'r> {
    /// Nothing, or null.
    #[default]
    Missing,
    Text(Text<'r>),
    Number(&'r str),
    Boolean,
    Object,
    Array,
}

/// The packed events of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'r> {
    /// Where the array begins.
    pub(crate) place: Scanner<'r>,
    /// Its elements; `None` if it is no array.
    pub(crate) count: Option<usize>,
}

/// The fields of an event. Reused from event to event.
#[derive(Debug, Default)]
pub(crate) struct Fields<'r> {
    event_id: Found<'r>,
    namespace: Found<'r>,
    counter: Found<'r>,
    delta: Found<'r>,
    event_time: Found<'r>,
    kind: Found<'r>,
    dimensions: Found<'r>,
    /// The values of the declared dimensions.
    values: Vec<Found<'r>>,
    /// What is wrong with a dimension.
    dimension_fault: Option<Failure>,
    /// `events`, looked for only at the top.
    pub(crate) packed: Option<Packed<'r>>,
}

impl<'r> Fields<'r> {
    /// Reads the object whose mark is next.
    pub(crate) fn read(
        &mut self,
        walker: &mut Walker<'r>,
        rules: &EventRules,
        at_top: bool,
    ) -> Result<(), SyntaxError> {
        self.start_over(rules.dimensions.len());
        walker.open_object();
        let mut is_first = true;
        while let Some(key) = walker.next_key(is_first)? {
            is_first = false;
            let field = match &*key {
                "event_id" => &mut self.event_id,
                "namespace" => &mut self.namespace,
                "counter" => &mut self.counter,
                "delta" => &mut self.delta,
                "event_time" => &mut self.event_time,
                "kind" => &mut self.kind,
                "dimensions" => {
                    self.read_dimensions(walker, rules)?;
                    continue;
                }
                "events" if at_top => {
                    self.read_packed(walker)?;
                    continue;
                }
                _ => {
                    walker.skip()?;
                    continue;
                }
            };
            *field = value(walker)?;
        }
        Ok(())
    }

    fn start_over(&mut self, dimensions: usize) {
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.resize(dimensions, Found::Missing);
        *self = Self { values, ..Self::default() };
    }

    fn read_packed(&mut self, walker: &mut Walker<'r>) -> Result<(), SyntaxError> {
        let first = walker.scanner.peek();
        let place = walker.scanner;
        let count = if first == Some(b'[') {
            Some(walker.skip_elements()?)
        } else {
            walker.skip()?;
            None
        };
        if first != Some(b'n') {
            self.packed = Some(Packed { place, count });
        }
        Ok(())
    }

    fn read_dimensions(&mut self, walker: &mut Walker<'r>, rules: &EventRules) -> Result<(), SyntaxError> {
        if walker.scanner.peek() != Some(b'{') {
            self.dimensions = value(walker)?;
            return Ok(());
        }
        self.dimensions = Found::Object;
        walker.open_object();
        let mut is_first = true;
        while let Some(key) = walker.next_key(is_first)? {
            is_first = false;
            let found = value(walker)?;
            let is_text = match found {
                Found::Missing => true,
                Found::Text(text) => text.decode().is_some(),
                _ => false,
            };
            if !is_text && self.dimension_fault.is_none() {
                self.dimension_fault = Some(wrong(&walker.path(&key), "a text", found));
            }
            let declared = rules.dimensions.iter().position(|name| *name == *key);
            if let Some(value) = declared.and_then(|at| self.values.get_mut(at)) {
                *value = found;
            }
        }
        Ok(())
    }

    /// The event id, where it is a text: for a failure that names it.
    pub(crate) fn known_id<'h>(&self, header: Option<&'h [u8]>) -> Option<Cow<'h, str>>
    where
        'r: 'h,
    {
        let id = match self.event_id {
            Found::Text(text) => text.decode(),
            Found::Missing => header.and_then(|id| std::str::from_utf8(id).ok()).map(Cow::Borrowed),
            _ => None,
        };
        id.filter(|id| EventRules::event_id(String::new, id).is_ok())
    }

    /// The event; the values of the declared dimensions go to `values`.
    pub(crate) fn event(
        &mut self,
        walker: &Walker<'r>,
        rules: &EventRules,
        header: Option<&'r [u8]>,
        values: &mut Vec<Cow<'r, str>>,
    ) -> Result<Event<'r>, Failure> {
        let path = |field: &'static str| move || walker.path(field);
        let event_id = self.id(walker, header)?;
        let namespace = match self.namespace {
            Found::Missing => Cow::Borrowed(DEFAULT_NAMESPACE),
            found => text(path("namespace"), found)?,
        };
        rules.namespace(path("namespace"), &namespace)?;
        let counter = match self.counter {
            Found::Missing => return Err(missing(&walker.path("counter"))),
            found => text(path("counter"), found)?,
        };
        EventRules::counter(path("counter"), &counter)?;
        let delta = match self.delta {
            Found::Missing => 1,
            found => whole(path("delta"), found, "an integer within i64")?,
        };
        let event_time = TimestampMs(self.time(walker)?);
        self.dimension_values(walker, rules, values)?;
        let kind = self.kind(walker)?;
        Ok(Event { event_id, namespace, counter, delta, event_time, kind })
    }

    /// The payload's id, or the header's where the payload has none.
    fn id(&self, walker: &Walker<'r>, header: Option<&'r [u8]>) -> Result<Cow<'r, str>, Failure> {
        match (self.event_id, header) {
            (Found::Missing, None) => Err(missing(&walker.path("event_id"))),
            (Found::Missing, Some(bytes)) => {
                let id = std::str::from_utf8(bytes)
                    .map_err(|_| Failure::new(Category::InvalidField, "header id: not UTF-8"))?;
                EventRules::event_id(|| "header id".to_owned(), id)?;
                Ok(Cow::Borrowed(id))
            }
            (found, _) => {
                let id = text(|| walker.path("event_id"), found)?;
                EventRules::event_id(|| walker.path("event_id"), &id)?;
                Ok(id)
            }
        }
    }

    fn time(&self, walker: &Walker<'r>) -> Result<i64, Failure> {
        const WANTED: &str = "integer milliseconds since the epoch, or RFC 3339 text with an offset,";
        let path = || walker.path("event_time");
        let time_ms = match self.event_time {
            Found::Missing => return Err(missing(&path())),
            Found::Text(text) => {
                let instant = text.decode().and_then(|text| rfc3339::parse_ms(&text));
                instant.ok_or_else(|| wrong(&path(), WANTED, Found::Text(text)))?
            }
            found => whole(path, found, WANTED)?,
        };
        EventRules::event_time(path, time_ms).map(|()| time_ms)
    }

    fn dimension_values(
        &mut self,
        walker: &Walker<'r>,
        rules: &EventRules,
        values: &mut Vec<Cow<'r, str>>,
    ) -> Result<(), Failure> {
        values.clear();
        match self.dimensions {
            Found::Missing | Found::Object => {}
            found => return Err(wrong(&walker.path("dimensions"), "an object", found)),
        }
        if let Some(failure) = self.dimension_fault.take() {
            return Err(failure);
        }
        for (name, found) in rules.dimensions.iter().zip(&self.values) {
            let value = match found {
                Found::Text(text) => text.decode().unwrap_or_default(),
                _ => Cow::Borrowed(""),
            };
            EventRules::dimension(|| format!("{}.{name}", walker.path("dimensions")), &value)?;
            values.push(value);
        }
        Ok(())
    }

    fn kind(&self, walker: &Walker<'r>) -> Result<Kind, Failure> {
        let path = || walker.path("kind");
        let kind = match self.kind {
            Found::Missing => return Ok(Kind::Add),
            found => text(path, found)?,
        };
        let what = match &*kind {
            "add" => return Ok(Kind::Add),
            "clear" => "clear, but the namespace is not clearable",
            _ => "neither add nor clear",
        };
        Err(Failure::new(Category::InvalidField, format!("{}: {what}", path())))
    }
}

/// The next value; a container is passed over.
#[inline]
fn value<'r>(walker: &mut Walker<'r>) -> Result<Found<'r>, SyntaxError> {
    let found = match walker.scanner.peek() {
        Some(b'{') => Found::Object,
        Some(b'[') => Found::Array,
        _ => {
            return walker.scanner.scalar().map(|scalar| match scalar {
                Scalar::Null => Found::Missing,
                Scalar::Boolean => Found::Boolean,
                Scalar::Number(number) => Found::Number(number),
                Scalar::Text(text) => Found::Text(text),
            });
        }
    };
    walker.skip()?;
    Ok(found)
}

#[inline]
fn text<'r>(path: impl FnOnce() -> String, found: Found<'r>) -> Result<Cow<'r, str>, Failure> {
    match found {
        Found::Text(text) => text.decode().ok_or_else(|| {
            Failure::new(
                Category::InvalidField,
                format!("{}: no Unicode text, a surrogate stands alone", path()),
            )
        }),
        found => Err(wrong(&path(), "a text", found)),
    }
}

#[inline]
fn whole(path: impl FnOnce() -> String, found: Found<'_>, wanted: &str) -> Result<i64, Failure> {
    match found {
        Found::Number(number) => integer(number).ok_or_else(|| wrong(&path(), wanted, found)),
        found => Err(wrong(&path(), wanted, found)),
    }
}

fn missing(path: &str) -> Failure {
    Failure::new(Category::MissingField, format!("{path}: missing"))
}

fn wrong(path: &str, wanted: &str, found: Found<'_>) -> Failure {
    let found = match found {
        Found::Missing => "nothing",
        Found::Text(_) => "this text",
        Found::Number(_) => "this number",
        Found::Boolean => "a boolean",
        Found::Object => "an object",
        Found::Array => "an array",
    };
    Failure::new(Category::InvalidField, format!("{path}: {wanted} is needed, not {found}"))
}
