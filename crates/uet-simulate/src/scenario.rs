//! Scenarios of a simulation.

use crate::error::{ScenarioError, refuse};
use crate::topology::{Part, Topology};
use crate::traffic::Traffic;
use core::time::Duration;
use uet_model::PdsParams;
use uet_model::cc::{Algorithms, CcParams, CustomAlgorithm, NetworkParams, PathMode};
use uet_wire::Trimmed;

/// The size of an ACK with congestion control state, and of one without: IP and UDP, the ACK, a response.
const ACK_CC: u32 = 40 + 8 + 32 + 12;
const ACK: u32 = 40 + 8 + 12 + 12;

/// A scenario: endpoints, the fabric between them, and their traffic.
///
/// ```
/// use uet_simulate::{Scenario, Simulation, Topology, Traffic};
///
/// let scenario = Scenario {
///     topology: Topology::Single { hosts: 5 },
///     traffic: Traffic::Incast { senders: 4, size: 200_000 },
///     ..Scenario::default()
/// };
/// let outcome = Simulation::new(&scenario)?.run();
/// assert_eq!(outcome.flows.len(), 4);
/// assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
/// # Ok::<(), uet_simulate::ScenarioError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The seed of all random choices: paths, ECN marks, permutations. Runs with equal seeds are identical.
    pub seed: u64,
    /// The topology.
    pub topology: Topology,
    /// The rate of every link, in bits per second.
    pub rate: u64,
    /// The latency of a link, including the switch, from one end to the other.
    pub latency: Duration,
    /// The payload MTU.
    pub mtu: u16,
    /// The behavior of the switch queues.
    pub switching: Switching,
    /// The congestion control.
    pub congestion: Congestion,
    /// config_base_rtt. The default is the round trip of a full packet between the two hosts farthest apart.
    pub base_rtt: Option<Duration>,
    /// RTO_Init_Time, at least a round trip without queues. The default is 8 base round trips.
    pub rto: Option<Duration>,
    /// The number of out-of-order packets above a missing one after which it counts as lost; 0 disables this.
    pub fast_loss: u16,
    /// The traffic.
    pub traffic: Traffic,
    /// The faults of the fabric.
    pub faults: Vec<Fault>,
    /// The latest time at which the simulation ends.
    pub until: Duration,
    /// The warm-up before the steady state. The default is 50 base round trips.
    pub warm_up: Option<Duration>,
    /// The number of flows with time series, counted from the first.
    pub watched: usize,
}

impl Default for Scenario {
    /// Returns two hosts on a switch, 100 Gb/s, 1 us per link, NSCC, and one flow of 2 MB.
    fn default() -> Self {
        Scenario {
            seed: 1,
            topology: Topology::Single { hosts: 2 },
            rate: 100_000_000_000,
            latency: Duration::from_micros(1),
            mtu: 4096,
            switching: Switching::default(),
            congestion: Congestion::default(),
            base_rtt: None,
            rto: None,
            fast_loss: 0,
            traffic: Traffic::One { size: 2_000_000 },
            faults: Vec::new(),
            until: Duration::from_secs(1),
            warm_up: None,
            watched: 8,
        }
    }
}

/// The congestion control algorithms and the path selection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Congestion {
    /// The algorithms.
    pub control: Control,
    /// The path selection.
    pub paths: PathMode,
    /// The number of entropy values. The default is 256.
    pub path_values: Option<u16>,
    /// The number of rounds without a value after a timeout. The default is 4.
    pub timeout_rest: Option<u8>,
}

/// The algorithms of congestion control.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Control {
    /// No congestion control.
    None,
    /// NSCC.
    #[default]
    Nscc,
    /// RCCC.
    Rccc,
    /// NSCC and RCCC.
    Both,
    /// An algorithm of the caller.
    Custom(CustomAlgorithm),
}

impl Control {
    /// Returns true if receivers grant credit.
    pub fn grants_credit(&self) -> bool {
        matches!(self, Control::Rccc | Control::Both)
    }
}

/// The behavior of the switch queues (section 3.6.17). Depths are in Plane_BDP: the link rate times the base round
/// trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switching {
    /// The marking of requests.
    pub ecn: Ecn,
    /// True if switches trim requests that do not fit, instead of dropping them.
    pub trimming: bool,
    /// The depth at which requests are trimmed.
    pub trim_at: f64,
    /// The depth at which retransmissions are trimmed, if they are protected.
    pub trim_again_at: Option<f64>,
    /// The depth at which requests are dropped without trimming.
    pub drop_at: f64,
    /// The depth at which trimmed requests, ACKs, NACKs and control packets are dropped.
    pub drop_control_at: f64,
    /// The size of a trimmed packet, in bytes after the IP header.
    pub trim_size: u16,
    /// True if trimmed and whole packets share the link as 3 to 1. Otherwise trimmed packets go first.
    pub weighted: bool,
}

