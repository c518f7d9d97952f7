//! Compares the codec with the C overlay. The two share no code, so their agreement confirms the figures.

use crate::Input;
use uet_overlay::{Header, Walk, headers};
use uet_wire::layout::{ALL, Kind, Layout};
use uet_wire::{Content, Start, Uet};

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    // The byte for the captured length selects a header here, since the overlay does not know captures.
    let chosen = headers().nth(usize::from(data[1]) % headers().count()).expect("there is one");
    same_fields(chosen, input.bytes);
    same_packet(input.bytes);
    if input.start == Start::Eth {
        // The overlay does not know the traffic classes of trimmed packets either.
        let options = input.options.trimmed_dscp(None).trimmed_lasthop_dscp(None);
        same_frame(&Input { options, wire: input.bytes.len(), ..input });
    }
}

/// Compares every field of a header at the start of the bytes.
fn same_fields(header: Header, bytes: &[u8]) {
    let layout = ALL.iter().find(|layout| layout.name == header.name()).expect("the codec knows it");
    assert_eq!(header.size(), layout.bytes, "{header:?}");
    let Some(bytes) = bytes.get(..layout.bytes) else {
        return assert_eq!(header.read(bytes), None, "{header:?} is cut");
    };
    let mut overlay = header.read(bytes).expect("it is whole");
    let mut codec = by_table(layout, bytes);
    overlay.sort_unstable();
    codec.sort_unstable();
    assert_eq!(overlay, codec, "{header:?}");
}

fn by_table(layout: &'static Layout, bytes: &[u8]) -> Vec<(&'static str, u128)> {
    let fields = layout.present(bytes).filter(|(place, _)| place.row.kind != Kind::Reserved);
    fields.map(|(place, value)| (place.row.name, value)).collect()
}

/// Compares the layers of a packet that starts with UET.
fn same_packet(bytes: &[u8]) {
    let walk = Walk::packet(bytes);
    let (uet, cut) = Uet::parse_lax(bytes);
    let stopped = walk.stopped.map(|(header, at)| (header.name(), at));
    assert_eq!(stopped, cut.map(|cut| (cut.header().name, cut.header_offset())));
    let layouts = [
        uet.tss.map(|header| header.layout()),
        uet.pds.map(|header| header.layout()),
        uet.ses.map(|header| header.layout()),
        uet.ext.map(|header| header.layout()),
    ];
    let mut seen = walk.headers.iter();
    let mut offset = 0;
    for layout in layouts.into_iter().flatten() {
        assert_eq!(seen.next().map(|(header, at)| (header.name(), *at)), Some((layout.name, offset)));
        offset += layout.bytes;
    }
    assert_eq!(seen.next(), None);
    for (header, at) in &walk.headers {
        same_fields(*header, &bytes[*at..]);
    }
    if walk.stopped.is_none() {
        assert_eq!(walk.payload, (offset, uet.payload.len()));
    }
}

/// Compares the layers of a frame.
fn same_frame(input: &Input<'_>) {
    let Input { options, bytes, .. } = input;
    let walk = Walk::frame(bytes, options.udp_port, options.ip_proto, options.trailer.len() as u32);
    let packet = input.packet();
    let stopped_in_ip = walk.stopped.is_some_and(|(header, _)| header.name().starts_with("ipv"));
    if stopped_in_ip && packet.ip.is_some() {
        return; // the overlay rejects a packet shorter than its IP length
    }
    assert_eq!(walk.is_uet, packet.content == Content::Uet);
    assert_eq!(walk.trimmed, packet.trimmed.is_some());
    assert_eq!(walk.trailer, packet.trailer.len());
    if packet.trimmed.is_some() && !options.trailer.is_empty() {
        return; // the overlay does not locate the trailer of a trimmed packet
    }
    let stopped = walk.stopped.map(|(header, at)| (header.name(), at));
    assert_eq!(stopped, packet.cut.map(|cut| (cut.header().name, cut.header_offset())));
    let seen = walk.headers.iter().map(|(header, at)| (header.name(), &bytes[*at..*at + header.size()]));
    let expected = packet.headers().map(|(layout, bytes)| (layout.name, bytes));
    assert_eq!(seen.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for (header, at) in &walk.headers {
        same_fields(*header, &bytes[*at..]);
    }
    if stopped.is_none() {
        assert_eq!(walk.payload.1, packet.uet.payload.len());
    }
}
