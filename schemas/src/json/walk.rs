//! The structure of a document: what nests in what, how deep, how many members, which keys stand twice.
//!
//! ```text
//!   {"events":[{"x":{"y":1,"y":2}}]}        frames:  { · [ · { · {        keys: events · x · y · y
//!                          └ duplicate key at events[0].x.y
//! ```
//!
//! Values are passed over without being built. Nothing recurses: containers stand in a list, so no document overflows
//! the stack. A *fault* is what is wrong with an event although it is JSON; only the first of each kind is kept, with
//! its path. Must not know what the fields mean.

use std::borrow::Cow;
use std::fmt::Write;

use tallyflow_core::headers::cut;
use tallyflow_core::plan::RecordLimits;
use tallyflow_core::verdict::{Category, Failure};

use super::scan::{Scanner, SyntaxError};

/// The longest piece of a key that a path shows, in bytes: keys are the producer's text.
const PATH_KEY_BYTES: usize = 64;
/// Up to so many keys of one object are compared one by one; more are sorted first. 16 · 15 / 2 = 120 comparisons.
const KEYS_COMPARED: usize = 16;

/// Walks documents. Reused from document to document.
#[derive(Debug)]
pub(crate) struct Walker<'r> {
    pub(crate) scanner: Scanner<'r>,
    frames: Vec<Frame>,
    keys: Vec<Cow<'r, str>>,
    limits: RecordLimits,
    element: Option<u32>,
    outer: usize,
    members: usize,
    looks_away: bool,
    faults: Faults,
}

/// An open container.
#[derive(Clone, Copy, Debug)]
struct Frame {
    is_object: bool,
    /// Where its keys begin.
    keys_from: usize,
    /// The element of an array.
    index: usize,
}

#[derive(Debug, Default)]
struct Faults {
    too_deep: Option<Failure>,
    too_many: Option<Failure>,
    key: Option<Failure>,
}

impl<'r> Walker<'r> {
    pub(crate) fn new(limits: RecordLimits) -> Self {
        Self {
            scanner: Scanner::new(""),
            frames: Vec::new(),
            keys: Vec::new(),
            limits,
            element: None,
            outer: 0,
            members: 0,
            looks_away: false,
            faults: Faults::default(),
        }
    }

    /// Begins a document.
    pub(crate) fn open(&mut self, text: &'r str) {
        self.scanner = Scanner::new(text);
        self.begin(None, 0);
    }

    /// Begins a subject of its own: its faults and members are counted afresh. It is an element of `events`, inside
    /// `outer` containers.
    pub(crate) fn begin_element(&mut self, index: u32, outer: usize) {
        self.begin(Some(index), outer);
    }

    fn begin(&mut self, element: Option<u32>, outer: usize) {
        self.frames.clear();
        self.keys.clear();
        self.element = element;
        self.outer = outer;
        self.members = 0;
        self.looks_away = false;
        self.faults = Faults::default();
    }

    /// What is wrong with the subject as a tree, the gravest first.
    pub(crate) fn fault(&mut self) -> Option<Failure> {
        let Faults { too_deep, too_many, key } = &mut self.faults;
        too_deep.take().or_else(|| too_many.take()).or_else(|| key.take())
    }

    /// The path of a member of the object that is open; after the subject was read, of one of its fields.
    pub(crate) fn path(&self, field: &str) -> String {
        let mut path = self.here(self.frames.len().saturating_sub(1));
        push_key(&mut path, field);
        path
    }

    /// The path of the value that the first `depth` frames lead to.
    fn here(&self, depth: usize) -> String {
        let mut path = self.element.map_or_else(String::new, |index| format!("events[{index}]"));
        for (at, frame) in self.frames.iter().enumerate().take(depth) {
            if frame.is_object {
                let end = self.frames.get(at + 1).map_or(self.keys.len(), |inner| inner.keys_from);
                push_key(
                    &mut path,
                    end.checked_sub(1).and_then(|last| self.keys.get(last)).map_or("", |k| k),
                );
            } else {
                let _ = write!(path, "[{}]", frame.index); // writing to a string cannot fail
            }
        }
        path
    }

    /// Takes the mark that opens an object; the next byte is `{`.
    #[inline]
    pub(crate) fn open_object(&mut self) {
        self.open_container(true);
    }

    #[inline]
    fn open_container(&mut self, is_object: bool) {
        self.scanner.take();
        let depth = self.outer.saturating_add(self.frames.len()).saturating_add(1);
        if depth > self.limits.depth && !self.looks_away && self.faults.too_deep.is_none() {
            let path = self.here(self.frames.len());
            let message = format!("{}: nested more than {} deep", shown(&path), self.limits.depth);
            self.faults.too_deep = Some(Failure::new(Category::TooLarge, message));
        }
        self.frames.push(Frame { is_object, keys_from: self.keys.len(), index: 0 });
    }

