//! The ports of the suite while a rule runs: sends loads, collects what arrives, and keeps findings and measurements.

use super::judge::{self, Findings, Sent, Trace};
use super::network::{Arrived, Network};
use super::probe::{Headers, Probe, ProbeKind};
use super::statement::Statement;
use core::net::IpAddr;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use uet_model::Time;
use uet_wire::catalogue::Requirement;

/// A measured value under the name of the benchmarking drafts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The group: `spray efficacy`, `trimming reaction`, `incast degree`, `ECN marking onset`, `load`.
    pub group: String,
    /// The name of the value.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit; empty for a ratio.
    pub unit: String,
}

/// The reason why a rule ends early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The statement or the network lacks something that the rule needs.
    Skipped(String),
    /// The rule could not see what it judges.
    Inconclusive(String),
    /// The ports do not work.
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Failed(error)
    }
}

/// The result of a step.
pub(super) type Step<T = ()> = Result<T, Stop>;

/// The ports of the suite.
pub(super) struct Testbed<'a> {
    /// The network under test.
    pub(super) network: &'a mut dyn Network,
    /// The statement of its operator.
    pub(super) statement: &'a Statement,
    /// Random numbers of the run.
    pub(super) rng: Rng,
    /// The broken requirements of the rule.
    pub(super) findings: Findings,
    /// The measured values.
    pub(super) measurements: Vec<Measurement>,
    /// The number of the next probe.
    next: u32,
    interrupt: &'a AtomicBool,
}

/// The frames of a port that are sent before it is the turn of the next.
const BATCH: usize = 8;

impl<'a> Testbed<'a> {
    /// Creates the ports of a network.
    pub(super) fn new(
        network: &'a mut dyn Network,
        statement: &'a Statement,
        seed: u64,
        interrupt: &'a AtomicBool,
    ) -> Self {
        let rng = Rng::with_seed(seed);
        let (findings, measurements) = (Findings::default(), Vec::new());
        Testbed { network, statement, rng, findings, measurements, next: 1, interrupt }
    }

    /// Adds a measurement.
    pub(super) fn measure(&mut self, group: &str, name: impl Into<String>, value: f64, unit: &str) {
        let (name, value) = (name.into(), (value * 1e4).round() / 1e4);
        self.measurements.push(Measurement { group: group.into(), name, value, unit: unit.into() });
    }

    /// Adds a violation.
    pub(super) fn fail(&mut self, requirement: &'static Requirement, text: String) {
        self.findings.add(requirement, || text);
    }

    /// Returns the address of a port.
    pub(super) fn address(&self, port: usize) -> Step<IpAddr> {
        let port = self.statement.ports.get(port).map(|port| port.address);
        port.ok_or_else(|| Stop::Skipped("the statement has too few ports".into()))
    }

