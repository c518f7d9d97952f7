//! Scenario settings by name, shared by flags and files.

use super::quantity::{Rate, Size, Span, text};
use super::workload::{self, Workload};
use crate::toml_error;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use uet_model::cc::PathMode;
use uet_packet_io::file;
use uet_simulate::{
    Congestion, Control, Ecn, Fault, Graph, Matrix, Part, Scenario, ScenarioError, Switching, Topology,
    Traffic,
};

/// Settings that differ from the default scenario. Flags override a file.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Seed of all random numbers; a seed always gives the same result [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Latest end of the simulation [default: 1s]
    #[arg(long, value_name = "TIME")]
    #[serde(deserialize_with = "text")]
    until: Option<Span>,
    /// Start of the steady-state measurement [default: 50 base round trips]
    #[arg(long, value_name = "TIME")]
    #[serde(deserialize_with = "text")]
    warm_up: Option<Span>,
    /// Number of flows with time series, counted from the first [default: 8]
    #[arg(long, value_name = "FLOWS")]
    watch: Option<usize>,

    /// Traffic pattern
    #[arg(long, value_enum, help_heading = "Traffic")]
    pattern: Option<Pattern>,
    /// Number of senders in an incast [default: all but one]
    #[arg(long, value_name = "NUMBER", help_heading = "Traffic")]
    senders: Option<u32>,
    /// Bytes of payload that each sender sends to each receiver [default: 2MB]
    #[arg(long, value_name = "BYTES", help_heading = "Traffic")]
    #[serde(deserialize_with = "text")]
    size: Option<Size>,
    /// Flows from a connection matrix of htsim (.cm)
    #[arg(long, value_name = "FILE", help_heading = "Traffic", conflicts_with_all = ["pattern", "senders", "size"])]
    matrix: Option<PathBuf>,
    /// Jobs and flows that wait for each other, from a TOML file (docs/workloads.md)
    #[arg(long, value_name = "FILE", help_heading = "Traffic",
          conflicts_with_all = ["pattern", "senders", "size", "matrix"])]
    workload: Option<PathBuf>,
    /// Operations of ranks, from a GOAL schedule of LogGOPSim
    #[arg(long, value_name = "FILE", help_heading = "Traffic",
          conflicts_with_all = ["pattern", "senders", "size", "matrix", "workload"])]
    goal: Option<PathBuf>,
    /// Maximum number of flows that a host of all-to-all sends at the same time [default: no limit]
    #[arg(long, value_name = "FLOWS", help_heading = "Traffic")]
    open: Option<u32>,

    /// Topology of the network [default: as leaves, spines and radix suggest, else single]
    #[arg(long, value_enum, help_heading = "Fabric")]
    topology: Option<Shape>,
    /// Number of hosts [default: as many as the traffic needs, else 16]
    #[arg(long, value_name = "NUMBER", help_heading = "Fabric")]
    hosts: Option<u32>,
    /// Leaves of a leaf-spine fabric [default: 4]
    #[arg(long, value_name = "NUMBER", help_heading = "Fabric")]
    leaves: Option<u32>,
    /// Spines of a leaf-spine fabric [default: as many as a leaf has hosts]
    #[arg(long, value_name = "NUMBER", help_heading = "Fabric")]
    spines: Option<u32>,
    /// Ports of the switches of a fat tree [default: the minimum]
    #[arg(long, value_name = "NUMBER", help_heading = "Fabric")]
    radix: Option<u32>,
    /// Rate of every link [default: 100Gb/s]
    #[arg(long, help_heading = "Fabric")]
    #[serde(deserialize_with = "text")]
    rate: Option<Rate>,
    /// Delay of a packet on each link, switching included [default: 1us]
    #[arg(long, value_name = "TIME", help_heading = "Fabric")]
    #[serde(deserialize_with = "text")]
    latency: Option<Span>,
    /// Payload MTU [default: 4096]
    #[arg(long, value_name = "BYTES", help_heading = "Fabric")]
    mtu: Option<u32>,
    /// Failure of a part: `spine 0 at 100us`, `leaf 1 uplink 0 at 1ms until 2ms`, `host 3 slowed to 25% at 0us`
    #[arg(long, value_name = "WHAT", help_heading = "Fabric")]
    fail: Vec<Failure>,

    /// Queue depth at which requests are marked, in BDP: from..to, one depth, or off. The last hop does not mark if the
    /// receivers grant credit [default: 0.2..0.8]
    #[arg(long, value_name = "DEPTH", help_heading = "Queues")]
    #[serde(deserialize_with = "text")]
    ecn: Option<Marks>,
    /// Let switches trim packets that their queues cannot hold [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Queues")]
    trimming: Option<bool>,
    /// Queue depth at which requests are trimmed, in BDP [default: 1]
    #[arg(long, value_name = "DEPTH", help_heading = "Queues")]
    trim_at: Option<f64>,
    /// Queue depth at which retransmissions are trimmed, in BDP [default: as for requests]
    #[arg(long, value_name = "DEPTH", help_heading = "Queues")]
    trim_again_at: Option<f64>,
    /// Queue depth at which requests are dropped without trimming, in BDP [default: 5]
    #[arg(long, value_name = "DEPTH", help_heading = "Queues")]
    drop_at: Option<f64>,
    /// Bytes behind the IP header that trimming leaves [default: 24]
    #[arg(long, value_name = "BYTES", help_heading = "Queues")]
    trim_size: Option<u32>,
    /// Share a link 3 to 1 between trimmed and whole packets instead of sending trimmed ones first [default: false]
    #[arg(long, value_name = "BOOL", help_heading = "Queues")]
    weighted: Option<bool>,

    /// Congestion control: none, nscc, rccc or both. Several with commas run one after the other, and are shown side
    /// by side [default: nscc]
    #[arg(long, value_name = "ALGORITHMS", help_heading = "Endpoints")]
    #[serde(deserialize_with = "text")]
    congestion: Option<Algorithms>,
    /// Path selection [default: oblivious]
    #[arg(long, value_enum, help_heading = "Endpoints")]
    paths: Option<Paths>,
    /// Number of entropy values for path selection [default: 256]
    #[arg(long, value_name = "NUMBER", help_heading = "Endpoints")]
    path_values: Option<u32>,
    /// Number of times that the bitmap skips a value after a timeout [default: 4]
    #[arg(long, value_name = "ROUNDS", help_heading = "Endpoints")]
    timeout_rest: Option<u8>,
    /// Base round-trip time that congestion control assumes, config_base_rtt [default: that of a full packet between
    /// the two most distant hosts]
    #[arg(long, value_name = "TIME", help_heading = "Endpoints")]
    #[serde(deserialize_with = "text")]
    base_rtt: Option<Span>,
    /// Time until the first retransmission of a packet without an answer, RTO_Init_Time [default: 8 base round trips]
    #[arg(long, value_name = "TIME", help_heading = "Endpoints")]
    #[serde(deserialize_with = "text")]
    rto: Option<Span>,
    /// Number of later packets after which a missing one counts as lost; 0 is never [default: 0]
    #[arg(long, value_name = "PACKETS", help_heading = "Endpoints")]
    fast_loss: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pattern {
    /// From the first host to the last
    One,
    /// From many hosts to the first
    Incast,
    /// From each host to one other
    Permutation,
    /// From each host to every other
    AllToAll,
    /// Reduce-scatter and all-gather of a vector of this size, on a ring
    RingAllReduce,
    /// Up and down a binary tree, with a vector of this size
    TreeAllReduce,
    /// Parts of a vector of this size, to all hosts on a ring
    AllGather,
    /// Reduced parts of a vector of this size, on a ring
    ReduceScatter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    /// One switch
    Single,
    /// Two tiers
    LeafSpine,
    /// Three tiers
    FatTree,
}

