//! Converts bytes to hexadecimal digits and back.

use std::fmt;

/// The reason why text is not hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HexError {
    /// A character is not a digit.
    NotADigit {
        /// The character.
        found: char,
        /// The position of the character, counted from 1.
        at: usize,
    },
    /// The number of digits is odd.
    Odd {
        /// The number of digits.
        digits: usize,
    },
}

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HexError::NotADigit { found, at } => {
                write!(f, "{found:?} at character {at} is not a hexadecimal digit")
            }
            HexError::Odd { digits } => write!(
                f,
                "{digits} hexadecimal digits are not a whole number of bytes: add or remove one digit"
            ),
        }
    }
}

impl std::error::Error for HexError {}

/// Converts hexadecimal digits to bytes. Allows a leading `0x`, and white space, `:` and `-` between digits.
///
/// ```
/// assert_eq!(uet_packet_io::hex::decode("0x38 00:ff-fe"), Ok(vec![0x38, 0, 0xff, 0xfe]));
/// assert!(uet_packet_io::hex::decode("38 0").is_err());
/// ```
pub fn decode(text: &str) -> Result<Vec<u8>, HexError> {
    let body = text.strip_prefix("0x").unwrap_or(text);
    let skipped = text.chars().count() - body.chars().count();
    let mut bytes = Vec::with_capacity(body.len() / 2);
    let mut half = None;
    for (index, found) in body.chars().enumerate() {
        if found.is_whitespace() || found == ':' || found == '-' {
            continue;
        }
        let Some(digit) = found.to_digit(16) else {
            return Err(HexError::NotADigit { found, at: skipped + index + 1 });
        };
        match half.take() {
            None => half = Some(digit),
            Some(high) => bytes.push((high << 4 | digit) as u8),
        }
    }
    match half {
        None => Ok(bytes),
        Some(_) => Err(HexError::Odd { digits: bytes.len() * 2 + 1 }),
    }
}

/// Bytes, displayed or serialized as hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl serde::Serialize for Hex<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
