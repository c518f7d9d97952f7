use super::PacerParams;
use super::queue::{CreditSource, Known, Line, Sources};
use crate::cc::CcError;
use crate::{PdcHandle, Time};
use core::time::Duration;
use uet_wire::Units24;

/// The number of grants after each packet of a limited source. A grant is for four packets.
const STRANGER_GRANTS: u8 = 1;

/// Grants credit to all sources of this FEP in turn, at the rate of its link.
///
/// ```
/// use uet_model::cc::{CreditPacer, CreditSource, NetworkParams, PacerParams};
/// use uet_model::{PdcHandle, Time};
/// use uet_wire::Units24;
///
/// let mut pacer = CreditPacer::new(PacerParams::new(&NetworkParams::default())?)?;
/// let source = CreditSource { address: [10, 0, 0, 1].into(), ccc_id: 0xa1, class: 0 };
/// let via = PdcHandle { pdcid: 0x4011, generation: 0 };
/// pacer.demand(Time(0), source, via, Units24::from_bytes(20_000));
///
/// let grant = pacer.poll_grant(Time(0)).unwrap();
/// assert_eq!((grant.source, grant.via, grant.credit.bytes()), (source, via, 16_384), "a quantum");
/// assert_eq!(pacer.poll_grant(Time(0)), None);
/// assert_eq!(pacer.timeout(), Some(Time(1_324)), "its time at 99 % of 100 Gb/s");
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub struct CreditPacer {
    params: PacerParams,
    sources: Sources,
    /// The time of the next grant.
    next: Time,
    /// The time of the last grant.
    last: Time,
    /// The rounding error of the pace, as a fraction of a nanosecond, since grants do not take whole nanoseconds.
    waited: u128,
}

/// A grant, to be sent as a CREDIT control packet in the high class, or in an ACK_CC if NSCC does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The source that receives it.
    pub source: CreditSource,
    /// The PDC of its last demand.
    pub via: PdcHandle,
    /// The cumulative grant.
    pub credit: Units24,
}

impl CreditPacer {
    /// Creates an idle pacer. Fails if a parameter is impossible.
    pub fn new(params: PacerParams) -> Result<Self, CcError> {
        params.check()?;
        Ok(CreditPacer { params, sources: Sources::default(), next: Time::ZERO, last: Time::ZERO, waited: 0 })
    }

    /// Handles the demand of a request: new or duplicate, whole or trimmed (`RCCC-TRIM-001`). Returns whether the
    /// source is known. A full table refuses a new source.
    #[must_use = "an unknown source gets no credit, and must be informed"]
    pub fn demand(&mut self, now: Time, source: CreditSource, via: PdcHandle, target: Units24) -> bool {
        self.forget_silent(now);
        self.wake(now);
        if !self.meet(now, source, via, target) {
            return false;
        }
        self.sources.hear(now, &source, via);
        self.raise(&source, target);
        if self.is_speculating(now, &source) {
            self.hold(now);
        }
        true
    }

    /// Limits the grants of a source until its next demand. Its address may be forged until it confirms a context, and one packet may
    /// demand many grants.
    pub fn limit(&mut self, source: &CreditSource) {
        if let Some(known) = self.sources.get_mut(source) {
            known.grants_left = Some(STRANGER_GRANTS);
        }
    }

    /// Handles a CREDIT_REQUEST. The reply is always the cumulative grant, which replaces a lost one. Returns whether
    /// the source is known.
    #[must_use = "an unknown source gets no credit, and must be informed"]
    pub fn request(&mut self, now: Time, source: CreditSource, via: PdcHandle, target: Units24) -> bool {
        let known = self.demand(now, source, via, target);
        self.sources.owe(&source);
        known
    }

    /// Records a trim at the last hop. The queue there is full, so a packet sent on a new grant would be trimmed too.
    pub fn last_hop_is_full(&mut self, now: Time) {
        self.hold(now);
    }

    /// Returns the next grant that is due.
    pub fn poll_grant(&mut self, now: Time) -> Option<Grant> {
        self.poll_tick(now).or_else(|| self.poll_owed())
    }

    /// Returns the time of the next grant, which may lie in the past.
    pub fn timeout(&self) -> Option<Time> {
        match self.sources.first_owed() {
            Some(_) => Some(Time::ZERO),
            None => self.next_in_line().map(|_| self.next),
        }
    }

    /// Returns the cumulative grant of a source, for an ACK_CC.
    pub fn granted(&self, source: &CreditSource) -> Units24 {
        self.sources.get(source).map_or(Units24::default(), |known| known.latest)
    }

    /// Sets the share of the link rate to grant, 1 to 100 percent. Lower it if the host or the fabric is slower than
    /// the link.
    pub fn set_percent(&mut self, percent: u8) {
        self.params.percent = percent.clamp(1, 100);
    }

    /// Returns the number of known sources.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Adds a new or restarted source.
    fn meet(&mut self, now: Time, source: CreditSource, via: PdcHandle, target: Units24) -> bool {
        let most = self.params.most_units();
        match self.sources.get(&source) {
            Some(known) if !has_started_anew(known.latest, target, most) => return true,
            None if self.sources.len() >= self.params.max_sources => return false,
            _ => {}
        }
        self.sources.meet(now, source, via, before(target, most));
        true
    }

    /// Raises the demand of a source, but never lowers it, because packets overtake each other (`RCCC-COUNT-002`).
    fn raise(&mut self, source: &CreditSource, target: Units24) {
        let Some(known) = self.sources.get_mut(source) else { return };
        known.grants_left = None;
        if target.since(known.target).is_some() {
            known.target = target;
        }
        let line = line(known, self.params.most_units());
        self.sources.queue_up(source, line);
    }

