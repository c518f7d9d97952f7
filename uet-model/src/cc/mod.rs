//! Congestion control (section 3.6): who may send, and by which path.
//!
//! Packet delivery tells a [`Ccc`] what happens to its packets, by the specification's event names, and asks it whether
//! the next may leave. It does not know which algorithms run. `docs/congestion.md` says what each of them does.
//!
//! # What packet delivery calls
//!
//! As a source, per context:
//!
//! | when | call |
//! | --- | --- |
//! | a packet of the counted set is queued | [`Ccc::new_data`] |
//! | a packet could leave | [`Ccc::may_send`], then [`Ccc::send`] |
//! | an ACK | [`Ccc::found`] for what had been taken for lost, then [`Ccc::ack`] |
//! | the ACK of a PROBE | [`Ccc::probe_answered`] |
//! | a NACK | [`Ccc::nack`] |
//! | RTO, or loss inferred | [`Ccc::lost`] |
//! | a CREDIT | [`Ccc::credit`] |
//! | a PDC ends | [`Ccc::gone`] |
//! | after each of these | [`Ccc::poll_wanted`], [`Ccc::timeout`] |
//!
//! Each PDC keeps an [`RcvdBytes`], which makes [`AckReport::newly`] of `rcvd_bytes`, and [`rtt_sample`] makes
//! [`AckReport::sample`] of `service_time`.
//!
//! As a destination, each PDC keeps a [`Destination`]:
//!
//! | when | call |
//! | --- | --- |
//! | a packet of the counted set arrives | [`Destination::received`], once, when it is new and untrimmed |
//! | an ACK or NACK leaves | by the entropy value of the packet that it answers (`CC-PATH-001`) |
//! | an ACK_CC leaves | [`Destination::state_for_ack`] gives its `ack_cc_state`, [`AckCcState::onto`] writes it |
//!
//! and where receiver credit runs ([`CcParams::grants_credit`]) each FEP keeps a [`CreditPacer`]:
//!
//! | when | call |
//! | --- | --- |
//! | a RUD_CC_REQ or ROD_CC_REQ, trimmed or not, new or not | [`CreditPacer::demand`] |
//! | a CREDIT_REQUEST | [`CreditPacer::request`] |
//! | after each of these, and at [`CreditPacer::timeout`] | [`CreditPacer::poll_grant`], and a CREDIT for each [`Grant`] |
//!
//! Both ends count the same packets: those that take a PSN and carry a SES header, read requests and writes of no bytes
//! included. Control packets do not count. Public sources do not settle this set.

mod algorithm;
mod both;
mod ccc;
mod destination;
mod nscc;
mod params;
mod path;
mod rccc;
mod received;

pub use algorithm::{Algorithm, Observed, SendDecision, Sums, Unlimited};
pub use both::Both;
pub use ccc::Ccc;
pub use destination::{AckCcState, Answered, Destination, Penalty};
pub use nscc::{Nscc, NsccParams, PenaltyReading};
pub use params::{Algorithms, CcError, CcParams, Network, TfcParams};
pub use path::{PathFeedback, PathMode, PathParams, PathSelector};
pub use rccc::{CreditPacer, CreditSource, Grant, PacerParams, Rccc, RcccParams};
pub use received::{RcvdBytes, Sent, rtt_sample};

use core::time::Duration;
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// A packet that leaves, with its nominal size: 40 bytes and the transport's (section 3.6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The nominal size.
    pub size: u32,
    /// True if it was sent before.
    pub is_retransmission: bool,
}

/// The way a packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// The entropy value.
    pub entropy: u16,
    /// True if the packet requests an ACK for the window.
    pub ack_request: bool,
    /// With receiver credit, the context's number and credit target for the request.
    pub credit_target: Option<(u8, Units24)>,
}

/// The content of an ACK for congestion control. Call [`Ccc::found`] first for a packet that was declared lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckReport {
    /// The number of counted packets that it acknowledges for the first time.
    pub packets: u32,
    /// Their nominal sizes together, for an ACK without a byte count.
    pub bytes: u64,
    /// The growth of the peer's `rcvd_bytes` of this PDC, in bytes; `None` if not stated.
    pub newly: Option<u64>,
    /// The round-trip time: arrival minus transmission and service time, if the named packet gives a valid sample.
    pub sample: Option<Duration>,
    /// True if that packet was marked (ECN).
    pub marked: bool,
    /// The entropy value of that packet.
    pub entropy: u16,
    /// `rc`: the penalty has ended.
    pub restore: bool,
    /// `rcv_cwnd_pend`: the receiver's penalty.
    pub penalty: u8,
    /// `credit`, the cumulative grant.
    pub credit: Option<Units24>,
}

/// The content of a NACK of a packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackReport {
    /// The NACK code.
    pub code: NackCode,
    /// The nominal size of the packet.
    pub size: u32,
    /// The round-trip time, if it is a valid sample.
    pub sample: Option<Duration>,
    /// True if the packet was marked (ECN).
    pub marked: bool,
    /// The entropy value of the packet.
    pub entropy: u16,
    /// True if the peer has no PDC for it: `spdcid` is 0. A trimmed packet opens none.
    pub no_pdc: bool,
}

/// A control packet that congestion control asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A PROBE, for the base round trip.
    Probe,
    /// A CREDIT_REQUEST with the context's number and credit target. It needs an established PDC.
    CreditRequest(u8, Units24),
}

/// The state of a context (section 3.6.12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CccState {
    /// Nothing to send, nothing in flight.
    #[default]
    Idle,
    /// Nothing to send, packets in flight.
    Pending,
    /// Something to send, but an algorithm forbids it.
    Active,
    /// Something to send, and every algorithm permits it.
    Ready,
}
