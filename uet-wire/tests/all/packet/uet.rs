//! Packets that start with UET.

use uet_wire::Uet;
use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;

#[test]
fn the_first_byte_tells_what_is_cut() {
    let cut = |bytes: &[u8]| {
        let error = Uet::parse(bytes).unwrap_err();
        (error.header().name, error.field(), error.offset(), error.needed())
    };
    assert_eq!(cut(&[]), ("prologue", "pds.type", 0, 1));
    assert_eq!(cut(&[2 << 3]), ("request", "pds.next_hdr", 0, 2));
    assert_eq!(cut(&[11 << 3]), ("control", "pds.ctl_type", 0, 2));
    assert_eq!(cut(&[1 << 3]), ("tss", "tss.sdi", 1, 4));
    // If only reserved bits are missing, the error names the header.
    assert_eq!(cut(&[6 << 3, 0, 0]), ("uud", "uud", 2, 4));
}

#[test]
fn a_cut_compare_and_swap_is_no_short_atomic() {
    let request = Request::rud().done().unwrap();
    let write = Std::build(Opcode::UET_ATOMIC).done().unwrap();
    let mut packet = [&request.bytes()[..], write.bytes()].concat();
    packet[1] |= 0x80;
    packet[0] |= 1;
    for (opcode, expected) in [(0x0d, "ses.compare_value"), (2, "atomic")] {
        let bytes = [&packet[..], &[opcode, 7, 0]].concat();
        assert_eq!(Uet::parse(&bytes).unwrap_err().field(), expected);
    }
}
