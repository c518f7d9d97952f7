//! The stories.

use crate::{Captured, Story, Switch};
use bytes::Bytes;
use core::time::Duration;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use uet_emulator::{Config, Network, Nic, NicId};
use uet_model::PdsParams;
use uet_model::ses::{
    Access, Endpoint, Key, Operation, Peer, Process, Receive, Region, ResourceIndex, Work,
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
        story("write", "", &[], write),
        story("loss", "", &[], loss),
        story("trimming", "", &[], trimming),
        Story { snap: 160, ..story("incast", "", &[], incast) },
        story("close", "", &[], close),
        story("rendezvous", "", &[], rendezvous),
        Story { keys: Some(KEYS), ..story("secured", "", &[], secured) },
    ]
}

/// Readable data: numbered lines of 16 bytes.
fn lines(length: usize) -> Bytes {
    (0..length / 16).flat_map(|number| format!("line {number:010}\n").into_bytes()).collect()
}

/// NICs behind a switch.
struct Lab {
    net: Network,
    captured: Arc<Mutex<Vec<Captured>>>,
    job: u32,
}

/// The index that targets offer.
const INDEX: u16 = 4;

/// The key of their memory.
const KEY: Key = Key(0xfeed);

impl Lab {
    /// Connects nobody yet, for a job. The capture is taken at this address.
    fn new(job: u32, tap: [u8; 4], impairments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut net = Network::new(u64::from(job));
        for impairment in impairments {
            net.fabric().impair(impairment.parse()?);
        }
        let captured = Switch::connect(net.fabric(), tap);
        Ok(Lab { net, captured, job })
    }

    /// Adds a NIC whose contexts count from this PDCID.
    fn nic(&mut self, address: [u8; 4], first_pdcid: u32, pds: PdsParams) -> Result<NicId, Box<dyn Error>> {
        let start_psn = Some(first_pdcid << 12);
        let pds = PdsParams { first_pdcid: first_pdcid.try_into()?, start_psn, ..pds };
        Ok(self.net.add(Nic::new(address, Config { pds, ..Config::default() })?))
    }

    /// The index of process `pid` of the job.
    fn index(&self, pid: u16) -> ResourceIndex {
        ResourceIndex { process: Process::Relative { job: self.job, pid }, index: INDEX }
    }

    /// Makes process 1 on a NIC offer this memory.
    fn expose(&mut self, nic: NicId, length: usize) -> Result<(), Box<dyn Error>> {
        let index = self.index(1);
        self.net[nic].open(Endpoint { process: index.process, start: 0, count: 64 })?;
        let data = vec![0; length];
        self.net[nic].expose(index, Region { key: KEY, base: 0, access: Access::WRITE, data })?;
        Ok(())
    }

    fn peer(&self, address: [u8; 4]) -> Peer {
        Peer { index: INDEX, ..Peer::relative(address, self.job, 1) }
    }

    /// Writes to process 1 at this address, and waits for the completion.
    fn write(&mut self, from: NicId, to: [u8; 4], length: usize) -> Result<(), Box<dyn Error>> {
        let work = Work::Write { key: KEY, offset: 0, data: lines(length) };
        let write = Operation { header_data: Some(1), ..Operation::new(self.peer(to), work) };
        let write = self.net[from].post(write)?;
        self.net.operation(from, write).ok_or("it does not end")??;
        Ok(())
    }

    /// Runs for `span` more, and returns the captured packets in the order of their times.
    fn end(mut self, span: Duration) -> Vec<Captured> {
        self.net.run(span);
        let mut captured = core::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner));
        captured.sort_by_key(|captured| captured.at);
        captured
    }
}

/// The time after which nothing more happens.
const REST: Duration = Duration::from_micros(200);

fn write() -> Played {
    let (a, b) = ([10, 1, 0, 1], [10, 1, 0, 2]);
    let mut lab = Lab::new(101, a, &[])?;
    let source = lab.nic(a, 0x110, PdsParams::default())?;
    let target = lab.nic(b, 0x120, PdsParams::default())?;
    lab.expose(target, 16_384)?;
    lab.write(source, b, 16_384)?;
    Ok(lab.end(REST))
}

