//! RUDI, UUD and protected packets, with and without congestion control.

use super::common::*;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use uet_model::cc::{CcParams, NetworkParams};
use uet_model::pds::{Association, Dropped, EventKind, OpenError, Pds, Protect, SealError, SecureContext};
use uet_model::*;
use uet_wire::pds::Pds as Header;
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::tss::TssShort;
use uet_wire::{Psn, Uet};

fn rudi(pair: &mut Pair, message: u64) {
    pair.request(Via::Route(route(B, Mode::Rudi)), A, request(message));
}

/// Returns the identifiers and retx flags of RUDI packets of a type.
fn ids(pair: &Pair, kind: PdsType) -> Vec<(u32, bool)> {
    let id = |packet: &Packet| match Uet::parse_lax(&packet.head).0.pds? {
        Header::Rudi(rudi) if rudi.prologue().kind() == kind => Some((rudi.pkt_id(), rudi.retx())),
        _ => None,
    };
    pair.seen.iter().filter_map(id).collect()
}

#[test]
fn rudi_request_has_no_context() {
    let mut pair = Pair::new(plain());
    rudi(&mut pair, 1);
    rudi(&mut pair, 2);
    pair.run();
    assert_eq!([pair.ends[A].contexts(), pair.ends[B].contexts()], [0, 0]);
    assert_eq!(pair.responses(A), [1, 2]);
    assert_eq!(ids(&pair, PdsType::RUDI_REQ), ids(&pair, PdsType::RUDI_RESP));
    assert_eq!([pair.ends[A].held(), pair.ends[B].held()], [0, 0]);
}

#[test]
fn rudi_duplicates_are_delivered() {
    let mut pair = Pair::new(plain());
    pair.impair_only("drop 1", |packet| is(packet, PdsType::RUDI_RESP));
    rudi(&mut pair, 1);
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A)), (2, vec![1]));
    let again: Vec<bool> = ids(&pair, PdsType::RUDI_RESP).iter().map(|id| id.1).collect();
    assert_eq!(again, [false, true], "it answers a retransmission");
    assert_eq!([pair.ends[A].held(), pair.ends[B].held()], [0, 0]);
}

#[test]
fn trimmed_rudi_request_is_retransmitted_at_once() {
    let mut pair = Pair::new(plain());
    pair.impair(&["trim 64 1"]);
    rudi(&mut pair, 1);
    pair.run_for(us(5));
    let nack = Uet::parse(&pair.seen[1].head).unwrap().pds.unwrap().nack().unwrap();
    assert_eq!((nack.nt(), nack.nack_code()), (true, NackCode::TRIMMED));
    assert_eq!(nack.nack_pkt_id(), Some(ids(&pair, PdsType::RUDI_REQ)[0].0));
    assert_eq!(pair.responses(A), [1]);
}

#[test]
fn failed_rudi_request_releases_everything() {
    let mut pair = Pair::new(plain());
    pair.impair(&["drop"]);
    rudi(&mut pair, 1);
    pair.run();
    assert_eq!(pair.failures(A), [(1, Failure::TimedOut)]);
    assert_eq!(ids(&pair, PdsType::RUDI_REQ).len(), 6);
    let mut pair = Pair::new(plain());
    pair.above[B] = Box::new(|_, _| React::Refuse(NackCode::NO_RESOURCE));
    rudi(&mut pair, 1);
    pair.run();
    assert_eq!(pair.failures(A), [(1, Failure::Refused(NackCode::NO_RESOURCE.code()))]);
    assert_eq!([pair.ends[A].held(), pair.ends[B].held()], [0, 0]);
}

#[test]
fn rudi_requests_are_bounded_at_both_ends() {
    let mut pair = Pair::new(PdsParams { rudi_requests: 2, ..plain() });
    pair.above[B] = Box::new(|_, _| React::Keep);
    let via = Via::Route(route(B, Mode::Rudi));
    let now = pair.now;
    let taken =
        (0..5).take_while(|message| pair.ends[A].request(now, via, request(*message)).is_ok()).count();
    assert_eq!(taken, 2);
    pair.run_for(us(5));
    let tickets: Vec<Ticket> = pair.given[B].iter().map(|given| given.ticket).collect();
    pair.ends[B].respond(pair.now, tickets[0], plain_response(0));
    pair.run_for(us(5));
    assert!(pair.told[A].contains(&Indication::Resumed(via)));
}

