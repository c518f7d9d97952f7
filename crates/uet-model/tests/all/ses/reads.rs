//! Reads: the path of the data, and its identifiers. The numbers are those of the sequences in `docs/behaviour.md`.

use super::pair::*;
use proptest::prelude::*;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{NextHdr, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, ResponseData, ResponseDataSmall, Std};

const KEY: u64 = 0xacce5;

/// Returns a pair whose target has bytes to read.
fn with_memory(length: usize) -> Pair {
    let mut pair = Pair::open();
    let region = region(&mut pair, KEY, length);
    pair.side[1].memory_mut(region).unwrap().copy_from_slice(&data(length));
    pair
}

fn returned(pair: &Pair) -> Vec<&TxRequest> {
    pair.requests.iter().filter(|(side, ..)| *side == 1).map(|(.., request)| request).collect()
}

#[test]
fn large_data_uses_the_return_direction() {
    let mut pair = with_memory(64);
    let done = pair.run_one(read(KEY, 0, 64)).unwrap();
    assert_eq!((done.data, done.length), (data(64), 64));
    let ok = &pair.responses[0].1;
    assert_eq!(ok.next_hdr, NextHdr::UET_HDR_RESPONSE);
    let head = Response::parse(&ok.head).unwrap().0.head().copied();
    assert_eq!((head.opcode(), head.return_code()), (ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK));

    let answer = returned(&pair)[0];
    assert!(matches!(pair.requests[1].1, Via::Return(_)));
    assert_eq!(answer.next_hdr, NextHdr::UET_HDR_RESPONSE_DATA);
    let header = ResponseData::parse(&answer.head).unwrap().0.copied();
    assert_eq!((header.read_request_message_id(), header.response_message_id()), (1, 1));
    assert_eq!((header.payload_length(), header.modified_length(), header.message_offset()), (64, 64, 0));
    // The context was held open in the meantime.
    assert_eq!(pair.held, [0, 0]);
}

#[test]
fn data_of_short_request_names_its_psn() {
    let optimized = Key(3).optimized().0;
    for form in [Form::Medium, Form::Small] {
        let mut pair = Pair::open();
        region(&mut pair, optimized, 64);
        let done = pair.run_one(Operation { form: Some(form), ..read(optimized, 0, 64) }).unwrap();
        assert_eq!(done.data.len(), 64);
        let answer = returned(&pair)[0];
        assert_eq!(answer.next_hdr, NextHdr::UET_HDR_RESPONSE_DATA_SMALL);
        let header = ResponseDataSmall::parse(&answer.head).unwrap().0.copied();
        assert_eq!((header.original_request_psn(), header.payload_length()), (Psn(0x12000), 64));
    }
}

#[test]
fn small_data_uses_the_ack() {
    for (form, next_hdr) in
        [(Form::Std, NextHdr::UET_HDR_RESPONSE_DATA), (Form::Medium, NextHdr::UET_HDR_RESPONSE_DATA_SMALL)]
    {
        let mut pair = with_memory(16);
        let done = pair.run_one(Operation { form: Some(form), ..read(KEY, 0, 16) }).unwrap();
        assert_eq!(done.data, data(16));
        let response = &pair.responses[0].1;
        assert_eq!((response.next_hdr, response.delivery), (next_hdr, Delivery::GuaranteedByRepetition));
        assert_eq!(response.payload, data(16));
        assert!(returned(&pair).is_empty());
        assert_eq!(pair.held, [0, 0]);
    }
    let never = SesParams { read_in_ack: false, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), never).opened();
    region(&mut pair, KEY, 16);
    pair.run_one(read(KEY, 0, 16)).unwrap();
    assert_eq!(returned(&pair).len(), 1);
}

/// The reference provider leaves `eom` out of a read of one packet.
#[test]
fn read_without_eom_ends_at_its_length() {
    for length in [16, 64] {
        let mut pair = with_memory(64);
        let header = Std::build(Opcode::UET_READ)
            .head(|head| head.rel(true).som(true))
            .message_id(5)
            .address(|address| address.job_id(JOB).pid_on_fep(PID).resource_index(10));
        let header = header.memory_key(KEY).request_length(length).done().unwrap();
        let ticket = Ticket::Pdc(handle(9), Psn(1));
        let rx = arrived(ticket, NextHdr::UET_HDR_REQUEST_STD, header.bytes(), Default::default());
        pair.side[1].handle(Indication::Request(rx));
        let mut in_ack = 0;
        let mut in_return = 0;
        while let Some(command) = pair.side[1].poll_command() {
            match command {
                Command::Respond(_, response) => in_ack += response.payload.len(),
                Command::Send(_, request) => in_return += request.payload.len(),
                _ => {}
            }
        }
        let expected = if length == 16 { (16, 0) } else { (0, 64) };
        assert_eq!((in_ack, in_return), expected);
        assert_eq!(pair.side[1].poll_timeout(), None, "no rest of the read is outstanding");
    }
}

