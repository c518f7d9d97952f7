//! Every return code of a target, and the effect of an error on its message.

use super::pair::*;
use bytes::Bytes;
use uet_model::ses::*;
use uet_model::*;
use uet_wire::Psn;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, NextHdr, Opcode, ReturnCode};
use uet_wire::ses::{Atomic, CompareSwap, Response, Std, StdMut};

const KEY: u64 = 0xacce5;
const READ_ONLY: u64 = 0x101;

fn code(pair: &mut Pair, operation: Operation) -> ReturnCode {
    match pair.run_one(operation) {
        Ok(_) => ReturnCode::OK,
        Err(fault) => fault.code,
    }
}

/// A target with memory, which answers handmade requests.
struct Target {
    ses: Ses,
    region: RegionId,
    psn: u32,
}

impl Target {
    fn new(params: SesParams) -> Self {
        let mut ses = Ses::new(params, &PdsParams::default());
        ses.open(Endpoint { process: PROCESS, start: 0, count: 64 }).unwrap();
        let memory = Region { key: Key(KEY), base: 0, access: Access::ALL, data: vec![0; 8192] };
        let region = ses.expose(index(10), memory).unwrap();
        Target { ses, region, psn: 0 }
    }

    fn ask(&mut self, mode: Mode, next_hdr: NextHdr, head: &[u8], payload: Bytes) -> Response {
        self.psn += 1;
        let from = ADDRESS[0].into();
        let ticket = match mode {
            Mode::Rudi => Ticket::Rudi(from, 0, self.psn),
            Mode::Uud => Ticket::Uud,
            _ => Ticket::Pdc(handle(7), Psn(self.psn)),
        };
        let rx = RxRequest { mode, ..arrived(ticket, next_hdr, head, payload) };
        self.ses.handle(Indication::Request(rx));
        let Some(Command::Respond(_, response)) = self.ses.poll_command() else { panic!("no response") };
        let response = Response::parse(&response.head).unwrap().0.copied();
        assert_eq!(self.ses.poll_command(), None, "one response");
        response
    }

    fn std(&mut self, header: StdMut, payload: Bytes) -> ReturnCode {
        let header = header.done().unwrap();
        let answer = self.ask(Mode::Rud, NextHdr::UET_HDR_REQUEST_STD, header.bytes(), payload);
        assert_eq!(answer.message_id(), header.message_id());
        answer.head().return_code()
    }

    fn is_untouched(&self) -> bool {
        self.ses.memory(self.region).unwrap().iter().all(|byte| *byte == 0)
    }
}

fn header(opcode: Opcode) -> StdMut {
    Std::build(opcode)
        .head(|head| head.rel(true).som(true).eom(true))
        .message_id(1)
        .address(|address| address.job_id(JOB).pid_on_fep(PID).resource_index(10))
}

