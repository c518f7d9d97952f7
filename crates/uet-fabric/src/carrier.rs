//! The UDP link of a domain: addresses and ports of peers, impairments, and the capture.

use crate::error::{Code, Error, Result};
use crate::interface::Interface;
use crate::peers::{OWN_PORT, Peers, SHARED_PORTS, as_ipv6, identity};
use crate::settings::Settings;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;
use uet_emulator::Nic;
use uet_emulator::capture::Capture;
use uet_emulator::frame::{Framed, Outer, Record};
use uet_emulator::link::since_1970;
use uet_emulator::link::udp::UdpLink;
use uet_model::network::Fabric;
use uet_model::secure::{Encapsulation, Ports};
use uet_model::{Packet, Time};

/// The first of eight source ports, which stand for entropy values. Equal ports at all NICs let an ACK echo the entropy
/// value of its request. Packets of NICs that share an address count as packets from this port.
const SOURCE_PORT: u16 = 16_000;

/// Maximum number of packets that leave together.
const TURN: usize = 64;

/// The link of one NIC.
pub(crate) struct Carrier {
    link: UdpLink,
    own: IpAddr,
    peers: Peers,
    /// The network that impairs sent packets.
    fabric: Option<Fabric>,
    capture: Option<Capture>,
    leaving: Vec<(Packet, u16)>,
    began: Instant,
    began_at: Duration,
}

/// Creates a file that only its owner can read. Others may know its name and write to its folder, so a symbolic
/// link there is an error.
fn create_private(path: &str) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
    options.write(true).create(true).truncate(true).open(path)
}

impl Carrier {
    /// Opens the link of the domain with this number in the process.
    pub(crate) fn open(interface: &Interface, settings: &Settings, number: u32) -> Result<Self> {
        let mut link = bind(interface, settings.port, number)?;
        if SHARED_PORTS.contains(&link.local().port()) {
            link.send_from_one_port();
        } else {
            // If another program has a port, echoed entropy values are wrong, which only impairs the choice of paths.
            let _ = link.send_from_ports(SOURCE_PORT);
        }
        if settings.offload {
            // Each packet otherwise passes the network stack of the kernel by itself. A kernel that lacks it sends as before.
            link.offload();
        }
        let fabric = (!settings.impairments.is_empty()).then(|| {
            let mut fabric = Fabric::new(settings.config.seed);
            fabric.latency = Duration::ZERO;
            settings.impairments.iter().for_each(|rule| fabric.impair(rule.clone()));
            fabric
        });
        let capture = settings.capture_path(std::process::id(), number).map(|path| {
            let open = |file| Capture::new(Box::new(BufWriter::new(file)), Outer::default());
            create_private(&path)
                .and_then(open)
                .map_err(|error| Error::from_io(&format!("FI_UET_CAPTURE: {path}"), &error))
        });
        Ok(Carrier {
            own: identity(link.local()),
            link,
            peers: Peers::default(),
            fabric,
            capture: capture.transpose()?,
            leaving: Vec::new(),
            began: Instant::now(),
            began_at: since_1970(),
        })
    }

    /// Returns the address by which the model knows this NIC.
    pub(crate) fn identity(&self) -> IpAddr {
        self.own
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.link.local()
    }

    pub(crate) fn now(&self) -> Time {
        Time::ZERO + self.began.elapsed()
    }

    /// Returns a second file descriptor of the socket, to wait for packets.
    pub(crate) fn socket(&self) -> io::Result<OwnedFd> {
        self.link.as_fd().try_clone_to_owned()
    }

    pub(crate) fn add_peer(&mut self, address: SocketAddr) {
        self.peers.add(address);
    }

    /// Returns the encapsulation that transport security authenticates: the ports of a NIC that has its address for itself.
    pub(crate) fn encapsulation(&self) -> Encapsulation {
        let (shared, ways) = (self.is_shared(), self.link.source_ports());
        let leaving = move |packet: &Packet| {
            let way = usize::from(packet.entropy).checked_rem(ways.len()).and_then(|way| ways.get(way));
            let src = way.copied().filter(|_| !shared).unwrap_or(SOURCE_PORT);
            Ports { src, dst: OWN_PORT }
        };
        let came = |packet: &Packet| Ports { src: packet.entropy, dst: OWN_PORT };
        Encapsulation::UdpPorts(Box::new(leaving), Box::new(came))
    }

    /// Returns whether other NICs have the same address.
    fn is_shared(&self) -> bool {
        SHARED_PORTS.contains(&self.local().port())
    }

