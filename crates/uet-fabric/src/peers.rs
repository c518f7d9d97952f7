//! The addresses by which the model knows NICs.
//!
//! The model tells NICs apart by address alone. A NIC with an address of its own has that one. A NIC that shares its address
//! has an *identity* that includes its port. Transport security authenticates identities, and captures show them, so all
//! processes must compute the same ones.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::RangeInclusive;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use uet_wire::outer::UDP_PORT;

/// The port of a NIC that has its address for itself.
pub(crate) const OWN_PORT: u16 = UDP_PORT;

/// The ports of NICs that share an address. They lie below the ports that Linux gives out itself.
pub(crate) const SHARED_PORTS: RangeInclusive<u16> = 14793..=15816;

/// Number of learned addresses that are kept whether they have an open context or not, for replies to strangers.
const STRANGERS: usize = 64;

/// Returns the address by which the model knows a NIC. No two NICs have the same.
pub(crate) fn identity(address: SocketAddr) -> IpAddr {
    let (ip, port) = (address.ip(), address.port());
    match ip {
        IpAddr::V6(ip) if SHARED_PORTS.contains(&port) || is_identity(ip) => hashed(ip, port).into(),
        IpAddr::V4(ip) if SHARED_PORTS.contains(&port) => with_port(ip, port).into(),
        _ => ip,
    }
}

/// Returns whether an address lies in the ranges of identities: fd75:6574::/32 for IPv4, and fd75:6575::/32 for IPv6.
fn is_identity(ip: Ipv6Addr) -> bool {
    matches!(ip.segments(), [0xfd75, 0x6574 | 0x6575, ..])
}

fn with_port(ip: Ipv4Addr, port: u16) -> Ipv6Addr {
    let [a, b, c, d] = ip.octets().map(u16::from);
    Ipv6Addr::new(0xfd75, 0x6574, 0, port, 0, 0, a << 8 | b, c << 8 | d)
}

/// An IPv6 address and a port do not fit in an address. Nobody can choose an address with the hash of another.
fn hashed(ip: Ipv6Addr, port: u16) -> Ipv6Addr {
    let hash = Sha256::new().chain_update(ip.octets()).chain_update(port.to_be_bytes()).finalize();
    let mut octets = [0xfd, 0x75, 0x65, 0x75, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    octets.iter_mut().skip(4).zip(hash).for_each(|(to, from)| *to = from);
    octets.into()
}

/// Returns an address for a packet between an IPv4 address and an identity.
pub(crate) fn as_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(ip) => with_port(ip, OWN_PORT),
        IpAddr::V6(ip) => ip,
    }
}

/// The real addresses behind hashed identities.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// Peers that the application has named.
    known: HashMap<IpAddr, SocketAddr>,
    /// Senders of packets: those with an open context, and a bounded number of others.
    learned: HashMap<IpAddr, SocketAddr>,
    /// The number of learned addresses that were kept last.
    kept: usize,
}

impl Peers {
    /// Remembers the address of a peer that the application has named.
    pub(crate) fn add(&mut self, address: SocketAddr) {
        if let Some(identity) = looked_up(address) {
            self.known.insert(identity, address);
        }
    }

    /// Remembers the sender of a packet for replies. `open` returns the peers of all open contexts.
    pub(crate) fn learn<I: Iterator<Item = IpAddr>>(&mut self, from: SocketAddr, open: impl FnOnce() -> I) {
        let Some(identity) = looked_up(from) else { return };
        if self.known.contains_key(&identity) || self.learned.contains_key(&identity) {
            return;
        }
        // At least half of the addresses are new since the last visit, which pay for it.
        if self.learned.len() >= 2 * self.kept + STRANGERS {
            let open: HashSet<IpAddr> = open().collect();
            self.learned.retain(|identity, _| open.contains(identity));
            self.kept = self.learned.len();
        }
        self.learned.insert(identity, from);
    }

