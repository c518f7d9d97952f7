//! A NIC and its link, in real time or in virtual time.

use super::udp::wait;
use super::{Link, since_1970};
use crate::capture::Capture;
use crate::frame::{Framed, Record, is_secured};
use crate::nic::Nic;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::time::Instant;
use uet_model::secure::Ports;
use uet_model::{Packet, Time};
use uet_observe::passive::Restart;

/// Maximum number of packets that one turn receives and one batch sends.
const TURN: usize = 64;

/// Maximum number of batches that one turn sends.
const BATCHES: usize = 4;

/// Maximum number of packets that leave the link while virtual time stands still. The receiver's socket holds them.
const AT_ONCE: usize = 16;

/// Maximum number of packets that are read before virtual time passes, so that a flood cannot stop it.
const INTAKE: usize = 4096;

/// Virtual time that a packet takes on the link, in either direction.
const FLIGHT: Duration = Duration::from_micros(1);

/// A NIC on a link, for applications that drive it themselves. Each call of [`turn`](Self::turn) receives packets, runs
/// due timers and sends packets.
///
/// ```
/// use bytes::Bytes;
/// use core::time::Duration;
/// use uet_emulator::link::{driver::Driver, udp::UdpLink};
/// use uet_emulator::{Config, Nic};
/// use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};
///
/// // Both would be in processes of their own.
/// let driver = |address: [u8; 4]| -> Result<Driver, Box<dyn std::error::Error>> {
///     let link = UdpLink::bind((address, 0).into())?;
///     Ok(Driver::new(Nic::new(address, Config::real_time())?, link))
/// };
/// let (mut a, mut b) = (driver([127, 0, 0, 1])?, driver([127, 0, 0, 2])?);
/// let (port_of_a, port_of_b) = (a.link().port(), b.link().port());
///
/// let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
/// let region = b.nic.expose(index, Region { key: Key(7), base: 0, access: Access::ALL, data: vec![0; 5] })?;
/// let write = Work::Write { key: Key(7), offset: 0, data: Bytes::from_static(b"hello") };
/// let write = a.nic.post(Operation::new(Peer::relative([127, 0, 0, 2], 101, 2), write))?;
/// let result = loop {
///     a.turn(|_| port_of_b)?;
///     b.turn(|_| port_of_a)?;
///     if let Some(result) = a.nic.operation(write) {
///         break result;
///     }
/// };
/// assert!(result.is_ok());
/// assert_eq!(b.nic.memory(region), Some(&b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Driver {
    /// The NIC.
    pub nic: Nic,
    link: Link,
    leaving: Vec<(Packet, u16)>,
    capture: Option<Capture>,
    clock: Clock,
    /// In virtual time: packets on the link to the NIC, with the times of their arrival.
    coming: VecDeque<(Time, Framed)>,
    /// In virtual time: packets of the NIC on the link, with the ports of their destinations.
    going: VecDeque<(Time, (Packet, u16))>,
    /// Wall-clock time at its start.
    begun_at: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Clock {
    /// Runs from this moment on.
    Real(Instant),
    /// Stands still at this time.
    Virtual(Time),
}

impl Driver {
    /// Creates a driver for a NIC on this link. Its clock starts now.
    pub fn new(nic: Nic, link: impl Into<Link>) -> Self {
        let begun_at = since_1970();
        let link = link.into();
        Driver {
            nic,
            link,
            leaving: Vec::new(),
            capture: None,
            clock: Clock::Real(Instant::now()),
            coming: VecDeque::new(),
            going: VecDeque::new(),
            begun_at,
        }
    }

    /// Replaces the clock by one that only [`advance`](Self::advance) moves.
    #[must_use]
    pub fn with_virtual_time(self) -> Self {
        Driver { clock: Clock::Virtual(Time::ZERO), ..self }
    }

    /// Returns whether time is virtual.
    pub fn is_virtual(&self) -> bool {
        matches!(self.clock, Clock::Virtual(_))
    }

