//! Correct devices whose differences the embedded NIC has no parameter for. Each test changes packets between NIC and
//! suite, and its case must pass.

use serde_json::json;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use uet_conformance::elements::kind;
use uet_conformance::{Dut, DutError, Facts, NetworkEffects, Options, RunResult, Verdict, Wire, run};
use uet_control::{CallError, ErrorCode, Op, Refusal, Welcome};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_wire::layout::Place;
use uet_wire::pds::{AckCc, Control, Nack, Pds};
use uet_wire::registry::{AckRequest, CcType, CtlType, NackCode, Opcode, PdsType, ReturnCode};
use uet_wire::ses::{Ext, Ses};
use uet_wire::tss::Outer;
use uet_wire::{PdcId, Psn, Uet, UetBuf};

/// The embedded NIC with changes of its packets.
struct Otherwise {
    nic: Embedded,
    welcome: Welcome,
    /// Handles a packet of the suite; returns whether it is passed on.
    hears: fn(&mut Otherwise, &mut Wire) -> bool,
    /// Handles a packet of the NIC; leaves the packets to pass on in `came`.
    says: fn(&mut Otherwise, Wire),
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

impl Dut for Otherwise {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn network_effects(&mut self) -> NetworkEffects {
        self.effects
    }

    fn facts(&self) -> &Facts {
        self.nic.facts()
    }

    fn now(&self) -> Duration {
        self.nic.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        let mut packet = packet.clone();
        match (self.hears)(self, &mut packet) {
            true => self.nic.send(&packet),
            false => Ok(()),
        }
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            if let Some(wire) = self.came.pop_front() {
                return Ok(Some(wire));
            }
            match self.nic.receive(until)? {
                Some(wire) => (self.says)(self, wire),
                None => return Ok(None),
            }
        }
    }

