//! The stories.

use crate::Story;
use crate::notes::{CLOSE, INCAST, LOSS, RENDEZVOUS, SECURED, TRIMMING, WRITE};
use crate::switch::{self, Captured, Port, Tap};
use bytes::Bytes;
use core::time::Duration;
use std::error::Error;
use uet_emulator::{Config, Nic};
use uet_model::PdsParams;
use uet_model::network::Network;
use uet_model::ses::{
    Access, Key, Operation, OperationId, Peer, Process, Receive, Region, ResourceIndex, Work,
};

type Played = Result<Vec<Captured>, Box<dyn Error>>;

/// The key file of the secured story. It is used for nothing else.
const KEYS: &str = "\
[[domain]]
sdi = 0x00a7e5
mode = \"cluster\"
keys = { 0 = \"6c6561726e20666f72206e6f7468696e6720656c73652c206e65766572207573\" }
";

/// Returns all stories.
pub fn stories() -> [Story; 7] {
    let story = |name, about, notes, play| Story { name, about, notes, play, snap: 65_535, keys: None };
    [
        story("write", "A write of 16 KiB in four packets, at its initiator", WRITE, write),
        story("loss", "A write of 48 KiB that loses two packets, at its initiator", LOSS, loss),
        story(
            "trimming",
            "A write of 32 KiB of which switches trim two packets, at its target",
            TRIMMING,
            trimming,
        ),
        Story {
            snap: 160,
            ..story("incast", "Four writes of 64 KiB to one target, at the target", INCAST, incast)
        },
        story("close", "A target requests a close, and an initiator closes", CLOSE, close),
        story("rendezvous", "A rendezvous send of 16 KiB, at its sender", RENDEZVOUS, rendezvous),
        Story {
            keys: Some(KEYS),
            ..story("secured", "A write of 8 KiB in a secure domain, at its initiator", SECURED, secured)
        },
    ]
}

/// Readable data: numbered lines of 16 bytes.
fn lines(length: usize) -> Bytes {
    (0..length / 16).flat_map(|number| format!("line {number:010}\n").into_bytes()).collect()
}

/// The longest exchange.
const PATIENCE: Duration = Duration::from_millis(1);

/// The index that targets offer.
const INDEX: u16 = 4;

/// The key of their memory.
const KEY: Key = Key(0xfeed);

/// NICs behind a switch.
struct Lab {
    net: Network<Port, Tap>,
    job: u32,
}

impl Lab {
    /// Creates a switch without NICs. The processes belong to this job, and the capture is taken at this address.
    fn new(job: u32, tap: [u8; 4], impairments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut net: Network<Port, Tap> = Network::new(job.into());
        net.observer.address = Some(tap.into());
        for impairment in impairments {
            net.fabric().impair(impairment.parse()?);
        }
        switch::connect(net.fabric());
        Ok(Lab { net, job })
    }

    /// Adds a NIC. Its PDCIDs and PSNs tell its address.
    fn nic(&mut self, address: [u8; 4], pds: PdsParams) -> Result<usize, Box<dyn Error>> {
        let [_, story, _, host] = address;
        let first_pdcid = u16::from(story) << 12 | u16::from(host) << 4;
        let start_psn = Some(u32::from(story) * 10_000 + u32::from(host) * 1000);
        let pds = PdsParams { first_pdcid, start_psn, ..pds };
        Ok(self.net.add(address, Port::new(Nic::new(address, Config { pds, ..Config::default() })?)))
    }

    /// Returns the index of this process.
    fn index(&self, pid: u16) -> ResourceIndex {
        ResourceIndex { process: Process::Relative { job: self.job, pid }, index: INDEX }
    }

    /// Makes process 1 offer memory on a NIC.
    fn expose(&mut self, nic: usize, length: usize) -> Result<(), Box<dyn Error>> {
        let region = Region { key: KEY, base: 0, access: Access::WRITE, data: vec![0; length] };
        let index = self.index(1);
        self.net[nic].nic.expose(index, region)?;
        Ok(())
    }

    /// Posts work for process 1 at this address.
    fn post(&mut self, from: usize, to: [u8; 4], work: Work) -> Result<OperationId, Box<dyn Error>> {
        let peer = Peer { index: INDEX, ..Peer::relative(to, self.job, 1) };
        Ok(self.net[from]
            .nic
            .post(Operation { header_data: Some(self.job.into()), ..Operation::new(peer, work) })?)
    }

    /// Waits for the completion of an operation.
    fn complete(&mut self, nic: usize, operation: OperationId) -> Result<(), Box<dyn Error>> {
        let until = self.net.now() + PATIENCE;
        let done = self.net.run_until(until, |net| net[nic].nic.operation(operation));
        done.ok_or("the operation does not end")??;
        Ok(())
    }

    /// Writes to process 1 at this address, and waits for the completion.
    fn write(&mut self, from: usize, to: [u8; 4], length: usize) -> Result<(), Box<dyn Error>> {
        let write = self.post(from, to, Work::Write { key: KEY, offset: 0, data: lines(length) })?;
        self.complete(from, write)
    }

    /// Runs until nothing more happens, and returns the captured packets in the order of their times.
    fn end(mut self) -> Vec<Captured> {
        self.net.run(PATIENCE);
        self.net.observer.captured.sort_by_key(|captured| captured.at);
        self.net.observer.captured
    }
}

fn write() -> Played {
    let (a, b) = ([10, 1, 0, 1], [10, 1, 0, 2]);
    let mut lab = Lab::new(101, a, &[])?;
    let source = lab.nic(a, PdsParams::default())?;
    let target = lab.nic(b, PdsParams::default())?;
    lab.expose(target, 16_384)?;
    lab.write(source, b, 16_384)?;
    Ok(lab.end())
}

fn loss() -> Played {
    let (a, b) = ([10, 2, 0, 1], [10, 2, 0, 2]);
    let mut lab = Lab::new(102, a, &["drop first 4", "drop first 12"])?;
    let source = lab.nic(a, PdsParams { fast_loss_packets: 3, ..PdsParams::default() })?;
    let target = lab.nic(b, PdsParams::default())?;
    lab.expose(target, 49_152)?;
    lab.write(source, b, 49_152)?;
    Ok(lab.end())
}

fn trimming() -> Played {
    let (a, b) = ([10, 3, 0, 1], [10, 3, 0, 2]);
    let mut lab = Lab::new(103, b, &["trim 80 first 3", "trim-last-hop 80 first 6"])?;
    let source = lab.nic(a, PdsParams::default())?;
    let target = lab.nic(b, PdsParams::default())?;
    lab.expose(target, 32_768)?;
    lab.write(source, b, 32_768)?;
    Ok(lab.end())
}

fn incast() -> Played {
    let target = [10, 4, 0, 9];
    let mut lab = Lab::new(104, target, &[])?;
    let nic = lab.nic(target, PdsParams::default())?;
    lab.expose(nic, 65_536)?;
    let mut writes = Vec::new();
    for sender in 1..=4 {
        let from = lab.nic([10, 4, 0, sender], PdsParams::default())?;
        writes
            .push((from, lab.post(from, target, Work::Write { key: KEY, offset: 0, data: lines(65_536) })?));
    }
    for (from, write) in writes {
        lab.complete(from, write)?;
    }
    Ok(lab.end())
}

fn close() -> Played {
    let (a, b) = ([10, 5, 0, 1], [10, 5, 0, 2]);
    let mut lab = Lab::new(105, a, &[])?;
    let idle_time = Duration::from_micros(50);
    let one = lab.nic(a, PdsParams::default())?;
    let other = lab.nic(b, PdsParams { idle_time, ..PdsParams::default() })?;
    lab.expose(one, 64)?;
    lab.expose(other, 64)?;
    lab.write(one, b, 64)?;
    lab.net.run(Duration::from_micros(100));
    lab.write(other, a, 64)?;
    Ok(lab.end())
}

fn rendezvous() -> Played {
    let (a, b) = ([10, 6, 0, 1], [10, 6, 0, 2]);
    let mut lab = Lab::new(106, a, &[])?;
    let source = lab.nic(a, PdsParams::default())?;
    let target = lab.nic(b, PdsParams::default())?;
    let (own, index) = (lab.index(0), lab.index(1));
    let region = Region { key: KEY, base: 0, access: Access::READ, data: lines(16_384).to_vec() };
    let region = lab.net[source].nic.expose(own, region)?;
    lab.net[target].nic.receive(index, Receive::tagged(16_384, 0x7a9))?;
    let work = Work::Rendezvous { tag: Some(0x7a9), source: region, offset: 0, length: 16_384, eager: 4096 };
    let send = lab.post(source, b, work)?;
    lab.complete(source, send)?;
    Ok(lab.end())
}

fn secured() -> Played {
    let (a, b) = ([10, 7, 0, 1], [10, 7, 0, 2]);
    let mut lab = Lab::new(107, a, &[])?;
    let source = lab.nic(a, PdsParams::default())?;
    let target = lab.nic(b, PdsParams::default())?;
    let domains = uet_packet_io::keys::domains_from_toml(KEYS)?;
    for nic in [source, target] {
        lab.net[nic].nic.install_keys(&domains)?;
    }
    lab.expose(target, 8_192)?;
    lab.write(source, b, 8_192)?;
    Ok(lab.end())
}
