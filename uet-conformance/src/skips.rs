//! Predicts which rules a run skips on a device.

use crate::{Dut, DutError, DutExt, Facts, Options, Verdict, Wire, run};
use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::HashMap;
use uet_control::{AddPeer, CallError, Configure, ErrorCode, Event, Op, Refusal, Reset, Welcome};
use uet_wire::tss::Outer;

/// Returns the rules that a run skips on a device, with the reasons.
///
/// It plays each rule on `stand_in`, a device in virtual time that passes all, with the claims, the link and
/// the statement of the device. The stand-in refuses the operations and parameters that the device refuses.
/// The device receives each kind of these once, and a `reset` after it. Rules that are skipped for an answer
/// to a packet are not among them.
pub fn predicted_skips(
    dut: &mut dyn Dut,
    stand_in: &mut dyn Dut,
    options: &Options,
) -> Vec<(&'static str, String)> {
    // The first instance that is not skipped decides.
    let options = Options { max_instances: Some(0), ..options.clone() };
    let welcome = options.statement.apply(dut.welcome());
    let facts = limited(stand_in.facts(), dut.facts());
    let mut limited = Limited {
        welcome: dut.welcome().clone(),
        facts,
        dut,
        stand_in,
        refused: HashMap::new(),
        gone: false,
    };
    let played = run(&mut limited, &options, |_| ()).rules;
    let skipped = |id: &str| match played.iter().find(|rule| rule.id == id) {
        Some(rule) => (rule.verdict == Verdict::Skipped).then(|| rule.reason.clone()),
        // Nothing runs on a device with a parameter out of its range.
        None => options.rules.find(id)?.needs.iter().find_map(|need| need.lacking(&welcome, &limited.facts)),
    };
    let rules = options.selected();
    rules.iter().filter_map(|rule| Some((rule.id, skipped(rule.id)?))).collect()
}

/// Returns the abilities that both links have.
fn limited(of: &Facts, by: &Facts) -> Facts {
    Facts {
        local: of.local.iter().take(by.local.len()).copied().collect(),
        trim: of.trim && by.trim,
        set_ecn: of.set_ecn && by.set_ecn,
        set_entropy: of.set_entropy && by.set_entropy,
        set_ttl: of.set_ttl && by.set_ttl,
        see_class: of.see_class && by.see_class,
        see_entropy: of.see_entropy && by.see_entropy,
        crc: of.crc && by.crc,
        control: by.control,
        ..of.clone()
    }
}

/// A stand-in for a device that refuses what the device refuses.
struct Limited<'a> {
    welcome: Welcome,
    facts: Facts,
    dut: &'a mut dyn Dut,
    stand_in: &'a mut dyn Dut,
    /// The refusals of the device, by the kind of operation. `None` means that it does not refuse.
    refused: HashMap<String, Option<Refusal>>,
    /// True if the control channel of the device is broken, so that nothing else is asked.
    gone: bool,
}

impl Limited<'_> {
    /// Asks the device for an operation, and resets it.
    fn ask_device(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let answer = self.dut.ask(op);
        self.gone |= matches!(answer, Err(CallError::Channel { .. })) || self.dut.call(Reset {}).is_err();
        answer
    }

    /// Returns why the device does not support an operation.
    fn refusal(&mut self, op: &Op) -> Option<Refusal> {
        let kind = match op {
            Op::Reset(_) => return None,
            Op::Post(_) => kind(op),
            Op::AddPeer(_) | Op::PostReceive(_) | Op::ExposeRegion(_) | Op::Counters(_) => op.name().into(),
            // Others refer to what the device has done before.
            _ if self.facts.control => return None,
            _ => op.name().into(),
        };
        if let Some(known) = self.refused.get(&kind) {
            return known.clone();
        }
        if self.gone {
            return None;
        }
        let mut asked = op.clone();
        if let Op::Post(post) = &mut asked {
            let address = self.dut.facts().local.first().copied().unwrap_or(self.dut.facts().device);
            let peer = self.dut.call(AddPeer { address, port: None, job: 101, process: 1, initiator: 0 });
            post.peer = peer.map_or(0, |peer| peer.peer);
            // The device may send it.
            post.length = post.length.min(64);
        }
        let refusal = match self.ask_device(asked) {
            Err(CallError::Refused { refusal, .. }) if refusal.code == ErrorCode::Unsupported => {
                Some(refusal)
            }
            _ => None,
        };
        self.refused.insert(kind, refusal.clone());
        refusal
    }

    /// Returns whether the device lets a parameter be set.
    fn takes(&mut self, name: &str, value: &Value) -> bool {
        let one: Op = Configure { parameters: [(name.to_owned(), value.clone())].into() }.into();
        let kind = kind(&one);
        if !self.refused.contains_key(&kind) && !self.gone {
            let taken = self.ask_device(one).ok().and_then(|mut answer| answer.remove("taken"));
            let takes = taken
                .is_some_and(|taken| taken.as_array().is_some_and(|all| all.iter().any(|it| it == name)));
            let refusal = Refusal { code: ErrorCode::Unsupported, message: String::new() };
            self.refused.insert(kind.clone(), (!takes).then_some(refusal));
        }
        self.refused.get(&kind).is_none_or(Option::is_none)
    }
}

/// Returns the kind of an operation: it, without what differs from rule to rule.
fn kind(op: &Op) -> String {
    let Ok(Value::Object(mut arguments)) = serde_json::to_value(op) else { return op.name().into() };
    for name in ["peer", "length", "fill", "remote", "tag", "compare", "swap"] {
        arguments.remove(name);
    }
    arguments.entry("header_data").and_modify(|data| *data = Value::from(!data.is_null()));
    Value::Object(arguments).to_string()
}

impl Dut for Limited<'_> {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.stand_in.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.stand_in.send(packet)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.stand_in.receive(until)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let name = op.name();
        if let Op::Configure(mut configure) = op {
            configure.parameters.retain(|name, value| self.takes(name, value));
            return self.stand_in.ask(configure.into());
        }
        match self.refusal(&op) {
            Some(refusal) => Err(CallError::Refused { op: name, refusal }),
            None => self.stand_in.ask(op),
        }
    }

    fn event(&mut self) -> Option<Event> {
        self.stand_in.event()
    }

    fn outer(&self, packet: &Wire, length: usize, leaving: bool) -> Option<Outer> {
        self.stand_in.outer(packet, length, leaving)
    }
}
