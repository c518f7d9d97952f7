//! Each requirement of a single packet, broken once, and packets that break none.

use uet_wire::catalogue::{self, Level};
use uet_wire::pds::{Ack, AckCc, AckCcx, Control, Nack, NackCcx, Pds, Request, RequestCc, Rudi, Uud};
use uet_wire::registry::*;
use uet_wire::ses::{
    Atomic, CompareSwap, Medium, Rendezvous, Response, ResponseData, ResponseDataSmall, Small, Std,
};
use uet_wire::tss::TssShort;
use uet_wire::validate::Severity;
use uet_wire::{Frame, Options, Packet, PdcId, Psn, PsnOffset, Start, Uet, Version};

const A: PdcId = PdcId(0x4001);
const B: PdcId = PdcId(0x8001);

/// The bytes of a packet from where UET starts, exactly as given.
fn bytes(frame: Frame<'_>) -> Vec<u8> {
    let mut buffer = [0; 16_384];
    let length = frame.as_given().emit(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

fn request(next: NextHdr) -> Request {
    let start = Request::rud().prologue(|p| p.next_hdr(next)).clear_psn_offset(-1);
    start.psn(Psn(333)).spdcid(A).dpdcid(B).done().unwrap()
}

fn ack(next: NextHdr) -> Ack {
    Ack::build().prologue(|p| p.next_hdr(next)).cack_psn(Psn(333)).spdcid(B).dpdcid(A).done().unwrap()
}

fn ack_cc() -> AckCc {
    AckCc::build().ack(|a| a.cack_psn(Psn(333)).spdcid(B).dpdcid(A)).done().unwrap()
}

fn nack(code: NackCode) -> Nack {
    Nack::build(code).nack_psn(Psn(333)).spdcid(B).dpdcid(A).done().unwrap()
}

fn control(kind: CtlType) -> Control {
    Control::build(kind).spdcid(A).dpdcid(B).done().unwrap()
}

fn std(opcode: Opcode, som: bool, eom: bool) -> Std {
    Std::build(opcode).head(|h| h.som(som).eom(eom)).done().unwrap()
}

/// A request that carries this SES request.
fn with_std(std: Std) -> Frame<'static> {
    Frame::new(request(NextHdr::UET_HDR_REQUEST_STD)).ses(std)
}

fn with_small(opcode: Opcode) -> Frame<'static> {
    Frame::new(request(NextHdr::UET_HDR_REQUEST_SMALL)).ses(Small::build(opcode).done().unwrap())
}

fn with_response(response: Response) -> Frame<'static> {
    Frame::new(ack(NextHdr::UET_HDR_RESPONSE)).ses(response)
}

fn sum() -> Atomic {
    Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).done().unwrap()
}

