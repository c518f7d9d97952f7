//! The boundary to transport security (TSS, section 3.7).
//!
//! A [`Protect`] seals a packet as the last step before it leaves, and opens it as the first step after it arrives. It
//! sees the whole packet: addresses and entropy value belong to the authenticated data. Packet delivery handles no keys
//! or ciphers. It keeps the [`SecureContext`] of each context, and accepts only packets under that one.

use crate::{Packet, Route};
use core::fmt;
use core::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uet_wire::Psn;

/// The security domain of a packet and, if the domain uses it, its source. A context is bound to the one that opened
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecureContext {
    /// The security domain (`tss.sdi`, 24 bits).
    pub sdi: u32,
    /// The secure source identifier of the peer's packets (`tss.ssi`). `None` if the source address takes its place, or
    /// if the peer has sent nothing yet.
    pub ssi: Option<u32>,
}

impl SecureContext {
    /// Returns whether a packet under `seen` belongs to a context that is bound to `bound`.
    pub(super) fn admits(bound: Option<Self>, seen: Option<Self>) -> bool {
        match (bound, seen) {
            (Some(bound), Some(seen)) => {
                bound.sdi == seen.sdi && (bound.ssi.is_none() || bound.ssi == seen.ssi)
            }
            (bound, seen) => bound == seen,
        }
    }
}

/// The key and the counter that protect one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Association {
    /// The domain and the source.
    pub context: SecureContext,
    /// The association number (`tss.an`), which selects one of the two keys of the domain.
    pub an: bool,
    /// The epoch of the key.
    pub epoch: u16,
    /// The packet counter under this key and epoch, 48 bits.
    pub counter: u64,
}

/// Seals and opens packets.
///
/// Packet delivery calls [`seal`](Self::seal) once for each transmission, because each takes a new counter
/// (`PDS-SEC-001`). This includes retransmissions. The defaults of the other methods suit an endpoint without Start_PSN
/// rules.
pub trait Protect: Send {
    /// Returns the secure context of packets that this endpoint sends on a route; `None` to send them in the clear.
    ///
    /// Replies use the context of the packet that they answer. The context names the source identifier of the peer if it
    /// is known: the first packet of the peer binds the context to it.
    fn outbound(&mut self, route: &Route) -> Option<SecureContext>;

    /// Seals a packet under [`Packet::security`]. The result has a security header in front, and everything secret is
    /// in the payload.
    ///
    /// A packet that cannot be sealed is not sent, and never leaves in the clear. It counts as
    /// [`Dropped::SealFailed`](super::Dropped::SealFailed). A packet with a PSN stays in flight: its retransmission timer
    /// makes another attempt, and the operation fails when the retries run out. Any other packet is lost as if the network
    /// had dropped it.
    fn seal(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError>;

    /// Opens a packet. Returns `None` as the association to accept a packet in the clear.
    ///
    /// A packet that cannot be opened is dropped without a reply, and counts as
    /// [`Dropped::Security`](super::Dropped::Security).
    fn open(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError>;

    /// Returns the Start_PSN for a context that this endpoint opens; `None` for a random one.
    fn start_psn(&mut self, _context: Option<SecureContext>) -> Option<Psn> {
        None
    }

    /// Decides whether a peer may open a context at `start`. The error is the required Start_PSN (`PDS-SEC-002`).
    fn accept_start(
        &mut self,
        _context: Option<SecureContext>,
        _peer: IpAddr,
        _start: Psn,
    ) -> Result<(), Psn> {
        Ok(())
    }

    /// Handles the end of a context that a peer had opened at `start`. `highest` is the highest PSN that has come.
    fn closed(&mut self, _context: Option<SecureContext>, _start: Psn, _highest: Psn) {}

    /// Returns the lowest Start_PSN for the peer's next context, to be told in the ACK of its CLOSE_COMMAND. Public
    /// sources disagree about it, so the default tells nothing.
    fn expected_psn(&mut self, _context: Option<SecureContext>, _start: Psn, _highest: Psn) -> Option<Psn> {
        None
    }

    /// Takes the Start_PSN that the ACK of an own CLOSE_COMMAND told.
    fn learn_expected_psn(&mut self, _context: Option<SecureContext>, _expected: Psn) {}

    #[cfg(feature = "explore")]
    #[doc(hidden)]
    fn duplicate(&self) -> Box<dyn Protect> {
        unreachable!("it takes no part in explorations")
    }

    #[cfg(feature = "explore")]
    #[doc(hidden)]
    fn digest(&self, _state: &mut dyn core::hash::Hasher) {}
}

/// The reason why a packet could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SealError {
    /// No security domain is configured for the packet.
    NoDomain,
    /// The domain is disabled.
    Disabled,
    /// The domain has no key for sending.
    NoKey,
    /// The key has no counter left.
    CounterExhausted,
}

/// The reason why a packet could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpenError {
    /// The packet came in the clear and must be protected.
    Unprotected,
    /// The packet is too short.
    Malformed,
    /// The security domain is unknown.
    NoDomain,
    /// The domain is disabled, or drops all packets.
    Disabled,
    /// The source identifier is missing or unexpected.
    Source,
    /// The epoch is too old.
    Late,
    /// No key is in the slot of the association number.
    NoKey,
    /// The authentication tag is wrong.
    NotAuthentic,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SealError::NoDomain => "no security domain is configured",
            SealError::Disabled => "the security domain is disabled",
            SealError::NoKey => "the security domain has no key to send with",
            SealError::CounterExhausted => "the packet counter of the key is exhausted",
        })
    }
}

