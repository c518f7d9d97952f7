//! Observer tests on short packet sequences.

use core::net::{IpAddr, Ipv4Addr};
use uet_observe::{Event, Facts, Observed, Observer, RudiFacts, Side};
use uet_wire::pds::{self, Ack, AckCc, Control, PdsBuf, Request};
use uet_wire::registry::{CcType, CtlType, PdsType};
use uet_wire::{PdcId, Psn, PsnOffset, UetBuf, Units24};

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 12));
const HERE: PdcId = PdcId(0x4001);
const THERE: PdcId = PdcId(0x8001);

fn bytes(pds: impl Into<PdsBuf>) -> Vec<u8> {
    UetBuf::new(pds).to_bytes()
}

fn opens(psn: u32) -> Vec<u8> {
    let request = Request::rud().syn(true).spdcid(HERE).psn_offset(PsnOffset::ZERO);
    bytes(request.psn(Psn(psn)).clear_psn_offset(-1).done().unwrap())
}

fn request(psn: u32) -> Vec<u8> {
    bytes(Request::rud().psn(Psn(psn)).clear_psn_offset(-1).spdcid(HERE).dpdcid(THERE).done().unwrap())
}

fn close(psn: u32) -> Vec<u8> {
    let close = Control::build(CtlType::CLOSE_COMMAND).ar(true).psn(Psn(psn));
    bytes(close.spdcid(HERE).dpdcid(THERE).done().unwrap())
}

fn ack(cack: u32) -> Ack {
    Ack::build().cack_psn(Psn(cack)).spdcid(THERE).dpdcid(HERE).done().unwrap()
}

/// Returns an ACK with a SACK bitmap that starts after the cumulative PSN.
fn sack(cack: u32, bits: u64) -> Vec<u8> {
    let ack = AckCc::build().ack(|a| a.copy_from(&ack(cack)).prologue(|p| p.kind(PdsType::ACK_CC)));
    let ack = ack.cc_type(CcType::CREDIT).sack(|s| s.mpr(2).sack_psn_offset(1).sack_bitmap(bits));
    bytes(ack.credit(Units24::new(9).unwrap()).done().unwrap())
}

/// Returns the numbers of the packets that an ACK acknowledges.
fn acknowledged(facts: Facts<'_>) -> Vec<u64> {
    match facts {
        Facts::Context { event: Event::Ack { acknowledged, .. }, .. } => acknowledged,
        other => panic!("{other:?}"),
    }
}

#[test]
fn acks_release_what_is_in_flight() {
    let mut observer = Observer::default();
    let sent = [opens(5), request(6), request(7), request(8), request(6)];
    for (number, packet) in (1..).zip(&sent) {
        observer.observe(&Observed::new(number, A, B, packet));
    }
    let in_flight = |observer: &Observer| {
        let (context, side) = observer.context(A, HERE, B).unwrap();
        context.direction(side).in_flight()
    };
    let size = request(6).len();
    assert_eq!(in_flight(&observer), 4 * size, "a PSN counts once");
    assert_eq!(acknowledged(observer.observe(&Observed::new(6, B, A, &sack(5, 0b100)))), [1, 4]);
    assert_eq!(in_flight(&observer), 2 * size);
    assert_eq!(acknowledged(observer.observe(&Observed::new(7, B, A, &bytes(ack(8))))), [2, 3]);
    assert_eq!(in_flight(&observer), 0);
    let (context, side) = observer.context(B, THERE, A).unwrap();
    let direction = context.direction(side.other());
    assert_eq!((direction.window, direction.credit), (Some(256), Units24::new(9)));
    assert_eq!(direction.cack, Some((3, 7)));
}

