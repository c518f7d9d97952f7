//! Parsing and then emitting gives equal bytes. Emitting and then parsing gives an equal value. Tests every header and
//! whole packets.

use crate::every_header::every_header;
use proptest::prelude::*;
use uet_wire::outer::Ip;
use uet_wire::trailer::TrailerKind;
use uet_wire::{Content, FrameBuilder, Options, Packet, Start, Uet, UetBuf, layout};
use uet_wire::{outer, pds, ses, trailer, tss};

/// Parses a header from the start of `bytes`, and views, copies, edits and emits it. Each header has a function of its
/// own, which compiles sooner than one with all of them.
macro_rules! header_comes_back {
    ([$bytes:ident] $($module:ident::$Name:ident)*) => {{
        $({
            #[inline(never)]
            fn comes_back(bytes: &[u8]) {
                let layout = $module::$Name::LAYOUT;
                let length = layout.bytes;
                let (header, rest) = $module::$Name::parse(bytes).unwrap();
                assert_eq!(rest, &bytes[length..]);
                assert_eq!(&header.bytes()[..], &bytes[..length]);
                let owned = header.copied();
                assert_eq!(owned.view(), header);
                assert_eq!(header.edit().done(), Ok(header.copied()));

                let mut buffer = vec![0xee; length + 3];
                assert_eq!(header.emit(&mut buffer), Ok(&mut [0xee; 3][..]));
                assert_eq!(&buffer[..length], &bytes[..length]);
                let (again, _) = $module::$Name::parse(&buffer).unwrap();
                assert_eq!(again, header);
                let (writer, _) = $module::$Name::parse_mut(&mut buffer).unwrap();
                assert_eq!(writer.done().map(|header| header.copied()), Ok(header.copied()));

                for short in 0..length {
                    let error = $module::$Name::parse(&bytes[..short]).unwrap_err();
                    assert_eq!((error.header(), error.header_offset(), error.present()), (layout, 0, short));
                    assert!(error.needed() > short && error.needed() <= length);
                    let mut buffer = vec![0xee; short];
                    assert!(header.emit(&mut buffer).is_err());
                    assert_eq!(buffer, vec![0xee; short], "nothing is written");
                }
            }
            comes_back($bytes);
        })*
    }};
}

/// The outer layers of a packet.
#[derive(Clone, Debug)]
struct Outside {
    start: Start,
    vlans: Vec<u16>,
    v6: bool,
    ipv4_options: usize,
    native: bool,
    crc: bool,
    pad: usize,
    dscp: u8,
    entropy: u16,
}

fn outside() -> impl Strategy<Value = Outside> {
    let start = prop_oneof![Just(Start::Eth), Just(Start::Ip), Just(Start::Udp), Just(Start::Uet)];
    let vlans = prop::collection::vec(0u16..4096, 0..=2);
    let numbers = (0usize..=10, 0usize..80, 0u8..64, any::<u16>());
    (start, vlans, any::<(bool, bool, bool)>(), numbers).prop_map(
        |(start, vlans, (v6, native, crc), (words, pad, dscp, entropy))| Outside {
            start,
            vlans,
            v6,
            ipv4_options: if v6 { 0 } else { words * 4 },
            native: native && start != Start::Udp,
            crc,
            pad,
            dscp,
            entropy,
        },
    )
}

