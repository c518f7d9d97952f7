//! Steps that rules on secured packets share.

use crate::prelude::*;
use crate::{DomainKind, SECURED, Wire};
use uet_control::{KeyMode, SecureDomain};
use uet_wire::catalogue::Requirement;

pub(super) const NEEDS: &[Need] = &[RUD, WRITE, TSS];

/// Begins a rule with the usual needs and axes of secured packets.
pub(super) const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED])
}

const fn kind(mode: KeyMode, ssi: bool) -> DomainKind {
    DomainKind { mode, ssi }
}

/// Domains whose members derive keys or know the key of the domain, so they can open packets of several
/// epochs.
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

/// The number of readable bytes after the security header: none, or the whole header of a request.
pub(super) const READABLE: Axis<u8> = axis("readable").values(&[("0", 0), ("16", 16)]);

/// The type of a control packet.
pub(super) const CONTROL: Axis<CtlType> = axis("control").values(&[
    ("noop", CtlType::NOOP),
    ("ack-request", CtlType::ACK_REQUEST),
    ("probe", CtlType::PROBE),
    ("clear-command", CtlType::CLEAR_COMMAND),
    ("clear-request", CtlType::CLEAR_REQUEST),
    ("close-command", CtlType::CLOSE_COMMAND),
    ("close-request", CtlType::CLOSE_REQUEST),
    ("credit", CtlType::CREDIT),
    ("credit-request", CtlType::CREDIT_REQUEST),
    ("negotiation", CtlType::NEGOTIATION),
]);

/// The epoch of the keys.
pub(super) const EPOCH: Axis<u16> =
    axis("epoch").values(&[("0x1dc0", 0x1dc0), ("0", 0), ("1", 1), ("0xffff", 0xffff)]);

/// Makes the device a member of a secure domain, and opens a context. A failure breaks `requirement`.
pub(super) fn open_as(
    t: &mut Test<'_>,
    requirement: &Requirement,
    kind: DomainKind,
    change: impl FnOnce(&mut SecureDomain),
) -> Result<(Pdc, Region), Stop> {
    t.secure_as(kind, change)?;
    open_new(t, requirement)
}

/// Opens a context. A failure breaks `requirement`.
pub(super) fn open_new(t: &mut Test<'_>, requirement: &Requirement) -> Result<(Pdc, Region), Stop> {
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    establish_as(t, requirement, &mut pdc, &region)?;
    Ok((pdc, region))
}

/// Opens this context, at another Start_PSN if the target requires one. A failure breaks `requirement`.
pub(super) fn establish_as(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &mut Pdc,
    region: &Region,
) -> Outcome {
    let last = region.length - 1;
    t.request(pdc, pdc.request(0).write(region, last, &[0])?)?;
    if learn_start(t, pdc, |pdc, seen| seen.acknowledges(pdc, pdc.psn(0)).is_some())? {
        t.request(pdc, pdc.request(0).write(region, last, &[0])?)?;
    }
    let (_, ack) = t.expect_ack(requirement, pdc, pdc.psn(0))?;
    pdc.remote = Some(ack.spdcid());
    Ok(())
}

/// Waits for the first answer to an opening packet. If it is NACK NEW_START_PSN, adopts its Start_PSN and
/// returns true: the opening packet has to be sent again.
pub(super) fn learn_start(
    t: &mut Test<'_>,
    pdc: &mut Pdc,
    answers: impl Fn(&Pdc, &RxPacket) -> bool,
) -> Result<bool, Stop> {
    let within = t.soon();
    if !t.hear(within, |seen| seen.new_start(pdc).is_some() || answers(pdc, seen))? {
        return Ok(false);
    }
    let Some((_, start)) = t.wait(Duration::ZERO, |seen| seen.new_start(pdc))? else { return Ok(false) };
    pdc.start = start;
    Ok(true)
}

/// Makes the device a member of the domain of the instance, and opens a context.
pub(super) fn open_secured(t: &mut Test<'_>) -> Result<(Pdc, Region), Stop> {
    t.secure(t.value(&SECURED))?;
    t.open()
}

/// Returns the offset and the payload of write `n`.
pub(super) fn content(n: u32) -> (u64, [u8; 32]) {
    (64 * u64::from(n), [n as u8 + 1; 32])
}

/// Returns write `n` of a context, without protection.
pub(super) fn plain_write(pdc: &Pdc, region: &Region, n: u32) -> Result<Wire, Stop> {
    let (offset, data) = content(n);
    Ok(pdc.wire(&pdc.request(n).write(region, offset, &data)?.build()?))
}

/// Returns the retransmission of write `n`, without protection.
pub(super) fn plain_retransmission(pdc: &Pdc, region: &Region, n: u32) -> Result<Wire, Stop> {
    let (offset, data) = content(n);
    Ok(pdc.wire(&pdc.request(n).retx().write(region, offset, &data)?.build()?))
}

