//! A malicious peer: everything stays within its limit, nothing panics, and every request gets a reply.

use super::pair::*;
use bytes::Bytes;
use proptest::prelude::*;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{NackCode, NextHdr, Opcode, ReturnCode};
use uet_wire::ses::Std;

const KEY: u64 = 0xacce5;

#[test]
fn message_limit_refuses_temporarily() {
    let few = SesParams { max_messages: 2, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), few).opened();
    let region = region(&mut pair, KEY, 4 * 8192);
    let ids: Vec<_> = (0..4u64)
        .map(|k| {
            // The messages use different routes, so that all are in flight at once.
            let route = Route { class: k as u8, ..peer().route };
            let work = Work::Write { key: Key(KEY), offset: k * 8192, data: data(8192) };
            pair.side[0].post(Operation::new(Peer { route, ..peer() }, work)).unwrap()
        })
        .collect();
    pair.run();
    assert!(!pair.sent_back.is_empty());
    assert!(pair.sent_back.iter().all(|code| *code == NackCode::NO_SES_MSG_AVAIL));
    for (k, id) in ids.into_iter().enumerate() {
        assert!(pair.outcome(id).is_ok());
        assert_eq!(pair.side[1].memory(region).unwrap()[k * 8192..][..8192], data(8192));
    }
}

#[test]
fn read_data_limit_refuses_temporarily() {
    let few = SesParams { max_reads: 1, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), few).opened();
    region(&mut pair, KEY, 20_000);
    assert_eq!(pair.run_one(read(KEY, 0, 20_000)).unwrap().data.len(), 20_000);
    assert!(pair.sent_back.contains(&NackCode::NO_RESOURCE));
}

#[test]
fn completion_limit_refuses_temporarily() {
    let mut target = Ses::new(SesParams { max_written: 1, ..SesParams::default() }, &PdsParams::default());
    target.open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
    let memory = Region { key: Key(KEY), base: 0, access: Access::ALL, data: vec![0; 8] };
    target.expose(index(10), memory).unwrap();
    let mut initiator = Ses::default();
    let mut ask = |target: &mut Ses, psn| {
        initiator.post(Operation { header_data: Some(psn), ..write(KEY, 0, data(8)) }).unwrap();
        let Some(Command::Send(_, request)) = initiator.poll_command() else { panic!() };
        let ticket = Ticket::Pdc(handle(7), Psn(psn as u32));
        let rx = arrived(ticket, request.next_hdr, &request.head, request.payload);
        target.handle(Indication::Request(rx));
        target.poll_command()
    };
    assert!(matches!(ask(&mut target, 1), Some(Command::Respond(..))));
    assert!(matches!(ask(&mut target, 2), Some(Command::Refuse(_, NackCode::NO_RESOURCE))));
    assert!(matches!(target.poll_completion(), Some(Completion::Written(_))));
    assert!(matches!(ask(&mut target, 3), Some(Command::Respond(..))));
}

#[test]
fn unexpected_messages_are_bounded() {
    for (params, expected) in [
        (SesParams { max_unexpected: 2, ..SesParams::default() }, 2),
        (SesParams { max_unexpected_bytes: 350, ..SesParams::default() }, 3),
    ] {
        let mut pair = Pair::with(SesParams::default(), params).opened();
        let kept = (0..5).filter(|_| pair.run_one(send(Some(1), data(100))).is_ok()).count();
        assert_eq!(kept, expected);
        // One completion taken makes room for another.
        pair.side[1].post_receive(index(10), Receive::tagged(100, 1)).unwrap();
        let again: Vec<bool> = (0..2).map(|_| pair.run_one(send(Some(1), data(100))).is_ok()).collect();
        assert_eq!(again, [true, false]);
    }
}

