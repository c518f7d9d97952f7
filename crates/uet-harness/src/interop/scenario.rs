//! The scenarios of two implementations: one table of operations, and the networks that they cross.

use core::cmp::Reverse;
use core::fmt;
use std::collections::{BTreeSet, BinaryHeap};
use uet_control::{Mode, PostKind, Welcome};

/// More than any axis has values.
const VALUES: usize = 16;

/// More than the values of all axes.
const POINTS: usize = 7 * VALUES;

/// An operation, and the delivery modes and sizes with which it is played.
struct Operation {
    name: &'static str,
    kind: PostKind,
    modes: &'static [Mode],
    sizes: &'static [Size],
    /// True if the target must implement `post_receive`.
    receives: bool,
}

const RELIABLE: &[Mode] = &[Mode::Rud, Mode::Rod];
const ANY: &[Size] = &[Size::Nothing, Size::Byte, Size::Packet, Size::Packets, Size::Mebibyte];
const SOME: &[Size] = &[Size::Byte, Size::Packet, Size::Packets, Size::Mebibyte];
const ELEMENTS: &[Size] = &[Size::Byte, Size::Packet];

const fn row(
    name: &'static str,
    kind: PostKind,
    modes: &'static [Mode],
    sizes: &'static [Size],
    receives: bool,
) -> Operation {
    Operation { name, kind, modes, sizes, receives }
}

const OPERATIONS: &[Operation] = &[
    row("write", PostKind::Write, &[Mode::Rud, Mode::Rod, Mode::Rudi], ANY, false),
    row("read", PostKind::Read, &[Mode::Rud, Mode::Rod, Mode::Rudi], SOME, false),
    row("send", PostKind::Send, RELIABLE, ANY, true),
    row("tsend", PostKind::Tsend, RELIABLE, ANY, true),
    row("atomic", PostKind::Atomic, RELIABLE, ELEMENTS, false),
    row("fetch_atomic", PostKind::FetchAtomic, RELIABLE, ELEMENTS, false),
    row("rendezvous_send", PostKind::RendezvousSend, RELIABLE, &[Size::Packets, Size::Mebibyte], true),
    row("deferrable_send", PostKind::DeferrableSend, RELIABLE, &[Size::Packet, Size::Packets], true),
    row("datagram", PostKind::Datagram, &[Mode::Uud], &[Size::Nothing, Size::Byte, Size::Packet], true),
];

/// Returns the names of all operations. The id of a scenario begins with one.
pub fn operations() -> impl Iterator<Item = &'static str> + Clone {
    OPERATIONS.iter().map(|row| row.name)
}

/// Returns whether the id of a scenario begins so.
pub fn is_scenario(id: &str) -> bool {
    Scenario::all().iter().any(|one| one.to_string().starts_with(id))
}

/// The networks, each with its effects. The first of each kind of packet meets them for sure.
const NETWORKS: &[(&str, &[&str])] = &[
    ("clean", &[]),
    ("loss", &["drop first 1", "drop ack 1", "drop 1%"]),
    ("reordering", &["reorder 2 first 2", "reorder 5 5%"]),
    ("duplicates", &["duplicate first 1", "duplicate ack 1", "duplicate 3%"]),
    ("marks", &["mark request every 3"]),
    ("outage", &["blackout 20ms packet 3"]),
];

/// A network that loses nothing: datagrams are not sent again.
const LOSSLESS: &[&str] = &["clean", "marks"];

/// Algorithms that both ends use. `default` leaves each end as it is.
const CONGESTION: &[&str] = &["default", "nscc", "rccc"];

/// The secure domain of both ends. A cluster has a key for each address, the other one source identifiers.
const PROTECTION: &[(&str, Option<&str>)] = &[
    ("none", None),
    ("cluster", Some("mode = \"cluster\"")),
    ("direct", Some("mode = \"direct\"\nssi = true")),
];

/// Changes of the plain course of a scenario.
const COURSES: &[(&str, Course)] = &[
    ("plain", Course::Plain),
    ("late-receive", Course::LateReceive),
    ("two-jobs", Course::TwoJobs),
    ("closed-by-initiator", Course::ClosedByInitiator),
    ("closed-by-target", Course::ClosedByTarget),
    ("target-restarts", Course::TargetRestarts),
    ("initiator-restarts", Course::InitiatorRestarts),
    ("reused", Course::Reused),
    ("many-contexts", Course::ManyContexts),
];