impl Outside {
    /// Returns the frame of `packet`, and the offset at which to start parsing.
    fn frame(&self, packet: &UetBuf) -> (Vec<u8>, usize) {
        let option_bytes = vec![1; self.ipv4_options];
        let mut frame = match (packet.tss, packet.pds) {
            (Some(tss), _) => FrameBuilder::secured(tss, &packet.payload, [0xcc; 16]),
            (None, pds) => {
                let mut frame = FrameBuilder::new(pds.unwrap()).payload(&packet.payload).as_given();
                frame = packet.ses.into_iter().fold(frame, FrameBuilder::ses);
                frame = packet.ext.into_iter().fold(frame, FrameBuilder::ext);
                if self.crc { frame.crc() } else { frame }
            }
        };
        frame = if self.native { frame.native(self.entropy) } else { frame.udp(self.entropy) };
        frame = match self.v6 {
            true => frame.ipv6([1; 16], [2; 16]),
            false => frame.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ipv4_options(&option_bytes),
        };
        frame = frame.dscp(self.dscp).ethernet([2; 6], [4; 6]).vlans(&self.vlans);
        let ip = 14 + 4 * self.vlans.len();
        let transport = ip + if self.v6 { 40 } else { 20 + self.ipv4_options };
        let skipped = match self.start {
            Start::Eth => 0,
            Start::EtherType(_) | Start::Ip => ip,
            Start::Udp => transport,
            Start::Uet => transport + if self.native { 4 } else { 8 },
            other => unreachable!("{other:?} is never chosen"),
        };
        // The IP length finds the end of the packet. Without IP, padding would become payload.
        if matches!(self.start, Start::Eth | Start::EtherType(_) | Start::Ip) {
            let length = frame.len();
            frame = frame.pad_to(length + self.pad);
        }
        let mut bytes = vec![0; frame.len()];
        assert_eq!(frame.emit(&mut bytes), Ok(bytes.len()));
        (bytes, skipped)
    }

    fn trailer(&self, packet: &UetBuf) -> TrailerKind {
        match packet.tss {
            Some(_) => TrailerKind::Icv,
            None if self.crc => TrailerKind::Crc,
            None => TrailerKind::None,
        }
    }
}

