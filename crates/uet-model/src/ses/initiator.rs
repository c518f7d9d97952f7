//! Operations in flight, their responses and completions.

use super::Ses;
use super::completion::{Completion, Done, OperationError};
use super::cut::{Outline, Progress, Selector};
use super::deferrable::Deferral;
use super::event::{SesEvent, Why};
use super::matching::LandingId;
use super::memory::RegionId;
use super::operation::{Operation, OperationId, PostError};
use super::outbox::OutboxItem;
use super::post::check_mode;
use super::ranges::Ranges;
use super::request::Form;
use crate::pds::NackAction;
use crate::{Command, Failure, MessageKey, Mode, PdcHandle, RxResponse, Via};
use core::ops::Range;
use uet_wire::Psn;
use uet_wire::registry::{List, NackCode, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{self, ExtBuf};

/// An operation in flight.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct ActiveOperation {
    pub(super) outline: Outline,
    pub(super) owner: Owner,
    /// The number of packets sent, and the number of them that were answered.
    pub(super) sent: u32,
    pub(super) answered: u32,
    /// The buffer for returned data, and the number of bytes that have arrived.
    pub(super) data: Vec<u8>,
    pub(super) got: u32,
    /// The number of bytes that the target accepted, if it stated that.
    pub(super) accepted: Option<u32>,
    pub(super) list: List,
    pub(super) fault: Option<OperationError>,
    /// The context that carries it, if known, and the PSN of a request with a short header.
    pub(super) pdc: Option<PdcHandle>,
    pub(super) psn: Option<Psn>,
    /// For a rendezvous send: the part that the target reads, the parts that it requested, and the bytes that arrived.
    /// For a read, `claimed` is the parts of its data that arrived.
    pub(super) source: Option<(RegionId, Range<u64>)>,
    pub(super) claimed: Ranges,
    pub(super) read_out: u32,
    pub(super) deferral: Deferral,
    /// The number of repetitions, and true if another is due once all packets were answered.
    pub(super) repeated: u8,
    pub(super) repeat: bool,
}

/// The owner of an operation, which receives its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Owner {
    Application,
    /// A rendezvous send to us, of which we read the rest.
    Landing(LandingId),
}

/// The purpose of a message that PDS carries for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Purpose {
    Operation(OperationId),
    /// Read data; for a rendezvous send, with the number of its bytes.
    Data {
        rendezvous: Option<(OperationId, u32)>,
    },
    /// A DEFERRABLE_RTR with this token of ours.
    Ready(u32),
}

impl ActiveOperation {
    /// Returns the number of bytes that the target accepted or will accept.
    pub(super) fn length(&self) -> u32 {
        match self.outline.ext {
            // `request_length` may differ from the length of the element.
            Some(ExtBuf::CompareSwap(_)) => self.outline.span,
            _ => self.accepted.unwrap_or(self.outline.total),
        }
    }

    /// Returns the number of bytes that a read still waits for.
    pub(super) fn awaits(&self) -> u32 {
        if self.outline.opcode == Opcode::UET_READ { self.outline.cut.saturating_sub(self.got) } else { 0 }
    }

    /// Returns whether the operation has completed.
    ///
    /// `SES-DONE-001`: an operation completes once, when every packet was answered and all data arrived. A rendezvous send
    /// also waits until the target has read the rest, because it needs the memory until then.
    fn is_over(&self) -> bool {
        let answered = self.outline.progress == Progress::Done && self.answered >= self.sent;
        let rest = match self.source {
            Some(_) => self.length().saturating_sub(self.outline.span),
            None => 0,
        };
        let came = self.got as usize >= self.data.len() && self.read_out >= rest;
        let settled = self.fault.is_some() || came && !self.deferral.is_waiting();
        let unanswerable = self.outline.peer.route.mode == Mode::Uud;
        settled && (answered || unanswerable && self.outline.progress == Progress::Done)
    }

    /// Returns whether a repetition has no effect at the target.
    fn is_repeatable(&self) -> bool {
        match self.outline.opcode {
            Opcode::UET_NO_OP | Opcode::UET_READ => true,
            Opcode::UET_WRITE => self.outline.header_data.is_none(),
            _ => false,
        }
    }

    /// Returns whether the operation is a send that a refusal leaves without effect at the target.
    fn is_send(&self) -> bool {
        let plain = matches!(self.outline.opcode, Opcode::UET_SEND | Opcode::UET_TAGGED_SEND);
        plain || self.outline.opcode.is_rendezvous()
    }

    /// Marks the operation as failed. The first error counts.
    fn fail(&mut self, fault: OperationError) {
        self.fault.get_or_insert(fault);
    }
}

