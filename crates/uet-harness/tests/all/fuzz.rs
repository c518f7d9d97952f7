//! The fuzzer finds planted faults in the embedded NIC, and no others.

use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use uet_conformance::random::Sequence;
use uet_conformance::{Dut, DutError, Wire};
use uet_control::{CallError, Op, Permission};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_harness::fuzz::{self, Finding, Inside, Options, Target, Trouble};
use uet_wire::pds::{Nack, Pds};
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::ses::Ses;
use uet_wire::{PdcId, Uet, UetBuf};

#[test]
fn embedded_nic_has_no_findings() {
    let mut target = Inside::new(Config::default()).unwrap();
    let options = Options { cases: 500, ..Options::default() };
    let outcome = fuzz::run(&mut target, &options, |_| ()).unwrap();
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    assert_eq!((outcome.cases, outcome.stopped), (500, None));
    let [sent, heard] = outcome.packets;
    assert!(sent > 2000 && heard > 2000, "it is a conversation: {sent} {heard}");
}

fn script(contexts: Value, steps: Value) -> Sequence {
    serde_json::from_value(json!({"regions": [], "contexts": contexts, "steps": steps})).unwrap()
}

/// A refused control packet has the PSN of an unanswered request that has opened a context. Only the device knows that it
/// exists.
#[test]
fn unanswered_context_is_not_closed() {
    let write = json!({
        "step": "message", "context": 0, "kind": "write", "length": 100, "offset": 1000, "quiet": true,
    });
    let unknown = json!({"edit": "set", "header": "control", "field": "pds.ctl_type", "value": "0xd"});
    let control = json!({"step": "changed", "of": asks_for_ack(), "edits": [unknown]});
    let context = json!([{"pdcid": UNANSWERED.0, "start": 369978427}]);
    let mut target = Planted::device(Plant::LosesAnswers);
    for steps in [json!([control, write]), json!([write, control])] {
        let script = script(context.clone(), steps);
        assert_eq!(fuzz::again(&mut target, &script, &Options::default()).unwrap(), None);
    }
}

/// A step whose packet has the last PSN.
fn asks_for_ack() -> Value {
    json!({"step": "control", "context": 0, "kind": "ack_request"})
}

/// A CLOSE_COMMAND with a used PSN closes nothing, though the device acknowledges the PSN. The context takes more.
#[test]
fn close_with_a_used_psn_does_not_hide_later_packets() {
    let read = json!({"step": "message", "context": 0, "kind": "read", "length": 0});
    let closes = json!({"edit": "set", "header": "control", "field": "pds.ctl_type", "value": "0x4"});
    let close = json!({"step": "changed", "of": asks_for_ack(), "edits": [closes]});
    let script = script(json!([{"pdcid": 29304, "start": 7, "rod": true}]), json!([read, close, read]));
    let mut target = Inside::new(Config::default()).unwrap();
    assert_eq!(fuzz::again(&mut target, &script, &Options::default()).unwrap(), None);
}

/// A changed ACK goes to another context and hides its later packets from the observer. The context is closed behind them.
#[test]
fn misdirected_ack_does_not_hide_later_packets() {
    let misdirects = json!({"edit": "add", "header": "ack", "field": "pds.dpdcid", "by": -1});
    let post = |kind: &str, mode: &str, length: u32| json!({"step": "post", "kind": kind, "mode": mode, "length": length});
    let steps = json!([
        {"step": "control", "context": 0, "kind": "negotiation"},
        post("send", "rud", 5199),
        {"step": "changed", "of": post("deferrable_send", "rod", 0), "edits": [misdirects]},
        {"step": "message", "context": 0, "kind": "rendezvous_tsend", "length": 0},
    ]);
    let script = script(json!([{"pdcid": 47544, "start": 2147483609}]), steps);
    let mut target = Inside::new(Config::default()).unwrap();
    assert_eq!(fuzz::again(&mut target, &script, &Options::default()).unwrap(), None);
}

#[test]
fn minimized_finding_is_reported_and_stop_ends_the_run() {
    let options = Options { cases: u64::MAX, findings: usize::MAX, ..Options::default() };
    let stop = options.stop.clone();
    let mut told = Vec::new();
    let outcome = fuzz::run(&mut Planted::device(Plant::OffsetBeyondLength), &options, |so_far| {
        told.push(so_far.findings.len());
        stop.store(so_far.findings.len() == 2, Ordering::Relaxed);
    });
    assert_eq!(outcome.unwrap().findings.len(), 2);
    let first = |count: usize| told.iter().position(|told| *told == count).unwrap();
    assert!(first(1) < first(2) && first(2) == told.len() - 1, "{told:?}");
}

