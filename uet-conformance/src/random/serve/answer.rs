//! Answers of the suite to the device, and the return direction.

use super::{REFUSAL, Returned, Stored};
use crate::random::coverage::State;
use crate::random::data::piece;
use crate::random::play::{Due, Player};
use crate::random::step::Reply;
use crate::serve::{SesFields, data_header};
use crate::{AckBuilder, Outcome, Pdc, RxPacket, Stop};
use uet_control::PostKind;
use uet_wire::UetBuf;
use uet_wire::catalogue::*;
use uet_wire::pds::{AckCcx, PdsBuf};
use uet_wire::registry::{AckRequest, CcxType, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, SesBuf};

impl Player<'_, '_> {
    pub(super) fn acking(&self, served: usize, n: u32) -> AckBuilder {
        let it = &self.served[served];
        let nscc = self.states().then(|| (self.counted(it.incoming.bytes), 0));
        AckBuilder { nscc, ..it.pdc.ack(it.pdc.psn(n)).cack(it.pdc.start - 1 + it.cack()) }
    }

    /// Acknowledges a packet with its answer.
    pub(in crate::random) fn answer(&mut self, served: usize, n: u32, retx: bool) -> Outcome {
        match self.answering(served, n, retx)? {
            Some((pdc, packet)) => self.t.send(&pdc, &packet),
            None => Ok(()),
        }
    }

    /// Acknowledges a packet, and the network delivers the ACK after later ones.
    pub(super) fn answer_late(&mut self, served: usize, n: u32, retx: bool) -> Outcome {
        if let Some((pdc, packet)) = self.answering(served, n, retx)? {
            let at = self.t.now() + self.gap * 3;
            self.later(at, Due::Deliver(pdc.wire(&packet)));
        }
        Ok(())
    }

    /// Returns the ACK of a packet with its answer.
    fn answering(&mut self, served: usize, n: u32, retx: bool) -> Result<Option<(Pdc, UetBuf)>, Stop> {
        let it = &mut self.served[served];
        if matches!(it.state, State::Dead) || !it.incoming.has(n) {
            return Ok(None);
        }
        let stored = it.stored.get_mut(&n).map(|stored| {
            stored.ready = true;
            stored.clone()
        });
        let pdc = it.pdc.clone();
        let ack = AckBuilder { retx, ..self.acking(served, n) };
        let mut packet = match &stored {
            Some(stored) => {
                let request = if stored.guaranteed { AckRequest::REQ_CLEAR } else { AckRequest::NO_REQUEST };
                AckBuilder { request, marked: stored.marked, ..ack }.build()?
            }
            None => ack.build()?,
        };
        // Without a count of bytes, a window would stay full.
        if stored.as_ref().is_some_and(|stored| stored.extended) && !self.states() {
            packet = extended(packet)?;
        }
        if let Some(PdsBuf::AckCc(header)) = packet.pds {
            let (penalty, restore) = stored.as_ref().map_or((0, false), |stored| stored.pressure);
            packet.pds = Some(header.edit().rcv_cwnd_pend(penalty).rc(restore).done()?.into());
        }
        if let Some(stored) = stored.filter(|stored| stored.ses.is_some()) {
            (packet.ses, packet.payload) = (stored.ses, stored.payload);
            packet = packet.consistent();
        }
        Ok(Some((pdc, packet)))
    }

