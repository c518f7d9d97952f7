//! The send side of one direction: numbering, the window, what is in flight, CLEAR_PSN.
//!
//! `PDS-PSN-006`: PSNs are compared modulo 2^32, by the arithmetic of [`Psn`].

use super::destination::mp_range;
use super::list::{List, NOWHERE, SlabKey};
use crate::MessageKey;
use crate::cc::RcvdBytes;
use std::collections::VecDeque;
use uet_wire::{Psn, PsnOffset};

/// What is in flight at most: `clear_psn_offset` then always fits its 16 bits.
const FARTHEST: usize = 32_767;

#[derive(Debug)]
pub(super) struct PdcSource {
    /// The first PSN.
    start: Psn,
    /// The PSN that the next packet takes.
    next: Psn,
    /// The highest cumulative PSN that came in an ACK.
    cack: Psn,
    /// MP_RANGE as the destination last stated it.
    range: u32,
    /// The highest PSN that may be sent.
    limit: Psn,
    /// The packets from CLEAR_PSN + 1 on; [`NOWHERE`] for those that have been answered.
    in_flight: VecDeque<SlabKey>,
    /// Packets without a number.
    pub(super) queue: List,
    /// Packets to be sent again.
    pub(super) retx: List,
    /// The message whose last packet has not been asked for yet.
    pub(super) message: Option<MessageKey>,
    /// CLEAR_PSN as the destination has been told.
    pub(super) clear_told: Psn,
    /// Up to where the destination wants to be told, if it does.
    pub(super) clear_wanted: Option<Psn>,
    /// How often the destination has been asked since the window is shut.
    pub(super) asked: u8,
    /// Whether the upper layer has been asked to pause.
    pub(super) paused: bool,
    /// Whether a request has been refused because another message was not whole.
    pub(super) shut_out: bool,
    /// `rcvd_bytes` as last reported.
    pub(super) rcvd: RcvdBytes,
    /// Up to where gaps have been judged.
    judged: Psn,
    /// The highest PSN known to have arrived.
    highest_arrived: Psn,
}

impl PdcSource {
    /// `PDS-SYN-008`; `PDS-SYN-006`: until the first ACK, the offset of a PSN is at most 4,095 and inside the window that every
    /// destination has.
    pub(super) fn new(start: Psn, default_mpr: u8) -> Self {
        let before = start - 1;
        let offset = (mp_range(default_mpr.max(1)) - 1).min(PsnOffset::MAX.get().into());
        PdcSource {
            start,
            next: start,
            cack: before,
            range: mp_range(default_mpr.max(1)),
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
            rcvd: RcvdBytes::default(),
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

    /// How many PSNs have been used.
    pub(super) fn used(&self) -> u32 {
        self.next - self.start
    }

    pub(super) fn start(&self) -> Psn {
        self.start
    }

    /// `PDS-CLR-001`: the highest PSN up to which all have been answered by name or cumulatively. A SACK does not
    /// count. `PDS-CLR-002`: it never moves back.
    pub(super) fn clear(&self) -> Psn {
        self.next - (self.in_flight.len() as u32 + 1)
    }

    /// The destination wants to be told of CLEAR_PSN when it has come this far.
    pub(super) fn want_clear(&mut self, psn: Psn) {
        if psn.is_after(self.clear_told) && self.clear_wanted.is_none_or(|wanted| psn.is_after(wanted)) {
            self.clear_wanted = Some(psn);
        }
    }

    /// CLEAR_PSN leaves as it is now.
    pub(super) fn clear_is_told(&mut self) -> Psn {
        self.clear_told = self.clear();
        self.clear_wanted = self.clear_wanted.filter(|wanted| wanted.is_after(self.clear_told));
        self.clear_told
    }

    /// `PDS-WIN-004`: nothing above the cumulative PSN + MP_RANGE is sent.
    pub(super) fn window_is_open(&self) -> bool {
        !self.next.is_after(self.limit) && self.in_flight.len() < FARTHEST
    }

    /// Gives the next PSN to a packet: `PDS-PSN-001`, one after the other.
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

    /// The window moves with the cumulative PSN, as wide as it was last stated.
    pub(super) fn slide(&mut self) {
        let limit = self.cack + self.range;
        if limit.is_after(self.limit) {
            self.limit = limit;
        }
    }

    /// A cumulative PSN came; whether it is not older than the highest before.
    pub(super) fn acknowledged(&mut self, cack: Psn) -> bool {
        let newer = cack.is_after(self.cack);
        if newer {
            self.cack = cack;
        }
        newer || cack == self.cack
    }

    /// `PDS-WIN-002`, `PDS-WIN-003`: a range counts from an ACK that is not older than the newest, and takes nothing back.
    pub(super) fn stated(&mut self, mpr: u8) {
        self.range = mp_range(mpr);
        self.slide();
    }

    /// The packet of a PSN that has not been answered.
    pub(super) fn find(&self, psn: Psn) -> Option<SlabKey> {
        let index = (psn - (self.clear() + 1)) as usize;
        self.in_flight.get(index).copied().filter(|key| *key != NOWHERE)
    }

    /// Takes a packet out that is answered. CLEAR_PSN may move.
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

    /// Packets that have a number and no answer, in order.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = SlabKey> + '_ {
        self.in_flight.iter().copied().filter(|key| *key != NOWHERE)
    }

    /// Whether every packet that has a number has an answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether there is nothing to send and nothing to wait for.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.queue.is_empty()
    }

    /// `PDS-NACK-009`: the numbers of all packets move with the start, so that each keeps its offset.
    pub(super) fn renumber(&mut self, start: Psn) {
        let moved = |psn: Psn| start + (psn - self.start);
        (self.next, self.limit) = (moved(self.next), moved(self.limit));
        (self.cack, self.clear_told) = (moved(self.cack), moved(self.clear_told));
        (self.judged, self.highest_arrived) = (moved(self.judged), moved(self.highest_arrived));
        self.start = start;
    }

    /// Gives up whatever is queued or in flight; the pool has been told.
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

    /// The next PSN that has at least `distance` arrived above it and has not been judged before.
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

    #[test]
    fn clear_moves_over_what_is_answered_without_gaps() {
        let mut source = PdcSource::new(Psn(u32::MAX), 8);
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
            let mut source = PdcSource::new(Psn(7), mpr);
            (0..).take_while(|key| source.window_is_open() && source.number(*key) != Psn(0)).count()
        };
        assert_eq!(count(8), 1024);
        assert_eq!(count(1), 128);
        assert_eq!(count(255), 4096);
    }

    #[test]
    fn a_smaller_range_takes_nothing_back() {
        let mut source = PdcSource::new(Psn(333), 8);
        assert!(source.acknowledged(Psn(332)));
        source.stated(1);
        assert_eq!(source.limit, Psn(1356));
        source.stated(16);
        assert_eq!(source.limit, Psn(332 + 2048));
    }
}
