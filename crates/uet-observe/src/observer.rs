//! Finds the context of a packet.

use crate::context::{End, FAR, distance};
use crate::rudi::Rudi;
use crate::{Context, ContextId, Direction, Facts, Observed, Side, Stray};
use core::net::IpAddr;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use uet_wire::pds::{Ack, Pds};
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn};

/// The maximum number of open contexts. Beyond it, the observer forgets all of them.
const CONTEXTS: usize = 1 << 16;

/// The maximum number of packets kept, over all contexts. Beyond it, the observer forgets all contexts.
const PACKETS: usize = 1 << 20;

/// The maximum number of ACKs kept that contradict a context.
const STRAYS: usize = 4;

/// The maximum number of contexts kept for one end.
const LIVES: usize = 4;

/// The maximum number of PDCIDs kept for one side of a context.
pub(crate) const NAMES: usize = 8;

/// Follows the contexts in a sequence of packets.
#[derive(Debug, Default)]
pub struct Observer {
    open: HashMap<ContextId, Context, RandomState>,
    /// The contexts of each end, and the side of the end. Late packets may still belong to the older contexts.
    ends: HashMap<End, Vec<(ContextId, Side)>, RandomState>,
    count: u64,
    /// The number of packets kept, over all contexts.
    kept: usize,
    /// The number of packets that were acknowledged and not observed.
    unseen: u64,
    /// The number of the first packet that acknowledged some of them.
    first_unseen: Option<u64>,
    /// The number of replies to sides that were not observed to send anything.
    unmatched: u64,
    /// The context that the previous packet closed.
    closed: Option<ContextId>,
    rudi: Rudi,
}

impl Observer {
    /// Applies the next packet and returns its facts. A closed context stays available until the next call.
    pub fn observe(&mut self, packet: &Observed<'_>) -> Facts<'_> {
        self.drop_closed();
        if self.kept > PACKETS {
            self.forget_all();
        }
        let Some(pds) = packet.uet.pds else { return Facts::Unrelated };
        if let Pds::Rudi(header) = pds {
            return self.rudi.observe(packet, header.copied()).map_or(Facts::Unrelated, Facts::Rudi);
        }
        let Some(names) = Names::of(&pds) else { return Facts::Unrelated };
        let Some((id, sender)) = self.find(packet, &pds, &names) else { return Facts::Unrelated };
        let Some(context) = self.open.get_mut(&id) else { return Facts::Unrelated };
        let (kept, unseen, unmatched) = (context.kept(), context.unseen(), context.unmatched());
        let applied = context.apply(sender, packet, pds);
        self.kept = self.kept + context.kept() - kept;
        self.unseen = self.unseen + context.unseen() - unseen;
        self.first_unseen = match self.unseen {
            0 => None,
            _ => self.first_unseen.or(Some(packet.number)),
        };
        self.unmatched = self.unmatched + context.unmatched() - unmatched;
        let Some((read, event)) = applied else { return Facts::Unrelated };
        self.closed = context.closed.map(|_| id);
        // Without a PSN, the packet may belong to a later context with the same identifiers.
        let proves = names.own.or(names.others).is_some();
        let strays = if proves { core::mem::take(&mut context.strays) } else { Vec::new() };
        Facts::Context { context, sender, read, event, strays }
    }

    /// Returns the number of observed contexts, including closed ones.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of packets that ACKs acknowledge and that were not observed. In each direction it counts from
    /// the first observed packet.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Returns the number of the first ACK that acknowledges packets that were not observed.
    pub fn first_unseen(&self) -> Option<u64> {
        self.first_unseen
    }

    /// Returns the number of ACKs, NACKs and RUDI responses that belong to no observed request. Their receiver was not
    /// observed to send anything in their context, or a request with their `pkt_id`. The capture may lack its packets,
    /// or the replies name another context or request.
    pub fn unmatched(&self) -> u64 {
        self.unmatched + self.rudi.unmatched
    }

    /// Returns the open contexts in no particular order.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        self.open.values()
    }

    /// Returns the newest open context between this end and `peer`, and the side of this end. An end is an address and
    /// its PDCID.
    pub fn context(&self, address: IpAddr, pdcid: PdcId, peer: IpAddr) -> Option<(&Context, Side)> {
        let (id, side) = self.ends.get(&(address, pdcid, peer))?.iter().max_by_key(|(id, _)| *id)?;
        Some((self.open.get(id)?, *side))
    }

