//! The state of the rules, and the record of their judgments.

use super::finding::Finding;
use super::suspicion::Suspicion;
use crate::{Context, Direction, Observed, Side};
use core::net::IpAddr;
use core::time::Duration;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use uet_wire::catalogue::Requirement;

/// Findings, and the number of judgments of each rule.
#[derive(Debug, Default)]
pub(super) struct Judgments {
    pub(super) findings: Vec<Finding>,
    pub(super) judged: HashMap<&'static str, u64, RandomState>,
}

impl Judgments {
    /// Records the judgment of a requirement: a finding with this message if it does not hold.
    pub(super) fn hold(
        &mut self,
        culprit: IpAddr,
        requirement: &'static Requirement,
        number: u64,
        with: Option<u64>,
        holds: bool,
        message: impl FnOnce() -> String,
    ) {
        *self.judged.entry(requirement.id).or_default() += 1;
        if !holds {
            self.findings.push(Finding { requirement, number, with, culprit, message: message() });
        }
    }
}

/// Counts of a direction that decide if missing records explain a violation.
#[derive(Debug, Default)]
pub(super) struct DirectionDoubts {
    pub(super) suspicions: BTreeMap<&'static str, Suspicion>,
    /// True if a first transmission came after one with a higher PSN: the network reorders packets.
    pub(super) reordered: bool,
    /// ACKs in a row that left the highest CLEAR_PSN above every PSN acknowledged.
    pub(super) untold: u32,
    /// The bitmap of the last ACK, and the index of its first PSN.
    pub(super) reported: Option<(i64, u64)>,
    /// The number of reads that were not observed, by the first data of each.
    pub(super) unread: u64,
    /// The time of the first CLOSE_REQUEST.
    pub(super) close_asked: Option<Duration>,
    /// The last NACK PDC_HDR_MISMATCH of the initiator for a packet of this context.
    pub(super) mismatch: Option<u64>,
}

/// The rules, on one packet of a context.
pub(super) struct Rules<'a> {
    pub(super) judge: &'a mut Judgments,
    pub(super) doubts: &'a mut [DirectionDoubts; 2],
    pub(super) context: &'a Context,
    pub(super) sender: Side,
    pub(super) packet: &'a Observed<'a>,
    /// The time of the packet, if known.
    pub(super) now: Option<Duration>,
}

impl<'a> Rules<'a> {
    /// Records the judgment of a requirement on the sender.
    pub(super) fn hold(
        &mut self,
        requirement: &'static Requirement,
        with: Option<u64>,
        holds: bool,
        message: impl FnOnce() -> String,
    ) {
        self.judge.hold(self.packet.src, requirement, self.packet.number, with, holds, message);
    }

    /// Records the judgment of a requirement on the receiver.
    pub(super) fn hold_receiver(
        &mut self,
        requirement: &'static Requirement,
        with: Option<u64>,
        holds: bool,
        message: impl FnOnce() -> String,
    ) {
        self.judge.hold(self.packet.dst, requirement, self.packet.number, with, holds, message);
    }

    /// Returns whether something is strange too often to be explained by missing records.
    pub(super) fn suspect(&mut self, side: Side, what: &'static str, strange: bool, enough: u64) -> bool {
        self.doubts[side as usize].suspicions.entry(what).or_default().add(strange, enough)
    }

    /// Returns the direction of the sender.
    pub(super) fn sent(&self) -> &'a Direction {
        self.context.direction(self.sender)
    }

    /// Returns the direction of the receiver, which ACKs and NACKs are about.
    pub(super) fn received(&self) -> &'a Direction {
        self.context.direction(self.sender.other())
    }
}
