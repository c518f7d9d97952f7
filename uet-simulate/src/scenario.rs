//! What is simulated.

use crate::error::{ScenarioError, refuse};
use crate::topology::{Part, Topology};
use crate::traffic::Traffic;
use core::time::Duration;
use uet_model::PdsParams;
use uet_model::cc::{CcParams, Network, PathMode};

/// Endpoints, the fabric between them, and what they have to send.
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
    /// What chance is made from: paths, ECN marks, permutations. The same seed gives the same result.
    pub seed: u64,
    /// How the hosts are connected.
    pub topology: Topology,
    /// The rate of every link, in bits per second.
    pub rate: u64,
    /// How long a packet is on its way from one end of a link to the other, switching included.
    pub latency: Duration,
    /// The payload MTU.
    pub mtu: u16,
    /// What the queues of the switches do.
    pub switching: Switching,
    /// Who may send.
    pub congestion: Congestion,
    /// config_base_rtt, where it is not to be that of a full packet between the two hosts that are farthest apart.
    pub base_rtt: Option<Duration>,
    /// RTO_Init_Time, where it is not to be 8 base round trips.
    pub rto: Option<Duration>,
    /// Out-of-order packets above a missing one from which it counts as lost; 0 for never.
    pub fast_loss: u16,
    /// Who sends what to whom.
    pub traffic: Traffic,
    /// What fails.
    pub faults: Vec<Fault>,
    /// When the simulation ends at the latest.
    pub until: Duration,
    /// What comes before is not part of the steady state. Where it is `None`: 50 base round trips.
    pub warm_up: Option<Duration>,
    /// For how many flows, the first ones, there are time series.
    pub watched: usize,
}

impl Default for Scenario {
    /// Two hosts on a switch, 100 Gb/s, 1 us per link, NSCC, one flow of 2 MB.
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

/// Which algorithms run, and how paths are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion {
    /// The algorithms.
    pub control: Control,
    /// How paths are chosen.
    pub paths: PathMode,
    /// How many entropy values there are, where not 256.
    pub path_values: Option<u16>,
    /// How often a value behind a timeout is passed over, where not 4 times.
    pub timeout_rest: Option<u8>,
}

/// The algorithms of congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// None.
    None,
    /// NSCC.
    #[default]
    Nscc,
    /// RCCC.
    Rccc,
    /// Both.
    Both,
}

impl Control {
    /// Whether receivers grant credit.
    pub fn grants_credit(self) -> bool {
        matches!(self, Control::Rccc | Control::Both)
    }
}

/// What the queues of the switches do (section 3.6.17). Depths are in Plane_BDP: the link rate times the base round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switching {
    /// When requests are marked.
    pub ecn: Ecn,
    /// Whether requests that find no room are trimmed instead of dropped.
    pub trimming: bool,
    /// The depth at which requests are trimmed.
    pub trim_at: f64,
    /// The same for retransmissions, where they are protected.
    pub trim_again_at: Option<f64>,
    /// The depth at which requests are dropped, where they are not trimmed.
    pub drop_at: f64,
    /// The depth at which trimmed requests, and acknowledgements and control packets, are dropped.
    pub drop_control_at: f64,
    /// What is left of a trimmed packet, in bytes behind the IP header.
    pub trim_size: u16,
    /// Whether trimmed packets share the link with whole ones, as 3 to 1, instead of going first.
    pub weighted: bool,
}

impl Default for Switching {
    /// ECN as a ramp from 0.2 to 0.8, trimming at 1.0, strict priorities. 24 bytes are left of a trimmed packet: UDP and the PDS
    /// header with its congestion state, which is the least that does, and a frame of 64 bytes.
    fn default() -> Self {
        Switching {
            ecn: Ecn::Ramp(0.2, 0.8),
            trimming: true,
            trim_at: 1.0,
            trim_again_at: None,
            drop_at: 5.0,
            drop_control_at: 1.0,
            trim_size: 24,
            weighted: false,
        }
    }
}

/// When a packet is marked as it leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ecn {
    /// Never.
    Off,
    /// With a probability that rises from 0 at the first depth to 1 at the second.
    Ramp(f64, f64),
    /// Always, from this depth on.
    Threshold(f64),
}

/// A part of the fabric fails: what is on it is lost, and switches go on sending packets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub part: Part,
    /// From when on.
    pub at: Duration,
    /// When it is repaired, if it is.
    pub until: Option<Duration>,
}

impl Scenario {
    /// The nominal size of a full packet, which is what it takes of a link here: headers from Ethernet on, and the payload.
    pub fn full_packet(&self) -> u32 {
        let congestion_state = if self.congestion.control.grants_credit() { 16 } else { 12 };
        u32::from(self.mtu) + 40 + 8 + congestion_state + 44
    }

    /// The payload that a link carries at most, in bits per second.
    pub fn payload_rate(&self) -> f64 {
        self.rate as f64 * f64::from(self.mtu) / f64::from(self.full_packet())
    }

