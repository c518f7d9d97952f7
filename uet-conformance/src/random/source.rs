//! The contexts that the suite opens: packets, timers, windows and closes of a right source.

use super::coverage::{Event, State};
use super::message::Reported;
use super::play::{Due, Player};
use super::serve::Incoming;
use super::step::{ContextPlan, ControlKind, Fate};
use crate::{Outcome, Part, Pdc, Request, RxPacket, Stop};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, Nack};
use uet_wire::registry::{AckRequest, CtlType, NackClass, NackCode};
use uet_wire::{PdcId, Psn, UetBuf};

pub(super) use super::message::Sending;

/// Maximum number of retransmissions of a packet of the suite.
const TRIES: u32 = 9;

/// A context that the suite opens, once or several times.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) plan: ContextPlan,
    pub(super) pdc: Pdc,
    pub(super) state: State,
    /// Number of contexts that have been closed before.
    pub(super) life: u32,
    pub(super) next: u32,
    pub(super) sent: BTreeMap<u32, OwnPacket>,
    queue: VecDeque<(usize, usize)>,
    /// Number of PSNs that the device has acknowledged cumulatively.
    pub(super) covered: u32,
    named: BTreeSet<u32>,
    /// Number of PSNs that CLEAR_PSN covers, and how many the device has been told of.
    cleared: u32,
    told: u32,
    pub(super) window: u32,
    /// The return direction.
    pub(super) incoming: Incoming,
    timer: bool,
    wants_close: bool,
    same: bool,
    /// The device has had no room for it.
    pub(super) starved: u32,
}

/// A packet that the suite has sent.
#[derive(Debug)]
pub(super) struct OwnPacket {
    pub(super) what: What,
    tries: u32,
    pub(super) done: bool,
    arrived: bool,
    /// The suite has asked for its answer by ACK_REQUEST.
    asked: bool,
    due: Duration,
    /// Its size, and when it left first, unless the network has disturbed it.
    size: usize,
    undisturbed: Option<Duration>,
    /// Numbers of transmissions that reach the device: with `retx`, without, marked, not marked.
    with: [u32; 4],
}

/// Content of a packet that the suite has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A part of a message.
    Part(usize, usize),
    /// A control packet.
    Control(CtlType),
}

impl OwnPacket {
    /// No transmission has reached the device.
    pub(super) fn never_arrived(&self) -> bool {
        self.with[0] + self.with[1] == 0
    }
}

impl Own {
    pub(super) fn new(player: &mut Player<'_, '_>, plan: ContextPlan) -> Result<Self, Stop> {
        let place = player.place(plan.peer);
        let pdc = player.t.initiate_from(place)?;
        let window = player.t.default_range();
        let pdc = Pdc { local: PdcId(plan.pdcid.max(1)), start: Psn(plan.start), rod: plan.rod, ..pdc };
        Ok(Own {
            plan,
            pdc,
            state: State::New,
            life: 0,
            next: 0,
            sent: BTreeMap::new(),
            queue: VecDeque::new(),
            covered: 0,
            named: BTreeSet::new(),
            cleared: 0,
            told: 0,
            window,
            incoming: Incoming::default(),
            timer: false,
            wants_close: false,
            same: false,
            starved: 0,
        })
    }

    /// Returns whether nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.sent.values().all(|packet| packet.done)
    }

    pub(super) fn clear(&self) -> Psn {
        self.pdc.start - 1 + self.cleared
    }
}

impl Player<'_, '_> {
    /// Queues the packets of a message.
    pub(super) fn queue(&mut self, context: usize, message: usize, parts: usize) -> Outcome {
        if matches!(self.own[context].state, State::Closed | State::Dead) {
            self.reopen(context)?;
        }
        let own = &mut self.own[context];
        own.queue.extend((0..parts).map(|part| (message, part)));
        self.flush(context)
    }

