//! Replies to packets that find no context, or do not fit the one they find. Each row of the table is a test.

use super::common::wire::{Rud, ack, control, nack, nacks, packet};
use super::common::*;
use core::time::Duration;
use uet_model::pds::{Dropped, EventKind, Pds, Unprotected};
use uet_model::*;
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::{PdcId, Psn, Uet};

/// Returns the replies of a fresh target to packets, and the number of its contexts afterwards.
fn answer(params: PdsParams, packets: &[Packet]) -> (Vec<(NackCode, u32, u16, u32)>, usize) {
    let mut target = Pds::new(PdsParams { first_pdcid: 0x8001, ..params }, address(B), 2).unwrap();
    answers_of(&mut target, packets)
}

fn answers_of(target: &mut Pds, packets: &[Packet]) -> (Vec<(NackCode, u32, u16, u32)>, usize) {
    let mut answers = Vec::new();
    for packet in packets {
        target.handle_input(Time(0), packet.clone());
        while let Some(indication) = target.poll_indication() {
            if let Indication::Request(request) = indication {
                target.respond(Time(0), request.ticket, plain_response(1));
            }
        }
        answers.extend(core::iter::from_fn(|| target.poll_transmit(Time(0))));
    }
    (nacks(&answers), target.contexts())
}

/// Returns a target with an idle context at PSN 332, which the initiator 0x4001 opened.
fn at_332() -> Pair {
    Pair::at_332(plain())
}

fn refused(pair: &mut Pair, packet: Packet) -> Vec<(NackCode, u32, u16, u32)> {
    let (given, before) = (pair.given[B].len(), pair.seen.len());
    pair.inject(B, packet);
    assert_eq!(pair.given[B].len(), given, "delivered:\n{}", pair.ladder);
    nacks(&pair.seen[before..])
}

#[test]
fn no_context_is_left() {
    let params = PdsParams { general_pdcs: 1, reclaim_unconfirmed: false, ..plain() };
    let second = Rud { spdcid: 0x4002, ..Rud::syn(48, 0) };
    let (answers, contexts) = answer(params, &[Rud::syn(48, 0).packet(), second.packet()]);
    assert_eq!((answers, contexts), (vec![(NackCode::NO_PDC_AVAIL, 48, 0, 0)], 1));
}

#[test]
fn no_congestion_control_context_is_left() {
    let params = PdsParams { cccs: 1, general_pdcs: 8, reclaim_unconfirmed: false, ..plain() };
    let second = Packet { class: 1, ..Rud { spdcid: 0x4002, ..Rud::syn(48, 0) }.packet() };
    let (answers, contexts) = answer(params, &[Rud::syn(48, 0).packet(), second]);
    assert_eq!((answers, contexts), (vec![(NackCode::NO_CCC_AVAIL, 48, 0, 0)], 1));
}

#[test]
fn no_bitmap_is_left() {
    let params = PdsParams { receive_slots: 0, ..plain() };
    let (answers, contexts) = answer(params, &[Rud::syn(48, 0).packet()]);
    assert_eq!((answers, contexts), (vec![(NackCode::NO_BITMAP, 48, 0, 0)], 0));
}

/// Returns a packet of host `n` in a syn flood, with `start` as its Start_PSN.
fn flood(n: u8, start: u32) -> Packet {
    Packet { src: [10, 1, 0, n].into(), ..Rud { spdcid: u16::from(n) + 1, ..Rud::syn(start, 0) }.packet() }
}

