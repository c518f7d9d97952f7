use core::hash::BuildHasher;
use core::net::IpAddr;
use foldhash::quality::FixedState;
use uet_wire::{Content, Packet, Uet};

/// A packet for the observer.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Its packet number. Facts refer to it.
    pub number: u64,
    /// Its source address.
    pub src: IpAddr,
    /// Its destination address.
    pub dst: IpAddr,
    /// Its entropy value, if visible.
    pub entropy: Option<u16>,
    /// True if a switch marked it (ECN-CE).
    pub marked: bool,
    /// True if its bytes are complete: not trimmed, not cut by the capture, not malformed.
    pub whole: bool,
    /// Its parsed headers and payload.
    pub uet: Uet<'a>,
}

impl<'a> Observed<'a> {
    /// Creates an unmarked, complete packet from its bytes, which start with the first UET byte.
    pub fn new(number: u64, src: IpAddr, dst: IpAddr, bytes: &'a [u8]) -> Self {
        let (uet, cut) = Uet::parse_lax(bytes);
        Observed { number, src, dst, entropy: None, marked: false, whole: cut.is_none(), uet }
    }

    /// Creates a packet from a captured one. Returns `None` if it is not UET over IP, or has a wrong CRC: receivers discard
    /// it.
    pub fn of(number: u64, packet: &Packet<'a>) -> Option<Self> {
        const CONGESTION_EXPERIENCED: u8 = 3;
        let ip = packet.ip.filter(|_| packet.content == Content::Uet)?;
        if packet.crc_check().is_some_and(|check| !check.ok()) {
            return None;
        }
        Some(Observed {
            number,
            src: ip.src(),
            dst: ip.dst(),
            entropy: packet.entropy_value(),
            marked: ip.ecn() == CONGESTION_EXPERIENCED,
            whole: packet.trimmed.is_none() && packet.sliced.is_none() && packet.cut.is_none(),
            uet: packet.uet,
        })
    }

    /// Returns a digest of the bytes that a retransmission repeats; `None` if the packet is incomplete.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.whole.then(|| {
            let [_, _, ses, ext, payload] = self.uet.parts();
            FixedState::default().hash_one((ses, ext, payload))
        })
    }
}
