//! Every run of reserved bits set. A parser ignores, flags and keeps it.

use super::fields::stand;
use crate::case::Family;
use crate::usual;
use uet_wire::layout::Kind;

pub(super) fn family() -> Family {
    let mut family = Family::new("reserved", "wire-format: reserved bits are ignored on receive");
    for layout in usual::layouts() {
        for place in layout.places().filter(|place| place.row.kind == Kind::Reserved) {
            // The field that decides if the run exists is set as if the run were a field.
            let mut header = usual::header(layout, &[(place, 0)]);
            assert!(place.exists(&header), "{}: bit {}", layout.name, place.lo());
            place.write(&mut header, u128::MAX);
            let (bit, width) = (place.lo(), place.row.width());
            let name = format!("{}/bit-{bit}-width-{width}", layout.name);
            let what = format!("{}: the {width} reserved bits from bit {bit} on are set", layout.title);
            family.add(stand(layout, &header, name, what));
        }
    }
    family
}
