//! Devices that send or take other packets, where the sources leave a choice.

use super::{
    Hears, Otherwise, Says, device, find, get, group, hears_all, is, is_control, others, passes, pdcid,
    results, says_all, set, verdict,
};
use crate::around::{Changes, Device};
use core::time::Duration;
use serde_json::{Map, Value, json};
use uet_conformance::{Dut, DutError, Verdict, Wire};
use uet_control::{CallError, Op};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_wire::pds::{AckCc, Control, Nack, Pds};
use uet_wire::registry::{AckRequest, CcType, CtlType, NackCode, Opcode, PdsType, ReturnCode};
use uet_wire::{Psn, Uet, UetBuf};

/// Passes on a packet of the NIC. One with this code has another value in the other field.
fn says_other(device: &mut Otherwise, mut wire: Wire, when: (&str, u8), other: (&str, u64)) {
    if is(&wire, when.0, when.1) {
        set(&mut wire, other.0, other.1);
    }
    device.came.push_back(wire);
}

#[test]
fn it_knows_no_credit() {
    let hears: Hears = |device, wire| {
        if !is_control(wire, CtlType::CREDIT) {
            return true;
        }
        let nack = Nack::build(NackCode::UNEXP_EVENT).dpdcid(pdcid(wire, "pds.spdcid")).done().unwrap();
        let bytes = UetBuf::new(nack).to_bytes();
        device.came.push_back(Wire::new(wire.dst, wire.src, wire.entropy, bytes));
        false
    };
    passes("control/credit", hears, says_all);
}

#[test]
fn it_opens_by_noop() {
    let says: Says = |device, mut wire| {
        if is(&wire, "pds.flags.syn", 1) {
            if device.held.is_none() {
                device.held = Some(Vec::new());
                let psn = Psn(get(&wire, "pds.psn").unwrap_or_default() as u32 - 1);
                let rod = Uet::parse_lax(&wire.bytes).0.pds.and_then(|pds| pds.request());
                let rod = rod.is_some_and(|request| request.prologue().kind() == PdsType::ROD_REQ);
                let noop = Control::build(CtlType::NOOP).ar(true).syn(true).isrod(rod).psn(psn);
                let bytes = UetBuf::new(noop.spdcid(pdcid(&wire, "pds.spdcid")).done().unwrap()).to_bytes();
                device.came.push_back(Wire::new(wire.src, wire.dst, wire.entropy, bytes));
            }
            // The NOOP has the Start_PSN, and is not cleared yet.
            for (field, change) in [("pds.psn_offset", 1), ("pds.clear_psn_offset", 0xffff)] {
                let value = get(&wire, field).unwrap_or_default();
                set(&mut wire, field, (value + change) & 0xffff);
            }
        }
        device.came.push_back(wire);
    };
    passes("control/no-early-probe", hears_all, says);
}

#[test]
fn it_names_a_context_in_unexp_event() {
    let says: Says = |device, wire| {
        says_other(device, wire, ("pds.nack_code", NackCode::UNEXP_EVENT.code()), ("pds.spdcid", 1))
    };
    passes("robustness/unknown-control", hears_all, says);
}

/// A base at a multiple of 64 is close enough to the requested one.
#[test]
fn its_bitmaps_are_aligned() {
    let says: Says = |device, mut wire| {
        if let (Some(cack), Some(offset), Some(bits)) =
            (get(&wire, "pds.cack_psn"), get(&wire, "pds.sack_psn_offset"), get(&wire, "pds.sack_bitmap"))
        {
            let base = (cack as u32).wrapping_add_signed((offset as u16 as i16).into());
            let down = base % 64;
            set(&mut wire, "pds.sack_psn_offset", (offset as u16).wrapping_sub(down as u16).into());
            set(&mut wire, "pds.sack_bitmap", bits << down);
        }
        device.came.push_back(wire);
    };
    for seed in 1..=64 {
        let (verdict, reason) = verdict("ack-request/probe-bitmap", seed, hears_all, says);
        assert_eq!(verdict, Verdict::Pass, "seed {seed}: {reason}");
    }
}

#[test]
fn it_knows_no_no_op() {
    let says: Says = |device, mut wire| {
        set(&mut wire, "ses.return_code", ReturnCode::UNSUPPORTED_OP.code().into());
        device.came.push_back(wire);
    };
    passes("errors/no-op", hears_all, says);
}

