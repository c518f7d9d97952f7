//! Writes the result as JSON with one line per rule, so that results can be searched and compared by lines.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Levels of nesting whose elements have lines of their own.
const LINES: usize = 2;

#[derive(Default)]
struct Lines {
    depth: usize,
}

impl Lines {
    fn element(&self, out: &mut (impl Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.break_line(out)
    }

    fn break_line(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        match self.depth {
            0 => out.write_all(b"\n"),
            1..=LINES => write!(out, "\n{:width$}", "", width = self.depth),
            _ => Ok(()),
        }
    }

    fn end(&mut self, out: &mut (impl Write + ?Sized), closing: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < LINES {
            self.break_line(out)?;
        }
        out.write_all(closing)
    }
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }
}

/// Returns the text, with a line end.
pub fn lines(result: &impl Serialize) -> io::Result<String> {
    let mut text = Vec::new();
    result.serialize(&mut Serializer::with_formatter(&mut text, Lines::default()))?;
    text.push(b'\n');
    String::from_utf8(text).map_err(io::Error::other)
}
