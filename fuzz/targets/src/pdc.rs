//! One packet delivery endpoint that gets arbitrary events at any time. It does not panic, its state is bounded, and
//! each of its requests completes at most once. Peers that have confirmed no context get little for what they sent.

use bytes::Bytes;
use core::time::Duration;
use std::collections::HashSet;
use uet_conformance::draw::{Choices, Source};
use uet_model::cc::{CcParams, NetworkParams};
use uet_model::pds::Pds;
use uet_model::*;
use uet_wire::registry::{NackCode, NextHdr};

const US: [u8; 4] = [10, 0, 1, 12];
const PEERS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 9]];
/// Number of possible contexts.
const CONTEXTS: u16 = 4;
/// More than all pools together.
const HELD: usize = 4000;
/// Maximum ratio of bytes to peers and bytes from them, while their addresses may be forged. A short request gets an ACK and a
/// grant, and repetitions of CLEAR_REQUEST and CLOSE_REQUEST.
const GAIN: usize = 16;
/// The length of the headers of IPv4 and UDP.
const OUTER: usize = 28;

pub(super) fn run(data: &[u8]) {
    let mut steps = Choices(data);
    let kind = byte(&mut steps);
    let mut end = End::new(kind);
    while !steps.is_over() {
        end.step(&mut steps);
        assert!(end.pds.contexts() <= usize::from(CONTEXTS), "{} contexts", end.pds.contexts());
        assert!(end.pds.held() < HELD, "{} are held", end.pds.held());
    }
    end.rest(&mut steps);
    let [came, went] = end.strange;
    assert!(end.is_known || went <= GAIN * came, "{went} bytes went to strangers, who sent {came}");
}

struct End {
    pds: Pds,
    now: Time,
    /// Requests that wait for a local answer.
    owed: Vec<Ticket>,
    /// Local messages, and those that have completed.
    sent: u64,
    ended: HashSet<MessageKey>,
    /// Bytes from and to peers, until `is_known`.
    strange: [usize; 2],
    /// True after a peer has confirmed a context, or after the endpoint sent packets of its own accord.
    is_known: bool,
}

/// Returns parameters with small limits.
fn params(kind: u8) -> PdsParams {
    let network = NetworkParams::default();
    let congestion = match kind % 4 {
        0 => CcParams::none(&network),
        1 => CcParams::nscc(&network),
        2 => CcParams::rccc(&network),
        _ => CcParams::both(&network),
    };
    let on = |bit: u8| kind >> bit & 1 == 1;
    PdsParams {
        first_pdcid: 0x8001,
        start_psn: Some(0xffff_fff0),
        general_pdcs: CONTEXTS - 1,
        reserved_pdcs: 1,
        tx_queue: 16,
        rx_packets: 20,
        stored_responses: 10,
        receive_slots: 2000,
        answer_queue: 50,
        rudi_requests: 5,
        cccs: 3,
        event_capacity: if on(2) { 100 } else { 0 },
        idle_time: Duration::from_micros(if on(3) { 50 } else { 0 }),
        fast_loss_packets: if on(4) { 3 } else { 0 },
        infer_loss_packets: if on(4) { 3 } else { 0 },
        ask_ack_at_eom: on(5),
        nack_ses_processing: on(5),
        ack_unmarked_duplicates: on(6),
        psn_range: if on(7) { 64 } else { 1 << 31 },
        congestion: congestion.expect("the defaults are right"),
        ..PdsParams::default()
    }
}

impl End {
    fn new(kind: u8) -> Self {
        let pds = Pds::new(params(kind), US.into(), 9).expect("the parameters are right");
        End { pds, now: Time(0), owed: Vec::new(), sent: 0, ended: HashSet::new(), strange: [0; 2], is_known: false }
    }

    fn step(&mut self, steps: &mut Choices<'_>) {
        match steps.below(16) {
            0..=7 => {
                let packet = packet(steps);
                self.strange[0] += OUTER + packet.wire_len();
                self.pds.handle_input(self.now, packet);
            }
            8 => self.pass(Duration::from_nanos(1 << steps.below(31))),
            9 => {
                let at = self.pds.poll_timeout().unwrap_or(self.now);
                self.now = self.now.max(at);
                self.pass(Duration::ZERO);
            }
            10 => {
                self.is_known = true;
                self.request(steps);
            }
            11 => {
                let (which, how) = (usize::from(byte(steps)), byte(steps));
                if !self.owed.is_empty() {
                    let ticket = self.owed.swap_remove(which % self.owed.len());
                    self.pds.respond(self.now, ticket, response(how));
                }
            }
            12 => {
                self.is_known = true;
                self.ask(steps);
            }
            _ => _ = self.transmit(),
        }
        self.listen(steps);
    }

    fn transmit(&mut self) -> Option<Packet> {
        let packet = self.pds.poll_transmit(self.now)?;
        self.strange[1] += if self.is_known { 0 } else { OUTER + packet.wire_len() };
        Some(packet)
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
        self.pds.handle_timeout(self.now);
    }

    fn request(&mut self, steps: &mut Choices<'_>) {
        let (how, ticket) = (byte(steps), self.owed.first().copied());
        let via = match ticket {
            Some(Ticket::Pdc(handle, _)) if how & 0x80 > 0 => Via::Return(handle),
            _ => Via::Route(route(how)),
        };
        let standard = if matches!(via, Via::Return(_)) {
            NextHdr::UET_HDR_RESPONSE_DATA
        } else {
            NextHdr::UET_HDR_REQUEST_STD
        };
        self.sent += 1;
        let request = TxRequest {
            message: MessageKey(self.sent),
            som: true,
            eom: true,
            next_hdr: standard,
            head: [how; 20].into_iter().collect(),
            payload: Bytes::from(vec![how; usize::from(byte(steps)) * 16]),
        };
        _ = self.pds.request(self.now, via, request);
    }

