//! The receive side of one direction: received PSNs, their responses, and the cumulative PSN.

use super::ack::Named;
use super::event::AckReason;
use super::list::SlabKey;
use crate::{PdsParams, Time, TxResponse, cc};
use slab::Slab;
use std::collections::VecDeque;
use uet_wire::Psn;

/// The state of a PSN above the cumulative one.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct RxSlot {
    pub(super) state: SlotState,
    pub(super) flags: Flags,
    /// Its length in bytes.
    pub(super) length: u16,
    /// The entropy value of the packet, for the reply.
    pub(super) entropy: u16,
    /// The arrival time of the packet.
    pub(super) at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum SlotState {
    /// Not received.
    Missing,
    /// Delivered; SES owes the response.
    Delivered,
    /// The response is ready, and waits for earlier ones (ROD).
    Ready(SlabKey),
    /// Answered.
    Answered,
    /// Answered with a response that is stored until it is cleared.
    Stored(SlabKey),
    /// Answered with data that is not stored, because the request can be repeated. It waits for a clear too.
    Repeatable,
}

/// Fields of the packet that its reply depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Flags {
    /// The reason for an immediate ACK.
    pub(super) at_once: Option<AckReason>,
    pub(super) retx: bool,
    pub(super) marked: bool,
    /// True if the peer's PDS made the packet, which then needs no response.
    pub(super) control: bool,
}

/// The position of a PSN in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PsnPosition {
    /// Received before, a duplicate.
    Received,
    /// In the window, and not yet received.
    New,
    /// Above the window, or too far below it.
    Outside,
}

#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct PdcDestination {
    /// CACK_PSN.
    cack: Psn,
    /// The highest PSN below which no PSN is missing.
    contiguous: Psn,
    /// CLEAR_PSN as last received.
    clear: Psn,
    /// MP_RANGE as last announced.
    range: u32,
    /// The highest PSN that the source was ever allowed to send.
    permitted: Psn,
    /// The PSNs from `cack + 1` on.
    slots: VecDeque<RxSlot>,
    /// The number of slots that are not missing.
    held: u32,
    /// The number of received PSNs above a gap.
    out_of_order: u32,
    /// The base of the next SACK bitmap.
    sack_next: Psn,
    /// ROD: the PSN whose response leaves next.
    pub(super) turn: Psn,
    /// The highest answered PSN that no ACK has reported.
    pub(super) owed: Option<Named>,
    /// Bytes since the last ACK that the byte count triggered.
    pub(super) ack_bytes: u32,
    /// The state for congestion control at the source.
    pub(super) cc: cc::Destination,
    /// ROD: the missing PSN that a NACK has reported.
    pub(super) gap_told: Option<Psn>,
    /// The number of CLEAR_REQUEST packets since the last clear.
    pub(super) clear_asked: u8,
    /// True if the delayed ACK is for a control packet, which has no response.
    pub(super) owed_is_control: bool,
}

impl PdcDestination {
    /// Returns whether any PSN of a direction that starts at `start` was received.
    pub(super) fn has_received(&self, start: Psn) -> bool {
        self.contiguous != start - 1 || self.held > 0
    }

    /// `PDS-SYN-008`: a direction starts with everything before Start_PSN received and cleared.
    pub(super) fn new(start: Psn, params: &PdsParams) -> Self {
        let cack = start - 1;
        let range = params.mp_range(params.default_mpr.max(1));
        PdcDestination {
            cack,
            contiguous: cack,
            clear: cack,
            range,
            permitted: cack + range,
            slots: VecDeque::new(),
            held: 0,
            out_of_order: 0,
            sack_next: start,
            turn: start,
            owed: None,
            ack_bytes: 0,
            cc: cc::Destination::new(&params.congestion).counting_from(params.start_rcvd_bytes),
            gap_told: None,
            clear_asked: 0,
            owed_is_control: false,
        }
    }

    pub(super) fn cack(&self) -> Psn {
        self.cack
    }

