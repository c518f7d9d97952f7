//! Faults in keys, IVs, authenticated data and the security header.

use super::{install, open, recipe};
use crate::fault::fields::Kinds;
use crate::fault::guard::{Opened, Right};
use crate::fault::recipe::Recipe;
use crate::fault::{Fault, fault};
use uet_control::{KeyMode, SecureDomain};
use uet_model::pds::{Association, OpenError, SecureContext};
use uet_model::{Packet, Priority};
use uet_wire::catalogue::*;
use uet_wire::tss::{ICV, OuterLayer};

/// Drops a secured request whose outer headers have changed on their way.
fn unchanged(right: &mut Right<'_>, packet: Packet, is: fn(&Packet) -> bool) -> Opened {
    let is_unchanged = is(&packet);
    match right.open(packet)? {
        (inner, Some(_)) if !is_unchanged && inner.is_request() => Err(OpenError::NotAuthentic),
        opened => Ok(opened),
    }
}

/// The bytes that protection without a source identifier adds.
const ADDED: usize = 12 + ICV;

/// Drops a packet whose payload leaves no room for protection in a whole MTU.
fn below_mtu(right: &mut Right<'_>, packet: Packet) -> Opened {
    let (inner, association) = right.open(packet)?;
    let bytes = inner.payload.len();
    match bytes >= 1024 && (bytes + ADDED).next_power_of_two() != bytes.next_power_of_two() {
        true => Err(OpenError::Malformed),
        false => Ok((inner, association)),
    }
}

pub(in crate::fault) const FAULTS: &[Fault] = &[
    fault(
        "derives-with-long-length",
        "The derivation of keys takes its length in four bytes instead of two",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.length = vec![0, 0, 1, 0x60])],
    ),
    fault(
        "derives-without-separator",
        "The derivation of keys lacks the zero between label and context",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.label.truncate(2))],
    ),
    fault(
        "derives-with-swapped-epoch",
        "The derivation of keys takes the epoch with its low byte first",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.epoch.reverse())],
    ),
    fault(
        "derives-without-rekey",
        "The derivation of keys always takes 0 as the rekey index",
        TSS_KEY_001,
        &[recipe(|recipe| recipe.index = 0)],
    ),
    fault(
        "derives-for-current-epoch",
        "The receiver derives keys with its own epoch instead of the one in the packet",
        TSS_KEY_003,
        &[recipe(|recipe| {
            if !recipe.leaving {
                recipe.epoch = recipe.domain.epoch.to_be_bytes();
            }
        })],
    ),
    fault(
        "server-derives-for-sender",
        "A server derives the key of its own packets from its own identity",
        TSS_KEY_002,
        &[recipe(|recipe| {
            if recipe.domain.mode == KeyMode::Server && recipe.leaving {
                recipe.identity = recipe.outer.src;
            }
        })],
    ),
    fault(
        "masks-only-the-counter",
        "The mask changes only the last eight bytes of the IV",
        TSS_IV_001,
        &[recipe(|recipe| recipe.masked_from = 4)],
    ),
    fault(
        "iv-without-epoch",
        "The IV has zeros instead of the epoch",
        TSS_IV_001,
        &[recipe(|recipe| recipe.iv[4..6].fill(0))],
    ),
    fault(
        "iv-of-short-counter",
        "The IV takes only the lower 32 bits of the counter",
        TSS_IV_001,
        &[recipe(|recipe| recipe.iv[6..8].fill(0))],
    ),
    fault(
        "authenticates-length-without-icv",
        "The authenticated UDP length does not include the ICV",
        TSS_AAD_001,
        &[recipe(|recipe| {
            if let OuterLayer::Udp { length, .. } = &mut recipe.outer.layer {
                *length = length.wrapping_sub(ICV as u16);
            }
        })],
    ),
    fault(
        "ignores-confidentiality-offset",
        "The NIC encrypts from the end of the security header on, whatever the domain says",
        TSS_AAD_001,
        &[recipe(|recipe| recipe.offset = recipe.header.len())],
    ),
    fault(
        "authenticates-class",
        "The NIC drops a secured request whose DSCP has changed on its way",
        TSS_AAD_001,
        &[open(|right, packet| unchanged(right, packet, |packet| packet.priority != Priority::High))],
    ),
    fault(
        "authenticates-mark",
        "The NIC drops a secured request that a switch has marked",
        TSS_AAD_001,
        &[open(|right, packet| unchanged(right, packet, |packet| !packet.marked))],
    ),
    fault(
        "authenticates-ttl",
        "The NIC drops a secured request whose TTL has changed on its way",
        TSS_AAD_001,
        &[open(|right, packet| unchanged(right, packet, |packet| packet.ttl == Packet::TTL))],
    ),
    fault(
        "authenticates-udp-checksum",
        "The NIC drops a secured request whose UDP checksum is not 0",
        TSS_AAD_001,
        &[open(|right, packet| unchanged(right, packet, |packet| packet.udp_checksum == 0))],
    ),
    fault(
        "authenticates-reserved-bit-as-zero",
        "The NIC authenticates the security header with a reserved bit of 0",
        TSS_HDR_002,
        &[recipe(|recipe| recipe.authentic[0] &= !2)],
    ),
    fault(
        "sets-reserved-security-bit",
        "The NIC sets the reserved bit of the security header",
        TSS_HDR_003,
        &[recipe(|recipe| {
            if recipe.leaving {
                (recipe.header[0], recipe.authentic[0]) = (recipe.header[0] | 2, recipe.authentic[0] | 2);
            }
        })],
    ),
    fault(
        "sends-wrong-source-identifier",
        "The NIC sends packets under another source identifier than its own",
        TSS_HDR_001,
        &[install(|domain| domain.own_ssi = domain.own_ssi.map(|ssi| ssi ^ 0x10))],
    ),
    fault(
        "accepts-missing-source-identifier",
        "The NIC accepts packets without a source identifier in a domain that uses them",
        TSS_HDR_004,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::Source) => {
                let recipe = right.recipe(&packet).and_then(|recipe| {
                    let domain = SecureDomain { ssi: false, ..recipe.domain.clone() };
                    Recipe::right(&domain, recipe.outer, &packet.to_wire(), false)
                });
                let opened = recipe.and_then(|recipe| right.open_as(&packet, &recipe));
                let (inner, association) = opened.ok_or(OpenError::Source)?;
                // The source is the one that has come before.
                let known = |association: Association| {
                    let key = (u64::from(association.context.sdi), 7 << 40);
                    let ssi = right.notes.numbers.get(&key).map(|ssi| *ssi as u32);
                    Association { context: SecureContext { ssi, ..association.context }, ..association }
                };
                Ok((inner, association.map(known)))
            }
            Ok((inner, Some(association))) => {
                let key = (u64::from(association.context.sdi), 7 << 40);
                right.notes.numbers.insert(key, association.context.ssi.unwrap_or(0).into());
                Ok((inner, Some(association)))
            }
            other => other,
        })],
    ),
    fault(
        "drops-full-packets",
        "The NIC counts security header and ICV in the MTU, and drops secured packets that fill it",
        TSS_LEN_001,
        &[open(below_mtu)],
    ),
];
