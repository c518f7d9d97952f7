//! A packet in the fabric.

use uet_model::{Packet, TrimPoint};

/// The place of a packet in the slab.
pub(crate) type Key = u32;

/// A packet in the fabric.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) packet: Packet,
    /// Bytes that it takes on a link.
    pub(crate) size: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whether it is a retransmission.
    pub(crate) again: bool,
    /// Whether it was first sent on granted credit.
    pub(crate) granted: bool,
}

/// Bytes before UDP that a packet takes on a link, as the nominal size counts them.
const OUTER: usize = 40;
const UDP: usize = 8;

/// Returns how many bytes a packet takes on a link.
pub(crate) fn size(packet: &Packet) -> u32 {
    (OUTER + UDP + packet.head.len() + packet.payload.len()) as u32
}

impl Flying {
    /// Trims the packet to `bytes` behind the IP header. Only requests are trimmed.
    pub(crate) fn trim(&mut self, bytes: u16, place: TrimPoint) {
        uet_kernel::trim(&mut self.packet, bytes, place);
        self.size = size(&self.packet);
    }
}
