//! Sends to the next posted buffer: `cargo run -p uet-emulator --example send`.

use bytes::Bytes;
use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Operation, Peer, Process, Receive, ResourceIndex, Work};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut net = Network::new(1);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
    let process = Process::Relative { job: 101, pid: 2 };
    let index = ResourceIndex { process, index: 0 };
    let peer = Peer::relative([10, 0, 0, 2], 101, 2);

    let first = net[b].receive(index, Receive::new(100))?;
    let second = net[b].receive(index, Receive::new(100))?;
    for text in ["one", "two"] {
        let send = Work::Send { tag: None, data: Bytes::from(text) };
        net[a].post(Operation { header_data: Some(text.len() as u64), ..Operation::new(peer, send) })?;
    }
    for (receive, text) in [(first, "one"), (second, "two")] {
        let received = net.received(b, receive).ok_or("nothing has come")?;
        println!("{} {:?}", String::from_utf8_lossy(&received.data), received.header_data);
        assert_eq!(received.data, text);
    }
    Ok(())
}
