//! Emits, then parses: the values are equal.

use arbitrary::{Arbitrary, Unstructured};
use uet_wire::outer::Ip;
use uet_wire::{Content, FrameBuilder, Options, Packet, Start, TrailerKind, Uet, UetBuf, WriteErrorKind};

pub(super) fn run(data: &[u8]) {
    // Missing bytes become zeros, not an error.
    let Ok((outside, packet)) = Unstructured::new(data).arbitrary() else { return };
    bare(&packet);
    framed(&outside, &packet, true);
    framed(&outside, &packet, false);
}

fn bare(packet: &UetBuf) {
    let bytes = packet.to_bytes();
    let mut buffer = vec![0xee; bytes.len() + 1];
    assert_eq!(packet.emit(&mut buffer), Ok(bytes.len()));
    assert_eq!(buffer, [&bytes[..], &[0xee]].concat());
    assert_eq!(Uet::parse(&bytes).map(|parsed| parsed.to_buf()).as_ref(), Ok(packet));
}

/// The outer layers of a packet.
#[derive(Debug, Arbitrary)]
struct Outside {
    vlans: Vlans,
    addresses: Addresses,
    ipv4_options: [u8; 40],
    ipv4_option_words: u8,
    native: bool,
    other_place: bool,
    entropy: u16,
    dscp: u8,
    ecn: u8,
    ttl: u8,
    crc: bool,
    pad: u8,
    short: u8,
    icv: [u8; 16],
}

#[derive(Debug, Arbitrary)]
enum Vlans {
    None,
    One(u16),
    Two(u16, u16),
}

#[derive(Debug, Arbitrary)]
enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

fn framed(outside: &Outside, packet: &UetBuf, checked: bool) {
    let trailer = match (packet.tss, outside.crc) {
        (Some(_), _) => TrailerKind::Icv,
        (None, true) => TrailerKind::Crc,
        (None, false) => TrailerKind::None,
    };
    let place = if outside.other_place { Options::DEFAULT.udp_port(4791).ip_proto(254) } else { Options::DEFAULT };
    let options = place.trailer(trailer);
    let ids = match outside.vlans {
        Vlans::None => vec![],
        Vlans::One(outer) => vec![outer],
        Vlans::Two(outer, inner) => vec![outer, inner],
    };
    let v4_options = &outside.ipv4_options[..usize::from(outside.ipv4_option_words % 11) * 4];

    let mut frame = match (packet.tss, packet.pds) {
        (Some(tss), _) => FrameBuilder::secured(tss, &packet.payload, outside.icv),
        (None, Some(pds)) => {
            let mut frame = FrameBuilder::new(pds).payload(&packet.payload);
            frame = packet.ses.into_iter().fold(frame, FrameBuilder::ses);
            frame = packet.ext.into_iter().fold(frame, FrameBuilder::ext);
            if outside.crc { frame.crc() } else { frame }
        }
        (None, None) => return,
    };
    frame = match outside.native {
        true => frame.native_as(outside.entropy, options.ip_proto),
        false => frame.udp_to(outside.entropy, options.udp_port),
    };
    frame = match outside.addresses {
        Addresses::V4(src, dst) => frame.ipv4(src, dst).ipv4_options(v4_options),
        Addresses::V6(src, dst) => frame.ipv6(src, dst),
    };
    frame = frame.dscp(outside.dscp).ecn(outside.ecn).ttl(outside.ttl).ethernet([2; 6], [4; 6]).vlans(&ids);
    if !checked {
        frame = frame.as_given();
    }
    let length = frame.len();
    frame = frame.pad_to(length + usize::from(outside.pad));

    let mut bytes = vec![0xee; frame.len()];
    let emitted = frame.emit(&mut bytes);
    let too_wide = ids.iter().any(|id| *id > 0xfff) || outside.dscp > 0x3f || outside.ecn > 3;
    match emitted {
        Ok(written) => assert_eq!(written, bytes.len()),
        // Only `as_given` accepts contradictory values.
        Err(error) if checked && error.kind() == WriteErrorKind::Mismatch => return,
        Err(error) if too_wide && error.kind() == WriteErrorKind::ValueTooWide => return,
        Err(error) => panic!("{error}"),
    }
    assert!(!too_wide, "a value that does not fit was written");
    let short = bytes.len() - 1 - usize::from(outside.short).min(bytes.len() - 1);
    let refused = frame.emit(&mut vec![0; short]).expect_err("it does not fit");
    assert_eq!(refused.kind(), WriteErrorKind::BufferTooShort);

    let parsed = Packet::parse(Start::Eth, &bytes, &options).expect("what is emitted is whole");
    assert_eq!(parsed.content, Content::Uet);
    assert_eq!(&parsed.uet.to_buf(), packet);
    assert_eq!(parsed.entropy_value(), Some(outside.entropy));
    assert!(parsed.vlans.iter().flatten().map(|vlan| vlan.id()).eq(ids));
    assert_eq!(parsed.padding, vec![0; usize::from(outside.pad)]);
    let ip = parsed.ip.expect("there is IP");
    assert_eq!((ip.dscp(), ip.ecn()), (outside.dscp, outside.ecn));
    if let Ip::V4 { header, options } = ip {
        assert_eq!(options, v4_options);
        assert_eq!(header.checksum(), header.computed_checksum(options));
    }
    match options.trailer {
        TrailerKind::None => assert!(parsed.trailer.is_empty()),
        TrailerKind::Icv => assert_eq!(parsed.trailer, outside.icv),
        TrailerKind::Crc => assert!(parsed.crc_check().is_some_and(|check| check.ok())),
        other => panic!("no frame ends with {other:?}"),
    }
}
