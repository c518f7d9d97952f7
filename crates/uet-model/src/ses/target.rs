//! Handling requests: each is placed, matched or refused, and gets one response (`SES-RESP-001`).

use super::completion::{Completion, Written};
use super::event::{SesEvent, Why};
use super::matching::LandingId;
use super::memory::{Access, Key, RegionId};
use super::params::{SmallIndex, UudOpcode};
use super::ranges::Ranges;
use super::receive::sender;
use super::request::{self, Form, Incoming, SesRequest};
use super::response::Reply;
use super::{Refusal, Ses};
use crate::{Command, Mode, PdcHandle, RxRequest, Ticket, TxResponse};
use uet_wire::registry::{List, NackCode, Opcode, ReturnCode};

/// A message of several packets that is arriving.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct RxMessage {
    opcode: Opcode,
    total: u32,
    /// The bytes that arrived, placed or not, and the end of the message according to its last packet.
    received: Ranges,
    end: Option<u64>,
    begun: bool,
    pub(super) fate: Placement,
    /// The last packet, if its response waits until all data is visible.
    waiting: Option<(Ticket, Reply)>,
    header_data: Option<u64>,
    placed: u32,
    /// True if no packet has arrived since the last look for stalled messages.
    pub(super) stalled: bool,
    /// True if its peer has confirmed the context.
    pub(super) confirmed: bool,
}

/// The destination of the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Placement {
    /// Written to a region.
    Write(RegionId),
    /// Read from a region, and returned in our message with this id.
    Read(RegionId, u16),
    /// Collected in a buffer.
    Land(LandingId),
    /// Deferred. The initiator sends the message again later.
    PutOff,
    /// Discarded. Each packet gets this error.
    Discard(Refusal),
}

/// The reply to a request.
pub(super) enum Answer {
    Respond(TxResponse),
    /// The response follows when the message is complete.
    Later,
}

/// The reason why a request is not served.
pub(super) enum Denial {
    /// An error response, with the number of bytes of the message placed so far.
    Refused(Refusal, u32),
    /// A NACK from PDS, after which the peer retransmits the request.
    SentBack(NackCode, Why),
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        Denial::Refused(refusal, 0)
    }
}

impl RxMessage {
    /// Returns whether all packets have arrived.
    fn is_finished(&self) -> bool {
        self.begun && self.end.is_some_and(|end| self.received.cover(end))
    }
}

impl Ses {
    /// Handles a new request.
    pub(super) fn request(&mut self, rx: RxRequest) {
        let (opcode, reply, served) = match request::read(rx.next_hdr, &rx.head) {
            Err(refusal) => (None, Reply::default(), Err(refusal.into())),
            Ok(Incoming::Request(request)) => {
                let served = self.serve(&rx, &request);
                if let (Opcode::UET_READ, Err(Denial::Refused(refusal, _))) = (request.opcode(), &served) {
                    self.read_refused(&rx, &request, refusal.code);
                }
                (Some(request.opcode()), Reply::to(&request), served)
            }
            Ok(Incoming::Data(data)) => {
                let (reply, served) = self.read_data(&rx, &data);
                (None, reply, served)
            }
            Ok(Incoming::DataSmall(data)) => {
                let (reply, served) = self.read_data_small(&rx, &data);
                (None, reply, served)
            }
        };
        let from = rx.from;
        match served {
            Ok(Answer::Respond(response)) => self.respond(rx.ticket, response),
            Ok(Answer::Later) => {}
            Err(Denial::Refused(refusal, placed)) => {
                let Refusal { code, why, .. } = refusal;
                self.event(match rx.ticket {
                    Ticket::Uud => SesEvent::Dropped { from, why },
                    _ => SesEvent::Refused { from, opcode, code, why },
                });
                self.respond(rx.ticket, reply.error(&refusal, placed));
            }
            Err(Denial::SentBack(code, why)) => {
                self.event(SesEvent::SentBack { from, why });
                if rx.ticket != Ticket::Uud {
                    self.commands.push_back(Command::Refuse(rx.ticket, code));
                }
            }
        }
    }

    /// `SES-MODE-001`: a datagram never gets a response.
    pub(super) fn respond(&mut self, ticket: Ticket, response: TxResponse) {
        if ticket != Ticket::Uud {
            self.commands.push_back(Command::Respond(ticket, response));
        }
    }

