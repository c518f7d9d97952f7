//! Errors: the text for people, the short `Debug`, the accessors.

use core::fmt::Debug;
use uet_wire::layout::{self, Layer};
use uet_wire::outer::Vlan;
use uet_wire::pds::{Ack, AckCc, Control, Nack, PdsBuf, Request, Rudi, Uud};
use uet_wire::registry::{CcType, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Std};
use uet_wire::{
    Options, Packet, ParseError, ParseErrorKind, PdcId, Psn, Start, Units24, WriteError, WriteErrorKind,
};

/// Checks that `Debug` prints one line of less than 200 bytes, without the tables.
#[track_caller]
fn assert_short(value: &impl Debug) {
    let text = format!("{value:?}");
    assert!(text.len() < 200 && !text.contains('\n'), "{} bytes: {text}", text.len());
}

fn parse_errors() -> Vec<(ParseError, &'static str)> {
    let error = |bytes: &[u8]| Packet::parse(Start::Ip, bytes, &Options::DEFAULT).unwrap_err();
    let mut ipv4 = [0; 24];
    ipv4[..4].copy_from_slice(&[0x44, 0, 0, 24]);
    let short_header = error(&ipv4);
    ipv4[..4].copy_from_slice(&[0x45, 0, 1, 0]);
    let beyond = error(&ipv4);
    vec![
        (
            Ack::parse(&[0x38]).unwrap_err(),
            "pds: `pds.next_hdr` at byte 0 is cut off: the header needs 2 bytes to include it, 1 is present",
        ),
        (short_header, "ipv4: `ip.ihl` at byte 0 is 4, but must be at least 5"),
        (error(&[0x50; 40]), "ipv4: `ip.version` at byte 0 is 5, but must be 4"),
        (beyond, "ipv4: `ip.total_length` at byte 2 announces 256 bytes, 24 are present"),
    ]
}

#[test]
fn parse_errors_name_field_and_place() {
    for (error, text) in parse_errors() {
        assert_eq!(error.to_string(), text);
    }
    let kinds = parse_errors().into_iter().map(|(error, _)| error.kind());
    let (wrong, long) = (ParseErrorKind::InvalidValue, ParseErrorKind::LengthExceedsInput);
    assert!(kinds.eq([ParseErrorKind::Truncated, wrong, wrong, long]));
}

#[test]
fn parse_error_debug_is_one_short_line() {
    for (error, _) in parse_errors() {
        assert_short(&error);
        assert_short(&error.moved(usize::MAX));
    }
    assert_eq!(
        format!("{:?}", parse_errors()[0].0),
        "ParseError { kind: Truncated, field: \"pds.next_hdr\", offset: 0, needed: 2, present: 1 }"
    );
    // The tables have a short `Debug` too.
    for layout in layout::ALL {
        assert_short(layout);
        layout.places().for_each(|place| assert_short(&place));
        layout.rows.iter().for_each(|row| assert_short(row));
    }
}

