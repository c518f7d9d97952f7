//! Judges what left a network by what entered it. Nothing here sends or waits.

use super::network::Arrived;
use super::probe::{ETHERNET, Headers, Probe, ProbeKind, TTL};
use super::statement::{Statement, TrimLength};
use std::collections::{BTreeMap, HashSet};
use uet_model::Time;
use uet_wire::catalogue::*;
use uet_wire::{FrameBuilder, Trimmed};

/// A probe that a port has sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// When.
    pub(super) at: Time,
    /// The packet.
    pub(super) probe: Probe,
    /// The frame.
    pub(super) frame: Vec<u8>,
}

/// The packets that entered a network and those that left it.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// The number of the first probe; the others follow.
    pub(super) first: u32,
    /// The probes in the order in which they were sent.
    pub(super) sent: Vec<Sent>,
    /// The frames in the order in which they arrived.
    pub(super) arrived: Vec<Arrived>,
}

/// A broken requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// The requirement.
    pub(super) requirement: &'static Requirement,
    /// The first packet that breaks it.
    pub(super) text: String,
    /// The number of packets that break it.
    pub(super) count: u64,
}

/// The broken requirements of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(Vec<Broken>);

impl Findings {
    /// Adds a violation. Only the first text of a requirement is kept.
    pub(super) fn add(&mut self, requirement: &'static Requirement, text: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|broken| broken.requirement == requirement) {
            Some(broken) => broken.count += 1,
            None => self.0.push(Broken { requirement, text: text(), count: 1 }),
        }
    }

    /// Returns the broken requirements.
    pub(super) fn broken(&self) -> &[Broken] {
        &self.0
    }
}

/// An arrived probe beside the one that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// Its number among those of the trace.
    pub(super) index: usize,
    /// The probe as it was sent.
    pub(super) sent: &'a Sent,
    /// The frame as it arrived.
    pub(super) arrived: &'a Arrived,
    /// Its headers.
    pub(super) headers: Headers<'a>,
    /// The IP packet as it was sent, without padding.
    pub(super) whole: &'a [u8],
    /// The bytes of the IP packet that arrived, without padding.
    pub(super) kept: &'a [u8],
}

impl Seen<'_> {
    /// Returns whether a switch has trimmed it.
    pub(super) fn is_trimmed(&self) -> bool {
        self.kept.len() < self.whole.len()
    }

    /// Returns whether it arrived at a port to which its address leads.
    pub(super) fn is_where_it_leads(&self, statement: &Statement) -> bool {
        statement.leads(self.sent.probe.to).contains(&self.arrived.port)
    }

    fn name(&self, statement: &Statement) -> String {
        let Probe { from, to, kind, dscp, ecn, .. } = self.sent.probe;
        let port = statement.ports.get(from).map_or("?", |port| &port.name);
        format!("packet {} from {port} to {to} ({}, DSCP {dscp}, ECN {ecn})", self.index, kind.name())
    }
}

impl Trace {
    /// Returns the arrived probes of this trace.
    pub(super) fn seen(&self) -> Vec<Seen<'_>> {
        self.arrived.iter().filter_map(|arrived| self.find(arrived)).collect()
    }

    fn find<'a>(&'a self, arrived: &'a Arrived) -> Option<Seen<'a>> {
        let headers = Headers::read(&arrived.frame)?;
        let index = headers.psn.0.wrapping_sub(self.first) as usize;
        let sent = self.sent.get(index).filter(|_| headers.is_probe)?;
        let whole = Headers::read(&sent.frame)?;
        let whole = whole.packet.get(..whole.stated_length())?;
        // Padding follows a short packet; a stale length reaches beyond the frame.
        let kept = headers.packet.get(..headers.stated_length()).unwrap_or(headers.packet);
        Some(Seen { index, sent, arrived, headers, whole, kept })
    }

    /// Returns the bytes that wait at a port when each packet for it arrives there, itself included. `rate` is that of
    /// the port, in bytes per nanosecond. Nothing delays packets on their way there.
    pub(super) fn depths(&self, to: core::net::IpAddr, rate: f64) -> Vec<f64> {
        let mut queue: Vec<&Sent> = self.sent.iter().filter(|sent| sent.probe.to == to).collect();
        queue.sort_by_key(|sent| sent.at);
        let (mut depth, mut last) = (0.0, Time(0));
        let enter = |sent: &Sent| {
            depth =
                f64::max(0.0, depth - rate * (sent.at - last).as_nanos() as f64) + sent.frame.len() as f64;
            last = sent.at;
            depth
        };
        queue.into_iter().map(enter).collect()
    }

    /// Returns the rate of the packets for this address in bytes per nanosecond, and the number of bytes.
    pub(super) fn offered(&self, to: core::net::IpAddr) -> (f64, usize) {
        let times = || self.sent.iter().filter(|sent| sent.probe.to == to).map(|sent| sent.at);
        let bytes = self.sent.iter().filter(|sent| sent.probe.to == to).map(|sent| sent.frame.len()).sum();
        let span = times().max().unwrap_or_default() - times().min().unwrap_or_default();
        (bytes as f64 / (span.as_nanos() as f64).max(1.0), bytes)
    }
}