    fn serve(&mut self, rx: &RxRequest, request: &SesRequest) -> Result<Answer, Denial> {
        permitted_by(rx.mode, request, self.params.uud_opcode)?;
        // Section 3.4.8.3: a target need not support delivery complete.
        if request.head.dc() && !self.params.delivery_complete {
            return Err(Refusal::new(ReturnCode::UNSUPPORTED_OP, Why::Complete).into());
        }
        match request.opcode() {
            Opcode::UET_NO_OP => Ok(Answer::Respond(Reply::to(request).plain(0))),
            Opcode::UET_ATOMIC | Opcode::UET_FETCHING_ATOMIC => self.atomic_on_memory(rx, request),
            Opcode::UET_TSEND_ATOMIC | Opcode::UET_TSEND_FETCH_ATOMIC => self.atomic_by_tag(rx, request),
            Opcode::UET_DEFERRABLE_RTR => self.ready(rx, request),
            Opcode::UET_WRITE
            | Opcode::UET_READ
            | Opcode::UET_SEND
            | Opcode::UET_TAGGED_SEND
            | Opcode::UET_DATAGRAM_SEND
            | Opcode::UET_RENDEZVOUS_SEND
            | Opcode::UET_RENDEZVOUS_TSEND
            | Opcode::UET_DEFERRABLE_SEND
            | Opcode::UET_DEFERRABLE_TSEND
            | Opcode::UET_MSG_ERROR => self.message(rx, request),
            // `SES-ERR-002`: the response to an unknown opcode is UNSUPPORTED_OP.
            other => Err(Refusal::new(ReturnCode::UNSUPPORTED_OP, Why::Opcode(other)).into()),
        }
    }

    /// Handles a packet of a message: finds or starts the message, places the bytes, and completes the message with its last
    /// packet. `SES-PLACE-002`, `SES-PLACE-003`: no packet waits for another.
    fn message(&mut self, rx: &RxRequest, request: &SesRequest) -> Result<Answer, Denial> {
        let length = self.part(rx, request)?;
        let id = message_id(rx, request)?;
        let known = id.and_then(|id| self.messages.remove(&id));
        let header_data = request.header_data.or(known.as_ref().and_then(|known| known.header_data));
        let mut inbound = match known {
            Some(known) => known,
            None => match self.arrive(rx, request, id.is_some()) {
                Ok(fate) => RxMessage {
                    opcode: request.opcode(),
                    total: request.total,
                    received: Ranges::default(),
                    end: None,
                    begun: false,
                    fate,
                    waiting: None,
                    header_data: None,
                    placed: 0,
                    stalled: false,
                    confirmed: rx.confirmed,
                },
                Err(denial) => return Err(denial),
            },
        };
        if let Err(denial) = self.has_room(rx, request, inbound.fate, header_data) {
            self.keep(id, inbound);
            return Err(denial);
        }
        inbound.header_data = header_data;
        let served = self.part_of(rx, request, &mut inbound, length);
        if !inbound.is_finished() {
            self.keep(id, inbound);
        }
        served
    }

    fn keep(&mut self, id: Option<(PdcHandle, u16)>, inbound: RxMessage) {
        if let Some(id) = id {
            self.messages.insert(id, inbound);
            self.watch();
        }
    }

    /// Checks the room for side effects of a packet before it changes anything.
    fn has_room(
        &self,
        rx: &RxRequest,
        request: &SesRequest,
        fate: Placement,
        header_data: Option<u64>,
    ) -> Result<(), Denial> {
        let full = |why| Denial::SentBack(NackCode::NO_RESOURCE, why);
        if let Placement::Read(region, _) = fate {
            self.room_for_data(self.read_rides_in_ack(rx, request, region))?;
        }
        let tells = request.opcode() == Opcode::UET_WRITE && header_data.is_some();
        if tells && self.written >= self.params.max_written {
            Err(full(Why::CompletionsFull))
        } else {
            Ok(())
        }
    }

