//! Output that fails after some bytes.

use std::fmt::{self, Display, Write};

/// A writer that accepts this many bytes of text and then fails.
struct Room(usize);

impl Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// Displays a value with limited space. With too little, it returns an error and does not panic; otherwise the text is
/// complete. `choice` selects the space.
pub(crate) fn cut_off(shown: impl Display, choice: usize) {
    let whole = shown.to_string().len();
    let room = choice % (whole + 1);
    assert_eq!(write!(Room(room), "{shown}").is_ok(), room == whole);
}