/// Identifier, field, value and the packet that breaks the requirement there, and no other.
fn broken() -> Vec<(&'static str, &'static str, u128, Vec<u8>)> {
    use NextHdr as N;
    use Opcode as O;
    let response = || Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK);
    let write = |som, eom| std(O::UET_WRITE, som, eom).edit();
    let with = |pds: Pds<'_>| bytes(Frame::new(pds.copied()));
    let mut reserved = bytes(Frame::new(ack(N::UET_HDR_NONE)));
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
            bytes(Frame::new(request(N::UET_HDR_RESPONSE)).ses(response().done().unwrap())),
        ),
        (
            "WIRE-NEXT-003",
            "pds.next_hdr",
            1,
            bytes(
                Frame::new(
                    Uud::new().edit().prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_SMALL)).done().unwrap(),
                )
                .ses(Small::build(O::UET_NO_OP).done().unwrap()),
            ),
        ),
        ("WIRE-LEN-001", "payload", 4, bytes(Frame::new(ack(N::UET_HDR_NONE)).payload(&[0; 4]))),
        ("WIRE-LEN-001", "payload", 1, bytes(Frame::new(control(CtlType::NOOP)).payload(&[0]))),
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
            0,
            with(Pds::from(&request(N::UET_HDR_NONE).edit().clear_psn_offset(0).done().unwrap())),
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
        (
            "WIRE-SES-001",
            "ses.version",
            1,
            bytes(with_std(std(O::UET_SEND, true, true).edit().head(|h| h.version(1)).done().unwrap())),
        ),
        (
            "WIRE-SES-001",
            "ses.version",
            3,
            bytes(with_response(response().head(|h| h.version(3)).done().unwrap())),
        ),
        ("WIRE-SES-002", "ses.opcode", 0x10, bytes(with_small(O::new(0x10).unwrap()))),
        (
            "WIRE-SES-003",
            "ses.eom",
            0,
            bytes(
                Frame::new(request(N::UET_HDR_REQUEST_SMALL))
                    .ses(Small::build(O::UET_NO_OP).head(|h| h.eom(false)).done().unwrap()),
            ),
        ),
        (
            "WIRE-SES-003",
            "ses.som",
            0,
            bytes(
                Frame::new(request(N::UET_HDR_REQUEST_MEDIUM))
                    .ses(Medium::build(O::UET_NO_OP).head(|h| h.som(false)).done().unwrap()),
            ),
        ),
        (
            "WIRE-SES-004",
            "ses.message_id",
            6,
            bytes(with_std(std(O::UET_DATAGRAM_SEND, true, true).edit().message_id(6).done().unwrap())),
        ),
        (
            "WIRE-SES-005",
            "ses.eom",
            0,
            bytes(with_std(std(O::UET_DATAGRAM_SEND, true, false).edit().request_length(9).done().unwrap())),
        ),
        (
            "WIRE-SES-006",
            "ses.payload_length",
            4,
            bytes(
                with_std(write(false, false).payload_length(4).request_length(9).done().unwrap())
                    .payload(&[0; 3]),
            ),
        ),
        (
            "WIRE-SES-006",
            "ses.payload_length",
            4,
            bytes(
                Frame::new(ack(N::UET_HDR_RESPONSE_DATA_SMALL))
                    .ses(ResponseDataSmall::build().payload_length(4).done().unwrap())
                    .payload(&[0; 3]),
            ),
        ),
        (
            "WIRE-SES-007",
            "ses.request_length",
            9,
            bytes(with_std(write(true, true).request_length(9).done().unwrap())),
        ),
        (
            "WIRE-SES-008",
            "ses.request_length",
            4,
            bytes(with_std(write(true, false).request_length(4).done().unwrap()).payload(&[0; 4])),
        ),
        (
            "WIRE-SES-008",
            "ses.message_offset",
            4,
            bytes(
                with_std(
                    write(false, true).payload_length(4).message_offset(4).request_length(9).done().unwrap(),
                )
                .payload(&[0; 4]),
            ),
        ),
        (
            "WIRE-SES-008",
            "ses.message_offset",
            5,
            bytes(
                with_std(
                    write(false, false).payload_length(4).message_offset(5).request_length(9).done().unwrap(),
                )
                .payload(&[0; 4]),
            ),
        ),
        (
            "WIRE-SES-008",
            "ses.message_offset",
            8,
            bytes(with_std(
                std(O::UET_READ, false, true)
                    .edit()
                    .payload_length(4)
                    .message_offset(8)
                    .request_length(9)
                    .done()
                    .unwrap(),
            )),
        ),
        (
            "WIRE-SES-008",
            "ses.message_offset",
            8,
            bytes(with_std(
                std(O::UET_READ, false, false)
                    .edit()
                    .payload_length(4)
                    .message_offset(8)
                    .request_length(12)
                    .done()
                    .unwrap(),
            )),
        ),
        (
            "WIRE-SES-008",
            "ses.message_offset",
            8,
            bytes(
                with_std(
                    std(O::UET_RENDEZVOUS_SEND, false, false)
                        .edit()
                        .payload_length(4)
                        .message_offset(8)
                        .request_length(11)
                        .done()
                        .unwrap(),
                )
                .ext(Rendezvous::zeroed())
                .payload(&[0; 4]),
            ),
        ),
        ("WIRE-SES-009", "payload", 1, bytes(with_small(O::UET_READ).payload(&[0]))),
        (
            "WIRE-SES-010",
            "ses.opcode",
            2,
            bytes(with_response(
                Response::build(ResponseOpcode::UET_RESPONSE_W_DATA, ReturnCode::OK).done().unwrap(),
            )),
        ),
        (
            "WIRE-SES-010",
            "ses.opcode",
            1,
            bytes(
                Frame::new(ack(N::UET_HDR_RESPONSE_DATA)).ses(
                    ResponseData::build().head(|h| h.opcode(ResponseOpcode::UET_RESPONSE)).done().unwrap(),
                ),
            ),
        ),
        (
            "WIRE-SES-011",
            "ses.return_code",
            0x25,
            bytes(with_response(
                Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::new(0x25).unwrap()).done().unwrap(),
            )),
        ),
        (
            "WIRE-SES-012",
            "ses.message_offset",
            4,
            bytes(
                Frame::new(ack(N::UET_HDR_RESPONSE_DATA))
                    .ses(
                        ResponseData::build()
                            .payload_length(4)
                            .message_offset(4)
                            .modified_length(7)
                            .done()
                            .unwrap(),
                    )
                    .payload(&[0; 4]),
            ),
        ),
        (
            "WIRE-SES-013",
            "ses.memory_key",
            1 << 56,
            bytes(with_std(write(true, true).memory_key(1 << 56).done().unwrap())),
        ),
        (
            "WIRE-SES-013",
            "ses.memory_key",
            (1 << 62) | (1 << 12),
            bytes(
                Frame::new(request(N::UET_HDR_REQUEST_MEDIUM))
                    .ses(Medium::build(O::UET_READ).memory_key((1 << 62) | (1 << 12)).done().unwrap()),
            ),
        ),
        (
            "WIRE-SES-014",
            "ses.eager_length",
            9,
            bytes(
                with_std(std(O::UET_RENDEZVOUS_SEND, true, true).edit().request_length(8).done().unwrap())
                    .ext(Rendezvous::zeroed().edit().eager_length(9).done().unwrap()),
            ),
        ),
        (
            "WIRE-AMO-001",
            "ses.atomic_opcode",
            0x15,
            bytes(
                with_small(O::UET_ATOMIC)
                    .ext(sum().edit().atomic_opcode(AtomicOpcode::new(0x15).unwrap()).done().unwrap()),
            ),
        ),
        (
            "WIRE-AMO-002",
            "ses.atomic_datatype",
            0xff,
            bytes(
                with_small(O::UET_ATOMIC)
                    .ext(sum().edit().atomic_datatype(AtomicDatatype::new(0xff).unwrap()).done().unwrap()),
            ),
        ),
        ("WIRE-AMO-003", "ses.som", 0, bytes(with_std(std(O::UET_ATOMIC, false, true)).ext(sum()))),
        (
            "WIRE-AMO-004",
            "ses.opcode",
            4,
            bytes(
                Frame::new(
                    Rudi::request(7).prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_SMALL)).done().unwrap(),
                )
                .ses(Small::build(O::UET_FETCHING_ATOMIC).done().unwrap())
                .ext(sum()),
            ),
        ),
    ]
}

