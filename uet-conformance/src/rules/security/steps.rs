//! Steps that rules about secured packets share.

use crate::prelude::*;
use crate::{DomainKind, SECURED, Wire};
use uet_control::{KeyMode, SecureDomain};
use uet_wire::catalogue::Requirement;

pub(super) const NEEDS: &[Need] = &[RUD, WRITE, TSS];

const fn kind(mode: KeyMode, ssi: bool) -> DomainKind {
    DomainKind { mode, ssi }
}

/// Domains whose members derive keys or know the key of the domain, so that packets of several epochs open.
pub(super) const MEMBER: Axis<DomainKind> = axis("domain").values(&[
    ("cluster", kind(KeyMode::Cluster, false)),
    ("cluster-ssi", kind(KeyMode::Cluster, true)),
    ("direct", kind(KeyMode::Direct, false)),
    ("direct-ssi", kind(KeyMode::Direct, true)),
    ("server", kind(KeyMode::Server, false)),
    ("server-ssi", kind(KeyMode::Server, true)),
]);

/// Domains that use source identifiers.
pub(super) const IDENTIFIED: Axis<DomainKind> = axis("domain").values(&[
    ("cluster-ssi", kind(KeyMode::Cluster, true)),
    ("direct-ssi", kind(KeyMode::Direct, true)),
    ("server-ssi", kind(KeyMode::Server, true)),
]);

/// Domains in which each sender has its own key.
pub(super) const CLUSTER: Axis<DomainKind> = axis("domain")
    .values(&[("cluster", kind(KeyMode::Cluster, false)), ("cluster-ssi", kind(KeyMode::Cluster, true))]);

/// The epoch of the keys.
pub(super) const EPOCH: Axis<u16> =
    axis("epoch").values(&[("0x1dc0", 0x1dc0), ("0", 0), ("1", 1), ("0xffff", 0xffff)]);

/// Secures the device and opens a context, as `requirement` demands.
pub(super) fn open_as(
    t: &mut Test<'_>,
    requirement: &Requirement,
    kind: DomainKind,
    change: impl FnOnce(&mut SecureDomain),
) -> Result<(Pdc, Region), Stop> {
    t.secure_as(kind, change)?;
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    establish_as(t, requirement, &mut pdc, &region)?;
    Ok((pdc, region))
}

/// Opens this context, as `requirement` demands.
pub(super) fn establish_as(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &mut Pdc,
    region: &Region,
) -> Outcome {
    let last = region.length - 1;
    t.request(pdc, pdc.request(0).write(region, last, &[0])?)?;
    if learns_start(t, pdc, |pdc, seen| seen.acknowledges(pdc, pdc.psn(0)).is_some())? {
        t.request(pdc, pdc.request(0).write(region, last, &[0])?)?;
    }
    let (_, ack) = t.expect_ack(requirement, pdc, pdc.psn(0))?;
    pdc.remote = Some(ack.spdcid());
    Ok(())
}

/// Waits for the first answer to an opening. If it is NEW_START_PSN, takes its Start_PSN and returns true:
/// the opening has to go again.
pub(super) fn learns_start(
    t: &mut Test<'_>,
    pdc: &mut Pdc,
    answers: impl Fn(&Pdc, &crate::RxPacket) -> bool,
) -> Result<bool, Stop> {
    let within = t.soon();
    if !t.hear(within, |seen| pdc.new_start(seen).is_some() || answers(pdc, seen))? {
        return Ok(false);
    }
    let Some((_, start)) = t.wait(Duration::ZERO, |seen| pdc.new_start(seen))? else { return Ok(false) };
    pdc.start = start;
    Ok(true)
}

/// Secures the device as the instance says, and opens a context.
pub(super) fn opened(t: &mut Test<'_>) -> Result<(Pdc, Region), Stop> {
    t.secure(t.value(&SECURED))?;
    t.open()
}

/// The place and the content of write `n`.
fn content(n: u32) -> (u64, [u8; 32]) {
    (64 * u64::from(n), [n as u8 + 1; 32])
}

/// Returns write `n` of a context in the clear.
pub(super) fn plain(pdc: &Pdc, region: &Region, n: u32) -> Result<Wire, Stop> {
    let (place, data) = content(n);
    Ok(pdc.wire(&pdc.request(n).write(region, place, &data)?.build()?))
}

/// Expects that write `n` has been executed and acknowledged.
pub(super) fn executed(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &Pdc,
    region: &Region,
    n: u32,
) -> Outcome {
    let (place, data) = content(n);
    t.expect_ack(requirement, pdc, pdc.psn(n))?;
    t.expect_memory(requirement, region, place, &data)
}

/// Sends write `n` and expects that it is executed.
pub(super) fn works(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &Pdc,
    region: &Region,
    n: u32,
) -> Outcome {
    t.send_wire(&plain(pdc, region, n)?)?;
    executed(t, requirement, pdc, region, n)
}

/// Expects that the device answers nothing.
pub(super) fn silent(t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
    silent_for(t, requirement, t.soon())
}

fn silent_for(t: &mut Test<'_>, requirement: &Requirement, during: Duration) -> Outcome {
    t.expect_none(requirement, "an answer", during, |seen| seen.unasked().is_none().then_some(()))
}

/// Expects no answer to what the suite has sent, and no change of this memory.
pub(super) fn ignored(
    t: &mut Test<'_>,
    [effect, answer]: [&Requirement; 2],
    region: &Region,
    (place, before): (u64, &[u8]),
) -> Outcome {
    let soon = t.soon();
    t.pause(soon)?;
    t.check_memory(effect, region, place, before)?;
    silent_for(t, answer, Duration::ZERO)
}

/// Expects that these packets, sent as they are, get no answer and do not execute write `n`. The write itself
/// is executed after that.
pub(super) fn no_effect(
    t: &mut Test<'_>,
    [effect, answer]: [&Requirement; 2],
    (pdc, region): (&Pdc, &Region),
    n: u32,
    packets: &[Wire],
) -> Outcome {
    t.settle()?;
    for packet in packets {
        t.send_as_it_is(packet)?;
    }
    ignored(t, [effect, answer], region, (content(n).0, &[0; 32]))?;
    works(t, effect, pdc, region, n)
}

/// Flips a bit, counted from the first bit of the packet.
pub(super) fn flip(wire: &mut Wire, bit: usize) {
    if let Some(byte) = wire.bytes.get_mut(bit / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}

/// Protects a packet and changes a bit of its ICV.
pub(super) fn forged(t: &mut Test<'_>, wire: &Wire) -> Result<Wire, Stop> {
    let mut sealed = t.sealed(wire)?;
    let last = sealed.bytes.len() * 8 - 1;
    flip(&mut sealed, last);
    Ok(sealed)
}

/// Closes a context from the suite, after its last PSN.
pub(super) fn close(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    t.send(pdc, &pdc.numbered(CtlType::CLOSE_COMMAND, n)?)?;
    t.need_ack(pdc, pdc.psn(n))?;
    // Late packets are remembered for a time.
    let kept = t.parameter("syn_retx_safety_time");
    let kept = t.scaled(Duration::from_nanos(kept));
    t.pause(kept * 2)?;
    t.settle()
}
