//! Changes of a packet: drawn at random, saved, and made.

use crate::draw::Source;
use serde::{Deserialize, Serialize};
use uet_control::Hex;
use uet_wire::layout::Layout;
use uet_wire::{Options, Packet, Start};

/// A change of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case", deny_unknown_fields)]
pub enum Edit {
    /// Sets a field to this value.
    Set {
        /// The header, by the name of its layout.
        header: String,
        /// The field, by its key.
        field: String,
        /// The value: up to 128 bits, as hexadecimal digits.
        value: String,
    },
    /// Adds this number to a field.
    Add {
        /// The header.
        header: String,
        /// The field.
        field: String,
        /// The difference.
        by: i64,
    },
    /// Flips a bit.
    Flip {
        /// Counted from the first of UET.
        bit: usize,
    },
    /// Truncates the packet.
    Cut {
        /// Number of bytes that stay.
        left: usize,
    },
    /// Appends bytes.
    Grow {
        /// The bytes.
        bytes: Hex,
    },
    /// Sends the packet twice.
    Twice,
    /// Sends the packet with a congestion mark.
    Mark,
}

impl Edit {
    /// Draws a change of a packet. Returns `None` if it draws a header without fields.
    ///
    /// ```
    /// use uet_conformance::Edit;
    ///
    /// let ack = vec![0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1];
    /// let mut rng = fastrand::Rng::with_seed(7);
    /// let edits: Vec<Edit> = (0..20).filter_map(|_| Edit::draw(&ack, &mut rng)).collect();
    /// let mut changed = ack.clone();
    /// edits.iter().for_each(|edit| edit.apply(&mut changed));
    /// assert_ne!(changed, ack);
    /// ```
    pub fn draw(bytes: &[u8], source: &mut impl Source) -> Option<Edit> {
        Some(match source.below(16) {
            0 => Edit::Flip { bit: source.index(bytes.len() * 8) },
            1 => Edit::Cut { left: source.index(bytes.len()) },
            2 => {
                let count = source.within(1..=63);
                Edit::Grow { bytes: Hex((0..count).map(|_| source.below(256) as u8).collect()) }
            }
            3 => Edit::Twice,
            4 => Edit::Mark,
            _ => field(bytes, source)?,
        })
    }

    /// Returns random bytes, some with a valid start.
    pub fn noise(source: &mut impl Source) -> Vec<u8> {
        let length = match source.below(5) {
            length @ 0..=1 => length,
            2 => source.within(2..=11),
            3 => source.within(12..=127),
            _ => source.within(128..=1499),
        };
        let mut bytes: Vec<u8> = (0..length).map(|_| source.below(256) as u8).collect();
        if let (Some(first), true) = (bytes.first_mut(), source.flip()) {
            // The defined PDS types.
            *first = (source.within(1..=13) as u8) << 3 | *first & 7;
        }
        bytes
    }

    /// Changes the bytes of a packet. Copies and marks are up to the sender.
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Edit::Set { header, field, value } => {
                let digits = value.trim_start_matches("0x");
                if let Ok(value) = u128::from_str_radix(digits, 16) {
                    change(bytes, header, field, |_| value);
                }
            }
            Edit::Add { header, field, by } => {
                change(bytes, header, field, |now| now.wrapping_add_signed((*by).into()))
            }
            Edit::Flip { bit } => {
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 0x80 >> (bit % 8);
                }
            }
            Edit::Cut { left } => bytes.truncate(*left),
            Edit::Grow { bytes: more } => bytes.extend(&more.0),
            Edit::Twice | Edit::Mark => {}
        }
    }
}

fn change(bytes: &mut [u8], header: &str, field: &str, value: impl Fn(u128) -> u128) {
    let packet = Packet::parse_lax(Start::Uet, bytes, &Options::DEFAULT).0;
    let mut start = 0;
    let mut found: Option<(usize, &'static Layout)> = None;
    for (layout, part) in packet.headers() {
        if layout.name == header {
            found = Some((start, layout));
            break;
        }
        start += part.len();
    }
    let place = found.and_then(|(start, layout)| Some((start, layout.place(field)?)));
    if let Some((start, place)) = place {
        let header = bytes.get_mut(start..).unwrap_or_default();
        if let Some(now) = place.read(header) {
            let mask = u128::MAX >> (128 - place.row.width());
            place.write(header, value(now) & mask);
        }
    }
}

/// Returns a new value for a random field of a header.
fn field(bytes: &[u8], source: &mut impl Source) -> Option<Edit> {
    let packet = Packet::parse_lax(Start::Uet, bytes, &Options::DEFAULT).0;
    let (layout, header) = packet.headers().nth(source.index(packet.headers().count()))?;
    let place = layout.places().nth(source.index(layout.places().count()))?;
    let now = place.read(header)?;
    let (pick, random) = (source.below(1 << 12), u128::from(source.any()));
    let value = place.notable(now, pick, random << 64 | random);
    let (header, field) = (layout.name.to_owned(), layout.key(&place).to_string());
    Some(match value.wrapping_sub(now) as i128 {
        by @ (1 | -1) => Edit::Add { header, field, by: by as i64 },
        _ => Edit::Set { header, field, value: format!("{value:#x}") },
    })
}