/// Expects that write `n` is acknowledged and executed.
pub(super) fn expect_executed(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &Pdc,
    region: &Region,
    n: u32,
) -> Outcome {
    let (offset, data) = content(n);
    t.expect_ack(requirement, pdc, pdc.psn(n))?;
    t.expect_memory(requirement, region, offset, &data)
}

/// Sends write `n` and expects that it is executed.
pub(super) fn check_write(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &Pdc,
    region: &Region,
    n: u32,
) -> Outcome {
    t.send_wire(&plain_write(pdc, region, n)?)?;
    expect_executed(t, requirement, pdc, region, n)
}

/// Expects that the device answers nothing.
pub(super) fn expect_no_answer(t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
    expect_no_answer_for(t, requirement, t.soon())
}

fn expect_no_answer_for(t: &mut Test<'_>, requirement: &Requirement, during: Duration) -> Outcome {
    t.expect_none(requirement, "an answer", during, |seen| seen.unasked().is_none().then_some(()))
}

/// Expects no answer to the last packets of the suite, and no change of this memory.
pub(super) fn expect_ignored(
    t: &mut Test<'_>,
    [effect, answer]: [&Requirement; 2],
    region: &Region,
    (offset, before): (u64, &[u8]),
) -> Outcome {
    t.pause(t.soon())?;
    t.check_memory(effect, region, offset, before)?;
    expect_no_answer_for(t, answer, Duration::ZERO)
}

/// Sends these packets as they are. Expects that they get no answer and do not execute write `n`, and that
/// the write itself works after that.
pub(super) fn expect_no_effect(
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
    expect_ignored(t, [effect, answer], region, (content(n).0, &[0; 32]))?;
    check_write(t, effect, pdc, region, n)
}

/// Has the device write 64 bytes on a new context. Returns the operation and the suite's side.
pub(super) fn write_in_flight(t: &mut Test<'_>) -> Result<(Operated, Target), Stop> {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    Ok((written, Target::accept(t)?))
}

/// Expects that a write [in flight](write_in_flight) has not ended and sends its packet again, and that
/// its ACK ends it.
pub(super) fn expect_ended_by_ack(
    t: &mut Test<'_>,
    requirement: &Requirement,
    target: &mut Target,
    written: Operated,
) -> Outcome {
    t.settle()?;
    target.expect_again(t, requirement, 0, t.later())?;
    t.is_open(requirement, written)?;
    target.ack(t, 0)?;
    t.ends(requirement, written, Status::Ok)
}

/// Configures the device to ignore plaintext NACKs. The sources disagree about them, so other devices skip
/// the rule.
pub(super) fn ignore_plaintext_nacks(t: &mut Test<'_>) -> Outcome {
    let ignores = t.try_configure("accept_unprotected_nack", false)?;
    require(ignores, "the device cannot be configured to ignore a plaintext NACK")
}

/// Flips a bit, counted from the first bit of the packet.
pub(super) fn flip_bit(wire: &mut Wire, bit: usize) {
    if let Some(byte) = wire.bytes.get_mut(bit / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}

/// Protects a packet, and flips a bit of its ICV.
pub(super) fn with_wrong_icv(t: &mut Test<'_>, wire: &Wire) -> Result<Wire, Stop> {
    let mut sealed = t.sealed(wire)?;
    let last = sealed.bytes.len() * 8 - 1;
    flip_bit(&mut sealed, last);
    Ok(sealed)
}

/// Builds a control packet of this type. One that takes a PSN has the `n`-th.
pub(super) fn control_packet(pdc: &Pdc, ctl_type: CtlType, n: u32) -> Result<UetBuf, Stop> {
    Ok(match ctl_type {
        CtlType::PROBE => pdc.probe(7, pdc.psn(0))?,
        CtlType::NOOP | CtlType::NEGOTIATION | CtlType::CLOSE_COMMAND | CtlType::CLOSE_REQUEST => {
            pdc.control(ctl_type, pdc.psn(n), 0)?
        }
        CtlType::ACK_REQUEST => pdc.control(ctl_type, pdc.psn(0), 0)?,
        _ => pdc.control(ctl_type, Psn(0), pdc.psn(0).0)?,
    })
}

/// See [`FLAW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    WrongIcv,
    Plaintext,
    UnknownDomain,
}

/// A reason why a packet does not open.
pub(super) const FLAW: Axis<Flaw> = axis("flaw").values(&[
    ("wrong-icv", Flaw::WrongIcv),
    ("plaintext", Flaw::Plaintext),
    ("unknown-domain", Flaw::UnknownDomain),
]);

/// Sends a packet that does not open.
pub(super) fn send_flawed(t: &mut Test<'_>, wire: &Wire, flaw: Flaw) -> Outcome {
    let flawed = match flaw {
        Flaw::WrongIcv => with_wrong_icv(t, wire)?,
        Flaw::Plaintext => wire.clone(),
        Flaw::UnknownDomain => {
            let right = t.shield()?.domain.sdi;
            t.shield()?.domain.sdi = right ^ 0x00_4000;
            let sealed = t.sealed(wire);
            t.shield()?.domain.sdi = right;
            sealed?
        }
    };
    t.send_as_it_is(&flawed)
}

