//! Sends: matching, unexpected messages, rendezvous, deferrable sends.

use super::pair::*;
use bytes::Bytes;
use proptest::prelude::*;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::registry::{List, NextHdr, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Std};

fn answer(response: &TxResponse) -> Response {
    Response::parse(&response.head).unwrap().0.copied()
}

#[test]
fn send_takes_first_matching_receive() {
    let mut pair = Pair::open();
    let mut post = |receive| pair.side[1].post_receive(index(10), receive).unwrap();
    let plain = post(Receive::new(64));
    let other_rank = post(Receive { initiator: Some(3), ..Receive::tagged(64, 0x77) });
    let any_low = post(Receive { tag: Some(Tag { bits: 0x70, ignore: 0xf }), ..Receive::new(64) });
    let exact = post(Receive::tagged(64, 0x77));
    pair.run_one(send(Some(0x77), data(1))).unwrap();
    pair.run_one(send(Some(0x77), data(2))).unwrap();
    pair.run_one(send(None, data(3))).unwrap();
    let third = Peer { initiator: 3, ..peer() };
    pair.run_one(Operation::new(third, Work::Send { tag: Some(0x77), data: data(4) })).unwrap();
    let received: Vec<(ReceiveId, usize)> =
        pair.received().iter().map(|received| (received.id, received.data.len())).collect();
    assert_eq!(received, [(any_low, 1), (exact, 2), (plain, 3), (other_rank, 4)]);
}

#[test]
fn peek_finds_complete_unexpected_send() {
    let mut pair = Pair::open();
    let seven = Receive::tagged(0, 7);
    let id = pair.side[0].post(Operation { header_data: Some(9), ..send(Some(7), data(2 * 4096)) }).unwrap();
    pair.collect();
    pair.deliver(0);
    assert_eq!(pair.side[1].peek_unexpected(index(10), &seven), None, "its second packet is missing");
    pair.run();
    assert!(pair.outcome(id).is_ok());
    let found = pair.side[1].peek_unexpected(index(10), &seven).unwrap();
    assert_eq!((found.length, found.sender.tag, found.header_data), (2 * 4096, Some(7), Some(9)));
    assert_eq!(pair.side[1].peek_unexpected(index(10), &Receive::tagged(0, 8)), None);
    assert_eq!(pair.side[1].peek_unexpected(index(10), &seven), Some(found), "it stays");
    pair.side[1].post_receive(index(10), Receive::tagged(2 * 4096, 7)).unwrap();
    assert_eq!(pair.side[1].peek_unexpected(index(10), &seven), None);
    pair.run();
    assert_eq!(pair.received().len(), 1);
}

#[test]
fn receive_is_matched_while_its_send_arrives() {
    let mut pair = Pair::open();
    let receive = pair.side[1].post_receive(index(10), Receive::new(2 * 4096)).unwrap();
    assert!(!pair.side[1].has_matched(receive));
    pair.side[0].post(send(None, data(2 * 4096))).unwrap();
    pair.collect();
    pair.deliver(0);
    assert!(pair.side[1].has_matched(receive));
    pair.run();
    assert!(!pair.side[1].has_matched(receive), "it has completed");
}

