use super::{CustomAlgorithm, NsccParams, PacerParams, PathMode, PathParams, RcccParams};
use core::fmt;
use core::time::Duration;

/// The properties of the network. The defaults of all parameters follow from them.
///
/// ```
/// use uet_model::cc::{NetworkParams, NsccParams};
///
/// let network = NetworkParams::default();
/// assert_eq!(network.bdp(), 75_000.0, "100 Gb/s times 6 us");
/// assert_eq!(NsccParams::new(&network)?.max_wnd, 112_500);
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkParams {
    /// The link rate of the source, in bits per second.
    pub sender_rate: u64,
    /// The link rate of the destination, in bits per second.
    pub receiver_rate: u64,
    /// config_base_rtt: the round-trip time of one MTU over the longest path without load.
    pub base_rtt: Duration,
    /// The payload MTU in bytes. The formulas for alpha, fi and eta use it.
    pub mtu: u32,
    /// The nominal size of a full packet, for the send test and the floors of the window. Open: the specification also
    /// permits the size of the current packet.
    pub full_packet: u32,
    /// True if switches trim packets instead of dropping them.
    pub trimming: bool,
    /// Without trimming, the depth at which a switch drops, in Plane_BDP (section 3.6.17: 2 to 5).
    pub drop_threshold: f64,
}

impl Default for NetworkParams {
    /// Returns 100 Gb/s, 6 us, an MTU of 4,096 and trimming switches.
    fn default() -> Self {
        NetworkParams {
            sender_rate: 100_000_000_000,
            receiver_rate: 100_000_000_000,
            base_rtt: Duration::from_micros(6),
            mtu: 4096,
            full_packet: NetworkParams::full_packet(4096),
            trimming: true,
            drop_threshold: 5.0,
        }
    }
}

impl NetworkParams {
    /// The bytes in flight at 100 Gb/s and 12 us, the reference of scaling_a.
    const REFERENCE_BDP: f64 = 150_000.0;

    /// Returns the nominal size of a packet with this payload: 40, UDP 8, request with congestion state 16, STD 44, CRC 4.
    pub const fn full_packet(mtu: u32) -> u32 {
        mtu.saturating_add(40 + 8 + 16 + 44 + 4)
    }

    /// Returns the BDP in bytes: the smaller link rate times config_base_rtt.
    pub fn bdp(&self) -> f64 {
        bytes_in(self.sender_rate.min(self.receiver_rate), self.base_rtt)
    }

    /// Returns scaling_a: the BDP relative to that of 100 Gb/s and 12 us.
    pub fn scaling_a(&self) -> f64 {
        self.bdp() / Self::REFERENCE_BDP
    }

    /// Checks that the values are possible. Fails with the first impossible parameter.
    pub fn check(&self) -> Result<(), CcError> {
        rate("sender_rate", self.sender_rate)?;
        rate("receiver_rate", self.receiver_rate)?;
        span("base_rtt", self.base_rtt)?;
        packet("full_packet", self.full_packet)?;
        require((1..=self.full_packet).contains(&self.mtu), "mtu", "must be from 1 to full_packet")?;
        require(
            self.drop_threshold >= 1.0 && self.drop_threshold <= 1e3,
            "drop_threshold",
            "must be from 1 to 1,000",
        )
    }
}

/// The algorithms of a context, with their parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithms {
    /// None: a packet may leave at any time.
    None,
    /// NSCC: a window at the source that follows network signals (section 3.6.13).
    Nscc(NsccParams),
    /// RCCC: credit from the destination (section 3.6.14).
    Rccc(RcccParams),
    /// RCCC for the last hop, NSCC for the fabric.
    Both(NsccParams, RcccParams),
    /// An algorithm of the caller, for this network.
    Custom(CustomAlgorithm, NetworkParams),
    /// Transport flow control (section 3.6.15). Not implemented, because its details are not public.
    Tfc(TfcParams),
}

/// The public parameters of TFC: end-to-end credit for buffer space at the destination, in cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TfcParams {
    /// The credit, in cells.
    pub credit_cells: u32,
    /// The size of a cell.
    pub cell_size: u32,
    /// The overhead of each packet.
    pub packet_overhead: u32,
}

/// The configuration of congestion control.
///
/// ```
/// use uet_model::cc::{Algorithms, Ccc, CcParams, TfcParams};
///
/// let mut params = CcParams::default();
/// let ccc = Ccc::new(&params, 1, 7)?;
/// assert!(ccc.may_send());
///
/// params.algorithms = Algorithms::Tfc(TfcParams::default());
/// assert_eq!(Ccc::new(&params, 1, 7).unwrap_err().parameter, "algorithms");
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CcParams {
    /// The algorithms.
    pub algorithms: Algorithms,
    /// The parameters of path selection.
    pub paths: PathParams,
    /// The credit pacer of this FEP, if RCCC runs.
    pub pacer: PacerParams,
}

impl Default for CcParams {
    /// Returns NSCC for the default network.
    fn default() -> Self {
        let network = NetworkParams::default();
        CcParams {
            algorithms: Algorithms::Nscc(NsccParams::derived(&network)),
            paths: PathParams::new(&network),
            pacer: PacerParams::derived(&network),
        }
    }
}

