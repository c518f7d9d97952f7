//! The ten control packets, valid and invalid.

use super::parts::{INITIATOR, TARGET, built};
use crate::case::{Case, Family};
use uet_wire::pds::{Control, ControlMut};
use uet_wire::registry::CtlType;
use uet_wire::{FrameBuilder, Psn, PsnOffset};

fn to_target(kind: CtlType) -> ControlMut {
    Control::build(kind).spdcid(INITIATOR).dpdcid(TARGET)
}

fn to_initiator(kind: CtlType) -> ControlMut {
    Control::build(kind).spdcid(TARGET).dpdcid(INITIATOR)
}

fn opens(kind: CtlType, isrod: bool) -> ControlMut {
    let opening = Control::build(kind).isrod(isrod).ar(true).syn(true).psn(Psn(333)).spdcid(INITIATOR);
    opening.pdc_info(0).psn_offset(PsnOffset::ZERO)
}

pub(super) fn family() -> Family {
    let mut family = Family::new("control", "wire-format: control packets");
    let mut add = |name: &str, what: &str, control: ControlMut| {
        family.add(Case::uet(name, what, FrameBuilder::new(built(control.done()))));
    };
    use CtlType as C;
    add("noop", "keeps a context alive; takes a PSN", to_target(C::NOOP).ar(true).psn(Psn(334)));
    add("noop-opens-rud", "opens a RUD context", opens(C::NOOP, false));
    add("noop-opens-rod", "opens a ROD context", opens(C::NOOP, true));
    add("noop-retransmitted", "the same PSN again", to_target(C::NOOP).retx(true).ar(true).psn(Psn(334)));
    add(
        "noop-with-payload",
        "a NOOP gives the payload no meaning",
        to_target(C::NOOP).psn(Psn(334)).payload(1),
    );
    add("ack-request", "asks for the ACK of PSN 333", to_target(C::ACK_REQUEST).psn(Psn(333)));
    add(
        "ack-request-with-message",
        "asks for the ACK of PSN 333, of message 7",
        to_target(C::ACK_REQUEST).psn(Psn(333)).payload(7),
    );
    add("clear-command", "clears up to PSN 333", to_target(C::CLEAR_COMMAND).payload(333));
    add("clear-command-with-ar", "never acknowledged, yet ar is set", to_target(C::CLEAR_COMMAND).ar(true));
    add(
        "clear-command-with-psn",
        "takes no PSN, yet has one",
        to_target(C::CLEAR_COMMAND).psn(Psn(9)).payload(8),
    );
    add("clear-request", "asks for a clear up to PSN 333", to_initiator(C::CLEAR_REQUEST).payload(333));
    add("close-command", "closes; takes PSN 334", to_target(C::CLOSE_COMMAND).ar(true).psn(Psn(334)));
    add(
        "close-command-without-ar",
        "ar is 0, yet it must be acknowledged",
        to_target(C::CLOSE_COMMAND).psn(Psn(334)),
    );
    add("close-request", "asks the initiator to close", to_initiator(C::CLOSE_REQUEST).ar(true).psn(Psn(48)));
    add(
        "probe",
        "asks for a SACK from PSN 333 on; the opaque value comes back in the ACK",
        to_target(C::PROBE).probe_opaque(0xcafe).payload(333),
    );
    add("probe-opaque-highest", "all bits of the opaque value", to_target(C::PROBE).probe_opaque(0xffff));
    add("probe-with-syn", "a PROBE opens no context", {
        let probe = Control::build(C::PROBE).syn(true).spdcid(INITIATOR);
        probe.pdc_info(0).psn_offset(PsnOffset::ZERO)
    });
    add("credit", "grants 16,384 bytes: 64 units of 256", to_initiator(C::CREDIT).payload(64));
    add("credit-highest", "the highest counter, before it wraps", to_initiator(C::CREDIT).payload(0xff_ffff));
    add("credit-too-wide", "bits above the 24 of a credit", to_initiator(C::CREDIT).payload(0x0100_0040));
    add(
        "credit-request",
        "context 0xa1 wants 128 units: ccc_id in the first byte, credit_target in the others",
        to_target(C::CREDIT_REQUEST).payload(0xa100_0080),
    );
    add(
        "negotiation",
        "offers capability bit 0",
        to_target(C::NEGOTIATION).ar(true).psn(Psn(334)).payload(1),
    );
    add("negotiation-opens-rod", "opens a ROD context", opens(C::NEGOTIATION, true).payload(1));
    add("isrod-in-close", "only what may open a context says its mode", {
        to_target(C::CLOSE_COMMAND).isrod(true).ar(true).psn(Psn(334))
    });
    add("without-pdcids", "both identifiers are 0, which is reserved", Control::build(C::NOOP).psn(Psn(1)));
    let noop = built(to_target(C::NOOP).psn(Psn(334)).done());
    let what = "nothing follows a control packet: four bytes behind it are payload, and flagged";
    family.add(Case::uet("noop-followed", what, FrameBuilder::new(noop).payload(&[1, 2, 3, 4])));
    family
}