#[test]
fn unexpected_send_waits_for_its_receive() {
    let mut pair = Pair::open();
    let done = pair.run_one(Operation { header_data: Some(9), ..send(Some(7), data(5000)) }).unwrap();
    assert_eq!((done.length, done.list), (5000, List::UET_OVERFLOW));
    // The default response suffices for packets before the last one.
    let responses: Vec<_> = pair
        .responses
        .iter()
        .map(|(_, response)| {
            let head = answer(response).head().copied();
            (head.opcode(), head.list(), answer(response).modified_length(), response.delivery)
        })
        .collect();
    let (default, explicit) = (ResponseOpcode::UET_DEFAULT_RESPONSE, ResponseOpcode::UET_RESPONSE);
    assert_eq!(
        responses,
        [
            (default, List::UET_EXPECTED, 0, Delivery::Default),
            (explicit, List::UET_OVERFLOW, 5000, Delivery::Guaranteed),
        ]
    );
    assert!(pair.received().is_empty());
    let wrong = pair.side[1].post_receive(index(10), Receive::tagged(8192, 8)).unwrap();
    let right = pair.side[1].post_receive(index(10), Receive::tagged(8192, 7)).unwrap();
    pair.run();
    let received = pair.received();
    assert_eq!(received.len(), 1);
    assert_eq!(
        (received[0].id, received[0].code, received[0].list),
        (right, ReturnCode::OK, List::UET_OVERFLOW)
    );
    assert_eq!((&received[0].data, received[0].header_data), (&data(5000), Some(9)));
    assert_eq!(received[0].sender.tag, Some(7));
    assert!(pair.side[1].cancel_receive(index(10), wrong));
    pair.run();
    assert_eq!(pair.received()[1].code, ReturnCode::CANCELLED);
    assert!(!pair.side[1].cancel_receive(index(10), wrong));
}

#[test]
fn early_sends_match_in_arrival_order() {
    let mut pair = Pair::open();
    for length in [3, 1, 2] {
        pair.run_one(send(None, data(length))).unwrap();
    }
    for _ in 0..3 {
        pair.side[1].post_receive(index(10), Receive::new(16)).unwrap();
    }
    pair.run();
    let lengths: Vec<usize> = pair.received().iter().map(|received| received.data.len()).collect();
    assert_eq!(lengths, [3, 1, 2]);
}

#[test]
fn receive_posted_during_arrival_gets_all() {
    let mut pair = Pair::open();
    pair.side[0].post(send(None, data(3 * 4096))).unwrap();
    pair.collect();
    pair.deliver(1);
    pair.side[1].post_receive(index(10), Receive::new(3 * 4096)).unwrap();
    assert!(pair.received().is_empty());
    pair.run();
    assert_eq!(pair.received()[0].data, data(3 * 4096));
}

#[test]
fn long_send_is_truncated() {
    let mut pair = Pair::open();
    pair.side[1].post_receive(index(10), Receive::new(5000)).unwrap();
    let done = pair.run_one(send(None, data(3 * 4096))).unwrap();
    assert_eq!(done.length, 5000);
    let last = &pair.responses[2].1;
    assert_eq!((last.delivery, answer(last).modified_length()), (Delivery::Guaranteed, 5000));
    let received = pair.received();
    assert_eq!((&received[0].data, received[0].total), (&data(5000), 3 * 4096));
}

#[test]
fn long_send_may_be_refused() {
    let refuse = SesParams { too_long: TooLong::Refuse, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), refuse).opened();
    let receive = pair.side[1].post_receive(index(10), Receive::new(10)).unwrap();
    assert_eq!(pair.run_one(send(None, data(11))).unwrap_err().code, ReturnCode::TOO_LONG);
    pair.run_one(send(None, data(10))).unwrap();
    assert_eq!(pair.received()[0].id, receive);
}

#[test]
fn datagram_is_received_without_response() {
    let mut pair = Pair::open();
    pair.side[1].post_receive(index(10), Receive::new(64)).unwrap();
    let datagram = || Operation::new(peer().by(Mode::Uud), Work::Datagram { data: data(9) });
    pair.run_one(datagram()).unwrap();
    assert_eq!(pair.received()[0].data, data(9));
    assert!(pair.responses.is_empty());
    let header = Std::parse(&pair.requests[0].2.head).unwrap().0.copied();
    assert_eq!((header.message_id(), header.head().opcode()), (0, Opcode::UET_DATAGRAM_SEND));
    // A send without a receiver gets no response either.
    let stranger = Operation { peer: Peer { index: 99, ..peer().by(Mode::Uud) }, ..datagram() };
    pair.run_one(stranger).unwrap();
    assert!(pair.responses.is_empty());
    let dropped = std::iter::from_fn(|| pair.side[1].poll_event());
    assert!(
        dropped.into_iter().any(|event| matches!(event, SesEvent::Dropped { why: Why::NoIndex(99), .. }))
    );
}