    /// Returns the number of bytes that a packet carries or requests.
    ///
    /// `SES-READ-001`: the first packet of a read requests the whole message up to the MTU, the others
    /// `payload_length`. `WIRE-SES-006`: the length stated in a packet must be correct.
    fn part(&self, rx: &RxRequest, request: &SesRequest) -> Result<u32, Refusal> {
        let wrong = Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::Lengths));
        let carried = u32::try_from(rx.payload.len()).unwrap_or(u32::MAX);
        // A read that its initiator ends asks for nothing, whatever lengths it states.
        if request.opcode() == Opcode::UET_READ && request.gives_up() {
            return Ok(request.stated.unwrap_or(request.total).min(self.mtu));
        }
        if request.opcode() == Opcode::UET_READ {
            let wanted = match request.stated {
                Some(stated) => stated,
                None if request.is_whole() => request.total,
                None => request.total.min(self.mtu),
            };
            return match wanted {
                _ if carried > 0 => wrong,
                wanted if wanted > self.mtu => Err(Refusal::new(ReturnCode::UNSUPPORTED_SIZE, Why::TooMuch)),
                wanted => Ok(wanted),
            };
        }
        match request.stated {
            _ if request.opcode() == Opcode::UET_MSG_ERROR => Ok(carried),
            Some(stated) if stated != carried => wrong,
            _ => Ok(carried),
        }
    }

    /// Handles a packet of a known message.
    fn part_of(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        inbound: &mut RxMessage,
        length: u32,
    ) -> Result<Answer, Denial> {
        let end = u64::from(request.offset) + u64::from(length);
        let has_ended = request.head.eom() && inbound.end.is_some();
        inbound.begun |= request.head.som();
        inbound.stalled = false;
        // The packets of a read carry no data, so its request_length alone tells its end: some initiators leave `eom` out.
        let is_last_of_read = request.opcode() == Opcode::UET_READ && end == u64::from(request.total);
        if request.head.eom() || is_last_of_read {
            inbound.end = Some(end);
        }
        // The bytes of a message that ends in an error count too: its id is free once all have come.
        let new = inbound.received.take(request.offset.into()..end);
        let reply = Reply::to(request);
        if request.gives_up() {
            self.discard(inbound, Refusal::new(ReturnCode::INITIATOR_ERR, Why::GivenUp));
        } else if request.opcode() != inbound.opcode || request.total != inbound.total {
            self.discard(inbound, Refusal::new(ReturnCode::OP_VIOLATION, Why::OtherMessage));
        } else if !fits(request, end) || !new || has_ended {
            // `WIRE-SES-008`: no packet reaches beyond its message, and the last one ends it. Bytes come once: otherwise
            // the number of packets could hide a hole. So does the end: the response to the last packet may still wait.
            self.discard(inbound, Refusal::new(ReturnCode::OP_VIOLATION, Why::Lengths));
        }
        let placed = match inbound.fate {
            Placement::Write(region) => self.place(region, request, rx),
            Placement::Land(landing) => self.land(landing, request, rx),
            Placement::Read(region, own) => return Ok(self.serve_read(rx, request, region, own, length)?),
            Placement::PutOff => return Ok(Answer::Respond(reply.kept(0))),
            Placement::Discard(refusal) => Err(refusal),
        };
        match placed {
            Ok(()) => inbound.placed = inbound.placed.saturating_add(length),
            Err(refusal) => {
                self.discard(inbound, refusal);
                return Err(Denial::Refused(refusal, inbound.placed));
            }
        }
        Ok(self.answer(rx, request, inbound))
    }

    /// Returns the response to a packet whose bytes are placed. The response that completes the message states its length.
    /// `SES-RESP-005`: with `dc`, the last packet is answered when all data is visible.
    fn answer(&mut self, rx: &RxRequest, request: &SesRequest, inbound: &mut RxMessage) -> Answer {
        let reply = Reply::to(request);
        let response = |ses: &Ses, length| ses.success(reply, inbound.fate, length);
        if !inbound.is_finished() {
            // The target cannot tell which RUDI packets belong to one message.
            if request.head.dc() && request.head.eom() && rx.mode != Mode::Rudi {
                inbound.waiting = Some((rx.ticket, reply));
                return Answer::Later;
            }
            return Answer::Respond(response(self, None));
        }
        let complete = response(self, Some(inbound.total));
        let rest = response(self, None);
        self.finish(rx, request, inbound);
        match inbound.waiting.take() {
            Some((last, _)) => {
                self.respond(last, complete);
                Answer::Respond(rest)
            }
            None => Answer::Respond(complete),
        }
    }

    /// Returns the response to a successful packet, with the message length if it completes the message.
    fn success(&self, reply: Reply, fate: Placement, completes: Option<u32>) -> TxResponse {
        let landing = match fate {
            Placement::Land(landing) => self.landings.get(landing),
            _ => None,
        };
        match (landing, completes) {
            // Only the packet that completes the message names the list, because only then is the length known.
            (Some(landing), Some(total)) if landing.list == List::UET_OVERFLOW => reply.overflow(total),
            // `SES-MATCH-005`: the response to a truncated send states its length, and is guaranteed.
            (Some(landing), Some(total)) if landing.accepted() < total => reply.kept(landing.accepted()),
            (_, Some(total)) if self.params.explicit_completion => reply.explicit(total),
            (_, completes) => reply.plain(completes.unwrap_or_default()),
        }
    }

    /// Completes a message that arrived without errors.
    fn finish(&mut self, rx: &RxRequest, request: &SesRequest, inbound: &RxMessage) {
        match inbound.fate {
            Placement::Write(region) => {
                if let Some(header_data) = inbound.header_data {
                    self.written = self.written.saturating_add(1);
                    self.completions.push_back(Completion::Written(Written {
                        region,
                        offset: request.buffer_offset,
                        length: inbound.total,
                        sender: sender(rx, request),
                        header_data,
                    }));
                }
            }
            Placement::Land(id) => {
                if let Some(landing) = self.landings.get_mut(id) {
                    landing.header_data = inbound.header_data;
                }
                self.has_landed(id);
            }
            Placement::Read(..) | Placement::PutOff | Placement::Discard(_) => {}
        }
    }

    /// `SES-ERR-004`, `SES-ERR-006`: discards the rest of a failed message, and responds with its return code.
    fn discard(&mut self, inbound: &mut RxMessage, refusal: Refusal) {
        if matches!(inbound.fate, Placement::Discard(_)) {
            return;
        }
        if let Placement::Land(landing) = inbound.fate {
            self.end_landing(landing, refusal.code);
        }
        inbound.fate = Placement::Discard(refusal);
        if let Some((ticket, reply)) = inbound.waiting.take() {
            self.respond(ticket, reply.error(&refusal, inbound.placed));
        }
    }

    /// `SES-PLACE-001`: places bytes at the region's base plus `buffer_offset` plus `message_offset`.
    fn place(&mut self, region: RegionId, request: &SesRequest, rx: &RxRequest) -> Result<(), Refusal> {
        let length = rx.payload.len() as u64;
        let offset = request.buffer_offset.saturating_add(request.offset.into());
        let span = self.regions.access(region, Access::WRITE, offset, length, &self.params)?;
        let address = span.address;
        span.write(&rx.payload)?;
        self.event(SesEvent::Placed { region, address, length: length as u32 });
        Ok(())
    }

    /// Decides the destination of a message by its first packet to arrive, because each packet has all fields for that.
    /// `SES-ADDR-007`: a message that cannot be served is discarded whole.
    fn arrive(&mut self, rx: &RxRequest, request: &SesRequest, several: bool) -> Result<Placement, Denial> {
        if several && self.messages.len() >= self.params.max_messages.into() && !self.forget_refused() {
            return Err(Denial::SentBack(NackCode::NO_SES_MSG_AVAIL, Why::MessagesFull));
        }
        if request.gives_up() {
            return Ok(Placement::Discard(Refusal::new(ReturnCode::INITIATOR_ERR, Why::GivenUp)));
        }
        let fate = match request.opcode() {
            Opcode::UET_WRITE => self.region(rx, request, Access::WRITE).map(Placement::Write),
            Opcode::UET_READ => {
                let region = self.region(rx, request, Access::READ);
                region.map(|region| Placement::Read(region, self.name_response(request)))
            }
            _ => self.receive_for(rx, request),
        };
        Ok(fate.unwrap_or_else(Placement::Discard))
    }

    /// Forgets a refused message whose peer has not confirmed its context, because it may be forged. Its other packets
    /// are refused again. Returns whether there was one.
    fn forget_refused(&mut self) -> bool {
        let is_it = |message: &RxMessage| !message.confirmed && matches!(message.fate, Placement::Discard(_));
        let id = self.messages.iter().find(|(_, message)| is_it(message)).map(|(id, _)| *id);
        id.and_then(|id| self.messages.remove(&id)).is_some()
    }

    /// Returns the region of a request, if the whole access is permitted.
    pub(super) fn region(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        asked: Access,
    ) -> Result<RegionId, Refusal> {
        let region = match (request.form, self.params.small_index) {
            (Form::Small, SmallIndex::OptimizedKey) => {
                let process = self.tables.process(request)?;
                self.tables.optimized(process, request.address.resource_index())?
            }
            (Form::Small, SmallIndex::Index) => self.tables.index(request)?.1.region(Key(0).optimized())?,
            _ => {
                let guarded = self.params.region_generation;
                let (_, slot) = self.tables.index(request)?;
                if guarded {
                    slot.check_generation(request.address.ri_generation())?;
                }
                slot.check_enabled()?;
                slot.region(Key(request.selector))?
            }
        };
        // `SES-MODE-002`: a packet that may arrive twice may only reach an idempotent region.
        let idempotent = self.regions.get(region).is_some_and(|found| found.region.key.is_idempotent());
        if rx.mode == Mode::Rudi && !idempotent {
            return Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::NotIdempotent));
        }
        let length = request.total.into();
        self.regions.access(region, asked, request.buffer_offset, length, &self.params)?;
        Ok(region)
    }

    /// Ends the messages of a closed context, because the rest of them will not come.
    pub(super) fn close_inbound(&mut self, pdc: PdcHandle) {
        let lost: Vec<_> = self.messages.range((pdc, 0)..=(pdc, u16::MAX)).map(|(id, _)| *id).collect();
        for id in lost {
            if let Some(RxMessage { fate: Placement::Land(landing), .. }) = self.messages.remove(&id) {
                self.give_up(landing);
            }
        }
    }

    pub(super) fn name_response(&mut self, request: &SesRequest) -> u16 {
        if request.form != Form::Std {
            return 0;
        }
        self.next.response = self.next.response.wrapping_add(1).max(1);
        self.next.response
    }
}