impl CcParams {
    /// Returns NSCC for this network.
    pub fn nscc(network: &NetworkParams) -> Result<Self, CcError> {
        let nscc = NsccParams::new(network)?;
        Self::of(network, Algorithms::Nscc(nscc))
    }

    /// Returns RCCC for this network.
    pub fn rccc(network: &NetworkParams) -> Result<Self, CcError> {
        let rccc = RcccParams::new(network)?;
        Self::of(network, Algorithms::Rccc(rccc))
    }

    /// Returns NSCC and RCCC for this network.
    pub fn both(network: &NetworkParams) -> Result<Self, CcError> {
        let both = Algorithms::Both(NsccParams::new(network)?, RcccParams::new(network)?);
        Self::of(network, both)
    }

    /// Returns no congestion control.
    pub fn none(network: &NetworkParams) -> Result<Self, CcError> {
        Self::of(network, Algorithms::None)
    }

    /// Returns an algorithm of the caller for this network. Destinations answer it as they answer NSCC.
    pub fn custom(network: &NetworkParams, algorithm: CustomAlgorithm) -> Result<Self, CcError> {
        Self::of(network, Algorithms::Custom(algorithm, network.clone()))
    }

    fn of(network: &NetworkParams, algorithms: Algorithms) -> Result<Self, CcError> {
        network.check()?;
        let paths = PathParams::new(network);
        let params = CcParams { algorithms, paths, pacer: PacerParams::new(network)? };
        params.check()?;
        Ok(params)
    }

    /// Returns the parameters with a single path, which ROD needs.
    pub fn single_path(mut self) -> Self {
        self.paths.mode = PathMode::Single;
        self
    }

    /// Returns whether a destination must send congestion state in ACK_CCs.
    pub fn wants_state(&self) -> bool {
        self.algorithms != Algorithms::None
    }

    /// Returns whether credit is granted: there is a pacer, and requests have the types RUD_CC_REQ and ROD_CC_REQ
    /// (`RCCC-TYPE-001`).
    pub fn grants_credit(&self) -> bool {
        matches!(self.algorithms, Algorithms::Rccc(_) | Algorithms::Both(..))
    }

    /// Checks the parameters. Fails with the first impossible one and the reason.
    pub fn check(&self) -> Result<(), CcError> {
        match &self.algorithms {
            Algorithms::None | Algorithms::Custom(..) => {}
            Algorithms::Nscc(nscc) => nscc.check()?,
            Algorithms::Rccc(rccc) => rccc.check()?,
            Algorithms::Both(nscc, rccc) => {
                nscc.check()?;
                rccc.check()?;
            }
            Algorithms::Tfc(_) => {
                require(false, "algorithms", "TFC is not implemented: its details are not public")?
            }
        }
        self.paths.check()?;
        self.pacer.check()
    }
}

/// An impossible parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcError {
    /// The parameter.
    pub parameter: &'static str,
    /// The condition that it violates.
    pub reason: &'static str,
}

impl fmt::Display for CcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.parameter, self.reason)
    }
}

impl core::error::Error for CcError {}

/// Returns an error unless the condition holds.
pub(super) fn require(condition: bool, parameter: &'static str, reason: &'static str) -> Result<(), CcError> {
    if condition { Ok(()) } else { Err(CcError { parameter, reason }) }
}

/// Checks that a link rate keeps all arithmetic finite.
pub(super) fn rate(parameter: &'static str, rate: u64) -> Result<(), CcError> {
    let reason = "must be from 1 Mb/s to 100 Tb/s, in bits per second";
    require((1_000_000..=100_000_000_000_000).contains(&rate), parameter, reason)
}

/// Checks that a duration keeps all arithmetic finite.
pub(super) fn span(parameter: &'static str, span: Duration) -> Result<(), CcError> {
    let within = span >= Duration::from_nanos(1) && span <= Duration::from_secs(10);
    require(within, parameter, "must be from 1 ns to 10 s")
}

/// Checks the size of a packet.
pub(super) fn packet(parameter: &'static str, size: u32) -> Result<(), CcError> {
    require((1..=1 << 17).contains(&size), parameter, "must be from 1 to 131,072 bytes")
}

/// Checks that a number keeps all arithmetic finite.
pub(super) fn gain(parameter: &'static str, gain: f64) -> Result<(), CcError> {
    require((0.0..=1e15).contains(&gain), parameter, "must be from 0 to 1e15")
}

/// Checks a fraction.
pub(super) fn share(parameter: &'static str, share: f64) -> Result<(), CcError> {
    require((0.0..=1.0).contains(&share), parameter, "must be from 0 to 1")
}

/// Returns the number of bytes that a link of this rate carries in a duration.
pub(super) fn bytes_in(rate: u64, span: Duration) -> f64 {
    // Whole nanoseconds and one division give exact results: 100 Gb/s and 6 us give 75,000.
    rate as f64 * span.as_nanos() as f64 / 8e9
}
