//! Packets whose semantics break one requirement each.

use super::*;

pub(super) fn packets() -> Vec<Broken> {
    use NextHdr as N;
    use Opcode as O;
    let response = || Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK);
    let write = |som, eom| std(O::UET_WRITE, som, eom).edit();
    vec![
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
                FrameBuilder::new(request(N::UET_HDR_REQUEST_SMALL))
                    .ses(Small::build(O::UET_NO_OP).head(|h| h.eom(false)).done().unwrap()),
            ),
        ),
        (
            "WIRE-SES-003",
            "ses.som",
            0,
            bytes(
                FrameBuilder::new(request(N::UET_HDR_REQUEST_MEDIUM))
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
                FrameBuilder::new(ack(N::UET_HDR_RESPONSE_DATA_SMALL))
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
                FrameBuilder::new(ack(N::UET_HDR_RESPONSE_DATA)).ses(
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
                FrameBuilder::new(ack(N::UET_HDR_RESPONSE_DATA))
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
                FrameBuilder::new(request(N::UET_HDR_REQUEST_MEDIUM))
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
                FrameBuilder::new(
                    Rudi::request(7).prologue(|p| p.next_hdr(N::UET_HDR_REQUEST_SMALL)).done().unwrap(),
                )
                .ses(Small::build(O::UET_FETCHING_ATOMIC).done().unwrap())
                .ext(sum()),
            ),
        ),
    ]
}

/// Bits 61 to 56 of a key are reserved. Bits 47 to 12 of an optimized key are reserved too.
#[test]
fn the_reserved_bits_of_a_key_are_these_and_no_others() {
    for optimized in [false, true] {
        for bit in (0..64).filter(|bit| *bit != 62) {
            let key = 1 << bit | u64::from(optimized) << 62;
            let write = std(Opcode::UET_WRITE, true, true).edit().memory_key(key).done().unwrap();
            let packet = bytes(with_std(write));
            let findings = Uet::parse(&packet).unwrap().validate(Version::V1_0_3).count();
            let reserved = (56..62).contains(&bit) || optimized && (12..48).contains(&bit);
            assert_eq!(findings, usize::from(reserved), "bit {bit}, optimized: {optimized}");
        }
    }
}
