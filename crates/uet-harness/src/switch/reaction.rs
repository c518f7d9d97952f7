//! Two endpoints of the model across the network, while other ports congest the receiver. Measures the time from a trim
//! to the retransmission.

use super::network::Arrived;
use super::probe::{Headers, Probe, ProbeKind};
use super::testbed::{Step, Stop, Testbed};
use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_emulator::frame::{self, Outer, Record};
use uet_emulator::{Config, Nic};
use uet_model::Time;
use uet_model::ses::{
    Access, Done, Key, Operation, OperationError, OperationId, Peer, Process, Region, ResourceIndex, Work,
};
use uet_wire::catalogue::{NET_FWD_001, NET_LOSS_002};

/// The bytes that one endpoint writes to the other.
const MESSAGE: usize = 128 << 10;

/// The time for the write.
const PATIENCE: Duration = Duration::from_secs(10);

const JOB: u32 = 101;
const PROCESS: u16 = 2;
const KEY: Key = Key(7);

/// The packets between the endpoints.
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

pub(super) fn retransmission(bench: &mut Testbed<'_>) -> Step {
    if bench.statement.trim.is_none() {
        return Err(Stop::Skipped("the statement has no [trim]".into()));
    }
    let (target, to, rate) = bench.target()?;
    let senders = bench.others(target);
    let Some(initiator) = senders.first().copied() else { return Ok(()) };
    let nics = [nic(bench, bench.address(initiator)?)?, nic(bench, to)?];
    let mut ends = Ends {
        nics,
        ports: [initiator, target],
        outer: Outer { classes: bench.statement.classes(), ..Outer::default() },
        observed: Observed::default(),
    };
    let data: Vec<u8> = (0..MESSAGE).map(|at| (at * 7 + at / 251) as u8).collect();
    let index = ResourceIndex { process: Process::Relative { job: JOB, pid: PROCESS }, index: 0 };
    let region = Region { key: KEY, base: 0, access: Access::ALL, data: vec![0; MESSAGE] };
    let told = |error: &dyn core::fmt::Display| Stop::Inconclusive(format!("the endpoints: {error}"));
    let region = ends.nics[1].expose(index, region).map_err(|error| told(&error))?;
    let mut write = |bench: &mut Testbed<'_>, data: &[u8], load: &[Vec<(usize, Vec<u8>)>]| {
        let work = Work::Write { key: KEY, offset: 0, data: Bytes::copy_from_slice(data) };
        let write = ends.nics[0].post(Operation::new(Peer::relative(to, JOB, PROCESS), work));
        let write = write.map_err(|error| told(&error))?;
        ends.play(bench, write, load, 4.0 * f64::from(bench.statement.mtu) / rate)
    };
    // This opens the context: a target may ignore a trimmed packet that would open one.
    write(bench, &data[..1], &[])?;

    // Long enough for several round trips of the endpoints.
    let probes = bench.load(&senders, to, 3 * bench.statement.load(), |_| ProbeKind::Data);
    let build = |probe: &Probe| {
        // A number that belongs to no trace.
        let frame =
            probe.frame(0, bench.address(probe.from).ok()?, bench.network.macs(probe.from, to)).ok()?;
        Some((probe.from, frame))
    };
    // Some at a time: a queue that is full once would be empty when the endpoints send.
    let load: Vec<Vec<_>> =
        probes.chunks(4 * senders.len()).map(|some| some.iter().filter_map(build).collect()).collect();
    let ended = write(bench, &data, &load)?;
    // Packets that are left would arrive in the next rule.
    while bench.network.receive(bench.network.now() + bench.network.silence())?.is_some() {}
    let right = ends.nics[1].memory(region) == Some(&data[..]);
    match ended {
        Some(Ok(_)) if right => {}
        Some(Ok(_)) => bench.fail(NET_FWD_001, "a write ends well, and the target's memory is wrong".into()),
        Some(Err(error)) => bench.fail(NET_LOSS_002, format!("a write of {MESSAGE} bytes fails: {error}")),
        None => {
            bench.fail(NET_LOSS_002, format!("a write of {MESSAGE} bytes takes longer than {PATIENCE:?}"))
        }
    }
    if let Some(psn) = ends.observed.unannounced.filter(|_| !bench.network.is_real()) {
        bench.fail(NET_LOSS_002, format!("the request with PSN {psn} is lost, and no trim announces it"));
    }
    report(bench, &mut ends.observed.reactions)
}

