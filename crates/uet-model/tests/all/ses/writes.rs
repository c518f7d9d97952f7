//! Writes: cutting, placement, completion.

use super::pair::*;
use bytes::Bytes;
use proptest::prelude::*;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::registry::{NextHdr, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Std};

const KEY: u64 = 0xacce5;

fn std_of(request: &TxRequest) -> Std {
    assert_eq!(request.next_hdr, NextHdr::UET_HDR_REQUEST_STD);
    Std::parse(&request.head).unwrap().0.copied()
}

#[test]
fn empty_message_has_one_packet() {
    for work in [
        Work::Write { key: Key(KEY), offset: 4, data: Bytes::new() },
        Work::Read { key: Key(KEY), offset: 4, length: 0 },
        Work::Send { tag: None, data: Bytes::new() },
        Work::NoOp,
    ] {
        let mut pair = Pair::open();
        region(&mut pair, KEY, 8);
        pair.side[1].post_receive(index(10), Receive::new(0)).unwrap();
        let done = pair.run_one(Operation::new(peer(), work.clone())).unwrap();
        assert_eq!((done.length, pair.requests.len()), (0, 1), "{work:?}");
        let header = std_of(&pair.requests[0].2);
        assert!(header.head().som() && header.head().eom());
        assert!(pair.requests[0].2.payload.is_empty());
    }
}

#[test]
fn payload_is_shared_and_not_copied() {
    let mut pair = Pair::open();
    region(&mut pair, KEY, 16_384);
    let bytes = data(16_384);
    pair.run_one(write(KEY, 0, bytes.clone())).unwrap();
    for (k, (_, _, request)) in pair.requests.iter().enumerate() {
        assert_eq!(request.payload.as_ptr(), bytes[k * 4096..].as_ptr());
    }
}

#[test]
fn cutting_stops_when_paused() {
    let mut ses = Ses::default();
    let gigabyte = Bytes::from(vec![0; 1 << 30]);
    let id = ses.post(write(KEY, 0, gigabyte)).unwrap();
    let via = Via::Route(peer().route);
    for _ in 0..3 {
        assert!(matches!(ses.poll_command(), Some(Command::Send(..))));
    }
    ses.handle(Indication::Paused(via));
    assert_eq!(ses.poll_command(), None);
    ses.handle(Indication::Resumed(via));
    let Some(Command::Send(_, fourth)) = ses.poll_command() else { panic!() };
    assert_eq!(std_of(&fourth).message_offset(), Some(3 * 4096));
    // A packet that PDS refused leaves first when there is room again.
    ses.put_back(via, fourth.clone());
    assert_eq!(ses.poll_command(), None);
    ses.handle(Indication::Resumed(via));
    assert_eq!(ses.poll_command(), Some(Command::Send(via, fourth)));
    assert!(ses.abort(id));
    let Some(Command::Send(_, last)) = ses.poll_command() else { panic!() };
    assert!(last.eom);
    assert_eq!(ses.poll_command(), None);
}

#[test]
fn messages_leave_whole_and_in_order() {
    let mut pair = Pair::open();
    region(&mut pair, KEY, 16_384);
    let elsewhere = Peer { route: Route { class: 3, ..peer().route }, ..peer() };
    for peer in [peer(), peer(), elsewhere] {
        let work = Work::Write { key: Key(KEY), offset: 0, data: data(3 * 4096) };
        pair.side[0].post(Operation::new(peer, work)).unwrap();
    }
    pair.run();
    let order = |class: u8| -> Vec<u16> {
        let requests = pair.requests.iter();
        let on_way = requests.filter(|(_, via, _)| matches!(via, Via::Route(route) if route.class == class));
        on_way.map(|(_, _, request)| std_of(request).message_id()).collect()
    };
    assert_eq!(order(0), [1, 1, 1, 2, 2, 2]);
    assert_eq!(order(3), [3, 3, 3]);
    // Lanes take turns.
    assert_ne!(pair.requests[0].1, pair.requests[1].1);
}

