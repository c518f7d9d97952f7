use core::fmt;

/// The error of a key file. It never shows a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    line: Option<usize>,
    reason: String,
}

impl KeyError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        KeyError { line: None, reason: hide(&reason.into()) }
    }

    pub(crate) fn at(self, line: usize) -> Self {
        KeyError { line: Some(line), ..self }
    }

    /// Returns the line of the file, if known.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the reason, without the line.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<String> for KeyError {
    fn from(reason: String) -> Self {
        KeyError::new(reason)
    }
}

/// Replaces everything that may be part of a key: parsers quote the values that they reject.
fn hide(text: &str) -> String {
    let mut shown = String::new();
    let mut digits = String::new();
    for letter in text.chars().chain([' ']) {
        if letter.is_ascii_hexdigit() {
            digits.push(letter);
            continue;
        }
        shown.push_str(if digits.len() < 8 { &digits } else { "…" });
        digits.clear();
        shown.push(letter);
    }
    shown.pop();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_digits_are_hidden() {
        let error = KeyError::new("invalid value \"00112233445566778899\" in feed 12 of decade");
        assert_eq!(error.to_string(), "invalid value \"…\" in feed 12 of decade");
    }
}
