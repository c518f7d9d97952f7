//! The decisions of packet delivery and their reasons, as data. Each one displays as a sentence.

use super::protect::{Association, OpenError, SealError};
use crate::{Mode, PdcHandle, Time};
use core::fmt;
use core::net::IpAddr;
use std::collections::VecDeque;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn};

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdsEvent {
    /// The time.
    pub at: Time,
    /// The context, if the decision belongs to one.
    pub pdc: Option<PdcHandle>,
    /// The decision.
    pub kind: EventKind,
}

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A context was opened.
    Opened(Role, Mode, IpAddr, Psn),
    /// The peer's PDCID became known.
    Established(PdcId),
    /// A packet got a PSN.
    Numbered(Psn),
    /// A packet was retransmitted.
    Retransmitted(Psn, RetransmitCause),
    /// A packet of this endpoint was acknowledged, or the endpoint stopped waiting for its acknowledgment.
    Answered(Psn),
    /// A SACK reported the arrival of a packet. Its response is outstanding.
    Arrived(Psn),
    /// The cumulative PSN of sent packets moved to this PSN.
    CackSent(Psn),
    /// CLEAR_PSN moved to this PSN: every packet up to it was answered.
    ClearMoved(Psn),
    /// A new packet entered the receive window.
    Accepted(Psn),
    /// A duplicate arrived.
    Duplicate(Psn, Duplicate),
    /// The cumulative PSN of received packets moved to this PSN.
    CackMoved(Psn),
    /// The peer cleared responses up to this PSN.
    Cleared(Psn),
    /// A response was stored until the peer clears it.
    Stored(Psn),
    /// SES gave a response that no request waits for.
    ResponseUnwanted(Psn),
    /// An ACK that names this packet was sent.
    Acked(Psn, AckReason),
    /// A NACK was sent.
    Nacked(Psn, NackCode),
    /// A NACK was received.
    Refused(Psn, NackCode),
    /// A control packet without a PSN was sent.
    Control(CtlType),
    /// The peer offered capabilities.
    Capabilities(u32),
    /// All packets got new PSNs, from this one on.
    Renumbered(Psn),
    /// The context accepts no more requests, and closes when all have completed.
    Closing(CloseReason),
    /// The context ended.
    Closed(CloseReason),
    /// A packet left, protected with this key and counter.
    Sealed(Association),
    /// A packet could not be sealed, and was not sent.
    SealFailed(SealError),
    /// A packet could not be opened.
    OpenFailed(OpenError),
    /// A packet was dropped.
    Dropped(Dropped),
}

/// The end of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It opened the context.
    Initiator,
    /// The peer opened the context.
    Target,
}

/// The reason for a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum RetransmitCause {
    /// The retransmission timer expired. The number counts its timeouts.
    Timeout(u8),
    /// A NACK refused the packet.
    Nack(NackCode),
    /// Later packets arrived, so the packet counts as lost.
    Gap,
    /// An earlier packet was lost, on an ordered context.
    GoBack,
    /// The packet was renumbered.
    Renumbered,
}

/// The handling of a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicate {
    /// It was acknowledged with the default response.
    AckedAgain,
    /// It was answered with the stored response.
    AnsweredAgain,
    /// Its response is not ready yet.
    InProgress,
    /// Its response was not kept, so SES builds a new one.
    Repeated,
    /// It was ignored.
    Ignored,
}

/// The reason for an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum AckReason {
    /// The packet requested it.
    Requested,
    /// The packet was a retransmission.
    Retransmission,
    /// The packet had `syn` set.
    Syn,
    /// The response is guaranteed.
    Guaranteed,
    /// The response carries data.
    Data,
    /// The response is not the default one.
    NotDefault,
    /// The packet was marked (ECN).
    Marked,
    /// Every packet is acknowledged (Enb_ACK_Per_Pkt).
    EachPacket,
    /// Enough bytes arrived since the last ACK (ACK_Gen_Trigger).
    Bytes,
    /// The ACK delay expired.
    Delay,
    /// The packet was a duplicate.
    Duplicate,
    /// An ACK_REQUEST requested it.
    Asked,
    /// A PROBE requested it.
    Probe,
}

/// The reason for closing a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum CloseReason {
    /// SES requested it.
    Wanted,
    /// The context was idle.
    Idle,
    /// The PSN range was used up.
    PsnRange,
    /// The peer requested it.
    PeerAsked,
    /// CLOSE_COMMAND was sent or received.
    Command,
    /// A packet got no acknowledgment after all retransmissions.
    TimedOut,
    /// A packet was refused too often, or by a fatal NACK.
    Refused(NackCode),
    /// The requested CLOSE_COMMAND did not come.
    NoCommand,
    /// A message on it made no progress.
    Stalled,
    /// CLOSE_COMMAND came before all data was delivered.
    Unfinished,
    /// No packet with the new Start_PSN came in time.
    NotRestarted,
    /// Syn_Retx_Safety_Time expired.
    Forgotten,
    /// The peer opened a new context in its place.
    Replaced,
    /// A new context needed its resources, and its peer had sent only syn packets.
    Reclaimed,
}

