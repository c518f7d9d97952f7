//! Retransmissions of the device, whatever causes them: what they repeat, and what they say anew (sections
//! 3.5.8, 3.5.11, 3.5.16).

use crate::prelude::*;

/// The cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Timeout,
    Nack(NackCode),
    /// A bitmap reports the packet, and the answer to ACK_REQUEST denies it.
    Question,
    /// RCVD_SES_PROCG, without an ACK after it.
    Busy,
}

const CAUSE: Axis<Cause> = axis("cause").needing(&[
    ("timeout", Cause::Timeout, &[]),
    ("trimmed", Cause::Nack(NackCode::TRIMMED), &[]),
    ("trimmed-lasthop", Cause::Nack(NackCode::TRIMMED_LASTHOP), &[]),
    ("no-pkt-buffer", Cause::Nack(NackCode::NO_PKT_BUFFER), &[]),
    ("no-gtd-del", Cause::Nack(NackCode::NO_GTD_DEL_AVAIL), &[]),
    ("no-ses-msg", Cause::Nack(NackCode::NO_SES_MSG_AVAIL), &[]),
    ("no-resource", Cause::Nack(NackCode::NO_RESOURCE), &[]),
    ("oor-window", Cause::Nack(NackCode::PSN_OOR_WINDOW), &[]),
    ("infer-loss", Cause::Nack(NackCode::RCVR_INFER_LOSS), &[]),
    ("pkt-not-rcvd", Cause::Nack(NackCode::PKT_NOT_RCVD), &[]),
    ("exp-normal", Cause::Nack(NackCode::EXP_NACK_NORMAL), &[]),
    ("rod-ooo", Cause::Nack(NackCode::ROD_OOO), &[ROD]),
    ("question", Cause::Question, &[]),
    ("busy", Cause::Busy, &[]),
]);

/// Causes before the first ACK.
const EARLY: Axis<Cause> = axis("cause").values(&[
    ("timeout", Cause::Timeout),
    ("trimmed", Cause::Nack(NackCode::TRIMMED)),
    ("no-pdc", Cause::Nack(NackCode::NO_PDC_AVAIL)),
    ("no-ccc", Cause::Nack(NackCode::NO_CCC_AVAIL)),
    ("no-bitmap", Cause::Nack(NackCode::NO_BITMAP)),
    ("no-resource", Cause::Nack(NackCode::NO_RESOURCE)),
]);

/// Operations of several packets.
const KIND: Axis<PostKind> = axis("kind").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("read", PostKind::Read, &[READ]),
]);

const EVERY_KIND: Axis<PostKind> = axis("kind").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("read", PostKind::Read, &[READ]),
    ("atomic", PostKind::Atomic, &[ATOMIC]),
    ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC]),
    ("rendezvous", PostKind::RendezvousSend, &[RENDEZVOUS_SEND]),
    ("deferrable", PostKind::DeferrableSend, &[DEFERRABLE_SEND]),
]);

const FORM: Axis<Form> = axis("form").values(&[("std", Form::Std), ("medium", Form::Medium)]);

