//! Packets in the fabric.

use crate::host::{PAYLOAD, address};
use crate::time::Picos;
use bytes::Bytes;
use slab::Slab;
use uet_model::{Head, Packet, Priority, TrimPoint};

/// The part of a packet that switches read. It travels from list to list: half a cache line, found without a detour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    /// The time when it reaches the end of its link.
    pub(crate) at: Picos,
    /// The place of the rest.
    pub(crate) key: u32,
    /// The egress port of its link.
    pub(crate) via: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) entropy: u16,
    /// The bytes that it takes on a link.
    pub(crate) size: u16,
    pub(crate) priority: Priority,
    pub(crate) marked: bool,
    /// True if it is a retransmission.
    pub(crate) again: bool,
    /// True if its first transmission used granted credit.
    pub(crate) granted: bool,
}

const _: () = assert!(size_of::<Flying>() == 32);

/// The part of a packet that only its two ends read.
#[derive(Debug)]
pub(crate) struct Contents {
    head: Head,
    /// The length of the payload.
    payload: u16,
    class: u8,
    trimmed: Option<TrimPoint>,
}

/// The bytes before UDP that a packet takes on a link, as in the nominal size.
const OUTER: usize = 40;
const UDP: usize = 8;

/// Returns the range of the bytes that a packet takes on a link.
pub(crate) fn sizes(mtu: u16) -> (usize, usize) {
    let largest = OUTER + UDP + Head::new_const().capacity() + usize::from(mtu);
    (OUTER + UDP, largest)
}

/// Returns the bytes that a packet takes on a link.
fn size(packet: &Packet) -> u16 {
    (OUTER + UDP + packet.head.len() + packet.payload.len()) as u16
}

/// The contents of all packets in the fabric.
#[derive(Debug, Default)]
pub(crate) struct Packets(Slab<Contents>);

impl Contents {
    fn of(packet: Packet) -> Self {
        let Packet { head, payload, class, trimmed, .. } = packet;
        Contents { head, payload: payload.len() as u16, class, trimmed }
    }
}

impl Packets {
    /// Returns the number of packets.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a packet that leaves a host.
    pub(crate) fn insert(
        &mut self,
        from: u32,
        to: u32,
        granted: bool,
        again: bool,
        packet: Packet,
    ) -> Flying {
        Flying {
            at: 0,
            via: from,
            from,
            to,
            entropy: packet.entropy,
            size: size(&packet),
            priority: packet.priority,
            marked: packet.marked,
            again,
            granted,
            key: self.put(Contents::of(packet)),
        }
    }

    /// Removes a packet, and returns it as its destination sees it. Its payload has the right length.
    pub(crate) fn take(&mut self, flying: &Flying) -> Packet {
        let Contents { head, payload, class, trimmed } = self.lift(flying);
        Packet {
            src: address(flying.from),
            dst: address(flying.to),
            class,
            priority: flying.priority,
            marked: flying.marked,
            trimmed,
            entropy: flying.entropy,
            ttl: Packet::TTL,
            udp_checksum: 0,
            security: None,
            head,
            payload: Bytes::from_static(&PAYLOAD[..usize::from(payload)]),
        }
    }

    /// Removes the contents of a packet that leaves for another section.
    pub(crate) fn lift(&mut self, flying: &Flying) -> Contents {
        self.0.remove(flying.key as usize)
    }

    /// Adds the contents of a packet from another section. Returns their place.
    pub(crate) fn put(&mut self, contents: Contents) -> u32 {
        self.0.insert(contents) as u32
    }

    /// Removes a packet that does not arrive.
    pub(crate) fn remove(&mut self, flying: &Flying) {
        self.lift(flying);
    }

    /// Trims a packet to `bytes` after the IP header. Only requests are trimmed.
    pub(crate) fn trim(&mut self, flying: &mut Flying, bytes: u16, place: TrimPoint) {
        let mut packet = self.take(flying);
        uet_model::network::trim(&mut packet, bytes, place);
        (flying.size, flying.priority) = (size(&packet), packet.priority);
        flying.key = self.put(Contents::of(packet));
    }
}
