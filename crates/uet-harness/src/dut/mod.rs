//! Devices that the conformance suite can reach.

#[cfg(target_os = "linux")]
mod blind;
#[cfg(target_os = "linux")]
mod busy;
#[cfg(target_os = "linux")]
pub(crate) mod channel;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod dropped;
mod embedded;
#[cfg(target_os = "linux")]
mod reached;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(target_os = "linux")]
pub(crate) mod session;
#[cfg(target_os = "linux")]
mod starting;

#[cfg(target_os = "linux")]
pub use blind::Blind;
pub use embedded::{Embedded, Family};
#[cfg(target_os = "linux")]
pub use remote::{At, Remote};
#[cfg(target_os = "linux")]
pub use starting::once_it_listens;

use uet_conformance::{Trimmed, Wire};
use uet_emulator::frame::Framed;
use uet_emulator::link;
use uet_model::{Packet, Priority};

/// Error text for promiscuous mode in a program built without libpcap.
#[cfg(not(feature = "live"))]
pub const NOT_LIVE: &str = "this program was built without libpcap; build it with `cargo build --release --features live`, \
                                   which needs libpcap (Debian: apt install libpcap-dev)";

fn trimmed(place: Trimmed) -> uet_model::TrimPoint {
    match place {
        Trimmed::Fabric => uet_model::TrimPoint::Fabric,
        Trimmed::LastHop => uet_model::TrimPoint::LastHop,
    }
}

/// Converts a packet of the suite for a link.
pub(crate) fn packet(wire: &Wire) -> Packet {
    let trimmed = wire.trimmed.map(trimmed);
    let priority = match (trimmed, wire.high) {
        (Some(_), _) => Priority::Medium,
        (None, Some(true)) => Priority::High,
        (None, _) => Priority::Low,
    };
    let Wire { src, dst, entropy, marked, ttl, udp_checksum, .. } = *wire;
    let packet = link::packet(src, dst, trimmed, wire.bytes.clone().into());
    Packet { priority, marked, entropy, ttl, udp_checksum, ..packet }
}

/// Returns a packet of the suite as it was before a switch trimmed it, and the trimming. If the removed bytes are unknown,
/// the packet stays trimmed. `between` is the length of the headers between IP and UET.
fn before_trimming(wire: &Wire, between: usize) -> (Packet, Option<(u16, uet_model::TrimPoint)>) {
    match wire.trimmed {
        Some(place) if !wire.taken.is_empty() => {
            let bytes = [&wire.bytes[..], &wire.taken].concat();
            let left = between + wire.bytes.len();
            let whole = packet(&Wire { bytes, trimmed: None, ..wire.clone() });
            (whole, Some((left.min(0xffff) as u16, trimmed(place))))
        }
        _ => (packet(wire), None),
    }
}

/// Converts a packet of a link for the suite.
fn wire(Framed { packet, findings, .. }: Framed) -> Wire {
    Wire {
        high: Some(packet.priority == Priority::High),
        marked: packet.marked,
        ttl: packet.ttl,
        udp_checksum: packet.udp_checksum,
        trimmed: packet.trimmed.map(|place| match place {
            uet_model::TrimPoint::Fabric => Trimmed::Fabric,
            uet_model::TrimPoint::LastHop => Trimmed::LastHop,
        }),
        around: findings,
        ..Wire::new(packet.src, packet.dst, packet.entropy, packet.to_wire().into())
    }
}
