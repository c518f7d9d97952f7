//! Each requirement on a single packet, broken once, and packets that break none.

mod around;
mod broken_pds;
mod broken_ses;
mod clean;
mod rules;

use uet_wire::catalogue::{self, Level};
use uet_wire::pds::{Ack, AckCc, AckCcx, Control, Nack, NackCcx, Pds, Request, RequestCc, Rudi, Uud};
use uet_wire::registry::*;
use uet_wire::ses::{
    Atomic, CompareSwap, Medium, Rendezvous, Response, ResponseData, ResponseDataSmall, Small, Std,
};
use uet_wire::tss::TssShort;
use uet_wire::validate::Severity;
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, PsnOffset, Start, Uet, Version};

const A: PdcId = PdcId(0x4001);
const B: PdcId = PdcId(0x8001);

/// Returns the bytes of a packet that starts with UET, built exactly as given.
fn bytes(frame: FrameBuilder<'_>) -> Vec<u8> {
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

/// Returns a request that carries this SES request.
fn with_std(std: Std) -> FrameBuilder<'static> {
    FrameBuilder::new(request(NextHdr::UET_HDR_REQUEST_STD)).ses(std)
}

fn with_small(opcode: Opcode) -> FrameBuilder<'static> {
    FrameBuilder::new(request(NextHdr::UET_HDR_REQUEST_SMALL)).ses(Small::build(opcode).done().unwrap())
}

fn with_response(response: Response) -> FrameBuilder<'static> {
    FrameBuilder::new(ack(NextHdr::UET_HDR_RESPONSE)).ses(response)
}

fn sum() -> Atomic {
    Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).done().unwrap()
}

/// Identifier, field, value, and a packet that breaks only this requirement, in this field.
type Broken = (&'static str, &'static str, u128, Vec<u8>);

fn broken() -> Vec<Broken> {
    [broken_pds::packets(), broken_ses::packets()].concat()
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
    // The requirements on outer layers are broken below.
    let around = ["WIRE-IP-001", "WIRE-IP-002", "WIRE-UDP-001", "WIRE-CRC-001"];
    let broken = broken();
    for requirement in catalogue::ALL.iter().filter(|requirement| requirement.id.starts_with("WIRE-")) {
        let has = broken.iter().any(|(id, ..)| *id == requirement.id) || around.contains(&requirement.id);
        assert!(has, "a packet that breaks {} is missing in broken_pds.rs or broken_ses.rs", requirement.id);
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
    let words =
        [Level::Must, Level::Should, Level::May].map(|level| (level.name(), Severity::of(level).name()));
    assert_eq!(words, [("must", "error"), ("should", "warning"), ("may", "note")]);
}
