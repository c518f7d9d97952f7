//! Measures a statement: what frames can show about the configuration of a network.

use super::SwitchOptions;
use super::judge::Seen;
use super::network::Network;
use super::probe::{ETHERNET, ProbeKind, TTL};
use super::rules::find_onset;
use super::statement::{Mark, Statement, Trim, TrimLength};
use super::testbed::{Step, Stop, Testbed};
use std::io;

/// Measures the TTL, the rates, trimming and marking of a network. Returns the statement with what was measured, and
/// sentences about what was not.
///
/// # Errors
///
/// Fails if a port cannot send or receive, or if nothing arrives.
pub fn learn(
    network: &mut dyn Network,
    statement: &Statement,
    options: &SwitchOptions,
) -> io::Result<(Statement, Vec<String>)> {
    let mut learned = statement.clone();
    let mut unknown = Vec::new();
    let steps: [fn(&mut Testbed<'_>, &mut Statement) -> Step; 3] = [hops, congestion, marks];
    for step in steps {
        // Each step builds on what the one before has learned.
        let known = learned.clone();
        let mut bench = Testbed::new(&mut *network, &known, options.seed, &options.interrupt);
        match step(&mut bench, &mut learned) {
            Ok(()) => {}
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::Skipped(reason) | Stop::Inconclusive(reason)) => unknown.push(reason),
        }
    }
    Ok((learned, unknown))
}

fn hops(bench: &mut Testbed<'_>, learned: &mut Statement) -> Step {
    let to = bench.address(1)?;
    let trace = bench.exchange(vec![bench.probe(0, to, ProbeKind::Data, 1)])?;
    let Some(one) = trace.seen().first().copied() else {
        return Err(Stop::Failed(io::Error::other(
            "no packet arrives: check cables, addresses and `gateway` in the statement",
        )));
    };
    learned.hops = TTL.checked_sub(one.headers.ttl());
    Ok(())
}

/// Loads of one port before its rate is called unknown: a busy host sends one of them too slowly to congest it.
const LOADS: usize = 3;

/// Congests each port and reads rate and trims from what arrives.
fn congestion(bench: &mut Testbed<'_>, learned: &mut Statement) -> Step {
    let mut quiet = Vec::new();
    for target in 0..bench.statement.ports.len() {
        let mut congested = false;
        for _ in 0..LOADS {
            congested = congested || congest(bench, learned, target)?;
        }
        if !congested {
            quiet.push(bench.name(target));
        }
    }
    if quiet.is_empty() {
        return Ok(());
    }
    Err(Stop::Inconclusive(format!(
        "the load does not congest these ports, so their rates are unknown: {quiet:?}"
    )))
}

/// Sends one load to a port. Returns whether packets waited there, so that its rate is known.
fn congest(bench: &mut Testbed<'_>, learned: &mut Statement, target: usize) -> Result<bool, Stop> {
    let to = bench.address(target)?;
    let probes = bench.load(&bench.others(target), to, bench.statement.load(), |_| ProbeKind::Data);
    let trace = bench.exchange(probes)?;
    let seen = trace.seen();
    let (offered, bytes) = trace.offered(to);
    // In the steady part: the first packets may pass a token bucket at once.
    let later = seen.get(seen.len() / 2..).unwrap_or_default();
    let (Some(first), Some(last)) = (later.first(), later.last()) else { return Ok(false) };
    let received: usize = later.iter().skip(1).map(|one| one.arrived.frame.len()).sum();
    let carried = received as f64 / ((last.arrived.at - first.arrived.at).as_nanos() as f64).max(1.0);
    // A queue that grows delays the last packets for a good part of the time of sending.
    let waited = later.iter().map(|one| one.arrived.at - one.sent.at).max().unwrap_or_default();
    let congested = waited.as_nanos() as f64 > bytes as f64 / offered / 8.0;
    if congested {
        let port = learned.ports.get_mut(target);
        port.into_iter().for_each(|port| port.rate_mbps = Some((carried * 8_000.0).round() as u64));
    }
    if let Some(trimmed) = seen.iter().find(|one| one.is_trimmed()) {
        learn_trim(learned, target, trimmed);
        let depths = trace.depths(to, carried);
        let above = depths.get(trimmed.index).copied().unwrap_or_default();
        if let Some(trim) = &mut learned.trim {
            trim.above = above.round() as u64;
        }
    }
    Ok(congested)
}

fn learn_trim(learned: &mut Statement, target: usize, trimmed: &Seen<'_>) {
    let dscp = trimmed.headers.ip.dscp();
    match learned.ports.get(target).and_then(|port| port.last_hop) {
        Some(false) => learned.dscp.trimmed = dscp,
        _ => learned.dscp.trimmed_last_hop = dscp,
    }
    let stale = trimmed.headers.stated_length() == trimmed.whole.len();
    let length = if stale { TrimLength::Stale } else { TrimLength::Fixed };
    let size = (ETHERNET + trimmed.kept.len()) as u16;
    learned.trim = Some(Trim { size, tolerance: 0, length, above: 0 });
}

/// Finds the depth at which marks begin.
fn marks(bench: &mut Testbed<'_>, learned: &mut Statement) -> Step {
    let most = bench.statement.trim.map_or(bench.statement.load(), |trim| trim.above) as f64;
    let onset = find_onset(bench, u64::from(bench.statement.mtu), most)?;
    let Some(with) = onset.with else {
        return Err(Stop::Inconclusive(format!(
            "nothing is marked while up to {:.0} bytes wait",
            onset.without
        )));
    };
    let round = |bytes: f64| bytes.round() as u64;
    learned.mark = Some(Mark { from: round(onset.without), to: round(with + onset.slack), averaged: false });
    Ok(())
}
