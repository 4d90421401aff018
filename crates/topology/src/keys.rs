//! Every key of topology.toml: its kind, bounds, default and meaning, in one table.
//!
//! The parser obeys this table (unknown keys, types, bounds and defaults come from nowhere else), and a test checks
//! docs/configuration.md against it. `*` in a path stands for a name that the user chose.
//!
//! Must not know: how keys depend on each other; that is the checks' business.

use crate::codes::Code;

/// One key or table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands, as `stage.count.window.*.size`.
    pub path: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What it is when it is not written.
    pub default: Default,
    /// What it means, in a sentence.
    pub meaning: &'static str,
}

/// What a key may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A table with keys of ours.
    Table,
    /// A table of tables that the user names.
    Named,
    /// Text.
    Text,
    /// Text, or a reference to an environment variable or a file.
    Setting,
    /// Keys that are not ours, with text, numbers, booleans or references.
    Properties,
    /// `true` or `false`.
    Boolean,
    /// A whole number between two bounds, both included.
    Integer(i64, i64),
    /// Text with units, between two bounds in milliseconds, both included.
    Duration(i64, i64),
    /// A duration, or the word `final`.
    Emit(i64, i64),
    /// Text with a unit, between two bounds in bytes, both included.
    Size(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of names.
    Names,
    /// Known, and refused by this version.
    Later(Code),
}

/// What a key is when it is not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// It has to be written.
    Required,
    /// Nothing.
    Absent,
    /// This value, as it would be written.
    Value(&'static str),
    /// It follows from other keys; said in words.
    Computed(&'static str),
}

/// Milliseconds of a second.
const SECOND: i64 = 1000;
/// Milliseconds of a minute.
const MINUTE: i64 = 60 * SECOND;
/// Milliseconds of an hour.
const HOUR: i64 = 60 * MINUTE;
/// Milliseconds of a day.
const DAY: i64 = 24 * HOUR;
/// Ten years: nobody means more, and no sum of a few overflows.
const LONGEST: i64 = 3650 * DAY;
/// A mebibyte.
const MIB: u64 = 1024 * 1024;

/// The most partitions of a topic that we create.
const PARTITIONS: Kind = Kind::Integer(1, 1000);
/// Worker threads of a stage in one process.
const WORKERS: Kind = Kind::Integer(1, 64);
/// How often changed rows are emitted: 1 ms is every commit, an hour the longest that a dashboard waits.
const EMIT_MS: (i64, i64) = (1, HOUR);

const fn key(path: &'static str, kind: Kind, default: Default, meaning: &'static str) -> Key {
    Key { path, kind, default, meaning }
}

const fn table(path: &'static str, kind: Kind, meaning: &'static str) -> Key {
    key(path, kind, Default::Absent, meaning)
}

/// Every key, in the order of docs/configuration.md.
// One line a key: it is read as a table.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("app", Kind::Text, Default::Required, "prefix of every topic, group and transactional id of ours"),
    table("kafka", Kind::Table, "the Kafka cluster"),
    key("kafka.brokers", Kind::Setting, Default::Required, "addresses of a few brokers, separated by commas"),
    key("kafka.replication", Kind::Integer(1, 32_767), Default::Value("1"), "copies of every partition of topics we create"),
    table("kafka.client", Kind::Properties, "librdkafka properties that the engine does not own"),
    table("schemas", Kind::Table, "the schema registry"),
    key("schemas.registry", Kind::Text, Default::Absent, "its URL; not used by this version"),
    table("engine", Kind::Table, "pacing, state and memory"),
    key("engine.commit_interval", Kind::Duration(1, 5 * MINUTE), Default::Value("100ms"), "target time between two commits"),
    key("engine.transaction_timeout", Kind::Duration(SECOND, 15 * MINUTE), Default::Value("10s"), "the broker aborts a transaction that is open longer"),
    key("engine.state_dir", Kind::Text, Default::Value("state"), "folder of local state, relative to the file"),
    key("engine.memory", Kind::Size(MIB, 1024 * 1024 * MIB), Default::Value("1GiB"), "budget of a process for state"),
    key("engine.create_topics", Kind::Boolean, Default::Value("false"), "whether `run` creates missing topics"),
    table("http", Kind::Table, "a worker's HTTP server"),
    key("http.listen", Kind::Text, Default::Value("127.0.0.1:0"), "its address; port 0 is any free one"),
    table("limits", Kind::Table, "time limits"),
    key("limits.accept", Kind::Duration(1, LONGEST), Default::Value("24h"), "how old an event may be at its first append"),
    key("limits.future", Kind::Duration(0, LONGEST), Default::Value("5m"), "how far an event may be dated ahead of it"),
    key("limits.remember", Kind::Duration(1, LONGEST), Default::Computed("`accept` + `future` + 5m"), "how long ids are remembered"),
    key("limits.settle_lag", Kind::Duration(0, HOUR), Default::Value("5s"), "how far the watermark stays behind the append clocks"),
    key("limits.idle_timeout", Kind::Duration(1, HOUR), Default::Value("5s"), "after how long without records a source partition is asked whether it is idle"),
    table("input", Kind::Named, "the inputs; at least one"),
    table("input.*", Kind::Table, "one input"),
    key("input.*.topic", Kind::Text, Default::Computed("the table's name"), "the topic it reads"),
    key("input.*.partitions", PARTITIONS, Default::Value("4"), "partitions, only used when we create it"),
    key("input.*.append_time", Kind::Choice(&["log", "record"]), Default::Value("log"), "which timestamp is the append time"),
    table("input.*.format", Kind::Table, "the format of its records; one table in it"),
    table("input.*.format.json", Kind::Table, "one JSON document a record"),
    table("input.*.format.avro", Kind::Later(Code::JsonOnly), "not in this version"),
    table("input.*.format.cloudevents", Kind::Later(Code::JsonOnly), "not in this version"),
    table("output", Kind::Table, "the rows we write"),
    key("output.format", Kind::Choice(&["json", "avro"]), Default::Value("json"), "their format; `avro` is not in this version"),
    table("namespace", Kind::Named, "the namespaces; without any, every name is allowed"),
    table("namespace.*", Kind::Table, "one namespace"),
    key("namespace.*.clearable", Kind::Boolean, Default::Value("false"), "whether its counters can be cleared; `true` is not in this version"),
    table("stage", Kind::Table, "the stages"),
    table("stage.intake", Kind::Table, "reads inputs, judges and shuffles"),
    key("stage.intake.from", Kind::Names, Default::Computed("every input"), "the inputs it reads"),
    key("stage.intake.workers", WORKERS, Default::Value("1"), "worker threads in a process"),
    table("stage.count", Kind::Table, "deduplicates, sums and writes rows"),
    key("stage.count.workers", WORKERS, Default::Value("1"), "worker threads in a process"),
    key("stage.count.partitions", PARTITIONS, Default::Value("8"), "partitions of `entries`; fixed for the life of the app"),
    key("stage.count.dimensions", Kind::Names, Default::Computed("none"), "dimensions that are part of every counter key"),
    key("stage.count.keep", Kind::Duration(1, LONGEST), Default::Value("7d"), "how long cells are kept after their window's end"),
    key("stage.count.slice", Kind::Duration(SLICE_MIN_MS, SLICE_MAX_MS), Default::Computed("the greatest length that divides every window, at most 15m"), "the length that everything is summed by"),
    table("stage.count.window", Kind::Named, "the windows; at least one"),
    table("stage.count.window.*", Kind::Table, "one window"),
    key("stage.count.window.*.size", Kind::Duration(SECOND, 366 * DAY), Default::Required, "its length"),
    key("stage.count.window.*.grace", Kind::Duration(0, LONGEST), Default::Value("0s"), "how long after its end it stays provisional"),
    key("stage.count.window.*.emit", Kind::Emit(EMIT_MS.0, EMIT_MS.1), Default::Value("1s"), "how often a changed row is emitted; `final`: finals and corrections only"),
    table("stage.count.window.*.calendar", Kind::Later(Code::NoCalendar), "not in this version"),
    table("stage.count.window.*.time_zone", Kind::Later(Code::NoCalendar), "not in this version"),
    table("stage.count.totals", Kind::Table, "totals of every counter"),
    key("stage.count.totals.emit", Kind::Duration(EMIT_MS.0, EMIT_MS.1), Default::Value("1s"), "how often a changed total is emitted"),
    table("failures", Kind::Table, "retries; not used by this version"),
    key("failures.max_retries", Kind::Integer(0, 1000), Default::Value("3"), "retries before a record is parked"),
    key("failures.base", Kind::Duration(1, DAY), Default::Value("2s"), "delay before the first retry"),
    key("failures.cap", Kind::Duration(1, DAY), Default::Value("60s"), "longest delay between retries"),
];

