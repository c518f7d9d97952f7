//! Follows the CLOSE_COMMANDs of both ends: they show who is wrong if an end keeps a context that was closed.

use core::net::IpAddr;
use std::collections::BTreeMap;
use uet_observe::{ContextId, Event, Facts};
use uet_wire::registry::CtlType;

/// Number of transmissions that a network with few losses cannot lose.
const ENOUGH: u32 = 4;

/// The first CLOSE_COMMAND of a context.
#[derive(Debug)]
struct Close {
    number: u64,
    /// The end that must acknowledge it.
    receiver: IpAddr,
    transmissions: u32,
    /// True if it is the initiator's, which had an ACK of every earlier packet and gave it the next PSN.
    is_due: bool,
    is_acknowledged: bool,
    is_refused: bool,
}

impl Close {
    fn is_ignored(&self) -> bool {
        self.is_due && self.transmissions >= ENOUGH && !self.is_acknowledged && !self.is_refused
    }
}

/// The contexts whose first packet was seen, each with its CLOSE_COMMAND.
#[derive(Debug, Default)]
pub(super) struct Closes(BTreeMap<ContextId, Option<Close>>);

impl Closes {
    /// Takes the facts of the next packet.
    pub(super) fn packet(&mut self, number: u64, facts: &Facts<'_>) {
        let Facts::Context { context, sender, event, .. } = facts else { return };
        if context.start.is_none() {
            return;
        }
        let close = self.0.entry(context.id).or_default();
        match (event, close) {
            (Event::Control { kind: CtlType::CLOSE_COMMAND, index }, Some(close)) => {
                let same = context.direction(*sender).close.is_some_and(|(first, _)| first == *index);
                close.transmissions += u32::from(same);
            }
            (Event::Control { kind: CtlType::CLOSE_COMMAND, index }, close) => {
                let flow = context.direction(*sender);
                let is_opener = context.initiator == Some(*sender);
                let is_next = flow.highest == Some(*index) && flow.is_sent(*index - 1);
                *close = Some(Close {
                    number,
                    receiver: context.addresses[sender.other() as usize],
                    transmissions: 1,
                    is_due: is_opener && is_next && !flow.has_unacknowledged_below(*index),
                    is_acknowledged: false,
                    is_refused: false,
                });
            }
            (Event::Nack { .. }, Some(close)) => close.is_refused = true,
            (_, Some(close)) => close.is_acknowledged |= context.closed.is_some(),
            _ => {}
        }
    }

    /// Returns an end that answers none of the transmissions of a CLOSE_COMMAND, and the packet of the first.
    pub(super) fn unanswered(&self) -> Option<(IpAddr, u64)> {
        let close = self.0.values().flatten().find(|close| close.is_ignored())?;
        Some((close.receiver, close.number))
    }

    /// Returns the last CLOSE_COMMAND if this end has acknowledged one in every context. The sender of one is never to
    /// blame: the ACK may be lost on the way.
    pub(super) fn all_acknowledged_by(&self, end: IpAddr) -> Option<u64> {
        let is_closed = |close: &Close| close.receiver == end && close.is_due && close.is_acknowledged;
        let all = self.0.values().all(|close| close.as_ref().is_some_and(is_closed));
        self.0.values().flatten().next_back().filter(|_| all).map(|close| close.number)
    }
}
