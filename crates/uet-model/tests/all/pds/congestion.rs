//! Packet delivery while congestion control blocks its requests.

use super::common::*;
use core::time::Duration;
use uet_model::cc::{Algorithms, CcParams, NetworkParams, PacerParams, RcccParams};
use uet_model::*;
use uet_wire::Uet;
use uet_wire::registry::{CtlType, NackCode, PdsType};

/// Returns a source with credit for three requests, and a destination that grants one megabit per second. The rule
/// delays the ACKs.
fn starved(acks: &str) -> Pair {
    let network = NetworkParams::default();
    let rccc = RcccParams { initial_credit: 8192, ..RcccParams::new(&network).unwrap() };
    let pacer = PacerParams { link_rate: 1_000_000, ..PacerParams::new(&network).unwrap() };
    let defaults = CcParams::rccc(&network).unwrap();
    let congestion = CcParams { algorithms: Algorithms::Rccc(rccc), pacer, ..defaults };
    let mut pair = Pair::new(PdsParams { congestion, ..plain() });
    pair.impair_only(acks, |packet| is(packet, PdsType::ACK_CC));
    pair.above[B] = Box::new(|_, _| React::Answer(guaranteed(1)));
    pair
}

fn kind_of(packet: &Packet) -> Option<CtlType> {
    match Uet::parse(&packet.head).ok()?.pds? {
        uet_wire::pds::Pds::Control(control) => Some(control.ctl_type()),
        _ => None,
    }
}

/// Returns the number of requests that have left, and of CLEAR_COMMANDs.
fn left(pair: &Pair) -> (usize, usize) {
    let requests = pair.seen.iter().filter(|packet| psn_of(packet).is_some()).count();
    let clears = pair.seen.iter().filter(|packet| kind_of(packet) == Some(CtlType::CLEAR_COMMAND)).count();
    (requests, clears)
}

/// `PDS-CLR-009`
#[test]
fn blocked_request_carries_the_clear() {
    let mut pair = starved("delay 0us");
    for message in 1..=4 {
        pair.send(A, message);
        pair.run_for(Duration::from_micros(5));
    }
    // Longer than PDS_Clear_Time, but too short for the destination to request a clear.
    pair.run_for(Duration::from_micros(80));
    assert_eq!((pair.responses(A), left(&pair)), (vec![1, 2, 3], (3, 0)), "{}", pair.ladder);
    pair.run();
    assert_eq!(pair.responses(A), [1, 2, 3, 4]);
    assert!(left(&pair).1 > 0, "the last is cleared so, when nothing waits any more");
}

/// The peer does not know a context before its first packet, which waits for credit.
#[test]
fn known_context_requests_credit_for_a_new_one() {
    let mut pair = starved("delay 0us");
    for message in 1..=3 {
        pair.send(A, message);
    }
    pair.run_for(Duration::from_micros(20));
    assert_eq!((pair.responses(A), left(&pair).0), (vec![1, 2, 3], 3), "{}", pair.ladder);
    let requests = |pair: &Pair| {
        pair.seen.iter().filter(|packet| kind_of(packet) == Some(CtlType::CREDIT_REQUEST)).count()
    };
    let before = requests(&pair);
    pair.request(Via::Route(Route { context: 1, ..route(B, Mode::Rud) }), A, request(4));
    assert_eq!(requests(&pair), before + 1, "{}", pair.ladder);
    pair.run();
    assert_eq!(pair.responses(A), [1, 2, 3, 4], "{}", pair.ladder);
}

/// A context that waits with a retransmission continues after its reply, with or without credit.
#[test]
fn packets_needing_no_credit_do_not_wait() {
    let mut pair = starved("delay 150us");
    for message in 1..=3 {
        pair.send(A, message);
    }
    pair.run_for(Duration::from_micros(200));
    assert_eq!((pair.responses(A), left(&pair).0), (vec![1, 2, 3], 3), "{}", pair.ladder);
    let context = pair.context();
    pair.ends[A].close(pair.now, context);
    pair.settle();
    let closes = |packet: &Packet| kind_of(packet) == Some(CtlType::CLOSE_COMMAND);
    assert!(pair.seen.iter().any(closes), "{}", pair.ladder);
    pair.run();
    assert_eq!([0, 0], [A, B].map(|side| pair.ends[side].contexts()), "{}", pair.ladder);
}

