//! Errors about TOML files.

use toml::de::Error;
use uet_control::escape;

/// Returns the text of an error. The last line may quote a key, which may hold a line feed, so it is escaped.
pub(crate) fn shown(error: &Error) -> String {
    error.to_string().replace(error.message(), &escape(error.message()))
}
