use crate::cc::params::{self, CcError, NetworkParams, require};
use core::time::Duration;

/// The parameters of NSCC (section 3.6.13), by the names of the specification. The defaults follow from the [`NetworkParams`].
///
/// ```
/// use uet_model::cc::{NetworkParams, NsccParams};
///
/// // 100 Gb/s, 6 us, switches that trim, an MTU of 4,096.
/// let params = NsccParams::new(&NetworkParams::default())?;
/// assert_eq!((params.fi, params.eta, params.fi_scale), (10_240.0, 307.2, 0.125));
/// assert_eq!(params.alpha * params.target_qdelay.as_secs_f64(), 3_072.0, "bytes per round trip without delay");
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NsccParams {
    /// config_base_rtt: the round-trip time of one MTU over the longest path without load.
    pub config_base_rtt: Duration,
    /// A known base round-trip time of this destination. The default is config_base_rtt.
    pub cached_base_rtt: Option<Duration>,
    /// The link rate of the source, in bits per second.
    pub sender_rate: u64,
    /// The nominal size of a full packet: see [`NetworkParams::full_packet`].
    pub full_packet: u32,
    /// The number of links on the longest path that pass on whole packets only. A round-trip sample of a shorter packet
    /// counts as that of a full one: the time of the missing bytes is added for each of these links. Open: 0, which
    /// takes samples as they are.
    pub store_and_forward_links: u32,
    /// MaxWnd: the largest window until the base round trip has been measured; 1.5 BDP.
    pub max_wnd: u64,
    /// The window at the start; MaxWnd.
    pub initial_cwnd: u64,
    /// target_qdelay: the target queuing delay; 0.75 config_base_rtt with trimming, 1.0 without.
    pub target_qdelay: Duration,
    /// alpha: the gain of the proportional increase, in bytes per second.
    pub alpha: f64,
    /// fi: the fair increase, in bytes per window.
    pub fi: f64,
    /// fi_scale: the fast increase, in bytes per byte.
    pub fi_scale: f64,
    /// eta: the growth of the window in each period, in bytes.
    pub eta: f64,
    /// gamma: the gain of the multiplicative decrease; 0.8.
    pub gamma: f64,
    /// max_md_jump: the minimum share of the window that a decrease leaves; 0.5.
    pub max_md_jump: f64,
    /// True if quick adapt is on.
    pub quick_adapt: bool,
    /// qa_gate: quick adapt acts if less than max_wnd / 2^qa_gate was achieved; 3.
    pub qa_gate: u32,
    /// qa_threshold: the delay that counts as a loss for quick adapt. `None` with trimming: no delay does.
    pub qa_threshold: Option<Duration>,
    /// adjust_period_threshold: the period of updates of the window; config_base_rtt.
    pub adjust_period_threshold: Duration,
    /// adjust_bytes_threshold: the number of bytes that triggers an update; 8 MTUs.
    pub adjust_bytes_threshold: u64,
    /// The weight of a sample in the average delay. Open: 0.0125, which the public simulator uses.
    pub delay_weight: f64,
    /// The delay that counts as zero. Open: 1 us, which the public simulator uses.
    pub delay_about_0: Duration,
    /// ACK_Gen_Trigger. With a smaller window each packet requests an ACK, because it is too small to trigger ACKs at
    /// the destination.
    pub ack_gen_trigger: u32,
    /// The reading of the receiver penalty. Open.
    pub penalty_reading: PenaltyReading,
    /// The minimum number of bytes waiting and in flight for a PROBE at the start. Open: 1 BDP here.
    pub probe_from: u64,
}

/// The rule by which the receiver penalty limits the window to the bytes in flight. The public pseudocode contradicts
/// the stated intent: 127 leaves one packet, and 64 halves the window within a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PenaltyReading {
    /// Applies once, when the penalty appears, with the bytes in flight before that ACK. This meets the stated intent.
    #[default]
    Intended,
    /// Applies with every ACK, with the bytes in flight after it. Any penalty then shrinks the window to one packet
    /// within a round trip.
    Literal,
}