    fn drop_closed(&mut self) {
        let Some(id) = self.closed.take() else { return };
        let Some(context) = self.open.remove(&id) else { return };
        self.kept -= context.kept();
        for end in context.ends {
            let Entry::Occupied(mut contexts) = self.ends.entry(end) else { continue };
            contexts.get_mut().retain(|(other, _)| *other != id);
            if contexts.get().is_empty() {
                contexts.remove();
            }
        }
    }

    /// Returns the context of a packet and its sender's side. Returns `None` if the packet names no context, or is a
    /// [`Stray`].
    ///
    /// Endpoints reuse identifiers, and the capture may lack the packet that shows it. If the PSNs fit several
    /// contexts, the one wins whose ends have stated the most identifiers of the packet, and then the newest one.
    fn find(&mut self, packet: &Observed<'_>, pds: &Pds<'_>, names: &Names) -> Option<(ContextId, Side)> {
        let here = names.source.is_valid().then_some((packet.src, names.source, packet.dst));
        let there = names.target.filter(|id| id.is_valid()).map(|id| (packet.dst, id, packet.src));
        let named = |end: Option<End>| end.and_then(|end| self.ends.get(&end)).into_iter().flatten().copied();
        let by_target = || named(there).map(|(id, side)| (id, side.other()));
        let fits = |(id, side): &(ContextId, Side)| {
            self.open.get(id).is_some_and(|context| names.fit(context, *side))
        };
        let rank = |(id, side): &(ContextId, Side)| {
            (self.open.get(id).map_or(0, |context| names.stated(context, *side)), *id)
        };
        let found = by_target().chain(named(here)).filter(fits).max_by_key(rank);
        // The packets of a context that the target renumbers open it once more, with other PSNs.
        let renumbered = |(id, side): (ContextId, Side)| {
            self.open.get(&id).is_some_and(|it| it.direction(side).renumbered)
        };
        let moved = found.is_none() && names.start.is_some() && named(here).any(renumbered);
        if let (None, Some(ack)) = (found, pds.ack().filter(|ack| !ack.p())) {
            let both = by_target().filter(|end| named(here).any(|other| other == *end));
            let newest = both.max_by_key(|(id, _)| *id);
            if newest.is_some_and(|newest| self.keep_stray(newest, packet.number, ack)) {
                return None;
            }
        }
        let (id, sender) = found.unwrap_or_else(|| (self.add(packet, names.start.is_some()), Side::A));
        let context = self.open.get_mut(&id)?;
        context.direction_mut(sender).moved |= moved;
        context.is_shown = names.is_shown(context, sender);
        if let Some(start) = names.start {
            context.start.get_or_insert((start, packet.number));
        }
        let is_shown = context.is_shown;
        let own = context.direction_mut(sender);
        if here.is_some() {
            own.is_named |= is_shown;
            if own.names.len() < NAMES && !own.names.contains(&names.source) {
                own.names.push(names.source);
            }
        }
        // The receiver knows its own PDCIDs. Another one in this packet names no end of the context.
        let known = &context.direction(sender.other()).names;
        let there = there.filter(|(_, id, _)| known.is_empty() || known.contains(id));
        for (end, side) in [(here, sender), (there, sender.other())] {
            let Some(end) = end else { continue };
            let contexts = self.ends.entry(end).or_default();
            if !contexts.contains(&(id, side)) {
                context.direction_mut(side).pdcid = Some(end.1);
                context.ends.push(end);
                contexts.push((id, side));
                contexts.drain(..contexts.len().saturating_sub(LIVES));
            }
        }
        Some((id, sender))
    }

    /// Keeps an ACK that names an open context and contradicts it by its PSNs. Returns true if it is kept. Later packets
    /// of the context then prove that its identifiers have not been reused.
    fn keep_stray(&mut self, (id, sender): (ContextId, Side), number: u64, ack: Ack) -> bool {
        let Some(context) = self.open.get_mut(&id) else { return false };
        let directions = [Side::A, Side::B].map(|side| context.direction(side));
        let closing = directions.iter().any(|direction| direction.close.is_some() || direction.renumbered);
        let kept = context.start.is_some() && !closing && context.strays.len() < STRAYS;
        if kept {
            let (cack_psn, ack_psn) = (ack.cack_psn(), ack.ack_psn());
            context.strays.push(Stray { number, sender, cack_psn, ack_psn });
        }
        kept
    }

