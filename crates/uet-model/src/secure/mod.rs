//! Transport security of an endpoint (TSS, section 3.7): [`Secure`] is a [`Protect`] with keys.
//!
//! ```
//! use uet_model::secure::{Counters, Member, Secure};
//! use uet_wire::tss::{Domain, DomainKey, Mode};
//!
//! let mut member = Member::new(Domain::new(0x01_2345, Mode::Cluster), &Counters::default())?;
//! member.install(false, DomainKey::new(&[7; 32])?, 0)?;
//! let secure = Secure::new(1).with(member)?;
//! assert!(secure.statistics().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;
mod error;
mod member;
mod params;
mod receive;
mod send;
mod start;
mod statistics;

pub use counters::Counters;
pub use error::SettingsError;
pub use member::Member;
pub use params::{SecureParams, StartPsnFloor, StartPsnMethod};
pub use statistics::Statistic;

use crate::pds::{Association, OpenError, Protect, SealError, SecureContext};
use crate::{Packet, Route};
use core::fmt;
use core::net::IpAddr;
use std::collections::BTreeMap;
use uet_wire::Psn;
use uet_wire::outer::UDP_PORT;
use uet_wire::tss::KeyCache;

/// Number of derived keys that an endpoint keeps. Others are derived again.
const KEYS: usize = 128;

/// The ports of a packet, which are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The source port.
    pub src: u16,
    /// The destination port.
    pub dst: u16,
}

/// The encapsulation of an endpoint's packets.
pub enum Encapsulation {
    /// IP without UDP.
    Native,
    /// UDP, with the entropy value as source port, to the registered port.
    Udp,
    /// UDP, with the ports that these functions return: of a packet that leaves, and of one that has come.
    UdpPorts(Box<dyn Fn(&Packet) -> Ports + Send>, Box<dyn Fn(&Packet) -> Ports + Send>),
}

impl fmt::Debug for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encapsulation::Native => "Native",
            Encapsulation::Udp => "Udp",
            Encapsulation::UdpPorts(..) => "UdpPorts",
        })
    }
}

/// The transport security of an endpoint: its secure domains, and the policy for packets in the clear.
#[derive(Debug)]
pub struct Secure {
    domains: BTreeMap<u32, Member>,
    /// The domain for each peer. Other peers are in the first domain.
    peers: BTreeMap<IpAddr, Option<u32>>,
    /// The encapsulation, which is part of the authenticated data.
    pub encapsulation: Encapsulation,
    /// Parameters.
    pub params: SecureParams,
    statistics: BTreeMap<(Option<u32>, Statistic), u64>,
    cache: Box<KeyCache<KEYS>>,
    rng: fastrand::Rng,
}

impl Secure {
    /// Returns protection without a domain. The seed decides random Start_PSNs.
    pub fn new(seed: u64) -> Self {
        Secure {
            domains: BTreeMap::new(),
            peers: BTreeMap::new(),
            encapsulation: Encapsulation::Udp,
            params: SecureParams::default(),
            statistics: BTreeMap::new(),
            cache: Box::default(),
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Adds a domain. Fails if there is one with this number.
    pub fn with(mut self, member: Member) -> Result<Self, SettingsError> {
        match self.insert(member) {
            None => Ok(self),
            Some(_) => Err(SettingsError::TwoDomains),
        }
    }

    /// Adds or replaces a domain, and returns the one that it replaces.
    pub fn insert(&mut self, member: Member) -> Option<Member> {
        self.cache.clear();
        self.domains.insert(member.domain().sdi, member)
    }

    /// Removes a domain.
    pub fn remove(&mut self, sdi: u32) -> Option<Member> {
        self.cache.clear();
        self.domains.remove(&sdi)
    }

    /// Sets the domain of a peer; `None` for packets in the clear.
    pub fn set_peer(&mut self, peer: IpAddr, sdi: Option<u32>) {
        self.peers.insert(peer, sdi);
    }

    /// Returns a domain for changes: to install keys, to switch the association number, or to set the epoch.
    pub fn member_mut(&mut self, sdi: u32) -> Option<&mut Member> {
        // A key may be replaced.
        self.cache.clear();
        self.domains.get_mut(&sdi)
    }

    /// Returns a domain.
    pub fn member(&self, sdi: u32) -> Option<&Member> {
        self.domains.get(&sdi)
    }

    /// Returns all counts that are not 0, with the domain of those that belong to one.
    pub fn statistics(&self) -> Vec<(Option<u32>, Statistic, u64)> {
        self.statistics.iter().map(|((sdi, what), count)| (*sdi, *what, *count)).collect()
    }

    fn count(&mut self, sdi: Option<u32>, what: Statistic) {
        *self.statistics.entry((sdi, what)).or_default() += 1;
    }

    /// Returns the domain of a peer.
    fn domain_of(&self, peer: IpAddr) -> Option<u32> {
        match self.peers.get(&peer) {
            Some(sdi) => *sdi,
            None => self.domains.keys().next().copied(),
        }
    }

    fn ports(&self, packet: &Packet, leaving: bool) -> Ports {
        match &self.encapsulation {
            Encapsulation::UdpPorts(out, _) if leaving => out(packet),
            Encapsulation::UdpPorts(_, come) => come(packet),
            _ => Ports { src: packet.entropy, dst: UDP_PORT },
        }
    }

    /// Returns the authenticated outer headers of a packet with this many bytes, security header and ICV included.
    pub fn outer(&self, packet: &Packet, length: usize, leaving: bool) -> uet_wire::tss::Outer {
        use uet_wire::tss::{Outer, OuterLayer};
        if let Encapsulation::Native = self.encapsulation {
            return Outer::native(packet.src, packet.dst, packet.entropy);
        }
        let Ports { src, dst } = self.ports(packet, leaving);
        let mut outer = Outer::udp(packet.src, packet.dst, src, length);
        if let OuterLayer::Udp { dst_port, .. } = &mut outer.layer {
            *dst_port = dst;
        }
        outer
    }
}

impl Protect for Secure {
    fn outbound(&mut self, route: &Route) -> Option<SecureContext> {
        let sdi = self.domain_of(route.destination)?;
        let ssi = self.domains.get(&sdi)?.ssi_of_peer(route.destination);
        Some(SecureContext { sdi, ssi })
    }

    fn seal(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), SealError> {
        self.send(packet)
    }

    fn open(&mut self, packet: Packet) -> Result<(Packet, Option<Association>), OpenError> {
        self.receive(packet)
    }

    fn start_psn(&mut self, context: Option<SecureContext>) -> Option<Psn> {
        self.own_start(context?.sdi)
    }

    fn accept_start(&mut self, context: Option<SecureContext>, _: IpAddr, start: Psn) -> Result<(), Psn> {
        match context {
            Some(context) => self.accept(context.sdi, start),
            None => Ok(()),
        }
    }

    fn closed(&mut self, context: Option<SecureContext>, start: Psn, highest: Psn) {
        if let Some(context) = context {
            self.raise_floor(context.sdi, start, highest);
        }
    }

    fn expected_psn(&mut self, context: Option<SecureContext>, start: Psn, highest: Psn) -> Option<Psn> {
        self.tell_floor(context?.sdi, start, highest)
    }

    fn learn_expected_psn(&mut self, context: Option<SecureContext>, expected: Psn) {
        if let Some(context) = context {
            self.learn_floor(context.sdi, expected);
        }
    }
}
