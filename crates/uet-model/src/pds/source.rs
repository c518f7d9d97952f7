//! The send side of one direction: numbering, the window, packets in flight, CLEAR_PSN.
//!
//! `PDS-PSN-006`: [`Psn`] compares modulo 2^32.

use super::list::{List, NOWHERE, SlabKey};
use crate::cc::RcvdBytes;
use crate::{MessageKey, PdsParams};
use std::collections::VecDeque;
use uet_wire::{Psn, PsnOffset};

/// The limit of packets in flight, so that `clear_psn_offset` fits 16 bits.
const FARTHEST: usize = 32_767;

#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct PdcSource {
    /// The first PSN.
    start: Psn,
    /// The PSN of the next packet.
    next: Psn,
    /// The highest cumulative PSN of any ACK.
    cack: Psn,
    /// MP_RANGE as last announced by the destination.
    range: u32,
    /// The highest PSN that may be sent.
    limit: Psn,
    /// The packets from CLEAR_PSN + 1 on; [`NOWHERE`] for answered ones.
    in_flight: VecDeque<SlabKey>,
    /// Packets without a PSN yet.
    pub(super) queue: List,
    /// Packets to retransmit.
    pub(super) retx: List,
    /// The message whose last packet has not been queued yet.
    pub(super) message: Option<MessageKey>,
    /// The last CLEAR_PSN sent.
    pub(super) clear_told: Psn,
    /// The CLEAR_PSN that the destination requested.
    pub(super) clear_wanted: Option<Psn>,
    /// The number of ACK_REQUEST packets since the window closed.
    pub(super) asked: u8,
    /// True if SES is paused.
    pub(super) paused: bool,
    /// True if a request was refused because another message is incomplete.
    pub(super) shut_out: bool,
    /// The last `rcvd_bytes` received.
    pub(super) rcvd: RcvdBytes,
    /// The PSN up to which gaps were checked.
    judged: Psn,
    /// The highest PSN known to have arrived.
    highest_arrived: Psn,
}

impl PdcSource {
    /// `PDS-SYN-008`; `PDS-SYN-006`: until the first ACK, the offset of a PSN is at most 4,095 and within the default
    /// window.
    pub(super) fn new(start: Psn, params: &PdsParams) -> Self {
        let before = start - 1;
        let range = params.mp_range(params.default_mpr.max(1));
        let offset = (range - 1).min(PsnOffset::MAX.get().into());
        PdcSource {
            start,
            next: start,
            cack: before,
            range,
            limit: start + offset,
            in_flight: VecDeque::new(),
            queue: List::default(),
            retx: List::default(),
            message: None,
            clear_told: before,
            clear_wanted: None,
            asked: 0,
            paused: false,
            shut_out: false,
            rcvd: RcvdBytes::from_bytes(params.start_rcvd_bytes),
            judged: before,
            highest_arrived: before,
        }
    }

    pub(super) fn cack(&self) -> Psn {
        self.cack
    }

    /// The highest PSN sent.
    pub(super) fn highest(&self) -> Psn {
        self.next - 1
    }

    /// The number of PSNs used.
    pub(super) fn used(&self) -> u32 {
        self.next - self.start
    }

    pub(super) fn start(&self) -> Psn {
        self.start
    }

    /// `PDS-CLR-001`: CLEAR_PSN is the highest PSN up to which every packet was answered, by name or cumulatively. A SACK
    /// does not count. `PDS-CLR-002`: it never moves back.
    pub(super) fn clear(&self) -> Psn {
        self.next - (self.in_flight.len() as u32 + 1)
    }

    /// Records that the destination requested CLEAR_PSN up to this PSN.
    pub(super) fn want_clear(&mut self, psn: Psn) {
        if psn.is_after(self.clear_told) && self.clear_wanted.is_none_or(|wanted| psn.is_after(wanted)) {
            self.clear_wanted = Some(psn);
        }
    }

    /// Returns CLEAR_PSN, and records that it is being sent.
    pub(super) fn clear_is_told(&mut self) -> Psn {
        self.clear_told = self.clear();
        self.clear_wanted = self.clear_wanted.filter(|wanted| wanted.is_after(self.clear_told));
        self.clear_told
    }

    /// `PDS-WIN-004`: no PSN above the cumulative one + MP_RANGE is sent.
    pub(super) fn window_is_open(&self) -> bool {
        !self.next.is_after(self.limit) && self.in_flight.len() < FARTHEST
    }

    /// Gives the next PSN to a packet: `PDS-PSN-001`, consecutive numbers.
    pub(super) fn number(&mut self, key: SlabKey) -> Psn {
        let psn = self.next;
        self.next = psn + 1;
        self.in_flight.push_back(key);
        psn
    }

    /// `PDS-PSN-004`: a cumulative PSN above the highest sent is invalid.
    pub(super) fn was_sent(&self, psn: Psn) -> bool {
        !psn.is_after(self.highest())
    }

    /// `PDS-NACK-002`: a NACK names a PSN above the cumulative one and not above the highest sent.
    pub(super) fn is_outstanding(&self, psn: Psn) -> bool {
        self.next != self.cack + 1 && psn.is_within(self.cack + 1, self.highest())
    }