    /// Tells that a packet has arrived, and nothing of its response.
    pub(super) fn tell_arrival(&mut self, served: usize, n: u32, retx: bool) -> Outcome {
        let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::NULL).done()?;
        let ack = AckBuilder { response: Some(response), retx, ..self.acking(served, n) };
        let pdc = self.served[served].pdc.clone();
        self.t.send(&pdc, &ack.build()?)
    }

    /// Accepts a request of the device; returns what it is answered.
    pub(super) fn accept(
        &mut self,
        served: usize,
        n: u32,
        seen: &RxPacket,
        fields: &SesFields,
        post: Option<usize>,
        reply: Reply,
    ) -> Result<Stored, Stop> {
        let plain = Stored {
            ses: None,
            payload: Vec::new(),
            guaranteed: false,
            ready: !matches!(reply, Reply::NotReady | Reply::Null),
            marked: reply == Reply::Marked || seen.wire.marked,
            pressure: match reply {
                Reply::Slowed => (if n % 2 == 0 { 64 } else { 127 }, false),
                Reply::Restored => (0, true),
                _ => (0, false),
            },
            extended: reply == Reply::Extended,
            post,
        };
        let Some(post) = post else {
            return self.unposted(served, n, fields).map(|stored| stored.unwrap_or(plain));
        };
        let rod = self.served[served].pdc.rod;
        self.judge_part(post, seen, fields, Some(rod))?;
        let respond = |code, length| -> Result<Option<SesBuf>, Stop> {
            let response = Response::build(ResponseOpcode::UET_RESPONSE, code);
            let response =
                response.message_id(fields.message_id.unwrap_or(0)).job_id(fields.address.job_id());
            Ok(Some(response.modified_length(length).done()?.into()))
        };
        let posted = &mut self.posts[post];
        posted.accepted += 1;
        let fails = reply == Reply::Refused || reply == Reply::Null && posted.plan.seed % 2 == 1;
        if fails || posted.refused {
            posted.refused = true;
            return Ok(Stored { ses: respond(REFUSAL, 0)?, guaranteed: true, ..plain });
        }
        let deferrable = matches!(posted.plan.kind, PostKind::DeferrableSend | PostKind::DeferrableTsend);
        if deferrable {
            let again = fields.tokens.is_some_and(|(_, target)| target != 0);
            if reply == Reply::PutOff && fields.head.eom() && fields.head.som() && !again {
                posted.put_off = true;
                posted.tokens = fields.tokens.map(|(own, _)| own);
                posted.covered.fill(false);
                posted.id = None;
                let at = self.t.now() + self.gap * 8;
                self.later(at, Due::Want(post));
                return Ok(Stored { ses: respond(ReturnCode::OK, 0)?, ..plain });
            }
        }
        let whole = posted.plan.length;
        let sends = matches!(posted.plan.kind, PostKind::Send | PostKind::Tsend | PostKind::Write);
        if reply == Reply::Short && fields.head.eom() && whole > 1 && sends {
            posted.short = Some(whole / 2);
            return Ok(Stored { ses: respond(ReturnCode::OK, whole / 2)?, ..plain });
        }
        let (offset, length) = (fields.start(), self.wanted_length(fields));
        let posted = &self.posts[post];
        match posted.plan.kind {
            PostKind::Read | PostKind::FetchAtomic if whole > 0 => {
                let seed = posted.plan.seed ^ 0xda7a;
                let data = piece(seed, whole as usize, offset, length).unwrap_or_default();
                let small = whole as u64 <= self.t.parameter("max_ack_data_size");
                let psn = self.served[served].pdc.psn(n);
                let ses = data_header(fields, psn, data.len(), whole as usize, offset)?;
                if small {
                    return Ok(Stored { ses: Some(ses), payload: data, guaranteed: true, ..plain });
                }
                self.give(served, ses, data, reply == Reply::Late)?;
                Ok(plain)
            }
            PostKind::RendezvousSend | PostKind::RendezvousTsend => {
                self.read_rest(post, fields)?;
                Ok(plain)
            }
            _ => Ok(plain),
        }
    }

    /// Answers a request that is none of a posted operation.
    fn unposted(&mut self, served: usize, n: u32, fields: &SesFields) -> Result<Option<Stored>, Stop> {
        let index = usize::from(fields.address.resource_index());
        match fields.opcode() {
            Opcode::UET_DEFERRABLE_RTR => {
                let Some(tokens) = fields.tokens else { return Ok(None) };
                let turned = self.t.word("ready_tokens") == Some("sender_first");
                let (own, target) = if turned { (tokens.1, tokens.0) } else { tokens };
                self.wanted(own, target)?;
                Ok(None)
            }
            Opcode::UET_READ if index >= 0xc00 => {
                let message = index - 0xc00;
                let length = self.wanted_length(fields);
                let Some(sending) = self.messages.get(message) else { return Ok(None) };
                let eager = sending.data.len();
                let all = sending.plan.length as usize;
                let (whole, start) = (fields.request_length as usize, fields.start());
                // The place of the rest is 0x4000, whatever has come with the request.
                let from = fields.buffer_offset.map_or(0, |offset| offset.wrapping_sub(0x4000) as usize);
                let first = eager + from + start;
                let Some(data) = piece(sending.plan.seed, all, first, length) else {
                    let told = format!("{length} bytes at {first} of {all}");
                    self.broken(SES_RNDV_002, "a read of the rest of a rendezvous send", told)?;
                    return Ok(None);
                };
                let psn = self.served[served].pdc.psn(n);
                let ses = data_header(fields, psn, length, whole, start)?;
                self.give(served, ses, data, false)?;
                Ok(None)
            }
            opcode => {
                let told = format!("{opcode} for index {index:#x}");
                self.broken(SES_ADDR_002, "requests of posted operations", told)?;
                Ok(None)
            }
        }
    }

    /// Sends a packet on the return direction. A late one arrives as a retransmission, after others.
    fn give(&mut self, served: usize, ses: SesBuf, payload: Vec<u8>, late: bool) -> Outcome {
        let wait = if late { self.gap * 3 } else { self.t.rto() * 2 + self.t.soon() / 16 };
        let due = self.t.now() + wait;
        let it = &mut self.served[served];
        let n = it.sent;
        it.sent += 1;
        it.returned.insert(n, Returned { ses, payload, tries: 0, due, done: false });
        if !late {
            self.give_packet(served, n)?;
        }
        // The timer may wait for a later packet.
        self.served[served].timer &= !late;
        self.arm_served(served);
        Ok(())
    }

    fn give_packet(&mut self, served: usize, n: u32) -> Outcome {
        let it = &mut self.served[served];
        it.spoke = true;
        let Some(returned) = it.returned.get(&n) else { return Ok(()) };
        let clear = it.pdc.start - 1 + it.covered;
        let request = it.pdc.request(n).ses(returned.ses, &returned.payload).clear(clear);
        let request = crate::Request { retx: returned.tries > 0, ..request };
        let pdc = it.pdc.clone();
        self.t.send(&pdc, &request.build()?)
    }

    fn arm_served(&mut self, served: usize) {
        let it = &self.served[served];
        let next = it.returned.values().filter(|it| !it.done).map(|it| it.due).min();
        if let (Some(next), false) = (next, it.timer) {
            self.served[served].timer = true;
            self.later(next, Due::Served(served));
        }
    }

    pub(in crate::random) fn served_timer(&mut self, served: usize) -> Outcome {
        self.served[served].timer = false;
        if matches!(self.served[served].state, State::Closed | State::Dead) {
            return Ok(());
        }
        let (now, rto) = (self.t.now(), self.t.rto());
        let due: Vec<u32> = self.served[served]
            .returned
            .iter_mut()
            .filter(|(_, it)| !it.done && it.due <= now)
            .map(|(n, it)| {
                it.tries += 1;
                it.due = now + rto * (2 << it.tries.min(6));
                *n
            })
            .collect();
        for n in due {
            if self.served[served].returned.get(&n).is_some_and(|it| it.tries > 9) {
                let told = format!("none to 10 transmissions of return packet {n}");
                return self.broken(PDS_ACK_011, "an ACK of read data", told);
            }
            self.give_packet(served, n)?;
        }
        self.arm_served(served);
        Ok(())
    }
}

/// Returns an ACK as an ACK_CCX, with a state that only its vendor reads.
fn extended(packet: UetBuf) -> Result<UetBuf, Stop> {
    let Some(plain) = packet.view().pds.and_then(|pds| pds.ack()) else { return Ok(packet) };
    let ack =
        AckCcx::build().ack(|a| a.copy_from(&plain).prologue(|prologue| prologue.kind(PdsType::ACK_CCX)));
    let ack = ack.ccx_type(CcxType::new(14).unwrap_or_default()).ack_ccx_state(u128::MAX);
    let ack = ack.sack(|sack| sack.mpr(8).sack_psn_offset(1)).done()?;
    Ok(UetBuf { pds: Some(ack.into()), ..packet })
}
