//! A session of requests from the suite with the device's answers.

use crate::{Outcome, Part, Pdc, Request, RxPacket, Stop, Test};
use core::time::Duration;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::catalogue::{PDS_ACK_004, Requirement};
use uet_wire::registry::{AckRequest, ResponseOpcode, ReturnCode};
use uet_wire::ses::{ExtBuf, Response, Ses, SesBuf};
use uet_wire::{Psn, UetBuf};

/// A context that the suite opens. It numbers the requests and keeps the answers.
///
/// ```
/// use uet_conformance::{Message, Outcome, Test};
/// use uet_wire::catalogue::{SES_PLACE_001, SES_RESP_001};
///
/// fn a_write_goes_to_its_place(t: &mut Test<'_>) -> Outcome {
///     let (region, mut memory) = t.patterned(64)?;
///     memory[8..12].copy_from_slice(&[1, 2, 3, 4]);
///     let mut session = t.session();
///     let psn = session.ask(t, &Message::write(&region, 8, &[1, 2, 3, 4]).whole()?)?;
///     session.accepted(t, SES_RESP_001, psn)?;
///     t.expect_memory(SES_PLACE_001, &region, 0, &memory)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct RequestSession {
    /// Numbers of the context.
    pub pdc: Pdc,
    next: u32,
    /// Sent parts, by offset of their PSN from the first.
    asked: BTreeMap<u32, Part>,
    /// Answers of ACKs, by offset of the PSN that they name.
    answers: BTreeMap<u32, Answer>,
    /// Number of PSNs acknowledged cumulatively.
    covered: u32,
    /// Number of PSNs that the next requests clear.
    cleared: u32,
    /// Read data on the return direction, by offset of its PSN from the first.
    data: BTreeMap<u32, Data>,
    /// Read data in ACKs, by offset of the PSN that they name.
    ridden: BTreeMap<u32, Data>,
    /// Data already returned to the script: true if it was in an ACK, and the PSN.
    handed: BTreeSet<(bool, u32)>,
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The response, unless it carries no information.
    pub response: Option<Response>,
    /// The request field of the ACK.
    pub request: AckRequest,
    /// Number of PSNs that it acknowledges cumulatively.
    pub covered: u32,
}

impl Answer {
    /// Returns the return code; OK if there is none.
    pub fn code(&self) -> ReturnCode {
        self.response.map_or(ReturnCode::OK, |response| response.head().return_code())
    }

    /// Returns whether the request succeeded, as far as the answer tells.
    pub fn is_ok(&self) -> bool {
        matches!(self.code(), ReturnCode::OK | ReturnCode::NULL)
    }

    /// Returns whether it must be cleared.
    pub fn is_guaranteed(&self) -> bool {
        self.request == AckRequest::REQ_CLEAR
    }

    /// Returns the number of accepted bytes; a default response without a number means `all`
    /// (`SES-RESP-006`).
    pub fn length(&self, all: u32) -> u32 {
        let told = self.response.filter(|response| {
            response.head().opcode() == ResponseOpcode::UET_RESPONSE || response.modified_length() > 0
        });
        told.map_or(all, |response| response.modified_length())
    }

    /// Returns the number of bytes that the target accepted of a message of `all` bytes, if this answer
    /// completes it. NULL proves arrival alone, so only a response with OK has a number of its own
    /// (`SES-RESP-004`).
    pub(crate) fn accepted_length(&self, all: u32) -> u32 {
        if self.code() == ReturnCode::OK { self.length(all) } else { all }
    }
}

/// A packet of read data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// True if it arrived in an ACK.
    pub in_ack: bool,
    /// Its PSN on the return direction, or the one that its ACK names.
    pub psn: Psn,
    /// The packet.
    pub seen: RxPacket,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Data {
    /// Returns the header that names a message.
    pub fn long(&self) -> Option<uet_wire::ses::ResponseData> {
        match self.seen.uet().ses? {
            Ses::ResponseData(header) => Some(header.copied()),
            _ => None,
        }
    }

    /// Returns the header that names a PSN.
    pub fn short(&self) -> Option<uet_wire::ses::ResponseDataSmall> {
        match self.seen.uet().ses? {
            Ses::ResponseDataSmall(header) => Some(header.copied()),
            _ => None,
        }
    }

    /// Returns its offset in the read.
    pub fn offset(&self) -> usize {
        self.long().map_or(0, |header| header.message_offset() as usize)
    }
}

