//! The checksums of IP and UDP.

use core::ops::Range;
use uet_wire::Packet;
use uet_wire::outer::Ip;

/// The bytes that the UDP checksum of a packet covers, as places in its frame.
pub(crate) struct UdpSum {
    addresses: Range<usize>,
    /// The start of the UDP header.
    pub(crate) at: usize,
    length: u16,
    /// The end of the IP packet.
    end: usize,
}

impl UdpSum {
    /// Returns `None` for a packet without IP or UDP header.
    pub(crate) fn of(packet: &Packet<'_>) -> Option<Self> {
        let (header, udp, offsets) = (packet.ip?, packet.udp?, packet.offsets());
        let (ip, at) = (offsets.ip?, offsets.transport?);
        let addresses = match header {
            Ip::V4 { .. } => ip + 12..ip + 20,
            Ip::V6 { .. } => ip + 8..ip + 40,
        };
        Some(UdpSum { addresses, at, length: udp.length(), end: ip + packet.ip_packet.len() })
    }

    /// Returns whether the frame has all bytes that the checksum covers.
    pub(crate) fn is_whole(&self) -> bool {
        (self.at + 8..=self.end).contains(&(self.at + usize::from(self.length)))
    }

    /// Returns the sum of the pseudo-header: the checksum of a packet whose NIC adds the other bytes.
    pub(crate) fn pseudo(&self, frame: &[u8]) -> u16 {
        const PROTOCOL: u64 = 17;
        sum(frame, core::slice::from_ref(&self.addresses), PROTOCOL + u64::from(self.length))
    }

    /// Returns the right checksum. It is not 0, which means that there is none.
    pub(crate) fn right(&self, frame: &[u8]) -> u16 {
        let end = self.end.min(self.at + usize::from(self.length));
        nonzero(!sum(frame, &[self.at..self.at + 6, self.at + 8..end], self.pseudo(frame).into()))
    }
}

/// Adds the 16-bit words of these ranges to a number, in ones' complement.
pub(crate) fn sum(frame: &[u8], ranges: &[Range<usize>], start: u64) -> u16 {
    let words = ranges.iter().flat_map(|range| frame.get(range.clone()).unwrap_or_default().chunks(2));
    let mut sum = words.fold(start, |sum, word| {
        sum + u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]))
    });
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub(crate) fn nonzero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}
