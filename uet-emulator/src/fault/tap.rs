//! Where a fault can sit, and what it acts by there.

use super::seen::{Memo, Seen};
use crate::Config;
use core::time::Duration;
use uet_model::ses::{Completion, Receive, Region};
use uet_model::{Command, Indication, Packet, Time};

/// Where a fault sits, and what it does there. What it does not pass on goes no further.
pub(super) enum Tap {
    /// Other parameters than those that are told.
    Config(fn(&mut Config)),
    /// A packet that has arrived.
    In(fn(&mut Wire<'_>, Packet)),
    /// A packet that is to leave.
    Out(fn(&mut Wire<'_>, Packet)),
    /// A packet that has arrived and is damaged: whether it is taken for whole.
    Damaged(fn(&Packet) -> bool),
    /// A packet that is to leave, and has its CRC: the bit that changes, counted from its first.
    Sealed(fn(&Packet) -> Option<usize>),
    /// The traffic class that is read from the first four bytes of an IPv6 header.
    ReadClass(fn(u32) -> u8),
    /// The first four bytes of an IPv6 header that are written for a traffic class.
    WriteClass(fn(u8) -> u32),
    /// What packet delivery says to the semantics.
    Up(fn(&mut Middle<'_, Indication>, Indication)),
    /// What the semantics say to packet delivery.
    Down(fn(&mut Middle<'_, Command>, Command)),
    /// Memory that is exposed.
    Expose(fn(&mut Region)),
    /// A receive that is posted.
    Receive(fn(&mut Receive)),
    /// An end that is told.
    Completion(fn(Completion) -> Option<Completion>),
}

/// What a tap between the NIC and its link acts by.
pub(super) struct Wire<'a> {
    pub(super) now: Time,
    pub(super) seen: &'a Seen,
    pub(super) memo: &'a mut Memo,
    pub(super) passed: &'a mut Vec<Packet>,
    pub(super) beside: &'a mut Beside,
}

/// What faults do beside what passes.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Packets that leave, when.
    pub(super) leave: Vec<(Time, Packet)>,
    /// Packets that the model gets, when.
    pub(super) arrive: Vec<(Time, Packet)>,
    /// What the semantics hear.
    pub(super) up: Vec<Indication>,
}

impl Wire<'_> {
    /// Lets the packet go on.
    pub(super) fn pass(&mut self, packet: Packet) {
        self.passed.push(packet);
    }

    /// Sends another.
    pub(super) fn send(&mut self, packet: Packet) {
        self.send_in(Duration::ZERO, packet);
    }

    /// Sends another, later.
    pub(super) fn send_in(&mut self, delay: Duration, packet: Packet) {
        self.beside.leave.push((self.now + delay, packet));
    }

    /// Hands the model another packet, after those that it has.
    pub(super) fn hand(&mut self, packet: Packet) {
        self.beside.arrive.push((self.now, packet));
    }

    /// Tells the semantics something.
    pub(super) fn tell(&mut self, indication: Indication) {
        self.beside.up.push(indication);
    }
}

/// What a tap between packet delivery and semantics acts by.
pub(super) struct Middle<'a, T> {
    pub(super) seen: &'a Seen,
    pub(super) memo: &'a mut Memo,
    pub(super) passed: &'a mut Vec<T>,
    pub(super) beside: &'a mut Beside,
}

impl<T> Middle<'_, T> {
    /// Lets it go on.
    pub(super) fn pass(&mut self, said: T) {
        self.passed.push(said);
    }

    /// Tells the semantics something, after what they hear now.
    pub(super) fn tell(&mut self, indication: Indication) {
        self.beside.up.push(indication);
    }
}
