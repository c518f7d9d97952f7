//! Hosts, switches and the links between them.

use crate::error::{ScenarioError, refuse};
use core::fmt;

/// The topology. All links have one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A single switch.
    Single {
        /// The number of hosts.
        hosts: u32,
    },
    /// Two tiers: each leaf has an equal share of the hosts, and a link to every spine.
    LeafSpine {
        /// The number of hosts.
        hosts: u32,
        /// The number of leaves.
        leaves: u32,
        /// The number of spines.
        spines: u32,
    },
    /// Three tiers of switches with `radix` ports. There are `radix` pods, each with radix / 2 leaves and radix / 2
    /// aggregation switches, and (radix / 2)^2 cores. The tree has room for radix^3 / 4 hosts, and the hosts take the
    /// first places.
    FatTree {
        /// The number of hosts.
        hosts: u32,
        /// The number of ports per switch; even.
        radix: u32,
    },
}

/// A part that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A switch of the highest tier: a spine or a core.
    Spine(u32),
    /// The link between a leaf and the n-th switch above it.
    Uplink {
        /// The leaf.
        leaf: u32,
        /// The number of the uplink.
        link: u32,
    },
    /// The link of a host, in both directions.
    Host(u32),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Spine(spine) => write!(f, "spine {spine}"),
            Part::Uplink { leaf, link } => write!(f, "leaf {leaf} uplink {link}"),
            Part::Host(host) => write!(f, "host {host}"),
        }
    }
}

impl Topology {
    /// Returns the fat tree with the smallest switches that has room for `hosts` hosts.
    ///
    /// ```
    /// use uet_simulate::Topology;
    ///
    /// assert_eq!(Topology::fat_tree(128), Topology::FatTree { hosts: 128, radix: 8 });
    /// assert_eq!(Topology::fat_tree(129), Topology::FatTree { hosts: 129, radix: 10 });
    /// ```
    pub fn fat_tree(hosts: u32) -> Self {
        let radix = (1..=64).map(|half| 2 * half).find(|radix| radix * radix * radix / 4 >= hosts);
        Topology::FatTree { hosts, radix: radix.unwrap_or(128) }
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        match *self {
            Topology::Single { hosts }
            | Topology::LeafSpine { hosts, .. }
            | Topology::FatTree { hosts, .. } => hosts,
        }
    }

    /// Returns the number of links between the two hosts farthest apart.
    pub fn diameter(&self) -> u32 {
        match *self {
            Topology::Single { .. } => 2,
            Topology::LeafSpine { leaves: 1, .. } => 2,
            Topology::LeafSpine { .. } => 4,
            Topology::FatTree { hosts, radix } => match hosts {
                _ if hosts <= radix / 2 => 2,
                _ if hosts <= radix * radix / 4 => 4,
                _ => 6,
            },
        }
    }

    /// Returns the number of links between two hosts.
    pub fn distance(&self, a: u32, b: u32) -> u32 {
        match *self {
            _ if a == b => 0,
            Topology::Single { .. } => 2,
            Topology::LeafSpine { hosts, leaves, .. } => {
                let share = hosts / leaves.max(1);
                if a / share == b / share { 2 } else { 4 }
            }
            Topology::FatTree { radix, .. } => {
                let (leaf, pod) = (radix / 2, radix * radix / 4);
                if a / leaf == b / leaf {
                    2
                } else if a / pod == b / pod {
                    4
                } else {
                    6
                }
            }
        }
    }