#[test]
fn syn_flood_takes_no_context_of_a_peer_that_answers() {
    let params = PdsParams { general_pdcs: 8, first_pdcid: 0x8001, ..plain() };
    let mut target = Pds::new(params, address(B), 2).unwrap();
    for n in 0..=255 {
        assert_eq!(answers_of(&mut target, &[flood(n, 48)]).0, []);
    }
    // The peer gets through at once, because it knows the PDCID from the ACK.
    target.handle_input(Time(0), Rud::syn(48, 0).packet());
    while let Some(indication) = target.poll_indication() {
        if let Indication::Request(request) = indication {
            target.respond(Time(0), request.ticket, plain_response(1));
        }
    }
    let ack = target.poll_transmit(Time(0)).unwrap();
    let dpdcid = Uet::parse(&ack.head).unwrap().pds.unwrap().ack().unwrap().spdcid().0;
    assert_eq!(answers_of(&mut target, &[Rud { psn: 49, dpdcid, ..Rud::default() }.packet()]).0, []);
    for n in 0..=255 {
        assert_eq!(answers_of(&mut target, &[flood(n, 1000)]).0, []);
    }
    let answers = answers_of(&mut target, &[Rud { psn: 50, dpdcid, ..Rud::default() }.packet()]);
    assert_eq!(answers, (vec![], 8));
}

#[test]
fn late_syn_of_a_reclaimed_context_is_not_delivered_again() {
    let params = PdsParams { general_pdcs: 1, ..plain() };
    let safety_time = params.syn_retx_safety_time;
    let mut target = Pds::new(params, address(B), 2).unwrap();
    assert_eq!(answers_of(&mut target, &[flood(1, 48), flood(2, 48)]), (vec![], 1));
    let late = vec![(NackCode::CLOSING, 48, 0, 0)];
    assert_eq!(answers_of(&mut target, &[flood(1, 48)]), (late, 1));
    // Another Start_PSN means another context, and a reclaimed context is not remembered forever.
    assert_eq!(answers_of(&mut target, &[flood(1, 5000)]), (vec![], 1));
    target.handle_input(Time(0) + safety_time, flood(2, 48));
    assert_eq!(target.poll_transmit(Time(0) + safety_time), None);
}

#[test]
fn reclaimed_context_releases_everything() {
    let mut target = Pds::new(PdsParams { general_pdcs: 1, ..plain() }, address(B), 2).unwrap();
    target.handle_input(Time(0), flood(1, 48));
    let held = target.held();
    assert!(held > 0, "SES owes a response");
    for n in 2..100 {
        target.handle_input(Time(0), flood(n, 48));
    }
    assert_eq!((target.held(), target.contexts()), (held, 1));
}

/// Nobody answers the packets of a stranger, or clears the answers, if its address is forged.
#[test]
fn requests_of_a_flood_leave_room_for_those_of_peers() {
    let params = PdsParams { rx_packets: 4, first_pdcid: 0x8001, ..plain() };
    let mut target = Pds::new(params, address(B), 2).unwrap();
    for n in 1..=4 {
        target.handle_input(Time(0), flood(n, 48));
    }
    let refused = vec![(NackCode::NO_PKT_BUFFER, 48, 0x8005, 0)];
    for (second, expected) in [(0, refused), (2, vec![])] {
        let now = Time(0) + Duration::from_secs(second);
        target.handle_input(now, Rud::syn(48, 0).packet());
        let answers: Vec<_> = core::iter::from_fn(|| target.poll_transmit(now)).collect();
        assert_eq!(nacks(&answers), expected, "after {second} s");
    }
}

#[test]
fn contexts_of_peers_that_answer_are_not_reclaimed() {
    let mut target =
        Pds::new(PdsParams { general_pdcs: 1, first_pdcid: 0x8001, ..plain() }, address(B), 2).unwrap();
    let second = Rud { psn: 49, ..Rud::default() };
    assert_eq!(answers_of(&mut target, &[Rud::syn(48, 0).packet(), second.packet()]).0, []);
    assert_eq!(answers_of(&mut target, &[flood(1, 48)]), (vec![(NackCode::NO_PDC_AVAIL, 48, 0, 0)], 1));
}

