//! UDP sockets. They carry DSCP, ECN and the entropy value of packets. Sockets do not support a CRC, a UDP checksum of
//! 0 or trimming.

use super::packet;
use crate::classes::Classes;
use bytes::Bytes;
use core::cell::Cell;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::sockopt::UdpGroSegment;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg,
    sendmsg, setsockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use uet_model::Packet;

/// Number of source ports. Each entropy value maps to one of them.
const WAYS: usize = 8;

/// Requested size of a socket's receive buffer in bytes. The system may grant less.
const BUFFER: usize = 4 << 20;

/// Maximum number of datagrams per system call.
const BATCH: usize = 32;

/// Minimum number of datagrams for which a receiving call has room. A call that finds nothing should be cheap.
const LEAST: usize = 4;

/// Maximum number of bytes joined into one segmentation-offload buffer.
const JOINED: usize = 60_000;

/// Maximum length of a datagram.
const LONGEST: usize = 1 << 16;

/// A UET endpoint on UDP sockets. It listens on one port and sends from several, since the source port is the entropy
/// value and may select the path.
///
/// ```
/// use uet_emulator::link::udp::UdpLink;
/// use uet_model::Packet;
///
/// let ack = bytes::Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let a = UdpLink::bind(([127, 0, 0, 1], 0).into())?;
/// let mut b = UdpLink::bind(([127, 0, 0, 2], 0).into())?;
///
/// let packet = Packet { marked: true, ..Packet::from_wire([127, 0, 0, 1], [127, 0, 0, 2], ack)? };
/// a.send(&packet, b.local().port())?;
/// let received = loop {
///     if let Some(packet) = b.receive()? {
///         break packet;
///     }
/// };
/// assert_eq!(received.to_wire(), packet.to_wire());
/// assert!(received.marked, "ECN passes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UdpLink {
    /// Meaning of DSCPs.
    pub classes: Classes,
    local: SocketAddr,
    main: Socket,
    ways: Vec<Way>,
    /// Room for a batch.
    buffer: Vec<u8>,
    offload: Cell<bool>,
    /// Packets received and not yet returned.
    arrived: VecDeque<Packet>,
    /// Number of datagrams for which the next receiving call has room.
    room: usize,
}

/// A sending socket, and its port.
#[derive(Debug)]
struct Way {
    socket: Socket,
    port: u16,
}

impl Way {
    fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket(address)?;
        let port = socket.local_addr()?.as_socket().map_or(address.port(), |local| local.port());
        Ok(Way { socket, port })
    }
}

