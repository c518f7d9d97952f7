//! Answers to messages, and the data that they bring.

use super::{Expect, Reported, is_well};
use crate::random::data::shown;
use crate::random::play::{Player, job};
use crate::random::step::{self, By, Form, Wrong};
use crate::{Outcome, Stop};
use uet_control::PostKind;
use uet_wire::catalogue::*;
use uet_wire::registry::{AckRequest, List, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;

impl Player<'_, '_> {
    /// Takes the answer to a packet of a message in; returns whether the packet needs nothing more.
    pub(in crate::random) fn reported(
        &mut self,
        message: usize,
        part: usize,
        told: &Reported,
    ) -> Result<bool, Stop> {
        let Some(sending) = self.messages.get_mut(message) else { return Ok(true) };
        if sending.answered.get(part).is_none_or(Option::is_some) {
            return Ok(true);
        }
        let code = told.code();
        if told.named && told.is_empty() && !told.covered {
            return Ok(false);
        }
        let fails = !matches!(sending.expect, Expect::Well | Expect::Open);
        if !told.named && fails && sending.parts.len() == 1 {
            let seen = format!("message {} is acknowledged without its error", sending.id);
            self.broken(SES_GTD_001, "an error that is told until it is cleared", seen)?;
            return Ok(true);
        }
        let most = self.t.parameter("max_ack_data_size");
        let sending = &self.messages[message];
        let by_ack = sending.plan.by == By::Context && told.data.is_some();
        if by_ack && sending.plan.kind == PostKind::Read && u64::from(sending.plan.length) > most {
            let told = format!("data of {} in an ACK, which holds up to {most} bytes", shown(&sending.plan));
            return self.broken(SES_READ_004, "all data of a read on one way", told).map(|()| true);
        }
        if let Some((code, bytes)) = told.data.as_ref().filter(|(code, _)| is_well(*code)) {
            debug_assert!(is_well(*code));
            let offset = part * self.t.mtu();
            self.data_in(message, offset, bytes)?;
        }
        let sending = &self.messages[message];
        let kept = matches!(sending.plan.kind, PostKind::Write | PostKind::Send | PostKind::Tsend);
        if kept && sending.plan.complete && told.named && is_well(code) && sending.expect == Expect::Well {
            let missing = sending.placed.iter().flatten().any(|(_, n)| {
                let packet = self.own[sending.plan.context].sent.get(n);
                packet.is_some_and(crate::random::source::OwnPacket::never_arrived)
            });
            if missing && part + 1 == sending.parts.len() && sending.plan.by == By::Context {
                let told = format!("message {} is answered before all of it is there", sending.id);
                self.broken(SES_RESP_005, "with dc = 1, an answer when all is there", told)?;
            }
        }
        if let Some(response) = told.response.filter(|_| told.named) {
            self.response(message, part, &response, told)?;
        }
        let code = if code == ReturnCode::NULL { ReturnCode::OK } else { code };
        self.messages[message].answered[part] = Some(code);
        self.end_if_all(message)?;
        Ok(true)
    }

    /// Judges the fields of a response.
    pub(super) fn response(
        &mut self,
        message: usize,
        part: usize,
        response: &Response,
        told: &Reported,
    ) -> Outcome {
        let sending = &mut self.messages[message];
        let (head, code) = (response.head(), response.head().return_code());
        let seen = || {
            format!(
                "{} {code}, message_id {}, job_id {}, modified_length {}, ack request {}",
                head.opcode(),
                response.message_id(),
                response.job_id(),
                response.modified_length(),
                told.request
            )
        };
        let own = head.opcode() == ResponseOpcode::UET_RESPONSE;
        let std = sending.plan.form == Form::Std;
        let (id, length) = (sending.id, sending.plan.length);
        let datagram = sending.plan.kind == PostKind::Datagram;
        let last = part + 1 == sending.parts.len();
        if own && std && !datagram && response.message_id() != id {
            return self.broken(SES_RESP_003, "the message_id of the request", seen());
        }
        if own && !matches!(sending.plan.wrong, Wrong::Job) {
            let number = self.own[sending.plan.context].plan.job;
            if response.job_id() != job(number) {
                return self.broken(SES_RESP_003, "the job_id of the request", seen());
            }
        }
        let sending = &mut self.messages[message];
        if !is_well(code) {
            let one = sending.parts.len() == 1;
            if told.request != AckRequest::REQ_CLEAR && sending.plan.by == By::Context {
                return self.broken(SES_GTD_001, "an error with REQ_CLEAR", seen());
            }
            if one && response.modified_length() != 0 {
                return self.broken(SES_ERR_001, "an error with modified_length 0", seen());
            }
            return Ok(());
        }
        sending.overflow |= head.list() == List::UET_OVERFLOW;
        let deferrable = sending.is_deferrable();
        let told_length = response.modified_length();
        if deferrable && own && told_length == 0 && head.list() == List::UET_EXPECTED && length > 0 {
            sending.put_off = true;
            return Ok(());
        }
        let writes =
            matches!(sending.plan.kind, PostKind::Write | PostKind::Atomic) && sending.effect.is_some();
        let told_more = told_length > length || last && own && writes && told_length != length;
        if (own || told_length > 0) && told_more {
            return self.broken(SES_RESP_004, &format!("modified_length {length}"), seen());
        }
        if last && (own || told_length > 0) {
            sending.accepted = Some(told_length);
        }
        Ok(())
    }

    /// Takes read data in.
    pub(in crate::random) fn data_in(&mut self, message: usize, offset: usize, bytes: &[u8]) -> Outcome {
        let sending = &mut self.messages[message];
        if sending.expected.is_empty() && sending.plan.length > 0 {
            let seen = format!("{} bytes", bytes.len());
            return self.broken(SES_MEM_003, "no data of what may not be read", seen);
        }
        let Some(place) = sending.got.get_mut(offset..offset + bytes.len()) else {
            let seen = format!("{} bytes at {offset} of {}", bytes.len(), sending.plan.length);
            return self.broken(SES_READ_001, "data that was asked for", seen);
        };
        let mut differs = false;
        for (to, byte) in place.iter_mut().zip(bytes) {
            differs |= to.replace(*byte).is_some_and(|before| before != *byte);
        }
        let sure = !sending.unsure;
        let expected = &sending.expected[offset..offset + bytes.len()];
        let wrong = expected.iter().zip(bytes).position(|(cell, byte)| !cell.permits(*byte));
        let fetches = sending.plan.kind == PostKind::FetchAtomic;
        let requirement = if fetches { SES_AMO_007 } else { SES_READ_001 };
        match wrong {
            Some(at) if sure => {
                let seen = format!("{:#04x} at byte {}, not {}", bytes[at], offset + at, expected[at]);
                self.broken(requirement, "what memory held", seen)?;
            }
            _ if differs && fetches => {
                self.broken(requirement, "the same value again", "another value".into())?;
            }
            _ => {}
        }
        self.end_if_all(message)
    }

    /// Ends a message that has all its answers and data.
    fn end_if_all(&mut self, message: usize) -> Outcome {
        let sending = &mut self.messages[message];
        if sending.over || sending.answered.iter().any(Option::is_none) {
            return Ok(());
        }
        let mut codes = sending.answered.iter().flatten().copied();
        let code = codes.find(|code| !is_well(*code)).unwrap_or(ReturnCode::OK);
        if is_well(code) && !sending.has_data() {
            return Ok(());
        }
        let strange = sending.answered.iter().flatten().copied().find(|it| !is_well(*it) && *it != code);
        // The end of a message that is given up may have a code of its own, as may each request of a read.
        let reads = sending.plan.kind == PostKind::Read;
        let whole = sending.plan.by == By::Context && sending.plan.wrong != Wrong::GivenUp && !reads;
        if let Some(other) = strange.filter(|_| whole) {
            let told = format!("{code} and {other} for {}", shown(&sending.plan));
            return self.broken(SES_ERR_004, "one code for all of a message after its error", told);
        }
        (sending.over, sending.code) = (true, code);
        let (region, number) = (sending.plan.region, message);
        let again = sending.plan.by == By::Rudi
            && (!sending.plan.answers.is_empty() || !sending.plan.fates.is_empty());
        if let Some(held) = self.regions.get_mut(region).filter(|_| !sending.place.is_empty()) {
            if !again {
                held.shadow.end(number);
            }
            let (place, effect) = (sending.place.clone(), sending.effect.clone());
            match effect {
                Some(_) if sending.unsure => held.shadow.open(place),
                Some(effect) if is_well(code) => held.shadow.set(place.start, &effect),
                Some(effect) if sending.expect != Expect::Well => held.shadow.may_be(place.start, &effect),
                _ => {}
            }
        }
        self.judge_code(message)?;
        let context = self.messages[message].plan.context;
        match self.messages[message].plan.by {
            By::Context => self.close_if_quiet(context),
            _ => Ok(()),
        }
    }

    /// Gives the messages of a context up that have not ended.
    pub(in crate::random) fn lose_messages(&mut self, context: usize, life: u64) {
        for (number, sending) in self.messages.iter_mut().enumerate() {
            let here = sending.plan.context == context && sending.plan.by == By::Context;
            let waits = sending.placed.iter().all(Option::is_none);
            if !here || sending.over || !(sending.is_on(life) || waits) {
                continue;
            }
            (sending.over, sending.lost) = (true, true);
            let Some(held) = self.regions.get_mut(sending.plan.region) else { continue };
            held.shadow.end(number);
            match &sending.effect {
                Some(_) if sending.unsure => held.shadow.open(sending.place.clone()),
                Some(effect) => held.shadow.may_be(sending.place.start, effect),
                None => {}
            }
        }
    }

    fn judge_code(&mut self, message: usize) -> Outcome {
        let sending = &self.messages[message];
        let code = sending.code;
        let wrong = sending.plan.wrong;
        let told = || format!("{code} for {}", shown(&sending.plan));
        match &sending.expect {
            Expect::Open => Ok(()),
            Expect::Well if code == ReturnCode::OK => Ok(()),
            // There may be no room for what nobody waits for, and a buffer may be too short.
            Expect::Well if sending.is_send() => {
                let length = sending.plan.length as usize;
                let short = self.receives.iter().any(|receive| receive.length < length);
                let allowed = code == ReturnCode::NO_MATCH || short && code == ReturnCode::TOO_LONG;
                if allowed { Ok(()) } else { self.broken(SES_RESP_001, "a legal send that succeeds", told()) }
            }
            Expect::Well => self.broken(SES_RESP_001, "a legal request that succeeds", told()),
            Expect::Codes(codes) if codes.contains(&code) => Ok(()),
            Expect::Error if code != ReturnCode::OK => Ok(()),
            expect => {
                let expected = expect.to_string();
                let requirement = match wrong {
                    Wrong::Key => SES_MEM_005,
                    Wrong::Range => SES_MEM_004,
                    Wrong::Job => SES_ADDR_004,
                    Wrong::Process => SES_ADDR_005,
                    Wrong::Index => SES_ADDR_006,
                    Wrong::Generation => SES_GEN_002,
                    Wrong::Opcode => SES_ERR_002,
                    Wrong::GivenUp => SES_ERR_006,
                    Wrong::Alignment => SES_AMO_005,
                    Wrong::Nothing if sending.plan.by == By::Rudi => SES_MODE_002,
                    Wrong::Nothing => SES_MEM_003,
                };
                self.broken(requirement, &expected, told())
            }
        }
    }

    /// A send that the device has put off and wants now: the same message again, with both tokens.
    pub(in crate::random) fn wanted(&mut self, initiator: u32, target: u32) -> Outcome {
        let index = (initiator & 0x0fff_ffff) as usize;
        let token = initiator >> 28 == 7;
        let Some(sending) = self.messages.get_mut(index).filter(|it| token && it.is_deferrable()) else {
            let told = format!("tokens {initiator:#x} and {target:#x}");
            return self.broken(SES_DEFER_003, "DEFERRABLE_RTR with the token of a send", told);
        };
        // The response that puts it off may be under way, or lost.
        sending.put_off |= !sending.over;
        if !sending.put_off {
            let told = format!("tokens {initiator:#x} and {target:#x}");
            return self.broken(SES_DEFER_003, "DEFERRABLE_RTR for a send that was put off", told);
        }
        sending.wanted = true;
        let plan = sending.plan.clone();
        let again = self.messages.len();
        if self.messages.iter().any(|message| message.again_of == Some(index)) {
            return Ok(());
        }
        let plan = step::MessagePlan { fates: Vec::new(), answers: Vec::new(), ..plan };
        self.second = Some((initiator, target));
        self.send_message(&plan)?;
        if let Some(sending) = self.messages.get_mut(again) {
            sending.again_of = Some(index);
        }
        Ok(())
    }
}