    fn reopen(&mut self, context: usize) -> Outcome {
        let (plan, life, same) = {
            let own = &self.own[context];
            (own.plan, own.life + 1, own.same && own.state == State::Closed)
        };
        self.strangers.insert(self.own[context].pdc.local.0);
        let mut fresh = Own::new(self, plan)?;
        let old = &self.own[context];
        fresh.life = life;
        fresh.pdc.local =
            if same { old.pdc.local } else { PdcId((old.pdc.local.0 ^ 0x2000).wrapping_add(0x80).max(1)) };
        // Far from all that the context before has used.
        fresh.pdc.start = old.pdc.start + 0x0200_0000;
        self.own[context] = fresh;
        Ok(())
    }

    /// Sends what the window permits.
    fn flush(&mut self, context: usize) -> Outcome {
        while let Some((message, part)) = self.own[context].queue.front().copied() {
            let own = &mut self.own[context];
            if own.next >= own.covered.saturating_add(own.window) || own.wants_close && part == 0 {
                break;
            }
            own.queue.pop_front();
            let fate = self.messages[message].fate(part);
            self.messages[message].placed(
                part,
                own_key(context, self.own[context].life),
                self.own[context].next,
            );
            self.send_new(context, What::Part(message, part), fate)?;
        }
        self.close_if_quiet(context)
    }

    /// Sends a packet with the next PSN.
    pub(super) fn send_new(&mut self, context: usize, what: What, fate: Fate) -> Outcome {
        let quiet = match what {
            What::Part(message, part) => {
                let sending = &self.messages[message];
                let last = part + 1 == sending.parts.len();
                sending.plan.quiet && !(last && sending.plan.seed % 2 == 1)
            }
            What::Control(_) => false,
        };
        // An ACK that nobody has asked for may take its time.
        let patience = match quiet && self.t.facts().virtual_time {
            true => self.t.soon() * 2 + Duration::from_nanos(self.t.parameter("ack_delay")) * 2,
            false => Duration::ZERO,
        };
        let due = self.t.now() + self.own_timeout(0) + patience;
        let own = &mut self.own[context];
        let n = own.next;
        own.next += 1;
        if own.state == State::New {
            own.state = State::Opening;
        }
        let state = own.state;
        own.sent.insert(
            n,
            OwnPacket {
                what,
                tries: 0,
                done: false,
                arrived: false,
                asked: false,
                size: 0,
                undisturbed: None,
                due,
                with: [0; 4],
            },
        );
        let event = match what {
            What::Part(message, _) => Event::message(self.messages[message].plan.kind),
            What::Control(kind) => Event::control(kind),
        };
        self.coverage.seen(state, event);
        self.transmit(context, n, fate, false)?;
        self.arm(context)
    }

    fn own_timeout(&self, tries: u32) -> Duration {
        (self.t.rto() * 2 + self.t.soon() / 16) * (1 << tries.min(6))
    }

    fn arm(&mut self, context: usize) -> Outcome {
        let own = &self.own[context];
        let next = own.sent.values().filter(|packet| !packet.done).map(|packet| packet.due).min();
        if let (Some(next), false) = (next, own.timer) {
            self.own[context].timer = true;
            self.later(next, Due::Own(context));
        }
        Ok(())
    }

    pub(super) fn own_timer(&mut self, context: usize) -> Outcome {
        self.own[context].timer = false;
        let now = self.t.now();
        let due: Vec<u32> = {
            let own = &self.own[context];
            let due = own.sent.iter().filter(|(_, packet)| !packet.done && packet.due <= now);
            match due.map(|(n, _)| *n).collect::<Vec<_>>() {
                // An ordered source goes back to the first that is missing.
                late if own.pdc.rod && !late.is_empty() => own
                    .sent
                    .iter()
                    .filter(|(n, packet)| !packet.done && **n >= late[0])
                    .map(|(n, _)| *n)
                    .collect(),
                late => late,
            }
        };
        for n in due {
            self.retransmit(context, n)?;
        }
        self.arm(context)
    }

