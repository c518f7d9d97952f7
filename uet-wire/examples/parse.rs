//! Parses a packet and prints its fields: `cargo run -p uet-wire --example parse`.

use uet_wire::pds::Pds;
use uet_wire::ses::Ses;
use uet_wire::{Options, Packet, Start};

/// IPv4, UDP, an ACK and a RESPONSE.
const CAPTURED: &[u8] = &[
    0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 17, 0x25, 0xab, 10, 0, 1, 12, 10, 0, 0, 1, // IPv4
    0xbe, 0xef, 0x12, 0xb9, 0, 32, 0, 0, // UDP
    0x3a, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, // ACK
    0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x65, 0x00, 0x00, 0x40, 0x00, // RESPONSE
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packet = Packet::parse(Start::Ip, CAPTURED, &Options::default())?;
    println!("{packet}");

    // Typed: each header has an accessor for each field.
    if let (Some(Pds::Ack(ack)), Some(Ses::Response(response))) = (packet.uet.pds, packet.uet.ses) {
        println!("acknowledged up to {}: {}", ack.cack_psn(), response.head().return_code());
        assert_eq!(ack.cack_psn().0, 0x12003);
        assert_eq!(response.modified_length(), 16_384);
    }

    // As data: each header has a table of its fields.
    for (layout, header) in packet.headers() {
        for (place, value) in layout.present(header) {
            println!("{:24} {}", layout.key(&place), place.display(value));
        }
    }

    // A packet that is cut off gives the fields before the cut, and an error that names the place.
    let (cut, error) = Packet::parse_lax(Start::Ip, &CAPTURED[..45], &Options::default());
    assert!(cut.uet.pds.is_some() && cut.uet.ses.is_none());
    println!("{}", error.ok_or("it is cut off")?);
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
