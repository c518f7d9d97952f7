//! Answers that do not fit their question, and fields that one packet fixes for others.

use crate::frames::*;
use core::time::Duration;
use uet_observe::passive::Checker;
use uet_wire::pds::{self, Ack, Control, Nack, RequestMut};
use uet_wire::registry::{CtlType, List, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, ResponseData, SesBuf, Std, StdMut};
use uet_wire::{Options, Packet, Psn, PsnOffset, Start};

fn read(psn: u32, length: u32, som: bool, eom: bool, offset: u32) -> Vec<u8> {
    let ses = Std::build(Opcode::UET_READ).head(|head| head.som(som).eom(eom)).message_id(9);
    let ses =
        if som { ses } else { ses.payload_length((length - offset).min(1024) as u16).message_offset(offset) };
    let ses = ses.address(|a| a.job_id(101)).request_length(length).done().unwrap();
    frame(true, 7, 0, header(psn, same), Some(ses.into()), b"")
}

/// `SES-CUT-007`
#[test]
fn message_id_zero_is_reserved() {
    for (opcode, message, found) in
        [(Opcode::UET_WRITE, 0, 1), (Opcode::UET_WRITE, 1, 0), (Opcode::UET_DATAGRAM_SEND, 0, 0)]
    {
        let ses = Std::build(opcode).head(|head| head.som(true).eom(true)).message_id(message);
        let ses = ses.address(|a| a.job_id(101)).request_length(4).done().unwrap();
        let frame = frame(true, 7, 0, header(5, same), Some(ses.into()), b"data");
        finds(&[frame], &[("SES-CUT-007", 1)][..found]);
    }
}

#[test]
fn last_packet_of_a_read_has_eom() {
    finds(&[read(5, 16, true, true, 0)], &[]);
    finds(&[read(5, 16, true, false, 0)], &[("SES-CUT-002", 1)]);
    // The MTU may be 1,500 bytes or less.
    finds(&[read(5, 1500, true, false, 0)], &[]);
    finds(&[read(5, 1500, true, false, 0), read(6, 1500, false, true, 1024)], &[]);
    finds(&[read(5, 1500, true, false, 0), read(6, 1500, false, false, 1024)], &[("SES-CUT-002", 2)]);
    finds(&[read(5, 1500, true, false, 0), request(6, same)], &[("SES-CUT-002", 2)]);
    finds(&[read(5, 3000, true, false, 0), read(6, 3000, false, true, 1024)], &[("SES-CUT-002", 2)]);
    finds(&[read(5, 9000, true, true, 0)], &[("SES-CUT-002", 1)]);
    finds(&[read(5, 3000, true, false, 0), read(6, 3000, false, false, 1000)], &[("SES-CUT-001", 2)]);
}

/// The first packet of a write of 12 bytes, or its second with another field.
fn part(psn: u32, change: impl FnOnce(StdMut) -> StdMut) -> Vec<u8> {
    let ses = Std::build(Opcode::UET_WRITE).head(|head| head.som(psn == 5)).message_id(1).request_length(12);
    let ses = ses.address(|a| a.job_id(101).pid_on_fep(1).resource_index(2)).initiator(3).memory_key(4);
    let ses = if psn == 5 { ses } else { ses.payload_length(4).message_offset(4) };
    frame(true, 7, 0, header(psn, same), Some(change(ses).done().unwrap().into()), b"data")
}

#[test]
fn a_message_has_one_destination() {
    let changes: [fn(StdMut) -> StdMut; 7] = [
        |ses| ses.head(|head| head.rel(true)),
        |ses| ses.address(|a| a.job_id(102)),
        |ses| ses.address(|a| a.pid_on_fep(2)),
        |ses| ses.address(|a| a.resource_index(3)),
        |ses| ses.address(|a| a.ri_generation(1)),
        |ses| ses.initiator(4),
        |ses| ses.memory_key(5),
    ];
    finds(&[part(5, |ses| ses), part(6, |ses| ses)], &[]);
    for change in changes {
        finds(&[part(5, |ses| ses), part(6, change)], &[("SES-CUT-003", 2)]);
    }
    let other = part(6, |ses| ses.head(|head| head.opcode(Opcode::UET_ATOMIC)));
    let found = super::check(&[part(5, |ses| ses), other]);
    assert!(found.iter().any(|finding| finding.requirement.id == "SES-CUT-003"));
}

