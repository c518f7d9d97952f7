//! Finds a lost packet that its sender never sent again: both ends wait for ever, and only one of them is wrong.

use super::acknowledged::Acknowledged;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use uet_wire::pds::Pds;
use uet_wire::{PdcId, Psn};

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unanswered {
    pub(super) sender: IpAddr,
    receiver: IpAddr,
    context: PdcId,
    psn: Psn,
    /// The packet number of the first transmission, and its time since 1970.
    pub(super) number: u64,
    pub(super) time: Duration,
}

/// The reliable requests that nothing has answered so far.
#[derive(Debug, Default)]
pub(super) struct Unrepeated {
    waiting: Vec<Unanswered>,
    /// The ends that have sent any packet again.
    repeaters: BTreeSet<IpAddr>,
}

impl Unrepeated {
    /// Takes the next packet.
    pub(super) fn packet(
        &mut self,
        (src, dst): (IpAddr, IpAddr),
        pds: &Pds<'_>,
        number: u64,
        time: Duration,
    ) {
        if let Some(request) = pds.request() {
            let (context, psn) = (request.spdcid(), request.psn());
            let is_same =
                |other: &Unanswered| (other.sender, other.context, other.psn) == (src, context, psn);
            if self.waiting.iter().any(is_same) {
                self.repeaters.insert(src);
            } else {
                self.waiting.push(Unanswered { sender: src, receiver: dst, context, psn, number, time });
            }
        }
        let is_asked = |waiting: &Unanswered, context| {
            (waiting.sender, waiting.receiver, waiting.context) == (dst, src, context)
        };
        if let Some(ack) = Acknowledged::of(pds) {
            self.waiting.retain(|waiting| !(is_asked(waiting, ack.context) && ack.has(waiting.psn)));
        } else if let Some(nack) = pds.nack() {
            // The sender may give the packet up, or the whole context.
            self.waiting.retain(|waiting| !is_asked(waiting, nack.dpdcid()));
        }
    }

    /// Returns the first packet that was never answered.
    pub(super) fn unanswered(&self) -> Option<Unanswered> {
        self.waiting.first().copied()
    }

    /// Returns the first packet that was sent once and never answered, by an end that sends nothing again. Another end
    /// may have no room for it, because the other end answers wrongly.
    pub(super) fn first(&self) -> Option<Unanswered> {
        let never = |waiting: &&Unanswered| !self.repeaters.contains(&waiting.sender);
        self.waiting.iter().find(never).copied()
    }
}