    /// Returns the address of the NIC with this identity; `None` for a stranger that is forgotten.
    pub(crate) fn real(&self, identity: IpAddr) -> Option<SocketAddr> {
        match identity {
            IpAddr::V6(ip) => match ip.segments() {
                [0xfd75, 0x6574, 0, port, 0, 0, ab, cd] => {
                    let ip = Ipv4Addr::from(u32::from(ab) << 16 | u32::from(cd));
                    Some(SocketAddr::new(ip.into(), port))
                }
                _ if is_identity(ip) => {
                    self.known.get(&identity).or_else(|| self.learned.get(&identity)).copied()
                }
                _ => Some(SocketAddr::new(identity, OWN_PORT)),
            },
            IpAddr::V4(_) => Some(SocketAddr::new(identity, OWN_PORT)),
        }
    }
}

/// Returns the identity of a NIC whose address cannot be computed from it.
fn looked_up(address: SocketAddr) -> Option<IpAddr> {
    let identity = identity(address);
    (address.is_ipv6() && identity != address.ip()).then_some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::iter;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn shared(number: u64) -> SocketAddr {
        SocketAddr::new(Ipv6Addr::from(0xfd00_0001_u128 << 96 | u128::from(number)).into(), 14793)
    }

    #[test]
    fn each_nic_has_its_own_identity() {
        let one = identity(address("[fd00:1::5]:14793"));
        let shared = address("[::1]:14793");
        let nics = [
            address("[fd00:1::5]:14793"),
            // Its halves add up to those of the first.
            address("[fd00:2::3:0:5]:14793"),
            address("[fd00:1::5]:14794"),
            address("[fd00:1::5]:4793"),
            // It has the identity of the first as its address.
            SocketAddr::new(one, OWN_PORT),
            SocketAddr::new(one, 14793),
            SocketAddr::new(identity(address("10.0.0.1:14793")), OWN_PORT),
            SocketAddr::new(identity(shared), OWN_PORT),
            shared,
            address("10.0.0.1:14793"),
            address("10.0.0.1:14794"),
            address("10.0.0.1:4793"),
        ];
        let mut peers = Peers::default();
        nics.iter().for_each(|nic| peers.add(*nic));
        for nic in nics {
            assert_eq!(peers.real(identity(nic)), Some(nic));
        }
    }

    #[test]
    fn source_port_of_a_single_nic_is_no_identity() {
        for text in ["10.0.0.1:16003", "[fd00::1]:16003"] {
            let from = address(text);
            assert_eq!(identity(from), from.ip());
            assert_eq!(Peers::default().real(from.ip()), Some(SocketAddr::new(from.ip(), OWN_PORT)));
        }
    }

    #[test]
    fn strangers_take_bounded_memory_and_replace_nobody() {
        let mut peers = Peers::default();
        peers.add(shared(0));
        let with_context: Vec<SocketAddr> = (1..=100).map(shared).collect();
        let open = || with_context.iter().map(|from| identity(*from));
        for from in &with_context {
            peers.learn(*from, open);
        }
        for stranger in 1_000..20_000 {
            peers.learn(shared(stranger), open);
            assert_eq!(peers.real(identity(shared(stranger))), Some(shared(stranger)), "it gets a reply");
            assert!(peers.learned.len() <= 2 * with_context.len() + STRANGERS, "{}", peers.learned.len());
        }
        for known in iter::once(shared(0)).chain(with_context.iter().copied()) {
            assert_eq!(peers.real(identity(known)), Some(known));
        }
        // Contexts that have ended.
        for stranger in 20_000..21_000 {
            peers.learn(shared(stranger), iter::empty);
        }
        assert!(peers.learned.len() <= STRANGERS);
        assert_eq!(peers.real(identity(shared(1))), None);
        assert_eq!(peers.real(identity(shared(0))), Some(shared(0)));
    }
}
