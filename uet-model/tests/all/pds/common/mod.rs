//! Two endpoints of packet delivery, a network between them, a clock, and a layer above each that does as it is told.
#![allow(dead_code, unreachable_pub)]

pub mod wire;

use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use uet_model::ladder::{Fate, Ladder};
use uet_model::pds::{EventKind, Pds};
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{List, NackCode, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, ResponseData, ResponseDataSmall, Std};

pub const A: usize = 0;
pub const B: usize = 1;
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];
const NAMES: [&str; 2] = ["initiator", "target"];

pub fn address(side: usize) -> IpAddr {
    ADDRESSES[side].into()
}

/// How long a packet is on its way.
pub const DELAY: Duration = Duration::from_micros(1);

/// What the network does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treat {
    Deliver,
    Lose,
    Twice,
    Late(Duration),
    Mark,
    Trim(TrimPoint),
}

/// What the layer above does with a request.
#[derive(Clone, Debug)]
pub enum React {
    /// Answers.
    Answer(TxResponse),
    /// Answers, and sends these in the return direction.
    Return(TxResponse, Vec<TxRequest>),
    /// Takes it back.
    Refuse(NackCode),
    /// Keeps it; the test answers.
    Keep,
}

pub type Above = Box<dyn FnMut(&RxRequest, Psn) -> React>;
pub type Network = Box<dyn FnMut(&Packet) -> Treat>;

pub struct Pair {
    pub now: Time,
    pub ends: [Pds; 2],
    pub above: [Above; 2],
    pub network: Network,
    /// When, to whom, in the order of sending.
    flying: Vec<(Time, u64, usize, Packet)>,
    sent: u64,
    start: Time,
    pub ladder: Ladder,
    pub recording: bool,
    /// What each layer above has been told, requests excepted.
    pub told: [Vec<Indication>; 2],
    /// The requests that each has been given.
    pub given: [Vec<RxRequest>; 2],
    /// Those of them that it has not taken back.
    pub kept: [Vec<RxRequest>; 2],
    pub events: [Vec<EventKind>; 2],
    /// Packets that have passed, lost ones included.
    pub seen: Vec<Packet>,
}

/// Parameters as the sequences suppose them: no congestion control, no ACK asked for, events on.
pub fn plain() -> PdsParams {
    PdsParams {
        start_psn: Some(48),
        first_pdcid: 0x4001,
        event_capacity: 10_000,
        ask_ack_at_eom: false,
        ..PdsParams::default().uncontrolled()
    }
}

impl Pair {
    pub fn new(params: PdsParams) -> Self {
        let target = PdsParams { first_pdcid: 0x8001, ..params.clone() };
        Self::of([params, target])
    }

    pub fn of([a, b]: [PdsParams; 2]) -> Self {
        let ends = [Pds::new(a, address(A), 1).unwrap(), Pds::new(b, address(B), 2).unwrap()];
        Pair {
            now: Time::ZERO,
            ends,
            above: [
                Box::new(|_, _| React::Answer(plain_response(0))),
                Box::new(|_, _| React::Answer(plain_response(0))),
            ],
            network: Box::new(|_| Treat::Deliver),
            flying: Vec::new(),
            sent: 0,
            start: Time::ZERO,
            ladder: Ladder::new((NAMES[A], address(A)), (NAMES[B], address(B))),
            recording: true,
            told: Default::default(),
            given: Default::default(),
            kept: Default::default(),
            events: Default::default(),
            seen: Vec::new(),
        }
    }

    /// A pair with a context that has sent PSNs 48 to 332, all answered and nothing in the return direction: as section 9
    /// supposes.
    pub fn at_332(params: PdsParams) -> Self {
        let mut pair = Pair::new(params);
        pair.recording = false;
        for message in 0..285 {
            pair.send(A, message);
            pair.run_for(Duration::from_micros(20));
        }
        pair.run_for(Duration::from_micros(200));
        pair.reset();
        pair
    }

    /// Starts the record here, at time 0 of the ladder.
    pub fn reset(&mut self) {
        assert!(self.flying.is_empty());
        self.recording = true;
        self.ladder = Ladder::new((NAMES[A], address(A)), (NAMES[B], address(B)));
        (self.told, self.given, self.kept, self.events) = Default::default();
        self.seen.clear();
        self.start = self.now;
    }

    /// Sends a request of one packet by the usual route.
    pub fn send(&mut self, side: usize, message: u64) {
        self.request(Via::Route(route(1 - side, Mode::Rud)), side, request(message));
    }

    pub fn request(&mut self, via: Via, side: usize, request: TxRequest) {
        self.ends[side].request(self.now, via, request).unwrap();
        self.settle();
    }

    /// The context that the initiator uses.
    pub fn context(&self) -> PdcHandle {
        self.ends[A].context_of(&route(B, Mode::Rud)).expect("a context")
    }

