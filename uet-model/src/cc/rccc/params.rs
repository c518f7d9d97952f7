use crate::cc::params::{self, CcError, Network, require};
use core::time::Duration;
use uet_wire::Units24;

/// Credit counters compare serially: a difference of 2^23 units is stale. Demand stays a quarter of that, so that
/// reordering never makes it so.
const MOST_DEMAND: u64 = (1 << 21) * Units24::UNIT;

/// The parameters of a source. All are open; the defaults follow from the [`Network`].
#[derive(Clone, Debug, PartialEq)]
pub struct RcccParams {
    /// What may be sent before the first grant; 1 BDP.
    pub initial_credit: u64,
    /// The most that is asked for at a time; 1.5 BDP.
    pub max_wnd: u64,
    /// The nominal size of a full packet: see [`Network::full_packet`].
    pub full_packet: u32,
    /// How long a source that waits for credit waits at least until it asks for it again; 2 base round trips. It waits longer
    /// where grants take longer.
    pub request_interval: Duration,
    /// After so long without anything to send or in flight, or without an answer while it waits, a source starts anew with
    /// the initial credit; 100 base round trips.
    pub idle_reset: Duration,
}

impl RcccParams {
    /// The defaults for this network.
    pub fn new(network: &Network) -> Result<Self, CcError> {
        network.check()?;
        let bdp = network.bdp();
        let params = RcccParams {
            initial_credit: bdp as u64,
            max_wnd: (1.5 * bdp) as u64,
            full_packet: network.full_packet,
            request_interval: network.base_rtt * 2,
            idle_reset: network.base_rtt * 100,
        };
        params.check()?;
        Ok(params)
    }

    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), CcError> {
        params::packet("full_packet", self.full_packet)?;
        let most = 1..=MOST_DEMAND;
        require(most.contains(&self.initial_credit), "initial_credit", "without any, nothing ever leaves")?;
        let most = u64::from(self.full_packet)..=MOST_DEMAND;
        require(
            most.contains(&self.max_wnd),
            "max_wnd",
            "from a full packet to 512 MiB: counters wrap at 4 GiB",
        )?;
        let nothing = Duration::ZERO;
        require(self.request_interval > nothing, "request_interval", "above 0: else requests never end")?;
        require(self.idle_reset > nothing, "idle_reset", "above 0: else the initial credit never ends")
    }
}

/// The parameters of a destination that grants credit. All are open; the defaults follow from the [`Network`].
#[derive(Clone, Debug, PartialEq)]
pub struct PacerParams {
    /// The link rate of this FEP, in bits per second.
    pub link_rate: u64,
    /// How much of it is granted, in percent; 99.
    pub percent: u8,
    /// How much a source is granted at a time, in units of 256 bytes; 64, which is 4 packets of 4,096 bytes.
    pub quantum: u16,
    /// The most that one source is granted ahead of what it has sent, in bytes; 1.5 BDP.
    pub max_wnd: u64,
    /// Whether sources without demand get credit while no other has any; up to `max_wnd`. Off.
    pub idle_credit: bool,
    /// A source that was silent for so long is forgotten; 1,000 base round trips.
    pub forget_after: Duration,
    /// How many sources are remembered; 4,096.
    pub max_sources: usize,
    /// How much a caller who comes late may catch up with; 1 base round trip.
    pub catch_up: Duration,
    /// How long packets that were not granted may hold up a grant: those of a source's first round trip, where it is not alone,
    /// and those that are trimmed at the last hop. 1 base round trip; not at all when it is zero.
    pub hold: Duration,
    /// Whether the first grants of several sources differ in size, so that these do not overdraw in the same round. On.
    pub stagger: bool,
}

impl PacerParams {
    /// The defaults for this network.
    pub fn new(network: &Network) -> Result<Self, CcError> {
        network.check()?;
        Ok(Self::derived(network))
    }

    /// The defaults for a network that has been checked.
    pub(in crate::cc) fn derived(network: &Network) -> Self {
        PacerParams {
            link_rate: network.receiver_rate,
            percent: 99,
            quantum: 64,
            max_wnd: ((1.5 * network.bdp()) as u64).clamp(network.full_packet.into(), MOST_DEMAND),
            idle_credit: false,
            forget_after: network.base_rtt * 1000,
            max_sources: 4096,
            catch_up: network.base_rtt,
            hold: network.base_rtt,
            stagger: true,
        }
    }

    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), CcError> {
        params::rate("link_rate", self.link_rate)?;
        require((1..=100).contains(&self.percent), "percent", "1 to 100")?;
        require(self.quantum > 0, "quantum", "at least 1 unit of 256 bytes")?;
        require((1..=MOST_DEMAND).contains(&self.max_wnd), "max_wnd", "1 byte to 512 MiB")?;
        require(self.max_sources > 0, "max_sources", "at least 1")?;
        require(self.forget_after > Duration::ZERO, "forget_after", "above 0")
    }

    /// `max_wnd` in units.
    pub(super) fn most_units(&self) -> u32 {
        self.max_wnd.min(MOST_DEMAND).div_ceil(Units24::UNIT) as u32
    }
}
