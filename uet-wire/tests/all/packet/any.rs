//! For any input, the parser loses no byte, and its results agree with each other.

use super::{NONE, bytes, eth, frame, v4, v6, with_extensions};
use proptest::prelude::*;
use uet_wire::layout::Layer;
use uet_wire::tss::TssShort;
use uet_wire::{Content, FrameBuilder, Options, Packet, Start, TrailerKind};

fn any_options() -> impl Strategy<Value = Options> {
    let trailer = prop_oneof![Just(TrailerKind::None), Just(TrailerKind::Crc), Just(TrailerKind::Icv)];
    let dscp = || prop_oneof![Just(None), Just(Some(0)), Just(Some(5))];
    let proto = prop_oneof![Just(253), Just(17), any::<u8>()];
    (trailer, dscp(), dscp(), proto).prop_map(|(trailer, trimmed_dscp, trimmed_lasthop_dscp, ip_proto)| {
        NONE.trailer(trailer)
            .trimmed_dscp(trimmed_dscp)
            .trimmed_lasthop_dscp(trimmed_lasthop_dscp)
            .ip_proto(ip_proto)
    })
}

/// Random bytes rarely reach inner layers. Most inputs are frames with a few bytes changed, removed or added.
fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let frames: Vec<Vec<u8>> = vec![
        bytes(&eth(v4(frame().crc())).pad_to(130)),
        bytes(&eth(v4(frame()).ipv4_options(&[1; 12])).vlans(&[1, 2])),
        bytes(&eth(v6(frame().native(1)))),
        bytes(&v6(frame().crc())),
        with_extensions(&[(0, &[0; 8]), (44, &[0; 8]), (51, &[0; 8])]),
        bytes(&frame()),
        bytes(&v4(FrameBuilder::secured(TssShort::build().done().unwrap(), b"cipher", [7; 16]).udp(1))),
    ];
    let changed = (
        prop::sample::select(frames),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        0usize..200,
        prop::collection::vec(any::<u8>(), 0..20),
    )
        .prop_map(|(mut bytes, changes, cut, more)| {
            for (at, value) in changes {
                // Half of the changes hit the first 60 bytes, which contain the outer headers.
                let range = if value & 1 == 0 { bytes.len() } else { bytes.len().min(60) };
                bytes[at.index(range)] = value;
            }
            bytes.truncate(cut);
            bytes.extend_from_slice(&more);
            bytes
        });
    prop_oneof![4 => changed, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16 * ProptestConfig::default().cases))]

    #[test]
    fn every_byte_is_in_exactly_one_part(input in any_input(), wire in 0usize..300, options in any_options()) {
        for start in [Start::Eth, Start::Ip, Start::Udp, Start::Uet] {
            let packet = Packet::parse_sliced(start, &input, wire, &options).0;
            prop_assert_eq!(packet.parts().concat(), &input[..]);
            for (layout, header) in packet.headers() {
                prop_assert_eq!(layout.bytes, header.len());
            }
            if let Some(cut) = packet.cut {
                prop_assert_eq!(cut.header_offset(), packet.offsets().rest.unwrap_or(packet.offsets().trailer));
                prop_assert!(packet.uet.payload.is_empty() || cut.layer() == Layer::Trailer);
            } else {
                prop_assert!(packet.rest.is_empty());
            }
            if let Some(error) = packet.error() {
                prop_assert!(error.header_offset() <= input.len());
                prop_assert!(error.header_offset() <= error.offset());
                prop_assert!(!error.to_string().is_empty());
            } else {
                prop_assert!(packet.cut.is_none() || packet.trimmed.is_some() || packet.sliced.is_some());
            }
            if packet.trimmed.is_some() {
                prop_assert_eq!(packet.content, Content::Uet);
            }
            prop_assert_eq!(packet.sliced.is_some(), wire > input.len());
        }
    }

    /// Bytes that the capture removed never cause an error, and never change the parts before the cut.
    #[test]
    fn a_slice_of_a_good_packet_is_good(input in any_input(), kept in 0usize..200, options in any_options()) {
        for start in [Start::Eth, Start::Ip, Start::Udp, Start::Uet] {
            let Ok(whole) = Packet::parse(start, &input, &options) else { continue };
            let kept = kept.min(input.len());
            let seen = Packet::parse_sliced(start, &input[..kept], input.len(), &options).0;
            prop_assert_eq!(seen.error(), None);
            for (ours, theirs) in seen.headers().zip(whole.headers()) {
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
