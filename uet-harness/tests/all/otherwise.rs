//! Correct devices whose differences the embedded NIC has no parameter for. Each test changes packets between NIC and
//! suite, and its case must pass.

use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::time::Duration;
use uet_conformance::{Dut, DutError, Facts, Options, Verdict, Wire, run};
use uet_control::{CallError, Op, Welcome};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_wire::layout::Place;
use uet_wire::pds::{Control, Nack};
use uet_wire::registry::{CtlType, NackCode, Opcode, PdsType, ReturnCode};
use uet_wire::{PdcId, Psn, Uet, UetBuf};

/// The embedded NIC with changes of its packets.
struct Otherwise {
    nic: Embedded,
    /// Handles a packet of the suite; returns whether it is passed on.
    hears: fn(&mut Otherwise, &Wire) -> bool,
    /// Handles a packet of the NIC; leaves the packets to pass on in `came`.
    says: fn(&mut Otherwise, Wire),
    came: VecDeque<Wire>,
    held: Option<Vec<Wire>>,
}

impl Dut for Otherwise {
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
        match (self.hears)(self, packet) {
            true => self.nic.send(packet),
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

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.nic.ask(op)
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

fn hears_all(_: &mut Otherwise, _: &Wire) -> bool {
    true
}

fn says_all(device: &mut Otherwise, wire: Wire) {
    device.came.push_back(wire);
}

type Hears = fn(&mut Otherwise, &Wire) -> bool;
type Says = fn(&mut Otherwise, Wire);

/// Returns the verdict of the case on such a device with this seed.
fn verdict(id: &str, seed: u64, hears: Hears, says: Says) -> (Verdict, String) {
    let nic = Embedded::new(Config::default()).unwrap();
    let mut device = Otherwise { nic, hears, says, came: VecDeque::new(), held: None };
    let options = Options { ids: vec![id.to_owned()], seed, ..Options::default() };
    let result = run(&mut device, &options, |_| ());
    (result.cases[0].verdict, result.cases[0].reason.clone())
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
