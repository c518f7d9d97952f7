//! The inbox: the packets of the device that no expectation has taken.

use crate::RxPacket;
use std::collections::{BTreeMap, VecDeque};
use uet_wire::pds::Pds;

/// Received packets in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    packets: VecDeque<RxPacket>,
    /// True if any packet has arrived.
    heard: bool,
}

impl Inbox {
    pub(super) fn heard(&self) -> bool {
        self.heard
    }

    /// Notes that a packet has arrived.
    pub(super) fn hear(&mut self) {
        self.heard = true;
    }

    /// Keeps a packet for a later expectation.
    pub(super) fn keep(&mut self, seen: RxPacket) {
        self.packets.push_back(seen);
    }

    /// Takes the first packet that an expectation wants.
    pub(super) fn take(&mut self, wanted: &mut dyn FnMut(&RxPacket) -> bool) -> Option<RxPacket> {
        let place = self.packets.iter().position(wanted)?;
        self.packets.remove(place)
    }

    pub(super) fn take_all(&mut self) -> Vec<RxPacket> {
        self.packets.drain(..).collect()
    }

    pub(super) fn forget(&mut self) {
        self.packets.clear();
    }

    pub(super) fn count(&self) -> usize {
        self.packets.len()
    }

    /// Returns the first packet after number `since` that reports a lack of resources.
    pub(super) fn lack_of_room(&self, since: usize) -> Option<&RxPacket> {
        self.packets.iter().find(|seen| seen.number > since && seen.lacks_room())
    }

    /// Returns whether a packet after number `since` fits.
    pub(super) fn has(&self, since: usize, fits: impl Fn(&RxPacket) -> bool) -> bool {
        self.packets.iter().any(|seen| seen.number > since && fits(seen))
    }

    /// Returns the packet that arrived instead of the expected one, and the kinds of the others. It is the
    /// last refusal, or else the last ACK, or else the last packet. Those after number `since` answer the
    /// question, so they come first.
    pub(super) fn others(&self, since: usize) -> Option<(&RxPacket, String)> {
        let refusal = |seen: &&RxPacket| seen.nack().is_some() || seen.is_error();
        let recent = || self.packets.iter().filter(|seen| seen.number > since);
        let shown = recent()
            .rfind(refusal)
            .or_else(|| recent().rfind(|seen| seen.ack().is_some()))
            .or_else(|| recent().next_back());
        let shown = shown.or_else(|| self.packets.iter().rfind(refusal)).or_else(|| self.packets.back())?;
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for seen in self.packets.iter().filter(|seen| seen.number != shown.number) {
            let uet = seen.uet();
            let kind = match uet.pds {
                Some(Pds::Control(header)) => header.ctl_type().to_string(),
                pds => pds.map_or_else(|| "unreadable".into(), |pds| pds.kind().to_string()),
            };
            *kinds.entry(kind).or_default() += 1;
        }
        let others: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let beside =
            if others.is_empty() { String::new() } else { format!(", beside {}", others.join(", ")) };
        Some((shown, beside))
    }
}
