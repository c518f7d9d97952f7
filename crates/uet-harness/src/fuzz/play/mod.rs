//! Plays a conversation to a device: inserts numbers that the device chooses, changes packets, and tracks contexts.
//!
//! Changed packets may have any effect, so it expects nothing. The player of random runs judges what it plays.

mod settle;

use settle::Opened;
pub(super) use settle::Pulse;

use super::packets::{self, Memory};
use super::{PassedPacket, change};
use crate::field::{set, spdcid};
use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use uet_conformance::random::Sequence;
use uet_conformance::random::step::{By, Fate, Hostile, MessagePlan, Posting, Reply, Step};
use uet_conformance::{Dut, DutError, DutExt, Edit, Pdc, Trimmed, Wire};
use uet_control::{CallError, ClosePdc, Hex64, Mode, Operation, Post, PostKind, Remote};
use uet_observe::{Context, ContextId, Event, Facts, Observed, Observer, Side};
use uet_wire::pds::{Pds, Request};
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn, Uet, UetBuf};

/// A conversation with a device.
pub(super) struct Player<'a> {
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
    own: Vec<Own>,
    /// Number of the present step.
    current: Option<usize>,
    /// Number of packets of the present step.
    sent: usize,
    /// Packets that the network delays until the end of the step.
    late: Vec<(Wire, String)>,
    /// Unanswered packets of the device: the context, the PSN, and whether it is a request.
    asks: Vec<(ContextId, Psn, bool)>,
    /// Packets with their times.
    pub(super) passed: Vec<PassedPacket>,
}

/// The fuzzer's side of a context of the script.
#[derive(Debug)]
struct Own {
    pdc: Pdc,
    /// Number of the next PSN.
    next: u32,
    /// Bytes of the packets sent.
    sent: Vec<Vec<u8>>,
}

