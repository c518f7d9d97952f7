//! Each rule, with packets that break it and similar ones that do not.

use crate::frames::*;
use uet_wire::pds::{self, Ack, AckCc, Control, Nack, RequestMut};
use uet_wire::registry::{
    AckRequest, CcType, CtlType, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Response, Std};
use uet_wire::{PdcId, Psn, PsnOffset, Units24};

#[test]
fn a_retransmission_is_marked_and_the_same() {
    let clears = |request: RequestMut| request.clear_psn_offset(-5);
    finds(&[request(5, same), request(5, |r| clears(r).retx(true))], &[]);
    finds(&[request(5, same), request(5, same)], &[]); // a copy that the network made
    finds(&[request(5, same), request(5, clears)], &[("PDS-RTO-005", 2)]);
    let other = frame(true, 7, 0, header(5, |r| r.retx(true)), Some(write(5).into()), b"DATA");
    finds(&[request(5, same), other.clone()], &[("PDS-RTO-005", 2)]);
    // Reassigned numbers are different.
    let anew =
        Nack::build(NackCode::NEW_START_PSN).nack_psn(Psn(5)).spdcid(THERE).dpdcid(HERE).done().unwrap();
    finds(&[request(5, same), frame(false, 7, 0, anew, None, b""), other], &[]);
}

#[test]
fn every_syn_says_the_same_start() {
    finds(&[opens(100, 0), opens(101, 1), opens(102, 2)], &[]);
    finds(&[opens(100, 0), opens(101, 0)], &[("PDS-SYN-001", 2)]);
    finds(&[opens(100, 0), opens(100 + (1 << 16), 0)], &[]); // the identifier is reused
}

#[test]
fn a_context_keeps_its_mode() {
    let rod = pds::Request::rod().prologue(|p| p.next_hdr(NextHdr::UET_HDR_REQUEST_STD));
    let rod = rod.clear_psn_offset(-1).psn(Psn(6)).spdcid(HERE).dpdcid(THERE).done().unwrap();
    let rod = frame(true, 7, 0, rod, Some(write(6).into()), b"data");
    finds(&[request(5, same), rod], &[("PDS-PDC-002", 2)]);
}

#[test]
fn nothing_is_acknowledged_before_it_is_sent() {
    finds(&[request(5, same), ack(6, 6), request(6, same)], &[]); // a single one may be a reordered record
    finds(&[request(5, same), ack(7, 7), request(6, same), request(7, same)], &[("PDS-PSN-002", 4)]);
    let told = |bits| ack_cc(5, 5, bits, 1);
    finds(&[request(5, same), told(0b110), request(7, same), request(8, same)], &[("PDS-SACK-001", 4)]);
    finds(&[request(5, same), request(7, same), told(0b10)], &[]);
}

#[test]
fn nothing_is_sent_far_beyond_the_window() {
    // The window before the first captured ACK is unknown, but at most the largest one.
    let permitted = 5 + 255 * 128;
    let sends = |psn: u32, clear: u32| request(psn, |r| r.clear_psn(Psn(clear)));
    let near = [request(5, same), ack_cc(5, 5, 0, 1), sends(30_000, 5), ack_cc(30_000, 30_000, 0, 2)];
    let last = permitted + 1024; // an ACK that widens the window may be missing
    finds(&[&near[..], &[sends(last, 30_000)]].concat(), &[]);
    finds(&[&near[..], &[sends(last + 1, 30_000)]].concat(), &[("PDS-WIN-004", 5)]);
    let cack = permitted;
    let far = [&near[..], &[sends(cack, 30_000), ack_cc(cack, cack, 0, 3)]].concat();
    finds(&[&far[..], &[sends(cack + 2048, cack)]].concat(), &[]);
    finds(&[&far[..], &[sends(cack + 2049, cack)]].concat(), &[("PDS-WIN-004", 7)]);
    finds(&[&far[..], &[sends(cack + 2049, cack + 1)]].concat(), &[]); // an ACK is missing
}