/// Algorithms to run with, each once.
#[derive(Clone, Debug)]
struct Algorithms(Vec<Control>);

impl FromStr for Algorithms {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const NAMES: [(&str, Control); 4] = [
            ("none", Control::None),
            ("nscc", Control::Nscc),
            ("rccc", Control::Rccc),
            ("both", Control::Both),
        ];
        let mut all = Vec::new();
        for name in text.split(',') {
            match NAMES.into_iter().find(|(known, _)| *known == name) {
                Some((_, control)) if !all.contains(&control) => all.push(control),
                Some(_) => {
                    return Err(format!("a list that names each algorithm once: {name} is there twice"));
                }
                None => return Err("none, nscc, rccc or both, or several of them with commas".into()),
            }
        }
        Ok(Algorithms(all))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Paths {
    /// Always one value
    Single,
    /// All values, in random order
    Oblivious,
    /// Reuse values whose packets were not marked
    Recycling,
    /// All values except congested ones
    Bitmap,
}

/// The flows before the scenario is complete.
enum Flows {
    Pattern,
    Matrix(Matrix),
    Graph(Graph),
    Workload(Workload),
}

/// The default size of flows in bytes.
const DEFAULT_SIZE: u64 = 2_000_000;

/// Depths at which requests are marked.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Marks(Ecn);

impl FromStr for Marks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let depth = |text: &str| {
            text.parse::<f64>().map_err(|_| "expected a depth in BDP, two of them (0.2..0.8), or off")
        };
        Ok(Marks(match text.split_once("..") {
            _ if text == "off" => Ecn::Off,
            Some((from, to)) => Ecn::Ramp(depth(from)?, depth(to)?),
            None => Ecn::Threshold(depth(text)?),
        }))
    }
}

