//! The rules: the packets to send, and those that must leave the network. [`judge::packets`] judges every packet of
//! each load.

use super::judge::{self, Seen, Spread, Trace};
use super::probe::{Probe, ProbeKind};
use super::reaction;
use super::testbed::{Step, Stop, Testbed};
use core::net::IpAddr;
use uet_wire::catalogue::*;

/// A rule about a network.
#[derive(Debug)]
pub struct SwitchRule {
    /// Its id.
    pub id: &'static str,
    /// The statement that it checks.
    pub title: &'static str,
    /// The requirements that it checks besides those of every packet.
    pub requirements: &'static [&'static Requirement],
    pub(super) run: fn(&mut Testbed<'_>) -> Step,
}

const fn rule(
    id: &'static str,
    title: &'static str,
    requirements: &'static [&'static Requirement],
    run: fn(&mut Testbed<'_>) -> Step,
) -> SwitchRule {
    SwitchRule { id, title, requirements, run }
}

/// All rules.
pub const RULES: &[SwitchRule] = &[
    rule(
        "forward/bytes",
        "Without congestion, packets of all kinds and lengths arrive once, whole and where they should",
        &[NET_FWD_001, NET_FWD_002, NET_FWD_003, NET_FWD_004, NET_DUP_001, NET_LOSS_001],
        forward,
    ),
    rule(
        "order/one-entropy",
        "Packets with one entropy value take one path and keep their order",
        &[NET_ORDER_001],
        one_entropy,
    ),
    rule(
        "spread/paths",
        "Packets of many entropy values spread evenly over equal paths",
        &[NET_SPRAY_001],
        spread,
    ),
    rule("ecn/idle", "Without congestion, the ECN field stays as it was", &[NET_ECN_001, NET_ECN_002], idle),
    rule(
        "ecn/not-capable",
        "Under congestion, only ECN-capable packets are marked",
        &[NET_ECN_001, NET_ECN_002],
        not_capable,
    ),
    rule(
        "ecn/onset",
        "Marking begins between the stated depths of the queue",
        &[NET_ECN_003],
        onset_as_stated,
    ),
    rule(
        "trim/data",
        "Under congestion, data is trimmed as stated, and none is lost",
        &[NET_TRIM_002, NET_TRIM_003, NET_TRIM_004, NET_LOSS_002],
        trims_data,
    ),
    rule("trim/classes", "Only data of the trimmable class is trimmed", &[NET_TRIM_001], trims_classes),
    rule(
        "trim/control",
        "ACKs, NACKs and control packets are neither trimmed nor lost, and overtake data",
        &[NET_TRIM_005, NET_PRIO_001],
        control,
    ),
    rule("trim/overtake", "Trimmed packets overtake the data that waits", &[NET_TRIM_006], overtake),
    rule(
        "incast/degree",
        "No number of senders loses a packet that no trim announces",
        &[NET_LOSS_002],
        incast,
    ),
    rule(
        "reaction/retransmission",
        "Between two endpoints, each trimmed packet is sent again and arrives",
        &[NET_LOSS_002],
        reaction::retransmission,
    ),
];

/// The most packets of a load that shall not congest anything.
const FEW: usize = 8;

/// The most neighbors to which a port sends when there is no congestion.
const NEIGHBORS: usize = 3;

/// Sends probes in small loads. Returns all packets that arrived, and judges losses.
fn calmly(bench: &mut Testbed<'_>, probes: &[Probe]) -> Step<Vec<Trace>> {
    let mut traces = Vec::new();
    for few in probes.chunks(FEW) {
        let trace = bench.exchange(few.to_vec())?;
        judge::losses(bench.statement, &trace, NET_LOSS_001, |_| true, &mut bench.findings);
        traces.push(trace);
    }
    if traces.iter().all(|trace| trace.seen().is_empty()) {
        return Err(Stop::Inconclusive("no packet arrives: check cables, addresses and `gateway`".into()));
    }
    Ok(traces)
}

/// Returns pairs of a port and the address of another.
fn pairs(bench: &Testbed<'_>) -> Step<Vec<(usize, IpAddr)>> {
    let ports = bench.statement.ports.len();
    let mut pairs = Vec::new();
    for from in 0..ports {
        for distance in 1..ports.min(NEIGHBORS + 1) {
            pairs.push((from, bench.address((from + distance) % ports)?));
        }
    }
    Ok(pairs)
}

