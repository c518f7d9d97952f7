//! The configuration of a network as its operator states it. The rules compare the network with it, and the software
//! switch follows it.

use core::fmt::Write as _;
use core::net::IpAddr;
use serde::Deserialize;
use uet_emulator::classes::{Class, Classes};

/// The configuration of a network, read from TOML.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The ports of the network that the suite owns.
    #[serde(rename = "port")]
    pub ports: Vec<Port>,
    /// Addresses behind several ports with equal paths.
    #[serde(default, rename = "route")]
    pub routes: Vec<Route>,
    /// The DSCPs of the classes.
    #[serde(default)]
    pub dscp: Dscp,
    /// The number of routers between two ports.
    pub hops: Option<u8>,
    /// The length of the longest IP packet.
    #[serde(default = "default_mtu")]
    pub mtu: u16,
    /// Trimming, if the network trims.
    pub trim: Option<Trim>,
    /// Marking of congestion, if the network marks.
    pub mark: Option<Mark>,
}

/// A port of the network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Its name: for a real network, the interface of this machine that leads to it.
    pub name: String,
    /// The address of the endpoint that the suite plays there.
    pub address: IpAddr,
    /// The router's address on this link. Without one, the ports are on one Ethernet.
    pub gateway: Option<IpAddr>,
    /// The rate at which the network sends to it, in Mbit/s.
    pub rate_mbps: Option<u64>,
    /// True if trims for this port happen at the last hop. Unless stated, both DSCPs of trims are right.
    pub last_hop: Option<bool>,
}

/// An address behind several ports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The destination.
    pub to: IpAddr,
    /// The names of the ports over which its packets spread.
    pub ports: Vec<String>,
}

/// The DSCP of each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dscp {
    /// Requests, which may be trimmed.
    pub data: u8,
    /// Trimmed within the fabric.
    pub trimmed: u8,
    /// Trimmed at the last hop.
    pub trimmed_last_hop: u8,
    /// ACKs, NACKs and control packets.
    pub control: u8,
    /// Data of a class that is not trimmed, if there is one.
    pub untrimmable: Option<u8>,
}

impl Default for Dscp {
    fn default() -> Self {
        Dscp { data: 10, trimmed: 12, trimmed_last_hop: 14, control: 8, untrimmable: None }
    }
}

/// How a network trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trim {
    /// The length of a trimmed frame in bytes, from the Ethernet header on and without its check sequence.
    pub size: u16,
    /// How many bytes more or less are right too.
    #[serde(default)]
    pub tolerance: u16,
    /// The IP length of a trimmed packet.
    #[serde(default)]
    pub length: TrimLength,
    /// The bytes that wait at a port before it trims.
    #[serde(default = "default_above")]
    pub above: u64,
}

/// The IP length of a trimmed packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrimLength {
    /// The length of the trimmed packet.
    #[default]
    Fixed,
    /// The length of the whole packet, with its checksum.
    Stale,
}

/// How a network marks congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The bytes that wait at a port before the first mark.
    pub from: u64,
    /// The bytes above which every packet is marked.
    pub to: u64,
    /// True if the switch compares a running average: marks then begin later than the queue grows.
    #[serde(default)]
    pub averaged: bool,
}

const fn default_mtu() -> u16 {
    1500
}

const fn default_above() -> u64 {
    100_000
}

/// The most ports.
const MOST: usize = 64;

impl Statement {
    /// Returns the configuration of the built-in switch: four ports at 100 Gbit/s, two of which are equal paths.
    pub fn embedded() -> Self {
        let port = |(number, name): (u8, &str)| Port {
            name: name.into(),
            address: [10, 0, 0, number].into(),
            gateway: None,
            rate_mbps: Some(100_000),
            last_hop: Some(number < 3),
        };
        Statement {
            ports: (1..).zip(["a", "b", "c", "d"]).map(port).collect(),
            routes: vec![Route { to: [10, 9, 0, 1].into(), ports: vec!["c".into(), "d".into()] }],
            dscp: Dscp { untrimmable: Some(0), ..Dscp::default() },
            hops: Some(1),
            mtu: default_mtu(),
            trim: Some(Trim { size: 128, tolerance: 0, length: TrimLength::Fixed, above: default_above() }),
            mark: Some(Mark { from: 20_000, to: 60_000, averaged: false }),
        }
    }