fn write_errors() -> Vec<(WriteError, &'static str)> {
    let write = || Std::build(Opcode::UET_WRITE);
    let credit = || AckCc::build().cc_type(CcType::new(9).unwrap());
    let frame = |ses: uet_wire::ses::StdMut| {
        uet_wire::FrameBuilder::new(Request::rud().done().unwrap()).ses(ses.done().unwrap())
    };
    let answered = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done().unwrap();
    let with_response =
        |pds: PdsBuf| uet_wire::FrameBuilder::new(pds).ses(answered).emit(&mut []).unwrap_err();
    let datagram = Uud::zeroed().edit().prologue(|p| p.kind(PdsType::UUD_REQ)).done().unwrap();
    let announces = Request::rud().prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).done().unwrap();
    vec![
        (
            write().address(|a| a.resource_index(0x1000)).done().unwrap_err(),
            "the value is too wide for field `ses.resource_index`, which has 12 bits",
        ),
        (
            AckCc::build().credit(Units24::default()).done().unwrap_err(),
            "field `pds.cc_type` is 0 (NSCC), but `pds.credit` requires 1 (CREDIT)",
        ),
        (
            credit().ooo_count(1).done().unwrap_err(),
            "field `pds.cc_type` is 9, but `pds.ooo_count` requires 0 (NSCC) or 1 (CREDIT)",
        ),
        (
            AckCc::build().ack_cc_state(1).done().unwrap_err(),
            "field `pds.cc_type` is 0 (NSCC), but `pds.ack_cc_state` requires none of 0 (NSCC), 1 (CREDIT)",
        ),
        (
            AckCc::build().credit(Units24::default()).cc_type(CcType::CREDIT).done().unwrap_err(),
            "set field `pds.cc_type` before `pds.credit`, which depends on it",
        ),
        (
            Request::rud().syn(true).dpdcid(PdcId(1)).done().unwrap_err(),
            "field `pds.flags.syn` is 1, but `pds.dpdcid` requires 0",
        ),
        (
            Request::rud().syn(true).psn(Psn(4096)).start_psn(Psn(0)).done().unwrap_err(),
            "the PSN is too far from `pds.psn`: field `pds.psn_offset` holds a distance from 0 to 4095",
        ),
        (
            Request::rud().psn(Psn(100_000)).clear_psn(Psn(1)).done().unwrap_err(),
            "the PSN is too far from `pds.psn`: field `pds.clear_psn_offset` holds a distance from -32768 to 32767",
        ),
        (
            Request::rud().psn(Psn(1)).start_psn(Psn(0)).done().unwrap_err(),
            "field `pds.flags.syn` is 0, but `pds.psn_offset` requires 1",
        ),
        (
            Ack::build().ack_psn(Psn(0x8000)).done().unwrap_err(),
            "the PSN is too far from `pds.cack_psn`: field `pds.ack_psn_offset` holds a distance from -32768 to 32767",
        ),
        (
            Ack::build().p(true).ack_psn(Psn(1)).done().unwrap_err(),
            "field `pds.flags.p` is 1, but `pds.ack_psn_offset` requires 0",
        ),
        (
            Ack::zeroed().emit(&mut [0; 7]).unwrap_err(),
            "the buffer is too short for pds: 12 bytes are needed at byte 0, 7 are left",
        ),
        (WriteError::mismatch("ses.opcode", "the extension"), "field `ses.opcode` contradicts the extension"),
        (
            uet_wire::FrameBuilder::opaque(&[0; 70_000]).udp(1).emit(&mut []).unwrap_err(),
            "field `udp.length` cannot state a length of 70008",
        ),
        (
            frame(write().request_length(5)).payload(b"hello").emit(&mut []).unwrap_err(),
            "field `ses.payload_length` is 0, but the payload has 5 bytes: \
             the first packet of a message has `ses.som` instead",
        ),
        (
            frame(write().payload_length(2)).payload(b"h").emit(&mut []).unwrap_err(),
            "field `ses.payload_length` is 2, but the payload has 1 byte",
        ),
        (
            frame(write().head(|h| h.som(true).eom(true)).request_length(5)).emit(&mut []).unwrap_err(),
            "field `ses.request_length` is 5, but the payload has 0 bytes",
        ),
        (
            frame(Std::build(Opcode::UET_ATOMIC)).emit(&mut []).unwrap_err(),
            "field `ses.opcode` contradicts a packet without extension header: \
             atomic and rendezvous requests need one",
        ),
        (
            frame(write()).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).emit(&mut []).unwrap_err(),
            "field `ip.proto` contradicts a packet with neither UDP nor entropy header: call `udp` or `native`",
        ),
        (
            uet_wire::FrameBuilder::new(Request::zeroed()).emit(&mut []).unwrap_err(),
            "field `pds.type` is 0 (RESERVED), but the PDS header has the form `request`",
        ),
        (
            uet_wire::FrameBuilder::new(Ack::build().done().unwrap())
                .ses(write().done().unwrap())
                .emit(&mut [])
                .unwrap_err(),
            "field `pds.type` is 7 (ACK), which takes a response, but the SES header is UET_HDR_REQUEST_STD",
        ),
        (
            with_response(Request::rud().done().unwrap().into()),
            "field `pds.type` is 2 (RUD_REQ), which takes a request or a response with data, \
             but the SES header is UET_HDR_RESPONSE",
        ),
        (
            with_response(datagram.into()),
            "field `pds.type` is 6 (UUD_REQ), which takes a request, but the SES header is UET_HDR_RESPONSE",
        ),
        (
            with_response(Nack::build(NackCode::TRIMMED).done().unwrap().into()),
            "field `pds.type` is 10 (NACK), which takes no SES header, but the SES header is UET_HDR_RESPONSE",
        ),
        (
            uet_wire::FrameBuilder::new(announces).ses(write().done().unwrap()).emit(&mut []).unwrap_err(),
            "field `pds.next_hdr` is 4 (UET_HDR_RESPONSE), but the SES header is UET_HDR_REQUEST_STD: \
             leave it 0, `emit` sets it",
        ),
        (
            uet_wire::FrameBuilder::new(announces).emit(&mut []).unwrap_err(),
            "field `pds.next_hdr` is 4 (UET_HDR_RESPONSE), but the packet has no SES header",
        ),
    ]
}

#[test]
fn write_errors_name_the_value_that_is_needed() {
    for (error, text) in write_errors() {
        assert_eq!(error.to_string(), text);
        assert_short(&error);
    }
}

#[test]
fn write_errors_of_every_conditional_field_are_short() {
    let absent = [
        Rudi::response(1).retx(true).done().err(),
        Control::build(uet_wire::registry::CtlType::PROBE).psn(Psn(1)).done().err(),
        Std::build(Opcode::UET_NO_OP).memory_key(1).done().err(),
        Std::build(Opcode::UET_WRITE).match_bits(1).done().err(),
        Std::build(Opcode::UET_WRITE).send_initiator_token(1).done().err(),
    ];
    for error in absent.into_iter().flatten() {
        assert_eq!(error.kind(), WriteErrorKind::FieldAbsent);
        assert!(error.to_string().contains("requires"), "{error}");
    }
}

#[test]
fn accessors_of_a_short_buffer() {
    let error = Vlan::zeroed().emit(&mut [0; 3]).unwrap_err();
    assert_eq!(error.kind(), WriteErrorKind::BufferTooShort);
    assert_eq!((error.layer(), error.field()), (Some(Layer::Vlan), None));
    assert_eq!((error.offset(), error.needed(), error.present()), (Some(0), Some(4), Some(3)));
}
