//! Finds an end whose CREDITs do not carry the cumulative credit.

use super::sent::{Passed, SentPsns};
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_wire::pds::Pds;
use uet_wire::{PdcId, Units24};

/// Number of CREDITs that are behind an earlier one, and the time since that one. No CREDIT takes so long.
const ENOUGH: u64 = 16;
const LATE: Duration = Duration::from_secs(1);

/// The CREDITs for a context.
#[derive(Debug)]
struct Granted {
    /// The newest one, and its time since 1970.
    newest: Units24,
    time: Duration,
    /// The number of those that are behind it and late.
    behind: u64,
}

/// Follows the CREDITs of both ends. An ACK_CC is no evidence: it may have nothing in its credit.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// By receiver and its PDCID.
    granted: BTreeMap<(IpAddr, PdcId), Granted>,
    back: Option<(IpAddr, u64)>,
}

impl Grants {
    /// Takes the next packet.
    pub(super) fn packet(&mut self, packet: &Passed<'_>, sent: &SentPsns) {
        let Some(Pds::Control(control)) = packet.uet.pds else { return };
        let (Some(credit), Some(context)) = (control.credit(), control.dpdcid()) else { return };
        // Another context with this PDCID may begin at 0.
        if sent.is_reused(packet.dst, context) {
            return;
        }
        let first = Granted { newest: credit, time: packet.time, behind: 0 };
        let granted = self.granted.entry((packet.dst, context)).or_insert(first);
        match credit.since(granted.newest) {
            Some(0) => {}
            Some(_) => *granted = Granted { newest: credit, time: packet.time, behind: 0 },
            None => granted.behind += u64::from(packet.time.saturating_sub(granted.time) >= LATE),
        }
        if granted.behind >= ENOUGH {
            self.back.get_or_insert((packet.src, packet.number));
        }
    }

    /// Returns an end whose credit has gone back, and a CREDIT that shows it.
    pub(super) fn back(&self) -> Option<(IpAddr, u64)> {
        self.back
    }
}
