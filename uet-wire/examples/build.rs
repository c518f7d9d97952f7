//! Builds a packet in a buffer, without allocation: `cargo run -p uet-wire --example build`.

use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, PsnOffset, Start};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The first packet of a context carries SYN. Without an ACK so far, clear_psn is the PSN before its own: an offset
    // of 0, the default, claims that this packet is acknowledged.
    let request = Request::rud()
        .ar(true)
        .syn(true)
        .clear_psn_offset(-1)
        .psn(Psn(0x12000))
        .spdcid(PdcId(0x4001))
        .psn_offset(PsnOffset::ZERO)
        .done()?;
    let write = Std::build(Opcode::UET_WRITE)
        .head(|head| head.som(true).eom(true))
        .message_id(1)
        .address(|address| address.job_id(101).pid_on_fep(2).resource_index(10))
        .memory_key(0xacce5)
        .request_length(5)
        .done()?;

    // The builder computes next headers, lengths and checksums.
    let mut buffer = [0; 256];
    let length = FrameBuilder::new(request)
        .ses(write)
        .payload(b"hello")
        .udp(0xbeef)
        .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
        .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .emit(&mut buffer)?;

    let packet = Packet::parse(Start::Eth, &buffer[..length], &Options::default())?;
    println!("{length} bytes: {packet}");
    assert_eq!(packet.uet.payload, b"hello");
    Ok(())
}

#[test]
fn example_runs() {
    main().unwrap();
}
