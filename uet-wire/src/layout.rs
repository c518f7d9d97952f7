//! Header layouts as data.
//!
//! Every header of this crate has a [`Layout`], which lists its rows. Typed accessors, JSON names, drawings in these
//! pages and the Wireshark dissector come from these rows.
//!
//! ```
//! use uet_wire::pds::Ack;
//!
//! for place in Ack::LAYOUT.fields() {
//!     println!("{:24} bit {:3}, {} wide: {}", place.row.name, place.lo(), place.row.width(), place.row.doc);
//! }
//! assert_eq!(Ack::LAYOUT.field("pds.cack_psn").unwrap().lo(), 32);
//! ```

use crate::every_header::every_header;
use crate::{bits, outer, pds, registry::Registry, ses, trailer, tss};

macro_rules! tables {
    ([] $($layer:ident::$Name:ident)*) => {
        /// Every header of this crate and every shared part, in the order of the layers.
        pub const ALL: &[&Layout] = &[$($layer::$Name::LAYOUT),*];
    };
}
every_header!(tables);

/// The layers of a packet, by their names in the `stack` of a decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet.
    Eth,
    /// An 802.1Q or 802.1ad tag.
    Vlan,
    /// IP version 4.
    Ipv4,
    /// IP version 6.
    Ipv6,
    /// UDP.
    Udp,
    /// The entropy header of the native encapsulation.
    Entropy,
    /// The transport security header.
    Tss,
    /// Packet delivery.
    Pds,
    /// Semantics.
    Ses,
    /// An extension of a SES request.
    Ext,
    /// The payload.
    Payload,
    /// The CRC or ICV at the end of the packet.
    Trailer,
}

impl Layer {
    /// Returns true for the headers and trailers of UET, false for the layers around them and for the payload.
    pub const fn is_uet(self) -> bool {
        use Layer::{Entropy, Ext, Pds, Ses, Trailer, Tss};
        matches!(self, Entropy | Tss | Pds | Ses | Ext | Trailer)
    }

    /// Returns the name of the layer: `eth`, `pds`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Eth => "eth",
            Layer::Vlan => "vlan",
            Layer::Ipv4 => "ipv4",
            Layer::Ipv6 => "ipv6",
            Layer::Udp => "udp",
            Layer::Entropy => "entropy",
            Layer::Tss => "tss",
            Layer::Pds => "pds",
            Layer::Ses => "ses",
            Layer::Ext => "ext",
            Layer::Payload => "payload",
            Layer::Trailer => "trailer",
        }
    }
}

impl core::fmt::Display for Layer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The layout of a header. `Debug` shows only the name.
#[derive(PartialEq)]
pub struct Layout {
    /// Short name, unique in this crate: `ack_cc`.
    pub name: &'static str,
    /// Name in words: `ACK with congestion state`.
    pub title: &'static str,
    /// The layer of the header.
    pub layer: Layer,
    /// The length in bytes.
    pub bytes: usize,
    /// The rows, in wire order. Rows that share bits exclude each other by [`Row::when`], except a field and its named
    /// parts (`pds.flags`).
    pub rows: &'static [Row],
    /// The rows that carry bits, with the rows of each part instead of the part. [`Layout::places`] returns them.
    pub(crate) places: &'static [Place],
}

/// A row of a layout. `Debug` shows only the name and the bits.
#[derive(PartialEq)]
pub struct Row {
    /// The canonical name, such as `pds.psn`, or `-` for reserved bits.
    pub name: &'static str,
    /// The first bit, counted from the start of the header, most significant bit first.
    pub lo: usize,
    /// The bit after the last bit.
    pub hi: usize,
    /// The kind of value in the bits.
    pub kind: Kind,
    /// The condition under which the row exists. `None` if it always exists.
    pub when: Option<When>,
    /// The meaning in one line.
    pub doc: &'static str,
}

impl core::fmt::Debug for Layout {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Layout({})", self.name)
    }
}

impl core::fmt::Debug for Row {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Row({} {}..{})", self.name, self.lo, self.hi)
    }
}

impl Row {
    /// Returns the number of bits.
    pub const fn width(&self) -> usize {
        self.hi - self.lo
    }
}

