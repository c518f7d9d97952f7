//! The one-line text of a packet: each form, and each word that a field adds.

use uet_wire::pds::{Ack, AckCc, AckCcx, Control, Nack, NackCcx, PdsBuf, Request, RequestCc, Rudi, Uud};
use uet_wire::registry::*;
use uet_wire::ses::{
    Atomic, CompareSwap, ExtBuf, Medium, Rendezvous, Response, ResponseData, ResponseDataSmall, SesBuf,
    Small, Std,
};
use uet_wire::tss::{TssLong, TssShort};
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, PsnOffset, Start, Uet, Units24};

const A: PdcId = PdcId(0x4001);
const B: PdcId = PdcId(0x8001);

fn bytes(frame: FrameBuilder<'_>) -> Vec<u8> {
    let mut buffer = [0; 1024];
    let length = frame.as_given().emit(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

#[track_caller]
fn says(frame: FrameBuilder<'_>, expected: &str) {
    let bytes = bytes(frame);
    let uet = Uet::parse(&bytes).unwrap();
    assert_eq!(uet.to_string(), expected);
    let packet = Packet::parse(Start::Uet, &bytes, &Options::default()).unwrap();
    assert_eq!(packet.to_string(), expected, "whole, and with nothing around it");
}

#[track_caller]
fn pds_says(pds: impl Into<PdsBuf>, expected: &str) {
    says(FrameBuilder::new(pds), expected);
}

#[test]
fn a_request_says_its_number_and_its_context() {
    let request = Request::rud().psn(Psn(7)).spdcid(A);
    pds_says(request.dpdcid(B).done().unwrap(), "RUD_REQ PSN 7 0x4001 > 0x8001");
    let first = Request::rod().retx(true).syn(true).psn(Psn(8)).spdcid(A);
    pds_says(first.done().unwrap(), "ROD_REQ PSN 8 SYN 0x4001 > ? [RETX]");
    let with_state = RequestCc::rud()
        .request(|r| r.psn(Psn(9)).spdcid(A).dpdcid(B))
        .ccc_id(0xa1)
        .credit_target(Units24::new(2).unwrap());
    pds_says(with_state.done().unwrap(), "RUD_CC_REQ PSN 9 0x4001 > 0x8001 CCC 0xa1 wants 512 B");
}

#[test]
fn what_has_no_context_has_a_name_of_its_own() {
    pds_says(Rudi::request(0xbeef).done().unwrap(), "RUDI_REQ 0x0000beef");
    let response = Rudi::response(1).m(true).retx(true).done().unwrap();
    pds_says(response, "RUDI_RESP 0x00000001 [M RETX]");
    pds_says(Uud::new(), "UUD_REQ");
    let reserved = Uet::parse(&[0xf8, 0, 1, 2]).unwrap().to_string();
    assert!(reserved.ends_with(" (reserved type), 2 B"), "{reserved}");
}

#[test]
fn an_acknowledgment_says_what_it_answers_and_what_is_there() {
    let ack = Ack::build().ack_psn_offset(-2).cack_psn(Psn(9)).spdcid(B).dpdcid(A).done().unwrap();
    pds_says(ack, "ACK PSN 7 CACK 9 0x8001 > 0x4001");
    let flagged = ack.edit().m(true).retx(true).req(AckRequest::REQ_CLEAR).done().unwrap();
    pds_says(flagged, "ACK PSN 7 CACK 9 0x8001 > 0x4001 REQ_CLEAR [M RETX]");
    let probe = ack.edit().p(true).probe_opaque(0xab).done().unwrap();
    pds_says(probe, "ACK probe 0x00ab CACK 9 0x8001 > 0x4001");

    let state = AckCc::build().ack(|a| a.cack_psn(Psn(9)).spdcid(B).dpdcid(A));
    let state = state.sack(|s| s.sack_psn_offset(2).sack_bitmap(0b1011_0110));
    let credit = state.done().unwrap().edit().cc_type(CcType::CREDIT).credit(Units24::new(3).unwrap());
    pds_says(credit.done().unwrap(), "ACK_CC PSN 9 CACK 9 0x8001 > 0x4001 SACK 12-13,15-16,18 credit 768 B");
    let extended = AckCcx::build().ack(|a| a.cack_psn(Psn(9)).spdcid(B).dpdcid(A));
    let extended = extended.sack(|s| s.sack_psn_offset(2).sack_bitmap(1)).done().unwrap();
    pds_says(extended, "ACK_CCX PSN 9 CACK 9 0x8001 > 0x4001 SACK 11");
}

#[test]
fn a_refusal_says_what_was_refused_and_why() {
    let nack = Nack::build(NackCode::ROD_OOO).nack_psn(Psn(335)).spdcid(B).dpdcid(A).done().unwrap();
    pds_says(nack, "NACK ROD_OOO PSN 335 0x8001 > 0x4001");
    let flagged = nack.edit().m(true).retx(true).payload(5).done().unwrap();
    pds_says(flagged, "NACK ROD_OOO PSN 335 0x8001 > 0x4001 payload 5 [M RETX]");
    pds_says(Nack::rudi(NackCode::TRIMMED).nack_pkt_id(0xbeef).done().unwrap(), "NACK TRIMMED 0x0000beef");
    let extended = NackCcx::build(NackCode::TRIMMED).nack(|n| n.nack_psn(Psn(1)).spdcid(B).dpdcid(A));
    pds_says(extended.done().unwrap(), "NACK_CCX TRIMMED PSN 1 0x8001 > 0x4001");
}

#[test]
fn a_control_packet_says_what_its_type_gives_a_meaning() {
    let control = |kind: CtlType| Control::build(kind).psn(Psn(5)).spdcid(A).dpdcid(B);
    for (kind, expected) in [
        (CtlType::NOOP, "CP NOOP PSN 5 0x4001 > 0x8001"),
        (CtlType::NEGOTIATION, "CP NEGOTIATION PSN 5 0x4001 > 0x8001"),
        (CtlType::ACK_REQUEST, "CP ACK_REQUEST PSN 5 0x4001 > 0x8001"),
        (CtlType::CLOSE_COMMAND, "CP CLOSE_COMMAND PSN 5 0x4001 > 0x8001"),
        (CtlType::CLOSE_REQUEST, "CP CLOSE_REQUEST PSN 5 0x4001 > 0x8001"),
        (CtlType::CLEAR_COMMAND, "CP CLEAR_COMMAND 0x4001 > 0x8001 up to PSN 33554945"),
        (CtlType::CLEAR_REQUEST, "CP CLEAR_REQUEST 0x4001 > 0x8001 up to PSN 33554945"),
        (CtlType::PROBE, "CP PROBE PSN 5 0x4001 > 0x8001 probe 0x0000"),
        (CtlType::CREDIT, "CP CREDIT 0x4001 > 0x8001 131328 B"),
        (CtlType::CREDIT_REQUEST, "CP CREDIT_REQUEST 0x4001 > 0x8001 CCC 0x02 wants 131328 B"),
    ] {
        pds_says(control(kind).payload(0x0200_0201).done().unwrap(), expected);
    }
    let opening = Control::build(CtlType::NOOP).isrod(true).retx(true).syn(true).psn(Psn(5)).spdcid(A);
    pds_says(opening.psn_offset(PsnOffset::ZERO).done().unwrap(), "CP NOOP PSN 5 SYN 0x4001 > ? [ROD RETX]");
}

/// Checks the text that this header adds to the text of a request.
#[track_caller]
fn ses_says(ses: impl Into<SesBuf>, ext: Option<ExtBuf>, expected: &str) {
    let ses = ses.into();
    let next = ses.view().next_hdr();
    let frame = FrameBuilder::new(Uud::new().edit().prologue(|p| p.next_hdr(next)).done().unwrap()).ses(ses);
    let frame = match ext {
        Some(ext) => frame.ext(ext),
        None => frame,
    };
    says(frame, &format!("UUD_REQ {expected}"));
}

#[test]
fn a_message_says_what_is_done_and_how_much() {
    let first = Std::build(Opcode::UET_WRITE).head(|h| h.som(true)).request_length(16_384).done().unwrap();
    ses_says(first, None, "UET_WRITE 16384 B [SOM]");
    let last = Std::build(Opcode::UET_WRITE)
        .head(|h| h.eom(true).hd(true).dc(true).ie(true))
        .payload_length(4)
        .message_offset(16_380)
        .request_length(16_384);
    ses_says(last.done().unwrap(), None, "UET_WRITE 4 B at 16380 of 16384 B [EOM HD DC IE]");
    let medium = Medium::build(Opcode::UET_TAGGED_SEND).request_length(64).done().unwrap();
    ses_says(medium, None, "UET_TAGGED_SEND MEDIUM 64 B [SOM EOM]");
    let small = Small::build(Opcode::UET_READ).head(|h| h.som(false).eom(false)).request_length(8);
    ses_says(small.done().unwrap(), None, "UET_READ SMALL 8 B");
}

#[test]
fn an_extension_says_what_it_adds() {
    let rendezvous = Rendezvous::zeroed().edit().eager_length(4096).done().unwrap();
    let send = Std::build(Opcode::UET_RENDEZVOUS_SEND).head(|h| h.som(true)).request_length(9000);
    ses_says(
        send.done().unwrap(),
        Some(rendezvous.into()),
        "UET_RENDEZVOUS_SEND 9000 B with the first 4096 B [SOM]",
    );
    let atomic = Small::build(Opcode::UET_ATOMIC).request_length(8).done().unwrap();
    let sum = Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).done().unwrap();
    ses_says(atomic, Some(sum.into()), "UET_ATOMIC SMALL 8 B SUM UINT64 [SOM EOM]");
    let swap = CompareSwap::zeroed()
        .edit()
        .atomic(|a| a.atomic_opcode(AtomicOpcode::CSWAP).atomic_datatype(AtomicDatatype::UINT32))
        .compare_value(7)
        .swap_value(0x1f)
        .done()
        .unwrap();
    ses_says(atomic, Some(swap.into()), "UET_ATOMIC SMALL 8 B CSWAP UINT32 0x7 to 0x1f [SOM EOM]");
}

#[test]
fn a_response_says_how_it_went() {
    let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::NO_MATCH).done().unwrap();
    ses_says(response, None, "UET_RESPONSE NO_MATCH");
    let taken = response.edit().modified_length(16).done().unwrap();
    ses_says(taken, None, "UET_RESPONSE NO_MATCH 16 B");
    let data = ResponseData::build().payload_length(4).modified_length(9).message_offset(5).done().unwrap();
    ses_says(data, None, "UET_RESPONSE_W_DATA OK 4 B at 5 of 9 B");
    let small = ResponseDataSmall::build().payload_length(8).original_request_psn(Psn(333)).done().unwrap();
    ses_says(small, None, "UET_RESPONSE_W_DATA OK 8 B for PSN 333");
}

