//! Control packets, CLEAR and closing.

use super::common::wire::{Rud, control, nacks};
use super::common::*;
use core::time::Duration;
use uet_model::pds::{CloseReason, Dropped, EventKind, Role};
use uet_model::*;
use uet_wire::pds::{Ack, Control, Pds as Header};
use uet_wire::registry::{CtlType, NackCode, NextHdr, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Ses};
use uet_wire::{PdcId, Psn, Uet};

/// Returns the control packets among packets.
fn controls(packets: &[Packet]) -> Vec<(CtlType, u32, u32)> {
    let control = |packet: &Packet| match Uet::parse(&packet.head).ok()?.pds? {
        Header::Control(control) => Some((control.ctl_type(), control.psn().0, control.payload())),
        _ => None,
    };
    packets.iter().filter_map(control).collect()
}

/// Returns a target with 333 to 335 answered in these ways, and its reply to an ACK_REQUEST for a PSN.
fn asked(psn: u32) -> (Pair, Packet) {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, psn| match psn.0 {
        333 => React::Answer(guaranteed(1)),
        334 => React::Answer(data_in_ack(1, 8)),
        335 => React::Keep,
        _ => React::Answer(plain_response(1)),
    });
    for psn in [333, 334, 335, 336, 338] {
        pair.inject(B, Rud { psn, ..Rud::default() }.packet());
    }
    pair.inject(B, control(A, CtlType::ACK_REQUEST, psn, 0));
    let answer = pair.seen.last().unwrap().clone();
    (pair, answer)
}

#[test]
fn ack_request_reply_reflects_psn_state() {
    for (psn, code) in [
        (337, NackCode::PKT_NOT_RCVD),
        (400, NackCode::PKT_NOT_RCVD),
        (335, NackCode::RCVD_SES_PROCG),
        (334, NackCode::ACK_WITH_DATA),
    ] {
        let (_, answer) = asked(psn);
        assert_eq!(nacks(&[answer]), [(code, psn, 0x8001, 0)], "{psn}");
    }
    for (psn, opcode) in [
        (332, ResponseOpcode::UET_DEFAULT_RESPONSE),
        (48, ResponseOpcode::UET_DEFAULT_RESPONSE),
        (333, ResponseOpcode::UET_RESPONSE),
        (336, ResponseOpcode::UET_DEFAULT_RESPONSE),
    ] {
        let (_, answer) = asked(psn);
        let uet = Uet::parse(&answer.head).unwrap();
        assert_eq!(uet.pds.unwrap().ack().unwrap().ack_psn(), Some(Psn(psn)));
        let Some(Ses::Response(response)) = uet.ses else { panic!("{psn}") };
        assert_eq!(response.head().opcode(), opcode, "{psn}");
    }
}

#[test]
fn ack_of_control_packet_carries_no_response() {
    let mut pair = Pair::at_332(plain());
    let noop = Control::build(CtlType::NOOP).psn(Psn(333)).spdcid(PdcId(0x4001)).dpdcid(PdcId(0x8001));
    pair.inject(B, wire::packet(A, &[noop.done().unwrap().bytes()]));
    assert!(pair.seen.is_empty(), "it waits");
    pair.run_for(us(100));
    let uet = Uet::parse(&pair.seen[0].head).unwrap();
    assert_eq!(uet.pds.unwrap().ack().unwrap().ack_psn(), Some(Psn(333)));
    assert!(uet.ses.is_none(), "{uet}");
}

#[test]
fn source_sends_ack_request_for_sacked_packet() {
    let mut pair = Pair::at_332(plain());
    // The response of 333 is late, and all ACKs that name 334 are lost. Only a bitmap reports 334.
    pair.above[B] = Box::new(|_, psn| if psn.0 == 333 { React::Keep } else { React::Answer(ok_response(1)) });
    pair.impair_only("drop 1", |packet| {
        let uet = Uet::parse_lax(&packet.head).0;
        uet.pds.and_then(|pds| pds.ack()).is_some_and(|ack| ack.ack_psn() == Some(Psn(334)))
    });
    pair.send(A, 1);
    pair.send(A, 2);
    pair.run_for(us(3));
    pair.send(A, 3);
    pair.run_for(us(105));
    let asked: Vec<_> =
        controls(&pair.seen).into_iter().filter(|control| control.0 == CtlType::ACK_REQUEST).collect();
    assert_eq!(asked, [(CtlType::ACK_REQUEST, 333, 0), (CtlType::ACK_REQUEST, 334, 0)], "{}", pair.ladder);
    assert_eq!(pair.seen.iter().filter_map(psn_of).filter(|psn| (333..335).contains(psn)).count(), 2);
    assert_eq!(pair.responses(A), [3, 2]);
}

