//! What packet delivery (PDS) and semantics (SES) say to each other (section 3.5.4). Neither looks inside the other:
//! whoever wants only packet delivery puts something of his own in the place of SES.

use crate::Head;
use bytes::Bytes;
use core::net::IpAddr;
use uet_wire::Psn;
use uet_wire::registry::{NackCode, NextHdr};

/// How packets are delivered (section 3.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Reliable, unordered, exactly once.
    Rud,
    /// Reliable, ordered, exactly once.
    Rod,
    /// Reliable, idempotent, at least once, without a context.
    Rudi,
    /// A datagram: nothing is promised.
    Uud,
}

/// What chooses the context that carries a request (section 3.5.8). Requests whose routes are equal share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The job.
    pub job: u32,
    /// The FEP it goes to.
    pub destination: IpAddr,
    /// The traffic class.
    pub class: u8,
    /// The delivery mode.
    pub mode: Mode,
    /// The pool that the context comes from.
    pub pool: Pool,
    /// What else keeps contexts apart: a security domain, a queue whose order matters. 0 where nothing does.
    pub context: u32,
}

/// Where a context comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pool {
    /// The pool for all.
    #[default]
    General,
    /// The reserved one, which `pdc_info` asks for.
    Reserved,
}

/// A context of this FEP, by its own PDCID and how often that has been used: a handle does not survive its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PdcHandle {
    /// The PDCID on this side.
    pub pdcid: u16,
    /// Counts the contexts that have had this PDCID.
    pub generation: u32,
}

/// A message, by the number that the SES of the sender has given it. PDS gives it back and knows no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey(pub u64);

/// Where a request is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// By the context of this route, which is opened when there is none.
    Route(Route),
    /// Back by the context that a request came from, in the return direction: read data.
    Return(PdcHandle),
}

/// What SES asks of PDS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Deliver this request.
    Send(Via, TxRequest),
    /// Answer this request.
    Respond(Ticket, TxResponse),
    /// Take this request back: there is no room for it now. PDS answers with a NACK of this code (NO_SES_MSG_AVAIL,
    /// NO_RESOURCE), and the request counts as not received. Only asked while the request is indicated, before anything
    /// else happens.
    Refuse(Ticket, NackCode),
    /// Keep this context open: read data is outstanding. Counts: each needs its own [`Release`](Command::Release).
    Hold(PdcHandle),
    /// The opposite.
    Release(PdcHandle),
}

/// A request packet on its way down: SES headers and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxRequest {
    /// The message that it is part of.
    pub message: MessageKey,
    /// Whether it is the first of its message. All up to `eom` go by the same context, and nothing between them.
    pub som: bool,
    /// Whether it is the last of its message.
    pub eom: bool,
    /// What `head` starts with.
    pub next_hdr: NextHdr,
    /// The SES header and its extension.
    pub head: Head,
    /// The payload.
    pub payload: Bytes,
}

/// A request that could not be taken now: its way is full, or in the middle of another message. It comes back whole, and
/// [`Indication::Resumed`] tells when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub TxRequest);

/// A request packet on its way up, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RxRequest {
    /// What the response has to name.
    pub ticket: Ticket,
    /// Who sent it.
    pub from: IpAddr,
    /// The traffic class.
    pub class: u8,
    /// The delivery mode.
    pub mode: Mode,
    /// What `head` starts with.
    pub next_hdr: NextHdr,
    /// The SES header and its extension.
    pub head: Head,
    /// The payload.
    pub payload: Bytes,
}

/// Names a request that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ticket {
    /// It came by a context. Whether it was a request of the peer's forward or return direction, the context knows.
    Pdc(PdcHandle, Psn),
    /// It came by RUDI: peer, traffic class, `pkt_id`.
    Rudi(IpAddr, u8, u32),
    /// It came by UUD, and no response will leave.
    Uud,
}

/// The response to a request, on its way down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxResponse {
    /// Whether and how it must arrive.
    pub delivery: Delivery,
    /// What `head` starts with.
    pub next_hdr: NextHdr,
    /// The SES response.
    pub head: Head,
    /// Read data that rides in the ACK.
    pub payload: Bytes,
}

/// How a response is delivered (section 3.4.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The default response: it may be left out when a later ACK says that the request has arrived.
    #[default]
    Default,
    /// Sent once, at once; when it is lost, a default response stands for it.
    Once,
    /// Kept until the other side has it.
    Guaranteed,
    /// The same, but it need not be kept: the other side can send the request again, and gets an answer anew.
    GuaranteedByRepetition,
}

/// What PDS tells SES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// A request has arrived, for the first time; SES owes it one response.
    Request(RxRequest),
    /// A request packet of ours has got this number. It may get another before its response comes.
    Numbered {
        /// The message that it is part of.
        message: MessageKey,
        /// The context.
        pdc: PdcHandle,
        /// The number.
        psn: Psn,
    },
    /// A request packet of ours has arrived at the other side. Comes once for each, but never for a datagram.
    Response {
        /// The message that it is part of.
        message: MessageKey,
        /// The context, if by one, and the number of the packet there.
        pdc: Option<(PdcHandle, Psn)>,
        /// The response, as far as it was seen: without one, the default response is meant.
        response: Option<RxResponse>,
    },
    /// A request packet of ours will get no response.
    Failed {
        /// The message that it is part of.
        message: MessageKey,
        /// Why.
        why: Failure,
    },
    /// A context is gone. No request or response of it will be heard of after this.
    Closed(PdcHandle),
    /// This way takes no more requests for now.
    Paused(Via),
    /// This way takes requests again.
    Resumed(Via),
}

/// The response to a request of ours, on its way up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RxResponse {
    /// What `head` starts with.
    pub next_hdr: NextHdr,
    /// The SES response.
    pub head: Head,
    /// Read data that rode in the ACK.
    pub payload: Bytes,
}

/// Why a request packet got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// It was sent as often as `max_rto_retx_cnt` allows, and nobody answered.
    TimedOut,
    /// The other side refused it as often as `max_nack_retx_cnt` allows, last with this NACK code.
    Refused(u8),
    /// The peer ended the context with this NACK code. [`NackAction::of`](crate::pds::NackAction::of) says whether to try
    /// again on a new one.
    Ended(u8),
    /// The context was closed by us before it could leave.
    Closed,
    /// No context of our own was left.
    NoContext,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = |code: &u8| NackCode::new(*code).unwrap_or_default();
        match self {
            Failure::TimedOut => f.write_str("nobody answered"),
            Failure::Refused(code) => write!(f, "refused too often, last by {}", name(code)),
            Failure::Ended(code) => write!(f, "the other side ended the context by {}", name(code)),
            Failure::Closed => f.write_str("the context was closed"),
            Failure::NoContext => f.write_str("no context was left"),
        }
    }
}
