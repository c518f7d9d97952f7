//! Atomics.

use super::fields::Fields;
use super::tap::Tap;
use super::{Area, Fault};
use uet_model::{Command, Delivery};

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Atomic, taps }
}

pub(super) const FAULTS: &[Fault] = &[fault(
    "repeats-fetching-atomics",
    "The result of a fetching atomic is not kept: a retransmission has it done again",
    &[Tap::Down(|middle, mut said| {
        if let Command::Respond(_, response) = &mut said {
            let fetched =
                response.delivery == Delivery::Guaranteed && response.get("ses.payload_length").is_some();
            if fetched {
                response.delivery = Delivery::GuaranteedByRepetition;
            }
        }
        middle.pass(said);
    })],
)];
