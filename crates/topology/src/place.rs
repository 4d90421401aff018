//! Places in the text, values that know theirs, and the list that problems are collected in.
//!
//! Must not know: what is read or checked.

use std::collections::BTreeSet;

use crate::codes::Code;
use crate::problem::{Problem, Problems};

/// A value and the byte of the text where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placed<T> {
    /// The value.
    pub value: T,
    /// Where it stands; for a default: where its table does.
    pub at: usize,
    /// Whether it stands in the text, or is a default.
    pub written: bool,
}

impl<T> Placed<T> {
    /// The same place with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Placed<U> {
        Placed { value: change(self.value), at: self.at, written: self.written }
    }
}

/// A value that is there unless a problem was reported for it (or it is optional).
pub(crate) type Field<T> = Option<Placed<T>>;

/// Collects problems.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    file: String,
    text: &'a str,
    line_starts: Vec<usize>,
    broken_lines: BTreeSet<usize>,
    list: Vec<Problem>,
}

impl<'a> Report<'a> {
    /// An empty report on this text.
    pub fn new(file: String, text: &'a str) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at.saturating_add(1))).collect();
        Self { file, text, line_starts, broken_lines: BTreeSet::new(), list: Vec::new() }
    }

    /// Adds a problem at a byte of the text.
    ///
    /// Once the text was found not to be TOML, what is missing may only have been misread, and so may be what stands
    /// on the broken lines: neither is said. The first reason why a line is broken is the one that counts.
    pub fn add(&mut self, at: usize, code: Code, message: impl Into<String>, help: impl Into<String>) {
        let (line, column) = self.line_and_column(at);
        if code == Code::Syntax {
            if !self.broken_lines.insert(line) {
                return;
            }
        } else if !self.broken_lines.is_empty()
            && (code == Code::Missing || self.broken_lines.contains(&line))
        {
            return;
        }
        self.list.push(Problem {
            file: self.file.clone(),
            line,
            column,
            code,
            message: message.into(),
            help: help.into(),
        });
    }

    /// Whether the text is TOML, so that what was read is what was meant.
    pub fn is_toml(&self) -> bool {
        self.broken_lines.is_empty()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All problems, sorted.
    pub fn into_problems(self) -> Problems {
        Problems::from_list(self.list)
    }

    /// Line and character, both from 1. Binary search: the cost of a file full of problems stays linear.
    fn line_and_column(&self, at: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= at).max(1);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..at.min(self.text.len())).unwrap_or_default();
        // Bytes that do not continue a character.
        let characters = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
        (line, characters.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_characters() {
        let text = "a\nbé = 1\n\nc";
        let mut report = Report::new("f".to_owned(), text);
        for at in [0, 1, 2, 5, 10, 11, 999] {
            report.add(at, Code::BadName, at.to_string(), "");
        }
        let places: Vec<_> = report
            .into_problems()
            .as_slice()
            .iter()
            .map(|problem| (problem.message.clone(), problem.line, problem.column))
            .collect();
        let right = [("0", 1, 1), ("1", 1, 2), ("2", 2, 1), ("5", 2, 3), ("10", 3, 1), ("11", 4, 1)];
        for (at, line, column) in right {
            assert!(places.contains(&(at.to_owned(), line, column)), "{at}: {places:?}");
        }
        assert!(places.contains(&("999".to_owned(), 4, 2)), "behind the end: {places:?}");
    }
}
