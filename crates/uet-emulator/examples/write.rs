//! Writes three packets into the memory of another NIC over a network that loses one:
//! `cargo run -p uet-emulator --example write`.

use bytes::Bytes;
use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut net = Network::new(1);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0 };
    let peer = Peer::relative([10, 0, 0, 2], 101, 2);
    net.fabric().impair("drop request 2".parse()?);

    let region = Region { key: Key(7), base: 0, access: Access::WRITE, data: vec![0; 12_000] };
    let region = net[b].expose(index, region)?;

    let data: Bytes = (0..12_000).map(|i| (i % 251) as u8).collect();
    let write =
        net[a].post(Operation::new(peer, Work::Write { key: Key(7), offset: 0, data: data.clone() }))?;
    let done = net.operation(a, write).ok_or("it does not end")?.map_err(|fault| format!("{fault:?}"))?;

    println!("{} bytes after {:?}", done.length, net.now());
    assert_eq!(net[b].memory(region), Some(&data[..]));
    Ok(())
}
