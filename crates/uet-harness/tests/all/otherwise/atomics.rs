//! Devices with other atomics.

use super::{Hears, Says, device, get, others, results, says_all, set, verdict};
use crate::around::{Changes, Device};
use serde_json::{Map, Value, json};
use uet_conformance::elements::kind;
use uet_conformance::{Dut, Options, Verdict, run};
use uet_control::{CallError, Op, Permission};
use uet_harness::dut::Embedded;
use uet_wire::Uet;
use uet_wire::ses::Ext;

/// Operands with their highest byte first in packets, and last in memory.
#[test]
fn its_operands_are_big_endian() {
    let hears: Hears = |device, wire| {
        let uet = Uet::parse_lax(&wire.bytes).0;
        let size = match uet.ext {
            Some(Ext::Atomic(ext)) => kind(ext.atomic_opcode(), ext.atomic_datatype()).size,
            _ => return true,
        };
        let start = wire.bytes.len() - uet.payload.len();
        if let Some(request) = uet.pds.and_then(|pds| pds.request()) {
            device.sizes.insert(request.psn().0, size);
        }
        wire.bytes[start..].chunks_mut(size).for_each(<[u8]>::reverse);
        true
    };
    let says: Says = |device, mut wire| {
        let uet = Uet::parse_lax(&wire.bytes).0;
        let psn = uet.pds.and_then(|pds| pds.ack()).and_then(|ack| ack.ack_psn());
        let size = psn.and_then(|psn| device.sizes.get(&psn.0)).copied();
        let start = wire.bytes.len() - uet.payload.len();
        if let Some(size) = size {
            wire.bytes[start..].chunks_mut(size).for_each(<[u8]>::reverse);
        }
        device.came.push_back(wire);
    };
    let mut device = device(hears, says);
    device.welcome.parameters.insert("operand_order".into(), json!("big"));
    let ids = [
        "atomic/sum",
        "atomic/fetch",
        "atomic/fetch-duplicate",
        "atomic/duplicate",
        "atomic/out-of-order",
        "clear/fetched-value",
        "rod/duplicates",
        "window/shuffled-duplicates",
    ];
    let result = results(&mut device, &ids);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

#[test]
fn its_swaps_count_both_operands() {
    let hears: Hears = |_, wire| {
        let swaps = matches!(Uet::parse_lax(&wire.bytes).0.ext, Some(Ext::CompareSwap(_)));
        if swaps && get(wire, "ses.request_length") == Some(32) {
            set(wire, "ses.request_length", 8);
            return true;
        }
        !swaps
    };
    let mut device = device(hears, says_all);
    device.welcome.parameters.insert("swap_length".into(), json!(32));
    let result = results(&mut device, &["compare-swap/equal"]);
    assert_eq!(others(&result, &[Verdict::Pass]), [""; 0]);
}

/// A device may limit the elements of an atomic. It states no limit, so its answer tells.
#[test]
fn it_takes_few_elements() {
    const MOST: usize = 512;
    // The NIC refuses half an element with the same return code.
    let hears: Hears = |_, wire| {
        let uet = Uet::parse_lax(&wire.bytes).0;
        let many = matches!(uet.ext, Some(Ext::Atomic(_))) && uet.payload.len() > MOST;
        if let Some(length) = get(wire, "ses.request_length").filter(|_| many) {
            wire.bytes.pop();
            set(wire, "ses.request_length", length - 1);
        }
        true
    };
    let (verdict, reason) = verdict("atomic/fetch-many", 1, hears, says_all);
    assert_eq!((verdict, &reason[..]), (Verdict::Skipped, "the device takes fewer than 128 elements"));
}

/// An atomic needs these permissions, not one of its own.
struct Needs(&'static [Permission]);

impl Changes for Needs {
    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        match op {
            Op::ExposeRegion(mut region) => {
                let permits = self.0.iter().all(|needed| region.permissions.contains(needed));
                region.permissions.retain(|has| *has != Permission::Atomic);
                region.permissions.extend(permits.then_some(Permission::Atomic));
                nic.ask(Op::ExposeRegion(region))
            }
            op => nic.ask(op),
        }
    }
}

/// The sources leave open which permissions an atomic needs.
#[test]
fn its_atomics_need_no_permission_of_their_own() {
    let choices: [&'static [Permission]; 2] = [&[Permission::Write], &[Permission::Read, Permission::Write]];
    for needed in choices {
        let ids = ["access/denied", "addressing/no-atomics"].map(String::from).to_vec();
        let result = run(&mut Device::new(Needs(needed)), &Options { ids, ..Options::default() }, |_| ());
        assert_eq!(others(&result, &[Verdict::Pass]), [""; 0], "{needed:?}");
    }
}