#[test]
fn read_has_one_request_per_mtu() {
    let total = 2 * 4096 + 16;
    let mut pair = with_memory(total);
    let done = pair.run_one(read(KEY, 0, total as u32)).unwrap();
    assert_eq!(done.data, data(total));
    let requests: Vec<Std> = pair
        .requests
        .iter()
        .filter(|(side, ..)| *side == 0)
        .map(|(.., request)| Std::parse(&request.head).unwrap().0.copied())
        .collect();
    let asked: Vec<_> =
        requests.iter().map(|header| (header.message_offset(), header.payload_length())).collect();
    assert_eq!(asked, [(None, None), (Some(4096), Some(4096)), (Some(8192), Some(16))]);
    assert!(
        requests.iter().all(|header| header.message_id() == 1 && header.head().opcode() == Opcode::UET_READ)
    );
    let answers: Vec<ResponseData> =
        returned(&pair).iter().map(|answer| ResponseData::parse(&answer.head).unwrap().0.copied()).collect();
    // The last one would have fit an ACK.
    assert_eq!(answers.len(), 3);
    let own = answers[0].response_message_id();
    assert!(answers.iter().all(|header| header.response_message_id() == own));
    assert!(answers.iter().all(|header| header.modified_length() as usize == total));
    assert_eq!(responses(&pair, 1), [(ResponseOpcode::UET_DEFAULT_RESPONSE, 0); 3]);
    // The response to data states the length of the whole read, as the data does.
    assert_eq!(responses(&pair, 0), [(ResponseOpcode::UET_DEFAULT_RESPONSE, total as u32); 3]);
}

/// Returns opcode and length of each response of a side.
fn responses(pair: &Pair, side: usize) -> Vec<(ResponseOpcode, u32)> {
    let of_side = pair.responses.iter().filter(|(from, _)| *from == side);
    let parsed = of_side.map(|(_, response)| Response::parse(&response.head).unwrap().0.copied());
    parsed.map(|response| (response.head().opcode(), response.modified_length())).collect()
}

#[test]
fn response_to_last_read_request_may_be_explicit() {
    let explicit = SesParams { explicit_read: true, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), explicit).opened();
    region(&mut pair, KEY, 8192);
    pair.run_one(read(KEY, 0, 8192)).unwrap();
    let (default, explicit) = (ResponseOpcode::UET_DEFAULT_RESPONSE, ResponseOpcode::UET_RESPONSE);
    assert_eq!(responses(&pair, 1), [(default, 0), (explicit, 8192)]);
}

#[test]
fn rudi_data_uses_the_response() {
    let key = Key(KEY).idempotent();
    let mut pair = Pair::open();
    let region = region(&mut pair, key.0, 10_000);
    pair.side[1].memory_mut(region).unwrap().copy_from_slice(&data(10_000));
    let work = Work::Read { key, offset: 0, length: 10_000 };
    let done = pair.run_one(Operation::new(peer().by(Mode::Rudi), work)).unwrap();
    assert_eq!(done.data, data(10_000));
    assert!(returned(&pair).is_empty());
    assert!(pair.responses.iter().all(|(_, response)| response.delivery == Delivery::Once));
}

