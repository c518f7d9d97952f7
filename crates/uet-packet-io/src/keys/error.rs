use core::fmt;

/// The error of a key file. It never shows a value of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    line: Option<usize>,
    column: Option<usize>,
    reason: String,
}

impl KeyError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        KeyError { line: None, column: None, reason: reason.into() }
    }

    /// Returns what the parser expected, and where. Its message quotes the file, and so perhaps a key.
    pub(crate) fn of_parser(error: &toml::de::Error, text: &str) -> Self {
        let reason = KeyError::new(expected(error.message()));
        let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return reason };
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[line_start..].chars().count() + 1;
        KeyError { column: Some(column), ..reason.at(before.matches('\n').count() + 1) }
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
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "line {line}, column {column}: {}", self.reason),
            (Some(line), None) => write!(f, "line {line}: {}", self.reason),
            (None, _) => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<String> for KeyError {
    fn from(reason: String) -> Self {
        KeyError::new(reason)
    }
}

/// Returns the part of a parser's message that does not quote the file.
fn expected(message: &str) -> String {
    // Of these, the last part and the names of missing fields come from the types that are read.
    const TYPED: [&str; 5] =
        ["invalid type: ", "invalid value: ", "invalid length ", "unknown field ", "unknown variant "];
    if TYPED.iter().any(|start| message.starts_with(start)) {
        if let Some((_, wanted)) = message.rsplit_once(", expected ") {
            return format!("expected {wanted}");
        }
    }
    if message.starts_with("missing field ") {
        return message.into();
    }
    if message.starts_with("data did not match any variant") {
        return "expected a key in quotation marks, or a list of keys".into();
    }
    "expected TOML, with each key in quotation marks".into()
}

#[cfg(test)]
mod tests {
    use crate::keys::KeyRing;

    #[test]
    fn parser_errors_show_no_value() {
        let domain = "[[domain]]\nsdi = 7\nmode = \"direct\"\n";
        for (line, told) in [
            ("keys = \"3444 8a06 4292 601b\"", "line 4, column 8: expected a map"),
            (
                "keys = { 0 = [[\"34:44:8a\"]] }",
                "line 4, column 14: expected a key in quotation marks, or a list",
            ),
            ("keys = { 0 = 34448a064292601b }", "expected TOML"),
            ("keys = { \"NESK\" = \"0\" }", "line 1: keys: an association number is 0 or 1"),
            ("\"NESK, expected NESK\" = 1", "line 4, column 1: expected one of `sdi`, `mode`, "),
            ("an = \"NESK, expected NESK\"", "line 4, column 6: expected u8"),
            ("an = 3444890642926012", "line 4, column 6: expected u8"),
            ("sdi = \"NESK\"", "line 4, column 1: expected TOML"),
            ("NESK = \"3444", "expected TOML"),
        ] {
            let error = KeyRing::from_toml(&format!("{domain}{line}\n")).unwrap_err().to_string();
            assert!(error.contains(told), "{line}: {error}");
            assert!(!error.contains("344") && !error.contains("NESK"), "{line}: {error}");
        }
        let error = KeyRing::from_toml(domain).unwrap_err().to_string();
        assert!(error.ends_with(": missing field `keys`"), "{error}");
    }
}
