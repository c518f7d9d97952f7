//! A ladder diagram: the packets and decisions of two endpoints, as plain text.

use crate::{Packet, Time};
use core::fmt::{self, Display, Formatter};
use core::net::IpAddr;
use uet_wire::Uet;

/// The fate of a packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet arrives.
    Arrives,
    /// The packet is lost.
    Lost,
}

/// A ladder with two sides. Packets cross it, and notes stand on the side of their endpoint.
///
/// ```
/// use bytes::Bytes;
/// use uet_model::ladder::{Fate, Ladder};
/// use uet_model::{Packet, Time};
///
/// let mut ladder = Ladder::new(("A", [10, 0, 0, 1].into()), ("B", [10, 0, 1, 12].into()));
/// let ack = Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let ack = Packet::from_wire([10, 0, 1, 12], [10, 0, 0, 1], ack)?;
/// ladder.note(Time(1_500), ack.src, "ACK of 7: the packet requested it");
/// ladder.packet(Time(1_500), &ack, Fate::Arrives);
/// assert_eq!(ladder.to_string().lines().count(), 3);
/// assert!(ladder.to_string().contains("|<-- ACK PSN 7 CACK 7 0x8001 > 0x4001 ---"), "{ladder}");
/// # Ok::<(), uet_wire::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ladder {
    names: [&'static str; 2],
    left: IpAddr,
    lines: Vec<LadderLine>,
}

#[derive(Clone, Debug)]
struct LadderLine {
    at: Time,
    /// True if it belongs to the left side.
    left: bool,
    text: String,
    across: Option<Fate>,
}

/// The number of columns between the two sides.
const WIDTH: usize = 84;

impl Ladder {
    /// Creates an empty ladder between two named addresses.
    pub fn new((left, address): (&'static str, IpAddr), (right, _): (&'static str, IpAddr)) -> Self {
        Ladder { names: [left, right], left: address, lines: Vec::new() }
    }

    /// Adds a packet from one side to the other.
    pub fn packet(&mut self, at: Time, packet: &Packet, fate: Fate) {
        let bytes = packet.to_wire();
        let mut text = Uet::parse_lax(&bytes).0.to_string();
        if packet.marked {
            text += ", ECN";
        }
        if packet.trimmed.is_some() {
            text += ", trimmed";
        }
        let left = packet.src == self.left;
        self.lines.push(LadderLine { at, left, text, across: Some(fate) });
    }

    /// Adds a note on one side.
    pub fn note(&mut self, at: Time, address: IpAddr, text: impl Display) {
        let left = address == self.left;
        self.lines.push(LadderLine { at, left, text: text.to_string(), across: None });
    }
}

impl Display for Ladder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [left, right] = self.names;
        writeln!(f, "{:>12}  {left:<WIDTH$}{right}", "us")?;
        let mut before = None;
        for line in &self.lines {
            let at = line.at.0;
            match before.replace(at) == Some(at) {
                true => write!(f, "{:>12}  ", "")?,
                false => write!(f, "{:>8}.{:03}  ", at / 1000, at % 1000)?,
            }
            line.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for LadderLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match (self.across, self.left) {
            (None, true) => writeln!(f, "| {text}"),
            (None, false) => writeln!(f, "|{text:>width$} |", width = WIDTH - 3),
            (Some(Fate::Arrives), true) => writeln!(f, "|-- {:-<width$}->|", spaced(text), width = WIDTH - 7),
            (Some(Fate::Lost), true) => writeln!(f, "|-- {:-<width$}X  |", spaced(text), width = WIDTH - 8),
            (Some(Fate::Arrives), false) => writeln!(f, "|<-- {:-<width$}|", spaced(text), width = WIDTH - 6),
            (Some(Fate::Lost), false) => writeln!(f, "|  X-- {:-<width$}|", spaced(text), width = WIDTH - 8),
        }
    }
}

fn spaced(text: &str) -> String {
    format!("{text} ")
}