/// Returns the PSNs that leave and the responses that arrive. Message 1 is refused for lack of room before message 2 is
/// there, and both wait for credit.
fn no_room_before_the_second(mode: Mode) -> (Vec<u32>, Vec<u64>) {
    let mut pair = starved("delay 0us");
    let mut came = false;
    pair.above[B] = Box::new(move |request, _| {
        let message = request.payload[0];
        came |= message == 2;
        match came {
            true => React::Answer(plain_response(message.into())),
            false => React::Refuse(NackCode::NO_SES_MSG_AVAIL),
        }
    });
    pair.request(Via::Route(route(B, mode)), A, request(1));
    pair.run_for(Duration::from_micros(1400));
    pair.request(Via::Route(route(B, mode)), A, request(2));
    pair.run();
    (pair.seen.iter().filter_map(psn_of).collect(), pair.responses(A))
}

#[test]
fn repeatedly_refused_packet_lets_new_ones_pass() {
    assert_eq!(no_room_before_the_second(Mode::Rud), (vec![48, 48, 48, 49, 48], vec![2, 1]));
    // On an ordered context, the first packet stays first in any case.
    assert_eq!(no_room_before_the_second(Mode::Rod).0[..4], [48; 4]);
}

/// Returns the last `rcvd_bytes` for three messages. The target refuses the first `refusals` packets delivered to it.
fn told_of_three(mode: Mode, mut refusals: u32) -> u32 {
    let mut pair =
        Pair::new(PdsParams { congestion: CcParams::nscc(&NetworkParams::default()).unwrap(), ..plain() });
    pair.above[B] = Box::new(move |_, _| match refusals {
        0 => React::Answer(plain_response(1)),
        _ => {
            refusals -= 1;
            React::Refuse(NackCode::NO_SES_MSG_AVAIL)
        }
    });
    for message in 1..=3 {
        pair.request(Via::Route(route(B, mode)), A, request(message));
    }
    pair.run();
    assert_eq!(pair.responses(A).len(), 3, "{}", pair.ladder);
    let told = |packet: &Packet| match Uet::parse(&packet.head).ok()?.pds? {
        uet_wire::pds::Pds::AckCc(ack) => ack.rcvd_bytes().map(|units| units.get()),
        _ => None,
    };
    pair.seen.iter().filter_map(told).max().unwrap()
}

/// `PDS-NACK-011`, `CC-RCVD-002`: a refused packet was not received. Its retransmission counts once.
#[test]
fn refused_packet_is_not_counted() {
    for mode in [Mode::Rud, Mode::Rod] {
        let once = told_of_three(mode, 0);
        assert_eq!((told_of_three(mode, 1), told_of_three(mode, 2)), (once, once), "{mode:?}");
    }
}

/// `CC-RTT-001`: a plain ACK does not state its delay.
#[test]
fn ack_without_service_time_gives_no_rtt_sample() {
    let mut pair =
        Pair::new(PdsParams { congestion: CcParams::nscc(&NetworkParams::default()).unwrap(), ..plain() });
    pair.impair(&["drop"]);
    let observed = |pair: &Pair| {
        let seen = pair.ends[A].congestion(address(B), 0).unwrap();
        (seen.base_rtt, seen.average_delay)
    };
    pair.send(A, 1);
    let before = observed(&pair);
    pair.run_for(Duration::from_nanos(100));
    pair.inject(A, wire::ack(48, 0));
    assert_eq!(pair.responses(A).len(), 1, "{}", pair.ladder);
    assert_eq!(observed(&pair), before, "{}", pair.ladder);
}