#[test]
fn clear_does_not_go_back() {
    let clears = |clear: u32| move |request: RequestMut| request.clear_psn(Psn(clear));
    finds(&[request(5, clears(4)), request(6, clears(4)), request(7, clears(5))], &[]);
    finds(&[request(5, clears(4)), request(6, clears(3))], &[("PDS-CLR-002", 2)]);
    finds(&[request(6, clears(3)), request(5, clears(4))], &[("PDS-CLR-002", 2)]);
}

#[test]
fn closing_is_the_initiators_and_final() {
    let close = |initiator| control(initiator, CtlType::CLOSE_COMMAND, 6);
    finds(&[opens(5, 0), close(true), request(5, |r| r.retx(true))], &[]);
    finds(&[opens(5, 0), ack(5, 5), close(true), request(7, same)], &[("PDS-CLOSE-001", 4)]);
    finds(&[opens(5, 0), ack(5, 5), close(false)], &[("PDS-CLOSE-001", 3)]);
    let silent = Control::build(CtlType::CLOSE_COMMAND).psn(Psn(6)).spdcid(HERE).dpdcid(THERE);
    let silent = frame(true, 7, 0, silent.done().unwrap(), None, b"");
    finds(&[opens(5, 0), ack(5, 5), silent], &[("PDS-CLOSE-002", 3)]);
    finds(&[opens(5, 0), ack(5, 5), control(false, CtlType::CLOSE_REQUEST, 6)], &[]);
    finds(&[opens(5, 0), ack(5, 5), control(true, CtlType::CLOSE_REQUEST, 6)], &[("PDS-CLOSE-006", 3)]);
}

#[test]
fn guaranteed_responses_hold_the_cumulative_psn() {
    let asks = |cack, code| {
        let response =
            Response::build(ResponseOpcode::UET_RESPONSE, code).message_id(5).job_id(101).done().unwrap();
        let ack = ack_of(cack, 5).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE));
        let ack = ack.req(AckRequest::REQ_CLEAR).done().unwrap();
        frame(false, 7, 0, ack, Some(response.into()), b"")
    };
    finds(&[request(5, same), asks(4, ReturnCode::BAD_MKEY)], &[]);
    finds(&[request(5, same), asks(5, ReturnCode::BAD_MKEY)], &[("PDS-PSN-002", 2)]);
    finds(&[request(5, same), asks(5, ReturnCode::OK)], &[]); // a response with a higher PSN may wait
}

#[test]
fn initiator_acks_request_nothing() {
    let ack =
        Ack::build().cack_psn(Psn(5)).spdcid(HERE).dpdcid(THERE).req(AckRequest::REQ_CLOSE).done().unwrap();
    finds(&[opens(5, 0), ack_and(ack)], &[("PDS-GTD-004", 2)]);
    fn ack_and(ack: Ack) -> Vec<u8> {
        frame(true, 7, 0, ack, None, b"")
    }
}

#[test]
fn an_ack_repeats_flags_and_entropy() {
    let retx = |psn| frame(false, 7, 0, ack_of(psn, psn).retx(true).done().unwrap(), None, b"");
    let requests: Vec<_> = (5..9).map(|psn| request(psn, same)).collect();
    finds(&[requests.clone(), vec![retx(5), retx(6)]].concat(), &[]);
    finds(&[requests.clone(), vec![retx(5), retx(6), retx(7)]].concat(), &[("PDS-ACK-002", 7)]);
    let again = request(5, |r| r.retx(true));
    finds(&[requests.clone(), vec![again, retx(5), retx(6), retx(7)]].concat(), &[]);

    let marked = |psn| frame(true, 7, 3, header(psn, same), Some(write(psn as u16).into()), b"data");
    finds(&[marked(5), marked(6), ack(5, 5), ack(6, 6)], &[("PDS-ACK-002", 4)]);
    let told = |psn| frame(false, 7, 0, ack_of(psn, psn).m(true).done().unwrap(), None, b"");
    finds(&[marked(5), marked(6), told(5), told(6)], &[]);

    let elsewhere = |psn| frame(false, 9, 0, ack_of(psn, psn).done().unwrap(), None, b"");
    finds(
        &[requests.clone(), vec![elsewhere(5), elsewhere(6), elsewhere(7)]].concat(),
        &[("CC-PATH-001", 7)],
    );
    // The capture lacks the retransmissions that these ACKs answer.
    let elsewhere = |psn| frame(false, 9, 0, ack_of(psn, psn).retx(true).done().unwrap(), None, b"");
    let again = request(8, |r| r.retx(true));
    finds(&[requests, vec![again, elsewhere(5), elsewhere(6), elsewhere(7)]].concat(), &[]);
}

