//! Correct devices whose differences the embedded NIC has no parameter for. Each test changes packets between NIC and
//! suite, and its rule must pass.

mod atomics;
mod congestion;
mod messages;
mod network;
mod packets;
mod stated;
mod window;

use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use uet_conformance::{Dut, DutError, NetworkEffects, Options, RunResult, Verdict, Wire, run};
use uet_control::{CallError, ErrorCode, Op, Refusal};
use uet_harness::dut::Embedded;
use uet_wire::layout::Place;
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::{PdcId, Uet};

/// Changes of packets, completions and keys.
struct Otherwise {
    /// Handles a packet of the suite; returns whether it is passed on.
    hears: Hears,
    /// Handles a packet of the NIC; leaves the packets to pass on in `came`.
    says: Says,
    came: VecDeque<Wire>,
    held: Option<Vec<Wire>>,
    /// Effects of the network, as far as it tells.
    effects: NetworkEffects,
    /// Completions that it has told, if it tells each once.
    told: Option<Vec<u64>>,
    /// The size of the elements of a fetching atomic, by PSN.
    sizes: BTreeMap<u32, usize>,
    /// The last memory key that it has chosen, if it chooses keys.
    chosen: Option<u64>,
}

impl Changes for Otherwise {
    fn network_effects(&mut self, _: &mut Embedded) -> NetworkEffects {
        self.effects
    }

    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        let mut packet = packet.clone();
        match (self.hears)(self, &mut packet) {
            true => nic.send(&packet),
            false => Ok(()),
        }
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            if let Some(wire) = self.came.pop_front() {
                return Ok(Some(wire));
            }
            match nic.receive(until)? {
                Some(wire) => (self.says)(self, wire),
                None => return Ok(None),
            }
        }
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        let (name, waits, starts) = match &op {
            Op::WaitCompletion(wait) => (op.name(), Some(wait.operation), false),
            Op::Reset(_) | Op::Configure(_) => (op.name(), None, true),
            _ => (op.name(), None, false),
        };
        if starts {
            self.came.clear();
            self.held = None;
            self.sizes.clear();
        }
        if let Some(told) = self.told.as_mut().filter(|_| starts) {
            told.clear();
        }
        if let (Some(told), Some(operation)) = (&self.told, waits) {
            if told.contains(&operation) {
                let refusal = Refusal { code: ErrorCode::Timeout, message: "told already".into() };
                return Err(CallError::Refused { op: name, refusal });
            }
        }
        let (op, key) = match op {
            Op::ExposeRegion(mut region) => {
                if let Some(chosen) = &mut self.chosen {
                    *chosen += 0x1111;
                    region.key.0 = region.key.0 & 3 << 62 | *chosen;
                }
                let key = self.chosen.is_some().then_some(region.key);
                (Op::ExposeRegion(region), key)
            }
            op => (op, None),
        };
        let mut answer = nic.ask(op)?;
        answer.extend(key.map(|key| ("key".to_owned(), json!(key))));
        if let (Some(told), Some(operation)) = (&mut self.told, waits) {
            told.push(operation);
        }
        Ok(answer)
    }
}

/// Returns the place of a field and the start of its header.
fn find(wire: &Wire, name: &str) -> Option<(Place, usize)> {
    let uet = Uet::parse_lax(&wire.bytes).0;
    let pds = uet.pds.map(|header| (header.layout(), header.bytes()));
    let ses = uet.ses.map(|header| (header.layout(), header.bytes()));
    let mut start = 0;
    for (layout, bytes) in [pds, ses].into_iter().flatten() {
        let mut places = layout.places().filter(|place| place.row.name == name);
        if let Some(place) = places.find(|place| place.exists(bytes)) {
            return Some((place, start));
        }
        start += bytes.len();
    }
    None
}

fn get(wire: &Wire, name: &str) -> Option<u64> {
    let (place, start) = find(wire, name)?;
    place.read(&wire.bytes[start..]).map(|value| value as u64)
}

fn set(wire: &mut Wire, name: &str, value: u64) {
    if let Some((place, start)) = find(wire, name) {
        place.write(&mut wire.bytes[start..], value.into());
    }
}

fn is(wire: &Wire, name: &str, code: u8) -> bool {
    get(wire, name) == Some(code.into())
}

fn is_control(wire: &Wire, kind: CtlType) -> bool {
    is(wire, "pds.type", PdsType::CP.code()) && is(wire, "pds.ctl_type", kind.code())
}

fn pdcid(wire: &Wire, name: &str) -> PdcId {
    PdcId(get(wire, name).unwrap_or_default() as u16)
}

fn hears_all(_: &mut Otherwise, _: &mut Wire) -> bool {
    true
}

fn says_all(device: &mut Otherwise, wire: Wire) {
    device.came.push_back(wire);
}

type Hears = fn(&mut Otherwise, &mut Wire) -> bool;
type Says = fn(&mut Otherwise, Wire);

/// Returns the verdict of the rule on such a device with this seed.
fn verdict(id: &str, seed: u64, hears: Hears, says: Says) -> (Verdict, String) {
    let options = Options { ids: vec![id.to_owned()], seed, ..Options::default() };
    let result = run(&mut device(hears, says), &options, |_| ());
    (result.rules[0].verdict, result.rules[0].reason.clone())
}

fn device(hears: Hears, says: Says) -> Device<Otherwise> {
    Device::new(Otherwise {
        hears,
        says,
        came: VecDeque::new(),
        held: None,
        effects: NetworkEffects::default(),
        told: None,
        sizes: BTreeMap::new(),
        chosen: None,
    })
}

/// Runs one instance of each of these rules, or of all.
fn results(device: &mut impl Dut, ids: &[&str]) -> RunResult {
    let ids = ids.iter().map(|id| id.to_string()).collect();
    run(device, &Options { ids, max_instances: Some(1), ..Options::default() }, |_| ())
}

/// Runs one instance of each rule of this group.
fn group(device: &mut impl Dut, group: &str) -> RunResult {
    let options = Options { groups: vec![group.into()], max_instances: Some(1), ..Options::default() };
    let result = run(device, &options, |_| ());
    assert!(!result.rules.is_empty(), "{group}");
    result
}

/// Returns the rules with other verdicts than these.
fn others(result: &RunResult, allowed: &[Verdict]) -> Vec<String> {
    let others = result.rules.iter().filter(|rule| !allowed.contains(&rule.verdict));
    others.map(|rule| format!("{} {}: {}", rule.id, rule.verdict.name(), rule.reason)).collect()
}

#[track_caller]
fn passes(id: &str, hears: Hears, says: Says) {
    assert_eq!(verdict(id, 1, hears, says), (Verdict::Pass, String::new()), "{id}");
}
