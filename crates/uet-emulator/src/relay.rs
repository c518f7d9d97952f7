//! A network between two implementations on UDP, in real time.

use crate::Network;
use crate::link::since_1970;
use crate::link::udp::{UdpLink, wait};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uet_model::{Packet, Time};
use uet_packet_io::keys::{KeyRing, Opened};
use uet_wire::outer::UDP_PORT;
use uet_wire::tss::{Outer, OuterLayer};

/// Maximum delay before the end is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// Number of packets read before packets leave and the end is noticed. A flood thus delays neither.
const BATCH: usize = 256;

/// Maximum number of waiting packets that a new network forgets.
const STALE: usize = 1 << 14;

/// Maximum length of a packet behind the UDP header. No UET packet is longer: headers, 8,192 bytes of payload, trailers.
const LONGEST: usize = 9 << 10;

/// The clock of a relay, which stamps packets in captures. It does not follow steps of the system's clock.
#[derive(Clone, Copy, Debug)]
pub struct RelayClock {
    begun_at: Duration,
    begun: Instant,
}

impl RelayClock {
    fn start() -> Self {
        RelayClock { begun_at: since_1970(), begun: Instant::now() }
    }

    /// Returns the time since 1970.
    pub fn now(&self) -> Duration {
        self.begun_at + self.begun.elapsed()
    }
}

/// A network between two ends, which use its address as that of their peer. Their own addresses tell them apart.
#[derive(Debug)]
pub struct Relay {
    ends: [SocketAddr; 2],
    links: [UdpLink; 1],
    network: Network,
    clock: RelayClock,
    /// The keys of protected packets. Without them, an end drops these packets: the protection covers addresses.
    pub keys: Option<KeyRing>,
    /// Number of packets from neither end.
    pub strangers: u64,
    /// Number of packets that could not be forwarded.
    pub unsent: u64,
}

impl Relay {
    /// Creates a network between these ends, which listens on `listen`; port 0 picks a free one.
    ///
    /// # Errors
    ///
    /// Fails if both ends have one address, or if the system refuses `listen`.
    pub fn new(ends: [SocketAddr; 2], listen: SocketAddr, seed: u64) -> io::Result<Self> {
        if ends[0].ip() == ends[1].ip() {
            let message = format!(
                "both ends have the address {}, but the network between them needs two different addresses",
                ends[0].ip()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let bound = UdpLink::bind(listen);
        let link = bound.map_err(|error| io::Error::new(error.kind(), format!("{listen}: {error}")))?;
        let mut relay = Relay {
            ends,
            links: [link],
            network: Network::new(seed),
            clock: RelayClock::start(),
            keys: None,
            strangers: 0,
            unsent: 0,
        };
        relay.renew(seed)?;
        Ok(relay)
    }

    /// Forgets packets on their way, also those that wait in the socket, impairments and capture. Starts the clock
    /// anew.
    ///
    /// # Errors
    ///
    /// Fails if the socket does.
    pub fn renew(&mut self, seed: u64) -> io::Result<()> {
        // A sender that never stops must not keep this from ending.
        for _ in 0..STALE {
            if self.links[0].receive()?.is_none() {
                break;
            }
        }
        self.network = Network::new(seed);
        self.clock = RelayClock::start();
        self.ends.into_iter().for_each(|end| self.network.attach(end.ip()));
        Ok(())
    }

    /// Returns the address that both ends use as their peer.
    pub fn local(&self) -> SocketAddr {
        self.links[0].local()
    }

    /// Returns the clock, which runs until the next [`renew`](Self::renew).
    pub fn clock(&self) -> RelayClock {
        self.clock
    }

    /// Returns the network, to impair and to capture.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Forwards packets until `stopped` is true.
    pub fn serve(&mut self, stopped: &AtomicBool) -> io::Result<()> {
        let clock = self.clock;
        let now = || Time::ZERO + clock.now();
        while !stopped.load(Ordering::Relaxed) {
            for _ in 0..BATCH {
                let Some(packet) = self.links[0].receive()? else { break };
                self.network.advance(now());
                self.take(packet);
            }
            while let Some((_, packet)) = self.network.run_until(now(), |network| network.poll_arrival()) {
                self.hand_on(packet);
            }
            let next = self.network.next_at().map_or(LOOK, |at| at - now());
            wait(&self.links, next.min(LOOK))?;
        }
        Ok(())
    }

    /// Forwards a packet of one end to the other.
    fn take(&mut self, packet: Packet) {
        // The network holds many packets, so their size matters.
        if packet.head.len() + packet.payload.len() > LONGEST {
            self.unsent += 1;
            return;
        }
        match self.ends.iter().position(|end| end.ip() == packet.src) {
            Some(from) => {
                let (to, local) = (self.ends[1 - from].ip(), self.local());
                let came = Addressing {
                    dst: local.ip(),
                    ports: (packet.entropy, local.port()),
                    ..Addressing::of(&packet)
                };
                let packet = Packet { dst: to, ..packet };
                let goes = Addressing::of(&packet);
                let packet = self.protected_again(packet, came, goes);
                self.network.send(packet);
            }
            None => self.strangers += 1,
        }
    }

    fn hand_on(&mut self, packet: Packet) {
        let to = self.ends.into_iter().find(|end| end.ip() == packet.dst).unwrap_or(self.ends[0]);
        let came = Addressing::of(&packet);
        let packet = Packet { src: self.local().ip(), ..packet };
        let ports = (self.links[0].source_port(packet.entropy), to.port());
        let goes = Addressing { src: packet.src, ports, ..came };
        let packet = self.protected_again(packet, came, goes);
        if self.links[0].send(&packet, to.port()).is_err() {
            self.unsent += 1;
        }
    }

    /// Returns a protected packet as its sender would have protected it for another way.
    fn protected_again(&mut self, packet: Packet, came: Addressing, goes: Addressing) -> Packet {
        let Some(keys) = &mut self.keys else { return packet };
        let mut bytes = packet.to_wire().to_vec();
        let opened = keys.open(&came.outer(bytes.len()), &mut bytes);
        if !matches!(opened, Opened::Authentic { .. })
            || keys.seal(&goes.outer(bytes.len()), &mut bytes).is_err()
        {
            return packet;
        }
        match Packet::from_wire(packet.src, packet.dst, bytes.into()) {
            Ok(Packet { head, payload, .. }) => Packet { head, payload, ..packet },
            Err(_) => packet,
        }
    }
}

/// The authenticated addresses and ports of a packet.
#[derive(Clone, Copy)]
struct Addressing {
    src: IpAddr,
    dst: IpAddr,
    ports: (u16, u16),
}

impl Addressing {
    /// Returns those of a packet within the network, as its capture shows them.
    fn of(packet: &Packet) -> Self {
        Addressing { src: packet.src, dst: packet.dst, ports: (packet.entropy, UDP_PORT) }
    }

    fn outer(&self, length: usize) -> Outer {
        let mut outer = Outer::udp(self.src, self.dst, self.ports.0, length);
        if let OuterLayer::Udp { dst_port, .. } = &mut outer.layer {
            *dst_port = self.ports.1;
        }
        outer
    }
}
