//! What packet delivery decided, and why, as data with a sentence for each.

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
    /// When.
    pub at: Time,
    /// In which context, if in one.
    pub pdc: Option<PdcHandle>,
    /// What.
    pub kind: EventKind,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A context was made.
    Opened(Role, Mode, IpAddr, Psn),
    /// The peer's PDCID is known.
    Established(PdcId),
    /// A packet took this number.
    Numbered(Psn),
    /// A packet is sent again.
    Retransmitted(Psn, RetransmitCause),
    /// A request packet of ours has been answered, or its answer is no longer awaited.
    Answered(Psn),
    /// The other side says that a packet arrived, its answer is still owed.
    Arrived(Psn),
    /// The cumulative PSN of what we sent moved here.
    CackSent(Psn),
    /// All answers up to here have come: CLEAR_PSN moved.
    ClearMoved(Psn),
    /// The other side may send up to here.
    Accepted(Psn),
    /// A packet came again.
    Duplicate(Psn, Duplicate),
    /// The cumulative PSN of what we received moved here.
    CackMoved(Psn),
    /// The other side has cleared up to here.
    Cleared(Psn),
    /// A response is kept until it is cleared.
    Stored(Psn),
    /// The upper layer gave a response that nobody waits for.
    ResponseUnwanted(Psn),
    /// An ACK leaves that names this packet.
    Acked(Psn, AckReason),
    /// A NACK leaves.
    Nacked(Psn, NackCode),
    /// A NACK came in.
    Refused(Psn, NackCode),
    /// A control packet leaves that takes no number.
    Control(CtlType),
    /// A capability offer came in.
    Capabilities(u32),
    /// All packets have new numbers, from here on.
    Renumbered(Psn),
    /// The context takes no more requests, and is closed when it is done.
    Closing(CloseReason),
    /// The context is no more.
    Closed(CloseReason),
    /// A packet left, protected by this key and counter.
    Sealed(Association),
    /// A packet could not be sealed, and was not sent.
    SealFailed(SealError),
    /// A packet could not be opened.
    OpenFailed(OpenError),
    /// A packet was dropped.
    Dropped(Dropped),
}

/// Which end of a context this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It opened the context.
    Initiator,
    /// It was opened to.
    Target,
}

/// Why a packet is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmitCause {
    /// Nobody answered in time; how often that has happened.
    Timeout(u8),
    /// A NACK asked for it.
    Nack(NackCode),
    /// Later packets arrived.
    Gap,
    /// A packet before it was lost, on an ordered context.
    GoBack,
    /// It has a new number.
    Renumbered,
}

/// What is done with a packet that came again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicate {
    /// Acknowledged again by a default response.
    AckedAgain,
    /// Answered by the stored response.
    AnsweredAgain,
    /// Its response is not ready.
    InProgress,
    /// Its response was not kept: the upper layer makes it again.
    Repeated,
    /// Ignored.
    Ignored,
}

/// Why an ACK leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckReason {
    /// The packet asked for it.
    Requested,
    /// The packet was a retransmission.
    Retransmission,
    /// The packet may open the context.
    Syn,
    /// The response must arrive.
    Guaranteed,
    /// The response carries data.
    Data,
    /// The response is not the default one.
    NotDefault,
    /// The packet was marked by congestion.
    Marked,
    /// Every packet is acknowledged.
    EachPacket,
    /// So many bytes have come since the last.
    Bytes,
    /// It has waited long enough.
    Delay,
    /// The packet came again.
    Duplicate,
    /// An ACK_REQUEST asked.
    Asked,
    /// A PROBE asked.
    Probe,
}

/// Why a context is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The upper layer wants it.
    Wanted,
    /// Nothing has happened for a while.
    Idle,
    /// The PSNs are used up.
    PsnRange,
    /// The peer wants it.
    PeerAsked,
    /// CLOSE_COMMAND was given or taken.
    Command,
    /// A packet was not answered, however often it was sent.
    TimedOut,
    /// A packet was refused too often, or for good.
    Refused(NackCode),
    /// The CLOSE_COMMAND that was asked for did not come.
    NoCommand,
    /// It was closed while there was still something to deliver.
    Unfinished,
    /// The new Start_PSN was not taken up in time.
    NotRestarted,
    /// The time to answer late packets is over.
    Forgotten,
    /// A new context of the same peer took its place.
    Replaced,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// Its headers are not whole or make no sense.
    Malformed,
    /// The packet type is not known.
    UnknownType,
    /// It is for another address.
    OtherAddress,
    /// It could not be opened, or is not protected where it must be.
    Security,
    /// An answer or control packet for a context that does not exist.
    NoContext,
    /// An answer from someone who is not the peer.
    OtherPeer,
    /// An ACK of what was never sent.
    AckNotSent,
    /// A NACK of what is not in flight.
    NackNotInFlight,
    /// A NACK code that is not assigned.
    UnknownNack,
    /// A trimmed packet that gets no answer.
    Trimmed,
    /// An unmarked copy.
    Copy,
    /// A control packet that does not fit: the wrong direction, or before its time.
    UnfitControl,
    /// A control packet of an unknown type.
    UnknownControl,
    /// Too far ahead on an ordered context, after one NACK has said so.
    OutOfOrder,
    /// An answer to an idempotent request that waits for none.
    NoRequest,
    /// The queue of replies or datagrams is full; the packet is lost as if the network had dropped it.
    NoRoom,
    /// A packet of this endpoint could not be sealed.
    SealFailed,
    /// A packet came under another secure context than its PDC is bound to.
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

