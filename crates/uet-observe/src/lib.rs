//! Observes UET packets, reports facts about their contexts, and judges both ends by them.
//!
//! [`Observer::observe`] takes packets in capture order, assigns each packet to a context and returns
//! [`Facts`]: the PSN, the earlier transmission of the same PSN, the packets that an ACK acknowledges. [`Context`] and its
//! two [`Direction`]s hold everything known so far. The observer does not judge devices; the rules of [`passive`] do.
//!
//! A capture may start in the middle, lack packets or show one direction only. Endpoints also reuse identifiers. The
//! observer then reports less, and starts a new context when the PSNs do not fit the old one. It drops a context after
//! the ACK of its CLOSE_COMMAND. For an open context, it keeps the requests that are not acknowledged and cleared, at most
//! 4,096 per direction, and a few before them. Over all contexts it keeps a million packets; beyond that, it forgets
//! all contexts.
//!
//! ```
//! use uet_observe::{Event, Facts, Observed, Observer};
//! use uet_wire::pds::{Ack, PdsBuf, Request};
//! use uet_wire::{PdcId, Psn, PsnOffset, UetBuf};
//!
//! let (a, b) = ([10, 0, 0, 1].into(), [10, 0, 1, 12].into());
//! let open = Request::rud().syn(true).spdcid(PdcId(0x4001)).psn_offset(PsnOffset::ZERO);
//! let open = UetBuf::new(open.psn(Psn(700)).clear_psn_offset(-1).done()?).to_bytes();
//! let ack = Ack::build().cack_psn(Psn(700)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001));
//! let ack = UetBuf::new(ack.done()?).to_bytes();
//!
//! let mut observer = Observer::default();
//! observer.observe(&Observed::new(1, a, b, &open));
//! let facts = observer.observe(&Observed::new(2, b, a, &ack));
//! let Facts::Context { context, sender, event: Event::Ack { acknowledged, .. }, .. } = facts else { panic!() };
//! assert_eq!(acknowledged, [1]);
//! assert_eq!(context.start, Some((Psn(700), 1)));
//! assert_eq!(context.initiator, Some(sender.other()));
//! assert_eq!(context.direction(sender).pdcid, Some(PdcId(0x8001)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod apply;
mod context;
mod corrections;
mod iv_history;
mod observed;
mod observer;
pub mod passive;
mod rudi;

pub use context::{
    Context, ContextId, Direction, MessagePart, RcvdBytes, ReadData, ReadRequest, SentRequest, Side, Stray,
};
pub use corrections::{Correction, Corrections};
pub use iv_history::IvHistory;
pub use observed::Observed;
pub use observer::Observer;
pub use rudi::{RudiFacts, RudiQuestion};

use uet_wire::registry::{CtlType, NackCode};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The facts that one packet adds.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // nearly every packet belongs to a context, and the facts are not stored
pub enum Facts<'o> {
    /// The packet belongs to a context.
    Context {
        /// The context after this packet was applied.
        context: &'o Context,
        /// The side that sent the packet.
        sender: Side,
        /// The read whose data the packet carries, in its state before the packet.
        read: Option<ReadRequest>,
        /// The event of the PDS header.
        event: Event,
        /// Earlier ACKs with the identifiers of this context and PSNs that it never had. This packet proves that the
        /// context is still open.
        strays: Vec<Stray>,
    },
    /// The packet is a RUDI request or response.
    Rudi(RudiFacts),
    /// The packet belongs to no context: a datagram, an encrypted packet, or a reply without a known context.
    Unrelated,
}

/// The event that a packet of a context reports. An index is the distance of a PSN from the first one of its direction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request.
    Request {
        /// The index of its PSN in the sender's direction.
        index: i64,
        /// The record of this transmission.
        sent: SentRequest,
        /// The record of the first transmission of this PSN, with additions from later ones; `None` if this is the
        /// first.
        earlier: Option<SentRequest>,
    },
    /// A control packet.
    Control {
        /// Its type.
        kind: CtlType,
        /// The index of its PSN in the sender's direction.
        index: i64,
    },
    /// An ACK.
    Ack {
        /// The index of its cumulative PSN in the receiver's direction.
        cack: i64,
        /// The index of the PSN that it names; `None` for the reply to a PROBE.
        named: Option<i64>,
        /// The numbers of the packets that it acknowledges for the first time.
        acknowledged: Vec<u64>,
        /// The previous `rcvd_bytes` count, if this ACK has a count too.
        rcvd_before: Option<RcvdBytes>,
    },
    /// A NACK.
    Nack {
        /// Its code.
        code: NackCode,
        /// The index of the refused PSN in the receiver's direction.
        named: Option<i64>,
    },
}