impl core::error::Error for SealError {}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenError::Unprotected => "the packet is not protected",
            OpenError::Malformed => "the packet is too short",
            OpenError::NoDomain => "the security domain is unknown",
            OpenError::Disabled => "the security domain is disabled",
            OpenError::Source => "the source identifier is missing or unexpected",
            OpenError::Late => "the epoch is too old",
            OpenError::NoKey => "no key has this association number",
            OpenError::NotAuthentic => "the authentication tag is wrong",
        })
    }
}

impl core::error::Error for OpenError {}

/// Protection without effect: packets pass unchanged.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Unprotected {
    /// The lowest Start_PSN of a peer's context; `None` accepts all.
    pub lowest_start: Option<Psn>,
}

impl Protect for Unprotected {
    fn outbound(&mut self, _: &Route) -> Option<SecureContext> {
        None
    }

    fn seal(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError> {
        Ok((packet, None))
    }

    fn open(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError> {
        Ok((packet, None))
    }

    fn accept_start(&mut self, _: Option<SecureContext>, _: IpAddr, start: Psn) -> Result<(), Psn> {
        match self.lowest_start {
            Some(lowest) if lowest.is_after(start) => Err(lowest),
            _ => Ok(()),
        }
    }

    explored!(Protect);
}

/// Protection that the application shares with the endpoint, to change keys and read statistics while it runs.
impl<P: Protect> Protect for Arc<Mutex<P>> {
    fn outbound(&mut self, route: &Route) -> Option<SecureContext> {
        held(self).outbound(route)
    }

    fn seal(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError> {
        held(self).seal(packet)
    }

    fn open(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError> {
        held(self).open(packet)
    }

    fn start_psn(&mut self, context: Option<SecureContext>) -> Option<Psn> {
        held(self).start_psn(context)
    }

    fn accept_start(&mut self, context: Option<SecureContext>, peer: IpAddr, start: Psn) -> Result<(), Psn> {
        held(self).accept_start(context, peer, start)
    }

    fn closed(&mut self, context: Option<SecureContext>, start: Psn, highest: Psn) {
        held(self).closed(context, start, highest);
    }

    fn expected_psn(&mut self, context: Option<SecureContext>, start: Psn, highest: Psn) -> Option<Psn> {
        held(self).expected_psn(context, start, highest)
    }

    fn learn_expected_psn(&mut self, context: Option<SecureContext>, expected: Psn) {
        held(self).learn_expected_psn(context, expected);
    }
}

/// A poisoned lock is no reason to stop: each change of the protection is complete.
fn held<P>(shared: &Mutex<P>) -> MutexGuard<'_, P> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
