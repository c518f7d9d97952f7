//! Plays a script to a device: inserts numbers that the device chooses, changes packets, and tracks contexts.

use super::packets::{self, Memory};
use super::script::{Act, Edit, Script, Step};
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_conformance::{Dut, DutError, DutExt, Pdc, RxPacket, Wire};
use uet_control::{ClosePdc, Hex64, Mode, Post, PostKind, Remote};
use uet_observe::{Context, ContextId, Event, Facts, Observed, Observer, Side};
use uet_wire::pds::{Pds, Request};
use uet_wire::registry::{CtlType, NackCode, ReturnCode};
use uet_wire::{PdcId, Psn, Uet, UetBuf};

/// Maximum number of lost PSNs of a context that are filled before it is closed.
const FILLED: u32 = 64;

/// Maximum number of rounds of answers to the device before its contexts are closed.
const ROUNDS: usize = 8;

/// A conversation with a device.
pub struct Player<'a> {
    dut: &'a mut dyn Dut,
    memory: &'a Memory,
    /// The fuzzer as a peer of the device, if the device accepts peers.
    peer: Option<u64>,
    /// True once the device has posted an operation.
    posted: bool,
    soon: Duration,
    /// Follows the contexts.
    observer: Observer,
    /// Number of unrefused packets of the fuzzer with this PDCID and this PSN, and whether one may open a context. If
    /// two packets share both, a NACK does not identify the refused one.
    unrefused: BTreeMap<(PdcId, u32), (u32, bool)>,
    /// Contexts that an ACK seems to close. It may acknowledge another packet with that PSN.
    closed: Vec<Opened>,
    /// Contexts of the script.
    own: Vec<Pdc>,
    /// Unanswered packets of the device: the context, the PSN, and whether it is a request.
    asks: Vec<(ContextId, Psn, bool)>,
    /// Packets with their times.
    pub passed: Vec<(Duration, Wire)>,
}

/// The fuzzer's side of a context that it may have opened.
#[derive(Debug)]
struct Opened {
    pdc: Pdc,
    /// Number of PSNs that the device has acknowledged cumulatively.
    covered: u32,
    /// Number of used PSNs.
    used: u32,
}

impl Opened {
    fn of(context: &Context, side: Side) -> Option<Self> {
        let (pdc, own) = (Pdc::of(context, side), context.direction(side));
        let first = own.index(pdc.start);
        let n = |index: Option<i64>| index.map_or(0, |index| (index + 1 - first).max(0)) as u32;
        let (covered, used) = (n(own.cack.map(|(cack, _)| cack)), n(own.highest));
        context.start.map(|_| Opened { pdc, covered, used })
    }
}