impl NsccParams {
    /// MaxWnd in BDPs.
    pub(super) const WINDOW_BDPS: f64 = 1.5;
    /// The reference delay of scaling_b.
    const REFERENCE_DELAY: f64 = 12e-6;

    /// Returns the defaults for this network.
    pub fn new(network: &NetworkParams) -> Result<Self, CcError> {
        network.check()?;
        let params = Self::derived(network);
        params.check()?;
        Ok(params)
    }

    /// Returns the defaults for a checked network.
    pub(in crate::cc) fn derived(network: &NetworkParams) -> Self {
        let target = network.base_rtt.mul_f64(if network.trimming { 0.75 } else { 1.0 });
        Self::with_target(network, target)
    }

    /// Returns the defaults for another target_qdelay, on which alpha depends.
    pub fn with_target(network: &NetworkParams, target_qdelay: Duration) -> Self {
        let mtu = f64::from(network.mtu);
        let bdp = network.bdp();
        let max_wnd = (Self::WINDOW_BDPS * bdp) as u64;
        let scaling_a = network.scaling_a();
        let scaling_b = target_qdelay.as_secs_f64() / Self::REFERENCE_DELAY;
        let qa_threshold = network.base_rtt.mul_f64((network.drop_threshold - 1.0).clamp(0.0, 1e3));
        NsccParams {
            config_base_rtt: network.base_rtt,
            cached_base_rtt: None,
            sender_rate: network.sender_rate,
            full_packet: network.full_packet,
            store_and_forward_links: 0,
            max_wnd,
            initial_cwnd: max_wnd,
            target_qdelay,
            alpha: 4.0 * scaling_a * scaling_b * mtu / target_qdelay.as_secs_f64(),
            fi: 5.0 * mtu * scaling_a,
            fi_scale: 0.25 * scaling_a,
            eta: 0.15 * mtu * scaling_a,
            gamma: 0.8,
            max_md_jump: 0.5,
            quick_adapt: true,
            qa_gate: 3,
            qa_threshold: (!network.trimming).then_some(qa_threshold),
            adjust_period_threshold: network.base_rtt,
            adjust_bytes_threshold: 8 * u64::from(network.mtu),
            delay_weight: 0.0125,
            delay_about_0: Duration::from_micros(1),
            ack_gen_trigger: 16_384,
            penalty_reading: PenaltyReading::default(),
            probe_from: bdp as u64,
        }
    }

    /// Checks that the values are possible and keep all arithmetic finite. Fails with the first impossible parameter.
    pub fn check(&self) -> Result<(), CcError> {
        params::span("config_base_rtt", self.config_base_rtt)?;
        if let Some(base_rtt) = self.cached_base_rtt {
            params::span("cached_base_rtt", base_rtt)?;
        }
        params::rate("sender_rate", self.sender_rate)?;
        params::packet("full_packet", self.full_packet)?;
        let links = self.store_and_forward_links;
        require(links <= 64, "store_and_forward_links", "must be at most 64")?;
        let packet = u64::from(self.full_packet);
        let reason = "must be from a full packet to 2^40 bytes";
        require((packet..=1 << 40).contains(&self.max_wnd), "max_wnd", reason)?;
        let reason = "must be from a full packet to max_wnd";
        require((packet..=self.max_wnd).contains(&self.initial_cwnd), "initial_cwnd", reason)?;
        params::span("target_qdelay", self.target_qdelay)?;
        params::gain("alpha", self.alpha)?;
        params::gain("fi", self.fi)?;
        params::gain("fi_scale", self.fi_scale)?;
        params::gain("eta", self.eta)?;
        params::share("gamma", self.gamma)?;
        params::share("max_md_jump", self.max_md_jump)?;
        require(self.qa_gate < 64, "qa_gate", "must be below 64")?;
        params::share("delay_weight", self.delay_weight)?;
        require(self.delay_weight > 0.0, "delay_weight", "must be above 0")
    }
}
