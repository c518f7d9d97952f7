//! Two endpoints of the model across the network, while other ports congest the receiver. Measures the time from a trim
//! to the retransmission.

use super::bench::{Bench, Step, Stop};
use super::probe::{Headers, ProbeKind};
use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_emulator::frame::{self, Outer, Record};
use uet_emulator::{Config, Nic};
use uet_model::Time;
use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};
use uet_wire::catalogue::NET_LOSS_002;

/// The bytes that one endpoint writes to the other.
const MESSAGE: usize = 128 << 10;

/// The time for the write.
const PATIENCE: Duration = Duration::from_secs(10);

const JOB: u32 = 101;
const PROCESS: u16 = 2;
const KEY: Key = Key(7);

/// What passed between the endpoints.
#[derive(Debug, Default)]
struct Observed {
    /// When the trimmed rest of a PSN reached the target.
    trims: BTreeMap<u32, Time>,
    /// The PSNs that reached the target whole.
    whole: BTreeSet<u32>,
    /// From each trim to the retransmission.
    reactions: Vec<Duration>,
    /// A PSN that was sent again although no trim announced that it was lost.
    unannounced: Option<u32>,
}

impl Observed {
    fn arrives(&mut self, at: Time, psn: u32, is_trimmed: bool) {
        if is_trimmed {
            self.trims.entry(psn).or_insert(at);
        } else {
            self.whole.insert(psn);
        }
    }

    fn is_sent_again(&mut self, at: Time, psn: u32) {
        match self.trims.remove(&psn) {
            Some(trimmed) => self.reactions.push(at - trimmed),
            // An ACK that comes late is no loss.
            None if !self.whole.contains(&psn) => self.unannounced = Some(psn),
            None => {}
        }
    }
}

