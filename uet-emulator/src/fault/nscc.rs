//! The window of congestion control.

use super::fields::Fields;
use super::tap::Tap;
use super::{Area, Fault};

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Nscc, taps }
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "counts-rcvd-bytes-in-bytes",
        "rcvd_bytes counts bytes, not units of 256",
        &[Tap::Out(|wire, mut packet| {
            packet.change("pds.rcvd_bytes", |units| units << 8);
            wire.pass(packet);
        })],
    ),
    fault(
        "ignores-marks",
        "An ACK that says that its packet was marked shrinks no window",
        &[Tap::In(|wire, mut packet| {
            packet.set("pds.flags.m", 0);
            wire.pass(packet);
        })],
    ),
];