impl Ses {
    /// Starts an operation.
    pub fn post(&mut self, operation: Operation) -> Result<OperationId, PostError> {
        self.start(operation, Owner::Application)
    }

    /// Cancels an operation, which completes with CANCELLED. Returns whether it was in flight.
    pub fn abort(&mut self, id: OperationId) -> bool {
        let how = self.params.abort;
        let Some(flight) = self.flights.get_mut(&id) else { return false };
        // The target may never request the message, read the rest or send the data.
        let waits = flight.deferral.is_waiting() || flight.source.is_some() || !flight.data.is_empty();
        let is_answered = flight.answered >= flight.sent;
        if flight.outline.progress == Progress::Done && !(waits && is_answered) {
            return false;
        }
        flight.fail(OperationError::new(ReturnCode::CANCELLED));
        flight.outline.give_up(how);
        self.complete_if_done(id);
        true
    }

    pub(super) fn start(&mut self, operation: Operation, owner: Owner) -> Result<OperationId, PostError> {
        if self.flights.len() >= self.params.max_operations.into() {
            return Err(PostError::Full);
        }
        check_mode(&operation)?;
        let (mut outline, wanted, source) = self.outline(&operation)?;
        // Cutting a copy finds values that do not fit their fields before anything is sent.
        outline.clone().next().map_err(PostError::Header)?;

        let id = OperationId(self.next.operation);
        self.next.operation += 1;
        outline.message = self.name_message(id, outline.opcode);
        outline.key = self.name_sent(Purpose::Operation(id));
        let deferral = match outline.selector {
            Selector::Restart { .. } => self.name_deferrable(id, &mut outline),
            _ => Deferral::Never,
        };
        if let Some((region, _)) = &source {
            self.by_source.insert((*region, id));
        }
        let (opcode, message, length) = (outline.opcode, outline.message, outline.total);
        self.event(SesEvent::Posted { operation: id, opcode, message, length });
        let via = Via::Route(outline.peer.route);
        let flight = ActiveOperation {
            outline,
            owner,
            sent: 0,
            answered: 0,
            data: vec![0; wanted as usize],
            got: 0,
            accepted: None,
            list: List::UET_EXPECTED,
            fault: None,
            pdc: None,
            psn: None,
            source,
            claimed: Ranges::default(),
            read_out: 0,
            deferral,
            repeated: 0,
            repeat: false,
        };
        self.flights.insert(id, flight);
        self.outbox.push(via, OutboxItem::Operation(id));
        Ok(id)
    }

    /// Returns an unused message id. `WIRE-SES-004`: a datagram has 0.
    fn name_message(&mut self, id: OperationId, opcode: Opcode) -> u16 {
        if opcode == Opcode::UET_DATAGRAM_SEND { 0 } else { self.name_again(id) }
    }

    pub(super) fn name_again(&mut self, id: OperationId) -> u16 {
        loop {
            self.next.message = self.next.message.wrapping_add(1);
            // `SES-CUT-007`: 0 is reserved. There are more ids than operations in flight.
            if self.next.message != 0 && !self.by_message.contains_key(&self.next.message) {
                self.by_message.insert(self.next.message, id);
                return self.next.message;
            }
        }
    }

    /// Returns a new message key for PDS.
    pub(super) fn name_sent(&mut self, purpose: Purpose) -> MessageKey {
        let key = MessageKey(self.next.key);
        self.next.key += 1;
        self.sent.insert(key, purpose);
        key
    }

    /// Records the PSN of a request.
    pub(super) fn numbered(&mut self, message: MessageKey, pdc: PdcHandle, psn: Psn) {
        let Some(Purpose::Operation(id)) = self.sent.get(&message).copied() else { return };
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let held = flight.pdc.replace(pdc);
        if flight.data.is_empty() {
            return;
        }
        // `SES-READ-009`: holds the context open while read data is outstanding.
        if held != Some(pdc) {
            self.commands.extend(held.map(Command::Release));
            self.commands.push_back(Command::Hold(pdc));
        }
        if flight.outline.form != Form::Std {
            let before = flight.psn.replace(psn);
            if let (Some(held), Some(before)) = (held, before) {
                self.by_psn.remove(&(held, before.0));
            }
            self.by_psn.insert((pdc, psn.0), id);
        }
    }

