//! Changes packets in place.

use crate::Input;
use uet_wire::layout::Place;
use uet_wire::outer::Ip;
use uet_wire::pds::Pds;
use uet_wire::{EditError, Packet, PacketMut, Psn, TrailerKind};

/// Number of bytes behind the packet that describe the change: the kind, then a value of 4 bytes.
const CHANGE: usize = 5;

pub(super) fn run(data: &[u8]) {
    let Some((data, change)) = data.split_last_chunk::<CHANGE>() else { return };
    let Some(input) = Input::split(data) else { return };
    let [what, value @ ..] = *change;
    let value = u32::from_be_bytes(value);
    field_by_table(&input, what, value);

    let options = &input.options;
    let mut bytes = input.bytes.to_vec();
    let before = match Packet::parse(input.start, input.bytes, options) {
        Ok(packet) => packet,
        Err(error) => {
            let refused = PacketMut::new(input.start, &mut bytes, options).err();
            assert_eq!(refused.map(EditError::from), Some(EditError::Parse(error)));
            assert_eq!(EditError::Parse(error).to_string(), error.to_string());
            return;
        }
    };
    let mut packet = PacketMut::new(input.start, &mut bytes, options).expect("it can be parsed");
    assert_eq!((packet.offsets(), packet.bytes()), (before.offsets(), input.bytes));
    let done = match what % 7 {
        0 => packet.mark_ce(),
        1 => packet.set_ecn(value as u8),
        2 => packet.set_dscp(value as u8),
        3 => packet.retransmit(Psn(value)),
        4 => packet.set_entropy(value as u16),
        5 => packet.refresh_crc(),
        _ => return trimmed(packet, &before, &input, value),
    };
    if let Err(error) = done {
        assert!(!error.to_string().is_empty());
        assert_eq!(bytes, input.bytes, "{error}, and yet the packet was changed");
        return;
    }
    let offsets = before.offsets();
    let (ip_start, ip_end) = ip_header(&before);
    let (transport, pds) = (offsets.transport.unwrap_or(ip_end), offsets.pds.unwrap_or(ip_end));
    let after = Packet::parse_lax(input.start, &bytes, options).0;
    let (ip, request) = (after.ip, after.uet.pds.as_ref().and_then(Pds::request));
    match what % 7 {
        0 => assert_eq!(ip.map(|ip| ip.ecn()), Some(3)),
        1 => assert_eq!(ip.map(|ip| u32::from(ip.ecn())), Some(value & 0xff)),
        2 => assert_eq!(ip.map(|ip| u32::from(ip.dscp())), Some(value & 0xff)),
        3 => assert_eq!(request.map(|pds| (pds.retx(), pds.clear_psn())), Some((true, Psn(value)))),
        4 => assert_eq!(after.entropy_value(), Some(value as u16)),
        _ => assert!(after.crc_check().is_some_and(|check| check.ok())),
    }
    // The parts that may change, and the bytes in them that stay.
    let outer = what % 7 < 3;
    let changed = match what % 7 {
        0..3 => ip_start..ip_end,
        3 => pds..pds + 4,
        _ => transport..transport + 2,
    };
    let checksum = transport + 6..transport + 8;
    let trailer = offsets.trailer..offsets.padding;
    for place in (0..bytes.len()).filter(|place| bytes[*place] != input.bytes[*place]) {
        let by_sender = !outer
            && (trailer.contains(&place) && options.trailer == TrailerKind::Crc
                || checksum.contains(&place) && before.udp.is_some());
        let as_meant = what % 7 != 5 && changed.contains(&place);
        assert!(as_meant || by_sender, "byte {place} has changed");
    }
    if let (true, Some(Ip::V4 { header, options })) = (outer, after.ip) {
        assert_eq!(header.checksum(), header.computed_checksum(options));
    }
    if !outer && !before.trailer.is_empty() && options.trailer == TrailerKind::Crc {
        assert!(after.crc_check().is_some_and(|check| check.ok()));
    }
}

/// Returns the start of the IP header and the end of its options or extension headers.
fn ip_header(packet: &Packet<'_>) -> (usize, usize) {
    let start = packet.offsets().ip.unwrap_or(0);
    (start, start + packet.ip.map_or(0, |ip| ip.bytes().len() + ip.extra().len()))
}

fn trimmed(packet: PacketMut<'_>, before: &Packet<'_>, input: &Input<'_>, value: u32) {
    let [keep_high, keep_low, _, dscp] = value.to_be_bytes();
    let keep = usize::from(u16::from_be_bytes([keep_high, keep_low]));
    let length = packet.trim(keep, dscp);
    let Ok(length) = length else { return };
    let offsets = before.offsets();
    let kept = ip_header(before).1 + keep.max(24);
    assert_eq!(length, kept.min(offsets.trailer));
    assert!(dscp < 64 && input.bytes.len() >= length);
}

/// Sets any field of any header: its own bits change, and no others.
fn field_by_table(input: &Input<'_>, what: u8, value: u32) {
    let packet = input.packet();
    let places = || packet.headers().flat_map(|(layout, header)| layout.places().map(move |place| (place, header)));
    let Some((place, header)) = places().nth(usize::from(what) % places().count().max(1)) else { return };
    let mut changed = header.to_vec();
    let value = u128::from(value) & (u128::MAX >> (128 - place.row.width()));
    assert!(place.write(&mut changed, value));
    assert_eq!(place.read(&changed), Some(value));
    assert!(outside(&place, &changed).eq(outside(&place, header)), "{}", place.row.name);
}

fn outside(place: &Place, header: &[u8]) -> impl Iterator<Item = u8> {
    let (lo, hi) = (place.lo(), place.hi());
    let bits = (0..header.len() * 8).filter(move |bit| !(lo..hi).contains(bit));
    bits.map(|bit| header[bit / 8] >> (7 - bit % 8) & 1)
}