/// The reason for dropping a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// A header is truncated or inconsistent.
    Malformed,
    /// The packet type is unknown.
    UnknownType,
    /// The destination address belongs to another endpoint.
    OtherAddress,
    /// The packet could not be opened, or was not protected.
    Security,
    /// A reply or a control packet named a context that does not exist.
    NoContext,
    /// A reply came from an address that is not the peer's.
    OtherPeer,
    /// An ACK named a PSN that was never sent.
    AckNotSent,
    /// A NACK named a PSN that is not in flight.
    NackNotInFlight,
    /// The NACK code is unassigned.
    UnknownNack,
    /// A trimmed packet needs no reply.
    Trimmed,
    /// A duplicate lacked `retx`.
    Copy,
    /// A control packet came in the wrong direction, or too early.
    UnfitControl,
    /// The type of a control packet is unknown.
    UnknownControl,
    /// A packet above a gap on an ordered context, after one NACK reported the gap.
    OutOfOrder,
    /// A reply named an idempotent request that is not in flight.
    NoRequest,
    /// The queue of replies or datagrams is full. The packet is lost as if the network had dropped it.
    NoRoom,
    /// A packet of this endpoint could not be sealed.
    SealFailed,
    /// A packet arrived under another secure context than that of its PDC.
    OtherSecureContext,
    /// A packet of this endpoint could not be built: a value does not fit its field.
    Unbuildable,
}

impl Dropped {
    /// All reasons.
    pub const ALL: &'static [Dropped] = &[
        Dropped::Malformed,
        Dropped::UnknownType,
        Dropped::OtherAddress,
        Dropped::Security,
        Dropped::NoContext,
        Dropped::OtherPeer,
        Dropped::AckNotSent,
        Dropped::NackNotInFlight,
        Dropped::UnknownNack,
        Dropped::Trimmed,
        Dropped::Copy,
        Dropped::UnfitControl,
        Dropped::UnknownControl,
        Dropped::OutOfOrder,
        Dropped::NoRequest,
        Dropped::NoRoom,
        Dropped::SealFailed,
        Dropped::OtherSecureContext,
        Dropped::Unbuildable,
    ];
}

// The list must have every reason, in the order of the enum.
const _: () = {
    let mut at = 0;
    while at < Dropped::ALL.len() {
        assert!(Dropped::ALL[at] as usize == at);
        at += 1;
    }
    assert!(Dropped::Unbuildable as usize + 1 == Dropped::ALL.len());
};

/// The queue of events. It is bounded, and drops the oldest.
#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Events {
    capacity: usize,
    waiting: VecDeque<PdsEvent>,
    lost: u64,
    dropped: [u64; Dropped::ALL.len()],
}

impl Events {
    pub(super) fn new(capacity: usize) -> Self {
        Events { capacity, waiting: VecDeque::new(), lost: 0, dropped: [0; Dropped::ALL.len()] }
    }

    #[inline]
    pub(super) fn push(&mut self, at: Time, pdc: Option<PdcHandle>, kind: EventKind) {
        if let EventKind::Dropped(why) = kind {
            self.dropped[why as usize] += 1;
        }
        if self.capacity > 0 {
            self.keep(PdsEvent { at, pdc, kind });
        }
    }

    fn keep(&mut self, event: PdsEvent) {
        if self.waiting.len() >= self.capacity {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<PdsEvent> {
        self.waiting.pop_front()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize]
    }
}

impl fmt::Display for PdsEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::Opened(role, mode, peer, start) => {
                write!(f, "opened a {mode} context with {peer} as {role}, Start_PSN {start}")
            }
            EventKind::Established(peer) => write!(f, "established, the peer's PDCID is {peer}"),
            EventKind::Numbered(psn) => write!(f, "{psn} assigned"),
            EventKind::Retransmitted(psn, why) => write!(f, "{psn} retransmitted: {why}"),
            EventKind::Answered(psn) => write!(f, "{psn} answered"),
            EventKind::Arrived(psn) => write!(f, "{psn} arrived, its response is outstanding"),
            EventKind::CackSent(psn) => write!(f, "acknowledged up to {psn}"),
            EventKind::ClearMoved(psn) => write!(f, "CLEAR_PSN {psn}"),
            EventKind::Accepted(psn) => write!(f, "{psn} accepted"),
            EventKind::Duplicate(psn, what) => write!(f, "{psn} is a duplicate: {what}"),
            EventKind::CackMoved(psn) => write!(f, "CACK_PSN {psn}"),
            EventKind::Cleared(psn) => write!(f, "cleared up to {psn}"),
            EventKind::Stored(psn) => write!(f, "response of {psn} stored"),
            EventKind::ResponseUnwanted(psn) => write!(f, "no request waits for the response of {psn}"),
            EventKind::Acked(psn, why) => write!(f, "ACK of {psn}: {why}"),
            EventKind::Nacked(psn, code) => write!(f, "NACK of {psn}: {code}"),
            EventKind::Refused(psn, code) => write!(f, "NACK of {psn} received: {code}"),
            EventKind::Control(kind) => write!(f, "{kind} sent"),
            EventKind::Capabilities(bits) => write!(f, "the peer offers capabilities {bits:#x}"),
            EventKind::Renumbered(psn) => write!(f, "all packets renumbered from {psn}"),
            EventKind::Closing(why) => write!(f, "closing: {why}"),
            EventKind::Closed(why) => write!(f, "closed: {why}"),
            EventKind::Sealed(association) => {
                let Association { context, an, epoch, counter } = association;
                let (sdi, an) = (context.sdi, u8::from(*an));
                write!(f, "sealed in domain {sdi:#x}, AN {an}, epoch {epoch}, counter {counter}")
            }
            EventKind::SealFailed(why) => write!(f, "not sent: {why}"),
            EventKind::OpenFailed(why) => write!(f, "not opened: {why}"),
            EventKind::Dropped(why) => write!(f, "dropped: {why}"),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Initiator => "initiator",
            Role::Target => "target",
        })
    }
}

