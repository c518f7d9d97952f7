//! The overlay and the codec, held against each other on pseudo-random bytes: every field of every header, and
//! the way through packets and frames. The two share nothing, so what they agree on is what the figures say.

use std::collections::{BTreeMap, BTreeSet};
use uet_overlay::{Header, Walk, headers};
use uet_wire::layout::{ALL, Kind, Layout};
use uet_wire::{Content, Options, Packet, Start, TrailerKind, Uet};

/// Enough for a test: the same bytes in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 24) as u8).collect()
    }
}

/// What the codec's table says of a header, by name. A flag is in the table as itself and as a part of
/// `pds.flags`; no name may come twice.
fn by_table(layout: &'static Layout, bytes: &[u8]) -> BTreeMap<&'static str, u128> {
    let mut fields = BTreeMap::new();
    for (place, value) in layout.present(bytes) {
        if place.row.kind != Kind::Reserved {
            assert_eq!(fields.insert(place.row.name, value), None, "{} twice", place.row.name);
        }
    }
    fields
}

fn layout_of(header: Header) -> &'static Layout {
    ALL.iter().find(|layout| layout.name == header.name()).unwrap_or_else(|| panic!("{header:?}"))
}

#[test]
fn every_header_has_the_same_fields_with_the_same_values() {
    let mut noise = Noise(0x5eed);
    for header in headers() {
        let layout = layout_of(header);
        assert_eq!(header.size(), layout.bytes, "{header:?}");
        for _ in 0..20_000 {
            let bytes = noise.bytes(layout.bytes);
            let overlay = header.read(&bytes).unwrap();
            assert_eq!(
                overlay.into_iter().collect::<BTreeMap<_, _>>(),
                by_table(layout, &bytes),
                "{bytes:02x?}"
            );
        }
        assert_eq!(header.read(&vec![0; layout.bytes - 1]), None, "{header:?} is cut");
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
        assert!(known.contains(layout.name) || parts.contains(layout.name), "{}", layout.name);
    }
}

/// A packet that goes on for a while: known types, so that the parsers get past the prologue.
fn packet(noise: &mut Noise) -> Vec<u8> {
    let length = noise.below(120);
    let mut bytes = noise.bytes(length);
    if let Some(first) = bytes.first_mut() {
        *first = (noise.below(16) as u8) << 3 | *first & 7;
    }
    bytes
}

fn compare_uet(walk: &Walk, base: usize, bytes: &[u8], uet: &Uet<'_>) {
    let mut offset = base;
    let layouts = [
        uet.tss.map(|header| header.layout()),
        uet.pds.map(|header| header.layout()),
        uet.ses.map(|header| header.layout()),
        uet.ext.map(|header| header.layout()),
    ];
    let mut expected = Vec::new();
    for layout in layouts.into_iter().flatten() {
        expected.push((layout.name, offset));
        offset += layout.bytes;
    }
    let from_uet = walk.headers.iter().filter(|(_, offset)| *offset >= base);
    assert_eq!(
        from_uet.map(|(header, at)| (header.name(), *at)).collect::<Vec<_>>(),
        expected,
        "{bytes:02x?}"
    );
    if walk.stopped.is_none() {
        assert_eq!(walk.payload, (offset, uet.payload.len()), "{bytes:02x?}");
    }
}

#[test]
fn packets_are_walked_the_same_way() {
    let mut noise = Noise(0xfeed);
    let mut stopped = 0;
    for _ in 0..200_000 {
        let bytes = packet(&mut noise);
        let walk = Walk::packet(&bytes);
        let (uet, cut) = Uet::parse_lax(&bytes);
        assert_eq!(
            walk.stopped.map(|(header, at)| (header.name(), at)),
            cut.map(|cut| (cut.header.name, cut.start)),
            "{bytes:02x?}"
        );
        stopped += usize::from(cut.is_some());
        compare_uet(&walk, 0, &bytes, &uet);
    }
    assert!((20_000..180_000).contains(&stopped), "{stopped}: the noise reaches both ends");
}

/// A frame with its lengths about right.
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
    let mut noise = Noise(0xf00d);
    let mut reached = 0;
    for round in 0..200_000 {
        let bytes = frame(&mut noise);
        let trailer = [TrailerKind::None, TrailerKind::Crc, TrailerKind::Icv][round % 3];
        let options = Options { trailer, ..Options::DEFAULT };
        let walk = Walk::frame(&bytes, options.udp_port, options.ip_proto, trailer.len() as u32);
        let packet = Packet::parse_lax(Start::Eth, &bytes, bytes.len(), &options);
        let stopped_in_ip = walk.stopped.is_some_and(|(header, _)| header.name().starts_with("ipv"));
        if stopped_in_ip && packet.ip.is_some() {
            continue; // the overlay reads nothing of a packet whose IP length is not all there
        }
        assert_eq!(walk.is_uet, packet.content == Content::Uet, "{bytes:02x?}");
        assert_eq!(walk.trimmed, packet.trimmed.is_some(), "{bytes:02x?}");
        assert_eq!(walk.trailer, packet.trailer.len(), "{bytes:02x?}");
        if packet.trimmed.is_some() && !trailer.is_empty() {
            continue; // the overlay does not ask where the trailer of a trimmed packet was
        }
        let stopped = walk.stopped.map(|(header, at)| (header.name(), at));
        assert_eq!(stopped, packet.cut.map(|cut| (cut.header.name, cut.start)), "{bytes:02x?}");
        let seen = walk.headers.iter().map(|(header, at)| (header.name(), &bytes[*at..*at + header.size()]));
        let expected = packet.headers().map(|(layout, bytes)| (layout.name, bytes));
        assert_eq!(seen.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{bytes:02x?}");
        if stopped.is_none() {
            assert_eq!(walk.payload.1, packet.uet.payload.len(), "{bytes:02x?}");
        }
        reached += usize::from(packet.uet.ses.is_some());
    }
    assert!(reached > 10_000, "{reached}: the noise reaches the SES headers");
}
