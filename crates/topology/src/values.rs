//! One value of the text: is it of the kind that its key wants, and what is it?
//!
//! Must not know: tables, unknown and missing keys; that is `document`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::codes::Code;
use crate::keys::Kind;
use crate::place::{Placed, Report};
use crate::suggest;
use crate::units;

/// A value of the right kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Text, or a word of a choice.
    Text(String),
    /// Text or a reference.
    Setting(Setting),
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Milliseconds.
    DurationMs(i64),
    /// Bytes.
    SizeBytes(u64),
    /// Names.
    Names(Vec<Placed<String>>),
    /// Keys that are not ours.
    Properties(Vec<(Placed<String>, Placed<Setting>)>),
}

/// Text as written, or where it is to be found. It may be a secret: no `Debug` of it is ever shown to users.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    /// The value itself.
    Literal(String),
    /// `{ env = "NAME" }`
    Variable(String),
    /// `{ file = "path" }`
    File(String),
}

/// Reads a value of this kind; `None` after a problem was reported. `path` is the key's, for messages.
pub(crate) fn read(
    kind: Kind,
    path: &str,
    value: &Spanned<DeValue<'_>>,
    report: &mut Report<'_>,
) -> Option<Value> {
    let at = value.span().start;
    match (kind, value.get_ref()) {
        (
            Kind::Text
            | Kind::Setting
            | Kind::Choice(_)
            | Kind::Duration(..)
            | Kind::Emit(..)
            | Kind::Size(..),
            DeValue::String(text),
        ) => of_text(kind, path, at, text, report),
        (Kind::Boolean, DeValue::Boolean(value)) => Some(Value::Boolean(*value)),
        (Kind::Integer(min, max), DeValue::Integer(number)) => {
            let read = i64::from_str_radix(number.as_str(), number.radix()).ok();
            let text = |bound: i64| bound.to_string();
            in_range(path, at, read, (min, max), text, &number.to_string(), report).map(Value::Integer)
        }
        (Kind::Names, DeValue::Array(list)) => names(path, list.iter(), report).map(Value::Names),
        (Kind::Setting, DeValue::Table(table)) => reference(path, at, table, report).map(Value::Setting),
        (Kind::Properties, DeValue::Table(table)) => Some(Value::Properties(properties(path, table, report))),
        (kind, other) => {
            wrong_type(path, at, kind, other, report);
            None
        }
    }
}

/// Reads a value that is written as text.
fn of_text(kind: Kind, path: &str, at: usize, text: &str, report: &mut Report<'_>) -> Option<Value> {
    match kind {
        Kind::Setting => not_empty(path, at, text, report).map(Setting::Literal).map(Value::Setting),
        Kind::Choice(words) => choice(path, at, text, words, report).map(Value::Text),
        Kind::Emit(..) if text == "final" => Some(Value::Text(text.to_owned())),
        Kind::Emit(..) if !text.contains(|c: char| c.is_ascii_digit()) => {
            let message = format!("`{path}` is {text:?}, which it does not know");
            let help = "write a duration like \"1s\", or \"final\"";
            report.add(at, Code::BadChoice, message, help);
            None
        }
        Kind::Duration(min, max) | Kind::Emit(min, max) => {
            duration(path, at, text, (min, max), report).map(Value::DurationMs)
        }
        Kind::Size(min, max) => size(path, at, text, (min, max), report).map(Value::SizeBytes),
        _ => not_empty(path, at, text, report).map(Value::Text),
    }
}

/// Says that a value is of a wrong type. Values are never quoted: it may be a secret that stands in a wrong place.
pub(crate) fn wrong_type(path: &str, at: usize, kind: Kind, found: &DeValue<'_>, report: &mut Report<'_>) {
    let noun = kind.noun();
    let help = match (kind, found) {
        (Kind::Duration(..) | Kind::Emit(..), DeValue::Integer(number)) => {
            format!("a duration has a unit: \"{number}ms\" or \"{number}s\"")
        }
        (Kind::Size(..), DeValue::Integer(number)) => {
            format!("a size has a unit: \"{number}B\" or \"{number}MiB\"")
        }
        (Kind::Integer(..), DeValue::String(_)) => "write the number without quotes".to_owned(),
        (Kind::Boolean, DeValue::String(_)) => "write the word without quotes".to_owned(),
        (Kind::Names, DeValue::String(_)) => "put it in brackets: [\"…\"]".to_owned(),
        (Kind::Setting, DeValue::Array(_)) => "write one text, separated by commas".to_owned(),
        (Kind::Named, _) => format!("write a line [{path}.NAME] for each, and its keys below"),
        (Kind::Table | Kind::Properties, _) => {
            format!("write a line [{path}], and its keys below")
        }
        _ => format!("write {noun}"),
    };
    let message = format!("`{path}` must be {noun}, but it is {}", type_name(found));
    report.add(at, Code::WrongType, message, help);
}

const fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn not_empty(path: &str, at: usize, text: &str, report: &mut Report<'_>) -> Option<String> {
    if text.is_empty() {
        report.add(at, Code::OutOfRange, format!("`{path}` is empty"), "write a value, or leave it out");
        return None;
    }
    Some(text.to_owned())
}

