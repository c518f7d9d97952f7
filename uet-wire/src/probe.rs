//! Compares the typed accessors and setters of every header with its table.
//!
//! `header!` makes a [`Probe`] for each row, so this module tests every header in the list of headers.

use crate::bits::{get, mask};
use crate::every_header::every_header;
use crate::layout::{self, Kind, Layout, Place};
use crate::pds::{Request, RequestCc, RequestMut};
use crate::registry::{Opcode, Registry, Status};
use crate::ses::Std;
use crate::validate::Judged;
use crate::value::Value;
use crate::{Version, WriteError, outer, pds, ses, trailer, tss};
use ::proptest::prelude::*;
use std::vec::Vec;

/// The accessor and the setter of one row, without their types.
pub(crate) struct Probe {
    pub(crate) field: &'static str,
    pub(crate) lo: usize,
    pub(crate) hi: usize,
    /// Reads the row with the accessor and returns its bits.
    pub(crate) get: fn(&[u8]) -> Option<u128>,
    /// Writes a value with these bits through the setter.
    pub(crate) set: fn(&mut [u8], u128) -> Result<(), WriteError>,
    /// The largest value of the row's type.
    pub(crate) largest: u128,
}

/// Makes the probes of a header.
macro_rules! header {
    ($Name:ident [$($row:tt)*]) => {
        impl $Name {
            /// Returns the accessors and setters of the rows, for the test that compares them with the table.
            pub(crate) fn probes() -> std::vec::Vec<$crate::probe::Probe> {
                let mut probes = std::vec::Vec::new();
                $($crate::probe::probe! { probes $Name $row })*
                probes
            }
        }
    };
}
pub(crate) use header;

/// Makes the probe of a row.
macro_rules! probe {
    ($probes:ident $Name:ident ($field:literal $lo:literal $hi:literal [] $when:tt $doc:tt)) => {};
    (
        $probes:ident $Name:ident
        ($field:literal $lo:literal $hi:literal [$get:ident: $ty:ty $(as $PartMut:ident)?] [$($deciding:literal $values:expr)?] $doc:tt)
    ) => {
        $probes.push($crate::probe::Probe {
            field: $field,
            lo: $lo,
            hi: $hi,
            get: |bytes| {
                let header = $Name::parse(bytes).unwrap().0;
                $crate::probe::probe!(@map $crate::probe::probe!(@got header.$get(), $($PartMut)?), |value| $crate::probe::raw(value, $hi - $lo), $($deciding)?)
            },
            set: |bytes, raw| {
                let header = $Name::parse_mut(bytes).unwrap().0;
                let value: $ty = $crate::probe::probe!(@value raw, $hi - $lo, $($PartMut)?);
                header.$get($crate::probe::probe!(@argument value, $($PartMut)?)).done().map(|_| ())
            },
            largest: $crate::probe::probe!(@largest $ty, $hi - $lo, $($PartMut)?),
        });
    };
    (@got $got:expr,) => { $got };
    (@got $got:expr, $PartMut:ident) => { $got.copied() };
    (@map $got:expr, $raw:expr,) => { Some($got).map($raw) };
    (@map $got:expr, $raw:expr, $sel:literal) => { $got.map($raw) };
    (@value $raw:ident, $width:expr,) => { $crate::probe::value($raw, 128) };
    (@value $raw:ident, $width:expr, $PartMut:ident) => { $crate::probe::value($raw, $width) };
    (@argument $value:ident,) => { $value };
    (@argument $value:ident, $PartMut:ident) => { |part| part.copy_from(&$value) };
    (@largest $ty:ty, $width:expr,) => { $crate::probe::raw($crate::probe::value::<$ty>(u128::MAX, 128), 128) };
    (@largest $ty:ty, $width:expr, $PartMut:ident) => { $crate::bits::mask($width) };
}
pub(crate) use probe;