    /// Returns the next PSN in order.
    pub(super) fn expected(&self) -> Psn {
        self.contiguous + 1
    }

    pub(super) fn out_of_order(&self) -> u32 {
        self.out_of_order
    }

    /// Returns the number of slots.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether no PSN is missing, unanswered or uncleared.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns whether any slot has such a state.
    pub(super) fn any(&self, such: impl Fn(SlotState) -> bool) -> bool {
        self.slots.iter().any(|slot| such(slot.state))
    }

    /// Returns whether there is a gap, or the cumulative PSN does not cover all arrivals besides `named`.
    pub(super) fn beyond(&self, named: Psn) -> bool {
        self.out_of_order > 0 || self.held > u32::from(named.is_after(self.cack))
    }

    /// `PDS-WIN-001`: the window is CACK_PSN + 1 to CACK_PSN + MP_RANGE. `PDS-WIN-003`: it never shrinks below what was
    /// announced. `PDS-DUP-004`: a PSN at most MP_RANGE below the window is a duplicate.
    pub(super) fn place(&self, psn: Psn) -> PsnPosition {
        let above = psn - self.cack;
        if above == 0 || above > u32::MAX / 2 {
            let below = self.cack - psn;
            return if below <= self.range { PsnPosition::Received } else { PsnPosition::Outside };
        }
        match self.slot(psn) {
            Some(slot) if slot.state != SlotState::Missing => PsnPosition::Received,
            _ if above <= self.permitted - self.cack => PsnPosition::New,
            _ => PsnPosition::Outside,
        }
    }

    fn index(&self, psn: Psn) -> usize {
        (psn - (self.cack + 1)) as usize
    }

    /// Returns the state of a PSN above the cumulative one, if it has a slot.
    pub(super) fn slot(&self, psn: Psn) -> Option<&RxSlot> {
        self.slots.get(self.index(psn))
    }

    pub(super) fn slot_mut(&mut self, psn: Psn) -> Option<&mut RxSlot> {
        let index = self.index(psn);
        self.slots.get_mut(index)
    }

    /// Returns whether the source has cleared a PSN.
    pub(super) fn is_cleared(&self, psn: Psn) -> bool {
        !psn.is_after(self.clear)
    }

    /// Returns the number of slots that `psn` would add.
    pub(super) fn room_for(&self, psn: Psn) -> usize {
        (self.index(psn) + 1).saturating_sub(self.slots.len())
    }

    /// Records a PSN that is [`PsnPosition::New`].
    pub(super) fn receive(&mut self, psn: Psn, slot: RxSlot) {
        let index = self.index(psn);
        if index >= self.slots.len() {
            if self.slots.capacity() == 0 {
                // A context with one packet at a time needs only one slot.
                self.slots.reserve_exact(index + 1);
            }
            let missing = RxSlot {
                state: SlotState::Missing,
                flags: Flags::default(),
                length: 0,
                entropy: 0,
                at: Time::ZERO,
            };
            self.slots.resize(index + 1, missing);
        }
        self.slots[index] = slot;
        self.held += 1;
        if psn != self.expected() {
            self.out_of_order += 1;
            return;
        }
        self.contiguous = psn;
        while self.slot(self.expected()).is_some_and(|slot| slot.state != SlotState::Missing) {
            self.contiguous = self.expected();
            self.out_of_order -= 1;
        }
    }

    /// Marks a delivered PSN as missing again.
    pub(super) fn unreceive(&mut self, psn: Psn) {
        let Some(slot) = self.slot_mut(psn) else { return };
        slot.state = SlotState::Missing;
        self.held -= 1;
        if !psn.is_after(self.contiguous) {
            self.out_of_order += self.contiguous - psn;
            self.contiguous = psn - 1;
        } else {
            self.out_of_order -= 1;
        }
        self.trim();
    }

    /// Removes missing PSNs above the highest received one.
    fn trim(&mut self) {
        while self.slots.back().is_some_and(|slot| slot.state == SlotState::Missing) {
            self.slots.pop_back();
        }
    }

