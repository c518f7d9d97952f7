//! The drawing of every header in the documentation, so that reviews show changes of a layout. `INSTA_UPDATE=always
//! cargo test -p uet-wire --test all figures` updates the drawings.

use uet_wire::{draw, layout};

#[test]
fn drawings_are_those_in_the_documentation() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../figures");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for layout in layout::ALL {
            let file = format!("{}.txt", layout.name);
            insta::assert_binary_snapshot!(&file, draw(layout).to_string().into_bytes());
        }
    });
}
