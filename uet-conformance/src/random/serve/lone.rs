//! Datagrams and idempotent requests of the device, which come without a context.

use super::REFUSAL;
use crate::random::coverage::Event;
use crate::random::data::piece;
use crate::random::play::{Due, Player};
use crate::random::step::Reply;
use crate::serve::said;
use crate::{Outcome, RxPacket, Wire};
use uet_control::PostKind;
use uet_wire::UetBuf;
use uet_wire::catalogue::*;
use uet_wire::pds::{Nack, Rudi};
use uet_wire::registry::{NackCode, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, ResponseData};

impl Player<'_, '_> {
    /// Takes a datagram of the device in.
    pub(in crate::random) fn take_datagram(&mut self, seen: &RxPacket) -> Outcome {
        let Some(fields) = said(&seen.uet()) else { return Ok(()) };
        let Some(post) = self.post_of(&fields) else { return Ok(()) };
        self.posts[post].accepted += 1;
        self.judge_part(post, seen, &fields, None)
    }

    /// Takes a RUDI request of the device in.
    pub(in crate::random) fn take_lone_request(
        &mut self,
        seen: &RxPacket,
        rudi: &Rudi,
        first: bool,
    ) -> Outcome {
        let Some(fields) = said(&seen.uet()) else { return Ok(()) };
        self.coverage.operation(Event::RudiRequest);
        let Some(post) = self.post_of(&fields) else {
            let told = format!("{} for {:#x}", fields.opcode(), fields.address.resource_index());
            return self.broken(PDS_RUDI_001, "a request of a posted operation", told);
        };
        let id = rudi.pkt_id();
        self.posts[post].lone.insert(id);
        self.judge_part(post, seen, &fields, None)?;
        let posted = &mut self.posts[post];
        let reply = match first && !self.settling && !rudi.retx() {
            true => {
                posted.replies += 1;
                posted.plan.replies.get(posted.replies - 1).copied().unwrap_or_default()
            }
            false => Reply::Ack,
        };
        let (from, to) = (seen.wire.dst, seen.wire.src);
        let wire = |packet: UetBuf| Wire::new(from, to, seen.wire.entropy, packet.to_bytes());
        let code = match reply {
            Reply::Lost | Reply::AckLost => {
                self.posts[post].waiting.push(id);
                return Ok(());
            }
            Reply::Busy | Reply::Trimmed => {
                let code = if reply == Reply::Busy { NackCode::NO_PKT_BUFFER } else { NackCode::TRIMMED };
                let nack = Nack::build(code).nt(true).nack_pkt_id(id).done()?;
                return self.t.send_wire(&wire(UetBuf::new(nack)));
            }
            Reply::Refused => {
                self.posts[post].refused = true;
                REFUSAL
            }
            _ => ReturnCode::OK,
        };
        self.posts[post].accepted += 1;
        self.posts[post].waiting.retain(|waiting| *waiting != id);
        let whole = self.posts[post].plan.length as usize;
        let header = |next| Rudi::response(id).retx(rudi.retx()).prologue(|prologue| prologue.next_hdr(next));
        let mut packet = UetBuf::default();
        if code == ReturnCode::OK && self.posts[post].plan.kind == PostKind::Read && whole > 0 {
            let (start, length) = (fields.start(), self.wanted_length(&fields));
            let data = piece(self.posts[post].plan.seed ^ 0xda7a, whole, start, length).unwrap_or_default();
            packet.pds = Some(header(NextHdr::UET_HDR_RESPONSE_DATA).done()?.into());
            let ses = ResponseData::build()
                .response_message_id(0x4444)
                .job_id(fields.address.job_id())
                .read_request_message_id(fields.message_id.unwrap_or(0))
                .payload_length(data.len() as u16)
                .modified_length(whole as u32)
                .message_offset(start as u32)
                .done()?;
            (packet.ses, packet.payload) = (Some(ses.into()), data);
            packet = packet.consistent();
        } else {
            let opcode = match code {
                ReturnCode::OK => ResponseOpcode::UET_DEFAULT_RESPONSE,
                _ => ResponseOpcode::UET_RESPONSE,
            };
            let response = Response::build(opcode, code).job_id(fields.address.job_id());
            let response = response.message_id(fields.message_id.unwrap_or(0));
            packet.pds = Some(header(NextHdr::UET_HDR_RESPONSE).done()?.into());
            packet.ses = Some(response.done()?.into());
        }
        let wire = wire(packet);
        if reply == Reply::Late {
            let at = self.t.now() + self.gap * 3;
            self.later(at, Due::Deliver(wire));
            return Ok(());
        }
        self.t.send_wire(&wire)?;
        if reply == Reply::Twice { self.t.send_wire(&wire) } else { Ok(()) }
    }
}