/// The size of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Size {
    Nothing,
    Byte,
    Packet,
    Packets,
    Mebibyte,
}

impl Size {
    const fn name(self) -> &'static str {
        match self {
            Size::Nothing => "nothing",
            Size::Byte => "byte",
            Size::Packet => "packet",
            Size::Packets => "packets",
            Size::Mebibyte => "mebibyte",
        }
    }
}

/// The course of events around the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Course {
    Plain,
    /// The target posts its receives after the message has arrived.
    LateReceive,
    /// The operations belong to two jobs in turn.
    TwoJobs,
    /// The initiator closes the context between the operations.
    ClosedByInitiator,
    /// The target asks for the close.
    ClosedByTarget,
    /// The target forgets everything in the middle of an operation.
    TargetRestarts,
    /// The initiator forgets everything in the middle of an operation, and posts it again.
    InitiatorRestarts,
    /// A hundred operations, one after the other.
    Reused,
    /// An operation of each of [`MANY`] jobs, all at the same time.
    ManyContexts,
}

/// The number of the secure domain.
const SDI: u32 = 0x5ec;

/// Jobs of [`Course::ManyContexts`], each with a context of its own.
pub(super) const MANY: u32 = 256;

/// A scenario: operations of one end at the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scenario {
    /// Places in the tables.
    operation: usize,
    pub(super) mode: Mode,
    pub(super) size: Size,
    network: usize,
    congestion: usize,
    protection: usize,
    course: usize,
}

impl Scenario {
    pub(super) fn kind(&self) -> PostKind {
        OPERATIONS[self.operation].kind
    }

    pub(super) fn receives(&self) -> bool {
        OPERATIONS[self.operation].receives
    }

    pub(super) fn course(&self) -> Course {
        COURSES[self.course].1
    }