#[test]
fn deferred_sends_are_bounded() {
    let one = SesParams { max_deferred: 1, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), one).opened();
    let deferrable = || Operation::new(peer(), Work::Deferrable { tag: Some(1), data: data(4) });
    let first = pair.side[0].post(deferrable()).unwrap();
    pair.run();
    assert!(!pair.has_ended(first));
    assert_eq!(pair.run_one(deferrable()).unwrap_err().code, ReturnCode::NO_MATCH);
    pair.side[1].post_receive(index(10), Receive::tagged(4, 1)).unwrap();
    pair.run();
    assert!(pair.outcome(first).is_ok());
}

#[test]
fn operations_are_bounded() {
    let two = SesParams { max_operations: 2, ..SesParams::default() };
    let mut pair = Pair::with(two, SesParams::default()).opened();
    region(&mut pair, KEY, 8);
    let mut post = || pair.side[0].post(write(KEY, 0, data(8)));
    assert!(post().is_ok() && post().is_ok());
    assert_eq!(post(), Err(PostError::Full));
    pair.run();
    assert!(pair.side[0].post(write(KEY, 0, data(8))).is_ok());
}

#[test]
fn rendezvous_reads_wait_for_a_free_operation() {
    let one = SesParams { max_operations: 1, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), one).opened();
    let region = Region { key: Key(9), base: 0, access: Access::READ, data: data(9000).to_vec() };
    let source = pair.side[0].expose(index(20), region).unwrap();
    for tag in 0..3 {
        pair.side[1].post_receive(index(10), Receive::tagged(9000, tag)).unwrap();
        let work = Work::Rendezvous { tag: Some(tag), source, offset: 0, length: 9000, eager: 0 };
        pair.side[0].post(Operation::new(peer(), work)).unwrap();
    }
    pair.run();
    assert_eq!(pair.received().len(), 3);
    assert!(pair.received().iter().all(|received| received.data == data(9000)));
}

#[test]
fn unread_events_are_bounded() {
    let three = SesParams { max_events: 3, ..SesParams::default() };
    let mut pair = Pair::with(three, SesParams::default()).opened();
    region(&mut pair, KEY, 8);
    for _ in 0..5 {
        pair.run_one(write(KEY, 0, data(8))).unwrap();
    }
    let left: Vec<SesEvent> = std::iter::from_fn(|| pair.side[0].poll_event()).collect();
    assert_eq!(left.len(), 3);
    assert!(matches!(left[2], SesEvent::Completed { .. }), "the latest are left");
}

#[test]
fn contradictory_packet_fails_its_message() {
    let mut pair = Pair::open();
    let region = region(&mut pair, KEY, 8192);
    let packet = |opcode: Opcode, total: u32, som: bool, eom: bool, offset: u32| {
        let header = Std::build(opcode).head(|head| head.rel(true).som(som).eom(eom)).message_id(1);
        let header = header.address(|address| address.job_id(JOB).pid_on_fep(PID).resource_index(10));
        let header = match opcode {
            Opcode::UET_WRITE => header.memory_key(KEY),
            _ => header.match_bits(0),
        };
        let header = if som { header } else { header.payload_length(8).message_offset(offset) };
        header.request_length(total).done().unwrap()
    };
    let write = Opcode::UET_WRITE;
    for (second, why) in [
        (packet(Opcode::UET_TAGGED_SEND, 24, false, false, 8), Why::OtherMessage),
        (packet(write, 25, false, false, 8), Why::OtherMessage),
        (packet(write, 24, false, false, 17), Why::Lengths),
        (packet(write, 24, false, true, 8), Why::Lengths),
    ] {
        let target = &mut pair.side[1];
        while target.poll_event().is_some() {}
        for (psn, header) in [(1, packet(write, 24, true, false, 0)), (2, second)] {
            let ticket = Ticket::Pdc(handle(7), Psn(psn));
            let rx = arrived(ticket, NextHdr::UET_HDR_REQUEST_STD, header.bytes(), data(8));
            target.handle(Indication::Request(rx));
            assert!(matches!(target.poll_command(), Some(Command::Respond(..))));
        }
        let refused = std::iter::from_fn(|| target.poll_event()).last();
        assert!(matches!(refused, Some(SesEvent::Refused { why: seen, .. }) if seen == why), "{refused:?}");
        target.handle(Indication::Closed(handle(7)));
    }
    assert!(pair.side[1].memory(region).unwrap()[8..].iter().all(|byte| *byte == 0));
}

