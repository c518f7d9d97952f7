//! NACKs at both ends: the source's reaction to each code, and the destination's reasons to send it.

use super::common::wire::{Rud, nack, nacks};
use super::common::*;
use core::time::Duration;
use uet_model::pds::{CloseReason, Dropped, EventKind};
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{NackCode, PdsType};

/// Returns an initiator with request 333 outstanding, which gets no reply.
fn waiting() -> Pair {
    let mut pair = Pair::at_332(plain());
    pair.impair(&["drop"]);
    pair.send(A, 1);
    pair
}

/// Returns when 333 was retransmitted after the NACK, in microseconds; `None` if not within 30.
fn retransmitted(pair: &mut Pair, code: NackCode) -> Option<u64> {
    pair.run_for(us(1));
    let before = pair.now;
    pair.inject(A, nack(code, 333, 0));
    for micros in 0..30 {
        if pair.seen.iter().filter_map(psn_of).filter(|psn| *psn == 333).count() > 1 {
            return Some(micros);
        }
        pair.run_for(us(1));
    }
    assert_eq!((pair.now - before).as_micros(), 30);
    None
}

/// The reaction of a source to a NACK of one of its packets.
#[derive(Clone, Copy)]
enum Reaction {
    /// It retransmits the packet at once.
    AtOnce,
    /// It retransmits the packet after NACK_Retx_Time.
    AfterBackoff,
    /// It closes the context, and the request fails.
    Closes,
    /// It does nothing, because the context is established.
    Nothing,
}

/// The reaction to each code that is assigned.
const REACTIONS: [(NackCode, Reaction); 28] = [
    (NackCode::TRIMMED, Reaction::AtOnce),
    (NackCode::TRIMMED_LASTHOP, Reaction::AtOnce),
    (NackCode::TRIMMED_ACK, Reaction::AfterBackoff),
    (NackCode::NO_PDC_AVAIL, Reaction::AfterBackoff),
    (NackCode::NO_CCC_AVAIL, Reaction::AfterBackoff),
    (NackCode::NO_BITMAP, Reaction::AfterBackoff),
    (NackCode::NO_PKT_BUFFER, Reaction::AfterBackoff),
    (NackCode::NO_GTD_DEL_AVAIL, Reaction::AfterBackoff),
    (NackCode::NO_SES_MSG_AVAIL, Reaction::AfterBackoff),
    (NackCode::NO_RESOURCE, Reaction::AfterBackoff),
    (NackCode::PSN_OOR_WINDOW, Reaction::AfterBackoff),
    (NackCode::ROD_OOO, Reaction::AfterBackoff),
    (NackCode::INV_DPDCID, Reaction::Closes),
    (NackCode::PDC_HDR_MISMATCH, Reaction::Closes),
    (NackCode::CLOSING, Reaction::Closes),
    (NackCode::CLOSING_IN_ERR, Reaction::Closes),
    (NackCode::PKT_NOT_RCVD, Reaction::AtOnce),
    (NackCode::GTD_RESP_UNAVAIL, Reaction::Closes),
    (NackCode::ACK_WITH_DATA, Reaction::AtOnce),
    (NackCode::INVALID_SYN, Reaction::Closes),
    (NackCode::PDC_MODE_MISMATCH, Reaction::Closes),
    (NackCode::NEW_START_PSN, Reaction::Nothing),
    (NackCode::RCVD_SES_PROCG, Reaction::AfterBackoff),
    (NackCode::UNEXP_EVENT, Reaction::Closes),
    (NackCode::RCVR_INFER_LOSS, Reaction::AfterBackoff),
    (NackCode::EXP_NACK_NORMAL, Reaction::AfterBackoff),
    (NackCode::EXP_NACK_ERR, Reaction::AtOnce),
    (NackCode::EXP_NACK_FATAL, Reaction::Closes),
];

#[test]
fn source_reacts_to_each_nack_code() {
    for (code, reaction) in REACTIONS {
        let mut pair = waiting();
        let at = retransmitted(&mut pair, code);
        let failures = pair.failures(A);
        match reaction {
            Reaction::AtOnce => assert_eq!((at, failures), (Some(0), vec![]), "{code}"),
            Reaction::AfterBackoff => assert_eq!((at, failures), (Some(10), vec![]), "{code}"),
            Reaction::Nothing => assert_eq!((at, failures), (None, vec![]), "{code}"),
            Reaction::Closes => {
                assert_eq!((at, failures), (None, vec![(1, Failure::Ended(code.code()))]), "{code}");
                assert!(pair.events[A].contains(&EventKind::Closed(CloseReason::Refused(code))), "{code}");
                assert_eq!((pair.ends[A].contexts(), pair.ends[A].held()), (0, 0), "{code}");
                // The next request gets a new context.
                pair.send(A, 2);
                assert_eq!(pair.ends[A].contexts(), 1);
            }
        }
    }
}

