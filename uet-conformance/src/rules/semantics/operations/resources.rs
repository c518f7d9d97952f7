//! Resources of contexts that ended in any way (section 3.5.8). Pools of few entries show a leak at once.

use crate::prelude::*;
use uet_control::{AddPeer, ClosePdc};

/// The way in which a context of the suite ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContextEnd {
    /// CLOSE_COMMAND on an idle context.
    Closed,
    /// CLOSE_COMMAND on a context that a NOOP opened.
    NoopClosed,
    /// CLOSE_COMMAND with a stored response that is not cleared.
    Uncleared,
    /// CLOSE_COMMAND in the middle of a message.
    PartialMessage,
    /// CLOSE_COMMAND above a gap.
    Gap,
    /// CLOSE_COMMAND with unacknowledged read data and a stored response.
    CloseInError,
    /// A fatal NACK for read data.
    FatalNack,
    /// The read data is never acknowledged.
    Timeout,
    /// The suite ignores the close request of the device.
    CloseIgnored,
}

const END: Axis<ContextEnd> = axis("end").needing(&[
    ("closed", ContextEnd::Closed, &[]),
    ("noop-closed", ContextEnd::NoopClosed, &[]),
    ("uncleared", ContextEnd::Uncleared, &[]),
    ("partial-message", ContextEnd::PartialMessage, &[]),
    ("gap", ContextEnd::Gap, &[RUD]),
    ("close-in-error", ContextEnd::CloseInError, &[READ]),
    ("fatal-nack", ContextEnd::FatalNack, &[READ]),
    ("timeout", ContextEnd::Timeout, &[READ]),
    ("close-ignored", ContextEnd::CloseIgnored, &[]),
]);

