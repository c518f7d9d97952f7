//! The taps of faults, and their actions.

use super::guard::Hooks;
use super::seen::{Memo, Seen};
use crate::Config;
use core::time::Duration;
use uet_model::ses::{Completion, Receive, Region};
use uet_model::{Command, Indication, Packet, RxRequest, Time, TxResponse};

/// The position of a fault and its action there. A packet that the action does not pass on is dropped.
pub(super) enum Tap {
    /// Changes parameters; the reported ones stay.
    Config(fn(&mut Config)),
    /// Handles an arriving packet.
    In(fn(&mut Wire<'_>, Packet)),
    /// Handles an outgoing packet.
    Out(fn(&mut Wire<'_>, Packet)),
    /// Changes an arriving packet, which passes.
    EditIn(fn(&mut Wire<'_>, &mut Packet)),
    /// Changes an outgoing packet, which passes.
    EditOut(fn(&mut Wire<'_>, &mut Packet)),
    /// Decides whether a damaged packet that has arrived is accepted.
    Damaged(fn(&Packet) -> bool),
    /// Returns the bit to change in an outgoing packet with its CRC, counted from its first bit.
    Sealed(fn(&Packet) -> Option<usize>),
    /// Reads the traffic class from the first four bytes of an IPv6 header.
    ReadClass(fn(u32) -> u8),
    /// Writes the first four bytes of an IPv6 header for a traffic class.
    WriteClass(fn(u8) -> u32),
    /// Handles an indication from packet delivery to the semantics.
    Up(fn(&mut Middle<'_, Indication>, Indication)),
    /// Handles a command from the semantics to packet delivery.
    Down(fn(&mut Middle<'_, Command>, Command)),
    /// Changes a request on its way to the semantics.
    EditRequest(fn(&mut Middle<'_, Indication>, &mut RxRequest)),
    /// Changes a response on its way to packet delivery.
    EditResponse(fn(&mut TxResponse)),
    /// Acts around transport security.
    Guard(Hooks),
    /// Changes a region that is exposed.
    Expose(fn(&mut Region)),
    /// Changes a receive that is posted.
    Receive(fn(&mut Receive)),
    /// Changes or drops a completion.
    Completion(fn(Completion) -> Option<Completion>),
}

/// Context of a tap between the NIC and its link.
pub(super) struct Wire<'a> {
    pub(super) now: Time,
    pub(super) seen: &'a Seen,
    pub(super) memo: &'a mut Memo,
    pub(super) passed: &'a mut Vec<Packet>,
    pub(super) beside: &'a mut Beside,
}

/// Side effects of faults.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Packets to send, with their times.
    pub(super) leave: Vec<(Time, Packet)>,
    /// Packets to hand to the model, with their times.
    pub(super) arrive: Vec<(Time, Packet)>,
    /// Indications for the semantics.
    pub(super) up: Vec<Indication>,
}

impl Wire<'_> {
    /// Passes the packet on.
    pub(super) fn pass(&mut self, packet: Packet) {
        self.passed.push(packet);
    }

    /// Sends an additional packet.
    pub(super) fn send(&mut self, packet: Packet) {
        self.send_in(Duration::ZERO, packet);
    }

    /// Sends an additional packet after a delay.
    pub(super) fn send_in(&mut self, delay: Duration, packet: Packet) {
        self.beside.leave.push((self.now + delay, packet));
    }

    /// Hands the model an additional packet, after those that wait already.
    pub(super) fn hand(&mut self, packet: Packet) {
        self.beside.arrive.push((self.now, packet));
    }

    /// Sends the semantics an additional indication.
    pub(super) fn tell(&mut self, indication: Indication) {
        self.beside.up.push(indication);
    }
}

/// Context of a tap between packet delivery and semantics.
pub(super) struct Middle<'a, T> {
    pub(super) seen: &'a Seen,
    pub(super) memo: &'a mut Memo,
    pub(super) passed: &'a mut Vec<T>,
    pub(super) beside: &'a mut Beside,
}

impl<T> Middle<'_, T> {
    /// Passes the indication or command on.
    pub(super) fn pass(&mut self, said: T) {
        self.passed.push(said);
    }

    /// Sends the semantics an additional indication, after the current one.
    pub(super) fn tell(&mut self, indication: Indication) {
        self.beside.up.push(indication);
    }
}
