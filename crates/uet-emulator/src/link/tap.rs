//! A passive listener on an interface, through a packet socket (AF_PACKET). Requires CAP_NET_RAW.
//!
//! It sees the frames that the interface sends and accepts. Those for other stations reach it only in promiscuous mode,
//! which the system (`ip link set dev eth0 promisc on`) or libpcap (feature `live`) enables.
//!
//! The system takes the outer VLAN tag off each frame and tells it beside the frame. The listener puts it back.

use super::packet_socket::{self, OUTGOING, PacketSocket};
use super::since_1970;
use super::udp::Waited;
use core::time::Duration;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, LinkAddr, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::{cmsg_space, setsockopt_impl};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Longer than any frame, also one that the system joined from several.
pub(super) const LONGEST: usize = 1 << 17;

/// Hardware types whose frames start with the IP header: tunnels.
const BARE: [u16; 3] = [768, 776, 65534];

/// Hardware type of the loopback interface, which shows each frame twice.
const LOOPBACK: u16 = 772;

/// Asks for [`Tag`] beside each frame.
#[derive(Clone, Copy, Debug)]
struct TellTag;
setsockopt_impl!(TellTag, libc::SOL_PACKET, libc::PACKET_AUXDATA, bool, sockopt::SetBool);

/// Bytes of `tpacket_auxdata`.
const AUXILIARY: usize = 20;

/// The VLAN tag that the system has taken off a frame, in the order of the wire.
type Tag = [u8; 4];

/// Reads the tag from `tpacket_auxdata`, whose numbers are in the machine's order.
fn tag(auxiliary: &[u8]) -> Option<Tag> {
    const VALID: u32 = 1 << 4;
    const WITH_PROTOCOL: u32 = 1 << 6;
    const VLAN: u16 = 0x8100;
    let (status, tag) = (auxiliary.first_chunk()?, auxiliary.get(16..AUXILIARY)?);
    let (control, protocol) = (tag.first_chunk()?, tag.last_chunk()?);
    let status = u32::from_ne_bytes(*status);
    let protocol = if status & WITH_PROTOCOL == 0 { VLAN } else { u16::from_ne_bytes(*protocol) };
    let ([a, b], [c, d]) = (protocol.to_be_bytes(), u16::from_ne_bytes(*control).to_be_bytes());
    (status & VALID != 0).then_some([a, b, c, d])
}

/// Puts a tag back into a frame of `length` bytes: behind both addresses.
fn put_back(buffer: &mut [u8], length: usize, tag: Tag) {
    const ADDRESSES: usize = 12;
    let end = (length + tag.len()).min(buffer.len());
    if let Some(rest) = buffer.get_mut(ADDRESSES..end).filter(|rest| rest.len() >= tag.len()) {
        rest.copy_within(..rest.len() - tag.len(), tag.len());
        rest.iter_mut().zip(tag).for_each(|(byte, tag)| *byte = tag);
    }
}

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
    /// True if this machine has sent it.
    pub is_outgoing: bool,
}

/// A passive listener for the frames that an interface sends and accepts.
#[derive(Debug)]
pub struct FrameTap {
    pub(super) socket: PacketSocket,
    link_type: i32,
    buffer: Vec<u8>,
    missed: u32,
    /// Time, length on the wire and direction of the frame in the buffer.
    last: Option<(Duration, usize, bool)>,
}

impl FrameTap {
    /// Opens an interface.
    pub fn open(interface: &str) -> io::Result<Self> {
        let socket = PacketSocket::open(interface)?;
        let told = |error| socket.failed(error);
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(told)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(told)?;
        setsockopt(&socket, TellTag, &true).map_err(told)?;
        let link_type = match socket.place.hatype() {
            kind if packet_socket::ETHERNET.contains(&kind) => ETHERNET,
            kind if BARE.contains(&kind) => RAW_IP,
            kind => {
                let message = format!("{interface}: its hardware type {kind} is unknown; use --promiscuous");
                return Err(io::Error::other(message));
            }
        };
        Ok(FrameTap { socket, link_type, buffer: vec![0; LONGEST], missed: 0, last: None })
    }

    /// Reads a frame into the buffer; returns its time, its length on the wire, and whether this machine has sent it.
    /// `None` for an unwanted one.
    fn read(&mut self) -> Result<Option<(Duration, usize, bool)>, Errno> {
        let mut space = cmsg_space!(TimeSpec, u32, [u8; AUXILIARY]);
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let flags = MsgFlags::MSG_TRUNC;
        let message = recvmsg::<LinkAddr>(self.socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let (mut at, mut tagged) = (None, None);
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(time) => at = Some(Duration::from(time)),
                ControlMessageOwned::RxqOvfl(missed) => self.missed = missed,
                ControlMessageOwned::Unknown(other) if other.cmsg_header.cmsg_level == libc::SOL_PACKET => {
                    tagged = tag(&other.data_bytes);
                }
                _ => {}
            }
        }
        let is_wanted = |from: LinkAddr| {
            let twice = from.pkttype() == OUTGOING && self.socket.place.hatype() == LOOPBACK;
            self.socket.is_own(&from) && !twice
        };
        let wanted = message.address.is_none_or(is_wanted);
        let outgoing = message.address.is_some_and(|from| from.pkttype() == OUTGOING);
        let mut length = message.bytes;
        if let Some(tag) = tagged.filter(|_| self.link_type == ETHERNET) {
            put_back(&mut self.buffer, length, tag);
            length += tag.len();
        }
        Ok(wanted.then(|| (at.unwrap_or_else(since_1970), length, outgoing)))
    }
}

impl FrameTap {
    /// Returns the frame that was received last.
    pub(super) fn last(&self) -> Option<TappedFrame<'_>> {
        let (at, wire, is_outgoing) = self.last?;
        let bytes = self.buffer.get(..wire.min(LONGEST)).unwrap_or_default();
        Some(TappedFrame { at, wire, bytes, is_outgoing })
    }
}

impl Listener for FrameTap {
    fn link_type(&self) -> i32 {
        self.link_type
    }

    fn receive(&mut self) -> io::Result<Option<TappedFrame<'_>>> {
        loop {
            match self.read() {
                Ok(Some(read)) => {
                    self.last = Some(read);
                    return Ok(self.last());
                }
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(error) => return Err(self.socket.failed(error)),
            }
        }
    }

    fn missed(&mut self) -> u32 {
        self.missed
    }
}

impl Waited for FrameTap {}

impl AsFd for FrameTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_returns_to_its_place() {
        let auxiliary = |status: u32, control: u16, protocol: u16| {
            let [control, protocol] = [control, protocol].map(u16::to_ne_bytes);
            [&status.to_ne_bytes()[..], &[0; 12], &control, &protocol].concat()
        };
        assert_eq!(tag(&auxiliary(1, 7, 0x88a8)), None);
        assert_eq!(tag(&auxiliary(0x51, 7, 0x88a8)), Some([0x88, 0xa8, 0, 7]));
        assert_eq!(tag(&auxiliary(0x11, 7, 0)), Some([0x81, 0, 0, 7]));
        assert_eq!(tag(&auxiliary(0x51, 7, 0x88a8)[..19]), None);

        let mut buffer: Vec<u8> = (0..20).collect();
        put_back(&mut buffer, 16, [0x81, 0, 0, 7]);
        let expected: Vec<u8> = (0..12).chain([0x81, 0, 0, 7]).chain(12..16).collect();
        assert_eq!(buffer, expected);
        let mut short = [0; 13];
        put_back(&mut short, 13, [1; 4]);
        assert_eq!(short, [0; 13], "no room");
    }
}
