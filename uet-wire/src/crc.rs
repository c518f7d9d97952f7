//! The CRC-32C trailer: compute, append, check.
//!
//! It covers the packet from the first byte of the IP source address up to the trailer, so that a switch
//! may change traffic class, time to live and checksum without touching it.
//!
//! ```
//! // 32 zero bytes, the check value that everyone knows.
//! assert_eq!(uet_wire::crc::crc32c(&[0; 32]), 0x8a91_36aa);
//! ```

use crate::layout::Layer;
use crate::outer::{Ipv4, Ipv6};
use crate::trailer::Crc;
use crate::{Packet, WriteError};

/// CRC-32C of `bytes`. With the feature `crc-hardware` by the processor's instructions, where it has them.
#[cfg(feature = "crc-hardware")]
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// CRC-32C of `bytes`. With the feature `crc-hardware` by the processor's instructions, where it has them.
#[cfg(not(feature = "crc-hardware"))]
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    portable(bytes)
}

#[cfg(any(test, not(feature = "crc-hardware")))]
fn portable(bytes: &[u8]) -> u32 {
    static CASTAGNOLI: crc::Crc<u32, crc::Table<16>> =
        crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    // Block by block: of a length that it knows, the compiler leaves out the checks, and with them the
    // panics; that of a whole packet could overflow an index for all it knows.
    let mut digest = CASTAGNOLI.digest();
    let blocks = bytes.chunks_exact(64);
    let rest = blocks.remainder();
    blocks.for_each(|block| digest.update(block));
    digest.update(rest);
    digest.finalize()
}

/// The CRC of an IP packet, without its trailer, from the IP header on; `None` when it ends before its
/// source address, or is of no version of IP.
pub fn over_ip_packet(packet: &[u8]) -> Option<u32> {
    let src = match packet.first()? >> 4 {
        4 => const { Ipv4::LAYOUT.locate("ip.src").0 / 8 },
        6 => const { Ipv6::LAYOUT.locate("ip.src").0 / 8 },
        _ => return None,
    };
    Some(crc32c(packet.get(src..)?))
}

/// Writes the CRC of the IP packet that lies in `ip..end` of `buffer` behind it, and gives where it ends then.
/// The lengths in its headers must include the trailer already.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        for crc32c in [crc32c, portable] {
            assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
            assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
            assert_eq!(crc32c(b"123456789"), 0xe306_9283);
            assert_eq!(crc32c(b""), 0);
        }
    }

    proptest! {
        // The same function twice, unless the feature `crc-hardware` is on.
        #[test]
        fn both_ways_agree(
            bytes in prop::collection::vec(any::<u8>(), 0..9000),
            start in any::<prop::sample::Index>(),
        ) {
            let bytes = &bytes[start.index(bytes.len() + 1)..];
            prop_assert_eq!(crc32c(bytes), portable(bytes));
        }
    }
}
