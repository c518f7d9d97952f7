//! A passive listener in promiscuous mode, through libpcap (feature `live`).

use super::packet_socket::{BUFFER, failed};
use super::tap::{LONGEST, Listener, TappedFrame};
use super::udp::Waited;
use core::time::Duration;
use pcap::{Active, Capture};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A passive listener for all frames that reach an interface, also those for other stations.
pub struct Promiscuous(Capture<Active>);

impl Promiscuous {
    /// Opens an interface.
    pub fn open(interface: &str) -> io::Result<Self> {
        let capture = listen(interface)?;
        Ok(Promiscuous(capture.setnonblock().map_err(|error| about(interface, error))?))
    }
}

impl Listener for Promiscuous {
    fn link_type(&self) -> i32 {
        self.0.get_datalink().0
    }

    fn receive(&mut self) -> io::Result<Option<TappedFrame<'_>>> {
        match self.0.next_packet() {
            Ok(frame) => {
                let pcap::PacketHeader { ts, len, .. } = *frame.header;
                let micros = ts.tv_usec.unsigned_abs();
                let at = Duration::from_secs(ts.tv_sec.unsigned_abs()) + Duration::from_micros(micros);
                Ok(Some(TappedFrame { at, wire: len as usize, bytes: frame.data, is_outgoing: false }))
            }
            Err(pcap::Error::TimeoutExpired) => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn missed(&mut self) -> u32 {
        self.0.stats().map_or(0, |stats| stats.dropped)
    }
}

impl core::fmt::Debug for Promiscuous {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Promiscuous")
    }
}

impl Waited for Promiscuous {}

impl AsFd for Promiscuous {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn listen(interface: &str) -> io::Result<Capture<Active>> {
    let capture = Capture::from_device(interface).and_then(|capture| {
        let capture = capture.promisc(true).snaplen(LONGEST as i32).buffer_size(BUFFER as i32);
        capture.immediate_mode(true).open()
    });
    capture.map_err(|error| about(interface, error))
}

fn about(interface: &str, error: pcap::Error) -> io::Error {
    let said = error.to_string();
    let denied = said.contains("permitted") || said.contains("ermission");
    failed(interface, if denied { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other }, &said)
}
