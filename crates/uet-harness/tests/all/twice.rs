//! A device that reports each completion twice. No fault of the emulator does so.

use crate::around::{Changes, Device};
use uet_conformance::{Dut, Options, Verdict, run};
use uet_control::Event;
use uet_harness::dut::Embedded;

struct Twice {
    again: Option<Event>,
}

impl Changes for Twice {
    fn event(&mut self, nic: &mut Embedded) -> Option<Event> {
        self.again.take().or_else(|| {
            self.again = nic.event();
            self.again.clone()
        })
    }
}

#[test]
fn it_is_seen() {
    let ids = ["completions/once", "send/completes-once"].map(String::from);
    let options = Options { ids: ids.to_vec(), ..Options::default() };
    let result = run(&mut Device::new(Twice { again: None }), &options, |_| ());
    let broken: Vec<_> = result.rules.iter().map(|rule| (rule.verdict, &rule.requirements[0][..])).collect();
    assert_eq!(broken, [(Verdict::Fail, "SES-DONE-002"), (Verdict::Fail, "SES-DONE-001")]);
}
