//! UDP sockets. DSCP, ECN and the entropy value are those of the packets; a CRC, a UDP checksum of 0 and trimming are
//! beyond what sockets can do.

use super::packet;
use crate::classes::Classes;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use uet_model::Packet;

/// How many source ports there are: each entropy value has one of them.
const WAYS: usize = 8;

/// What a socket may hold while nobody reads. The system may give less.
const BUFFER: usize = 4 << 20;

/// The longest datagram.
const LONGEST: usize = 1 << 16;

/// A UET endpoint on UDP sockets: it listens on one port, and sends from several, since the source port is the entropy
/// value and may choose the path.
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
    /// What DSCPs mean.
    pub classes: Classes,
    local: SocketAddr,
    main: Socket,
    ways: Vec<Socket>,
    buffer: Vec<u8>,
}

impl UdpLink {
    /// Listens on this address; port 0 picks a free one. The address must be one of this machine: it is the endpoint's.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            let message = format!("{}: an endpoint has one address", address.ip());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let main = socket(address)?;
        let local = main.local_addr()?.as_socket().unwrap_or(address);
        let way = |_| socket(SocketAddr::new(address.ip(), 0));
        let ways = (0..WAYS).map(way).collect::<io::Result<_>>()?;
        Ok(UdpLink { classes: Classes::default(), local, main, ways, buffer: vec![0; LONGEST] })
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The source port of what is sent with this entropy value.
    pub fn source_port(&self, entropy: u16) -> Option<u16> {
        let way = self.ways.get(usize::from(entropy) % WAYS).unwrap_or(&self.main);
        way.local_addr().ok()?.as_socket().map(|address| address.port())
    }

    /// Sends a packet to this port of its destination. What the system does not take is lost; the error says why.
    pub fn send(&self, packet: &Packet, port: u16) -> Result<(), &'static str> {
        let tos = self.classes.tos(packet);
        let wide = i32::from(tos);
        let control = match packet.dst {
            IpAddr::V4(_) => ControlMessage::Ipv4Tos(&tos),
            IpAddr::V6(_) => ControlMessage::Ipv6TClass(&wide),
        };
        let parts = [IoSlice::new(&packet.head), IoSlice::new(&packet.payload)];
        let to = SockaddrStorage::from(SocketAddr::new(packet.dst, port));
        let way = self.ways.get(usize::from(packet.entropy) % WAYS).unwrap_or(&self.main);
        let sent = sendmsg(way.as_raw_fd(), &parts, &[control], MsgFlags::empty(), Some(&to));
        sent.map(|_| ()).map_err(|error| match error {
            Errno::EAGAIN | Errno::ENOBUFS => "not sent: the system takes no more",
            Errno::EMSGSIZE => "not sent: too long for the system",
            _ => "not sent: the system cannot",
        })
    }

    /// The next packet that has come, whatever it is. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<Packet>> {
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let mut space = cmsg_space!(u8, i32);
        let received = recvmsg::<SockaddrStorage>(
            self.main.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        );
        let received = match received {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let from = received.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from(core::net::SocketAddrV4::from(*v4)));
            v4.or_else(|| {
                address.as_sockaddr_in6().map(|v6| SocketAddr::from(core::net::SocketAddrV6::from(*v6)))
            })
        });
        let Some(from) = from else { return Ok(None) };
        let mut tos = 0;
        for message in received.cmsgs().into_iter().flatten() {
            match message {
                ControlMessageOwned::Ipv4Tos(value) => tos = value,
                ControlMessageOwned::Ipv6TClass(value) => tos = value as u8,
                _ => {}
            }
        }
        let length = received.bytes;
        let bytes = Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default());
        let mut packet = packet(from.ip(), self.local.ip(), None, bytes);
        self.classes.read(&mut packet, tos);
        if packet.trimmed.is_some() {
            packet = Packet {
                class: packet.class,
                priority: packet.priority,
                marked: packet.marked,
                ..super::packet(from.ip(), self.local.ip(), packet.trimmed, packet.to_wire())
            };
        }
        packet.entropy = from.port();
        Ok(Some(packet))
    }
}

/// Waits until something has come on one of the links, at most this long.
pub fn wait(links: &[UdpLink], timeout: Duration) -> io::Result<()> {
    let mut fds: Vec<_> = links.iter().map(|link| PollFd::new(link.as_fd(), PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
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
    // The system's limit is what it is.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.bind(&address.into())?;
    Ok(socket)
}
