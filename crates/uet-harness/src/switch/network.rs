//! A network under test, seen from the ports of the suite.

use core::net::IpAddr;
use core::time::Duration;
use std::io;
use uet_emulator::frame::Mac;
use uet_model::Time;

/// A frame that has left the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// When it arrived.
    pub at: Time,
    /// The port.
    pub port: usize,
    /// The frame, from its Ethernet header on.
    pub frame: Vec<u8>,
}

/// A network with ports that send and receive Ethernet frames.
pub trait Network {
    /// Returns the time.
    fn now(&self) -> Time;

    /// Returns the Ethernet addresses of a frame from this port to an IP address.
    fn macs(&self, port: usize, to: IpAddr) -> [Mac; 2];

    /// Sends frames at a port. Returns when each leaves; fewer times than frames if the port takes no more at present.
    fn send(&mut self, port: usize, frames: &[&[u8]]) -> io::Result<Vec<Time>>;

    /// Returns the next frame that arrives until this time. Time passes until it arrives.
    fn receive(&mut self, until: Time) -> io::Result<Option<Arrived>>;

    /// Returns the silence after which no frame is left in the network.
    fn silence(&self) -> Duration;

    /// Returns the number of frames that arrived and were lost before the suite could read them.
    fn missed(&mut self) -> u64 {
        0
    }

    /// Returns whether the clock is that of a computer, which other programs may hold up.
    fn is_real(&self) -> bool;
}
