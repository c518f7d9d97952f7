//! A source that sends less ahead than the announced window permits. The window is an upper bound.

use super::{get, others, results};
use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use uet_conformance::{Dut, DutError, Options, Verdict, Wire, run};
use uet_control::{CallError, Op};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_wire::{Psn, Uet};

/// Number of PSNs that may leave above the cumulative PSN.
const BOUND: i32 = 128;

/// Keeps the packets of each context within the bound, whatever its peer announces.
#[derive(Default)]
struct Bounded {
    /// By the PDCID of the NIC.
    contexts: BTreeMap<u64, Context>,
    came: VecDeque<Wire>,
    /// Time from the suite to the NIC.
    delay: Duration,
    /// Packets of the suite on their way, with the times of their arrival.
    under_way: VecDeque<(Duration, Wire)>,
}

struct Context {
    /// The cumulative PSN.
    cack: Psn,
    held: BTreeMap<i32, Wire>,
}

/// Returns the distance between two PSNs in serial arithmetic.
fn distance(from: Psn, to: Psn) -> i32 {
    (to - from) as i32
}

impl Changes for Bounded {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        let context = get(packet, "pds.dpdcid").and_then(|pdcid| self.contexts.get_mut(&pdcid));
        if let (Some(context), Some(cack)) = (context, get(packet, "pds.cack_psn")) {
            let moved = distance(context.cack, Psn(cack as u32)).max(0);
            context.cack = context.cack + moved as u32;
            let held = core::mem::take(&mut context.held);
            let held = held.into_iter().map(|(above, wire)| (above - moved, wire));
            let (left, free): (BTreeMap<_, _>, BTreeMap<_, _>) = held.partition(|(above, _)| *above > BOUND);
            context.held = left;
            self.came.extend(free.into_values());
        }
        if self.delay.is_zero() {
            return nic.send(packet);
        }
        self.under_way.push_back((nic.now() + self.delay, packet.clone()));
        Ok(())
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            if let Some(wire) = self.came.pop_front() {
                return Ok(Some(wire));
            }
            let next = self.under_way.front().map_or(until, |(at, _)| (*at).min(until));
            let Some(wire) = nic.receive(next)? else {
                match self.under_way.pop_front() {
                    Some((at, packet)) if at <= until => nic.send(&packet)?,
                    later => {
                        later.into_iter().for_each(|later| self.under_way.push_front(later));
                        return Ok(None);
                    }
                }
                continue;
            };
            let request = Uet::parse_lax(&wire.bytes).0.pds.and_then(|pds| pds.request());
            let Some(request) = request.map(|request| request.copied()) else { return Ok(Some(wire)) };
            let start = request.start_psn().unwrap_or(request.psn());
            let new = || Context { cack: start - 1, held: BTreeMap::new() };
            let context = self.contexts.entry(request.spdcid().0.into()).or_insert_with(new);
            let above = distance(context.cack, request.psn());
            if above <= BOUND {
                return Ok(Some(wire));
            }
            context.held.insert(above, wire);
        }
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        if matches!(op, Op::Reset(_) | Op::Configure(_)) {
            *self = Bounded { delay: self.delay, ..Bounded::default() };
        }
        for (_, packet) in self.under_way.drain(..) {
            nic.send(&packet)
                .map_err(|error| CallError::Channel { op: op.name(), error: io::Error::other(error) })?;
        }
        nic.ask(op)
    }
}

#[test]
fn it_uses_no_wider_window() {
    let mut device = Device::new(Bounded::default());
    let options =
        Options { groups: vec!["source-window".into()], max_instances: Some(1), ..Options::default() };
    let result = run(&mut device, &options, |_| ());
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Inconclusive]), [""; 0]);
    let wider = result.rules.iter().find(|rule| rule.id == "source-window/wider").unwrap();
    assert_eq!(
        (wider.verdict, &wider.reason[..]),
        (Verdict::Inconclusive, "the device stopped at packet 128, before 129")
    );
}

/// Its window is full when it learns that its message is refused. The response to the first packet then holds the cumulative
/// PSN back until the source has cleared it.
#[test]
fn it_ends_a_refused_message_within_its_window() {
    let mut config = Config::default();
    config.set("congestion", &json!("none")).unwrap();
    let bounded = Bounded { delay: Duration::from_micros(60), ..Bounded::default() };
    let result = results(&mut Device::with(config, bounded), &["completions/early-end"]);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}
