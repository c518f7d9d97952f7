//! NACKs that end a context at its initiator (section 3.5).

use super::steps::check_apart;
use crate::Show;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::message_in_flight;
use crate::target::NOT_WELL;

/// The NACK that ends a context, and true if the device may not retry its operations. Without a code, the
/// retransmissions of a packet are exhausted.
const END: Axis<(Option<NackCode>, bool)> = axis("end").values(&[
    ("closing-in-err", (Some(NackCode::CLOSING_IN_ERR), true)),
    ("inv-dpdcid", (Some(NackCode::INV_DPDCID), false)),
    ("closing", (Some(NackCode::CLOSING), false)),
    ("timeout", (None, false)),
]);

pub(super) const RULES: &[Rule] = &[
    rule("source-nack-fatal/unknown-context", "After INV_DPDCID, the device moves to another context")
        .checks(&[PDS_NACK_003, PDS_SYN_007])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            target.refuse_without_context(t, NackCode::INV_DPDCID, 1)?;
            expect_left(t, &target, PDS_NACK_003, written)
        }),
    rule("source-nack-fatal/mismatch", "After a NACK for a mismatch, the device moves to another context")
        .checks(&[PDS_NACK_003, PDS_SYN_007])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            target.refuse_without_context(t, NackCode::PDC_HDR_MISMATCH, 1)?;
            expect_left(t, &target, PDS_NACK_003, written)?;
            for code in [NackCode::PDC_MODE_MISMATCH, NackCode::UNEXP_EVENT] {
                t.note(format!("after {code}"));
                t.call(uet_control::Reset {})?;
                t.forget();
                let (target, written) = message_in_flight(t, 1)?;
                target.refuse(t, code, 1)?;
                expect_left(t, &target, PDS_NACK_003, written)?;
            }
            Ok(())
        }),
    rule("source-nack-fatal/invalid-syn", "After INVALID_SYN, the device leaves the context")
        .checks(&[PDS_NACK_003])
        .run(|t| {
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let target = Target::accept(t)?;
            target.refuse(t, NackCode::INVALID_SYN, 0)?;
            t.settle()?;
            let (since, remote) = (t.now(), target.pdc.remote);
            t.expect_none(PDS_NACK_003, "no packet of the ended context", 4 * t.rto(), |seen| {
                let old = |request: &uet_wire::pds::Request| {
                    Some(request.spdcid()) == remote && request.start_psn() == Some(target.psn(0))
                };
                seen.request().filter(|request| old(request) && seen.at >= since)
            })?;
            let ended = t.completion(written, Duration::ZERO)?.map(|completion| completion.status);
            t.one_of(PDS_NACK_003, "the completion", NOT_WELL, ended);
            t.expect_action(peer)
        }),
    rule("source-nack-fatal/closing", "After CLOSING, the device moves to another context")
        .checks(&[PDS_NACK_003, PDS_SYN_007])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            target.refuse(t, NackCode::CLOSING, 1)?;
            expect_left(t, &target, PDS_NACK_003, written)
        }),
    rule("source-nack-fatal/closing-in-error", "After CLOSING_IN_ERR, the device retries nothing")
        .checks(&[PDS_NACK_013, PDS_SYN_007])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            target.refuse(t, NackCode::CLOSING_IN_ERR, 1)?;
            expect_over(t, &target, PDS_NACK_013, written)
        }),
    rule("source-nack-fatal/lost-response", "After GTD_RESP_UNAVAIL, the operation fails without retry")
        .checks(&[PDS_NACK_014, PDS_SACK_004, PDS_SYN_007])
        .run(|t| {
            let (target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            // The device knows that the packet has arrived, and requests its response.
            target.sack(t, 2, &[2])?;
            target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            target.refuse(t, NackCode::GTD_RESP_UNAVAIL, 2)?;
            expect_over(t, &target, PDS_NACK_014, written)
        }),
    rule("source-nack-fatal/experimental", "The fatal experimental code ends the context")
        .checks(&[PDS_NACK_003, PDS_SYN_007])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            target.refuse(t, NackCode::EXP_NACK_FATAL, 1)?;
            expect_left(t, &target, PDS_NACK_003, written)
        }),
    rule("source-nack-fatal/whole-context", "A fatal NACK for one packet stops the whole context")
        .checks(&[PDS_NACK_003, PDS_SYN_007])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let one = t.post(post(PostKind::Write, peer, 64))?;
            let other = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            target.collect(t, 4)?;
            target.refuse_without_context(t, NackCode::INV_DPDCID, 2)?;
            expect_left(t, &target, PDS_NACK_003, one)?;
            let ended = t.completion(other, Duration::ZERO)?.map(|completion| completion.status);
            t.one_of(PDS_NACK_003, "the completion", NOT_WELL, ended);
            Ok(())
        }),
    rule("source-nack-fatal/other-contexts", "A fatal NACK for one context does not affect another")
        .checks(&[PDS_PDC_003])
        .needs(&[RUD, ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (peer, mut ordered) = Target::with_peer(t, Mode::Rod)?;
            let (target, _) = message_in_flight(t, 1)?;
            target.refuse_without_context(t, NackCode::INV_DPDCID, 1)?;
            t.settle()?;
            let written = t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 64) })?;
            let next = ordered.expect_new(t, PDS_PDC_003, 1)?;
            t.check(PDS_PDC_003, "dpdcid", Some(ordered.pdc.local), next.request.dpdcid());
            ordered.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)
        }),
    rule("source-nack-fatal/read", "A read that waits for data ends or moves when its context ends")
        .checks(&[PDS_NACK_003, PDS_NACK_013, PDS_RTO_004])
        .needs(&[READ])
        .over(&[&END, &MODE, &START])
        .run(|t| {
            let (code, over) = t.value(&END);
            if code.is_none() {
                t.timeout_limit()?;
            }
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let read = t.post(post(PostKind::Read, peer, 200))?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            t.settle()?;
            let since = t.now();
            // The request of the read is answered. The next operation is the one that ends the context.
            t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 3)?;
            match code {
                None => target.watch(t, t.until_given_up())?,
                Some(NackCode::INV_DPDCID) => target.refuse_without_context(t, NackCode::INV_DPDCID, 2)?,
                Some(code) => target.refuse(t, code, 2)?,
            }
            let mut ended = t.completion(read, t.soon())?.map(|completion| completion.status);
            let mut moved = false;
            if !over && ended.is_none() {
                moved = is_read_again(t, since)?;
                ended = t.completion(read, Duration::ZERO)?.map(|completion| completion.status);
            }
            let requirement = match code {
                Some(NackCode::CLOSING_IN_ERR) => PDS_NACK_013,
                Some(_) => PDS_NACK_003,
                None => PDS_RTO_004,
            };
            let held = moved || ended.is_some_and(|status| status != Status::Ok);
            t.holds(requirement, "the read fails, or a new context tries it", held, ended.show());
            Ok(())
        }),
];