#[test]
fn reserved_pool_is_separate() {
    let params = PdsParams { general_pdcs: 1, reserved_pdcs: 1, ..plain() };
    let reserved = Rud { spdcid: 0x4002, reserved: true, ..Rud::syn(48, 0) };
    let (answers, contexts) = answer(params, &[Rud::syn(48, 0).packet(), reserved.packet()]);
    assert_eq!((answers, contexts), (vec![], 2));
}

#[test]
fn syn_above_window_of_new_context() {
    let (answers, contexts) = answer(plain(), &[Rud::syn(48 + 1024, 1024).packet()]);
    assert_eq!((answers, contexts), (vec![(NackCode::INVALID_SYN, 1072, 0, 0)], 0));
    let (answers, contexts) = answer(plain(), &[Rud::syn(48 + 1023, 1023).packet()]);
    assert_eq!((answers, contexts), (vec![], 1));
}

#[test]
fn syn_above_window_of_known_context() {
    let mut pair = at_332();
    let far = Rud::syn(1357, 1357 - 48).packet();
    assert_eq!(refused(&mut pair, far), [(NackCode::INVALID_SYN, 1357, 0x8001, 0)]);
}

#[test]
fn syn_with_different_start_psn() {
    let mut pair = at_332();
    let other = Rud::syn(333, 7).packet();
    assert_eq!(refused(&mut pair, other), [(NackCode::INVALID_SYN, 333, 0x8001, 0)]);
    assert_eq!(pair.ends[B].contexts(), 1);
}

#[test]
fn psns_outside_the_window() {
    let mut pair = at_332();
    for psn in [1357, 332u32.wrapping_sub(1025)] {
        let packet = Rud { psn, ..Rud::default() }.packet();
        assert_eq!(refused(&mut pair, packet), [(NackCode::PSN_OOR_WINDOW, psn, 0x8001, 0)]);
    }
}

#[test]
fn psn_in_the_window_below_is_a_duplicate() {
    let mut pair = at_332();
    for psn in [332, 48, 332u32.wrapping_sub(1024)] {
        let packet = Rud { psn, retx: true, ..Rud::default() }.packet();
        assert_eq!(refused(&mut pair, packet), []);
        assert!(is(pair.seen.last().unwrap(), PdsType::ACK), "acknowledged again");
    }
}

#[test]
fn unused_dpdcid() {
    let packet = Rud { dpdcid: 0x8002, ..Rud::default() }.packet();
    assert_eq!(refused(&mut at_332(), packet), [(NackCode::INV_DPDCID, 333, 0, 0)]);
}

#[test]
fn a_context_of_another_peer() {
    let mut pair = at_332();
    let spdcid = Rud { spdcid: 0x4002, ..Rud::default() }.packet();
    assert_eq!(refused(&mut pair, spdcid), [(NackCode::PDC_HDR_MISMATCH, 333, 0, 0)]);
    let address = Packet { src: [10, 0, 0, 99].into(), ..Rud::default().packet() };
    assert_eq!(refused(&mut pair, address), [(NackCode::PDC_HDR_MISMATCH, 333, 0, 0)]);
}

#[test]
fn another_mode() {
    let rod = Rud { kind: PdsType::ROD_REQ, ..Rud::default() };
    assert_eq!(refused(&mut at_332(), rod.packet()), [(NackCode::PDC_MODE_MISMATCH, 333, 0x8001, 0)]);
    let syn = Rud { offset: Some(333 - 48), ..rod };
    assert_eq!(refused(&mut at_332(), syn.packet()), [(NackCode::PDC_MODE_MISMATCH, 333, 0x8001, 0)]);
}

