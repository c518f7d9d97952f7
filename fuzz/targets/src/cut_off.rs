//! Whoever is shown something may have had enough of it.

use std::fmt::{self, Display, Write};

/// Takes so many bytes of text, and then refuses.
struct Room(usize);

impl Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// Shown where there is too little room, it says so and does not panic; where there is enough, it is all there.
/// `choice` picks the room.
pub(crate) fn cut_off(shown: impl Display, choice: usize) {
    let whole = shown.to_string().len();
    let room = choice % (whole + 1);
    assert_eq!(write!(Room(room), "{shown}").is_ok(), room == whole);
}
