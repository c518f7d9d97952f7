//! The sixteen sequences of the rules, packet by packet, as readable ladders.
//!
//! The test prints a difference. To accept an intended one:
//! `INSTA_UPDATE=always cargo test -p uet-model --test all sequences`.

use super::common::*;
use core::time::Duration;
use uet_model::pds::EventKind;
use uet_model::*;
use uet_wire::registry::{NackCode, PdsType};
use uet_wire::{Psn, Uet};

/// Compares a ladder with the one in `sequences/`.
fn check(name: &str, pair: &Pair) {
    insta::with_settings!({ snapshot_path => "sequences", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, pair.ladder.to_string());
    });
}

/// Returns psn and clear_psn_offset of each request.
fn clears(pair: &Pair) -> Vec<(u32, i16)> {
    let request = |packet: &Packet| {
        let bytes = packet.to_wire();
        let request = Uet::parse(&bytes).ok()?.pds?.request()?;
        Some((request.psn().0, request.clear_psn_offset()))
    };
    pair.seen.iter().filter_map(request).collect()
}

/// Returns the PSNs of the ACKs in sending order: the named one and the cumulative one.
fn acks(pair: &Pair) -> Vec<(u32, u32)> {
    let ack = |packet: &Packet| {
        let bytes = packet.to_wire();
        let ack = Uet::parse(&bytes).ok()?.pds?.ack()?;
        Some((ack.ack_psn()?.0, ack.cack_psn().0))
    };
    pair.seen.iter().filter_map(ack).collect()
}

#[test]
fn s01_one_packet_with_a_plain_response() {
    let mut pair = Pair::at_332(plain());
    pair.send(A, 1);
    pair.run();
    assert_eq!(acks(&pair), [(333, 333)]);
    assert_eq!(pair.responses(A), [1]);
    assert!(!pair.events[B].contains(&EventKind::Stored(Psn(333))));
    check("01-plain", &pair);
}

#[test]
fn s02_one_packet_with_a_guaranteed_response() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Answer(guaranteed(1)));
    pair.send(A, 1);
    pair.run();
    assert_eq!(acks(&pair), [(333, 332)]);
    assert_eq!(pair.responses(A), [1]);
    assert_eq!(pair.ends[B].held(), 0);
    check("02-guaranteed", &pair);
}

#[test]
fn s02_the_clear_goes_with_the_next_request() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, psn| match psn {
        Psn(333) => React::Answer(guaranteed(1)),
        _ => React::Answer(plain_response(2)),
    });
    pair.send(A, 1);
    pair.run_for(us(5));
    pair.send(A, 2);
    pair.run();
    assert_eq!(clears(&pair), [(333, -1), (334, -1)]);
    assert_eq!(acks(&pair), [(333, 332), (334, 334)]);
    check("02-guaranteed-with-a-request", &pair);
}

#[test]
fn s03_four_packets_and_an_ack_for_every_second() {
    let mut pair = Pair::at_332(PdsParams { ack_gen_trigger: 8192, ..plain() });
    for message in 1..=4 {
        pair.send(A, message);
    }
    pair.run();
    assert_eq!(acks(&pair), [(334, 334), (336, 336)]);
    assert_eq!(pair.responses(A), [1, 2, 3, 4]);
    check("03-coalesced", &pair);
}

