//! Room after contexts and messages have ended, however they did: pools of few entries show a leak at once.

use crate::prelude::*;
use uet_control::{AddPeer, ClosePdc};

/// How a context of the suite ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContextEnd {
    /// CLOSE_COMMAND, with nothing open.
    Closed,
    /// CLOSE_COMMAND on a context that a NOOP has opened.
    NoopClosed,
    /// CLOSE_COMMAND with a stored response that nobody has cleared.
    Uncleared,
    /// CLOSE_COMMAND in the middle of a message.
    HalfMessage,
    /// CLOSE_COMMAND above a gap.
    Gap,
    /// CLOSE_COMMAND while read data is not acknowledged, and a stored response not cleared.
    InError,
    /// A fatal NACK of read data.
    Fatal,
    /// Nobody acknowledges the read data.
    GivenUp,
    /// The device asks for the close, in vain.
    InVain,
}

const END: Axis<ContextEnd> = axis("end").needing(&[
    ("closed", ContextEnd::Closed, &[]),
    ("noop-closed", ContextEnd::NoopClosed, &[]),
    ("uncleared", ContextEnd::Uncleared, &[]),
    ("half-message", ContextEnd::HalfMessage, &[]),
    ("gap", ContextEnd::Gap, &[RUD]),
    ("in-error", ContextEnd::InError, &[READ]),
    ("fatal", ContextEnd::Fatal, &[READ]),
    ("given-up", ContextEnd::GivenUp, &[READ]),
    ("in-vain", ContextEnd::InVain, &[]),
]);