// A reason that is not in the list, or not in its place, stops the build.
const _: () = {
    let mut at = 0;
    while at < Dropped::ALL.len() {
        assert!(Dropped::ALL[at] as usize == at);
        at += 1;
    }
    assert!(Dropped::Unbuildable as usize + 1 == Dropped::ALL.len());
};

/// Events for whoever wants them, bounded: when nobody takes them, the oldest go.
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
                write!(f, "opened as {role} of a {mode} context with {peer}, Start_PSN {start}")
            }
            EventKind::Established(peer) => write!(f, "the peer's context is {peer}"),
            EventKind::Numbered(psn) => write!(f, "{psn} numbered"),
            EventKind::Retransmitted(psn, why) => write!(f, "{psn} sent again: {why}"),
            EventKind::Answered(psn) => write!(f, "{psn} answered"),
            EventKind::Arrived(psn) => write!(f, "{psn} arrived, its answer is owed"),
            EventKind::CackSent(psn) => write!(f, "acknowledged up to {psn}"),
            EventKind::ClearMoved(psn) => write!(f, "CLEAR_PSN {psn}"),
            EventKind::Accepted(psn) => write!(f, "{psn} accepted"),
            EventKind::Duplicate(psn, what) => write!(f, "{psn} came again: {what}"),
            EventKind::CackMoved(psn) => write!(f, "CACK_PSN {psn}"),
            EventKind::Cleared(psn) => write!(f, "cleared up to {psn}"),
            EventKind::Stored(psn) => write!(f, "response of {psn} stored"),
            EventKind::ResponseUnwanted(psn) => write!(f, "nobody waits for the response of {psn}"),
            EventKind::Acked(psn, why) => write!(f, "ACK of {psn}: {why}"),
            EventKind::Nacked(psn, code) => write!(f, "NACK of {psn}: {code}"),
            EventKind::Refused(psn, code) => write!(f, "{psn} refused: {code}"),
            EventKind::Control(kind) => write!(f, "{kind} sent"),
            EventKind::Capabilities(bits) => write!(f, "the peer offers capabilities {bits:#x}"),
            EventKind::Renumbered(psn) => write!(f, "all packets numbered anew from {psn}"),
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
            RetransmitCause::Timeout(1) => f.write_str("no answer in time"),
            RetransmitCause::Timeout(times) => write!(f, "no answer in time, {times} times now"),
            RetransmitCause::Nack(code) => write!(f, "refused by {code}"),
            RetransmitCause::Gap => f.write_str("later packets have arrived"),
            RetransmitCause::GoBack => f.write_str("one before it is missing"),
            RetransmitCause::Renumbered => f.write_str("it has a new number"),
        }
    }
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Duplicate::AckedAgain => "acknowledged again",
            Duplicate::AnsweredAgain => "the stored response again",
            Duplicate::InProgress => "its response is not ready",
            Duplicate::Repeated => "its response was not kept and is made again",
            Duplicate::Ignored => "a copy, ignored",
        })
    }
}

impl fmt::Display for AckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AckReason::Requested => "it was asked for",
            AckReason::Retransmission => "it was a retransmission",
            AckReason::Syn => "it may open the context",
            AckReason::Guaranteed => "its response must arrive",
            AckReason::Data => "its response carries data",
            AckReason::NotDefault => "its response is not the default",
            AckReason::Marked => "it was marked by congestion",
            AckReason::EachPacket => "every packet is acknowledged",
            AckReason::Bytes => "ACK_Gen_Trigger is reached",
            AckReason::Delay => "it has waited long enough",
            AckReason::Duplicate => "it came again",
            AckReason::Asked => "an ACK_REQUEST asked",
            AckReason::Probe => "a PROBE asked",
        })
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::Wanted => f.write_str("the upper layer wants it"),
            CloseReason::Idle => f.write_str("idle"),
            CloseReason::PsnRange => f.write_str("its PSNs are used up"),
            CloseReason::PeerAsked => f.write_str("the peer asked"),
            CloseReason::Command => f.write_str("by CLOSE_COMMAND"),
            CloseReason::TimedOut => f.write_str("a packet was never answered"),
            CloseReason::Refused(code) => write!(f, "refused by {code}"),
            CloseReason::NoCommand => f.write_str("the CLOSE_COMMAND did not come"),
            CloseReason::Unfinished => f.write_str("there was still something to deliver"),
            CloseReason::NotRestarted => f.write_str("the new Start_PSN was not taken up"),
            CloseReason::Forgotten => f.write_str("late packets are no longer expected"),
            CloseReason::Replaced => f.write_str("the peer has opened a new one"),
        }
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dropped::Malformed => "malformed",
            Dropped::UnknownType => "unknown packet type",
            Dropped::OtherAddress => "for another address",
            Dropped::Security => "not protected as it must be",
            Dropped::NoContext => "an answer without a context",
            Dropped::OtherPeer => "not from the peer",
            Dropped::AckNotSent => "acknowledges what was never sent",
            Dropped::NackNotInFlight => "refuses what is not in flight",
            Dropped::UnknownNack => "unknown NACK code",
            Dropped::Trimmed => "trimmed",
            Dropped::Copy => "an unmarked copy",
            Dropped::UnfitControl => "a control packet that does not fit",
            Dropped::UnknownControl => "unknown control packet",
            Dropped::OutOfOrder => "out of order",
            Dropped::NoRequest => "answers no request",
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