const KINDS: [ProbeKind; 5] =
    [ProbeKind::Data, ProbeKind::Untrimmable, ProbeKind::Ack, ProbeKind::Nack, ProbeKind::Control];

fn forward(bench: &mut Testbed<'_>) -> Step {
    let mut probes = Vec::new();
    for (from, to) in pairs(bench)? {
        for length in [0, 300, bench.statement.mtu] {
            for kind in KINDS {
                let entropy = bench.rng.u16(..);
                probes.push(Probe { length, ..bench.probe(from, to, kind, entropy) });
            }
        }
    }
    calmly(bench, &probes).map(drop)
}

fn idle(bench: &mut Testbed<'_>) -> Step {
    let mut probes = Vec::new();
    for (from, to) in pairs(bench)? {
        for (ecn, kind) in (0..4).flat_map(|ecn| [(ecn, ProbeKind::Data), (ecn, ProbeKind::Control)]) {
            let entropy = bench.rng.u16(..);
            probes.push(Probe { ecn, length: 300, ..bench.probe(from, to, kind, entropy) });
        }
    }
    calmly(bench, &probes).map(drop)
}

fn one_entropy(bench: &mut Testbed<'_>) -> Step {
    let routes = bench.statement.routes.iter().map(|route| route.to).collect::<Vec<_>>();
    let mut ways = pairs(bench)?;
    for to in routes {
        let from = (0..bench.statement.ports.len()).find(|port| !bench.statement.leads(to).contains(port));
        ways.push((from.unwrap_or(0), to));
    }
    for (from, to) in ways {
        let entropy = bench.rng.u16(..);
        let probe = Probe { length: 300, ..bench.probe(from, to, ProbeKind::Data, entropy) };
        calmly(bench, &[probe; 2 * FEW])?;
    }
    Ok(())
}

/// The packets for each path: with 256, a path that gets a third more than the others is noticed.
const PER_PATH: usize = 256;

fn spread(bench: &mut Testbed<'_>) -> Step {
    let statement = bench.statement;
    if statement.routes.is_empty() {
        return Err(Stop::Skipped("the statement has no [[route]] over several ports".into()));
    }
    for route in &statement.routes {
        let ports = statement.leads(route.to);
        let Some(from) = (0..statement.ports.len()).find(|port| !ports.contains(port)) else {
            return Err(Stop::Skipped(format!("every port is a path to {}: none is left to send", route.to)));
        };
        let mut probes = Vec::new();
        for _ in 0..PER_PATH * ports.len() {
            let entropy = bench.rng.u16(..);
            probes.push(Probe { length: 128, ..bench.probe(from, route.to, ProbeKind::Data, entropy) });
        }
        let mut counts = vec![0; ports.len()];
        // Short packets of one port congest nothing.
        for some in probes.chunks(8 * FEW) {
            let trace = bench.exchange(some.to_vec())?;
            for one in trace.seen() {
                let path = ports.iter().position(|port| *port == one.arrived.port);
                path.and_then(|path| counts.get_mut(path)).into_iter().for_each(|count| *count += 1);
            }
        }
        let Some(spread) = Spread::of(&counts) else {
            return Err(Stop::Inconclusive(format!("no packet to {} arrives", route.to)));
        };
        bench.measure(
            "spray efficacy",
            format!("max-mean ratio of paths to {}", route.to),
            spread.max_mean,
            "",
        );
        bench.measure(
            "spray efficacy",
            format!("Jain fairness index of paths to {}", route.to),
            spread.jain,
            "",
        );
        if !spread.is_even() {
            let (chi, limit) = (spread.chi_squared, spread.limit);
            bench.fail(
                NET_SPRAY_001,
                format!(
                    "the paths to {} carry {counts:?} packets: chi-squared is {chi:.1}, and an even spread exceeds \
                     {limit:.1} once in a million runs",
                    route.to
                ),
            );
        }
    }
    Ok(())
}