/// Judges every packet by itself, and all packets of a flow together: whatever the load was.
pub(super) fn packets(statement: &Statement, trace: &Trace, findings: &mut Findings) {
    let seen = trace.seen();
    let mut copies: HashSet<(usize, usize)> = HashSet::new();
    for one in &seen {
        if !copies.insert((one.index, one.arrived.port)) {
            findings.add(NET_DUP_001, || format!("{} arrives once more", one.name(statement)));
        }
        header(statement, one, findings);
        if one.is_trimmed() || is_trimmed_dscp(statement, one.headers.ip.dscp()) {
            trimmed(statement, one, findings);
        } else {
            whole(statement, one, findings);
        }
        if !one.is_where_it_leads(statement) {
            let port = statement.ports.get(one.arrived.port).map_or("?", |port| &port.name);
            findings.add(NET_FWD_004, || format!("{} arrives at {port}", one.name(statement)));
        }
    }
    for arrived in &trace.arrived {
        let unknown = Headers::read(&arrived.frame).filter(|headers| {
            headers.is_probe && headers.psn.0.wrapping_sub(trace.first) as usize >= trace.sent.len()
        });
        // A smaller number is a late packet of an earlier load.
        if let Some(headers) = unknown.filter(|headers| headers.psn.0 >= trace.first) {
            findings.add(NET_FWD_001, || {
                format!("a packet arrives with PSN {}, which no port has sent", headers.psn)
            });
        }
    }
    order(statement, &seen, findings);
}

fn is_trimmed_dscp(statement: &Statement, dscp: u8) -> bool {
    [statement.dscp.trimmed, statement.dscp.trimmed_last_hop].contains(&dscp)
}

/// Judges the IP header, except DSCP and lengths.
fn header(statement: &Statement, one: &Seen<'_>, findings: &mut Findings) {
    let name = || one.name(statement);
    let (headers, probe) = (&one.headers, &one.sent.probe);
    let down = TTL.checked_sub(headers.ttl());
    match (down, statement.hops) {
        (Some(down), Some(hops)) if down != hops => {
            findings.add(NET_FWD_002, || format!("{}: the TTL falls by {down}, expected {hops}", name()));
        }
        (None, _) => findings.add(NET_FWD_002, || format!("{}: the TTL rises to {}", name(), headers.ttl())),
        _ => {}
    }
    if !one.is_trimmed() && !headers.has_right_checksum() {
        findings.add(NET_FWD_002, || format!("{}: the IPv4 checksum is wrong", name()));
    }
    let src = statement.ports.get(probe.from).map(|port| port.address);
    if src.is_some_and(|src| src != headers.ip.src()) || headers.ip.dst() != probe.to {
        findings.add(NET_FWD_002, || {
            format!("{}: it arrives with {} > {}", name(), headers.ip.src(), headers.ip.dst())
        });
    }
    match (probe.ecn, headers.ip.ecn()) {
        (before, after) if before == after => {}
        (0, after) => findings.add(NET_ECN_002, || format!("{}: it arrives with ECN {after}", name())),
        (1 | 2, 3) => {}
        (_, after) => findings.add(NET_ECN_001, || format!("{}: it arrives with ECN {after}", name())),
    }
}