/// Returns whether the device reads again on a context that it has opened since then.
fn is_read_again(t: &mut Test<'_>, since: Duration) -> Result<bool, Stop> {
    let reads = |seen: &RxPacket| {
        let fields = crate::serve::said(&seen.uet()).filter(|_| seen.at > since);
        fields.is_some_and(|fields| fields.opcode() == Opcode::UET_READ)
    };
    let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn() && seen.at > since);
    let Some((first, _)) = t.wait(t.later(), opens)? else { return Ok(false) };
    if reads(&first) {
        return Ok(true);
    }
    // Another operation may have opened the context, and later packets may wait for its ACK.
    Target::opened_by(t, first)?.ack(t, 0)?;
    t.hear(t.later(), reads)
}

/// Returns true for a request of the established context that arrived at or after `since`.
fn is_of_context(target: &Target, seen: &RxPacket, since: Duration) -> bool {
    let of_context = |request: uet_wire::pds::Request| {
        target.pdc.remote == Some(request.spdcid()) && !request.syn() && seen.wire.dst == target.pdc.from
    };
    seen.at >= since && seen.request().is_some_and(of_context)
}

/// Expects that the device sends no more packets of the context. An outstanding operation fails or moves to a
/// new context. A later operation uses a new context.
fn expect_left(t: &mut Test<'_>, target: &Target, requirement: &Requirement, written: Operated) -> Outcome {
    t.settle()?;
    let since = t.now();
    let span = 4 * t.rto();
    t.expect_none(requirement, "no packet of the ended context", span, |seen| {
        is_of_context(target, seen, since).then_some(())
    })?;
    let reopens = |seen: &RxPacket| seen.request().is_some_and(|request| request.syn() && seen.at >= since);
    let tried = t.hear(Duration::ZERO, reopens)?;
    let ended = t.completion(written, Duration::ZERO)?.map(|completion| completion.status);
    t.one_of(requirement, "the completion", NOT_WELL, ended);
    if !tried && ended.is_none() {
        // The device may need time before it opens the next context.
        let (tried, ended) = (t.hear(t.later(), reopens)?, t.completion(written, t.soon())?);
        let held = tried || ended.is_some();
        t.holds(requirement, "the operation fails, or a new context tries it", held, "neither");
    }
    expect_new_context(t, target, requirement, since)
}

/// Expects that the next operation uses a new context.
fn expect_new_context(
    t: &mut Test<'_>,
    target: &Target,
    requirement: &Requirement,
    since: Duration,
) -> Outcome {
    t.forget();
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, 8))?;
    let within = t.later();
    let (_, request) = t.expect(requirement, "a request that opens a new context", within, |seen| {
        seen.request().filter(|request| request.syn() && seen.at >= since)
    })?;
    let last = target.psn(target.highest());
    let start = request.start_psn().unwrap_or(last);
    check_apart(t, target, last, request.spdcid(), start);
    Ok(())
}

/// Expects that the operation fails, and that no context retries it.
fn expect_over(t: &mut Test<'_>, target: &Target, requirement: &Requirement, written: Operated) -> Outcome {
    t.settle()?;
    t.fails(requirement, written, t.soon())?;
    let since = t.now();
    t.expect_none(requirement, "no retry", 4 * t.rto(), |seen| seen.request().filter(|_| seen.at >= since))?;
    expect_new_context(t, target, requirement, since)
}