fn loss() -> Played {
    let (a, b) = ([10, 2, 0, 1], [10, 2, 0, 2]);
    let mut lab = Lab::new(102, a, &["drop first 4", "drop first 12"])?;
    let source = lab.nic(a, 0x210, PdsParams { fast_loss_packets: 3, ..PdsParams::default() })?;
    let target = lab.nic(b, 0x220, PdsParams::default())?;
    lab.expose(target, 49_152)?;
    lab.write(source, b, 49_152)?;
    Ok(lab.end(REST))
}

fn trimming() -> Played {
    let (a, b) = ([10, 3, 0, 1], [10, 3, 0, 2]);
    let mut lab = Lab::new(103, b, &["trim 80 first 3", "trim-last-hop 80 first 6"])?;
    let source = lab.nic(a, 0x310, PdsParams::default())?;
    let target = lab.nic(b, 0x320, PdsParams::default())?;
    lab.expose(target, 32_768)?;
    lab.write(source, b, 32_768)?;
    Ok(lab.end(REST))
}

fn incast() -> Played {
    let target = [10, 4, 0, 100];
    let mut lab = Lab::new(104, target, &[])?;
    let nic = lab.nic(target, 0x4a0, PdsParams::default())?;
    lab.expose(nic, 65_536)?;
    let mut writes = Vec::new();
    for sender in 1..=4 {
        let from = lab.nic([10, 4, 0, sender], 0x400 + 0x10 * u32::from(sender), PdsParams::default())?;
        let work = Work::Write { key: KEY, offset: 0, data: lines(65_536) };
        let peer = lab.peer(target);
        writes.push((from, lab.net[from].post(Operation::new(peer, work))?));
    }
    for (from, write) in writes {
        lab.net.operation(from, write).ok_or("it does not end")??;
    }
    Ok(lab.end(REST))
}

fn close() -> Played {
    let (a, b) = ([10, 5, 0, 1], [10, 5, 0, 2]);
    let mut lab = Lab::new(105, a, &[])?;
    let source = lab.nic(a, 0x510, PdsParams::default())?;
    let target = lab.nic(b, 0x520, PdsParams { idle_time: Duration::from_micros(150), ..PdsParams::default() })?;
    lab.expose(target, 64)?;
    lab.write(source, b, 64)?;
    lab.net.run(Duration::from_micros(300));
    lab.write(source, b, 64)?;
    lab.net.run(Duration::from_micros(30));
    let (now, route) = (lab.net.now(), lab.peer(b).route);
    lab.net[source].close(now, &route);
    Ok(lab.end(REST))
}

fn rendezvous() -> Played {
    let (a, b) = ([10, 6, 0, 1], [10, 6, 0, 2]);
    let mut lab = Lab::new(106, a, &[])?;
    let source = lab.nic(a, 0x610, PdsParams::default())?;
    let target = lab.nic(b, 0x620, PdsParams::default())?;
    let (own, index) = (lab.index(0), lab.index(1));
    let region = Region { key: KEY, base: 0, access: Access::READ, data: lines(16_384).to_vec() };
    let region = lab.net[source].expose(own, region)?;
    let receive = lab.net[target].receive(index, Receive::tagged(16_384, 0x7a9))?;
    let work = Work::Rendezvous { tag: Some(0x7a9), source: region, offset: 0, length: 16_384, eager: 4096 };
    let peer = lab.peer(b);
    let send = lab.net[source].post(Operation::new(peer, work))?;
    lab.net.received(target, receive).ok_or("nothing has come")?;
    lab.net.operation(source, send).ok_or("it does not end")??;
    Ok(lab.end(REST))
}

fn secured() -> Played {
    let (a, b) = ([10, 7, 0, 1], [10, 7, 0, 2]);
    let mut lab = Lab::new(107, a, &[])?;
    let source = lab.nic(a, 0x710, PdsParams::default())?;
    let target = lab.nic(b, 0x720, PdsParams::default())?;
    let domains = uet_keys::domains_from_toml(KEYS)?;
    for nic in [source, target] {
        lab.net[nic].install_keys(&domains)?;
    }
    lab.expose(target, 8_192)?;
    lab.write(source, b, 8_192)?;
    Ok(lab.end(REST))
}