/// A pool of the device, by the parameter that sets its size, and how many entries a single context may need.
type Pool = (&'static str, u64);

const POOL: Axis<Pool> = axis("pool").values(&[
    ("contexts", ("general_pdcs", 2)),
    ("congestion", ("cccs", 1)),
    ("slots", ("receive_slots", 16)),
    ("responses", ("stored_responses", 4)),
    ("buffers", ("rx_packets", 4)),
    ("messages", ("max_messages", 2)),
]);

/// How often contexts end. More often than any pool is large.
const ROUNDS: u32 = 18;

/// How long the device keeps what has ended.
const MEMORY: u64 = 1_000_000;

pub(super) const RULES: &[Rule] = &[
    rule("resources/target", "A target has room for a new context, however the previous ones ended")
        .checks(&[PDS_CLOSE_004, ROB_LIFE_001, PDS_NACK_003, PDS_CLOSE_008])
        .needs(&[WRITE])
        .over(&[&END, &POOL, &MODE])
        .run(|t| {
            let end = t.value(&END);
            let pool = t.value(&POOL);
            if end == ContextEnd::InVain {
                t.configure("idle_time", 1_000_000)?;
                t.configure("close_req_time", 1_000_000)?;
            }
            let rounds = small(t, pool)?;
            let requirement = match end {
                ContextEnd::InError | ContextEnd::GivenUp => ROB_LIFE_001,
                ContextEnd::Fatal => PDS_NACK_003,
                ContextEnd::InVain => PDS_CLOSE_008,
                _ => PDS_CLOSE_004,
            };
            let region = t.region(1 << 16)?;
            for _ in 0..rounds {
                ended(t, end, requirement, &region)?;
                t.forget();
            }
            if end == ContextEnd::InVain {
                // The next would end while it serves.
                return fresh(t, requirement, &region, false).map(drop);
            }
            serves(t, requirement, &region)
        }),
    rule("resources/initiator", "An initiator has room for a new context, however the previous ones ended")
        .checks(&[PDS_RTO_004, PDS_NACK_003, PDS_CLOSE_004, PDS_NACK_013, PDS_CLOSE_013])
        .over(&[&OWN_END, &OWN_POOL, &MODE, &CARRIER])
        .run(|t| {
            let (end, (pool, other)) = (t.value(&OWN_END), t.value(&OWN_POOL));
            require(t.parameter("max_rto_retx_cnt") <= 7, "retransmissions have no end, or take too long")?;
            let rounds = small(t, pool)?;
            let mode = t.value(&MODE);
            let requirement = match end {
                OwnEnd::NoAnswer | OwnEnd::GivenUp => PDS_RTO_004,
                OwnEnd::Refused | OwnEnd::Fatal => PDS_NACK_003,
                OwnEnd::Closed => PDS_CLOSE_004,
                OwnEnd::CloseGivenUp => PDS_RTO_004,
                OwnEnd::CloseRefused => PDS_NACK_013,
                OwnEnd::Asked => PDS_CLOSE_013,
            };
            let write = |peer| Post { mode, ..post(PostKind::Write, peer, 64) };
            for round in 0..=rounds {
                let last = round == rounds;
                // The congestion control context is that of the peer: another peer needs one of its own.
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
                    t.ends(requirement, written, Status::Ok)?;
                    return Ok(());
                }
                if !matches!(end, OwnEnd::NoAnswer | OwnEnd::Refused) {
                    target.ack(t, 0)?;
                    t.ends(requirement, written, Status::Ok)?;
                }
                own_end(t, end, &mut target, peer, write(peer))?;
                t.settle()?;
                // A late attempt of what has failed must not be taken for the next opening.
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
            let (kind, pool) = (t.value(&REFUSAL), t.value(&POOL));
            let rounds = small(t, pool)?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            pdc.rod |= kind == Refusal::Gap;
            t.establish(&mut pdc, &region)?;
            for round in 0..rounds {
                let mut way = pdc.clone();
                let mut n = 1;
                match kind {
                    Refusal::FirstBeyond => {
                        way = t.initiate();
                        n = t.default_range().min(4095);
                    }
                    Refusal::Beyond => n = t.beyond(&pdc)? + round,
                    Refusal::Below => (way.start, n) = (pdc.start - t.beyond(&pdc)? - round, 0),
                    Refusal::Moved => way.remote = None,
                    Refusal::Stranger => way.local = t.initiate().local,
                    Refusal::Unknown => way = t.initiate().of_nobody(pdc.remote),
                    Refusal::OtherMode => way.rod = !way.rod,
                    Refusal::Gap => n = 3,
                    Refusal::TrimmedOpening => way = t.initiate(),
                    Refusal::Trimmed => {}
                }
                let psn = way.psn(n);
                let offset = if kind == Refusal::Moved { 5 + round } else { n };
                let request = Request { offset, clear: psn - 1, ..way.request(n) };
                let packet = request.half(&region, t.mtu(), 0)?.build()?;
                match kind {
                    Refusal::Trimmed | Refusal::TrimmedOpening => {
                        t.send_wire(&way.trimmed(&packet, crate::Trimmed::Fabric, 64))?;
                    }
                    _ => t.send(&way, &packet)?,
                }
                // Open here: if a NACK comes each time.
                t.wait(t.soon() / 4, |seen| seen.refuses(&way, psn))?;
            }
            t.forget();
            t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            serves(t, PDS_NACK_011, &region)
        }),
];

/// Makes a pool small, and the memory of ended contexts short.
fn small(t: &mut Test<'_>, (name, size): Pool) -> Result<u32, Stop> {
    t.try_configure("syn_retx_safety_time", MEMORY)?;
    t.try_configure("max_rto_retx_cnt", 1)?;
    t.configure(name, size)?;
    Ok(ROUNDS.min(size as u32 + 2))
}

/// Opens a context as soon as the device has forgotten those that have ended.
fn fresh(t: &mut Test<'_>, requirement: &Requirement, region: &Region, by_noop: bool) -> Result<Pdc, Stop> {
    let mut pdc = t.initiate();
    // How long what has ended is kept for late packets is open.
    let told = Duration::from_nanos(t.parameter("syn_retx_safety_time"));
    t.pause(t.scaled(told))?;
    let mut answer = None;
    for _ in 0..20 {
        let packet = match by_noop {
            true => pdc.numbered(CtlType::NOOP, 0)?,
            false => pdc.request(0).write(region, region.length - 1, &[0])?.build()?,
        };
        t.send(&pdc, &packet)?;
        let soon = t.soon();
        answer = t.wait(soon, |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
        if answer.is_some() {
            break;
        }
    }
    let refused = t.gather(Duration::ZERO)?.into_iter().rev().find(|seen| seen.lacks_room());
    let told = refused.map_or_else(|| "no answer".to_owned(), |seen| seen.uet().to_string());
    t.holds(requirement, "there is room for a context after others have ended", answer.is_some(), told);
    let (_, ack) = answer.ok_or(if t.heard { Stop::Failed } else { Stop::Silent })?;
    pdc.remote = Some(ack.spdcid());
    Ok(pdc)
}

/// Expects that a context has all that it needs: room for a message, for a gap and for a response that is
/// kept.
fn serves(t: &mut Test<'_>, requirement: &Requirement, region: &Region) -> Outcome {
    let pdc = fresh(t, requirement, region, false)?;
    t.forget();
    let (mtu, region) = (t.mtu(), region.clone());
    for k in 0..2 {
        t.request(&pdc, pdc.request(1 + k).half(&region, mtu, k as usize)?)?;
    }
    t.expect_cack(requirement, &pdc, pdc.psn(2))?;
    t.request(&pdc, pdc.request(3).write_nowhere(&region, &[1])?)?;
    let (seen, _) = t.expect_answer(requirement, &pdc, pdc.psn(3))?;
    t.holds(requirement, "the write to nowhere is answered by an error", seen.is_error(), seen.uet());
    t.request(&pdc, pdc.request(4).clear(pdc.psn(3)).write(&region, 0, &[1])?)?;
    t.expect_cack(requirement, &pdc, pdc.psn(4))?;
    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(5), 0)?)?;
    t.need_ack(&pdc, pdc.psn(5))?;
    Ok(())
}