/// Returns the bits of a value, right-aligned.
pub(crate) fn raw(value: impl Value, width: usize) -> u128 {
    let mut bytes = [0; 16];
    assert!(value.write(&mut bytes, 0, width));
    get(&bytes, 0, width)
}

/// Returns the value with these bits, truncated to its type.
pub(crate) fn value<V: Value>(raw: u128, width: usize) -> V {
    V::read(&(raw << (128 - width)).to_be_bytes(), 0, width)
}

macro_rules! probes {
    ([] $($layer:ident::$Name:ident)*) => {
        /// Returns the layout and the probes of every header.
        fn all() -> Vec<(&'static Layout, Vec<Probe>)> {
            Vec::from([$(($layer::$Name::LAYOUT, $layer::$Name::probes())),*])
        }

        /// Returns true if the header with this layout is clean.
        fn is_clean(layout: &'static Layout, bytes: &[u8], version: Version) -> bool {
            $(if layout.name == $layer::$Name::LAYOUT.name {
                return $layer::$Name::parse(bytes).unwrap().0.is_clean(version.spec());
            })*
            unreachable!("every header is here")
        }
    };
}

every_header!(probes);

#[test]
fn every_row_of_every_header_has_a_probe() {
    for (layout, probes) in all() {
        let rows = layout.rows.iter().filter(|row| row.kind != Kind::Reserved);
        let rows: Vec<_> = rows.map(|row| (row.name, row.lo, row.hi)).collect();
        let probed: Vec<_> = probes.iter().map(|probe| (probe.field, probe.lo, probe.hi)).collect();
        assert_eq!(rows, probed, "{}", layout.name);
    }
}

/// Returns the row of `probe`.
fn place_of(layout: &'static Layout, probe: &Probe) -> Place {
    let row = layout.rows.iter().find(|row| (row.name, row.lo) == (probe.field, probe.lo)).unwrap();
    // A part is not a place, but its rows are. A part always exists.
    let own = layout.places().find(|place| core::ptr::eq(place.row, row));
    own.unwrap_or(Place { row, base: 0, deciding: (0, 0) })
}

/// Returns the bits of the probed row in `header` if its condition holds.
fn by_table(layout: &'static Layout, probe: &Probe, header: &[u8]) -> Option<u128> {
    let place = place_of(layout, probe);
    if place.exists(header) { place.read(header) } else { None }
}

proptest! {
    #[test]
    fn accessors_give_what_the_table_says(bytes: [u8; 64]) {
        for (layout, probes) in all() {
            let header = &bytes[..layout.bytes];
            for probe in probes {
                prop_assert_eq!((probe.get)(header), by_table(layout, &probe, header), "{}", probe.field);
            }
        }
    }

    #[test]
    fn setters_write_their_own_bits_or_say_why_not(bytes: [u8; 64], value: u128) {
        for (layout, probes) in all() {
            let header = &bytes[..layout.bytes];
            for probe in probes {
                let width = probe.hi - probe.lo;
                // A value that fits, the largest that fits, and the smallest that does not fit.
                let smallest_too_wide = mask(width).checked_add(1).filter(|value| *value <= probe.largest);
                for value in [Some(value & mask(width)), Some(mask(width)), smallest_too_wide].into_iter().flatten() {
                    let mut written = header.to_vec();
                    let result = (probe.set)(&mut written, value);
                    let mut expected = header.to_vec();
                    let place = place_of(layout, &probe);
                    let exists = by_table(layout, &probe, header).is_some();
                    let outcome = match place.row.when {
                        Some(when) if !exists => {
                            let decider = layout.deciding(when.name);
                            let absent = WriteError::absent(probe.field, decider, when.values);
                            let mut whole = [0; 64];
                            whole[..header.len()].copy_from_slice(header);
                            Err(absent.in_header(layout, &whole))
                        }
                        _ if value > mask(width) => Err(WriteError::too_wide(probe.field, width)),
                        _ => {
                            prop_assert!(place.write(&mut expected, value));
                            Ok(())
                        }
                    };
                    prop_assert_eq!(result, outcome, "{}", probe.field);
                    prop_assert_eq!(&written, &expected, "{}", probe.field);
                }
            }
        }
    }
}