    pub(crate) fn check(&self) -> Result<(), ScenarioError> {
        let hosts = self.hosts();
        if !(2..=65_536).contains(&hosts) {
            return refuse("hosts", format!("2 to 65,536, not {hosts}"));
        }
        match *self {
            Topology::Single { .. } => Ok(()),
            Topology::LeafSpine { leaves: 0, .. } => refuse("leaves", "at least 1"),
            Topology::LeafSpine { leaves, .. } if hosts % leaves != 0 => {
                refuse("leaves", format!("{hosts} hosts do not divide evenly among {leaves} leaves"))
            }
            Topology::LeafSpine { spines, .. } if !(1..=4096).contains(&spines) => {
                refuse("spines", "1 to 4,096")
            }
            Topology::LeafSpine { .. } => Ok(()),
            Topology::FatTree { radix, .. } if radix % 2 != 0 || !(2..=128).contains(&radix) => {
                refuse("radix", "an even number from 2 to 128")
            }
            Topology::FatTree { radix, .. } if radix * radix * radix / 4 < hosts => {
                let room = radix * radix * radix / 4;
                refuse(
                    "radix",
                    format!("switches of {radix} ports make a fat tree of {room} hosts, not {hosts}"),
                )
            }
            Topology::FatTree { .. } => Ok(()),
        }
    }
}

/// The number of a host or a switch. Switches come after the hosts.
pub(crate) type Node = u32;

/// One direction of a link, identified by its egress port. The first ports are those of the hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) to: Node,
    /// True if it ends at a host.
    pub(crate) last_hop: bool,
}

/// A switch: the hosts below it, and the port to each of them.
#[derive(Clone, Copy, Debug)]
struct Switch {
    /// The range of hosts below it; the end is exclusive.
    below: (u32, u32),
    /// The number of hosts behind each port down.
    stride: u32,
    /// The first port down, and the first port up.
    down: u32,
    up: u32,
    ups: u32,
    /// Makes its hash differ from that of its neighbors.
    salt: u64,
}

/// A built topology.
#[derive(Debug, Default)]
pub(crate) struct Wiring {
    pub(crate) links: Vec<Link>,
    switches: Vec<Switch>,
    hosts: u32,
    /// The ports that lead to each switch of the highest tier, and its own ports.
    tops: Vec<Vec<u32>>,
    /// Both directions of each uplink, by leaf.
    uplinks: Vec<Vec<[u32; 2]>>,
}

impl Wiring {
    pub(crate) fn new(topology: &Topology) -> Self {
        let hosts = topology.hosts();
        let mut wiring = Wiring { hosts, ..Wiring::default() };
        wiring.links = (0..hosts).map(|_| Link { to: 0, last_hop: false }).collect();
        match *topology {
            Topology::Single { .. } => {
                let only = wiring.switch((0, hosts), 1, 0);
                wiring.hang_hosts(&[only]);
            }
            Topology::LeafSpine { leaves, spines, .. } => {
                let share = hosts / leaves;
                let below: Vec<u32> = (0..leaves)
                    .map(|leaf| wiring.switch((leaf * share, (leaf + 1) * share), 1, spines))
                    .collect();
                let above: Vec<u32> = (0..spines).map(|_| wiring.switch((0, hosts), share, 0)).collect();
                wiring.hang_hosts(&below);
                for (l, leaf) in below.iter().enumerate() {
                    for (s, spine) in above.iter().enumerate() {
                        wiring.connect(*leaf, s as u32, *spine, l as u32);
                    }
                }
                wiring.note(&below, &above);
            }
            Topology::FatTree { radix, .. } => wiring.fat_tree(radix),
        }
        wiring
    }

    fn fat_tree(&mut self, radix: u32) {
        let half = radix / 2;
        let (pod, all) = (half * half, radix * half * half);
        let leaves: Vec<u32> =
            (0..radix * half).map(|leaf| self.switch((leaf * half, (leaf + 1) * half), 1, half)).collect();
        let middle: Vec<u32> = (0..radix * half)
            .map(|number| self.switch((number / half * pod, (number / half + 1) * pod), half, half))
            .collect();
        let cores: Vec<u32> = (0..half * half).map(|_| self.switch((0, all), pod, 0)).collect();
        self.hang_hosts(&leaves);
        for p in 0..radix {
            for m in 0..half {
                let aggregation = middle[(p * half + m) as usize];
                for other in 0..half {
                    self.connect(leaves[(p * half + other) as usize], m, aggregation, other);
                    self.connect(aggregation, other, cores[(m * half + other) as usize], p);
                }
            }
        }
        self.note(&leaves, &cores);
    }

