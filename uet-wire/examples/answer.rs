//! Answers a request with an ACK or a NACK, as a target does: `cargo run -p uet-wire --example answer`.

use core::fmt;
use uet_wire::pds::{Ack, Nack, Request};
use uet_wire::registry::{NackCode, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, Ses, Std};
use uet_wire::validate::{Finding, Severity};
use uet_wire::{
    Content, FrameBuilder, Options, Packet, ParseError, PdcId, Psn, Start, TrailerKind, Version, WriteError,
};

/// The context of the target.
const CONTEXT: PdcId = PdcId(0x8001);

/// The reason why a frame gets no answer.
#[derive(Debug)]
enum Dropped {
    Malformed(ParseError),
    OtherProtocol,
    WrongCrc,
    Invalid(Finding),
    NotAWrite,
    AnswerFailed(WriteError),
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::Malformed(error) => write!(f, "the frame is malformed: {error}"),
            Dropped::OtherProtocol => f.write_str("the frame is not UET"),
            Dropped::WrongCrc => f.write_str("the CRC is wrong"),
            Dropped::Invalid(finding) => write!(f, "the packet is invalid: {finding}"),
            Dropped::NotAWrite => f.write_str("the packet is not a write"),
            Dropped::AnswerFailed(error) => write!(f, "the answer cannot be written: {error}"),
        }
    }
}

impl core::error::Error for Dropped {}

impl From<ParseError> for Dropped {
    fn from(error: ParseError) -> Self {
        Dropped::Malformed(error)
    }
}

impl From<WriteError> for Dropped {
    fn from(error: WriteError) -> Self {
        Dropped::AnswerFailed(error)
    }
}

/// Answers `frame` in `buffer` and returns the length of the answer. Neither allocates nor needs `std`.
fn answer(frame: &[u8], options: &Options, buffer: &mut [u8]) -> Result<usize, Dropped> {
    let packet = Packet::parse(Start::Eth, frame, options)?;
    if packet.content != Content::Uet {
        return Err(Dropped::OtherProtocol);
    }
    if packet.crc_check().is_some_and(|check| !check.ok()) {
        return Err(Dropped::WrongCrc);
    }
    let is_error = |finding: &Finding| finding.severity() == Severity::Error;
    if let Some(finding) = packet.validate(options.spec).find(is_error) {
        return Err(Dropped::Invalid(finding));
    }
    let request = packet.uet.pds.and_then(|pds| pds.request()).ok_or(Dropped::NotAWrite)?;

    // A trimmed packet has lost its payload, and perhaps its SES header.
    if let Some(trimmed) = packet.trimmed {
        let code = if trimmed.last_hop { NackCode::TRIMMED_LASTHOP } else { NackCode::TRIMMED };
        return nack(&packet, &request, code, CONTEXT, buffer);
    }
    if request.dpdcid() != Some(CONTEXT) {
        return nack(&packet, &request, NackCode::INV_DPDCID, PdcId::NONE, buffer);
    }
    let Some(Ses::Std(write)) = packet.uet.ses else { return Err(Dropped::NotAWrite) };

    let ack = Ack::build()
        .m(packet.ip.is_some_and(|ip| ip.ecn() == 3))
        .retx(request.retx())
        .cack_psn(request.psn())
        .ack_psn(request.psn())
        .spdcid(CONTEXT)
        .dpdcid(request.spdcid())
        .done()?;
    let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK)
        .message_id(write.message_id())
        .job_id(write.address().job_id())
        .modified_length(write.request_length())
        .done()?;
    reply(&packet, FrameBuilder::new(ack).ses(response), buffer)
}

fn nack(
    packet: &Packet<'_>,
    request: &Request,
    code: NackCode,
    context: PdcId,
    buffer: &mut [u8],
) -> Result<usize, Dropped> {
    let nack = Nack::build(code)
        .retx(request.retx())
        .nack_psn(request.psn())
        .spdcid(context)
        .dpdcid(request.spdcid())
        .done()?;
    reply(packet, FrameBuilder::new(nack), buffer)
}

/// Adds the layers around UET: those of the packet, with its addresses exchanged.
fn reply(packet: &Packet<'_>, mut frame: FrameBuilder<'_>, buffer: &mut [u8]) -> Result<usize, Dropped> {
    // The destination port is always that of UET. The source port is an entropy value.
    let entropy = packet.entropy_value().unwrap_or_default();
    frame = match packet.udp {
        Some(udp) => frame.udp_to(entropy, udp.dst_port()),
        None => frame.native(entropy),
    };
    if let Some(ip) = packet.ip {
        frame = frame.ip(ip.dst(), ip.src());
    }
    if let Some(eth) = packet.eth {
        frame = frame.ethernet(eth.dst(), eth.src()).pad_to(FrameBuilder::SHORTEST);
    }
    if !packet.trailer.is_empty() {
        frame = frame.crc();
    }
    Ok(frame.emit(buffer)?)
}

/// Builds a write to a context of the target.
fn write(dpdcid: PdcId, buffer: &mut [u8]) -> Result<usize, WriteError> {
    let request =
        Request::rud().ar(true).psn(Psn(7)).clear_psn(Psn(6)).spdcid(PdcId(0x4001)).dpdcid(dpdcid).done()?;
    let write = Std::build(Opcode::UET_WRITE)
        .head(|head| head.som(true).eom(true))
        .message_id(1)
        .address(|address| address.job_id(101))
        .request_length(5)
        .done()?;
    FrameBuilder::new(request)
        .ses(write)
        .payload(b"hello")
        .udp(0xbeef)
        .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
        .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .crc()
        .emit(buffer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::default().trailer(TrailerKind::Crc);
    let (mut frame, mut buffer) = ([0; 256], [0; 256]);

    for (context, expected) in [
        (CONTEXT, "ACK PSN 7 CACK 7 0x8001 > 0x4001 UET_RESPONSE OK 5 B"),
        (PdcId(9), "NACK INV_DPDCID PSN 7 0x0000 > 0x4001"),
    ] {
        let length = write(context, &mut frame)?;
        let length = answer(&frame[..length], &options, &mut buffer)?;
        let answer = Packet::parse(Start::Eth, &buffer[..length], &options)?;
        println!("{answer}");
        assert_eq!(answer.to_string(), expected);
        assert_eq!(answer.validate(Version::default()).next(), None);
    }

    // A flipped bit of the payload.
    let length = write(CONTEXT, &mut frame)?;
    frame[length - 5] ^= 1;
    assert!(matches!(answer(&frame[..length], &options, &mut buffer), Err(Dropped::WrongCrc)));
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
