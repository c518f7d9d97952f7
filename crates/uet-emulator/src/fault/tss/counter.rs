//! Faults in the counters of packets.

use super::{domain_of, name, next, seal};
use crate::fault::fields::Kinds;
use crate::fault::{Fault, fault};
use uet_model::pds::SealError;
use uet_wire::catalogue::*;
use uet_wire::registry::PdsType;

pub(in crate::fault) const FAULTS: &[Fault] = &[
    fault(
        "retransmits-with-old-counter",
        "A retransmission has the counter of the lost packet",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let (context, psn) = name(&packet);
            if !packet.is_request() {
                return right.seal(packet);
            }
            if let Some(counter) = right.notes.numbers.get(&(context, psn)).copied() {
                return right.seal_at(packet, counter);
            }
            let sealed = right.seal(packet)?;
            let counter = sealed.1.map_or(0, |association| association.counter);
            right.notes.numbers.insert((context, psn), counter);
            Ok(sealed)
        })],
    ),
    fault(
        "resends-old-ciphertext",
        "The NIC keeps sealed requests and sends them again as they are",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let place = name(&packet);
            if !packet.is_request() {
                return right.seal(packet);
            }
            if let Some(old) = right.notes.packets.get(&place) {
                return Ok((old.clone(), None));
            }
            let sealed = right.seal(packet)?;
            if right.notes.packets.len() >= 1024 {
                right.notes.packets.pop_first();
            }
            right.notes.packets.insert(place, sealed.0.clone());
            Ok(sealed)
        })],
    ),
    fault(
        "counts-per-context",
        "The packets of each context have a counter of their own",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let (context, _) = name(&packet);
            let counter = next(right, context, 1 << 40);
            right.seal_at(packet, counter)
        })],
    ),
    fault(
        "counts-acks-apart",
        "ACKs have a counter of their own",
        TSS_CTR_001,
        &[seal(|right, packet| match packet.is_ack() {
            true => {
                let counter = next(right, domain_of(&packet), 2 << 40);
                right.seal_at(packet, counter)
            }
            false => right.seal(packet),
        })],
    ),
    fault(
        "counts-control-apart",
        "NACKs and control packets have a counter of their own",
        TSS_CTR_001,
        &[seal(|right, packet| match packet.is_nack() || packet.kind() == PdsType::CP {
            true => {
                let counter = next(right, domain_of(&packet), 3 << 40);
                right.seal_at(packet, counter)
            }
            false => right.seal(packet),
        })],
    ),
    fault(
        "counts-anew-after-install",
        "Each installation of keys starts the counter anew",
        TSS_CTR_001,
        &[seal(|right, packet| {
            let counter = next(right, domain_of(&packet), 5 << 40 | right.notes.installed);
            right.seal_at(packet, counter)
        })],
    ),
    fault(
        "counter-wraps",
        "The counter starts anew at its limit",
        TSS_CTR_002,
        &[seal(|right, packet| match right.seal(packet.clone()) {
            Err(SealError::CounterExhausted) => {
                let counter = next(right, domain_of(&packet), 4 << 40);
                right.seal_at(packet, counter)
            }
            other => other,
        })],
    ),
];
