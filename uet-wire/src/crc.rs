//! The CRC-32C trailer: compute, append, check.
//!
//! It covers the packet from the first byte of the IP source address up to the trailer, so that a switch
//! may change traffic class, time to live and checksum without touching it.
//!
//! ```
//! // 32 zero bytes, the check value that everyone knows.
//! assert_eq!(uet_wire::crc::crc32c(&[0; 32]), 0x8a91_36aa);
//! ```

use crate::Packet;
use crate::outer::{Ipv4, Ipv6};
use crate::trailer::Crc;

/// CRC-32C of `bytes`; by the processor's instructions with the feature `crc-hardware`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(feature = "crc-hardware")]
    {
        crc32c::crc32c(bytes)
    }
    #[cfg(not(feature = "crc-hardware"))]
    {
        static CASTAGNOLI: crc::Crc<u32, crc::Table<16>> =
            crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
        CASTAGNOLI.checksum(bytes)
    }
}

/// The CRC of an IP packet, without its trailer, from the IP header on; `None` when it ends before its
/// source address.
pub fn over_ip_packet(packet: &[u8]) -> Option<u32> {
    let src = match packet.first()? >> 4 {
        6 => Ipv6::LAYOUT.field("ip.src")?.lo() / 8,
        _ => Ipv4::LAYOUT.field("ip.src")?.lo() / 8,
    };
    Some(crc32c(packet.get(src..)?))
}

/// What the CRC trailer of a packet says, and what it should say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The value in the packet.
    pub value: u32,
    /// The value computed.
    pub expected: u32,
}

impl Check {
    /// Whether the two agree.
    pub const fn ok(&self) -> bool {
        self.value == self.expected
    }
}

impl Packet<'_> {
    /// Checks the CRC trailer; `None` when the packet has none, or does not start with IP or before.
    pub fn crc_check(&self) -> Option<Check> {
        let (trailer, nothing) = Crc::parse(self.trailer).ok()?;
        if !nothing.is_empty() {
            return None;
        }
        let covered = self.ip_packet.len().checked_sub(self.trailer.len())?;
        let expected = over_ip_packet(self.ip_packet.get(..covered)?)?;
        Some(Check { value: trailer.crc(), expected })
    }
}