    /// Returns whether packets of a source were probably sent on its initial credit while others want the link too.
    fn is_speculating(&self, now: Time, source: &CreditSource) -> bool {
        let new = self.sources.get(source).is_some_and(|known| now - known.met < self.params.hold);
        new && self.sources.line(Line::Active).take(2).any(|other| other != *source)
    }

    /// Delays the next grant while packets without a grant take the link, but not forever. The queue that initial credits
    /// build is then gone before the first granted packet arrives.
    fn hold(&mut self, now: Time) {
        let latest = self.last + self.params.hold;
        let quantum = self.span(self.params.quantum.into());
        self.next = self.next.max((now + quantum).min(latest));
    }

    /// Starts an idle pacer at once.
    fn wake(&mut self, now: Time) {
        if self.next_in_line().is_none() {
            self.next = self.next.max(now);
        }
    }

    /// `RCCC-GRANT-001`: grants a quantum to the first source in line, or less if its demand is less. The source then
    /// moves to the end of the line.
    fn poll_tick(&mut self, now: Time) -> Option<Grant> {
        if self.next > now {
            return None;
        }
        let (source, room) = loop {
            let (source, room) = self.next_in_line()?;
            let silent_since = self.sources.get(&source)?.heard;
            if now - silent_since < self.params.forget_after {
                break (source, room);
            }
            self.sources.forget(&source);
        };
        let quantum = u32::from(self.params.quantum);
        let known = self.sources.get_mut(&source)?;
        let newcomer = known.newcomer.take().filter(|_| self.params.stagger);
        let less = newcomer.map_or(0, |number| stagger(number, quantum));
        let units = room.min(quantum - less);
        known.latest = known.latest + units;
        known.grants_left = known.grants_left.map(|left| left.saturating_sub(1));
        let line = line(known, self.params.most_units());
        self.sources.queue(&source, line);
        self.pace(now, units);
        self.grant(source)
    }

    /// Returns the next source and its number of units: sources with demand first, then the others.
    fn next_in_line(&self) -> Option<(CreditSource, u32)> {
        if let Some(source) = self.sources.first(Line::Active) {
            return Some((source, self.sources.get(&source)?.demand()));
        }
        let source = self.sources.first(Line::Idle).filter(|_| self.params.idle_credit)?;
        Some((source, self.params.most_units().saturating_sub(self.sources.get(&source)?.surplus())))
    }

    /// `RCCC-PACE-001`: the next grant waits as long as the link takes for this one, at a share of its rate.
    fn pace(&mut self, now: Time, units: u32) {
        let (time, rate) = self.time(units);
        let time = time.saturating_sub(self.waited);
        let nanoseconds = time.div_ceil(rate);
        self.waited = nanoseconds * rate - time;
        let span = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
        let earliest = Time(now.0.saturating_sub((Time::ZERO + self.params.catch_up).0));
        self.next = self.next.max(earliest) + span;
        self.last = now;
    }

    /// Returns the time that the link takes for `units`, as a fraction of nanoseconds.
    fn time(&self, units: u32) -> (u128, u128) {
        let bits = u128::from(units) * u128::from(Units24::UNIT) * 8;
        (bits * 1_000_000_000 * 100, u128::from(self.params.link_rate) * u128::from(self.params.percent))
    }

    fn span(&self, units: u32) -> Duration {
        let (time, rate) = self.time(units);
        Duration::from_nanos(u64::try_from(time.div_ceil(rate)).unwrap_or(u64::MAX))
    }

    fn poll_owed(&mut self) -> Option<Grant> {
        self.sources.first_owed().and_then(|source| self.grant(source))
    }

    fn grant(&mut self, source: CreditSource) -> Option<Grant> {
        self.sources.answered(&source);
        let known = self.sources.get(&source)?;
        Some(Grant { source, via: known.via, credit: known.latest })
    }

    fn forget_silent(&mut self, now: Time) {
        while let Some((since, source)) = self.sources.most_silent() {
            if now - since < self.params.forget_after {
                break;
            }
            self.sources.forget(&source);
        }
    }
}

/// Returns by how much the first grant of a source is smaller than the others. A source overdraws by less than a packet each
/// time, until it skips a packet. If all sources did so in the same round, the link would get too much for many rounds and
/// then too little. A packet is about a quarter of a quantum.
fn stagger(number: u64, quantum: u32) -> u32 {
    (number.wrapping_mul(7) % u64::from(quantum / 4).max(1)) as u32
}

/// Returns the line of a source.
fn line(known: &Known, most: u32) -> Line {
    match (known.grants_left, known.demand(), known.surplus()) {
        (Some(0), ..) => Line::Full,
        (_, 1.., _) => Line::Active,
        (_, 0, surplus) if surplus < most => Line::Idle,
        _ => Line::Full,
    }
}

/// Returns whether a target is so far from the grants that the source has restarted or was forgotten. Demand, idle
/// credit and reordering bound the distance otherwise. Public sources do not cover this.
fn has_started_anew(latest: Units24, target: Units24, most: u32) -> bool {
    let distance = target.since(latest).or_else(|| latest.since(target));
    distance.is_none_or(|units| units > most.saturating_mul(4))
}

/// Returns the least that an unknown source was granted before: its target is at most the maximum demand above it. A
/// new source starts at 0. For a returning source the result may be too small, so some grants have no effect.
fn before(target: Units24, most: u32) -> Units24 {
    let demand = target.get().min(most);
    target + (1u32 << 24).wrapping_sub(demand)
}
