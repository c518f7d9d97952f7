use super::PacerParams;
use super::queue::{CreditSource, Known, Line, Sources};
use crate::cc::CcError;
use crate::{PdcHandle, Time};
use core::time::Duration;
use uet_wire::Units24;

/// Grants credit to all that send to this FEP, one after the other, at the pace of its link.
///
/// ```
/// use uet_model::cc::{CreditPacer, CreditSource, Network, PacerParams};
/// use uet_model::{PdcHandle, Time};
/// use uet_wire::Units24;
///
/// let mut pacer = CreditPacer::new(PacerParams::new(&Network::default())?)?;
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
pub struct CreditPacer {
    params: PacerParams,
    sources: Sources,
    /// When the next grant may leave.
    next: Time,
    /// When the last grant left.
    last: Time,
    /// How much longer than needed was waited, since grants do not take whole nanoseconds: of a nanosecond, by the rate.
    waited: u128,
}

/// A grant, to be sent as a CREDIT control packet in the high class, or as the state of an ACK_CC where no NSCC runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who gets it.
    pub source: CreditSource,
    /// The PDC that its demand came by last.
    pub via: PdcHandle,
    /// All that was granted so far.
    pub credit: Units24,
}

impl CreditPacer {
    /// A pacer at rest.
    pub fn new(params: PacerParams) -> Result<Self, CcError> {
        params.check()?;
        Ok(CreditPacer { params, sources: Sources::default(), next: Time::ZERO, last: Time::ZERO, waited: 0 })
    }

    /// A request says what its source wants: new or a duplicate, whole or trimmed (`RCCC-TRIM-001`). Returns whether the
    /// source is known now: with as many as are remembered, a new one is refused.
    #[must_use = "a source that is not known gets no credit, and has to be told so"]
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

    /// The same for a CREDIT_REQUEST, which is answered in any case, with all that was granted so far: a grant that was lost
    /// is made good this way.
    #[must_use = "a source that is not known gets no credit, and has to be told so"]
    pub fn request(&mut self, now: Time, source: CreditSource, via: PdcHandle, target: Units24) -> bool {
        let known = self.demand(now, source, via, target);
        self.sources.owe(&source);
        known
    }

    /// A packet was trimmed at the last hop: the queue there is full, and a packet sent on a grant of now would find it so.
    pub fn last_hop_is_full(&mut self, now: Time) {
        self.hold(now);
    }

    /// The next grant that is due.
    pub fn poll_grant(&mut self, now: Time) -> Option<Grant> {
        self.poll_tick(now).or_else(|| self.poll_owed())
    }

    /// When the next grant is due; at once, where that has passed.
    pub fn timeout(&self) -> Option<Time> {
        match self.sources.first_owed() {
            Some(_) => Some(Time::ZERO),
            None => self.next_in_line().map(|_| self.next),
        }
    }

    /// All that was granted to a source so far, for an ACK_CC.
    pub fn granted(&self, source: &CreditSource) -> Units24 {
        self.sources.get(source).map_or(Units24::default(), |known| known.latest)
    }

    /// Grants this share of the link rate from now on, 1 to 100 percent: less, when the host or the fabric cannot take it.
    pub fn set_percent(&mut self, percent: u8) {
        self.params.percent = percent.clamp(1, 100);
    }

    /// How many sources are known.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Knows a source that it has not met, or that has started anew.
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

    /// Raises the demand of a source, never lowers it: packets overtake each other (`RCCC-COUNT-002`).
    fn raise(&mut self, source: &CreditSource, target: Units24) {
        let Some(known) = self.sources.get_mut(source) else { return };
        if target.since(known.target).is_some() {
            known.target = target;
        }
        let line = line(known, self.params.most_units());
        self.sources.queue_up(source, line);
    }

    /// Whether what comes from a source now is likely to have been sent on its initial credit, while others want the link too.
    fn is_speculating(&self, now: Time, source: &CreditSource) -> bool {
        let new = self.sources.get(source).is_some_and(|known| now - known.met < self.params.hold);
        new && self.sources.line(Line::Active).take(2).any(|other| other != *source)
    }

    /// The link is taken by what was not granted. The next grant waits until that ceases, though not for ever: it may not be
    /// ours to stop. So the queue that is made by all who start at once, each with its initial credit, is gone before the first
    /// packet comes that was sent on a grant.
    fn hold(&mut self, now: Time) {
        let latest = self.last + self.params.hold;
        let quantum = self.span(self.params.quantum.into());
        self.next = self.next.max((now + quantum).min(latest));
    }

    /// A pacer at rest fires at once.
    fn wake(&mut self, now: Time) {
        if self.next_in_line().is_none() {
            self.next = self.next.max(now);
        }
    }

    /// `RCCC-GRANT-001`: the first in line gets a quantum, or what it wants if that is less, and goes to the end.
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
        let line = line(known, self.params.most_units());
        self.sources.queue(&source, line);
        self.pace(now, units);
        self.grant(source)
    }

    /// Whose turn it is, and how many units it may get: of those that have demand, or where none has, of the others.
    fn next_in_line(&self) -> Option<(CreditSource, u32)> {
        if let Some(source) = self.sources.first(Line::Active) {
            return Some((source, self.sources.get(&source)?.demand()));
        }
        let source = self.sources.first(Line::Idle).filter(|_| self.params.idle_credit)?;
        Some((source, self.params.most_units().saturating_sub(self.sources.get(&source)?.surplus())))
    }

    /// `RCCC-PACE-001`: the next grant waits for as long as the link takes for this one, at a share of its rate.
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

    /// What the link takes for so many units at the rate of grants: nanoseconds, as a fraction.
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

/// By how much the first grant of a source is smaller than the others. A source overdraws by less than a packet, again and again,
/// until it is a packet that it does not send; all of them together must not do that in the same round, or the link would get
/// too much for many rounds and then too little. A packet is about a quarter of the quantum.
fn stagger(number: u64, quantum: u32) -> u32 {
    (number.wrapping_mul(7) % u64::from(quantum / 4).max(1)) as u32
}

/// Where a source belongs.
fn line(known: &Known, most: u32) -> Line {
    match (known.demand(), known.surplus()) {
        (1.., _) => Line::Active,
        (0, surplus) if surplus < most => Line::Idle,
        _ => Line::Full,
    }
}

/// Whether a target is so far from what was granted that it is of another life of the source, which has been forgotten or
/// has begun anew. Within a life it is never farther than demand, idle credit and reordering make it; public sources say
/// nothing of this.
fn has_started_anew(latest: Units24, target: Units24, most: u32) -> bool {
    let distance = target.since(latest).or_else(|| latest.since(target));
    distance.is_none_or(|units| units > most.saturating_mul(4))
}

/// What a source that was not known has been granted before, at least: its target is at most the largest demand above. A
/// new source starts at 0. For one that comes back this may be too little, and some grants tell it nothing new.
fn before(target: Units24, most: u32) -> Units24 {
    let demand = target.get().min(most);
    target + (1u32 << 24).wrapping_sub(demand)
}
