//! Writing JSON by hand: the names, numbers and addresses of packets need no escaping, and looking for what
//! does is where most of the time would go.

use std::fmt::Display;
use std::io::Write;

/// Appends JSON to a buffer. Commas come by themselves.
pub(super) struct Writer<'o>(pub(super) &'o mut Vec<u8>);

impl Writer<'_> {
    fn comma(&mut self) {
        // No value ends with one of these.
        if !matches!(self.0.last(), None | Some(b'{' | b'[' | b':' | b'\n')) {
            self.0.push(b',');
        }
    }

    /// A key; its value comes next.
    pub(super) fn key(&mut self, key: &str) -> &mut Self {
        self.text(key);
        self.0.push(b':');
        self
    }

    pub(super) fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        self.comma();
        self.0.push(b'{');
        fill(self);
        self.0.push(b'}');
    }

    pub(super) fn list(&mut self, fill: impl FnOnce(&mut Self)) {
        self.comma();
        self.0.push(b'[');
        fill(self);
        self.0.push(b']');
    }

    pub(super) fn null(&mut self) {
        self.comma();
        self.0.extend_from_slice(b"null");
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.comma();
        self.0.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn number(&mut self, value: impl itoa::Integer) {
        self.comma();
        self.0.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A text without anything that JSON escapes.
    pub(super) fn text(&mut self, text: &str) {
        self.comma();
        self.0.push(b'"');
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'"');
    }

    /// The same, of what displays like that.
    pub(super) fn display(&mut self, value: impl Display) {
        self.comma();
        // Writing into memory does not fail.
        let _ = write!(self.0, "\"{value}\"");
    }

    /// A text for people, which may hold anything.
    pub(super) fn message(&mut self, value: impl Display) {
        self.comma();
        let _ = serde_json::to_writer(&mut *self.0, &value.to_string());
    }

    /// The low `digits` hexadecimal digits of a number, as a text with `0x`.
    pub(super) fn wide(&mut self, value: u128, digits: usize) {
        self.comma();
        self.0.extend_from_slice(b"\"0x");
        for place in (0..digits).rev() {
            self.0.push(DIGITS[(value >> (4 * place) & 0xf) as usize]);
        }
        self.0.push(b'"');
    }

    /// Runs of bytes, one after the other, as one text of digits.
    pub(super) fn hex(&mut self, prefix: &str, runs: &[&[u8]]) {
        self.comma();
        self.0.push(b'"');
        self.0.extend_from_slice(prefix.as_bytes());
        for byte in runs.iter().copied().flatten() {
            self.0.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
        }
        self.0.push(b'"');
    }

    /// The value, or null.
    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.null(),
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
