//! The operation that follows one that succeeded, failed or timed out (sections 3.5 and 3.5.8).

use crate::prelude::*;
use uet_control::ClosePdc;

/// The way in which an operation and its context end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It is acknowledged.
    Acknowledged,
    /// A response refuses it.
    Response(ReturnCode),
    /// A NACK ends its context.
    Nack(NackCode),
    /// The target refuses each transmission with NO_RESOURCE.
    NoResource,
    /// It gets no answer.
    Timeout,
    /// It is acknowledged, and the device closes the context.
    Closed,
    /// It is acknowledged, and the target requests a close.
    ClosedByTarget,
    /// The opening packet gets no answer.
    SynTimeout,
    /// The opening packet is refused as INVALID_SYN.
    InvalidSyn,
}

const ENDING: Axis<Ending> = axis("ending").needing(&[
    ("acknowledged", Ending::Acknowledged, &[]),
    ("bad-index", Ending::Response(ReturnCode::BAD_INDEX), &[]),
    ("inv-dpdcid", Ending::Nack(NackCode::INV_DPDCID), &[]),
    ("hdr-mismatch", Ending::Nack(NackCode::PDC_HDR_MISMATCH), &[]),
    ("mode-mismatch", Ending::Nack(NackCode::PDC_MODE_MISMATCH), &[]),
    ("closing", Ending::Nack(NackCode::CLOSING), &[]),
    ("closing-in-err", Ending::Nack(NackCode::CLOSING_IN_ERR), &[]),
    ("gtd-resp-unavail", Ending::Nack(NackCode::GTD_RESP_UNAVAIL), &[]),
    ("no-resource", Ending::NoResource, &[]),
    ("timeout", Ending::Timeout, &[]),
    ("closed", Ending::Closed, &[CLOSE]),
    ("closed-by-target", Ending::ClosedByTarget, &[]),
    ("syn-timeout", Ending::SynTimeout, &[]),
    ("invalid-syn", Ending::InvalidSyn, &[]),
]);

/// The end of a context with operations whose packets have not left: no answer, or a NACK. True if the
/// context is open before.
const QUEUED: Axis<(bool, Option<NackCode>)> = axis("ending").values(&[
    ("syn-timeout", (false, None)),
    ("timeout", (true, None)),
    ("invalid-syn", (false, Some(NackCode::INVALID_SYN))),
    ("closing-in-err", (true, Some(NackCode::CLOSING_IN_ERR))),
]);

/// A NACK that ends a context. A retry needs another one.
const FATAL: Axis<NackCode> = axis("code")
    .values(&[("inv-dpdcid", NackCode::INV_DPDCID), ("hdr-mismatch", NackCode::PDC_HDR_MISMATCH)]);

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &ENDING])
}

