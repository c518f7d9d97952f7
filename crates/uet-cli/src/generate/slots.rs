//! The bits of a header in wire order, for languages whose structures have one member after the other.

use super::{HeaderField, fields, point_name};
use uet_wire::layout::{Kind, Layout, Place};

/// A header with the names of its fields in a language.
pub(super) struct Header {
    pub(super) layout: &'static Layout,
    pub(super) fields: Vec<HeaderField>,
    /// In wire order.
    pub(super) slots: Vec<Slot>,
}

/// A run of bits with the same meaning in every header, or with several, of which a field decides.
pub(super) struct Slot {
    /// The first bit.
    pub(super) lo: usize,
    /// The bit after the last bit.
    pub(super) hi: usize,
    /// The field that decides.
    pub(super) deciding: Option<Place>,
    /// The meanings that have fields. The first one stands for all if there are no others.
    pub(super) uses: Vec<Use>,
}

/// A meaning of the bits of a slot.
pub(super) struct Use {
    /// The first value of the deciding field that selects it.
    pub(super) value: u8,
    /// The rows, reserved ones included. They divide the bits of the slot.
    pub(super) rows: Vec<Place>,
}

impl Header {
    /// Returns a header for a language with these keywords.
    pub(super) fn of(layout: &'static Layout, keywords: &[&str]) -> Self {
        let mut tiles: Vec<Place> = layout.tiles().collect();
        tiles.sort_by_key(Place::lo);
        let mut slots: Vec<(usize, usize, Vec<Place>)> = Vec::new();
        for tile in tiles {
            match slots.last_mut() {
                Some((_, hi, tiles)) if tile.lo() < *hi => {
                    *hi = tile.hi().max(*hi);
                    tiles.push(tile);
                }
                _ => slots.push((tile.lo(), tile.hi(), vec![tile])),
            }
        }
        let slot = |(lo, hi, tiles): (usize, usize, Vec<Place>)| {
            let deciding = tiles.iter().find_map(|tile| layout.field(tile.row.when?.name));
            let all = || vec![Use { value: 0, rows: tiles.clone() }];
            Slot { lo, hi, deciding, uses: deciding.map_or_else(all, |field| uses(&field, &tiles)) }
        };
        let slots = slots.into_iter().map(slot).collect();
        Header { layout, fields: fields(layout, keywords), slots }
    }

    /// Returns the name of a row.
    pub(super) fn name(&self, place: &Place) -> String {
        let field = self.fields.iter().find(|field| field.places.contains(place));
        field.map_or_else(|| format!("reserved_{}", place.lo()), |field| field.name.clone())
    }

    /// Returns the field that this row is a part of, such as `pds.flags`.
    pub(super) fn group(&self, part: &Place) -> Option<Place> {
        let layout = self.layout;
        let contains = |row: &Place| row.lo() <= part.lo() && part.hi() <= row.hi() && row != part;
        layout.fields().find(|row| layout.has_parts(row) && contains(row))
    }

    /// Returns the name of the bits of a slot with several uses. If a field decides about several slots, the name also
    /// has the first bit.
    pub(super) fn shared_name(&self, slot: &Slot) -> String {
        let is_alike = |other: &&Slot| other.uses.len() > 1 && other.deciding == slot.deciding;
        let deciding = slot.deciding.map_or(String::new(), |place| self.name(&place));
        match self.slots.iter().filter(is_alike).count() {
            0 | 1 => format!("by_{deciding}"),
            _ => format!("by_{deciding}_{}", slot.lo),
        }
    }

    /// Returns the slot and the use that contain a row, the first if there are several.
    pub(super) fn find(&self, place: &Place) -> Option<(&Slot, &Use)> {
        let all = self.slots.iter().flat_map(|slot| slot.uses.iter().map(move |one| (slot, one)));
        all.into_iter().find(|(_, one)| one.rows.contains(place))
    }

    /// Returns the name of a use with several rows: that of its first code point, or its value.
    pub(super) fn use_name(&self, slot: &Slot, one: &Use) -> String {
        let Some(deciding) = slot.deciding else { return String::new() };
        let entry = match deciding.row.kind {
            Kind::Code(registry) => registry.entry(one.value),
            _ => None,
        };
        entry.map_or_else(
            || format!("{}_{}", self.name(&deciding), one.value),
            |entry| point_name(entry).to_lowercase(),
        )
    }
}

/// Returns the different selections among these rows: those with fields, or one if none has any.
fn uses(deciding: &Place, tiles: &[Place]) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::new();
    for value in 0..1u8 << deciding.row.width() {
        let exists = |tile: &&Place| tile.row.when.is_none_or(|when| when.values.contains(value.into()));
        let rows: Vec<Place> = tiles.iter().filter(exists).copied().collect();
        if uses.iter().all(|known| known.rows != rows) {
            uses.push(Use { value, rows });
        }
    }
    let has_field = |one: &Use| one.rows.iter().any(|row| row.row.kind != Kind::Reserved);
    match uses.iter().any(has_field) {
        true => uses.retain(has_field),
        false => uses.truncate(1),
    }
    uses
}
