//! Packets that break nothing.

use super::*;

/// Packets that break nothing, close to the limits of the rules.
pub(super) fn clean() -> Vec<Vec<u8>> {
    use NextHdr as N;
    use Opcode as O;
    let mut packets = Vec::new();
    let mut add = |frame: FrameBuilder<'_>| packets.push(bytes(frame));
    for kind in 0..=9 {
        let kind = CtlType::new(kind).unwrap();
        let close = matches!(kind, CtlType::CLOSE_COMMAND | CtlType::CLOSE_REQUEST);
        add(FrameBuilder::new(control(kind).edit().ar(close).done().unwrap()));
    }
    for kind in [CtlType::NOOP, CtlType::NEGOTIATION] {
        add(FrameBuilder::new(
            control(kind)
                .edit()
                .isrod(true)
                .syn(true)
                .pdc_info(1)
                .psn_offset(PsnOffset::ZERO)
                .done()
                .unwrap(),
        ));
    }
    add(FrameBuilder::new(control(CtlType::NEGOTIATION)).payload(&[0; 8]));
    add(FrameBuilder::new(control(CtlType::ACK_REQUEST).edit().psn(Psn(9)).payload(1).done().unwrap()));
    add(FrameBuilder::new(control(CtlType::CREDIT_REQUEST).edit().payload(u32::MAX).done().unwrap()));
    for code in 0..=255 {
        let code = NackCode::new(code).unwrap();
        if code.status(Version::V1_0_3) == Status::Assigned {
            let nack = nack(code).edit().spdcid(PdcId::NONE).done().unwrap();
            add(FrameBuilder::new(nack));
            add(FrameBuilder::new(
                NackCcx::build(code)
                    .nack(|n| n.copy_from(&nack).prologue(|p| p.kind(PdsType::NACK_CCX)))
                    .nccx_type(CcxType::new(14).unwrap())
                    .done()
                    .unwrap(),
            ));
            add(FrameBuilder::new(Nack::rudi(code).nack_pkt_id(7).done().unwrap()));
        }
    }
    for cc in [0, 1, 14, 15] {
        add(FrameBuilder::new(ack_cc().edit().cc_type(CcType::new(cc).unwrap()).done().unwrap()));
    }
    for response in [
        ResponseOpcode::UET_DEFAULT_RESPONSE,
        ResponseOpcode::UET_RESPONSE,
        ResponseOpcode::UET_NO_RESPONSE,
        ResponseOpcode::new(0x30).unwrap(),
    ] {
        add(with_response(Response::build(response, ReturnCode::NULL).done().unwrap()));
    }
    add(FrameBuilder::new(
        request(N::UET_HDR_REQUEST_SMALL)
            .edit()
            .syn(true)
            .pdc_info(1)
            .psn_offset(PsnOffset::new(1023).unwrap())
            .done()
            .unwrap(),
    )
    .ses(Small::build(O::UET_NO_OP).done().unwrap()));
    let write = |som, eom| std(O::UET_WRITE, som, eom).edit();
    add(with_std(write(true, true).memory_key(1 << 63 | 0xacce5).request_length(8192).done().unwrap())
        .payload(&[0; 8192]));
    add(with_std(write(true, true).memory_key(1 << 62 | 0xfff).done().unwrap()));
    add(with_std(write(true, false).request_length(5).done().unwrap()).payload(&[0; 4]));
    add(with_std(write(false, false).payload_length(4).message_offset(4).request_length(9).done().unwrap())
        .payload(&[0; 4]));
    add(with_std(write(false, true).payload_length(1).message_offset(8).request_length(9).done().unwrap())
        .payload(&[0]));
    add(with_std(write(true, true).head(|h| h.ie(true)).request_length(9).done().unwrap()));
    // An aborted message may lack the stated bytes, and the start of a vendor's message is unknown.
    let given_up = write(false, false).head(|h| h.ie(true)).payload_length(4).request_length(9);
    add(with_std(given_up.done().unwrap()));
    let vendors = std(O::new(0x30).unwrap(), false, true).edit().payload_length(4).request_length(9);
    add(with_std(vendors.done().unwrap()).payload(&[0; 8]));
    add(with_std(std(O::UET_READ, true, false).edit().request_length(9000).done().unwrap()));
    add(with_std(
        std(O::UET_READ, false, true)
            .edit()
            .payload_length(808)
            .message_offset(8192)
            .request_length(9000)
            .done()
            .unwrap(),
    ));
    add(with_std(
        std(O::UET_MSG_ERROR, false, true).edit().message_offset(77).request_length(9000).done().unwrap(),
    ));
    add(with_std(
        std(O::UET_RENDEZVOUS_SEND, false, true)
            .edit()
            .payload_length(4)
            .message_offset(4)
            .request_length(9000)
            .done()
            .unwrap(),
    )
    .ext(Rendezvous::zeroed().edit().eager_length(9000).done().unwrap())
    .payload(&[0; 4]));
    add(with_small(O::UET_ATOMIC).ext(sum().edit().semantic_control(3).done().unwrap()).payload(&[0; 8]));
    add(with_small(O::UET_ATOMIC)
        .ext(CompareSwap::zeroed().edit().atomic(|a| a.atomic_opcode(AtomicOpcode::CSWAP)).done().unwrap()));
    add(FrameBuilder::new(request(N::UET_HDR_RESPONSE_DATA))
        .ses(ResponseData::build().payload_length(4).message_offset(3).modified_length(7).done().unwrap())
        .payload(&[0; 4]));
    // An error in response to a later part of a read.
    add(FrameBuilder::new(request(N::UET_HDR_RESPONSE_DATA)).ses(
        ResponseData::build()
            .head(|h| h.return_code(ReturnCode::HOST_POISONED))
            .message_offset(4096)
            .done()
            .unwrap(),
    ));
    add(FrameBuilder::new(
        RequestCc::rod()
            .request(|r| {
                r.copy_from(&request(N::UET_HDR_REQUEST_SMALL)).prologue(|p| p.kind(PdsType::ROD_CC_REQ))
            })
            .done()
            .unwrap(),
    )
    .ses(Small::build(O::UET_NO_OP).done().unwrap()));
    add(FrameBuilder::new(
        Rudi::request(7).prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_SMALL)).done().unwrap(),
    )
    .ses(Small::build(O::UET_READ).done().unwrap()));
    add(FrameBuilder::new(
        Rudi::response(7).m(true).prologue(|p| p.next_hdr(N::UET_HDR_RESPONSE)).done().unwrap(),
    )
    .ses(Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK).done().unwrap()));
    add(FrameBuilder::new(
        Uud::new().edit().prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_STD)).done().unwrap(),
    )
    .ses(std(O::UET_DATAGRAM_SEND, true, true)));
    add(FrameBuilder::secured(TssShort::build().done().unwrap(), &[0xaa; 9000], [0; 16]));
    packets
}

#[test]
fn clean_packets_have_no_finding() {
    for bytes in clean() {
        let packet = Uet::parse(&bytes).unwrap();
        let findings: Vec<_> = packet.validate(Version::V1_0_3).map(|finding| finding.to_string()).collect();
        assert!(findings.is_empty(), "{packet:?}\n{findings:?}");
    }
}

#[test]
fn code_points_come_and_go_with_the_version() {
    let trimmed_ack = bytes(FrameBuilder::new(nack(NackCode::TRIMMED_ACK)));
    let count = |version| Uet::parse(&trimmed_ack).unwrap().validate(version).count();
    assert_eq!(Version::ALL.iter().map(|version| count(*version)).collect::<Vec<_>>(), [0, 0, 1]);
}
