//! Whole frames: lengths and checksums are correct, and each inconsistency has its own error.

use crate::frames::{bytes, eth, v4, v6};
use uet_wire::layout::Layer;
use uet_wire::pds::{Ack, Control, Nack, Pds, PdsBuf, Prologue, Request, RequestCc, Rudi, Uud};
use uet_wire::registry::{
    AtomicDatatype, AtomicOpcode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Atomic, CompareSwap, Medium, Rendezvous, Response, ResponseData, SesBuf, Small, Std};
use uet_wire::tss::{TssLong, TssShort};
use uet_wire::{Content, FrameBuilder, Options, Packet, Psn, Start, TrailerKind, WriteError, WriteErrorKind};

fn request() -> Request {
    Request::rud().psn(Psn(7)).done().unwrap()
}

fn write() -> Std {
    Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5).done().unwrap()
}

fn frame() -> FrameBuilder<'static> {
    FrameBuilder::new(request()).ses(write()).payload(b"hello")
}

fn samples() -> Vec<(Start, TrailerKind, FrameBuilder<'static>)> {
    let secured = || FrameBuilder::secured(TssShort::build().done().unwrap(), b"cipher", [9; 16]);
    vec![
        (Start::Uet, TrailerKind::None, frame()),
        // Padding to the current length adds nothing.
        (Start::Uet, TrailerKind::None, frame().pad_to(frame().len())),
        (Start::Udp, TrailerKind::None, frame().udp(1)),
        (Start::Ip, TrailerKind::None, v4(frame().udp(1))),
        (Start::Ip, TrailerKind::Crc, v4(frame().native(1)).crc()),
        (Start::Ip, TrailerKind::Crc, v6(frame().udp(1)).crc().dscp(63).ecn(3).ttl(0)),
        (Start::Eth, TrailerKind::None, eth(v4(frame().udp(1))).ipv4_options(&[1; 40])),
        (Start::Eth, TrailerKind::Crc, eth(v4(frame().udp(1))).vlans(&[0]).crc()),
        (Start::Eth, TrailerKind::Icv, eth(v6(secured().native(1))).vlans(&[4095, 1])),
        (Start::Eth, TrailerKind::None, eth(v4(FrameBuilder::new(request()).udp(1))).pad_to(60)),
        (Start::Udp, TrailerKind::Icv, secured().udp(1).pad_to(99)),
    ]
}

#[test]
fn trailer_takes_any_kind() {
    let frame = || v4(frame().udp(1));
    assert_eq!(bytes(&frame().trailer(TrailerKind::Crc)), bytes(&frame().crc()));
    assert_eq!(bytes(&frame().crc().trailer(TrailerKind::None)), bytes(&frame()));
}

#[test]
fn what_is_built_is_read_back() {
    for (start, trailer, frame) in samples() {
        let bytes = bytes(&frame);
        let options = Options::DEFAULT.trailer(trailer);
        let packet = Packet::parse(start, &bytes, &options).unwrap();
        assert_eq!(packet.content, Content::Uet);
        assert_eq!(packet.trailer.len(), trailer.len());
        assert_eq!(packet.offsets().padding + packet.padding.len(), bytes.len());
        assert!(packet.padding.iter().all(|byte| *byte == 0));
        assert_eq!(packet.crc_check().is_some(), trailer == TrailerKind::Crc);
        assert!(packet.crc_check().is_none_or(|check| check.ok()));
        if let Some(uet_wire::outer::Ip::V4 { header, options }) = packet.ip {
            assert_eq!(header.checksum(), header.computed_checksum(options));
            assert!(header.df());
        }
        if packet.uet.tss.is_none() {
            assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
            assert_eq!(packet.uet.ses.is_some(), packet.uet.payload == b"hello");
        }
    }
}

