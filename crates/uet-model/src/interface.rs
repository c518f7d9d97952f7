//! The interface between packet delivery (PDS) and semantics (SES), section 3.5.4. The layers are independent, so
//! another layer can replace SES.

use crate::Head;
use bytes::Bytes;
use core::net::IpAddr;
use uet_wire::Psn;
use uet_wire::registry::{NackCode, NextHdr};

/// The delivery mode (section 3.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Reliable, unordered, exactly once.
    Rud,
    /// Reliable, ordered, exactly once.
    Rod,
    /// Reliable, idempotent, at least once, without a context.
    Rudi,
    /// Unreliable datagram.
    Uud,
}

/// The key of the context that carries a request (section 3.5.8). Requests with equal routes share a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The job.
    pub job: u32,
    /// The destination FEP.
    pub destination: IpAddr,
    /// The traffic class.
    pub class: u8,
    /// The delivery mode.
    pub mode: Mode,
    /// The pool of the context.
    pub pool: Pool,
    /// Separates contexts with otherwise equal routes, such as security domains or ordered queues; 0 if unused.
    pub context: u32,
}

/// The pool of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pool {
    /// The general pool.
    #[default]
    General,
    /// The reserved pool, requested by `pdc_info`.
    Reserved,
}

/// A handle to a context of this FEP. It becomes invalid when the context ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PdcHandle {
    /// The local PDCID.
    pub pdcid: u16,
    /// Counts the contexts that have had this PDCID.
    pub generation: u32,
}

/// A message, identified by the number that the sender's SES chose. PDS does not interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey(pub u64);

/// The path of a request: a route, or the return direction of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// The context of this route. PDS opens one if there is none.
    Route(Route),
    /// The return direction of the context that carried the request, for read data.
    Return(PdcHandle),
}

/// A command of SES to PDS.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum Command {
    /// Sends a request.
    Send(Via, TxRequest),
    /// Answers a request.
    Respond(Ticket, TxResponse),
    /// Refuses a request because there is no room for it now. PDS replies with a NACK of this code (NO_SES_MSG_AVAIL,
    /// NO_RESOURCE), and the request counts as not received. SES must give this command before it handles the next
    /// indication.
    Refuse(Ticket, NackCode),
    /// Keeps a context open while read data is outstanding. Each hold needs its own [`Release`](Command::Release).
    Hold(PdcHandle),
    /// Ends a [`Hold`](Command::Hold).
    Release(PdcHandle),
    /// Closes a context in error, because a message on it makes no progress.
    Abandon(PdcHandle),
}

/// A request packet to send: SES headers and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct TxRequest {
    /// The message that the packet belongs to.
    pub message: MessageKey,
    /// True if this is the first packet of its message. All packets up to `eom` use one context, and do not interleave
    /// with other messages.
    pub som: bool,
    /// True if this is the last packet of its message.
    pub eom: bool,
    /// The type of the header at the start of `head`.
    pub next_hdr: NextHdr,
    /// The SES header and its extension.
    pub head: Head,
    /// The payload.
    pub payload: Bytes,
}

/// A request that PDS could not take: the queue is full, or in the middle of another message. [`Indication::Resumed`]
/// reports when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub TxRequest);

/// A received request packet, delivered once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct RxRequest {
    /// The identifier of the request, for its response.
    pub ticket: Ticket,
    /// The sender.
    pub from: IpAddr,
    /// The traffic class.
    pub class: u8,
    /// The delivery mode.
    pub mode: Mode,
    /// True if the peer has confirmed the context: it named a PDCID of this endpoint, so it receives our packets.
    /// Otherwise the address of the sender may be forged.
    pub confirmed: bool,
    /// The type of the header at the start of `head`.
    pub next_hdr: NextHdr,
    /// The SES header and its extension.
    pub head: Head,
    /// The payload.
    pub payload: Bytes,
}

/// The identifier of a request that waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ticket {
    /// A request on a context, in the forward or the return direction of the peer.
    Pdc(PdcHandle, Psn),
    /// A RUDI request: peer, traffic class, `pkt_id`.
    Rudi(IpAddr, u8, u32),
    /// A UUD request, which gets no response.
    Uud,
}

/// A response to send.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct TxResponse {
    /// The guarantee for its delivery.
    pub delivery: Delivery,
    /// The type of the header at the start of `head`.
    pub next_hdr: NextHdr,
    /// The SES response.
    pub head: Head,
    /// Read data that the ACK carries.
    pub payload: Bytes,
}

/// The guarantee for a response (section 3.4.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The default response. PDS may omit it when a later ACK acknowledges the request.
    #[default]
    Default,
    /// Sent once, immediately. If it is lost, a default response takes its place.
    Once,
    /// Kept until the peer acknowledges it.
    Guaranteed,
    /// Guaranteed without storage: the peer can repeat the request and gets a new response.
    GuaranteedByRepetition,
}

/// A message of PDS to SES.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum Indication {
    /// A request arrived for the first time. SES owes it one response.
    Request(RxRequest),
    /// A request packet of this endpoint got a PSN. It may get another one before its response arrives.
    Numbered {
        /// The message that the packet belongs to.
        message: MessageKey,
        /// The context.
        pdc: PdcHandle,
        /// The PSN.
        psn: Psn,
    },
    /// A request packet of this endpoint was acknowledged. Reported once for each packet, but never for a datagram.
    Response {
        /// The message that the packet belongs to.
        message: MessageKey,
        /// The context and the PSN, if the packet used a context.
        pdc: Option<(PdcHandle, Psn)>,
        /// The response; `None` stands for the default response.
        response: Option<RxResponse>,
    },
    /// A request packet of this endpoint will get no response.
    Failed {
        /// The message that the packet belongs to.
        message: MessageKey,
        /// The reason.
        why: Failure,
    },
    /// The peer has confirmed a context that it opened.
    Confirmed(PdcHandle),
    /// A context is closed. No indication about its requests and responses follows.
    Closed(PdcHandle),
    /// This path accepts no more requests for now.
    Paused(Via),
    /// This path accepts requests again.
    Resumed(Via),
}

/// A received response to a request of this endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct RxResponse {
    /// The type of the header at the start of `head`.
    pub next_hdr: NextHdr,
    /// The SES response.
    pub head: Head,
    /// Read data that the ACK carried.
    pub payload: Bytes,
}

/// The reason why a request packet got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// No acknowledgment came after `max_rto_retx_cnt` retransmissions.
    TimedOut,
    /// The peer refused the packet `max_nack_retx_cnt` times, last with this NACK code.
    Refused(u8),
    /// The peer ended the context with this NACK code. [`NackAction::of`](crate::pds::NackAction::of) returns whether
    /// to retry on a new one.
    Ended(u8),
    /// This endpoint closed the context before the packet could leave.
    Closed,
    /// No free context was left.
    NoContext,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = |code: &u8| NackCode::new(*code).unwrap_or_default();
        match self {
            Failure::TimedOut => f.write_str("no acknowledgment"),
            Failure::Refused(code) => {
                write!(f, "the peer refused it too often, most recently with {}", name(code))
            }
            Failure::Ended(code) => write!(f, "the peer ended the context with {}", name(code)),
            Failure::Closed => f.write_str("the context was closed"),
            Failure::NoContext => f.write_str("no free context"),
        }
    }
}
