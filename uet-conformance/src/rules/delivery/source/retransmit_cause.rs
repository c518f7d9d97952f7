//! The contents of retransmissions, for each cause of one (sections 3.5.8, 3.5.11, 3.5.16).

use crate::prelude::*;
use crate::target::RxRequest;

/// The cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Timeout,
    Nack(NackCode),
    /// A bitmap reports the packet, and the answer to ACK_REQUEST denies it.
    AckRequest,
    /// RCVD_SES_PROCG without a later ACK.
    Processing,
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
    ("ack-request", Cause::AckRequest, &[]),
    ("ses-procg", Cause::Processing, &[]),
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

/// Operations that can need several packets.
const LONG_OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("read", PostKind::Read, &[READ]),
]);

const OPERATION: Axis<PostKind> = axis("operation").needing(&[
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
    .over(&[&CAUSE, &LONG_OPERATION, &MODE, &START])
    .run(|t| {
        // Two packets leave with syn. The first ACK covers the first of them.
        let (kind, mode, mtu) = (t.value(&LONG_OPERATION), t.value(&MODE), t.mtu());
        t.requests_all(kind, mtu + 100)?;
        let peer = t.peer(0)?;
        t.post(Post { mode, ..operation(kind, peer, mtu + 100) })?;
        let mut target = Target::accept(t)?;
        target.collect(t, 2)?;
        let first = target.packet(1)?.clone();
        target.ack(t, 0)?;
        t.settle()?;
        let second = expect_retransmission(t, &mut target, t.value(&CAUSE), 1)?;
        t.check(PDS_SYN_004, "syn", false, second.request.syn());
        t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), second.request.dpdcid());
        t.check(PDS_CLR_003, "CLEAR_PSN", target.psn(0), second.request.clear_psn());
        t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), second.request.spdcid());
        t.check(PDS_RTO_005, "SES header and payload", first.content(), second.content());
        Ok(())
    }),
    rule("retransmit-cause/opening", "A retransmission before the first ACK repeats syn and psn_offset")
        .checks(&[PDS_SYN_001, PDS_RTO_005])
        .over(&[&EARLY, &OPERATION, &MODE, &START])
        .run(|t| {
            let (kind, mode, early) = (t.value(&OPERATION), t.value(&MODE), t.value(&EARLY));
            let peer = t.peer(0)?;
            t.post(Post { mode, ..operation(kind, peer, 100) })?;
            let mut target = Target::accept(t)?;
            let first = target.packet(0)?.clone();
            let second = expect_retransmission(t, &mut target, early, 0)?;
            t.check(PDS_SYN_001, "syn", true, second.request.syn());
            t.check(PDS_SYN_001, "psn_offset", first.request.psn_offset(), second.request.psn_offset());
            t.check(PDS_SYN_001, "pdc_info", first.request.pdc_info(), second.request.pdc_info());
            t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), second.request.spdcid());
            t.check(PDS_RTO_005, "CLEAR_PSN", target.psn(0) - 1, second.request.clear_psn());
            t.check(PDS_RTO_005, "SES header and payload", first.content(), second.content());
            Ok(())
        }),
    rule("retransmit-cause/same-request", "A retransmission repeats its request byte for byte")
        .checks(&[PDS_RTO_005, SES_DONE_001])
        .over(&[&CAUSE, &OPERATION, &FORM, &MODE])
        .run(|t| {
            let (kind, form, mode) = (t.value(&OPERATION), t.value(&FORM), t.value(&MODE));
            let long = matches!(kind, PostKind::RendezvousSend | PostKind::DeferrableSend);
            if long && form != Form::Std {
                return skip("the operation needs a standard header");
            }
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let posted = t.post(Post { mode, form: Some(form), ..operation(kind, peer, 100) })?;
            target.collect(t, 2)?;
            let first = target.packet(1)?.clone();
            let second = expect_retransmission(t, &mut target, t.value(&CAUSE), 1)?;
            let headers =
                |packet: &RxRequest| (packet.request.prologue().kind(), packet.request.prologue().next_hdr());
            t.check(PDS_RTO_005, "type and next_hdr", headers(&first), headers(&second));
            t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), second.request.spdcid());
            t.check(PDS_RTO_005, "dpdcid", first.request.dpdcid(), second.request.dpdcid());
            t.check(PDS_RTO_005, "all from the SES header on", first.content(), second.content());
            t.is_open(SES_DONE_001, posted)
        }),
    rule("retransmit-cause/late-ack", "The ACK of a retransmission completes the operation exactly once")
        .checks(&[SES_DONE_001, PDS_RTO_001, PDS_RTO_005])
        .over(&[&CAUSE, &LONG_OPERATION, &MODE])
        .run(|t| {
            let (kind, mode) = (t.value(&LONG_OPERATION), t.value(&MODE));
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let posted: Operated = t.post(Post { mode, ..operation(kind, peer, 100) })?;
            target.collect(t, 2)?;
            expect_retransmission(t, &mut target, t.value(&CAUSE), 1)?;
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
            t.settle_if_busy()?;
            let span = t.rto() * 3;
            target.expect_none(t, PDS_RTO_001, "no acknowledged packet", span, |n| n == 1)?;
            t.expect_action(peer)
        }),
];

/// Returns an operation of this kind with every field that it needs.
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

/// Creates the cause of a retransmission of the `n`-th packet, which no earlier answer covers.
fn create_cause(t: &mut Test<'_>, target: &Target, cause: Cause, n: u32) -> Outcome {
    match cause {
        Cause::Timeout => Ok(()),
        Cause::Nack(NackCode::ROD_OOO) if !target.pdc.rod => skip("ROD_OOO is for ordered contexts"),
        Cause::Nack(code @ (NackCode::NO_PDC_AVAIL | NackCode::NO_CCC_AVAIL | NackCode::NO_BITMAP)) => {
            target.refuse_without_context(t, code, n)
        }
        Cause::Nack(code) => target.refuse(t, code, n),
        Cause::Processing => target.refuse(t, NackCode::RCVD_SES_PROCG, n),
        Cause::AckRequest => {
            require(!target.pdc.rod, "an ordered context has no bits above a gap")?;
            target.sack(t, n, &[n])?;
            t.need("ACK_REQUEST", t.later(), |seen| target.control(seen, CtlType::ACK_REQUEST))?;
            target.refuse(t, NackCode::PKT_NOT_RCVD, n)
        }
    }
}

/// Creates the cause and expects the retransmission of the `n`-th packet.
fn expect_retransmission(
    t: &mut Test<'_>,
    target: &mut Target,
    cause: Cause,
    n: u32,
) -> Result<RxRequest, Stop> {
    create_cause(t, target, cause, n)?;
    let processing = cause == Cause::Processing;
    let requests_ack = |seen: &RxPacket| target.control(seen, CtlType::ACK_REQUEST);
    if processing && !t.hear(t.later(), |seen| seen.request().is_some_and(|request| request.retx()))? {
        // The device may send ACK_REQUEST instead.
        t.need("ACK_REQUEST, or the packet again", t.later(), requests_ack)?;
        target.refuse(t, NackCode::PKT_NOT_RCVD, n)?;
    }
    target.expect_again(t, PDS_RTO_005, n, t.later())
}
