//! Which context a packet is of.

use super::context::{Context, FAR, Side, distance};
use core::net::IpAddr;
use std::collections::HashMap;
use uet_wire::pds::Pds;
use uet_wire::{PdcId, Psn};

/// One end as packets name it: address, PDCID, and the address of the other end.
type End = (IpAddr, PdcId, IpAddr);

/// The contexts of a capture. Bounded: when there are very many, all are forgotten and begin anew.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    contexts: Vec<Context>,
    /// The newest context that has each end, and its side.
    ends: HashMap<End, (usize, Side)>,
    forgotten: usize,
}

/// Contexts that are remembered at a time.
const CONTEXTS: usize = 1 << 20;

impl Contexts {
    pub(crate) fn count(&self) -> usize {
        self.forgotten + self.contexts.len()
    }

    /// The context of a packet, and which side of it has sent it. A packet that tells of no context gives nothing.
    ///
    /// Identifiers are used again, by both ends on their own, and the capture may lack what shows it. So of the contexts
    /// that the two identifiers name, the newer one goes first; and one that is over, or has other PSNs, is not meant.
    pub(crate) fn find(&mut self, src: IpAddr, dst: IpAddr, pds: &Pds<'_>) -> Option<(&mut Context, Side)> {
        let names = Names::of(pds)?;
        let here = names.source.is_valid().then_some((src, names.source, dst));
        let there = names.target.filter(|id| id.is_valid()).map(|id| (dst, id, src));
        let by_source = here.and_then(|end| self.ends.get(&end)).copied();
        let by_target = there.and_then(|end| self.ends.get(&end)).map(|(at, side)| (*at, side.other()));
        let mut known = [by_source, by_target];
        known.sort_by_key(|found| core::cmp::Reverse(found.map(|(at, _)| at)));
        let meant = |(at, side): &(usize, Side)| {
            self.contexts.get_mut(*at).is_some_and(|context| names.mean(context, *side))
        };
        let (at, side) = match known.into_iter().flatten().find(meant) {
            Some(found) => found,
            None => self.add(names.start.is_some())?,
        };
        for (end, side) in [(here, side), (there, side.other())] {
            if let Some(end) = end {
                let newest = self.ends.entry(end).or_insert((at, side));
                if newest.0 <= at {
                    *newest = (at, side);
                }
            }
        }
        self.contexts.get_mut(at).map(|context| (context, side))
    }

    fn add(&mut self, opens: bool) -> Option<(usize, Side)> {
        if self.contexts.len() >= CONTEXTS {
            self.forgotten += self.contexts.len();
            self.contexts.clear();
            self.ends.clear();
        }
        self.contexts.push(Context::of(opens.then_some(Side::A)));
        Some((self.contexts.len() - 1, Side::A))
    }
}

/// What a packet says of its context.
struct Names {
    source: PdcId,
    target: Option<PdcId>,
    /// The first PSN, in a packet that may open a context.
    start: Option<Psn>,
    /// A PSN of who sends it.
    own: Option<Psn>,
    /// A PSN of who receives it.
    others: Option<Psn>,
}

impl Names {
    fn of(pds: &Pds<'_>) -> Option<Names> {
        let names = |source, target| Names { source, target, start: None, own: None, others: None };
        if let Some(request) = pds.request() {
            let own = Some(request.psn());
            return Some(Names {
                start: request.start_psn(),
                own,
                ..names(request.spdcid(), request.dpdcid())
            });
        }
        if let Some(ack) = pds.ack() {
            let others = Some(ack.cack_psn()).filter(|_| !ack.p());
            return Some(Names { others, ..names(ack.spdcid(), Some(ack.dpdcid())) });
        }
        // The PSN of a NACK may be refused for lying far off.
        if let Some(nack) = pds.nack().filter(|nack| !nack.nt()) {
            return Some(names(nack.spdcid(), Some(nack.dpdcid())));
        }
        let Pds::Control(control) = pds else { return None };
        let own = Some(control.psn()).filter(|_| control.ctl_type().takes_psn());
        Some(Names { start: control.start_psn(), own, ..names(control.spdcid(), control.dpdcid()) })
    }

    /// Whether this context is meant, by `side` of it.
    fn mean(&self, context: &mut Context, side: Side) -> bool {
        let near = |start: Psn| context.anchor().is_none_or(|anchor| distance(start, anchor).abs() < FAR);
        !context.over
            && self.start.is_none_or(near)
            && self.own.is_none_or(|psn| context.flow(side).reaches(psn))
            && self.others.is_none_or(|psn| context.flow(side.other()).reaches(psn))
    }
}