    /// Hands arrived packets to the NIC; returns whether there were any.
    pub(crate) fn receive(&mut self, nic: &mut Nic) -> io::Result<bool> {
        let arrived = self.link.receive_batch()?;
        let any = !arrived.is_empty();
        for mut packet in arrived {
            let from = SocketAddr::new(packet.src, packet.entropy);
            self.peers.learn(from, || nic.peers());
            if SHARED_PORTS.contains(&from.port()) {
                packet.entropy = SOURCE_PORT;
            }
            (packet.src, packet.dst) = (identity(from), self.own);
            self.record(&packet, packet.entropy);
            let now = self.now();
            nic.handle_framed(now, Framed::inside(packet), &self.link.classes);
        }
        Ok(any)
    }

    /// Sends packets of the NIC; returns whether more may be waiting.
    pub(crate) fn send(&mut self, nic: &mut Nic) -> bool {
        for _ in 0..4 {
            while self.leaving.len() < TURN {
                let Some(packet) = nic.poll_transmit(self.now()) else { break };
                let shared = self.is_shared();
                let way = if shared { SOURCE_PORT } else { self.link.source_port(packet.entropy) };
                self.record(&packet, way);
                let now = self.now();
                match &mut self.fabric {
                    Some(fabric) => fabric.send(now, packet),
                    None => self.enqueue(packet, nic),
                }
            }
            let now = self.now();
            while let Some(arrival) = self.fabric.as_mut().and_then(|fabric| fabric.receive(now)) {
                // A packet with a wrong CRC never reaches an application.
                if !arrival.corrupt {
                    self.enqueue(arrival.packet, nic);
                }
            }
            if self.leaving.is_empty() {
                return false;
            }
            self.link.send_all(&self.leaving, |why| nic.count_dropped(why));
            self.leaving.clear();
        }
        true
    }

    fn enqueue(&mut self, mut packet: Packet, nic: &mut Nic) {
        let Some(to) = self.peers.real(packet.dst) else {
            return nic.count_dropped("not sent: the address of the stranger is forgotten");
        };
        packet.dst = to.ip();
        self.leaving.push((packet, to.port()));
    }

    /// Returns when the impaired network delivers the next packet.
    pub(crate) fn poll_timeout(&mut self) -> Option<Time> {
        self.fabric.as_mut().and_then(Fabric::next_at)
    }

    /// Writes a packet to the capture. NICs that share an address appear there with the addresses by which the model knows
    /// them, and with the registered port: readers of captures tell NICs apart by address.
    fn record(&mut self, packet: &Packet, source_port: u16) {
        let at = Time::ZERO + self.began_at + self.began.elapsed();
        let Some(capture) = &mut self.capture else { return };
        let ports = Some(Ports { src: source_port, dst: OWN_PORT });
        if packet.src.is_ipv4() == packet.dst.is_ipv4() {
            capture.write(&Record { ports, ..Record::new(at, packet) });
        } else {
            let (src, dst) = (as_ipv6(packet.src).into(), as_ipv6(packet.dst).into());
            let packet = Packet { src, dst, ..packet.clone() };
            capture.write(&Record { ports, ..Record::new(at, &packet) });
        }
    }

    /// Writes buffered packets to the capture file.
    pub(crate) fn flush(&mut self) {
        if let Some(capture) = &mut self.capture {
            // `finish` reports the error.
            let _ = capture.flush();
        }
    }

    /// Ends the capture file.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.capture.take().map_or(Ok(()), |capture| capture.finish().map(|_| ()))
    }
}

/// Binds the socket of a NIC: to an address of its own if possible, else to a port of its own.
fn bind(interface: &Interface, port: Option<u16>, number: u32) -> Result<UdpLink> {
    let own_loopback =
        interface.address == IpAddr::V4(Ipv4Addr::LOCALHOST) && port.is_none() && interface.prefix < 32;
    let addresses: Vec<SocketAddr> = match port {
        Some(port) => vec![SocketAddr::new(interface.address, port)],
        None if own_loopback => {
            let first = std::process::id().wrapping_mul(3) & 0xffff;
            // Peers may still know contexts at the address of an earlier domain.
            let number = number & 0xffff;
            let near = (number..number + 256).map(|step| {
                let [_, _, c, d] = (first.wrapping_add(step * 257)).to_be_bytes();
                SocketAddr::new(Ipv4Addr::new(127, 117, c, d).into(), OWN_PORT)
            });
            near.collect()
        }
        None => {
            let ports = core::iter::once(OWN_PORT).chain(SHARED_PORTS);
            ports.map(|port| SocketAddr::new(interface.address, port)).collect()
        }
    };
    let mut last = Error::new(Code::EADDRNOTAVAIL, "no address to bind to");
    for address in addresses {
        match UdpLink::bind(address) {
            Ok(link) => return Ok(link),
            Err(error) => {
                let taken = error.kind() == io::ErrorKind::AddrInUse;
                last = Error::from_io(&format!("cannot bind to {address}"), &error);
                if !taken {
                    break;
                }
            }
        }
    }
    Err(last)
}
