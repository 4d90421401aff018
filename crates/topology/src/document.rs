//! The text as a tree of tables and values, checked key by key against [`crate::keys::KEYS`].
//!
//! Everything about form is said here: syntax, unknown keys, missing keys, types, units and bounds. Defaults are filled
//! in, and tables that are not written are there with theirs, so that what follows need not tell the cases apart. A key
//! with a problem is absent.
//!
//! Must not know: what any key is for.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::codes::Code;
use crate::keys::{Default, Key, Kind, keys_of};
use crate::place::{Placed, Report};
use crate::suggest;
use crate::table::Table;
use crate::units;
use crate::values::{self, Value};

/// Parses a text and checks its form. `given` is the path of a key that needs not be written.
pub(crate) fn parse(text: &str, given: Option<&str>, report: &mut Report<'_>) -> Table {
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(text.len(), |span| span.start);
        let help = "the file is TOML 1.1: see https://toml.io";
        report.add(at, Code::Syntax, format!("this is not TOML: {}", error.message()), help);
    }
    let place = Place { pattern: "", path: "", at: 0 };
    Walk { given, report }.table(place, Found::Written(root.get_ref()))
}

/// Where a table stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// Its path in the notation of the keys.
    pattern: &'p str,
    /// Its path for the user.
    path: &'p str,
    /// Its byte in the text.
    at: usize,
}

/// What stands there.
#[derive(Clone, Copy)]
enum Found<'t, 'i> {
    /// A table.
    Written(&'t DeTable<'i>),
    /// Nothing.
    Absent,
    /// Something else, or a misspelt name, which was reported.
    Misread,
}

struct Walk<'r, 'a> {
    given: Option<&'r str>,
    report: &'r mut Report<'a>,
}

impl Walk<'_, '_> {
    /// Reads a table.
    fn table(&mut self, place: Place<'_>, found: Found<'_, '_>) -> Table {
        let mut table = Table { sound: !matches!(found, Found::Misread), ..Table::empty(place.at) };
        let written = if let Found::Written(written) = found { Some(written) } else { None };
        let excused = written.map(|written| self.unknown_keys(place, written)).unwrap_or_default();
        for key in keys_of(place.pattern).filter(|key| key.name() != "*") {
            let entry = written.and_then(|written| written.get_key_value(key.name()));
            match entry {
                Some((name, value)) => self.written(key, place.path, name, value, &mut table),
                None => {
                    let excused = !table.sound || excused.contains(&key.name());
                    self.absent(key, place.path, excused, &mut table);
                }
            }
        }
        table
    }