    pub(super) fn effects(&self) -> &'static [&'static str] {
        NETWORKS[self.network].1
    }

    /// Returns the algorithm to configure, unless each end stays as it is.
    pub(super) fn congestion(&self) -> Option<&'static str> {
        Some(CONGESTION[self.congestion]).filter(|name| *name != "default")
    }

    /// Returns the key file of the domain of both ends, if there is one. Each seed has a key of its own, because
    /// counters begin again after a reset.
    pub(super) fn key_file(&self, seed: u64) -> Option<String> {
        let settings = PROTECTION[self.protection].1?;
        let place = self.to_string().bytes().fold(seed, |place, byte| place.rotate_left(7) ^ u64::from(byte));
        let mut random = fastrand::Rng::with_seed(place);
        let key: String = (0..4).map(|_| format!("{:016x}", random.u64(..))).collect();
        Some(format!("[[domain]]\nsdi = {SDI}\n{settings}\nkeys = {{ 0 = \"{key}\" }}\n"))
    }

    /// Returns the number of bytes of an operation, for ends with this payload MTU.
    pub(super) fn length(&self, mtu: u64) -> u64 {
        let atomic = matches!(self.kind(), PostKind::Atomic | PostKind::FetchAtomic);
        match self.size {
            Size::Nothing => 0,
            Size::Byte if atomic => 8,
            Size::Byte => 1,
            Size::Packet if atomic => 64,
            Size::Packet => mtu,
            Size::Packets => 5 * mtu + 7,
            Size::Mebibyte => 1 << 20,
        }
    }

    /// Returns what one of the ends lacks for it, by the end.
    fn lacks(&self, ends: [&Welcome; 2]) -> Option<String> {
        let operation = OPERATIONS[self.operation].name;
        let claims = |end: usize, name: &str| ends[end].capabilities.iter().any(|claim| claim == name);
        let mut needs = vec![(0, operation), (1, operation), (0, self.mode.name()), (1, self.mode.name())];
        if self.receives() {
            needs.push((1, "receive"));
        }
        if let Some(algorithm) = self.congestion() {
            needs.extend([(0, algorithm), (1, algorithm), (0, "parameters"), (1, "parameters")]);
        }
        if self.protection > 0 {
            needs.extend([(0, "tss"), (1, "tss")]);
        }
        match self.course() {
            Course::ClosedByInitiator => needs.push((0, "close")),
            Course::ClosedByTarget => needs.push((1, "request_close")),
            _ => {}
        }
        let lacks = needs.into_iter().find(|(end, name)| !claims(*end, name));
        let lacks = lacks.map(|(end, name)| (end, format!("does not claim '{name}'")));
        let few = |&(end, name): &(usize, &str)| {
            ends[end].limits.get(name).is_some_and(|limit| *limit < u64::from(MANY))
        };
        let limited = [(0, "pdcs"), (1, "pdcs"), (1, "regions"), (0, "operations")]
            .into_iter()
            .find(few)
            .filter(|_| self.course() == Course::ManyContexts)
            .map(|(end, name)| (end, format!("has fewer than {MANY} '{name}'")));
        lacks.or(limited).map(|(end, what)| format!("the {} {what}", ["initiator", "target"][end]))
    }

    fn is_sensible(&self) -> bool {
        let Operation { kind, modes, sizes, .. } = OPERATIONS[self.operation];
        let lossless = LOSSLESS.contains(&NETWORKS[self.network].0);
        modes.contains(&self.mode)
            && sizes.contains(&self.size)
            && (kind != PostKind::Datagram || lossless)
            && (self.mode != Mode::Rudi || self.congestion == 0)
            && (self.protection == 0 || self.is_light())
            && match self.course() {
                Course::Plain => true,
                Course::LateReceive => kind == PostKind::DeferrableSend,
                Course::Reused => self.size == Size::Byte && self.congestion == 0 && self.mode != Mode::Uud,
                Course::TargetRestarts | Course::InitiatorRestarts => {
                    let plain = kind == PostKind::Write && self.mode == Mode::Rud;
                    plain && self.size == Size::Mebibyte && self.network == 0 && self.protection == 0
                }
                Course::ManyContexts => {
                    let small = matches!(self.size, Size::Byte | Size::Packet) && self.congestion == 0;
                    small && matches!(self.mode, Mode::Rud | Mode::Rod)
                }
                Course::TwoJobs | Course::ClosedByInitiator | Course::ClosedByTarget => {
                    self.size != Size::Mebibyte && matches!(self.mode, Mode::Rud | Mode::Rod)
                }
            }
    }

    /// Returns whether its packets come slowly enough for the network to protect them again within the timeouts of
    /// both ends. Nothing limits the packets of RUDI.
    fn is_light(&self) -> bool {
        let burst = self.mode == Mode::Rudi && self.size == Size::Mebibyte;
        !(burst || matches!(self.course(), Course::ManyContexts | Course::Reused))
    }

    /// Returns its value on each axis.
    fn points(&self) -> [(usize, usize); 7] {
        [
            (0, self.operation),
            (1, self.mode as usize),
            (2, self.size as usize),
            (3, self.network),
            (4, self.congestion),
            (5, self.course),
            (6, self.protection),
        ]
    }

    /// Returns a number for each pair of its values.
    fn pairs(&self) -> impl Iterator<Item = usize> + use<> {
        let points = self.points().map(|(axis, value)| axis * VALUES + value);
        let with = move |second: usize| (0..second).map(move |first| points[first] * POINTS + points[second]);
        (0..points.len()).flat_map(with)
    }

    fn all() -> Vec<Scenario> {
        let mut all = Vec::new();
        for (operation, row) in OPERATIONS.iter().enumerate() {
            for (&mode, &size) in
                row.modes.iter().flat_map(|mode| row.sizes.iter().map(move |size| (mode, size)))
            {
                for network in 0..NETWORKS.len() {
                    for congestion in 0..CONGESTION.len() {
                        for protection in 0..PROTECTION.len() {
                            all.extend(
                                (0..COURSES.len())
                                    .map(|course| Scenario {
                                        operation,
                                        mode,
                                        size,
                                        network,
                                        congestion,
                                        protection,
                                        course,
                                    })
                                    .filter(Scenario::is_sensible),
                            );
                        }
                    }
                }
            }
        }
        all
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, mode) = (OPERATIONS[self.operation].name, self.mode.name());
        write!(f, "{operation}[mode={mode},size={}", self.size.name())?;
        write!(f, ",network={},congestion={}", NETWORKS[self.network].0, CONGESTION[self.congestion])?;
        if self.protection > 0 {
            write!(f, ",protection={}", PROTECTION[self.protection].0)?;
        }
        write!(f, ",course={}]", COURSES[self.course].0)
    }
}