    fn retransmit(&mut self, context: usize, n: u32) -> Outcome {
        let now = self.t.now();
        let own = &mut self.own[context];
        let Some(packet) = own.sent.get_mut(&n) else { return Ok(()) };
        let waited = packet.tries == 0 && packet.undisturbed.is_some() && !packet.arrived;
        if waited
            && !own.pdc.rod
            && own.starved == 0
            && self.t.facts().virtual_time
            && !self.hides(context, n)
        {
            let seen = format!("none of PSN {} in {:?}", self.own[context].pdc.psn(n), self.own_timeout(0));
            return self.broken(PDS_ACK_011, "an answer to a packet that has arrived", seen);
        }
        let own = &mut self.own[context];
        let Some(packet) = own.sent.get_mut(&n) else { return Ok(()) };
        packet.tries += 1;
        let (tries, what, arrived) = (packet.tries, packet.what, packet.arrived);
        if tries > TRIES {
            if own.starved > 0 {
                self.give_up(context);
                return Ok(());
            }
            let seen = format!("no answer to {tries} transmissions of PSN {}", own.pdc.psn(n));
            return match what {
                What::Control(CtlType::CLOSE_COMMAND) => {
                    self.broken(PDS_CLOSE_004, "an acknowledged CLOSE_COMMAND", seen)
                }
                _ => self.broken(PDS_ACK_011, "a packet that is acknowledged in bounded time", seen),
            };
        }
        let due = now + self.own_timeout(tries);
        if let Some(packet) = self.own[context].sent.get_mut(&n) {
            packet.due = due;
        }
        let state = self.own[context].state;
        self.coverage.seen(state, Event::Timeout);
        if arrived && tries < 4 && self.own[context].pdc.remote.is_some() {
            // It has arrived: its answer alone is missing.
            if let Some(packet) = self.own[context].sent.get_mut(&n) {
                packet.asked = true;
            }
            let pdc = self.own[context].pdc.clone();
            return self.t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(n), 0)?);
        }
        let first = tries == 1 && !self.settling;
        let fate = match what {
            // A second loss, now and then.
            What::Part(message, part) if first => self.messages[message].second_fate(part),
            _ => Fate::Arrives,
        };
        self.transmit(context, n, fate, true)
    }

    /// Returns whether the conversation itself may hide the answer to a packet, or the answer may have to wait.
    fn hides(&self, context: usize, n: u32) -> bool {
        // An ACK of another packet that the network loses may have covered this one.
        let loses = |what: &What| match what {
            What::Part(message, _) => !self.messages[*message].plan.answers.is_empty(),
            _ => false,
        };
        if self.own[context].sent.values().any(|packet| loses(&packet.what)) {
            return true;
        }
        match self.what(context, n) {
            Some(What::Part(message, _)) => {
                let sending = &self.messages[message];
                sending.plan.complete && sending.parts.len() > 1
                    || sending.plan.kind == uet_control::PostKind::NoOp
            }
            _ => false,
        }
    }

    /// The packet of a PSN as it would leave now.
    fn packet(&self, context: usize, n: u32, retx: bool) -> Result<Option<UetBuf>, Stop> {
        let own = &self.own[context];
        let Some(packet) = own.sent.get(&n) else { return Ok(None) };
        Ok(Some(match packet.what {
            What::Part(message, part) => {
                let sending = &self.messages[message];
                let Part { ses, ext, payload } = sending.parts[part].clone();
                let last = part + 1 == sending.parts.len();
                let request = Request { ext, ..own.pdc.request(n).ses(ses, &payload) };
                let ar = retx || !sending.plan.quiet || last && sending.plan.seed % 2 == 1;
                Request { retx, ar, ..request.clear(own.clear()) }.build()?
            }
            What::Control(kind) => match kind {
                CtlType::NOOP | CtlType::NEGOTIATION => flagged(own.pdc.numbered(kind, n)?, retx)?,
                _ => flagged(own.pdc.control(kind, own.pdc.psn(n), 0)?, retx)?,
            },
        }))
    }

    fn transmit(&mut self, context: usize, n: u32, fate: Fate, retx: bool) -> Outcome {
        let Some(packet) = self.packet(context, n, retx)? else { return Ok(()) };
        let now = self.t.now();
        let pdc = self.own[context].pdc.clone();
        let fate = self.possible(fate);
        if let Some(packet_of) = self.own[context].sent.get_mut(&n) {
            packet_of.size = packet.to_bytes().len();
            let plain = !retx && matches!(fate, Fate::Arrives | Fate::Marked | Fate::Twice);
            packet_of.undisturbed = plain.then_some(now);
        }
        let mut count = |marked: bool, times: u32| {
            if let Some(packet) = self.own[context].sent.get_mut(&n) {
                packet.with[usize::from(!retx)] += times;
                packet.with[2 + usize::from(!marked)] += times;
            }
        };
        match fate {
            Fate::Lost => {
                self.t.note("the next packet is lost");
                Ok(())
            }
            Fate::Arrives => {
                count(false, 1);
                self.t.send(&pdc, &packet)
            }
            Fate::Twice => {
                count(false, 2);
                let at = now + self.gap;
                self.t.send(&pdc, &packet)?;
                self.later(at, Due::Deliver(pdc.wire(&packet)));
                Ok(())
            }
            Fate::Late => {
                count(false, 1);
                let at = now + self.gap * 2;
                self.later(at, Due::Deliver(pdc.wire(&packet)));
                Ok(())
            }
            Fate::Marked => {
                count(true, 1);
                self.t.send_wire(&pdc.marked(&packet))
            }
            Fate::Trimmed => {
                // The rest is no transmission that counts for `retx` and `m` of an ACK.
                let length = packet.to_bytes().len();
                let (place, code) = match n % 2 {
                    0 => (crate::Trimmed::Fabric, NackCode::TRIMMED),
                    _ => (crate::Trimmed::LastHop, NackCode::TRIMMED_LASTHOP),
                };
                let known = pdc.remote.is_some() && matches!(self.what(context, n), Some(What::Part(..)));
                if known {
                    self.wanted_answers.push((pdc.from, pdc.psn(n).0, Some(code)));
                }
                self.t.send_wire(&pdc.trimmed(&packet, place, length.min(60)))
            }
        }
    }

    /// The network may be unable to do this.
    pub(super) fn possible(&self, fate: Fate) -> Fate {
        let facts = self.t.facts();
        match fate {
            Fate::Marked if !(facts.set_ecn && self.t.claims("ecn")) => Fate::Arrives,
            Fate::Trimmed if !(facts.trim && self.t.claims("trim")) => Fate::Lost,
            _ if self.settling => Fate::Arrives,
            fate => fate,
        }
    }

    /// Sends an earlier packet of a context again.
    pub(super) fn repeat(&mut self, context: usize, back: u8, retx: bool) -> Outcome {
        let Some(own) = self.own.get(context) else { return Ok(()) };
        let Some((n, packet)) = own.sent.iter().rev().nth(back.into()) else { return Ok(()) };
        let n = *n;
        if matches!(own.state, State::Closed | State::Dead | State::Closing)
            || !packet.done && retx && own.pdc.rod
        {
            return Ok(());
        }
        self.coverage.seen(own.state, Event::Repeat);
        self.transmit(context, n, Fate::Arrives, retx)
    }

    pub(super) fn control(&mut self, context: usize, kind: ControlKind, back: u8, fate: Fate) -> Outcome {
        let Some(own) = self.own.get(context) else { return Ok(()) };
        let (pdc, state, next, clear) = (own.pdc.clone(), own.state, own.next, own.clear());
        let takes = match kind {
            ControlKind::Noop => Some(CtlType::NOOP),
            ControlKind::Negotiation if self.t.claims("negotiation") => Some(CtlType::NEGOTIATION),
            _ => None,
        };
        if let Some(kind) = takes {
            if matches!(state, State::Closed | State::Dead) {
                self.reopen(context)?;
            }
            let own = &self.own[context];
            let full = own.next >= own.covered.saturating_add(own.window);
            if full || own.wants_close || !own.queue.is_empty() || own.state == State::Closing {
                return Ok(());
            }
            return self.send_new(context, What::Control(kind), fate);
        }
        let open = state == State::Open && next > 0;
        if !open {
            return Ok(());
        }
        let psn = pdc.psn(next - 1 - u32::from(back).min(next - 1));
        let packet = match kind {
            ControlKind::AckRequest => pdc.control(CtlType::ACK_REQUEST, psn, 0)?,
            ControlKind::ClearCommand => pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?,
            ControlKind::Probe => {
                let opaque = self.next_id as u16 | 0x8000;
                pdc.probe(opaque, psn)?
            }
            _ => return Ok(()),
        };
        let event = Event::Control(kind);
        self.coverage.seen(state, event);
        let named = Self::distance(psn, pdc.start).filter(|_| kind == ControlKind::AckRequest);
        if let Some(asked) = named.and_then(|n| self.own[context].sent.get_mut(&n)) {
            asked.asked = true;
        }
        if kind == ControlKind::AckRequest && !matches!(self.possible(fate), Fate::Lost) {
            self.wanted_answers.push((pdc.from, psn.0, None));
        }
        match self.possible(fate) {
            Fate::Marked => self.t.send_wire(&pdc.marked(&packet)),
            Fate::Lost => Ok(()),
            Fate::Twice => {
                self.t.send(&pdc, &packet)?;
                self.t.send(&pdc, &packet)
            }
            _ => self.t.send(&pdc, &packet),
        }
    }

    pub(super) fn close(&mut self, context: usize, same: bool) -> Outcome {
        let Some(own) = self.own.get_mut(context) else { return Ok(()) };
        if matches!(own.state, State::New | State::Closed | State::Dead | State::Closing) {
            return Ok(());
        }
        (own.wants_close, own.same) = (true, same);
        self.close_if_quiet(context)
    }

    /// Closes a context once nothing is under way on it.
    pub(super) fn close_if_quiet(&mut self, context: usize) -> Outcome {
        let own = &self.own[context];
        let waits = own.queue.front().is_some_and(|(_, part)| *part > 0);
        let idle = own.sent.values().all(|packet| packet.done) && !waits && own.incoming.unsure.is_empty();
        let life = own_key(context, own.life);
        let reads = self.messages.iter().any(|message| message.is_on(life) && !message.over);
        if !own.wants_close || !idle || reads || own.state != State::Open {
            return Ok(());
        }
        self.own[context].state = State::Closing;
        self.send_new(context, What::Control(CtlType::CLOSE_COMMAND), Fate::Arrives)
    }

    /// Finds the context of the suite that a packet of the device is for.
    pub(super) fn own_of(&self, seen: &RxPacket, dpdcid: PdcId) -> Option<usize> {
        self.own.iter().position(|own| {
            own.pdc.local == dpdcid && own.pdc.from == seen.wire.dst && own.state != State::New
        })
    }

    /// Takes an ACK of the forward direction in.
    pub(super) fn own_ack(&mut self, context: usize, seen: &RxPacket, ack: Ack, first: bool) -> Outcome {
        let named = ack.ack_psn().and_then(|psn| Self::distance(psn, self.own[context].pdc.start));
        if first && !self.settling {
            if let Some(What::Part(message, _)) = named.and_then(|n| self.what(context, n)) {
                match self.messages[message].answer_fate() {
                    Fate::Lost => return Ok(()),
                    Fate::Late => {
                        let at = self.t.now() + self.gap * 2;
                        self.later(at, Due::Take(seen.clone()));
                        return Ok(());
                    }
                    _ => {}
                }
            }
        }
        let state = self.own[context].state;
        self.coverage.seen(state, Event::Ack);
        let own = &mut self.own[context];
        let (life, of_start) = (own.life, Self::distance(ack.cack_psn() + 1, own.pdc.start));
        if own.life > 0 && of_start.is_none() {
            // It is of an earlier context with the same identifier.
            return Ok(());
        }
        if own.state == State::Opening {
            own.state = State::Open;
        }
        own.pdc.remote.get_or_insert(ack.spdcid());
        if ack.p() {
            return Ok(());
        }
        let Some(covered) = of_start else {
            let seen = format!("cack_psn {} on a context from {}", ack.cack_psn(), own.pdc.start);
            return self.broken(PDS_PSN_002, "a cumulative PSN of the context", seen);
        };
        if covered > own.next || named.is_some_and(|n| n >= own.next) {
            let told = format!("cack_psn {}, {} packets sent", ack.cack_psn(), own.next);
            return self.broken(PDS_PSN_002, "a cumulative PSN that has been sent", told);
        }
        if covered >= own.covered {
            if let Some(sack) = seen.ack_cc() {
                let mpr = u32::from(sack.sack().mpr());
                own.window = if mpr == 0 { 1 << 20 } else { mpr * 128 };
            }
        }
        own.covered = own.covered.max(covered);
        self.judge_bytes(context, seen, covered)?;
        let own = &mut self.own[context];
        if let Some(sack) = seen.ack_cc() {
            for psn in sack.sacked() {
                let n = Self::distance(psn, own.pdc.start);
                let sent = n.and_then(|n| own.sent.get_mut(&n));
                match sent {
                    Some(packet) if packet.with[0] + packet.with[1] == 0 => {
                        let told = format!("the bit of {psn}, which has not arrived");
                        return self.broken(PDS_SACK_001, "bits of packets that have arrived", told);
                    }
                    Some(packet) => packet.arrived = true,
                    None => {}
                }
            }
        }
        if let Some(n) = named {
            self.echoes(context, n, &ack)?;
            self.own[context].named.insert(n);
            self.answered(context, n, Some(seen), &ack)?;
        }
        let own = &self.own[context];
        let covered: Vec<u32> =
            own.sent.range(..own.covered).filter(|(_, packet)| !packet.done).map(|(n, _)| *n).collect();
        for n in covered {
            self.answered(context, n, None, &ack)?;
        }
        self.advance_clear(context);
        match ack.req() {
            AckRequest::REQ_CLEAR => {
                self.own[context].told = 0;
                let at = self.t.now() + self.gap * 4;
                self.later(at, Due::Clear(context));
            }
            AckRequest::REQ_CLOSE if self.own[context].life == life => self.own[context].wants_close = true,
            _ => {}
        }
        self.flush(context)
    }

    pub(super) fn what(&self, context: usize, n: u32) -> Option<What> {
        self.own[context].sent.get(&n).map(|packet| packet.what)
    }

    /// Judges `rcvd_bytes` of an ACK: no less than what it acknowledges, no more than what has left.
    fn judge_bytes(&mut self, context: usize, seen: &RxPacket, covered: u32) -> Outcome {
        let bytes = seen.ack_cc().and_then(|ack| ack.rcvd_bytes());
        let Some(bytes) = bytes.map(|units| u64::from(units.get()) * 256) else { return Ok(()) };
        let own = &self.own[context];
        let nominal = |packet: &OwnPacket| match packet.with[0] + packet.with[1] {
            0 => 0,
            _ => crate::flow::nominal(packet.size),
        };
        let parts = |packet: &&OwnPacket| matches!(packet.what, What::Part(..));
        let least: u64 = own.sent.range(..covered).map(|(_, packet)| packet).filter(parts).map(nominal).sum();
        // A retransmission may be longer or shorter than the first transmission by nothing that counts.
        let most: u64 = own.sent.values().map(nominal).sum::<u64>() + 256;
        let told = format!("{bytes} bytes, of {least} to {most}");
        if bytes < least {
            return self.broken(CC_RCVD_001, "rcvd_bytes that counts all that has arrived", told);
        }
        if bytes >= most.max(257) {
            return self.broken(CC_RCVD_002, "rcvd_bytes that counts each packet once", told);
        }
        Ok(())
    }

    /// Judges `retx` and `m` of an ACK that names a packet.
    fn echoes(&mut self, context: usize, n: u32, ack: &Ack) -> Outcome {
        let Some(packet) = self.own[context].sent.get(&n) else { return Ok(()) };
        let [retx, plain, marked, unmarked] = packet.with;
        let wrong =
            |said: bool, with: u32, without: u32| said && with == 0 || !said && without == 0 && with > 0;
        let seen = format!("retx {}, m {}", ack.retx(), ack.m());
        if retx + plain == 0 {
            return self.broken(PDS_ACK_016, "an ACK that names a packet which has arrived", seen);
        }
        if packet.asked {
            return Ok(());
        }
        if wrong(ack.retx(), retx, plain) {
            return self.broken(PDS_ACK_002, "retx of the packet that an ACK answers", seen);
        }
        if self.t.claims("ecn") && wrong(ack.m(), marked, unmarked) {
            return self.broken(PDS_ACK_002, "m of the packet that an ACK answers", seen);
        }
        Ok(())
    }

    /// Takes the answer to a packet in; without an ACK that names it, a cumulative one has covered it.
    fn answered(&mut self, context: usize, n: u32, seen: Option<&RxPacket>, ack: &Ack) -> Outcome {
        let cleared = self.own[context].cleared;
        let Some(packet) = self.own[context].sent.get_mut(&n) else { return Ok(()) };
        packet.arrived = true;
        let what = packet.what;
        match what {
            What::Part(message, part) => {
                let told = Reported::of(seen, ack, n < cleared);
                let over = self.reported(message, part, &told)?;
                if let Some(packet) = self.own[context].sent.get_mut(&n) {
                    packet.done |= over;
                }
                Ok(())
            }
            What::Control(kind) => {
                packet.done = true;
                let once = packet.with[0] + packet.with[1] == 1 && !packet.asked;
                if let Some(seen) = seen.filter(|seen| once && seen.uet().ses.is_some()) {
                    let told = seen.uet().to_string();
                    return self.broken(PDS_ACK_014, "an ACK of a control packet without a response", told);
                }
                if kind == CtlType::CLOSE_COMMAND && self.own[context].state == State::Closing {
                    self.own[context].state = State::Closed;
                    let waiting = core::mem::take(&mut self.own[context].queue);
                    if !waiting.is_empty() {
                        self.reopen(context)?;
                        self.own[context].queue = waiting;
                    }
                }
                Ok(())
            }
        }
    }

    /// Tells CLEAR_PSN on contexts whose cumulative PSN waits for it, and asks for an ACK.
    pub(super) fn clear_rest(&mut self) -> Result<bool, crate::Stop> {
        let mut any = false;
        for context in 0..self.own.len() {
            let own = &self.own[context];
            if own.state != State::Open || own.covered >= own.next || own.cleared < own.next {
                continue;
            }
            any = true;
            let (pdc, clear, last) = (own.pdc.clone(), own.clear(), own.next - 1);
            if let Some(packet) = self.own[context].sent.get_mut(&last) {
                packet.asked = true;
            }
            self.t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)?;
            self.t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(last), 0)?)?;
        }
        Ok(any)
    }

    /// Judges that the cumulative PSN has moved.
    pub(super) fn judge_cleared(&mut self) -> Outcome {
        let stays =
            |own: &&Own| own.state == State::Open && own.covered < own.next && own.cleared >= own.next;
        match self.own.iter().find(stays) {
            Some(own) => {
                let told = format!("{} of {} PSNs are covered, all are cleared", own.covered, own.next);
                self.broken(PDS_CLR_005, "CACK_PSN that moves with CLEAR", told)
            }
            None => Ok(()),
        }
    }

    fn advance_clear(&mut self, context: usize) {
        let own = &mut self.own[context];
        let mut cleared = own.cleared.max(own.covered);
        while own.named.contains(&cleared) {
            cleared += 1;
        }
        own.cleared = cleared;
    }

    /// Tells CLEAR_PSN, unless a request has done so.
    pub(super) fn tell_clear(&mut self, context: usize) -> Outcome {
        let own = &mut self.own[context];
        if own.state != State::Open || own.covered >= own.cleared || own.pdc.remote.is_none() {
            return Ok(());
        }
        if core::mem::replace(&mut own.told, own.cleared) == own.cleared {
            return Ok(());
        }
        let (pdc, clear) = (own.pdc.clone(), own.clear());
        self.t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)
    }

    /// Takes a NACK of the forward direction in.
    pub(super) fn own_nack(&mut self, context: usize, seen: &RxPacket, nack: Nack) -> Outcome {
        let code = nack.nack_code();
        let own = &self.own[context];
        let state = own.state;
        self.coverage.seen(state, Event::Nack);
        let n = nack.nack_psn().and_then(|psn| Self::distance(psn, own.pdc.start));
        let Some(n) = n.filter(|n| own.sent.get(n).is_some_and(|packet| !packet.done)) else { return Ok(()) };
        // A lost packet has no flags.
        let trimmed =
            matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP | NackCode::RCVR_INFER_LOSS);
        if let Some(packet) = own.sent.get(&n).filter(|packet| !packet.asked && !trimmed) {
            let [retx, plain, marked, unmarked] = packet.with;
            let wrong =
                |said: bool, with: u32, without: u32| said && with == 0 || !said && without == 0 && with > 0;
            let marks = self.t.claims("ecn") && wrong(nack.m(), marked, unmarked);
            if wrong(nack.retx(), retx, plain) || marks {
                let told = format!("retx {}, m {} in NACK {code}", nack.retx(), nack.m());
                return self.broken(PDS_NACK_001, "m and retx of the packet that a NACK answers", told);
            }
        }
        let fatal = code.class() == Some(NackClass::PdcFatal);
        let now = self.t.now();
        let wait = match code {
            NackCode::PKT_NOT_RCVD
            | NackCode::ACK_WITH_DATA
            | NackCode::TRIMMED
            | NackCode::TRIMMED_LASTHOP => Duration::ZERO,
            _ if fatal && own.wants_close => {
                self.give_up(context);
                return Ok(());
            }
            _ if fatal => {
                let told = format!("NACK {code} for PSN {}", own.pdc.psn(n));
                return self.broken(PDS_PDC_003, "a legal packet of a context that is accepted", told);
            }
            NackCode::RCVD_SES_PROCG => {
                // It waits for other packets, maybe.
                if let Some(packet) = self.own[context].sent.get_mut(&n) {
                    packet.tries = packet.tries.min(4);
                }
                self.t.rto()
            }
            _ => self.t.nack_wait(),
        };
        if seen.lacks_room() {
            self.own[context].starved += 1;
        }
        let rod = self.own[context].pdc.rod && code == NackCode::ROD_OOO;
        let from = if rod { 0 } else { n };
        for (other, packet) in self.own[context].sent.range_mut(from..) {
            packet.undisturbed = packet.undisturbed.filter(|_| *other != n && !rod);
            if !packet.done && (*other == n || rod) {
                packet.due = packet.due.min(now + wait);
            }
        }
        self.own[context].timer = false;
        self.arm(context)
    }

    /// Ends a context that the device has ended with good reason.
    fn give_up(&mut self, context: usize) {
        let own = &mut self.own[context];
        own.state = State::Dead;
        own.queue.clear();
        own.sent.values_mut().for_each(|packet| packet.done = true);
        let life = own_key(context, own.life);
        self.lose_messages(context, life);
    }

    /// Takes a control packet for a context of the suite in.
    pub(super) fn own_control(&mut self, context: usize, kind: CtlType) -> Outcome {
        let state = self.own[context].state;
        self.coverage.seen(state, Event::control(kind));
        match kind {
            CtlType::CLOSE_REQUEST => {
                self.own[context].wants_close = true;
                self.close_if_quiet(context)
            }
            CtlType::CLEAR_REQUEST => {
                let own = &self.own[context];
                let (pdc, clear) = (own.pdc.clone(), own.clear());
                self.t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)
            }
            _ => Ok(()),
        }
    }
}

/// The number of one life of a context.
pub(super) fn own_key(context: usize, life: u32) -> u64 {
    context as u64 | u64::from(life) << 32
}

/// A control packet with this `retx`.
fn flagged(packet: UetBuf, retx: bool) -> Result<UetBuf, Stop> {
    match packet.pds {
        Some(uet_wire::pds::PdsBuf::Control(control)) if retx => {
            Ok(UetBuf { pds: Some(control.edit().retx(true).done()?.into()), ..packet })
        }
        _ => Ok(packet),
    }
}
