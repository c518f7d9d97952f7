//! Finds a lost packet that its sender never sent again: both ends wait for ever, and only one of them is wrong.

use core::net::IpAddr;
use core::time::Duration;
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
    is_repeated: bool,
}

/// The reliable requests that nothing has answered so far.
#[derive(Debug, Default)]
pub(super) struct Unrepeated(Vec<Unanswered>);

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
                |other: &&mut Unanswered| (other.sender, other.context, other.psn) == (src, context, psn);
            match self.0.iter_mut().find(is_same) {
                Some(other) => other.is_repeated = true,
                None => self.0.push(Unanswered {
                    sender: src,
                    receiver: dst,
                    context,
                    psn,
                    number,
                    time,
                    is_repeated: false,
                }),
            }
        }
        let is_asked = |waiting: &Unanswered, context| {
            (waiting.sender, waiting.receiver, waiting.context) == (dst, src, context)
        };
        if let Some(ack) = pds.ack() {
            let mut sacked: Vec<Psn> = match pds {
                Pds::AckCc(header) => header.sacked().collect(),
                Pds::AckCcx(header) => header.sacked().collect(),
                _ => Vec::new(),
            };
            sacked.extend(ack.ack_psn());
            let is_answered = |psn: Psn| !psn.is_after(ack.cack_psn()) || sacked.contains(&psn);
            self.0.retain(|waiting| !(is_asked(waiting, ack.dpdcid()) && is_answered(waiting.psn)));
        } else if let Some(nack) = pds.nack() {
            // The sender may give the packet up, or the whole context.
            self.0.retain(|waiting| !is_asked(waiting, nack.dpdcid()));
        }
    }

    /// Returns the first packet that was never answered.
    pub(super) fn unanswered(&self) -> Option<Unanswered> {
        self.0.first().copied()
    }

    /// Returns the first packet that was sent once and never answered.
    pub(super) fn first(&self) -> Option<Unanswered> {
        self.0.iter().find(|waiting| !waiting.is_repeated).copied()
    }
}