/// A context that opens and ends.
fn ended(t: &mut Test<'_>, end: ContextEnd, requirement: &Requirement, region: &Region) -> Outcome {
    let pdc = fresh(t, requirement, region, end == ContextEnd::NoopClosed)?;
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
        ContextEnd::HalfMessage => {
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
        ContextEnd::InError | ContextEnd::Fatal | ContextEnd::GivenUp => {
            // A response that nobody has cleared ends with the context.
            t.request(&pdc, pdc.request(1).write_nowhere(region, &[1])?)?;
            t.expect_answer(requirement, &pdc, pdc.psn(1))?;
            let length = t.beyond_ack()?;
            t.request(&pdc, pdc.request(2).read(region, 0, length)?)?;
            let data = |seen: &crate::RxPacket| seen.request().filter(|_| seen.is_for(&pdc));
            let (_, data) = t.expect(requirement, "read data", t.soon(), data)?;
            match end {
                ContextEnd::Fatal => {
                    t.send(&pdc, &pdc.nack(NackCode::CLOSING_IN_ERR, data.psn())?)?;
                    return t.settle();
                }
                ContextEnd::GivenUp => return t.pause(t.until_given_up()),
                _ => {}
            }
            last = 3;
        }
        ContextEnd::InVain => {
            let within = t.soon() * 2;
            t.expect(requirement, "NACK CLOSING_IN_ERR", within, |seen| {
                let nack = seen.nack().filter(|_| seen.is_for(&pdc))?;
                (nack.nack_code() == NackCode::CLOSING_IN_ERR).then_some(())
            })?;
            return Ok(());
        }
    }
    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(last), 0)?)?;
    let psn = pdc.psn(last);
    t.need("the end of the context", t.soon(), |seen| {
        (seen.answers(&pdc, psn).is_some() || seen.refuses(&pdc, psn).is_some()).then_some(())
    })?;
    Ok(())
}

/// Why a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    FirstBeyond,
    Beyond,
    Below,
    Moved,
    Stranger,
    Unknown,
    OtherMode,
    Gap,
    Trimmed,
    TrimmedOpening,
}

