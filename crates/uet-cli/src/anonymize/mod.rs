//! Replaces what identifies a network, its hosts and its data in packets, and keeps what judges them.
//!
//! | file | contents |
//! | --- | --- |
//! | `mapping.rs` | which value replaces which: permutations that a key selects |
//! | `extensions.rs` | IPv6 extension headers |
//! | this one | where the values stand in a frame, and the checksums that cover them |

mod extensions;
mod mapping;

pub use mapping::Mapping;

use crate::checksum::{UdpSum, nonzero, sum};
use std::collections::BTreeMap;
use uet_packet_io::in_the_clear;
use uet_packet_io::json::{Decoded, Record};
use uet_wire::outer::{Ip, Ipv4, Ipv6};
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
            let is_unparsed = offsets.rest == Some(at);
            for field in layout.fields().filter(|field| field.exists(header)) {
                let name = field.row.name;
                // They tell about bytes that are replaced. Those of parsed headers are computed anew below.
                let is_checksum = matches!(name, "ip.checksum" | "udp.checksum" | "crc" | "icv");
                match field.read(header).map(|value| self.mapping.field(name, field.row.width(), value)) {
                    Some(None) if is_checksum && is_unparsed => {
                        field.write(place, 0);
                    }
                    Some(None) => {}
                    Some(Some(value)) => {
                        field.write(place, value);
                        *self.replaced.entry(name).or_default() += 1;
                    }
                    // The packet ends within the field.
                    None if is_checksum || self.mapping.is_replaced(name) => {
                        // Without UET headers, a cut ICV starts where they would. Their first byte has the type, which
                        // tells that the packet is secured.
                        let kept = usize::from(name == "icv" && offsets.uet.is_none());
                        place.iter_mut().skip(kept.max(field.lo() / 8)).for_each(|byte| *byte = 0);
                    }
                    None => {}
                }
            }
            // The bytes that could not be parsed begin with this header.
            if is_unparsed {
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
        if let (Some(Ip::V6 { header, extensions }), Some(ip)) = (packet.ip, offsets.ip) {
            let place =
                new.get_mut(ip + Ipv6::LAYOUT.bytes..).and_then(|rest| rest.get_mut(..extensions.len()));
            extensions::replace(&self.mapping, header.next_header(), place.unwrap_or_default());
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

/// Sets the checksums and the CRC after the replacement. A right one stays right. The difference of a wrong one to the
/// right one would tell the sum of the old bytes, so a wrong one becomes 0 or has the same difference always.
fn repair(decoded: &Decoded<'_>, new: &mut [u8]) {
    let (old, packet, offsets) = (decoded.record.bytes, &decoded.packet, decoded.packet.offsets());
    let (Some(header), Some(ip)) = (packet.ip, offsets.ip) else { return };
    let end = ip + packet.ip_packet.len();
    if let Ip::V4 { header, options } = header {
        let right =
            |frame: &[u8]| !sum(frame, &[ip..ip + 10, ip + 12..ip + Ipv4::LAYOUT.bytes + options.len()], 0);
        let right_now = right(new);
        let checksum = match header.checksum() {
            checksum if checksum == right(old) => right_now,
            // Left to the NIC.
            0 if right_now != 0 => 0,
            _ => nonzero(right_now ^ WRONG as u16),
        };
        put(new, ip + 10, checksum);
    }
    let crc = old_crc(packet, decoded.view().trailer, old.get(ip..end));
    let sent = packet.udp.map_or(0, |udp| udp.checksum());
    if let Some(covered) = UdpSum::of(packet).filter(|_| sent != 0) {
        let checksum = if covered.is_whole() && sent == covered.right(old) {
            covered.right(new)
        } else if sent == covered.pseudo(old) {
            covered.pseudo(new)
        } else {
            nonzero(covered.right(new) ^ WRONG as u16)
        };
        put(new, covered.at + 6, checksum);
    }
    if let (Some(crc), Some(new)) = (crc, new.get_mut(ip..end)) {
        crc.write(new);
    }
}

/// The difference of wrong checksums and CRCs to the right ones.
const WRONG: u32 = 0x5a5a_5a5a;

fn put(frame: &mut [u8], at: usize, checksum: u16) {
    if let Some(place) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = checksum.to_be_bytes();
    }
}

/// The CRC at the end of a packet, as the old packet had it.
enum OldCrc {
    Right,
    /// In reverse byte order.
    Reversed,
    /// Right if the UDP checksum at this offset of the IP packet counts as 0.
    WithoutChecksum(usize),
    /// Left to the NIC.
    Zero,
    Wrong,
}

/// Returns how the CRC of an IP packet stands to the right one. Without a configured trailer, only a right
/// one counts.
fn old_crc(packet: &Packet<'_>, trailer: TrailerKind, ip_packet: Option<&[u8]>) -> Option<OldCrc> {
    let (covered, last) = ip_packet?.split_last_chunk()?;
    let has_trailer = trailer == TrailerKind::Crc && packet.trailer.len() == last.len();
    if !has_trailer && (packet.sliced.is_some() || packet.trimmed.is_some()) {
        return None;
    }
    let (right, value) = (crc::over_ip_packet(covered)?, u32::from_be_bytes(*last));
    let offsets = packet.offsets();
    let checksum = offsets.transport.zip(offsets.ip).and_then(|(udp, ip)| Some(udp.checked_sub(ip)? + 6));
    let checksum = checksum.filter(|_| packet.udp.is_some());
    let checksum = checksum.filter(|at| crc_without_checksum(covered, *at) == Some(value));
    if value == right {
        Some(OldCrc::Right)
    } else if value.swap_bytes() == right {
        Some(OldCrc::Reversed)
    } else if let Some(checksum) = checksum {
        Some(OldCrc::WithoutChecksum(checksum))
    } else {
        has_trailer.then_some(if value == 0 { OldCrc::Zero } else { OldCrc::Wrong })
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
        let value = match self {
            OldCrc::Right => right,
            OldCrc::Reversed => right.swap_bytes(),
            OldCrc::WithoutChecksum(checksum) => crc_without_checksum(covered, *checksum).unwrap_or(right),
            OldCrc::Zero => 0,
            OldCrc::Wrong => right ^ WRONG,
        };
        *last = value.to_be_bytes();
    }
}