pub(super) const RULES: &[Rule] = &[
    rule(
        "retransmit-cause/established",
        "A retransmission after the first ACK has the current CLEAR_PSN and no syn",
    )
    .checks(&[PDS_SYN_004, PDS_CLR_003, PDS_RTO_005])
    .over(&[&CAUSE, &KIND, &MODE, &START])
    .run(|t| {
        // Two packets leave with `syn`; the first ACK covers the first of them.
        let (kind, mode, mtu) = (t.value(&KIND), t.value(&MODE), t.mtu());
        t.requests_all(kind, mtu + 100)?;
        let peer = t.peer(0)?;
        t.post(Post { mode, ..operation(kind, peer, mtu + 100) })?;
        let mut target = Target::accept(t)?;
        target.collect(t, 2)?;
        let first = target.packet(1)?.clone();
        target.ack(t, 0)?;
        t.settle()?;
        let now = again(t, &mut target, t.value(&CAUSE), 1)?;
        t.check(PDS_SYN_004, "syn", false, now.request.syn());
        t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), now.request.dpdcid());
        t.check(PDS_CLR_003, "CLEAR_PSN", target.psn(0), now.request.clear_psn());
        t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), now.request.spdcid());
        t.check(PDS_RTO_005, "SES header and payload", first.content(), now.content());
        Ok(())
    }),
    rule("retransmit-cause/opening", "A retransmission before the first ACK repeats syn and psn_offset")
        .checks(&[PDS_SYN_001, PDS_RTO_005])
        .over(&[&EARLY, &EVERY_KIND, &MODE, &START])
        .run(|t| {
            let (kind, mode, early) = (t.value(&EVERY_KIND), t.value(&MODE), t.value(&EARLY));
            let peer = t.peer(0)?;
            t.post(Post { mode, ..operation(kind, peer, 100) })?;
            let mut target = Target::accept(t)?;
            let first = target.packet(0)?.clone();
            let now = again(t, &mut target, early, 0)?;
            t.check(PDS_SYN_001, "syn", true, now.request.syn());
            t.check(PDS_SYN_001, "psn_offset", first.request.psn_offset(), now.request.psn_offset());
            t.check(PDS_SYN_001, "pdc_info", first.request.pdc_info(), now.request.pdc_info());
            t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), now.request.spdcid());
            t.check(PDS_RTO_005, "CLEAR_PSN", target.psn(0) - 1, now.request.clear_psn());
            t.check(PDS_RTO_005, "SES header and payload", first.content(), now.content());
            Ok(())
        }),
    rule("retransmit-cause/same-request", "A retransmission repeats its request byte for byte")
        .checks(&[PDS_RTO_005, SES_DONE_001])
        .over(&[&CAUSE, &EVERY_KIND, &FORM, &MODE])
        .run(|t| {
            let (kind, form, mode) = (t.value(&EVERY_KIND), t.value(&FORM), t.value(&MODE));
            let long = matches!(kind, PostKind::RendezvousSend | PostKind::DeferrableSend);
            if long && form != Form::Std {
                return skip("the operation needs a standard header");
            }
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let posted = t.post(Post { mode, form: Some(form), ..operation(kind, peer, 100) })?;
            target.collect(t, 2)?;
            let first = target.packet(1)?.clone();
            let now = again(t, &mut target, t.value(&CAUSE), 1)?;
            let headers = |got: &crate::target::RxRequest| {
                (got.request.prologue().kind(), got.request.prologue().next_hdr())
            };
            t.check(PDS_RTO_005, "type and next_hdr", headers(&first), headers(&now));
            t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), now.request.spdcid());
            t.check(PDS_RTO_005, "dpdcid", first.request.dpdcid(), now.request.dpdcid());
            t.check(PDS_RTO_005, "all from the SES header on", first.content(), now.content());
            t.is_open(SES_DONE_001, posted)
        }),
    rule("retransmit-cause/late-ack", "The ACK of a retransmission completes the operation exactly once")
        .checks(&[SES_DONE_001, PDS_RTO_001, PDS_RTO_005])
        .over(&[&CAUSE, &KIND, &MODE])
        .run(|t| {
            let (kind, mode) = (t.value(&KIND), t.value(&MODE));
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let posted: Operated = t.post(Post { mode, ..operation(kind, peer, 100) })?;
            target.collect(t, 2)?;
            again(t, &mut target, t.value(&CAUSE), 1)?;
            match kind {
                PostKind::Read => {
                    let ack = target.acking(1);
                    target.answer(t, AckBuilder { retx: true, ..ack })?;
                    let header = target.data_header(1, 100, 100, 0)?;
                    target.give_due(t, 0, header, &[7; 100])?;
                }
                _ => target.answer(t, AckBuilder { retx: true, ..target.acking(1) })?,
            }
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            let span = t.rto() * 3;
            target.expect_none(t, PDS_RTO_001, "nothing that is answered", span, |n| n == 1)?;
            t.expect_action(peer)
        }),
];

/// An operation of this kind with a value in each field.
fn operation(kind: PostKind, peer: u64, length: usize) -> Post {
    let amo = matches!(kind, PostKind::Atomic | PostKind::FetchAtomic);
    let length = if amo { 8 } else { length };
    let tagged = matches!(kind, PostKind::Tsend);
    let plain = post(kind, peer, length);
    Post {
        tag: tagged.then_some(Hex64(0x7a67_0000_0000_0001)),
        eager: (kind == PostKind::RendezvousSend).then_some(32),
        atomic_opcode: amo.then(|| "SUM".to_owned()),
        atomic_datatype: amo.then(|| "UINT64".to_owned()),
        want_data: matches!(kind, PostKind::Read | PostKind::FetchAtomic),
        ..plain
    }
}

/// Makes the cause for the `n`-th packet, which none of the answers so far covers.
fn cause(t: &mut Test<'_>, target: &Target, cause: Cause, n: u32) -> Outcome {
    match cause {
        Cause::Timeout => Ok(()),
        Cause::Nack(NackCode::ROD_OOO) if !target.pdc.rod => skip("ROD_OOO is for ordered contexts"),
        Cause::Nack(code @ (NackCode::NO_PDC_AVAIL | NackCode::NO_CCC_AVAIL | NackCode::NO_BITMAP)) => {
            target.refuse_without_context(t, code, n)
        }
        Cause::Nack(code) => target.refuse(t, code, n),
        Cause::Busy => target.refuse(t, NackCode::RCVD_SES_PROCG, n),
        Cause::Question => {
            require(!target.pdc.rod, "an ordered context has no bits above a gap")?;
            target.sack(t, n, &[n])?;
            t.need("ACK_REQUEST", t.later(), |seen| target.control(seen, CtlType::ACK_REQUEST))?;
            target.refuse(t, NackCode::PKT_NOT_RCVD, n)
        }
    }
}

/// Makes the cause and expects the packet again.
fn again(t: &mut Test<'_>, target: &mut Target, of: Cause, n: u32) -> Result<crate::target::RxRequest, Stop> {
    cause(t, target, of, n)?;
    let busy = of == Cause::Busy;
    let asked = |seen: &RxPacket| target.control(seen, CtlType::ACK_REQUEST);
    if busy && !t.hear(t.later(), |seen| seen.request().is_some_and(|request| request.retx()))? {
        // It may ask for the answer instead.
        t.need("ACK_REQUEST, or the packet again", t.later(), asked)?;
        target.refuse(t, NackCode::PKT_NOT_RCVD, n)?;
    }
    target.expect_again(t, PDS_RTO_005, n, t.later())
}
