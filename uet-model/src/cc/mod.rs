//! Congestion control (section 3.6): who may send, and by which path.
//!
//! Packet delivery tells a [`Ccc`] what happens to its packets, by the specification's event names, and asks it whether
//! the next may leave. It does not know which algorithms run.

mod ccc;

pub use ccc::*;

use core::time::Duration;
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// What is known of a packet that leaves: its nominal size, 40 bytes and the transport's (section 3.6.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The nominal size.
    pub size: u32,
    /// Whether it has been sent before.
    pub again: bool,
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// The entropy value.
    pub entropy: u16,
    /// Whether the window needs an ACK for it.
    pub ack_request: bool,
    /// With receiver credit, what the request says: the context's number and the credit wanted.
    pub credit_target: Option<(u8, Units24)>,
}

/// What an ACK tells. Of a packet that had been taken for lost before, [`Ccc::found`] is told first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckReport {
    /// How many packets of the counted set it acknowledges for the first time.
    pub packets: u32,
    /// The nominal sizes of those together, for an ACK without a count of bytes.
    pub bytes: u64,
    /// By how much the other side's `rcvd_bytes` of this PDC has grown, in bytes; `None` when it was not said.
    pub newly: Option<u64>,
    /// Arrival minus (transmission plus service time), where the packet that it names gives a valid sample.
    pub sample: Option<Duration>,
    /// Whether that packet was marked by congestion.
    pub marked: bool,
    /// The entropy value of that packet.
    pub entropy: u16,
    /// `rc`: the penalty is over.
    pub restore: bool,
    /// `rcv_cwnd_pend`: the receiver's penalty.
    pub penalty: u8,
    /// `credit`, the cumulative grant.
    pub credit: Option<Units24>,
}

/// What a NACK tells, of a packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackReport {
    /// The code.
    pub code: NackCode,
    /// The nominal size of the packet.
    pub size: u32,
    /// Arrival minus transmission, where that is a valid sample.
    pub sample: Option<Duration>,
    /// Whether the packet was marked by congestion.
    pub marked: bool,
    /// The entropy value of the packet.
    pub entropy: u16,
}

/// A control packet that congestion control wants sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A PROBE, for the base round trip.
    Probe,
    /// A CREDIT_REQUEST with the context's number and the credit wanted.
    CreditRequest(u8, Units24),
}

/// The states of a context (section 3.6.12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CccState {
    /// Nothing to send, nothing in flight.
    #[default]
    Idle,
    /// Nothing to send, packets in flight.
    Pending,
    /// Something to send, and an algorithm forbids it.
    Active,
    /// Something to send, and every algorithm permits it.
    Ready,
}
