//! The drawing of every header, as it stands in the documentation: a change of a layout is seen in review.
//! `UPDATE=1 cargo test -p uet-wire --test all figures` writes the drawings anew.

use std::fs;
use std::path::Path;
use uet_wire::{draw, layout};

#[test]
fn drawings_are_those_in_the_documentation() {
    for layout in layout::ALL {
        let file = format!("figures/{}.txt", layout.name);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
        let drawing = draw(layout).to_string();
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &drawing).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == drawing,
            "{file} is out of date: UPDATE=1 cargo test -p uet-wire --test all figures\n{drawing}"
        );
    }
}