    /// Takes the next key of the open object and its colon; `None` at the object's end, which is taken too.
    #[inline]
    pub(crate) fn next_key(&mut self, is_first: bool) -> Result<Option<Cow<'r, str>>, SyntaxError> {
        if self.scanner.peek() == Some(b'}') {
            self.scanner.take();
            self.close_container();
            return Ok(None);
        }
        if !is_first {
            self.scanner.expect(b',', "neither a comma nor the end of an object")?;
            self.scanner.peek();
        }
        let key = self.scanner.string()?.decode();
        self.scanner.expect(b':', "not a colon")?;
        Ok(Some(self.member(key)))
    }

    /// Counts a member of the open object.
    #[inline]
    fn member(&mut self, key: Option<Cow<'r, str>>) -> Cow<'r, str> {
        if self.looks_away {
            return key.unwrap_or_default();
        }
        self.members += 1;
        if self.members > self.limits.members {
            self.faults.too_many.get_or_insert_with(|| {
                let message = format!("more than {} members", self.limits.members);
                Failure::new(Category::TooLarge, message)
            });
            return key.unwrap_or_default();
        }
        if key.is_none() && self.faults.key.is_none() {
            let path = self.path("?");
            self.faults.key = Some(invalid(&path, "the key is no Unicode text"));
        }
        let key = key.unwrap_or_default();
        self.keys.push(key.clone());
        key
    }

    #[inline]
    fn close_container(&mut self) {
        let Some(frame) = self.frames.last() else {
            return;
        };
        let from = frame.keys_from;
        if frame.is_object && self.faults.key.is_none() {
            let name = self.keys.get_mut(from..).and_then(|keys| duplicate(keys)).map(str::to_owned);
            if let Some(name) = name {
                self.faults.key = Some(invalid(&self.path(&name), "the key stands twice"));
            }
        }
        self.keys.truncate(from);
        self.frames.pop();
    }

    /// Passes over one value of any kind.
    pub(crate) fn skip(&mut self) -> Result<(), SyntaxError> {
        let base = self.frames.len();
        loop {
            match self.scanner.peek() {
                Some(b'{') => {
                    self.open_container(true);
                    if self.next_key(true)?.is_some() {
                        continue;
                    }
                }
                Some(b'[') => {
                    self.open_container(false);
                    if self.scanner.peek() != Some(b']') {
                        continue;
                    }
                    self.scanner.take();
                    self.close_container();
                }
                _ => drop(self.scanner.scalar()?),
            }
            if self.go_on(base)? {
                return Ok(());
            }
        }
    }

    /// After a value: comes to the next one, closing what ends. Returns whether `base` containers are left.
    fn go_on(&mut self, base: usize) -> Result<bool, SyntaxError> {
        while self.frames.len() > base {
            let Some(frame) = self.frames.last_mut() else {
                break;
            };
            if frame.is_object {
                if self.next_key(false)?.is_some() {
                    return Ok(false);
                }
            } else {
                frame.index += 1;
                if self.next_element(false)? {
                    return Ok(false);
                }
                self.close_container();
            }
        }
        Ok(true)
    }

    /// Comes to the next element of an array; `false` at its end, which is taken.
    fn next_element(&mut self, is_first: bool) -> Result<bool, SyntaxError> {
        if self.scanner.peek() == Some(b']') {
            self.scanner.take();
            return Ok(false);
        }
        if !is_first {
            self.scanner.expect(b',', "neither a comma nor the end of an array")?;
            if self.scanner.peek() == Some(b']') {
                return Err(self.scanner.error("a comma before the end of an array"));
            }
        }
        Ok(true)
    }

    /// Passes over an array, whose mark is next, for its syntax alone: its elements are subjects of their own.
    /// Returns how many there are.
    pub(crate) fn skip_elements(&mut self) -> Result<usize, SyntaxError> {
        self.looks_away = true;
        self.scanner.take();
        let mut count = 0;
        while self.next_element(count == 0)? {
            self.skip()?;
            count += 1;
        }
        self.looks_away = false;
        Ok(count)
    }

    /// Comes to the next element of an array that [`Walker::skip_elements`] has passed over.
    pub(crate) fn come_to_element(&mut self, is_first: bool) -> Result<bool, SyntaxError> {
        if is_first {
            self.scanner.peek();
            self.scanner.take();
        }
        self.next_element(is_first)
    }
}

/// A key that stands twice. Reorders long lists.
fn duplicate<'k>(keys: &'k mut [Cow<'_, str>]) -> Option<&'k str> {
    if keys.len() > KEYS_COMPARED {
        keys.sort_unstable();
        let twice = keys.windows(2).find_map(|pair| match pair {
            [one, two] if one == two => Some(one),
            _ => None,
        });
        return twice.map(|key| &**key);
    }
    let twice = keys.iter().enumerate().find(|(at, key)| keys.iter().take(*at).any(|one| one == *key));
    twice.map(|(_, key)| &**key)
}

fn invalid(path: &str, what: &str) -> Failure {
    Failure::new(Category::InvalidField, format!("{}: {what}", shown(path)))
}

/// A path for people; the document itself has none.
fn shown(path: &str) -> &str {
    if path.is_empty() { "the document" } else { path }
}

/// Appends `.key`, without the dot at the top, cut and without control characters: it is the producer's text.
fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    let (key, was_cut) = cut(key, PATH_KEY_BYTES);
    path.extend(key.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
    if was_cut {
        path.push('…');
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