/// Congests a port with packets of these kinds. Data that does not arrive, trimmed or whole, breaks a requirement.
fn congest(bench: &mut Testbed<'_>, kind: impl Fn(usize) -> ProbeKind) -> Step<Trace> {
    let Some(trim) = bench.statement.trim else {
        return Err(Stop::Skipped("the statement has no [trim]".into()));
    };
    let (target, to, rate) = bench.target()?;
    let probes = bench.load(&bench.others(target), to, bench.statement.load(), kind);
    let trace = bench.exchange(probes)?;
    judge::losses(bench.statement, &trace, NET_LOSS_002, |kind| kind == ProbeKind::Data, &mut bench.findings);
    if !trace.seen().iter().any(Seen::is_trimmed) {
        let (load, peak) = (bench.offered(&trace, to, rate), peak(&trace, to, rate));
        return Err(Stop::Inconclusive(format!(
            "nothing was trimmed: {load} make at most {peak:.0} bytes wait, and {} are trimmed",
            trim.above
        )));
    }
    Ok(trace)
}

fn peak(trace: &Trace, to: IpAddr, rate: f64) -> f64 {
    trace.depths(to, rate).into_iter().fold(0.0, f64::max)
}

fn trims_data(bench: &mut Testbed<'_>) -> Step {
    let trace = congest(bench, |_| ProbeKind::Data)?;
    let (_, to, _) = bench.target()?;
    let (offered, _) = trace.offered(to);
    bench.measure("load", "offered to the congested port", offered * 8_000.0, "Mbit/s");
    let seen = trace.seen();
    let trimmed = seen.iter().filter(|one| one.is_trimmed()).count();
    bench.measure(
        "trimming reaction",
        "share of packets trimmed",
        trimmed as f64 / seen.len().max(1) as f64,
        "",
    );
    Ok(())
}

fn trims_classes(bench: &mut Testbed<'_>) -> Step {
    if bench.statement.dscp.untrimmable.is_none() {
        return Err(Stop::Skipped("the statement has no `dscp.untrimmable`".into()));
    }
    // Few enough that the data between still fills the queue.
    congest(bench, |number| if number % 4 == 3 { ProbeKind::Untrimmable } else { ProbeKind::Data }).map(drop)
}

fn control(bench: &mut Testbed<'_>) -> Step {
    let trace = congest(bench, |number| match number % 24 {
        7 => ProbeKind::Ack,
        15 => ProbeKind::Nack,
        23 => ProbeKind::Control,
        _ => ProbeKind::Data,
    })?;
    judge::losses(bench.statement, &trace, NET_PRIO_001, ProbeKind::is_control, &mut bench.findings);
    expect_overtaking(bench, &trace, NET_PRIO_001, |one| one.sent.probe.kind.is_control());
    Ok(())
}

fn overtake(bench: &mut Testbed<'_>) -> Step {
    let trace = congest(bench, |_| ProbeKind::Data)?;
    expect_overtaking(bench, &trace, NET_TRIM_006, |one| one.is_trimmed());
    Ok(())
}

/// Requires that more than half of these packets overtake data: some meet a short queue.
fn expect_overtaking(
    bench: &mut Testbed<'_>,
    trace: &Trace,
    requirement: &'static Requirement,
    is: impl Fn(&Seen<'_>) -> bool,
) {
    let (overtaking, all) = judge::overtakers(bench.statement, trace, is);
    if overtaking * 2 <= all {
        bench.fail(
            requirement,
            format!("{overtaking} of {all} packets overtake data that was sent before them"),
        );
    }
}

fn not_capable(bench: &mut Testbed<'_>) -> Step {
    if bench.statement.mark.is_none() {
        return Err(Stop::Skipped("the statement has no [mark]".into()));
    }
    let (target, to, rate) = bench.target()?;
    let mut probes = bench.load(&bench.others(target), to, bench.statement.load(), |_| ProbeKind::Data);
    // Senders alternate, so each of them sends both kinds.
    let senders = bench.statement.ports.len() - 1;
    for (number, probe) in probes.iter_mut().enumerate() {
        probe.ecn = [0, 1, 2][number / senders.max(1) % 3];
    }
    let trace = bench.exchange(probes)?;
    if is_marked(&trace) {
        return Ok(());
    }
    let load = bench.offered(&trace, to, rate);
    Err(Stop::Inconclusive(format!("nothing was marked by {load}, so nothing shows what would be")))
}

fn is_marked(trace: &Trace) -> bool {
    trace.seen().iter().any(|one| one.sent.probe.ecn != 3 && one.headers.ip.ecn() == 3)
}

/// The bytes that waited at a port when marks began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Onset {
    /// The most bytes that brought no mark.
    pub(super) without: f64,
    /// The fewest that brought one, if any did.
    pub(super) with: Option<f64>,
    /// How far both may be off: a packet of each sender.
    pub(super) slack: f64,
}