fn duration(path: &str, at: usize, text: &str, bounds: (i64, i64), report: &mut Report<'_>) -> Option<i64> {
    match units::duration_ms(text) {
        Ok(ms) => in_range(path, at, Some(ms), bounds, units::duration_text, text, report),
        Err(why) => {
            let help = "write whole numbers with d, h, m, s or ms, like \"100ms\" or \"24h10m\"";
            report.add(at, Code::BadDuration, format!("`{path}` {why}"), help);
            None
        }
    }
}

fn size(path: &str, at: usize, text: &str, bounds: (u64, u64), report: &mut Report<'_>) -> Option<u64> {
    match units::size_bytes(text) {
        Ok(bytes) => in_range(path, at, Some(bytes), bounds, units::size_text, text, report),
        Err(why) => {
            let help = "write a whole number with B, KiB, MiB, GiB or TiB, like \"64MiB\"";
            report.add(at, Code::BadSize, format!("`{path}` {why}"), help);
            None
        }
    }
}

/// Checks bounds, both included; `read` is `None` where the number does not fit any integer.
fn in_range<T: PartialOrd + Copy>(
    path: &str,
    at: usize,
    read: Option<T>,
    (min, max): (T, T),
    text: impl Fn(T) -> String,
    shown: &str,
    report: &mut Report<'_>,
) -> Option<T> {
    let good = read.filter(|value| *value >= min && *value <= max);
    if good.is_none() {
        let message = format!("`{path}` is {shown}, which is out of bounds");
        let help = format!("write something from {} to {}", text(min), text(max));
        report.add(at, Code::OutOfRange, message, help);
    }
    good
}

fn choice(path: &str, at: usize, text: &str, words: &[&str], report: &mut Report<'_>) -> Option<String> {
    if words.contains(&text) {
        return Some(text.to_owned());
    }
    let list: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let message = format!("`{path}` is {text:?}, which it does not know");
    report.add(at, Code::BadChoice, message, format!("write {}", list.join(" or ")));
    None
}

fn names<'a, 'i: 'a>(
    path: &str,
    list: impl Iterator<Item = &'a Spanned<DeValue<'i>>>,
    report: &mut Report<'_>,
) -> Option<Vec<Placed<String>>> {
    let mut all = Some(Vec::new());
    for item in list {
        let at = item.span().start;
        if let DeValue::String(text) = item.get_ref() {
            if let Some(names) = all.as_mut() {
                names.push(Placed { value: text.to_string(), at, written: true });
            }
        } else {
            let found = type_name(item.get_ref());
            let message = format!("`{path}` must hold names in quotes, but this one is {found}");
            report.add(at, Code::WrongType, message, "put the name in quotes");
            all = None;
        }
    }
    all
}

fn reference(path: &str, at: usize, table: &DeTable<'_>, report: &mut Report<'_>) -> Option<Setting> {
    let mut entries = table.iter();
    let read = match (entries.next(), entries.next()) {
        (Some((key, value)), None) => match (key.get_ref().as_ref(), value.get_ref()) {
            ("env", DeValue::String(name)) if !name.is_empty() && !name.contains(['\0', '=']) => {
                Some(Setting::Variable(name.to_string()))
            }
            ("file", DeValue::String(name)) if !name.is_empty() && !name.contains('\0') => {
                Some(Setting::File(name.to_string()))
            }
            _ => None,
        },
        _ => None,
    };
    if read.is_none() {
        let message = format!("`{path}` is a table, but not a reference");
        let help = "a reference is { env = \"NAME\" } or { file = \"path\" }, with nothing else";
        report.add(at, Code::BadReference, message, help);
    }
    read
}

fn properties(
    path: &str,
    table: &DeTable<'_>,
    report: &mut Report<'_>,
) -> Vec<(Placed<String>, Placed<Setting>)> {
    let mut all = Vec::new();
    for (key, value) in table.iter() {
        let (name, at) = (key.get_ref(), value.span().start);
        let path = format!("{path}.{}", suggest::quoted(name));
        let setting = match value.get_ref() {
            DeValue::String(text) => Some(Setting::Literal(text.to_string())),
            DeValue::Integer(number) => Some(Setting::Literal(number.to_string())),
            DeValue::Boolean(value) => Some(Setting::Literal(value.to_string())),
            DeValue::Table(inner) if is_dotted(inner) => {
                let message = format!("`{path}` is a table, but not a reference");
                let help = "put the whole name of a property in quotes: \"security.protocol\" = …";
                report.add(key.span().start, Code::BadReference, message, help);
                None
            }
            DeValue::Table(inner) => reference(&path, at, inner, report),
            other => {
                wrong_type(&path, at, Kind::Setting, other, report);
                None
            }
        };
        if let Some(setting) = setting {
            let name = Placed { value: name.to_string(), at: key.span().start, written: true };
            all.push((name, Placed { value: setting, at, written: true }));
        }
    }
    all.sort_by_key(|(name, _)| name.at);
    all
}

/// Whether a table looks like a property's name that was written without quotes: `security.protocol = "…"`.
fn is_dotted(table: &DeTable<'_>) -> bool {
    table.iter().all(|(key, _)| !matches!(key.get_ref().as_ref(), "env" | "file")) && !table.is_empty()
}