    /// Lets everybody do what can be done at this moment.
    pub fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for side in [A, B] {
                while let Some(indication) = self.ends[side].poll_indication() {
                    quiet = false;
                    self.indicate(side, indication);
                }
                self.note(side);
                while let Some(packet) = self.ends[side].poll_transmit(self.now) {
                    quiet = false;
                    self.note(side);
                    self.carry(packet);
                }
                self.note(side);
            }
            if quiet {
                return;
            }
        }
    }

    fn note(&mut self, side: usize) {
        while let Some(event) = self.ends[side].poll_event() {
            if self.recording {
                if !matches!(event.kind, EventKind::Numbered(_) | EventKind::Answered(_)) {
                    self.ladder.note(self.elapsed(event.at), address(side), event);
                }
                self.events[side].push(event.kind);
            }
        }
    }

    fn elapsed(&self, at: Time) -> Time {
        Time((at - self.start).as_nanos() as u64)
    }

    fn indicate(&mut self, side: usize, indication: Indication) {
        let Indication::Request(given) = indication else {
            return self.told[side].push(indication);
        };
        let psn = match given.ticket {
            Ticket::Pdc(_, psn) => psn,
            _ => Psn(0),
        };
        let reaction = (self.above[side])(&given, psn);
        let ticket = given.ticket;
        if !matches!(reaction, React::Refuse(_)) {
            self.kept[side].push(given.clone());
        }
        self.given[side].push(given);
        match reaction {
            React::Answer(response) => self.ends[side].respond(self.now, ticket, response),
            React::Refuse(code) => self.ends[side].refuse(self.now, ticket, code),
            React::Keep => {}
            React::Return(response, requests) => {
                self.ends[side].respond(self.now, ticket, response);
                let Ticket::Pdc(handle, _) = ticket else { return };
                for request in requests {
                    self.ends[side].request(self.now, Via::Return(handle), request).unwrap();
                }
            }
        }
    }

    fn carry(&mut self, packet: Packet) {
        let treat = (self.network)(&packet);
        let fate = if treat == Treat::Lose { Fate::Lost } else { Fate::Arrives };
        let mut carried = packet.clone();
        let mut copies = 1;
        let mut delay = DELAY;
        match treat {
            Treat::Deliver => {}
            Treat::Lose => copies = 0,
            Treat::Twice => copies = 2,
            Treat::Late(by) => delay += by,
            Treat::Mark => carried.marked = true,
            Treat::Trim(trimmed) => {
                carried.trimmed = Some(trimmed);
                carried.payload = Bytes::new();
            }
        }
        if self.recording {
            let at = self.elapsed(self.now);
            self.ladder.packet(at, &carried, fate);
            self.seen.push(packet);
        }
        let to = usize::from(carried.dst == address(B));
        for _ in 0..copies {
            self.sent += 1;
            self.flying.push((self.now + delay, self.sent, to, carried.clone()));
        }
    }

    /// Puts a packet of the test's own making into the hands of a side, now.
    pub fn inject(&mut self, side: usize, packet: Packet) {
        if self.recording {
            let at = self.elapsed(self.now);
            self.ladder.packet(at, &packet, Fate::Arrives);
        }
        self.ends[side].handle_input(self.now, packet);
        self.settle();
    }

    /// When something happens next.
    fn next(&mut self) -> Option<Time> {
        let packets = self.flying.iter().map(|(at, ..)| *at).min();
        let timers = [A, B].map(|side| self.ends[side].poll_timeout());
        timers.into_iter().chain([packets]).flatten().min()
    }

    fn step(&mut self, at: Time) {
        self.now = self.now.max(at);
        loop {
            let due = self.flying.iter().enumerate().filter(|(_, flying)| flying.0 <= self.now);
            let Some(index) = due.min_by_key(|(_, flying)| (flying.0, flying.1)).map(|(index, _)| index)
            else {
                break;
            };
            let (_, _, to, packet) = self.flying.remove(index);
            self.ends[to].handle_input(self.now, packet);
            self.settle();
        }
        for side in [A, B] {
            if self.ends[side].poll_timeout().is_some_and(|at| at <= self.now) {
                self.ends[side].handle_timeout(self.now);
            }
        }
        self.settle();
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        while let Some(at) = self.next().filter(|at| *at <= end) {
            self.step(at);
        }
        self.now = end;
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.settle();
        for _ in 0..1_000_000 {
            let Some(at) = self.next() else { return };
            self.step(at);
        }
        panic!("it does not come to rest:\n{}", self.ladder);
    }

    /// The responses that a side was told, by message.
    pub fn responses(&self, side: usize) -> Vec<u64> {
        let response = |indication: &Indication| match indication {
            Indication::Response { message, .. } => Some(message.0),
            _ => None,
        };
        self.told[side].iter().filter_map(response).collect()
    }

    pub fn failures(&self, side: usize) -> Vec<(u64, Failure)> {
        let failure = |indication: &Indication| match indication {
            Indication::Failed { message, why } => Some((message.0, *why)),
            _ => None,
        };
        self.told[side].iter().filter_map(failure).collect()
    }
}