    /// Moves the window with the cumulative PSN, at the range last announced.
    pub(super) fn slide(&mut self) {
        let limit = self.cack + self.range;
        if limit.is_after(self.limit) {
            self.limit = limit;
        }
    }

    /// Handles a cumulative PSN. Returns whether it is not older than the highest so far.
    pub(super) fn acknowledged(&mut self, cack: Psn) -> bool {
        let newer = cack.is_after(self.cack);
        if newer {
            self.cack = cack;
        }
        newer || cack == self.cack
    }

    /// `PDS-WIN-002`, `PDS-WIN-003`: applies a range from an ACK that is not older than the newest. The window never
    /// shrinks.
    pub(super) fn stated(&mut self, range: u32) {
        self.range = range;
        self.slide();
    }

    /// Returns the packet of a PSN that was not answered.
    pub(super) fn find(&self, psn: Psn) -> Option<SlabKey> {
        let index = (psn - (self.clear() + 1)) as usize;
        self.in_flight.get(index).copied().filter(|key| *key != NOWHERE)
    }

    /// Removes an answered packet. CLEAR_PSN may move.
    pub(super) fn take(&mut self, psn: Psn) -> Option<SlabKey> {
        let index = (psn - (self.clear() + 1)) as usize;
        let key = core::mem::replace(self.in_flight.get_mut(index)?, NOWHERE);
        while self.in_flight.front() == Some(&NOWHERE) {
            self.in_flight.pop_front();
        }
        if self.in_flight.is_empty() && self.in_flight.capacity() > 4 {
            self.in_flight = VecDeque::new();
        }
        Some(key).filter(|key| *key != NOWHERE)
    }

    /// Returns the numbered packets without an answer, in order.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = SlabKey> + '_ {
        self.in_flight.iter().copied().filter(|key| *key != NOWHERE)
    }

    /// Returns whether every numbered packet was answered.
    pub(super) fn is_quiet(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Returns whether nothing is queued or in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.queue.is_empty()
    }

    /// `PDS-NACK-009`: shifts the PSNs of all packets with the start, so that each keeps its offset.
    pub(super) fn renumber(&mut self, start: Psn) {
        let moved = |psn: Psn| start + (psn - self.start);
        (self.next, self.limit) = (moved(self.next), moved(self.limit));
        (self.cack, self.clear_told) = (moved(self.cack), moved(self.clear_told));
        (self.judged, self.highest_arrived) = (moved(self.judged), moved(self.highest_arrived));
        self.start = start;
    }

    /// Forgets all packets. The caller removes them from the pool.
    pub(super) fn abandon(&mut self) {
        self.in_flight = VecDeque::new();
        (self.queue, self.retx) = (List::default(), List::default());
        (self.message, self.clear_wanted) = (None, None);
    }

    pub(super) fn arrived(&mut self, psn: Psn) {
        if psn.is_after(self.highest_arrived) {
            self.highest_arrived = psn;
        }
    }

    /// Returns the next PSN that has at least `distance` arrivals above it and was not checked before.
    pub(super) fn next_gap(&mut self, distance: u16) -> Option<Psn> {
        if self.cack.is_after(self.judged) {
            self.judged = self.cack;
        }
        while (self.highest_arrived - u32::from(distance)).is_after(self.judged) {
            self.judged = self.judged + 1;
            if self.find(self.judged).is_some() {
                return Some(self.judged);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(start: u32, default_mpr: u8) -> PdcSource {
        PdcSource::new(Psn(start), &PdsParams { default_mpr, ..PdsParams::default() })
    }

    #[test]
    fn clear_moves_over_what_is_answered_without_gaps() {
        let mut source = source(u32::MAX, 8);
        for key in 0..4 {
            assert_eq!(source.number(key), Psn(u32::MAX) + key);
        }
        assert_eq!(source.clear(), Psn(u32::MAX - 1));
        assert_eq!(source.take(Psn(1)), Some(2));
        assert_eq!(source.take(Psn(1)), None, "only once");
        assert_eq!(source.clear(), Psn(u32::MAX - 1));
        assert_eq!(source.take(Psn(u32::MAX)), Some(0));
        assert_eq!(source.clear(), Psn(u32::MAX));
        assert_eq!(source.take(Psn(0)), Some(1));
        assert_eq!(source.clear(), Psn(1));
        assert_eq!((source.find(Psn(2)), source.find(Psn(1)), source.find(Psn(3))), (Some(3), None, None));
    }

    #[test]
    fn before_the_first_ack_the_offset_is_bounded() {
        let count = |mpr| {
            let mut source = source(7, mpr);
            (0..).take_while(|key| source.window_is_open() && source.number(*key) != Psn(0)).count()
        };
        assert_eq!(count(8), 1024);
        assert_eq!(count(1), 128);
        assert_eq!(count(255), 4096);
    }

    #[test]
    fn a_smaller_range_takes_nothing_back() {
        let mut source = source(333, 8);
        assert!(source.acknowledged(Psn(332)));
        source.stated(128);
        assert_eq!(source.limit, Psn(1356));
        source.stated(2048);
        assert_eq!(source.limit, Psn(332 + 2048));
    }
}