#[test]
fn a_datagram_is_never_answered() {
    let mut pair = Pair::new(plain());
    let via = Via::Route(route(B, Mode::Uud));
    pair.request(via, A, request(1));
    pair.impair(&["trim 64"]);
    pair.request(via, A, request(2));
    pair.run();
    assert_eq!((pair.seen.len(), pair.given[B].len()), (2, 1));
    assert_eq!(pair.told, [vec![], vec![]]);
    assert_eq!(pair.ends[B].dropped(Dropped::Trimmed), 1);
}

const DOMAIN: SecureContext = SecureContext { sdi: 7, ssi: None };

/// A test protection: a counter, and inverted bytes.
struct Turned {
    counter: u64,
    /// The last counter of the key.
    limit: u64,
    counters: Arc<Mutex<Vec<u64>>>,
}

impl Turned {
    fn turn(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|byte| !byte).collect()
    }
}

impl Protect for Turned {
    fn outbound(&mut self, _: &Route) -> Option<SecureContext> {
        Some(DOMAIN)
    }

    fn seal(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError> {
        if self.counter == self.limit {
            return Err(SealError::CounterExhausted);
        }
        self.counter += 1;
        self.counters.lock().unwrap().push(self.counter);
        let tss = TssShort::build()
            .head(|head| head.sdi(DOMAIN.sdi))
            .tsc(|tsc| tsc.counter(self.counter))
            .done()
            .unwrap();
        // The payload includes the headers, after their length.
        let mut hidden = vec![packet.head.len() as u8];
        hidden.extend(Turned::turn(&packet.head));
        hidden.extend(Turned::turn(&packet.payload));
        let association = Association { context: DOMAIN, an: false, epoch: 0, counter: self.counter };
        let packet = Packet { head: tss.bytes().iter().copied().collect(), payload: hidden.into(), ..packet };
        Ok((packet, Some(association)))
    }

    fn open(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError> {
        let tss = Uet::parse(&packet.head).map_err(|_| OpenError::Malformed)?.tss;
        let tss = tss.ok_or(OpenError::Unprotected)?;
        let (length, hidden) = packet.payload.split_first().ok_or(OpenError::Malformed)?;
        let (head, payload) = hidden.split_at_checked(usize::from(*length)).ok_or(OpenError::NotAuthentic)?;
        let context = SecureContext { sdi: tss.head().sdi(), ssi: tss.ssi() };
        let association = Association { context, an: false, epoch: 0, counter: tss.tsc().counter() };
        let head = Turned::turn(head).into_iter().collect();
        let packet = Packet { head, payload: Turned::turn(payload).into(), ..packet.clone() };
        Ok((packet, Some(association)))
    }
}

#[test]
fn protected_packets_have_unique_counters() {
    let (mut pair, counters) = protected(u64::MAX);
    pair.impair_only("drop 1", |packet| {
        assert!(Uet::parse(&packet.head).unwrap().tss.is_some());
        true
    });
    pair.send(A, 1);
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A)), (1, vec![1]));
    assert_eq!(pair.given[B][0].payload, request(1).payload);
    assert_eq!(*counters.lock().unwrap(), [1, 2, 1001], "the retransmission takes a new one");
    // An unprotected packet is dropped.
    pair.inject(B, wire::Rud::syn(48, 0).packet());
    assert_eq!((pair.given[B].len(), pair.ends[B].dropped(Dropped::Security)), (1, 1));
}

/// A pair with protection whose initiator has this many packet counters.
fn protected(limit: u64) -> (Pair, Arc<Mutex<Vec<u64>>>) {
    let mut pair = Pair::new(plain());
    let counters = Arc::new(Mutex::new(Vec::new()));
    for (side, limit) in [(A, limit), (B, u64::MAX)] {
        let params = PdsParams { start_psn: Some(48), ..plain() };
        let protect = Turned { counter: 1000 * side as u64, limit, counters: counters.clone() };
        pair.ends[side] = Pds::new(params, address(side), 3).unwrap().with_protection(protect);
    }
    (pair, counters)
}

