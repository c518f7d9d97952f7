//! Checks the tables for faults that the macro cannot detect.

use uet_wire::layout::{self, Kind, Layout, Place};
use uet_wire::pds::{AckCc, Control, Nack, Pds, Request};
use uet_wire::ses::{Ext, Medium, Ses, Std};

/// Returns every form of a header: bytes for each combination of values of the deciding fields.
fn forms(layout: &'static Layout) -> Vec<Vec<u8>> {
    let mut deciding: Vec<Place> = Vec::new();
    for when in layout.places().filter_map(|place| place.row.when) {
        let place = layout.field(when.name).unwrap_or_else(|| panic!("{}: no {}", layout.name, when.name));
        assert!(place.row.width() <= 6, "{}: {} is too wide to decide", layout.name, when.name);
        if !deciding.contains(&place) {
            deciding.push(place);
        }
    }
    let mut forms = vec![vec![0; layout.bytes]];
    for place in deciding {
        let with_each_value = |form: Vec<u8>| {
            (0..1 << place.row.width()).map(move |value| {
                let mut form = form.clone();
                assert!(place.write(&mut form, value));
                form
            })
        };
        forms = forms.into_iter().flat_map(with_each_value).collect();
    }
    forms
}

#[test]
fn every_header_of_a_layer_is_in_the_list() {
    for layout in Pds::LAYOUTS.iter().chain(Ses::LAYOUTS).chain(Ext::LAYOUTS) {
        assert!(layout::ALL.contains(layout), "src/every_header.rs lacks {}", layout.name);
    }
}

#[test]
fn every_bit_of_every_form_belongs_to_one_row() {
    for layout in layout::ALL {
        for form in forms(layout) {
            let count = |bit: usize, flags: bool| {
                let rows =
                    layout.present(&form).filter(|(place, _)| (place.row.name == "pds.flags") == flags);
                rows.filter(|(place, _)| (place.lo()..place.hi()).contains(&bit)).count()
            };
            for bit in 0..layout.bytes * 8 {
                // `pds.flags` is the only field with named parts. A prologue alone has none of them.
                let in_flags = count(bit, true);
                let in_parts = count(bit, false);
                let alone = in_flags == 1 && layout.bytes == 2;
                assert!(in_flags <= 1, "{}: bit {bit}", layout.name);
                assert_eq!(in_parts, usize::from(!alone), "{}: bit {bit} of {form:02x?}", layout.name);
            }
        }
    }
}

#[test]
fn a_form_has_a_name_once_and_in_the_order_of_the_wire() {
    for layout in layout::ALL {
        for form in forms(layout) {
            let fields = || layout.present(&form).filter(|(place, _)| place.row.kind != Kind::Reserved);
            for (place, _) in fields() {
                let same = fields().filter(|(other, _)| other.row.name == place.row.name).count();
                assert_eq!(same, 1, "{}: {}", layout.name, place.row.name);
            }
            let starts: Vec<usize> = layout.present(&form).map(|(place, _)| place.lo()).collect();
            assert!(starts.is_sorted(), "{}: {starts:?}", layout.name);
        }
    }
}

#[test]
fn what_decides_comes_first_and_always_exists() {
    for layout in layout::ALL {
        for place in layout.places() {
            let Some(when) = place.row.when else { continue };
            let deciding = layout.field(when.name).unwrap();
            assert_eq!(deciding.row.when, None, "{}: {}", layout.name, place.row.name);
            assert!(deciding.hi() <= place.lo(), "{}: {}", layout.name, place.row.name);
            assert!(when.values.iter(deciding.row.width()).count() > 0, "{}: never", place.row.name);
            assert!(deciding.hi() <= 16 * 8, "{}: an error keeps 16 bytes to know its form", place.row.name);
        }
    }
}

#[test]
fn a_cut_names_a_field_that_the_form_has() {
    for layout in [Request::LAYOUT, AckCc::LAYOUT, Std::LAYOUT, Medium::LAYOUT, Nack::LAYOUT, Control::LAYOUT]
    {
        for form in forms(layout) {
            for present in 0..layout.bytes {
                let bytes = &form[..present];
                let error = match layout.name {
                    "request" => Request::parse(bytes).unwrap_err(),
                    "ack_cc" => AckCc::parse(bytes).unwrap_err(),
                    "std" => Std::parse(bytes).unwrap_err(),
                    "medium" => Medium::parse(bytes).unwrap_err(),
                    "nack" => Nack::parse(bytes).unwrap_err(),
                    _ => Control::parse(bytes).unwrap_err(),
                };
                let named = layout.present(&form).filter(|(place, _)| place.row.kind != Kind::Reserved);
                let (first, _) = named.into_iter().find(|(place, _)| place.hi() > present * 8).unwrap();
                assert_eq!(error.field(), first.row.name, "{} of {present} bytes", layout.name);
                assert_eq!((error.offset(), error.present()), (first.lo() / 8, present));
            }
        }
    }
}

#[test]
fn a_key_names_one_row_and_names_of_headers_differ() {
    for (index, layout) in layout::ALL.iter().enumerate() {
        assert!(layout::ALL[..index].iter().all(|other| other.name != layout.name), "{}", layout.name);
        // The serde feature supports this many rows.
        assert!(layout.places().count() <= 48, "{}", layout.name);
        for place in layout.places() {
            assert!((1..=128).contains(&place.row.width()), "{}: {}", layout.name, place.row.name);
            let found = layout.place(&layout.key(&place).to_string()).unwrap();
            assert_eq!((found.row.name, found.row.width()), (place.row.name, place.row.width()));
            if place.row.kind == Kind::Reserved {
                assert_eq!(found.lo(), place.lo());
            } else {
                assert_eq!(layout.place(place.row.name).map(|place| place.row.kind), Some(place.row.kind));
            }
        }
        for wrong in ["", "-", "pds", "pds.psn ", "ack@", "ack@9", "ack@9:", "ack@9:2", "ack@x:1", "nack@8:1"]
        {
            assert_eq!(layout.place(wrong), None, "{}: {wrong:?}", layout.name);
        }
    }
}