#[test]
fn datagrams_may_be_plain_sends() {
    let send = SesParams { uud_opcode: UudOpcode::Send, ..SesParams::default() };
    for (initiator, target, arrives) in [
        (send.clone(), send.clone(), true),
        (SesParams::default(), send.clone(), true),
        (send, SesParams::default(), false),
    ] {
        let opcode = match initiator.uud_opcode {
            UudOpcode::Send => Opcode::UET_SEND,
            UudOpcode::DatagramSend => Opcode::UET_DATAGRAM_SEND,
        };
        let mut pair = Pair::with(initiator, target).opened();
        pair.side[1].post_receive(index(10), Receive::new(64)).unwrap();
        let datagram = Operation::new(peer().by(Mode::Uud), Work::Datagram { data: data(9) });
        pair.run_one(datagram).unwrap();
        assert_eq!(Std::parse(&pair.requests[0].2.head).unwrap().0.head().opcode(), opcode);
        assert_eq!(pair.received().len(), usize::from(arrives));
        assert!(pair.responses.is_empty());
    }
}

#[test]
fn refused_generation_is_repeated_as_the_parameter_says() {
    let repeats = SesParams { generation_repeats: 1, ..SesParams::default() };
    for (params, length, expected) in [
        (SesParams::default(), 100, Err(ReturnCode::BAD_GENERATION)),
        (repeats.clone(), 100, Ok(100)),
        // The packets in flight are refused too, and the rest of the message is not sent.
        (repeats, 3 * 4096, Ok(3 * 4096)),
    ] {
        let mut pair = Pair::with(params, SesParams::default()).opened();
        pair.side[1].set_generation(index(10), 5).unwrap();
        pair.side[1].post_receive(index(10), Receive::new(3 * 4096)).unwrap();
        let done = pair.run_one(send(None, data(length)));
        assert_eq!(done.map(|done| done.length).map_err(|error| error.code), expected);
        let received = pair.received();
        assert_eq!(received.len(), usize::from(expected.is_ok()));
        assert!(received.iter().all(|received| received.data == data(length)));
    }
}

#[test]
fn repetitions_of_a_refused_generation_are_bounded() {
    let repeats = SesParams { generation_repeats: 2, ..SesParams::default() };
    let mut pair = Pair::with(repeats, SesParams::default()).opened();
    pair.side[0].post(send(None, data(10))).unwrap();
    for generation in 1..=3 {
        // The peer raises its generation after each refusal.
        pair.side[1].set_generation(index(10), generation).unwrap();
        pair.collect();
        pair.deliver(0);
        pair.collect();
        pair.deliver(0);
    }
    pair.run();
    assert_eq!(pair.requests.len(), 3);
    assert_eq!(pair.outcome(OperationId(0)).unwrap_err().code, ReturnCode::BAD_GENERATION);
}

/// Returns a region of side 0 that holds a message, after 100 other bytes.
fn source(pair: &mut Pair, length: usize) -> RegionId {
    let bytes = [&[0xee; 100][..], &data(length)].concat();
    let region = Region { key: Key(0x50), base: 0, access: Access::READ, data: bytes };
    pair.side[0].expose(index(20), region).unwrap()
}

fn rendezvous(source: RegionId, length: u32, eager: u32) -> Operation {
    Operation::new(peer(), Work::Rendezvous { tag: Some(7), source, offset: 100, length, eager })
}