#[test]
fn table_has_every_assigned_nack_code() {
    let listed: Vec<u8> = REACTIONS.iter().map(|(code, _)| code.code()).collect();
    let assigned = (0..=255).filter(|code| NackCode::new(*code).is_some_and(|code| code.name().is_some()));
    assert_eq!(listed, assigned.collect::<Vec<u8>>());
}

#[test]
fn reserved_nack_code_is_dropped() {
    for code in [0x00, 0x0c, 0x1b, 0x80] {
        let mut pair = waiting();
        let at = retransmitted(&mut pair, NackCode::new(code).unwrap());
        assert_eq!((at, pair.failures(A)), (None, vec![]), "{code:#x}");
        assert_eq!(pair.ends[A].dropped(Dropped::UnknownNack), 1, "{code:#x}");
    }
}

#[test]
fn nack_of_unknown_psn_is_ignored() {
    for psn in [331, 332, 334, 333u32.wrapping_add(1 << 31)] {
        let mut pair = waiting();
        pair.inject(A, nack(NackCode::CLOSING_IN_ERR, psn, 0));
        assert_eq!((pair.ends[A].contexts(), pair.failures(A)), (1, vec![]), "{psn}");
        assert_eq!(pair.ends[A].dropped(Dropped::NackNotInFlight), 1, "{psn}");
    }
}

#[test]
fn repeated_refusals_fail_the_request() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Refuse(NackCode::NO_RESOURCE));
    pair.send(A, 1);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.given[B].len(), 6, "once, and Max_NACK_Retx_Cnt times again");
    assert_eq!(pair.failures(A), [(1, Failure::Refused(NackCode::NO_RESOURCE.code()))]);
}

#[test]
fn ses_takes_its_time() {
    // The peer answers after several retransmissions.
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Keep);
    pair.send(A, 1);
    pair.run_for(us(900));
    let codes: Vec<NackCode> = nacks(&pair.seen).iter().map(|nack| nack.0).collect();
    assert!(codes.iter().all(|code| *code == NackCode::RCVD_SES_PROCG) && codes.len() >= 5, "{codes:?}");
    assert_eq!(pair.failures(A), []);
    let ticket = pair.given[B][0].ticket;
    pair.ends[B].respond(pair.now, ticket, plain_response(1));
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A)), (1, vec![1]));

    // The peer may also stay silent.
    let mut pair = Pair::at_332(PdsParams { nack_ses_processing: false, ..plain() });
    pair.above[B] = Box::new(|_, _| React::Keep);
    pair.send(A, 1);
    pair.run_for(us(900));
    assert_eq!(nacks(&pair.seen), []);
}

#[test]
fn a_timeout_doubles_and_ends() {
    let mut pair = waiting();
    pair.run_for(Duration::from_millis(100));
    let times: Vec<u64> = {
        let mut times = Vec::new();
        for line in pair.ladder.to_string().lines().filter(|line| line.contains("retransmitted")) {
            times.push(line.trim_start().split('.').next().unwrap().parse().unwrap());
        }
        times
    };
    assert_eq!(times, [100, 300, 700, 1500, 3100], "100 us, then twice as long each time");
    assert_eq!(pair.failures(A), [(1, Failure::TimedOut)]);
    assert!(pair.told[A].iter().any(|told| matches!(told, Indication::Closed(_))));
}

#[test]
fn limits_15_and_31_mean_no_limit() {
    for endless in [15, 31] {
        let mut pair = Pair::at_332(PdsParams { max_rto_retx_cnt: endless, ..plain() });
        pair.impair(&["drop"]);
        pair.recording = false;
        pair.send(A, 1);
        pair.run_for(Duration::from_secs(10_000));
        assert_eq!(pair.failures(A), []);
    }
}

/// Returns the NACKs of a target that lacks a resource, for packets from 333 on.
fn lacking(params: PdsParams) -> Vec<(NackCode, u32, u16, u32)> {
    let mut pair = Pair::at_332(params);
    pair.above[B] = Box::new(|_, _| React::Keep);
    for psn in [333, 335, 336] {
        pair.inject(B, Rud { psn, ..Rud::default() }.packet());
    }
    nacks(&pair.seen)
}