#[test]
fn finding_is_told_before_it_is_minimized_and_an_interrupt_is_its_reason() {
    let options = Options { cases: 5000, ..Options::default() };
    let stop = options.stop.clone();
    let mut trials = Vec::new();
    let outcome = fuzz::run(&mut Planted::device(Plant::OffsetBeyondLength), &options, |so_far| {
        if let Some(minimizing) = &so_far.minimizing {
            assert!(so_far.findings.is_empty() && !minimizing.finding.passed.is_empty());
            trials.push(minimizing.trials);
            stop.store(minimizing.trials == 2, Ordering::Relaxed);
        }
    });
    assert_eq!(trials, [0, 1, 2]);
    let finding = outcome.unwrap().findings.pop().unwrap();
    assert_eq!((finding.reproduced, finding.not_minimized.as_deref()), (true, Some("the run was ended")));
}

/// A plausible mistake, added around a correct NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    /// Computes the remaining bytes of a message as its length minus the packet's offset, and crashes if that is
    /// negative.
    OffsetBeyondLength,
    /// Searches for the handler of a control packet until it finds one.
    UnknownControlType,
    /// Creates a second context for a second opening request. Nothing closes that context, and a reset misses it.
    OpenedTwice,
    /// Ignores the carry in the end of a write, and hits other memory.
    OffsetWraps,
    /// Keeps a context that is closed.
    StaysOpen,
    /// No mistake: the network loses all ACKs of the context [`UNANSWERED`].
    LosesAnswers,
    /// No mistake: before it answers an opening request, it still refuses another packet with that PDCID.
    LateRefusal,
}

/// The context whose ACKs are lost.
const UNANSWERED: PdcId = PdcId(9420);

fn is_unanswered(packet: &Wire) -> bool {
    let ack = Uet::parse_lax(&packet.bytes).0.pds.and_then(|pds| pds.ack());
    ack.is_some_and(|ack| ack.dpdcid() == UNANSWERED)
}

struct Planted {
    plant: Plant,
    crashed: bool,
    hangs: bool,
    leaked: u64,
    opened: BTreeSet<PdcId>,
    witness: Option<u64>,
    corrupted: bool,
    late: VecDeque<Wire>,
}

impl Planted {
    fn device(plant: Plant) -> Device<Self> {
        Device::new(Planted {
            plant,
            crashed: false,
            hangs: false,
            leaked: 0,
            opened: BTreeSet::new(),
            witness: None,
            corrupted: false,
            late: VecDeque::new(),
        })
    }

    fn take(&mut self, packet: &Wire) {
        let uet = Uet::parse_lax(&packet.bytes).0;
        let std = match uet.ses {
            Some(Ses::Std(std)) => Some(std),
            _ => None,
        };
        match self.plant {
            Plant::OffsetBeyondLength => {
                self.crashed |=
                    std.is_some_and(|std| std.message_offset().unwrap_or(0) > std.request_length());
            }
            Plant::UnknownControlType => {
                let unknown = |pds| matches!(pds, Pds::Control(control) if control.ctl_type().code() > 9);
                self.hangs |= uet.pds.is_some_and(unknown);
            }
            Plant::OpenedTwice => {
                let opening = uet.pds.and_then(|pds| pds.request()).filter(|request| request.syn());
                if let Some(request) = opening {
                    self.leaked += u64::from(!self.opened.insert(request.spdcid()));
                }
            }
            Plant::StaysOpen => {
                let closes = |pds| matches!(pds, Pds::Control(it) if it.ctl_type() == CtlType::CLOSE_COMMAND);
                self.leaked += u64::from(uet.pds.is_some_and(closes));
            }
            Plant::OffsetWraps => {
                let wraps = |offset: u64, length: u32| offset.checked_add(length.into()).is_none();
                self.corrupted |=
                    std.is_some_and(|std| wraps(std.buffer_offset().unwrap_or(0), std.request_length()));
            }
            Plant::LosesAnswers => {}
            Plant::LateRefusal => {
                let opening = uet.pds.and_then(|pds| pds.request()).filter(|request| request.syn());
                if let Some(request) = opening {
                    let nack = Nack::build(NackCode::CLOSING).nack_psn(request.psn() + 1000).spdcid(PdcId(1));
                    let nack = UetBuf::new(nack.dpdcid(request.spdcid()).done().unwrap()).to_bytes();
                    self.late.push_back(Wire::new(packet.dst, packet.src, packet.entropy, nack));
                }
            }
        }
    }

    fn gone(&self) -> DutError {
        DutError("connection reset".into())
    }
}

