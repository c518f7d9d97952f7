//! Ports on interfaces of this machine, in real time; and the software switch between such interfaces.

use super::fault::SwitchFault;
use super::network::{Arrived, Network};
use super::software::SoftwareSwitch;
use super::statement::Statement;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use uet_emulator::frame::Mac;
use uet_emulator::link::port::{BATCH, FramePort};
use uet_emulator::link::since_1970;
use uet_emulator::link::udp::wait;
use uet_model::Time;
use uet_wire::FrameBuilder;

/// The type of the frames that show a bridge where each port is: for local experiments.
const ANNOUNCEMENT: [u8; 2] = [0x88, 0xb5];

/// The ports of a statement on interfaces.
#[derive(Debug)]
pub struct Wires {
    statement: Statement,
    ports: Vec<FramePort>,
    /// The Ethernet address of the router at each port.
    gateways: Vec<Option<Mac>>,
    start: Duration,
    silence: Duration,
    arrived: VecDeque<Arrived>,
}

impl Wires {
    /// Opens the interfaces that a statement names, and asks for the addresses of its gateways. `scale` stretches the
    /// silence after which nothing is expected any more.
    pub fn open(statement: &Statement, scale: f64) -> io::Result<Self> {
        let (mut ports, mut gateways) = (Vec::new(), Vec::new());
        for port in &statement.ports {
            let mut own = FramePort::open(&port.name, Some(port.address))?;
            let gateway = port.gateway.map(|gateway| {
                own.resolve(gateway)?.ok_or_else(|| {
                    io::Error::other(format!(
                        "{}: the gateway {gateway} does not tell its Ethernet address",
                        port.name
                    ))
                })
            });
            gateways.push(gateway.transpose()?);
            ports.push(own);
        }
        for port in &mut ports {
            let mut frame = [&[0xff; 6][..], &port.mac(), &ANNOUNCEMENT].concat();
            frame.resize(FrameBuilder::SHORTEST, 0);
            port.send(&[&frame])?;
        }
        let silence = Duration::from_millis(300).mul_f64(scale.clamp(0.01, 1000.0));
        let (start, statement) = (since_1970(), statement.clone());
        let mut wires = Wires { statement, ports, gateways, start, silence, arrived: VecDeque::new() };
        // Frames that are still on the way belong to no rule.
        while wires.receive(wires.now() + silence)?.is_some() {}
        Ok(wires)
    }

    /// Reads what has arrived at all ports.
    fn collect(&mut self) -> io::Result<()> {
        for (port, own) in self.ports.iter_mut().enumerate() {
            while let Some(frame) = own.receive()? {
                let at = Time(frame.at.saturating_sub(self.start).as_nanos() as u64);
                self.arrived.push_back(Arrived { at, port, frame: frame.bytes.to_vec() });
                if self.arrived.len() >= 4 * BATCH {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Network for Wires {
    fn now(&self) -> Time {
        Time(since_1970().saturating_sub(self.start).as_nanos() as u64)
    }

    fn macs(&self, port: usize, to: IpAddr) -> [Mac; 2] {
        let mac = |port: usize| self.ports.get(port).map(FramePort::mac).unwrap_or_default();
        let gateway = self.gateways.get(port).copied().flatten();
        let direct = || self.statement.leads(to).first().map(|port| mac(*port)).unwrap_or_default();
        [mac(port), gateway.unwrap_or_else(direct)]
    }

    fn send(&mut self, port: usize, frames: &[&[u8]]) -> io::Result<Vec<Time>> {
        let own = self.ports.get_mut(port);
        let sent = own.ok_or_else(|| io::Error::other(format!("there is no port {port}")))?.send(frames)?;
        Ok(vec![self.now(); sent])
    }

    fn receive(&mut self, until: Time) -> io::Result<Option<Arrived>> {
        loop {
            if self.arrived.is_empty() {
                self.collect()?;
            }
            if let Some(next) = self.arrived.front() {
                // A flood must not keep the caller from its other work.
                let is_due = next.at <= until;
                return Ok(if is_due { self.arrived.pop_front() } else { None });
            }
            let left = until - self.now();
            if left.is_zero() {
                return Ok(None);
            }
            wait(&self.ports, left)?;
        }
    }

    fn silence(&self) -> Duration {
        self.silence
    }

    fn is_real(&self) -> bool {
        true
    }

    fn missed(&mut self) -> u64 {
        self.ports.iter_mut().map(|port| u64::from(port.missed())).sum()
    }
}

/// The longest time for which the software switch sleeps: it then looks whether it shall end.
const NAP: Duration = Duration::from_millis(50);

/// Runs the software switch between these interfaces, one for each port of the statement, until `stop` is true.
///
/// # Errors
///
/// Fails if an interface cannot send or receive.
pub fn emulate(
    statement: &Statement,
    interfaces: &[String],
    fault: Option<SwitchFault>,
    seed: u64,
    stop: &AtomicBool,
    ready: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let opened: io::Result<Vec<_>> = interfaces.iter().map(|name| FramePort::open(name, None)).collect();
    let mut ports = opened?;
    let mut switch = SoftwareSwitch::new(statement.clone(), fault, seed);
    let start = since_1970();
    let now = || Time(since_1970().saturating_sub(start).as_nanos() as u64);
    ready()?;
    while !stop.load(Ordering::Relaxed) {
        for (number, port) in ports.iter_mut().enumerate() {
            // Each port gets its turn.
            for _ in 0..BATCH {
                let Some(frame) = port.receive()? else { break };
                switch.input(now(), number, frame.bytes.to_vec());
            }
        }
        while let Some(out) = switch.poll_output(now()) {
            // A frame that the system does not take is lost, as on any link.
            ports.get_mut(out.port).map(|port| port.send(&[&out.frame])).transpose()?;
        }
        let next = switch.poll_timeout().map_or(NAP, |at| (at - now()).min(NAP));
        if !next.is_zero() {
            wait(&ports, next)?;
        }
    }
    Ok(())
}