/// The parameter that sets the size of a pool, and the number of entries that one context may need.
type Pool = (&'static str, u64);

const POOL: Axis<Pool> = axis("pool").values(&[
    ("contexts", ("general_pdcs", 2)),
    ("congestion", ("cccs", 1)),
    ("slots", ("receive_slots", 16)),
    ("responses", ("stored_responses", 4)),
    ("buffers", ("rx_packets", 4)),
    ("messages", ("max_messages", 2)),
]);

/// The number of contexts that end. It exceeds the size of every pool.
const ROUNDS: u32 = 18;

/// The time in nanoseconds for which the device remembers a context that ended.
const RETENTION: u64 = 1_000_000;

pub(super) const RULES: &[Rule] = &[
    rule("resources/target", "A target has room for a new context, however the previous ones ended")
        .checks(&[PDS_CLOSE_004, ROB_LIFE_001, PDS_NACK_003, PDS_CLOSE_008])
        .needs(&[WRITE])
        .over(&[&END, &POOL, &MODE])
        .run(|t| {
            let (end, pool) = (t.value(&END), t.value(&POOL));
            if end == ContextEnd::CloseIgnored {
                t.configure("idle_time", 1_000_000)?;
                t.configure("close_req_time", 1_000_000)?;
            }
            let rounds = shrink_pool(t, pool)?;
            let requirement = match end {
                ContextEnd::CloseInError | ContextEnd::Timeout => ROB_LIFE_001,
                ContextEnd::FatalNack => PDS_NACK_003,
                ContextEnd::CloseIgnored => PDS_CLOSE_008,
                _ => PDS_CLOSE_004,
            };
            let region = t.region(1 << 16)?;
            for _ in 0..rounds {
                run_context(t, end, requirement, &region)?;
                t.forget();
            }
            if end == ContextEnd::CloseIgnored {
                // A further context would end during the check.
                return open_context(t, requirement, &region, false).map(drop);
            }
            expect_full_service(t, requirement, &region)
        }),
    rule("resources/initiator", "An initiator has room for a new context, however the previous ones ended")
        .checks(&[PDS_RTO_004, PDS_NACK_003, PDS_CLOSE_004, PDS_NACK_013, PDS_CLOSE_013])
        .over(&[&OWN_END, &OWN_POOL, &MODE, &CARRIER])
        .run(|t| {
            let (end, (pool, other), mode) = (t.value(&OWN_END), t.value(&OWN_POOL), t.value(&MODE));
            require(t.parameter("max_rto_retx_cnt") <= 7, "the device retransmits for too long")?;
            let rounds = shrink_pool(t, pool)?;
            let requirement = match end {
                OwnEnd::SynTimeout | OwnEnd::Timeout | OwnEnd::CloseTimeout => PDS_RTO_004,
                OwnEnd::SynRefused | OwnEnd::FatalNack => PDS_NACK_003,
                OwnEnd::Closed => PDS_CLOSE_004,
                OwnEnd::CloseRefused => PDS_NACK_013,
                OwnEnd::ReqClose => PDS_CLOSE_013,
            };
            let write = |peer| Post { mode, ..post(PostKind::Write, peer, 64) };
            for round in 0..=rounds {
                let last = round == rounds;
                // Each peer has its own congestion control context.
                let address = t.address(usize::from(last && other))?;
                let peer = t.call(AddPeer { address, port: None, job: 101, process: 1, initiator: 0 })?.peer;
                let since = t.now();
                let written = t.post(write(peer))?;
                let within = t.later();
                let opening = t.expect(requirement, "a request that opens a context", within, |seen| {
                    let request = seen.request().filter(|_| seen.at >= since && seen.wire.dst == address)?;
                    request.syn().then_some(())
                });
                let mut target = Target::opened_by(t, opening?.0)?;
                if last {
                    target.ack(t, 0)?;
                    return t.ends(requirement, written, Status::Ok);
                }
                if !matches!(end, OwnEnd::SynTimeout | OwnEnd::SynRefused) {
                    target.ack(t, 0)?;
                    t.ends(requirement, written, Status::Ok)?;
                }
                end_own_context(t, end, &mut target, peer, write(peer))?;
                t.settle()?;
                // A late retransmission must not count as the next opening.
                t.pause(t.until_given_up())?;
                t.forget();
            }
            Ok(())
        }),
    rule("resources/refused", "A refused packet consumes no resources")
        .checks(&[PDS_NACK_011])
        .needs(&[WRITE])
        .over(&[&REFUSAL, &POOL, &MODE])
        .run(|t| {
            let (reason, pool) = (t.value(&REFUSAL), t.value(&POOL));
            let rounds = shrink_pool(t, pool)?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            pdc.rod |= reason == Refusal::Gap;
            t.establish(&mut pdc, &region)?;
            for round in 0..rounds {
                let mut path = pdc.clone();
                let mut n = 1;
                match reason {
                    Refusal::SynBeyondWindow => {
                        path = t.initiate();
                        n = t.default_range().min(4095);
                    }
                    Refusal::BeyondWindow => n = t.beyond(&pdc)? + round,
                    Refusal::BelowWindow => (path.start, n) = (pdc.start - t.beyond(&pdc)? - round, 0),
                    Refusal::WrongStart => path.remote = None,
                    Refusal::WrongSpdcid => path.local = t.initiate().local,
                    Refusal::UnknownContext => path = t.initiate().of_nobody(pdc.remote),
                    Refusal::WrongMode => path.rod = !path.rod,
                    Refusal::Gap => n = 3,
                    Refusal::TrimmedSyn => path = t.initiate(),
                    Refusal::Trimmed => {}
                }
                let psn = path.psn(n);
                let offset = if reason == Refusal::WrongStart { 5 + round } else { n };
                let request = Request { offset, clear: psn - 1, ..path.request(n) };
                let packet = request.half(&region, t.mtu(), 0)?.build()?;
                match reason {
                    Refusal::Trimmed | Refusal::TrimmedSyn => {
                        t.send_wire(&path.trimmed(&packet, crate::Trimmed::Fabric, 64))?;
                    }
                    _ => t.send(&path, &packet)?,
                }
                // Open: whether the device sends a NACK each time.
                t.wait(t.soon() / 4, |seen| seen.refuses(&path, psn))?;
            }
            t.forget();
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            expect_full_service(t, PDS_NACK_011, &region)
        }),
];

/// Makes a pool small and the retention of contexts short. Returns a number of rounds that exceeds the pool.
fn shrink_pool(t: &mut Test<'_>, (name, size): Pool) -> Result<u32, Stop> {
    t.try_configure("syn_retx_safety_time", RETENTION)?;
    t.try_configure("max_rto_retx_cnt", 1)?;
    t.configure(name, size)?;
    Ok(ROUNDS.min(size as u32 + 2))
}

/// Opens a context once the device has forgotten those that ended.
fn open_context(
    t: &mut Test<'_>,
    requirement: &Requirement,
    region: &Region,
    by_noop: bool,
) -> Result<Pdc, Stop> {
    let mut pdc = t.initiate();
    // Open: how long a device remembers a context for late packets.
    let retention = Duration::from_nanos(t.parameter("syn_retx_safety_time"));
    t.pause(t.scaled(retention))?;
    let mut answer = None;
    for _ in 0..20 {
        let packet = if by_noop {
            pdc.numbered(CtlType::NOOP, 0)?
        } else {
            pdc.request(0).write(region, region.length - 1, &[0])?.build()?
        };
        t.send(&pdc, &packet)?;
        let soon = t.soon();
        answer = t.wait(soon, |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
        if answer.is_some() {
            break;
        }
    }
    let refused = t.gather(Duration::ZERO)?.into_iter().rev().find(|seen| seen.lacks_room());
    let seen = refused.map_or_else(|| "no answer".to_owned(), |seen| seen.uet().to_string());
    t.holds(requirement, "there is room for a context after others have ended", answer.is_some(), seen);
    let (_, ack) = answer.ok_or(if t.heard() { Stop::Failed } else { Stop::Silent })?;
    pdc.remote = Some(ack.spdcid());
    Ok(pdc)
}

/// Expects that a new context has the resources for a message and for a stored response.
fn expect_full_service(t: &mut Test<'_>, requirement: &Requirement, region: &Region) -> Outcome {
    let pdc = open_context(t, requirement, region, false)?;
    t.forget();
    let (mtu, region) = (t.mtu(), region.clone());
    for k in 0..2 {
        t.request(&pdc, pdc.request(1 + k).half(&region, mtu, k as usize)?)?;
    }
    t.expect_cack(requirement, &pdc, pdc.psn(2))?;
    t.request(&pdc, pdc.request(3).write_nowhere(&region, &[1])?)?;
    let (seen, _) = t.expect_answer(requirement, &pdc, pdc.psn(3))?;
    t.holds(requirement, "the write to an unknown region gets an error", seen.is_error(), seen.uet());
    t.request(&pdc, pdc.request(4).clear(pdc.psn(3)).write(&region, 0, &[1])?)?;
    t.expect_cack(requirement, &pdc, pdc.psn(4))?;
    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(5), 0)?)?;
    t.need_ack(&pdc, pdc.psn(5)).map(drop)
}

