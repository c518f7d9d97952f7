//! The packets with a PSN that both ends have sent. Replies name them.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeSet;
use uet_wire::pds::Pds;
use uet_wire::{PdcId, Psn, Uet};

/// A packet between the ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) number: u64,
    /// The time of capture, since 1970.
    pub(super) time: Duration,
    pub(super) uet: &'a Uet<'a>,
    /// True if a key has opened it.
    pub(super) is_authentic: bool,
}

/// The least distance of two PSNs that cannot belong to one context. No window reaches so far.
const FAR: u32 = 1 << 15;

/// The PSNs that both ends have sent in each context.
#[derive(Debug, Default)]
pub(super) struct SentPsns {
    /// By sender and its PDCID.
    psns: BTreeSet<(IpAddr, PdcId, u32)>,
    /// The contexts whose PDCID has named an earlier one of its sender.
    reused: BTreeSet<(IpAddr, PdcId)>,
}

impl SentPsns {
    /// Takes the next packet.
    pub(super) fn packet(&mut self, src: IpAddr, pds: &Pds<'_>) {
        let control = pds.control().filter(|control| control.ctl_type().takes_psn());
        let request = pds.request().map(|request| (request.spdcid(), request.psn()));
        let sent = request.or(control.map(|control| (control.spdcid(), control.psn())));
        let Some((context, psn)) = sent else { return };
        if self.any(src, context, 0, u32::MAX) && !self.is_near(src, context, psn) {
            self.reused.insert((src, context));
        }
        self.psns.insert((src, context, psn.0));
    }

    /// Returns whether an end has sent this PSN.
    pub(super) fn has(&self, end: IpAddr, context: PdcId, psn: Psn) -> bool {
        self.psns.contains(&(end, context, psn.0))
    }

    /// Returns whether a context of an end may have had this PSN.
    pub(super) fn is_near(&self, end: IpAddr, context: PdcId, psn: Psn) -> bool {
        let (low, high) = ((psn - FAR).0, (psn + FAR).0);
        if low < high {
            return self.any(end, context, low, high);
        }
        self.any(end, context, low, u32::MAX) || self.any(end, context, 0, high)
    }

    /// Returns whether an end has used a PDCID for two contexts.
    pub(super) fn is_reused(&self, end: IpAddr, context: PdcId) -> bool {
        self.reused.contains(&(end, context))
    }

    fn any(&self, end: IpAddr, context: PdcId, low: u32, high: u32) -> bool {
        self.psns.range((end, context, low)..=(end, context, high)).next().is_some()
    }
}