/// The shortest slice: 100 ms. A shorter one would make a window of an hour more than 36 000 cells.
pub(crate) const SLICE_MIN_MS: i64 = 100;
/// The longest slice (R9).
pub(crate) const SLICE_MAX_MS: i64 = tallyflow_core::window::SLICE_LIMIT_MS;

impl Key {
    /// Its own name: the last part of its path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The path of the table that it stands in; empty at the top.
    pub fn table(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(table, _)| table)
    }
}

/// The keys that may stand in a table, by the table's path in this file's notation.
pub fn keys_of(table: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.table() == table)
}

impl Kind {
    /// What a value of this kind is called, as in "must be …".
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Table | Self::Named | Self::Properties => "a table",
            Self::Text => "text in quotes",
            Self::Setting => "text in quotes, or a reference like { env = \"NAME\" }",
            Self::Boolean => "true or false",
            Self::Integer(..) => "a whole number",
            Self::Duration(..) => "a duration in quotes, like \"5m\"",
            Self::Emit(..) => "a duration in quotes, like \"1s\", or \"final\"",
            Self::Size(..) => "a size in quotes, like \"64MiB\"",
            Self::Choice(_) => "one of its words in quotes",
            Self::Names => "a list of names, like [\"a\", \"b\"]",
            Self::Later(_) => "left out",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units;

    #[test]
    fn paths_are_unique_and_their_tables_known() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..at].iter().all(|other| other.path != key.path), "{}", key.path);
            let known = KEYS[..at].iter().any(|other| other.path == key.table());
            assert!(key.table().is_empty() || known, "{}: its table comes first", key.path);
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for key in KEYS {
            let Default::Value(text) = key.default else {
                continue;
            };
            let good = match key.kind {
                Kind::Text => true,
                Kind::Boolean => text.parse::<bool>().is_ok(),
                Kind::Integer(min, max) => {
                    text.parse::<i64>().is_ok_and(|value| (min..=max).contains(&value))
                }
                Kind::Duration(min, max) | Kind::Emit(min, max) => {
                    units::duration_ms(text).is_ok_and(|value| (min..=max).contains(&value))
                }
                Kind::Size(min, max) => {
                    units::size_bytes(text).is_ok_and(|value| (min..=max).contains(&value))
                }
                Kind::Choice(words) => words.contains(&text),
                _ => false,
            };
            assert!(good, "{} = {text}", key.path);
        }
    }
}
