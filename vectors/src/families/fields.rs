//! Every field of every UET header at the ends of its range.

use super::parts::v4;
use crate::case::{Bytes, Case, Family};
use crate::usual;
use uet_wire::layout::{Kind, Layer, Layout, Place};
use uet_wire::pds::Ack;
use uet_wire::{FrameBuilder, Start, Uet};

/// Returns the tested values of a field: word and value. A narrow field has fewer.
pub(crate) fn values(place: &Place) -> Vec<(&'static str, u128)> {
    let width = place.row.width();
    let all_ones = u128::MAX >> (128 - width);
    let values = match place.row.kind {
        Kind::Int => vec![
            ("zero", 0),
            ("one", 1),
            ("minus-one", all_ones),
            ("highest", all_ones >> 1),
            ("lowest", 1 << (width - 1)),
        ],
        _ => vec![("zero", 0), ("one", 1), ("highest", all_ones), ("top-bit", 1 << (width - 1))],
    };
    let seen = |index: usize, value: u128| values[..index].iter().any(|(_, before)| *before == value);
    values.iter().enumerate().filter(|(i, (_, value))| !seen(*i, *value)).map(|(_, pair)| *pair).collect()
}

/// Fields that identify the header: another value makes it another header.
pub(crate) const IDENTIFYING: [&str; 4] = ["pds.type", "tss.type", "tss.sp", "ses.atomic_opcode"];

pub(super) fn family() -> Family {
    let mut family = Family::new("fields", "wire-format: the layouts");
    for layout in usual::layouts() {
        let mut names: Vec<&str> = Vec::new();
        for place in layout.fields() {
            let again = names.contains(&place.row.name);
            names.push(place.row.name);
            // One name may occur at two places in different forms of the header.
            let at = if again { format!("-at-{}", place.lo()) } else { String::new() };
            for (word, value) in values(&place) {
                let header = usual::header(layout, &[(place, value)]);
                let name = format!("{}/{}{at}-{word}", layout.name, place.row.name);
                let what = format!("{}: {} is {value:#x}", layout.title, place.row.name);
                let case = stand(layout, &header, name, what);
                if IDENTIFYING.contains(&place.row.name) && !is_read_as(&case, layout) {
                    continue;
                }
                family.add(case);
            }
        }
    }
    family
}

/// Returns a packet that contains the header.
pub(crate) fn stand(layout: &'static Layout, header: &[u8], name: String, what: String) -> Case {
    if layout.layer != Layer::Entropy {
        return Case::uet(name, what, usual::packet(layout, header));
    }
    let uet = usual::header(Ack::LAYOUT, &[]);
    let mut packet = v4(FrameBuilder::opaque(&uet).native(0)).bytes();
    packet[20..24].copy_from_slice(header);
    Case::uet(name, what, packet).from(Start::Ip)
}

fn is_read_as(case: &Case, layout: &Layout) -> bool {
    let (packet, _) = Uet::parse_lax(&case.bytes);
    let tss = packet.tss.map(|header| header.layout());
    let pds = packet.pds.map(|header| header.layout());
    let ses = packet.ses.map(|header| header.layout());
    let ext = packet.ext.map(|header| header.layout());
    [tss, pds, ses, ext].into_iter().flatten().any(|found| found == layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_wire::pds::Request;

    #[test]
    fn a_field_is_tried_at_the_ends_of_its_range() {
        let numbers = |name: &str| {
            let tried = values(&Request::LAYOUT.field(name).unwrap());
            tried.iter().map(|(_, value)| *value).collect::<Vec<_>>()
        };
        assert_eq!(numbers("pds.psn"), [0, 1, 0xffff_ffff, 0x8000_0000]);
        assert_eq!(numbers("pds.clear_psn_offset"), [0, 1, 0xffff, 0x7fff, 0x8000]);
        assert_eq!(numbers("pds.flags.ar"), [0, 1]);
    }
}