/// Returns scenarios that both ends claim to support, so that each two values that can meet do so in one of them; with
/// `full` all. Those that an end cannot play follow with the reason, one for each value that no other has.
pub(super) fn plan(ends: [&Welcome; 2], full: bool) -> Vec<(Scenario, Option<String>)> {
    let (usable, others): (Vec<_>, Vec<_>) =
        Scenario::all().into_iter().map(|one| (one, one.lacks(ends))).partition(|(_, lack)| lack.is_none());
    let usable: Vec<Scenario> = usable.into_iter().map(|(one, _)| one).collect();
    let chosen = if full { usable } else { pairwise(&usable) };
    let mut seen: BTreeSet<(usize, usize)> = chosen.iter().flat_map(Scenario::points).collect();
    let mut plan: Vec<(Scenario, Option<String>)> = chosen.into_iter().map(|one| (one, None)).collect();
    for (one, lack) in others {
        let mut is_new = false;
        for point in one.points() {
            is_new |= seen.insert(point);
        }
        if is_new {
            plan.push((one, lack));
        }
    }
    plan
}

/// Returns scenarios that contain each pair of values of all of them, the one with the most new pairs next.
fn pairwise(all: &[Scenario]) -> Vec<Scenario> {
    let mut open = vec![false; POINTS * POINTS];
    all.iter().flat_map(Scenario::pairs).for_each(|pair| open[pair] = true);
    // The number of new pairs only shrinks, so the last one counted is a bound. The first of equals comes first: the
    // plan is always the same.
    let mut bounds: BinaryHeap<_> = (0..all.len()).map(|index| (usize::MAX, Reverse(index))).collect();
    let mut chosen = Vec::new();
    while let Some((bound, Reverse(index))) = bounds.pop() {
        let gain = all[index].pairs().filter(|pair| open[*pair]).count();
        if gain == bound {
            all[index].pairs().for_each(|pair| open[pair] = false);
            chosen.push(all[index]);
        } else if gain > 0 {
            bounds.push((gain, Reverse(index)));
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_control::Link;

    fn welcome(claims: &[&str]) -> Welcome {
        let addr = [127, 0, 0, 1].into();
        let capabilities = claims.iter().map(|name| (*name).to_owned()).collect();
        Welcome { capabilities, ..Welcome::new("nic", Link::Udp { addr, port: 1 }) }
    }

    #[test]
    fn every_pair_of_values_is_played() {
        let all = Scenario::all();
        let chosen = pairwise(&all);
        assert!(chosen.len() * 10 < all.len(), "{} of {}", chosen.len(), all.len());
        for one in &all {
            let (points, mut left) = (one.points(), chosen.iter());
            assert!(
                left.any(|other| other.points()[0] == points[0] && other.points()[3] == points[3]),
                "{one}"
            );
        }
    }

    #[test]
    fn what_an_end_lacks_is_named_once() {
        let small = welcome(&["rud", "write"]);
        let plan = plan([&small, &small], false);
        let played = plan.iter().filter(|(_, lack)| lack.is_none());
        assert!(played.clone().all(|(one, _)| one.to_string().starts_with("write[mode=rud")));
        assert!(played.count() > 10);
        let reasons: Vec<_> = plan.iter().filter_map(|(_, lack)| lack.as_deref()).collect();
        assert!(reasons.contains(&"the initiator does not claim 'read'"), "{reasons:?}");
        assert!(reasons.len() < 20, "{reasons:?}");
    }

    #[test]
    fn effects_are_understood() {
        for effect in NETWORKS.iter().flat_map(|(_, effects)| effects.iter()) {
            effect.parse::<uet_model::network::Impairment>().unwrap();
        }
    }
}