#[test]
fn a_buffer_too_short_at_every_length() {
    for (_, _, frame) in samples() {
        let whole = bytes(&frame);
        for n in 0..whole.len() {
            let mut buffer = vec![0; n];
            let error = frame.emit(&mut buffer).unwrap_err();
            assert_eq!(error.kind(), WriteErrorKind::BufferTooShort);
            let (offset, needed) = (error.offset().unwrap(), error.needed().unwrap());
            let present = error.present().unwrap();
            assert_eq!(offset + present, n, "what is left of the buffer");
            assert!(needed > present && offset + needed <= whole.len(), "{error}");
        }
        let mut exact = vec![0xa5; whole.len()];
        assert_eq!(frame.emit(&mut exact), Ok(whole.len()));
        assert_eq!(exact, whole);
    }
}

/// Returns the kind of the error, its field, and the width of the field or the length that exceeds it.
type Told = Option<(WriteErrorKind, Option<&'static str>, Option<usize>)>;

fn told(result: Result<usize, WriteError>) -> Told {
    let error = result.err()?;
    Some((error.kind(), error.field(), error.present().or(error.needed())))
}

fn too_wide(field: &'static str, width: usize) -> Told {
    Some((WriteErrorKind::ValueTooWide, Some(field), Some(width)))
}

fn too_long(field: &'static str, length: usize) -> Told {
    Some((WriteErrorKind::LengthTooLong, Some(field), Some(length)))
}

#[test]
fn what_is_given_as_bytes_stays_as_it_is() {
    let given = [0xff; 7];
    let whole = bytes(&eth(v4(FrameBuilder::opaque(&given).udp(1))));
    assert_eq!(whole[14 + 20 + 8..], given);
}

#[test]
fn the_layer_that_finds_the_buffer_too_short() {
    let frame = eth(v4(frame().udp(1))).vlans(&[1]).ipv4_options(&[0; 4]).crc().pad_to(200);
    let bounds = [
        (14, Layer::Eth),
        (4, Layer::Vlan),
        (24, Layer::Ipv4),
        (8, Layer::Udp),
        (12, Layer::Pds),
        (44, Layer::Ses),
        (5, Layer::Payload),
        (4, Layer::Trailer),
        (85, Layer::Eth),
    ];
    let mut start = 0;
    for (length, layer) in bounds {
        for n in start..start + length {
            assert_eq!(frame.emit(&mut vec![0; n]).unwrap_err().layer(), Some(layer), "{n}");
        }
        start += length;
    }
    assert_eq!(start, frame.len());
}

#[test]
fn lengths_up_to_what_a_field_can_say() {
    let payload = vec![0; 70_000];
    let uet = |length: usize| FrameBuilder::new(request()).payload(&payload[..length]);
    let mut buffer = vec![0; 70_000];
    // 65,535 minus the headers.
    assert_eq!(v4(uet(65_535 - 40).udp(1)).emit(&mut buffer), Ok(65_535));
    assert_eq!(told(v4(uet(65_536 - 40).udp(1)).emit(&mut buffer)), too_long("ip.total_length", 65_536));
    assert_eq!(v6(uet(65_535 - 20).udp(1)).emit(&mut buffer), Ok(65_575));
    assert_eq!(told(v6(uet(65_536 - 20).udp(1)).emit(&mut buffer)), too_long("ip.payload_length", 65_536));
    assert_eq!(told(v6(uet(65_536 - 16).native(1)).emit(&mut buffer)), too_long("ip.payload_length", 65_536));
    assert_eq!(told(uet(65_536 - 20).udp(1).emit(&mut buffer)), too_long("udp.length", 65_536));
    assert_eq!(
        told(v4(uet(65_536 - 44).udp(1)).crc().emit(&mut buffer)),
        too_long("ip.total_length", 65_536)
    );
    assert_eq!(uet(69_000).emit(&mut buffer), Ok(69_012), "UET alone says no length");
}

#[test]
fn addresses_are_of_one_version() {
    let [a, b] = [[10, 0, 0, 1], [10, 0, 1, 12]].map(core::net::IpAddr::from);
    let six = core::net::IpAddr::from([0xfd; 16]);
    assert_eq!(bytes(&frame().udp(1).ip(a, b)), bytes(&v4(frame().udp(1))));
    assert_eq!(bytes(&frame().udp(1).ip(six, six)), bytes(&frame().udp(1).ipv6([0xfd; 16], [0xfd; 16])));
    for (src, dst) in [(a, six), (six, a)] {
        let error = frame().udp(1).ip(src, dst).as_given().emit(&mut [0; 200]).unwrap_err().to_string();
        assert!(error.contains("ip.src"), "{error}");
    }
}

#[test]
fn values_too_wide_for_their_field() {
    let mut buffer = [0; 200];
    for ip in [v4, v6] {
        let dscp = ip(frame().udp(1)).dscp(64).emit(&mut buffer);
        assert_eq!(told(dscp), too_wide("ip.dscp", 6));
        let ecn = ip(frame().udp(1)).ecn(4).emit(&mut buffer);
        assert_eq!(told(ecn), too_wide("ip.ecn", 2));
    }
    let tag = eth(v4(frame().udp(1))).vlans(&[1, 4096]).emit(&mut buffer);
    assert_eq!(told(tag), too_wide("vlan.id", 12));
}

#[test]
fn options_that_ihl_cannot_say() {
    let mut buffer = [0; 200];
    for length in 0..=60 {
        let seen = v4(frame().udp(1)).ipv4_options(&[1; 60][..length]).emit(&mut buffer);
        if length % 4 == 0 && length <= 40 {
            assert_eq!(seen, Ok(20 + length + 8 + 12 + 44 + 5));
        } else {
            assert_eq!(told(seen), too_long("ip.ihl", 20 + length));
        }
    }
}

/// Returns each inconsistent frame with the field of its error. The boolean is true if `as_given` can build it.
fn inconsistent() -> Vec<(FrameBuilder<'static>, &'static str, bool)> {
    let pds = |next| Request::rud().prologue(|p| p.next_hdr(next)).done().unwrap();
    let ok = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done().unwrap();
    let data = ResponseData::build().payload_length(4).done().unwrap();
    let small = |opcode| Small::build(opcode).request_length(6).done().unwrap();
    let medium = Medium::build(Opcode::UET_SEND).request_length(4).done().unwrap();
    let part = Std::build(Opcode::UET_WRITE).payload_length(4).request_length(100).done().unwrap();
    let sum = Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).done().unwrap();
    let swap = Atomic::build(AtomicOpcode::CSWAP, AtomicDatatype::UINT64).done().unwrap();
    let swap_of_sum = CompareSwap::zeroed();
    let tss = TssShort::build().done().unwrap();
    let new = |pds: PdsBuf| FrameBuilder::new(pds).payload(b"hello");
    let uet = vec![
        // The PDS header and its type.
        (new(Request::zeroed().into()), "pds.type", true),
        (
            new(RequestCc::zeroed()
                .edit()
                .request(|r| r.prologue(|p| p.kind(PdsType::ACK)))
                .done()
                .unwrap()
                .into()),
            "pds.type",
            true,
        ),
        (new(Prologue::of(PdsType::RUD_REQ).into()), "pds.type", true),
        (new(Prologue::of(PdsType::TSS).into()), "pds.type", true),
        // The PDS header and the header after it.
        (
            new(Control::zeroed().edit().prologue(|p| p.kind(PdsType::CP)).done().unwrap().into())
                .ses(write()),
            "pds.type",
            true,
        ),
        (
            new(Nack::zeroed().edit().prologue(|p| p.kind(PdsType::NACK)).done().unwrap().into()).ses(ok),
            "pds.type",
            true,
        ),
        (new(Prologue::of(PdsType::new(20).unwrap()).into()).ses(write()), "pds.type", true),
        (new(Ack::build().done().unwrap().into()).ses(write()), "pds.type", true),
        (new(request().into()).ses(ok), "pds.type", true),
        (
            new(Uud::zeroed().edit().prologue(|p| p.kind(PdsType::UUD_REQ)).done().unwrap().into()).ses(ok),
            "pds.type",
            true,
        ),
        (
            new(Rudi::zeroed().edit().prologue(|p| p.kind(PdsType::RUDI_REQ)).done().unwrap().into()).ses(ok),
            "pds.type",
            true,
        ),
        (new(pds(NextHdr::UET_HDR_REQUEST_SMALL).into()).ses(write()), "pds.next_hdr", true),
        (new(pds(NextHdr::UET_HDR_REQUEST_STD).into()), "pds.next_hdr", true),
        // The request and its extension.
        (frame().ext(sum), "ses.opcode", true),
        (frame().ext(Rendezvous::zeroed()), "ses.opcode", true),
        (new(request().into()).ext(sum), "ses.opcode", true),
        (new(request().into()).ses(small(Opcode::UET_ATOMIC)), "ses.opcode", true),
        (new(request().into()).ses(small(Opcode::UET_RENDEZVOUS_SEND)), "ses.opcode", true),
        (new(request().into()).ses(small(Opcode::UET_ATOMIC)).ext(swap), "ses.opcode", true),
        (new(request().into()).ses(small(Opcode::UET_ATOMIC)).ext(swap_of_sum), "ses.opcode", true),
        (new(Ack::build().done().unwrap().into()).ses(ok).ext(sum), "ses.opcode", true),
        // The lengths and the payload.
        (new(request().into()).ses(part), "ses.payload_length", true),
        (new(request().into()).ses(data), "ses.payload_length", true),
        (new(request().into()).ses(small(Opcode::UET_WRITE)), "ses.request_length", true),
        (new(request().into()).ses(medium), "ses.request_length", true),
        (frame().payload(b"hell"), "ses.request_length", true),
        // The security header.
        (FrameBuilder::secured(TssShort::zeroed(), b"", [0; 16]), "tss.type", true),
        (
            FrameBuilder::secured(tss.edit().head(|h| h.sp(true)).done().unwrap(), b"", [0; 16]),
            "tss.sp",
            true,
        ),
        (
            FrameBuilder::secured(
                TssLong::zeroed().edit().head(|h| h.kind(PdsType::TSS)).done().unwrap(),
                b"",
                [0; 16],
            ),
            "tss.sp",
            true,
        ),
        (FrameBuilder::secured(tss, b"", [0; 16]).ses(write()), "tss.type", true),
        (FrameBuilder::secured(tss, b"", [0; 16]).ext(sum), "tss.type", true),
    ];
    let mut all: Vec<_> = uet.into_iter().map(|(frame, field, can)| (v4(frame.udp(1)), field, can)).collect();
    all.extend([
        (v4(FrameBuilder::secured(tss, b"", [0; 16]).udp(1)).crc(), "icv", true),
        (v4(frame().udp(1)).trailer(TrailerKind::Icv), "icv", true),
        // The outer layers.
        (v6(frame().udp(1)).ipv4_options(&[0; 4]), "ip.ihl", false),
        (frame().udp(1).ipv4_options(&[0; 4]), "ip.ihl", false),
        (v4(frame().udp(1)).vlans(&[1]), "vlan.id", false),
        (frame().udp(1).crc(), "crc", false),
        (frame().udp(1).dscp(1), "ip.dscp", false),
        (frame().udp(1).ecn(1), "ip.ecn", false),
        (frame().native(1), "pds.entropy", true),
        (eth(frame().udp(1)), "eth.type", true),
        (eth(frame()), "eth.type", true),
        (frame().pad_to(64), "padding", true),
        (v4(frame()), "ip.proto", true),
        (v6(frame()), "ip.proto", true),
        (v4(frame().native_as(1, 17)), "ip.proto", true),
    ]);
    all
}

