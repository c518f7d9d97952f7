//! Judges the packets of a capture: each by itself, by its protection, and against earlier packets.

use super::secured::ProtectionChecker;
use super::{Checker, Origin};
use crate::Corrections;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_observe::Facts;
use uet_wire::catalogue::{self, Requirement};
use uet_wire::tss::KeyIv;
use uet_wire::validate::{self, Severity};
use uet_wire::{Packet, ParseError};

/// A packet of a capture, as its decoder sees it.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Its number.
    pub number: u64,
    /// The time of capture, since 1970.
    pub time: Option<Duration>,
    /// The parsed packet.
    pub packet: &'a Packet<'a>,
    /// The requirements that it breaks by itself.
    pub findings: &'a [validate::Finding],
    /// The error of a malformed packet.
    pub error: Option<ParseError>,
    /// For a secured packet: true if it is authentic, false if not, `None` if that is unknown.
    pub authenticated: Option<bool>,
    /// The secret that opened it, by its place among those of its association number, and the packet's key and IV.
    pub key: Option<(usize, KeyIv)>,
}

/// Something in a capture that deserves attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFinding {
    /// The packet that shows it.
    pub number: u64,
    /// An earlier packet that it contradicts.
    pub with: Option<u64>,
    /// A requirement, or else a word of its own: `malformed`, `not-authentic`, `iv-reuse`, `old-epoch`, `counter-back`.
    pub id: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The end that sent it.
    pub culprit: Option<IpAddr>,
    /// Description.
    pub message: String,
}

/// Judges all packets of a capture, one after the other.
///
/// The suite breaks requirements on purpose. In its captures, findings about its own packets are notes.
#[derive(Debug, Default)]
pub struct CaptureChecker {
    corrections: Corrections,
    origin: Option<Origin>,
    checker: Checker,
    protections: ProtectionChecker,
}

impl CaptureChecker {
    /// Creates a checker by the corrected catalogue.
    pub fn new(corrections: Corrections) -> Self {
        CaptureChecker { corrections, ..CaptureChecker::default() }
    }

    /// Returns the changes of the catalogue.
    pub fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    /// Begins a section of the capture, with its comment.
    pub fn section(&mut self, comment: &str) {
        self.origin = Origin::parse(comment);
    }

    /// Takes the comment on the next packet. Returns the instance of the suite that begins with the packet: the suite
    /// resets its device then, so both ends use numbers of contexts again.
    pub fn comment<'c>(&mut self, comment: &'c str) -> Option<&'c str> {
        let (origin, instance) = self.origin.as_mut().zip(Origin::begun(comment))?;
        origin.instance = Some(instance.to_owned());
        self.checker.restart();
        self.protections = ProtectionChecker::default();
        Some(instance)
    }

    /// Judges the next packet. A finding may be about an earlier one, if this one proves it.
    pub fn packet(&mut self, seen: CapturedPacket<'_>) -> Vec<CaptureFinding> {
        self.packet_with(seen, |_| ())
    }

    /// Judges the next packet like [`packet`](Self::packet). If the packet is UET, `witness` receives its facts.
    pub fn packet_with(
        &mut self,
        seen: CapturedPacket<'_>,
        witness: impl FnOnce(&Facts<'_>),
    ) -> Vec<CaptureFinding> {
        let CapturedPacket { number, time, packet, findings, error, authenticated, key } = seen;
        let culprit = packet.ip.map(|ip| ip.src());
        let of_packet =
            |id, severity, message| CaptureFinding { number, with: None, id, severity, culprit, message };
        let mut found = Vec::new();
        if let Some(error) = error {
            found.push(of_packet("malformed", Severity::Error, error.to_string()));
        }
        if authenticated == Some(false) {
            let message = "the ICV is wrong: the packet has changed, or the key is another".to_owned();
            found.push(of_packet("not-authentic", Severity::Error, message));
        }
        for finding in key.map_or(Vec::new(), |key| self.protections.packet(number, key, packet)) {
            let level = catalogue::find(finding.id).map(|known| self.corrections.level(known));
            let severity = match level {
                Some(None) => continue,
                Some(Some(level)) => Severity::of(level),
                None => finding.severity,
            };
            found.push(CaptureFinding { severity, ..finding });
        }
        for finding in findings {
            found.extend(self.broken(
                number,
                None,
                culprit,
                finding.requirement,
                &finding.detail().to_string(),
            ));
        }
        for finding in self.checker.packet_with(number, time, packet, witness) {
            let super::Finding { number, requirement, with, culprit, message } = finding;
            found.extend(self.broken(number, with, Some(culprit), requirement, &message));
        }
        found.iter_mut().for_each(|finding| self.on_purpose(finding));
        found
    }

    /// Returns the finding about a requirement, unless that is withdrawn.
    fn broken(
        &self,
        number: u64,
        with: Option<u64>,
        culprit: Option<IpAddr>,
        requirement: &'static Requirement,
        message: &str,
    ) -> Option<CaptureFinding> {
        let severity = Severity::of(self.corrections.level(requirement)?);
        let message = self.corrections.corrected(requirement, message);
        Some(CaptureFinding { number, with, id: requirement.id, severity, culprit, message })
    }

    /// Turns a finding about a packet of the suite into a note.
    fn on_purpose(&self, finding: &mut CaptureFinding) {
        let Some(origin) = &self.origin else { return };
        if finding.culprit.is_none_or(|culprit| origin.device.contains(&culprit)) {
            return;
        }
        finding.severity = Severity::Note;
        finding.message += match &origin.instance {
            Some(instance) => format!("; on purpose: the suite tests {instance}"),
            None => "; on purpose: the suite tests its device".to_owned(),
        }
        .as_str();
    }

    /// Returns the number of contexts before the current instance of the suite. A
    /// [`ContextId`](uet_observe::ContextId) counts from there.
    pub fn earlier_contexts(&self) -> usize {
        self.checker.earlier
    }

    /// Returns the number of contexts.
    pub fn contexts(&self) -> usize {
        self.checker.contexts()
    }

    /// Returns the number of judgments of each requirement over several packets.
    pub fn judged(&self) -> BTreeMap<&'static str, u64> {
        self.checker.judged()
    }
}