#[test]
fn a_nack_repeats_retx() {
    let nack = |psn| {
        let nack =
            Nack::build(NackCode::NO_PKT_BUFFER).retx(true).nack_psn(Psn(psn)).spdcid(THERE).dpdcid(HERE);
        frame(false, 7, 0, nack.done().unwrap(), None, b"")
    };
    let frames = [request(5, same), nack(5), nack(5), nack(5)];
    finds(&frames[..3], &[]);
    finds(&frames, &[("PDS-NACK-001", 4)]);
}

#[test]
fn a_probe_is_answered_with_its_own_value() {
    let probe =
        Control::build(CtlType::PROBE).probe_opaque(0xbeef).spdcid(HERE).dpdcid(THERE).done().unwrap();
    let probe = frame(true, 7, 0, probe, None, b"");
    let answer = |opaque| {
        let ack = Ack::build().p(true).probe_opaque(opaque).cack_psn(Psn(5)).spdcid(THERE).dpdcid(HERE);
        frame(false, 7, 0, ack.done().unwrap(), None, b"")
    };
    finds(&[probe.clone(), answer(0xbeef)], &[]);
    finds(&[probe, answer(1), answer(2), answer(3)], &[("PDS-PRB-001", 4)]);
}

#[test]
fn cumulative_psn_never_decreases_and_bytes_count_in_units() {
    let requests: Vec<_> = (5..9).map(|psn| request(psn, same)).collect();
    let with = |acks: &[Vec<u8>]| [requests.clone(), acks.to_vec()].concat();
    finds(&with(&[ack_cc(7, 7, 0, 3), ack_cc(6, 6, 0, 2)]), &[]); // an ACK that was overtaken
    finds(&with(&[ack_cc(7, 7, 0, 3), ack_cc(6, 6, 0, 4), ack_cc(5, 5, 0, 5)]), &[("PDS-PSN-003", 7)]);
    finds(&with(&[ack_cc(5, 5, 0, 1), ack_cc(6, 6, 0, 1 << 14)]), &[]);
    finds(&with(&[ack_cc(5, 5, 0, 1), ack_cc(6, 6, 0, 1 << 15)]), &[("CC-RCVD-004", 6)]);
}