    /// The round trip over so many links, without queues: there a full packet, back an ACK.
    pub fn round_trip(&self, links: u32) -> Duration {
        const ACK: u32 = 40 + 8 + 32 + 12;
        let bits = u64::from(self.full_packet() + ACK) * 8 * u64::from(links);
        let nanoseconds = (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(self.rate.max(1)));
        self.latency * (2 * links) + Duration::from_nanos(nanoseconds as u64)
    }

    /// config_base_rtt.
    pub fn base_rtt(&self) -> Duration {
        self.base_rtt.unwrap_or_else(|| self.round_trip(self.topology.diameter()))
    }

    /// Plane_BDP, in bytes.
    pub fn plane_bdp(&self) -> f64 {
        self.rate as f64 * self.base_rtt().as_secs_f64() / 8.0
    }

    /// From when on the steady state is measured.
    pub fn warm_up(&self) -> Duration {
        self.warm_up.unwrap_or_else(|| self.base_rtt() * 50)
    }

    /// How long an ACK waits for more: for twice the time in which the link brings what makes one by itself.
    fn ack_delay(&self) -> Duration {
        let trigger = f64::from(PdsParams::default().ack_gen_trigger);
        Duration::from_secs_f64(2.0 * trigger * 8.0 / self.rate as f64)
    }

    fn network(&self) -> Network {
        Network {
            sender_rate: self.rate,
            receiver_rate: self.rate,
            base_rtt: self.base_rtt(),
            mtu: self.mtu.into(),
            full_packet: self.full_packet(),
            trimming: self.switching.trimming,
            drop_threshold: self.switching.drop_at,
        }
    }

    /// The parameters of an endpoint that takes part in so many flows.
    pub(crate) fn endpoint(&self, flows: usize) -> Result<PdsParams, ScenarioError> {
        let network = self.network();
        let mut congestion = match self.congestion.control {
            Control::None => CcParams::none(&network),
            Control::Nscc => CcParams::nscc(&network),
            Control::Rccc => CcParams::rccc(&network),
            Control::Both => CcParams::both(&network),
        }?;
        let paths = &mut congestion.paths;
        paths.mode = self.congestion.paths;
        paths.values = self.congestion.path_values.unwrap_or(paths.values);
        paths.timeout_rest = self.congestion.timeout_rest.unwrap_or(paths.timeout_rest);
        paths.check()?;
        congestion.pacer.max_sources = congestion.pacer.max_sources.max(flows);
        // What is queued is the demand that a receiver is told, so it has to fill the largest window.
        let window = 2.0 * self.plane_bdp() / f64::from(self.full_packet());
        Ok(PdsParams {
            payload_mtu: self.mtu,
            congestion,
            tx_queue: (window as u16).clamp(16, 4096),
            general_pdcs: u16::try_from(flows).unwrap_or(u16::MAX).saturating_add(1).min(u16::MAX - 1),
            rto_init_time: self.rto.unwrap_or_else(|| self.base_rtt() * 8),
            ack_delay: self.ack_delay(),
            fast_loss_packets: self.fast_loss,
            // Here nobody gives up: 15 is without end, and nothing is refused so often.
            max_rto_retx_cnt: 15,
            max_nack_retx_cnt: u8::MAX,
            event_capacity: if self.faults.is_empty() { 0 } else { 1024 },
            ..PdsParams::default()
        })
    }

    /// Refuses what cannot be simulated, with the reason.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.topology.check()?;
        if ![1024, 2048, 4096, 8192].contains(&self.mtu) {
            return refuse("mtu", "1,024, 2,048, 4,096 or 8,192");
        }
        if !(1_000_000_000..=10_000_000_000_000).contains(&self.rate) {
            return refuse("rate", "1 Gb/s to 10 Tb/s");
        }
        if self.latency > Duration::from_millis(10) {
            return refuse("latency", "at most 10 ms");
        }
        if self.until > Duration::from_secs(3600) {
            return refuse("until", "at most an hour");
        }
        self.switching.check()?;
        self.endpoint(1).map(|_| ())
    }
}

impl Switching {
    fn check(&self) -> Result<(), ScenarioError> {
        let depth = |depth: f64| (0.01..=1000.0).contains(&depth);
        let Switching { trim_at, trim_again_at, drop_at, drop_control_at, .. } = *self;
        if ![trim_at, drop_at, drop_control_at, trim_again_at.unwrap_or(1.0)].into_iter().all(depth) {
            return refuse("depth of a queue", "0.01 to 1,000 Plane_BDP");
        }
        let ecn = match self.ecn {
            Ecn::Off => true,
            Ecn::Ramp(from, to) => 0.0 <= from && from < to && depth(to),
            Ecn::Threshold(at) => depth(at),
        };
        if !ecn {
            return refuse("ecn", "a depth of 0.01 to 1,000 Plane_BDP, or two, the lower one first");
        }
        if !(24..=256).contains(&self.trim_size) {
            return refuse("trim_size", "24 to 256 bytes behind the IP header");
        }
        Ok(())
    }
}
