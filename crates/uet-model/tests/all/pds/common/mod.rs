//! Two endpoints of packet delivery on a simulated network, each with a scripted layer above.
#![allow(dead_code, unreachable_pub)]

pub mod wire;

use bytes::Bytes;
use core::net::IpAddr;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use uet_model::ladder::{Fate, Ladder};
use uet_model::network::{Impairment, Network, Observer, Treatment};
use uet_model::pds::{EventKind, Pds};
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{List, NackCode, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, ResponseData, ResponseDataSmall, Std};

pub const A: usize = 0;
pub const B: usize = 1;
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 12]];
const NAMES: [&str; 2] = ["initiator", "target"];

pub fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub fn address(side: usize) -> IpAddr {
    ADDRESSES[side].into()
}

/// The reaction of the layer above to a request.
#[derive(Clone, Debug)]
pub enum React {
    /// Sends this response.
    Answer(TxResponse),
    /// Sends this response, and these requests in the return direction.
    Return(TxResponse, Vec<TxRequest>),
    /// Refuses the request with this NACK code.
    Refuse(NackCode),
    /// Keeps the request; the test responds.
    Keep,
}

pub type Above = Box<dyn FnMut(&RxRequest, Psn) -> React>;

pub struct Pair {
    pub now: Time,
    pub ends: Network<Pds, Record>,
    pub above: [Above; 2],
    /// The indications of each layer above, without requests.
    pub told: [Vec<Indication>; 2],
    /// The requests that each layer above received.
    pub given: [Vec<RxRequest>; 2],
    /// The requests among them that it did not refuse.
    pub kept: [Vec<RxRequest>; 2],
}

/// The record of a pair. Nothing is added while `recording` is false.
pub struct Record {
    pub recording: bool,
    start: Time,
    pub ladder: Ladder,
    pub events: [Vec<EventKind>; 2],
    /// The packets that were sent, including lost packets.
    pub seen: Vec<Packet>,
}

impl Default for Record {
    fn default() -> Self {
        let ladder = Ladder::new((NAMES[A], address(A)), (NAMES[B], address(B)));
        Record { recording: true, start: Time::ZERO, ladder, events: Default::default(), seen: Vec::new() }
    }
}

impl Record {
    fn packet(&mut self, now: Time, packet: &Packet, fate: Fate) {
        if self.recording {
            self.ladder.packet(self.elapsed(now), packet, fate);
        }
    }

    fn elapsed(&self, at: Time) -> Time {
        Time((at - self.start).as_nanos() as u64)
    }
}

impl Observer<Pds> for Record {
    fn node(&mut self, pds: &mut Pds) {
        let side = usize::from(pds.address() == address(B));
        while let Some(event) = pds.poll_event() {
            if self.recording {
                if !matches!(event.kind, EventKind::Numbered(_) | EventKind::Answered(_)) {
                    self.ladder.note(self.elapsed(event.at), address(side), event);
                }
                self.events[side].push(event.kind);
            }
        }
    }

    fn sent(&mut self, now: Time, packet: &Packet, treatment: &Treatment) {
        if self.recording {
            let fate = if treatment.lost { Fate::Lost } else { Fate::Arrives };
            self.packet(now, &treatment.apply(packet.clone()).expect("a whole PDS header"), fate);
            self.seen.push(packet.clone());
        }
    }
}

/// A pair dereferences to its record.
impl Deref for Pair {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.ends.observer
    }
}

impl DerefMut for Pair {
    fn deref_mut(&mut self) -> &mut Record {
        &mut self.ends.observer
    }
}

