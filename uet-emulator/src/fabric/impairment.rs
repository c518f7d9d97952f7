//! What the network does to packets, and to which.

use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;
use uet_model::{Packet, Time, TrimPoint};
use uet_wire::Uet;
use uet_wire::pds::Pds;
use uet_wire::registry::PdsType;

/// Something that the network does to some of the packets.
///
/// ```
/// use uet_emulator::fabric::{Effect, Impairment, Kind};
///
/// let third = Impairment::new(Effect::Drop).kind(Kind::Request).nth(3..=3);
/// assert_eq!(third.to_string(), "drop request 3");
/// assert_eq!("drop request 3".parse::<Impairment>()?.to_string(), third.to_string());
///
/// // What the text cannot say.
/// let long = Impairment::new(Effect::Mark).only(|packet| packet.payload.len() > 1024).chance(0.5);
/// # let _ = long;
/// # Ok::<(), uet_emulator::fabric::SyntaxError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Impairment {
    pub(super) effect: Effect,
    pub(super) pick: Pick,
    pub(super) kind: Kind,
    pub(super) from: Option<IpAddr>,
    pub(super) to: Option<IpAddr>,
    pub(super) after: Time,
    pub(super) before: Option<Time>,
    only: Option<Predicate>,
}

/// What is done to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It takes this much longer.
    Delay(Duration),
    /// It takes up to this much longer.
    Jitter(Duration),
    /// It is held back until this many later packets between the same addresses have passed; when they do not come,
    /// for [`HELD`].
    Reorder(u16),
    /// It is marked as having met congestion (ECN-CE).
    Mark,
    /// It is cut to this many bytes behind the IP header, 24 at least.
    Trim(u16, TrimPoint),
    /// A bit of it changes. The CRC (of a deployment without one: that of Ethernet) tells, and its destination drops it.
    Corrupt,
    /// It is lost, and whatever else goes between the same addresses in this time.
    Blackout(Duration),
}

/// The longest that a packet is held back to be overtaken.
pub const HELD: Duration = Duration::from_millis(1);

/// Which kinds of packets an impairment is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// All.
    #[default]
    Packet,
    /// Requests of every mode, read data included.
    Request,
    /// Those that are sent for the first time.
    First,
    /// Those that are sent again.
    Retransmission,
    /// Acknowledgements, and responses to idempotent requests.
    Ack,
    /// Negative ones.
    Nack,
    /// Control packets.
    Control,
}

impl Kind {
    /// The kinds by their names in the text form.
    pub(super) const NAMES: [(&'static str, Kind); 7] = [
        ("packet", Kind::Packet),
        ("request", Kind::Request),
        ("first", Kind::First),
        ("retransmission", Kind::Retransmission),
        ("ack", Kind::Ack),
        ("nack", Kind::Nack),
        ("control", Kind::Control),
    ];

    /// Whether a packet is of this kind.
    pub fn is(self, packet: &Packet) -> bool {
        let Some(pds) = Uet::parse_lax(&packet.head).0.pds else { return self == Kind::Packet };
        let request = || {
            let plain = pds.request().map(|request| request.retx());
            plain.or(match pds {
                Pds::Rudi(header) if header.prologue().kind() == PdsType::RUDI_REQ => Some(header.retx()),
                Pds::Uud(_) => Some(false),
                _ => None,
            })
        };
        match self {
            Kind::Packet => true,
            Kind::Request => request().is_some(),
            Kind::First => request() == Some(false),
            Kind::Retransmission => request() == Some(true),
            Kind::Ack => pds.ack().is_some() || pds.kind() == PdsType::RUDI_RESP,
            Kind::Nack => pds.nack().is_some(),
            Kind::Control => matches!(pds, Pds::Control(_)),
        }
    }
}

/// Which of the packets that an impairment is for it meets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Pick {
    #[default]
    All,
    /// These, counted from 1.
    Nth(RangeInclusive<u64>),
    /// Each n-th.
    Every(u64),
    /// Each with this probability, in percent.
    Chance(f64),
}

/// What else has to be true of a packet.
#[derive(Clone)]
struct Predicate(Arc<dyn Fn(&Packet) -> bool + Send + Sync>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

impl Impairment {
    /// To every packet.
    pub fn new(effect: Effect) -> Self {
        Impairment {
            effect,
            pick: Pick::All,
            kind: Kind::Packet,
            from: None,
            to: None,
            after: Time::ZERO,
            before: None,
            only: None,
        }
    }

    /// Only to packets of this kind.
    pub fn kind(self, kind: Kind) -> Self {
        Impairment { kind, ..self }
    }

    /// Only to packets from here.
    pub fn from(self, address: impl Into<IpAddr>) -> Self {
        Impairment { from: Some(address.into()), ..self }
    }

    /// Only to packets to there.
    pub fn to(self, address: impl Into<IpAddr>) -> Self {
        Impairment { to: Some(address.into()), ..self }
    }

    /// Only from this time on.
    pub fn after(self, time: Time) -> Self {
        Impairment { after: time, ..self }
    }

    /// Only before this time.
    pub fn before(self, time: Time) -> Self {
        Impairment { before: Some(time), ..self }
    }

    /// Only to packets of which this is true.
    pub fn only(self, predicate: impl Fn(&Packet) -> bool + Send + Sync + 'static) -> Self {
        Impairment { only: Some(Predicate(Arc::new(predicate))), ..self }
    }

    /// Of these packets, only to those with these numbers, counted from 1.
    pub fn nth(self, numbers: RangeInclusive<u64>) -> Self {
        Impairment { pick: Pick::Nth(numbers), ..self }
    }

    /// Of these packets, only to each n-th.
    pub fn every(self, n: u64) -> Self {
        Impairment { pick: Pick::Every(n.max(1)), ..self }
    }

    /// Of these packets, to each with this probability.
    pub fn chance(self, probability: f64) -> Self {
        Impairment { pick: Pick::Chance(probability * 100.0), ..self }
    }

    fn between(&self, packet: &Packet) -> bool {
        self.from.is_none_or(|from| from == packet.src) && self.to.is_none_or(|to| to == packet.dst)
    }

    fn is_for(&self, now: Time, packet: &Packet) -> bool {
        now >= self.after
            && self.before.is_none_or(|end| now < end)
            && self.between(packet)
            && self.kind.is(packet)
            && self.only.as_ref().is_none_or(|only| only.0(packet))
    }
}

/// An impairment at work.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) impairment: Impairment,
    /// Its own chance, so that one impairment more changes nothing for the others.
    pub(super) rng: fastrand::Rng,
    seen: u64,
    dark_until: Time,
}

impl Active {
    pub(super) fn new(impairment: Impairment, seed: u64) -> Self {
        Active { impairment, rng: fastrand::Rng::with_seed(seed), seen: 0, dark_until: Time::ZERO }
    }

    /// Whether it meets this packet.
    pub(super) fn meets(&mut self, now: Time, packet: &Packet) -> bool {
        let dark = now < self.dark_until && self.impairment.between(packet);
        let picked = self.impairment.is_for(now, packet) && self.picks();
        if let (true, Effect::Blackout(span)) = (picked, self.impairment.effect) {
            self.dark_until = self.dark_until.max(now + span);
        }
        picked || dark
    }

    fn picks(&mut self) -> bool {
        self.seen += 1;
        match &self.impairment.pick {
            Pick::All => true,
            Pick::Nth(numbers) => numbers.contains(&self.seen),
            Pick::Every(n) => self.seen % n == 0,
            Pick::Chance(percent) => self.rng.f64() * 100.0 < *percent,
        }
    }
}