/// Makes a packet of the suite one that is not authentic.
pub(super) type Spoil = fn(&mut Test<'_>, &Wire) -> Result<Wire, Stop>;

/// Has the device store an error, and expects that a CLEAR_COMMAND and a request that are not authentic do
/// not release it.
pub(super) fn expect_response_kept(
    t: &mut Test<'_>,
    requirement: &Requirement,
    (pdc, region): (&Pdc, &Region),
    spoil: Spoil,
) -> Outcome {
    let psn = pdc.psn(1);
    let refused = pdc.request(1).write_nowhere(region, &[1])?;
    t.request(pdc, refused.clone())?;
    let (first, ack) = t.need("an error", t.soon(), |seen| seen.answers(pdc, psn))?;
    require(ack.cack_psn() == pdc.psn(0), "the device waits for no CLEAR")?;
    let command = pdc.control(CtlType::CLEAR_COMMAND, Psn(0), psn.0)?;
    let request = pdc.request(2).clear(psn).write(region, 0, &[2; 32])?.build()?;
    for packet in [command, request] {
        let spoiled = spoil(t, &pdc.wire(&packet))?;
        t.send_as_it_is(&spoiled)?;
    }
    t.settle()?;
    t.request(pdc, refused.retx())?;
    let (repeated, ack) = t.expect_answer(requirement, pdc, psn)?;
    t.check(requirement, "the response", first.response(), repeated.response());
    t.check(requirement, "cack_psn", pdc.psn(0), ack.cack_psn());
    Ok(())
}

/// Sends a control packet that is not authentic to a device that has opened a context. Expects that the
/// device neither acknowledges it nor closes the context, and that the next write completes.
pub(super) fn expect_control_ignored(
    t: &mut Test<'_>,
    requirement: &Requirement,
    ctl_type: CtlType,
    spoil: Spoil,
) -> Outcome {
    let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
    t.settle()?;
    let wire = target.pdc.wire(&control_packet(&target.pdc, ctl_type, 0)?);
    let spoiled = spoil(t, &wire)?;
    t.send_as_it_is(&spoiled)?;
    t.expect_none(requirement, "an ACK, a NACK of the context or CLOSE_COMMAND", t.soon(), |seen| {
        // A device may answer that it does not know the context.
        let refused = seen.nack().is_some_and(|nack| nack.spdcid().is_valid());
        let answered = seen.is_for(&target.pdc) && (seen.ack().is_some() || refused);
        (answered || target.control(seen, CtlType::CLOSE_COMMAND).is_some()).then_some(())
    })?;
    t.forget();
    let written = t.post(post(PostKind::Write, peer, 64))?;
    target.collect(t, 2)?;
    target.ack(t, 1)?;
    t.ends(requirement, written, Status::Ok)
}

/// Installs a second key.
pub(super) fn add_key(t: &mut Test<'_>) -> Outcome {
    let second = t.fresh_secret();
    t.shield()?.secrets[1] = Some(second);
    t.install()
}

/// Makes the device send under this association number.
pub(super) fn switch_to(t: &mut Test<'_>, an: bool) -> Outcome {
    t.shield()?.installed.an = an.into();
    t.install()
}

/// Returns the association number of the last packet of the device.
pub(super) fn latest_an(t: &mut Test<'_>) -> Result<Option<u8>, Stop> {
    Ok(t.shield()?.seen.last().map(|seen| seen.an.into()))
}

/// Checks the epoch of the last packet of the device.
pub(super) fn check_epoch_sent(t: &mut Test<'_>, expected: u16) -> Outcome {
    let seen = t.shield()?.seen.last().map(|seen| seen.epoch);
    t.check(TSS_EPOCH_002, "epoch:", Some(expected), seen);
    Ok(())
}

/// Sends write 1 of this context with a wrong ICV, this many times.
pub(super) fn forge_requests(t: &mut Test<'_>, pdc: &Pdc, region: &Region, count: u32) -> Outcome {
    let forged = with_wrong_icv(t, &plain_write(pdc, region, 1)?)?;
    for _ in 0..count {
        t.send_as_it_is(&forged)?;
    }
    Ok(())
}

/// Closes a context with a CLOSE_COMMAND that has the `n`-th PSN.
pub(super) fn close_context(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    t.send(pdc, &pdc.numbered(CtlType::CLOSE_COMMAND, n)?)?;
    t.need_ack(pdc, pdc.psn(n))?;
    // The device remembers the context for a time.
    let kept = t.scaled(Duration::from_nanos(t.parameter("syn_retx_safety_time")));
    t.pause(kept * 2)?;
    t.settle()
}