/// Opens a context and ends it in this way.
fn run_context(t: &mut Test<'_>, end: ContextEnd, requirement: &Requirement, region: &Region) -> Outcome {
    let pdc = open_context(t, requirement, region, end == ContextEnd::NoopClosed)?;
    let mut last = 1;
    match end {
        ContextEnd::Closed | ContextEnd::NoopClosed => {}
        ContextEnd::Uncleared => {
            for n in 1..=2 {
                t.request(&pdc, pdc.request(n).write_nowhere(region, &[1])?)?;
                t.expect_answer(requirement, &pdc, pdc.psn(n))?;
            }
            last = 3;
        }
        ContextEnd::PartialMessage => {
            t.request(&pdc, pdc.request(1).half(region, t.mtu(), 0)?)?;
            t.expect_ack(requirement, &pdc, pdc.psn(1))?;
            last = 2;
        }
        ContextEnd::Gap => {
            require(!pdc.rod, "an ordered context takes nothing above a gap")?;
            t.request(&pdc, pdc.request(3).write(region, 0, &[1])?)?;
            t.expect_ack(requirement, &pdc, pdc.psn(3))?;
            last = 4;
        }
        ContextEnd::CloseInError | ContextEnd::FatalNack | ContextEnd::Timeout => {
            // The stored response is not cleared, and ends with the context.
            t.request(&pdc, pdc.request(1).write_nowhere(region, &[1])?)?;
            t.expect_answer(requirement, &pdc, pdc.psn(1))?;
            let length = t.beyond_ack()?;
            t.request(&pdc, pdc.request(2).read(region, 0, length)?)?;
            let data = |seen: &RxPacket| seen.request().filter(|_| seen.is_for(&pdc));
            let (_, data) = t.expect(requirement, "read data", t.soon(), data)?;
            match end {
                ContextEnd::FatalNack => {
                    t.send(&pdc, &pdc.nack(NackCode::CLOSING_IN_ERR, data.psn())?)?;
                    return t.settle();
                }
                ContextEnd::Timeout => return t.pause(t.until_given_up()),
                _ => {}
            }
            last = 3;
        }
        ContextEnd::CloseIgnored => {
            let within = t.soon() * 2;
            let closing = |seen: &RxPacket| {
                let nack = seen.nack().filter(|_| seen.is_for(&pdc))?;
                (nack.nack_code() == NackCode::CLOSING_IN_ERR).then_some(())
            };
            return t.expect(requirement, "NACK CLOSING_IN_ERR", within, closing).map(drop);
        }
    }
    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(last), 0)?)?;
    let psn = pdc.psn(last);
    let ended = |seen: &RxPacket| seen.answers(&pdc, psn).is_some() || seen.refuses(&pdc, psn).is_some();
    t.need("the end of the context", t.soon(), |seen| ended(seen).then_some(())).map(drop)
}

