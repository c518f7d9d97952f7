use crate::network::kind::PacketKind;
use crate::{Packet, Priority, Time, TrimPoint};
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;
use uet_wire::Uet;

/// A packet rule: an effect, and a selection of packets. Parse it from text, and add a predicate with
/// [`only`](Self::only).
///
/// ```
/// use uet_model::network::Impairment;
///
/// let third: Impairment = "drop request 3".parse()?;
/// assert_eq!(third.to_string(), "drop request 3");
///
/// let long = "mark 50%".parse::<Impairment>()?.only(|packet| packet.payload.len() > 1024);
/// # let _ = long;
/// # Ok::<(), uet_model::network::SyntaxError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Impairment {
    pub(crate) effect: Effect,
    pub(crate) pick: Pick,
    pub(crate) kind: PacketKind,
    pub(crate) from: Option<IpAddr>,
    pub(crate) to: Option<IpAddr>,
    pub(crate) after: Time,
    pub(crate) before: Option<Time>,
    only: Option<Predicate>,
}

/// The treatment of one packet by the network. Each rule adds to it.
#[derive(Clone, Debug, Default)]
pub struct Treatment {
    /// True if the packet and its duplicates are lost.
    pub lost: bool,
    /// The delay of the packet, in addition to the latency.
    pub delay: Duration,
    /// The delay of each duplicate, in addition to the latency.
    pub copies: Vec<Duration>,
    /// The number of later packets between the same addresses that overtake the packet. It waits at most [`HELD`](crate::network::HELD).
    pub behind: u16,
    /// True if the packet is marked (ECN-CE).
    pub marked: bool,
    /// The size to which the packet is trimmed, in bytes after the IP header, and the point where it is trimmed.
    pub trim: Option<(u16, TrimPoint)>,
    /// The bit that flips, counted from the first bit of UET.
    pub corrupt: Option<usize>,
    /// The impairments that applied to the packet.
    pub impairments: Vec<Impairment>,
}

impl Treatment {
    /// Returns the packet as it arrives, marked and trimmed. Returns `None` if trimming cuts its PDS header.
    pub fn apply(&self, mut packet: Packet) -> Option<Packet> {
        packet.marked |= self.marked;
        let Some((size, place)) = self.trim else { return Some(packet) };
        trim(&mut packet, size, place);
        let uet = Uet::parse_lax(&packet.head).0;
        (uet.pds.is_some() || uet.tss.is_some()).then_some(packet)
    }
}

/// Lists the impairments that applied to the packet.
impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, impairment) in self.impairments.iter().enumerate() {
            write!(f, "{}{impairment}", if index > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

/// Trims a packet as a switch does, to `size` bytes after the IP header. The UDP header takes 8 of them.
pub fn trim(packet: &mut Packet, size: u16, place: TrimPoint) {
    let left = usize::from(size).saturating_sub(8);
    packet.payload.truncate(left.saturating_sub(packet.head.len()));
    packet.head.truncate(left);
    packet.priority = Priority::Medium;
    packet.trimmed = Some(place);
}

/// The effect of an impairment on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Drops the packet.
    Drop,
    /// Delivers the packet twice.
    Duplicate,
    /// Delays the packet by this time.
    Delay(Duration),
    /// Delays the packet by a random time up to this one. An earlier duplicate has its own jitter.
    Jitter(Duration),
    /// Holds the packet until this many later packets between the same addresses have passed, at most for
    /// [`HELD`](crate::network::HELD).
    Reorder(u16),
    /// Marks the packet (ECN-CE).
    Mark,
    /// Trims the packet to this many bytes after the IP header, at least 24.
    Trim(u16, TrimPoint),
    /// Flips one bit. The destination drops the packet because the CRC of UET fails, or that of Ethernet if UET has
    /// none.
    Corrupt,
    /// Drops the packet and everything else between the same addresses for this time.
    Blackout(Duration),
}

/// The selection among the packets that match an impairment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Pick {
    #[default]
    All,
    /// The packets with these numbers, counted from 1.
    Nth(RangeInclusive<u64>),
    /// Every n-th packet.
    Every(u64),
    /// Each packet with this probability in percent.
    Chance(f64),
}

/// An additional predicate.
#[derive(Clone)]
struct Predicate(Arc<dyn Fn(&Packet) -> bool + Send + Sync>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

impl Impairment {
    pub(crate) fn new(effect: Effect) -> Self {
        Impairment {
            effect,
            pick: Pick::All,
            kind: PacketKind::Packet,
            from: None,
            to: None,
            after: Time::ZERO,
            before: None,
            only: None,
        }
    }

    /// Restricts the impairment to packets for which the predicate is true.
    pub fn only(self, predicate: impl Fn(&Packet) -> bool + Send + Sync + 'static) -> Self {
        Impairment { only: Some(Predicate(Arc::new(predicate))), ..self }
    }

    fn between(&self, packet: &Packet) -> bool {
        self.from.is_none_or(|from| from == packet.src) && self.to.is_none_or(|to| to == packet.dst)
    }

    fn fits(&self, now: Time, packet: &Packet) -> bool {
        now >= self.after
            && self.before.is_none_or(|end| now < end)
            && self.between(packet)
            && self.kind.is(packet)
            && self.only.as_ref().is_none_or(|only| only.0(packet))
    }
}

/// An active impairment of a fabric, with its random stream and packet count.
pub(crate) struct Active {
    impairment: Impairment,
    rng: fastrand::Rng,
    seen: u64,
    dark_until: Time,
}

impl Active {
    pub(crate) fn new(impairment: Impairment, rng: fastrand::Rng) -> Self {
        Active { impairment, rng, seen: 0, dark_until: Time::ZERO }
    }

    pub(crate) fn apply(&mut self, now: Time, packet: &Packet, treatment: &mut Treatment) {
        if !self.meets(now, packet) {
            return;
        }
        let rng = &mut self.rng;
        let Treatment { delay, copies, .. } = treatment;
        match self.impairment.effect {
            Effect::Drop | Effect::Blackout(_) => treatment.lost = true,
            Effect::Duplicate => copies.push(*delay),
            Effect::Delay(span) => core::iter::once(delay).chain(copies).for_each(|delay| *delay += span),
            Effect::Jitter(span) => {
                let most = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
                let mut jitter = || Duration::from_nanos(rng.u64(..=most));
                core::iter::once(delay).chain(copies).for_each(|delay| *delay += jitter());
            }
            Effect::Reorder(behind) => treatment.behind = treatment.behind.max(behind),
            Effect::Mark => treatment.marked = true,
            Effect::Trim(size, place) => treatment.trim = Some((size, place)),
            Effect::Corrupt => {
                let bits = (packet.head.len() + packet.payload.len()).max(1) * 8;
                treatment.corrupt = Some(rng.usize(..bits));
            }
        }
        treatment.impairments.push(self.impairment.clone());
    }

    fn meets(&mut self, now: Time, packet: &Packet) -> bool {
        let dark = now < self.dark_until && self.impairment.between(packet);
        let picked = self.impairment.fits(now, packet) && self.picks();
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
