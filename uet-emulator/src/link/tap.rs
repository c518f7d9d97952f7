//! A passive listener on an interface through libpcap (feature `live`).

use super::udp::Waited;
use pcap::{Active, Capture};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Longer than any UET packet with its outer headers.
const LONGEST: i32 = 10_000;

/// Maximum number of bytes that the system buffers between reads.
const BUFFER: i32 = 16 << 20;

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
        let capture = listen(interface)?;
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

fn listen(interface: &str) -> io::Result<Capture<Active>> {
    let capture = Capture::from_device(interface).and_then(|capture| {
        let capture = capture.promisc(true).snaplen(LONGEST).buffer_size(BUFFER);
        capture.immediate_mode(true).open()
    });
    capture.map_err(|error| about(interface, error))
}

fn about(interface: &str, error: pcap::Error) -> io::Error {
    let said = error.to_string();
    let hint = if said.contains("permitted") || said.contains("ermission") { super::raw::RIGHTS } else { "" };
    io::Error::other(format!("{interface}: {said}{hint}"))
}