    fn ask(&mut self, steps: &mut Choices<'_>) {
        let (what, how) = (byte(steps), byte(steps));
        let (now, route) = (self.now, route(how));
        let owed = self.owed.iter().find_map(|ticket| match ticket {
            Ticket::Pdc(handle, _) => Some(*handle),
            _ => None,
        });
        let handle = if what & 0x80 > 0 { owed } else { self.pds.context_of(&route) };
        match (what % 8, handle) {
            (0, _) => self.pds.noop(now, route),
            (1, _) => self.pds.negotiate(now, route, 7),
            (2, _) => self.pds.set_penalty(how),
            (3, Some(handle)) => self.pds.hold(now, handle),
            (4, Some(handle)) => self.pds.release(now, handle),
            (5, Some(handle)) => self.pds.probe(now, handle),
            (_, Some(handle)) => self.pds.close(now, handle),
            (_, None) => {}
        }
    }

    /// Acts as the upper layer on indications.
    fn listen(&mut self, steps: &mut Choices<'_>) {
        while let Some(indication) = self.pds.poll_indication() {
            match indication {
                Indication::Request(request) => match byte(steps) {
                    how @ 0..128 => self.pds.respond(self.now, request.ticket, response(how)),
                    128..144 => self.pds.refuse(self.now, request.ticket, NackCode::NO_SES_MSG_AVAIL),
                    _ => self.owed.push(request.ticket),
                },
                Indication::Response { message, .. } | Indication::Failed { message, .. } => {
                    assert!(message.0 <= self.sent, "of {message:?} nobody has heard");
                    assert!(self.ended.insert(message), "{message:?} ends twice");
                }
                Indication::Confirmed(_) => self.is_known = true,
                _ => {}
            }
        }
        while let Some(event) = self.pds.poll_event() {
            assert!(!event.to_string().is_empty());
        }
    }

    /// Sends no answers, which must be bounded too. Then time passes.
    fn rest(&mut self, steps: &mut Choices<'_>) {
        let answers = core::iter::from_fn(|| self.transmit()).take(1000).count();
        assert!(answers < 1000, "it has more and more to send");
        for _ in 0..100 {
            let Some(at) = self.pds.poll_timeout() else { break };
            self.now = self.now.max(at);
            self.pass(Duration::ZERO);
            self.listen(steps);
            let sent = core::iter::from_fn(|| self.transmit()).take(1000).count();
            assert!(sent < 1000, "it has more and more to send");
        }
    }
}

fn byte(steps: &mut Choices<'_>) -> u8 {
    steps.below(256) as u8
}

fn route(how: u8) -> Route {
    Route {
        job: 101,
        destination: PEERS[usize::from(how & 1)].into(),
        class: how >> 1 & 1,
        mode: [Mode::Rud, Mode::Rod, Mode::Rudi, Mode::Uud][usize::from(how >> 2 & 3)],
        pool: if how & 0x10 > 0 { Pool::Reserved } else { Pool::General },
        context: 0,
    }
}

fn response(how: u8) -> TxResponse {
    let delivery = match how % 4 {
        0 => Delivery::Default,
        1 => Delivery::Once,
        2 => Delivery::Guaranteed,
        _ => Delivery::GuaranteedByRepetition,
    };
    let data = how % 4 == 3;
    TxResponse {
        delivery,
        next_hdr: if data { NextHdr::UET_HDR_RESPONSE_DATA } else { NextHdr::UET_HDR_RESPONSE },
        head: [0; 20].into_iter().take(if data { 20 } else { 12 }).collect(),
        payload: Bytes::from(vec![how; if data { 8 } else { 0 }]),
    }
}

/// Builds an almost valid packet: few identifiers, a close PSN, arbitrary rest.
fn packet(steps: &mut Choices<'_>) -> Packet {
    let [kind, flags, psn, offset, ids, around] = [(); 6].map(|()| byte(steps));
    let mut head = vec![(2 + kind % 14) << 3 | kind >> 5 & 7, flags];
    head.extend(i16::from(offset as i8).to_be_bytes());
    head.extend(0xffff_fff0u32.wrapping_add(psn.into()).to_be_bytes());
    head.extend([0x4001u16, 0x4002, 0, 0x0102][usize::from(ids & 3)].to_be_bytes());
    head.extend([0x8001u16, 0x8002, 0, 0x1000 | u16::from(offset)][usize::from(ids >> 2 & 3)].to_be_bytes());
    head.extend(steps.take([0, 4, 12, 20, 44, 60, 80, 4][usize::from(ids >> 4 & 7)]));
    let trimmed = match around % 8 {
        0 => Some(TrimPoint::Fabric),
        1 => Some(TrimPoint::LastHop),
        _ => None,
    };
    Packet {
        src: PEERS[usize::from(around & 0x80 > 0)].into(),
        dst: US.into(),
        class: around >> 6 & 1,
        priority: Priority::Low,
        marked: around & 0x20 > 0,
        trimmed,
        entropy: around.into(),
        ttl: Packet::TTL,
        udp_checksum: 0,
        security: None,
        head: head.into_iter().collect(),
        payload: Bytes::from(vec![1; if ids & 0x80 > 0 { 4096 } else { 0 }]),
    }
}
