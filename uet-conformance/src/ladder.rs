use core::fmt;
use core::time::Duration;
use uet_wire::Uet;

/// What has passed in a case, in order.
#[derive(Clone, Debug, Default)]
pub struct Ladder {
    /// The steps.
    pub entries: Vec<(Duration, Entry)>,
}

/// A step of a [`Ladder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The suite sent this packet.
    Sent(Vec<u8>),
    /// The device sent this packet.
    Received(Vec<u8>),
    /// Something else: an operation of the control channel, what a case is about to do.
    Note(String),
}

impl Ladder {
    pub(crate) fn add(&mut self, at: Duration, entry: Entry) {
        self.entries.push((at, entry));
    }
}

/// A line per step: number of the packet, microseconds, direction, sentence. The suite is on the left.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = 0;
        for (at, entry) in &self.entries {
            let micros = at.as_nanos() / 1000;
            let (arrow, bytes) = match entry {
                Entry::Sent(bytes) => ("-->", bytes),
                Entry::Received(bytes) => ("<--", bytes),
                Entry::Note(text) => {
                    writeln!(f, "    {micros:>10}      {text}")?;
                    continue;
                }
            };
            number += 1;
            write!(f, "{number:>3} {micros:>10} {arrow}  ")?;
            match Uet::parse_lax(bytes) {
                (uet, None) => writeln!(f, "{uet}")?,
                (uet, Some(error)) => writeln!(f, "{uet} ({error})")?,
            }
        }
        Ok(())
    }
}