fn data(
    psn: u32,
    rod: bool,
    change: impl FnOnce(uet_wire::ses::ResponseDataMut) -> uet_wire::ses::ResponseDataMut,
) -> Vec<u8> {
    let ses =
        ResponseData::build().read_request_message_id(9).payload_length(4).modified_length(3000).job_id(101);
    let next = NextHdr::UET_HDR_RESPONSE_DATA;
    let request = if rod { pds::Request::rod() } else { pds::Request::rud() };
    let request = request.prologue(|p| p.next_hdr(next)).clear_psn_offset(-1).psn(Psn(psn));
    let request = request.spdcid(THERE).dpdcid(HERE).done().unwrap();
    frame(false, 7, 0, request, Some(change(ses).done().unwrap().into()), b"data")
}

#[test]
fn return_data_has_the_mode_of_its_context() {
    let asks = read(5, 3000, true, false, 0);
    finds(&[asks.clone(), data(5, false, |ses| ses)], &[]);
    finds(&[asks, data(5, true, |ses| ses)], &[("PDS-PDC-002", 2)]);
    // A capture from the middle lacks the mode of the context.
    finds(&[data(5, true, |ses| ses), data(6, true, |ses| ses.message_offset(4))], &[]);
}

/// `PDS-OPEN-003`
#[test]
fn an_initiator_takes_data_of_the_context_that_it_opens() {
    let opens = |retx| {
        let request = pds::Request::rud().prologue(|p| p.next_hdr(NextHdr::UET_HDR_REQUEST_STD)).retx(retx);
        let request = request.syn(true).psn_offset(PsnOffset::ZERO).clear_psn_offset(-1).psn(Psn(5));
        let ses = Std::build(Opcode::UET_READ).head(|head| head.som(true).eom(true)).message_id(9);
        let ses = ses.address(|a| a.job_id(101)).request_length(3000).done().unwrap();
        frame(true, 7, 0, request.spdcid(HERE).done().unwrap(), Some(ses.into()), b"")
    };
    let nack = |code| {
        let nack = Nack::build(code).nack_psn(Psn(5)).dpdcid(THERE);
        frame(true, 7, 0, nack.done().unwrap(), None, b"")
    };
    let refused = |code| [opens(false), data(5, false, |ses| ses), nack(code), opens(true)];
    finds(&refused(NackCode::NO_PKT_BUFFER), &[]);
    finds(&refused(NackCode::PDC_HDR_MISMATCH)[..3], &[]);
    finds(&refused(NackCode::PDC_HDR_MISMATCH), &[("PDS-OPEN-003", 4)]);
}

#[test]
fn data_of_one_read_agrees() {
    let asks = [read(5, 3000, true, false, 0), data(5, false, |ses| ses)];
    let then = |second: Vec<u8>| [&asks[..], &[second]].concat();
    finds(&then(data(6, false, |ses| ses.message_offset(4))), &[]);
    finds(&then(data(6, false, |ses| ses.modified_length(2999))), &[("SES-READ-007", 3)]);
    // The target chooses its message ids as it likes.
    finds(&then(data(6, false, |ses| ses.response_message_id(8))), &[]);
    finds(&then(data(6, false, |ses| ses.job_id(8))), &[("SES-RESP-003", 3)]);
    finds(&then(in_ack(5, |ses| ses)), &[("SES-READ-004", 3)]);
}

fn in_ack(
    psn: u32,
    change: impl FnOnce(uet_wire::ses::ResponseDataMut) -> uet_wire::ses::ResponseDataMut,
) -> Vec<u8> {
    let ses =
        ResponseData::build().read_request_message_id(9).payload_length(4).modified_length(3000).job_id(101);
    let ack = ack_of(psn - 1, psn).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE_DATA)).done().unwrap();
    frame(false, 7, 0, ack, Some(change(ses).done().unwrap().into()), b"data")
}

#[test]
fn data_answers_a_request_for_data() {
    finds(&[read(5, 3000, true, false, 0), in_ack(5, |ses| ses)], &[]);
    finds(&[request(9, same), in_ack(9, |ses| ses)], &[("PDS-ACK-016", 2)]);
    let other = in_ack(5, |ses| ses.read_request_message_id(8));
    finds(&[read(5, 3000, true, false, 0), other], &[("PDS-ACK-016", 2)]);
}

fn answer(psn: u32, response: impl Into<SesBuf>) -> Vec<u8> {
    let ack = ack_of(psn - 1, psn).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).done().unwrap();
    frame(false, 7, 0, ack, Some(response.into()), b"")
}