#[test]
fn read_data_in_an_ack_is_read_again() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Answer(data_in_ack(1, 8)));
    pair.impair_only("drop 1", |packet| is(packet, PdsType::ACK));
    pair.request(Via::Route(route(B, Mode::Rud)), A, read(1, true, true));
    pair.run();
    assert_eq!(pair.given[B].len(), 2, "asked again, since it was not kept");
    assert_eq!((pair.responses(A), pair.ends[B].held()), (vec![1], 0));
}

#[test]
fn probe_reply_acknowledges_nothing() {
    let mut pair = Pair::at_332(PdsParams { ack_delay: Duration::from_secs(1), ..plain() });
    pair.impair_only("drop", |packet| psn_of(packet) == Some(333));
    for message in 1..=3 {
        pair.send(A, message);
    }
    pair.run_for(us(2));
    let context = pair.context();
    pair.ends[A].probe(pair.now, context);
    pair.run_for(us(2));
    let answer = pair.seen.last().unwrap();
    let Some(Header::AckCc(ack)) = Uet::parse(&answer.head).unwrap().pds else { panic!() };
    assert_eq!((ack.ack().p(), ack.sack_psn(), ack.sack().sack_bitmap()), (true, Psn(333), 0b110));
    assert!(pair.events[A].contains(&EventKind::Arrived(Psn(335))));
    assert!(pair.responses(A).is_empty(), "nothing is acknowledged");
    // Before the first ACK there is no PROBE.
    let mut pair = Pair::new(plain());
    pair.send(A, 1);
    let context = pair.context();
    pair.ends[A].probe(pair.now, context);
    pair.settle();
    assert_eq!(controls(&pair.seen), []);
}

#[test]
fn noop_opens_context_of_its_mode() {
    for mode in [Mode::Rud, Mode::Rod] {
        let mut pair = Pair::new(plain());
        pair.ends[A].noop(pair.now, route(B, mode));
        pair.run();
        let opened = |event: &EventKind| matches!(event, EventKind::Opened(Role::Target, opened, ..) if *opened == mode);
        assert!(pair.events[B].iter().any(opened));
        assert!(pair.given[B].is_empty());
        let ack = Uet::parse(&pair.seen[1].head).unwrap();
        assert!(ack.ses.is_none() && ack.pds.unwrap().ack().is_some(), "an ACK that carries nothing");
        pair.request(Via::Route(route(B, mode)), A, request(1));
        pair.run();
        assert_eq!((psn_of(&pair.seen[2]), pair.ends[B].contexts()), (Some(49), 1), "the NOOP took 48");
    }
}

#[test]
fn capabilities_are_offered() {
    let mut pair = Pair::new(plain());
    pair.impair_only("drop 1", |packet| is(packet, PdsType::CP));
    pair.ends[A].negotiate(pair.now, route(B, Mode::Rud), 5);
    pair.run();
    let offers = pair.events[B].iter().filter(|event| **event == EventKind::Capabilities(5));
    assert_eq!(offers.count(), 1, "and sent again when lost");
}

#[test]
fn lost_clear_is_requested() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Answer(guaranteed(1)));
    pair.impair_only("drop 1", |packet| {
        controls(std::slice::from_ref(packet)).iter().any(|c| c.0 == CtlType::CLEAR_COMMAND)
    });
    pair.send(A, 1);
    pair.run();
    let seen: Vec<CtlType> = controls(&pair.seen).iter().map(|control| control.0).collect();
    assert_eq!(seen, [CtlType::CLEAR_COMMAND, CtlType::CLEAR_REQUEST, CtlType::CLEAR_COMMAND]);
    assert_eq!(pair.ends[B].held(), 0);
}

