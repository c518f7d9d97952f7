//! Packets whose packet delivery breaks one requirement each.

use super::*;

pub(super) fn packets() -> Vec<Broken> {
    use NextHdr as N;
    use Opcode as O;
    let response = || Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK);
    let write = |som, eom| std(O::UET_WRITE, som, eom).edit();
    let with = |pds: Pds<'_>| bytes(FrameBuilder::new(pds.copied()));
    let mut reserved = bytes(FrameBuilder::new(ack(N::UET_HDR_NONE)));
    reserved[1] |= 1;
    let mut unknown = bytes(with_small(O::UET_SEND));
    unknown[0] = 15 << 3 | unknown[0] & 7;
    vec![
        ("WIRE-RSVD-001", "ack", 1, reserved),
        ("WIRE-RSVD-002", "pds.cc_flags", 5, with(Pds::from(&ack_cc().edit().cc_flags(5).done().unwrap()))),
        (
            "WIRE-RSVD-003",
            "pds.pdc_info",
            8,
            with(Pds::from(
                &request(N::UET_HDR_NONE)
                    .edit()
                    .syn(true)
                    .pdc_info(8)
                    .psn_offset(PsnOffset::ZERO)
                    .done()
                    .unwrap(),
            )),
        ),
        (
            "WIRE-RSVD-004",
            "ses.semantic_control",
            0x80,
            bytes(with_small(O::UET_ATOMIC).ext(sum().edit().semantic_control(0x80).done().unwrap())),
        ),
        ("WIRE-TYPE-001", "pds.type", 15, unknown),
        ("WIRE-NEXT-001", "pds.next_hdr", 9, with(Pds::from(&ack(N::new(9).unwrap())))),
        (
            "WIRE-NEXT-002",
            "pds.next_hdr",
            4,
            bytes(FrameBuilder::new(request(N::UET_HDR_RESPONSE)).ses(response().done().unwrap())),
        ),
        (
            "WIRE-NEXT-003",
            "pds.next_hdr",
            1,
            bytes(
                FrameBuilder::new(
                    Uud::new().edit().prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_SMALL)).done().unwrap(),
                )
                .ses(Small::build(O::UET_NO_OP).done().unwrap()),
            ),
        ),
        ("WIRE-LEN-001", "payload", 4, bytes(FrameBuilder::new(ack(N::UET_HDR_NONE)).payload(&[0; 4]))),
        ("WIRE-LEN-001", "payload", 1, bytes(FrameBuilder::new(control(CtlType::NOOP)).payload(&[0]))),
        ("WIRE-LEN-001", "payload", 2, bytes(with_response(response().done().unwrap()).payload(&[0; 2]))),
        (
            "WIRE-LEN-002",
            "payload",
            8193,
            bytes(with_std(write(true, true).request_length(8193).done().unwrap()).payload(&[0; 8193])),
        ),
        (
            "WIRE-PDCID-001",
            "pds.spdcid",
            0,
            with(Pds::from(&request(N::UET_HDR_NONE).edit().spdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-PDCID-001",
            "pds.spdcid",
            0,
            with(Pds::from(&ack(N::UET_HDR_NONE).edit().spdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-PDCID-001",
            "pds.spdcid",
            0,
            with(Pds::from(&control(CtlType::PROBE).edit().spdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-PDCID-002",
            "pds.dpdcid",
            0,
            with(Pds::from(&request(N::UET_HDR_NONE).edit().dpdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-PDCID-002",
            "pds.dpdcid",
            0,
            with(Pds::from(&ack(N::UET_HDR_NONE).edit().dpdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-PDCID-002",
            "pds.dpdcid",
            0,
            with(Pds::from(&nack(NackCode::TRIMMED).edit().dpdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-PDCID-002",
            "pds.dpdcid",
            0,
            with(Pds::from(&control(CtlType::NOOP).edit().dpdcid(PdcId::NONE).done().unwrap())),
        ),
        (
            "WIRE-SYN-001",
            "pds.psn_offset",
            1024,
            with(Pds::from(
                &request(N::UET_HDR_NONE)
                    .edit()
                    .syn(true)
                    .pdc_info(1)
                    .psn_offset(PsnOffset::new(1024).unwrap())
                    .done()
                    .unwrap(),
            )),
        ),
        (
            "WIRE-SYN-002",
            "pds.flags.syn",
            1,
            with(Pds::from(
                &control(CtlType::PROBE)
                    .edit()
                    .syn(true)
                    .pdc_info(0)
                    .psn_offset(PsnOffset::ZERO)
                    .done()
                    .unwrap(),
            )),
        ),
        (
            "WIRE-CLEAR-001",
            "pds.clear_psn_offset",
            1,
            with(Pds::from(&request(N::UET_HDR_NONE).edit().clear_psn_offset(1).done().unwrap())),
        ),
        (
            "WIRE-ACK-001",
            "pds.flags.req",
            3,
            with(Pds::from(&ack(N::UET_HDR_NONE).edit().req(AckRequest::new(3).unwrap()).done().unwrap())),
        ),
        (
            "WIRE-CC-001",
            "pds.cc_type",
            2,
            with(Pds::from(&ack_cc().edit().cc_type(CcType::new(2).unwrap()).done().unwrap())),
        ),
        (
            "WIRE-CC-001",
            "pds.ccx_type",
            0,
            with(Pds::from(&AckCcx::build().ack(|a| a.spdcid(B).dpdcid(A)).done().unwrap())),
        ),
        (
            "WIRE-CC-001",
            "pds.nccx_type",
            13,
            with(Pds::from(
                &NackCcx::build(NackCode::TRIMMED)
                    .nack(|n| n.spdcid(B).dpdcid(A))
                    .nccx_type(CcxType::new(13).unwrap())
                    .done()
                    .unwrap(),
            )),
        ),
        ("WIRE-NACK-001", "pds.nack_code", 3, with(Pds::from(&nack(NackCode::TRIMMED_ACK)))),
        ("WIRE-NACK-001", "pds.nack_code", 0x0c, with(Pds::from(&nack(NackCode::new(0x0c).unwrap())))),
        (
            "WIRE-NACK-002",
            "pds.spdcid",
            1,
            with(Pds::from(&Nack::rudi(NackCode::TRIMMED).spdcid(PdcId(1)).done().unwrap())),
        ),
        (
            "WIRE-NACK-002",
            "pds.dpdcid",
            2,
            with(Pds::from(&Nack::rudi(NackCode::TRIMMED).dpdcid(PdcId(2)).done().unwrap())),
        ),
        ("WIRE-NACK-003", "pds.spdcid", 0x8001, with(Pds::from(&nack(NackCode::INV_DPDCID)))),
        ("WIRE-CTL-001", "pds.ctl_type", 10, with(Pds::from(&control(CtlType::new(10).unwrap())))),
        (
            "WIRE-CTL-002",
            "pds.flags.ar",
            1,
            with(Pds::from(&control(CtlType::CLEAR_COMMAND).edit().ar(true).payload(7).done().unwrap())),
        ),
        ("WIRE-CTL-003", "pds.flags.ar", 0, with(Pds::from(&control(CtlType::CLOSE_COMMAND)))),
        ("WIRE-CTL-003", "pds.flags.ar", 0, with(Pds::from(&control(CtlType::CLOSE_REQUEST)))),
        (
            "WIRE-CTL-004",
            "pds.psn",
            9,
            with(Pds::from(&control(CtlType::CREDIT).edit().psn(Psn(9)).done().unwrap())),
        ),
        (
            "WIRE-CTL-005",
            "pds.payload",
            1,
            with(Pds::from(&control(CtlType::NOOP).edit().payload(1).done().unwrap())),
        ),
        (
            "WIRE-CTL-006",
            "pds.flags.isrod",
            1,
            with(Pds::from(&control(CtlType::CREDIT).edit().isrod(true).done().unwrap())),
        ),
        (
            "WIRE-CTL-007",
            "pds.payload",
            1 << 24,
            with(Pds::from(&control(CtlType::CREDIT).edit().payload(1 << 24).done().unwrap())),
        ),
    ]
}
