//! Reads the memory of another NIC: `cargo run -p uet-emulator --example read`.

use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut net = Network::new(1);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0 };
    let peer = Peer::relative([10, 0, 0, 2], 101, 2);

    let region = Region { key: Key(7), base: 0, access: Access::READ, data: b"there to be read".to_vec() };
    net[b].expose(index, region)?;

    let read = net[a].post(Operation::new(peer, Work::Read { key: Key(7), offset: 12, length: 4 }))?;
    let done = net.operation(a, read).ok_or("it does not end")?.map_err(|fault| format!("{fault:?}"))?;
    println!("{}", String::from_utf8_lossy(&done.data));
    assert_eq!(done.data, "read");

    // Read-only memory cannot be written.
    let write = Work::Write { key: Key(7), offset: 0, data: "no".into() };
    let write = net[a].post(Operation::new(peer, write))?;
    let fault = net.operation(a, write).ok_or("it does not end")?.err().ok_or("it was written")?;
    println!("{}", fault.code);
    Ok(())
}
