//! A table of the text after its form was checked, and what can be asked of it.
//!
//! An answer is a [`Field`]: absent where a problem was reported, or where the key is optional and not written.
//!
//! Must not know: TOML, or which keys there are.

use std::collections::BTreeMap;

use crate::place::{Field, Placed};
use crate::values::{Setting, Value};

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Where its name stands, or that of the nearest table around it.
    pub at: usize,
    /// Whether what is missing in it is missing: not where a problem was reported that explains it.
    pub sound: bool,
    /// Its values, by the names of their keys.
    pub values: BTreeMap<&'static str, Placed<Value>>,
    /// The tables in it that are ours, written or not.
    pub tables: BTreeMap<&'static str, Table>,
    /// Tables that the user named, in the order of the file.
    pub named: Vec<(Placed<String>, Table)>,
}

impl Table {
    /// A table at this place, with nothing in it.
    pub const fn empty(at: usize) -> Self {
        Self { at, sound: true, values: BTreeMap::new(), tables: BTreeMap::new(), named: Vec::new() }
    }

    fn get<T>(&self, name: &str, take: impl FnOnce(&Value) -> Option<T>) -> Field<T> {
        let found = self.values.get(name)?;
        Some(Placed { value: take(&found.value)?, at: found.at, written: found.written })
    }

    /// A table in this one.
    pub fn table(&self, name: &str) -> Option<&Self> {
        self.tables.get(name)
    }

    /// Text, or a word of a choice.
    pub fn text(&self, name: &str) -> Field<String> {
        self.get(name, |value| if let Value::Text(text) = value { Some(text.clone()) } else { None })
    }

    /// Text or a reference.
    pub fn setting(&self, name: &str) -> Field<Setting> {
        self.get(name, |value| if let Value::Setting(it) = value { Some(it.clone()) } else { None })
    }

    /// `true` or `false`.
    pub fn boolean(&self, name: &str) -> Field<bool> {
        self.get(name, |value| if let Value::Boolean(it) = value { Some(*it) } else { None })
    }

    /// A whole number; the bounds of the keys make it fit.
    pub fn number(&self, name: &str) -> Field<u32> {
        self.get(name, |value| if let Value::Integer(it) = value { u32::try_from(*it).ok() } else { None })
    }

    /// A duration in milliseconds.
    pub fn duration_ms(&self, name: &str) -> Field<i64> {
        self.get(name, |value| if let Value::DurationMs(ms) = value { Some(*ms) } else { None })
    }

    /// A size in bytes.
    pub fn size_bytes(&self, name: &str) -> Field<u64> {
        self.get(name, |value| if let Value::SizeBytes(it) = value { Some(*it) } else { None })
    }

    /// A list of names.
    pub fn names(&self, name: &str) -> Field<Vec<Placed<String>>> {
        self.get(name, |value| if let Value::Names(it) = value { Some(it.clone()) } else { None })
    }

    /// Keys that are not ours; empty where there are none.
    pub fn properties(&self, name: &str) -> Vec<(Placed<String>, Placed<Setting>)> {
        match self.values.get(name).map(|found| &found.value) {
            Some(Value::Properties(list)) => list.clone(),
            _ => Vec::new(),
        }
    }
}
