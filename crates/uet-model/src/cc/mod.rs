//! Congestion control (section 3.6): decides when packets leave, and on which path.
//!
//! Packet delivery reports each event of its packets to a [`Ccc`], by the specification's event names. It then asks
//! whether the next packet may leave, and does not know which algorithms run. `docs/congestion.md` describes the
//! algorithms.
//!
//! # Calls of packet delivery
//!
//! As a source, per context:
//!
//! | when | call |
//! | --- | --- |
//! | a packet of the counted set is queued | [`Ccc::new_data`] |
//! | a packet could leave | [`Ccc::may_send`], then [`Ccc::send`] |
//! | an ACK | [`Ccc::found`] for each packet that was declared lost, then [`Ccc::ack`] |
//! | the ACK of a PROBE | [`Ccc::probe_answered`] |
//! | a NACK | [`Ccc::nack`] |
//! | a loss by timeout or inference | [`Ccc::lost`] |
//! | a CREDIT | [`Ccc::credit`] |
//! | a PDC ends | [`Ccc::gone`] |
//! | after each of these | [`Ccc::poll_wanted`], [`Ccc::timeout`] |
//!
//! Each PDC keeps an [`RcvdBytes`], which computes [`AckReport::newly`] from `rcvd_bytes`. [`rtt_sample`] computes
//! [`AckReport::sample`] from `service_time`.
//!
//! As a destination, each PDC keeps a [`Destination`]:
//!
//! | when | call |
//! | --- | --- |
//! | a packet of the counted set arrives | [`Destination::received`], once, when it is new and untrimmed |
//! | an ACK or NACK leaves | it uses the entropy value of the packet that it answers (`CC-PATH-001`) |
//! | an ACK_CC leaves | [`Destination::state_for_ack`] returns its `ack_cc_state`, [`AckCcState::onto`] writes it |
//!
//! With receiver credit ([`CcParams::grants_credit`]), each FEP keeps a [`CreditPacer`]:
//!
//! | when | call |
//! | --- | --- |
//! | a RUD_CC_REQ or ROD_CC_REQ, including trimmed and duplicate ones | [`CreditPacer::demand`] |
//! | a CREDIT_REQUEST | [`CreditPacer::request`] |
//! | after each of these, and at [`CreditPacer::timeout`] | [`CreditPacer::poll_grant`], and a CREDIT for each [`Grant`] |
//!
//! Both ends count the same packets: those that take a PSN and carry a SES header. These include read requests and
//! empty writes, but not control packets. Public sources do not settle this set.

mod algorithm;
mod both;
mod ccc;
mod destination;
mod nscc;
mod params;
mod path;
mod rccc;
mod received;

pub use algorithm::{Algorithm, CreateAlgorithm, CustomAlgorithm, Observed, SendDecision, Sums, Unlimited};
pub use both::Both;
pub use ccc::Ccc;
pub use destination::{AckCcState, Answered, Destination, Penalty};
pub use nscc::{Nscc, NsccParams, PenaltyReading};
pub use params::{Algorithms, CcError, CcParams, NetworkParams, TfcParams};
pub use path::{PathFeedback, PathMode, PathParams, PathSelector};
pub use rccc::{CreditPacer, CreditSource, Grant, PacerParams, Rccc, RcccParams};
pub use received::{RcvdBytes, Sent, rtt_sample};

use core::time::Duration;
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The nominal size in bytes: the transport's bytes and 40 (section 3.6.12).
    pub size: u32,
    /// True if it is a retransmission.
    pub is_retransmission: bool,
}

/// The fields that congestion control chooses for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// The entropy value.
    pub entropy: u16,
    /// True if the packet requests an ACK for the window.
    pub ack_request: bool,
    /// With receiver credit, the context's number and credit target for the request.
    pub credit_target: Option<(u8, Units24)>,
}

/// The content of an ACK for congestion control. For a packet that was declared lost, call [`Ccc::found`] first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckReport {
    /// The number of counted packets that it acknowledges for the first time.
    pub packets: u32,
    /// The sum of their nominal sizes, for an ACK without a byte count.
    pub bytes: u64,
    /// The growth of the peer's `rcvd_bytes` of this PDC, in bytes; `None` if not stated.
    pub newly: Option<u64>,
    /// The round-trip time: arrival minus transmission and service time, if the named packet gives a valid sample.
    pub sample: Option<Duration>,
    /// The nominal size of that packet; `None` counts as a full one.
    pub size: Option<u32>,
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
    /// True if the peer has no PDC for it (`spdcid` is 0). A trimmed packet opens none.
    pub no_pdc: bool,
}

/// A control packet that congestion control requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A PROBE that measures the base round-trip time.
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