#[test]
fn rendezvous_target_reads_the_rest() {
    for eager in [0, 1000, 4096, 5000, 20_000] {
        for early in [false, true] {
            let mut pair = Pair::open();
            pair.side[0].set_generation(index(20), 5).unwrap();
            let source = source(&mut pair, 20_000);
            let post = |pair: &mut Pair| {
                pair.side[1].post_receive(index(10), Receive::tagged(20_000, 7)).unwrap();
            };
            if early {
                post(&mut pair);
            }
            let id = pair.side[0].post(rendezvous(source, 20_000, eager)).unwrap();
            pair.run();
            if !early {
                assert_eq!(pair.has_ended(id), eager == 20_000, "it waits until it has been read");
                post(&mut pair);
                pair.run();
            }
            assert_eq!(pair.outcome(id).unwrap().length, 20_000);
            let received = pair.received();
            assert_eq!(received.len(), 1, "eager {eager}, early {early}");
            assert_eq!(received[0].data, data(20_000), "eager {eager}, early {early}");
            let reads =
                pair.requests.iter().filter(|(side, via, _)| *side == 1 && matches!(via, Via::Route(_)));
            assert_eq!(reads.count(), (20_000 - eager as usize).div_ceil(4096));
        }
    }
}

#[test]
fn rendezvous_that_nobody_reads_can_be_aborted() {
    let mut pair = Pair::open();
    let source = source(&mut pair, 20_000);
    let id = pair.side[0].post(rendezvous(source, 20_000, 1000)).unwrap();
    pair.run();
    assert!(!pair.has_ended(id));
    assert!(pair.side[0].abort(id));
    pair.run();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::CANCELLED);
}

#[test]
fn long_rendezvous_reads_only_the_part_that_fits() {
    let mut pair = Pair::open();
    let source = source(&mut pair, 20_000);
    pair.side[1].post_receive(index(10), Receive::tagged(6000, 7)).unwrap();
    let done = pair.run_one(rendezvous(source, 20_000, 1000)).unwrap();
    assert_eq!(done.length, 6000);
    assert_eq!(pair.received()[0].data, data(6000));
    let reads = pair.requests.iter().filter(|(side, via, _)| *side == 1 && matches!(via, Via::Route(_)));
    assert_eq!(reads.count(), 2, "5,000 bytes");
}

#[test]
fn failed_rendezvous_read_fails_both_ends() {
    let mut pair = Pair::open();
    let source = source(&mut pair, 20_000);
    let id = pair.side[0].post(rendezvous(source, 20_000, 1000)).unwrap();
    pair.run();
    pair.side[0].set_host_fault(source, Some(ReturnCode::HOST_POISONED));
    pair.side[1].post_receive(index(10), Receive::tagged(20_000, 7)).unwrap();
    pair.run();
    let received = pair.received();
    assert_eq!((received[0].code, received[0].data.len()), (ReturnCode::HOST_POISONED, 0));
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::HOST_POISONED);
}

#[test]
fn rendezvous_fails_if_its_data_is_lost() {
    for why in [Failure::Closed, Failure::TimedOut] {
        let mut pair = Pair::open();
        let source = source(&mut pair, 20_000);
        pair.side[1].post_receive(index(10), Receive::tagged(20_000, 7)).unwrap();
        let id = pair.side[0].post(rendezvous(source, 20_000, 16_000)).unwrap();
        // Run until the data of the read is in flight and all else has arrived.
        let is_data = |(side, via, _): &&(usize, Via, TxRequest)| *side == 0 && matches!(via, Via::Return(_));
        pair.collect();
        while pair.requests.iter().find(is_data).is_none() || pair.flying() > 1 {
            pair.deliver(0);
        }
        pair.lose_all();
        assert!(!pair.has_ended(id));
        let (_, via, data) = pair.requests.iter().find(is_data).unwrap().clone();
        let Via::Return(pdc) = via else { unreachable!() };
        pair.side[0].handle(Indication::Failed { message: data.message, why });
        pair.side[0].handle(Indication::Closed(pdc));
        pair.collect();
        let fault = pair.outcome(id).unwrap_err();
        assert_eq!((fault.code, fault.why), (ReturnCode::UNDELIVERABLE, Some(why)));
    }
}

/// A read does not identify its send if several sends share memory.
#[test]
fn identical_sends_all_complete() {
    for step in 1..50 {
        let mut pair = Pair::open();
        let source = source(&mut pair, 20_000);
        let sends = [(); 4].map(|()| {
            pair.side[1].post_receive(index(10), Receive::tagged(10_000, 7)).unwrap();
            pair.side[0].post(rendezvous(source, 10_000, 1000)).unwrap()
        });
        pair.collect();
        for turn in 1.. {
            match pair.flying() {
                0 => break,
                flying => pair.deliver(turn * step % flying),
            }
        }
        assert!(sends.iter().all(|id| pair.outcome(*id).is_ok()), "every {step}th");
    }
}