/// A failure of a part of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Failure(Fault);

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &str| word.parse::<u32>().map_err(|_| format!("'{word}' is not a number"));
        let (part, rest) = match words[..] {
            ["spine", spine, ref rest @ ..] => (Part::Spine(number(spine)?), rest),
            ["leaf", leaf, "uplink", link, ref rest @ ..] => {
                (Part::Uplink { leaf: number(leaf)?, link: number(link)? }, rest)
            }
            ["host", host, ref rest @ ..] => (Part::Host(number(host)?), rest),
            _ => {
                return Err("expected 'spine 0 at 100us', 'leaf 1 uplink 0 at 1ms until 2ms' or \
                            'host 3 slowed to 25% at 0us'"
                    .into());
            }
        };
        let (percent, rest) = match *rest {
            ["slowed", "to", percent, ref rest @ ..] => {
                let number = percent.strip_suffix('%').and_then(|number| number.parse().ok());
                let percent = number.filter(|percent| (1..=99).contains(percent));
                (percent.ok_or("expected a percentage from 1% to 99% after 'slowed to'")?, rest)
            }
            _ => (0, rest),
        };
        let time = |word: &str| {
            word.parse().map(|Span(span)| span).map_err(|reason| format!("'{word}' is not {reason}"))
        };
        let (at, until) = match *rest {
            ["at", at] => (time(at)?, None),
            ["at", at, "until", until] => (time(at)?, Some(time(until)?)),
            _ => {
                return Err(format!("expected 'at 100us' or 'at 100us until 1ms' after '{part}'"));
            }
        };
        if until.is_some_and(|until| until <= at) {
            return Err(format!("the failure of '{part}' must end after it begins"));
        }
        Ok(Failure(Fault { part, at, until, percent }))
    }
}