#[test]
fn packets_that_were_not_observed_are_counted_by_their_replies() {
    let sent = |psn| (A, B, request(psn));
    let acked = |psn| (B, A, bytes(ack(psn)));
    // The target names the PDCIDs of both ends in the wrong places.
    let swapped = |psn| {
        let ack = Ack::build().cack_psn(Psn(psn)).spdcid(HERE).dpdcid(THERE);
        (B, A, bytes(ack.done().unwrap()))
    };
    let asks = |id| (A, B, bytes(pds::Rudi::request(id).done().unwrap()));
    let answers = |id| (B, A, bytes(pds::Rudi::response(id).done().unwrap()));
    let conversations = [
        (vec![answers(1), asks(2), answers(2), answers(2), answers(3)], [0, 2]),
        (vec![(A, B, opens(5)), sent(6), acked(6)], [0, 0]),
        (vec![(A, B, opens(5)), sent(7), acked(5), acked(8)], [2, 0]),
        (vec![(A, B, opens(5)), sent(7), acked(8), acked(8), sent(8), sent(7)], [1, 0]),
        (vec![sent(100), acked(99), acked(100)], [0, 0]),
        (vec![acked(99), sent(100), acked(100)], [0, 0]),
        (vec![acked(5), acked(9)], [0, 2]),
        (vec![(A, B, opens(5)), swapped(5), acked(5), swapped(6)], [0, 2]),
        (vec![(A, B, opens(5)), (A, B, close(7)), acked(7)], [1, 0]),
    ];
    for (packets, lacking) in conversations {
        let mut observer = Observer::default();
        for (number, (src, dst, packet)) in (1..).zip(&packets) {
            observer.observe(&Observed::new(number, *src, *dst, packet));
        }
        assert_eq!([observer.unseen(), observer.unmatched()], lacking, "{packets:?}");
    }
}

#[test]
fn closed_contexts_are_dropped() {
    let mut observer = Observer::default();
    let mut number = 0;
    for life in 0..100 {
        let start = 1_000 * life;
        for (src, dst, packet) in [
            (A, B, opens(start)),
            (B, A, bytes(ack(start))),
            (A, B, close(start + 1)),
            (B, A, bytes(ack(start + 1))),
        ] {
            number += 1;
            let Facts::Context { context, .. } = observer.observe(&Observed::new(number, src, dst, &packet))
            else {
                panic!("packet {number} has no context");
            };
            assert_eq!(context.closed.is_some(), number % 4 == 0);
            assert_eq!(context.first, number - (number - 1) % 4);
        }
    }
    observer.observe(&Observed::new(401, A, B, &[]));
    assert_eq!((observer.contexts().count(), observer.count()), (0, 100));
}

#[test]
fn far_psns_belong_to_another_context() {
    let (old, far) = (bytes(ack(5)), opens(5 + (1 << 20)));
    let mut observer = Observer::default();
    observer.observe(&Observed::new(1, A, B, &opens(5)));
    observer.observe(&Observed::new(2, B, A, &old));
    observer.observe(&Observed::new(3, A, B, &far));
    assert_eq!(observer.count(), 2);
    // The ACK of the old context still matches it.
    let Facts::Context { context, sender, .. } = observer.observe(&Observed::new(4, B, A, &old)) else {
        panic!()
    };
    assert_eq!((context.id.0, sender), (0, Side::B));
    // A request of the old context also matches it, although a context with distant PSNs has the same identifiers.
    observer.observe(&Observed::new(5, A, B, &request(5 + (1 << 21))));
    let Facts::Context { context, .. } = observer.observe(&Observed::new(6, A, B, &request(6))) else {
        panic!()
    };
    assert_eq!((context.id.0, observer.count()), (0, 3));
}

#[test]
fn wrong_dpdcid_names_no_end() {
    let wrong = PdcId(0x8099);
    let misnamed = Request::rud().psn(Psn(6)).clear_psn_offset(-1).spdcid(HERE).dpdcid(wrong);
    let packets = [(A, B, opens(5)), (B, A, bytes(ack(5))), (A, B, bytes(misnamed.done().unwrap()))];
    let mut observer = Observer::default();
    for (number, (src, dst, packet)) in (1..).zip(&packets) {
        observer.observe(&Observed::new(number, *src, *dst, packet));
    }
    assert!(observer.context(B, wrong, A).is_none());
    let (context, side) = observer.context(B, THERE, A).unwrap();
    assert_eq!((context.id.0, side, observer.count()), (0, Side::B, 1));
}

