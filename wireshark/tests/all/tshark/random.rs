//! Pseudo-random packets, identical in each run.

use super::Captured;
use arbitrary::{Arbitrary, Unstructured};
use uet_wire::layout::{self, Layout, Place};
use uet_wire::validate::{Condition, Quantity, Relation, Rule};
use uet_wire::{FrameBuilder, Uet, UetBuf};

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    pub(crate) fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// Returns bytes that are often 0 or small, where rules have their limits.
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let sparse = self.below(4);
        let each = (0..count).map(|_| match sparse {
            0 => self.below(256),
            1 if self.below(3) > 0 => 0,
            2 if self.below(8) > 0 => 0,
            3 => self.below(5),
            _ => self.below(256),
        });
        each.map(|byte| byte as u8).collect()
    }

    /// Returns a UET packet that parses, with arbitrary field values.
    fn uet(&mut self) -> Vec<u8> {
        let noise = self.bytes(400);
        let mut packet = UetBuf::arbitrary(&mut Unstructured::new(&noise)).unwrap();
        let length = if self.chance(3) { 0 } else { self.below(96) as usize };
        packet.payload = self.bytes(length);
        if self.chance(2) {
            self.make_lengths_true(&mut packet);
        }
        packet.consistent().to_bytes()
    }

    /// Makes the lengths of half of the packets correct, or nearly so, since random lengths never are.
    fn make_lengths_true(&mut self, packet: &mut UetBuf) {
        use uet_wire::ses::SesBuf;
        let length = packet.payload.len() as u32;
        let total = length + self.below(3) as u32 * 64;
        let offset = total.saturating_sub(length + self.below(2) as u32);
        match &mut packet.ses {
            Some(SesBuf::Std(header)) => {
                let edit = header.edit().request_length(total);
                let edit = if header.head().som() {
                    edit
                } else {
                    edit.payload_length(length as u16).message_offset(offset)
                };
                *header = edit.done().unwrap();
            }
            Some(SesBuf::Medium(header)) => {
                *header = header.edit().request_length(total as u16).done().unwrap()
            }
            Some(SesBuf::Small(header)) => {
                *header = header.edit().request_length(total as u16).done().unwrap()
            }
            Some(SesBuf::ResponseData(header)) => {
                let edit = header.edit().payload_length(length as u16).message_offset(offset);
                *header = edit.modified_length(total).done().unwrap();
            }
            Some(SesBuf::ResponseDataSmall(header)) => {
                *header = header.edit().payload_length(length as u16).done().unwrap();
            }
            _ => {}
        }
    }

    /// Returns a packet with a header of this kind that meets the conditions of a rule, except the one that `miss`
    /// names. This works for conditions on a single field.
    pub(crate) fn near(&mut self, rule: &Rule, header: &Layout, miss: Option<usize>) -> Vec<u8> {
        let (mut bytes, at) = loop {
            let bytes = self.uet();
            if let Some(at) = place_of(&Uet::parse_lax(&bytes).0, header) {
                break (bytes, at);
            }
        };
        for (index, condition) in rule.broken.iter().enumerate() {
            // The second of two fields gets its minimum or maximum.
            let (Condition::In(name, _)
            | Condition::Bits(name, _)
            | Condition::Is(Quantity::Field(name), _, Quantity::Number(_))
            | Condition::Is(_, _, Quantity::Field(name))) = condition
            else {
                continue;
            };
            if let Condition::Is(Quantity::Sum(first, _), ..) = condition {
                make_exist(header, first, &mut bytes[at..]);
            }
            make_exist(header, name, &mut bytes[at..]);
            let Some(place) = field(header, name) else { continue };
            let (width, holds) = (place.row.width(), miss != Some(index));
            let value = match condition {
                Condition::In(_, values) => {
                    let values = if holds { *values } else { values.not() };
                    let values: Vec<_> = values.iter(width).collect();
                    values.get(self.below(values.len() as u64) as usize).copied().unwrap_or(0).into()
                }
                Condition::Bits(_, bits) if holds => {
                    1 << (0..width.min(64)).find(|bit| bits >> bit & 1 == 1).unwrap_or(0)
                }
                Condition::Is(_, _, Quantity::Number(number)) if holds => *number as u128,
                Condition::Is(_, relation, Quantity::Number(number)) => match relation {
                    Relation::Equals => *number as u128 + 1,
                    _ => (*number - 1) as u128,
                },
                Condition::Is(_, _, Quantity::Field(_)) if !holds => u128::MAX,
                _ => 0,
            };
            place.write(&mut bytes[at..], value & (u128::MAX >> (128 - width)));
        }
        bytes
    }

    /// Returns a frame. Some frames have changed bytes, a truncated packet with matching lengths, a trim, or a snap
    /// length.
    pub(crate) fn frame(&mut self, trailer: Trailer, damaged: bool) -> Captured {
        let uet = self.uet();
        self.around(uet, trailer, damaged)
    }

    /// Adds the outer layers to a packet.
    pub(crate) fn around(&mut self, mut uet: Vec<u8>, trailer: Trailer, damaged: bool) -> Captured {
        if damaged {
            for _ in 0..self.below(4) {
                let place = self.below(uet.len() as u64) as usize;
                uet[place] = self.below(256) as u8;
            }
            if self.chance(3) {
                uet.truncate(self.below(uet.len() as u64 + 1) as usize);
            }
        }
        if trailer == Trailer::Icv {
            uet.extend(self.bytes(16));
        }
        // An entropy value may equal the port of another protocol.
        let entropy = if self.chance(8) { 53 } else { 49_152 + self.below(16_384) as u16 };
        let native = self.chance(4);
        let v6 = self.chance(3);
        let frame = FrameBuilder::opaque(&uet).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let frame = if native { frame.native(entropy) } else { frame.udp(entropy) };
        let host = self.below(4) as u8;
        let options = [1; 8];
        let frame = if v6 {
            let address = |last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
            frame.ipv6(address(1 + host), address(9))
        } else {
            let frame = frame.ipv4([10, 0, 0, 1 + host], [10, 0, 1, 9]);
            if self.chance(6) { frame.ipv4_options(&options) } else { frame }
        };
        let frame = if trailer == Trailer::Crc { frame.crc() } else { frame };
        let tags = [100, 200];
        let frame =
            frame.vlans(&tags[..self.below(3) as usize]).dscp(self.below(64) as u8).ecn(self.below(4) as u8);
        let frame = if self.chance(4) { frame.pad_to(60 + self.below(200) as usize) } else { frame };
        let mut bytes = vec![0; frame.len()];
        frame.emit(&mut bytes).unwrap();
        if !damaged {
            return Captured::whole(bytes);
        }
        if trailer == Trailer::Crc && self.chance(4) {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
        }
        let mut captured = Captured::whole(bytes);
        if self.chance(4) {
            self.trim(&mut captured);
        } else if self.chance(4) {
            let headers = 14 + 8 + 40 + 8;
            let kept = (headers + self.below(80) as usize).min(captured.bytes.len());
            captured.bytes.truncate(kept);
        }
        captured
    }

    /// Trims a packet as a switch does: the IP length is less than the UDP length.
    fn trim(&mut self, captured: &mut Captured) {
        let bytes = &mut captured.bytes;
        let tags = (0..2).take_while(|tag| bytes[12 + 4 * tag..14 + 4 * tag] == [0x81, 0]).count();
        let ip = 14 + 4 * tags;
        let (header, at) =
            if bytes[ip] >> 4 == 4 { (usize::from(bytes[ip] & 15) * 4, ip + 2) } else { (40, ip + 4) };
        let stated = usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
        let total = if header == 40 && bytes[ip] >> 4 == 6 { stated + 40 } else { stated };
        let kept = header + 8 + self.below((total - header).saturating_sub(8) as u64 + 1) as usize;
        if kept >= total {
            return;
        }
        let says = if bytes[ip] >> 4 == 6 { kept - 40 } else { kept };
        bytes[at..at + 2].copy_from_slice(&(says as u16).to_be_bytes());
        bytes.truncate(ip + kept);
        captured.wire = captured.bytes.len();
    }
}

fn field(header: &Layout, name: &str) -> Option<Place> {
    layout::ALL.iter().find(|layout| layout.name == header.name)?.field(name)
}

/// Sets the deciding field so that this field exists.
fn make_exist(header: &Layout, name: &str, bytes: &mut [u8]) {
    let Some(when) = field(header, name).and_then(|place| place.row.when) else { return };
    let Some(deciding) = field(header, when.name) else { return };
    if !deciding.read(bytes).is_some_and(|value| when.values.contains(value)) {
        let value = when.values.iter(deciding.row.width()).next().unwrap_or(0);
        deciding.write(bytes, value.into());
    }
}

/// Returns the offset of a packet's header of this kind.
fn place_of(packet: &Uet<'_>, header: &Layout) -> Option<usize> {
    let layouts = [
        packet.tss.map(|it| it.layout()),
        packet.pds.map(|it| it.layout()),
        packet.ses.map(|it| it.layout()),
        packet.ext.map(|it| it.layout()),
    ];
    let index = layouts.iter().position(|layout| layout.is_some_and(|it| it.name == header.name))?;
    Some(packet.parts()[..index].iter().map(|part| part.len()).sum())
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trailer {
    None,
    Crc,
    Icv,
}
