//! Values at which programs err.

use uet_wire::layout::{Kind, Place};

/// A value for a field that is likely to matter: a code point that exists, an end of its range, the neighbour of the value
/// that it has `now`; which, is `pick`'s choice. `random` is for the others.
///
/// ```
/// use uet_packet_io::corpus::values::notable;
/// use uet_wire::pds::Ack;
///
/// let psn = Ack::LAYOUT.field("pds.cack_psn").unwrap();
/// let values: Vec<u128> = (0..32).map(|pick| notable(&psn, 7, pick, 99)).collect();
/// for value in [0, 1, 6, 8, 99, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
///     assert!(values.contains(&value), "{value:#x}");
/// }
/// ```
pub fn notable(place: &Place, now: u128, pick: u64, random: u128) -> u128 {
    let mask = u128::MAX >> (128 - place.row.width());
    let (which, pick) = (pick % 4, (pick / 4) as usize);
    if let (Kind::Code(registry), 1..) = (place.row.kind, which) {
        // Some registries are all reserved.
        let entry = registry.entries.get(pick.checked_rem(registry.entries.len()).unwrap_or(0));
        return entry.map_or(0, |entry| entry.code.into());
    }
    let value = match pick % 8 {
        0 => 0,
        1 => 1,
        2 => mask,
        3 => mask >> 1,
        4 => (mask >> 1) + 1,
        5 => now.wrapping_add(1),
        6 => now.wrapping_sub(1),
        _ => random,
    };
    value & mask
}