/// The reason to refuse a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    SynBeyondWindow,
    BeyondWindow,
    BelowWindow,
    WrongStart,
    WrongSpdcid,
    UnknownContext,
    WrongMode,
    Gap,
    Trimmed,
    TrimmedSyn,
}

const REFUSAL: Axis<Refusal> = axis("reason").needing(&[
    ("syn-beyond-window", Refusal::SynBeyondWindow, &[]),
    ("beyond-window", Refusal::BeyondWindow, &[]),
    ("below-window", Refusal::BelowWindow, &[]),
    ("wrong-start", Refusal::WrongStart, &[]),
    ("wrong-spdcid", Refusal::WrongSpdcid, &[]),
    ("unknown-context", Refusal::UnknownContext, &[]),
    ("wrong-mode", Refusal::WrongMode, &[RUD, ROD]),
    ("gap", Refusal::Gap, &[ROD]),
    ("trimmed", Refusal::Trimmed, &[TRIM]),
    ("trimmed-syn", Refusal::TrimmedSyn, &[TRIM]),
]);

/// The way in which a context of the device ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnEnd {
    /// The opening packet gets no answer.
    SynTimeout,
    /// The opening packet gets a fatal NACK.
    SynRefused,
    /// A packet of the open context gets no answer.
    Timeout,
    /// A packet of the open context gets a fatal NACK.
    FatalNack,
    /// The context is closed, and the close acknowledged.
    Closed,
    /// The close gets no answer.
    CloseTimeout,
    /// The close is refused.
    CloseRefused,
    /// The target requests a close by REQ_CLOSE.
    ReqClose,
}

const OWN_END: Axis<OwnEnd> = axis("end").needing(&[
    ("syn-timeout", OwnEnd::SynTimeout, &[]),
    ("syn-refused", OwnEnd::SynRefused, &[]),
    ("timeout", OwnEnd::Timeout, &[]),
    ("fatal-nack", OwnEnd::FatalNack, &[]),
    ("closed", OwnEnd::Closed, &[CLOSE]),
    ("close-timeout", OwnEnd::CloseTimeout, &[CLOSE]),
    ("close-refused", OwnEnd::CloseRefused, &[CLOSE]),
    ("req-close", OwnEnd::ReqClose, &[]),
]);

/// A pool, and true if the last context is to another peer.
const OWN_POOL: Axis<(Pool, bool)> = axis("pool").needing(&[
    ("contexts", (("general_pdcs", 2), false), &[]),
    ("congestion", (("cccs", 1), true), &[TWO_ADDRESSES]),
]);

/// Ends a context of the device in this way.
fn end_own_context(t: &mut Test<'_>, end: OwnEnd, target: &mut Target, peer: u64, write: Post) -> Outcome {
    let mode = t.value(&MODE);
    match end {
        OwnEnd::SynTimeout => Ok(()),
        OwnEnd::SynRefused => target.refuse_without_context(t, NackCode::CLOSING_IN_ERR, 0),
        OwnEnd::Timeout => t.post(write).map(drop),
        OwnEnd::FatalNack => {
            t.post(write)?;
            target.collect(t, 2)?;
            target.refuse(t, NackCode::CLOSING_IN_ERR, 1)
        }
        OwnEnd::Closed | OwnEnd::CloseTimeout | OwnEnd::CloseRefused => {
            t.call(ClosePdc { peer, mode, class: 0 })?;
            let closes = |seen: &RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
            let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
            answer_close(t, end, target, command.psn())
        }
        OwnEnd::ReqClose => {
            t.post(write)?;
            target.collect(t, 2)?;
            let ack = AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(1) };
            target.answer(t, ack)?;
            let closes = |seen: &RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
            let (_, command) = t.expect(PDS_CLOSE_013, "CLOSE_COMMAND", t.later(), closes)?;
            answer_close(t, end, target, command.psn())
        }
    }
}

/// Answers the CLOSE_COMMAND of the device.
fn answer_close(t: &mut Test<'_>, end: OwnEnd, target: &Target, psn: Psn) -> Outcome {
    match end {
        OwnEnd::CloseTimeout => Ok(()),
        OwnEnd::CloseRefused => t.send(&target.pdc, &target.pdc.nack(NackCode::CLOSING_IN_ERR, psn)?),
        _ => target.answer(t, AckBuilder { response: None, ..target.pdc.ack(psn) }),
    }
}
