//! Links that carry packets between a NIC and other processes.
//!
//! `udp` and `raw` are links over UDP sockets and Ethernet, and `way` is either of them. `port` sends and receives
//! whole frames, `tap` and `promiscuous` only listen; `packet_socket` and `neighbor` serve those on Ethernet. `driver`
//! moves packets and time between a NIC and its link. `server` adds the control channel, whose connection is in
//! `suite`.

#[cfg(target_os = "linux")]
pub mod driver;
#[cfg(target_os = "linux")]
pub mod neighbor;
#[cfg(target_os = "linux")]
mod packet_socket;
#[cfg(target_os = "linux")]
pub mod port;
#[cfg(all(target_os = "linux", feature = "live"))]
pub mod promiscuous;
#[cfg(target_os = "linux")]
pub mod raw;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(target_os = "linux")]
mod suite;
#[cfg(target_os = "linux")]
pub mod tap;
#[cfg(target_os = "linux")]
pub mod udp;
#[cfg(target_os = "linux")]
mod way;

use bytes::Bytes;
use core::net::IpAddr;
use core::time::Duration;
use std::time::SystemTime;
#[cfg(target_os = "linux")]
pub use way::Link;

use uet_model::{Head, Packet, Priority, TrimPoint};

/// Returns the time since 1970 by the clock with which the system stamps frames.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Parses a packet from the first byte of UET to the last before a trailer. Accepts malformed bytes too: the NIC counts
/// them as malformed.
///
/// ```
/// use uet_emulator::link::packet;
///
/// let packet = packet([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), None, vec![0x38, 0].into());
/// assert_eq!(packet.to_wire(), [0x38, 0][..]);
/// ```
pub fn packet(src: IpAddr, dst: IpAddr, trimmed: Option<TrimPoint>, bytes: Bytes) -> Packet {
    let read = match trimmed {
        Some(place) => Packet::from_wire_trimmed(src, dst, place, bytes.clone()),
        None => Packet::from_wire(src, dst, bytes.clone()),
    };
    read.unwrap_or_else(|_| {
        let (head, payload) = bytes.split_at(bytes.len().min(Head::new_const().capacity()));
        Packet {
            src,
            dst,
            class: 0,
            priority: Priority::Low,
            marked: false,
            trimmed,
            entropy: 0,
            ttl: Packet::TTL,
            udp_checksum: 0,
            security: None,
            head: head.iter().copied().collect(),
            payload: Bytes::copy_from_slice(payload),
        }
    })
}