#[test]
fn each_inconsistency_is_named_and_can_be_built_on_purpose() {
    let mut buffer = [0; 400];
    for (frame, field, on_purpose) in inconsistent() {
        let error = frame.emit(&mut buffer).expect_err(field);
        assert_eq!((error.kind(), error.field()), (WriteErrorKind::Mismatch, Some(field)), "{error}");
        assert_eq!(buffer, [0; 400], "nothing is written before all is known to be right");
        let given = frame.as_given();
        assert_eq!(given.emit(&mut [0; 400]).is_ok(), on_purpose, "{error}");
    }
}

#[test]
fn as_given_leaves_next_hdr_alone() {
    let given = bytes(&frame().as_given());
    assert_eq!(given[..2], [0x10, 0], "says that nothing follows");
    let wrong = Request::rud().prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE)).done().unwrap();
    let mut buffer = [0; 100];
    FrameBuilder::new(wrong).ses(write()).as_given().emit(&mut buffer).unwrap();
    assert_eq!(Prologue::parse(&buffer).unwrap().0.next_hdr(), NextHdr::UET_HDR_RESPONSE);
    for (ip, proto) in [(v4 as fn(_) -> _, 9), (v6, 6)] {
        let bare: Vec<u8> = bytes(&ip(frame()).as_given());
        assert_eq!(bare[proto], 253, "the experimental number, and no entropy header");
    }
    let three = eth(v4(frame().udp(1))).vlans(&[1, 2, 3]);
    assert_eq!(told(three.emit(&mut buffer)), too_long("vlan.id", 3));
    assert_eq!(three.clone().as_given().emit(&mut [0; 200]), Ok(three.len()));
}