#[test]
fn messages_are_cut_and_sent_in_order() {
    let part = |psn: u32, message: u16, som: bool, eom: bool, offset: u32, total: u32| {
        let ses = Std::build(Opcode::UET_WRITE).head(|head| head.som(som).eom(eom)).message_id(message);
        let ses = ses.address(|a| a.job_id(101));
        let ses = if som { ses } else { ses.payload_length(4).message_offset(offset) };
        let ses = ses.request_length(total).done().unwrap();
        frame(true, 7, 0, header(psn, same), Some(ses.into()), b"data")
    };
    let first = part(5, 1, true, false, 0, 12);
    finds(&[part(6, 1, false, false, 4, 12), first.clone(), part(7, 1, false, true, 8, 12)], &[]);
    finds(&[first.clone(), part(6, 2, true, true, 0, 4)], &[("SES-ORDER-001", 2)]);
    finds(&[first.clone(), part(6, 1, false, true, 4, 8)], &[("SES-CUT-003", 2)]);
    finds(&[first, part(6, 1, false, true, 8, 12)], &[("SES-CUT-001", 2)]);
    finds(&[part(5, 1, true, true, 0, 4), part(6, 1, false, true, 4, 8)], &[("SES-CUT-002", 2)]);
    let opened = [opens(4, 0), ack(4, 4), part(5, 1, true, false, 0, 12)];
    finds(&[&opened[..], &[part(6, 2, false, false, 4, 12)]].concat(), &[("SES-CUT-003", 4)]);
    let in_turn = [part(6, 2, true, false, 0, 12), part(7, 1, false, false, 4, 12)];
    finds(&[&opened[..], &in_turn].concat(), &[("SES-ORDER-001", 4), ("SES-ORDER-001", 5)]);
}

#[test]
fn response_names_the_message_of_the_request() {
    let answer = |opcode, message, job| {
        let response =
            Response::build(opcode, ReturnCode::OK).message_id(message).job_id(job).done().unwrap();
        let next = NextHdr::UET_HDR_RESPONSE;
        let ack = ack_of(5, 5).prologue(|p| p.next_hdr(next)).done().unwrap();
        frame(false, 7, 0, ack, Some(response.into()), b"")
    };
    let full = ResponseOpcode::UET_RESPONSE;
    finds(&[request(5, same), answer(full, 5, 101)], &[]);
    finds(&[request(5, same), answer(full, 6, 101)], &[("SES-RESP-003", 2)]);
    finds(&[request(5, same), answer(full, 5, 102)], &[("SES-RESP-003", 2)]);
    finds(&[request(5, same), answer(ResponseOpcode::UET_DEFAULT_RESPONSE, 0, 0)], &[]);
}

#[test]
fn nothing_lies_before_the_start() {
    finds(&[opens(100, 0), ack(99, 100), request(101, same)], &[]);
    finds(&[opens(100, 0), request(99, |r| r.clear_psn(Psn(99)))], &[("PDS-SYN-008", 2)]);
    finds(
        &[opens(100, 0), request(101, |r| r.clear_psn(Psn(98)))],
        &[("PDS-SYN-008", 2), ("PDS-CLR-002", 2)],
    );
    finds(&[opens(100, 0), ack(98, 100)], &[("PDS-SYN-008", 2)]);
    finds(&[opens(100, 0), ack(100 + (1 << 31), 100 + (1 << 31))], &[]); // a late ACK of another context
}

#[test]
fn syn_ends_with_the_first_ack() {
    let again = |clear: u32| {
        let kind = NextHdr::UET_HDR_REQUEST_STD;
        let request = pds::Request::rud().prologue(|p| p.next_hdr(kind)).syn(true).psn(Psn(102));
        let request = request.clear_psn(Psn(clear)).spdcid(HERE).psn_offset(PsnOffset::new(2).unwrap());
        frame(true, 7, 0, request.done().unwrap(), Some(write(102).into()), b"data")
    };
    finds(&[opens(100, 0), ack(100, 100), again(99)], &[]); // sent before the ACK came
    finds(&[opens(100, 0), ack(100, 100), again(100)], &[("PDS-SYN-004", 3)]);
}