#[test]
fn each_code_has_its_cause() {
    let mut pair = Pair::open();
    let region = region(&mut pair, KEY, 4096);
    let memory =
        Region { key: Key(READ_ONLY), base: u64::MAX - 100, access: Access::READ, data: vec![0; 64] };
    pair.side[1].expose(index(10), memory).unwrap();
    pair.side[1].set_generation(index(10), 3).unwrap();
    pair.side[1].set_disabled(index(11), true).unwrap();
    let at = |peer: Peer| Operation::new(peer, Work::Write { key: Key(KEY), offset: 0, data: data(8) });
    let good = Peer { generation: 3, ..peer() };
    let on = |operation: Operation| Operation { peer: good, ..operation };
    let job = |job| Peer { route: Route { job, ..good.route }, ..good };
    let atomic = |opcode, datatype, offset, bytes: Bytes| {
        let (on, operand) = (AtomicOn::Memory { key: Key(KEY), offset }, Operand::Elements(bytes));
        Operation::new(good, Work::Atomic { on, opcode, datatype, operand, fetch: false })
    };
    let (sum, int) = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
    for (operation, expected) in [
        (at(good), ReturnCode::OK),
        (at(job(102)), ReturnCode::BAD_JOB_ID),
        (at(Peer { pid: 3, ..good }), ReturnCode::BAD_PID),
        (at(Peer { index: 64, ..good }), ReturnCode::BAD_INDEX),
        (at(Peer { generation: 2, ..good }), ReturnCode::BAD_GENERATION),
        (at(Peer { generation: 4, ..good }), ReturnCode::BAD_GENERATION),
        (at(Peer { index: 11, generation: 0, ..good }), ReturnCode::DISABLED),
        (on(write(0xbad, 0, data(8))), ReturnCode::BAD_MKEY),
        (on(write(READ_ONLY, 0, data(8))), ReturnCode::OP_VIOLATION),
        (on(write(KEY, 4089, data(8))), ReturnCode::BAD_ADDR),
        (on(read(KEY, 4096, 1)), ReturnCode::BAD_ADDR),
        (on(read(READ_ONLY, 200, 1)), ReturnCode::BAD_ADDR),
        (on(read(KEY, u64::MAX, 1)), ReturnCode::BAD_ADDR),
        (atomic(sum, int, 4, data(8)), ReturnCode::AMO_UNALIGNED),
        (atomic(sum, int, 8, data(7)), ReturnCode::AMO_UNSUPPORTED_SIZE),
        (atomic(sum, AtomicDatatype::FP16, 8, data(8)), ReturnCode::AMO_UNSUPPORTED_DT),
        (atomic(AtomicOpcode::INVAL, int, 8, data(8)), ReturnCode::AMO_UNSUPPORTED_OP),
        (atomic(AtomicOpcode::MSWAP, int, 8, data(8)), ReturnCode::AMO_UNSUPPORTED_OP),
        (atomic(AtomicOpcode::BOR, AtomicDatatype::DOUBLE, 8, data(8)), ReturnCode::AMO_UNSUPPORTED_OP),
    ] {
        assert_eq!(code(&mut pair, operation.clone()), expected, "{operation:?}");
        let (_, last) = pair.responses.last().unwrap();
        if expected != ReturnCode::OK {
            assert_eq!(last.delivery, Delivery::Guaranteed, "{expected}");
            let last = Response::parse(&last.head).unwrap().0.copied();
            assert_eq!(last.modified_length(), 0);
            // BAD_GENERATION includes the current generation.
            let generation = if expected == ReturnCode::BAD_GENERATION { 3 } else { 0 };
            assert_eq!(last.ri_generation(), generation, "{expected}");
        }
    }
    assert_eq!(pair.side[1].memory(region).unwrap()[..8], data(8));
    assert!(pair.side[1].memory(region).unwrap()[8..].iter().all(|byte| *byte == 0));
}

#[test]
fn host_error_is_returned_without_access() {
    for code in [
        ReturnCode::AT_INVALID,
        ReturnCode::AT_ATS_ERROR,
        ReturnCode::AT_NO_TRANS,
        ReturnCode::HOST_POISONED,
        ReturnCode::HOST_UNSUCCESS_CMPL,
        ReturnCode::UNCOR,
        ReturnCode::UNCOR_TRNSNT,
    ] {
        let mut pair = Pair::open();
        let region = region(&mut pair, KEY, 64);
        pair.side[1].set_host_fault(region, Some(code));
        for operation in [write(KEY, 0, data(8)), read(KEY, 0, 8)] {
            assert_eq!(pair.run_one(operation).unwrap_err().code, code);
        }
        assert_eq!(pair.side[1].memory(region), Some(&[0; 64][..]));
        pair.side[1].set_host_fault(region, None);
        pair.run_one(write(KEY, 0, data(8))).unwrap();
    }
}