#[test]
fn next_hdr_is_computed_for_every_header_that_may_follow() {
    let ok = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done().unwrap();
    let data = ResponseData::build().payload_length(5).done().unwrap();
    let small = Small::build(Opcode::UET_WRITE).request_length(5).done().unwrap();
    let medium = Medium::build(Opcode::UET_SEND).request_length(5).done().unwrap();
    let ack = PdsBuf::from(Ack::build().done().unwrap());
    let rudi = |kind| PdsBuf::from(Rudi::zeroed().edit().prologue(|p| p.kind(kind)).done().unwrap());
    let pairs: [(PdsBuf, SesBuf); 8] = [
        (request().into(), write().into()),
        (request().into(), medium.into()),
        (request().into(), small.into()),
        (request().into(), data.into()),
        (ack, ok.into()),
        (ack, data.into()),
        (rudi(PdsType::RUDI_REQ), small.into()),
        (rudi(PdsType::RUDI_RESP), ok.into()),
    ];
    for (pds, ses) in pairs {
        let bytes = bytes(&FrameBuilder::new(pds).ses(ses).payload(b"hello"));
        let packet = Packet::parse(Start::Uet, &bytes, &Options::DEFAULT).unwrap();
        assert_eq!(packet.uet.ses.map(|ses| ses.copied()), Some(ses));
        assert_eq!(packet.uet.payload, b"hello");
    }
}

