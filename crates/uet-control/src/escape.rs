use serde_json::Value;
use std::borrow::Cow;

/// Returns true if a character could move the cursor, color the terminal, reorder the text or hide in it. These are
/// controls, line separators, and invisible characters: formatting, bidirectional ones, fillers of Hangul, variation
/// selectors, and U+FFFE and U+FFFF, which XML lacks.
fn is_unsafe(found: char) -> bool {
    found.is_control()
        || matches!(
            found,
            '\u{ad}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..='\u{e007f}'
                | '\u{e0100}'..='\u{e01ef}'
        )
}

/// Escapes unsafe characters in untrusted text, such as `\u{1b}` for ESC. The result is one line.
///
/// Use it for text from a device, a packet, a file or an argument before the text reaches a terminal.
///
/// ```
/// assert_eq!(uet_control::escape("nic\x1b[31m \u{202e}cin"), r"nic\u{1b}[31m \u{202e}cin");
/// assert_eq!(uet_control::escape("größer: 9 µs"), "größer: 9 µs");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let escaped = |found: char| match is_unsafe(found) {
        true => found.escape_default().to_string(),
        false => found.to_string(),
    };
    text.chars().map(escaped).collect::<String>().into()
}

/// Escapes text of several lines and keeps line feeds.
pub fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

/// Escapes unsafe characters in the strings of a JSON text with `\\uXXXX`. JSON parsers read the same value.
///
/// ```
/// assert_eq!(uet_control::escape_json("{\"a\":\"\u{202e}\"}"), r#"{"a":"\u202e"}"#);
/// ```
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_foreign = |found: char| is_unsafe(found) && found != '\n';
    if !json.contains(is_foreign) {
        return json.into();
    }
    let escaped = |found: char| match is_foreign(found) {
        true => found.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        false => found.to_string(),
    };
    json.chars().map(escaped).collect::<String>().into()
}

/// Escapes every string of a JSON value, including keys.
pub fn escape_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(escaped) = escape(text) {
                *text = escaped;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(escape_value),
        Value::Object(fields) => {
            fields.values_mut().for_each(escape_value);
            if fields.keys().any(|key| key.contains(is_unsafe)) {
                let old = core::mem::take(fields);
                fields.extend(old.into_iter().map(|(key, value)| (escape(&key).into_owned(), value)));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_unsafe_character_is_left() {
        let hostile =
            "a\0\x07\x1b]0;t\x07\r\n\t\x7f\u{9b}31m\u{202e}\u{2066}\u{200f}\u{2028}\u{feff}\u{e0041}z";
        let escaped = escape(hostile);
        assert!(escaped.starts_with('a') && escaped.ends_with('z'));
        assert!(!escaped.contains(is_unsafe), "{escaped}");
        assert_eq!(escape_lines("a\x1b\nb"), "a\\u{1b}\nb");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        for invisible in
            "\u{115f}\u{1160}\u{3164}\u{fe00}\u{fe0f}\u{ffa0}\u{fffe}\u{ffff}\u{e0100}\u{e01ef}".chars()
        {
            let escaped = invisible.escape_unicode().to_string();
            assert_eq!(escape(&invisible.to_string()), escaped);
        }
        assert_eq!(escape_json("\"\u{e0100}\u{fffe}\""), r#""\udb40\udd00\ufffe""#);
    }

    #[test]
    fn keys_and_strings_of_json_are_escaped() {
        let mut value = serde_json::json!({"a\x1b": ["b\u{202e}", {"c": "\u{9b}"}], "d": 1});
        escape_value(&mut value);
        assert_eq!(value, serde_json::json!({"a\\u{1b}": ["b\\u{202e}", {"c": "\\u{9b}"}], "d": 1}));
    }
}