#[test]
fn open_codes_are_parameters() {
    let params = SesParams {
        out_of_range: ReturnCode::UNSUPPORTED_SIZE,
        denied: ReturnCode::AT_PERM,
        region_generation: false,
        ..SesParams::default()
    };
    let mut pair = Pair::with(SesParams::default(), params).opened();
    region(&mut pair, KEY, 8);
    let memory = Region { key: Key(READ_ONLY), base: 0, access: Access::READ, data: vec![0; 8] };
    pair.side[1].expose(index(10), memory).unwrap();
    pair.side[1].set_generation(index(10), 9).unwrap();
    assert_eq!(code(&mut pair, write(KEY, 0, data(9))), ReturnCode::UNSUPPORTED_SIZE);
    assert_eq!(code(&mut pair, write(READ_ONLY, 0, data(8))), ReturnCode::AT_PERM);
    assert_eq!(code(&mut pair, write(KEY, 0, data(8))), ReturnCode::OK);
}

#[test]
fn unmatched_send_gets_the_reason() {
    let none = SesParams { max_unexpected: 0, ..SesParams::default() };
    let mut pair = Pair::with(SesParams::default(), none).opened();
    assert_eq!(code(&mut pair, send(Some(1), data(8))), ReturnCode::NO_MATCH);
    // DISABLED takes precedence over NO_MATCH.
    pair.side[1].set_disabled(index(10), true).unwrap();
    assert_eq!(code(&mut pair, send(Some(1), data(8))), ReturnCode::DISABLED);
    pair.side[1].set_disabled(index(10), false).unwrap();

    pair.side[1].set_ordered(index(10), true).unwrap();
    pair.side[1].set_generation(index(10), 1).unwrap();
    let current = |generation| {
        let work = Work::Send { tag: None, data: data(8) };
        Operation::new(Peer { generation, ..peer() }, work)
    };
    pair.side[1].post_receive(index(10), Receive::new(8)).unwrap();
    assert_eq!(code(&mut pair, current(1)), ReturnCode::OK);
    assert_eq!(code(&mut pair, current(1)), ReturnCode::DISABLED_GEN, "the buffers have run out");
    pair.side[1].post_receive(index(10), Receive::new(8)).unwrap();
    assert_eq!(code(&mut pair, current(1)), ReturnCode::DISABLED_GEN, "until the generation is raised");
    pair.side[1].set_generation(index(10), 2).unwrap();
    assert_eq!(code(&mut pair, current(1)), ReturnCode::BAD_GENERATION);
    assert_eq!(code(&mut pair, current(2)), ReturnCode::OK);
}

#[test]
fn unknown_and_wrong_requests_are_refused() {
    let mut target = Target::new(SesParams::default());
    let write = || header(Opcode::UET_WRITE).memory_key(KEY);
    let part = |offset, length: u16| {
        write().head(|head| head.som(false)).payload_length(length).message_offset(offset)
    };
    for number in [0x10, 0x2f, 0x30, 0x3f] {
        let unknown = header(Opcode::new(number).unwrap());
        assert_eq!(target.std(unknown, Bytes::new()), ReturnCode::UNSUPPORTED_OP);
    }
    let violation = ReturnCode::OP_VIOLATION;
    assert_eq!(target.std(write().request_length(9), data(8)), violation, "length of the message");
    assert_eq!(target.std(write().request_length(7), data(8)), violation);
    assert_eq!(target.std(part(8, 9).request_length(16), data(8)), violation, "length of the packet");
    assert_eq!(target.std(part(16, 8).request_length(16), data(8)), violation, "beyond the message");
    let read = || header(Opcode::UET_READ).memory_key(KEY);
    assert_eq!(target.std(read().request_length(8), data(8)), violation, "a read brings nothing");
    let huge = || read().head(|head| head.som(false)).payload_length(4097).message_offset(0);
    assert_eq!(target.std(huge().request_length(4097), Bytes::new()), ReturnCode::UNSUPPORTED_SIZE);
    let datagram = || header(Opcode::UET_DATAGRAM_SEND).head(|head| head.eom(false)).request_length(8);
    assert_eq!(target.std(datagram(), data(8)), violation, "a datagram is one packet");
    assert_eq!(target.std(header(Opcode::UET_DEFERRABLE_RTR), Bytes::new()), ReturnCode::NO_MATCH);
    let given_up = || write().head(|head| head.ie(true)).request_length(8);
    assert_eq!(target.std(given_up(), data(8)), ReturnCode::INITIATOR_ERR);
    let given_up = read().message_id(99).head(|head| head.som(false).ie(true));
    let given_up = given_up.payload_length(4096).message_offset(0).request_length(8192);
    assert_eq!(target.std(given_up, Bytes::new()), ReturnCode::INITIATOR_ERR, "it asks for nothing");
    assert!(target.is_untouched());
}