#[test]
fn unexpected_read_data_is_refused() {
    let rx = |from: [u8; 4], pdcid, offset: u32| {
        let header = ResponseData::build().response_message_id(1).job_id(JOB).read_request_message_id(1);
        let header = header.payload_length(32).modified_length(64).message_offset(offset).done().unwrap();
        let ticket = Ticket::Pdc(handle(pdcid), Psn(1));
        let rx = arrived(ticket, NextHdr::UET_HDR_RESPONSE_DATA, header.bytes(), data(32));
        RxRequest { from: from.into(), ..rx }
    };
    let code = |ses: &mut Ses| loop {
        if let Some(Command::Respond(_, response)) = ses.poll_command() {
            break Response::parse(&response.head).unwrap().0.head().return_code();
        }
    };
    let mut ses = Ses::default();
    ses.post(read(KEY, 0, 64)).unwrap();
    let Some(Command::Send(_, request)) = ses.poll_command() else { panic!() };
    ses.handle(Indication::Numbered { message: request.message, pdc: handle(7), psn: Psn(333) });
    for (from, pdcid) in [([9, 9, 9, 9], 7), (ADDRESS[1], 8)] {
        ses.handle(Indication::Request(rx(from, pdcid, 0)));
        assert_eq!(code(&mut ses), ReturnCode::UNDELIVERABLE);
    }
    ses.handle(Indication::Request(rx(ADDRESS[1], 7, 33)));
    assert_eq!(code(&mut ses), ReturnCode::OK, "it has been received");
    ses.handle(Indication::Response { message: request.message, pdc: None, response: None });
    let Some(Completion::Operation { result, .. }) = ses.poll_completion() else { panic!() };
    assert_eq!(result.unwrap_err().code, ReturnCode::OP_VIOLATION);
}

#[test]
fn duplicate_read_data_counts_once() {
    let mut ses = Ses::default();
    ses.post(read(KEY, 0, 32)).unwrap();
    let Some(Command::Send(_, request)) = ses.poll_command() else { panic!() };
    ses.handle(Indication::Numbered { message: request.message, pdc: handle(7), psn: Psn(333) });
    let header = ResponseData::build().job_id(JOB).read_request_message_id(1);
    let header = header.payload_length(32).modified_length(32).done().unwrap();
    for (psn, payload, expected) in
        [(1, data(32), ReturnCode::OK), (2, vec![9; 32].into(), ReturnCode::UNDELIVERABLE)]
    {
        let ticket = Ticket::Pdc(handle(7), Psn(psn));
        let rx = arrived(ticket, NextHdr::UET_HDR_RESPONSE_DATA, header.bytes(), payload);
        ses.handle(Indication::Request(RxRequest { from: ADDRESS[1].into(), ..rx }));
        let response = std::iter::from_fn(|| ses.poll_command()).find_map(|command| match command {
            Command::Respond(_, response) => Some(response),
            _ => None,
        });
        let response = Response::parse(&response.unwrap().head).unwrap().0.head().return_code();
        assert_eq!(response, expected);
    }
    ses.handle(Indication::Response { message: request.message, pdc: None, response: None });
    let Some(Completion::Operation { result, .. }) = ses.poll_completion() else { panic!() };
    assert_eq!(result.unwrap().data, data(32));
}

#[test]
fn closed_context_fails_its_reads() {
    let mut pair = with_memory(64);
    let id = pair.side[0].post(read(KEY, 0, 64)).unwrap();
    pair.collect();
    pair.deliver(0);
    assert_eq!(pair.held[0], 1);
    // The response to the request arrives, but the data does not.
    pair.deliver(0);
    assert!(!pair.has_ended(id));
    pair.lose_all();
    pair.side[0].handle(Indication::Closed(handle(0x4001)));
    pair.collect();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::UNDELIVERABLE);
}

proptest! {
    #[test]
    fn any_order_gives_the_same_data(
        reads in prop::collection::vec((0u32..5000, 0u32..15_000), 1..6),
        seed: u64,
        shortest: bool,
        quiet: bool,
    ) {
        let form = if shortest { FormChoice::Shortest } else { FormChoice::Standard };
        let params = SesParams { form, ..SesParams::default() };
        let mut pair = Pair::with(params, SesParams::default()).opened().shuffled(seed);
        pair.quiet = quiet;
        let region = region(&mut pair, KEY, 20_000);
        pair.side[1].memory_mut(region).unwrap().copy_from_slice(&data(20_000));
        let ids: Vec<_> = reads
            .iter()
            .map(|(offset, length)| pair.side[0].post(read(KEY, u64::from(*offset), *length)).unwrap())
            .collect();
        pair.run();
        for (id, (offset, length)) in ids.into_iter().zip(reads) {
            let (from, to) = (offset as usize, (offset + length) as usize);
            prop_assert_eq!(pair.outcome(id).unwrap().data, data(20_000).slice(from..to));
        }
        prop_assert_eq!(pair.held, [0, 0]);
        prop_assert_eq!(pair.requests.len(), pair.responses.len());
    }
}