#[test]
fn message_outside_its_region_is_refused() {
    let mut pair = Pair::open();
    let source = source(&mut pair, 100);
    assert_eq!(pair.side[0].post(rendezvous(source, 101, 0)), Err(PostError::Source));
}

fn deferrable(length: usize) -> Operation {
    Operation::new(peer(), Work::Deferrable { tag: Some(7), data: data(length) })
}

#[test]
fn expected_deferrable_send_completes_at_once() {
    let mut pair = Pair::open();
    pair.side[1].post_receive(index(10), Receive::tagged(10_000, 7)).unwrap();
    assert_eq!(pair.run_one(deferrable(10_000)).unwrap().length, 10_000);
    assert_eq!(pair.received()[0].data, data(10_000));
    assert_eq!(pair.requests.len(), 3);
}

#[test]
fn deferred_send_restarts_as_a_new_message() {
    for length in [0, 10, 10_000] {
        let mut pair = Pair::open();
        let id = pair.side[0].post(deferrable(length)).unwrap();
        pair.run();
        assert!(!pair.has_ended(id));
        for (_, response) in &pair.responses {
            let answer = answer(response);
            assert_eq!(
                (answer.head().opcode(), answer.head().return_code()),
                (ResponseOpcode::UET_RESPONSE, ReturnCode::OK)
            );
            assert_eq!((answer.modified_length(), response.delivery), (0, Delivery::Guaranteed));
        }
        let first = pair.requests.len();
        pair.side[1].post_receive(index(10), Receive::tagged(10_000, 8)).unwrap();
        pair.run();
        assert_eq!(pair.requests.len(), first, "that one is for another");
        pair.side[1].post_receive(index(10), Receive::tagged(10_000, 7)).unwrap();
        pair.run();
        assert_eq!(pair.outcome(id).unwrap().length as usize, length);
        assert_eq!(pair.received()[0].data, data(length));

        let header = |request: &TxRequest| Std::parse(&request.head).unwrap().0.copied();
        let (before, ready, after) = (
            header(&pair.requests[0].2),
            header(&pair.requests[first].2),
            header(&pair.requests[first + 1].2),
        );
        assert_eq!(ready.head().opcode(), Opcode::UET_DEFERRABLE_RTR);
        let token = before.initiator_restart_token();
        assert_eq!(before.target_restart_token(), Some(0));
        assert_eq!((ready.initiator_restart_token(), after.initiator_restart_token()), (token, token));
        assert_ne!(after.target_restart_token(), Some(0));
        assert_eq!(ready.target_restart_token(), after.target_restart_token());
        assert_ne!(before.message_id(), after.message_id());
    }
}

/// Returns the response of a side to a handmade request.
fn ask(pair: &mut Pair, side: usize, from: [u8; 4], header: Std, payload: Bytes) -> ReturnCode {
    let ticket = Ticket::Pdc(handle(9), uet_wire::Psn(1));
    let rx = arrived(ticket, NextHdr::UET_HDR_REQUEST_STD, header.bytes(), payload);
    pair.side[side].handle(Indication::Request(RxRequest { from: from.into(), ..rx }));
    let Some(Command::Respond(_, response)) = pair.side[side].poll_command() else { panic!() };
    answer(&response).head().return_code()
}

fn build(opcode: Opcode) -> uet_wire::ses::StdMut {
    let header = Std::build(opcode).head(|head| head.rel(true).som(true).eom(true));
    header.address(|address| address.job_id(JOB).pid_on_fep(PID).resource_index(10))
}

fn ready(initiator: u32, target: u32, offset: u64) -> Std {
    let header = build(Opcode::UET_DEFERRABLE_RTR).ready_initiator_token(initiator);
    header.ready_target_token(target).buffer_offset(offset).done().unwrap()
}