#[test]
fn invalid_atomics_are_refused() {
    let mut target = Target::new(SesParams::default());
    let mut ask = |eom: bool, ie: bool, length: u32, payload: usize| {
        let header = header(Opcode::UET_ATOMIC).head(|head| head.eom(eom).ie(ie));
        let header = header.memory_key(KEY).request_length(length).done().unwrap();
        let ext = Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT8).done().unwrap();
        let head = [&header.bytes()[..], ext.bytes()].concat();
        target.ask(Mode::Rud, NextHdr::UET_HDR_REQUEST_STD, &head, data(payload)).head().return_code()
    };
    assert_eq!(ask(false, false, 8, 8), ReturnCode::OP_VIOLATION, "not one packet");
    assert_eq!(ask(true, false, 8, 7), ReturnCode::OP_VIOLATION, "not what it says");
    assert_eq!(ask(true, true, 8, 8), ReturnCode::INITIATOR_ERR);
    assert_eq!(ask(true, false, 8, 8), ReturnCode::OK);

    let header = header(Opcode::UET_ATOMIC).memory_key(KEY).request_length(16).done().unwrap();
    let swap = CompareSwap::zeroed()
        .edit()
        .atomic(|atomic| atomic.atomic_opcode(AtomicOpcode::CSWAP).atomic_datatype(AtomicDatatype::UINT64));
    let head = [&header.bytes()[..], swap.done().unwrap().bytes()].concat();
    let answer = target.ask(Mode::Rud, NextHdr::UET_HDR_REQUEST_STD, &head, Bytes::new());
    assert_eq!(answer.head().return_code(), ReturnCode::AMO_UNSUPPORTED_SIZE, "one element is swapped");
}