#[test]
fn a_context_that_is_closed() {
    let mut pair = at_332();
    let context = pair.context();
    pair.ends[A].close(pair.now, context);
    pair.run_for(Duration::from_micros(5));
    let after = Rud { psn: 334, ..Rud::default() }.packet();
    assert_eq!(refused(&mut pair, after), [(NackCode::CLOSING, 334, 0x8001, 0)]);
    let early = Rud::syn(48, 0).packet();
    assert_eq!(refused(&mut pair, early), [(NackCode::CLOSING, 48, 0x8001, 0)], "a late copy opens nothing");
    // CLOSE_COMMAND again, whose ACK may have been lost.
    for marked in [false, true] {
        let again = Packet { marked, ..control(A, CtlType::CLOSE_COMMAND, 333, 0) };
        pair.inject(B, again);
        let answer = pair.seen.last().unwrap();
        let (text, _) = uet_wire::Uet::parse_lax(&answer.head);
        let flags = text.pds.unwrap().ack().map(|ack| (ack.m(), ack.retx()));
        assert_eq!(flags, Some((marked, false)), "those of the packet that is answered");
    }
    // Far enough away it is a new context.
    pair.inject(B, Rud::syn(333 + (1 << 16), 0).packet());
    assert_eq!((pair.given[B].len(), pair.ends[B].contexts()), (1, 1));
    // After that time, the context is forgotten.
    pair.run_for(Duration::from_millis(11));
    assert_eq!(refused(&mut pair, Rud::default().packet()), [(NackCode::INV_DPDCID, 333, 0, 0)]);
}

/// Protection of a target that requires another Start_PSN.
const ELSEWHERE: Unprotected = Unprotected { lowest_start: Some(Psn(5000)) };

#[test]
fn secured_target_requires_another_start_psn() {
    let mut pair = Pair::new(plain());
    let target = Pds::new(PdsParams { first_pdcid: 0x8001, ..plain() }, address(B), 2).unwrap();
    pair.ends[B] = target.with_protection(ELSEWHERE);
    for message in 1..=3 {
        pair.send(A, message);
    }
    pair.run();
    let first = nacks(&pair.seen)[0];
    assert_eq!(first, (NackCode::NEW_START_PSN, 48, 0, 5000));
    let psns: Vec<u32> = pair.seen.iter().filter_map(psn_of).collect();
    assert_eq!(psns, [48, 49, 50, 5000, 5001, 5002], "{}", pair.ladder);
    assert_eq!((pair.given[B].len(), pair.responses(A)), (3, vec![1, 2, 3]));
    assert!(pair.events[A].contains(&EventKind::Renumbered(Psn(5000))));
}

/// First transmissions under the new numbers leave in their order, also if some were queued before in another one.
#[test]
fn renumbered_packets_leave_in_order() {
    let mut pair = Pair::new(plain());
    let target = Pds::new(PdsParams { first_pdcid: 0x8001, ..plain() }, address(B), 2).unwrap();
    pair.ends[B] = target.with_protection(ELSEWHERE);
    pair.impair(&["drop request 1..3"]);
    for message in 1..=3 {
        pair.send(A, message);
    }
    let now = pair.now;
    pair.ends[A].handle_input(now, nack(NackCode::TRIMMED, 50, 0));
    pair.ends[A].handle_input(now, nack(NackCode::NEW_START_PSN, 48, 5000));
    pair.run();
    let psns: Vec<u32> = pair.seen.iter().filter_map(psn_of).collect();
    assert_eq!(psns[..6], [48, 49, 50, 5000, 5001, 5002], "{}", pair.ladder);
    assert_eq!(pair.responses(A), [1, 2, 3]);
}

/// The peer's late packet for an earlier context names our PDCID, and another one of its own.
#[test]
fn late_packet_binds_no_new_context() {
    let mut pair = Pair::new(plain());
    let (now, via) = (pair.now, Via::Route(route(B, Mode::Rud)));
    pair.ends[A].request(now, via, request(1)).unwrap();
    let late = Rud { psn: 77_777, spdcid: 0x8055, dpdcid: 0x4001, ..Rud::default() }.packet();
    pair.inject(A, Packet { src: address(B), dst: address(A), ..late });
    pair.run();
    assert_eq!(nacks(&pair.seen)[0].0, NackCode::PDC_HDR_MISMATCH, "{}", pair.ladder);
    assert_eq!(pair.responses(A), [1], "{}", pair.ladder);
    assert_eq!(pair.seen.iter().filter_map(psn_of).collect::<Vec<_>>(), [48], "{}", pair.ladder);
}

