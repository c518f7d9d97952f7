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
pub struct Destination {
    rcvd_bytes: u64,
    credit_alone: bool,
}

/// What an ACK answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// When the packet that `ack_psn` names arrived; `None` where that is no longer known.
    pub arrived: Option<Time>,
    /// How many packets are held out of order; `None` where nobody counts.
    pub out_of_order: Option<u32>,
    /// [`CreditPacer::granted`](super::CreditPacer::granted) of this source.
    pub granted: Units24,
}

impl Destination {
    /// The destination's side of a new PDC.
    pub fn new(params: &CcParams) -> Self {
        Destination { rcvd_bytes: 0, credit_alone: matches!(params.algorithms, Algorithms::Rccc(_)) }
    }

    /// A packet of the counted set has arrived, new and untrimmed, with this nominal size: 40 and the transport's
    /// (`CC-RCVD-001`). A duplicate and a trimmed packet are not told (`CC-RCVD-002`).
    pub fn received(&mut self, size: u32) {
        self.rcvd_bytes = self.rcvd_bytes.wrapping_add(size.into());
    }

    /// A packet that was counted is refused after all, and counts when it comes again (`PDS-NACK-011`).
    pub fn taken_back(&mut self, size: u32) {
        self.rcvd_bytes = self.rcvd_bytes.wrapping_sub(size.into());
    }

    /// The congestion state of an ACK_CC that leaves now: NSCC's, or the grant where RCCC runs alone. An ACK has room for
    /// one: with both algorithms grants travel in CREDIT control packets. `rcvd_bytes` is in units of 256 bytes, rounded up
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

/// `CC-SERVICE-001`: the time between arrival and ACK in units of 128 ns, 0xFFFF for 8.38848 ms and more. To the nearest;
/// but at least 1, since 0 would say that it is not known. The rounding is ours.
fn service_time(span: Duration) -> u16 {
    let units = span.as_nanos().saturating_add(64) / 128;
    u16::try_from(units).unwrap_or(u16::MAX).max(1)
}

/// How many packets are held out of order; 0xFFFF says that nobody counts.
fn ooo_count(packets: Option<u32>) -> u16 {
    packets.map_or(u16::MAX, |packets| packets.min(u16::MAX as u32 - 1) as u16)
}

/// The receiver penalty: how a FEP that cannot keep up slows all that send to it (section 3.6.13).
///
/// ```
/// use uet_model::cc::Penalty;
///
/// let mut penalty = Penalty::default();
/// penalty.set(64); // every window shall halve within a round trip
/// assert_eq!((penalty.value(), penalty.is_over()), (64, false));
/// penalty.set(0);
/// assert!(penalty.is_over(), "windows are restored");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Penalty {
    value: u8,
    was_set: bool,
}

impl Penalty {
    /// The highest: it brings each source to one packet per round trip.
    pub const MAX: u8 = 127;

    /// Slows the sources by this much from now on, at most [`MAX`](Self::MAX); 0 ends it.
    pub fn set(&mut self, value: u8) {
        self.value = value.min(Self::MAX);
        self.was_set |= value > 0;
    }

    /// `rcv_cwnd_pend`.
    pub fn value(self) -> u8 {
        self.value
    }

    /// `rc`: there was a penalty, and it is over. It is said until the next, since an ACK may get lost, and a source that
    /// has restored its window does not do so again (`CC-PENALTY-002`).
    pub fn is_over(self) -> bool {
        self.was_set && self.value == 0
    }
}

/// `ack_cc_state`, by `cc_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCcState {
    /// Of NSCC.
    Nscc {
        /// `service_time`.
        service_time: u16,
        /// `rc`.
        restore: bool,
        /// `rcv_cwnd_pend`.
        penalty: u8,
        /// `rcvd_bytes`.
        rcvd_bytes: Units24,
        /// `ooo_count`.
        ooo_count: u16,
    },
    /// Of RCCC.
    Credit {
        /// `credit`.
        credit: Units24,
        /// `ooo_count`.
        ooo_count: u16,
    },
}

impl AckCcState {
    /// Writes it into an ACK_CC.
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