/// Returns the packet with request_length of a compare and swap as the device states it.
fn as_stated(t: &Test<'_>, part: &Part) -> Part {
    match (part.ext, t.reported("swap_length").unwrap_or(0) as u32) {
        (Some(ExtBuf::CompareSwap(_)), length @ 1..) => {
            let ses = match part.ses {
                SesBuf::Std(header) => header.edit().request_length(length).done().map(SesBuf::from),
                SesBuf::Medium(header) => {
                    header.edit().request_length(length as u16).done().map(SesBuf::from)
                }
                _ => Ok(part.ses),
            };
            Part { ses: ses.unwrap_or(part.ses), ..part.clone() }
        }
        _ => part.clone(),
    }
}

impl RequestSession {
    /// Creates a session on this context, from its first PSN.
    pub fn new(pdc: Pdc) -> Self {
        RequestSession {
            pdc,
            next: 0,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            covered: 0,
            cleared: 0,
            data: BTreeMap::new(),
            ridden: BTreeMap::new(),
            handed: BTreeSet::new(),
        }
    }

    /// Sends a packet with the next PSN.
    pub fn ask(&mut self, t: &mut Test<'_>, part: &Part) -> Result<Psn, Stop> {
        let psn = self.pdc.psn(self.next);
        self.next += 1;
        self.ask_late(t, psn, part)?;
        Ok(psn)
    }

    /// Sends a packet with the next PSN as the bytes that `change` makes of it.
    pub fn ask_changed(
        &mut self,
        t: &mut Test<'_>,
        part: &Part,
        change: impl FnOnce(&UetBuf) -> Vec<u8>,
    ) -> Result<Psn, Stop> {
        let part = &as_stated(t, part);
        let (n, psn) = (self.next, self.pdc.psn(self.next));
        self.next += 1;
        self.asked.insert(n, part.clone());
        let packet = t.without_dc(self.request(n, part).build()?)?;
        t.send_wire(&self.pdc.raw(&change(&packet)))?;
        Ok(psn)
    }

    /// Sends packets with the next PSNs.
    pub fn ask_all(&mut self, t: &mut Test<'_>, parts: &[Part]) -> Result<Vec<Psn>, Stop> {
        parts.iter().map(|part| self.ask(t, part)).collect()
    }

    /// Sends packets with the next PSNs in this order.
    pub fn ask_in_order(
        &mut self,
        t: &mut Test<'_>,
        parts: &[Part],
        order: &[usize],
    ) -> Result<Vec<Psn>, Stop> {
        let first = self.next;
        self.next += parts.len() as u32;
        for place in order {
            if let Some(part) = parts.get(*place) {
                self.ask_late(t, self.pdc.psn(first + *place as u32), part)?;
            }
        }
        Ok((first..self.next).map(|n| self.pdc.psn(n)).collect())
    }

    /// Sends a packet with a PSN that was left out before.
    pub fn ask_late(&mut self, t: &mut Test<'_>, psn: Psn, part: &Part) -> Outcome {
        let part = &as_stated(t, part);
        self.asked.insert(self.distance(psn), part.clone());
        t.send(&self.pdc, &self.request(self.distance(psn), part).build()?)
    }

    /// Retransmits a packet.
    pub fn again(&mut self, t: &mut Test<'_>, psn: Psn, part: &Part) -> Outcome {
        self.answers.remove(&self.distance(psn));
        self.ridden.remove(&self.distance(psn));
        self.handed.remove(&(true, psn.0));
        let request = self.request(self.distance(psn), &as_stated(t, part)).retx();
        t.send(&self.pdc, &request.build()?)
    }

    /// Repeats an unanswered request once before the silence counts, since real networks lose packets.
    fn insist(&mut self, t: &mut Test<'_>, psn: Psn) -> Outcome {
        if t.facts().virtual_time || self.known(psn).is_some() {
            return Ok(());
        }
        let heard = t.hear(t.patience(t.soon()), |seen| {
            self.note(seen);
            self.known(psn).is_some()
        })?;
        match self.asked.get(&self.distance(psn)).cloned() {
            Some(part) if !heard => self.again(t, psn, &part),
            _ => Ok(()),
        }
    }

    fn request(&self, n: u32, part: &Part) -> Request {
        let request = self.pdc.request(n).clear(self.pdc.psn(self.cleared) - 1);
        Request { ext: part.ext, ..request.ses(part.ses, &part.payload) }
    }

    /// Makes the next requests clear all that are answered, up to the first that is not. A device without
    /// room for more responses waits for that.
    pub fn clear_answered(&mut self) {
        while self.cleared < self.next && self.known(self.pdc.psn(self.cleared)).is_some() {
            self.cleared += 1;
        }
    }

    fn distance(&self, psn: Psn) -> u32 {
        psn - self.pdc.start
    }