pub fn route(to: usize, mode: Mode) -> Route {
    Route { job: 101, destination: address(to), class: 0, mode, pool: Pool::General, context: 0 }
}

/// A write of 4 KiB that is one packet, as SES would make it.
pub fn request(message: u64) -> TxRequest {
    let head = Std::build(uet_wire::registry::Opcode::UET_WRITE).head(|h| h.som(true).eom(true));
    let head = head.message_id(message as u16).request_length(4096).done().unwrap();
    TxRequest {
        message: MessageKey(message),
        som: true,
        eom: true,
        next_hdr: NextHdr::UET_HDR_REQUEST_STD,
        head: head.bytes().iter().copied().collect(),
        payload: Bytes::from(vec![message as u8; 4096]),
    }
}

/// One packet of a read: no payload.
pub fn read(message: u64, som: bool, eom: bool) -> TxRequest {
    let head = Std::build(uet_wire::registry::Opcode::UET_READ).head(|h| h.som(som).eom(eom));
    let head = head.message_id(message as u16).request_length(8).done().unwrap();
    let head = head.bytes().iter().copied().collect();
    TxRequest { som, eom, head, payload: Bytes::new(), ..request(message) }
}

/// Read data on its way back, for a read with a standard header.
pub fn data(message: u64, id: u16, of: u16, som: bool, eom: bool, length: usize) -> TxRequest {
    let head = ResponseData::build().response_message_id(id).read_request_message_id(of);
    let head = head.payload_length(length as u16).modified_length(length as u32).done().unwrap();
    TxRequest {
        som,
        eom,
        next_hdr: NextHdr::UET_HDR_RESPONSE_DATA,
        head: head.bytes().iter().copied().collect(),
        payload: Bytes::from(vec![7; length]),
        ..request(message)
    }
}

/// The same for a small or medium header.
pub fn data_small(message: u64, of: Psn, length: usize) -> TxRequest {
    let head =
        ResponseDataSmall::build().payload_length(length as u16).original_request_psn(of).done().unwrap();
    let next_hdr = NextHdr::UET_HDR_RESPONSE_DATA_SMALL;
    let head = head.bytes().iter().copied().collect();
    TxRequest { next_hdr, head, payload: Bytes::from(vec![7; length]), ..request(message) }
}

fn answer(
    opcode: ResponseOpcode,
    list: List,
    code: ReturnCode,
    message: u16,
    delivery: Delivery,
) -> TxResponse {
    let head = Response::build(opcode, code).head(|h| h.list(list)).message_id(message).done().unwrap();
    TxResponse {
        delivery,
        next_hdr: NextHdr::UET_HDR_RESPONSE,
        head: head.bytes().iter().copied().collect(),
        payload: Bytes::new(),
    }
}

/// The default response.
pub fn plain_response(message: u16) -> TxResponse {
    let opcode = ResponseOpcode::UET_DEFAULT_RESPONSE;
    answer(opcode, List::UET_EXPECTED, ReturnCode::OK, message, Delivery::Default)
}

/// UET_RESPONSE, RC_OK: not the default, and not guaranteed.
pub fn ok_response(message: u16) -> TxResponse {
    answer(ResponseOpcode::UET_RESPONSE, List::UET_EXPECTED, ReturnCode::OK, message, Delivery::Once)
}

/// A match on the overflow list: guaranteed.
pub fn guaranteed(message: u16) -> TxResponse {
    answer(ResponseOpcode::UET_RESPONSE, List::UET_OVERFLOW, ReturnCode::OK, message, Delivery::Guaranteed)
}

/// Read data that rides in the ACK.
pub fn data_in_ack(message: u16, length: usize) -> TxResponse {
    let head = ResponseData::build().read_request_message_id(message).payload_length(length as u16);
    let head = head.modified_length(length as u32).done().unwrap();
    TxResponse {
        delivery: Delivery::GuaranteedByRepetition,
        next_hdr: NextHdr::UET_HDR_RESPONSE_DATA,
        head: head.bytes().iter().copied().collect(),
        payload: Bytes::from(vec![7; length]),
    }
}

/// The same request psn of a packet that is a RUD or ROD request.
pub fn psn_of(packet: &Packet) -> Option<u32> {
    let bytes = packet.to_wire();
    let uet = uet_wire::Uet::parse_lax(&bytes).0;
    uet.pds.and_then(|pds| pds.request()).map(|request| request.psn().0)
}

/// Whether it is a packet of this type.
pub fn is(packet: &Packet, kind: uet_wire::registry::PdsType) -> bool {
    packet.head.first().is_some_and(|byte| byte >> 3 == kind.code())
}

/// Loses the first packet that fits.
pub fn lose_first(mut fits: impl FnMut(&Packet) -> bool + 'static) -> Network {
    let mut done = false;
    Box::new(move |packet| {
        if !done && fits(packet) {
            done = true;
            return Treat::Lose;
        }
        Treat::Deliver
    })
}