pub(super) const RULES: &[Rule] = &[
    rule("after-failure/next-operation", "The next operation completes, however the previous one ended")
        .checks(&[PDS_NACK_003, PDS_RTO_004, PDS_CLOSE_004, SES_DONE_001])
        .run(|t| {
            let ending = t.value(&ENDING);
            require_short_timeouts(t, ending)?;
            let peer = t.peer(0)?;
            let from = t.address(0)?;
            let first = end_operation(t, peer, ending)?;
            check_completion(t, first, ending)?;
            for length in [64, 3 * t.mtu()] {
                let next = t.post(post(PostKind::Write, peer, length))?;
                let status = serve_until_completion(t, next, from)?;
                t.check(
                    ending.requirement(),
                    "the completion of the next operation",
                    Some(Status::Ok),
                    status,
                );
            }
            Ok(())
        }),
    crate::rule(
        "after-failure/whole-message",
        "A message whose context a NACK ends does not go on in a new context",
    )
    .checks(&[PDS_MSG_002])
    .over(&[&FATAL])
    .run(|t| {
        // The device may fail the message, or send all or the rest of it as another message.
        let (code, peer) = (t.value(&FATAL), t.peer(0)?);
        t.post(post(PostKind::Write, peer, 4 * t.mtu()))?;
        let mut target = Target::accept(t)?;
        target.collect(t, 4)?;
        target.ack(t, 1)?;
        t.settle()?;
        target.refuse_without_context(t, code, 2)?;
        let (old, within) = (target.pdc.remote, t.later());
        let opening = t.wait(within, |seen| {
            let request = seen.request().filter(|request| Some(request.spdcid()) != old)?;
            let is_first = request.psn_offset().is_some_and(|offset| offset.get() == 0);
            crate::serve::said(&seen.uet()).filter(|_| is_first)
        })?;
        if let Some((_, said)) = opening {
            t.check(PDS_MSG_002, "message_offset of the first packet of the new context", 0, said.start());
        }
        Ok(())
    }),
    crate::rule(
        "after-failure/queued",
        "If a context fails, operations that wait for its window end as well",
    )
    .checks(&[PDS_RTO_004, PDS_NACK_003])
    .needs(&[RUD])
    .over(&[&QUEUED, &CARRIER])
    .run(|t| {
        let (open, code) = t.value(&QUEUED);
        require_short_timeouts(t, Ending::Timeout)?;
        t.try_configure("default_mpr", 1)?;
        t.try_configure("payload_mtu", 1024)?;
        t.try_configure("congestion", "none")?;
        let peer = t.peer(0)?;
        let range = 128 * t.parameter("default_mpr") as usize;
        let before = if open { Some(Target::established(t, peer, Mode::Rud)?) } else { None };
        // The first message fills the window.
        let mut posted = Vec::new();
        for packets in [range, 2, 1] {
            posted.push(t.post(post(PostKind::Write, peer, packets * t.mtu()))?);
        }
        let target = before.map_or_else(|| Target::accept(t), Ok)?;
        if let Some(code) = code {
            target.refuse(t, code, u32::from(open))?;
        }
        // A device may send each of them again on another context, which gets no answer.
        let requirement = if code.is_some() { PDS_NACK_003 } else { PDS_RTO_004 };
        for operation in posted {
            t.fails(requirement, operation, t.until_given_up() * 4)?;
        }
        Ok(())
    }),
    rule("after-failure/completes-once", "An operation completes exactly once, however it ends")
        .checks(&[SES_DONE_001])
        .run(|t| {
            let ending = t.value(&ENDING);
            require_short_timeouts(t, ending)?;
            let peer = t.peer(0)?;
            let operation = end_operation(t, peer, ending)?;
            let from = t.address(0)?;
            if serve_until_completion(t, operation, from)?.is_none() {
                return Err(Stop::Inconclusive("the operation has not completed".into()));
            }
            // Late packets do not complete it a second time.
            t.pause(t.rto() * 2)?;
            let times = t.times_ended(operation)?;
            t.check(SES_DONE_001, "completions of the operation", 1, times);
            Ok(())
        }),
    rule("after-failure/small-pool", "A small pool of contexts serves many operations, however they end")
        .checks(&[PDS_NACK_003, PDS_RTO_004, PDS_CLOSE_004, SES_DONE_001])
        .needs(&[CLOSE])
        .run(|t| {
            let ending = t.value(&ENDING);
            require_short_timeouts(t, ending)?;
            t.configure("general_pdcs", 2)?;
            let peer = t.peer(0)?;
            for _ in 0..4 {
                let operation = end_operation(t, peer, ending)?;
                check_completion(t, operation, ending)?;
                close_context(t, peer)?;
                t.forget();
            }
            let from = t.address(0)?;
            let next = t.post(post(PostKind::Write, peer, 64))?;
            let status = serve_until_completion(t, next, from)?;
            t.check(ending.requirement(), "the completion of the fifth operation", Some(Status::Ok), status);
            Ok(())
        }),
    rule("after-failure/other-peer", "The end of a context does not affect a context to another peer")
        .checks(&[PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let ending = t.value(&ENDING);
            require_short_timeouts(t, ending)?;
            let other = t.peer(1)?;
            let from = t.address(1)?;
            let (first, peer) = (t.post(post(PostKind::Write, other, 64))?, t.peer(0)?);
            let status = serve_until_completion(t, first, from)?;
            if status != Some(Status::Ok) {
                return Err(Stop::Inconclusive("the operation to the other peer has not completed".into()));
            }
            end_operation(t, peer, ending)?;
            let next = t.post(post(PostKind::Write, other, 64))?;
            let (seen, request) =
                t.expect(PDS_PDC_003, "a request to the other peer", t.later(), |seen| {
                    seen.request().filter(|_| seen.wire.dst == from)
                })?;
            // A device may open another context at any time.
            if request.syn() {
                let pdc = t.accept(&seen)?;
                t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
            } else if let Some(local) = request.dpdcid() {
                let pdc =
                    Pdc { from, to: seen.wire.src, local, remote: Some(request.spdcid()), ..t.initiate() };
                t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
            }
            t.ends(PDS_PDC_003, next, Status::Ok)
        }),
];