    /// Handles the response to a request.
    pub(super) fn response(&mut self, message: MessageKey, response: Option<RxResponse>) {
        match self.sent.get(&message).copied() {
            Some(Purpose::Operation(id)) => {
                if let Some(flight) = self.flights.get_mut(&id) {
                    flight.answered += 1;
                    if flight.answered == 1 && flight.owner != Owner::Application {
                        self.outbox.wake();
                    }
                }
                if let Some(response) = response {
                    self.read_response(id, &response);
                }
                self.complete_if_done(id);
            }
            Some(Purpose::Data { rendezvous }) => {
                self.sent.remove(&message);
                self.reads = self.reads.saturating_sub(1);
                if let Some((id, length)) = rendezvous {
                    self.was_read(id, length);
                }
            }
            Some(Purpose::Ready(token)) => {
                self.sent.remove(&message);
                if response.as_ref().and_then(code_of).is_some_and(|code| code != ReturnCode::OK) {
                    self.not_ready(token);
                }
            }
            None => {}
        }
    }

    /// Handles a request that gets no response.
    pub(super) fn failed(&mut self, message: MessageKey, why: Failure) {
        match self.sent.get(&message).copied() {
            Some(Purpose::Operation(id)) => {
                let Some(flight) = self.flights.get_mut(&id) else { return };
                flight.answered += 1;
                match may_go_again(why) && flight.repeated < self.params.max_repeats && flight.is_repeatable()
                {
                    true => flight.repeat = true,
                    false => flight.fail(OperationError {
                        why: Some(why),
                        ..OperationError::new(ReturnCode::UNDELIVERABLE)
                    }),
                }
                // The context for the rest of the message is gone.
                flight.outline.progress = Progress::Done;
                self.complete_if_done(id);
            }
            Some(Purpose::Data { .. }) => self.data_lost(message, why),
            Some(Purpose::Ready(token)) => {
                self.sent.remove(&message);
                self.not_ready(token);
            }
            None => {}
        }
    }