#[test]
fn malformed_headers_are_refused() {
    let mut target = Target::new(SesParams::default());
    for (next_hdr, head) in [
        (NextHdr::UET_HDR_NONE, &[][..]),
        (NextHdr::UET_HDR_REQUEST_STD, &[0; 43]),
        (NextHdr::UET_HDR_RESPONSE, &[0; 12]),
        // A fetching atomic lacks its extension.
        (NextHdr::UET_HDR_REQUEST_SMALL, &[4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let answer = target.ask(Mode::Rud, next_hdr, head, Bytes::new());
        assert_eq!(answer.head().return_code(), ReturnCode::OP_VIOLATION, "{next_hdr}");
    }
}

#[test]
fn rudi_accepts_only_idempotent_requests() {
    let mut target = Target::new(SesParams::default());
    let mut ask = |opcode: Opcode| {
        let header = header(opcode).request_length(0).done().unwrap();
        let ext = [0; 4];
        let head = [&header.bytes()[..], &ext].concat();
        target.ask(Mode::Rudi, NextHdr::UET_HDR_REQUEST_STD, &head, Bytes::new()).head().return_code()
    };
    assert_eq!(ask(Opcode::UET_NO_OP), ReturnCode::OK);
    assert_eq!(ask(Opcode::UET_SEND), ReturnCode::OP_VIOLATION);
    assert_eq!(ask(Opcode::UET_ATOMIC), ReturnCode::OP_VIOLATION);
    let mut pair = Pair::open();
    region(&mut pair, KEY, 8);
    let unmarked = Operation { peer: peer().by(Mode::Rudi), ..write(KEY, 0, data(8)) };
    assert_eq!(code(&mut pair, unmarked), ReturnCode::OP_VIOLATION, "the region is not marked");
}

/// The rest of a failed message is discarded with the same code, and the message ends early.
#[test]
fn an_error_ends_its_message() {
    let mut pair = Pair::open();
    let region = region(&mut pair, KEY, 3 * 4096);
    let id = pair.side[0].post(write(KEY, 1, data(3 * 4096))).unwrap();
    pair.run();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::BAD_ADDR);
    let codes: Vec<ReturnCode> = pair
        .responses
        .iter()
        .map(|(_, response)| Response::parse(&response.head).unwrap().0.head().return_code())
        .collect();
    assert_eq!(codes, [ReturnCode::BAD_ADDR; 3]);
    // The target placed no packet, not even those that fit.
    assert!(pair.side[1].memory(region).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn error_completes_the_message() {
    let mut pair = Pair::open();
    let id = pair.side[0].post(write(KEY, 0, data(1 << 20))).unwrap();
    // One packet leaves, and is refused before the next.
    let Some(Command::Send(via, request)) = pair.side[0].poll_command() else { panic!() };
    pair.side[0].handle(Indication::Paused(via));
    let refused = Response::build(uet_wire::registry::ResponseOpcode::UET_RESPONSE, ReturnCode::BAD_MKEY);
    let refused = refused.message_id(1).done().unwrap();
    let response = Some(RxResponse {
        next_hdr: NextHdr::UET_HDR_RESPONSE,
        head: refused.bytes().iter().copied().collect(),
        payload: Bytes::new(),
    });
    pair.side[0].handle(Indication::Response { message: request.message, pdc: None, response });
    pair.side[0].handle(Indication::Resumed(via));
    pair.run();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::BAD_MKEY);
    assert_eq!(pair.requests.len(), 1, "nothing but the end of it has left");
    let last = Std::parse(&pair.requests[0].2.head).unwrap().0.copied();
    assert_eq!((last.head().opcode(), last.head().eom()), (Opcode::UET_MSG_ERROR, true));
}

#[test]
fn cancelled_receive_ends_its_message() {
    let mut pair = Pair::open();
    let receive = pair.side[1].post_receive(index(10), Receive::new(3 * 4096)).unwrap();
    let id = pair.side[0].post(send(None, data(3 * 4096))).unwrap();
    pair.collect();
    pair.deliver(0);
    assert!(pair.side[1].cancel_receive(index(10), receive));
    pair.run();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::CANCELLED);
    assert_eq!(pair.received()[0].code, ReturnCode::CANCELLED);
}

#[test]
fn withdrawn_region_ends_its_messages() {
    let mut pair = Pair::open();
    let region = region(&mut pair, KEY, 3 * 4096);
    let id = pair.side[0].post(write(KEY, 0, data(3 * 4096))).unwrap();
    pair.collect();
    pair.deliver(0);
    let memory = pair.side[1].withdraw(region).unwrap();
    assert_eq!(memory.data.as_slice().unwrap()[..4096], data(4096));
    pair.run();
    assert_eq!(pair.outcome(id).unwrap_err().code, ReturnCode::BAD_MKEY);
}

#[test]
fn undeliverable_request_fails() {
    let mut ses = Ses::default();
    let id = ses.post(write(KEY, 0, data(8192))).unwrap();
    let Some(Command::Send(_, request)) = ses.poll_command() else { panic!() };
    ses.handle(Indication::Failed { message: request.message, why: Failure::TimedOut });
    assert_eq!(ses.poll_command(), None, "the rest stays");
    let Some(Completion::Operation { id: ended, result: Err(fault) }) = ses.poll_completion() else {
        panic!()
    };
    assert_eq!((ended, fault.code, fault.why), (id, ReturnCode::UNDELIVERABLE, Some(Failure::TimedOut)));
    assert_eq!(ses.poll_completion(), None);
}

#[test]
fn every_event_displays_as_a_sentence() {
    let mut pair = Pair::open();
    region(&mut pair, KEY, 16);
    for operation in
        [write(KEY, 0, data(8)), write(KEY, 9, data(8)), read(KEY, 0, 16), send(Some(3), data(2))]
    {
        let _ = pair.run_one(operation);
    }
    let sentences: Vec<String> =
        std::iter::from_fn(|| pair.side[1].poll_event()).map(|event| event.to_string()).collect();
    assert_eq!(
        sentences,
        [
            "8 bytes placed at 0x1000, in region 0",
            "UET_WRITE from 10.0.0.1 is answered by BAD_ADDR: 8 bytes at 9 are outside a region of 16",
            "16 bytes read at 0x1000, in region 0, returned in the ACK",
            "an unexpected send to index 10 of process 2 of job 101 is kept",
        ]
    );
}

#[test]
fn a_fault_says_what_happened() {
    let fault = |code, generation, length, why| OperationError { code, generation, length, why }.to_string();
    assert_eq!(fault(ReturnCode::NO_MATCH, 0, 0, None), "NO_MATCH");
    assert_eq!(fault(ReturnCode::BAD_GENERATION, 7, 0, None), "BAD_GENERATION, the current one is 7");
    let lost = fault(ReturnCode::UNDELIVERABLE, 0, 4096, Some(Failure::TimedOut));
    assert_eq!(lost, "UNDELIVERABLE after 4096 bytes: no acknowledgment");
    let refused = fault(ReturnCode::UNDELIVERABLE, 0, 0, Some(Failure::Refused(0x0a)));
    assert_eq!(refused, "UNDELIVERABLE: the peer refused it too often, most recently with NO_RESOURCE");
    let ended = fault(ReturnCode::UNDELIVERABLE, 0, 0, Some(Failure::Ended(0x0e)));
    assert_eq!(ended, "UNDELIVERABLE: the peer ended the context with INV_DPDCID");
}

#[test]
fn closed_indices_can_be_reopened() {
    let mut pair = Pair::open();
    region(&mut pair, 0x50, 100);
    let part = |start, count| Endpoint { process: PROCESS, start, count };
    let code = |pair: &mut Pair| pair.run_one(write(0x50, 0, data(4))).map_err(|fault| fault.code);
    assert!(code(&mut pair).is_ok());

    // A message is open while its second packet is missing.
    let half = pair.side[0].post(write(0x50, 0, data(6000))).unwrap();
    pair.collect();
    pair.deliver(0);
    let regions = pair.side[1].close(part(10, 1)).unwrap();
    assert_eq!((regions.len(), &regions[0].data.as_slice().unwrap()[..4]), (1, &data(4)[..]));
    pair.run();
    assert!(pair.outcome(half).is_err(), "its memory is gone");

    assert_eq!(code(&mut pair).unwrap_err(), ReturnCode::BAD_INDEX);
    assert_eq!(pair.side[1].close(part(0, 64)).unwrap_err(), AddressError::NotOwned(index(10)));
    assert_eq!(pair.side[1].close(part(0, u16::MAX)).unwrap_err(), AddressError::NotOwned(index(10)));
    pair.side[1].close(part(0, 10)).unwrap();
    pair.side[1].close(part(11, 53)).unwrap();
    assert_eq!(code(&mut pair).unwrap_err(), ReturnCode::BAD_JOB_ID);
    let other = Process::Relative { job: JOB, pid: PID + 1 };
    pair.side[1].open(Endpoint { process: other, start: 0, count: 1 }).unwrap();
    assert_eq!(code(&mut pair).unwrap_err(), ReturnCode::BAD_PID);

    pair.side[1].open(part(0, 64)).unwrap();
    region(&mut pair, 0x50, 100);
    assert!(code(&mut pair).is_ok());
}
