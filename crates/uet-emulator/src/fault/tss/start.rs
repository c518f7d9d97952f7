//! Faults in Start_PSNs.

use super::{ACKED, MOVED, PENDING, STARTS, domain_of, name, next, open, seal};
use crate::fault::fields::{Fields, Kinds};
use crate::fault::guard::{Hooks, Opened, Right, Sealed};
use crate::fault::tap::Tap;
use crate::fault::{Fault, fault, forge, seen};
use core::net::IpAddr;
use uet_model::pds::OpenError;
use uet_model::{Head, Packet};
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::Nack;
use uet_wire::registry::NackCode;

fn is_new_start(packet: &Packet) -> bool {
    packet.is_nack() && packet.is("pds.nack_code", NackCode::NEW_START_PSN.code().into())
}

/// Returns the Start_PSN of an opening request, and whether it is another than that of the first one.
fn renumbered(right: &mut Right<'_>, packet: &Packet) -> bool {
    if !packet.is_request() || !packet.is("pds.flags.syn", 1) {
        return false;
    }
    let start = seen::start(packet).unwrap_or(Psn(0));
    let (context, _) = name(packet);
    let first = *right.notes.numbers.entry((STARTS, context)).or_insert(start.0.into());
    first != u64::from(start.0)
}

fn answer_instead(packet: &Packet, start: u64) -> Packet {
    let psn = seen::named(packet).unwrap_or(Psn(0));
    let remote = forge::id(packet, "pds.dpdcid");
    let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(psn).dpdcid(remote).payload(start as u32);
    let head: Head = nack.current_unchecked().copied().bytes().iter().copied().collect();
    Packet { head, payload: Default::default(), ..packet.clone() }
}

/// Returns the note of the Start_PSN that the target demands of a peer.
fn demand(peer: IpAddr) -> (u64, u64) {
    let peer = match peer {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits() as u64,
    };
    (PENDING, peer)
}

/// Moves the PSNs of a context to a Start_PSN that was demanded after its first ACK.
fn moved(right: &mut Right<'_>, mut packet: Packet) -> Sealed {
    let (context, _) = name(&packet);
    if let Some(&distance) = right.notes.numbers.get(&(MOVED, context)).filter(|_| packet.is_request()) {
        packet.change("pds.psn", |psn| u64::from((psn as u32).wrapping_add(distance as u32)));
    }
    right.seal(packet)
}

/// Notes the first ACK of a context, and a Start_PSN that is demanded after it.
fn watching_starts(right: &mut Right<'_>, packet: Packet) -> Opened {
    let (inner, association) = right.open(packet)?;
    let sdi = association.map_or(0, |association| association.context.sdi);
    let context = u64::from(sdi) << 16 | inner.get("pds.dpdcid").unwrap_or(0);
    if inner.is_ack() {
        right.notes.numbers.insert((ACKED, context), 1);
    } else if is_new_start(&inner) && right.notes.numbers.contains_key(&(ACKED, context)) {
        let [start, named] =
            ["pds.payload", "pds.nack_psn"].map(|field| inner.get(field).unwrap_or(0) as u32);
        right.notes.numbers.insert((MOVED, context), start.wrapping_sub(named).into());
    }
    Ok((inner, association))
}

pub(in crate::fault) const FAULTS: &[Fault] = &[
    fault(
        "accepts-any-start",
        "A target accepts each Start_PSN in a secure domain",
        TSS_START_001,
        &[Tap::Guard(Hooks { accept: Some(|_, _, _, _| Ok(())), ..Hooks::NONE })],
    ),
    fault(
        "compares-starts-as-numbers",
        "A target that demands a Start_PSN names the one of the request",
        TSS_START_002,
        &[seal(|right, mut packet| {
            if is_new_start(&packet) {
                let psn = packet.get("pds.nack_psn").unwrap_or_default();
                packet.set("pds.payload", psn);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "names-context-in-new-start",
        "NACK NEW_START_PSN names a context of the target",
        TSS_START_002,
        &[seal(|right, mut packet| {
            if is_new_start(&packet) {
                packet.set("pds.spdcid", 0x77);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "executes-pending",
        "A target executes a request although it demands another Start_PSN",
        TSS_START_004,
        &[Tap::Guard(Hooks {
            accept: Some(|right, context, peer, start| {
                if let Err(required) = right.accept(context, peer, start) {
                    right.notes.numbers.insert(demand(peer), required.0.into());
                }
                Ok(())
            }),
            seal: Some(|right, packet| match right.notes.numbers.get(&demand(packet.dst)).copied() {
                Some(start) if packet.is_ack() => {
                    let instead = answer_instead(&packet, start);
                    right.seal(instead)
                }
                _ => right.seal(packet),
            }),
            ..Hooks::NONE
        })],
    ),
    fault(
        "demands-another-start-each-time",
        "A target demands another Start_PSN each time it refuses a request of a pending context",
        TSS_START_006,
        &[seal(|right, mut packet| {
            if is_new_start(&packet) {
                let count = next(right, domain_of(&packet), 6 << 40);
                packet.change("pds.payload", |start| start.wrapping_add(count << 8));
            }
            right.seal(packet)
        })],
    ),
    fault(
        "renumbers-offsets",
        "An initiator that gets NACK NEW_START_PSN counts psn_offset from 1",
        TSS_START_003,
        &[seal(|right, mut packet| {
            if renumbered(right, &packet) {
                packet.change("pds.psn_offset", |offset| offset + 1);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "renumbers-as-retransmission",
        "An initiator that gets NACK NEW_START_PSN sets retx in the packets with new PSNs",
        TSS_START_008,
        &[seal(|right, mut packet| {
            if renumbered(right, &packet) {
                packet.set("pds.flags.retx", 1);
            }
            right.seal(packet)
        })],
    ),
    fault(
        "ignores-new-start",
        "An initiator ignores NACK NEW_START_PSN",
        TSS_START_003,
        &[open(|right, packet| match right.open(packet)? {
            (inner, _) if is_new_start(&inner) => Err(OpenError::Malformed),
            opened => Ok(opened),
        })],
    ),
    fault(
        "renumbers-after-ack",
        "An initiator that gets NACK NEW_START_PSN after the first ACK moves its PSNs",
        TSS_START_005,
        &[open(watching_starts), seal(moved)],
    ),
    fault(
        "tells-start-below-floor",
        "The ACK of CLOSE_COMMAND tells a Start_PSN that the target does not accept",
        TSS_START_007,
        &[seal(|right, mut packet| {
            const TELLS: u8 = 0x40;
            let tells = packet.is_ack() && packet.head.get(1).is_some_and(|flags| flags & TELLS != 0);
            if let Some(told) = packet.payload.first_chunk().filter(|_| tells) {
                let start = u32::from_be_bytes(*told).wrapping_sub(64);
                packet.payload = start.to_be_bytes().to_vec().into();
            }
            right.seal(packet)
        })],
    ),
];
