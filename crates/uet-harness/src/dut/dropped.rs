//! Datagrams between suite and device that this host has dropped, or that lie unread in a device beside the suite.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::HashMap;

/// The queue of a UDP socket of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inbox {
    place: SocketAddr,
    /// Bytes that its program has not read.
    unread: u64,
    /// Number of the socket, which a later one at the same place does not have.
    inode: u64,
    /// Datagrams that found a full buffer.
    dropped: u64,
}

impl Inbox {
    fn receives(&self, place: SocketAddr) -> bool {
        let at = self.place.ip();
        self.place.port() == place.port() && (at == place.ip() || at.is_unspecified())
    }
}

/// The count of datagrams that found a full buffer on this host. It never falls, even if a device reopens its socket.
#[derive(Debug, Default)]
pub(super) struct Drops {
    count: u64,
    /// The datagrams that each socket had dropped at the last count, by its inode.
    sockets: HashMap<u64, u64>,
}

impl Drops {
    /// Returns the count with new datagrams to these places. Those of others do not count.
    pub(super) fn at(&mut self, places: &[SocketAddr]) -> u64 {
        let is_ours = |socket: &Inbox| places.iter().any(|place| socket.receives(*place));
        let now = sockets().into_iter().filter(is_ours).map(|socket| (socket.inode, socket.dropped));
        let before = core::mem::replace(&mut self.sockets, now.collect());
        for (inode, dropped) in &self.sockets {
            self.count += dropped.saturating_sub(before.get(inode).copied().unwrap_or(0));
        }
        self.count
    }
}

/// Returns whether datagrams to this place lie unread on this host.
pub(super) fn is_unread_at(place: SocketAddr) -> bool {
    sockets().iter().any(|socket| socket.receives(place) && socket.unread > 0)
}

fn sockets() -> Vec<Inbox> {
    let text = |file| std::fs::read_to_string(file).unwrap_or_default();
    [text("/proc/net/udp"), text("/proc/net/udp6")]
        .iter()
        .flat_map(|text| text.lines().filter_map(read))
        .collect()
}

/// Reads a line: number, local and remote place, state, queues to send and to read, four others, inode, two others,
/// datagrams dropped.
fn read(line: &str) -> Option<Inbox> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    let (_, unread) = fields.get(4)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Inbox {
        place: SocketAddr::new(ip(address)?, port),
        unread: u64::from_str_radix(unread, 16).ok()?,
        inode: fields.get(9)?.parse().ok()?,
        dropped: fields.get(12)?.parse().ok()?,
    })
}

/// Reads an address. The kernel writes each word as a number of its own byte order.
fn ip(text: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn full_buffers_count_for_their_socket_only() {
        for address in ["127.0.0.91:0", "[::1]:0"] {
            let [device, other] = [(); 2].map(|()| UdpSocket::bind(address).unwrap());
            let place = device.local_addr().unwrap();
            assert!(!is_unread_at(place), "{address}");
            // Buffers hold some megabytes at most.
            for _ in 0..1_000 {
                other.send_to(&[7; 60_000], place).unwrap();
            }
            assert!(is_unread_at(place) && Drops::default().at(&[place]) > 0, "{address}");
            assert_eq!(Drops::default().at(&[other.local_addr().unwrap()]), 0, "{address}");
        }
    }

    #[test]
    fn drops_of_a_reopened_socket_add_to_the_count() {
        let other = UdpSocket::bind("127.0.0.92:0").unwrap();
        let mut device = UdpSocket::bind("127.0.0.92:0").unwrap();
        let place = device.local_addr().unwrap();
        let (mut drops, mut last) = (Drops::default(), 0);
        // Each socket drops less than the one before it.
        for sent in [3_000, 2_000, 1_000] {
            for _ in 0..sent {
                other.send_to(&[7; 60_000], place).unwrap();
            }
            let count = drops.at(&[place]);
            assert!(count > last && drops.at(&[place]) == count, "{count} after {last}");
            last = count;
            drop(device);
            assert_eq!(drops.at(&[place]), count);
            device = UdpSocket::bind(place).unwrap();
        }
    }

    #[test]
    fn lines_of_other_forms_are_passed_over() {
        assert_eq!(read("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"), None);
        assert_eq!(read("1: 0100007F:12B9"), None);
        assert_eq!(ip("0100007"), None);
    }

    #[test]
    fn a_socket_at_no_address_receives_at_all() {
        let socket = Inbox { place: "0.0.0.0:4793".parse().unwrap(), unread: 0, inode: 7, dropped: 0 };
        assert!(socket.receives("127.0.0.1:4793".parse().unwrap()));
        assert!(!socket.receives("127.0.0.1:4794".parse().unwrap()));
    }
}
