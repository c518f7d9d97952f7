//! The operations against the tables: no header and no field is left out of the proofs.

use uet_proofs::headers::{COVERED, OPERATIONS};
use uet_wire::layout::{self, Kind};

#[test]
fn every_field_of_every_header_is_in_an_operation() {
    let covered = COVERED.iter().map(|(layout, _)| layout.name);
    assert!(
        covered.eq(layout::ALL.iter().map(|layout| layout.name)),
        "uet-wire/proofs/src/headers.rs has not the headers of layout::ALL in their order"
    );
    for (layout, covered) in COVERED {
        let rows = layout.rows.iter().filter(|row| row.kind != Kind::Reserved).count();
        assert_eq!(rows, *covered, "{}", layout.name);
    }
}

/// The operation of a header copies it field by field through accessors and setters, then emits it whole.
#[test]
fn the_operations_do_something() {
    for ((layout, _), (_, run)) in COVERED.iter().zip(OPERATIONS) {
        let header = vec![0x5a; layout.bytes];
        let mut buffer = vec![0; layout.bytes];
        run(&header, &mut buffer);
        assert_eq!(buffer, header, "{}", layout.name);
    }
}
