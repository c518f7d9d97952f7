use crate::Wire;
use core::fmt;
use core::time::Duration;
use serde::{Serialize, Serializer};
use uet_wire::Uet;

/// Steps that an excerpt of a trace keeps at either end.
const ENDS: usize = 150;

/// The trace of an instance: everything that passed, in order. In JSON it is the text of [`excerpt`](Self::excerpt).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    /// The steps.
    pub entries: Vec<(Duration, Entry)>,
}

/// A step of a [`Ladder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The suite sent this packet.
    Sent(Wire),
    /// The device sent this packet.
    Received(Wire),
    /// Something else: an operation of the control channel, what a case is about to do.
    Note(String),
}

impl Ladder {
    pub(crate) fn add(&mut self, at: Duration, entry: Entry) {
        self.entries.push((at, entry));
    }

    /// Keeps the first steps only, and notes how many are gone.
    pub(crate) fn cut(&mut self, kept: usize) {
        let Some(gone) = self.entries.len().checked_sub(kept).filter(|gone| *gone > 0) else { return };
        self.entries.truncate(kept);
        let at = self.entries.last().map_or(Duration::ZERO, |(at, _)| *at);
        self.add(at, Entry::Note(format!("{gone} more steps are not shown")));
    }

    /// The packets, with their times. The first has number 1.
    pub fn packets(&self) -> impl Iterator<Item = (Duration, &Wire)> {
        self.entries.iter().filter_map(|(at, entry)| match entry {
            Entry::Sent(wire) | Entry::Received(wire) => Some((*at, wire)),
            Entry::Note(_) => None,
        })
    }

    /// Those that the device sent, with their numbers among all.
    pub fn of_the_device(&self) -> impl Iterator<Item = (usize, &Wire)> {
        let packets = self.entries.iter().filter(|(_, entry)| !matches!(entry, Entry::Note(_)));
        packets.zip(1..).filter_map(|((_, entry), number)| match entry {
            Entry::Received(wire) => Some((number, wire)),
            _ => None,
        })
    }
}

impl Ladder {
    /// The text of the trace. A long one loses its middle, so that a report stays small.
    pub fn excerpt(&self) -> String {
        let text = self.to_string();
        let lines: Vec<&str> = text.lines().collect();
        match lines.len().checked_sub(2 * ENDS).filter(|gone| *gone > 0) {
            None => text,
            Some(gone) => {
                let (first, last) = (lines[..ENDS].join("\n"), lines[lines.len() - ENDS..].join("\n"));
                format!("{first}\n    {gone} steps are not shown; --traces writes all\n{last}\n")
            }
        }
    }
}

/// A line per step: number of the packet, microseconds, direction, sentence. The suite is on the left.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = 0;
        for (at, entry) in &self.entries {
            let micros = at.as_nanos() / 1000;
            let (arrow, wire) = match entry {
                Entry::Sent(wire) => ("-->", wire),
                Entry::Received(wire) => ("<--", wire),
                Entry::Note(text) => {
                    writeln!(f, "    {micros:>10}      {text}")?;
                    continue;
                }
            };
            number += 1;
            write!(f, "{number:>3} {micros:>10} {arrow}  ")?;
            match Uet::parse_lax(&wire.bytes) {
                (uet, None) => writeln!(f, "{uet}")?,
                (uet, Some(error)) => writeln!(f, "{uet} ({error})")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Ladder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.excerpt())
    }
}