/// A token is accepted only from the peer that received it.
#[test]
fn tokens_of_another_peer_are_refused() {
    let mut pair = Pair::open();
    let id = pair.side[0].post(deferrable(10)).unwrap();
    pair.run();
    let token = Std::parse(&pair.requests[0].2.head).unwrap().0.initiator_restart_token().unwrap();
    for (from, header) in
        [(ADDRESS[1], ready(token + 1, 5, 0)), ([9; 4], ready(token, 5, 0)), ([9; 4], ready(token, 0, 0))]
    {
        assert_eq!(ask(&mut pair, 0, from, header, Bytes::new()), ReturnCode::NO_MATCH);
    }
    pair.side[1].post_receive(index(10), Receive::tagged(64, 7)).unwrap();
    let Some(Command::Send(_, wanted)) = pair.side[1].poll_command() else { panic!() };
    let wanted = Std::parse(&wanted.head).unwrap().0.copied();
    let again = build(Opcode::UET_DEFERRABLE_TSEND).send_initiator_token(token);
    let again = again.send_target_token(wanted.target_restart_token().unwrap()).match_bits(7);
    let again = again.request_length(10).done().unwrap();
    assert_eq!(ask(&mut pair, 1, [9; 4], again, data(10)), ReturnCode::NO_MATCH);
    assert_eq!(ask(&mut pair, 1, ADDRESS[0], again, data(10)), ReturnCode::OK);
    assert!(!pair.has_ended(id));
}

/// A target that needs no token of its own sends 0.
#[test]
fn zero_token_restarts_or_fails_the_send() {
    for accept_zero_token in [false, true] {
        let params = SesParams { accept_zero_token, ..SesParams::default() };
        let mut pair = Pair::with(params.clone(), params).opened();
        let id = pair.side[0].post(deferrable(10)).unwrap();
        pair.run();
        let sent = pair.requests.len();
        let token = Std::parse(&pair.requests[0].2.head).unwrap().0.initiator_restart_token().unwrap();
        let code = ask(&mut pair, 0, ADDRESS[1], ready(token, 0, 0), Bytes::new());
        if accept_zero_token {
            assert_eq!(code, ReturnCode::OK);
            pair.side[1].post_receive(index(10), Receive::tagged(64, 7)).unwrap();
            let Some(Command::Send(_, again)) = pair.side[0].poll_command() else { panic!() };
            let again = Std::parse(&again.head).unwrap().0.copied();
            assert_eq!(again.initiator_restart_token(), Some(token));
            assert_eq!(again.target_restart_token(), Some(0));
        } else {
            assert_eq!(code, ReturnCode::NO_MATCH);
            pair.run();
            assert_eq!(pair.requests.len(), sent, "it is not sent again");
            assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::NO_MATCH);
        }
    }
}

/// A target has no initiator for a peer of which the application has told nothing.
#[test]
fn answering_requests_state_the_initiator_for_the_peer() {
    for (peer, stated) in [(ADDRESS[0], 77), ([9; 4], 0)] {
        let mut pair = Pair::open();
        pair.side[1].set_initiator(peer.into(), JOB, 77);
        pair.side[0].post(deferrable(10)).unwrap();
        pair.run();
        pair.side[1].post_receive(index(10), Receive::tagged(64, 7)).unwrap();
        let Some(Command::Send(_, ready)) = pair.side[1].poll_command() else { panic!() };
        assert_eq!(Std::parse(&ready.head).unwrap().0.initiator(), stated);
    }
}

