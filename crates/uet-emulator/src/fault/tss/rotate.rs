//! Faults in epochs, association numbers and the binding of contexts.

use super::{HIGHEST, install, is_secured, name, open, seal};
use crate::fault::fields::Kinds;
use crate::fault::guard::{Opened, Right};
use crate::fault::recipe::Recipe;
use crate::fault::{Fault, fault};
use uet_control::{Secret, Secrets, SecureDomain};
use uet_model::Packet;
use uet_model::pds::{Association, OpenError, SecureContext};
use uet_wire::Uet;
use uet_wire::catalogue::*;

/// Opens a packet of an empty slot under this key.
fn under_key(right: &mut Right<'_>, packet: Packet, key: fn(&SecureDomain) -> Option<Secrets>) -> Opened {
    match right.open(packet.clone()) {
        Err(OpenError::NoKey) => {
            let opened = right.recipe(&packet).and_then(|mut recipe| {
                let slot = if an(&packet) { "1" } else { "0" };
                recipe.domain.keys.insert(slot.into(), key(&recipe.domain)?);
                right.open_as(&packet, &recipe)
            });
            opened.ok_or(OpenError::NoKey)
        }
        other => other,
    }
}

/// Opens a packet under a key that was installed before.
fn under_old_key(right: &mut Right<'_>, packet: Packet) -> Opened {
    let opened = right.open(packet.clone());
    if !matches!(opened, Err(OpenError::NoKey | OpenError::NotAuthentic)) {
        return opened;
    }
    let Some(recipe) = right.recipe(&packet) else { return opened };
    let old = right.notes.domains.iter().filter(|old| old.sdi == recipe.domain.sdi);
    let old = old.map(|old| Recipe { domain: old.clone(), ..recipe.clone() });
    old.filter_map(|recipe| right.open_as(&packet, &recipe)).next().map_or(opened, Ok)
}

fn epoch(packet: &Packet) -> Option<u16> {
    let (uet, _) = Uet::parse_lax(&packet.head);
    uet.tss.map(|tss| tss.tsc().epoch())
}

fn an(packet: &Packet) -> bool {
    packet.head.first().is_some_and(|first| first & 1 != 0)
}

pub(in crate::fault) const FAULTS: &[Fault] = &[
    fault(
        "compares-epochs-as-numbers",
        "The NIC takes an epoch with a higher number for a newer one, over the wrap too",
        TSS_EPOCH_001,
        &[open(|right, packet| match right.open(packet.clone()) {
            Err(OpenError::Late) => {
                let recipe = right.recipe(&packet);
                let recipe = recipe.filter(|recipe| epoch(&packet) > Some(recipe.domain.epoch));
                let opened = recipe.and_then(|recipe| right.open_as(&packet, &recipe));
                opened.ok_or(OpenError::Late)
            }
            other => other,
        })],
    ),
    fault(
        "drops-recent-epochs",
        "The NIC drops packets of every epoch but the current one",
        TSS_EPOCH_001,
        &[open(|right, packet| {
            let current = right.domain(&packet).map(|domain| domain.epoch);
            match is_secured(&packet) && current != epoch(&packet) {
                true => Err(OpenError::Late),
                false => right.open(packet),
            }
        })],
    ),
    fault(
        "sends-under-epoch-zero",
        "The NIC sends every packet under epoch 0",
        TSS_EPOCH_002,
        &[install(|domain| domain.epoch = 0)],
    ),
    fault(
        "sends-under-first-key",
        "The NIC sends every packet under the key of association number 0",
        TSS_AN_002,
        &[install(|domain| {
            if domain.keys.contains_key("0") {
                domain.an = 0;
            }
        })],
    ),
    fault(
        "retransmits-under-old-key",
        "Retransmissions use the key under which the packet was sent first",
        TSS_AN_002,
        &[seal(|right, packet| {
            if !packet.is_request() {
                return right.seal(packet);
            }
            let (place, an) = (name(&packet), right.current_an(&packet));
            let first = *right.notes.numbers.entry(place).or_insert(an.into()) != 0;
            right.member(&packet, |member| member.current_an = first);
            let sealed = right.seal(packet.clone());
            right.member(&packet, |member| member.current_an = an);
            sealed
        })],
    ),
    fault(
        "opens-only-current-key",
        "The NIC opens only packets under the key with which it sends",
        TSS_AN_001,
        &[open(|right, packet| {
            let current = right.domain(&packet).map(|domain| domain.an == 1);
            match is_secured(&packet) && current != Some(an(&packet)) {
                true => Err(OpenError::NoKey),
                false => right.open(packet),
            }
        })],
    ),
    fault(
        "keeps-removed-keys",
        "The NIC opens packets under keys that were removed or replaced",
        TSS_AN_003,
        &[open(under_old_key)],
    ),
    fault(
        "opens-empty-slot-under-other-key",
        "The NIC opens a packet under its other key if the named slot has none",
        TSS_AN_003,
        &[open(|right, packet| under_key(right, packet, |domain| domain.keys.values().next().cloned()))],
    ),
    fault(
        "opens-empty-slot-under-zeros",
        "The NIC takes a slot without a key for one with a key of zeros",
        TSS_AN_003,
        &[open(|right, packet| under_key(right, packet, |_| Some(Secrets::One(Secret("00".repeat(32))))))],
    ),
    fault(
        "drops-late-counters",
        "The NIC drops packets whose counter is below the highest that has come",
        TSS_KEY_003,
        &[open(|right, packet| {
            let opened = right.open(packet)?;
            let Some(association) = opened.1 else { return Ok(opened) };
            let source = u64::from(association.context.sdi) << 1 | u64::from(association.an);
            let place = (HIGHEST | source, association.epoch.into());
            let highest = right.notes.numbers.entry(place).or_default();
            if association.counter < *highest {
                return Err(OpenError::Late);
            }
            *highest = association.counter;
            Ok(opened)
        })],
    ),
    fault(
        "binds-no-source",
        "Contexts accept authentic packets of every source identifier",
        TSS_BIND_001,
        &[open(|right, packet| {
            let (inner, association) = right.open(packet)?;
            let first = association.map(|association| {
                let key = (u64::from(association.context.sdi), 5 << 40);
                let own = u64::from(association.context.ssi.unwrap_or(0));
                let first = *right.notes.numbers.entry(key).or_insert(own) as u32;
                let ssi = association.context.ssi.map(|_| first);
                let context = SecureContext { ssi, ..association.context };
                Association { context, ..association }
            });
            Ok((inner, first))
        })],
    ),
    fault(
        "binds-no-domain",
        "Contexts accept authentic packets of every domain",
        TSS_BIND_001,
        &[open(|right, packet| {
            let (inner, association) = right.open(packet)?;
            let sdi = right.security.domains.first().map(|domain| domain.sdi);
            let first = association.map(|association| {
                let sdi = sdi.unwrap_or(association.context.sdi);
                let context = SecureContext { sdi, ..association.context };
                Association { context, ..association }
            });
            Ok((inner, first))
        })],
    ),
];
