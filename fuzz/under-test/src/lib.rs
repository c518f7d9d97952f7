//! External parsers: one C function, compared with the codec field by field.
//!
//! `uet_under_test.h` describes the arguments and results of such a function; it is generated from the codec's tables
//! ([`header`]). [`Parser::compare`] panics if the two disagree, and names the difference.

use std::fmt::Write;
use uet_fuzz::Input;
use uet_wire::layout::Layout;
use uet_wire::outer::{Entropy, Ethernet, Ipv4, Ipv6, Udp, Vlan};
use uet_wire::pds::Pds;
use uet_wire::ses::{Ext, Ses};
use uet_wire::tss::Tss;
use uet_wire::{Content, Packet, Start};

/// Number of fields; a test compares it with the tables.
const FIELDS: usize = 120;

/// `struct uet_view` of the C header.
#[repr(C)]
struct View {
    state: [u8; FIELDS],
    value: [Value; FIELDS],
    payload_state: u8,
    payload_offset: usize,
    payload_length: usize,
}

/// Up to 128 bits, right-aligned.
#[repr(C)]
#[derive(Clone, Copy)]
struct Value {
    high: u64,
    low: u64,
}

const PRESENT: u8 = 1;
const NOT_REPORTED: u8 = 2;

type Function = unsafe extern "C" fn(*const u8, usize, *mut View) -> i32;

/// A parser with the interface of `uet_under_test.h`.
#[derive(Clone, Copy, Debug)]
pub struct Parser(Function);

unsafe extern "C" {
    fn uet_example_0(bytes: *const u8, length: usize, view: *mut View) -> i32;
    fn uet_example_1(bytes: *const u8, length: usize, view: *mut View) -> i32;
    fn uet_example_2(bytes: *const u8, length: usize, view: *mut View) -> i32;
    fn uet_example_3(bytes: *const u8, length: usize, view: *mut View) -> i32;
    #[cfg(feature = "yours")]
    fn uet_parse_under_test(bytes: *const u8, length: usize, view: *mut View) -> i32;
}

impl Parser {
    /// The correct example, and one with each of its planted bugs.
    pub const EXAMPLES: [Parser; 4] =
        [Parser(uet_example_0), Parser(uet_example_1), Parser(uet_example_2), Parser(uet_example_3)];

    /// The parser that was linked.
    #[cfg(feature = "yours")]
    pub const YOURS: Parser = Parser(uet_parse_under_test);

    /// Parses the same bytes with the parser and the codec. Panics if the results differ.
    pub fn compare(self, start: Start, bytes: &[u8]) {
        if let Some(difference) = self.difference(start, bytes) {
            panic!("{difference}\nin the packet {}", Hex(bytes));
        }
    }

    /// Returns the difference between parser and codec, if any.
    pub fn difference(self, start: Start, bytes: &[u8]) -> Option<String> {
        let mut view = View {
            state: [0; FIELDS],
            value: [Value { high: 0, low: 0 }; FIELDS],
            payload_state: NOT_REPORTED,
            payload_offset: 0,
            payload_length: 0,
        };
        // SAFETY: pointer and length are those of `bytes`, and `View` has the layout of the header. The parser promises
        // to read no further; AddressSanitizer reports a violation.
        let answer = unsafe { (self.0)(bytes.as_ptr(), bytes.len(), &mut view) };
        let packet = Packet::parse(start, bytes, &uet_wire::Options::DEFAULT);
        match (answer, packet) {
            (..0, _) => None, // the parser does not judge this packet
            (0, Err(error)) => Some(format!("the parser reads what the codec refuses: {error}")),
            (0, Ok(packet)) => compare(&view, &packet),
            (_, Err(_)) => None,
            (_, Ok(_)) => Some("the parser refuses what the codec reads".to_owned()),
        }
    }
}

fn compare(view: &View, packet: &Packet<'_>) -> Option<String> {
    for (index, name) in fields().iter().enumerate() {
        if view.state[index] == NOT_REPORTED {
            continue;
        }
        let Value { high, low } = view.value[index];
        let theirs = (view.state[index] == PRESENT).then_some(u128::from(high) << 64 | u128::from(low));
        let mut present = packet.headers().flat_map(|(layout, header)| layout.present(header));
        let ours = present.find(|(place, _)| place.row.name == *name).map(|(_, value)| value);
        if theirs != ours {
            let show = |value: Option<u128>| value.map_or("absent".to_owned(), |value| format!("{value:#x}"));
            return Some(format!("{name}: the parser says {}, the codec {}", show(theirs), show(ours)));
        }
    }
    let (offset, length) = (packet.offsets().payload, packet.uet.payload.len());
    if view.payload_state == PRESENT && (view.payload_offset, view.payload_length) != (offset, length) {
        return Some(format!(
            "payload: the parser says {} bytes at {}, the codec {length} at {offset}",
            view.payload_length, view.payload_offset
        ));
    }
    None
}

/// Runs a parser that starts with `start` over a fuzzer's bytes, those of an [`Input`]. Skips outer layers of a packet
/// that starts earlier.
pub fn run(parser: Parser, start: Start, data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();
    if input.start == start {
        parser.compare(start, input.bytes);
    } else if start == Start::Uet && packet.content == Content::Uet {
        let offsets = packet.offsets();
        parser.compare(start, &input.bytes[offsets.uet.unwrap_or(offsets.trailer)..offsets.trailer]);
    }
}

/// Returns the names of the fields in the order of the C header.
pub fn fields() -> &'static [&'static str] {
    static FIELDS: std::sync::OnceLock<Vec<&str>> = std::sync::OnceLock::new();
    FIELDS.get_or_init(|| {
        let outer: [&Layout; 6] =
            [Ethernet::LAYOUT, Vlan::LAYOUT, Ipv4::LAYOUT, Ipv6::LAYOUT, Udp::LAYOUT, Entropy::LAYOUT];
        let mut names: Vec<&str> = Vec::new();
        for layout in [&outer[..], Tss::LAYOUTS, Pds::LAYOUTS, Ses::LAYOUTS, Ext::LAYOUTS].concat() {
            for place in layout.fields() {
                if !names.contains(&place.row.name) {
                    names.push(place.row.name);
                }
            }
        }
        names
    })
}

/// Returns the C header.
pub fn header() -> String {
    let mut text = include_str!("head.h").to_owned();
    for name in fields() {
        let constant = name.replace('.', "_").to_uppercase();
        // A write into a text cannot fail.
        let _ = writeln!(text, "    UET_{constant}, /* {name} */");
    }
    text + include_str!("tail.h")
}

struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_are_so_many_fields() {
        assert_eq!(super::fields().len(), super::FIELDS);
    }
}
