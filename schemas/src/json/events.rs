//! Records to events (contract §2).
//!
//! ```text
//!  bytes ──► whole document: UTF-8, syntax, limits ──► no `events`: one event
//!                │                                 └─► `events`: each element by itself, `events[n]` in its paths
//!                └ not one document: one `undecodable`
//! ```
//!
//! Nothing is told before the whole record is known to be a document: a syntax error at its end makes one
//! undecodable record of it, not some events and a failure. A document with `events` is a packed one, whatever other
//! fields it has (null is missing): what is wrong with the envelope is wrong with the record. The limit on members
//! holds for each event with everything in it, and for the envelope without its events.
//!
//! Keeps: LG-1 (every event once, a record without an event once). No allocation per event but for escaped text.

use std::borrow::Cow;

use tallyflow_core::codec::{EventDecoder, EventSink};
use tallyflow_core::plan::Plan;
use tallyflow_core::record::RecordView;
use tallyflow_core::verdict::{Category, Failure};

use super::fields::{Fields, Packed};
use super::scan::SyntaxError;
use super::walk::Walker;
use crate::rules::{EventRules, header_id};

/// Containers around a packed event: the document and its array.
const PACKED_OUTER: usize = 2;

/// Decodes JSON events.
#[derive(Debug)]
pub struct JsonEvents {
    rules: EventRules,
    /// Memory for the dimensions' values, between batches.
    spare: Vec<&'static str>,
}

impl JsonEvents {
    /// The decoder of a plan's JSON inputs.
    pub fn new(plan: &Plan) -> Self {
        Self::with_rules(EventRules::new(plan))
    }

    /// The decoder for these rules.
    pub const fn with_rules(rules: EventRules) -> Self {
        Self { rules, spare: Vec::new() }
    }

    #[cfg(test)]
    pub(crate) const fn keeps_memory(&self) -> bool {
        self.spare.capacity() > 0
    }
}

impl EventDecoder for JsonEvents {
    fn decode(&mut self, batch: &[RecordView<'_>], sink: &mut dyn EventSink) {
        let mut decoding = Decoding {
            rules: &self.rules,
            walker: Walker::new(self.rules.limits),
            fields: Fields::default(),
            values: Vec::with_capacity(self.rules.dimensions.len()),
            view: recycled(std::mem::take(&mut self.spare)),
            sink,
        };
        for (at, record) in batch.iter().enumerate() {
            if let Err(failure) = decoding.record(at, record) {
                decoding.sink.invalid(at, None, None, failure);
            }
            decoding.sink.record_done(at);
        }
        self.spare = decoding.view;
    }
}

/// One batch being decoded.
struct Decoding<'r, 's> {
    rules: &'s EventRules,
    walker: Walker<'r>,
    fields: Fields<'r>,
    values: Vec<Cow<'r, str>>,
    /// Empty between events; it only keeps its memory.
    view: Vec<&'static str>,
    sink: &'s mut dyn EventSink,
}

impl<'r> Decoding<'r, '_> {
    /// Tells the events of a record, or fails as a whole.
    fn record(&mut self, at: usize, record: &RecordView<'r>) -> Result<(), Failure> {
        let header = header_id(record.headers);
        self.walker.open(self.text(record)?);
        self.document().map_err(undecodable)?;
        if let Some(packed) = self.fields.packed {
            return self.packed(at, packed, header);
        }
        self.tell(at, None, header);
        Ok(())
    }

    fn text(&self, record: &RecordView<'r>) -> Result<&'r str, Failure> {
        let failure = |category, message: String| Failure::new(category, message);
        let Some(value) = record.value else {
            return Err(failure(Category::Undecodable, "the value is null".to_owned()));
        };
        let limit = self.rules.limits.record_bytes;
        if value.len() > limit {
            return Err(failure(
                Category::TooLarge,
                format!("{} bytes, at most {limit} are allowed", value.len()),
            ));
        }
        std::str::from_utf8(value).map_err(|error| {
            failure(Category::Undecodable, format!("not UTF-8 at byte {}", error.valid_up_to()))
        })
    }

    /// Reads the whole document: one object, and nothing after it.
    fn document(&mut self) -> Result<(), SyntaxError> {
        if self.walker.scanner.peek() != Some(b'{') {
            return Err(self.walker.scanner.error("not an object"));
        }
        self.fields.read(&mut self.walker, self.rules, true)?;
        match self.walker.scanner.peek() {
            None => Ok(()),
            Some(_) => Err(self.walker.scanner.error("something after the document")),
        }
    }

    /// Tells each event of a packed record.
    fn packed(&mut self, at: usize, packed: Packed<'r>, header: Option<&'r [u8]>) -> Result<(), Failure> {
        if let Some(failure) = self.walker.fault() {
            return Err(failure);
        }
        let limit = self.rules.limits.packed_events;
        let invalid = |what: &str| Failure::new(Category::InvalidField, format!("events: {what}"));
        match packed.count {
            None => return Err(invalid("not an array")),
            Some(0) => return Err(invalid("an empty array")),
            Some(count) if count > limit => {
                let message = format!("events: {count} elements, at most {limit} are allowed");
                return Err(Failure::new(Category::TooLarge, message));
            }
            Some(_) => {}
        }
        self.walker.scanner = packed.place;
        let mut index = 0;
        // The syntax was checked in the first pass, so an error here is none of the record's.
        while self.walker.come_to_element(index == 0).map_err(undecodable)? {
            self.element(at, index, header).map_err(undecodable)?;
            index += 1;
        }
        Ok(())
    }

    fn element(&mut self, at: usize, index: u32, header: Option<&'r [u8]>) -> Result<(), SyntaxError> {
        self.walker.begin_element(index, PACKED_OUTER);
        if self.walker.scanner.peek() == Some(b'{') {
            self.fields.read(&mut self.walker, self.rules, false)?;
            self.tell(at, Some(index), header);
        } else {
            self.walker.skip()?;
            let failure = Failure::new(Category::InvalidField, format!("events[{index}]: not an object"));
            self.sink.invalid(at, Some(index), None, failure);
        }
        Ok(())
    }

    /// Tells the event whose fields were read.
    fn tell(&mut self, at: usize, index: Option<u32>, header: Option<&'r [u8]>) {
        let event = match self.walker.fault() {
            Some(failure) => Err(failure),
            None => self.fields.event(&self.walker, self.rules, header, &mut self.values),
        };
        match event {
            Ok(event) => {
                let mut view = recycled(std::mem::take(&mut self.view));
                view.extend(self.values.iter().map(|value| &**value));
                self.sink.event(at, index, &event, &view);
                self.view = recycled(view);
            }
            Err(failure) => {
                let id = self.fields.known_id(header);
                self.sink.invalid(at, index, id.as_deref(), failure);
            }
        }
    }
}

fn undecodable(error: SyntaxError) -> Failure {
    Failure::new(Category::Undecodable, format!("not JSON at byte {}: {}", error.at, error.what))
}

/// The same memory for texts of another life: the standard library collects a mapped vector in place.
fn recycled<'b>(mut spent: Vec<&str>) -> Vec<&'b str> {
    spent.clear();
    spent.into_iter().map(|_| "").collect()
}
