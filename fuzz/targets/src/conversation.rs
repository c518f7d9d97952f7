//! A random conversation with the emulated NIC, as `uet run --random` plays and judges it. The input makes its choices.

use uet_conformance::Options;
use uet_conformance::draw::Choices;
use uet_conformance::random::{self, Abilities, Coverage, Sequence};
use uet_emulator::Config;
use uet_harness::dut::Embedded;

pub(super) fn run(data: &[u8]) {
    let mut nic = Embedded::new(Config::default()).expect("the defaults are right");
    let can = Abilities::of(&nic);
    let sequence = Sequence::draw(&mut Choices(data), &can, &Coverage::default());
    let result = random::play(&mut nic, &sequence, &Options::default(), &mut Coverage::default());
    assert!(!result.verdict.is_failure(), "{}\n{}", result.reason, result.ladder);
}
