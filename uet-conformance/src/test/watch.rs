//! Follows the contexts between suite and device by their packets.

use crate::Wire;
use crate::passive::{Checker, Finding};
use core::net::IpAddr;
use std::collections::{BTreeSet, VecDeque};
use uet_observe::{Context, Observed, Observer, Side};
use uet_wire::catalogue::PDS_CLASS_001;
use uet_wire::pds::Pds;
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn};

/// Maximum number of findings in one script.
const FINDINGS: usize = 1000;

/// The contexts that suite and device have with each other.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Judges the packets of both ends by the rules for captures.
    checker: Checker,
    findings: VecDeque<Finding>,
    /// True if the link shows traffic classes, and the device sets them.
    pub(super) sees_class: bool,
    /// True if the link sends and shows entropy values.
    pub(super) sees_entropy: bool,
    /// True if the suite has sent a packet that no peer sends, so that findings about the device may follow
    /// from it.
    deviates: bool,
    /// Ends, and numbers of idempotent requests, of packets that no peer sends. Nobody observes the answers
    /// to them.
    strange_ends: BTreeSet<(IpAddr, PdcId)>,
    strange_packets: BTreeSet<u32>,
}

impl Watch {
    pub(super) fn restart(&mut self) {
        self.checker.restart();
        self.findings.clear();
        self.deviates = false;
    }

    pub(super) fn packet(&mut self, number: usize, wire: &Wire) {
        let packet = Observed::new(number as u64, wire.src, wire.dst, &wire.bytes);
        if self.is_for_strangers(&packet) {
            return;
        }
        let whole = packet.whole && wire.trimmed.is_none() && wire.flipped.is_none();
        let entropy = self.sees_entropy.then_some(wire.entropy);
        let packet = Observed { whole, marked: wire.marked, entropy, ..packet };
        self.judge_class(&packet, wire);
        let found = self.checker.observed(&packet, |_| ());
        self.findings.extend(found.into_iter().take(FINDINGS.saturating_sub(self.findings.len())));
    }

    /// Judges the traffic class of a packet of the device, on a link that shows it. No link shows that of the
    /// suite's packets.
    fn judge_class(&mut self, packet: &Observed<'_>, wire: &Wire) {
        let (Some(pds), Some(high), true) = (packet.uet.pds, wire.high, self.sees_class) else { return };
        let due = match pds {
            Pds::Control(header) if header.ctl_type() == CtlType::CREDIT => true,
            // The sources say nothing about their classes.
            Pds::Control(_) | Pds::Rudi(_) | Pds::Uud(_) => return,
            pds => pds.request().is_none(),
        };
        let is_known = self.findings.iter().any(|known| known.requirement == PDS_CLASS_001);
        if is_known || high == due && wire.trimmed.is_none() {
            return;
        }
        let class = match (wire.trimmed, high) {
            (Some(_), _) => "trimmed packets",
            (None, true) => "control packets",
            (None, false) => "data",
        };
        self.findings.push_back(Finding {
            requirement: PDS_CLASS_001,
            number: packet.number,
            with: None,
            culprit: wire.src,
            message: format!("{} in the traffic class of {class}", packet.uet),
        });
    }

    /// Notes that the suite has sent a packet that no peer sends.
    pub(super) fn deviate(&mut self) {
        self.deviates = true;
    }

    /// Returns the findings about the device, unless the suite has broken a requirement itself.
    pub(super) fn conclude(&mut self, is_device: impl Fn(IpAddr) -> bool) -> Vec<Finding> {
        let findings = core::mem::take(&mut self.findings);
        let alone = findings.iter().all(|finding| is_device(finding.culprit));
        if self.deviates || !alone { Vec::new() } else { findings.into() }
    }

    /// Returns whether a packet answers one that no peer sends.
    fn is_for_strangers(&self, packet: &Observed<'_>) -> bool {
        match packet.uet.pds {
            Some(Pds::Rudi(rudi)) => self.strange_packets.contains(&rudi.pkt_id()),
            Some(pds) if !self.strange_ends.is_empty() => {
                let place = pds.layout().field("pds.dpdcid");
                let to = place.and_then(|place| place.read(pds.bytes())).map(|id| PdcId(id as u16));
                to.is_some_and(|to| self.strange_ends.contains(&(packet.dst, to)))
            }
            _ => false,
        }
    }

    /// Ignores all packets to this end, which no peer has.
    pub(crate) fn ignore_end(&mut self, address: IpAddr, pdcid: PdcId) {
        self.strange_ends.insert((address, pdcid));
    }

    /// Ignores the answers to the idempotent request of this number, which no peer sends.
    pub(crate) fn ignore_packet(&mut self, pkt_id: u32) {
        self.strange_packets.insert(pkt_id);
    }

    pub(crate) fn ignores_packet(&self, pkt_id: u32) -> bool {
        self.strange_packets.contains(&pkt_id)
    }

    /// Returns the oldest finding of those rules.
    pub(crate) fn take_finding(&mut self) -> Option<Finding> {
        self.findings.pop_front()
    }

    fn observer(&self) -> &Observer {
        self.checker.observer()
    }

    /// Returns the contexts of this end of the suite, and its side of each.
    pub(super) fn contexts(&self, from: IpAddr, local: PdcId) -> impl Iterator<Item = (&Context, Side)> {
        let side = move |context: &Context| {
            let is_ours = |side: &Side| {
                context.addresses[*side as usize] == from && context.direction(*side).pdcid == Some(local)
            };
            [Side::A, Side::B].into_iter().find(is_ours)
        };
        self.observer().contexts().filter_map(move |context| Some((context, side(context)?)))
    }

    /// Returns the highest cumulative PSN that this end of the suite has acknowledged; before its first ACK,
    /// Start_PSN - 1.
    pub(super) fn covered(&self, from: IpAddr, local: PdcId) -> Option<Psn> {
        let (context, side) = self.contexts(from, local).next()?;
        let device = context.direction(side.other());
        let start = context.start.filter(|_| context.initiator == Some(side)).map(|(start, _)| start - 1);
        device.cack.map(|(cack, _)| device.psn(cack)).or(start)
    }
}
