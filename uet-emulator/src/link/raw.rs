//! Ethernet frames on an interface through libpcap (feature `live`). They support trailers, trimming and the native
//! encapsulation, which sockets cannot do. Requires CAP_NET_RAW.
//!
//! This link does not use ARP. It takes a peer's Ethernet address from the peer's packets or from [`RawLink::learn`].
//! Until one is known, it broadcasts frames. Two ends that know only each other's IP addresses therefore meet with the
//! first packet. The system need not know the addresses of the link. If it does, it answers ARP for them, which devices
//! that use ARP need.

use super::udp::Waited;
use crate::frame::{Framed, Mac, Outer, Record, frame_between, read};
use core::net::IpAddr;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use pcap::{Active, Capture, Direction, Linktype};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Longer than any UET packet with its outer headers.
const LONGEST: i32 = 10_000;

/// Maximum number of bytes that the system buffers between reads.
const BUFFER: i32 = 16 << 20;

/// Maximum number of remembered peers. When a peer exceeds it, all are forgotten.
const NEIGHBORS: usize = 4096;

/// Maximum number of frames that one call examines to find a packet.
const TURN: usize = 64;

const TO_ALL: Mac = [0xff; 6];

/// UET endpoints on an interface.
pub struct RawLink {
    outer: Outer,
    interface: String,
    mac: Mac,
    local: Vec<IpAddr>,
    neighbors: HashMap<IpAddr, Mac>,
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
    /// Opens this interface for packets to these addresses, with the encapsulation `outer`.
    pub fn open(interface: &str, local: &[IpAddr], outer: Outer) -> io::Result<Self> {
        let mut capture = listen(interface, false)?;
        let link = capture.get_datalink();
        if link != Linktype::ETHERNET {
            let name = link.get_name().unwrap_or_default();
            return Err(io::Error::other(format!(
                "{interface} is not an Ethernet interface: its link type is {name}"
            )));
        }
        let wanted: Vec<String> = local.iter().map(|address| format!("dst host {address}")).collect();
        let told = |error| about(interface, error);
        capture.filter(&wanted.join(" or "), true).map_err(told)?;
        capture.direction(Direction::In).map_err(told)?;
        let capture = capture.setnonblock().map_err(told)?;
        let of_it = of_interface(interface)?;
        let mac = of_it.iter().find_map(|address| address.as_link_addr()?.addr());
        let mac = mac.ok_or_else(|| io::Error::other(format!("{interface} has no Ethernet address")))?;
        let (interface, local) = (interface.to_owned(), local.to_vec());
        Ok(RawLink { outer, interface, mac, local, neighbors: HashMap::new(), capture })
    }

    /// Returns the encapsulation of packets.
    pub fn outer(&self) -> &Outer {
        &self.outer
    }

    /// Returns the local addresses.
    pub fn local(&self) -> &[IpAddr] {
        &self.local
    }

    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the Ethernet address of the interface.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Sets the Ethernet address of a peer.
    pub fn learn(&mut self, peer: IpAddr, mac: Mac) {
        if self.neighbors.len() >= NEIGHBORS && !self.neighbors.contains_key(&peer) {
            self.neighbors.clear();
        }
        self.neighbors.insert(peer, mac);
    }

    /// Sends a packet with its impairments to this port of its destination. Fails if the system rejects the packet; the
    /// packet is then lost.
    pub fn send(&mut self, record: &Record<'_>, port: u16) -> Result<(), &'static str> {
        let to = self.neighbors.get(&record.packet.dst).copied().unwrap_or(TO_ALL);
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

    /// Returns the next packet that has arrived, even a malformed one. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Framed>> {
        // Foreign frames do not keep other work waiting.
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

/// Returns the IP addresses of an interface; without IPv6 addresses of link-local scope.
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

/// A passive listener for all frames on an interface.
pub struct Tap(Capture<Active>);

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// Time since 1970, in seconds and microseconds.
    pub at: (i64, i64),
    /// Length on the wire, in bytes.
    pub wire: usize,
    /// The frame.
    pub bytes: &'a [u8],
}

impl Tap {
    /// Opens an interface in promiscuous mode.
    pub fn open(interface: &str) -> io::Result<Self> {
        let capture = listen(interface, true)?;
        Ok(Tap(capture.setnonblock().map_err(|error| about(interface, error))?))
    }

    /// Returns the link type of its frames as captures number it.
    pub fn link_type(&self) -> i32 {
        self.0.get_datalink().0
    }

    /// Returns the next frame. Does not wait.
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

    /// Returns the number of frames dropped because the reader was too slow.
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
        true => "; run with sudo, or grant the capability once: `setcap cap_net_raw+ep PROGRAM`",
        false => "",
    };
    io::Error::other(format!("{interface}: {said}{hint}"))
}