#[test]
fn no_clear_command_while_a_request_waits() {
    // All responses are stored, so the window is closed until they are cleared. A waiting request cannot carry
    // CLEAR_PSN.
    let mut pair = Pair::at_332(PdsParams { default_mpr: 1, announced_mpr: 1, tx_queue: 300, ..plain() });
    pair.above[B] = Box::new(|_, _| React::Answer(guaranteed(1)));
    for message in 0..300 {
        pair.send(A, message);
    }
    pair.run();
    assert_eq!(pair.responses(A).len(), 300);
    assert_eq!((pair.ends[A].held(), pair.ends[B].held()), (0, 0));
}

#[test]
fn source_respects_the_window() {
    let mut pair = Pair::at_332(PdsParams { tx_queue: 2000, ..plain() });
    pair.impair(&["drop"]);
    for message in 0..1500 {
        pair.send(A, message);
    }
    assert_eq!(pair.seen.iter().filter_map(psn_of).max(), Some(1356));
}

#[test]
fn larger_announcement_opens_the_window() {
    let more = PdsParams { announced_mpr: 16, tx_queue: 4000, ..plain() };
    let mut pair = Pair::at_332(more);
    // An ACK_CC reports it, because there is a gap.
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(333));
    pair.send(A, 1);
    pair.send(A, 2);
    pair.run();
    pair.impair(&["drop"]);
    for message in 0..3000 {
        pair.send(A, message);
    }
    assert_eq!(pair.seen.iter().filter_map(psn_of).max(), Some(334 + 2048));
}

#[test]
fn target_sends_close_request() {
    let mut pair = Pair::at_332(plain());
    pair.send(A, 1);
    pair.run();
    let Ticket::Pdc(target, _) = pair.given[B][0].ticket else { panic!() };
    pair.ends[B].close(pair.now, target);
    pair.run();
    let seen: Vec<(CtlType, u32, u32)> = controls(&pair.seen);
    assert_eq!(seen, [(CtlType::CLOSE_REQUEST, 48, 0), (CtlType::CLOSE_COMMAND, 334, 0)]);
    assert_eq!([pair.ends[A].contexts(), pair.ends[B].contexts()], [0, 0]);
    for side in [A, B] {
        assert!(pair.events[side].contains(&EventKind::Closed(CloseReason::Command)));
        assert!(pair.told[side].iter().any(|told| matches!(told, Indication::Closed(_))));
    }
}

#[test]
fn unanswered_close_request_ends_in_error() {
    let mut pair = Pair::at_332(PdsParams { max_rto_retx_cnt: 31, ..plain() });
    pair.send(A, 1);
    pair.run();
    pair.impair(&["drop"]);
    let Ticket::Pdc(target, _) = pair.given[B][0].ticket else { panic!() };
    pair.ends[B].close(pair.now, target);
    pair.run_for(Duration::from_millis(999));
    assert_eq!(nacks(&pair.seen), []);
    pair.run_for(Duration::from_millis(2));
    assert_eq!(nacks(&pair.seen), [(NackCode::CLOSING_IN_ERR, 334, 0x8001, 0)]);
    assert!(pair.events[B].contains(&EventKind::Closed(CloseReason::NoCommand)));
}

#[test]
fn unacknowledged_return_data_refuses_close() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Return(ok_response(1), vec![data(9, 9, 1, true, true, 1024)]));
    pair.impair_only("drop", |packet| packet.src == address(B) && psn_of(packet).is_some());
    pair.request(Via::Route(route(B, Mode::Rud)), A, read(1, true, true));
    pair.run_for(us(5));
    let context = pair.context();
    // No layer has announced outstanding read data.
    pair.ends[A].close(pair.now, context);
    pair.run_for(us(5));
    assert_eq!(nacks(&pair.seen), [(NackCode::CLOSING_IN_ERR, 334, 0x8001, 0)]);
    assert_eq!(pair.failures(B), [(9, Failure::Closed)]);
    assert!(pair.events[A].contains(&EventKind::Closed(CloseReason::Refused(NackCode::CLOSING_IN_ERR))));
}

