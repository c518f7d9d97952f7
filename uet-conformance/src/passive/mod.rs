//! Judging a capture: both ends of every context, by what can be seen from outside.
//!
//! A capture is not the whole truth: it may start in the middle, lack records, and show packets in another order than an
//! end saw them. A rule here says something only when no such thing explains what was seen.

mod acks;
mod context;
mod contexts;
mod messages;
mod requests;
mod rudi;
mod suspicion;

use context::{Context, Side};
use contexts::Contexts;
use core::net::IpAddr;
use rudi::Rudi;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use uet_wire::catalogue::Requirement;
use uet_wire::pds::Pds;
use uet_wire::{Content, Packet};

/// Something in a capture that breaks a requirement over several packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is required.
    pub requirement: &'static Requirement,
    /// The packet that shows it, by its number in the capture.
    pub number: u64,
    /// An earlier packet that it contradicts.
    pub with: Option<u64>,
    /// Who broke it.
    pub culprit: IpAddr,
    /// What was seen, in words.
    pub message: String,
}

/// A packet with what the rules ask of it.
pub(crate) struct Seen<'a> {
    pub(crate) number: u64,
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) entropy: Option<u16>,
    pub(crate) marked: bool,
    pub(crate) packet: &'a Packet<'a>,
}

/// Collects what the rules find, and how often each had something to judge.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    findings: Vec<Finding>,
    judged: BTreeMap<&'static str, u64>,
}

impl Judge {
    /// A requirement was put to the test: it holds, or it does not and `message` says how.
    pub(crate) fn hold(
        &mut self,
        requirement: &'static Requirement,
        seen: &Seen<'_>,
        with: Option<u64>,
        holds: bool,
        message: impl FnOnce() -> String,
    ) {
        self.hold_by(seen.src, requirement, seen, with, holds, message);
    }

    /// The same, for what this packet shows of another end.
    pub(crate) fn hold_by(
        &mut self,
        culprit: IpAddr,
        requirement: &'static Requirement,
        seen: &Seen<'_>,
        with: Option<u64>,
        holds: bool,
        message: impl FnOnce() -> String,
    ) {
        *self.judged.entry(requirement.id).or_default() += 1;
        if !holds {
            let number = seen.number;
            self.findings.push(Finding { requirement, number, with, culprit, message: message() });
        }
    }
}

/// Judges the packets of a capture, one after the other.
///
/// ```
/// use uet_conformance::passive::Checker;
/// use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, PsnOffset, Start, pds::Request};
///
/// // Two packets that open one context, and contradict each other in the first PSN of it.
/// let mut checker = Checker::default();
/// let mut findings = Vec::new();
/// for (number, psn) in [(1, 333), (2, 334)] {
///     let request = Request::rud().syn(true).spdcid(PdcId(0x4001)).psn_offset(PsnOffset::ZERO);
///     let request = request.psn(Psn(psn)).clear_psn_offset(-1).done()?;
///     let mut bytes = [0; 64];
///     let length = FrameBuilder::new(request).udp(7).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).emit(&mut bytes)?;
///     let packet = Packet::parse(Start::Ip, &bytes[..length], &Options::default())?;
///     findings.extend(checker.packet(number, &packet));
/// }
/// assert_eq!(findings.len(), 1);
/// assert_eq!((findings[0].requirement.id, findings[0].with), ("PDS-SYN-001", Some(1)));
/// assert_eq!(findings[0].culprit.to_string(), "10.0.0.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Checker {
    contexts: Contexts,
    rudi: Rudi,
    judge: Judge,
}

impl Checker {
    /// Judges the next packet, by what came before it.
    pub fn packet(&mut self, number: u64, packet: &Packet<'_>) -> Vec<Finding> {
        let (Some(ip), Content::Uet) = (packet.ip, packet.content) else { return Vec::new() };
        let Some(pds) = packet.uet.pds else { return Vec::new() };
        let seen = Seen {
            number,
            src: ip.src(),
            dst: ip.dst(),
            entropy: packet.entropy_value(),
            marked: ip.ecn() == CONGESTION_EXPERIENCED,
            packet,
        };
        if let Some((context, side)) = self.contexts.find(ip.src(), ip.dst(), &pds) {
            judge(&mut self.judge, context, side, &seen, pds);
        } else if let Pds::Rudi(header) = pds {
            self.rudi.packet(&mut self.judge, &seen, header.copied());
        }
        core::mem::take(&mut self.judge.findings)
    }

    /// How often each requirement had something to judge. What is not here, this capture says nothing about.
    pub fn judged(&self) -> &BTreeMap<&'static str, u64> {
        &self.judge.judged
    }

    /// How many contexts have been seen.
    pub fn contexts(&self) -> usize {
        self.contexts.count()
    }
}

/// The two bits of ECN that a switch sets.
const CONGESTION_EXPERIENCED: u8 = 3;

fn judge(judge: &mut Judge, context: &mut Context, side: Side, seen: &Seen<'_>, pds: Pds<'_>) {
    if let Some(request) = pds.request() {
        requests::request(judge, context, side, seen, request);
    } else if let Some(ack) = pds.ack() {
        acks::ack(judge, context, side, seen, ack, pds);
    } else if let Some(nack) = pds.nack() {
        acks::nack(judge, context, side, seen, nack);
    } else if let Pds::Control(control) = pds {
        requests::control(judge, context, side, seen, control.copied());
    }
}

/// What must not change from one transmission to the next. `None` where the packet was cut and does not show it.
fn content(seen: &Seen<'_>) -> Option<u64> {
    let packet = seen.packet;
    if packet.trimmed.is_some() || packet.sliced.is_some() || packet.cut.is_some() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    let [_, _, ses, ext, payload] = seen.packet.uet.parts();
    (ses, ext, payload).hash(&mut hasher);
    Some(hasher.finish())
}
