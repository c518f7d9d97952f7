//! A packet socket (AF_PACKET) on an interface.

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, setsockopt, socket,
    sockopt,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Maximum number of bytes that the system buffers between reads.
pub(super) const BUFFER: usize = 16 << 20;

/// Hardware types of interfaces whose frames begin with an Ethernet header: Ethernet and loopback.
pub(super) const ETHERNET: [u16; 2] = [1, 772];

/// The type of a frame that this machine has sent.
pub(super) const OUTGOING: u8 = 4;

/// Advice for a program that may not open packet sockets.
const RIGHTS: &str = "; run with sudo, or grant the capability once: `setcap cap_net_raw+ep PROGRAM`";

/// A packet socket that receives all frames of an interface. Reading it does not wait.
#[derive(Debug)]
pub(super) struct PacketSocket {
    socket: OwnedFd,
    pub(super) interface: String,
    /// Address and hardware type of the interface.
    pub(super) place: LinkAddr,
}

impl PacketSocket {
    /// Opens an interface.
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        let of_it = addresses(interface)?;
        let place = of_it.iter().find_map(SockaddrStorage::as_link_addr).copied();
        let place = place.ok_or_else(|| io::Error::other(format!("there is no interface {interface}")))?;
        let told = |error| failed_system(interface, error);
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket =
            socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).map_err(told)?;
        // More than the system's limit needs another capability.
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER).map_err(told)?;
        }
        bind(socket.as_raw_fd(), &place).map_err(told)?;
        Ok(PacketSocket { socket, interface: interface.to_owned(), place })
    }

    /// Returns whether a frame is of this interface. Those of others can arrive before the socket is bound.
    pub(super) fn is_own(&self, from: &LinkAddr) -> bool {
        from.ifindex() == self.place.ifindex()
    }

    /// Returns the error with the name of the interface.
    pub(super) fn failed(&self, error: Errno) -> io::Error {
        failed_system(&self.interface, error)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn failed_system(interface: &str, error: Errno) -> io::Error {
    failed(interface, io::Error::from(error).kind(), error.desc())
}

/// Returns an error with the name of its interface, and advice for a program without the right to open it.
pub(super) fn failed(interface: &str, kind: io::ErrorKind, text: &str) -> io::Error {
    let rights = if kind == io::ErrorKind::PermissionDenied { RIGHTS } else { "" };
    io::Error::new(kind, format!("{interface}: {text}{rights}"))
}

/// Returns all addresses of an interface.
pub(super) fn addresses(interface: &str) -> io::Result<Vec<SockaddrStorage>> {
    let of_it = getifaddrs()?.filter(|one| one.interface_name == interface);
    Ok(of_it.filter_map(|one| one.address).collect())
}
