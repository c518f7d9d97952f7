//! Replaces what identifies a network, its hosts and its data in packets, and keeps what judges them.
//!
//! | file | contents |
//! | --- | --- |
//! | `mapping.rs` | which value replaces which: permutations that a key selects |
//! | this one | where the values stand in a frame, and the checksums that cover them |

mod mapping;

pub use mapping::Mapping;

use std::collections::BTreeMap;
use uet_packet_io::in_the_clear;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::outer::{Ip, Ipv4};
use uet_wire::{Options, Packet, TrailerKind, crc};

/// Replaces values in frames, and counts them.
#[derive(Debug)]
pub struct Anonymizer {
    mapping: Mapping,
    options: Options,
    replaced: BTreeMap<&'static str, u64>,
}

/// A frame with replaced values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousFrame {
    /// The captured bytes.
    pub bytes: Vec<u8>,
    /// The length on the wire.
    pub wire: usize,
}

impl Anonymizer {
    /// Creates an anonymizer for packets of this deployment.
    pub fn new(mapping: Mapping, options: Options) -> Self {
        Anonymizer { mapping, options, replaced: BTreeMap::new() }
    }

    /// Returns the replacements of addresses and values.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns how many values of each field were replaced. `payload` counts packets.
    pub fn replaced(&self) -> &BTreeMap<&'static str, u64> {
        &self.replaced
    }

    /// Returns the frame of a packet with replaced values. A secured packet that the keys opened is returned
    /// in the clear. Returns `None` for one that they did not open.
    pub fn frame(&mut self, decoded: &Decoded<'_>) -> Option<AnonymousFrame> {
        if decoded.protection.is_none() {
            let bytes = self.replace(decoded);
            return Some(AnonymousFrame { bytes, wire: decoded.record.wire });
        }
        let clear = in_the_clear(decoded)?;
        let record = Record { bytes: &clear, wire: clear.len(), ..decoded.record };
        let bytes = self.replace(&Decoded::new(record, &self.options.trailer(TrailerKind::None), false));
        Some(AnonymousFrame { wire: bytes.len(), bytes })
    }

    fn replace(&mut self, decoded: &Decoded<'_>) -> Vec<u8> {
        let old = decoded.record.bytes;
        let (packet, offsets) = (&decoded.packet, decoded.packet.offsets());
        let mut new = old.to_vec();
        for (layout, header) in decoded.view().headers() {
            let Some(at) = decoded.offset_of(header).and_then(|at| at.checked_sub(decoded.record.link.len()))
            else {
                continue;
            };
            let Some(place) = new.get_mut(at..at + header.len()) else { continue };
            for field in layout.fields().filter(|field| field.exists(header)) {
                let name = field.row.name;
                match field.read(header).map(|value| self.mapping.field(name, field.row.width(), value)) {
                    Some(None) => {}
                    Some(Some(value)) => {
                        field.write(place, value);
                        *self.replaced.entry(name).or_default() += 1;
                    }
                    // The packet ends within the field.
                    None if self.mapping.is_replaced(name) => {
                        place.iter_mut().skip(field.lo() / 8).for_each(|byte| *byte = 0);
                    }
                    None => {}
                }
            }
            // The bytes that could not be parsed begin with this header.
            if offsets.rest == Some(at) {
                let rest = new.get_mut(at..offsets.trailer).unwrap_or_default();
                rest.iter_mut().skip(layout.bytes.min(header.len())).for_each(|byte| *byte = 0);
            }
        }
        if let (Some(Ip::V4 { options, .. }), Some(ip)) = (packet.ip, offsets.ip) {
            const NO_OPERATION: u8 = 1;
            let options =
                new.get_mut(ip + Ipv4::LAYOUT.bytes..).and_then(|rest| rest.get_mut(..options.len()));
            options.unwrap_or_default().fill(NO_OPERATION);
        }
        let payload =
            new.get_mut(offsets.payload..).and_then(|rest| rest.get_mut(..packet.uet.payload.len()));
        if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
            self.mapping.payload(payload);
            *self.replaced.entry("payload").or_default() += 1;
        }
        if decoded.view().trailer != TrailerKind::Crc {
            self.mapping.payload(new.get_mut(offsets.trailer..offsets.padding).unwrap_or_default());
        }
        new.get_mut(offsets.padding..).unwrap_or_default().fill(0);
        repair(decoded, &mut new);
        new
    }
}