const REFUSAL: Axis<Refusal> = axis("kind").needing(&[
    ("first-beyond", Refusal::FirstBeyond, &[]),
    ("beyond", Refusal::Beyond, &[]),
    ("below", Refusal::Below, &[]),
    ("moved", Refusal::Moved, &[]),
    ("stranger", Refusal::Stranger, &[]),
    ("unknown", Refusal::Unknown, &[]),
    ("other-mode", Refusal::OtherMode, &[RUD, ROD]),
    ("gap", Refusal::Gap, &[ROD]),
    ("trimmed", Refusal::Trimmed, &[TRIM]),
    ("trimmed-opening", Refusal::TrimmedOpening, &[TRIM]),
]);

/// How a context of the device ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnEnd {
    /// The first packet gets no answer.
    NoAnswer,
    /// The first packet is refused for good.
    Refused,
    /// A packet of the open context gets no answer.
    GivenUp,
    /// A packet of the open context is refused for good.
    Fatal,
    /// The context is closed, and the close acknowledged.
    Closed,
    /// The close gets no answer.
    CloseGivenUp,
    /// The close is refused.
    CloseRefused,
    /// The target asks for the close by REQ_CLOSE.
    Asked,
}

const OWN_END: Axis<OwnEnd> = axis("end").needing(&[
    ("no-answer", OwnEnd::NoAnswer, &[]),
    ("refused", OwnEnd::Refused, &[]),
    ("given-up", OwnEnd::GivenUp, &[]),
    ("fatal", OwnEnd::Fatal, &[]),
    ("closed", OwnEnd::Closed, &[CLOSE]),
    ("close-given-up", OwnEnd::CloseGivenUp, &[CLOSE]),
    ("close-refused", OwnEnd::CloseRefused, &[CLOSE]),
    ("asked", OwnEnd::Asked, &[]),
]);

/// A pool as above, and whether another peer takes the last turn.
const OWN_POOL: Axis<(Pool, bool)> = axis("pool").needing(&[
    ("contexts", (("general_pdcs", 2), false), &[]),
    ("congestion", (("cccs", 1), true), &[TWO_ADDRESSES]),
]);

fn own_end(t: &mut Test<'_>, end: OwnEnd, target: &mut Target, peer: u64, write: Post) -> Outcome {
    let mode = t.value(&MODE);
    match end {
        OwnEnd::NoAnswer => Ok(()),
        OwnEnd::Refused => target.refuse_without_context(t, NackCode::CLOSING_IN_ERR, 0),
        OwnEnd::GivenUp => t.post(write).map(drop),
        OwnEnd::Fatal => {
            t.post(write)?;
            target.collect(t, 2)?;
            target.refuse(t, NackCode::CLOSING_IN_ERR, 1)
        }
        OwnEnd::Closed | OwnEnd::CloseGivenUp | OwnEnd::CloseRefused => {
            t.call(ClosePdc { peer, mode, class: 0 })?;
            let closes = |seen: &crate::RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
            let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
            finish(t, end, target, command.psn())
        }
        OwnEnd::Asked => {
            t.post(write)?;
            target.collect(t, 2)?;
            let ack = AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(1) };
            target.answer(t, ack)?;
            let closes = |seen: &crate::RxPacket| target.control(seen, CtlType::CLOSE_COMMAND);
            let (_, command) = t.expect(PDS_CLOSE_013, "CLOSE_COMMAND", t.later(), closes)?;
            finish(t, end, target, command.psn())
        }
    }
}

fn finish(t: &mut Test<'_>, end: OwnEnd, target: &Target, psn: Psn) -> Outcome {
    match end {
        OwnEnd::CloseGivenUp => Ok(()),
        OwnEnd::CloseRefused => t.send(&target.pdc, &target.pdc.nack(NackCode::CLOSING_IN_ERR, psn)?),
        _ => target.answer(t, AckBuilder { response: None, ..target.pdc.ack(psn) }),
    }
}
