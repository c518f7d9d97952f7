use crate::Time;
use core::time::Duration;
use uet_wire::Units24;

/// What the source knows of the other side's `rcvd_bytes`, per PDC.
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
pub struct RcvdBytes {
    last: Units24,
    /// Bytes that ACKs without a count have told, and that the count does not know to be told.
    ahead: u64,
}

impl RcvdBytes {
    /// How many bytes an ACK newly acknowledges (`CC-RCVD-003`): what its count has grown by, or where it has none the
    /// nominal sizes of the packets that it acknowledges for the first time, which the next count does not tell again.
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

/// What the record of a packet in flight says, where an ACK or NACK names that packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it left, last.
    pub at: Time,
    /// How often it was sent again.
    pub retransmissions: u32,
}

/// The round trip that an ACK measures: its arrival minus transmission and service time, or `None` where that cannot be
/// told.
///
/// `CC-RTT-001`: it counts only where it is certain which transmission is answered: the packet was never sent again and
/// the ACK has retx = 0, or was sent again once and the ACK has retx = 1. A `service_time` of 0 is not valid, and one of
/// 0xFFFF has no upper end; that neither gives a sample is our choice. A NACK has no service time: give `None`.
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