/// The kind of value in the bits of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A boolean in one bit.
    Bool,
    /// An unsigned number.
    Uint,
    /// A signed number in two's complement.
    Int,
    /// A code point of a registry.
    Code(&'static Registry),
    /// An Ethernet or IP address.
    Address,
    /// A group of fields that several headers share.
    Part(&'static Layout),
    /// Reserved bits: sent as 0, ignored by the receiver, kept by this crate.
    Reserved,
}

/// The condition of a row: the field `name` of the same header has one of `values`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct When {
    /// The canonical name of the deciding field.
    pub name: &'static str,
    /// The values for which the row exists.
    pub values: Values,
}

/// A set of values of a field of at most six bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values(pub(crate) u64);

/// Creates a set with one value.
pub(crate) const fn is(value: u8) -> Values {
    Values(1 << value)
}

/// Creates a set of all values except one.
pub(crate) const fn all_except(value: u8) -> Values {
    is(value).not()
}

impl Values {
    /// Creates a set of these values. Ignores values above 63.
    pub const fn of(values: &[u8]) -> Self {
        let mut set = 0u64;
        let mut i = 0;
        while i < values.len() {
            if values[i] < 64 {
                set |= 1 << values[i];
            }
            i += 1;
        }
        Values(set)
    }

    /// Returns all values that are not in this set.
    pub const fn not(self) -> Self {
        Values(!self.0)
    }

    /// Returns all values that are in either set.
    pub const fn or(self, other: Self) -> Self {
        Values(self.0 | other.0)
    }

    /// Returns true if `value` is in the set.
    #[inline(always)]
    pub const fn contains(self, value: u128) -> bool {
        value < 64 && self.0 >> value & 1 == 1
    }

    /// Returns the values in the set that a field of `width` bits can have, in ascending order.
    pub fn iter(self, width: usize) -> impl Iterator<Item = u8> + Clone {
        (0u8..64)
            .filter(move |value| u128::from(*value) <= bits::mask(width) && self.contains(u128::from(*value)))
    }
}

/// A row with its position in a header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The row.
    pub row: &'static Row,
    /// The first bit of the part that contains the row. 0 if the header itself contains the row.
    pub base: usize,
    /// The first and end bit of the deciding field, from the start of the header.
    pub(crate) deciding: (usize, usize),
}

impl Place {
    /// Returns the first bit, from the start of the header.
    pub const fn lo(&self) -> usize {
        self.base + self.row.lo
    }

    /// Returns the bit after the last bit, from the start of the header.
    pub const fn hi(&self) -> usize {
        self.base + self.row.hi
    }

    /// Returns the bits in `header`, or `None` if `header` is too short.
    pub fn read(&self, header: &[u8]) -> Option<u128> {
        bits::get_slice(header, self.lo(), self.hi())
    }

    /// Returns true if the condition of the row holds in `header`.
    pub fn exists(&self, header: &[u8]) -> bool {
        let (lo, hi) = self.deciding;
        match self.row.when {
            None => true,
            Some(when) => bits::get_slice(header, lo, hi).is_some_and(|value| when.values.contains(value)),
        }
    }

    /// Writes the bits into `header` without checks of the value. Returns false if `header` is too short.
    pub fn write(&self, header: &mut [u8], value: u128) -> bool {
        bits::put_slice(header, self.lo(), self.hi(), value)
    }

