//! Devices that state what they lack, or what they do otherwise.

use super::{Hears, Says, device, get, hears_all, is, is_control, others, pdcid, results, says_all, set};
use serde_json::json;
use uet_conformance::{Verdict, Wire};
use uet_wire::pds::Nack;
use uet_wire::registry::{CtlType, NackCode, Opcode, PdsType, ReturnCode};
use uet_wire::ses::Ses;
use uet_wire::{Psn, Uet, UetBuf};

#[test]
fn it_posts_nothing() {
    let mut device = device(hears_all, says_all);
    device.welcome.capabilities = vec!["rud".into()];
    let result = results(&mut device, &["source-encoding/operations"]);
    assert_eq!(result.rules[0].verdict, Verdict::Skipped, "{}", result.rules[0].reason);
}

/// Rules of packet delivery run over the operations and the mode that a device has.
#[test]
fn it_has_sends_by_rod_only() {
    passes_with(&["rod", "send", "receive", "close"], 200);
}

#[test]
fn it_has_sends_by_rud_only() {
    passes_with(&["rud", "send", "receive"], 200);
}

/// Runs the suite on a device with these capabilities alone. No rule fails, and at least so many pass.
fn passes_with(capabilities: &[&str], least: usize) {
    let hears: Hears = |_, wire| {
        let head = Uet::parse_lax(&wire.bytes).0.ses.and_then(|ses| ses.request_head());
        head.is_none_or(|head| head.opcode() != Opcode::UET_WRITE)
    };
    let mut device = device(hears, says_all);
    device.welcome.capabilities = capabilities.iter().map(ToString::to_string).collect();
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), Vec::<String>::new());
    let passed = result.count(Verdict::Pass);
    assert!(passed >= least, "{passed} rules passed");
}

/// A device with a timer for tail losses retransmits before RTO_Init_Time.
#[test]
fn it_retransmits_lost_tails_early() {
    let ids = ["retransmit/rto-init-time", "retransmit/back-off", "retransmit-timer/schedule"];
    let mut device = device(hears_all, says_all);
    // The NIC retransmits after a quarter of that.
    device.welcome.parameters.insert("rto_init_time".into(), json!(400_000));
    let result = results(&mut device, &ids);
    assert_eq!(result.count(Verdict::Fail), 3, "{:?}", others(&result, &[]));
    device.welcome.parameters.insert("tail_loss_time".into(), json!(100_000));
    let result = results(&mut device, &ids);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), Vec::<String>::new());
    assert_eq!((result.count(Verdict::Pass), result.count(Verdict::Skipped)), (1, 2));
}

/// A device may disable an index out of buffers for ordered contexts only.
#[test]
fn it_disables_no_index_for_unordered_contexts() {
    let says: Says = |device, mut wire| {
        let ordered = device.held.is_none();
        if ordered && get(&wire, "ses.return_code") == Some(ReturnCode::DISABLED_GEN.code().into()) {
            set(&mut wire, "ses.return_code", ReturnCode::NO_MATCH.code().into());
        }
        device.came.push_back(wire);
    };
    // An ordered request arrives before any answer.
    let hears: Hears = |device, wire| {
        if is(wire, "pds.type", PdsType::ROD_REQ.code()) {
            device.held = Some(Vec::new());
        }
        true
    };
    let result = results(&mut device(hears, says), &["addressing/no-buffers"]);
    assert_eq!(others(&result, &[Verdict::Pass]), Vec::<String>::new());
}

/// Without capability `ecn`, no rule asks for an answer to a mark.
#[test]
fn it_sees_no_marks() {
    let mut device = device(hears_all, says_all);
    device.welcome.capabilities.retain(|name| name != "ecn");
    let ids = ["rudi/mark", "ack/mark", "ack/marked-at-once", "nack/mark"];
    let result = results(&mut device, &ids);
    assert_eq!((result.rules.len(), others(&result, &[Verdict::Skipped])), (4, vec![]));
}

/// A device that does not support some control packets says so, and the rest of the suite still passes.
#[test]
fn it_knows_no_optional_control_packet() {
    let hears: Hears = |device, wire| {
        let kinds = [CtlType::NOOP, CtlType::PROBE, CtlType::CLEAR_REQUEST];
        if !kinds.iter().any(|kind| is_control(wire, *kind)) {
            return true;
        }
        let nack = Nack::build(NackCode::UNEXP_EVENT)
            .nack_psn(Psn(get(wire, "pds.psn").unwrap_or_default() as u32))
            .dpdcid(pdcid(wire, "pds.spdcid"))
            .done()
            .unwrap();
        let bytes = UetBuf::new(nack).to_bytes();
        device.came.push_back(Wire::new(wire.dst, wire.src, wire.entropy, bytes));
        false
    };
    let ids = [
        "ack/control",
        "ack-request/probe",
        "ack-request/probe-bitmap",
        "control/noop",
        "control/retransmitted-noop",
        "control/noop-above-gap",
        "control/noop-out-of-order",
        "control/ack-request-received",
        "control/probe",
        "control/credit",
        "control/reserved-type",
        "control/other-address",
        "crc/damaged-control",
        "encoding/ack-of-probe",
        "encoding/ack-of-control",
        "path/control-packet",
        "robustness/reserved-bits-control",
        "rod/noop-in-order",
        "source-clear/clear-request",
        "source-clear/early-clear-request",
    ];
    let result = results(&mut device(hears, says_all), &ids);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
}

/// A device may choose its memory keys. Rules that need a certain key are skipped.
#[test]
fn it_chooses_memory_keys() {
    let mut device = device(hears_all, says_all);
    device.changes.chosen = Some(0x600d_0000);
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
    let skipped = result.count(Verdict::Skipped);
    assert!((1..30).contains(&skipped), "{skipped} were skipped");
}

/// A device that drops what it does not support states it.
#[test]
fn it_states_what_it_drops() {
    let hears: Hears = |_, wire| {
        let short = matches!(Uet::parse_lax(&wire.bytes).0.ses, Some(Ses::Medium(_) | Ses::Small(_)));
        !short && !is_control(wire, CtlType::NOOP) && !is_control(wire, CtlType::PROBE)
    };
    let mut device = device(hears, says_all);
    let stated = &mut device.welcome.parameters;
    stated.insert("unsupported_control".into(), json!(["NOOP", "PROBE"]));
    stated.insert("headers".into(), json!("standard"));
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
    assert!(result.count(Verdict::Skipped) < 150, "{} were skipped", result.count(Verdict::Skipped));
}

#[test]
fn it_tells_each_completion_once() {
    let mut device = device(hears_all, says_all);
    device.changes.told = Some(Vec::new());
    let result = results(&mut device, &[]);
    assert_eq!(others(&result, &[Verdict::Pass, Verdict::Skipped]), [""; 0]);
}