    /// Adds a switch with one port for each `stride` hosts below it, and `ups` ports up.
    fn switch(&mut self, below: (u32, u32), stride: u32, ups: u32) -> u32 {
        let number = self.switches.len() as u32;
        let down = self.links.len() as u32;
        let downs = (below.1 - below.0).div_ceil(stride);
        let model = self.links[0];
        self.links.extend((0..downs + ups).map(|_| Link { to: Node::MAX, ..model }));
        let salt = mix(u64::from(number) + 1);
        self.switches.push(Switch { below, stride, down, up: down + downs, ups, salt });
        number
    }

    fn hang_hosts(&mut self, leaves: &[u32]) {
        for leaf in leaves {
            let Switch { below, down, .. } = self.switches[*leaf as usize];
            for host in below.0..below.1.min(self.hosts) {
                self.links[host as usize].to = self.hosts + leaf;
                let last = &mut self.links[(down + host - below.0) as usize];
                (last.to, last.last_hop) = (host, true);
            }
        }
    }

    fn connect(&mut self, lower: u32, up: u32, upper: u32, down: u32) {
        let (up, down) = (self.switches[lower as usize].up + up, self.switches[upper as usize].down + down);
        self.links[up as usize].to = self.hosts + upper;
        self.links[down as usize].to = self.hosts + lower;
    }

    /// Records the parts that can fail.
    fn note(&mut self, leaves: &[u32], tops: &[u32]) {
        self.tops = tops.iter().map(|top| self.ports_of(*top)).collect();
        let both = |wiring: &Self, leaf: u32, port: u32| {
            let above = wiring.switches[(wiring.links[port as usize].to - wiring.hosts) as usize];
            let lower = wiring.hosts + leaf;
            let back = (above.down..above.up).find(|port| wiring.links[*port as usize].to == lower);
            [port, back.unwrap_or(port)]
        };
        self.uplinks = leaves
            .iter()
            .map(|leaf| {
                let Switch { up, ups, .. } = self.switches[*leaf as usize];
                (up..up + ups).map(|port| both(self, *leaf, port)).collect()
            })
            .collect();
    }

    /// Returns all ports of a switch, and all ports that lead to it.
    fn ports_of(&self, switch: u32) -> Vec<u32> {
        let node = self.hosts + switch;
        let Switch { down, up, ups, .. } = self.switches[switch as usize];
        let towards = self.links.iter().enumerate().filter(|(_, link)| link.to == node);
        towards.map(|(port, _)| port as u32).chain(down..up + ups).collect()
    }

    /// Returns the ports of a part.
    pub(crate) fn ports(&self, part: Part) -> Option<Vec<u32>> {
        match part {
            Part::Spine(spine) => self.tops.get(spine as usize).cloned(),
            Part::Uplink { leaf, link } => {
                self.uplinks.get(leaf as usize)?.get(link as usize).map(|both| both.to_vec())
            }
            Part::Host(host) => {
                let last_hop = self.links.iter().position(|link| link.last_hop && link.to == host)?;
                Some(vec![host, last_hop as u32])
            }
        }
    }

    /// Divides hosts and ports into sections. A section has a range of the hosts, with the ports that lead to them, and
    /// those that lead up from them. So a packet between two sections crosses their border once.
    pub(crate) fn sections(&self, count: u8) -> Vec<u8> {
        let section = |host: u32| {
            (u64::from(host.min(self.hosts - 1)) * u64::from(count) / u64::from(self.hosts)) as u8
        };
        let mut sections: Vec<u8> = (0..self.hosts).map(section).collect();
        for switch in &self.switches {
            let first = switch.below.0;
            sections.extend((0..switch.up - switch.down).map(|port| section(first + port * switch.stride)));
            sections.extend((0..switch.ups).map(|_| section(first)));
        }
        sections
    }

    pub(crate) fn is_host(&self, node: Node) -> bool {
        node < self.hosts
    }