#[test]
fn each_requirement_is_noticed_when_it_alone_is_broken() {
    for (id, field, value, bytes) in broken() {
        let packet = Uet::parse(&bytes).unwrap();
        let findings: Vec<_> = packet.validate(Version::V1_0_3).collect();
        let shown: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings.len(), 1, "{id} {field}: {shown:?}");
        assert_eq!(
            (findings[0].requirement.id, findings[0].field, findings[0].value),
            (id, field, value),
            "{shown:?}"
        );
        assert!(
            shown[0].starts_with(&format!("{id} {}: {field} ", findings[0].severity().name())),
            "{shown:?}"
        );
    }
}

#[test]
fn every_requirement_of_a_single_packet_has_a_packet_that_breaks_it() {
    // Those around UET are broken below.
    let around = ["WIRE-IP-001", "WIRE-IP-002", "WIRE-UDP-001", "WIRE-CRC-001"];
    let broken = broken();
    for requirement in catalogue::ALL.iter().filter(|requirement| requirement.id.starts_with("WIRE-")) {
        let has = broken.iter().any(|(id, ..)| *id == requirement.id) || around.contains(&requirement.id);
        assert!(has, "{}", requirement.id);
    }
}

#[test]
fn severity_follows_the_level() {
    for (id, _, _, bytes) in broken() {
        let finding = Uet::parse(&bytes).unwrap().validate(Version::V1_0_3).next().unwrap();
        let expected = match catalogue::find(id).unwrap().level {
            Level::Must => Severity::Error,
            Level::Should => Severity::Warning,
            Level::May => Severity::Note,
        };
        assert_eq!(finding.severity(), expected);
    }
}

