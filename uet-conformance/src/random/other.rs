//! Messages that follow from what the device does, and packets of strangers.

use super::coverage::{Event, State};
use super::message::{Expect, Sending};
use super::play::Player;
use super::shadow::Cell;
use super::step::{self, StrangerKind};
use crate::serve::SesFields;
use crate::{Message, Outcome, Pdc, Stop, Wire};
use core::time::Duration;
use uet_control::PostKind;
use uet_wire::pds::Rudi;
use uet_wire::registry::{CtlType, NackCode, NextHdr, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Rendezvous, Response};
use uet_wire::{PdcId, Psn, UetBuf};

impl Player<'_, '_> {
    /// Sends a message that is no step; returns its number.
    fn send_more(
        &mut self,
        context: usize,
        kind: PostKind,
        message: &Message,
        (expect, expected): (Expect, Vec<Cell>),
    ) -> Result<usize, Stop> {
        let parts = message.parts(self.t.mtu())?;
        let plan = step::MessagePlan {
            context,
            kind,
            region: usize::MAX,
            length: message.length,
            ..step::MessagePlan::default()
        };
        let (index, count) = (self.messages.len(), parts.len());
        self.messages.push(Sending::new(plan, message.id, parts, expect, expected));
        self.queue(context, index, count)?;
        Ok(index)
    }

    /// Reads the rest of a rendezvous send of the device.
    pub(super) fn rest_of(
        &mut self,
        post: usize,
        fields: &SesFields,
        ext: &Rendezvous,
        context: usize,
    ) -> Result<usize, Stop> {
        let id = self.next_id as u16;
        self.next_id += 1;
        let eager = ext.eager_length() as usize;
        let posted = &self.posts[post];
        let rest = posted.rest_data(eager);
        let message = Message {
            id,
            relative: fields.head.rel(),
            job: fields.address.job_id(),
            process: ext.read_pid_on_fep(),
            index: ext.read_resource_index(),
            generation: ext.read_ri_generation(),
            selector: ext.read_memory_key(),
            offset: ext.read_offset(),
            length: rest.len() as u32,
            ..Message::new(Opcode::UET_READ)
        };
        self.send_more(context, PostKind::Read, &message, (Expect::Well, rest))
    }

    /// Sends DEFERRABLE_RTR.
    pub(super) fn ready(&mut self, context: usize, token: u32, own: u32) -> Outcome {
        let id = self.next_id as u16;
        self.next_id += 1;
        let turned = self.t.word("ready_tokens") == Some("sender_first");
        let tokens = if turned { (own, token) } else { (token, own) };
        let job = super::play::job(self.own[context].plan.job);
        let message = Message {
            id,
            tokens: Some(tokens),
            process: 0,
            index: 0,
            job,
            ..Message::new(Opcode::UET_DEFERRABLE_RTR)
        };
        self.send_more(context, PostKind::NoOp, &message, (Expect::Open, Vec::new())).map(drop)
    }

    /// Sends what somebody sends who has no part in the conversation. It must change nothing.
    pub(super) fn strange(&mut self, context: usize, kind: StrangerKind) -> Outcome {
        if kind == StrangerKind::Copy {
            return self.copy_opening();
        }
        if kind == StrangerKind::Plain || self.t.is_secure() {
            let is_plain = kind == StrangerKind::Plain && self.t.is_secure();
            return if is_plain { self.plain(context) } else { Ok(()) };
        }
        let Some(own) = self.own.get(context) else { return Ok(()) };
        let count = self.t.addresses();
        let other = (self.place(own.plan.peer) + 1) % count.max(1);
        let from = self.t.address(other)?;
        let (pdc, open, next) = (own.pdc.clone(), own.state == State::Open, own.next);
        let elsewhere = Pdc { from, ..pdc.clone() };
        let alone = count < 2 || from == pdc.from;
        // A context of the other address may have the same numbers.
        let clash = self.own.iter().any(|it| it.pdc.from == from && it.pdc.local == pdc.local);
        let region = self.regions.iter().find(|held| !held.plan.no_write && held.plan.length >= 64);
        let region = region.map(|held| held.region.clone());
        let data = |pdc: &Pdc, n: u32| -> Result<Option<Wire>, Stop> {
            let Some(region) = &region else { return Ok(None) };
            let request = pdc.request(n).write(region, 8, &[0xee; 32])?;
            Ok(Some(pdc.wire(&request.build()?)))
        };
        // The suite itself never gets there.
        let far = next + 500;
        let wire = match kind {
            StrangerKind::Request if open && !alone && !clash => data(&elsewhere, far)?,
            StrangerKind::Unknown if open => data(&pdc.of_nobody(None), far)?,
            StrangerKind::OtherSource if open => {
                let local = PdcId(pdc.local.0 ^ 0x4321);
                self.strangers.insert(local.0);
                data(&Pdc { local, ..pdc.clone() }, far)?
            }
            StrangerKind::Close if open && !alone && !clash => {
                Some(elsewhere.wire(&elsewhere.control(CtlType::CLOSE_COMMAND, pdc.psn(next), 0)?))
            }
            StrangerKind::Clear if open && !alone && !clash => {
                let last = pdc.psn(next.saturating_sub(1));
                Some(elsewhere.wire(&elsewhere.control(CtlType::CLEAR_COMMAND, Psn(0), last.0)?))
            }
            StrangerKind::Mode if open && !self.t.facts().local.is_empty() => {
                let other = Pdc { rod: !pdc.rod, ..pdc.clone() };
                data(&other, far)?
            }
            StrangerKind::Window if open && own.window < 1 << 14 => data(&pdc, next + 20_000)?,
            StrangerKind::Cut if open => data(&pdc, next)?.map(|wire| {
                let mut wire = wire;
                wire.bytes.truncate(8);
                wire
            }),
            StrangerKind::Rudi if !alone => return self.strange_responses(from),
            StrangerKind::Ack
            | StrangerKind::Nack
            | StrangerKind::Data
            | StrangerKind::Future
            | StrangerKind::Next
            | StrangerKind::Late => {
                return self.strange_to_served(kind, from);
            }
            _ => None,
        };
        let Some(wire) = wire else { return Ok(()) };
        let code = match kind {
            StrangerKind::Unknown => Some(NackCode::INV_DPDCID),
            StrangerKind::Mode => Some(NackCode::PDC_MODE_MISMATCH),
            StrangerKind::Request | StrangerKind::OtherSource => Some(NackCode::PDC_HDR_MISMATCH),
            _ => None,
        };
        self.wanted_answers.extend(code.map(|code| (wire.src, pdc.psn(far).0, Some(code))));
        self.coverage.seen(State::Open, Event::Stranger(kind));
        if wire.src != pdc.from {
            self.strangers.insert(pdc.local.0);
        }
        // For an observer, a malformed packet is no packet of the suite.
        self.t.send_wire(&wire)
    }

