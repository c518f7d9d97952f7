//! The time and content of ACKs. Closes that cross or fail.

use super::common::wire::{Rud, ack, control, nacks};
use super::common::*;
use core::time::Duration;
use uet_model::pds::{AckReason, CloseReason, Dropped, Duplicate, EventKind};
use uet_model::*;
use uet_wire::pds::Pds as Header;
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::{Psn, Uet};

fn reasons(pair: &Pair) -> Vec<(u32, AckReason)> {
    let reason = |event: &EventKind| match event {
        EventKind::Acked(psn, why) => Some((psn.0, *why)),
        _ => None,
    };
    pair.events[B].iter().filter_map(reason).collect()
}

#[test]
fn small_packet_counts_minimum_bytes() {
    let mut pair = Pair::at_332(plain());
    let via = Via::Route(route(B, Mode::Rud));
    for message in 0..16 {
        pair.request(via, A, read(message, true, true));
    }
    pair.run_for(us(5));
    assert_eq!(reasons(&pair), [(348, AckReason::Bytes)], "16 times 1,024 bytes");
}

#[test]
fn ack_request_flag_gets_immediate_ack() {
    let mut pair = Pair::at_332(PdsParams { ask_ack_at_eom: true, ..plain() });
    pair.request(Via::Route(route(B, Mode::Rud)), A, TxRequest { eom: false, ..request(1) });
    pair.request(Via::Route(route(B, Mode::Rud)), A, TxRequest { som: false, ..request(1) });
    pair.run_for(us(5));
    assert_eq!(reasons(&pair), [(334, AckReason::Requested)]);
    let mut pair = Pair::at_332(PdsParams { enb_ack_per_pkt: true, ..plain() });
    pair.send(A, 1);
    pair.run_for(us(5));
    assert_eq!(reasons(&pair), [(333, AckReason::EachPacket)]);
}

#[test]
fn duplicate_without_retx_may_be_acknowledged() {
    for acknowledged in [true, false] {
        let mut pair = Pair::at_332(PdsParams { ack_unmarked_duplicates: acknowledged, ..plain() });
        pair.inject(B, Rud { psn: 332, ..Rud::default() }.packet());
        let what = if acknowledged { Duplicate::AckedAgain } else { Duplicate::Ignored };
        assert!(pair.events[B].contains(&EventKind::Duplicate(Psn(332), what)));
        assert_eq!(pair.seen.len(), usize::from(acknowledged));
    }
}

#[test]
fn ack_of_unsent_psn_is_ignored() {
    let mut pair = Pair::at_332(plain());
    pair.impair(&["drop"]);
    pair.send(A, 1);
    for (cack, offset) in [(334, -1), (333, 1), (333 + (1 << 30), 0)] {
        pair.inject(A, ack(cack, offset));
        assert!(pair.responses(A).is_empty(), "{cack} {offset}");
    }
    assert_eq!(pair.ends[A].dropped(Dropped::AckNotSent), 3);
    pair.inject(A, ack(333, 0));
    assert_eq!(pair.responses(A), [1]);
}

/// Returns the bitmaps of a target that misses 333 and has the next 200.
fn bitmaps() -> Vec<(u32, u64)> {
    let mut pair = Pair::at_332(PdsParams { enb_ack_per_pkt: true, ..plain() });
    for psn in 334..534 {
        pair.inject(B, Rud { psn, ..Rud::default() }.packet());
    }
    let sack = |packet: &Packet| match Uet::parse(&packet.head).ok()?.pds? {
        Header::AckCc(ack) => Some((ack.sack_psn().0, ack.sack().sack_bitmap())),
        _ => None,
    };
    pair.seen.iter().filter_map(sack).collect()
}

#[test]
fn bitmaps_cover_all_arrivals() {
    let bitmaps = bitmaps();
    let last = &bitmaps[bitmaps.len() - 5..];
    let named =
        |psn: u32| last.iter().any(|(base, bits)| (0..64).any(|i| base + i == psn && bits >> i & 1 == 1));
    assert!((334..525).all(named), "within a few ACKs: {last:x?}");
    assert!(!named(333), "it has not arrived");
}

#[test]
fn psns_below_cack_read_as_received() {
    let mut pair = Pair::at_332(plain());
    let probe = uet_wire::pds::Control::build(CtlType::PROBE).probe_opaque(9).spdcid(uet_wire::PdcId(0x4001));
    let probe = probe.dpdcid(uet_wire::PdcId(0x8001)).payload(330).done().unwrap();
    pair.inject(B, wire::packet(A, &[probe.bytes()]));
    let answer = pair.seen.last().unwrap().clone();
    let Some(Header::AckCc(ack)) = Uet::parse(&answer.head).unwrap().pds else { panic!() };
    assert_eq!(
        (ack.ack().probe_opaque(), ack.sack_psn(), ack.sack().sack_bitmap()),
        (Some(9), Psn(330), 0b111)
    );
}

