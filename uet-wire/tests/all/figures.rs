//! The drawing of every header in the documentation, so that reviews show changes of a layout. `UPDATE=1 cargo test
//! -p uet-wire --test all figures` updates the drawings.

use std::{env, fs};
use uet_wire::{draw, layout};

#[test]
fn drawings_are_those_in_the_documentation() {
    for layout in layout::ALL {
        let file = format!("{}/figures/{}.txt", env!("CARGO_MANIFEST_DIR"), layout.name);
        let drawing = draw(layout).to_string();
        if env::var_os("UPDATE").is_some() {
            fs::write(&file, &drawing).unwrap();
        }
        let committed = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(committed, drawing, "{file}");
    }
}