#[test]
fn delivery_complete_response_waits_for_all_data() {
    let mut pair = Pair::open();
    let region = region(&mut pair, KEY, 3 * 4096);
    let operation = Operation { delivery_complete: true, ..write(KEY, 0, data(3 * 4096)) };
    let id = pair.side[0].post(operation).unwrap();
    pair.collect();
    pair.deliver(2);
    assert_eq!(pair.responses.len(), 0, "the last has come, the others have not");
    pair.deliver(0);
    assert_eq!(pair.responses.len(), 1);
    pair.run();
    assert_eq!(pair.responses.len(), 3);
    assert_eq!(pair.side[1].memory(region), Some(&data(3 * 4096)[..]));
    assert_eq!(pair.outcome(id).unwrap().length, 3 * 4096);
}

#[test]
fn completing_response_may_be_explicit() {
    let explicit = SesParams { explicit_completion: true, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), explicit).opened();
    region(&mut pair, KEY, 8192);
    pair.run_one(write(KEY, 0, data(8192))).unwrap();
    let (first, last) = (&pair.responses[0].1, &pair.responses[1].1);
    assert_eq!((first.delivery, last.delivery), (Delivery::Default, Delivery::Once));
    let last = Response::parse(&last.head).unwrap().0;
    assert_eq!(last.head().opcode(), ResponseOpcode::UET_RESPONSE);
    assert_eq!(last.modified_length(), 8192);
}

#[test]
fn relative_addressing_uses_job_and_process() {
    let absolute = Process::Absolute { pid: 7 };
    let mut pair = Pair::open();
    pair.side[1].open(Endpoint { process: absolute, start: 0, count: 64 }).unwrap();
    let at = |process| ResourceIndex { process, index: 10 };
    let memory = Region { key: Key(KEY), base: 0, access: Access::ALL, data: vec![0; 4] };
    let by_job = pair.side[1].expose(at(PROCESS), memory.clone()).unwrap();
    let by_pid = pair.side[1].expose(at(absolute), memory).unwrap();
    let work = |byte| Work::Write { key: Key(KEY), offset: 0, data: Bytes::from(vec![byte; 4]) };
    pair.run_one(Operation::new(peer(), work(1))).unwrap();
    // The job is ignored: no application has opened job 5.
    let mut other = Peer { index: 10, ..Peer::absolute(ADDRESS[1], 7) };
    other.route.job = 5;
    pair.run_one(Operation::new(other, work(2))).unwrap();
    assert_eq!(pair.side[1].memory(by_job), Some(&[1; 4][..]));
    assert_eq!(pair.side[1].memory(by_pid), Some(&[2; 4][..]));
}

#[test]
fn all_header_forms_carry_equal_fields() {
    let optimized = Key(0x123).optimized();
    for (form, next_hdr, length) in [
        (Form::Std, NextHdr::UET_HDR_REQUEST_STD, 44),
        (Form::Medium, NextHdr::UET_HDR_REQUEST_MEDIUM, 32),
        (Form::Small, NextHdr::UET_HDR_REQUEST_SMALL, 20),
    ] {
        let mut pair = Pair::open();
        let region = region(&mut pair, optimized.0, 64);
        let operation = Operation { form: Some(form), ..write(optimized.0, 32, data(8)) };
        pair.run_one(operation).unwrap();
        let request = &pair.requests[0].2;
        assert_eq!((request.next_hdr, request.head.len()), (next_hdr, length));
        assert_eq!(pair.side[1].memory(region).unwrap()[32..40], data(8));
    }
}