    /// Returns the egress port of a packet: down by its destination, up by a hash of the fields that are constant on a
    /// path.
    #[inline]
    pub(crate) fn route(&self, node: Node, from: u32, to: u32, entropy: u16) -> u32 {
        let switch = &self.switches[(node - self.hosts) as usize];
        if (switch.below.0..switch.below.1).contains(&to) {
            return switch.down + (to - switch.below.0) / switch.stride;
        }
        let flow = u64::from(from) << 40 ^ u64::from(to) << 16 ^ u64::from(entropy);
        switch.up + ((u64::from((mix(flow ^ switch.salt) >> 32) as u32) * u64::from(switch.ups)) >> 32) as u32
    }
}

/// Hashes 64 bits. The function is a permutation.
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ value >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of links that a packet takes. Panics if it does not arrive.
    fn walk(wiring: &Wiring, from: u32, to: u32, entropy: u16) -> u32 {
        let (mut port, mut links) = (from, 1);
        loop {
            let node = wiring.links[port as usize].to;
            if wiring.is_host(node) {
                assert_eq!(node, to);
                assert!(wiring.links[port as usize].last_hop);
                return links;
            }
            assert!(!wiring.links[port as usize].last_hop);
            port = wiring.route(node, from, to, entropy);
            links += 1;
            assert!(links <= 6, "it goes round in circles");
        }
    }

    #[test]
    fn every_host_reaches_every_other_by_the_shortest_way() {
        for topology in [
            Topology::Single { hosts: 5 },
            Topology::LeafSpine { hosts: 12, leaves: 3, spines: 2 },
            Topology::LeafSpine { hosts: 4, leaves: 1, spines: 1 },
            Topology::FatTree { hosts: 16, radix: 4 },
            Topology::FatTree { hosts: 11, radix: 4 },
            Topology::FatTree { hosts: 54, radix: 6 },
        ] {
            topology.check().unwrap();
            let wiring = Wiring::new(&topology);
            let mut farthest = 0;
            for (from, to) in (0..topology.hosts()).flat_map(|a| (0..topology.hosts()).map(move |b| (a, b))) {
                if from != to {
                    let entropy = (from * 7 + to) as u16;
                    let links = walk(&wiring, from, to, entropy);
                    assert_eq!(links, topology.distance(from, to), "{topology:?} {from} {to}");
                    farthest = farthest.max(links);
                }
            }
            assert_eq!(farthest, topology.diameter(), "{topology:?}");
        }
    }

    #[test]
    fn the_entropy_value_spreads_packets_over_all_paths() {
        let topology = Topology::LeafSpine { hosts: 16, leaves: 2, spines: 8 };
        let wiring = Wiring::new(&topology);
        let mut used = [0; 8];
        for entropy in 0..256 {
            let port = wiring.route(16, 0, 15, 0xc000 + entropy);
            used[(port - wiring.switches[0].up) as usize] += 1;
        }
        assert!(used.iter().all(|paths| (16..=48).contains(paths)), "{used:?}");
    }

    #[test]
    fn a_part_is_all_its_ports_in_both_directions() {
        let wiring = Wiring::new(&Topology::LeafSpine { hosts: 6, leaves: 3, spines: 2 });
        assert_eq!(wiring.ports(Part::Spine(1)).unwrap().len(), 6);
        let [up, down] = wiring.ports(Part::Uplink { leaf: 2, link: 1 }).unwrap()[..] else { panic!() };
        assert_eq!(wiring.links[up as usize].to, 6 + 3 + 1);
        assert_eq!(wiring.links[down as usize].to, 6 + 2);
        let [up, down] = wiring.ports(Part::Host(3)).unwrap()[..] else { panic!() };
        assert_eq!((up, wiring.links[up as usize].to, wiring.links[down as usize].to), (3, 6 + 1, 3));
        assert_eq!(wiring.ports(Part::Host(6)), None);
        assert_eq!(wiring.ports(Part::Spine(2)), None);
        assert_eq!(wiring.ports(Part::Uplink { leaf: 0, link: 2 }), None);
        assert_eq!(Wiring::new(&Topology::Single { hosts: 2 }).ports(Part::Spine(0)), None);
    }
}