pub(super) fn retransmission(bench: &mut Bench<'_>) -> Step {
    if bench.statement.trim.is_none() {
        return Err(Stop::Skipped("the statement has no [trim]".into()));
    }
    let (target, to, rate) = bench.target()?;
    let senders = bench.others(target);
    let Some(initiator) = senders.first().copied() else { return Ok(()) };
    let from = bench.address(initiator)?;
    let mut nics = [nic(bench, from)?, nic(bench, to)?];
    let data: Vec<u8> = (0..MESSAGE).map(|at| (at * 7 + at / 251) as u8).collect();
    let index = ResourceIndex { process: Process::Relative { job: JOB, pid: PROCESS }, index: 0 };
    let region = Region { key: KEY, base: 0, access: Access::ALL, data: vec![0; MESSAGE] };
    let told = |error: &dyn core::fmt::Display| Stop::Inconclusive(format!("the endpoints: {error}"));
    let region = nics[1].expose(index, region).map_err(|error| told(&error))?;
    let peer = Peer::relative(to, JOB, PROCESS);
    let work = Work::Write { key: KEY, offset: 0, data: Bytes::from(data.clone()) };
    let write = nics[0].post(Operation::new(peer, work)).map_err(|error| told(&error))?;

    // The load fills the queue before the first request.
    let probes = bench.load(&senders, to, bench.statement.load(), |_| ProbeKind::Data);
    let mut waiting = probes.len();
    let mut load = probes.into_iter();
    let outer = Outer { classes: bench.statement.classes(), ..Outer::default() };
    let ports = [initiator, target];
    let mut observed = Observed::default();
    let until = bench.network.now() + PATIENCE;
    let mut ended = None;
    while ended.is_none() && bench.network.now() < until {
        // Some at a time: a queue that is full once would be empty when the endpoints send.
        for probe in load.by_ref().take(4 * senders.len()) {
            let (macs, src) = (bench.network.macs(probe.from, to), bench.address(probe.from)?);
            // A number that belongs to no trace.
            if let Ok(frame) = probe.frame(0, src, macs) {
                bench.network.send(probe.from, &frame)?;
            }
            waiting -= 1;
        }
        let now = bench.network.now();
        for (nic, port) in nics.iter_mut().zip(ports) {
            if nic.poll_timeout().is_some_and(|at| at <= now) {
                nic.handle_timeout(now);
            }
            while let Some(packet) = nic.poll_transmit(now) {
                let macs = bench.network.macs(port, packet.dst);
                let Ok(frame) = frame::frame_between(macs, outer.port, &Record::new(now, &packet), &outer)
                else {
                    continue;
                };
                let request = Headers::read(&frame).and_then(|it| Some((it.psn, it.request?)));
                if let Some((psn, _)) = request.filter(|(_, request)| request.retx()) {
                    observed.is_sent_again(now, psn.0);
                }
                bench.network.send(port, &frame)?;
            }
        }
        let timeout = nics.iter().filter_map(Nic::poll_timeout).min().unwrap_or(until).min(until);
        let step = now + Duration::from_nanos((4.0 * f64::from(bench.statement.mtu) / rate) as u64);
        let next = if waiting > 0 { timeout.min(step) } else { timeout };
        if let Some(arrived) = bench.network.receive(next.max(now + Duration::from_nanos(1)))? {
            let of_an_end = ports.iter().position(|port| *port == arrived.port);
            let probe = Headers::read(&arrived.frame).is_some_and(|headers| headers.is_probe);
            let (Some(end), false) = (of_an_end, probe) else { continue };
            let Some(framed) = frame::read(&arrived.frame, &outer) else { continue };
            if end == 1 {
                let request = Headers::read(&arrived.frame).filter(|headers| headers.request.is_some());
                if let Some(headers) = request {
                    observed.arrives(arrived.at, headers.psn.0, framed.packet.trimmed.is_some());
                }
            }
            nics[end].handle_framed(bench.network.now(), framed, &outer.classes);
        }
        ended = nics[0].operation(write);
    }
    // What is left would arrive in the next rule.
    while bench.network.receive(bench.network.now() + bench.network.silence())?.is_some() {}
    let right = nics[1].memory(region) == Some(&data[..]);
    match ended {
        Some(Ok(_)) if right => {}
        Some(Ok(_)) => bench.fail(NET_LOSS_002, "a write ends well, and the target's memory is wrong".into()),
        Some(Err(error)) => bench.fail(NET_LOSS_002, format!("a write of {MESSAGE} bytes fails: {error}")),
        None => {
            bench.fail(NET_LOSS_002, format!("a write of {MESSAGE} bytes takes longer than {PATIENCE:?}"))
        }
    }
    if let Some(psn) = observed.unannounced.filter(|_| !bench.network.is_real()) {
        bench.fail(NET_LOSS_002, format!("the request with PSN {psn} is lost, and no trim announces it"));
    }
    report(bench, &mut observed.reactions)
}

fn report(bench: &mut Bench<'_>, reactions: &mut [Duration]) -> Step {
    reactions.sort_unstable();
    let microseconds = |time: &Duration| time.as_secs_f64() * 1e6;
    let (Some(least), Some(most)) = (reactions.first(), reactions.last()) else {
        return Err(Stop::Inconclusive("no packet of the endpoints was trimmed".into()));
    };
    let median = reactions.get(reactions.len() / 2).map_or(0.0, microseconds);
    let group = "trimming reaction";
    bench.measure(group, "trims answered by a retransmission", reactions.len() as f64, "packets");
    bench.measure(group, "shortest time from trim to retransmission", microseconds(least), "us");
    bench.measure(group, "median time from trim to retransmission", median, "us");
    bench.measure(group, "longest time from trim to retransmission", microseconds(most), "us");
    Ok(())
}

fn nic(bench: &Bench<'_>, address: IpAddr) -> Step<Nic> {
    let mut config = if bench.network.is_real() { Config::real_time() } else { Config::default() };
    let room = bench.statement.mtu.saturating_sub(128);
    let payload = [8192, 4096, 2048, 1024].into_iter().find(|payload| *payload <= room);
    let payload =
        payload.ok_or_else(|| Stop::Skipped("`mtu` is too small for the endpoints of the model".into()))?;
    let set = config.set("payload_mtu", &payload.into()).and_then(|()| Nic::new(address, config));
    set.map_err(|error| Stop::Inconclusive(format!("the endpoints: {error}")))
}
