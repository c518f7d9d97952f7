//! Where transport security (TSS, section 3.7) attaches.
//!
//! What TSS encrypts is opaque to packet delivery: a [`Protect`] turns a whole packet into a protected one as the last
//! thing before it leaves, and back as the first thing when it comes. AES-GCM is not part of the model: of the nonce the
//! form is public, but neither the mask that cluster and server modes combine it with nor the derivation of keys is, so
//! that an implementation could be checked against nobody.

use crate::Packet;
use core::net::IpAddr;
use uet_wire::Psn;

/// Protects packets.
pub trait Protect {
    /// Turns a packet into a protected one: a security header in front, and all that is to be hidden in the payload.
    /// Called once for each transmission, retransmissions included, since each takes a new counter (`PDS-SEC-001`).
    fn seal(&mut self, packet: Packet) -> Packet;

    /// The opposite; `None` for a packet that is not what its sender made.
    fn open(&mut self, packet: Packet) -> Option<Packet>;

    /// Whether a peer may open a context at this PSN; else the PSN that it has to start at (`PDS-SEC-002`).
    fn accept_start(&mut self, _peer: IpAddr, _start: Psn) -> Result<(), Psn> {
        Ok(())
    }
}

/// Protection that protects nothing: packets pass as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unprotected;

impl Protect for Unprotected {
    fn seal(&mut self, packet: Packet) -> Packet {
        packet
    }

    fn open(&mut self, packet: Packet) -> Option<Packet> {
        Some(packet)
    }
}