    /// `PDS-CLR-005`: releases stored responses up to the source's CLEAR_PSN, which never moves back and never passes a gap.
    /// Returns whether it released any.
    pub(super) fn clear_to(&mut self, clear: Psn, store: &mut Slab<TxResponse>) -> bool {
        let clear = if clear.is_after(self.contiguous) { self.contiguous } else { clear };
        if !clear.is_after(self.clear) {
            return false;
        }
        // `clear` may lag behind `cack` where nothing had to be cleared.
        let from = if self.clear.is_after(self.cack) { self.clear } else { self.cack };
        self.clear = clear;
        self.clear_asked = 0;
        let last = if clear.is_after(self.cack) { self.index(clear) + 1 } else { 0 };
        let first = (from - self.cack) as usize;
        let mut released = false;
        for slot in self.slots.range_mut(first.min(last)..last) {
            match slot.state {
                SlotState::Stored(key) => {
                    store.try_remove(key as usize);
                }
                SlotState::Repeatable => {}
                _ => continue,
            }
            slot.state = SlotState::Answered;
            released = true;
        }
        released
    }

    /// `PDS-PSN-002`: moves CACK_PSN over PSNs that are answered and, where needed, cleared. `PDS-PSN-003`: it never moves
    /// back.
    pub(super) fn advance(&mut self) -> bool {
        let before = self.cack;
        while self.slots.front().is_some_and(|slot| slot.state == SlotState::Answered) {
            self.slots.pop_front();
            self.cack = self.cack + 1;
            self.held -= 1;
        }
        self.permit(self.range);
        if self.slots.is_empty() && self.slots.capacity() > 4 {
            self.slots = VecDeque::new();
        }
        self.cack != before
    }

    /// Records the range that an ACK announces (`PDS-WIN-002`).
    pub(super) fn permit(&mut self, range: u32) {
        self.range = range;
        let permitted = self.cack + range;
        if permitted.is_after(self.permitted) {
            self.permitted = permitted;
        }
    }

    /// Returns the highest PSN with a response that waits for a clear and with every PSN below it answered.
    pub(super) fn uncleared(&self) -> Option<Psn> {
        let kept = |slot: &&RxSlot| matches!(slot.state, SlotState::Stored(_) | SlotState::Repeatable);
        let answered = |slot: &&RxSlot| kept(slot) || slot.state == SlotState::Answered;
        let count = self.slots.iter().take_while(answered).count();
        let last = self.slots.iter().take(count).rposition(|slot| kept(&slot))?;
        Some(self.cack + last as u32 + 1)
    }

    /// `PDS-SACK-001`: bit i of the bitmap reports the arrival of PSN base + i.
    pub(super) fn sack_from(&self, base: Psn) -> u64 {
        let first = (base - (self.cack + 1)) as i32;
        // `PDS-SACK-002`: PSNs at or below the cumulative one read as received.
        let below = first.min(0).unsigned_abs().min(64);
        let received = u64::MAX.checked_shr(64 - below).unwrap_or(0);
        let slots = self.slots.range((first.max(0) as usize).min(self.slots.len())..);
        let arrived = slots.zip(below..64).filter(|(slot, _)| slot.state != SlotState::Missing);
        arrived.fold(received, |bits, (_, i)| bits | 1 << i)
    }

    /// `PDS-SACK-003`: successive bitmaps cover all arrivals, then start over.
    pub(super) fn next_sack(&mut self) -> (Psn, u64) {
        let highest = self.cack + self.slots.len() as u32;
        if !self.sack_next.is_within(self.cack + 1, highest) {
            self.sack_next = self.cack + 1;
        }
        let base = self.sack_next;
        self.sack_next = base + 64;
        (base, self.sack_from(base))
    }