    /// Records the contents of a packet; recording a packet twice changes nothing. Returns the number of new
    /// bytes of read data.
    fn note(&mut self, seen: &RxPacket) -> usize {
        if !seen.is_for(&self.pdc) {
            return 0;
        }
        let uet = seen.uet();
        let data = |in_ack, psn| Data { in_ack, psn, seen: seen.clone(), bytes: uet.payload.to_vec() };
        let carries = matches!(uet.ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)));
        let mut new = 0;
        if let Some(ack) = seen.ack() {
            self.pdc.remote.get_or_insert(ack.spdcid());
            let covered = (ack.cack_psn() + 1) - self.pdc.start;
            if covered <= self.next {
                self.covered = self.covered.max(covered);
            }
            let Some(psn) = ack.ack_psn() else { return 0 };
            if carries {
                let distance = self.distance(psn);
                new = keep(&mut self.ridden, distance, || data(true, psn));
            }
            let response = seen.response().filter(says_something);
            let answer = Answer { response, request: ack.req(), covered };
            if response.is_some() || carries {
                let distance = self.distance(psn);
                self.answers.entry(distance).or_insert(answer);
            }
        } else if let (Some(request), true) = (seen.request(), carries) {
            self.pdc.remote.get_or_insert(request.spdcid());
            let psn = request.psn();
            let distance = self.distance(psn);
            new = keep(&mut self.data, distance, || data(false, psn));
        }
        new
    }

    /// Returns the known answer to this request: from an ACK that names it, or else a cumulative
    /// acknowledgment.
    fn known(&self, psn: Psn) -> Option<Answer> {
        let distance = self.distance(psn);
        let quiet = Answer { response: None, request: AckRequest::NO_REQUEST, covered: self.covered };
        self.answers.get(&distance).copied().or((distance < self.covered).then_some(quiet))
    }

    /// Expects such an answer to a request, as this requirement demands.
    pub fn expect(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        expected: &str,
        psn: Psn,
        wanted: impl Fn(&Answer) -> bool,
    ) -> Result<Answer, Stop> {
        self.insist(t, psn)?;
        if let Some(answer) = self.known(psn).filter(&wanted) {
            t.holds(requirement, expected, true, "");
            return Ok(answer);
        }
        let found = t.expect(requirement, expected, t.soon(), |seen| {
            self.note(seen);
            self.known(psn).filter(&wanted)
        });
        found.map(|(_, answer)| answer)
    }

    /// Expects that the request succeeds.
    pub fn accepted(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        psn: Psn,
    ) -> Result<Answer, Stop> {
        self.expect(t, requirement, "an ACK that says OK", psn, Answer::is_ok)
    }

    /// Skips the rule if the device refuses a request for delivery complete, as section 3.4.8.3 permits.
    pub(crate) fn supports_completion(&mut self, t: &mut Test<'_>, psn: Psn) -> Outcome {
        match self.answer(t, psn)?.is_ok() {
            true => Ok(()),
            false => t.declines(
                "the device refuses delivery complete; then its parameter delivery_complete is false",
            ),
        }
    }

    /// Expects that all requests succeed.
    pub fn all_accepted(&mut self, t: &mut Test<'_>, requirement: &Requirement, psns: &[Psn]) -> Outcome {
        psns.iter().try_for_each(|psn| self.accepted(t, requirement, *psn).map(|_| ()))
    }

    /// Expects that the request is refused with any code.
    pub fn refused(&mut self, t: &mut Test<'_>, requirement: &Requirement, psn: Psn) -> Result<Answer, Stop> {
        self.expect(t, requirement, "a response with an error", psn, |answer| !answer.is_ok())
    }

    /// Expects that the request is refused with one of these codes.
    pub fn refused_as(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        psn: Psn,
        codes: &[ReturnCode],
    ) -> Result<Answer, Stop> {
        let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
        let expected = format!("the return code {}", names.join(" or "));
        self.expect(t, requirement, &expected, psn, |answer| codes.contains(&answer.code()))
    }

    /// Expects an ACK or NACK, whatever it says: a device that drops the request breaks another requirement
    /// than one that serves it wrongly. Records only a failure.
    pub fn some_answer(&mut self, t: &mut Test<'_>, psn: Psn) -> Outcome {
        self.insist(t, psn)?;
        let pdc = self.pdc.clone();
        let heard = self.known(psn).is_some()
            || t.hear(t.patience(t.soon()), |seen| {
                self.note(seen);
                self.known(psn).is_some() || seen.refuses(&pdc, psn).is_some()
            })?;
        match heard {
            true => Ok(()),
            false => t
                .expect(PDS_ACK_004, "an ACK or NACK of the request", Duration::ZERO, |_| None::<()>)
                .map(drop),
        }
    }

    /// Waits for any answer.
    pub fn answer(&mut self, t: &mut Test<'_>, psn: Psn) -> Result<Answer, Stop> {
        self.insist(t, psn)?;
        if let Some(answer) = self.known(psn) {
            return Ok(answer);
        }
        let found = t.need("an answer to the request", t.soon(), |seen| {
            self.note(seen);
            self.known(psn)
        });
        found.map(|(_, answer)| answer)
    }

    /// Waits for this many more bytes of read data, in ACKs or on the return direction, and acknowledges the
    /// latter.
    pub fn data(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        length: usize,
    ) -> Result<Vec<Data>, Stop> {
        let bytes: usize = self.fresh().map(|data| data.bytes.len()).sum();
        let expected = format!("{length} bytes of read data");
        if bytes >= length {
            t.holds(requirement, &expected, true, "");
        } else {
            t.expect_bytes(requirement, &expected, (bytes, length), |seen| self.note(seen))?;
        }
        let fresh: Vec<Data> = self.fresh().cloned().collect();
        for data in fresh.iter().filter(|data| !data.in_ack) {
            t.send(&self.pdc, &self.pdc.ack(data.psn).cack(self.returned()).build()?)?;
        }
        self.handed.extend(fresh.iter().map(|data| (data.in_ack, data.psn.0)));
        Ok(fresh)
    }

    /// Returns read data that the script has not got yet.
    fn fresh(&self) -> impl Iterator<Item = &Data> {
        let all = self.ridden.values().chain(self.data.values());
        all.filter(|data| !self.handed.contains(&(data.in_ack, data.psn.0)))
    }

    /// Returns the highest PSN of the return direction without a gap below it.
    fn returned(&self) -> Psn {
        let run = (0..).take_while(|distance| self.data.contains_key(distance)).count();
        self.pdc.start - 1 + run as u32
    }
}

