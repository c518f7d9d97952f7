//! Judges the packets of a capture: each by itself, by its protection, and against earlier packets.

use super::checker::Checker;
use super::finding::CaptureFinding;
use super::secured::ProtectionChecker;
use super::{Origin, Restart};
use crate::Corrections;
use crate::Facts;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
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

/// Maximum number of addresses of the suite in a section of a capture.
const ADDRESSES: usize = 4096;

/// Maximum number of findings that wait for a packet of the device.
const HELD: usize = 4096;

/// A section of a capture that names the suite as its origin.
#[derive(Debug)]
struct SuiteSection {
    origin: Origin,
    /// The addresses that have sent packets to the device.
    suite: BTreeSet<IpAddr>,
    /// True once the device has sent a packet.
    device_sent: bool,
    /// True once the suite has broken a requirement in this instance. The device may contradict itself because of that.
    deviated: bool,
    /// Findings about packets of the suite, each with the reason why it may be a note. Until the device sends a packet,
    /// the comment that names it may be wrong.
    held: Vec<(CaptureFinding, String)>,
}

/// Judges all packets of a capture, one after the other.
///
/// The suite breaks requirements on purpose. In its captures, findings about its own packets are notes: those from the
/// addresses that send to the device that the comment of the section names. Contradictions of the device that follow in
/// the same instance are notes, too. If this device sends no packet, its comment changes nothing.
///
/// If the comment says that the capture is a selection of packets, each packet is judged by itself: those left out may
/// explain what it lacks.
#[derive(Debug, Default)]
pub struct CaptureChecker {
    corrections: Corrections,
    section: Option<SuiteSection>,
    is_selection: bool,
    released: Vec<CaptureFinding>,
    /// Number of errors that are notes.
    excused: u64,
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
        self.is_selection = Origin::is_selection(comment);
        let next = Origin::parse(comment).map(|origin| SuiteSection {
            origin,
            suite: BTreeSet::new(),
            device_sent: false,
            deviated: false,
            held: Vec::new(),
        });
        if let Some(ended) = core::mem::replace(&mut self.section, next) {
            self.released.extend(ended.held.into_iter().map(|(finding, _)| finding));
        }
    }

    /// Ends the capture, and judges the contexts that it leaves open. The next packet belongs to another capture, which
    /// is judged for itself. IVs stay known: no key protects two packets with one, whichever capture holds them.
    pub fn end(&mut self) {
        // The suite sends packets that seem to belong to no context or to another one.
        if self.section.is_none() && !self.is_selection {
            for finding in self.checker.judge_end() {
                let super::Finding { number, requirement, with, culprit, message } = finding;
                let found = self.broken(number, with, Some(culprit), requirement, &message);
                self.released.extend(found.map(|found| {
                    let severity = found.severity.min(Severity::Warning);
                    CaptureFinding { severity, ..found }
                }));
            }
        }
        self.section("");
        self.checker.restart();
        self.protections.restart();
    }

    /// Returns findings about earlier packets that had to wait. Until the device of a section sends a packet, it is
    /// open whether the suite broke a requirement on purpose. Some findings are certain only at the end of a capture.
    /// Call it after each packet and after [`end`](Self::end).
    pub fn released(&mut self) -> Vec<CaptureFinding> {
        core::mem::take(&mut self.released)
    }

    /// Returns whether packets are judged by themselves alone, because the capture holds only some of them.
    pub fn is_selection(&self) -> bool {
        self.is_selection
    }

    /// Returns the number of errors that are notes, because the suite made them or may have caused them.
    pub fn excused(&self) -> u64 {
        self.excused
    }

    /// Takes the comment on the next packet. Forgets all contexts at the restart that it states, and returns it. IVs
    /// stay known if it is that of a NIC.
    pub fn comment<'c>(&mut self, comment: &'c str) -> Option<Restart<'c>> {
        let restart = Restart::read(comment, self.section.is_some())?;
        self.checker.restart();
        if let (Restart::OfSuite(instance), Some(section)) = (restart, &mut self.section) {
            section.origin.instance = Some(instance.to_owned());
            section.deviated = false;
            self.protections = ProtectionChecker::default();
        }
        Some(restart)
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
        if let (Some(section), Some(ip)) = (&mut self.section, packet.ip) {
            let is_device = |address| section.origin.device.contains(&address);
            if is_device(ip.src()) {
                section.device_sent = true;
                for (finding, why) in core::mem::take(&mut section.held) {
                    self.released.push(excuse(finding, &why, &mut self.excused));
                }
            } else if is_device(ip.dst()) && section.suite.len() < ADDRESSES {
                section.suite.insert(ip.src());
            }
        }
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
            let message = with_expected(packet, finding);
            found.extend(self.broken(number, None, culprit, finding.requirement, &message));
        }
        let in_context = self.checker.packet_with(number, time, packet, witness);
        let in_context = if self.is_selection { Vec::new() } else { in_context };
        for finding in in_context {
            let super::Finding { number, requirement, with, culprit, message } = finding;
            let finding = self.broken(number, with, Some(culprit), requirement, &message);
            found.extend(finding.map(|finding| self.as_consequence(finding)));
        }
        found.into_iter().filter_map(|finding| self.on_purpose(finding)).collect()
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

    /// Turns a finding about a packet of the suite into a note. Holds it until the device has sent a packet.
    fn on_purpose(&mut self, finding: CaptureFinding) -> Option<CaptureFinding> {
        let Some(section) = &mut self.section else { return Some(finding) };
        if finding.culprit.is_none_or(|culprit| !section.suite.contains(&culprit)) {
            return Some(finding);
        }
        section.deviated = true;
        let why = match &section.origin.instance {
            Some(instance) => format!("; on purpose: the suite tests {instance}"),
            None => "; on purpose: the suite tests its device".to_owned(),
        };
        if section.device_sent {
            return Some(excuse(finding, &why, &mut self.excused));
        }
        if section.held.len() == HELD {
            return Some(finding);
        }
        section.held.push((finding, why));
        None
    }

    /// Turns a contradiction of the device into a note if the suite has broken a requirement before.
    fn as_consequence(&mut self, finding: CaptureFinding) -> CaptureFinding {
        let suite = self.section.as_ref().filter(|section| section.deviated);
        let is_suite = |address| suite.is_some_and(|section| section.suite.contains(&address));
        if suite.is_none() || finding.culprit.is_some_and(is_suite) {
            return finding;
        }
        let why = "; the suite has broken a requirement before, so this may follow from that";
        excuse(finding, why, &mut self.excused)
    }

    /// Returns the number of contexts before the current instance of the suite. A
    /// [`ContextId`](crate::ContextId) counts from there.
    pub fn earlier_contexts(&self) -> usize {
        self.checker.earlier
    }

    /// Returns the number of contexts.
    pub fn contexts(&self) -> usize {
        self.checker.contexts()
    }

    /// Returns the number of packets that ACKs acknowledge and that the capture lacks.
    pub fn unseen(&self) -> u64 {
        self.checker.unseen()
    }

    /// Returns the number of the first ACK that acknowledges packets that the capture lacks.
    pub fn first_unseen(&self) -> Option<u64> {
        self.checker.first_unseen()
    }

    /// Returns the number of replies that belong to no request of the capture.
    pub fn unmatched(&self) -> u64 {
        self.checker.unmatched()
    }

    /// Returns the number of judgments of each requirement over several packets.
    pub fn judged(&self) -> BTreeMap<&'static str, u64> {
        self.checker.judged()
    }
}

/// Returns field, value and requirement of a finding about one packet, and the value that the field should have if the
/// rest of the packet tells it.
fn with_expected(packet: &Packet<'_>, finding: &validate::Finding) -> String {
    let detail = finding.detail();
    let id = finding.requirement.id;
    if id == catalogue::WIRE_SES_006.id || id == catalogue::WIRE_SES_007.id {
        return format!("{detail}; the payload has {} bytes", packet.uet.payload.len());
    }
    let is_crc = id == catalogue::WIRE_CRC_001.id;
    match is_crc.then(|| packet.crc_check()).flatten() {
        Some(check) => format!("{detail}; expected {:#010x}", check.expected),
        None => detail.to_string(),
    }
}

/// Turns a finding into a note, for this reason.
fn excuse(finding: CaptureFinding, why: &str, excused: &mut u64) -> CaptureFinding {
    *excused += u64::from(finding.severity == Severity::Error);
    CaptureFinding { severity: Severity::Note, message: finding.message + why, ..finding }
}