/// The peer answers with data, then crashes. A copy of the first packet opens another context there, which acknowledges it.
#[test]
fn first_ack_from_another_context_of_the_peer_ends_ours() {
    let mut end = Pds::new(PdsParams { first_pdcid: 0x4001, ..plain() }, address(A), 1).unwrap();
    end.request(Time(0), Via::Route(route(B, Mode::Rud)), request(1)).unwrap();
    let sent: Vec<u32> =
        core::iter::from_fn(|| end.poll_transmit(Time(0))).filter_map(|p| psn_of(&p)).collect();
    let data = Rud { psn: sent[0], spdcid: 0x8055, dpdcid: 0x4001, ..Rud::default() }.packet();
    end.handle_input(Time(0), Packet { src: address(B), dst: address(A), ..data });
    end.handle_input(Time(0), ack(sent[0] - 1, 1));
    let told: Vec<Indication> = core::iter::from_fn(|| end.poll_indication()).collect();
    let lost = |one: &Indication| matches!(one, Indication::Failed { why: Failure::Ended(code), .. } if *code == NackCode::INV_DPDCID.code());
    assert!(told.iter().any(lost), "{told:?}");
    assert_eq!(end.contexts(), 0);
}

/// There is no order between two contexts, so the next message waits for the one that is closing.
#[test]
fn ordered_message_waits_for_the_closing_context() {
    let mut pair = Pair::new(plain());
    let via = Via::Route(route(B, Mode::Rod));
    pair.request(via, A, request(1));
    pair.run_for(Duration::from_micros(50));
    pair.impair(&["drop request 1"]);
    pair.request(via, A, request(2));
    let (now, context) = (pair.now, pair.ends[A].context_of(&route(B, Mode::Rod)).unwrap());
    pair.ends[A].close(now, context);
    assert!(pair.ends[A].request(now, via, request(3)).is_err());
    pair.run();
    assert!(pair.told[A].contains(&Indication::Resumed(via)), "{}", pair.ladder);
    pair.request(via, A, request(3));
    pair.run();
    assert_eq!(pair.responses(A), [1, 2, 3]);
}

#[test]
fn pending_context_is_kept_for_new_pdc_time() {
    let params = PdsParams { first_pdcid: 0x8001, ..plain() };
    let wait = params.new_pdc_time;
    let mut target = Pds::new(params, address(B), 2).unwrap().with_protection(ELSEWHERE);
    let (answers, contexts) = answers_of(&mut target, &[Rud::syn(48, 0).packet(), Rud::syn(49, 1).packet()]);
    assert_eq!(answers.len(), 2, "told again as often as asked");
    assert_eq!((contexts, target.poll_timeout()), (1, Some(Time(0) + wait)));
    target.handle_timeout(Time(0) + wait);
    assert_eq!((target.contexts(), target.held()), (0, 0));
}

#[test]
fn an_unknown_control_packet() {
    let unknown = CtlType::new(12).unwrap();
    assert_eq!(refused(&mut at_332(), control(A, unknown, 0, 0)), [(NackCode::UNEXP_EVENT, 0, 0, 0)]);
    let mut pair = Pair::at_332(PdsParams { nack_unknown_control: false, ..plain() });
    assert_eq!(refused(&mut pair, control(A, unknown, 0, 0)), []);
    assert_eq!(pair.ends[B].dropped(Dropped::UnknownControl), 1);
}

