//! Compares the overlay and the codec on pseudo-random bytes with the target of that name. Covers every field of every
//! header, and the layers of packets and frames.

use std::collections::BTreeSet;
use uet_fuzz::{Input, Noise, target};
use uet_overlay::{Header, headers};
use uet_wire::layout::{ALL, Kind};
use uet_wire::{Options, Start, TrailerKind, Uet};

fn compare(data: &[u8]) {
    (target("overlay").unwrap().run)(data);
}

#[test]
fn every_header_has_the_same_fields_with_the_same_values() {
    const OTHER: u8 = 7;
    let mut noise = Noise::new(0x5eed);
    for index in 0..headers().count() {
        for _ in 0..5_000 {
            let length = noise.below(44);
            compare(&[vec![OTHER, index as u8], noise.bytes(length)].concat());
        }
    }
}

#[test]
fn the_overlay_covers_every_header() {
    let known: BTreeSet<_> = headers().map(Header::name).collect();
    let parts: BTreeSet<_> = ALL
        .iter()
        .flat_map(|layout| layout.rows)
        .filter_map(|row| match row.kind {
            Kind::Part(part) => Some(part.name),
            _ => None,
        })
        .collect();
    for layout in ALL {
        assert!(
            known.contains(layout.name) || parts.contains(layout.name),
            "UET_HEADERS of overlay.h lacks {}",
            layout.name
        );
    }
}

/// Returns a packet with known types, so that the parsers get past the prologue.
fn packet(noise: &mut Noise) -> Vec<u8> {
    let length = noise.below(120);
    let mut bytes = noise.bytes(length);
    if let Some(first) = bytes.first_mut() {
        *first = (noise.below(16) as u8) << 3 | *first & 7;
    }
    bytes
}

#[test]
fn packets_are_walked_the_same_way() {
    let mut noise = Noise::new(0xfeed);
    let mut stopped = 0;
    for _ in 0..100_000 {
        let bytes = packet(&mut noise);
        let input = Input { start: Start::Uet, options: Options::DEFAULT, wire: bytes.len(), bytes: &bytes };
        compare(&input.join());
        stopped += usize::from(Uet::parse(&bytes).is_err());
    }
    assert!((10_000..90_000).contains(&stopped), "{stopped}: the noise reaches both ends");
}

/// Returns a frame with approximately correct lengths.
fn frame(noise: &mut Noise) -> Vec<u8> {
    let uet = packet(noise);
    let jitter = |noise: &mut Noise| if noise.below(8) == 0 { noise.below(9) as i64 - 4 } else { 0 };
    let mut inner = Vec::new();
    let proto = [17u8, 17, 17, 253, 6, 0, 44, 51][noise.below(8)];
    let udp = |noise: &mut Noise, inner: &mut Vec<u8>| {
        let length = (uet.len() as i64 + 8 + jitter(noise)).max(0) as u16;
        let port = if noise.below(16) == 0 { 53u16 } else { 4793 };
        inner.extend([0xbe, 0xef]);
        inner.extend(port.to_be_bytes());
        inner.extend(length.to_be_bytes());
        inner.extend([0, 0]);
    };
    match proto {
        17 => udp(noise, &mut inner),
        253 => inner.extend([0xbe, 0xef, 0, 0]),
        0 | 51 => {
            inner.extend([17, 1]);
            inner.extend(noise.bytes(if proto == 0 { 14 } else { 10 }));
            udp(noise, &mut inner);
        }
        44 => {
            inner.extend([17, 0, 0, if noise.below(4) == 0 { 1 } else { 0 }, 1, 2, 3, 4]);
            udp(noise, &mut inner);
        }
        _ => {}
    }
    inner.extend(&uet);
    let mut bytes = vec![2; 12];
    for _ in 0..noise.below(4) {
        bytes.extend([0x81, 0x00]);
        bytes.extend(noise.bytes(2));
    }
    let six = noise.below(2) == 1;
    let length = inner.len() as i64 + jitter(noise);
    if six {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        bytes.extend((length.max(0) as u16).to_be_bytes());
        bytes.extend([proto, 64]);
        bytes.extend(noise.bytes(32));
    } else {
        let options = noise.below(3) * 4;
        bytes.extend([0x08, 0x00, 0x45 + (options / 4) as u8, 0]);
        bytes.extend(((length + 20 + options as i64) as u16).to_be_bytes());
        bytes.extend([0, 0, if noise.below(16) == 0 { 0x20 } else { 0x40 }, 0, 64, proto, 0, 0]);
        bytes.extend(noise.bytes(8 + options));
    }
    bytes.extend(inner);
    bytes.extend(vec![0; noise.below(4) * noise.below(8)]);
    if noise.below(8) == 0 {
        bytes.truncate(noise.below(bytes.len() + 1));
    }
    bytes
}

#[test]
fn frames_are_walked_the_same_way() {
    let mut noise = Noise::new(0xf00d);
    let mut reached = 0;
    for round in 0..100_000 {
        let bytes = frame(&mut noise);
        let trailer = [TrailerKind::None, TrailerKind::Crc, TrailerKind::Icv][round % 3];
        let options = Options::DEFAULT.trailer(trailer);
        let input = Input { start: Start::Eth, options, wire: bytes.len(), bytes: &bytes };
        compare(&input.join());
        reached += usize::from(input.packet().uet.ses.is_some());
    }
    assert!(reached > 5_000, "{reached}: the noise reaches the SES headers");
}