    /// Sends the packet that opened a context again, now that it is closed. Nothing may come of it.
    fn copy_opening(&mut self) -> Outcome {
        let Some((_, wire, closed)) = self.openings.last().cloned() else { return Ok(()) };
        // Later, a target without security may have forgotten the context.
        let safe = Duration::from_nanos(self.t.parameter("syn_retx_safety_time")) / 2;
        if !self.t.is_secure() && self.t.now() > closed + safe {
            return Ok(());
        }
        self.coverage.seen(State::Closed, Event::Stranger(StrangerKind::Copy));
        self.t.send_unobserved(&wire)
    }

    /// Answers the RUDI requests of the device that wait, from another address than they went to.
    fn strange_responses(&mut self, from: core::net::IpAddr) -> Outcome {
        let ids: Vec<(u32, u8)> = self
            .posts
            .iter()
            .flat_map(|posted| posted.waiting.iter().map(|id| (*id, posted.plan.peer)))
            .collect();
        for (id, peer) in ids {
            if self.t.address(self.place(peer))? == from {
                continue;
            }
            self.coverage.operation(Event::Stranger(StrangerKind::Rudi));
            let header = Rudi::response(id).prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_RESPONSE));
            let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
            let packet = UetBuf { ses: Some(response.done()?.into()), ..UetBuf::new(header.done()?) };
            let to = self.own.first().map_or(self.t.facts().device, |own| own.pdc.to);
            self.t.send_wire(&Wire::new(from, to, 0xc111, packet.to_bytes()))?;
        }
        Ok(())
    }

    /// Sends an ACK, a NACK or data on each context that the device has opened, from another address.
    fn strange_to_served(&mut self, kind: StrangerKind, from: core::net::IpAddr) -> Outcome {
        let state = if kind == StrangerKind::Late { State::Closed } else { State::Open };
        let these = self.served.iter().filter(|it| it.state == state);
        let these: Vec<(Pdc, u32)> = these.map(|it| (it.pdc.clone(), it.next())).collect();
        let virtual_time = self.t.facts().virtual_time;
        for (pdc, next) in these {
            let elsewhere = Pdc { from, ..pdc.clone() };
            let last = pdc.psn(next) - 1;
            let packet = match kind {
                StrangerKind::Future => {
                    let far = pdc.start + 100_000;
                    Some((pdc.clone(), pdc.ack(far).build()?))
                }
                // A device with nothing to send has sent no PSN that the suite does not know.
                StrangerKind::Next if self.is_quiet() && virtual_time => {
                    Some((pdc.clone(), pdc.ack(last + 1).build()?))
                }
                StrangerKind::Next => None,
                StrangerKind::Late if next % 2 == 0 => Some((pdc.clone(), pdc.ack(last).build()?)),
                StrangerKind::Late => Some((pdc.clone(), pdc.nack(NackCode::NO_PKT_BUFFER, last)?)),
                _ if from == pdc.from => None,
                StrangerKind::Ack => Some((elsewhere, pdc.ack(pdc.psn(8)).cack(pdc.psn(8)).build()?)),
                StrangerKind::Nack => Some((elsewhere, pdc.nack(NackCode::CLOSING, pdc.psn(0))?)),
                _ => None,
            };
            if let Some((pdc, packet)) = packet {
                self.coverage.seen(State::Open, Event::Stranger(kind));
                self.t.send(&pdc, &packet)?;
            }
        }
        // An ACK of the next packet must arrive before that packet leaves.
        let until = self.t.now() + self.gap;
        if kind == StrangerKind::Next { self.pump(until) } else { Ok(()) }
    }
}