    /// Handles the loss of read data. A rendezvous send fails with it.
    pub(super) fn data_lost(&mut self, message: MessageKey, why: Failure) {
        let Some(Purpose::Data { rendezvous }) = self.sent.remove(&message) else { return };
        self.reads = self.reads.saturating_sub(1);
        let Some((id, _)) = rendezvous else { return };
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.fail(OperationError { why: Some(why), ..OperationError::new(ReturnCode::UNDELIVERABLE) });
        }
        self.complete_if_done(id);
    }

    /// Parses the information in a response besides the acknowledgment.
    fn read_response(&mut self, id: OperationId, response: &RxResponse) {
        match ses::Ses::parse_as(response.next_hdr, &response.head) {
            Some(Ok((ses::Ses::Response(answer), _))) => self.read_answer(id, &answer.copied()),
            Some(Ok((ses::Ses::ResponseData(data), _))) => {
                self.data_arrived(id, data.head().return_code(), data.message_offset(), &response.payload);
            }
            Some(Ok((ses::Ses::ResponseDataSmall(data), _))) => {
                self.data_arrived(id, data.head().return_code(), 0, &response.payload);
            }
            // An unreadable response counts as the default one.
            _ => {}
        }
    }

    fn read_answer(&mut self, id: OperationId, answer: &ses::Response) {
        let how = self.params.abort;
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let (code, length) = (answer.head().return_code(), answer.modified_length());
        // NULL comes here only for a packet that the cumulative PSN covers, whose response is the default one.
        if code != ReturnCode::OK && code != ReturnCode::NULL {
            if flight.repeat {
                // The rest of a refused message gets the same error.
                return;
            }
            if code == ReturnCode::BAD_GENERATION
                && length == 0
                && flight.is_send()
                && flight.fault.is_none()
                && flight.repeated < self.params.generation_repeats
            {
                flight.repeat = true;
                flight.outline.peer.generation = answer.ri_generation();
                flight.outline.give_up(how);
                return;
            }
            // `SES-ERR-003`: an error ends the message, and its remaining packets are not sent.
            let generation = answer.ri_generation();
            flight.fail(OperationError { code, generation, length, why: None });
            flight.outline.give_up(how);
            return;
        }
        // `SES-RESP-006`: in a default response, length 0 means the whole message.
        let explicit = answer.head().opcode() == ResponseOpcode::UET_RESPONSE;
        if explicit && length == 0 && flight.deferral.put_off() {
            return;
        }
        if answer.head().list() == List::UET_OVERFLOW {
            flight.list = List::UET_OVERFLOW;
        }
        let says = length > 0 || explicit && flight.list == List::UET_EXPECTED;
        if says && flight.data.is_empty() {
            flight.accepted = Some(length.min(flight.outline.total));
        }
    }

    /// Completes an operation that has nothing left to wait for.
    pub(super) fn complete_if_done(&mut self, id: OperationId) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        if flight.fault.is_none() && (self.repeat(id) || self.restart(id)) {
            return;
        }
        let over = self.flights.get(&id).is_some_and(ActiveOperation::is_over);
        let Some(flight) = over.then(|| self.flights.remove(&id)).flatten() else { return };
        self.forget(id, &flight);
        let (code, length) = match &flight.fault {
            Some(fault) => (fault.code, fault.length),
            None => (ReturnCode::OK, flight.length()),
        };
        self.event(SesEvent::Completed { operation: id, code, length });
        match flight.owner {
            Owner::Application => {
                let result = match flight.fault {
                    Some(fault) => Err(fault),
                    None => {
                        let data = match flight.outline.datatype() {
                            Some(datatype) => self.params.convert(datatype, flight.data.into()),
                            None => flight.data.into(),
                        };
                        Ok(Done { length, list: flight.list, data })
                    }
                };
                self.completions.push_back(Completion::Operation { id, result });
            }
            Owner::Landing(landing) => self.rest_has_come(landing, code, &flight.data),
        }
        self.read_more();
    }

    /// Repeats an operation whose context the peer ended, or whose generation the peer refused, once none of its packets
    /// is in flight.
    fn repeat(&mut self, id: OperationId) -> bool {
        let Some(flight) = self.flights.get_mut(&id).filter(|flight| flight.repeat) else { return false };
        if flight.outline.progress != Progress::Done || flight.answered < flight.sent {
            return true;
        }
        let awaited = flight.awaits();
        let old = (flight.outline.key, flight.outline.message);
        let via = Via::Route(flight.outline.peer.route);
        (flight.sent, flight.answered, flight.accepted, flight.got) = (0, 0, None, 0);
        flight.claimed = Ranges::default();
        (flight.repeat, flight.repeated) = (false, flight.repeated + 1);
        (flight.outline.cut, flight.outline.progress) = (0, Progress::New);
        self.await_less(awaited);
        self.send_anew(id, old, via);
        true
    }

    /// Repeats an operation as a new message.
    pub(super) fn send_anew(&mut self, id: OperationId, (key, message): (MessageKey, u16), via: Via) {
        self.sent.remove(&key);
        self.by_message.remove(&message);
        let (key, message) = (self.name_sent(Purpose::Operation(id)), self.name_again(id));
        if let Some(flight) = self.flights.get_mut(&id) {
            (flight.outline.key, flight.outline.message) = (key, message);
        }
        self.outbox.push(via, OutboxItem::Operation(id));
    }

    /// Removes the lookup entries of an operation.
    fn forget(&mut self, id: OperationId, flight: &ActiveOperation) {
        self.sent.remove(&flight.outline.key);
        self.await_less(flight.awaits());
        if self.by_message.get(&flight.outline.message) == Some(&id) {
            self.by_message.remove(&flight.outline.message);
        }
        if let Some(pdc) = flight.pdc {
            if !flight.data.is_empty() {
                self.commands.push_back(Command::Release(pdc));
            }
            if let Some(psn) = flight.psn {
                self.by_psn.remove(&(pdc, psn.0));
            }
        }
        if let Some((region, _)) = &flight.source {
            self.by_source.remove(&(*region, id));
        }
        if let Selector::Restart { initiator, .. } = flight.outline.selector {
            self.by_token.remove(&initiator);
        }
    }

    /// Handles the end of a context, which loses the data that it owed.
    pub(super) fn close_flights(&mut self, pdc: PdcHandle) {
        let owed = |flight: &ActiveOperation| flight.pdc == Some(pdc) && flight.answered >= flight.sent;
        let lost: Vec<OperationId> = self
            .flights
            .iter()
            .filter(|(_, flight)| owed(flight) && (flight.got as usize) < flight.data.len())
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            if let Some(flight) = self.flights.get_mut(&id) {
                flight.fail(OperationError::new(ReturnCode::UNDELIVERABLE));
                flight.outline.progress = Progress::Done;
            }
            self.complete_if_done(id);
        }
    }

    pub(super) fn unexpected(&mut self, why: Why) {
        self.event(SesEvent::Unexpected { why });
    }
}

/// Returns whether the NACK code that ended a context permits a repetition of the operation on a new one.
fn may_go_again(why: Failure) -> bool {
    let Failure::Ended(code) = why else { return false };
    let action = NackCode::new(code).and_then(NackAction::of);
    matches!(action, Some(NackAction::CloseAndRetry | NackAction::ReportAndRetry))
}

/// Returns the return code of a response.
fn code_of(response: &RxResponse) -> Option<ReturnCode> {
    match ses::Ses::parse_as(response.next_hdr, &response.head) {
        Some(Ok((ses::Ses::Response(answer), _))) => Some(answer.head().return_code()),
        _ => None,
    }
}
