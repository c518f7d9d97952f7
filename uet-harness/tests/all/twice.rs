//! A device that reports each completion twice. No fault of the emulator does so.

use serde_json::{Map, Value};
use std::time::Duration;
use uet_conformance::{Dut, DutError, Facts, Options, Verdict, Wire, run};
use uet_control::{CallError, Event, Op, Welcome};
use uet_emulator::Config;
use uet_harness::dut::Embedded;

struct Twice {
    nic: Embedded,
    again: Option<Event>,
}

impl Dut for Twice {
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
        self.nic.send(packet)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.nic.receive(until)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.nic.ask(op)
    }

    fn event(&mut self) -> Option<Event> {
        self.again.take().or_else(|| {
            self.again = self.nic.event();
            self.again.clone()
        })
    }
}

#[test]
fn it_is_seen() {
    let ids = ["completions/once", "send/once"].map(String::from);
    let options = Options { ids: ids.to_vec(), ..Options::default() };
    let result =
        run(&mut Twice { nic: Embedded::new(Config::default()).unwrap(), again: None }, &options, |_| ());
    let broken: Vec<_> = result.cases.iter().map(|case| (case.verdict, &case.requirements[0][..])).collect();
    assert_eq!(broken, [(Verdict::Fail, "SES-DONE-001"), (Verdict::Fail, "SES-DONE-002")]);
}