    fn outer(&self, packet: &Wire, length: usize, leaving: bool) -> Option<Outer> {
        self.nic.outer(packet, length, leaving)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
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
        let mut answer = self.nic.ask(op)?;
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

/// Returns the verdict of the case on such a device with this seed.
fn verdict(id: &str, seed: u64, hears: Hears, says: Says) -> (Verdict, String) {
    let options = Options { ids: vec![id.to_owned()], seed, ..Options::default() };
    let result = run(&mut device(hears, says), &options, |_| ());
    (result.cases[0].verdict, result.cases[0].reason.clone())
}

fn device(hears: Hears, says: Says) -> Otherwise {
    let nic = Embedded::new(Config::default()).unwrap();
    let welcome = nic.welcome().clone();
    Otherwise {
        nic,
        welcome,
        hears,
        says,
        came: VecDeque::new(),
        held: None,
        effects: NetworkEffects::default(),
        told: None,
        sizes: BTreeMap::new(),
        chosen: None,
    }
}

/// Runs one instance of each of these rules, or of all.
fn results(device: &mut Otherwise, ids: &[&str]) -> RunResult {
    let ids = ids.iter().map(|id| id.to_string()).collect();
    run(device, &Options { ids, max_instances: Some(1), ..Options::default() }, |_| ())
}

/// Returns the rules with other verdicts than these.
fn others(result: &RunResult, allowed: &[Verdict]) -> Vec<String> {
    let others = result.cases.iter().filter(|case| !allowed.contains(&case.verdict));
    others.map(|case| format!("{} {}: {}", case.id, case.verdict.name(), case.reason)).collect()
}

#[track_caller]
fn passes(id: &str, hears: Hears, says: Says) {
    assert_eq!(verdict(id, 1, hears, says), (Verdict::Pass, String::new()), "{id}");
}

#[test]
fn it_knows_no_credit() {
    let hears: Hears = |device, wire| {
        if !is_control(wire, CtlType::CREDIT) {
            return true;
        }
        let nack = Nack::build(NackCode::UNEXP_EVENT).dpdcid(pdcid(wire, "pds.spdcid")).done().unwrap();
        let bytes = UetBuf::new(nack).to_bytes();
        device.came.push_back(Wire::new(wire.dst, wire.src, wire.entropy, bytes));
        false
    };
    passes("control/credit", hears, says_all);
}

#[test]
fn it_opens_by_noop() {
    let says: Says = |device, wire| {
        if is(&wire, "pds.flags.syn", 1) && device.held.is_none() {
            device.held = Some(Vec::new());
            let psn = Psn(get(&wire, "pds.psn").unwrap_or_default() as u32 - 1);
            let noop = Control::build(CtlType::NOOP).ar(true).syn(true).psn(psn);
            let bytes = UetBuf::new(noop.spdcid(pdcid(&wire, "pds.spdcid")).done().unwrap()).to_bytes();
            device.came.push_back(Wire::new(wire.src, wire.dst, wire.entropy, bytes));
        }
        device.came.push_back(wire);
    };
    passes("control/no-early-probe", hears_all, says);
}

#[test]
fn it_names_a_context_in_unexp_event() {
    let says: Says = |device, mut wire| {
        if is(&wire, "pds.nack_code", NackCode::UNEXP_EVENT.code()) {
            set(&mut wire, "pds.spdcid", 1);
        }
        device.came.push_back(wire);
    };
    passes("robust/unknown-control", hears_all, says);
}

/// A base at a multiple of 64 is close enough to the requested one.
#[test]
fn its_bitmaps_are_aligned() {
    let says: Says = |device, mut wire| {
        if let (Some(cack), Some(offset), Some(bits)) =
            (get(&wire, "pds.cack_psn"), get(&wire, "pds.sack_psn_offset"), get(&wire, "pds.sack_bitmap"))
        {
            let base = (cack as u32).wrapping_add_signed((offset as u16 as i16).into());
            let down = base % 64;
            set(&mut wire, "pds.sack_psn_offset", (offset as u16).wrapping_sub(down as u16).into());
            set(&mut wire, "pds.sack_bitmap", bits << down);
        }
        device.came.push_back(wire);
    };
    for seed in 1..=64 {
        let (verdict, reason) = verdict("ask/probe-bitmap", seed, hears_all, says);
        assert_eq!(verdict, Verdict::Pass, "seed {seed}: {reason}");
    }
}

#[test]
fn it_knows_no_no_op() {
    let says: Says = |device, mut wire| {
        set(&mut wire, "ses.return_code", ReturnCode::UNSUPPORTED_OP.code().into());
        device.came.push_back(wire);
    };
    passes("errors/no-op", hears_all, says);
}

#[test]
fn its_first_token_is_0() {
    let says: Says = |device, mut wire| {
        if is(&wire, "ses.opcode", Opcode::UET_DEFERRABLE_SEND.code()) {
            set(&mut wire, "ses.initiator_restart_token", 0);
        }
        device.came.push_back(wire);
    };
    passes("deferrable/first-attempt", hears_all, says);
}

#[test]
fn it_takes_no_start_from_others() {
    let hears: Hears = |_, wire| !is(wire, "pds.nack_code", NackCode::NEW_START_PSN.code());
    let (verdict, reason) = verdict("reaction/new-start", 1, hears, says_all);
    assert_eq!(verdict, Verdict::Skipped, "{reason}");
}

#[test]
fn it_opens_no_context_before_the_last_has_ended() {
    let hears: Hears = |device, wire| {
        if is(wire, "pds.type", PdsType::ACK.code()) {
            device.came.extend(device.held.take().into_iter().flatten());
        }
        true
    };
    let says: Says = |device, wire| {
        if is_control(&wire, CtlType::CLOSE_COMMAND) {
            device.held.get_or_insert_default();
        }
        match &mut device.held {
            Some(held) if is(&wire, "pds.flags.syn", 1) => held.push(wire),
            _ => device.came.push_back(wire),
        }
    };
    passes("source-close/nothing-above", hears, says);
}

/// The sources do not order the response to a rendezvous send and the read of its rest.
#[test]
fn it_answers_a_rendezvous_after_its_read() {
    let hears: Hears = |device, wire| {
        if find(wire, "ses.read_request_message_id").is_some() {
            device.came.extend(device.held.take().into_iter().flatten());
            device.held = None;
        }
        if is(wire, "ses.opcode", Opcode::UET_RENDEZVOUS_SEND.code()) {
            device.held = Some(Vec::new());
        }
        true
    };
    let says: Says = |device, wire| match &mut device.held {
        Some(held) if find(&wire, "pds.cack_psn").is_some() => held.push(wire),
        _ => device.came.push_back(wire),
    };
    let ids = ["rendezvous/reads-the-rest", "rendezvous/not-before-the-rest", "rendezvous/nothing-at-once"];
    let result = results(&mut device(hears, says), &ids);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

#[test]
fn it_asks_for_the_close_by_its_acks() {
    let says: Says = |device, mut wire| {
        if is_control(&wire, CtlType::CLOSE_REQUEST) {
            let last = device.held.as_mut().and_then(Vec::pop);
            wire = last.unwrap_or(wire);
            set(&mut wire, "pds.flags.req", AckRequest::REQ_CLOSE.code().into());
        } else if find(&wire, "pds.cack_psn").is_some() {
            device.held = Some(vec![wire.clone()]);
        }
        device.came.push_back(wire);
    };
    let (verdict, reason) = verdict("encoding/close-request", 1, hears_all, says);
    assert_eq!((verdict, &reason[..]), (Verdict::Skipped, "the device asks for the close by REQ_CLOSE"));
}

#[test]
fn it_posts_nothing() {
    let mut device = device(hears_all, says_all);
    device.welcome.capabilities = vec!["rud".into()];
    let result = results(&mut device, &["source-encoding/every-kind"]);
    assert_eq!(result.cases[0].verdict, Verdict::Skipped, "{}", result.cases[0].reason);
}

/// Rules of packet delivery run over the operations that a device has.
#[test]
fn it_has_sends_by_rod_only() {
    let mut device = device(hears_all, says_all);
    device.welcome.capabilities = ["rod", "send", "receive", "close"].map(String::from).into();
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), Vec::<String>::new());
    let passed = result.count(Verdict::Pass);
    assert!(passed >= 200, "{passed} rules passed");
}

/// Without capability `ecn`, no rule asks for an answer to a mark.
#[test]
fn it_sees_no_marks() {
    let mut device = device(hears_all, says_all);
    device.welcome.capabilities.retain(|name| name != "ecn");
    let ids = ["rudi/flags", "ack/mark", "ack/marked-at-once", "nack/mark"];
    let result = results(&mut device, &ids);
    assert_eq!((result.cases.len(), others(&result, &[Verdict::Skipped])), (4, vec![]));
}

/// The sources name two return codes for a disabled index.
#[test]
fn it_answers_disabled_indices_either_way() {
    let either: [Says; 2] = [
        |device, wire| says_code(device, wire, ReturnCode::DISABLED),
        |device, wire| says_code(device, wire, ReturnCode::DISABLED_GEN),
    ];
    for says in either {
        for id in ["addressing/disabled", "addressing/disabled-without-buffer"] {
            passes(id, hears_all, says);
        }
    }
}

/// Replaces the return code of a disabled index.
fn says_code(device: &mut Otherwise, mut wire: Wire, code: ReturnCode) {
    let disabled = [ReturnCode::DISABLED, ReturnCode::DISABLED_GEN];
    if disabled.iter().any(|disabled| is(&wire, "ses.return_code", disabled.code())) {
        set(&mut wire, "ses.return_code", code.code().into());
    }
    device.came.push_back(wire);
}

#[test]
fn it_always_sends_congestion_state() {
    let says: Says = |device, mut wire| {
        let longer = match Uet::parse_lax(&wire.bytes).0.pds {
            Some(Pds::Ack(ack)) => {
                let long = AckCc::build()
                    .ack(|a| a.copy_from(&ack.copied()).prologue(|prologue| prologue.kind(PdsType::ACK_CC)))
                    .cc_type(CcType::NSCC)
                    .sack(|sack| sack.mpr(8).sack_psn_offset(1))
                    .done()
                    .unwrap();
                Some([long.bytes(), &wire.bytes[ack.bytes().len()..]].concat())
            }
            _ => None,
        };
        wire.bytes = longer.unwrap_or(wire.bytes);
        device.came.push_back(wire);
    };
    passes("ack/form", hears_all, says);
}

/// A device that does not support some control packets says so, and the rest of the suite still passes.
#[test]
fn it_knows_no_optional_control_packet() {
    let hears: Hears = |device, wire| {
        let kinds = [CtlType::NOOP, CtlType::PROBE, CtlType::CLEAR_REQUEST];
        if !kinds.iter().any(|kind| is_control(wire, *kind)) {
            return true;
        }
        let nack = Nack::build(NackCode::UNEXP_EVENT)
            .nack_psn(Psn(get(wire, "pds.psn").unwrap_or_default() as u32))
            .dpdcid(pdcid(wire, "pds.spdcid"))
            .done()
            .unwrap();
        let bytes = UetBuf::new(nack).to_bytes();
        device.came.push_back(Wire::new(wire.dst, wire.src, wire.entropy, bytes));
        false
    };
    let ids = [
        "ack/control",
        "ask/probe",
        "ask/probe-bitmap",
        "control/noop",
        "control/noop-again",
        "control/noop-above-gap",
        "control/noop-out-of-order",
        "control/asked",
        "control/probe",
        "control/credit",
        "control/unknown",
        "control/other-peer",
        "crc/damaged-control",
        "encoding/probe-answer",
        "encoding/ack-of-control",
        "path/of-control",
        "robust/reserved-bits-control",
        "rod/control-in-order",
        "source-clear/asked",
        "source-clear/asked-too-early",
    ];
    let result = results(&mut device(hears, says_all), &ids);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
}

/// A device may choose its memory keys. Rules that need a certain key are skipped.
#[test]
fn it_chooses_memory_keys() {
    let mut device = Otherwise { chosen: Some(0x600d_0000), ..device(hears_all, says_all) };
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
    let skipped = result.count(Verdict::Skipped);
    assert!((1..30).contains(&skipped), "{skipped} were skipped");
}

/// A device that drops what it does not support states it.
#[test]
fn it_states_what_it_drops() {
    let hears: Hears = |_, wire| {
        let short = matches!(Uet::parse_lax(&wire.bytes).0.ses, Some(Ses::Medium(_) | Ses::Small(_)));
        !short && !is_control(wire, CtlType::NOOP) && !is_control(wire, CtlType::PROBE)
    };
    let mut device = device(hears, says_all);
    let stated = &mut device.welcome.parameters;
    stated.insert("unsupported_control".into(), json!(["NOOP", "PROBE"]));
    stated.insert("headers".into(), json!("standard"));
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
    assert!(result.count(Verdict::Skipped) < 150, "{} were skipped", result.count(Verdict::Skipped));
}

#[test]
fn it_tells_each_completion_once() {
    let mut device = device(hears_all, says_all);
    device.told = Some(Vec::new());
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
}

/// Operands with their highest byte first in packets, and last in memory.
#[test]
fn its_operands_are_big_endian() {
    let hears: Hears = |device, wire| {
        let uet = Uet::parse_lax(&wire.bytes).0;
        let size = match uet.ext {
            Some(Ext::Atomic(ext)) => kind(ext.atomic_opcode(), ext.atomic_datatype()).size,
            _ => return true,
        };
        let start = wire.bytes.len() - uet.payload.len();
        if let Some(request) = uet.pds.and_then(|pds| pds.request()) {
            device.sizes.insert(request.psn().0, size);
        }
        wire.bytes[start..].chunks_mut(size).for_each(<[u8]>::reverse);
        true
    };
    let says: Says = |device, mut wire| {
        let uet = Uet::parse_lax(&wire.bytes).0;
        let psn = uet.pds.and_then(|pds| pds.ack()).and_then(|ack| ack.ack_psn());
        let size = psn.and_then(|psn| device.sizes.get(&psn.0)).copied();
        let start = wire.bytes.len() - uet.payload.len();
        if let Some(size) = size {
            wire.bytes[start..].chunks_mut(size).for_each(<[u8]>::reverse);
        }
        device.came.push_back(wire);
    };
    let mut device = device(hears, says);
    device.welcome.parameters.insert("operand_order".into(), json!("big"));
    let ids = [
        "atomic/sum",
        "atomic/fetch",
        "atomic/fetch-again",
        "atomic/once",
        "atomic/all-add-up",
        "clear/fetched-value",
        "rod/duplicates",
        "window/shuffled-twice",
    ];
    let result = results(&mut device, &ids);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

#[test]
fn its_swaps_count_both_operands() {
    let hears: Hears = |_, wire| {
        let swaps = matches!(Uet::parse_lax(&wire.bytes).0.ext, Some(Ext::CompareSwap(_)));
        if swaps && get(wire, "ses.request_length") == Some(32) {
            set(wire, "ses.request_length", 8);
            return true;
        }
        !swaps
    };
    let mut device = device(hears, says_all);
    device.welcome.parameters.insert("swap_length".into(), json!(32));
    let result = results(&mut device, &["compare-swap/equal"]);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

/// A datagram that the host is known to have lost is not the device's fault.
#[test]
fn its_host_loses_a_datagram() {
    let once: Hears = |device, wire| {
        let lost = is(wire, "pds.type", PdsType::RUDI_REQ.code()) && device.effects.lost == 0;
        device.effects.lost += u64::from(lost);
        !lost
    };
    passes("rudi/each-once", once, says_all);
    let always: Hears = |device, wire| {
        let lost = is(wire, "pds.type", PdsType::RUDI_REQ.code());
        device.effects.lost += u64::from(lost);
        !lost
    };
    let (verdict, reason) = verdict("rudi/each-once", 1, always, says_all);
    assert_eq!(verdict, Verdict::Inconclusive, "{reason}");
}

/// A network of which nothing is known but that it takes 150 ms each way.
struct Far {
    nic: Embedded,
    under_way: VecDeque<(Duration, bool, Wire)>,
}

const ONE_WAY: Duration = Duration::from_millis(150);

impl Dut for Far {
    fn welcome(&self) -> &Welcome {
        self.nic.welcome()
    }

    fn facts(&self) -> &Facts {
        self.nic.facts()
    }

    fn now(&self) -> Duration {
        self.nic.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.under_way.push_back((self.now() + ONE_WAY, true, packet.clone()));
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            let next = self.under_way.front().map_or(until, |(at, ..)| (*at).min(until));
            if let Some(wire) = self.nic.receive(next)? {
                self.under_way.push_back((self.now() + ONE_WAY, false, wire));
                continue;
            }
            match self.under_way.pop_front() {
                Some((at, true, wire)) if at <= until => self.nic.send(&wire)?,
                Some((at, false, wire)) if at <= until => return Ok(Some(wire)),
                Some(later) => {
                    self.under_way.push_front(later);
                    return Ok(None);
                }
                None => return Ok(None),
            }
        }
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        if matches!(op, Op::Reset(_)) {
            self.under_way.clear();
        }
        self.nic.ask(op)
    }
}

#[test]
fn it_is_far_away() {
    let mut far = Far { nic: Embedded::new(Config::default()).unwrap(), under_way: VecDeque::new() };
    let result = run(&mut far, &Options { max_instances: Some(1), ..Options::default() }, |_| ());
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped, Verdict::Inconclusive]), [""; 0]);
    assert!(result.count(Verdict::Pass) > 300, "{} passed", result.count(Verdict::Pass));
}
