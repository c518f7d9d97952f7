use crate::cc::params::{self, CcError, NetworkParams, require};
use core::time::Duration;
use uet_wire::Units24;

/// Credit counters compare serially: a difference of 2^23 units is stale. Demand stays below a quarter of that, so
/// reordering cannot make it stale.
const MOST_DEMAND: u64 = (1 << 21) * Units24::UNIT;

/// The parameters of a source. All are open; the defaults follow from the [`NetworkParams`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct RcccParams {
    /// The credit before the first grant; 1 BDP.
    pub initial_credit: u64,
    /// The maximum credit requested at a time; 1.5 BDP.
    pub max_wnd: u64,
    /// The nominal size of a full packet: see [`NetworkParams::full_packet`].
    pub full_packet: u32,
    /// The minimum wait for credit before a source requests it again; 2 base round trips. It grows if grants take
    /// longer.
    pub request_interval: Duration,
    /// The time without traffic, or without a reply, after which a source restarts with the initial credit; 100 base
    /// round trips.
    pub idle_reset: Duration,
    /// The cumulative grant from which a source counts, in units of 256 bytes; 0. For tests of the wrap only.
    pub start_credit: u32,
}

impl RcccParams {
    /// Returns the defaults for this network.
    pub fn new(network: &NetworkParams) -> Result<Self, CcError> {
        network.check()?;
        let bdp = network.bdp();
        let params = RcccParams {
            initial_credit: bdp as u64,
            max_wnd: (1.5 * bdp) as u64,
            full_packet: network.full_packet,
            request_interval: network.base_rtt * 2,
            idle_reset: network.base_rtt * 100,
            start_credit: 0,
        };
        params.check()?;
        Ok(params)
    }

    /// Checks that the values are possible. Fails with the first impossible parameter.
    pub fn check(&self) -> Result<(), CcError> {
        params::packet("full_packet", self.full_packet)?;
        let most = 1..=MOST_DEMAND;
        require(most.contains(&self.initial_credit), "initial_credit", "must be from 1 byte to 512 MiB")?;
        let most = u64::from(self.full_packet)..=MOST_DEMAND;
        require(
            most.contains(&self.max_wnd),
            "max_wnd",
            "must be from a full packet to 512 MiB, since counters wrap at 4 GiB",
        )?;
        let nothing = Duration::ZERO;
        require(self.request_interval > nothing, "request_interval", "must be above 0")?;
        require(self.idle_reset > nothing, "idle_reset", "must be above 0")
    }
}

/// The parameters of a destination that grants credit. All are open; the defaults follow from the [`NetworkParams`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct PacerParams {
    /// The link rate of this FEP, in bits per second.
    pub link_rate: u64,
    /// The share of the link rate to grant, in percent; 99.
    pub percent: u8,
    /// The size of a grant, in units of 256 bytes; 64, which is 4 packets of 4,096 bytes.
    pub quantum: u16,
    /// The maximum unused credit of a source, in bytes; 1.5 BDP.
    pub max_wnd: u64,
    /// True if sources without demand get credit, up to `max_wnd`, while no other has demand. The default is false.
    pub idle_credit: bool,
    /// The time after which a silent source is forgotten; 1,000 base round trips.
    pub forget_after: Duration,
    /// The number of sources remembered; 4,096.
    pub max_sources: usize,
    /// The maximum time that a late caller may catch up; 1 base round trip.
    pub catch_up: Duration,
    /// The maximum delay of grants by packets without a grant; 1 base round trip, zero for none. Such packets are those
    /// of a source's first round trip if it is not alone, and those trimmed at the last hop.
    pub hold: Duration,
    /// True if the first grants of sources differ in size, so that they do not overdraw in the same round. The default
    /// is true.
    pub stagger: bool,
}

impl PacerParams {
    /// Returns the defaults for this network.
    pub fn new(network: &NetworkParams) -> Result<Self, CcError> {
        network.check()?;
        Ok(Self::derived(network))
    }

    /// Returns the defaults for a checked network.
    pub(in crate::cc) fn derived(network: &NetworkParams) -> Self {
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

    /// Checks that the values are possible. Fails with the first impossible parameter.
    pub fn check(&self) -> Result<(), CcError> {
        params::rate("link_rate", self.link_rate)?;
        require((1..=100).contains(&self.percent), "percent", "must be from 1 to 100")?;
        require(self.quantum > 0, "quantum", "must be at least 1 unit of 256 bytes")?;
        require((1..=MOST_DEMAND).contains(&self.max_wnd), "max_wnd", "must be from 1 byte to 512 MiB")?;
        require(self.max_sources > 0, "max_sources", "must be at least 1")?;
        require(self.forget_after > Duration::ZERO, "forget_after", "must be above 0")
    }

    /// Returns `max_wnd` in units.
    pub(super) fn most_units(&self) -> u32 {
        self.max_wnd.min(MOST_DEMAND).div_ceil(Units24::UNIT) as u32
    }
}
