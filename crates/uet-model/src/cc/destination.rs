use super::{Algorithms, CcParams};
use crate::Time;
use core::time::Duration;
use uet_wire::Units24;
use uet_wire::pds::AckCcMut;
use uet_wire::registry::CcType;

/// The destination's side of congestion control, per PDC (section 3.6.13).
///
/// ```
/// use uet_model::Time;
/// use uet_model::cc::{AckCcState, Answered, CcParams, Destination, Penalty};
/// use uet_wire::Units24;
///
/// let mut destination = Destination::new(&CcParams::default());
/// destination.received(4208);
/// let answered = Answered { arrived: Some(Time(1_000)), ..Answered::default() };
/// assert_eq!(
///     destination.state_for_ack(Time(2_024), answered, Penalty::default()),
///     AckCcState::Nscc {
///         service_time: 8,
///         restore: false,
///         penalty: 0,
///         rcvd_bytes: Units24::from_bytes(4208),
///         ooo_count: 0xffff,
///     }
/// );
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Destination {
    rcvd_bytes: u64,
    credit_alone: bool,
}

/// The facts about an ACK that the state needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// The arrival time of the packet that `ack_psn` names; `None` if unknown.
    pub arrived: Option<Time>,
    /// The number of packets received out of order; `None` if not counted.
    pub out_of_order: Option<u32>,
    /// [`CreditPacer::granted`](super::CreditPacer::granted) of this source.
    pub granted: Units24,
}

impl Destination {
    /// Creates the destination side of a new PDC.
    pub fn new(params: &CcParams) -> Self {
        Destination { rcvd_bytes: 0, credit_alone: matches!(params.algorithms, Algorithms::Rccc(_)) }
    }

    /// Counts from this number of bytes instead of 0. For tests of the wrap.
    #[must_use]
    pub fn counting_from(self, rcvd_bytes: u64) -> Self {
        Destination { rcvd_bytes, ..self }
    }

    /// Counts a new, untrimmed packet that takes a PSN and carries a SES header (`CC-RCVD-001`). `size` is its nominal
    /// size. Do not call this for duplicates and trimmed packets (`CC-RCVD-002`).
    pub fn received(&mut self, size: u32) {
        self.rcvd_bytes = self.rcvd_bytes.wrapping_add(size.into());
    }

    /// Removes a counted packet that SES refused. Its retransmission counts again (`PDS-NACK-011`).
    pub fn taken_back(&mut self, size: u32) {
        self.rcvd_bytes = self.rcvd_bytes.wrapping_sub(size.into());
    }

    /// Returns the congestion state of an ACK_CC: that of NSCC, or the grant if RCCC runs alone. An ACK has room for one of
    /// them, so with both algorithms CREDIT control packets carry grants. `rcvd_bytes` is in units of 256 bytes, rounded up
    /// (`CC-RCVD-004`).
    pub fn state_for_ack(&self, now: Time, answered: Answered, penalty: Penalty) -> AckCcState {
        let ooo_count = ooo_count(answered.out_of_order);
        if self.credit_alone {
            return AckCcState::Credit { credit: answered.granted, ooo_count };
        }
        AckCcState::Nscc {
            service_time: answered.arrived.map_or(0, |arrived| service_time(now - arrived)),
            restore: penalty.is_over(),
            penalty: penalty.value(),
            rcvd_bytes: Units24::from_bytes(self.rcvd_bytes),
            ooo_count,
        }
    }
}

/// `CC-SERVICE-001`: the time between arrival and ACK in units of 128 ns, 0xFFFF for 8.38848 ms and more. Rounds to nearest,
/// but at least 1, since 0 means unknown. The rounding is ours.
fn service_time(span: Duration) -> u16 {
    // `CC-SERVICE-002`
    let units = span.as_nanos().saturating_add(64) / 128;
    u16::try_from(units).unwrap_or(u16::MAX).max(1)
}

/// `CC-OOO-001`: returns the count of out-of-order packets; 0xFFFF if not counted.
fn ooo_count(packets: Option<u32>) -> u16 {
    packets.map_or(u16::MAX, |packets| packets.min(u16::MAX as u32 - 1) as u16)
}

/// The receiver penalty, by which a slow FEP slows all its sources (section 3.6.13).
///
/// ```
/// use uet_model::cc::Penalty;
///
/// let mut penalty = Penalty::default();
/// penalty.set(64); // Halve every window within a round trip.
/// assert_eq!((penalty.value(), penalty.is_over()), (64, false));
/// penalty.set(0);
/// assert!(penalty.is_over(), "windows are restored");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Penalty {
    value: u8,
    was_set: bool,
}

impl Penalty {
    /// The highest penalty, which limits each source to one packet per round trip.
    pub const MAX: u8 = 127;

    /// Sets the penalty, at most [`MAX`](Self::MAX); 0 ends it.
    pub fn set(&mut self, value: u8) {
        self.value = value.min(Self::MAX);
        self.was_set |= value > 0;
    }

    /// Returns `rcv_cwnd_pend`.
    pub fn value(self) -> u8 {
        self.value
    }

    /// Returns `rc`: a penalty has ended. It stays set until the next penalty, because an ACK may be lost, and a source
    /// restores its window only once (`CC-PENALTY-002`).
    pub fn is_over(self) -> bool {
        self.was_set && self.value == 0
    }
}

/// `ack_cc_state`, by `cc_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCcState {
    /// The state of NSCC.
    Nscc {
        /// The time between arrival and ACK, in units of 128 ns.
        service_time: u16,
        /// True if a penalty has ended.
        restore: bool,
        /// The receiver penalty.
        penalty: u8,
        /// The received bytes, in units of 256.
        rcvd_bytes: Units24,
        /// The number of packets received out of order.
        ooo_count: u16,
    },
    /// The state of RCCC.
    Credit {
        /// The cumulative grant.
        credit: Units24,
        /// The number of packets received out of order.
        ooo_count: u16,
    },
}

impl AckCcState {
    /// Writes the state into an ACK_CC.
    ///
    /// ```
    /// use uet_model::cc::AckCcState;
    /// use uet_wire::Units24;
    /// use uet_wire::pds::AckCc;
    ///
    /// let state = AckCcState::Credit { credit: Units24::from_bytes(12_500), ooo_count: 3 };
    /// let ack = state.onto(AckCc::build()).done()?;
    /// assert_eq!((ack.credit(), ack.ooo_count()), (Units24::new(49), Some(3)));
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    pub fn onto(self, ack: AckCcMut) -> AckCcMut {
        match self {
            AckCcState::Nscc { service_time, restore, penalty, rcvd_bytes, ooo_count } => ack
                .cc_type(CcType::NSCC)
                .service_time(service_time)
                .rc(restore)
                .rcv_cwnd_pend(penalty)
                .rcvd_bytes(rcvd_bytes)
                .ooo_count(ooo_count),
            AckCcState::Credit { credit, ooo_count } => {
                ack.cc_type(CcType::CREDIT).credit(credit).ooo_count(ooo_count)
            }
        }
    }
}
