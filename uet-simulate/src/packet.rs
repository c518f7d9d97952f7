//! A packet in the fabric.

use uet_model::{Packet, TrimPoint};

/// The index of a packet in the slab.
pub(crate) type Key = u32;

/// A packet in the fabric.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) packet: Packet,
    /// The bytes that it takes on a link.
    pub(crate) size: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// True if it is a retransmission.
    pub(crate) again: bool,
    /// True if its first transmission used granted credit.
    pub(crate) granted: bool,
}

/// The bytes before UDP that a packet takes on a link, as in the nominal size.
const OUTER: usize = 40;
const UDP: usize = 8;

/// Returns the bytes that a packet takes on a link.
pub(crate) fn size(packet: &Packet) -> u32 {
    (OUTER + UDP + packet.head.len() + packet.payload.len()) as u32
}

impl Flying {
    /// Trims the packet to `bytes` after the IP header. Only requests are trimmed.
    pub(crate) fn trim(&mut self, bytes: u16, place: TrimPoint) {
        uet_kernel::trim(&mut self.packet, bytes, place);
        self.size = size(&self.packet);
    }
}