/// Checks the delivery mode: UUD carries datagrams only, RUDI idempotent requests only (`WIRE-AMO-004`).
fn permitted_by(mode: Mode, request: &SesRequest, by_uud: UudOpcode) -> Result<(), Refusal> {
    let fits = match mode {
        Mode::Rud | Mode::Rod => true,
        Mode::Uud => match request.opcode() {
            Opcode::UET_DATAGRAM_SEND => true,
            opcode => opcode == Opcode::UET_SEND && by_uud == UudOpcode::Send,
        },
        Mode::Rudi => {
            matches!(request.opcode(), Opcode::UET_NO_OP | Opcode::UET_WRITE | Opcode::UET_READ)
        }
    };
    if fits { Ok(()) } else { Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::Mode)) }
}

/// Returns the key of a message with several packets. `SES-MODE-003`: RUDI keeps no state, and serves each packet
/// separately.
///
/// `WIRE-SES-003`, `WIRE-SES-005`: short headers and datagrams are for messages of one packet.
fn message_id(rx: &RxRequest, request: &SesRequest) -> Result<Option<(PdcHandle, u16)>, Refusal> {
    let single = request.form != Form::Std || request.opcode() == Opcode::UET_DATAGRAM_SEND;
    match rx.ticket {
        _ if request.is_whole() => Ok(None),
        _ if single => Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::NotWhole)),
        Ticket::Pdc(pdc, _) => Ok(Some((pdc, request.message))),
        Ticket::Rudi(..) => Ok(None),
        Ticket::Uud => Err(Refusal::new(ReturnCode::OP_VIOLATION, Why::NotWhole)),
    }
}

/// Returns whether a packet that ends at `end` fits its message.
fn fits(request: &SesRequest, end: u64) -> bool {
    let total = u64::from(request.total);
    match request.head.eom() {
        true if request.opcode().is_rendezvous() => end <= total,
        true => end == total,
        false => end <= total,
    }
}