impl TryFrom<String> for Failure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Settings {
    /// Reads settings from a file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut settings = Self::parse(&file::read_text(path, file::MAX_SETTINGS)?)?;
        // The path is relative to the file that names it.
        if let Some(folder) = path.parent() {
            settings.relative_to(folder);
        }
        Ok(settings)
    }

    /// Sets the seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Settings { seed: Some(seed), ..self }
    }

    /// Makes the paths relative to a folder.
    pub fn relative_to(&mut self, folder: &Path) {
        for path in [&mut self.matrix, &mut self.workload, &mut self.goal].into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }

    /// Parses the text of settings.
    pub fn parse(text: &str) -> io::Result<Self> {
        toml::from_str(text).map_err(|error| io::Error::other(toml_error::shown(&error)))
    }

    /// Merges these settings with those of a file; these take precedence.
    pub fn over(self, file: Settings) -> Settings {
        // Traffic on the command line replaces the traffic of a file.
        let file = match self.sources().next() {
            Some(_) => Settings { pattern: None, matrix: None, workload: None, goal: None, ..file },
            None => file,
        };
        macro_rules! first {
            ($($name:ident)*) => {
                Settings { $($name: self.$name.or(file.$name),)* fail: [file.fail, self.fail].concat() }
            };
        }
        first! {
            seed until warm_up watch pattern senders size matrix workload goal open topology hosts leaves spines radix
            rate latency mtu ecn trimming trim_at trim_again_at drop_at trim_size weighted congestion paths path_values
            timeout_rest base_rtt rto fast_loss
        }
    }

    /// Returns the names of the settings that state the traffic.
    fn sources(&self) -> impl Iterator<Item = &'static str> {
        let sources = [
            ("pattern", self.pattern.is_some()),
            ("matrix", self.matrix.is_some()),
            ("workload", self.workload.is_some()),
            ("goal", self.goal.is_some()),
        ];
        sources.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Returns these settings with each of the congestion control algorithms.
    pub fn with_each_algorithm(&self) -> Vec<Settings> {
        let one = |control: &Control| Settings {
            congestion: Some(Algorithms(vec![control.clone()])),
            ..self.clone()
        };
        match &self.congestion {
            Some(algorithms) => algorithms.0.iter().map(one).collect(),
            None => vec![self.clone()],
        }
    }

    /// Refuses settings that have no effect beside the others. The runs of a sweep may have some.
    pub fn check_effects(&self) -> io::Result<()> {
        let trims = self.trimming != Some(false);
        let trimming = "only switches with trimming have this setting";
        let settings = [
            (
                "timeout-rest",
                self.timeout_rest.is_some() && self.paths != Some(Paths::Bitmap),
                "only the path selection bitmap has this setting",
            ),
            (
                "path-values",
                self.path_values.is_some() && self.paths == Some(Paths::Single),
                "the path selection single does not have this setting",
            ),
            ("trim-at", self.trim_at.is_some() && !trims, trimming),
            ("trim-again-at", self.trim_again_at.is_some() && !trims, trimming),
            ("trim-size", self.trim_size.is_some() && !trims, trimming),
            ("weighted", self.weighted == Some(true) && !trims, trimming),
            ("drop-at", self.drop_at.is_some() && trims, "only switches without trimming have this setting"),
        ];
        match settings.into_iter().find(|(_, is_idle, _)| *is_idle) {
            Some((name, _, reason)) => Err(io::Error::other(format!("{name}: {reason}"))),
            None => Ok(()),
        }
    }

    /// Builds the scenario.
    pub fn scenario(&self) -> io::Result<Scenario> {
        if self.sources().count() > 1 {
            let sources: Vec<&str> = self.sources().collect();
            return Err(io::Error::other(format!("{}: give only one of them", sources.join(", "))));
        }
        let flows = self.flows()?;
        let mut scenario = self.without_files(&flows).map_err(refused)?;
        let hosts = scenario.topology.hosts();
        scenario.traffic = match flows {
            Flows::Pattern => scenario.traffic,
            Flows::Matrix(matrix) => Traffic::Matrix(matrix),
            Flows::Graph(graph) => Traffic::Graph(Arc::new(graph)),
            Flows::Workload(workload) => {
                let graph = workload.expand(hosts, scenario.payload_rate(), scenario.seed)?;
                Traffic::Graph(Arc::new(graph))
            }
        };
        scenario.check().map_err(refused)?;
        Ok(scenario)
    }

    /// Reads the flows, unless they follow from a pattern alone.
    fn flows(&self) -> io::Result<Flows> {
        let size = self.size.map_or(DEFAULT_SIZE, |Size(size)| size);
        if let Some(path) = &self.matrix {
            return matrix(path).map(Flows::Matrix);
        }
        if let Some(path) = &self.workload {
            return Workload::read(path).map(Flows::Workload);
        }
        if let Some(path) = &self.goal {
            return workload::goal(path).map(Flows::Graph);
        }
        let name = match self.pattern {
            Some(Pattern::AllToAll) if self.open.is_some() => "all-to-all",
            _ if self.open.is_some() => {
                return Err(io::Error::other("open: only the pattern all-to-all has this setting"));
            }
            Some(Pattern::RingAllReduce) => "ring-all-reduce",
            Some(Pattern::TreeAllReduce) => "tree-all-reduce",
            Some(Pattern::AllGather) => "all-gather",
            Some(Pattern::ReduceScatter) => "reduce-scatter",
            _ => return Ok(Flows::Pattern),
        };
        Workload::single(name, size, self.open).map(Flows::Workload)
    }

    /// Builds the scenario with the traffic of the pattern.
    fn without_files(&self, flows: &Flows) -> Result<Scenario, ScenarioError> {
        let default = Scenario::default();
        let size = self.size.map_or(DEFAULT_SIZE, |Size(size)| size);
        let named = match flows {
            Flows::Matrix(matrix) => Some(matrix.hosts),
            Flows::Graph(graph) => Some(graph.hosts()),
            Flows::Workload(workload) => workload.hosts(),
            Flows::Pattern => match (self.pattern, self.senders) {
                (Some(Pattern::Incast), Some(0 | 65_536..)) if self.hosts.is_none() => {
                    return refuse("senders", "must be from 1 to 65,535");
                }
                (Some(Pattern::Incast), Some(senders)) => Some(senders.saturating_add(1)),
                _ => None,
            },
        };
        let hosts = self.hosts.or(named).unwrap_or(16);
        let traffic = match self.pattern {
            Some(Pattern::Incast) => {
                Traffic::Incast { senders: self.senders.unwrap_or(hosts.saturating_sub(1)), size }
            }
            _ if self.senders.is_some() => {
                return refuse("senders", "only the pattern incast has this setting");
            }
            Some(Pattern::Permutation) => Traffic::Permutation { size },
            Some(Pattern::AllToAll) => Traffic::AllToAll { size },
            _ => Traffic::One { size },
        };
        Ok(Scenario {
            seed: self.seed.unwrap_or(default.seed),
            topology: self.topology(hosts)?,
            rate: self.rate.map_or(default.rate, |Rate(rate)| rate),
            latency: self.latency.map_or(default.latency, |Span(span)| span),
            mtu: self.mtu.map_or(default.mtu, narrow),
            switching: self.switching(),
            congestion: Congestion {
                control: match self.congestion.as_ref().map(|algorithms| &algorithms.0[..]) {
                    None => Control::Nscc,
                    Some([control]) => control.clone(),
                    Some(_) => {
                        return refuse("congestion", "only one run is possible here: name one algorithm");
                    }
                },
                paths: match self.paths {
                    Some(Paths::Single) => PathMode::Single,
                    Some(Paths::Oblivious) | None => PathMode::Oblivious,
                    Some(Paths::Recycling) => PathMode::Recycling,
                    Some(Paths::Bitmap) => PathMode::Bitmap,
                },
                path_values: self.path_values.map(narrow),
                timeout_rest: self.timeout_rest,
            },
            base_rtt: self.base_rtt.map(|Span(span)| span),
            rto: self.rto.map(|Span(span)| span),
            fast_loss: self.fast_loss.unwrap_or(default.fast_loss),
            traffic,
            faults: self.fail.iter().map(|Failure(fault)| *fault).collect(),
            until: self.until.map_or(default.until, |Span(span)| span),
            warm_up: self.warm_up.map(|Span(span)| span),
            watched: self.watch.unwrap_or(default.watched),
        })
    }

    fn topology(&self, hosts: u32) -> Result<Topology, ScenarioError> {
        let two_tiers = self.leaves.or(self.spines).is_some();
        let suggested = match (two_tiers, self.radix) {
            (true, _) => Shape::LeafSpine,
            (false, Some(_)) => Shape::FatTree,
            (false, None) => Shape::Single,
        };
        let shape = self.topology.unwrap_or(suggested);
        let stray = match shape {
            Shape::LeafSpine => self.radix.map(|_| "radix"),
            Shape::FatTree | Shape::Single if two_tiers => Some("leaves, spines"),
            Shape::Single => self.radix.map(|_| "radix"),
            Shape::FatTree => None,
        };
        if let Some(what) = stray {
            return refuse(what, "the selected topology does not have this setting");
        }
        Ok(match shape {
            Shape::Single => Topology::Single { hosts },
            Shape::LeafSpine => {
                let leaves = self.leaves.unwrap_or(4);
                let spines = self.spines.unwrap_or(hosts / leaves.max(1));
                Topology::LeafSpine { hosts, leaves, spines }
            }
            Shape::FatTree => match self.radix {
                Some(radix) => Topology::FatTree { hosts, radix },
                None => Topology::fat_tree(hosts),
            },
        })
    }

    fn switching(&self) -> Switching {
        let default = Switching::default();
        Switching {
            ecn: self.ecn.map_or(default.ecn, |Marks(ecn)| ecn),
            trimming: self.trimming.unwrap_or(default.trimming),
            trim_at: self.trim_at.unwrap_or(default.trim_at),
            trim_again_at: self.trim_again_at.or(default.trim_again_at),
            drop_at: self.drop_at.unwrap_or(default.drop_at),
            drop_control_at: default.drop_control_at,
            trim_size: self.trim_size.map_or(default.trim_size, narrow),
            weighted: self.weighted.unwrap_or(default.weighted),
        }
    }
}

/// Returns the number, or the largest one of 16 bits. Scenarios refuse that too, and their error states the limit.
fn narrow(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

fn refuse<T>(what: &'static str, reason: &str) -> Result<T, ScenarioError> {
    Err(ScenarioError { what, reason: reason.into() })
}

/// Converts an error in a scenario. Names of settings have hyphens.
pub fn refused(error: ScenarioError) -> io::Error {
    io::Error::other(format!("{}: {}", error.what.replace('_', "-"), error.reason))
}

fn matrix(path: &Path) -> io::Result<Matrix> {
    let about = |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
    let text = file::read_text(path, file::MAX_RESULTS).map_err(|error| about(&error))?;
    text.parse().map_err(|error: uet_simulate::TextError| about(&error))
}
