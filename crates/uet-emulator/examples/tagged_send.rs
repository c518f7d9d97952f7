//! Sends to the buffer posted with these match bits: `cargo run -p uet-emulator --example tagged_send`.

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

    let odd = net[b].receive(index, Receive::tagged(100, 1))?;
    let even = net[b].receive(index, Receive::tagged(100, 2))?;
    for (tag, text) in [(2, "even"), (1, "odd")] {
        let send = Work::Send { tag: Some(tag), data: Bytes::from(text) };
        net[a].post(Operation::new(peer, send))?;
    }
    for (receive, text) in [(odd, "odd"), (even, "even")] {
        let received = net.received(b, receive).ok_or("nothing has come")?;
        println!("{}", String::from_utf8_lossy(&received.data));
        assert_eq!(received.data, text);
    }
    Ok(())
}
