//! Judges the packets of a capture, one after the other.

use super::finding::Finding;
use super::judgments::{DirectionDoubts, Judgments, Rules};
use super::{acks, answers, reads, rudi};
use crate::{Context, ContextId, Event, Facts, Observed, Observer, ReadRequest};
use core::time::Duration;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use uet_wire::Packet;

/// Judges the packets of a capture, one after the other.
///
/// ```
/// use uet_observe::passive::Checker;
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
    observer: Observer,
    doubts: HashMap<ContextId, [DirectionDoubts; 2], RandomState>,
    rudi: rudi::Doubts,
    judge: Judgments,
    now: Option<Duration>,
    /// Number of contexts before the last [`restart`](Checker::restart).
    pub(crate) earlier: usize,
    /// Number of packets that were acknowledged and not observed before it.
    earlier_unseen: u64,
    /// The first packet that acknowledged some of these.
    earlier_first_unseen: Option<u64>,
    /// Number of replies before it that belong to no request.
    earlier_unmatched: u64,
}

/// Contexts whose doubts are kept; all are forgotten when there are more.
const CONTEXTS: usize = 1 << 16;

impl Checker {
    /// Judges the next packet in the context of earlier ones.
    pub fn packet(&mut self, number: u64, packet: &Packet<'_>) -> Vec<Finding> {
        self.packet_at(number, None, packet)
    }

    /// Judges the next packet, captured at this time. A finding may be about an earlier packet, if this one proves it.
    pub fn packet_at(&mut self, number: u64, now: Option<Duration>, packet: &Packet<'_>) -> Vec<Finding> {
        self.packet_with(number, now, packet, |_| ())
    }

    /// Judges the next packet like [`packet_at`](Self::packet_at), and passes its facts on.
    pub(crate) fn packet_with(
        &mut self,
        number: u64,
        now: Option<Duration>,
        packet: &Packet<'_>,
        witness: impl FnOnce(&Facts<'_>),
    ) -> Vec<Finding> {
        self.now = now;
        match Observed::of(number, packet) {
            Some(packet) => self.observed(&packet, witness),
            None => Vec::new(),
        }
    }

    /// Judges the next packet, and passes its facts on.
    pub fn observed(&mut self, packet: &Observed<'_>, witness: impl FnOnce(&Facts<'_>)) -> Vec<Finding> {
        reads::judge(&mut self.judge, packet);
        let facts = self.observer.observe(packet);
        witness(&facts);
        match facts {
            Facts::Context { context, sender, read, event, strays } => {
                if self.doubts.len() > CONTEXTS {
                    self.doubts.clear();
                }
                let doubts = self.doubts.entry(context.id).or_default();
                answers::strays(&mut self.judge, context, &strays);
                Rules { judge: &mut self.judge, doubts, context, sender, packet, now: self.now }
                    .judge(read, event);
                if context.closed.is_some() {
                    self.doubts.remove(&context.id);
                }
            }
            Facts::Rudi(facts) => self.rudi.judge(&mut self.judge, packet, facts),
            Facts::Unrelated => {}
        }
        core::mem::take(&mut self.judge.findings)
    }

    /// Judges the open contexts at the end of a capture. Its last packets may be missing, so each finding is a warning.
    pub(crate) fn judge_end(&mut self) -> Vec<Finding> {
        let mut contexts: Vec<&Context> = self.observer.contexts().collect();
        contexts.sort_unstable_by_key(|context| context.id);
        for context in contexts {
            acks::beyond_last(&mut self.judge, context);
        }
        core::mem::take(&mut self.judge.findings)
    }

    /// Returns the contexts.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Forgets all contexts: both ends have forgotten theirs. Keeps the counts.
    pub fn restart(&mut self) {
        let judge = Judgments { judged: core::mem::take(&mut self.judge.judged), ..Judgments::default() };
        let earlier = self.contexts();
        let (earlier_unseen, earlier_first_unseen) = (self.unseen(), self.first_unseen());
        let earlier_unmatched = self.unmatched();
        *self = Checker {
            judge,
            earlier,
            earlier_unseen,
            earlier_first_unseen,
            earlier_unmatched,
            ..Checker::default()
        };
    }

    /// Returns the number of judgments of each requirement. The capture says nothing about the others.
    pub fn judged(&self) -> BTreeMap<&'static str, u64> {
        self.judge.judged.iter().map(|(id, count)| (*id, *count)).collect()
    }

    /// Returns the number of contexts.
    pub fn contexts(&self) -> usize {
        self.earlier + self.observer.count() as usize
    }

    /// Returns the number of packets that ACKs acknowledge and that the capture lacks.
    pub fn unseen(&self) -> u64 {
        self.earlier_unseen + self.observer.unseen()
    }

    /// Returns the number of the first ACK that acknowledges packets that the capture lacks.
    pub fn first_unseen(&self) -> Option<u64> {
        self.earlier_first_unseen.or(self.observer.first_unseen())
    }

    /// Returns the number of replies that belong to no request of the capture.
    pub fn unmatched(&self) -> u64 {
        self.earlier_unmatched + self.observer.unmatched()
    }
}

impl Rules<'_> {
    fn judge(&mut self, read: Option<ReadRequest>, event: Event) {
        let Some(pds) = self.packet.uet.pds else { return };
        self.names_its_receiver(pds, &event);
        match event {
            Event::Request { index, sent, earlier } => {
                if let Some(request) = pds.request() {
                    self.request(request, read, index, &sent, earlier);
                }
            }
            Event::Control { kind, index } => self.control(kind, index),
            Event::Ack { cack, named, rcvd_before, .. } => {
                if let Some(ack) = pds.ack() {
                    self.ack(ack, read, cack, named, rcvd_before);
                }
            }
            Event::Nack { code, named } => {
                let retx = pds.nack().is_some_and(|nack| nack.retx());
                self.nack(code, named, retx);
                self.refused_close(code, named);
            }
        }
    }
}