/// Sends loads that grow by a quarter until a packet is marked or this many bytes wait.
pub(super) fn find_onset(bench: &mut Testbed<'_>, from: u64, most: f64) -> Step<Onset> {
    let (target, to, rate) = bench.target()?;
    let senders = bench.others(target);
    let slack = (senders.len() + 1) as f64 * f64::from(bench.statement.mtu);
    let mut onset = Onset { without: 0.0, with: None, slack };
    let mut bytes = from;
    while onset.without <= most {
        let probes = bench.load(&senders, to, bytes, |_| ProbeKind::Data);
        let trace = bench.exchange(probes)?;
        let depth = peak(&trace, to, rate);
        if is_marked(&trace) {
            onset.with = Some(depth);
            break;
        }
        onset.without = onset.without.max(depth);
        if bytes > bench.statement.load() {
            let load = bench.offered(&trace, to, rate);
            return Err(Stop::Inconclusive(format!(
                "nothing was marked: {load} make at most {depth:.0} bytes wait"
            )));
        }
        bytes = bytes * 5 / 4;
    }
    Ok(onset)
}

fn onset_as_stated(bench: &mut Testbed<'_>) -> Step {
    let Some(mark) = bench.statement.mark else {
        return Err(Stop::Skipped("the statement has no [mark]".into()));
    };
    let (from, to) = (mark.from as f64, mark.to as f64);
    let slack = (bench.statement.ports.len() as f64) * f64::from(bench.statement.mtu);
    let onset = find_onset(bench, mark.from / 4, to + 2.0 * slack)?;
    if let Some(with) = onset.with {
        bench.measure("ECN marking onset", "highest queue without a mark", onset.without, "bytes");
        bench.measure("ECN marking onset", "lowest queue with a mark", with, "bytes");
        if with + slack < from {
            bench.fail(
                NET_ECN_003,
                format!("a packet is marked although at most {with:.0} bytes wait, expected {from} or more"),
            );
        }
    }
    if onset.without > to + slack && !mark.averaged {
        let without = onset.without;
        bench.fail(
            NET_ECN_003,
            format!("{without:.0} bytes wait and no packet is marked, expected marks above {to}"),
        );
    }
    if onset.with.is_some() || !mark.averaged {
        return Ok(());
    }
    // An average follows only a queue that stays.
    let (target, address, rate) = bench.target()?;
    let probes = bench.load(&bench.others(target), address, bench.statement.load(), |_| ProbeKind::Data);
    let trace = bench.exchange(probes)?;
    if !is_marked(&trace) {
        let load = bench.offered(&trace, address, rate);
        bench.fail(
            NET_ECN_003,
            format!("{load} make {:.0} bytes wait, and no packet is marked", peak(&trace, address, rate)),
        );
    }
    Ok(())
}

fn incast(bench: &mut Testbed<'_>) -> Step {
    if bench.statement.trim.is_none() {
        return Err(Stop::Skipped("the statement has no [trim]".into()));
    }
    let (target, to, rate) = bench.target()?;
    let senders = bench.others(target);
    let (mut trims, mut largest) = (0, 0);
    let mut load = String::new();
    for degree in 1..=senders.len() {
        let some = senders.get(..degree).unwrap_or_default();
        let probes = bench.load(some, to, bench.statement.load(), |_| ProbeKind::Data);
        let trace = bench.exchange(probes)?;
        trims += trace.seen().iter().filter(|one| one.is_trimmed()).count();
        judge::losses(bench.statement, &trace, NET_LOSS_002, |_| true, &mut bench.findings);
        load = bench.offered(&trace, to, rate);
        if !bench.findings.broken().is_empty() {
            break;
        }
        largest = degree;
    }
    bench.measure("incast degree", "most senders without an unannounced loss", largest as f64, "senders");
    if trims == 0 {
        return Err(Stop::Inconclusive(format!("nothing was trimmed by {load}")));
    }
    Ok(())
}