    /// Reports the keys that are not known here. Returns the names of known keys that they excuse from being missing:
    /// those that were probably meant, and all of them where a key of a later version stands in their place.
    fn unknown_keys(&mut self, place: Place<'_>, found: &DeTable<'_>) -> Vec<&'static str> {
        let known: Vec<&Key> = keys_of(place.pattern).collect();
        let usable: Vec<&Key> =
            known.iter().copied().filter(|key| !matches!(key.kind, Kind::Later(_))).collect();
        let mut excused = Vec::new();
        for (name, _) in found.iter() {
            let written = name.get_ref().as_ref();
            if let Some(key) = known.iter().find(|key| key.name() == written) {
                if matches!(key.kind, Kind::Later(_)) {
                    excused.extend(known.iter().map(|key| key.name()));
                }
                continue;
            }
            let (meant, help) = suggest::key(written, &usable);
            excused.extend(meant);
            let table = match place.path {
                "" => "at the top of the file".to_owned(),
                path => format!("in [{path}]"),
            };
            let message = format!("unknown key `{}` {table}", suggest::quoted(written));
            self.report.add(name.span().start, Code::UnknownKey, message, help);
        }
        excused
    }

    fn written(
        &mut self,
        key: &'static Key,
        path: &str,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        table: &mut Table,
    ) {
        let (own_path, at) = (join(path, key.name()), name.span().start);
        let place = Place { pattern: key.path, path: &own_path, at };
        match (key.kind, value.get_ref()) {
            (Kind::Later(code), _) => {
                let message = format!("`{own_path}` is not in this version");
                self.report.add(at, code, message, later_help(code));
            }
            (Kind::Table, DeValue::Table(found)) => {
                table.tables.insert(key.name(), self.table(place, Found::Written(found)));
            }
            (Kind::Named, DeValue::Table(found)) => {
                table.tables.insert(key.name(), self.named(place, found));
            }
            (Kind::Table | Kind::Named, other) => {
                values::wrong_type(&own_path, value.span().start, key.kind, other, self.report);
                table.tables.insert(key.name(), self.table(place, Found::Misread));
            }
            (kind, _) => {
                if let Some(read) = values::read(kind, &own_path, value, self.report) {
                    let read = Placed { value: read, at: value.span().start, written: true };
                    table.values.insert(key.name(), read);
                }
            }
        }
    }

    /// Reads a table of tables that the user named.
    fn named(&mut self, place: Place<'_>, found: &DeTable<'_>) -> Table {
        let pattern = format!("{}.*", place.pattern);
        let mut all = Table::empty(place.at);
        for (name, value) in found.iter() {
            let (path, at) = (join(place.path, name.get_ref()), name.span().start);
            if let DeValue::Table(inner) = value.get_ref() {
                let name = Placed { value: name.get_ref().to_string(), at, written: true };
                let place = Place { pattern: &pattern, path: &path, at };
                all.named.push((name, self.table(place, Found::Written(inner))));
            } else {
                let at = value.span().start;
                values::wrong_type(&path, at, Kind::Table, value.get_ref(), self.report);
                all.sound = false;
            }
        }
        // The parser sorts by name; the order of the file is the user's.
        all.named.sort_by_key(|(name, _)| name.at);
        all
    }

    fn absent(&mut self, key: &'static Key, path: &str, excused: bool, table: &mut Table) {
        let at = table.at;
        let own_path = join(path, key.name());
        if matches!(key.kind, Kind::Table | Kind::Named) {
            let place = Place { pattern: key.path, path: &own_path, at };
            let found = if excused { Found::Misread } else { Found::Absent };
            table.tables.insert(key.name(), self.table(place, found));
            return;
        }
        match key.default {
            Default::Required if !excused && self.given != Some(key.path) => {
                let table = if path.is_empty() { String::new() } else { format!(" in [{path}]") };
                let help = format!("write {} = …{table}: {}", key.name(), key.meaning);
                self.report.add(at, Code::Missing, format!("`{own_path}` is missing"), help);
            }
            Default::Value(text) => {
                if let Some(value) = default_value(key.kind, text) {
                    table.values.insert(key.name(), Placed { value, at, written: false });
                }
            }
            Default::Required | Default::Absent | Default::Computed(_) => {}
        }
    }
}

/// A default as a value. A test of the keys says that every one is.
fn default_value(kind: Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Boolean => text.parse().ok().map(Value::Boolean),
        Kind::Integer(..) => text.parse().ok().map(Value::Integer),
        Kind::Duration(..) | Kind::Emit(..) => units::duration_ms(text).ok().map(Value::DurationMs),
        Kind::Size(..) => units::size_bytes(text).ok().map(Value::SizeBytes),
        _ => Some(Value::Text(text.to_owned())),
    }
}

fn later_help(code: Code) -> &'static str {
    match code {
        Code::JsonOnly => "this version reads and writes JSON only: leave it out",
        Code::NoCalendar => "write size = \"24h\" for days in UTC, and no calendar or time_zone",
        _ => "leave it out",
    }
}

/// A path with one more name, quoted where TOML wants it.
pub(crate) fn join(path: &str, name: &str) -> String {
    let name = suggest::quoted(name);
    if path.is_empty() { name } else { format!("{path}.{name}") }
}