/// The endpoints at their ports: the initiator and the target.
struct Ends {
    nics: [Nic; 2],
    ports: [usize; 2],
    outer: Outer,
    observed: Observed,
}

impl Ends {
    /// Lets the endpoints talk until an operation ends. Meanwhile it sends parts of a load, each this many nanoseconds
    /// after the one before.
    fn play(
        &mut self,
        bench: &mut Testbed<'_>,
        operation: OperationId,
        load: &[Vec<(usize, Vec<u8>)>],
        gap: f64,
    ) -> Step<Option<Result<Done, OperationError>>> {
        let until = bench.network.now() + PATIENCE;
        let half = load.len() / 2;
        let mut load = load.iter();
        loop {
            // The endpoints begin when half of the load has filled the queue.
            let begins = load.len() <= half;
            let part = load.next();
            for (port, frame) in part.into_iter().flatten() {
                bench.network.send(*port, &[frame])?;
            }
            let now = bench.network.now();
            let mut next = until;
            if begins {
                self.transmit(bench, now)?;
                next = self.nics.iter().filter_map(Nic::poll_timeout).min().unwrap_or(until).min(until);
            }
            if part.is_some() {
                next = next.min(now + Duration::from_nanos(gap as u64));
            }
            let mut next = next.max(now + Duration::from_nanos(1));
            while let Some(arrived) = bench.network.receive(next)? {
                // Only what has arrived until now comes before the answers.
                next = bench.network.now().min(next);
                self.receive(bench, &arrived);
            }
            let ended = self.nics[0].operation(operation);
            if ended.is_some() || bench.network.now() >= until {
                return Ok(ended);
            }
        }
    }

    fn transmit(&mut self, bench: &mut Testbed<'_>, now: Time) -> Step {
        for (nic, port) in self.nics.iter_mut().zip(self.ports) {
            if nic.poll_timeout().is_some_and(|at| at <= now) {
                nic.handle_timeout(now);
            }
            while let Some(packet) = nic.poll_transmit(now) {
                let macs = bench.network.macs(port, packet.dst);
                let record = Record::new(now, &packet);
                let Ok(frame) = frame::frame_between(macs, self.outer.port, &record, &self.outer) else {
                    continue;
                };
                let request = Headers::read(&frame).and_then(|it| Some((it.psn, it.request?)));
                if let Some((psn, _)) = request.filter(|(_, request)| request.retx()) {
                    self.observed.is_sent_again(now, psn.0);
                }
                bench.network.send(port, &[&frame])?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, bench: &Testbed<'_>, arrived: &Arrived) {
        let end = self.ports.iter().position(|port| *port == arrived.port);
        let Some((end, headers)) = end.zip(Headers::read(&arrived.frame)) else { return };
        let framed = frame::read(&arrived.frame, &self.outer).filter(|_| !headers.is_probe);
        let Some(framed) = framed else { return };
        if end == 1 && headers.request.is_some() {
            self.observed.arrives(arrived.at, headers.psn.0, framed.packet.trimmed.is_some());
        }
        self.nics[end].handle_framed(bench.network.now(), framed, &self.outer.classes);
    }
}

fn report(bench: &mut Testbed<'_>, reactions: &mut [Duration]) -> Step {
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

fn nic(bench: &Testbed<'_>, address: IpAddr) -> Step<Nic> {
    let mut config = if bench.network.is_real() { Config::real_time() } else { Config::default() };
    let room = bench.statement.mtu.saturating_sub(128);
    let payload = [8192, 4096, 2048, 1024].into_iter().find(|payload| *payload <= room);
    let payload =
        payload.ok_or_else(|| Stop::Skipped("`mtu` is too small for the endpoints of the model".into()))?;
    let set = config.set("payload_mtu", &payload.into()).and_then(|()| Nic::new(address, config));
    set.map_err(|error| Stop::Inconclusive(format!("the endpoints: {error}")))
}