/// Returns parameters for the sequences: no congestion control, no requested ACKs, events on.
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
        let mut ends = Network::new(0);
        ends.add(address(A), Pds::new(a, address(A), 1).unwrap());
        ends.add(address(B), Pds::new(b, address(B), 2).unwrap());
        let above = || -> Above { Box::new(|_, _| React::Answer(plain_response(0))) };
        Pair {
            now: Time::ZERO,
            ends,
            above: [above(), above()],
            told: Default::default(),
            given: Default::default(),
            kept: Default::default(),
        }
    }

    /// Replaces the rules of the network.
    pub fn impair(&mut self, rules: &[&str]) {
        self.ends.fabric().repair();
        rules.iter().for_each(|text| self.ends.fabric().impair(text.parse().unwrap()));
    }

    /// Replaces the rules of the network by one with a predicate.
    pub fn impair_only(&mut self, rule: &str, fits: impl Fn(&Packet) -> bool + Send + Sync + 'static) {
        self.ends.fabric().repair();
        self.ends.fabric().impair(rule.parse::<Impairment>().unwrap().only(fits));
    }

    /// Returns a pair with a context that has sent PSNs 48 to 332. All are answered and the return direction is unused,
    /// as section 9 assumes.
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

    /// Starts a new record here, at time 0 of the ladder.
    pub fn reset(&mut self) {
        assert_eq!(self.ends.fabric().next_at(), None);
        (self.told, self.given, self.kept) = Default::default();
        self.ends.observer = Record { start: self.now, ..Record::default() };
    }

    /// Sends a request of one packet on the usual route.
    pub fn send(&mut self, side: usize, message: u64) {
        self.request(Via::Route(route(1 - side, Mode::Rud)), side, request(message));
    }

    pub fn request(&mut self, via: Via, side: usize, request: TxRequest) {
        self.ends[side].request(self.now, via, request).unwrap();
        self.settle();
    }

    /// Returns the context that the initiator uses.
    pub fn context(&self) -> PdcHandle {
        self.ends[A].context_of(&route(B, Mode::Rud)).expect("a context")
    }

    /// Runs everything that needs no time to pass.
    pub fn settle(&mut self) {
        self.ends.advance(self.now);
        loop {
            let mut quiet = true;
            for side in [A, B] {
                while let Some(indication) = self.ends[side].poll_indication() {
                    quiet = false;
                    self.indicate(side, indication);
                }
            }
            if !self.ends.transmit() && quiet {
                return;
            }
        }
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

    /// Delivers a packet to a side, now.
    pub fn inject(&mut self, side: usize, packet: Packet) {
        self.ends.observer.packet(self.now, &packet, Fate::Arrives);
        self.ends[side].handle_input(self.now, packet);
        self.settle();
    }

    fn step(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.ends.advance(self.now);
        while self.ends.deliver() {
            self.settle();
        }
        self.ends.expire();
        self.settle();
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        while let Some(at) = self.ends.next_at().filter(|at| *at <= end) {
            self.step(at);
        }
        self.now = end;
    }

    /// Runs until no event is left.
    pub fn run(&mut self) {
        self.settle();
        for _ in 0..1_000_000 {
            let Some(at) = self.ends.next_at() else { return };
            self.step(at);
        }
        panic!("no end:\n{}", self.ladder);
    }

    /// Returns the responses that a side received, by message.
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

/// Returns a write of 4 KiB in one packet, as SES builds it.
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

/// Returns one packet of a read, without payload.
pub fn read(message: u64, som: bool, eom: bool) -> TxRequest {
    let head = Std::build(uet_wire::registry::Opcode::UET_READ).head(|h| h.som(som).eom(eom));
    let head = head.message_id(message as u16).request_length(8).done().unwrap();
    let head = head.bytes().iter().copied().collect();
    TxRequest { som, eom, head, payload: Bytes::new(), ..request(message) }
}

/// Returns a packet of read data, for a read with a standard header.
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

/// Returns the fields of a request with a small or medium header.
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

/// Returns the default response.
pub fn plain_response(message: u16) -> TxResponse {
    let opcode = ResponseOpcode::UET_DEFAULT_RESPONSE;
    answer(opcode, List::UET_EXPECTED, ReturnCode::OK, message, Delivery::Default)
}

/// Returns UET_RESPONSE with RC_OK, which is neither the default nor guaranteed.
pub fn ok_response(message: u16) -> TxResponse {
    answer(ResponseOpcode::UET_RESPONSE, List::UET_EXPECTED, ReturnCode::OK, message, Delivery::Once)
}

/// Returns the guaranteed response for a match on the overflow list.
pub fn guaranteed(message: u16) -> TxResponse {
    answer(ResponseOpcode::UET_RESPONSE, List::UET_OVERFLOW, ReturnCode::OK, message, Delivery::Guaranteed)
}

/// Returns read data for an ACK.
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

/// Returns the PSN of a RUD or ROD request.
pub fn psn_of(packet: &Packet) -> Option<u32> {
    let bytes = packet.to_wire();
    let uet = uet_wire::Uet::parse_lax(&bytes).0;
    uet.pds.and_then(|pds| pds.request()).map(|request| request.psn().0)
}

/// Returns true for a packet of this type.
pub fn is(packet: &Packet, kind: uet_wire::registry::PdsType) -> bool {
    packet.head.first().is_some_and(|byte| byte >> 3 == kind.code())
}