/// Judges a packet that is not trimmed.
fn whole(statement: &Statement, one: &Seen<'_>, findings: &mut Findings) {
    let dscp = one.headers.ip.dscp();
    if dscp != one.sent.probe.dscp {
        findings.add(NET_FWD_003, || format!("{}: it arrives with DSCP {dscp}", one.name(statement)));
    }
    behind_header(NET_FWD_001, statement, one, findings);
}

/// Compares the bytes behind the IP header, as far as they have arrived.
fn behind_header(
    requirement: &'static Requirement,
    statement: &Statement,
    one: &Seen<'_>,
    findings: &mut Findings,
) {
    let header = one.headers.ip_header();
    let mut pairs = one.whole.iter().zip(one.kept).enumerate().skip(header);
    if let Some((at, (sent, seen))) = pairs.find(|(_, (sent, seen))| sent != seen) {
        findings.add(requirement, || {
            let name = one.name(statement);
            format!("{name}: byte {} behind the IP header is {seen:#04x}, sent as {sent:#04x}", at - header)
        });
    }
}

/// Judges a packet that is trimmed, or has the DSCP of one.
fn trimmed(statement: &Statement, one: &Seen<'_>, findings: &mut Findings) {
    let name = || one.name(statement);
    let kind = one.sent.probe.kind;
    let Some(trim) = statement.trim.filter(|_| kind == ProbeKind::Data) else {
        let requirement = if kind.is_control() { NET_TRIM_005 } else { NET_TRIM_001 };
        return findings.add(requirement, || {
            let (kept, whole) = (one.kept.len(), one.whole.len());
            format!("{}: {kept} of {whole} bytes arrive, with DSCP {}", name(), one.headers.ip.dscp())
        });
    };
    let dscp = one.headers.ip.dscp();
    let place = statement.ports.get(one.arrived.port).and_then(|port| port.last_hop);
    let (fabric, last) = (statement.dscp.trimmed, statement.dscp.trimmed_last_hop);
    let expected: &[u8] = match place {
        Some(true) => &[last],
        Some(false) => &[fabric],
        None => &[fabric, last],
    };
    if !expected.contains(&dscp) {
        findings.add(NET_TRIM_003, || {
            format!("{}: it arrives trimmed with DSCP {dscp}, expected {expected:?}", name())
        });
    }
    behind_header(NET_TRIM_002, statement, one, findings);
    // A short frame is padded: then only a correct IP length tells the padding from the packet.
    let (frame, least) = (ETHERNET + one.kept.len(), one.headers.ip_header() + Trimmed::MIN_SIZE);
    let (size, tolerance) =
        (usize::from(trim.size).min(ETHERNET + one.whole.len()), usize::from(trim.tolerance));
    let padded =
        trim.length == TrimLength::Stale && frame == FrameBuilder::SHORTEST && size < FrameBuilder::SHORTEST;
    if one.kept.len() < least || (frame.abs_diff(size) > tolerance && !padded) {
        findings.add(NET_TRIM_002, || {
            format!("{}: {frame} bytes of its frame arrive, expected {size} +- {tolerance}", name())
        });
    }
    let (stated, fixed) = (one.headers.stated_length(), trim.length == TrimLength::Fixed);
    let expected = if fixed { one.kept.len() } else { one.whole.len() };
    // Longer than what arrived: the length before the trim. A correct length has a correct checksum.
    if stated != expected
        || (fixed && (stated > one.headers.packet.len() || !one.headers.has_right_checksum()))
    {
        findings.add(NET_TRIM_004, || {
            format!("{}: it states an IP length of {stated}, expected {expected} and its checksum", name())
        });
    }
}