#[test]
fn s04_four_guaranteed_and_two_plain() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, psn| match psn.0 {
        333..=336 => React::Answer(guaranteed((psn.0 - 332) as u16)),
        _ => React::Answer(plain_response((psn.0 - 332) as u16)),
    });
    // The ACK of 335 is late.
    pair.impair_only("delay 3us", |packet| {
        let ack = Uet::parse(&packet.head).ok().and_then(|uet| uet.pds?.ack());
        ack.is_some_and(|ack| ack.ack_psn() == Some(Psn(335)))
    });
    for message in 1..=4 {
        pair.send(A, message);
    }
    pair.run_for(us(3));
    pair.send(A, 5);
    pair.run_for(us(4));
    pair.send(A, 6);
    pair.run();
    assert_eq!(clears(&pair)[4..], [(337, -3), (338, -2)], "CLEAR 334, then 336");
    assert_eq!(acks(&pair)[..4], [(333, 332), (334, 332), (335, 332), (336, 332)]);
    assert_eq!(acks(&pair)[4..], [(338, 338)], "the next value sent");
    assert!(pair.events[B].contains(&EventKind::CackMoved(Psn(334))));
    check("04-guaranteed-and-plain", &pair);
}

#[test]
fn s05_a_read_with_a_standard_header() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Return(ok_response(1), vec![data(9, 9, 1, true, true, 1024)]));
    pair.request(Via::Route(route(B, Mode::Rud)), A, read(1, true, true));
    pair.run();
    assert_eq!(clears(&pair), [(333, -1), (48, -1)]);
    assert_eq!(acks(&pair), [(333, 333), (48, 48)]);
    check("05-read", &pair);
}

#[test]
fn s06_a_read_with_a_small_header() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, psn| React::Return(ok_response(1), vec![data_small(9, psn, 1024)]));
    pair.request(Via::Route(route(B, Mode::Rud)), A, read(1, true, true));
    pair.run();
    assert_eq!(acks(&pair), [(333, 333), (48, 48)]);
    check("06-small-read", &pair);
}

#[test]
fn s07_read_data_in_the_ack() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Answer(data_in_ack(1, 16)));
    pair.request(Via::Route(route(B, Mode::Rud)), A, read(1, true, true));
    pair.run();
    assert_eq!(acks(&pair), [(333, 332)]);
    let Some(Indication::Response { response: Some(response), .. }) = pair.told[A].last() else { panic!() };
    assert_eq!(response.payload.len(), 16);
    check("07-read-in-ack", &pair);
}

#[test]
fn s08_read_requests_and_a_write_between() {
    let mut pair = Pair::at_332(PdsParams { ack_gen_trigger: 8192, ..plain() });
    pair.above[B] = Box::new(|_, _| React::Keep);
    let via = Via::Route(route(B, Mode::Rud));
    for (som, eom) in [(true, false), (false, false), (false, true)] {
        pair.request(via, A, read(88, som, eom));
    }
    assert_eq!(clears(&pair), [(333, -1), (334, -2), (335, -3)], "CLEAR 332");
    pair.run_for(us(1));
    let tickets: Vec<Ticket> = pair.given[B].iter().map(|given| given.ticket).collect();
    let Ticket::Pdc(target, _) = tickets[0] else { panic!() };
    // The first two are answered. The ACK for 334 leaves when the delay is over.
    for ticket in &tickets[..2] {
        pair.ends[B].respond(pair.now, *ticket, plain_response(88));
    }
    pair.run_for(us(10));
    pair.ends[B].respond(pair.now, tickets[2], ok_response(88));
    pair.run_for(us(1));
    assert_eq!(acks(&pair), [(334, 334), (335, 335)]);
    // A write leaves with CLEAR 335, which its ACK has moved.
    pair.send(A, 879);
    pair.run_for(us(1));
    let back = Via::Return(target);
    pair.request(back, B, data(9, 9, 88, true, false, 4096));
    pair.request(back, B, data(9, 9, 88, false, false, 4096));
    pair.run_for(us(1));
    let ticket = pair.given[B][3].ticket;
    pair.ends[B].respond(pair.now, ticket, ok_response(879));
    pair.request(back, B, data(9, 9, 88, false, true, 8));
    pair.run();
    assert_eq!(clears(&pair)[3..], [(336, -1), (48, -1), (49, -2), (50, -3)]);
    assert_eq!(acks(&pair)[2..], [(49, 49), (336, 336), (50, 50)]);
    check("08-reads-and-a-write", &pair);
}