#[test]
fn its_first_token_is_0() {
    let says: Says = |device, wire| {
        let deferrable = ("ses.opcode", Opcode::UET_DEFERRABLE_SEND.code());
        says_other(device, wire, deferrable, ("ses.initiator_restart_token", 0));
    };
    passes("deferrable/first-attempt", hears_all, says);
}

#[test]
fn it_takes_no_start_from_others() {
    let hears: Hears = |_, wire| !is(wire, "pds.nack_code", NackCode::NEW_START_PSN.code());
    let (verdict, reason) = verdict("source-nack/new-start", 1, hears, says_all);
    assert_eq!(verdict, Verdict::Skipped, "{reason}");
}

#[test]
fn it_opens_no_context_before_the_last_has_ended() {
    let hears: Hears = |device, wire| {
        if is(wire, "pds.type", PdsType::ACK.code()) {
            device.came.extend(device.held.take().into_iter().flatten());
        }
        true
    };
    let says: Says = |device, wire| {
        if is_control(&wire, CtlType::CLOSE_COMMAND) {
            device.held.get_or_insert_default();
        }
        match &mut device.held {
            Some(held) if is(&wire, "pds.flags.syn", 1) => held.push(wire),
            _ => device.came.push_back(wire),
        }
    };
    passes("source-close/next-context", hears, says);
}