#[test]
fn shortest_sufficient_header_is_chosen() {
    let shortest = SesParams { form: FormChoice::Shortest, ..SesParams::default() };
    let mut pair = Pair::with(shortest, SesParams::default()).opened();
    region(&mut pair, KEY, 8192);
    region(&mut pair, Key(5).optimized().0, 8192);
    let header_data = |operation: Operation| Operation { header_data: Some(1), ..operation };
    let cases = [
        (write(Key(5).optimized().0, 4, data(8)), NextHdr::UET_HDR_REQUEST_SMALL),
        (write(KEY, 4, data(8)), NextHdr::UET_HDR_REQUEST_MEDIUM),
        (header_data(write(KEY, 0, data(8))), NextHdr::UET_HDR_REQUEST_MEDIUM),
        (header_data(write(KEY, 4, data(8))), NextHdr::UET_HDR_REQUEST_STD),
        (write(KEY, 0, data(8192)), NextHdr::UET_HDR_REQUEST_STD),
    ];
    for (operation, expected) in cases {
        pair.requests.clear();
        pair.run_one(operation.clone()).unwrap();
        assert_eq!(pair.requests[0].2.next_hdr, expected, "{operation:?}");
    }
    // A header that cannot express the operation is not used.
    let small = Operation { form: Some(Form::Small), ..write(KEY, 0, data(8)) };
    assert_eq!(pair.side[0].post(small), Err(PostError::Form));
}

#[test]
fn message_id_in_flight_is_not_reused() {
    let mut ses = Ses::default();
    ses.post(read(KEY, 0, 64)).unwrap();
    let Some(Command::Send(_, first)) = ses.poll_command() else { panic!() };
    // There are as many other operations as IDs, and none of them leaves.
    for _ in 0..u16::MAX {
        let other = ses.post(read(KEY, 0, 64)).unwrap();
        assert!(ses.abort(other));
        assert!(ses.poll_completion().is_some());
    }
    ses.post(read(KEY, 0, 64)).unwrap();
    let Some(Command::Send(_, last)) = ses.poll_command() else { panic!() };
    assert_eq!((std_of(&first).message_id(), std_of(&last).message_id()), (1, 3), "0 and 1 are left out");
}

#[test]
fn reserved_key_bits_are_ignored() {
    let optimized = Key(0x123).optimized().0;
    for (key, same, other) in [
        (KEY, KEY | 0x3f << 56, KEY | 1 << 48),
        (optimized, optimized | 0xff << 12, optimized ^ 1),
        (KEY, KEY, Key(KEY).idempotent().0),
    ] {
        let mut pair = Pair::open();
        region(&mut pair, key, 8);
        pair.run_one(write(same, 0, data(8))).unwrap();
        if other != key {
            let fault = pair.run_one(write(other, 0, data(8))).unwrap_err();
            assert_eq!(fault.code, ReturnCode::BAD_MKEY, "{other:#x}");
        }
    }
}

#[test]
fn small_request_index_is_configurable() {
    let by_index = SesParams { small_index: SmallIndex::Index, ..SesParams::default() };
    let mut pair = Pair::with(by_index.clone(), by_index).opened();
    let region = region(&mut pair, Key(0).optimized().0, 8);
    let operation = Operation { form: Some(Form::Small), ..write(Key(0).optimized().0, 0, data(8)) };
    pair.run_one(operation).unwrap();
    assert_eq!(pair.side[1].memory(region), Some(&data(8)[..]));
}

#[test]
fn rudi_write_duplicates_are_placed() {
    let key = Key(KEY).idempotent();
    let mut pair = Pair::open();
    let region = region(&mut pair, key.0, 3 * 4096);
    let work = Work::Write { key, offset: 0, data: data(3 * 4096) };
    pair.run_one(Operation { delivery_complete: true, ..Operation::new(peer().by(Mode::Rudi), work) })
        .unwrap();
    assert_eq!(pair.side[1].memory(region), Some(&data(3 * 4096)[..]));
}

#[test]
fn oversized_operation_is_refused_when_posted() {
    let mut ses = Ses::default();
    let too_wide = Operation::new(Peer { index: 4096, ..peer() }, Work::NoOp);
    assert!(matches!(ses.post(too_wide), Err(PostError::Header(_))));
    let long = Operation::new(peer(), Work::Datagram { data: data(4097) });
    assert_eq!(ses.post(long), Err(PostError::TooLong { most: 4096 }));
    let by_datagram = Operation::new(peer().by(Mode::Uud), Work::NoOp);
    assert_eq!(ses.post(by_datagram), Err(PostError::Mode));
    let by_rudi = Operation::new(peer().by(Mode::Rudi), Work::Send { tag: None, data: data(1) });
    assert_eq!(ses.post(by_rudi), Err(PostError::Mode));
    assert_eq!(ses.poll_command(), None);
    assert_eq!(ses.poll_event(), None);
}

