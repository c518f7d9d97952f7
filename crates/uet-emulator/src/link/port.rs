//! A port on an interface: whole Ethernet frames in both directions, with the system's time of their arrival. Requires
//! CAP_NET_RAW.

use super::neighbor::{self, PeerMac};
use super::packet_socket::ETHERNET;
use super::tap::{FrameTap, Listener, TappedFrame};
use super::udp::{Waited, wait};
use crate::frame::Mac;
use core::net::IpAddr;
use core::time::Duration;
use nix::errno::Errno;
use nix::sys::socket::{LinkAddr, MsgFlags, MultiHeaders, sendmmsg};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

/// The most frames of one system call.
pub const BATCH: usize = 64;

/// The time for an answer to a question for an Ethernet address, and the number of questions.
const PATIENCE: Duration = Duration::from_millis(200);
const QUESTIONS: usize = 5;

/// A port that sends and receives whole frames.
#[derive(Debug)]
pub struct FramePort {
    tap: FrameTap,
    mac: Mac,
    /// The address for which it answers ARP and neighbor discovery.
    address: Option<IpAddr>,
}

impl FramePort {
    /// Opens an interface. The port answers questions for the Ethernet address of `address`.
    pub fn open(interface: &str, address: Option<IpAddr>) -> io::Result<Self> {
        let tap = FrameTap::open(interface)?;
        let place = &tap.socket.place;
        let mac = place.addr().filter(|_| ETHERNET.contains(&place.hatype()));
        let mac = mac.ok_or_else(|| io::Error::other(format!("{interface} is not an Ethernet interface")))?;
        Ok(FramePort { tap, mac, address })
    }

    /// Returns the Ethernet address of the interface.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// Returns the number of frames that the system dropped because they were not read in time.
    pub fn missed(&mut self) -> u32 {
        self.tap.missed()
    }

    /// Sends frames with one system call. Returns how many of them, from the first, the system took.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let parts: Vec<_> = frames.iter().take(BATCH).map(|frame| [IoSlice::new(frame)]).collect();
        let mut headers = MultiHeaders::<LinkAddr>::preallocate(parts.len(), None);
        let to = vec![None; parts.len()];
        let socket = self.tap.socket.as_raw_fd();
        match sendmmsg(socket, &mut headers, &parts, &to, [], MsgFlags::empty()) {
            Ok(sent) => Ok(sent.count()),
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => Ok(0),
            Err(error) => Err(self.tap.socket.failed(error)),
        }
    }

    /// Returns the next frame that another station has sent, whoever it is for. Does not wait.
    pub fn receive(&mut self) -> io::Result<Option<TappedFrame<'_>>> {
        let answer = loop {
            // The frame cannot be returned from within the loop that reads the next one.
            match self.tap.receive()? {
                None => return Ok(None),
                Some(frame) if frame.is_outgoing => continue,
                Some(frame) => {
                    let heard = self.address.and_then(|own| Some((own, neighbor::read(frame.bytes)?)));
                    break heard.filter(|(own, heard)| heard.asks_for == Some(*own));
                }
            }
        };
        if let Some((address, heard)) = answer {
            let answer = neighbor::answer(PeerMac { address, mac: self.mac }, heard.peer);
            answer.map(|answer| self.send(&[&answer])).transpose()?;
        }
        Ok(self.tap.last())
    }

    /// Asks for the Ethernet address of a peer. Drops what arrives meanwhile.
    pub fn resolve(&mut self, peer: IpAddr) -> io::Result<Option<Mac>> {
        let Some(address) = self.address else { return Ok(None) };
        for _ in 0..QUESTIONS {
            let question = neighbor::question(PeerMac { address, mac: self.mac }, peer);
            question.map(|question| self.send(&[&question])).transpose()?;
            let until = Instant::now() + PATIENCE;
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            {
                wait(core::slice::from_ref(self), left)?;
                while let Some(frame) = self.receive()? {
                    let heard = neighbor::read(frame.bytes).map(|heard| heard.peer);
                    if let Some(found) = heard.filter(|found| found.address == peer) {
                        return Ok(Some(found.mac));
                    }
                }
            }
        }
        Ok(None)
    }
}

impl Waited for FramePort {}

impl AsFd for FramePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}