#[test]
fn missing_resource_is_refused_before_delivery() {
    let buffers = lacking(PdsParams { rx_packets: 3, ..plain() });
    assert_eq!(buffers, [(NackCode::NO_PKT_BUFFER, 336, 0x8001, 0)]);
    let refused = [335, 336].map(|psn| (NackCode::NO_PKT_BUFFER, psn, 0x8001, 0));
    assert_eq!(lacking(PdsParams { rx_packets: 2, ..plain() }), refused, "the last place is for 334");
    let stored = lacking(PdsParams { stored_responses: 1, ..plain() });
    assert_eq!(stored[0], (NackCode::NO_GTD_DEL_AVAIL, 335, 0x8001, 0));
    let slots = lacking(PdsParams { receive_slots: 2, ..plain() });
    assert_eq!(slots[0], (NackCode::NO_RESOURCE, 335, 0x8001, 0));
}

#[test]
fn ses_refusal_sends_its_nack_code() {
    for code in [NackCode::NO_SES_MSG_AVAIL, NackCode::NO_RESOURCE, NackCode::EXP_NACK_NORMAL] {
        let mut pair = Pair::at_332(plain());
        let mut busy = true;
        pair.above[B] = Box::new(move |_, _| match core::mem::take(&mut busy) {
            true => React::Refuse(code),
            false => React::Answer(plain_response(1)),
        });
        pair.send(A, 1);
        pair.run();
        assert_eq!(nacks(&pair.seen), [(code, 333, 0x8001, 0)]);
        assert_eq!((pair.kept[B].len(), pair.responses(A)), (1, vec![1]), "{code}");
    }
}

#[test]
fn a_destination_may_report_a_gap() {
    let mut pair = Pair::at_332(PdsParams { infer_loss_packets: 3, ..plain() });
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(334));
    for message in 0..8 {
        pair.send(A, message);
    }
    pair.run();
    assert_eq!(nacks(&pair.seen), [(NackCode::RCVR_INFER_LOSS, 334, 0x8001, 0)], "once");
    assert_eq!(pair.given[B].len(), 8);
}

#[test]
fn a_source_may_infer_a_loss() {
    let mut pair = Pair::at_332(PdsParams { fast_loss_packets: 3, enb_ack_per_pkt: true, ..plain() });
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(334));
    for message in 0..8 {
        pair.send(A, message);
    }
    pair.run_for(us(20));
    assert_eq!(pair.responses(A).len(), 8, "long before the timeout:\n{}", pair.ladder);
    let again = |event: &&EventKind| matches!(event, EventKind::Retransmitted(..));
    assert_eq!(pair.events[A].iter().filter(again).count(), 1);
    // This is off by default.
    let mut pair = Pair::at_332(PdsParams { enb_ack_per_pkt: true, ..plain() });
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(334));
    for message in 0..8 {
        pair.send(A, message);
    }
    pair.run_for(us(90));
    assert!(pair.responses(A).len() < 8);
}

#[test]
fn ordered_context_goes_back_n() {
    let mut pair = Pair::new(PdsParams { enb_ack_per_pkt: true, ..plain() });
    let via = Via::Route(route(B, Mode::Rod));
    pair.request(via, A, request(0));
    pair.run_for(us(5));
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(50));
    for message in 1..6 {
        pair.request(via, A, request(message));
    }
    pair.run();
    assert_eq!(nacks(&pair.seen), [(NackCode::ROD_OOO, 51, 0x8001, 50)], "once for the gap");
    let psns: Vec<u32> = pair.seen.iter().filter_map(psn_of).collect();
    assert_eq!(psns, [48, 49, 50, 51, 52, 53, 50, 51, 52, 53]);
    let order: Vec<u8> = pair.given[B].iter().map(|given| given.payload[0]).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    let entropies: Vec<u16> =
        pair.seen.iter().filter(|packet| is(packet, PdsType::ROD_REQ)).map(|packet| packet.entropy).collect();
    assert!(entropies.iter().all(|entropy| *entropy == entropies[0]), "one path");
}

#[test]
fn nack_copies_fields_of_the_packet() {
    let mut pair = Pair::at_332(plain());
    pair.impair_only("mark", |packet| psn_of(packet).is_some());
    pair.send(A, 1);
    pair.run();
    let sent = pair.seen[0].clone();
    let ack = pair.seen[1].clone();
    let text = uet_wire::Uet::parse(&ack.head).unwrap();
    assert_eq!(text.pds.unwrap().ack().map(|ack| (ack.m(), ack.retx())), Some((true, false)));
    assert_eq!(ack.entropy, sent.entropy);
    assert_eq!((sent.priority, ack.priority), (Priority::Low, Priority::High));
    assert!(pair.events[B].contains(&EventKind::Acked(Psn(333), uet_model::pds::AckReason::Marked)));
}