    /// Takes all slots out, when the context ends.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = RxSlot> + '_ {
        self.held = 0;
        self.out_of_order = 0;
        self.owed = None;
        self.contiguous = self.cack + self.slots.len() as u32;
        self.slots.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(state: SlotState) -> RxSlot {
        RxSlot { state, flags: Flags::default(), length: 0, entropy: 0, at: Time::ZERO }
    }

    fn at(start: u32) -> PdcDestination {
        PdcDestination::new(Psn(start), &PdsParams::default())
    }

    #[test]
    fn the_window_is_what_the_worked_example_says() {
        let destination = at(333);
        assert_eq!(destination.place(Psn(332)), PsnPosition::Received);
        assert_eq!(destination.place(Psn(333)), PsnPosition::New);
        assert_eq!(destination.place(Psn(1356)), PsnPosition::New);
        assert_eq!(destination.place(Psn(1357)), PsnPosition::Outside);
        assert_eq!(destination.place(Psn(332) - 1024), PsnPosition::Received);
        assert_eq!(destination.place(Psn(332) - 1025), PsnPosition::Outside);
    }

    #[test]
    fn a_smaller_range_takes_nothing_back() {
        let mut destination = at(333);
        destination.permit(128);
        assert_eq!(destination.place(Psn(1356)), PsnPosition::New);
        assert_eq!(destination.place(Psn(332) - 129), PsnPosition::Outside);
    }

    #[test]
    fn out_of_order_is_counted_across_the_wrap() {
        let mut destination = at(u32::MAX);
        destination.receive(Psn(1), slot(SlotState::Answered));
        destination.receive(Psn(0), slot(SlotState::Delivered));
        assert_eq!((destination.out_of_order(), destination.expected()), (2, Psn(u32::MAX)));
        assert_eq!(destination.sack_from(Psn(u32::MAX)), 0b110);
        destination.receive(Psn(u32::MAX), slot(SlotState::Answered));
        assert_eq!((destination.out_of_order(), destination.expected()), (0, Psn(2)));
        assert!(destination.advance());
        assert_eq!(destination.cack(), Psn(u32::MAX), "0 is not answered");
        destination.unreceive(Psn(0));
        assert_eq!((destination.out_of_order(), destination.expected()), (1, Psn(0)));
    }

    #[test]
    fn a_bitmap_reports_the_arrivals_from_any_base() {
        let mut destination = at(u32::MAX - 9);
        for psn in [0, 1, 3, 70] {
            destination.receive(Psn(u32::MAX - 9) + psn, slot(SlotState::Answered));
        }
        assert!(destination.advance());
        let cack = destination.cack();
        assert_eq!(cack, Psn(u32::MAX - 8));
        for base in -130..=130i32 {
            let has = |ahead: i32| ahead <= 0 || [2, 69].contains(&ahead);
            let expected = (0..64).fold(0, |bits, i| bits | u64::from(has(base + i)) << i);
            assert_eq!(destination.sack_from(cack + base as u32), expected, "{base}");
        }
    }

    #[test]
    fn clearing_releases_and_never_goes_back() {
        let mut store = Slab::new();
        let mut destination = at(333);
        let response = || TxResponse {
            delivery: crate::Delivery::Guaranteed,
            next_hdr: uet_wire::registry::NextHdr::UET_HDR_RESPONSE,
            head: crate::Head::new(),
            payload: bytes::Bytes::new(),
        };
        for psn in 333..=335 {
            let key = store.insert(response()) as SlabKey;
            destination.receive(Psn(psn), slot(SlotState::Stored(key)));
        }
        assert_eq!(destination.uncleared(), Some(Psn(335)));
        assert!(!destination.advance());
        assert!(destination.clear_to(Psn(334), &mut store));
        assert!(destination.advance());
        assert_eq!((destination.cack(), store.len()), (Psn(334), 1));
        assert!(!destination.clear_to(Psn(333), &mut store), "back");
        assert!(destination.clear_to(Psn(400), &mut store), "beyond what has come: as far as it has");
        assert!(destination.advance());
        assert_eq!((destination.cack(), store.len()), (Psn(335), 0));
    }
}
