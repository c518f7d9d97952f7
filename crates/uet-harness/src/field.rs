//! Fields of the PDS header of a recorded or changed packet, by name.

use uet_wire::layout::Place;
use uet_wire::{PdcId, Uet};

/// Returns a field and its value, if the header has it.
fn present(bytes: &[u8], name: &str) -> Option<(Place, u128)> {
    let pds = Uet::parse_lax(bytes).0.pds?;
    pds.layout().present(pds.bytes()).find(|(place, _)| place.row.name == name)
}

/// Returns whether the header has a field.
pub(crate) fn has(bytes: &[u8], name: &str) -> bool {
    present(bytes, name).is_some()
}

/// Returns the sender's PDCID.
pub(crate) fn spdcid(bytes: &[u8]) -> Option<PdcId> {
    present(bytes, "pds.spdcid").map(|(_, id)| PdcId(id as u16))
}

/// Sets a field, if the header has it.
pub(crate) fn set(bytes: &mut [u8], name: &str, value: u128) {
    if let Some((place, _)) = present(bytes, name) {
        place.write(bytes, value);
    }
}
