//! Validates packets.

use crate::Input;
use crate::cut_off::cut_off;
use uet_wire::validate::Finding;
use uet_wire::{Packet, ParseErrorKind, Version, catalogue};

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();
    for version in Version::ALL {
        for finding in packet.validate(*version) {
            check(&packet, &finding);
        }
    }
    without_reserved_bits(&packet);
    if let Some(error) = packet.error() {
        assert!(error.kind() == ParseErrorKind::InvalidValue || error.present() < error.needed(), "{error}");
        let text = error.to_string();
        assert!(text.contains(error.field()) && text.contains(&error.offset().to_string()), "{text}");
    }
}

fn check(packet: &Packet<'_>, finding: &Finding) {
    assert_eq!(catalogue::find(finding.requirement.id), Some(finding.requirement));
    let text = finding.to_string();
    assert!(text.starts_with(finding.requirement.id) && text.contains(finding.field), "{text}");
    cut_off(finding, finding.value as usize);
    let headers = || packet.headers().filter(|(layout, _)| layout.layer.name() != "vlan");
    match finding.bits {
        Some((bit, width)) => {
            let (layout, header) = headers().find(|(layout, _)| layout.name == finding.field).expect(&text);
            let place = layout.place(&format!("{}@{bit}:{width}", layout.name)).expect(&text);
            assert_eq!(place.read(header), Some(finding.value), "{text}");
        }
        None => {
            let fields = || headers().flat_map(|(layout, header)| layout.present(header));
            let mut found = fields().filter(|(place, _)| place.row.name == finding.field);
            match found.next() {
                Some((_, value)) => assert_eq!(value, finding.value, "{text}"),
                None => assert!(["payload", "crc"].contains(&finding.field), "{text}: no such field"),
            }
        }
    }
}

/// Clearing reserved bits of a packet changes no other finding.
fn without_reserved_bits(packet: &Packet<'_>) {
    const RESERVED: &str = "WIRE-RSVD-001";
    let mut cleared = packet.uet.to_buf();
    let headers = [
        cleared.tss.as_mut().map(|header| (header.view().layout(), header.bytes_mut())),
        cleared.pds.as_mut().map(|header| (header.view().layout(), header.bytes_mut())),
        cleared.ses.as_mut().map(|header| (header.view().layout(), header.bytes_mut())),
        cleared.ext.as_mut().map(|header| (header.view().layout(), header.bytes_mut())),
    ];
    for (layout, header) in headers.into_iter().flatten() {
        let reserved = |place: &uet_wire::layout::Place| place.row.kind == uet_wire::layout::Kind::Reserved;
        for place in layout.places().filter(reserved) {
            if place.exists(header) {
                place.write(header, 0);
            }
        }
    }
    let version = Version::default();
    let before = packet.uet.validate(version).filter(|finding| finding.requirement.id != RESERVED);
    assert!(cleared.view().validate(version).eq(before));
}
