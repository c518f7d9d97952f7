//! A passive listener on an interface, through a packet socket (AF_PACKET). Requires CAP_NET_RAW.
//!
//! It sees the frames that the interface sends and accepts. Those for other stations reach it only in promiscuous mode,
//! which the system (`ip link set dev eth0 promisc on`) or libpcap (feature `live`) enables.

use super::raw::{HARDWARE, OUTGOING, about, packet_socket};
use super::udp::Waited;
use core::time::Duration;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;

/// Longer than any frame, also one that the system joined from several.
pub(super) const LONGEST: usize = 1 << 17;

/// Hardware types whose frames start with the IP header: tunnels.
const BARE: [u16; 3] = [768, 776, 65534];

/// Hardware type of the loopback interface, which shows each frame twice.
const LOOPBACK: u16 = 772;

/// Link types as captures number them.
const ETHERNET: i32 = 1;
const RAW_IP: i32 = 101;

/// A passive listener for frames on an interface.
pub trait Listener: Waited {
    /// Returns the link type of its frames as captures number it.
    fn link_type(&self) -> i32;

    /// Returns the next frame. Does not wait.
    fn receive(&mut self) -> io::Result<Option<TappedFrame<'_>>>;

    /// Returns the number of frames dropped because the reader was too slow.
    fn missed(&mut self) -> u32;
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct TappedFrame<'a> {
    /// Time since 1970.
    pub at: Duration,
    /// Length on the wire, in bytes.
    pub wire: usize,
    /// The frame.
    pub bytes: &'a [u8],
}

/// A passive listener for the frames that an interface sends and accepts.
#[derive(Debug)]
pub struct FrameTap {
    socket: OwnedFd,
    interface: String,
    place: LinkAddr,
    link_type: i32,
    buffer: Vec<u8>,
    missed: u32,
}

impl FrameTap {
    /// Opens an interface.
    pub fn open(interface: &str) -> io::Result<Self> {
        let (socket, place) = packet_socket(interface)?;
        let told = |error| about(interface, error);
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(told)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(told)?;
        let link_type = match place.hatype() {
            kind if HARDWARE.contains(&kind) => ETHERNET,
            kind if BARE.contains(&kind) => RAW_IP,
            kind => {
                let message = format!("{interface}: its hardware type {kind} is unknown; use --promiscuous");
                return Err(io::Error::other(message));
            }
        };
        Ok(FrameTap {
            socket,
            interface: interface.to_owned(),
            place,
            link_type,
            buffer: vec![0; LONGEST],
            missed: 0,
        })
    }

    /// Reads a frame into the buffer; returns its time and its length on the wire. `None` for an unwanted one.
    fn read(&mut self) -> Result<Option<(Duration, usize)>, Errno> {
        let mut space = cmsg_space!(TimeSpec, u32);
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let flags = MsgFlags::MSG_TRUNC;
        let message = recvmsg::<LinkAddr>(self.socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let mut at = None;
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(time) => at = Some(Duration::from(time)),
                ControlMessageOwned::RxqOvfl(missed) => self.missed = missed,
                _ => {}
            }
        }
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // Frames of other interfaces can arrive before the socket is bound.
        let is_wanted = |from: LinkAddr| {
            let twice = from.pkttype() == OUTGOING && self.place.hatype() == LOOPBACK;
            from.ifindex() == self.place.ifindex() && !twice
        };
        let wanted = message.address.is_none_or(is_wanted);
        Ok(wanted.then(|| (at.unwrap_or_else(now), message.bytes)))
    }
}

impl Listener for FrameTap {
    fn link_type(&self) -> i32 {
        self.link_type
    }

    fn receive(&mut self) -> io::Result<Option<TappedFrame<'_>>> {
        loop {
            match self.read() {
                Ok(Some((at, wire))) => {
                    let bytes = self.buffer.get(..wire.min(LONGEST)).unwrap_or_default();
                    return Ok(Some(TappedFrame { at, wire, bytes }));
                }
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(about(&self.interface, error)),
            }
        }
    }

    fn missed(&mut self) -> u32 {
        self.missed
    }
}

impl Waited for FrameTap {
    fn has_more(&self) -> bool {
        false
    }
}

impl AsFd for FrameTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
