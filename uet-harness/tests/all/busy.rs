//! A suite on a busy machine: its late measurements prove nothing about the device.

use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::time::Duration;
use uet_conformance::{Dut, DutError, Facts, Options, Verdict, Wire, run};
use uet_control::{CallError, Op, Welcome};
use uet_emulator::Config;
use uet_harness::dut::Embedded;

/// The embedded NIC with a suite that sleeps this long at every tenth packet.
struct Busy {
    nic: Embedded,
    facts: Facts,
    pause: Duration,
    sent: u32,
    came: VecDeque<Wire>,
}

impl Dut for Busy {
    fn welcome(&self) -> &Welcome {
        self.nic.welcome()
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.nic.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.sent += 1;
        if self.sent % 10 == 0 {
            let until = self.now() + self.pause;
            while let Some(wire) = self.nic.receive(until)? {
                self.came.push_back(wire);
            }
        }
        self.nic.send(packet)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        match self.came.pop_front() {
            Some(wire) => Ok(Some(wire)),
            None => self.nic.receive(until),
        }
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.nic.ask(op)
    }
}

fn verdict(id: &str, pause: Duration) -> (Verdict, String) {
    let nic = Embedded::new(Config::default()).unwrap();
    let facts = Facts { virtual_time: false, ..nic.facts().clone() };
    let mut busy = Busy { nic, facts, pause, sent: 0, came: VecDeque::new() };
    let result = run(&mut busy, &Options { ids: vec![id.to_owned()], ..Options::default() }, |_| ());
    (result.cases[0].verdict, result.cases[0].reason.clone())
}

#[test]
fn late_suite_makes_cases_inconclusive() {
    let (verdict, reason) = verdict("nscc/marked-in-time", Duration::from_micros(60));
    assert_eq!(verdict, Verdict::Inconclusive, "{reason}");
    assert!(reason.contains("late: the machine is too busy for this"), "{reason}");
}

#[test]
fn undisturbed_cases_are_judged() {
    assert_eq!(verdict("nscc/marked-in-time", Duration::ZERO).0, Verdict::Pass);
}

/// The embedded NIC behind a link that takes this long for each packet.
struct Slow {
    nic: Embedded,
    facts: Facts,
    each: Duration,
    free: Duration,
    came: VecDeque<Wire>,
}

impl Dut for Slow {
    fn welcome(&self) -> &Welcome {
        self.nic.welcome()
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.nic.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.nic.send(packet)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            let next = if self.came.is_empty() { until } else { self.free.min(until) };
            match self.nic.receive(next)? {
                Some(wire) => self.came.push_back(wire),
                None if self.free > until => return Ok(None),
                None => {
                    let wire = self.came.pop_front();
                    self.free = self.now() + wire.as_ref().map_or(Duration::ZERO, |_| self.each);
                    return Ok(wire);
                }
            }
        }
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.nic.ask(op)
    }
}

/// 128 answers take longer than the limit for immediate reactions.
#[test]
fn slow_packets_are_waited_for() {
    let nic = Embedded::new(Config::default()).unwrap();
    let facts = Facts { virtual_time: false, ..nic.facts().clone() };
    let each = Duration::from_millis(1);
    let mut slow = Slow { nic, facts, each, free: Duration::ZERO, came: VecDeque::new() };
    let options = Options { ids: vec!["ack/never-back".to_owned()], ..Options::default() };
    let result = run(&mut slow, &options, |_| ());
    assert_eq!(result.cases[0].verdict, Verdict::Pass, "{}", result.cases[0].reason);
}