/// Sets the checksums and the CRC after the replacement. Wrong ones stay wrong.
fn repair(decoded: &Decoded<'_>, new: &mut [u8]) {
    let (old, packet, offsets) = (decoded.record.bytes, &decoded.packet, decoded.packet.offsets());
    let (Some(header), Some(ip)) = (packet.ip, offsets.ip) else { return };
    let end = ip + packet.ip_packet.len();
    let (start, addresses) = match header {
        Ip::V4 { .. } => (ip + header.bytes().len() + header.extra().len(), ip + 12..ip + 20),
        Ip::V6 { .. } => (ip + 40, ip + 8..ip + 40),
    };
    if let Ip::V4 { .. } = header {
        adjust(old, new, ip + 10, core::slice::from_ref(&(ip..start)));
    }
    let unreversed = crc_of(packet, decoded.view().trailer, old.get(ip..end));
    if let (Some(udp), Some(at)) = (packet.udp.filter(|udp| udp.checksum() != 0), offsets.transport) {
        let end = (at + usize::from(udp.length())).min(end);
        adjust(old, new, at + 6, &[addresses, at..end]);
        if let Some(checksum) = new.get_mut(at + 6..at + 8).filter(|checksum| *checksum == [0, 0]) {
            // 0 means that there is none.
            checksum.fill(0xff);
        }
    }
    if let (Some(crc), Some(new)) = (unreversed, new.get_mut(ip..end)) {
        crc.write(new);
    }
}

/// Changes the checksum at `at` as the ranges have changed, which include it or not.
fn adjust(old: &[u8], new: &mut [u8], at: usize, ranges: &[core::ops::Range<usize>]) {
    let sum = |bytes: &[u8]| {
        let covered = ranges.iter().flat_map(|range| bytes.get(range.clone()).unwrap_or_default().chunks(2));
        covered.fold(0u64, |sum, word| {
            sum + u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))
        })
    };
    let Some(checksum) = old.get(at..).and_then(|rest| rest.first_chunk()) else { return };
    // RFC 1624, equation 3: the difference of ones' complement sums.
    let folded = |mut sum: u64| {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    };
    let before = 0xffff - folded(sum(old));
    let now = folded(u64::from(!u16::from_be_bytes(*checksum)) + before + sum(new));
    if let Some(place) = new.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = (!(now as u16)).to_be_bytes();
    }
}

/// The CRC at the end of a packet, as the old packet had it.
enum OldCrc {
    /// In reverse byte order.
    Reversed,
    /// Right if the UDP checksum at this offset of the IP packet counts as 0.
    WithoutChecksum(usize),
    /// With this difference to the right one.
    Difference(u32),
}

/// Returns how the CRC of an IP packet stands to the right one. Without a configured trailer, only a right
/// one counts.
fn crc_of(packet: &Packet<'_>, trailer: TrailerKind, ip_packet: Option<&[u8]>) -> Option<OldCrc> {
    let (covered, last) = ip_packet?.split_last_chunk()?;
    let has_trailer = trailer == TrailerKind::Crc && packet.trailer.len() == last.len();
    if !has_trailer && (packet.sliced.is_some() || packet.trimmed.is_some()) {
        return None;
    }
    let right = crc::over_ip_packet(covered)?;
    let difference = u32::from_be_bytes(*last) ^ right;
    let offsets = packet.offsets();
    let checksum = offsets.transport.zip(offsets.ip).and_then(|(udp, ip)| Some(udp.checked_sub(ip)? + 6));
    let checksum = checksum.filter(|at| {
        difference != 0 && packet.udp.is_some() && {
            crc_without_checksum(covered, *at) == Some(u32::from_be_bytes(*last))
        }
    });
    if u32::from_le_bytes(*last) == right {
        Some(OldCrc::Reversed)
    } else if let Some(checksum) = checksum {
        Some(OldCrc::WithoutChecksum(checksum))
    } else {
        (has_trailer || difference == 0).then_some(OldCrc::Difference(difference))
    }
}

/// Returns the CRC of the bytes of an IP packet with a UDP checksum of 0, which begins at this offset.
fn crc_without_checksum(covered: &[u8], checksum: usize) -> Option<u32> {
    let mut covered = covered.to_vec();
    covered.get_mut(checksum..checksum.checked_add(2)?)?.fill(0);
    crc::over_ip_packet(&covered)
}

impl OldCrc {
    /// Writes the CRC of the new packet.
    fn write(&self, ip_packet: &mut [u8]) {
        let Some((covered, last)) = ip_packet.split_last_chunk_mut() else { return };
        let Some(right) = crc::over_ip_packet(covered) else { return };
        *last = match self {
            OldCrc::Reversed => right.to_le_bytes(),
            OldCrc::WithoutChecksum(checksum) => {
                crc_without_checksum(covered, *checksum).unwrap_or(right).to_be_bytes()
            }
            OldCrc::Difference(difference) => (right ^ difference).to_be_bytes(),
        };
    }
}