proptest! {
    /// In any order of packets, memory equals the written data, and each message completes once.
    #[test]
    fn any_order_gives_the_same_memory(
        lengths in prop::collection::vec(0usize..20_000, 1..6),
        seed: u64,
        complete: bool,
        quiet: bool,
    ) {
        let mut pair = Pair::open().shuffled(seed);
        pair.quiet = quiet;
        let total: usize = lengths.iter().sum();
        let region = region(&mut pair, KEY, total);
        let (bytes, mut offset, mut ids) = (data(total), 0, Vec::new());
        for length in &lengths {
            let part = bytes.slice(offset..offset + length);
            let operation = Operation { delivery_complete: complete, ..write(KEY, offset as u64, part) };
            let operation = Operation { header_data: Some(offset as u64), ..operation };
            ids.push((pair.side[0].post(operation).unwrap(), *length));
            offset += length;
        }
        pair.run();
        prop_assert_eq!(pair.side[1].memory(region).unwrap(), &bytes[..]);
        for (id, length) in ids {
            prop_assert_eq!(pair.outcome(id).unwrap().length as usize, length);
        }
        prop_assert_eq!(pair.completions[1].len(), lengths.len(), "each is told once");
        prop_assert_eq!(pair.requests.len(), pair.responses.len());
    }
}

#[test]
fn error_packet_repeats_the_buffer_offset() {
    let mut pair = Pair::open();
    let write = Work::Write { key: Key(0xacce5), offset: 100, data: data(64 << 10) };
    let id = pair.side[0].post(Operation::new(peer(), write)).unwrap();
    let Some(Command::Send(via, first)) = pair.side[0].poll_command() else { panic!() };
    pair.side[0].put_back(via, first);
    pair.side[0].handle(Indication::Resumed(Via::Route(peer().route)));
    assert!(pair.side[0].abort(id));
    pair.run();
    let last = std_of(&pair.requests[1].2);
    assert_eq!((last.head().opcode(), last.buffer_offset()), (Opcode::UET_MSG_ERROR, Some(100)));
}

#[test]
fn aborted_message_ends_at_both_sides() {
    for (how, opcode, ie) in [
        (Abort::MessageError, Opcode::UET_MSG_ERROR, false),
        (Abort::InitiatorError, Opcode::UET_TAGGED_SEND, true),
    ] {
        let initiator = SesParams { abort: how, ..SesParams::default() };
        let mut pair = Pair::with(initiator, SesParams::default()).opened();
        let receive = pair.side[1].post_receive(index(10), Receive::tagged(64 << 10, 7)).unwrap();
        let id = pair.side[0].post(send(Some(7), data(64 << 10))).unwrap();
        let Some(Command::Send(via, first)) = pair.side[0].poll_command() else { panic!() };
        // The request is put back, so that the pair sees it. The message has then begun.
        pair.side[0].put_back(via, first);
        pair.side[0].handle(Indication::Resumed(Via::Route(peer().route)));
        assert!(pair.side[0].abort(id));
        pair.run();
        assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::CANCELLED);
        let last = std_of(&pair.requests[1].2);
        assert_eq!((last.head().opcode(), last.head().ie()), (opcode, ie));
        assert_eq!((last.head().som(), last.head().eom()), (false, true));
        assert_eq!(last.message_offset(), Some(4096), "where the data stops");
        let received = pair.received();
        assert_eq!(
            (received.len(), received[0].id, received[0].code),
            (1, receive, ReturnCode::INITIATOR_ERR)
        );
        let answer = Response::parse(&pair.responses[1].1.head).unwrap().0.copied();
        assert_eq!(answer.head().return_code(), ReturnCode::INITIATOR_ERR);
        // Nothing of it is kept: there is room for as many messages as before.
        assert!(!pair.side[0].abort(id));
    }
}
