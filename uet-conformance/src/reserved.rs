//! Reserved bits of a packet, which a receiver ignores.

use uet_wire::UetBuf;
use uet_wire::layout::Kind;

/// Returns the packet with reserved bits set: those of each place in turn, and then all of them.
pub(crate) fn with_reserved_bits(packet: &UetBuf) -> Vec<Vec<u8>> {
    let clean = packet.to_bytes();
    let mut all = clean.clone();
    let mut packets = Vec::new();
    let view = packet.view();
    let after_pds = view.pds.map_or(0, |pds| pds.bytes().len());
    let pds = view.pds.map(|pds| (0, pds.layout(), after_pds));
    let ses = view.ses.map(|ses| (after_pds, ses.layout(), ses.bytes().len()));
    let before = after_pds + view.ses.map_or(0, |ses| ses.bytes().len());
    let ext = view.ext.map(|ext| (before, ext.layout(), ext.bytes().len()));
    for (start, layout, length) in [pds, ses, ext].into_iter().flatten() {
        let places = layout.present(&clean[start..start + length]);
        for (place, _) in places.filter(|(place, _)| matches!(place.row.kind, Kind::Reserved)) {
            let ones = u128::MAX >> (128 - place.row.width());
            let mut one = clean.clone();
            place.write(&mut one[start..start + length], ones);
            place.write(&mut all[start..start + length], ones);
            packets.push(one);
        }
    }
    packets.push(all);
    packets
}