impl Ending {
    /// Returns the requirement that governs the end of the context.
    fn requirement(self) -> &'static Requirement {
        match self {
            Ending::Nack(_) | Ending::InvalidSyn => PDS_NACK_003,
            Ending::NoResource | Ending::Timeout | Ending::SynTimeout => PDS_RTO_004,
            Ending::Closed | Ending::ClosedByTarget => PDS_CLOSE_004,
            Ending::Acknowledged | Ending::Response(_) => SES_DONE_001,
        }
    }

    /// True if the target received the message, so that the operation completes successfully.
    fn is_success(self) -> bool {
        matches!(self, Ending::Acknowledged | Ending::Closed | Ending::ClosedByTarget)
    }
}

/// Acknowledges everything that the device sends to this address, on any context, until the operation
/// completes or the time is over. Returns the status of the completion.
fn serve_until_completion(
    t: &mut Test<'_>,
    operation: Operated,
    from: core::net::IpAddr,
) -> Result<Option<Status>, Stop> {
    let until = t.now() + t.later() + t.until_given_up();
    let mut contexts: Vec<Pdc> = Vec::new();
    loop {
        if let Some(ended) = t.completion(operation, Duration::ZERO)? {
            return Ok(Some(ended.status));
        }
        let within = until.saturating_sub(t.now()).min(t.rto());
        if within.is_zero() {
            return Ok(None);
        }
        let wanted = |seen: &RxPacket| {
            let here = seen.wire.dst == from;
            let closes =
                seen.control(CtlType::CLOSE_COMMAND).map(|command| (command.spdcid(), command.psn(), true));
            let requests = seen.request().map(|request| (request.spdcid(), request.psn(), false));
            closes.or(requests).filter(|_| here)
        };
        let Some((seen, (spdcid, psn, control))) = t.wait(within, wanted)? else { continue };
        let old = contexts.iter().find(|pdc| pdc.remote == Some(spdcid)).cloned();
        let syn = seen.request().is_some_and(|request| request.syn());
        let pdc = match old {
            Some(pdc) => pdc,
            None if syn => {
                let pdc = t.accept(&seen)?;
                contexts.push(pdc.clone());
                pdc
            }
            // It belongs to an earlier context.
            None => {
                let here = seen.request().and_then(|request| request.dpdcid());
                let here = here.or(seen.control(CtlType::CLOSE_COMMAND).and_then(|command| command.dpdcid()));
                let Some(local) = here else { continue };
                Pdc { from, to: seen.wire.src, local, remote: Some(spdcid), ..t.initiate() }
            }
        };
        let ack = pdc.ack(psn);
        let ack = if control { AckBuilder { response: None, ..ack } } else { ack };
        t.send(&pdc, &ack.build()?)?;
    }
}

/// Skips the rule if the device retransmits for longer than a script can wait.
fn require_short_timeouts(t: &Test<'_>, ending: Ending) -> Outcome {
    let waits = matches!(ending, Ending::NoResource | Ending::Timeout | Ending::SynTimeout);
    match (t.parameter("max_rto_retx_cnt"), t.parameter("max_nack_retx_cnt")) {
        (8.., _) if waits => skip("the device retransmits for too long after timeouts"),
        (_, 31 | 50..) if waits => skip("the device retransmits for too long after NACKs"),
        _ => Ok(()),
    }
}