#[test]
fn what_is_reserved_is_not_inconsistent() {
    let unknown = Prologue::of(PdsType::new(20).unwrap()).edit().next_hdr(NextHdr::UET_HDR_REQUEST_STD);
    let bytes1 = bytes(&FrameBuilder::new(unknown.done().unwrap()).payload(b"hello"));
    let packet = Packet::parse(Start::Uet, &bytes1, &Options::DEFAULT).unwrap();
    assert!(matches!(packet.uet.pds, Some(Pds::Prologue(_))));
    let reserved = Request::rud().prologue(|p| p.next_hdr(NextHdr::new(9).unwrap())).done().unwrap();
    bytes(&FrameBuilder::new(reserved).payload(b"hello"));
    // An aborted message has no payload.
    let given_up = write().edit().head(|h| h.ie(true)).done().unwrap();
    bytes(&FrameBuilder::new(request()).ses(given_up));
    // The first of several packets states the length of the message.
    let first = write().edit().head(|h| h.eom(false)).request_length(16_384).done().unwrap();
    bytes(&FrameBuilder::new(request()).ses(first).payload(b"hello"));
    // A read request has no payload.
    let part = Std::build(Opcode::UET_READ).payload_length(4096).request_length(16_384).done().unwrap();
    bytes(&FrameBuilder::new(request()).ses(part));
    let read = Small::build(Opcode::UET_READ).request_length(8).done().unwrap();
    bytes(&FrameBuilder::new(request()).ses(read));
}