proptest! {
    #[test]
    fn every_header_comes_back(bytes: [u8; 64]) {
        let bytes = &bytes[..];
        every_header!(header_comes_back bytes);
    }

    #[test]
    fn a_field_set_through_the_table_changes_its_own_bits(bytes: [u8; 64], value: u128) {
        for layout in layout::ALL {
            for place in layout.places() {
                let value = value >> (128 - place.row.width());
                let mut header = bytes[..layout.bytes].to_vec();
                prop_assert!(place.write(&mut header, value));
                prop_assert_eq!(place.read(&header), Some(value));
                for bit in (0..layout.bytes * 8).filter(|bit| !(place.lo()..place.hi()).contains(bit)) {
                    prop_assert_eq!((header[bit / 8] ^ bytes[bit / 8]) >> (7 - bit % 8) & 1, 0);
                }
                for short in 0..place.hi().div_ceil(8) {
                    prop_assert!(!place.write(&mut header[..short], 0));
                    prop_assert_eq!(place.read(&bytes[..short]), None);
                }
            }
        }
    }

    #[test]
    fn what_is_received_is_kept(received in uet_wire::with_proptest::received()) {
        let (packet, cut) = Uet::parse_lax(&received);
        let mut emitted = vec![0; received.len()];
        prop_assert_eq!(packet.emit(&mut emitted), Ok(packet.len()));
        // A truncated packet keeps all bytes before the header that is cut off.
        let kept = cut.map_or(received.len(), |error| error.header_offset());
        prop_assert_eq!(&emitted[..packet.len()], &received[..kept]);
        prop_assert_eq!(Uet::parse(&received), cut.map_or(Ok(packet), Err));
        let owned = packet.to_buf();
        prop_assert_eq!(owned.view(), packet);
        prop_assert_eq!(owned.to_bytes(), &received[..kept]);
    }

    #[test]
    fn what_is_received_in_layers_is_kept(
        received in uet_wire::with_proptest::received(),
        padding in uet_wire::with_proptest::received(),
        changes in prop::collection::vec((0usize..96, any::<u8>()), 0..3),
        outside in outside(),
    ) {
        // The outer layers of a good packet around any bytes, with some bytes changed.
        let around = UetBuf { payload: received, ..UetBuf::new(pds::Uud::new()) };
        let (mut frame, skipped) = outside.frame(&around);
        frame.extend(padding);
        for (place, value) in changes {
            if let Some(byte) = frame.get_mut(place) {
                *byte = value;
            }
        }
        let frame = &frame[skipped..];
        let options = Options::DEFAULT.trailer(outside.trailer(&around));
        let packet = Packet::parse_lax(outside.start, frame, &options).0;
        prop_assert_eq!(packet.parts().concat(), frame, "{:?}", packet);
    }

    #[test]
    fn a_packet_comes_back(packet: UetBuf) {
        let bytes = packet.to_bytes();
        let mut buffer = vec![0xee; bytes.len() + 1];
        prop_assert_eq!(packet.emit(&mut buffer), Ok(bytes.len()));
        prop_assert_eq!(&buffer[..bytes.len()], &bytes);
        prop_assert_eq!(buffer[bytes.len()], 0xee);
        prop_assert_eq!(packet.view().len(), bytes.len());
        prop_assert!(packet.emit(&mut buffer[..bytes.len() - 1]).is_err());

        let parsed = Uet::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, packet.view());
        prop_assert_eq!(UetBuf::from(parsed), packet);
    }

    #[test]
    fn a_framed_packet_comes_back(packet: UetBuf, outside in outside()) {
        let (frame, skipped) = outside.frame(&packet);
        let options = Options::DEFAULT.trailer(outside.trailer(&packet));
        let frame = &frame[skipped..];
        let parsed = Packet::parse(outside.start, frame, &options).unwrap();
        prop_assert_eq!(parsed.content, Content::Uet);
        prop_assert_eq!(parsed.uet.to_buf(), packet.clone());
        prop_assert_eq!(parsed.parts().concat(), frame);
        if matches!(outside.start, Start::Eth | Start::Ip) {
            prop_assert_eq!(parsed.entropy_value(), Some(outside.entropy));
            prop_assert_eq!(parsed.ip.map(|ip| ip.dscp()), Some(outside.dscp));
            prop_assert_eq!(parsed.padding, &vec![0; outside.pad]);
            let crc = outside.trailer(&packet) == TrailerKind::Crc;
            prop_assert_eq!(parsed.crc_check().map(|check| check.ok()), crc.then_some(true));
            if let Some(Ip::V4 { header, options }) = parsed.ip {
                prop_assert_eq!(header.checksum(), header.computed_checksum(options));
            }
        }
        if outside.start == Start::Eth {
            let ids = parsed.vlans.iter().flatten().map(|vlan| vlan.id());
            prop_assert!(ids.eq(outside.vlans.iter().copied()));
        }
    }

    #[test]
    fn what_is_consistent_stays(packet: UetBuf, other: UetBuf) {
        prop_assert_eq!(packet.clone().consistent(), packet.clone());
        // Makes parts of two packets consistent, then checks the round trip.
        let mixed = UetBuf { tss: None, ses: other.ses, ext: other.ext, ..packet }.consistent();
        prop_assert_eq!(Uet::parse(&mixed.to_bytes()).map(|packet| packet.to_buf()), if mixed.pds.is_some() { Ok(mixed) } else {
            Uet::parse(&mixed.payload).map(|packet| packet.to_buf())
        });
    }
}

#[test]
fn the_strategy_reaches_every_header() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use std::collections::BTreeSet;

    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..1024 {
        let packet = any::<UetBuf>().new_tree(&mut runner).unwrap().current();
        let packet = packet.view();
        seen.extend(packet.tss.map(|header| header.layout().name));
        seen.extend(packet.pds.map(|header| header.layout().name));
        seen.extend(packet.ses.map(|header| header.layout().name));
        seen.extend(packet.ext.map(|header| header.layout().name));
    }
    let all = [tss::Tss::LAYOUTS, pds::Pds::LAYOUTS, ses::Ses::LAYOUTS, ses::Ext::LAYOUTS].concat();
    assert_eq!(seen, all.iter().map(|layout| layout.name).collect());
}