#[test]
fn a_code_answers_its_operation() {
    let code = |code, list, opcode| {
        let response = Response::build(opcode, code).head(|head| head.list(list)).message_id(5).job_id(101);
        answer(5, response.done().unwrap())
    };
    let (full, expected) = (ResponseOpcode::UET_RESPONSE, List::UET_EXPECTED);
    finds(&[request(5, same), code(ReturnCode::BAD_MKEY, expected, full)], &[]);
    for wrong in [ReturnCode::AMO_UNALIGNED, ReturnCode::NO_MATCH] {
        finds(&[request(5, same), code(wrong, expected, full)], &[("PDS-ACK-016", 2)]);
    }
    finds(&[request(5, same), code(ReturnCode::OK, List::UET_OVERFLOW, full)], &[("PDS-ACK-016", 2)]);
    // Generation 0 is refused, and generation 0 is current.
    finds(&[request(5, same), code(ReturnCode::BAD_GENERATION, expected, full)], &[("SES-GEN-002", 2)]);
    let whole = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
    finds(&[request(5, same), answer(5, whole.modified_length(5).done().unwrap())], &[("SES-RESP-004", 2)]);
}

#[test]
fn an_initiator_knows_its_own_read() {
    let refuses = |code| {
        let response = Response::build(ResponseOpcode::UET_RESPONSE, code).job_id(101).done().unwrap();
        let ack = Ack::build().cack_psn(Psn(5)).spdcid(HERE).dpdcid(THERE);
        let ack = ack.prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).done().unwrap();
        frame(true, 7, 0, ack, Some(response.into()), b"")
    };
    let whole = data(5, false, |ses| ses.modified_length(4));
    let then = |last: Vec<u8>| [read(5, 4, true, true, 0), whole.clone(), last];
    let part = [read(5, 3000, true, false, 0), data(5, false, |ses| ses), refuses(ReturnCode::UNDELIVERABLE)];
    finds(&part, &[]); // other data may have come before
    finds(&then(refuses(ReturnCode::UNDELIVERABLE)), &[("SES-READ-005", 3)]);
    finds(&then(refuses(ReturnCode::AT_PERM)), &[]);
    finds(&then(refuses(ReturnCode::UNDELIVERABLE))[1..], &[]);
}

/// An ACK with the identifiers of the context, and PSNs that it never had.
fn stray(initiator: bool, cack: u32, offset: i16) -> Vec<u8> {
    let (from, to) = if initiator { (HERE, THERE) } else { (THERE, HERE) };
    let ack = Ack::build().ack_psn_offset(offset).cack_psn(Psn(cack)).spdcid(from).dpdcid(to).done().unwrap();
    frame(initiator, 7, 0, ack, None, b"")
}

const FAR: u32 = 0x1960_0000;

#[test]
fn nobody_acknowledges_what_was_never_sent() {
    let opened = [opens(FAR, 0), ack(FAR, FAR), control(false, CtlType::CLOSE_REQUEST, FAR)];
    let close = control(true, CtlType::CLOSE_COMMAND, FAR + 1);
    for initiator in [true, false] {
        let strays = [&opened[..], &[stray(initiator, 0, -27_255), close.clone()]].concat();
        finds(&strays, &[("PDS-PSN-002", 4)]);
        // Another context may have the identifiers, if the old one shows no sign of life.
        finds(&strays[..4], &[]);
        // A capture from the middle does not show that the context is the same.
        finds(&strays[1..], &[]);
    }
    finds(&[opens(FAR, 0), ack(FAR, FAR), stray(false, FAR, -10)], &[("PDS-SYN-008", 3)]);
}

#[test]
fn an_ack_does_not_name_a_psn_in_advance() {
    let ahead = |by| [request(5, same), ack(5, 5), ack(5, by), request(6, same)];
    finds(&ahead(6), &[]);
    finds(&ahead(8), &[]); // a single one may be a reordered record
    finds(&ahead(400), &[("PDS-PSN-002", 4)]);
    finds(&[&ahead(9)[..], &[request(7, same)]].concat(), &[("PDS-PSN-002", 5)]);
    // A packet that has overtaken others is reported in the bitmap, and the capture may lack it.
    let overtaken = |bits| [request(5, same), ack_cc(5, 8, bits, 1), request(6, same), request(7, same)];
    finds(&overtaken(0), &[("PDS-PSN-002", 4)]);
    finds(&overtaken(0b100), &[]);
}

/// The network reorders packets, and the capture lacks the one that an ACK names.
#[test]
fn a_reordered_packet_may_be_missing() {
    let order = [5, 7, 8, 10, 11, 13, 6, 12, 9];
    let told = |sent: &[u32]| {
        let has = |psn: &u32| sent.contains(psn);
        ack((6..).take_while(has).last().unwrap_or(5), *sent.last().unwrap())
    };
    let exchange = |at: usize| [request(order[at], same), told(&order[..=at])];
    for gap in 1..order.len() {
        let frames = (0..order.len()).flat_map(|at| exchange(at).into_iter().skip(usize::from(at == gap)));
        finds(&frames.collect::<Vec<_>>(), &[]);
    }
}

