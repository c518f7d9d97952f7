//! Entropy values and traffic classes.

use super::fields::Kinds;
use super::tap::Tap;
use super::{Area, Fault};

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Path, taps }
}

pub(super) const FAULTS: &[Fault] = &[fault(
    "sprays-ordered",
    "The packets of an ordered context have an entropy value each",
    &[Tap::Out(|wire, mut packet| {
        if packet.is_rod() {
            let peer = packet.dst;
            packet.entropy = 0xc000 | wire.memo.count(peer, 0) as u16 & 0xff;
        }
        wire.pass(packet);
    })],
)];