    /// Checks what the types cannot express. The error names the key.
    pub fn check(&self) -> Result<(), String> {
        if !(2..=MOST).contains(&self.ports.len()) {
            return Err(format!("{} [[port]]; 2 to {MOST} are needed", self.ports.len()));
        }
        for (index, port) in self.ports.iter().enumerate() {
            let name = &port.name;
            if self.ports.iter().take(index).any(|one| one.name == *name || one.address == port.address) {
                return Err(format!("port {name}: another port has its `name` or `address`"));
            }
            if port.address.is_ipv4() != self.is_ipv4() {
                return Err(format!(
                    "port {name}: `address` is of another IP version than that of the first"
                ));
            }
            if port.rate_mbps.is_some_and(|rate| !(1..=10_000_000).contains(&rate)) {
                return Err(format!("port {name}: `rate_mbps` must be from 1 to 10000000"));
            }
        }
        for Route { to, ports } in &self.routes {
            if let Some(name) = ports.iter().find(|name| self.port(name).is_none()) {
                return Err(format!("route to {to}: there is no port {name}"));
            }
            if ports.len() < 2
                || to.is_ipv4() != self.is_ipv4()
                || self.ports.iter().any(|at| at.address == *to)
            {
                return Err(format!(
                    "route to {to}: it needs two `ports`, and an address of the same IP version that no port has"
                ));
            }
        }
        let Dscp { data, trimmed, trimmed_last_hop, control, untrimmable } = self.dscp;
        let all = [Some(data), Some(trimmed), Some(trimmed_last_hop), Some(control), untrimmable];
        let all: Vec<u8> = all.into_iter().flatten().collect();
        // A network may signal both places with one DSCP.
        let twice =
            all.iter().enumerate().any(|(at, one)| at != 2 && all.iter().take(at).any(|it| it == one));
        if twice || [data, control].contains(&trimmed_last_hop) || all.iter().any(|one| *one > 63) {
            return Err("dscp: values are from 0 to 63, and no two classes share one".into());
        }
        if !(576..=9216).contains(&self.mtu) {
            return Err("`mtu` must be from 576 to 9216".into());
        }
        let half = u32::from(self.mtu) / 2;
        if self.trim.is_some_and(|it| it.size < 58 || u32::from(it.size) + u32::from(it.tolerance) > half) {
            return Err(format!("trim: `size` must be from 58 to {half}, half of `mtu`"));
        }
        if self.mark.is_some_and(|mark| mark.from > mark.to || mark.to == 0) {
            return Err("mark: `from` must be at most `to`, and `to` at least 1".into());
        }
        if self.load() > MOST_LOAD {
            return Err(format!("`trim.above` and `mark.to` must be at most {}", MOST_LOAD / 8));
        }
        Ok(())
    }

    /// Returns whether the network carries IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.ports.first().is_none_or(|port| port.address.is_ipv4())
    }

    /// Returns the number of the port with this name.
    pub fn port(&self, name: &str) -> Option<usize> {
        self.ports.iter().position(|port| port.name == name)
    }

    /// Returns the ports to which an address leads.
    pub fn leads(&self, to: IpAddr) -> Vec<usize> {
        match self.ports.iter().position(|port| port.address == to) {
            Some(port) => vec![port],
            None => {
                let route = self.routes.iter().find(|route| route.to == to);
                route.into_iter().flat_map(|route| &route.ports).filter_map(|name| self.port(name)).collect()
            }
        }
    }

    /// Returns the bytes per nanosecond to a port, if they are stated.
    pub fn rate(&self, port: usize) -> Option<f64> {
        self.ports.get(port)?.rate_mbps.map(|rate| rate as f64 / 8_000.0)
    }

    /// Returns the bytes of a load that fills a queue.
    pub fn load(&self) -> u64 {
        let depth = self.trim.map_or(0, |trim| trim.above).max(self.mark.map_or(0, |mark| mark.to));
        depth.saturating_mul(8).max(400_000)
    }

    /// Returns the DSCPs as a traffic class of the model.
    pub fn classes(&self) -> Classes {
        let Dscp { data: low, trimmed, trimmed_last_hop, control: high, .. } = self.dscp;
        Classes(vec![Class { low, trimmed, trimmed_last_hop, high }])
    }

    /// Returns the statement as TOML.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let line = |text: &mut String, key: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{key} = {value}");
            }
        };
        line(&mut text, "hops", self.hops.map(|hops| hops.to_string()));
        line(&mut text, "mtu", Some(self.mtu.to_string()));
        for port in &self.ports {
            text += "\n[[port]]\n";
            line(&mut text, "name", Some(format!("{:?}", port.name)));
            line(&mut text, "address", Some(format!("\"{}\"", port.address)));
            line(&mut text, "gateway", port.gateway.map(|gateway| format!("\"{gateway}\"")));
            line(&mut text, "rate_mbps", port.rate_mbps.map(|rate| rate.to_string()));
            line(&mut text, "last_hop", port.last_hop.map(|last| last.to_string()));
        }
        for Route { to, ports } in &self.routes {
            let _ = write!(text, "\n[[route]]\nto = \"{to}\"\nports = {ports:?}\n");
        }
        let Dscp { data, trimmed, trimmed_last_hop, control, untrimmable } = self.dscp;
        let _ = write!(
            text,
            "\n[dscp]\ndata = {data}\ntrimmed = {trimmed}\ntrimmed_last_hop = {trimmed_last_hop}\ncontrol = {control}\n"
        );
        line(&mut text, "untrimmable", untrimmable.map(|dscp| dscp.to_string()));
        if let Some(Trim { size, tolerance, length, above }) = self.trim {
            let length = if length == TrimLength::Stale { "stale" } else { "fixed" };
            let _ = write!(
                text,
                "\n[trim]\nsize = {size}\ntolerance = {tolerance}\nlength = \"{length}\"\nabove = {above}\n"
            );
        }
        if let Some(Mark { from, to, averaged }) = self.mark {
            let _ = write!(text, "\n[mark]\nfrom = {from}\nto = {to}\naveraged = {averaged}\n");
        }
        text
    }
}

/// The most bytes of a load.
const MOST_LOAD: u64 = 256 << 20;