/// Judges the order of each flow.
fn order(statement: &Statement, seen: &[Seen<'_>], findings: &mut Findings) {
    // Without trimmed packets, which overtake.
    let mut flows: BTreeMap<_, &Seen<'_>> = BTreeMap::new();
    for one in seen.iter().filter(|one| !one.is_trimmed() && one.is_where_it_leads(statement)) {
        let Probe { from, to, dscp, entropy, .. } = one.sent.probe;
        let Some(before) = flows.insert((from, to, dscp, entropy), one) else { continue };
        if before.arrived.port != one.arrived.port {
            findings.add(NET_ORDER_001, || {
                format!("{} takes another path than packet {}", one.name(statement), before.index)
            });
        } else if before.index > one.index {
            findings.add(NET_ORDER_001, || {
                format!("{} arrives after packet {} of the same flow", one.name(statement), before.index)
            });
        }
    }
}

/// Finds packets of these kinds of which nothing has arrived. Returns the number of packets of these kinds.
pub(super) fn losses(
    statement: &Statement,
    trace: &Trace,
    requirement: &'static Requirement,
    of: impl Fn(ProbeKind) -> bool,
    findings: &mut Findings,
) -> usize {
    let mut arrived = vec![false; trace.sent.len()];
    for one in trace.seen() {
        arrived.get_mut(one.index).into_iter().for_each(|it| *it = true);
    }
    let sent = || trace.sent.iter().enumerate().filter(|(_, sent)| of(sent.probe.kind));
    for (index, sent) in sent().filter(|(index, _)| arrived.get(*index) == Some(&false)) {
        let Probe { from, to, kind, .. } = sent.probe;
        let port = statement.ports.get(from).map_or("?", |port| &port.name);
        findings.add(requirement, || {
            format!("packet {index} from {port} to {to} ({}) never arrives", kind.name())
        });
    }
    sent().count()
}

/// Returns how many of these packets overtake data that was sent before them, and how many there are.
pub(super) fn overtakers(
    statement: &Statement,
    trace: &Trace,
    is: impl Fn(&Seen<'_>) -> bool,
) -> (usize, usize) {
    let seen = trace.seen();
    // The earliest sending of data that arrives later at each port.
    let mut earliest: BTreeMap<usize, Time> = BTreeMap::new();
    let (mut overtaking, mut all) = (0, 0);
    for one in seen.iter().rev().filter(|one| one.is_where_it_leads(statement)) {
        let port = one.arrived.port;
        if is(one) {
            all += 1;
            let earlier = earliest.get(&port).is_some_and(|at| *at < one.sent.at);
            overtaking += usize::from(earlier);
        } else if !one.is_trimmed() && !one.sent.probe.kind.is_control() {
            let first = earliest.entry(port).or_insert(one.sent.at);
            *first = (*first).min(one.sent.at);
        }
    }
    (overtaking, all)
}

/// How evenly packets spread over paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// Packets on the fullest path by the mean of all.
    pub(super) max_mean: f64,
    /// Jain's index of fairness: 1 if all paths carry the same.
    pub(super) jain: f64,
    /// How far the counts are from equal: Pearson's chi-squared.
    pub(super) chi_squared: f64,
    /// The value that an even spread exceeds once in a million times.
    pub(super) limit: f64,
}

impl Spread {
    /// Judges the number of packets on each path. `None` without packets or with a single path.
    pub(super) fn of(counts: &[u64]) -> Option<Self> {
        let (paths, all) = (counts.len() as f64, counts.iter().sum::<u64>() as f64);
        if counts.len() < 2 || all == 0.0 {
            return None;
        }
        let mean = all / paths;
        let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
        let chi_squared = counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum();
        // Wilson and Hilferty's approximation of the quantile, with the normal quantile of one in a million.
        let freedom = paths - 1.0;
        let part = 2.0 / (9.0 * freedom);
        let limit = freedom * (1.0 - part + 4.7534 * part.sqrt()).powi(3);
        let max_mean = counts.iter().copied().max().unwrap_or_default() as f64 / mean;
        Some(Spread { max_mean, jain: all.powi(2) / (paths * squares), chi_squared, limit })
    }

    /// Returns whether the counts are those of an even spread, unless a coincidence of one in a million happened.
    pub(super) fn is_even(&self) -> bool {
        self.chi_squared <= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::set_ttl;
    use super::*;
    use uet_wire::{Options, PacketMut, Start};

    type Frame = Vec<u8>;

    fn edit(frame: &mut [u8], edit: impl FnOnce(&mut PacketMut<'_>)) {
        edit(&mut PacketMut::new(Start::Eth, frame, &Options::default()).unwrap());
    }

    /// Trims to this many bytes of the frame.
    fn trim(frame: &mut Frame, size: usize, dscp: u8, stale: bool) {
        let packet = PacketMut::new(Start::Eth, frame, &Options::default()).unwrap();
        let keep = size - 34;
        let length = if stale { packet.trim_stale(keep, dscp) } else { packet.trim(keep, dscp) };
        frame.truncate(length.unwrap());
    }

    /// Returns a trace of packets from port 0 to port 1, each of which a router forwards and `change` changes.
    fn trace(statement: &Statement, kind: ProbeKind, ecn: u8, count: u32, change: fn(&mut Frame)) -> Trace {
        let (src, to) = (statement.ports[0].address, statement.ports[1].address);
        let dscp = match kind {
            ProbeKind::Data => statement.dscp.data,
            ProbeKind::Untrimmable => 0,
            _ => statement.dscp.control,
        };
        let probe = Probe { from: 0, to, kind, dscp, ecn, entropy: 3, length: 1500 };
        let mut trace = Trace { first: 5, ..Trace::default() };
        for number in 0..count {
            let frame = probe.frame(5 + number, src, [[2; 6], [4; 6]]).unwrap();
            let at = Time(u64::from(number) * 1000);
            trace.sent.push(Sent { at, probe, frame: frame.clone() });
            let mut frame = frame;
            set_ttl(&mut frame, TTL - 1);
            change(&mut frame);
            trace.arrived.push(Arrived { at: Time(at.0 + 500), port: 1, frame });
        }
        trace
    }

    fn broken(statement: &Statement, trace: &Trace) -> Vec<&'static str> {
        let mut findings = Findings::default();
        packets(statement, trace, &mut findings);
        findings.broken().iter().map(|broken| broken.requirement.id).collect()
    }

    #[test]
    fn each_change_of_a_packet_breaks_its_requirement() {
        use ProbeKind::{Ack, Control, Data, Nack, Untrimmable};
        let statement = Statement::embedded();
        let check = |kind, ecn, change: fn(&mut Frame), expected: &[&str]| {
            let trace = trace(&statement, kind, ecn, 1, change);
            assert_eq!(broken(&statement, &trace), expected, "{kind:?} {ecn}");
        };
        check(Data, 2, |_| (), &[]);
        check(Data, 2, |frame| edit(frame, |it| it.set_ecn(3).unwrap()), &[]);
        check(Data, 1, |frame| edit(frame, |it| it.set_ecn(2).unwrap()), &["NET-ECN-001"]);
        check(Data, 3, |frame| edit(frame, |it| it.set_ecn(2).unwrap()), &["NET-ECN-001"]);
        check(Data, 0, |frame| edit(frame, |it| it.set_ecn(3).unwrap()), &["NET-ECN-002"]);
        check(Data, 2, |frame| set_ttl(frame, 64), &["NET-FWD-002"]);
        check(Data, 2, |frame| frame[25] ^= 1, &["NET-FWD-002"]);
        check(Data, 2, |frame| frame[900] ^= 1, &["NET-FWD-001"]);
        check(Data, 2, |frame| edit(frame, |it| it.set_dscp(46).unwrap()), &["NET-FWD-003"]);
        check(Data, 2, |frame| trim(frame, 128, 14, false), &[]);
        check(Data, 2, |frame| trim(frame, 127, 14, false), &["NET-TRIM-002"]);
        check(Data, 2, |frame| trim(frame, 128, 12, false), &["NET-TRIM-003"]);
        check(Data, 2, |frame| trim(frame, 128, 10, false), &["NET-TRIM-003"]);
        check(Data, 2, |frame| trim(frame, 128, 14, true), &["NET-TRIM-004"]);
        check(Untrimmable, 2, |frame| trim(frame, 128, 14, false), &["NET-TRIM-001"]);
        check(Ack, 0, |frame| trim(frame, 128, 14, false), &["NET-TRIM-005"]);
        check(Nack, 0, |frame| edit(frame, |it| it.set_dscp(14).unwrap()), &["NET-TRIM-005"]);
        check(Control, 0, |_| (), &[]);
        let mut stale = statement.clone();
        stale.trim.as_mut().unwrap().length = TrimLength::Stale;
        let trimmed = |change| broken(&stale, &trace(&stale, Data, 2, 1, change));
        assert!(trimmed(|frame| trim(frame, 128, 14, true)).is_empty());
        assert_eq!(trimmed(|frame| trim(frame, 128, 14, false)), ["NET-TRIM-004"]);
    }

    #[test]
    fn copies_order_and_ports_are_judged_together() {
        let statement = Statement::embedded();
        let whole = trace(&statement, ProbeKind::Data, 2, 3, |_| ());
        let changed = |change: fn(&mut Vec<Arrived>)| {
            let mut trace = whole.clone();
            change(&mut trace.arrived);
            broken(&statement, &trace)
        };
        assert!(changed(|_| ()).is_empty());
        assert_eq!(changed(|all| all.push(all[2].clone())), ["NET-DUP-001"]);
        assert_eq!(changed(|all| all.swap(0, 1)), ["NET-ORDER-001"]);
        assert_eq!(changed(|all| all[1].port = 2), ["NET-FWD-004"]);
        let mut routed = statement.clone();
        routed.routes[0].to = core::mem::replace(&mut routed.ports[1].address, [10, 0, 0, 77].into());
        let mut paths = whole.clone();
        paths.arrived.iter_mut().for_each(|arrived| arrived.port = 2);
        assert!(broken(&routed, &paths).is_empty());
        paths.arrived[1].port = 3;
        assert_eq!(broken(&routed, &paths), ["NET-ORDER-001"]);
        let mut unknown = whole.clone();
        unknown.sent.pop();
        assert_eq!(broken(&statement, &unknown), ["NET-FWD-001"]);

        let mut lost = whole.clone();
        lost.arrived.remove(0);
        let mut findings = Findings::default();
        assert_eq!(losses(&statement, &lost, NET_LOSS_001, |_| true, &mut findings), 3);
        assert_eq!((findings.broken()[0].requirement, findings.broken()[0].count), (NET_LOSS_001, 1));

        // Packets of 1,514 bytes each microsecond, to a port that takes half of that.
        let depths = whole.depths(statement.ports[1].address, 0.757);
        assert_eq!(depths.iter().map(|depth| depth.round()).collect::<Vec<_>>(), [1514.0, 2271.0, 3028.0]);
    }

    #[test]
    fn trims_overtake_what_was_sent_before_them() {
        let statement = Statement::embedded();
        let mut trace = trace(&statement, ProbeKind::Data, 2, 6, |_| ());
        trim(&mut trace.arrived[5].frame, 128, 14, false);
        assert_eq!(overtakers(&statement, &trace, |one| one.is_trimmed()), (0, 1));
        trace.arrived.swap(4, 5);
        assert_eq!(overtakers(&statement, &trace, |one| one.is_trimmed()), (1, 1));
    }

    #[test]
    fn uneven_paths_are_told_from_chance() {
        for (counts, even) in [
            (&[256, 256][..], true),
            (&[230, 282], true),
            (&[170, 342], false),
            (&[0, 512], false),
            (&[270, 240, 262, 252], true),
            (&[400, 208, 208, 208], false),
        ] {
            assert_eq!(Spread::of(counts).unwrap().is_even(), even, "{counts:?}");
        }
        let skewed = Spread::of(&[0, 512]).unwrap();
        assert_eq!((skewed.max_mean, skewed.jain), (2.0, 0.5));
        assert_eq!((Spread::of(&[512]), Spread::of(&[0, 0])), (None, None));
    }

    #[test]
    fn findings_keep_the_first_packet_and_count_all() {
        let mut findings = Findings::default();
        findings.add(NET_DUP_001, || "first".into());
        findings.add(NET_DUP_001, || "second".into());
        assert_eq!((&*findings.broken()[0].text, findings.broken()[0].count), ("first", 2));
    }
}