#[test]
fn every_packet_names_its_receiver() {
    let other = PdcId(0x8099);
    let misnames = |psn: u32| request(psn, |r| r.retx(true).dpdcid(other));
    let begun = [opens(5, 0), ack(5, 5), request(6, same)];
    let then = |last: Vec<u8>| [&begun[..], &[last]].concat();
    finds(&then(misnames(6)), &[("PDS-SYN-004", 4)]);
    let misnamed = frame(false, 7, 0, ack_of(6, 6).dpdcid(other).done().unwrap(), None, b"");
    finds(&then(misnamed), &[("PDS-PDC-001", 4)]);
    let asks = Control::build(CtlType::CLOSE_REQUEST).ar(true).psn(Psn(5)).spdcid(THERE).dpdcid(other);
    finds(&then(frame(false, 7, 0, asks.done().unwrap(), None, b"")), &[("PDS-PDC-001", 4)]);
    let refusal = |psn: u32| {
        let nack = Nack::build(NackCode::NO_PKT_BUFFER).nack_psn(Psn(psn)).spdcid(THERE).dpdcid(other);
        frame(false, 7, 0, nack.done().unwrap(), None, b"")
    };
    finds(&then(refusal(6)), &[("PDS-PDC-001", 4)]);
    // Without a PSN of the context, the packet may belong to an earlier one.
    finds(&then(refusal(6 + (1 << 20))), &[]);
    let probe = Control::build(CtlType::PROBE).probe_opaque(1).spdcid(HERE).dpdcid(other).done().unwrap();
    finds(&then(frame(true, 7, 0, probe, None, b"")), &[]);
    // A capture from the middle does not show who opened the context.
    finds(&[ack(5, 5), request(6, same), ack(6, 6), misnames(6)], &[("PDS-PDC-001", 4)]);
    // The capture lacks the packets by which the receiver states its PDCID.
    finds(&[opens(5, 0), misnames(6)], &[]);
    // After a restart, a context with another PDCID begins at the same PSN, and the capture lacks its first packet.
    let restarted = frame(false, 7, 0, ack_of(5, 5).dpdcid(other).done().unwrap(), None, b"");
    finds(&then(restarted), &[]);
    // HERE is reused, and the capture lacks the first ACK of the new context.
    let reused = 1 << 20;
    finds(&then(opens(reused, 0)), &[]);
    finds(&[then(opens(reused, 0)), vec![misnames(reused + 1)]].concat(), &[]);
}

#[test]
fn cleared_psns_were_acknowledged() {
    let clearing = |psn: u32| request(psn, |r| r.clear_psn(Psn(psn - 1)));
    // Each request clears all PSNs before it, and ACKs lag behind by ten.
    let run =
        |last: u32| (17..=last).flat_map(|psn| [clearing(psn), ack(psn - 10, psn - 10)]).collect::<Vec<_>>();
    let opened = vec![request(5, same), ack(5, 5)];
    finds(&[opened.clone(), run(31)].concat(), &[]);
    finds(&[opened.clone(), run(32)].concat(), &[("PDS-CLR-001", 34)]);
    finds(&[opened.clone(), run(31), vec![ack(31, 31)], run(40)[30..].to_vec()].concat(), &[]);
    // The capture may lack any number of ACKs.
    finds(&[opened, (6..40).map(clearing).collect(), vec![ack(39, 39)]].concat(), &[]);
}

#[test]
fn a_psn_is_that_of_one_packet() {
    let noop = control(true, CtlType::NOOP, 6);
    finds(&[request(5, same), noop.clone(), request(7, same)], &[]);
    finds(&[request(5, same), noop.clone(), request(6, same)], &[("PDS-CTL-001", 3)]);
    finds(&[request(6, same), noop], &[("PDS-CTL-001", 2)]);
    finds(&[request(6, same), control(true, CtlType::PROBE, 6)], &[]);
    finds(
        &[request(5, same), request(8, same), control(true, CtlType::CLOSE_COMMAND, 7)],
        &[("PDS-CLOSE-001", 3)],
    );
}

