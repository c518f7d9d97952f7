//! Faults in transport security. They act on a protection around the right one, see [`guard`](super::guard).

pub(super) mod authentic;
pub(super) mod clear;
pub(super) mod counter;
pub(super) mod header;
pub(super) mod rotate;
pub(super) mod start;

use super::fields::Fields;
use super::guard::{Hooks, Opened, Right, Sealed};
use super::recipe::Recipe;
use super::tap::Tap;
use uet_control::SecureDomain;
use uet_model::Packet;

const fn recipe(change: fn(&mut Recipe)) -> Tap {
    Tap::Guard(Hooks { recipe: Some(change), ..Hooks::NONE })
}

const fn install(change: fn(&mut SecureDomain)) -> Tap {
    Tap::Guard(Hooks { install: Some(change), ..Hooks::NONE })
}

const fn seal(hook: fn(&mut Right<'_>, Packet) -> Sealed) -> Tap {
    Tap::Guard(Hooks { seal: Some(hook), ..Hooks::NONE })
}

const fn open(hook: fn(&mut Right<'_>, Packet) -> Opened) -> Tap {
    Tap::Guard(Hooks { open: Some(hook), ..Hooks::NONE })
}

fn is_secured(packet: &Packet) -> bool {
    packet.head.first().is_some_and(|first| first >> 3 == 1)
}

/// Returns a fresh number of a sequence.
fn next(right: &mut Right<'_>, sequence: u64, of: u64) -> u64 {
    let number = right.notes.numbers.entry((sequence, of)).or_default();
    *number += 1;
    *number - 1
}

/// Names a request or control packet among those of a domain.
fn name(packet: &Packet) -> (u64, u64) {
    let sdi = packet.security.map_or(0, |context| context.sdi);
    let (pdcid, psn) = (packet.get("pds.spdcid").unwrap_or(0), packet.get("pds.psn").unwrap_or(0));
    (u64::from(sdi) << 16 | pdcid, psn)
}

/// The parts of the notes.
const STARTS: u64 = 1 << 60;
const PENDING: u64 = 2 << 60;
const HIGHEST: u64 = 3 << 60;
const ACKED: u64 = 4 << 60;
const MOVED: u64 = 5 << 60;

fn domain_of(packet: &Packet) -> u64 {
    packet.security.map_or(0, |context| context.sdi).into()
}
