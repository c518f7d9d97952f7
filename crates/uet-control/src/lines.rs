use std::io::{self, BufRead};

/// The longest line that is accepted, in bytes. A region of several MiB fits as hexadecimal digits.
pub const MAX_LINE: usize = 32 << 20;

/// The most values in a line. A parsed value takes up to a hundred times the memory of its text. Long data is one
/// string.
const MAX_VALUES: usize = 1 << 16;

/// The most bytes of empty lines that one call reads. A stream of them would keep its caller from other work.
const MAX_EMPTY: usize = 1 << 16;

/// Reads the lines of a channel. A line longer than [`MAX_LINE`] is an error, detected before it fills the memory. So is
/// a line with more than 65,536 JSON values. More than 65,536 bytes of empty lines in one call are an error too.
///
/// ```
/// use uet_control::Lines;
///
/// let mut lines = Lines::new(&b"one\n\ntwo\r\nthree"[..]);
/// assert_eq!(lines.read()?.as_deref(), Some("one"));
/// assert_eq!(lines.read()?.as_deref(), Some("two"), "empty lines are nothing");
/// assert_eq!(lines.read()?.as_deref(), Some("three"), "the end ends a line");
/// assert_eq!(lines.read()?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    // Kept between calls: after a timeout in the middle of a line, the next call continues the line.
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Creates a reader of the lines of `reader`.
    pub fn new(reader: R) -> Self {
        Lines { reader, line: Vec::new() }
    }

    /// Returns the underlying reader.
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Reads the next line that is not empty. Returns `None` at the end of the input.
    pub fn read(&mut self) -> io::Result<Option<String>> {
        let mut empty = 0;
        loop {
            let piece = self.reader.fill_buf()?;
            let (taken, whole) = match piece.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (piece.len(), piece.is_empty()),
            };
            if self.line.len() + taken > MAX_LINE {
                let message = format!("a line of the control channel is longer than {MAX_LINE} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            let ended = piece.is_empty();
            self.line.extend_from_slice(&piece[..taken]);
            self.reader.consume(taken);
            if !whole {
                continue;
            }
            // Commas in strings count too: no message needs so many.
            if self.line.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > MAX_VALUES {
                let message = format!("a line of the control channel has more than {MAX_VALUES} values");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            let line = String::from_utf8(core::mem::take(&mut self.line)).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidData, "a line of the control channel is not UTF-8")
            })?;
            match line.trim() {
                "" if ended => return Ok(None),
                "" => empty += line.len(),
                text => return Ok(Some(text.to_owned())),
            }
            if empty > MAX_EMPTY {
                let message =
                    format!("the control channel has more than {MAX_EMPTY} bytes of empty lines in a row");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};

    /// Returns one byte at a time, and an error before each byte.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn a_timeout_in_the_middle_of_a_line_loses_nothing() {
        let mut lines = Lines::new(BufReader::new(Slow(b"{\"id\":1}\n", false)));
        let line = loop {
            match lines.read() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => break other,
            }
        };
        assert_eq!(line.unwrap().unwrap(), "{\"id\":1}");
    }

    #[test]
    fn a_line_without_end_does_not_fill_memory() {
        let mut lines = Lines::new(BufReader::new(io::repeat(b'x')));
        assert_eq!(lines.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(lines.line.len() <= MAX_LINE);
    }

    #[test]
    fn many_empty_lines_are_an_error() {
        let most = "\n".repeat(MAX_EMPTY);
        assert_eq!(Lines::new(format!("{most}one").as_bytes()).read().unwrap().as_deref(), Some("one"));
        for empty in [format!("{most}\n"), format!("{most} \n")] {
            let error = Lines::new(format!("{empty}one").as_bytes()).read().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_line_of_many_values_is_an_error() {
        let most = format!("[{}0]\n", "0,".repeat(MAX_VALUES - 1));
        assert!(Lines::new(most.as_bytes()).read().is_ok());
        for line in ["0,".repeat(MAX_VALUES + 1), "[".repeat(MAX_VALUES + 1), "{},".repeat(MAX_VALUES)] {
            let error = Lines::new(line.as_bytes()).read().map(drop).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("more than 65536 values"), "{error}");
        }
    }

    #[test]
    fn what_is_not_text_is_an_error() {
        assert!(Lines::new(&b"\xff\n"[..]).read().is_err());
    }
}
