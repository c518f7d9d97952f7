//! Devices that control congestion otherwise.

use super::{Hears, Says, device, get, group, hears_all, others, results, says_all, set, verdict};
use crate::around::{Changes, Device, receive_and_read};
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use uet_conformance::{Dut, DutError, Verdict, Wire};
use uet_control::{CallError, Op};
use uet_emulator::Config;
use uet_harness::dut::Embedded;

/// The counters of credit and demand wrap after this many units.
const WRAP: u64 = 1 << 24;

/// It still has the credit of grants before an idle time, more than for its next message.
#[test]
fn it_keeps_credit_while_idle() {
    // The NIC loses that credit. It gets it again by the ACK that repeats the last grant.
    let hears: Hears = |_, wire| {
        if get(wire, "pds.credit") == Some(WRAP - 100) {
            set(wire, "pds.credit", 1 << 20);
        }
        true
    };
    let (verdict, reason) = verdict("rccc/grant-across-wrap", 1, hears, says_all);
    assert_eq!((verdict, &reason[..]), (Verdict::Skipped, "the device keeps its credit while it is idle"));
}

/// Its demand may lie behind the grants, and then asks for nothing.
#[test]
fn its_demand_lies_behind_the_grants() {
    let says: Says = |device, mut wire| {
        set(&mut wire, "pds.credit_target", WRAP - 471);
        device.came.push_back(wire);
    };
    let (verdict, reason) = verdict("rccc/demand-in-units", 1, hears_all, says);
    assert_eq!((verdict, &reason[..]), (Verdict::Skipped, "the demands lie behind the credit"));
}

/// Without NSCC, nobody needs its count of received bytes.
#[test]
fn it_counts_no_bytes_in_the_state_that_it_sends() {
    let says: Says = |device, mut wire| {
        set(&mut wire, "pds.rcvd_bytes", 0x00ab_cdef);
        device.came.push_back(wire);
    };
    let mut device = device(hears_all, says);
    device.welcome.capabilities.retain(|name| name != "nscc");
    let result = group(&mut device, "reuse");
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

/// It reads each ACK this long after its arrival, and all other packets at once.
#[derive(Default)]
struct ReadsAcksLate {
    unread: VecDeque<(Duration, Wire)>,
}

const LATE: Duration = Duration::from_micros(3400);

impl Changes for ReadsAcksLate {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        if get(packet, "pds.cack_psn").is_none() {
            return nic.send(packet);
        }
        self.unread.push_back((nic.now() + LATE, packet.clone()));
        Ok(())
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        receive_and_read(&mut self.unread, nic, until)
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        if matches!(op, Op::Reset(_) | Op::Configure(_)) {
            self.unread.clear();
        }
        nic.ask(op)
    }
}

/// The round trips that it measures as a source are longer than those that it shows as a destination.
#[test]
fn it_measures_long_round_trips() {
    let mut config = Config::default();
    for (name, value) in [
        ("base_rtt", 20_000_000_u64),
        ("sender_rate", 1_000_000_000),
        ("receiver_rate", 1_000_000_000),
        ("rto_init_time", 1_000_000_000),
    ] {
        config.set(name, &json!(value)).unwrap();
    }
    let mut device = Device::with(config, ReadsAcksLate::default());
    let result = results(&mut device, &["nscc-state/shorter-rtt"]);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}