#[test]
fn s09_a_nack_for_want_of_a_buffer() {
    let mut pair = Pair::at_332(plain());
    let mut busy = true;
    pair.above[B] = Box::new(move |_, _| match core::mem::replace(&mut busy, false) {
        true => React::Refuse(NackCode::NO_PKT_BUFFER),
        false => React::Answer(plain_response(14)),
    });
    pair.send(A, 14);
    pair.run();
    assert_eq!(pair.kept[B].len(), 1);
    assert_eq!(pair.responses(A), [14]);
    check("09-no-buffer", &pair);
}

#[test]
fn s10_a_request_is_lost() {
    let mut pair = Pair::at_332(plain());
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(333));
    pair.send(A, 1);
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A)), (1, vec![1]));
    check("10-request-lost", &pair);
}

#[test]
fn s10_an_ack_is_lost() {
    let mut pair = Pair::at_332(plain());
    pair.impair_only("drop 1", |packet| is(packet, PdsType::ACK));
    pair.send(A, 1);
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A)), (1, vec![1]));
    check("10-ack-lost", &pair);
}

#[test]
fn s10_an_ack_with_a_guaranteed_response_is_lost() {
    let mut pair = Pair::at_332(plain());
    pair.above[B] = Box::new(|_, _| React::Answer(guaranteed(1)));
    pair.impair_only("drop 1", |packet| is(packet, PdsType::ACK));
    pair.send(A, 1);
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A)), (1, vec![1]));
    check("10-guaranteed-ack-lost", &pair);
}

#[test]
fn s11_a_nack_is_lost() {
    let mut pair = Pair::at_332(plain());
    let mut busy = true;
    pair.above[B] = Box::new(move |_, _| match core::mem::replace(&mut busy, false) {
        true => React::Refuse(NackCode::NO_PKT_BUFFER),
        false => React::Answer(plain_response(1)),
    });
    pair.impair_only("drop 1", |packet| is(packet, PdsType::NACK));
    pair.send(A, 1);
    pair.run();
    assert_eq!((pair.kept[B].len(), pair.responses(A)), (1, vec![1]));
    check("11-nack-lost", &pair);
}

/// Returns a pair with three requests on a new context, the first of which is lost.
fn first_lost(mode: Mode) -> Pair {
    let mut pair = Pair::new(plain());
    pair.impair_only("drop 1", |packet| psn_of(packet) == Some(48));
    for message in 1..=3 {
        pair.request(Via::Route(route(B, mode)), A, request(message));
    }
    pair
}

#[test]
fn s12_the_first_packet_is_lost() {
    let mut pair = first_lost(Mode::Rud);
    pair.run_for(us(2));
    assert_eq!(pair.given[B].len(), 2, "delivered out of order");
    pair.run();
    assert_eq!((pair.given[B].len(), pair.responses(A).len()), (3, 3));
    check("12-first-lost", &pair);
}

#[test]
fn s12_the_first_packet_is_lost_on_an_ordered_context() {
    let mut pair = first_lost(Mode::Rod);
    pair.run_for(us(2));
    assert!(pair.given[B].is_empty(), "nothing early");
    pair.run();
    let order: Vec<u8> = pair.given[B].iter().map(|given| given.payload[0]).collect();
    assert_eq!((order, pair.responses(A)), (vec![1, 2, 3], vec![1, 2, 3]));
    check("12-first-lost-ordered", &pair);
}

#[test]
fn s13_the_first_ack_is_lost() {
    let mut pair = Pair::new(plain());
    pair.impair_only("drop 1", |packet| is(packet, PdsType::ACK));
    pair.send(A, 1);
    pair.run_for(us(5));
    pair.send(A, 2);
    pair.run();
    assert_eq!(pair.ends[B].contexts(), 1);
    assert_eq!((pair.given[B].len(), pair.responses(A).len()), (2, 2));
    check("13-first-ack-lost", &pair);
}

