//! Headers and their fields.

use super::fields::{Fields, Kinds};
use super::tap::Tap;
use super::{Area, Fault};

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Codec, taps }
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "reverses-sack-bits",
        "The first PSN of the bitmap in an ACK is the highest bit, not the lowest",
        &[Tap::Out(|wire, mut packet| {
            packet.change("pds.sack_bitmap", u64::reverse_bits);
            wire.pass(packet);
        })],
    ),
    fault(
        "cuts-job-id",
        "Only the lower 16 bits of ses.job_id are read",
        &[Tap::In(|wire, mut packet| {
            packet.change("ses.job_id", |job| job & 0xffff);
            wire.pass(packet);
        })],
    ),
    fault(
        "cuts-message-offset",
        "Only the lower 16 bits of ses.message_offset are read",
        &[Tap::In(|wire, mut packet| {
            packet.change("ses.message_offset", |offset| offset & 0xffff);
            wire.pass(packet);
        })],
    ),
    fault(
        "negates-ack-offset",
        "ack_psn_offset is taken as the way from the PSN to the cumulative one, not the way from the cumulative one",
        &[Tap::Out(|wire, mut packet| {
            if packet.is_ack() {
                packet.change("pds.ack_psn_offset", u64::wrapping_neg);
            }
            wire.pass(packet);
        })],
    ),
];