    /// Returns a value that often exposes errors: an assigned code point, an end of the range, or a neighbor of the
    /// current value `now`. `pick` selects the value. `random` is one of the choices.
    ///
    /// ```
    /// use uet_wire::pds::Ack;
    ///
    /// let psn = Ack::LAYOUT.field("pds.cack_psn").unwrap();
    /// let values: Vec<u128> = (0..32).map(|pick| psn.notable(7, pick, 99)).collect();
    /// for value in [0, 1, 6, 8, 99, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
    ///     assert!(values.contains(&value), "{value:#x}");
    /// }
    /// ```
    pub fn notable(&self, now: u128, pick: u64, random: u128) -> u128 {
        let mask = u128::MAX >> (128 - self.row.width());
        let (which, pick) = (pick % 4, (pick / 4) as usize);
        if let (Kind::Code(registry), 1..) = (self.row.kind, which) {
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
}

impl Layout {
    /// Returns this layout with other rows, for a version of the specification that changes them. See
    /// [`Spec::with_layouts`](crate::Spec::with_layouts).
    ///
    /// ```
    /// use uet_wire::layout::{self, Kind, Layout, Row};
    /// use uet_wire::pds::{Prologue, Uud};
    ///
    /// const ROWS: &[Row] = &[
    ///     Row { name: "prologue", lo: 0, hi: 16, kind: Kind::Part(Prologue::LAYOUT), when: None, doc: "" },
    ///     Row { name: "pds.flow", lo: 16, hi: 32, kind: Kind::Uint, when: None, doc: "a flow label" },
    /// ];
    /// static UUD: Layout = Uud::LAYOUT.revised(ROWS, &layout::places::<{ layout::count(ROWS) }>(ROWS));
    /// assert_eq!(UUD.field("pds.flow").map(|place| place.lo()), Some(16));
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if a row ends after the header. In a constant, the panic is a compile error.
    pub const fn revised(&self, rows: &'static [Row], places: &'static [Place]) -> Self {
        let mut i = 0;
        while i < places.len() {
            assert!(places[i].hi() <= self.bytes * 8, "a row ends beyond the header");
            i += 1;
        }
        Layout { name: self.name, title: self.title, layer: self.layer, bytes: self.bytes, rows, places }
    }

    /// Returns all rows that carry bits, in wire order, including rows of parts and reserved rows.
    pub fn places(&'static self) -> impl DoubleEndedIterator<Item = Place> + Clone {
        self.places.iter().copied()
    }

    /// Returns all rows with a name, in wire order, including rows of parts.
    pub fn fields(&'static self) -> impl Iterator<Item = Place> + Clone {
        self.places().filter(|place| place.row.kind != Kind::Reserved)
    }

    /// Returns the rows that divide the bits of a header among themselves: all [`places`](Self::places) except those
    /// with [parts](Self::has_parts), such as `pds.flags`. In every header, those that [exist](Place::exists) contain
    /// each bit once.
    ///
    /// ```
    /// use uet_wire::pds::Ack;
    ///
    /// let tiles = Ack::LAYOUT.tiles().map(|place| Ack::LAYOUT.key(&place).to_string());
    /// assert_eq!(tiles.skip(1).take(3).collect::<Vec<_>>(), ["pds.next_hdr", "ack@9:1", "pds.flags.m"]);
    /// ```
    pub fn tiles(&'static self) -> impl Iterator<Item = Place> + Clone {
        self.places().filter(|place| !self.has_parts(place))
    }

    /// Returns true if other rows divide the bits of this row: `pds.flags` has `pds.flags.syn`, or only reserved bits.
    pub fn has_parts(&'static self, place: &Place) -> bool {
        let is_part = |other: &Place| {
            let is_smaller = other.row.width() < place.row.width() || place.row.kind != other.row.kind;
            place.lo() <= other.lo() && other.hi() <= place.hi() && is_smaller
        };
        let is_whole = place.row.when.is_none() && place.row.kind != Kind::Reserved;
        is_whole && self.places.iter().any(is_part)
    }

    /// Returns the first place with this field name.
    pub fn field(&'static self, name: &str) -> Option<Place> {
        self.places.iter().find(|place| place.row.name == name && place.row.kind != Kind::Reserved).copied()
    }

    /// Returns the key of a row in maps of fields: its name, or `HEADER@BIT:WIDTH` for reserved bits.
    ///
    /// ```
    /// use uet_wire::pds::Ack;
    ///
    /// let keys = Ack::LAYOUT.places().map(|place| Ack::LAYOUT.key(&place).to_string());
    /// assert_eq!(keys.skip(3).take(2).collect::<Vec<_>>(), ["ack@9:1", "pds.flags.m"]);
    /// ```
    pub fn key(&'static self, place: &Place) -> impl core::fmt::Display + use<> {
        Key { header: self.name, place: *place }
    }

    /// Returns the first row with this [`key`](Layout::key).
    pub fn place(&'static self, key: &str) -> Option<Place> {
        let Some((header, bits)) = key.split_once('@') else { return self.field(key) };
        let (lo, width) = bits.split_once(':')?;
        let (lo, width) = (decimal(lo)?, decimal(width)?);
        let mut reserved = self.places().filter(|place| place.row.kind == Kind::Reserved);
        reserved.find(|place| header == self.name && (place.lo(), place.row.width()) == (lo, width))
    }

    /// Returns the rows that exist in `header`: their condition holds and their bits are present.
    pub fn present(&'static self, header: &[u8]) -> impl Iterator<Item = (Place, u128)> + Clone {
        let existing = self.places.iter().filter(move |place| place.exists(header));
        existing.filter_map(move |place| Some((*place, place.read(header)?)))
    }

    /// Returns the first and end bit of the field with this name. Only for constants, where an unknown name is a
    /// compile error.
    pub(crate) const fn locate(&self, name: &str) -> (usize, usize) {
        let place = known(self.places, name);
        (place.lo(), place.hi())
    }

    /// Returns the deciding row with this name. Only for constants, like [`locate`](Self::locate).
    pub(crate) const fn deciding(&self, name: &str) -> &'static Row {
        known(self.places, name).row
    }

    /// Returns the number of the row with this name that starts at this bit. Only for constants, like
    /// [`locate`](Self::locate).
    pub(crate) const fn number(&self, name: &str, lo: usize) -> usize {
        let mut i = 0;
        while !(same(self.rows[i].name, name) && self.rows[i].lo == lo) {
            i += 1;
        }
        i
    }

    /// Returns the conditional rows that a field within these bits decides on: bit i for row i. Only for constants, like
    /// [`locate`](Self::locate).
    pub(crate) const fn dependent_rows(&self, lo: usize, hi: usize) -> u32 {
        let (mut rows, mut i) = (0, 0);
        while i < self.rows.len() {
            if let Some(when) = self.rows[i].when {
                let deciding = self.locate(when.name);
                if lo <= deciding.0 && deciding.1 <= hi {
                    rows |= 1 << i;
                }
            }
            i += 1;
        }
        rows
    }
}

const fn known(places: &[Place], name: &str) -> Place {
    match find(places, name) {
        Some(place) => place,
        None => panic!("a condition names a field that the header does not have"),
    }
}

/// Returns the first place with this field name.
pub(crate) const fn find(places: &[Place], name: &str) -> Option<Place> {
    let mut i = 0;
    while i < places.len() {
        if same(places[i].row.name, name) {
            return Some(places[i]);
        }
        i += 1;
    }
    None
}

/// Returns the number of [`places`] of these rows.
pub const fn count(rows: &[Row]) -> usize {
    let (mut count, mut i) = (0, 0);
    while i < rows.len() {
        count += match rows[i].kind {
            Kind::Part(part) => part.places.len(),
            _ => 1,
        };
        i += 1;
    }
    count
}

/// Returns the rows that carry bits, with the rows of each part instead of the part. Computed once per header at
/// compile time. Validation and printing walk these rows.
///
/// # Panics
///
/// Panics if there are no rows, if `N` is not their [`count`], or if a condition names an unknown field.
pub const fn places<const N: usize>(rows: &'static [Row]) -> [Place; N] {
    let mut all = [Place { row: &rows[0], base: 0, deciding: (0, 0) }; N];
    let (mut end, mut i) = (0, 0);
    while i < rows.len() {
        let row = &rows[i];
        if let Kind::Part(part) = row.kind {
            let mut j = 0;
            while j < part.places.len() {
                let Place { row: inner, base, deciding: (lo, hi) } = part.places[j];
                all[end] = Place { row: inner, base: base + row.lo, deciding: (lo + row.lo, hi + row.lo) };
                end += 1;
                j += 1;
            }
        } else {
            all[end].row = row;
            end += 1;
        }
        i += 1;
    }
    // A field of a part may decide about the header's own rows.
    while end > 0 {
        end -= 1;
        if let (Some(when), (0, 0)) = (all[end].row.when, all[end].deciding) {
            // An unknown name is a compile error at the row: see `header::check`.
            if let Some(place) = find(&all, when.name) {
                all[end].deciding = (place.lo(), place.hi());
            }
        }
    }
    all
}

/// Parses a number as [`Layout::key`] writes it. Each key has only one spelling, so a map cannot contain a field twice.
fn decimal(digits: &str) -> Option<usize> {
    let canonical = digits == "0" || !digits.starts_with(['0', '+']);
    if canonical { digits.parse().ok() } else { None }
}

struct Key {
    header: &'static str,
    place: Place,
}

impl core::fmt::Display for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.place.row.kind {
            Kind::Reserved => write!(f, "{}@{}:{}", self.header, self.place.lo(), self.place.row.width()),
            _ => f.write_str(self.place.row.name),
        }
    }
}

pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    // Different names usually differ at the end.
    let mut i = a.len();
    while i > 0 {
        i -= 1;
        if a[i] != b[i] {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(name: &'static str, lo: usize, hi: usize, kind: Kind, when: Option<When>) -> Row {
        Row { name, lo, hi, kind, when, doc: "" }
    }

    const fn layout(name: &'static str, rows: &'static [Row], places: &'static [Place]) -> Layout {
        Layout { name, title: "", layer: Layer::Pds, bytes: 8, rows, places }
    }

    const PART_ROWS: &[Row] = &[
        row("t.on", 0, 1, Kind::Bool, None),
        row("t.value", 8, 16, Kind::Uint, Some(When { name: "t.on", values: is(1) })),
    ];
    const PART: &Layout = &layout("part", PART_ROWS, &places::<{ count(PART_ROWS) }>(PART_ROWS));
    const ROWS: &[Row] =
        &[row("t.before", 0, 32, Kind::Uint, None), row("part", 32, 48, Kind::Part(PART), None)];
    const WHOLE: &Layout = &layout("whole", ROWS, &places::<{ count(ROWS) }>(ROWS));
    const OUTER_ROWS: &[Row] = &[
        row("t.first", 0, 8, Kind::Uint, None),
        row("whole", 8, 56, Kind::Part(WHOLE), None),
        row("t.last", 56, 64, Kind::Uint, Some(When { name: "t.on", values: is(1) })),
    ];
    const OUTER: &Layout = &layout("outer", OUTER_ROWS, &places::<{ count(OUTER_ROWS) }>(OUTER_ROWS));

    #[test]
    fn a_condition_may_name_a_field_of_a_part_of_a_part() {
        assert_eq!(OUTER.locate("t.on"), (40, 41));
        let has_last = |header: &[u8]| OUTER.present(header).any(|(place, _)| place.row.name == "t.last");
        assert!(has_last(&[0, 0, 0, 0, 0, 0x80, 0, 0]));
        assert!(!has_last(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff]));
    }

    #[test]
    fn tiles_contain_each_bit_once() {
        for (layout, byte) in ALL.iter().flat_map(|layout| (0..=u8::MAX).map(move |byte| (layout, byte))) {
            let header = [byte; 64];
            let existing = || layout.tiles().filter(|place| place.exists(&header));
            for bit in 0..layout.bytes * 8 {
                let here = existing().filter(|place| (place.lo()..place.hi()).contains(&bit));
                assert_eq!(here.count(), 1, "bit {bit} of {} with bytes {byte:#x}", layout.name);
            }
        }
    }

    #[test]
    fn a_set_holds_values_of_six_bits() {
        assert_eq!(Values::of(&[0, 63, 64, 255]), is(0).or(is(63)));
        assert!(!Values::of(&[1, 2]).contains(0) && Values::of(&[1, 2]).contains(2));
    }

    #[test]
    fn a_key_has_one_spelling() {
        let ack = crate::pds::Ack::LAYOUT;
        assert_eq!(ack.place("ack@9:1").map(|place| place.lo()), Some(9));
        for key in ["ack@09:1", "ack@9:01", "ack@+9:1", "ack@9:", "ack@:1", "nack@9:1"] {
            assert_eq!(ack.place(key), None, "{key}");
        }
    }

    #[test]
    fn a_condition_moves_with_the_part_that_it_stands_in() {
        let names = |header: &[u8]| WHOLE.present(header).map(|(place, _)| place.row.name).last();
        assert_eq!(WHOLE.field("t.value").map(|place| (place.lo(), place.hi())), Some((40, 48)));
        assert_eq!(names(&[0xff, 0, 0, 0, 0x80, 7, 0, 0]), Some("t.value"));
        assert_eq!(names(&[0xff, 0, 0, 0, 0x00, 7, 0, 0]), Some("t.on"));
        assert_eq!(names(&[0, 0, 0, 0, 0x80, 7]), Some("t.value"));
        assert_eq!(names(&[0, 0, 0, 0, 0x80]), Some("t.on"), "its bits are not there");
    }
}
