//! Devices whose messages start or end otherwise.

use super::{find, get, is, others, results, set};
use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use uet_conformance::{Dut, DutError, Options, Verdict, Wire, run};
use uet_control::{CallError, Op};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_wire::registry::Opcode;

/// Its receive fails when the deferred send that it has asked for is gone.
#[derive(Default)]
struct FailsReceives {
    /// True if the receive has failed by the time of the next command.
    at_once: bool,
    /// True after the answer that the send is gone.
    is_gone: bool,
    /// True after a send that came too late for the receive.
    has_refused: bool,
}

impl Changes for FailsReceives {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        let mut packet = packet.clone();
        // The suite answers no other request.
        self.is_gone |= find(&packet, "ses.return_code").is_some();
        if self.is_gone && is(&packet, "ses.opcode", Opcode::UET_SEND.code()) {
            self.has_refused = true;
            // The NIC has no receive there.
            set(&mut packet, "ses.resource_index", 0x5a);
        }
        nic.send(&packet)
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        match op {
            Op::WaitCompletion(wait) if self.has_refused || self.at_once && self.is_gone => {
                let failed = json!({"operation": wait.operation, "status": "cancelled"});
                return Ok(failed.as_object().unwrap().clone());
            }
            Op::Reset(_) | Op::Configure(_) => (self.is_gone, self.has_refused) = (false, false),
            _ => {}
        }
        nic.ask(op)
    }
}

#[test]
fn its_receive_fails_when_its_deferred_send_is_gone() {
    for at_once in [true, false] {
        let mut device = Device::new(FailsReceives { at_once, ..FailsReceives::default() });
        let options = Options { ids: vec!["deferrable/send-gone".into()], ..Options::default() };
        let result = run(&mut device, &options, |_| ());
        assert_eq!(others(&result, &[Verdict::Pass]), [""; 0], "{at_once}");
    }
}

/// Its packets of this job leave later than its timeout.
#[derive(Default)]
struct StartsLate {
    held: VecDeque<(Duration, Wire)>,
}

const LATE_JOB: u64 = 102;

impl Changes for StartsLate {
    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            let next = self.held.front().map_or(until, |(at, _)| (*at).min(until));
            match nic.receive(next)? {
                Some(wire) if get(&wire, "ses.job_id") == Some(LATE_JOB) => {
                    self.held.push_back((nic.now() + Duration::from_millis(6), wire));
                }
                Some(wire) => return Ok(Some(wire)),
                None if next == until => return Ok(None),
                None => return Ok(self.held.pop_front().map(|(_, wire)| wire)),
            }
        }
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        if matches!(op, Op::Reset(_) | Op::Configure(_)) {
            self.held.clear();
        }
        nic.ask(op)
    }
}

/// A device that retransmits before it starts the next message may do so if nothing acknowledges the first.
#[test]
fn it_starts_messages_after_its_timeout() {
    let mut config = Config::default();
    config.set("rto_init_time", &json!(5_000_000)).unwrap();
    let result = results(&mut Device::with(config, StartsLate::default()), &["ses-encoding/header-data"]);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}
