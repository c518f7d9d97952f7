//! Sends and receives.

use super::tap::Tap;
use super::{Area, Fault};

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Matching, taps }
}

pub(super) const FAULTS: &[Fault] = &[fault(
    "compares-ignored-bits",
    "Match bits that the receive's mask ignores are compared too",
    &[Tap::Receive(|receive| {
        if let Some(tag) = &mut receive.tag {
            tag.ignore = 0;
        }
    })],
)];