    /// Returns the name of a port.
    pub(super) fn name(&self, port: usize) -> &'a str {
        self.statement.ports.get(port).map_or("?", |port| &port.name)
    }

    /// Creates a probe of this kind and full length.
    pub(super) fn probe(&self, from: usize, to: IpAddr, kind: ProbeKind, entropy: u16) -> Probe {
        let dscp = &self.statement.dscp;
        let (dscp, ecn) = match kind {
            ProbeKind::Data => (dscp.data, 2),
            ProbeKind::Untrimmable => (dscp.untrimmable.unwrap_or(dscp.data), 2),
            _ => (dscp.control, 0),
        };
        Probe { from, to, kind, dscp, ecn, entropy, length: self.statement.mtu }
    }

    /// Sends probes as fast as their ports can, each port in the order given. Returns what arrives until the network is
    /// silent, and judges every packet of it.
    pub(super) fn exchange(&mut self, probes: Vec<Probe>) -> Step<Trace> {
        let (statement, first) = (self.statement, self.next);
        let mut trace = Trace { first, ..Trace::default() };
        let mut queues = vec![VecDeque::new(); statement.ports.len()];
        for (index, probe) in probes.into_iter().enumerate() {
            let macs = self.network.macs(probe.from, probe.to);
            let src = self.address(probe.from)?;
            let frame =
                probe.frame(self.next, src, macs).map_err(|error| io::Error::other(error.to_string()))?;
            self.next = self.next.wrapping_add(1);
            queues.get_mut(probe.from).into_iter().for_each(|queue| queue.push_back(index));
            trace.sent.push(Sent { at: Time(0), probe, frame });
        }
        let missed = self.network.missed();
        while queues.iter().any(|queue| !queue.is_empty()) {
            let mut is_stuck = true;
            for (port, queue) in queues.iter_mut().enumerate().filter(|(_, queue)| !queue.is_empty()) {
                let some = queue.iter().take(BATCH).filter_map(|index| trace.sent.get(*index));
                let some: Vec<&[u8]> = some.map(|sent| &sent.frame[..]).collect();
                for at in self.network.send(port, &some)? {
                    is_stuck = false;
                    let sent = queue.pop_front().and_then(|index| trace.sent.get_mut(index));
                    sent.into_iter().for_each(|sent| sent.at = at);
                }
            }
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Inconclusive("the run was ended".into()));
            }
            let now = self.network.now();
            let until = if is_stuck { now + self.network.silence() / 100 } else { now };
            // In virtual time, nothing arrives now.
            while let Some(arrived) = self.network.receive(until)? {
                trace.arrived.push(arrived);
            }
        }
        let mut last =
            trace.sent.iter().map(|sent| sent.at).max().unwrap_or_default().max(self.network.now());
        let is_probe =
            |arrived: &Arrived| Headers::read(&arrived.frame).is_some_and(|headers| headers.is_probe);
        let mut probes = trace.arrived.iter().filter(|arrived| is_probe(arrived)).count();
        loop {
            // If as many have arrived as were sent, only copies can follow.
            let patience = self.network.silence() / if probes < trace.sent.len() { 1 } else { 8 };
            let Some(arrived) = self.network.receive(last + patience)? else { break };
            last = last.max(arrived.at);
            probes += usize::from(is_probe(&arrived));
            trace.arrived.push(arrived);
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Stop::Inconclusive("the run was ended".into()));
            }
        }
        let missed = self.network.missed() - missed;
        if missed > 0 {
            let message = format!(
                "this machine is too slow: {missed} frames arrived and were lost before they were read"
            );
            return Err(Stop::Inconclusive(message));
        }
        judge::packets(statement, &trace, &mut self.findings);
        Ok(trace)
    }

    /// Returns the port that the loads congest, and its address: the one that other ports can overload most easily.
    pub(super) fn target(&self) -> Step<(usize, IpAddr, f64)> {
        let rated =
            self.statement.ports.iter().enumerate().filter_map(|(at, port)| Some((port.rate_mbps?, at)));
        // Of equal ports the second: two model endpoints then use the first two.
        let target = rated.min_by_key(|(rate, at)| (*rate, at.abs_diff(1))).map(|(_, at)| at);
        let target =
            target.ok_or_else(|| Stop::Skipped("the statement has no `rate_mbps` of any port".into()))?;
        Ok((target, self.address(target)?, self.statement.rate(target).unwrap_or(f64::INFINITY)))
    }

    /// Creates the probes of a load for a port: this many bytes, an equal part from each of these ports. `kind` gives
    /// the kind of a packet by its number.
    pub(super) fn load(
        &mut self,
        senders: &[usize],
        to: IpAddr,
        bytes: u64,
        kind: impl Fn(usize) -> ProbeKind,
    ) -> Vec<Probe> {
        let rounds = bytes / u64::from(self.statement.mtu) / senders.len().max(1) as u64;
        let entropy: Vec<u16> = senders.iter().map(|_| self.rng.u16(..)).collect();
        let mut probes = Vec::new();
        for round in 0..rounds.max(2) as usize {
            for (sender, entropy) in senders.iter().zip(&entropy) {
                probes.push(self.probe(*sender, to, kind(round), *entropy));
            }
        }
        probes
    }

    /// Returns the ports other than this one.
    pub(super) fn others(&self, port: usize) -> Vec<usize> {
        (0..self.statement.ports.len()).filter(|one| *one != port).collect()
    }

    /// Returns the load and the rate of the port in words.
    pub(super) fn offered(&self, trace: &Trace, to: IpAddr, rate: f64) -> String {
        let (offered, bytes) = trace.offered(to);
        let mbps = |rate: f64| (rate * 8_000.0).round();
        format!("{bytes} bytes at {} Mbit/s to a port of {} Mbit/s", mbps(offered), mbps(rate))
    }
}
