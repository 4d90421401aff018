//! Rows as a table for people: aligned, times in RFC 3339 UTC, nothing that could confuse a terminal.
//!
//! On a terminal there are rules between the parts; elsewhere columns are separated by blanks only, so that line tools
//! can take them apart.

use std::iter;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use jiff::Timestamp;

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    is_number: bool,
}

impl Column {
    /// A column of texts.
    pub fn text(name: &str) -> Self {
        Self { name: shown(name), is_number: false }
    }

    /// A column of numbers, aligned to the right.
    pub fn number(name: &str) -> Self {
        Self { name: name.to_owned(), is_number: true }
    }
}

/// A whole table, its heading included.
pub fn whole(columns: &[Column], rows: impl Iterator<Item = Vec<String>>, terminal: bool) -> String {
    let mut table = Table::new();
    table
        .load_preset(if terminal { presets::UTF8_HORIZONTAL_ONLY } else { presets::NOTHING })
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|column| &column.name))
        .add_rows(rows);
    for (at, column) in columns.iter().enumerate() {
        if let Some(drawn) = table.column_mut(at) {
            drawn.set_padding((0, 2));
            if column.is_number {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    if terminal {
        // Twice as many rules as rows would be no help to anybody.
        table.remove_style(comfy_table::TableComponent::HorizontalLines);
        table.remove_style(comfy_table::TableComponent::MiddleIntersections);
        table.remove_style(comfy_table::TableComponent::LeftBorderIntersections);
        table.remove_style(comfy_table::TableComponent::RightBorderIntersections);
    }
    table.trim_fmt() + "\n"
}

/// Single lines that go on below a table which has been shown.
#[derive(Debug)]
pub struct Lines {
    columns: Vec<(usize, bool)>,
    gap: &'static str,
}

impl Lines {
    /// Lines as wide as these columns with these rows.
    pub fn below<'a>(
        columns: &[Column],
        rows: impl Iterator<Item = &'a Vec<String>>,
        terminal: bool,
    ) -> Self {
        let width = |text: &String| text.chars().count();
        let mut columns: Vec<_> =
            columns.iter().map(|column| (width(&column.name), column.is_number)).collect();
        for row in rows {
            for (column, cell) in columns.iter_mut().zip(row) {
                column.0 = column.0.max(width(cell));
            }
        }
        // A rule takes the place of one more blank.
        let gap = if terminal { "   " } else { "  " };
        Self { columns, gap }
    }

    /// One more line, without its end.
    pub fn line(&self, cells: &[String]) -> String {
        let columns = self.columns.iter().copied().chain(iter::repeat((0, false)));
        let mut line = String::new();
        for (cell, (width, is_number)) in cells.iter().zip(columns) {
            line += &if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            line += self.gap;
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// An instant in RFC 3339, UTC.
pub fn time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |instant| instant.to_string())
}

/// An instant that may be unknown.
pub fn time_or_none(ms: Option<i64>) -> String {
    ms.map_or_else(|| "-".to_owned(), time)
}

/// A name or a value as it may stand in a cell: visible even where it is empty, without control characters.
pub fn shown(text: &str) -> String {
    if text.is_empty() {
        return "\"\"".to_owned();
    }
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            visible.extend(character.escape_default());
        } else {
            visible.push(character);
        }
    }
    visible
}

/// Control characters, and those that turn the direction of writing.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        vec![Column::text("counter"), Column::number("sum"), Column::text("state")]
    }

    fn rows() -> Vec<Vec<String>> {
        [["clicks", "5", "final"], ["é", "-1234", "update"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
    }

    #[test]
    fn elsewhere_a_table_is_columns_and_blanks() {
        let text = whole(&columns(), rows().into_iter(), false);
        assert_eq!(text, "counter    sum  state\nclicks       5  final\né        -1234  update\n");
        assert_eq!(whole(&columns(), iter::empty(), false), "counter  sum  state\n");
    }

    #[test]
    fn on_a_terminal_the_heading_is_underlined() {
        let text = whole(&columns(), rows().into_iter(), true);
        assert_eq!(text.lines().filter(|line| line.starts_with('═')).count(), 1, "{text}");
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn single_lines_go_on_as_the_table_began() {
        for (terminal, skipped) in [(false, 1), (true, 3)] {
            let text = whole(&columns(), rows().into_iter(), terminal);
            let drawn: Vec<&str> = text.lines().skip(skipped).take(2).collect();
            let lines = Lines::below(&columns(), rows().iter(), terminal);
            let single: Vec<String> = rows().iter().map(|row| lines.line(row)).collect();
            assert_eq!(single, drawn);
        }
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_767_225_600_123), "2026-01-01T00:00:00.123Z");
        assert_eq!(time(i64::MAX), i64::MAX.to_string());
        assert_eq!(time_or_none(None), "-");
    }

    #[test]
    fn cells_cannot_speak_to_the_terminal() {
        assert_eq!(shown("a b é"), "a b é");
        assert_eq!(shown(""), "\"\"");
        assert_eq!(shown("a\u{1b}[31m\n\u{202e}b"), "a\\u{1b}[31m\\n\\u{202e}b");
    }
}