impl Changes for Planted {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        self.take(packet);
        if self.crashed { Err(self.gone()) } else { nic.send(packet) }
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        if self.crashed {
            return Err(self.gone());
        }
        if let Some(late) = self.late.pop_front() {
            return Ok(Some(late));
        }
        while let Some(packet) = nic.receive(until)? {
            let lost = self.plant == Plant::LosesAnswers && is_unanswered(&packet);
            if !self.hangs && !lost {
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        if self.crashed {
            let error = io::ErrorKind::UnexpectedEof.into();
            return Err(CallError::Channel { op: op.name(), error });
        }
        let is_witness = matches!(&op, Op::ExposeRegion(region) if region.permissions == [Permission::Read]);
        let is_read = matches!(&op, Op::ReadMemory(piece) if Some(piece.region) == self.witness);
        if let Op::Reset(_) = op {
            self.opened.clear();
            self.corrupted = false;
        }
        let mut answer = nic.ask(op)?;
        if is_witness {
            self.witness = answer.get("region").and_then(Value::as_u64);
        }
        if let Some(pdcs) = answer.get_mut("pdcs") {
            *pdcs = (pdcs.as_u64().unwrap() + self.leaked).into();
        }
        if let (Some(data), true) = (answer.get_mut("data"), is_read && self.corrupted) {
            *data = "ff".repeat(data.as_str().unwrap().len() / 2).into();
        }
        Ok(answer)
    }
}

impl Target for Device<Planted> {
    fn dut(&mut self) -> &mut dyn Dut {
        self
    }

    fn restart(&mut self) -> io::Result<bool> {
        *self = Planted::device(self.changes.plant);
        Ok(true)
    }
}

#[test]
fn refusal_of_another_packet_is_not_of_the_plain_write() {
    let mut target = Planted::device(Plant::LateRefusal);
    assert_eq!(fuzz::again(&mut target, &Sequence::default(), &Options::default()).unwrap(), None);
}

fn found(plant: Plant) -> Finding {
    let mut outcome =
        fuzz::run(&mut Planted::device(plant), &Options { cases: 5000, ..Options::default() }, |_| ())
            .unwrap();
    let finding =
        outcome.findings.pop().unwrap_or_else(|| panic!("{plant:?}: nothing in {} cases", outcome.cases));
    println!(
        "{plant:?} after {} cases: {} {}",
        outcome.cases,
        finding.what,
        serde_json::to_string(&finding.script).unwrap()
    );
    assert_eq!((finding.reproduced, &finding.not_minimized), (true, &None));
    let steps: BTreeSet<usize> = finding.passed.iter().filter_map(|packet| packet.step).collect();
    assert!(steps.last().is_some_and(|last| *last < finding.script.steps.len()), "{steps:?}");
    // The script alone reproduces the mistake, and does nothing to a correct NIC.
    let again = fuzz::again(&mut Planted::device(plant), &finding.script, &Options::default()).unwrap();
    assert_eq!(again.map(|(trouble, _)| trouble), Some(finding.trouble));
    let mut sound = Inside::new(Config::default()).unwrap();
    assert_eq!(fuzz::again(&mut sound, &finding.script, &Options::default()).unwrap(), None);
    finding
}

fn edits(finding: &Finding) -> usize {
    finding.script.steps.iter().map(|step| step.edits().len()).sum()
}

#[test]
fn a_planted_crash_is_found_and_cut_down() {
    let finding = found(Plant::OffsetBeyondLength);
    assert_eq!(finding.trouble, Trouble::Crash);
    // Such offsets have a share of the cases.
    assert!(finding.case <= 3, "{}", finding.case);
    assert!(finding.script.steps.len() == 1 && edits(&finding) < 2, "{:?}", finding.script);
}

#[test]
fn a_planted_hang_is_found_and_cut_down() {
    let finding = found(Plant::UnknownControlType);
    assert_eq!(finding.trouble, Trouble::Hang);
    assert!(finding.script.steps.len() == 1 && edits(&finding) < 2, "{:?}", finding.script);
}

#[test]
fn a_planted_leak_is_found_and_cut_down() {
    let finding = found(Plant::OpenedTwice);
    assert_eq!(finding.trouble, Trouble::Leak);
    assert!(finding.script.steps.len() + edits(&finding) < 4, "{:?}", finding.script);
}

#[test]
fn leak_of_a_plain_write_needs_no_case() {
    let options = Options::default();
    let mut outcome = fuzz::run(&mut Planted::device(Plant::StaysOpen), &options, |_| ()).unwrap();
    let finding = outcome.findings.pop().unwrap();
    assert_eq!((finding.trouble, finding.case, outcome.cases), (Trouble::Leak, 0, 0));
    assert!(finding.reproduced && finding.script.steps.is_empty(), "{finding:?}");
}

#[test]
fn planted_corruption_is_found_and_cut_down() {
    let finding = found(Plant::OffsetWraps);
    assert_eq!(finding.trouble, Trouble::Corruption);
    assert!(finding.script.steps.len() == 1 && edits(&finding) < 2, "{:?}", finding.script);
}
