//! Arbitrary bytes as the answers of a device during one rule of the suite.

use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::str::Lines;
use uet_conformance::{Dut, DutError, Facts, Options, Wire, RULES, run as run_suite};
use uet_control::{CallError, Client, Event, Op, Welcome};
use uet_emulator::Config;
use uet_harness::dut::Embedded;

/// The most requests and waits that one rule may need, whatever the device answers.
const MOST: usize = 1 << 16;

/// The first two bytes select the rule. A line answers one request, and an empty line lets the embedded NIC answer. It
/// also answers when no line is left.
pub(super) fn run(data: &[u8]) {
    let Some(([high, low], text)) = data.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(nic) = Embedded::new(Config::default()) else { return };
    let all = RULES.iter().collect::<Vec<_>>();
    let rule = all[usize::from(u16::from_be_bytes([*high, *low])) % all.len()];
    let options =
        Options { ids: vec![rule.id.to_owned()], max_instances: Some(1), ..Options::default() };
    let mut device = Liar { nic, answers: text.lines(), events: VecDeque::new(), work: 0 };
    let result = run_suite(&mut device, &options, |_| ());
    assert_eq!(result.rules.len() + result.not_run, 1, "{result:?}");
    for rule in &result.rules {
        assert_eq!(rule.instances.total().min(1), 1, "{rule:?}");
    }
    serde_json::to_string(&result).expect("a result becomes JSON");
}

/// The embedded NIC behind a control channel that may answer anything.
struct Liar<'a> {
    nic: Embedded,
    answers: Lines<'a>,
    events: VecDeque<Event>,
    work: usize,
}

impl Liar<'_> {
    fn count(&mut self) {
        self.work += 1;
        assert!(self.work < MOST, "the rule does not end");
    }
}

impl Dut for Liar<'_> {
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
        self.count();
        self.nic.receive(until)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.count();
        let Some(line) = self.answers.next().filter(|line| !line.is_empty()) else { return self.nic.ask(op) };
        // The bytes of several answers share a line of the input.
        let stream = line.replace('\t', "\n");
        let mut client = Client::new(stream.as_bytes(), Vec::new());
        let answer = client.ask(op);
        self.events.extend(std::iter::from_fn(|| client.poll_event()));
        match answer {
            // A channel that broke here would end the session.
            Err(CallError::Channel { op, .. }) => {
                Err(CallError::Channel { op, error: std::io::ErrorKind::TimedOut.into() })
            }
            answer => answer,
        }
    }

    fn event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.nic.event())
    }
}
