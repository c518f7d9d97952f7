use crate::Time;
use core::time::Duration;
use uet_wire::Units24;

/// The peer's `rcvd_bytes` as the source knows it, per PDC.
///
/// ```
/// use uet_model::cc::RcvdBytes;
/// use uet_wire::Units24;
///
/// let mut rcvd = RcvdBytes::default();
/// assert_eq!(rcvd.newly(Some(Units24::from_bytes(12_288)), 0), 12_288);
/// assert_eq!(rcvd.newly(Some(Units24::from_bytes(16_384)), 0), 4_096);
/// assert_eq!(rcvd.newly(Some(Units24::from_bytes(12_288)), 0), 0, "stale");
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct RcvdBytes {
    last: Units24,
    /// Bytes that ACKs without a count reported, and that the count includes later.
    ahead: u64,
}

impl RcvdBytes {
    /// Creates the record for a peer that counts from this number of bytes.
    pub fn from_bytes(start: u64) -> Self {
        RcvdBytes { last: Units24::from_bytes(start), ahead: 0 }
    }

    /// Returns the bytes that an ACK newly acknowledges (`CC-RCVD-003`): the growth of its count. Without a count, they are
    /// the nominal sizes of newly acknowledged packets, which the next count does not report again.
    pub fn newly(&mut self, reported: Option<Units24>, sizes: u64) -> u64 {
        match reported {
            None => {
                self.ahead = self.ahead.saturating_add(sizes);
                sizes
            }
            Some(reported) => {
                let Some(units) = reported.since(self.last) else { return 0 };
                self.last = reported;
                let grown = u64::from(units) * Units24::UNIT;
                let told = grown.min(self.ahead);
                self.ahead -= told;
                grown - told
            }
        }
    }
}

/// The record of a packet in flight that an ACK or NACK names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The time of its last transmission.
    pub at: Time,
    /// The number of retransmissions.
    pub retransmissions: u32,
}

/// Returns the round-trip time that an ACK measures: arrival minus transmission and service time. Returns `None` if it
/// is unknown.
///
/// `CC-RTT-001`: a sample counts only if it is certain which transmission the ACK answers. Either the packet was never
/// retransmitted and the ACK has retx = 0, or it was retransmitted once and the ACK has retx = 1. A `service_time` of 0
/// is invalid, and one of 0xFFFF has no upper bound. Neither gives a sample; that is our choice. For a NACK pass
/// `None`.
///
/// ```
/// use core::time::Duration;
/// use uet_model::Time;
/// use uet_model::cc::{Sent, rtt_sample};
///
/// let sent = Sent { at: Time(1_000), retransmissions: 0 };
/// assert_eq!(rtt_sample(Time(8_024), sent, false, Some(8)), Some(Duration::from_micros(6)));
/// assert_eq!(rtt_sample(Time(8_024), sent, true, Some(8)), None, "it was not sent again, and what arrived was");
/// ```
pub fn rtt_sample(arrival: Time, sent: Sent, ack_retx: bool, service_time: Option<u16>) -> Option<Duration> {
    let service = match service_time {
        Some(0 | u16::MAX) => return None,
        units => Duration::from_nanos(u64::from(units.unwrap_or(0)) * 128),
    };
    match (sent.retransmissions, ack_retx) {
        (0, false) | (1, true) => (arrival - sent.at).checked_sub(service),
        _ => None,
    }
}