impl Default for Switching {
    /// Returns ECN as a ramp from 0.2 to 0.8, trimming at 1.0, and strict priorities. A trimmed packet keeps 24 bytes:
    /// UDP and the PDS header with its congestion state. This is the smallest usable size, and a frame of 64 bytes.
    fn default() -> Self {
        Switching {
            ecn: Ecn::Ramp(0.2, 0.8),
            trimming: true,
            trim_at: 1.0,
            trim_again_at: None,
            drop_at: 5.0,
            drop_control_at: 1.0,
            trim_size: Trimmed::MIN_SIZE as u16,
            weighted: false,
        }
    }
}

/// The condition under which a packet is marked as it leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ecn {
    /// Never marks.
    Off,
    /// Marks with a probability that rises from 0 at the first depth to 1 at the second.
    Ramp(f64, f64),
    /// Marks all packets from this depth on.
    Threshold(f64),
}

/// A fault of a part of the fabric. Switches keep sending packets to it. Packets on a failed part are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The part that fails.
    pub part: Part,
    /// The time of the fault.
    pub at: Duration,
    /// The time of the repair, if any.
    pub until: Option<Duration>,
    /// The percentage of its rate that a part keeps; 0 if it fails.
    pub percent: u8,
}

impl Fault {
    /// Returns true if both act on one part at the same time. One may begin at the end of the other.
    pub(crate) fn overlaps(&self, other: &Fault) -> bool {
        let ends = |fault: &Fault| fault.until.unwrap_or(Duration::MAX);
        self.part == other.part && self.at < ends(other) && other.at < ends(self)
    }
}

impl Scenario {
    /// Returns the nominal size of a full packet in bytes: headers from Ethernet on, and the payload. This is also its
    /// size on a link.
    pub fn full_packet(&self) -> u32 {
        let congestion_state = if self.congestion.control.grants_credit() { 16 } else { 12 };
        u32::from(self.mtu) + 40 + 8 + congestion_state + 44
    }

    /// Returns the maximum payload rate of a link, in bits per second.
    pub fn payload_rate(&self) -> f64 {
        self.rate as f64 * f64::from(self.mtu) / f64::from(self.full_packet())
    }

    /// Returns the round trip over `links` links without queues: a full packet forward, an ACK back.
    pub fn round_trip(&self, links: u32) -> Duration {
        self.latency * (2 * links) + self.wire_time(u64::from(self.full_packet() + ACK_CC) * u64::from(links))
    }

    /// Returns the time that the shortest ACK takes for `links` links.
    pub(crate) fn way_back(&self, links: u32) -> Duration {
        self.latency * links + self.wire_time(u64::from(ACK) * u64::from(links))
    }

    /// Returns the time that bytes take on a link.
    pub(crate) fn wire_time(&self, bytes: u64) -> Duration {
        let bits = u128::from(bytes) * 8;
        Duration::from_nanos((bits * 1_000_000_000).div_ceil(u128::from(self.rate.max(1))) as u64)
    }

    /// Returns config_base_rtt.
    pub fn base_rtt(&self) -> Duration {
        self.base_rtt.unwrap_or_else(|| self.round_trip(self.topology.diameter()))
    }

    /// Returns Plane_BDP, in bytes.
    pub fn plane_bdp(&self) -> f64 {
        self.rate as f64 * self.base_rtt().as_secs_f64() / 8.0
    }

    /// Returns the time at which the steady state begins.
    pub fn warm_up(&self) -> Duration {
        self.warm_up.unwrap_or_else(|| self.base_rtt() * 50)
    }

    /// Returns the ACK delay: twice the time in which the link delivers enough bytes to trigger an ACK.
    fn ack_delay(&self) -> Duration {
        let trigger = f64::from(PdsParams::default().ack_gen_trigger);
        Duration::from_secs_f64(2.0 * trigger * 8.0 / self.rate as f64)
    }

    fn network(&self) -> NetworkParams {
        NetworkParams {
            sender_rate: self.rate,
            receiver_rate: self.rate,
            base_rtt: self.base_rtt(),
            mtu: self.mtu.into(),
            full_packet: self.full_packet(),
            trimming: self.switching.trimming,
            drop_threshold: self.switching.drop_at,
        }
    }