#[test]
fn s14_reordering_across_the_whole_window() {
    let params = PdsParams { tx_queue: 2000, ack_unmarked_duplicates: false, ..plain() };
    let mut pair = Pair::at_332(params);
    pair.recording = true;
    // Requests and ACKs arrive in reverse order, and twice.
    let mut late = 3000;
    let mut turn = 0;
    pair.ends.fabric().rule(move |_, _, treatment| {
        turn += 1;
        late -= 1;
        match turn % 2 {
            0 => treatment.copies.push(Duration::ZERO),
            _ => treatment.delay = Duration::from_nanos(late * 10),
        }
    });
    for message in 0..1024 {
        pair.send(A, message);
    }
    pair.run();
    assert_eq!(pair.given[B].len(), 1024);
    let mut responses = pair.responses(A);
    responses.sort_unstable();
    assert_eq!(responses, (0..1024).collect::<Vec<_>>());
    let copies = |event: &&EventKind| matches!(event, EventKind::Duplicate(..));
    assert!(pair.events[B].iter().filter(copies).count() >= 512);
}

#[test]
fn s15_psns_wrap() {
    let mut pair = Pair::new(PdsParams { start_psn: Some(u32::MAX - 2), ..plain() });
    pair.above[B] = Box::new(|_, psn| match psn.0 {
        u32::MAX | 0 => React::Answer(guaranteed(1)),
        _ => React::Answer(plain_response(1)),
    });
    for message in 1..=6 {
        pair.send(A, message);
        pair.run_for(us(4));
    }
    pair.run();
    assert_eq!(pair.responses(A), [1, 2, 3, 4, 5, 6]);
    assert!(pair.events[B].contains(&EventKind::CackMoved(Psn(2))));
    check("15-wrap", &pair);
}

#[test]
fn s16_close_and_what_comes_late() {
    let mut pair = Pair::at_332(plain());
    pair.send(A, 1);
    pair.run();
    let late = pair.seen.iter().find(|packet| psn_of(packet) == Some(333)).cloned().unwrap();
    let context = pair.context();
    pair.ends[A].close(pair.now, context);
    pair.run_for(us(5));
    assert_eq!(pair.ends[A].contexts(), 0);
    // A copy of an old request is refused and never delivered.
    pair.inject(B, late);
    pair.run_for(us(5));
    assert_eq!(pair.given[B].len(), 1);
    assert!(pair.events[B].contains(&EventKind::Nacked(Psn(333), NackCode::CLOSING)));
    // A new context uses the same PDCID.
    pair.send(A, 2);
    pair.run_for(us(50));
    assert_eq!(pair.context().pdcid, context.pdcid + 1, "the longest unused first");
    assert_eq!(pair.given[B].len(), 2);
    check("16-close", &pair);
}

#[test]
fn s16_the_same_pdcid_again() {
    let mut pair =
        Pair::of([PdsParams { general_pdcs: 1, ..plain() }, PdsParams { first_pdcid: 0x8001, ..plain() }]);
    pair.send(A, 1);
    pair.run_for(us(20));
    let before = pair.context();
    pair.ends[A].close(pair.now, before);
    pair.run_for(us(5));
    pair.send(A, 2);
    pair.run_for(us(20));
    let after = pair.context();
    assert_eq!((after.pdcid, after.generation), (before.pdcid, before.generation + 1));
    assert_eq!(pair.given[B].len(), 2);
    let start = |event: &EventKind| match event {
        EventKind::Opened(_, _, _, start) => Some(start.0),
        _ => None,
    };
    let starts: Vec<u32> = pair.events[A].iter().filter_map(start).collect();
    let apart = starts[1].wrapping_sub(49).min(49u32.wrapping_sub(starts[1]));
    assert!(apart >= 1 << 16, "{starts:?}");
}