/// Returns the findings of packets with their times in milliseconds.
fn timed(frames: &[(u64, Vec<u8>)]) -> Vec<&'static str> {
    let mut checker = Checker::default();
    let mut judge = |(number, (at, frame)): (usize, &(u64, Vec<u8>))| {
        let packet = Packet::parse_lax(Start::Eth, frame, &Options::default()).0;
        checker.packet_at(number as u64 + 1, Some(Duration::from_millis(*at)), &packet)
    };
    let found = frames.iter().enumerate().flat_map(&mut judge).map(|finding| finding.requirement.id);
    found.collect()
}

#[test]
fn a_close_is_refused_only_for_return_data() {
    let refusal = Nack::build(NackCode::CLOSING_IN_ERR).nack_psn(Psn(6)).spdcid(THERE).dpdcid(HERE);
    let refusal = frame(false, 7, 0, refusal.done().unwrap(), None, b"");
    let (opened, close) = ([opens(5, 0), ack(5, 5)], control(true, CtlType::CLOSE_COMMAND, 6));
    let asks = control(false, CtlType::CLOSE_REQUEST, 5);
    finds(&[&opened[..], &[close.clone(), refusal.clone()]].concat(), &[("PDS-CLOSE-004", 4)]);
    finds(&[&opened[1..], &[close.clone(), refusal.clone()]].concat(), &[]);
    finds(&[&opened[..], &[data(5, false, |ses| ses), close.clone(), refusal.clone()]].concat(), &[]);
    // The ACK of a CLOSE_REQUEST or of return data that the capture lacks.
    let told = Ack::build().cack_psn(Psn(5)).spdcid(HERE).dpdcid(THERE).done().unwrap();
    let told = frame(true, 7, 0, told, None, b"");
    finds(&[&opened[..], &[told, close.clone(), refusal.clone()]].concat(), &[]);
    let [first, told] = opened;
    let asked = |at| {
        [(0, first.clone()), (1, told.clone()), (2, asks.clone()), (3, close.clone()), (at, refusal.clone())]
    };
    assert_eq!(timed(&asked(4)), ["PDS-CLOSE-007"]);
    // Close_REQ_Time may have ended.
    assert_eq!(timed(&asked(1000)), [""; 0]);
}

#[test]
fn the_ack_of_a_close_covers_it() {
    let close = control(true, CtlType::CLOSE_COMMAND, 6);
    finds(&[opens(5, 0), ack(5, 5), close.clone(), ack(6, 6)], &[]);
    finds(&[opens(5, 0), ack(5, 5), close.clone(), ack(5, 6)], &[("PDS-PSN-002", 4)]);
    finds(&[opens(5, 0), close, ack(4, 6)], &[]); // the capture lacks the ACK of PSN 5
    // PSN 6 was never sent.
    let beyond = control(true, CtlType::CLOSE_COMMAND, 7);
    finds(&[opens(5, 0), ack(5, 5), beyond, ack(5, 7)], &[]);
}

#[test]
fn nothing_is_sent_after_a_close() {
    let closed = [opens(5, 0), ack(5, 5), control(true, CtlType::CLOSE_COMMAND, 6)];
    let then = |rest: &[Vec<u8>]| [&closed[..], rest].concat();
    finds(&then(&[ack(6, 6)]), &[]);
    finds(&then(&[ack(8, 6)]), &[("PDS-PSN-002", 4)]);
    // The initiator sends on.
    finds(&then(&[request(7, same), ack(7, 7)]), &[("PDS-CLOSE-001", 4)]);
}