#[test]
fn crossing_closes_succeed() {
    let mut pair = Pair::at_332(plain());
    pair.send(A, 1);
    pair.run();
    let Ticket::Pdc(target, _) = pair.given[B][0].ticket else { panic!() };
    let context = pair.context();
    // CLOSE_REQUEST and CLOSE_COMMAND cross. The former is not acknowledged when the latter arrives.
    pair.ends[B].close(pair.now, target);
    pair.ends[A].close(pair.now, context);
    pair.run();
    assert_eq!(nacks(&pair.seen).iter().filter(|nack| nack.0 == NackCode::CLOSING_IN_ERR).count(), 0);
    for side in [A, B] {
        assert!(pair.events[side].contains(&EventKind::Closed(CloseReason::Command)), "{}", pair.ladder);
    }
}

#[test]
fn failed_context_is_remembered() {
    // The target gives up. A late packet with syn must not open a context.
    let mut pair = Pair::new(plain());
    pair.send(A, 1);
    pair.run();
    let copy = pair.seen[0].clone();
    let Ticket::Pdc(target, _) = pair.given[B][0].ticket else { panic!() };
    pair.impair(&["drop"]);
    pair.ends[B].close(pair.now, target);
    pair.run_for(Duration::from_millis(7));
    assert!(pair.events[B].contains(&EventKind::Closed(CloseReason::TimedOut)), "{}", pair.ladder);
    pair.inject(B, copy);
    assert_eq!((pair.given[B].len(), pair.ends[B].contexts()), (1, 1));
    assert_eq!(nacks(&pair.seen).last().map(|nack| nack.0), Some(NackCode::CLOSING));
}

#[test]
fn held_context_stays_open() {
    let mut pair = Pair::at_332(plain());
    let context = pair.context();
    pair.ends[A].hold(pair.now, context);
    pair.ends[A].close(pair.now, context);
    pair.run();
    let commands = |pair: &Pair| pair.seen.iter().filter(|packet| is(packet, PdsType::CP)).count();
    assert_eq!(commands(&pair), 0);
    pair.ends[A].release(pair.now, context);
    pair.run();
    assert_eq!((commands(&pair), pair.ends[A].contexts()), (1, 0));
}

#[test]
fn clear_command_gets_no_reply() {
    let mut pair = Pair::at_332(plain());
    pair.inject(B, control(A, CtlType::CLEAR_COMMAND, 0, 332));
    assert!(pair.seen.is_empty());
}

#[test]
fn range_in_stale_ack_is_ignored() {
    let mut pair = Pair::at_332(PdsParams { tx_queue: 4000, ..plain() });
    pair.impair(&["drop"]);
    pair.send(A, 1);
    let old = |cack: u32| {
        let ack = uet_wire::pds::AckCc::build()
            .ack(|a| a.cack_psn(Psn(cack)).spdcid(uet_wire::PdcId(0x8001)).dpdcid(uet_wire::PdcId(0x4001)));
        wire::packet(B, &[ack.sack(|s| s.mpr(200)).done().unwrap().bytes()])
    };
    pair.inject(A, old(331));
    for message in 0..2000 {
        pair.send(A, message);
    }
    assert_eq!(pair.seen.iter().filter_map(psn_of).max(), Some(1356));
}

#[test]
fn delayed_ack_names_its_packet() {
    let congestion = cc::CcParams::default();
    let mut pair = Pair::at_332(PdsParams { congestion, ..plain() });
    let packet = Rud { psn: 333, ar: false, ..Rud::default() }.packet();
    pair.inject(B, uet_model::Packet { entropy: 0xc0de, ..packet });
    pair.run_for(us(50));
    let acks: Vec<_> = pair.seen.iter().filter(|packet| packet.dst == address(A)).collect();
    let [ack] = acks[..] else { panic!("{acks:?}") };
    assert_eq!(ack.entropy, 0xc0de, "CC-PATH-001");
    let bytes = ack.to_wire();
    let (ack, _) = uet_wire::pds::AckCc::parse(&bytes).expect("an ACK_CC");
    let waited = PdsParams::default().ack_delay.as_nanos() / 128;
    assert_eq!(ack.service_time().map(u128::from), Some(waited), "CC-SERVICE-001");
}