/// Keeps read data unless its place is taken; returns the number of bytes kept.
fn keep(all: &mut BTreeMap<u32, Data>, place: u32, data: impl FnOnce() -> Data) -> usize {
    match all.entry(place) {
        Entry::Vacant(free) => free.insert(data()).bytes.len(),
        Entry::Occupied(_) => 0,
    }
}

/// Returns whether a response has information beyond the packet's arrival; NULL and the opcode for no
/// response have none.
fn says_something(response: &Response) -> bool {
    let head = response.head();
    head.return_code() != ReturnCode::NULL && head.opcode() != ResponseOpcode::UET_NO_RESPONSE
}

/// Assembles the bytes of a read from its pieces; `None` if two disagree or one does not fit.
pub fn assemble(pieces: &[Data], length: usize) -> Option<Vec<u8>> {
    let mut whole: Vec<Option<u8>> = vec![None; length];
    for piece in pieces {
        let place = whole.get_mut(piece.offset()..piece.offset() + piece.bytes.len())?;
        for (to, byte) in place.iter_mut().zip(&piece.bytes) {
            if to.replace(*byte).is_some_and(|before| before != *byte) {
                return None;
            }
        }
    }
    whole.into_iter().collect()
}

impl Test<'_> {
    /// Starts a session on a new context.
    pub fn session(&mut self) -> RequestSession {
        RequestSession::new(self.initiate())
    }

    /// Starts a session on a new ROD context.
    pub fn ordered_session(&mut self) -> RequestSession {
        RequestSession::new(Pdc { rod: true, ..self.initiate() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(opcode: ResponseOpcode, code: ReturnCode, length: u32) -> u32 {
        let response = Response::build(opcode, code).modified_length(length).done().unwrap();
        Answer { response: Some(response), request: AckRequest::NO_REQUEST, covered: 1 }.accepted_length(100)
    }

    #[test]
    fn accepted_length_is_that_of_an_explicit_success() {
        use ResponseOpcode as Opcode;
        assert_eq!(accepted(Opcode::UET_RESPONSE, ReturnCode::OK, 99), 99);
        assert_eq!(accepted(Opcode::UET_RESPONSE, ReturnCode::OK, 100), 100);
        assert_eq!(accepted(Opcode::UET_DEFAULT_RESPONSE, ReturnCode::OK, 0), 100);
        assert_eq!(accepted(Opcode::UET_DEFAULT_RESPONSE, ReturnCode::NULL, 0), 100);
        let silent = Answer { response: None, request: AckRequest::NO_REQUEST, covered: 1 };
        assert_eq!(silent.accepted_length(100), 100);
    }
}