impl<'a> Player<'a> {
    /// Starts a conversation from the first address of the fuzzer.
    pub(super) fn new(dut: &'a mut dyn Dut, memory: &'a Memory, peer: Option<u64>, soon: Duration) -> Self {
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
            current: None,
            sent: 0,
            late: Vec::new(),
            asks: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Plays a conversation. Fails if the link fails.
    pub(super) fn play(&mut self, script: &Sequence) -> Result<(), DutError> {
        let (from, to) = self.way();
        self.own = script
            .contexts
            .iter()
            .map(|context| Own {
                pdc: Pdc {
                    from,
                    to,
                    local: PdcId(context.pdcid),
                    remote: None,
                    start: Psn(context.start),
                    rod: context.rod,
                    entropy: 0xc000 | context.pdcid,
                },
                next: 0,
                sent: Vec::new(),
            })
            .collect();
        for (number, step) in script.steps.iter().enumerate() {
            (self.current, self.sent) = (Some(number), 0);
            self.step(step)?;
            for (wire, change) in core::mem::take(&mut self.late) {
                self.transmit(&wire, &change)?;
            }
        }
        self.current = None;
        Ok(())
    }

    fn way(&self) -> (IpAddr, IpAddr) {
        let facts = self.dut.facts();
        (facts.local.first().copied().unwrap_or(facts.device), facts.device)
    }

    fn step(&mut self, step: &Step) -> Result<(), DutError> {
        match step.plain() {
            Step::Message(plan) => self.message(step, plan),
            Step::Post(posting) => {
                self.post(posting);
                self.listen(self.soon, |player| !player.asks.is_empty())?;
                self.answer(step, &posting.replies)
            }
            Step::Control { context, kind, back, fate } => {
                let kind = kind.ctl_type();
                let Some(own) = self.own.get_mut(*context) else { return Ok(()) };
                let takes = matches!(kind, CtlType::NOOP | CtlType::NEGOTIATION);
                let n = match takes {
                    true => own.take(),
                    false => own.next.saturating_sub(1 + u32::from(*back)),
                };
                let packet = packets::control(&own.pdc, n, kind);
                self.send_own(*context, step, packet.ok(), *fate)
            }
            Step::Repeat { context, back, retx } => {
                let Some(own) = self.own.get(*context) else { return Ok(()) };
                let Some(mut bytes) = own.sent.iter().rev().nth((*back).into()).cloned() else {
                    return Ok(());
                };
                if *retx {
                    set(&mut bytes, "pds.flags.retx", 1);
                }
                self.send_step(&own.pdc.clone(), step, Some(bytes), Fate::Arrives).map(drop)
            }
            Step::Close { context, same } => {
                let Some(own) = self.own.get_mut(*context) else { return Ok(()) };
                let n = own.take();
                let packet = packets::control(&own.pdc, n, CtlType::CLOSE_COMMAND);
                self.send_own(*context, step, packet.ok(), Fate::Arrives)?;
                if let Some(own) = self.own.get_mut(*context).filter(|_| !same) {
                    let local = PdcId(own.pdc.local.0.wrapping_add(0x1111).max(1));
                    own.pdc = Pdc { local, remote: None, start: own.pdc.psn(own.next), ..own.pdc.clone() };
                    own.next = 0;
                }
                Ok(())
            }
            Step::CloseByDevice(plan) => {
                self.close_by_device(if plan.rod { Mode::Rod } else { Mode::Rud });
                Ok(())
            }
            Step::Abort { code, .. } => {
                let oldest = (!self.asks.is_empty()).then(|| self.asks.remove(0));
                let asked = oldest.and_then(|(id, psn, _)| Some((self.serves(id)?.0, psn)));
                let (pdc, psn) = asked.unwrap_or_else(|| (self.nobody(), Psn(7)));
                self.send_step(&pdc, step, built(packets::nack(&pdc, *code, psn)), Fate::Arrives).map(drop)
            }
            Step::Hostile { packet: Hostile::Bytes, .. } => {
                self.send_step(&self.nobody(), step, Some(Vec::new()), Fate::Arrives).map(drop)
            }
            Step::Recorded { bytes } => {
                let mut bytes = bytes.0.clone();
                self.rebind(&mut bytes);
                let opens = Uet::parse_lax(&bytes).0.pds.and_then(|pds| pds.request()).filter(Request::syn);
                let local = opens.map(|request| request.spdcid());
                self.send_step(&self.nobody(), step, Some(bytes), Fate::Arrives)?;
                let bound = |player: &Self| local.is_none_or(|local| player.remote(local).is_some());
                self.listen(self.soon, bound)
            }
            Step::Pause { us } => self.listen(Duration::from_micros((*us).into()), |_| false),
            _ => Ok(()),
        }
    }

    /// Sends the packets of a message. Answers the device if it replies with requests.
    fn message(&mut self, step: &Step, plan: &MessagePlan) -> Result<(), DutError> {
        let parts = self.memory.parts(plan).unwrap_or_default();
        for (index, part) in parts.into_iter().enumerate() {
            let Some(own) = self.own.get_mut(plan.context) else { return Ok(()) };
            let fate = plan.fates.get(index).copied().unwrap_or_default();
            let n = if plan.by == By::Context { own.take() } else { index as u32 };
            let pdc = own.pdc.clone();
            let clear = self.settled(&pdc);
            let packet = packets::request(&pdc, pdc.request(n).clear(clear), plan, part).ok();
            match plan.by {
                By::Context => self.send_own(plan.context, step, packet, fate)?,
                _ => _ = self.send_step(&pdc, step, built(packet), fate)?,
            }
        }
        if matches!(plan.kind, PostKind::Read | PostKind::RendezvousSend | PostKind::RendezvousTsend) {
            self.listen(self.soon / 4, |player| !player.asks.is_empty())?;
            return self.answer(step, &[]);
        }
        Ok(())
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
        let opens = self.own.get(context).is_some_and(|own| self.context(own.pdc.local).is_some());
        let known =
            move |player: &Self| !opens || player.own.get(context).is_none_or(|own| own.pdc.remote.is_some());
        let long = if opens { self.soon } else { Duration::ZERO };
        self.listen(long, known)
    }

    /// Returns the PSN up to which all have an answer.
    fn settled(&self, pdc: &Pdc) -> Psn {
        let settled = self.context(pdc.local).and_then(|(context, side)| context.direction(side).settled());
        settled.unwrap_or(pdc.start - 1)
    }

    fn post(&mut self, posting: &Posting) {
        let Some(peer) = self.peer else { return };
        self.posted = true;
        let remote = Remote { key: Hex64(0x5eed), index: 10, ..Remote::default() };
        let post =
            Post { mode: posting.mode, remote, ..Post::new(posting.kind, peer, posting.length.into()) };
        self.tell(post);
    }

    fn close_by_device(&mut self, mode: Mode) {
        if let Some(peer) = self.peer.filter(|_| self.posted) {
            // No open context, nothing to close.
            self.tell(ClosePdc { peer, mode, class: 0 });
        }
    }

    /// Requests an operation, which the device may not support. After silence it requests no more: each would wait as
    /// long.
    fn tell(&mut self, op: impl Operation) {
        if let Err(CallError::Channel { .. }) = self.dut.call(op) {
            self.peer = None;
        }
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

    /// Answers all requests of the device: with an ACK unless a reply is another one.
    fn answer(&mut self, step: &Step, replies: &[Reply]) -> Result<(), DutError> {
        for (index, (id, psn, is_request)) in core::mem::take(&mut self.asks).into_iter().enumerate() {
            let Some((pdc, cack)) = self.serves(id) else { continue };
            let nack = |code| pdc.nack(code, psn).ok();
            let ack = || {
                let mut ack = pdc.ack(psn).cack(cack);
                ack.response = ack.response.filter(|_| is_request);
                ack.build().ok()
            };
            let (packet, fate) = match replies.get(index).copied().unwrap_or_default() {
                Reply::Lost | Reply::AckLost => (None, Fate::Lost),
                Reply::Busy => (nack(NackCode::NO_PKT_BUFFER), Fate::Arrives),
                Reply::NotReady => (nack(NackCode::RCVD_SES_PROCG), Fate::Arrives),
                Reply::Trimmed => (nack(NackCode::TRIMMED), Fate::Arrives),
                Reply::Late => (ack(), Fate::Late),
                Reply::Twice => (ack(), Fate::Twice),
                Reply::Marked => (ack(), Fate::Marked),
                _ => (ack(), Fate::Arrives),
            };
            self.send_step(&pdc, step, built(packet), fate)?;
        }
        Ok(())
    }

    /// Replaces the PDCID in a recorded packet with the device's current one.
    fn rebind(&self, bytes: &mut [u8]) {
        if let Some(remote) = spdcid(bytes).and_then(|local| self.remote(local)) {
            set(bytes, "pds.dpdcid", remote.0.into());
        }
    }

    /// Sends a packet of a step on a context of the script, and keeps it.
    fn send_own(
        &mut self,
        context: usize,
        step: &Step,
        packet: Option<UetBuf>,
        fate: Fate,
    ) -> Result<(), DutError> {
        let Some(pdc) = self.own.get(context).map(|own| own.pdc.clone()) else { return Ok(()) };
        let bytes = self.send_step(&pdc, step, built(packet), fate)?;
        if let Some(own) = self.own.get_mut(context) {
            own.sent.extend(bytes);
        }
        self.learn(context)
    }

    /// Sends the next packet of a step with its changes and this fate. Returns its bytes.
    fn send_step(
        &mut self,
        pdc: &Pdc,
        step: &Step,
        bytes: Option<Vec<u8>>,
        fate: Fate,
    ) -> Result<Option<Vec<u8>>, DutError> {
        let Some(mut bytes) = bytes else { return Ok(None) };
        let number = self.sent;
        self.sent += 1;
        let edits = match step {
            Step::Changed { packet, .. } if usize::from(*packet) != number => &[],
            step => step.edits(),
        };
        let plain = bytes.clone();
        edits.iter().for_each(|edit| edit.apply(&mut bytes));
        let change = change::between(&plain, &bytes);
        let mut wire = pdc.raw(&bytes);
        wire.marked = fate == Fate::Marked || edits.contains(&Edit::Mark);
        let trims = self.dut.facts().trim;
        if fate == Fate::Trimmed && trims {
            (wire.trimmed, wire.taken) = (Some(Trimmed::Fabric), wire.bytes.split_off(bytes.len().min(60)));
        }
        let lost = fate == Fate::Lost || fate == Fate::Trimmed && !trims;
        let more = edits.iter().filter(|edit| **edit == Edit::Twice).count();
        let copies = usize::from(!lost) * (1 + more + usize::from(fate == Fate::Twice));
        for _ in 0..copies {
            match fate {
                Fate::Late => self.late.push((wire.clone(), change.clone())),
                _ => self.transmit(&wire, &change)?,
            }
        }
        Ok(Some(bytes))
    }

    fn send(&mut self, pdc: &Pdc, packet: Option<UetBuf>) -> Result<(), DutError> {
        packet.map_or(Ok(()), |packet| self.transmit(&pdc.wire(&packet), ""))
    }

    /// Sends a packet in which the fuzzer changed this.
    fn transmit(&mut self, wire: &Wire, change: &str) -> Result<(), DutError> {
        self.note(wire.clone(), change);
        // A packet that the system rejects is lost, as on any link.
        let _ = self.dut.send(wire);
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
        received.into_iter().for_each(|wire| self.note(wire, ""));
        Ok(any)
    }

    /// Records a packet.
    fn note(&mut self, wire: Wire, change: &str) {
        let from_device = wire.src == self.way().1;
        let step = self.current.filter(|_| !from_device);
        let at = self.dut.now();
        self.passed.push(PassedPacket { at, wire, change: change.to_owned(), step, from_device });
        let number = self.passed.len() - 1;
        let ours = self.is_ours(number as u64);
        let Some(PassedPacket { wire, .. }) = self.passed.last() else { return };
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
                for own in self.own.iter_mut().filter(|own| own.pdc.local == ack.dpdcid()) {
                    own.pdc.remote = Some(ack.spdcid());
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
        self.passed.get(number as usize).is_some_and(|packet| !packet.from_device)
    }
}

/// A step without changes.
const PLAIN: Step = Step::Pause { us: 0 };

impl Own {
    /// Takes the next PSN; returns its number.
    fn take(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

fn built(packet: Option<UetBuf>) -> Option<Vec<u8>> {
    packet.map(|packet| packet.to_bytes())
}