#[test]
fn ordered_context_keeps_its_path() {
    let rod = |psn: u32, entropy| {
        let kind = NextHdr::UET_HDR_REQUEST_STD;
        let request = pds::Request::rod().prologue(|p| p.next_hdr(kind)).psn(Psn(psn)).clear_psn(Psn(4));
        let request = request.spdcid(HERE).dpdcid(THERE).done().unwrap();
        frame(true, entropy, 0, request, Some(write(psn as u16).into()), b"data")
    };
    let run = |entropies: &[u16]| -> Vec<Vec<u8>> {
        entropies.iter().enumerate().map(|(at, entropy)| rod(5 + at as u32, *entropy)).collect()
    };
    finds(&run(&[1, 1, 2, 2, 3]), &[]);
    finds(&run(&[1, 2, 1, 1]), &[]);
    finds(&run(&[1, 2, 1, 2]), &[("PDS-ROD-005", 4)]);
    let unordered: Vec<_> = (5..9)
        .map(|psn| frame(true, psn as u16 % 2, 0, header(psn, same), Some(write(psn as u16).into()), b"data"))
        .collect();
    finds(&unordered, &[]);
}

#[test]
fn an_unordered_context_waits_for_nothing() {
    let refusal = Nack::build(NackCode::ROD_OOO).nack_psn(Psn(6)).spdcid(THERE).dpdcid(HERE).done().unwrap();
    let refusal = frame(false, 7, 0, refusal, None, b"");
    finds(&[request(6, same), refusal.clone()], &[("PDS-RUD-001", 2)]);
    finds(&[refusal], &[]);
}

/// Requests with demand and ACKs with credit.
mod credit {
    use super::*;

    fn demanding(psn: u32, units: u32) -> Vec<u8> {
        let kind = NextHdr::UET_HDR_REQUEST_STD;
        let request = pds::RequestCc::rud().request(|r| {
            r.prologue(|p| p.next_hdr(kind).kind(PdsType::RUD_CC_REQ))
                .clear_psn_offset(-1)
                .psn(Psn(psn))
                .spdcid(HERE)
                .dpdcid(THERE)
        });
        let request = request.ccc_id(1).credit_target(Units24::new(units).unwrap()).done().unwrap();
        frame(true, 7, 0, request, Some(write(psn as u16).into()), b"data")
    }

    fn granting(cack: u32, units: u32) -> Vec<u8> {
        let kind = PdsType::ACK_CC;
        let simple = ack_of(cack, cack).done().unwrap();
        let ack = AckCc::build().ack(|a| a.copy_from(&simple).prologue(|p| p.kind(kind)));
        let ack = ack.cc_type(CcType::CREDIT).sack(|s| s.mpr(8).sack_psn_offset(1));
        frame(false, 7, 0, ack.credit(Units24::new(units).unwrap()).done().unwrap(), None, b"")
    }

    #[test]
    fn requests_on_credit_state_their_demand() {
        let granted = [demanding(5, 9), granting(5, 9)];
        let plain: Vec<_> = (6..9).map(|psn| request(psn, same)).collect();
        finds(&[&granted[..], &plain[..2]].concat(), &[]);
        finds(&[&granted[..], &plain[..]].concat(), &[("RCCC-TYPE-001", 5)]);
    }
}

#[test]
fn no_more_is_accepted_than_was_sent() {
    let accepted = |bytes| {
        let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK);
        let response = response.message_id(5).job_id(101).modified_length(bytes).done().unwrap();
        let ack = ack_of(5, 5).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE));
        frame(false, 7, 0, ack.done().unwrap(), Some(response.into()), b"")
    };
    finds(&[request(5, same), accepted(4)], &[]);
    finds(&[request(5, same), accepted(5)], &[("SES-RESP-004", 2)]);
}

