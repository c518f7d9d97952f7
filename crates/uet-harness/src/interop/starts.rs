//! Finds an initiator that opens its contexts at one Start_PSN (`PDS-SYN-007`: it is random).

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::pds::Pds;
use uet_wire::registry::NackCode;
use uet_wire::{PdcId, Psn};

/// Number of contexts with one Start_PSN that chance does not explain.
const ENOUGH: usize = 3;

/// The Start_PSNs of both ends.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// The contexts by initiator and Start_PSN. A late copy of a packet names a known one.
    contexts: BTreeMap<(IpAddr, u32), BTreeSet<PdcId>>,
    equal: Option<(IpAddr, u64, Psn)>,
    /// True if a target has chosen a Start_PSN for its peer.
    is_told: bool,
}

impl Starts {
    /// Takes the next packet.
    pub(super) fn packet(&mut self, src: IpAddr, pds: &Pds<'_>, number: u64) {
        self.is_told |= pds.nack().is_some_and(|nack| nack.nack_code() == NackCode::NEW_START_PSN);
        let opening = pds.request().and_then(|request| Some((request.start_psn()?, request.spdcid())));
        let Some((start, pdcid)) = opening else { return };
        let contexts = self.contexts.entry((src, start.0)).or_default();
        contexts.insert(pdcid);
        if contexts.len() >= ENOUGH {
            self.equal.get_or_insert((src, number, start));
        }
    }

    /// Returns the first end with enough contexts at one Start_PSN, the packet that proves it, and the PSN.
    pub(super) fn equal(self) -> Option<(IpAddr, u64, Psn)> {
        self.equal.filter(|_| !self.is_told)
    }
}