/// The sources do not order the response to a rendezvous send and the read of its rest.
#[test]
fn it_answers_a_rendezvous_after_its_read() {
    let hears: Hears = |device, wire| {
        if find(wire, "ses.read_request_message_id").is_some() {
            device.came.extend(device.held.take().into_iter().flatten());
            device.held = None;
        }
        if is(wire, "ses.opcode", Opcode::UET_RENDEZVOUS_SEND.code()) {
            device.held = Some(Vec::new());
        }
        true
    };
    let says: Says = |device, wire| match &mut device.held {
        Some(held) if find(&wire, "pds.cack_psn").is_some() => held.push(wire),
        _ => device.came.push_back(wire),
    };
    let ids = ["rendezvous/reads-rest", "rendezvous/completion", "rendezvous/no-eager-data"];
    let result = results(&mut device(hears, says), &ids);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

#[test]
fn it_asks_for_the_close_by_its_acks() {
    let says: Says = |device, mut wire| {
        if is_control(&wire, CtlType::CLOSE_REQUEST) {
            let last = device.held.as_mut().and_then(Vec::pop);
            wire = last.unwrap_or(wire);
            set(&mut wire, "pds.flags.req", AckRequest::REQ_CLOSE.code().into());
        } else if find(&wire, "pds.cack_psn").is_some() {
            device.held = Some(vec![wire.clone()]);
        }
        device.came.push_back(wire);
    };
    let (verdict, reason) = verdict("encoding/close-request", 1, hears_all, says);
    assert_eq!((verdict, &reason[..]), (Verdict::Skipped, "the device asks for the close by REQ_CLOSE"));
}

/// The sources name two return codes for a disabled index.
#[test]
fn it_answers_disabled_indices_either_way() {
    let either: [Says; 2] = [
        |device, wire| says_code(device, wire, ReturnCode::DISABLED),
        |device, wire| says_code(device, wire, ReturnCode::DISABLED_GEN),
    ];
    for says in either {
        for id in ["addressing/disabled", "addressing/disabled-no-receive"] {
            passes(id, hears_all, says);
        }
    }
}

/// Replaces the return code of a disabled index.
fn says_code(device: &mut Otherwise, mut wire: Wire, code: ReturnCode) {
    let disabled = [ReturnCode::DISABLED, ReturnCode::DISABLED_GEN];
    if disabled.iter().any(|disabled| is(&wire, "ses.return_code", disabled.code())) {
        set(&mut wire, "ses.return_code", code.code().into());
    }
    device.came.push_back(wire);
}

#[test]
fn it_always_sends_congestion_state() {
    let says: Says = |device, mut wire| {
        let longer = match Uet::parse_lax(&wire.bytes).0.pds {
            Some(Pds::Ack(ack)) => {
                let long = AckCc::build()
                    .ack(|a| a.copy_from(&ack.copied()).prologue(|prologue| prologue.kind(PdsType::ACK_CC)))
                    .cc_type(CcType::CREDIT)
                    .sack(|sack| sack.mpr(8).sack_psn_offset(1))
                    .done()
                    .unwrap();
                Some([long.bytes(), &wire.bytes[ack.bytes().len()..]].concat())
            }
            _ => None,
        };
        wire.bytes = longer.unwrap_or(wire.bytes);
        device.came.push_back(wire);
    };
    passes("ack/type", hears_all, says);
}

/// Section 3.5.20.3.2 lets it drop a retransmission outside the window.
#[test]
fn it_drops_a_retransmission_outside_the_window() {
    let says: Says = |device, wire| {
        let refuses = is(&wire, "pds.nack_code", NackCode::PSN_OOR_WINDOW.code());
        if !(refuses && is(&wire, "pds.flags.retx", 1)) {
            device.came.push_back(wire);
        }
    };
    for rule in ["window/below", "window/position", "nack/retx", "reply-fields/nack-flags"] {
        passes(rule, hears_all, says);
    }
}

/// Its read data repeats the message id of the request.
#[test]
fn it_names_read_data_as_the_request() {
    let says: Says = |device, mut wire| {
        if let Some(id) = get(&wire, "ses.read_request_message_id") {
            set(&mut wire, "ses.message_id", id);
        }
        device.came.push_back(wire);
    };
    let result = group(&mut device(hears_all, says), "read");
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
}

/// Public sources leave open what a token of 0 in DEFERRABLE_RTR means; the reference provider sends it.
#[test]
fn it_names_no_buffer_in_its_rtr() {
    let says: Says = |device, mut wire| {
        if is(&wire, "ses.opcode", Opcode::UET_DEFERRABLE_RTR.code()) {
            set(&mut wire, "ses.target_restart_token", 0);
        }
        device.came.push_back(wire);
    };
    passes("deferrable/rtr", hears_all, says);
    let result = group(&mut device(hears_all, says), "deferrable");
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
}

/// Section 3.4.8.3 lets it refuse delivery complete.
#[test]
fn it_does_not_support_delivery_complete() {
    let hears: Hears = |device, wire| {
        let asked = is(wire, "ses.dc", 1);
        if let Some(psn) = get(wire, "pds.psn").filter(|_| asked) {
            device.sizes.insert(psn as u32, 0);
        }
        true
    };
    let says: Says = |device, mut wire| {
        let names = match Uet::parse_lax(&wire.bytes).0.pds {
            Some(Pds::Ack(ack)) => ack.ack_psn(),
            Some(Pds::AckCc(ack)) => ack.ack().ack_psn(),
            _ => None,
        };
        if names.is_some_and(|psn| device.sizes.contains_key(&psn.0)) {
            set(&mut wire, "ses.return_code", ReturnCode::UNSUPPORTED_OP.code().into());
        }
        device.came.push_back(wire);
    };
    for rule in ["write/delivery-complete", "message-end/delivery-complete"] {
        let (verdict, reason) = verdict(rule, 1, hears, says);
        assert_eq!(verdict, Verdict::Skipped, "{rule}: {reason}");
    }
}

/// With Enb_ACK_Per_Pkt it requests ACKs as a source, and acknowledges as before as a receiver.
struct RequestsEach;

impl Changes for RequestsEach {
    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        match &op {
            Op::Configure(configure) if configure.parameters.contains_key("enb_ack_per_pkt") => {
                Ok(json!({"taken": ["enb_ack_per_pkt"]}).as_object().unwrap().clone())
            }
            _ => nic.ask(op),
        }
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        let mut received = nic.receive(until)?;
        if let Some(wire) = received.as_mut() {
            set(wire, "pds.flags.ar", 1);
        }
        Ok(received)
    }
}

#[test]
fn its_source_requests_an_ack_of_each_packet() {
    let result = results(&mut Device::new(RequestsEach), &["ack/each-packet"]);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

/// The codes that public sources name for an access that its region does not permit.
#[test]
fn it_denies_with_each_code() {
    for code in [ReturnCode::PERM_VIOLATION, ReturnCode::AT_PERM, ReturnCode::OP_VIOLATION] {
        let mut config = Config::default();
        config.ses.denied = code;
        let mut nic = Embedded::new(config).unwrap();
        let result = results(
            &mut nic,
            &[
                "access/denied",
                "rudi/denied",
                "addressing/not-writable",
                "addressing/not-readable",
                "addressing/no-atomics",
            ],
        );
        assert_eq!(others(&result, &[Verdict::Pass]), [""; 0], "{code}");
    }
}