/// A NIC may number the contexts that it opens and those that it accepts apart.
#[test]
fn context_with_both_identifiers_wins() {
    let other = PdcId(0x9001);
    let opening = Request::rud().syn(true).spdcid(other).psn_offset(PsnOffset::ZERO);
    let opening = bytes(opening.psn(Psn(5)).clear_psn_offset(-1).done().unwrap());
    let answer = bytes(Ack::build().cack_psn(Psn(5)).spdcid(HERE).dpdcid(other).done().unwrap());
    let packets = [(A, B, opens(5)), (B, A, bytes(ack(5))), (B, A, opening), (A, B, answer)];
    let mut observer = Observer::default();
    for (number, (src, dst, packet)) in (1..).zip(&packets) {
        observer.observe(&Observed::new(number, *src, *dst, packet));
    }
    let Facts::Context { context, .. } = observer.observe(&Observed::new(5, A, B, &request(6))) else {
        panic!()
    };
    assert_eq!((context.id.0, observer.count()), (0, 2));
}

#[test]
fn control_packet_with_syn_announces_start_psn() {
    let noop = Control::build(CtlType::NOOP).ar(true).syn(true).psn(Psn(7)).spdcid(HERE);
    let noop = bytes(noop.psn_offset(PsnOffset::new(2).unwrap()).done().unwrap());
    let mut observer = Observer::default();
    observer.observe(&Observed::new(1, A, B, &noop));
    let (context, side) = observer.context(A, HERE, B).unwrap();
    assert_eq!((context.start, context.initiator), (Some((Psn(5), 1)), Some(side)));
}

#[test]
fn acks_by_name_settle_psns_after_the_cumulative_one() {
    let named = Ack::build().cack_psn(Psn(5)).ack_psn_offset(1).spdcid(THERE).dpdcid(HERE).done().unwrap();
    let sent = [opens(5), request(6), request(7)].map(|packet| (A, B, packet));
    let mut observer = Observer::default();
    for (number, (src, dst, packet)) in (1..).zip(sent.into_iter().chain([(B, A, bytes(named))])) {
        observer.observe(&Observed::new(number, src, dst, &packet));
    }
    let (context, side) = observer.context(A, HERE, B).unwrap();
    assert_eq!(context.direction(side).settled(), Some(Psn(6)));
    assert_eq!(context.direction(side.other()).names, [THERE]);
}

#[test]
fn rudi_responses_name_the_last_transmission() {
    let request = bytes(pds::Rudi::request(7).done().unwrap());
    let response = bytes(pds::Rudi::response(7).done().unwrap());
    let mut observer = Observer::default();
    observer.observe(&Observed::new(1, A, B, &request));
    observer.observe(&Observed::new(2, A, B, &request));
    for (number, expected) in [(3, Some(2)), (4, None)] {
        match observer.observe(&Observed::new(number, B, A, &response)) {
            Facts::Rudi(RudiFacts::Response { answers, known, .. }) => {
                assert_eq!((answers, known), (expected, Some(true)));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn open_contexts_are_bounded() {
    let mut observer = Observer::default();
    let opening = opens(5);
    let packets = 70_000;
    for number in 0..packets {
        let source = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
        observer.observe(&Observed::new(number.into(), source, B, &opening));
    }
    assert_eq!(observer.count(), u64::from(packets));
    assert!(observer.contexts().count() <= 1 << 16);
}

/// Packets without an answer count over all contexts.
#[test]
fn kept_packets_are_bounded() {
    const CONTEXTS: u16 = 280;
    let mut observer = Observer::default();
    for psn in 0..4000 {
        for context in 1..=CONTEXTS {
            let request = Request::rud().psn(Psn(psn)).clear_psn_offset(-1).spdcid(PdcId(context));
            let request = UetBuf::new(request.dpdcid(THERE).done().unwrap()).to_bytes();
            observer.observe(&Observed::new(1, A, B, &request));
        }
    }
    // Each packet is kept twice: as sent and as unacknowledged.
    let requests = |context: &uet_observe::Context| context.direction(Side::A).requests.len();
    let kept: usize = observer.contexts().map(requests).sum();
    assert!(kept <= 1 << 19, "{kept} packets");
}
