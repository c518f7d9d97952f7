use crate::outer::Ip;
use crate::{Packet, outer::UDP_PORT};
use core::net::IpAddr;

/// The authenticated part of the headers before the security header: addresses, and UDP or the entropy header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The IP source address.
    pub src: IpAddr,
    /// The IP destination address.
    pub dst: IpAddr,
    /// The header between IP and the security header.
    pub layer: OuterLayer,
}

/// The header between IP and the security header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OuterLayer {
    /// The native encapsulation.
    Native {
        /// The entropy header, reserved bits included.
        header: [u8; 4],
    },
    /// UDP. Its checksum is not authenticated.
    Udp {
        /// The source port.
        src_port: u16,
        /// The destination port.
        dst_port: u16,
        /// The length that the UDP header states. It includes the ICV.
        length: u16,
    },
}

impl Outer {
    /// Returns the native encapsulation with this entropy value.
    pub fn native(src: impl Into<IpAddr>, dst: impl Into<IpAddr>, entropy: u16) -> Self {
        let [high, low] = entropy.to_be_bytes();
        Outer { src: src.into(), dst: dst.into(), layer: OuterLayer::Native { header: [high, low, 0, 0] } }
    }

    /// Returns UDP to the registered port, with a packet of `packet` bytes from the security header to the ICV.
    pub fn udp(src: impl Into<IpAddr>, dst: impl Into<IpAddr>, src_port: u16, packet: usize) -> Self {
        let length = u16::try_from(packet.saturating_add(8)).unwrap_or(u16::MAX);
        Outer {
            src: src.into(),
            dst: dst.into(),
            layer: OuterLayer::Udp { src_port, dst_port: UDP_PORT, length },
        }
    }

    /// Returns the outer headers of a packet. Returns `None` for a packet without IP, or with options or extension
    /// headers: no source says if those are authenticated.
    pub fn of(packet: &Packet<'_>) -> Option<Self> {
        let ip = packet.ip?;
        if !ip.extra().is_empty() {
            return None;
        }
        let (src, dst) = match ip {
            Ip::V4 { header, .. } => (header.src().into(), header.dst().into()),
            Ip::V6 { header, .. } => (header.src().into(), header.dst().into()),
        };
        let layer = match (packet.udp, packet.entropy) {
            (Some(udp), _) => {
                OuterLayer::Udp { src_port: udp.src_port(), dst_port: udp.dst_port(), length: udp.length() }
            }
            (None, Some(entropy)) => OuterLayer::Native { header: *entropy.bytes() },
            (None, None) => return None,
        };
        Some(Outer { src, dst, layer })
    }
}