/// Packets that break nothing, close to the limits of the rules.
fn clean() -> Vec<Vec<u8>> {
    use NextHdr as N;
    use Opcode as O;
    let mut packets = Vec::new();
    let mut add = |frame: Frame<'_>| packets.push(bytes(frame));
    for kind in 0..=9 {
        let kind = CtlType::new(kind).unwrap();
        let close = matches!(kind, CtlType::CLOSE_COMMAND | CtlType::CLOSE_REQUEST);
        add(Frame::new(control(kind).edit().ar(close).done().unwrap()));
    }
    for kind in [CtlType::NOOP, CtlType::NEGOTIATION] {
        add(Frame::new(
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
    add(Frame::new(control(CtlType::NEGOTIATION)).payload(&[0; 8]));
    add(Frame::new(control(CtlType::ACK_REQUEST).edit().psn(Psn(9)).payload(1).done().unwrap()));
    add(Frame::new(control(CtlType::CREDIT_REQUEST).edit().payload(u32::MAX).done().unwrap()));
    for code in 0..=255 {
        let code = NackCode::new(code).unwrap();
        if code.status(Version::V1_0_3) == Status::Assigned {
            let nack = nack(code).edit().spdcid(PdcId::NONE).done().unwrap();
            add(Frame::new(nack));
            add(Frame::new(
                NackCcx::build(code)
                    .nack(|n| n.copy_from(&nack).prologue(|p| p.kind(PdsType::NACK_CCX)))
                    .nccx_type(CcxType::new(14).unwrap())
                    .done()
                    .unwrap(),
            ));
            add(Frame::new(Nack::rudi(code).nack_pkt_id(7).done().unwrap()));
        }
    }
    for cc in [0, 1, 14, 15] {
        add(Frame::new(ack_cc().edit().cc_type(CcType::new(cc).unwrap()).done().unwrap()));
    }
    for response in [
        ResponseOpcode::UET_DEFAULT_RESPONSE,
        ResponseOpcode::UET_RESPONSE,
        ResponseOpcode::UET_NO_RESPONSE,
        ResponseOpcode::new(0x30).unwrap(),
    ] {
        add(with_response(Response::build(response, ReturnCode::NULL).done().unwrap()));
    }
    add(Frame::new(
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
    add(Frame::new(request(N::UET_HDR_RESPONSE_DATA))
        .ses(ResponseData::build().payload_length(4).message_offset(3).modified_length(7).done().unwrap())
        .payload(&[0; 4]));
    add(Frame::new(
        RequestCc::rod()
            .request(|r| {
                r.copy_from(&request(N::UET_HDR_REQUEST_SMALL)).prologue(|p| p.kind(PdsType::ROD_CC_REQ))
            })
            .done()
            .unwrap(),
    )
    .ses(Small::build(O::UET_NO_OP).done().unwrap()));
    add(Frame::new(Rudi::request(7).prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_SMALL)).done().unwrap())
        .ses(Small::build(O::UET_READ).done().unwrap()));
    add(Frame::new(Rudi::response(7).m(true).prologue(|p| p.next_hdr(N::UET_HDR_RESPONSE)).done().unwrap())
        .ses(Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK).done().unwrap()));
    add(Frame::new(Uud::new().edit().prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_STD)).done().unwrap())
        .ses(std(O::UET_DATAGRAM_SEND, true, true)));
    add(Frame::secured(TssShort::build().done().unwrap(), &[0xaa; 9000], [0; 16]));
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
    let negotiation = bytes(Frame::new(control(CtlType::NEGOTIATION)));
    let findings = |version| {
        Uet::parse(&negotiation)
            .unwrap()
            .validate(version)
            .map(|finding| finding.requirement.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(findings(Version::V1_0_1), ["WIRE-CTL-001"]);
    assert!(findings(Version::V1_0_2).is_empty());
    let trimmed_ack = bytes(Frame::new(nack(NackCode::TRIMMED_ACK)));
    let count = |version| Uet::parse(&trimmed_ack).unwrap().validate(version).count();
    assert_eq!(Version::ALL.iter().map(|version| count(*version)).collect::<Vec<_>>(), [0, 0, 1]);
}

/// An IPv4 packet with a CRC, and what is found after a change of it.
#[cfg(feature = "crc")]
fn found_after(change: impl FnOnce(&mut [u8])) -> Vec<&'static str> {
    let mut buffer = [0; 128];
    let length = Frame::new(ack(NextHdr::UET_HDR_NONE))
        .udp(7)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
        .crc()
        .emit(&mut buffer)
        .unwrap();
    change(&mut buffer);
    let options = Options { trailer: uet_wire::TrailerKind::Crc, ..Options::default() };
    let packet = Packet::parse_lax(Start::Ip, &buffer[..length], length, &options);
    packet.validate(Version::V1_0_3).map(|finding| finding.requirement.id).collect()
}

#[cfg(feature = "crc")]
#[test]
fn the_layers_around_uet_are_judged_too() {
    assert!(found_after(|_| ()).is_empty());
    // DF, and the checksum with it so that it alone is wrong.
    assert_eq!(
        found_after(|ip| {
            ip[6] = 0;
            ip[10] = ip[10].wrapping_add(0x40);
        }),
        ["WIRE-IP-001"]
    );
    assert_eq!(found_after(|ip| ip[8] -= 1), ["WIRE-IP-002"]);
    assert_eq!(found_after(|ip| ip[43] ^= 1), ["WIRE-CRC-001"]);
    assert_eq!(found_after(|ip| ip[27] = 1), ["WIRE-UDP-001", "WIRE-CRC-001"]);
}

#[test]
fn what_was_cut_is_not_held_against_a_packet() {
    let mut buffer = [0; 256];
    let write = std(Opcode::UET_WRITE, true, true).edit().request_length(64).done().unwrap();
    let frame = Frame::new(request(NextHdr::UET_HDR_REQUEST_STD)).ses(write).payload(&[1; 64]);
    let length = frame.udp(7).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).emit(&mut buffer).unwrap();
    let sliced = Packet::parse_lax(Start::Ip, &buffer[..length - 10], length, &Options::default());
    assert!(sliced.sliced.is_some());
    assert_eq!(sliced.validate(Version::V1_0_3).count(), 0);
    // The same bytes as a whole UET packet do break a rule.
    assert_eq!(sliced.uet.validate(Version::V1_0_3).count(), 1);
}

#[test]
fn another_protocol_is_not_judged() {
    let mut buffer = [0; 128];
    let frame = Frame::new(ack(NextHdr::UET_HDR_NONE)).udp_to(7, 53).ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    let length = frame.emit(&mut buffer).unwrap();
    buffer[8] = 1; // the checksum is wrong now
    let packet = Packet::parse(Start::Ip, &buffer[..length], &Options::default()).unwrap();
    assert_eq!(packet.validate(Version::V1_0_3).count(), 0);
}