    /// Returns the parameters of an endpoint with `flows` flows.
    pub(crate) fn endpoint(&self, flows: usize) -> Result<PdsParams, ScenarioError> {
        let network = self.network();
        let mut congestion = match &self.congestion.control {
            Control::None => CcParams::none(&network),
            Control::Nscc => CcParams::nscc(&network),
            Control::Rccc => CcParams::rccc(&network),
            Control::Both => CcParams::both(&network),
            Control::Custom(algorithm) => CcParams::custom(&network, algorithm.clone()),
        }?;
        // All switches store a packet before they pass it on.
        if let Algorithms::Nscc(nscc) | Algorithms::Both(nscc, _) = &mut congestion.algorithms {
            nscc.store_and_forward_links = self.topology.diameter();
        }
        let paths = &mut congestion.paths;
        paths.mode = self.congestion.paths;
        paths.values = self.congestion.path_values.unwrap_or(paths.values);
        paths.timeout_rest = self.congestion.timeout_rest.unwrap_or(paths.timeout_rest);
        paths.check()?;
        congestion.pacer.max_sources = congestion.pacer.max_sources.max(flows);
        // The queued data is the demand that the source announces, so it has to fill the largest window. Without
        // credit, it only has to exceed the size from which a source measures the round trip first, 1 BDP.
        let windows = if self.congestion.control.grants_credit() { 2.0 } else { 1.25 };
        let window = windows * self.plane_bdp() / f64::from(self.full_packet());
        Ok(PdsParams {
            payload_mtu: self.mtu,
            congestion,
            tx_queue: (window as u16).clamp(16, 4096),
            general_pdcs: u16::try_from(flows).unwrap_or(u16::MAX).saturating_add(1).min(u16::MAX - 1),
            rto_init_time: self.rto.unwrap_or_else(|| self.base_rtt() * 8),
            ack_delay: self.ack_delay(),
            fast_loss_packets: self.fast_loss,
            // No source gives up here: 31 means no limit.
            max_rto_retx_cnt: 31,
            max_nack_retx_cnt: 31,
            // Idle contexts of many flows would fill the memory.
            idle_time: if flows > 2048 { self.base_rtt() * 16 } else { Duration::ZERO },
            event_capacity: if self.faults.is_empty() { 0 } else { 1024 },
            ..PdsParams::default()
        })
    }

    /// Checks that the scenario can be simulated. Returns the reason if not.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.topology.check()?;
        if ![1024, 2048, 4096, 8192].contains(&self.mtu) {
            return refuse("mtu", "must be 1024, 2048, 4096 or 8192");
        }
        if !(1_000_000_000..=10_000_000_000_000).contains(&self.rate) {
            return refuse("rate", "must be from 1 Gb/s to 10 Tb/s");
        }
        if self.latency > Duration::from_millis(10) {
            return refuse("latency", "must be at most 10 ms");
        }
        if self.until.is_zero() || self.until > Duration::from_secs(3600) {
            return refuse("until", "must be above 0, and at most 1 h");
        }
        if self.warm_up.is_some_and(|warm_up| warm_up >= self.until) {
            return refuse("warm_up", "must be less than until");
        }
        // With a shorter timeout, a source would send each packet again before an answer to the first can arrive.
        let shortest = self.round_trip(self.topology.diameter());
        if self.rto.is_some_and(|rto| rto < shortest) {
            let reason = format!("must be at least {} ns, a round trip without queues", shortest.as_nanos());
            return refuse("rto", reason);
        }
        self.switching.check()?;
        self.endpoint(1).map(|_| ())
    }
}

impl Switching {
    fn check(&self) -> Result<(), ScenarioError> {
        let depth = |depth: f64| (0.01..=1000.0).contains(&depth);
        let depths = [
            ("trim_at", self.trim_at),
            ("trim_again_at", self.trim_again_at.unwrap_or(self.trim_at)),
            ("drop_control_at", self.drop_control_at),
        ];
        if let Some((what, _)) = depths.into_iter().find(|(_, at)| !depth(*at)) {
            return refuse(what, "must be from 0.01 to 1,000 BDP");
        }
        // Without trimming, NSCC takes this depth less 1 BDP as the delay from which quick adapt acts.
        if !(1.0..=1000.0).contains(&self.drop_at) {
            return refuse("drop_at", "must be from 1 to 1,000 BDP");
        }
        let ecn = match self.ecn {
            Ecn::Off => true,
            Ecn::Ramp(from, to) => 0.0 <= from && from < to && depth(to),
            Ecn::Threshold(at) => depth(at),
        };
        if !ecn {
            return refuse("ecn", "must be a depth from 0.01 to 1,000 BDP, or two, the lower one first");
        }
        if !(Trimmed::MIN_SIZE..=256).contains(&self.trim_size.into()) {
            return refuse("trim_size", "must be from 24 to 256 bytes behind the IP header");
        }
        Ok(())
    }
}