impl fmt::Display for RetransmitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RetransmitCause::Timeout(1) => f.write_str("the timer expired"),
            RetransmitCause::Timeout(times) => write!(f, "the timer expired {times} times"),
            RetransmitCause::Nack(code) => write!(f, "refused by {code}"),
            RetransmitCause::Gap => f.write_str("later packets arrived"),
            RetransmitCause::GoBack => f.write_str("an earlier packet is missing"),
            RetransmitCause::Renumbered => f.write_str("it has a new number"),
        }
    }
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Duplicate::AckedAgain => "acknowledged again",
            Duplicate::AnsweredAgain => "answered with the stored response",
            Duplicate::InProgress => "its response is not ready",
            Duplicate::Repeated => "its response was not kept, SES makes it again",
            Duplicate::Ignored => "ignored",
        })
    }
}

impl fmt::Display for AckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AckReason::Requested => "the packet requested it",
            AckReason::Retransmission => "the packet was a retransmission",
            AckReason::Syn => "the packet had syn set",
            AckReason::Guaranteed => "the response is guaranteed",
            AckReason::Data => "the response carries data",
            AckReason::NotDefault => "the response is not the default",
            AckReason::Marked => "the packet was marked (ECN)",
            AckReason::EachPacket => "every packet is acknowledged",
            AckReason::Bytes => "ACK_Gen_Trigger reached",
            AckReason::Delay => "the ACK delay expired",
            AckReason::Duplicate => "the packet was a duplicate",
            AckReason::Asked => "an ACK_REQUEST asked for it",
            AckReason::Probe => "a PROBE asked for it",
        })
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::Wanted => f.write_str("SES requested it"),
            CloseReason::Idle => f.write_str("idle"),
            CloseReason::PsnRange => f.write_str("the PSN range is used up"),
            CloseReason::PeerAsked => f.write_str("the peer requested it"),
            CloseReason::Command => f.write_str("by CLOSE_COMMAND"),
            CloseReason::TimedOut => f.write_str("a packet got no acknowledgment"),
            CloseReason::Refused(code) => write!(f, "refused by {code}"),
            CloseReason::Stalled => f.write_str("a message on it made no progress"),
            CloseReason::NoCommand => f.write_str("the CLOSE_COMMAND did not come"),
            CloseReason::Unfinished => f.write_str("not all data was delivered"),
            CloseReason::NotRestarted => f.write_str("no packet with the new Start_PSN came"),
            CloseReason::Forgotten => f.write_str("late packets are no longer expected"),
            CloseReason::Replaced => f.write_str("the peer opened a new context"),
            CloseReason::Reclaimed => {
                f.write_str("a new context needed room, and the peer sent only syn packets")
            }
        }
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dropped::Malformed => "malformed",
            Dropped::UnknownType => "unknown packet type",
            Dropped::OtherAddress => "for another address",
            Dropped::Security => "not protected, or not authentic",
            Dropped::NoContext => "its context does not exist",
            Dropped::OtherPeer => "not from the peer",
            Dropped::AckNotSent => "acknowledges a PSN that was never sent",
            Dropped::NackNotInFlight => "refuses a PSN that is not in flight",
            Dropped::UnknownNack => "unknown NACK code",
            Dropped::Trimmed => "trimmed",
            Dropped::Copy => "a duplicate without retx",
            Dropped::UnfitControl => "unexpected control packet",
            Dropped::UnknownControl => "unknown control packet",
            Dropped::OutOfOrder => "out of order",
            Dropped::NoRequest => "no request waits for it",
            Dropped::NoRoom => "no room",
            Dropped::SealFailed => "could not be protected",
            Dropped::OtherSecureContext => "under another secure context",
            Dropped::Unbuildable => "could not be built",
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Rud => "RUD",
            Mode::Rod => "ROD",
            Mode::Rudi => "RUDI",
            Mode::Uud => "UUD",
        })
    }
}
