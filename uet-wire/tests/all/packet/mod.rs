//! Packets with their outer layers: every ambiguous case by name, and the property that no byte is lost.

mod any;
mod layers;
mod lengths;
mod sliced;
mod trailer;
mod trimmed;
mod uet;

use crate::frames::{bytes, eth, v4, v6};
use uet_wire::layout::Layer;
use uet_wire::pds::RequestCc;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::{Content, FrameBuilder, Options, Packet, Psn, Sliced, Start, TrailerKind, Trimmed};

const NONE: Options = Options::DEFAULT;
const CRC: Options = NONE.trailer(TrailerKind::Crc);
const ICV: Options = NONE.trailer(TrailerKind::Icv);
const BY_DSCP: Options = NONE.trimmed_dscp(Some(5)).trimmed_lasthop_dscp(Some(6));

/// UDP (8), a request with congestion state (16), a standard request (44), five bytes.
fn frame() -> FrameBuilder<'static> {
    let request = RequestCc::rud().request(|r| r.psn(Psn(7))).done().unwrap();
    let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5);
    FrameBuilder::new(request).ses(write.done().unwrap()).payload(b"hello").udp(0xbeef)
}

fn set16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&u16::try_from(value).unwrap().to_be_bytes());
}

/// Returns the packet with extension headers between IPv6 and UDP, each as (type, bytes).
fn with_extensions(chain: &[(u8, &[u8])]) -> Vec<u8> {
    let mut packet = bytes(&v6(frame()));
    let mut extensions = Vec::new();
    for (index, (_, extension)) in chain.iter().enumerate() {
        let next = chain.get(index + 1).map_or(17, |(proto, _)| *proto);
        extensions.push(next);
        extensions.extend_from_slice(&extension[1..]);
    }
    packet[6] = chain[0].0;
    set16(&mut packet, 4, 8 + 16 + 44 + 5 + extensions.len());
    packet.splice(40..40, extensions);
    packet
}

#[track_caller]
fn lax<'a>(start: Start, bytes: &'a [u8], options: &Options) -> Packet<'a> {
    let (packet, error) = Packet::parse_lax(start, bytes, options);
    assert_eq!(packet.parts().concat(), bytes, "every byte in one part");
    assert_eq!(error, packet.error());
    match Packet::parse(start, bytes, options) {
        Ok(strict) => assert_eq!(strict, packet),
        Err(error) => assert_eq!(Some(error), packet.error()),
    }
    packet
}

#[track_caller]
fn sliced<'a>(start: Start, bytes: &'a [u8], wire: usize, options: &Options) -> Packet<'a> {
    let packet = Packet::parse_sliced(start, bytes, wire, options).0;
    assert_eq!(packet.parts().concat(), bytes, "every byte in one part");
    assert_eq!(packet.sliced, Some(Sliced { captured: bytes.len(), wire }));
    packet
}

/// Checks the error of the packet: layer, field, offset, needed, present.
#[track_caller]
fn assert_error(
    packet: &Packet<'_>,
    layer: Layer,
    field: &str,
    offset: usize,
    needed: usize,
    present: usize,
) {
    let error = packet.error().expect("an error");
    let seen = (error.layer(), error.field(), error.offset(), error.needed(), error.present());
    assert_eq!(seen, (layer, field, offset, needed, present), "{error}");
}

#[track_caller]
fn assert_whole(packet: &Packet<'_>) {
    assert_eq!((packet.error(), packet.cut, packet.trimmed), (None, None, None));
    assert_eq!(packet.content, Content::Uet);
    assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
    assert_eq!(packet.uet.payload, b"hello");
    assert_eq!(packet.rest, b"");
}

fn trimmed(layer: Layer, missing: usize) -> Option<Trimmed> {
    Some(Trimmed { layer, missing: Some(missing), last_hop: false })
}
