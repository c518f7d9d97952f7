//! Computes, appends and checks the CRC-32C trailer.
//!
//! The CRC covers the packet from the IP source address to the trailer. A switch can change the traffic class, time to
//! live and checksum without updating it. Sources leave open how the CRC covers a UDP checksum other than 0: as it is, or as
//! 0. [`append`] takes it as it is, and [`Packet::crc_check`] accepts both.
//!
//! ```
//! // The CRC of 32 zero bytes is a published check value.
//! assert_eq!(uet_wire::crc::crc32c(&[0; 32]), 0x8a91_36aa);
//! ```

use crate::layout::Layer;
use crate::outer::{Ipv4, Ipv6};
use crate::trailer::Crc;
use crate::{Packet, WriteError};

/// Computes the CRC-32C of `bytes`. With the feature `crc-hardware`, uses the processor's instructions if it has them.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    over([bytes])
}

/// Computes the CRC-32C of these bytes in a row.
#[cfg(feature = "crc-hardware")]
#[inline]
fn over<const N: usize>(parts: [&[u8]; N]) -> u32 {
    parts.into_iter().fold(0, crc32c::crc32c_append)
}

#[cfg(not(feature = "crc-hardware"))]
use portable as over;

#[cfg(any(test, not(feature = "crc-hardware")))]
fn portable<const N: usize>(parts: [&[u8]; N]) -> u32 {
    static CASTAGNOLI: crc::Crc<u32, crc::Table<16>> =
        crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    let mut digest = CASTAGNOLI.digest();
    for part in parts {
        // Blocks have a constant length, so the compiler drops the bounds checks and their panics. It cannot rule
        // out overflow for the length of a whole packet.
        let blocks = part.chunks_exact(64);
        let rest = blocks.remainder();
        blocks.for_each(|block| digest.update(block));
        digest.update(rest);
    }
    digest.finalize()
}

/// Computes the CRC of an IP packet without its trailer, from the IP header on. Returns `None` if the packet ends
/// before its source address or has an unknown IP version.
pub fn over_ip_packet(packet: &[u8]) -> Option<u32> {
    Some(crc32c(from_source(packet)?))
}

/// Returns an IP packet from its source address on.
fn from_source(packet: &[u8]) -> Option<&[u8]> {
    let src = match packet.first()? >> 4 {
        4 => const { Ipv4::LAYOUT.locate("ip.src").0 / 8 },
        6 => const { Ipv6::LAYOUT.locate("ip.src").0 / 8 },
        _ => return None,
    };
    packet.get(src..)
}

/// Appends the CRC to the IP packet at `ip..end` of `buffer` and returns the new end. The lengths in the packet's
/// headers must already include the trailer.
///
/// ```
/// use uet_wire::{Options, Packet, Start, TrailerKind, crc};
///
/// // IPv4, UDP, UUD, with room for the trailer.
/// let mut bytes = [0; 36];
/// bytes[..4].copy_from_slice(&[0x45, 0, 0, 36]);
/// bytes[9] = 17;
/// bytes[22..26].copy_from_slice(&[0x12, 0xb9, 0, 16]);
/// bytes[28] = 0x30;
/// assert_eq!(crc::append(&mut bytes, 0, 32)?, 36);
///
/// let options = Options::default().trailer(TrailerKind::Crc);
/// let check = Packet::parse(Start::Ip, &bytes, &options)?.crc_check().unwrap();
/// assert!(check.ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn append(buffer: &mut [u8], ip: usize, end: usize) -> Result<usize, WriteError> {
    let covered = buffer.get(ip..end).and_then(over_ip_packet);
    let Some(value) = covered else {
        return Err(WriteError::mismatch("crc", "bytes that are not an IP packet"));
    };
    crate::frame::append(buffer, end, &value.to_be_bytes(), Layer::Trailer)
}

/// The CRC trailer of a packet and the computed CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The value in the packet.
    pub value: u32,
    /// The computed value.
    pub expected: u32,
}

impl Check {
    /// Returns true if the two values are equal.
    pub const fn ok(&self) -> bool {
        self.value == self.expected
    }
}

impl Packet<'_> {
    /// Checks the CRC trailer. Returns `None` if the packet has no CRC trailer or was parsed without its IP header.
    ///
    /// A UDP checksum may count as it is, or as 0.
    pub fn crc_check(&self) -> Option<Check> {
        let (trailer, nothing) = Crc::parse(self.trailer).ok()?;
        if !nothing.is_empty() {
            return None;
        }
        let covered = self.ip_packet.len().checked_sub(self.trailer.len())?;
        let covered = self.ip_packet.get(..covered)?;
        let (value, expected) = (trailer.crc(), over_ip_packet(covered)?);
        let is_other = || value != expected && self.without_checksum(covered) == Some(value);
        Some(Check { value, expected: if is_other() { value } else { expected } })
    }

    /// Computes the CRC of the bytes of an IP packet with a UDP checksum of 0. Returns `None` if it is 0 anyway.
    #[cold]
    fn without_checksum(&self, covered: &[u8]) -> Option<u32> {
        self.udp.filter(|udp| udp.checksum() != 0)?;
        let offsets = self.offsets();
        let udp = offsets.transport?.checked_sub(offsets.ip?)?;
        // The checksum is the last field of the UDP header.
        let (before, after) = (covered.get(..udp.checked_add(6)?)?, covered.get(udp.checked_add(8)?..)?);
        Some(over([from_source(before)?, &[0; 2], after]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let both: [fn(&[u8]) -> u32; 2] = [crc32c, |bytes| portable([bytes])];
        for crc32c in both {
            assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
            assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
            assert_eq!(crc32c(b"123456789"), 0xe306_9283);
            assert_eq!(crc32c(b""), 0);
        }
    }

    proptest! {
        // Without the feature `crc-hardware`, both are the same function.
        #[test]
        fn both_ways_agree(
            bytes in prop::collection::vec(any::<u8>(), 0..9000),
            start in any::<prop::sample::Index>(),
        ) {
            let bytes = &bytes[start.index(bytes.len() + 1)..];
            prop_assert_eq!(crc32c(bytes), portable([bytes]));
        }
    }
}
