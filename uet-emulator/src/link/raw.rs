//! Ethernet frames on an interface, by libpcap (feature `live`): all that sockets cannot do, trailers, trimming and the native
//! encapsulation. It takes CAP_NET_RAW.
//!
//! There is no ARP here. The Ethernet address of a peer is that from which its packets come, or what somebody has said; until
//! one is known, frames go to all. So two ends that know nothing but each other's IP addresses meet by the first packet, and no
//! table of neighbours has to be kept or asked for. Addresses of the link need not be known to the system; when they are, it
//! answers ARP for them, which devices that ask need.

use super::udp::Waited;
use crate::frame::{Framed, Mac, Outer, Record, frame_between, read};
use core::net::IpAddr;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use pcap::{Active, Capture, Direction, Linktype};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Longer than any packet of UET with all that is around it.
const LONGEST: i32 = 10_000;

/// What the system may hold while nobody reads.
const BUFFER: i32 = 16 << 20;

/// How many peers are remembered: whoever sends under more addresses makes them all be forgotten.
const NEIGHBOURS: usize = 4096;

/// How many frames are looked at until one is a packet.
const TURN: usize = 64;

const TO_ALL: Mac = [0xff; 6];

/// UET endpoints on an interface.
pub struct RawLink {
    outer: Outer,
    interface: String,
    mac: Mac,
    local: Vec<IpAddr>,
    neighbours: HashMap<IpAddr, Mac>,
    capture: Capture<Active>,
}

impl core::fmt::Debug for RawLink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RawLink")
            .field("interface", &self.interface)
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl RawLink {
    /// Takes what comes for these addresses on this interface, and looks as `outer` says.
    pub fn open(interface: &str, local: &[IpAddr], outer: Outer) -> io::Result<Self> {
        let mut capture = listen(interface, false)?;
        let link = capture.get_datalink();
        if link != Linktype::ETHERNET {
            let name = link.get_name().unwrap_or_default();
            return Err(io::Error::other(format!("{interface}: not Ethernet, but {name}")));
        }
        let wanted: Vec<String> = local.iter().map(|address| format!("dst host {address}")).collect();
        let told = |error| about(interface, error);
        capture.filter(&wanted.join(" or "), true).map_err(told)?;
        capture.direction(Direction::In).map_err(told)?;
        let capture = capture.setnonblock().map_err(told)?;
        let of_it = of_interface(interface)?;
        let mac = of_it.iter().find_map(|address| address.as_link_addr()?.addr());
        let mac = mac.ok_or_else(|| io::Error::other(format!("{interface}: has no Ethernet address")))?;
        let (interface, local) = (interface.to_owned(), local.to_vec());
        Ok(RawLink { outer, interface, mac, local, neighbours: HashMap::new(), capture })
    }

    /// How packets look here.
    pub fn outer(&self) -> &Outer {
        &self.outer
    }

    /// Its addresses.
    pub fn local(&self) -> &[IpAddr] {
        &self.local
    }

    /// The interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The Ethernet address of the interface.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Says what Ethernet address a peer has.
    pub fn learn(&mut self, peer: IpAddr, mac: Mac) {
        if self.neighbours.len() >= NEIGHBOURS && !self.neighbours.contains_key(&peer) {
            self.neighbours.clear();
        }
        self.neighbours.insert(peer, mac);
    }

    /// Sends a packet, with what is to happen to it, to this port of its destination. What the system does not take is lost;
    /// the error says why.
    pub fn send(&mut self, record: &Record<'_>, port: u16) -> Result<(), &'static str> {
        let to = self.neighbours.get(&record.packet.dst).copied().unwrap_or(TO_ALL);
        let frame = frame_between([self.mac, to], port, record, &self.outer)
            .map_err(|_| "not sent: no frame can be made of it")?;
        self.capture.sendpacket(frame).map_err(|error| {
            let said = error.to_string();
            match said {
                said if said.contains("too long") => "not sent: longer than the MTU of the interface",
                said if said.contains("No buffer space") => "not sent: the system takes no more",
                _ => "not sent: the system cannot",
            }
        })
    }

    /// The next packet that has come, whatever it is. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Framed>> {
        // What is none of ours does not keep others waiting.
        for _ in 0..TURN {
            let frame = match self.capture.next_packet() {
                Ok(frame) => frame,
                Err(pcap::Error::TimeoutExpired) => return Ok(None),
                Err(error) => return Err(about(&self.interface, error)),
            };
            let Some(framed) = read(frame.data, &self.outer) else { continue };
            if framed.damage.is_none() {
                self.learn(framed.packet.src, framed.mac);
            }
            return Ok(Some(framed));
        }
        Ok(None)
    }
}

impl AsFd for RawLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.capture.as_fd()
    }
}

/// The IP addresses that the system has on an interface; those of IPv6 that mean something on every link.
pub fn addresses(interface: &str) -> io::Result<Vec<IpAddr>> {
    let ip = |address: &SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let v6 = || address.as_sockaddr_in6().map(|v6| v6.ip()).filter(|v6| !v6.is_unicast_link_local());
        v4.or_else(|| v6().map(IpAddr::V6))
    };
    Ok(of_interface(interface)?.iter().filter_map(ip).collect())
}

fn of_interface(interface: &str) -> io::Result<Vec<SockaddrStorage>> {
    let of_it = getifaddrs()?.filter(|one| one.interface_name == interface);
    Ok(of_it.filter_map(|one| one.address).collect())
}

/// Whatever passes an interface, for who only looks.
pub struct Tap(Capture<Active>);

/// A frame that has passed.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// When, since 1970, in seconds and microseconds.
    pub at: (i64, i64),
    /// How long it is.
    pub wire: usize,
    /// The frame.
    pub bytes: &'a [u8],
}

impl Tap {
    /// Listens to an interface, also to what is for others.
    pub fn open(interface: &str) -> io::Result<Self> {
        let capture = listen(interface, true)?;
        Ok(Tap(capture.setnonblock().map_err(|error| about(interface, error))?))
    }

    /// What its frames begin with, by the number that captures have for it.
    pub fn link_type(&self) -> i32 {
        self.0.get_datalink().0
    }

    /// The next that has passed. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Passed<'_>>> {
        match self.0.next_packet() {
            Ok(frame) => {
                let pcap::PacketHeader { ts, len, .. } = *frame.header;
                Ok(Some(Passed { at: (ts.tv_sec, ts.tv_usec), wire: len as usize, bytes: frame.data }))
            }
            Err(pcap::Error::TimeoutExpired) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// How many frames passed that nobody was quick enough to look at.
    pub fn missed(&mut self) -> u32 {
        self.0.stats().map_or(0, |stats| stats.dropped)
    }
}

impl core::fmt::Debug for Tap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Tap")
    }
}

impl Waited for Tap {
    fn has_more(&self) -> bool {
        false
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn listen(interface: &str, promiscuous: bool) -> io::Result<Capture<Active>> {
    let capture = Capture::from_device(interface).and_then(|capture| {
        let capture = capture.promisc(promiscuous).snaplen(LONGEST).buffer_size(BUFFER);
        capture.immediate_mode(true).open()
    });
    capture.map_err(|error| about(interface, error))
}

fn about(interface: &str, error: pcap::Error) -> io::Error {
    let said = error.to_string();
    let hint = match said.contains("permitted") || said.contains("ermission") {
        true => "; it takes the capability CAP_NET_RAW: sudo, or once `setcap cap_net_raw+ep` on the program",
        false => "",
    };
    io::Error::other(format!("{interface}: {said}{hint}"))
}
