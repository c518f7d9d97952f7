//! Findings about single packets of a device, whichever rule runs.

use crate::{Corrections, InstanceResult};
use serde::Serialize;
use std::collections::BTreeSet;
use uet_wire::catalogue::{Level, Requirement, WIRE_SYN_001};
use uet_wire::layout::{ALL, Layer, Layout};
use uet_wire::{Options, Packet, Spec, Start, catalogue, validate};

/// A requirement that single packets of the device break, whichever rule runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PacketFinding {
    /// The requirement; `None` if a packet cannot be read at all.
    pub requirement: Option<String>,
    /// Number of packets that break it.
    pub count: u64,
    /// First rule with such a packet.
    pub rule: String,
    /// Number of the packet in that instance.
    pub at_packet: usize,
    /// The field.
    pub field: String,
    /// Description of the violation.
    pub message: String,
    /// The command that runs the rule again.
    pub rerun: String,
    /// Reason why it is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// The corrected level of the requirement.
    #[serde(skip)]
    pub level: Option<Level>,
    /// True if the baseline has it.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub known: bool,
}

impl PacketFinding {
    /// Returns whether it makes a run fail, as a rule about its requirement would: no waiver or baseline
    /// accepts it.
    pub fn counts(&self) -> bool {
        let level = self.requirement.as_deref().and_then(catalogue::find).map(|known| known.level);
        let level = self.level.or(level);
        self.waived.is_none() && !self.known && level != Some(Level::May)
    }
}

/// Single-packet findings of the device's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Number of judged packets.
    pub judged: u64,
    /// The names of the headers in them.
    pub headers: BTreeSet<String>,
    /// Findings, one per broken requirement.
    pub findings: Vec<PacketFinding>,
}

impl Packets {
    /// Judges the device's packets of a rule by `spec`.
    pub fn judge(&mut self, rule: &InstanceResult, spec: &'static Spec) {
        for (number, wire) in rule.ladder.of_the_device() {
            self.judged += 1;
            for finding in &wire.around {
                let id = Some(finding.requirement.id);
                self.add(rule, number, id, finding.field, finding.to_string());
            }
            let (packet, error) = Packet::parse_lax(Start::Uet, &wire.bytes, &Options::DEFAULT);
            for (layout, _) in packet.headers() {
                if !self.headers.contains(layout.name) {
                    self.headers.insert(layout.name.into());
                }
            }
            if let Some(error) = error {
                let field = error.field();
                self.add(rule, number, None, field, error.to_string());
                continue;
            }
            for finding in packet.uet.validate(spec) {
                // Its limit holds unless another is configured.
                if finding.requirement == WIRE_SYN_001 && rule.set.contains("default_mpr") {
                    continue;
                }
                let id = Some(finding.requirement.id);
                self.add(rule, number, id, finding.field, finding.to_string());
            }
        }
    }

    /// Removes findings of withdrawn requirements, and corrects the levels of the others.
    pub(crate) fn correct(&mut self, corrections: &Corrections) {
        self.findings.retain_mut(|finding| {
            let correction = finding.requirement.as_deref().and_then(|id| corrections.find(id));
            finding.level = correction.and_then(|correction| correction.level);
            if let Some(correction) = correction {
                finding.message = corrections.corrected(correction.requirement, &finding.message);
            }
            !correction.is_some_and(|correction| correction.withdrawn)
        });
    }

    fn add(
        &mut self,
        rule: &InstanceResult,
        at_packet: usize,
        id: Option<&str>,
        field: &str,
        message: String,
    ) {
        let same = |known: &&mut PacketFinding| known.requirement.as_deref() == id && known.field == field;
        if let Some(known) = self.findings.iter_mut().find(same) {
            known.count += 1;
            return;
        }
        self.findings.push(PacketFinding {
            requirement: id.map(Into::into),
            count: 1,
            rule: rule.instance.clone(),
            at_packet,
            field: field.into(),
            message,
            rerun: rule.rerun.clone(),
            waived: None,
            level: None,
            known: false,
        });
    }
}

/// Returns whether packets with these headers can break a requirement. Reports do not count outer headers.
pub(crate) fn concern(requirement: &Requirement, judged: u64, has: impl Fn(&str) -> bool) -> bool {
    let is_inner = |layout: &&Layout| matches!(layout.layer, Layer::Pds | Layer::Ses | Layer::Ext);
    let can =
        |headers: &[&Layout]| !headers.iter().any(is_inner) || headers.iter().any(|layout| has(layout.name));
    let rules = validate::RULES
        .iter()
        .filter(|rule| rule.requirement == requirement)
        .map(|rule| rule.headers.to_vec());
    // Where no rule names it, its fields do, each of which is limited to assigned code points.
    let limits = |layout: &'static Layout| {
        layout.fields().any(|place| validate::assigned(place.row.name) == Some(requirement))
    };
    let limited: Vec<_> = ALL.iter().copied().filter(|layout| limits(layout)).collect();
    let mut all = rules.chain((!limited.is_empty()).then_some(limited)).peekable();
    judged > 0 && (all.peek().is_none() || all.any(|headers| can(&headers)))
}