/// Posts an operation of one packet and ends it in this way. Returns the operation.
fn end_operation(t: &mut Test<'_>, peer: u64, ending: Ending) -> Result<Operated, Stop> {
    let operation = match ending {
        Ending::SynTimeout | Ending::InvalidSyn => {
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            match ending {
                Ending::InvalidSyn => target.refuse(t, NackCode::INVALID_SYN, 0)?,
                _ => target.watch(t, t.until_given_up())?,
            }
            written
        }
        _ => {
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 640))?;
            target.collect(t, 2)?;
            end_established(t, &mut target, peer, ending)?;
            written
        }
    };
    t.settle()?;
    Ok(operation)
}

/// Ends the operation whose packet is the second of the context.
fn end_established(t: &mut Test<'_>, target: &mut Target, peer: u64, ending: Ending) -> Outcome {
    match ending {
        Ending::Response(code) => {
            let response = target.packet(1)?.response(code, 0)?;
            let ack = target.naming(1, 1).guaranteed(response);
            target.answer(t, ack)
        }
        Ending::Nack(code @ (NackCode::INV_DPDCID | NackCode::PDC_HDR_MISMATCH)) => {
            target.refuse_without_context(t, code, 1)
        }
        Ending::Nack(code) => target.refuse(t, code, 1),
        Ending::NoResource => {
            let most = t.parameter("max_nack_retx_cnt") + t.parameter("max_rto_retx_cnt") + 2;
            for _ in 0..most {
                target.refuse(t, NackCode::NO_RESOURCE, 1)?;
                let within = t.later();
                let psn = target.psn(1);
                let retransmission =
                    t.wait(within, |seen| seen.request().filter(|request| request.psn() == psn))?;
                if retransmission.is_none() {
                    break;
                }
            }
            Ok(())
        }
        Ending::Timeout => target.watch(t, t.until_given_up()),
        Ending::Closed => {
            target.ack(t, 1)?;
            t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
            confirm_close(t, target)
        }
        Ending::ClosedByTarget => {
            let ack = AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(1) };
            target.answer(t, ack)?;
            confirm_close(t, target)
        }
        _ => target.ack(t, 1),
    }
}

/// Acknowledges the CLOSE_COMMAND of the device.
fn confirm_close(t: &mut Test<'_>, target: &Target) -> Outcome {
    let closes = |seen: &RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
    let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
    target.answer(t, AckBuilder { response: None, ..target.pdc.ack(command.psn()) })
}

/// Checks how the operation completes. A device may retry it on a new context.
fn check_completion(t: &mut Test<'_>, operation: Operated, ending: Ending) -> Outcome {
    let from = t.address(0)?;
    let status = serve_until_completion(t, operation, from)?;
    let requirement = ending.requirement();
    match (ending, ending.is_success()) {
        (_, true) => t.check(requirement, "the completion", Some(Status::Ok), status),
        (Ending::Response(_), _) => t.check(requirement, "the completion", Some(Status::Refused), status),
        _ => t.holds(requirement, "the operation ends", status.is_some(), crate::Show::show(&status)),
    }
    Ok(())
}

/// Closes the context of the device to the peer if it has one.
fn close_context(t: &mut Test<'_>, peer: u64) -> Outcome {
    match t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 }) {
        // The device may have no context to the peer.
        Ok(_) | Err(Stop::Inconclusive(_)) => {}
        Err(stop) => return Err(stop),
    }
    let within = t.rto() / 2;
    if let Some((seen, command)) = t.wait(within, |seen| seen.control(CtlType::CLOSE_COMMAND))? {
        let (from, to, remote) = (seen.wire.dst, seen.wire.src, Some(command.spdcid()));
        let local = command.dpdcid().unwrap_or_default();
        let pdc = Pdc { from, to, local, remote, ..t.initiate() };
        let ack = AckBuilder { response: None, ..pdc.ack(command.psn()) };
        t.send(&pdc, &ack.build()?)?;
    }
    t.settle()
}