#[test]
fn hold_and_partial_message_delay_close() {
    let mut pair = Pair::at_332(plain());
    let context = pair.context();
    let via = Via::Route(route(B, Mode::Rud));
    pair.ends[A].hold(pair.now, context);
    pair.request(via, A, TxRequest { eom: false, ..request(1) });
    pair.ends[A].close(pair.now, context);
    pair.run();
    assert_eq!(controls(&pair.seen), [], "neither whole nor released");
    // Another message uses another context.
    pair.request(via, A, request(2));
    assert_eq!(pair.ends[A].contexts(), 2);
    pair.request(via, A, TxRequest { som: false, ..request(2) });
    pair.run();
    pair.ends[A].release(pair.now, context);
    pair.run();
    assert_eq!(pair.failures(A), [(2, Failure::Closed)], "the rest of a message that has none");
    assert_eq!(pair.ends[A].contexts(), 2, "{}", pair.ladder);
}

#[test]
fn messages_do_not_interleave() {
    let mut pair = Pair::at_332(plain());
    let via = Via::Route(route(B, Mode::Rud));
    pair.request(via, A, TxRequest { eom: false, ..request(1) });
    let refused = pair.ends[A].request(pair.now, via, request(2)).unwrap_err();
    assert_eq!(refused.0, request(2), "whole");
    pair.request(via, A, TxRequest { som: false, ..request(1) });
    pair.run();
    assert!(pair.told[A].contains(&Indication::Resumed(via)));
    pair.request(via, A, request(2));
}

#[test]
fn a_full_queue_pauses_and_resumes() {
    let mut pair = Pair::at_332(PdsParams { tx_queue: 4, ..plain() });
    let via = Via::Route(route(B, Mode::Rud));
    let now = pair.now;
    let taken =
        (0..10).take_while(|message| pair.ends[A].request(now, via, request(*message)).is_ok()).count();
    assert_eq!(taken, 4);
    pair.run();
    let flow: Vec<&Indication> = pair.told[A]
        .iter()
        .filter(|told| matches!(told, Indication::Paused(_) | Indication::Resumed(_)))
        .collect();
    assert_eq!(flow, [&Indication::Paused(via), &Indication::Resumed(via)]);
}

#[test]
fn idle_time_closes_idle_context() {
    let mut pair = Pair::new(PdsParams { idle_time: Duration::from_millis(1), ..plain() });
    pair.send(A, 1);
    pair.run();
    let idle = |side: usize| pair.events[side].contains(&EventKind::Closing(CloseReason::Idle));
    assert!(idle(A) || idle(B));
    assert_eq!([pair.ends[A].contexts(), pair.ends[B].contexts()], [0, 0]);
}

#[test]
fn context_closes_before_psns_run_out() {
    let params = PdsParams { psn_range: 1 << 12, ..plain() };
    let mut pair = Pair::new(params);
    let mut highest = 0;
    pair.recording = false;
    for message in 0..10_000 {
        pair.send(A, message);
        pair.run_for(us(15));
        highest = highest.max(pair.ends[A].contexts());
    }
    pair.run();
    let mut responses = pair.responses(A);
    responses.sort_unstable();
    responses.dedup();
    assert_eq!((responses.len(), pair.failures(A)), (10_000, vec![]));
    let closed = |told: &&Indication| matches!(told, Indication::Closed(_));
    assert_eq!(pair.told[A].iter().filter(closed).count(), 2);
    assert!(highest <= 2);
}

#[test]
fn misdirected_control_packet_is_dropped() {
    let mut pair = Pair::at_332(plain());
    pair.inject(A, control(B, CtlType::CLOSE_COMMAND, 48, 0));
    assert_eq!(pair.ends[A].dropped(Dropped::UnfitControl), 1);
    assert_eq!(pair.ends[A].contexts(), 1);
}

#[test]
fn null_above_cumulative_psn_reports_arrival_only() {
    let mut pair = Pair::at_332(plain());
    pair.impair(&["drop"]);
    pair.send(A, 1);
    pair.send(A, 2);
    let null = |cack: u32, offset: i16| {
        let response =
            Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::NULL).done().unwrap();
        let ack = Ack::build().prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_RESPONSE));
        let ack = ack.cack_psn(Psn(cack)).ack_psn_offset(offset).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001));
        wire::packet(B, &[ack.done().unwrap().bytes(), response.bytes()])
    };
    pair.inject(A, null(332, 2));
    assert!(pair.responses(A).is_empty(), "an error may follow");
    pair.inject(A, null(334, 0));
    assert_eq!(pair.responses(A), [1, 2]);
}