    /// Reads the packets that have arrived, and lets at most this much virtual time pass. Stops early after the first
    /// packets that reach the other end of the link, or when `enough` holds. It is for virtual
    /// time; in real time, it keeps the processor busy until the span has passed.
    pub fn advance(
        &mut self,
        by: Duration,
        mut port_of: impl FnMut(IpAddr) -> u16,
        mut enough: impl FnMut(&mut Nic) -> bool,
    ) -> io::Result<()> {
        let until = self.now() + by;
        while self.coming.len() < INTAKE {
            let Some(framed) = self.link.receive()? else { break };
            self.coming.push_back((self.now() + FLIGHT, framed));
        }
        loop {
            while let Some(leaving) = self.poll_transmit(&mut port_of) {
                self.going.push_back((self.now() + FLIGHT, leaving));
            }
            if self.deliver() || enough(&mut self.nic) {
                return Ok(());
            }
            let coming = self.coming.front().map(|(at, _)| *at);
            let going = self.going.front().map(|(at, _)| *at);
            let due = [coming, going, self.nic.poll_timeout()].into_iter().flatten().min();
            match due.filter(|at| *at <= until) {
                Some(at) => self.set(at.max(self.now())),
                None => break,
            }
            let now = self.now();
            while self.coming.front().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, framed)) = self.coming.pop_front() {
                    self.handle(framed);
                }
            }
            self.expire();
        }
        self.set(until);
        Ok(())
    }

    /// Sets the virtual clock.
    fn set(&mut self, now: Time) {
        if let Clock::Virtual(at) = &mut self.clock {
            *at = now;
        }
    }

    /// Discards the packets on the link, in virtual time.
    pub(super) fn discard(&mut self) -> io::Result<()> {
        self.coming.clear();
        self.going.clear();
        for _ in 0..INTAKE {
            if self.link.receive()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Captures all packets from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Tells the reader of the capture that the NIC has forgotten its contexts.
    pub(super) fn capture_restart(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.comment_next(Restart::OF_NIC);
        }
    }

    /// Stops capturing and returns the capture.
    pub fn end_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    /// Flushes buffered packets, so that the file can be read while it is being written.
    pub(super) fn flush_capture(&mut self) {
        if let Some(capture) = &mut self.capture {
            // `finish` reports write errors.
            let _ = capture.flush();
        }
    }

    /// Returns the link.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the current time.
    pub fn now(&self) -> Time {
        match self.clock {
            Clock::Real(begun) => Time::ZERO + begun.elapsed(),
            Clock::Virtual(at) => at,
        }
    }

    /// Receives packets, runs due timers and sends packets, each to the port that `port_of` gives for its destination.
    /// Returns whether it should be called again at once: packets arrived, or more wait to be sent.
    pub fn turn(&mut self, port_of: impl FnMut(IpAddr) -> u16) -> io::Result<bool> {
        let received = self.take_in()?;
        let more_to_send = self.send_off(port_of);
        Ok(received || more_to_send)
    }

    /// Receives packets and runs due timers; returns whether any packet arrived.
    pub(super) fn take_in(&mut self) -> io::Result<bool> {
        let mut busy = false;
        for _ in 0..TURN {
            let Some(framed) = self.link.receive()? else { break };
            busy = true;
            self.handle(framed);
        }
        self.expire();
        Ok(busy)
    }

    fn handle(&mut self, framed: Framed) {
        let ports = Ports { src: framed.packet.entropy, dst: self.link.port() };
        self.record(&framed.packet, None, ports);
        let now = self.now();
        self.nic.handle_framed(now, framed, self.link.classes());
    }

    /// Runs the timers that are due.
    fn expire(&mut self) {
        let now = self.now();
        if self.nic.poll_timeout().is_some_and(|at| at <= now) {
            self.nic.handle_timeout(now);
        }
    }

    /// Sends packets, at most [`BATCHES`] batches; returns whether more may be waiting.
    pub(super) fn send_off(&mut self, mut port_of: impl FnMut(IpAddr) -> u16) -> bool {
        for _ in 0..BATCHES {
            while self.leaving.len() < TURN {
                let Some(leaving) = self.poll_transmit(&mut port_of) else { break };
                self.leaving.push(leaving);
            }
            if self.leaving.is_empty() {
                return false;
            }
            let Driver { nic, link, leaving, .. } = self;
            link.send_all(leaving, nic);
            leaving.clear();
        }
        true
    }

    /// Delivers packets at the end of the link, at most [`AT_ONCE`]; returns whether there were any.
    fn deliver(&mut self) -> bool {
        let now = self.now();
        let due = self.going.iter().take(AT_ONCE).take_while(|(at, _)| *at <= now).count();
        for (_, leaving) in self.going.drain(..due) {
            self.link.send_all(&[leaving], &mut self.nic);
        }
        due > 0
    }

    /// Returns the next packet to send, with the port of its destination.
    fn poll_transmit(&mut self, port_of: &mut impl FnMut(IpAddr) -> u16) -> Option<(Packet, u16)> {
        let packet = self.nic.poll_transmit(self.now())?;
        let port = port_of(packet.dst);
        let src = self.link.source_port(packet.entropy);
        self.record(&packet, self.nic.corrupted_bit(&packet), Ports { src, dst: port });
        Some((packet, port))
    }

    /// Sleeps until a packet arrives or a timer is due, at most this long.
    pub fn wait(&mut self, most: Duration) -> io::Result<()> {
        let now = self.now();
        let due = self.nic.poll_timeout().map_or(most, |at| (at - now).min(most));
        wait(core::slice::from_ref(&self.link), due)
    }

    fn record(&mut self, packet: &Packet, corrupt: Option<usize>, ports: Ports) {
        let now = self.now();
        if let Some(capture) = &mut self.capture {
            let at = now + self.begun_at;
            let ports = is_secured(packet).then_some(ports);
            capture.write(&Record { corrupt, ports, ..Record::new(at, packet) });
        }
    }
}
