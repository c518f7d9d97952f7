//! Replays the articles' write of 16 KiB in four packets and prints its ladder:
//! `cargo run -p uet-emulator --example article`.
//!
//! Arguments name an impairment of the network: `cargo run -p uet-emulator --example article -- drop request 2`.

use bytes::Bytes;
use uet_emulator::{Config, Network, Nic};
use uet_model::PdsParams;
use uet_model::ladder::Ladder;
use uet_model::ses::{Access, Endpoint, Key, Operation, Peer, Process, Region, ResourceIndex, Work};

const INITIATOR: [u8; 4] = [10, 0, 0, 1];
const TARGET: [u8; 4] = [10, 0, 1, 12];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let impairment = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    // The articles' numbers replace random ones.
    let config = |first_pdcid| Config {
        pds: PdsParams {
            start_psn: Some(0x12000),
            first_pdcid,
            event_capacity: 1000,
            ..PdsParams::default()
        },
        ..Config::default()
    };
    let mut net = Network::new(1);
    let a = net.add(Nic::new(INITIATOR, config(0x4001))?);
    let b = net.add(Nic::new(TARGET, config(0x8001))?);
    net.draw(Ladder::new(("initiator", INITIATOR.into()), ("target", TARGET.into())));
    if !impairment.is_empty() {
        net.fabric().impair(impairment.parse()?);
    }

    // Process 2 of job 101 exposes a region in the table of its index 0x00a.
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0x00a };
    net[b].open(Endpoint { process, start: 0, count: 64 })?;
    net[b].set_generation(index, 1)?;
    let region =
        Region { key: Key(0xacce5), base: 0xba5e_add1, access: Access::WRITE, data: vec![0; 16_384] };
    let region = net[b].expose(index, region)?;

    let peer = Peer { index: 0x00a, generation: 1, ..Peer::relative(TARGET, 101, 2) };
    let data: Bytes = (0..16_384).map(|i| (i % 251) as u8).collect();
    let write = Work::Write { key: Key(0xacce5), offset: 0, data: data.clone() };
    let write = net[a].post(Operation { header_data: Some(11), ..Operation::new(peer, write) })?;
    let done = net.operation(a, write).ok_or("it does not end")?;

    print!("{}", net.end_drawing().ok_or("no ladder")?);
    match done {
        Ok(done) => println!("The write has completed: {} bytes.", done.length),
        Err(fault) => println!("The write has failed: {}.", fault.code),
    }
    assert_eq!(net[b].memory(region), Some(&data[..]));
    Ok(())
}