#[test]
fn what_is_encrypted_says_with_what() {
    let short = TssShort::build().head(|h| h.sdi(7)).tsc(|t| t.epoch(2).counter(3)).done().unwrap();
    says(
        FrameBuilder::secured(short, b"four", [0; 16]),
        "TSS SDI 0x000007 AN 0 epoch 2 counter 3, 20 B encrypted",
    );
    let long = TssLong::build().head(|h| h.sdi(7).an(true)).ssi(9).done().unwrap();
    says(
        FrameBuilder::secured(long, b"four", [0; 16]),
        "TSS SDI 0x000007 SSI 0x00000009 AN 1 epoch 0 counter 0, 20 B encrypted",
    );
}

#[test]
fn a_packet_says_what_became_of_it() {
    let hello = || {
        let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5);
        let request = Request::rud().psn(Psn(7)).spdcid(A).dpdcid(B).done().unwrap();
        FrameBuilder::new(request).ses(write.done().unwrap()).payload(b"hello")
    };
    let by_dscp = Options::default().trimmed_dscp(Some(5)).trimmed_lasthop_dscp(Some(6));
    let emit = |frame: FrameBuilder<'_>| {
        let mut buffer = [0; 256];
        let length = frame.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).emit(&mut buffer).unwrap();
        buffer[..length].to_vec()
    };
    let said = |bytes: &[u8], wire| Packet::parse_sliced(Start::Ip, bytes, wire, &by_dscp).0.to_string();
    let whole = "RUD_REQ PSN 7 0x4001 > 0x8001 UET_WRITE 5 B [SOM EOM]";

    let ip = emit(hello().udp(7));
    assert_eq!(said(&ip, ip.len()), whole);
    assert_eq!(said(&ip[..ip.len() - 2], ip.len()), format!("{whole}, 87 of 89 B captured"));
    assert_eq!(said(&ip[..40], 40), "RUD_REQ PSN 7 0x4001 > 0x8001, malformed");
    assert_eq!(said(&ip[..32], 32), "UET, malformed");

    // A switch removes the end. The IP length or only the traffic class shows it.
    let mut trimmed = ip[..ip.len() - 3].to_vec();
    trimmed[3] -= 3;
    assert_eq!(said(&trimmed, 86), format!("{whole}, trimmed in payload by 3 B"));
    for (dscp, place) in [(5, ""), (6, " at the last hop")] {
        let trimmed = emit(hello().udp(7).dscp(dscp));
        assert_eq!(said(&trimmed, 89), format!("{whole}, trimmed{place} in payload"));
    }

    assert_eq!(said(&emit(hello().udp_to(7, 53)), 89), "UDP 7 > 53, 61 B");
    assert_eq!(said(&emit(hello().native_as(7, 17 + 1)), 85), "not UET, 65 B");
    let mut fragment = ip.clone();
    fragment[6] = 0x20;
    assert_eq!(said(&fragment, 89), "fragment of an IP packet, 69 B");
}

#[test]
fn a_jumbogram_is_named_as_such() {
    let mut frame = [0; 256];
    let length = FrameBuilder::new(Uud::new()).udp(7).ipv6([1; 8], [2; 8]).emit(&mut frame).unwrap();
    // IP length 0, and hop-by-hop options with a length.
    frame[4..7].fill(0);
    let ip = [&frame[..40], &[17, 0, 0xc2, 4, 0, 1, 0, 0], &frame[40..length]].concat();
    let packet = Packet::parse_lax(Start::Ip, &ip, &Options::default()).0;
    assert_eq!(packet.to_string(), "jumbogram, 20 B");
}