    fn forget_all(&mut self) {
        self.open.clear();
        self.ends.clear();
        self.kept = 0;
    }

    fn add(&mut self, packet: &Observed<'_>, opens: bool) -> ContextId {
        if self.open.len() >= CONTEXTS {
            self.forget_all();
        }
        let id = ContextId(self.count);
        self.count += 1;
        self.open.insert(id, Context::new(id, packet, opens.then_some(Side::A)));
        id
    }
}

/// The identifiers and PSNs in a packet.
struct Names {
    source: PdcId,
    target: Option<PdcId>,
    /// Start_PSN, in a packet that may open a context.
    start: Option<Psn>,
    /// A PSN of the sender's direction.
    own: Option<Psn>,
    /// A PSN of the receiver's direction.
    others: Option<Psn>,
    /// The PSN that a NACK refuses. It may lie far from those of the receiver's direction.
    refused: Option<Psn>,
    /// The PSN of the sender's direction that an ACK_REQUEST asks about.
    asked: Option<Psn>,
    /// The opaque value of the receiver's probe that an ACK answers.
    probe: Option<u16>,
}

impl Names {
    fn of(pds: &Pds<'_>) -> Option<Names> {
        let names = |source, target| {
            let (start, own, others, refused, asked, probe) = (None, None, None, None, None, None);
            Names { source, target, start, own, others, refused, asked, probe }
        };
        if let Some(request) = pds.request() {
            let (start, own) = (request.start_psn(), Some(request.psn()));
            return Some(Names { start, own, ..names(request.spdcid(), request.dpdcid()) });
        }
        if let Some(ack) = pds.ack() {
            let others = Some(ack.cack_psn()).filter(|_| !ack.p());
            let probe = ack.probe_opaque();
            return Some(Names { others, probe, ..names(ack.spdcid(), Some(ack.dpdcid())) });
        }
        // A target may refuse a PSN because it lies far outside the window.
        if let Some(nack) = pds.nack().filter(|nack| !nack.nt()) {
            return Some(Names { refused: nack.nack_psn(), ..names(nack.spdcid(), Some(nack.dpdcid())) });
        }
        let Pds::Control(control) = pds else { return None };
        let kind = control.ctl_type();
        let own = Some(control.psn()).filter(|_| kind.takes_psn());
        let asked = Some(control.psn()).filter(|_| kind == CtlType::ACK_REQUEST);
        // Only a packet with a PSN opens a context.
        let start = control.start_psn().filter(|_| own.is_some());
        Some(Names { start, own, asked, ..names(control.spdcid(), control.dpdcid()) })
    }

    /// Returns the number of identifiers of the packet that the ends of this context have stated for themselves.
    /// Returns 0 if nothing shows that the packet belongs to this context: another one may have the same identifiers.
    fn stated(&self, context: &Context, sender: Side) -> u8 {
        let (own, peer) = (context.direction(sender), context.direction(sender.other()));
        let is_source_stated = own.names.contains(&self.source);
        let is_target_stated = self.target.is_some_and(|id| peer.names.contains(&id));
        let asks = || self.asked.is_some_and(|psn| own.is_sent(own.index(psn)));
        let answers = || self.probe.is_some_and(|opaque| peer.probes.contains(&opaque));
        match self.is_shown(context, sender) || asks() || answers() {
            true => u8::from(is_source_stated) + u8::from(is_target_stated),
            false => 0,
        }
    }

    /// Returns true if a PSN of the packet is near an observed one of the context, or is a refused one of it.
    fn is_shown(&self, context: &Context, sender: Side) -> bool {
        let (own, peer) = (context.direction(sender), context.direction(sender.other()));
        let is_near = |direction: &Direction, psn: Psn| {
            direction.is_near(psn) || context.distance_from_start(psn).is_some()
        };
        self.own.is_some_and(|psn| is_near(own, psn))
            || self.others.is_some_and(|psn| is_near(peer, psn))
            || self.refused.is_some_and(|psn| peer.is_sent(peer.index(psn)))
    }

    /// Returns true if `sender` of this context can have sent the packet.
    fn fit(&self, context: &Context, sender: Side) -> bool {
        let near = |start| context.anchor().is_none_or(|anchor| distance(start, anchor).abs() < FAR);
        self.start.is_none_or(near)
            && self.own.is_none_or(|psn| context.reaches(sender, psn))
            && self.others.is_none_or(|psn| context.reaches(sender.other(), psn))
    }
}