#[test]
fn a_retransmission_has_the_current_state() {
    let sends = |psn: u32, clear: u32, retx| request(psn, |r| r.clear_psn(Psn(clear)).retx(retx));
    let first = [
        sends(5, 4, false),
        sends(6, 4, false),
        sends(7, 4, false),
        ack(5, 5),
        sends(8, 5, false),
        ack(5, 8),
    ];
    let then = |rest: &[Vec<u8>]| [&first[..], rest].concat();
    finds(&then(&[sends(6, 5, true), sends(7, 5, true)]), &[]);
    finds(&then(&[sends(6, 4, true)]), &[]); // one may have been overtaken
    finds(&then(&[sends(6, 4, true), sends(7, 4, true)]), &[("PDS-CLR-003", 8)]);

    let syn = |psn: u32| {
        let request = pds::Request::rud().prologue(|p| p.next_hdr(NextHdr::UET_HDR_REQUEST_STD)).retx(true);
        let request = request.syn(true).psn(Psn(psn)).clear_psn(Psn(99)).spdcid(HERE);
        let request = request.psn_offset(PsnOffset::new(psn as u16 - 100).unwrap()).done().unwrap();
        frame(true, 7, 0, request, Some(write(psn as u16).into()), b"data")
    };
    let known = |r: RequestMut| r.clear_psn(Psn(99));
    let first = [opens(100, 0), opens(101, 1), ack(99, 101), request(102, known), ack(99, 102)];
    finds(&[&first[..], &[syn(100)]].concat(), &[]);
    finds(&[&first[..], &[syn(100), syn(101)]].concat(), &[("PDS-SYN-004", 7)]);
}

#[test]
fn an_ack_tells_of_the_retransmission_that_it_answers() {
    let again = |psn: u32| request(psn, |r| r.retx(true));
    fn told(psn: u32) -> Vec<u8> {
        frame(false, 7, 0, ack_of(psn, psn).retx(true).done().unwrap(), None, b"")
    }
    // An ACK of the next PSN reports this one as missing.
    let lost = |psn: u32| [request(psn + 1, same), ack_cc(psn - 1, psn + 1, 0b10, 1), again(psn)];
    let all = |first: usize, ack: fn(u32) -> Vec<u8>| {
        (5..8).flat_map(|at| [&lost(2 * at)[first..], &[ack(2 * at)]].concat()).collect::<Vec<_>>()
    };
    finds(&all(0, |psn| ack(psn, psn)), &[("PDS-ACK-002", 12)]);
    finds(&all(0, told), &[]);
    // The capture may lack the first transmissions, and these ACKs answer them.
    finds(&all(2, |psn| ack(psn, psn)), &[]);
}

#[test]
fn a_noop_that_opens_a_context_sets_its_mode() {
    let opening = |ordered| {
        let noop = Control::build(CtlType::NOOP).ar(true).syn(true).isrod(ordered).psn(Psn(5)).spdcid(HERE);
        frame(true, 7, 0, noop.psn_offset(PsnOffset::ZERO).done().unwrap(), None, b"")
    };
    finds(&[opening(false), ack(5, 5), request(6, same)], &[]);
    finds(&[opening(true), ack(5, 5), request(6, same)], &[("PDS-PDC-002", 3)]);
}

#[test]
fn a_rudi_response_fits_its_request() {
    let asks = |id, opcode, length: u32| {
        let ses =
            Std::build(opcode).head(|head| head.som(true).eom(true)).message_id(3).request_length(length);
        let next = NextHdr::UET_HDR_REQUEST_STD;
        let request = pds::Rudi::request(id).prologue(|p| p.next_hdr(next)).done().unwrap();
        frame(true, 7, 0, request, Some(ses.address(|a| a.job_id(101)).done().unwrap().into()), b"")
    };
    let says = |id, next, ses: SesBuf, data: &[u8]| {
        let response = pds::Rudi::response(id).prologue(|p| p.next_hdr(next).kind(PdsType::RUDI_RESP));
        frame(false, 7, 0, response.done().unwrap(), Some(ses), data)
    };
    let plain = |message| {
        let ses =
            Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK).message_id(message).job_id(101);
        says(1, NextHdr::UET_HDR_RESPONSE, ses.done().unwrap().into(), b"")
    };
    let data = |message, length: u16| {
        let ses = ResponseData::build().read_request_message_id(message).payload_length(length).job_id(101);
        let ses = ses.modified_length(length.into()).done().unwrap();
        says(1, NextHdr::UET_HDR_RESPONSE_DATA, ses.into(), &vec![0; length.into()])
    };
    let (write, read) = (asks(1, Opcode::UET_WRITE, 0), asks(1, Opcode::UET_READ, 8));
    finds(&[write.clone(), plain(3)], &[]);
    finds(&[write.clone(), plain(4)], &[("SES-RESP-003", 2)]);
    finds(&[write, data(3, 8)], &[("SES-READ-008", 2)]);
    finds(&[read.clone(), data(3, 8)], &[]);
    finds(&[read.clone(), data(3, 9)], &[("SES-READ-008", 2)]);
    finds(&[read.clone(), data(4, 8)], &[("SES-READ-005", 2)]);
    finds(&[read, plain(3)], &[("SES-READ-008", 2)]);
}
