//! Edits a packet in place, as a switch and as a sender do: `cargo run -p uet-wire --example edit`.

use uet_wire::pds::Request;
use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start, TrailerKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = Request::rud().psn(Psn(7)).done()?;
    let frame = FrameBuilder::new(request).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).ecn(1).crc();
    let mut bytes = [0; 44];
    frame.emit(&mut bytes)?;

    // Each edit of a `PacketMut` updates the checksums and the CRC trailer.
    let options = Options::default().trailer(TrailerKind::Crc);
    let mut packet = PacketMut::new(Start::Ip, &mut bytes, &options)?;
    packet.mark_ce()?;
    packet.retransmit(Psn(5))?;
    packet.set_entropy(0xcafe)?;

    // An edit that fails changes nothing.
    let before = packet.bytes().to_vec();
    let error = packet.set_dscp(64).unwrap_err();
    println!("{error}");
    assert_eq!(packet.bytes(), before);

    // For other edits, a header's `parse_mut` returns a writer, which writes all fields or none.
    // It leaves the CRC as it is.
    let at = packet.offsets().pds.ok_or("no PDS header")?;
    Request::parse_mut(&mut packet.bytes_mut()[at..])?.0.ar(true).psn(Psn(8)).done()?;
    packet.refresh_crc()?;

    let packet = Packet::parse(Start::Ip, &bytes, &options)?;
    println!("{packet}");
    assert!(packet.crc_check().ok_or("no CRC")?.ok());
    let request = packet.uet.pds.and_then(|pds| pds.request()).ok_or("no request")?;
    assert!(request.ar() && request.retx());
    assert_eq!((request.psn(), packet.entropy_value()), (Psn(8), Some(0xcafe)));
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