impl UdpLink {
    /// Listens on this address; port 0 picks a free one. The address must belong to this machine: it is the endpoint's.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            let message = format!(
                "{} is not the address of one endpoint; name an address of this machine",
                address.ip()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let main = socket(address)?;
        let local = main.local_addr()?.as_socket().unwrap_or(address);
        let way = |_| Way::bind(SocketAddr::new(address.ip(), 0));
        let ways = (0..WAYS).map(way).collect::<io::Result<_>>()?;
        let (classes, buffer) = (Classes::default(), vec![0; BATCH * LONGEST]);
        let arrived = VecDeque::new();
        Ok(UdpLink { classes, local, main, ways, buffer, offload: Cell::new(false), arrived, room: LEAST })
    }

    /// Enables UDP segmentation offload and returns whether the system supports it. The system then splits and joins
    /// datagrams of equal length, which saves system calls. Captures made on this machine show the packets joined.
    pub fn offload(&mut self) -> bool {
        self.offload.set(setsockopt(&self.main, UdpGroSegment, &true).is_ok());
        self.offload.get()
    }

    /// Sends all packets from the port it listens on, whatever their entropy values. NICs that share an address can then
    /// be told apart by their source ports.
    pub fn send_from_one_port(&mut self) {
        self.ways.clear();
    }

    /// Sends from eight ports, the first of which is a multiple of eight. NICs with the same ports echo entropy values
    /// exactly. Fails without a change if a port is taken.
    pub fn send_from_ports(&mut self, first: u16) -> io::Result<()> {
        let way = |port| Way::bind(SocketAddr::new(self.local.ip(), port));
        self.ways = (first..).take(WAYS).map(way).collect::<io::Result<_>>()?;
        Ok(())
    }

    /// Returns the local address and port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the source port for this entropy value.
    pub fn source_port(&self, entropy: u16) -> u16 {
        self.ways.get(usize::from(entropy) % WAYS).map_or(self.local.port(), |way| way.port)
    }

    /// Returns the source ports of all entropy values, by the remainder of the value.
    pub fn source_ports(&self) -> Vec<u16> {
        if self.ways.is_empty() {
            return vec![self.local.port()];
        }
        self.ways.iter().map(|way| way.port).collect()
    }

    /// Sends a packet to this port of its destination. Fails if the system rejects the packet; the packet is then lost.
    pub fn send(&self, packet: &Packet, port: u16) -> Result<(), &'static str> {
        let tos = self.classes.tos(packet);
        let wide = i32::from(tos);
        let control = [class(packet.dst, &tos, &wide)];
        let parts = [IoSlice::new(&packet.head), IoSlice::new(&packet.payload)];
        let to = SockaddrStorage::from(SocketAddr::new(packet.dst, port));
        let sent = sendmsg(self.way(packet).as_raw_fd(), &parts, &control, MsgFlags::empty(), Some(&to));
        sent.map(|_| ()).map_err(|error| match error {
            Errno::EAGAIN | Errno::ENOBUFS => "not sent: the system takes no more",
            Errno::EMSGSIZE => "not sent: too long for the system",
            _ => "not sent: the system cannot",
        })
    }

    fn way(&self, packet: &Packet) -> &Socket {
        self.ways.get(usize::from(packet.entropy) % WAYS).map_or(&self.main, |way| &way.socket)
    }

    /// Sends packets, each to its port, with as few system calls as possible. Packets with equal entropy values keep
    /// their order. Calls `lost` with the reason for each packet that the system rejects.
    pub fn send_all(&self, packets: &[(Packet, u16)], mut lost: impl FnMut(&'static str)) {
        let key =
            |(packet, _): &(Packet, u16)| (usize::from(packet.entropy) % WAYS, self.classes.tos(packet));
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|place| packets.get(*place).map(key));
        let packets: Vec<_> = order.iter().filter_map(|place| packets.get(*place)).collect();
        for alike in packets.chunk_by(|a, b| key(a) == key(b)).flat_map(|alike| alike.chunks(BATCH)) {
            let mut left = alike;
            while let [first, rest @ ..] = left {
                // A rejected packet holds back those behind it.
                left = match if rest.is_empty() { 0 } else { self.send_alike(left) } {
                    0 => {
                        if let Err(why) = self.send(&first.0, first.1) {
                            lost(why);
                        }
                        rest
                    }
                    sent => left.get(sent..).unwrap_or_default(),
                };
            }
        }
    }

    /// Sends packets of one source port and class; returns how many the system accepted.
    fn send_alike(&self, packets: &[&(Packet, u16)]) -> usize {
        let Some((first, _)) = packets.first() else { return 0 };
        if let Some(joined) = self.send_joined(packets) {
            return joined;
        }
        let tos = self.classes.tos(first);
        let wide = i32::from(tos);
        let parts: Vec<_> = packets
            .iter()
            .map(|(packet, _)| [IoSlice::new(&packet.head), IoSlice::new(&packet.payload)])
            .collect();
        let to: Vec<_> = packets
            .iter()
            .map(|(packet, port)| Some(SockaddrStorage::from(SocketAddr::new(packet.dst, *port))))
            .collect();
        let mut headers = MultiHeaders::preallocate(packets.len(), Some(cmsg_space!(i32)));
        let control = [class(first.dst, &tos, &wide)];
        let sent =
            sendmmsg(self.way(first).as_raw_fd(), &mut headers, &parts, &to, control, MsgFlags::empty());
        sent.map_or(0, Iterator::count)
    }

    /// Sends the longest run of packets with equal destination and length in one call, if offload is on and possible.
    fn send_joined(&self, packets: &[&(Packet, u16)]) -> Option<usize> {
        let (first, port) = packets.first().filter(|_| self.offload.get())?;
        let length = |packet: &Packet| packet.head.len() + packet.payload.len();
        let size = u16::try_from(length(first)).ok().filter(|size| *size > 0)?;
        let alike = |(packet, to): &&&(Packet, u16)| {
            length(packet) == usize::from(size) && (packet.dst, to) == (first.dst, port)
        };
        let joined = packets.iter().take(JOINED / usize::from(size)).take_while(alike).count();
        if joined < 2 {
            return None;
        }
        let tos = self.classes.tos(first);
        let wide = i32::from(tos);
        let parts = packets.iter().take(joined).flat_map(|(packet, _)| [&packet.head[..], &packet.payload]);
        let parts: Vec<_> = parts.map(IoSlice::new).collect();
        let control = [class(first.dst, &tos, &wide), ControlMessage::UdpGsoSegments(&size)];
        let to = SockaddrStorage::from(SocketAddr::new(first.dst, *port));
        let sent = sendmsg(self.way(first).as_raw_fd(), &parts, &control, MsgFlags::empty(), Some(&to));
        // Packets that do not fit a frame of the interface cannot be joined, today or later.
        self.offload.set(sent != Err(Errno::EINVAL));
        sent.is_ok().then_some(joined)
    }

    /// Returns the next packet that has arrived, even a malformed one. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Packet>> {
        if self.arrived.is_empty() {
            self.collect()?;
        }
        Ok(self.arrived.pop_front())
    }

    /// Returns the packets that one system call brings. Does not wait.
    pub fn receive_batch(&mut self) -> io::Result<VecDeque<Packet>> {
        if self.arrived.is_empty() {
            self.collect()?;
        }
        Ok(core::mem::take(&mut self.arrived))
    }

    /// Receives a batch.
    fn collect(&mut self) -> io::Result<()> {
        let UdpLink { classes, local, main, buffer, arrived, room, .. } = self;
        let parts = buffer.chunks_exact_mut(LONGEST).take(*room);
        let mut parts: Vec<_> = parts.map(|part| [IoSliceMut::new(part)]).collect();
        let mut headers = MultiHeaders::preallocate(*room, Some(cmsg_space!(u8, i32, i32)));
        let came = recvmmsg(main.as_raw_fd(), &mut headers, &mut parts, MsgFlags::empty(), None);
        let came = match came {
            Ok(came) => came,
            Err(Errno::EAGAIN | Errno::EINTR) => {
                *room = LEAST;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for message in came {
            count += 1;
            let from = message.address.and_then(|address: SockaddrStorage| {
                let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
                v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
            });
            let Some(from) = from else { continue };
            let (mut tos, mut size) = (0, usize::MAX);
            for control in message.cmsgs().into_iter().flatten() {
                match control {
                    ControlMessageOwned::Ipv4Tos(value) => tos = value,
                    ControlMessageOwned::Ipv6TClass(value) => tos = value as u8,
                    ControlMessageOwned::UdpGroSegments(value) => {
                        size = usize::try_from(value).unwrap_or(size)
                    }
                    _ => {}
                }
            }
            let mut rest = Bytes::copy_from_slice(message.iovs().next().unwrap_or_default());
            while rest.len() > size && size > 0 {
                arrived.push_back(read(classes, from, local.ip(), tos, rest.split_to(size)));
            }
            arrived.push_back(read(classes, from, local.ip(), tos, rest));
        }
        *room = (4 * count).clamp(LEAST, BATCH);
        Ok(())
    }
}

/// Returns the control message that sets the traffic class of sent packets.
fn class<'a>(to: IpAddr, tos: &'a u8, wide: &'a i32) -> ControlMessage<'a> {
    match to {
        IpAddr::V4(_) => ControlMessage::Ipv4Tos(tos),
        IpAddr::V6(_) => ControlMessage::Ipv6TClass(wide),
    }
}

/// Converts a datagram to a packet.
fn read(classes: &Classes, from: SocketAddr, to: IpAddr, tos: u8, bytes: Bytes) -> Packet {
    let mut packet = packet(from.ip(), to, classes.trimmed(tos >> 2), bytes);
    classes.read(&mut packet, tos);
    packet.entropy = from.port();
    packet
}

/// Waits until a packet arrives on one of the links, at most this long.
pub fn wait(links: &[impl Waited], timeout: Duration) -> io::Result<()> {
    if links.iter().any(Waited::has_more) {
        return Ok(());
    }
    let mut fds: Vec<_> = links.iter().map(|link| PollFd::new(link.as_fd(), PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A link that can be waited for.
pub trait Waited: AsFd {
    /// Returns whether a packet is available without waiting, although the system holds none.
    fn has_more(&self) -> bool {
        false
    }
}

impl Waited for UdpLink {
    fn has_more(&self) -> bool {
        !self.arrived.is_empty()
    }
}

impl AsFd for UdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.main.as_fd()
    }
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_recv_tos_v4(true)?,
        SocketAddr::V6(_) => {
            socket.set_only_v6(true)?;
            socket.set_recv_tclass_v6(true)?;
        }
    }
    // The system may limit the size.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.bind(&address.into())?;
    Ok(socket)
}