#[test]
fn read_data_is_of_a_read_and_no_longer() {
    let kind = NextHdr::UET_HDR_REQUEST_STD;
    let read = |psn: u32| {
        let read = Std::build(Opcode::UET_READ).head(|head| head.som(true).eom(true)).message_id(9);
        let read = read.address(|a| a.job_id(101)).request_length(4).done().unwrap();
        let request = header(psn, |r| r.prologue(|p| p.next_hdr(kind)));
        frame(true, 7, 0, request, Some(read.into()), b"")
    };
    let data = |psn: u32, id: u16, whole: u32| {
        let ses = uet_wire::ses::ResponseData::build().read_request_message_id(id).payload_length(4);
        let ses = ses.modified_length(whole).job_id(101).done().unwrap();
        let next = NextHdr::UET_HDR_RESPONSE_DATA;
        let request = pds::Request::rud().prologue(|p| p.next_hdr(next)).clear_psn_offset(-1).psn(Psn(psn));
        let request = request.spdcid(THERE).dpdcid(HERE).done().unwrap();
        frame(false, 7, 0, request, Some(ses.into()), b"data")
    };
    finds(&[read(5), data(5, 9, 4)], &[]);
    finds(&[read(5), data(5, 9, 5)], &[("SES-READ-007", 2)]);
    // The capture may lack two reads, and the ACKs that show it.
    let unread = |ids: &[u16]| {
        let data = ids.iter().zip(5..).map(|(id, psn)| data(psn, *id, 4));
        [opens(4, 0), read(5)].into_iter().chain(data).collect::<Vec<_>>()
    };
    finds(&unread(&[8, 7]), &[]);
    finds(&unread(&[8, 7, 6]), &[("SES-READ-005", 5)]);
    finds(&unread(&[8, 7, 6])[1..], &[]); // a capture from the middle lacks earlier reads
    let lacks_reads =
        |last: u32| [&unread(&[])[..], &[request(last, same)], &unread(&[8, 7, 6, 5])[2..]].concat();
    finds(&lacks_reads(6), &[("SES-READ-005", 6), ("SES-READ-005", 7)]);
    finds(&lacks_reads(8), &[]);
    finds(&[unread(&[]), vec![ack(7, 7)], unread(&[8, 7, 6, 5])[2..].to_vec()].concat(), &[]);
}

#[test]
fn a_message_has_one_buffer_offset() {
    let part = |psn: u32, som: bool, buffer: u64| {
        let ses = Std::build(Opcode::UET_WRITE).head(|head| head.som(som).eom(!som)).message_id(1);
        let ses = if som { ses } else { ses.payload_length(4).message_offset(4) };
        let ses = ses.address(|a| a.job_id(101)).buffer_offset(buffer).request_length(8).done().unwrap();
        frame(true, 7, 0, header(psn, same), Some(ses.into()), b"data")
    };
    finds(&[part(5, true, 64), part(6, false, 64)], &[]);
    finds(&[part(5, true, 64), part(6, false, 68)], &[("SES-CUT-006", 2)]);
}

#[test]
fn rudi_number_names_one_request_and_response() {
    let asks = |id, message: u16| {
        let next = NextHdr::UET_HDR_REQUEST_STD;
        let request = pds::Rudi::request(id).prologue(|p| p.next_hdr(next)).done().unwrap();
        frame(true, 7, 0, request, Some(write(message).into()), b"data")
    };
    let answers = |id| {
        let next = NextHdr::UET_HDR_RESPONSE;
        let response = pds::Rudi::response(id).prologue(|p| p.next_hdr(next)).done().unwrap();
        let ses = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done().unwrap();
        frame(false, 7, 0, response, Some(ses.into()), b"")
    };
    finds(&[asks(1, 1), asks(1, 1), answers(1), asks(1, 2)], &[]);
    finds(&[asks(1, 1), asks(1, 2), asks(1, 3), asks(1, 4)], &[("PDS-RUDI-001", 4)]);
    // The capture may lack the requests, if none waits for a response so long that it is sent again.
    let strange = [answers(2), answers(3), answers(4)];
    let then = |asked: &[Vec<u8>]| [asked, &strange].concat();
    finds(&then(&[asks(1, 1)]), &[]);
    finds(&then(&[asks(1, 1), asks(1, 1), answers(1)]), &[]);
    finds(&then(&[asks(1, 1), asks(1, 1)])[..4], &[]);
    finds(&then(&[asks(1, 1), asks(1, 1)]), &[("PDS-RUDI-002", 5)]);
}