/// The sources leave open what `buffer_offset` means in a restart request: nothing, or the offset to restart from.
#[test]
fn deferred_send_restart_offset_is_configurable() {
    for (restart, offset, rest) in [
        (Restart::Start, 6000, 0..10_000),
        (Restart::Offset, 0, 0..10_000),
        (Restart::Offset, 6000, 6000..10_000),
        (Restart::Offset, 10_000, 10_000..10_000),
        (Restart::Offset, u64::MAX, 10_000..10_000),
    ] {
        let params = SesParams { restart, ..SesParams::default() };
        let mut pair = Pair::with(params.clone(), params).opened();
        pair.side[0].post(deferrable(10_000)).unwrap();
        pair.run();
        let first = pair.requests.len();
        let token = Std::parse(&pair.requests[0].2.head).unwrap().0.initiator_restart_token().unwrap();
        assert_eq!(ask(&mut pair, 0, ADDRESS[1], ready(token, 5, offset), Bytes::new()), ReturnCode::OK);
        pair.collect();
        let sent: Vec<u8> =
            pair.requests[first..].iter().flat_map(|(.., request)| request.payload.to_vec()).collect();
        assert_eq!(sent, data(10_000)[rest.clone()], "{restart:?} at {offset}");
        let again = Std::parse(&pair.requests[first].2.head).unwrap().0;
        assert_eq!(again.request_length() as usize, rest.len());
        assert_eq!(again.target_restart_token(), Some(5));
    }
}

#[test]
fn vanished_deferred_send_frees_the_receive() {
    let mut pair = Pair::open();
    let id = pair.side[0].post(deferrable(10)).unwrap();
    pair.run();
    assert!(pair.side[0].abort(id));
    let receive = pair.side[1].post_receive(index(10), Receive::tagged(64, 7)).unwrap();
    pair.run();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::CANCELLED);
    assert!(pair.received().is_empty());
    pair.run_one(send(Some(7), data(3))).unwrap();
    assert_eq!(pair.received()[0].id, receive);
}

proptest! {
    /// In any order of packets and receives, each receive gets one whole message, once.
    #[test]
    fn each_receive_gets_one_whole_message(
        lengths in prop::collection::vec((0usize..10_000, 0u8..3), 1..6),
        seed: u64,
        before: bool,
    ) {
        let mut pair = Pair::open().shuffled(seed);
        let whole = source(&mut pair, 10_000);
        let post = |pair: &mut Pair| for tag in 0..lengths.len() as u64 {
            pair.side[1].post_receive(index(10), Receive::tagged(10_000, tag)).unwrap();
        };
        if before {
            post(&mut pair);
        }
        let mut ids = Vec::new();
        for (tag, (length, kind)) in lengths.iter().enumerate() {
            let (tag, data) = (Some(tag as u64), data(*length));
            let work = match kind {
                0 => Work::Send { tag, data },
                1 => Work::Deferrable { tag, data },
                _ => Work::Rendezvous {
                    tag, source: whole, offset: 100, length: *length as u32, eager: *length as u32 / 2,
                },
            };
            ids.push(pair.side[0].post(Operation::new(peer(), work)).unwrap());
        }
        if !before {
            // Some arrive early, some late.
            for _ in 0..seed % 5 {
                pair.collect();
                if pair.flying() > 0 {
                    pair.deliver(pair.flying() - 1);
                }
            }
            post(&mut pair);
        }
        pair.run();
        let mut received = pair.received();
        received.sort_by_key(|received| received.sender.tag);
        prop_assert_eq!(received.len(), lengths.len());
        for (received, (length, _)) in received.iter().zip(&lengths) {
            prop_assert_eq!(received.code, ReturnCode::OK);
            prop_assert_eq!(&received.data, &data(*length));
        }
        for id in ids {
            prop_assert!(pair.outcome(id).is_ok());
        }
    }
}

#[test]
fn closed_context_ends_arriving_messages() {
    let mut pair = Pair::open();
    pair.side[1].post_receive(index(10), Receive::new(3 * 4096)).unwrap();
    pair.side[0].post(send(None, data(3 * 4096))).unwrap();
    pair.collect();
    pair.deliver(0);
    pair.lose_all();
    pair.side[1].handle(Indication::Closed(handle(0x8001)));
    pair.collect();
    let received = pair.received();
    assert_eq!((received[0].code, &received[0].data), (ReturnCode::UNDELIVERABLE, &Bytes::new()));
}