impl<'a> Player<'a> {
    /// Starts a conversation from the first address of the fuzzer.
    pub fn new(dut: &'a mut dyn Dut, memory: &'a Memory, peer: Option<u64>, soon: Duration) -> Self {
        Player {
            dut,
            memory,
            peer,
            posted: false,
            soon,
            observer: Observer::default(),
            unrefused: BTreeMap::new(),
            closed: Vec::new(),
            own: Vec::new(),
            asks: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Plays a script. Fails if the link fails.
    pub fn play(&mut self, script: &Script) -> Result<(), DutError> {
        let (from, to) = self.way();
        self.own = script
            .contexts
            .iter()
            .map(|context| Pdc {
                from,
                to,
                local: PdcId(context.pdcid),
                remote: None,
                start: Psn(context.start),
                rod: context.rod,
                entropy: 0xc000 | context.pdcid,
            })
            .collect();
        script.steps.iter().try_for_each(|step| self.step(step))
    }

    fn way(&self) -> (IpAddr, IpAddr) {
        let facts = self.dut.facts();
        (facts.local.first().copied().unwrap_or(facts.device), facts.device)
    }

    fn step(&mut self, step: &Step) -> Result<(), DutError> {
        let built = |packet: Result<UetBuf, _>| packet.ok().map(|packet: UetBuf| packet.to_bytes());
        match &step.act {
            Act::Request { context, n, message, part, retx } => {
                let Some(pdc) = self.own.get(*context).cloned() else { return Ok(()) };
                let clear = self.settled(&pdc);
                let request = self.memory.request(&pdc, *n, message, *part).and_then(|request| {
                    let request = request.clear(clear);
                    if *retx { request.retx().build() } else { request.build() }
                });
                self.send(&pdc, built(request), &step.edits)?;
                self.learn(*context)
            }
            Act::Control { context, n, kind } => {
                let Some(pdc) = self.own.get(*context).cloned() else { return Ok(()) };
                let kind = CtlType::new(*kind).unwrap_or(CtlType::NOOP);
                self.send(&pdc, built(packets::control(&pdc, *n, kind)), &step.edits)?;
                self.learn(*context)
            }
            Act::Lone { message, rudi } => {
                let pdc = self.nobody();
                let packet = self.memory.lone(&pdc, message, *rudi);
                self.send(&pdc, built(packet), &step.edits)
            }
            Act::Post { kind, length, rod } => {
                self.post(kind, *length, *rod);
                self.listen(self.soon, |player| !player.asks.is_empty())
            }
            Act::Answer => {
                self.listen(self.soon / 4, |player| !player.asks.is_empty())?;
                self.answer(&step.edits)
            }
            Act::Refuse { code } => {
                let oldest = (!self.asks.is_empty()).then(|| self.asks.remove(0));
                let asked = oldest.and_then(|(id, psn, _)| Some((self.serves(id)?.0, psn)));
                let (pdc, psn) = asked.unwrap_or_else(|| (self.nobody(), Psn(7)));
                let nack = packets::nack(&pdc, *code, psn).map(|nack| nack.to_bytes());
                self.send(&pdc, nack, &step.edits)
            }
            Act::Recorded { bytes } => {
                let mut bytes = bytes.0.clone();
                self.rebind(&mut bytes);
                let opens = Uet::parse_lax(&bytes).0.pds.and_then(|pds| pds.request()).filter(Request::syn);
                let local = opens.map(|request| request.spdcid());
                self.send(&self.nobody(), Some(bytes), &step.edits)?;
                let bound = |player: &Self| local.is_none_or(|local| player.remote(local).is_some());
                self.listen(self.soon, bound)
            }
            Act::Raw { bytes } => self.send(&self.nobody(), Some(bytes.0.clone()), &step.edits),
            Act::Wait { .. } => self.listen(step.act.pause(), |_| false),
        }
    }

    /// Returns a nonexistent context, for packets without one.
    fn nobody(&self) -> Pdc {
        let (from, to) = self.way();
        Pdc { from, to, local: PdcId(1), remote: None, start: Psn(7), rod: false, entropy: 0xc000 }
    }

    /// Returns the context of the fuzzer with this PDCID, and the fuzzer's side.
    fn context(&self, local: PdcId) -> Option<(&Context, Side)> {
        let (from, to) = self.way();
        self.observer.context(from, local, to)
    }

    /// Returns the device's PDCID in that context.
    fn remote(&self, local: PdcId) -> Option<PdcId> {
        let (context, side) = self.context(local)?;
        context.direction(side.other()).names.first().copied()
    }

    /// Waits for the device's PDCID if it is unknown.
    fn learn(&mut self, context: usize) -> Result<(), DutError> {
        // A packet with changed numbers may open no context.
        let opens = self.own.get(context).is_some_and(|pdc| self.context(pdc.local).is_some());
        let known =
            move |player: &Self| !opens || player.own.get(context).is_none_or(|pdc| pdc.remote.is_some());
        let long = if opens { self.soon } else { Duration::ZERO };
        self.listen(long, known)
    }

    /// Returns the PSN up to which all have an answer.
    fn settled(&self, pdc: &Pdc) -> Psn {
        let settled = self.context(pdc.local).and_then(|(context, side)| context.direction(side).settled());
        settled.unwrap_or(pdc.start - 1)
    }

    fn post(&mut self, kind: &str, length: u64, rod: bool) {
        let kind: Option<PostKind> = serde_json::from_value(kind.into()).ok();
        let (Some(kind), Some(peer)) = (kind, self.peer) else { return };
        let mode = if rod { Mode::Rod } else { Mode::Rud };
        self.posted = true;
        let remote = Remote { key: Hex64(0x5eed), index: 10, ..Remote::default() };
        let post = Post { mode, remote, ..Post::new(kind, peer, length) };
        // An unsupported operation is ignored.
        let _ = self.dut.call(post);
    }

    /// Returns the fuzzer's side of an observed context, and the PSN up to which all packets of the device arrived.
    fn serves(&self, id: ContextId) -> Option<(Pdc, Psn)> {
        let context = self.observer.contexts().find(|context| context.id == id)?;
        let side = self.side(context);
        let (pdc, device) = (Pdc::of(context, side), context.direction(side.other()));
        let came = (device.index(pdc.start)..).take_while(|index| device.is_sent(*index)).count() as u32;
        let cack = pdc.start + came - 1;
        Some((pdc, cack))
    }

    /// Returns the fuzzer's side of a context.
    fn side(&self, context: &Context) -> Side {
        if context.addresses[Side::A as usize] == self.way().1 { Side::B } else { Side::A }
    }

    /// Sends ACKs for all requests of the device.
    fn answer(&mut self, edits: &[Edit]) -> Result<(), DutError> {
        for (id, psn, is_request) in core::mem::take(&mut self.asks) {
            let Some((pdc, cack)) = self.serves(id) else { continue };
            let mut ack = pdc.ack(psn).cack(cack);
            ack.response = ack.response.filter(|_| is_request);
            self.send(&pdc, ack.build().ok().map(|ack| ack.to_bytes()), edits)?;
        }
        Ok(())
    }

    /// Replaces the PDCID in a recorded packet with the device's current one.
    fn rebind(&self, bytes: &mut [u8]) {
        let Some(pds) = Uet::parse_lax(bytes).0.pds else { return };
        let Some(place) = pds.layout().field("pds.spdcid") else { return };
        let spdcid = place.read(pds.bytes()).map(|id| PdcId(id as u16));
        let remote = spdcid.and_then(|id| self.remote(id));
        let places: Vec<_> = pds.layout().present(pds.bytes()).map(|(place, _)| place).collect();
        let dpdcid = places.iter().find(|place| place.row.name == "pds.dpdcid");
        if let (Some(remote), Some(dpdcid)) = (remote, dpdcid) {
            dpdcid.write(bytes, remote.0.into());
        }
    }

    fn send(&mut self, pdc: &Pdc, bytes: Option<Vec<u8>>, edits: &[Edit]) -> Result<(), DutError> {
        let Some(mut bytes) = bytes else { return Ok(()) };
        let mut wire = pdc.raw(&[]);
        let mut copies = 1;
        for edit in edits {
            match edit {
                Edit::Twice => copies += 1,
                Edit::Mark => wire.marked = true,
                _ => edit.apply(&mut bytes),
            }
        }
        wire.bytes = bytes;
        for _ in 0..copies {
            self.note(wire.clone());
            // A packet that the system rejects is lost, as on any link.
            let _ = self.dut.send(&wire);
        }
        self.listen(Duration::ZERO, |_| false)
    }

    /// Handles arriving packets until `enough`, but no longer than this.
    fn listen(&mut self, within: Duration, enough: impl Fn(&Self) -> bool) -> Result<(), DutError> {
        let until = self.dut.now() + within;
        while !enough(self) && self.receive(until)? {}
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<bool, DutError> {
        let received = self.dut.receive(until)?;
        let any = received.is_some();
        received.into_iter().for_each(|wire| self.note(wire));
        Ok(any)
    }

    /// Sends a packet and waits for one that `wanted` accepts.
    fn ask<T>(
        &mut self,
        pdc: &Pdc,
        packet: Option<UetBuf>,
        wanted: impl Fn(&RxPacket) -> Option<T>,
    ) -> Result<Option<T>, DutError> {
        let mut number = self.passed.len();
        self.send(pdc, packet.map(|packet| packet.to_bytes()), &[])?;
        let until = self.dut.now() + self.soon;
        loop {
            while let Some((at, wire)) = self.passed.get(number).cloned() {
                let found = wanted(&RxPacket { at, number, wire });
                if found.is_some() {
                    return Ok(found);
                }
                number += 1;
            }
            if !self.receive(until)? {
                return Ok(None);
            }
        }
    }

    /// Records a packet.
    fn note(&mut self, wire: Wire) {
        self.passed.push((self.dut.now(), wire));
        let number = self.passed.len() - 1;
        let ours = self.is_ours(number as u64);
        let Some((_, wire)) = self.passed.last() else { return };
        let packet = Observed::new(number as u64, wire.src, wire.dst, &wire.bytes);
        let facts = self.observer.observe(&packet);
        let (Facts::Context { context, sender, event, .. }, Some(pds)) = (facts, packet.uet.pds) else {
            return;
        };
        let (spdcid, psn, opens) = match (pds.request(), pds) {
            (Some(request), _) => (request.spdcid(), request.psn(), request.start_psn().is_some()),
            (_, Pds::Control(control)) => (control.spdcid(), control.psn(), control.start_psn().is_some()),
            _ => Default::default(),
        };
        match event {
            Event::Request { .. } | Event::Control { .. } if ours => {
                let (count, may_open) = self.unrefused.entry((spdcid, psn.0)).or_default();
                *count += 1;
                *may_open |= opens;
            }
            Event::Request { .. } | Event::Control { .. } => {
                let is_request = matches!(event, Event::Request { .. });
                let takes_psn = !matches!(event, Event::Control { kind, .. } if !kind.takes_psn());
                let ask = (context.id, psn, is_request);
                if takes_psn && !self.asks.contains(&ask) && self.asks.len() < 1 << 12 {
                    self.asks.push(ask);
                }
            }
            Event::Ack { .. } => {
                let Some(ack) = pds.ack().filter(|_| !ours) else { return };
                for pdc in self.own.iter_mut().filter(|pdc| pdc.local == ack.dpdcid()) {
                    pdc.remote = Some(ack.spdcid());
                }
                self.closed.extend(context.closed.and_then(|_| Opened::of(context, sender.other())));
            }
            Event::Nack { code, .. } => {
                let nack = pds.nack().filter(|_| !ours && code != NackCode::INV_DPDCID);
                let refused = nack.and_then(|nack| Some((nack.dpdcid(), nack.nack_psn()?.0)));
                if let Some((count, _)) = refused.and_then(|refused| self.unrefused.get_mut(&refused)) {
                    *count = count.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    /// Returns whether the fuzzer sent this packet.
    fn is_ours(&self, number: u64) -> bool {
        self.passed.get(number as usize).is_some_and(|(_, wire)| wire.src != self.way().1)
    }

    /// Answers requests of the device, and closes open contexts by the rules. Returns whether the device has confirmed
    /// that all are closed. Otherwise its contexts may legitimately stay open.
    pub fn close(&mut self) -> Result<bool, DutError> {
        self.answer_all()?;
        if let Some(peer) = self.peer.filter(|_| self.posted) {
            for mode in [Mode::Rud, Mode::Rod] {
                // No open context, nothing to close.
                let _ = self.dut.call(ClosePdc { peer, mode, class: 0 });
            }
            self.answer_all()?;
        }
        let mut contexts: Vec<&Context> = self.observer.contexts().collect();
        contexts.sort_by_key(|context| context.id);
        let (mut sure, mut open) = (true, core::mem::take(&mut self.closed));
        for Opened { pdc, used, .. } in &mut open {
            // An invalid CLOSE_COMMAND has a used PSN. A device that acknowledges the PSN alone keeps the context, and
            // takes more packets.
            let sent = self.unrefused.keys().filter(|(local, _)| *local == pdc.local);
            let later = sent.map(|(_, psn)| Psn(*psn) - pdc.start);
            *used =
                later.filter(|n| (*used..*used + FILLED).contains(n)).max().map_or(*used, |last| last + 1);
        }
        for context in contexts {
            let side = self.side(context);
            let device = context.direction(side.other());
            let starts = context.start.is_some_and(|(_, number)| self.is_ours(number));
            let Some(opened) = Opened::of(context, side).filter(|_| starts) else {
                sure &= device.highest.is_none() || device.close.is_some();
                continue;
            };
            let mut openings = self.unrefused.iter().filter(|((local, psn), (_, opens))| {
                *local == opened.pdc.local && *opens && context.distance_from_start(Psn(*psn)).is_some()
            });
            // It has opened no context, and has refused each packet.
            if device.names.is_empty() && openings.all(|(_, (count, _))| *count == 0) {
                continue;
            }
            match device.names.len() {
                1 => open.push(opened),
                _ => sure = false,
            }
        }
        for Opened { pdc, covered, used } in open {
            if used.checked_sub(covered).is_none_or(|missing| missing > FILLED) {
                sure = false;
                continue;
            }
            for n in covered..used {
                let filling = packets::control(&pdc, n, CtlType::NOOP).ok().map(|packet| packet.to_bytes());
                self.send(&pdc, filling, &[])?;
            }
            sure &= self.command(&pdc, used)?;
        }
        Ok(sure)
    }

    /// Sends ACKs until the device sends no more requests.
    fn answer_all(&mut self) -> Result<(), DutError> {
        for _ in 0..ROUNDS {
            self.listen(self.soon / 8, |player| !player.asks.is_empty())?;
            if self.asks.is_empty() {
                break;
            }
            self.answer(&[])?;
        }
        Ok(())
    }

    /// Sends CLOSE_COMMAND with the `n`-th PSN; returns whether it is acknowledged.
    fn command(&mut self, pdc: &Pdc, n: u32) -> Result<bool, DutError> {
        let gone = [NackCode::INV_DPDCID, NackCode::CLOSING, NackCode::CLOSING_IN_ERR];
        let is_over = |seen: &RxPacket| {
            let is_gone =
                seen.is_for(pdc) && seen.nack().is_some_and(|nack| gone.contains(&nack.nack_code()));
            (is_gone || seen.answers(pdc, pdc.psn(n)).is_some()).then_some(())
        };
        // Repeat on a link that loses packets.
        for _ in 0..3 {
            if self.ask(pdc, packets::control(pdc, n, CtlType::CLOSE_COMMAND).ok(), is_over)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets time pass.
    pub fn idle(&mut self, span: Duration) -> Result<(), DutError> {
        self.listen(span, |_| false)
    }

    /// Writes to the liveness region on a context of its own, then closes that context. Returns the device's answer and
    /// whether all is closed, as in [`close`](Self::close); `None` for silence.
    pub fn pulse(
        &mut self,
        local: PdcId,
        start: Psn,
        beat: [u8; 8],
    ) -> Result<Option<(Pulse, bool)>, DutError> {
        let (from, to) = self.way();
        let pdc = Pdc { from, to, local, remote: None, start, rod: false, entropy: 0xc000 };
        let message = pdc.request(0).write(&self.memory.pulse, 0, &beat);
        let Ok(request) = message else { return Ok(None) };
        let answer = |seen: &RxPacket| {
            let refuses = seen.refuses(&pdc, start).is_some();
            let done = matches!(seen.return_code(), None | Some(ReturnCode::OK));
            (refuses || seen.acknowledges(&pdc, start)).then_some(if done && !refuses {
                Pulse::Done
            } else {
                Pulse::Refused
            })
        };
        for again in 0..4 {
            let request = if again == 0 { request.clone() } else { request.clone().retx() };
            if let Some(pulse) = self.ask(&pdc, request.build().ok(), answer)? {
                return Ok(Some((pulse, self.close()?)));
            }
        }
        Ok(None)
    }
}

/// Answer of a device to a plain write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// The device has executed it.
    Done,
    /// The device has refused it.
    Refused,
}