#[test]
fn malformed_packets_get_no_reply() {
    let mut pair = at_332();
    for (bytes, why) in [
        (&[0x11, 0x80, 0, 0][..], Dropped::Malformed),
        (&[0xf8; 40][..], Dropped::UnknownType),
        (&[][..], Dropped::Malformed),
        (&[0x08; 40][..], Dropped::Security),
    ] {
        let before = pair.seen.len();
        pair.inject(B, packet(A, &[bytes]));
        assert_eq!((pair.seen.len(), pair.ends[B].dropped(why) > 0), (before, true), "{why}");
    }
    let nobody = Rud { spdcid: 0, ..Rud::syn(48, 0) };
    assert_eq!(refused(&mut pair, nobody.packet()), [], "0 is no PDCID");
    for kind in [CtlType::ACK_REQUEST, CtlType::PROBE, CtlType::NOOP] {
        let nobody = uet_wire::pds::Control::build(kind).psn(Psn(333)).dpdcid(PdcId(0x7777));
        let nobody = packet(A, &[nobody.done().unwrap().bytes()]);
        assert_eq!(refused(&mut pair, nobody), [], "{kind}");
    }
}

#[test]
fn no_nack_answers_an_ack_or_a_nack() {
    let mut pair = at_332();
    let before = pair.seen.len();
    let nobodys = |packet: Packet| Packet { src: [10, 0, 0, 99].into(), ..packet };
    for packet in [
        ack(340, 0),
        nobodys(ack(332, 0)),
        nack(NackCode::NO_RESOURCE, 340, 0),
        nobodys(nack(NackCode::CLOSING, 333, 0)),
    ] {
        pair.inject(A, packet);
    }
    assert_eq!(pair.seen.len(), before);
    let dropped = |why| pair.ends[A].dropped(why);
    assert_eq!(dropped(Dropped::AckNotSent), 1);
    assert_eq!(dropped(Dropped::NackNotInFlight), 1);
    assert_eq!(dropped(Dropped::OtherPeer), 2);
}

#[test]
fn trimmed_packets() {
    let mut pair = at_332();
    let inside = Rud::default().trimmed(TrimPoint::Fabric);
    assert_eq!(refused(&mut pair, inside), [(NackCode::TRIMMED, 333, 0x8001, 0)]);
    let last = Rud::default().trimmed(TrimPoint::LastHop);
    assert_eq!(refused(&mut pair, last), [(NackCode::TRIMMED_LASTHOP, 333, 0x8001, 0)]);
    let syn = Rud { spdcid: 0x4009, ..Rud::syn(48, 0) }.trimmed(TrimPoint::Fabric);
    assert_eq!(refused(&mut pair, syn), [(NackCode::TRIMMED, 48, 0, 0)]);
    assert_eq!(pair.ends[B].contexts(), 1, "it opens nothing");
    let noop = Packet { trimmed: Some(TrimPoint::Fabric), ..control(A, CtlType::NOOP, 333, 0) };
    assert_eq!(refused(&mut pair, noop), []);
}

#[test]
fn early_packet_may_open_an_ordered_context() {
    let early = Rud { kind: PdsType::ROD_REQ, ..Rud::syn(50, 2) }.packet();
    let (answers, contexts) = answer(plain(), core::slice::from_ref(&early));
    assert_eq!((answers, contexts), (vec![(NackCode::ROD_OOO, 50, 0x8001, 48)], 1));
    let (answers, contexts) = answer(PdsParams { rod_opens_early: false, ..plain() }, &[early]);
    assert_eq!((answers, contexts), (vec![(NackCode::ROD_OOO, 50, 0, 0)], 0));
}

#[test]
fn only_noop_and_negotiation_open_a_context() {
    for kind in (0..10).filter_map(CtlType::new) {
        let opens = [CtlType::NOOP, CtlType::NEGOTIATION].contains(&kind);
        let syn = uet_wire::pds::Control::build(kind).isrod(true).ar(true).syn(true).psn(Psn(48));
        let syn = syn.spdcid(uet_wire::PdcId(0x4001)).done().unwrap();
        let (answers, contexts) = answer(plain(), &[packet(A, &[syn.bytes()])]);
        assert_eq!((answers, contexts), (vec![], usize::from(opens)), "{kind}");
    }
}