/// Draws a header that is nearly correct. The fields that select behavior have few values.
fn almost() -> impl Strategy<Value = (NextHdr, Vec<u8>)> {
    let field = |values: &'static [u8]| prop::sample::select(values);
    (
        0u8..8,
        prop::collection::vec(any::<u8>(), 0..120),
        0u8..0x12,
        0u8..64,
        field(&[0, 1, 10]),
        field(&[0, 8]),
    )
        .prop_map(|(next_hdr, mut bytes, opcode, flags, index, length)| {
            bytes.resize(bytes.len().max(96), 0);
            bytes[0] = opcode;
            bytes[1] = flags;
            bytes[2..12].copy_from_slice(&[0, 1, 0, 0, 0, JOB as u8, 0, PID as u8, 0, index]);
            bytes[12..40].fill(0);
            bytes[24..32].copy_from_slice(&KEY.to_be_bytes());
            bytes[40..44].copy_from_slice(&[0, 0, 0, length]);
            bytes.truncate(if flags & 1 == 0 { 96 } else { 44 });
            (NextHdr::new(next_hdr).unwrap(), bytes)
        })
}

proptest! {
    /// In any order of packets, each request except a datagram is answered or refused once, at once or with its
    /// message. Memory without permission never changes.
    #[test]
    fn random_requests_stay_in_bounds(
        requests in prop::collection::vec((prop_oneof![almost(), (0u8..16, prop::collection::vec(any::<u8>(), 0..112)).prop_map(|(next_hdr, bytes)| (NextHdr::new(next_hdr).unwrap(), bytes))], 0usize..64, 0u8..4, 0u16..3), 0..60),
    ) {
        let small = SesParams { max_messages: 3, max_unexpected: 2, max_deferred: 2, max_reads: 2, ..SesParams::default() };
        let mut ses = Ses::new(small, &PdsParams::default());
        ses.open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
        let memory = |key, access| Region { key: Key(key), base: 0, access, data: vec![7; 64] };
        ses.expose(index(10), memory(KEY, Access::ALL)).unwrap();
        let closed = ses.expose(index(10), memory(1, Access::READ)).unwrap();
        ses.post_receive(index(10), Receive::new(32)).unwrap();
        ses.post(read(KEY, 0, 100)).unwrap();
        let (mut asked, mut answered, mut waiting) = (0, 0, 0);
        for (psn, ((next_hdr, head), payload, mode, pdcid)) in requests.into_iter().enumerate() {
            let from = ADDRESS[0].into();
            let (mode, ticket) = match mode {
                0 => (Mode::Rudi, Ticket::Rudi(from, 0, psn as u32)),
                1 => (Mode::Uud, Ticket::Uud),
                _ => (Mode::Rud, Ticket::Pdc(handle(pdcid + 1), Psn(psn as u32))),
            };
            asked += usize::from(ticket != Ticket::Uud);
            let head = head.into_iter().take(112).collect();
            let (payload, confirmed) = (Bytes::from(vec![9; payload]), psn % 2 == 0);
            ses.handle(Indication::Request(RxRequest { ticket, from, class: 0, mode, confirmed, next_hdr, head, payload }));
            for _ in 0..100 {
                match ses.poll_command() {
                    Some(Command::Respond(..) | Command::Refuse(..)) => answered += 1,
                    Some(_) => {}
                    None => break,
                }
            }
            prop_assert!(ses.poll_command().is_none());
            waiting = waiting.max(asked - answered);
        }
        prop_assert!(answered <= asked);
        prop_assert!(waiting <= 3, "at most one for each open message");
        prop_assert_eq!(ses.memory(closed).unwrap(), &[7; 64][..]);
        for pdcid in 1..4 {
            ses.handle(Indication::Closed(handle(pdcid)));
        }
    }
}