#[test]
fn unsealable_packet_is_counted_and_never_sent() {
    let (mut pair, _) = protected(1);
    pair.send(A, 1);
    pair.send(A, 2);
    pair.run();
    assert_eq!(pair.responses(A), [1], "the second request has no counter left");
    assert!(pair.seen.iter().all(|packet| Uet::parse(&packet.head).unwrap().tss.is_some()));
    let failed = |event: &&EventKind| **event == EventKind::SealFailed(SealError::CounterExhausted);
    let attempts = pair.events[A].iter().filter(failed).count() as u64;
    assert!(attempts > 1, "each retransmission makes another attempt");
    assert_eq!(pair.ends[A].dropped(Dropped::SealFailed), attempts);
    assert_eq!(pair.ends[A].held(), 0, "the request has failed in the end");
}

#[test]
fn packet_of_another_domain_reaches_no_context() {
    let (mut pair, _) = protected(u64::MAX);
    pair.send(A, 1);
    pair.run();
    let mut packet = pair.seen[0].clone();
    let tss = TssShort::build().head(|head| head.sdi(8)).done().unwrap();
    packet.head = tss.bytes().iter().copied().collect();
    pair.inject(B, packet);
    assert_eq!(pair.ends[B].dropped(Dropped::OtherSecureContext), 1);
    assert_eq!(pair.given[B].len(), 1);
}

fn congested(params: CcParams, impairments: &[&str]) -> Pair {
    let mut pair = Pair::new(PdsParams { congestion: params, tx_queue: 500, ..plain() });
    pair.impair(impairments);
    for message in 0..400 {
        pair.send(A, message);
    }
    pair.run();
    assert_eq!((pair.kept[B].len(), pair.responses(A).len()), (400, 400));
    let seen: HashSet<u8> = pair.kept[B].iter().map(|given| given.payload[0]).collect();
    assert_eq!(seen.len(), 256);
    let observed = pair.ends[A].congestion(address(B), 0).unwrap();
    assert!(observed.inflight.is_none_or(|inflight| inflight == 0), "{observed:?}");
    pair
}

#[test]
fn nscc_window_delays_packets() {
    let network = NetworkParams::default();
    let mut most = 0;
    let pair = congested(CcParams::nscc(&network).unwrap(), &[]);
    let mut flying = 0usize;
    for packet in &pair.seen {
        match psn_of(packet) {
            Some(_) => flying += 1,
            None => flying = flying.saturating_sub(1),
        }
        most = most.max(flying);
    }
    assert!((10..60).contains(&most), "112,500 bytes are about 27 packets: {most}");
    let acks = pair.seen.iter().filter(|packet| is(packet, PdsType::ACK_CC)).count();
    assert!(acks > 100 && pair.seen.iter().all(|packet| !is(packet, PdsType::ACK)), "state in every ACK");
    let entropies: HashSet<u16> =
        pair.seen.iter().filter(|p| psn_of(p).is_some()).map(|p| p.entropy).collect();
    assert!(entropies.len() > 100, "sprayed over the paths");
}

#[test]
fn nscc_with_losses_trims_and_marks() {
    let impairments = ["drop 5%", "trim 64 5%", "mark 10%", "delay 30us 5%"];
    congested(CcParams::nscc(&NetworkParams::default()).unwrap(), &impairments);
}

#[test]
fn rccc_sends_by_credit() {
    let pair = congested(CcParams::rccc(&NetworkParams::default()).unwrap(), &[]);
    assert!(pair.seen.iter().all(|packet| !is(packet, PdsType::RUD_REQ)), "requests say what they want");
    let credits =
        pair.events[B].iter().filter(|event| **event == EventKind::Control(CtlType::CREDIT)).count();
    assert!(credits > 50, "{credits} grants");
}

#[test]
fn both_with_losses() {
    congested(CcParams::both(&NetworkParams::default()).unwrap(), &["drop 5%", "trim-last-hop 64 5%"]);
}

#[test]
fn event_queue_is_bounded() {
    let mut pair = Pair::new(PdsParams { event_capacity: 4, ..plain() });
    let now = pair.now;
    for message in 0..10 {
        pair.ends[A].request(now, Via::Route(route(B, Mode::Rud)), request(message)).unwrap();
    }
    while pair.ends[A].poll_transmit(now).is_some() {}
    assert_eq!(pair.ends[A].lost_events(), 11 - 4);
    assert_eq!(core::iter::from_fn(|| pair.ends[A].poll_event()).count(), 4);
    let mut silent = Pair::new(PdsParams { event_capacity: 0, ..plain() });
    silent.send(A, 1);
    silent.run();
    assert_eq!((silent.events.clone(), silent.ends[A].lost_events()), (<[Vec<EventKind>; 2]>::default(), 0));
    let _ = Psn(0);
}
