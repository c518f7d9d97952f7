//! Edits a packet in place, as a switch and as a sender do: `cargo run --example edit`.

use uet_wire::pds::Request;
use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = Request::rud().psn(Psn(7)).done()?;
    let frame = FrameBuilder::new(request).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).ecn(1);
    let mut bytes = [0; 40];
    frame.emit(&mut bytes)?;

    // The checksums and the CRC trailer follow each change of a `PacketMut`. Those of a header's `parse_mut` they do not see.
    let options = Options::default();
    let mut packet = PacketMut::new(Start::Ip, &mut bytes, &options)?;
    packet.mark_ce()?;
    packet.retransmit(Psn(5))?;
    packet.set_entropy(0xcafe)?;

    // An edit that fails changes nothing.
    let before = packet.bytes().to_vec();
    let error = packet.set_dscp(64).unwrap_err();
    println!("{error}");
    assert_eq!(packet.bytes(), before);

    // A header of its own: the writer of `parse_mut` writes all fields or none.
    let at = packet.offsets().pds.ok_or("no PDS header")?;
    Request::parse_mut(&mut bytes[at..])?.0.ar(true).psn(Psn(8)).done()?;

    let packet = Packet::parse(Start::Ip, &bytes, &options)?;
    println!("{packet}");
    let request = packet.uet.pds.and_then(|pds| pds.request()).ok_or("no request")?;
    assert!(request.ar() && request.retx());
    assert_eq!((request.psn(), packet.entropy_value()), (Psn(8), Some(0xcafe)));
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
