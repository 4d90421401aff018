//! Standard output is for data, standard error for talk: the only place that writes to either.
//!
//! Keeps: nothing is coloured or moves, on a terminal or not.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// Standard output, locked and buffered.
pub struct Output {
    writer: BufWriter<StdoutLock<'static>>,
}

impl Output {
    /// Takes standard output.
    pub fn new() -> Self {
        Self { writer: BufWriter::new(io::stdout().lock()) }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// Where the reader has gone (`BrokenPipe`), or it cannot be written.
    pub fn line(&mut self, line: impl AsRef<[u8]>) -> io::Result<()> {
        self.writer.write_all(line.as_ref())?;
        self.writer.write_all(b"\n")
    }

    /// Writes a text that ends its own lines.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.writer.write_all(text.as_bytes())
    }

    /// Hands everything over; what was written before is only certain then.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Whether a person looks at standard output.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Writes a line to standard error. That nobody listens there is no reason to fail.
pub fn talk(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// What an exit code speaks of has been found out; that the reader left before the end does not change it.
///
/// # Errors
/// Any other error of writing.
pub fn forgive_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
