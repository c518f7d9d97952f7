//! Adds to a number in the memory of another NIC, then swaps it: `cargo run -p uet-emulator --example atomic`.

use bytes::Bytes;
use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Access, AtomicOn, Key, Operand, Operation, Peer, Process, Region, ResourceIndex, Work};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut net = Network::new(1);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0 };
    let peer = Peer::relative([10, 0, 0, 2], 101, 2);

    let region = Region { key: Key(7), base: 0, access: Access::ALL, data: 40u64.to_le_bytes().to_vec() };
    let region = net[b].expose(index, region)?;
    let number =
        |net: &Network| net[b].memory(region).and_then(|data| data.try_into().ok()).map(u64::from_le_bytes);

    let atomic = |opcode, operand, fetch| {
        let on = AtomicOn::Memory { key: Key(7), offset: 0 };
        Operation::new(peer, Work::Atomic { on, opcode, datatype: AtomicDatatype::UINT64, operand, fetch })
    };
    let two = Operand::Elements(Bytes::copy_from_slice(&2u64.to_le_bytes()));
    let sum = net[a].post(atomic(AtomicOpcode::SUM, two, true))?;
    let before = net.operation(a, sum).ok_or("it does not end")?.map_err(|fault| format!("{fault:?}"))?.data;
    println!("{before:?} + 2 = {:?}", number(&net));
    assert_eq!((before.as_ref(), number(&net)), (&40u64.to_le_bytes()[..], Some(42)));

    // The swap replaces 42 with 7.
    let swap = net[a].post(atomic(AtomicOpcode::CSWAP, Operand::Swap { compare: 42, swap: 7 }, false))?;
    net.operation(a, swap).ok_or("it does not end")?.map_err(|fault| format!("{fault:?}"))?;
    assert_eq!(number(&net), Some(7));
    Ok(())
}
