//! Receives three sends: one arrives before its buffer, one is truncated, one does not match:
//! `cargo run -p uet-emulator --example receive`.

use bytes::Bytes;
use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Endpoint, Operation, Peer, Process, Receive, ResourceIndex, Work};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut net = Network::new(1);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0 };
    let peer = Peer::relative([10, 0, 0, 2], 101, 2);

    net[b].open(Endpoint { process, start: 0, count: 1 })?;
    let send = |text: &'static str| Work::Send { tag: None, data: Bytes::from(text) };
    let early = net[a].post(Operation::new(peer, send("before its buffer")))?;
    net.operation(a, early).ok_or("it does not end")?.map_err(|fault| format!("{fault:?}"))?;
    let receive = net[b].receive(index, Receive::new(6))?;
    let received = net.received(b, receive).ok_or("nothing has come")?;
    println!("{}", String::from_utf8_lossy(&received.data));
    assert_eq!(received.data, "before");

    // This receive accepts only sends from rank 7.
    let choosy = net[b].receive(index, Receive { initiator: Some(7), ..Receive::new(100) })?;
    for (initiator, text) in [(6, "from six"), (7, "from seven")] {
        net[a].post(Operation::new(Peer { initiator, ..peer }, send(text)))?;
    }
    let received = net.received(b, choosy).ok_or("nothing has come")?;
    println!("{}", String::from_utf8_lossy(&received.data));
    assert_eq!(received.data, "from seven");
    Ok(())
}
