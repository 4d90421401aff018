//! JSON: events in, rows out.
//!
//! | file | what |
//! | --- | --- |
//! | `scan` | tokens of one text, each borrowed from it |
//! | `walk` | a document's structure: syntax, depth, members, duplicate keys, paths; no recursion |
//! | `fields` | the fields of one event object, and what they must be |
//! | `events` | records to events |
//! | `rows` | rows to records and back |
//!
//! Own code, since no library says what the contract asks: whether a number was written as an integer, whether a key
//! stands twice, both without building values; a text is looked at once.

mod events;
mod fields;
mod rows;
mod scan;
mod walk;

pub use events::JsonEvents;
pub use rows::JsonRows;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_any_bytes;
#[cfg(test)]
mod tests_packed;
