//! Ethernet frames on an interface through a packet socket (AF_PACKET). They support trailers, trimming and the native
//! encapsulation, which UDP sockets cannot do. Requires CAP_NET_RAW.
//!
//! The link takes a peer's Ethernet address from [`RawLink::configure`], from the peer's packets, or from its answer to
//! ARP or neighbor discovery. While an address is unknown, the link asks for it and broadcasts frames. Two ends that know
//! only each other's IP addresses therefore meet with the first packet. The link also answers such questions for its own
//! addresses, so the system need not know them.

use super::neighbor::{self, Heard, Neighbors, PeerMac};
use super::packet_socket::{self, ETHERNET, OUTGOING, PacketSocket};
use super::udp::{Waited, wait};
use crate::frame::{Framed, Mac, Outer, Record, frame_between, read};
use core::net::IpAddr;
use core::time::Duration;
use nix::errno::Errno;
use nix::sys::socket::{LinkAddr, MsgFlags, SockaddrStorage, recvfrom, send};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

/// Longer than any UET packet with its outer headers.
const LONGEST: usize = 10_000;

/// The type of a frame to another Ethernet address.
const OTHER_HOST: u8 = 3;

/// Time between two questions for a peer in [`RawLink::resolve`].
const PATIENCE: Duration = Duration::from_millis(200);

/// Maximum number of frames that one call examines to find a packet.
const TURN: usize = 64;

const TO_ALL: Mac = [0xff; 6];

/// UET endpoints on an interface.
pub struct RawLink {
    outer: Outer,
    mac: Mac,
    local: Vec<IpAddr>,
    neighbors: Neighbors,
    socket: PacketSocket,
    buffer: Vec<u8>,
}

impl core::fmt::Debug for RawLink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RawLink")
            .field("interface", &self.interface())
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl RawLink {
    /// Opens this interface for packets to these addresses, with the encapsulation `outer`.
    pub fn open(interface: &str, local: &[IpAddr], outer: Outer) -> io::Result<Self> {
        let socket = PacketSocket::open(interface)?;
        let kind = socket.place.hatype();
        let mac = socket.place.addr().filter(|_| ETHERNET.contains(&kind)).ok_or_else(|| {
            io::Error::other(format!("{interface} is not an Ethernet interface: its hardware type is {kind}"))
        })?;
        let (neighbors, buffer) = (Neighbors::default(), vec![0; LONGEST]);
        Ok(RawLink { outer, mac, local: local.to_vec(), neighbors, socket, buffer })
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
        &self.socket.interface
    }

    /// Returns the Ethernet address of the interface.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Sets the Ethernet address of a peer. Packets do not change it.
    pub fn configure(&mut self, peer: PeerMac) {
        self.neighbors.configure(peer);
    }

    /// Records the Ethernet address of a peer until one of its packets has another.
    pub fn learn(&mut self, peer: IpAddr, mac: Mac) {
        self.neighbors.learn(peer, mac);
    }

    /// Asks for the Ethernet address of a peer, up to three times, unless it is known. Returns whether it is known then.
    /// Drops packets that arrive meanwhile.
    pub fn resolve(&mut self, peer: IpAddr) -> io::Result<bool> {
        for _ in 0..3 {
            let until = Instant::now() + PATIENCE;
            self.ask(peer);
            while self.neighbors.get(peer).is_none() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                wait(core::slice::from_ref(self), left)?;
                self.receive()?;
            }
        }
        Ok(self.neighbors.get(peer).is_some())
    }

    /// Asks for the Ethernet address of a peer, unless it is known or the last question is recent.
    fn ask(&mut self, peer: IpAddr) {
        let own = self.local.iter().find(|own| own.is_ipv4() == peer.is_ipv4());
        let Some(own) = own.map(|own| PeerMac { address: *own, mac: self.mac }) else { return };
        if self.neighbors.is_question_due(peer, Instant::now()) {
            self.send_frame(neighbor::question(own, peer));
        }
    }

    /// Learns from ARP or neighbor discovery, and answers a question for an address of this link.
    fn hear(&mut self, Heard { peer, asks_for }: Heard) {
        if asks_for.is_some_and(|wanted| !self.local.contains(&wanted)) || peer.address.is_unspecified() {
            return;
        }
        self.learn(peer.address, peer.mac);
        if let Some(address) = asks_for {
            self.send_frame(neighbor::answer(PeerMac { address, mac: self.mac }, peer));
        }
    }

    /// Sends a frame that may get lost: the peer asks again, or the link does.
    fn send_frame(&self, frame: Option<Vec<u8>>) {
        if let Some(frame) = frame {
            let _ = send(self.socket.as_raw_fd(), &frame, MsgFlags::empty());
        }
    }

    /// Sends a packet with its impairments to this port of its destination. Fails if the system rejects the packet; the
    /// packet is then lost.
    pub fn send(&mut self, record: &Record<'_>, port: u16) -> Result<(), &'static str> {
        let known = self.neighbors.get(record.packet.dst);
        if known.is_none() {
            self.ask(record.packet.dst);
        }
        let to = known.unwrap_or(TO_ALL);
        let frame = frame_between([self.mac, to], port, record, &self.outer)
            .map_err(|_| "not sent: no frame can be made of it")?;
        match send(self.socket.as_raw_fd(), &frame, MsgFlags::empty()) {
            Ok(_) => Ok(()),
            Err(Errno::EMSGSIZE) => Err("not sent: longer than the MTU of the interface"),
            Err(Errno::EAGAIN | Errno::ENOBUFS) => Err("not sent: the system takes no more"),
            Err(_) => Err("not sent: the system cannot"),
        }
    }

    /// Returns the next packet that has arrived, even a malformed one. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Framed>> {
        // Foreign frames do not keep other work waiting.
        for _ in 0..TURN {
            let (length, from) = match recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut self.buffer) {
                Ok(received) => received,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(self.socket.failed(error)),
            };
            let is_wanted = |from: LinkAddr| {
                ![OTHER_HOST, OUTGOING].contains(&from.pkttype()) && self.socket.is_own(&from)
            };
            if !from.is_none_or(is_wanted) {
                continue;
            }
            let frame = self.buffer.get(..length).unwrap_or_default();
            if let Some(heard) = neighbor::read(frame) {
                self.hear(heard);
                continue;
            }
            let Some(framed) = read(frame, &self.outer) else { continue };
            if !self.local.contains(&framed.packet.dst) {
                continue;
            }
            if framed.damage.is_none() {
                self.learn(framed.packet.src, framed.mac);
            }
            return Ok(Some(framed));
        }
        Ok(None)
    }
}

impl Waited for RawLink {}

impl AsFd for RawLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the IP addresses of an interface; without IPv6 addresses of link-local scope.
pub fn addresses(interface: &str) -> io::Result<Vec<IpAddr>> {
    let ip = |address: &SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let v6 = || address.as_sockaddr_in6().map(|v6| v6.ip()).filter(|v6| !v6.is_unicast_link_local());
        v4.or_else(|| v6().map(IpAddr::V6))
    };
    Ok(packet_socket::addresses(interface)?.iter().filter_map(ip).collect())
}
