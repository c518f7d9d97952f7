//! Field values that often expose errors.

use uet_wire::layout::{Kind, Place};

/// Returns a notable value for a field: an assigned code point, an end of its range, or a neighbor of its current value
/// `now`. `pick` selects the value. `random` is one of the choices.
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
        // Some registries have only reserved code points.
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