fn is_known(registry: &Registry, code: u128, version: Version) -> bool {
    matches!(registry.status(code as u8, version), Status::Assigned | Status::Vendor)
}

/// Computes the result of [`is_clean`] from the table.
fn is_clean_by_table(layout: &'static Layout, header: &[u8], version: Version) -> bool {
    layout.present(header).all(|(place, value)| match place.row.kind {
        Kind::Reserved => value == 0,
        Kind::Code(registry) => is_known(registry, value, version),
        _ => true,
    })
}

/// Tests every reserved bit and every code point of this form of a header, one at a time.
fn assert_judged_by_table(layout: &'static Layout, header: &mut [u8], version: Version) {
    for place in layout.places() {
        let before = place.read(header).unwrap();
        let values: Vec<u128> = match place.row.kind {
            Kind::Reserved => (0..place.row.width()).map(|bit| 1 << bit).collect(),
            Kind::Code(registry) => (0..1 << registry.width).collect(),
            _ => Vec::from([mask(place.row.width())]),
        };
        for value in values {
            place.write(header, value);
            let expected = is_clean_by_table(layout, header, version);
            assert_eq!(is_clean(layout, header, version), expected, "{} {header:x?}", layout.name);
        }
        place.write(header, before);
    }
}

#[test]
fn each_reserved_bit_and_each_code_point_decides_whether_a_header_is_clean() {
    for (layout, version) in
        layout::ALL.iter().flat_map(|layout| Version::ALL.iter().map(move |v| (layout, *v)))
    {
        let mut clean = [0; 64];
        let header = &mut clean[..layout.bytes];
        for place in layout.fields() {
            if let Kind::Code(registry) = place.row.kind {
                place.write(header, (0..).find(|code| is_known(registry, *code, version)).unwrap());
            }
        }
        assert!(is_clean(layout, header, version), "{}", layout.name);
        assert_judged_by_table(layout, header, version);
        let mut forms: Vec<_> = layout.places().filter_map(|place| Some(place.row.when?.name)).collect();
        forms.dedup();
        for deciding in forms.into_iter().filter_map(|name| layout.field(name)) {
            for value in 0..1 << deciding.row.width() {
                deciding.write(header, value);
                assert_judged_by_table(layout, header, version);
            }
        }
    }
}

#[test]
fn the_first_error_is_the_one_that_is_told() {
    let start = || Request::rud().syn(true);
    let failing = |writer: RequestMut| writer.done().unwrap_err().field();
    assert_eq!(failing(start().pdc_info(16).dpdcid(crate::PdcId(1))), Some("pds.pdc_info"));
    assert_eq!(failing(start().dpdcid(crate::PdcId(1)).pdc_info(16)), Some("pds.dpdcid"));
    // A later call may decide that a field is absent, also from within a part.
    assert_eq!(failing(Request::rud().dpdcid(crate::PdcId(1)).syn(true)), Some("pds.dpdcid"));
    let first = Std::build(Opcode::UET_WRITE).head(|head| head.som(true)).header_data(1);
    let error = first.head(|head| head.som(false)).done().unwrap_err();
    assert_eq!(error.field(), Some("ses.header_data"));
    assert!(Request::rud().dpdcid(crate::PdcId(1)).syn(false).done().is_ok());
    // Also from a part.
    let in_part = RequestCc::rud().request(|request| request.pdc_info(0));
    let error = in_part.credit_target(crate::Units24::default()).done().unwrap_err();
    let text = std::format!("{error}");
    assert_eq!(text, "field `pds.flags.syn` is 0, but `pds.pdc_info` requires 1");
}
