//! Packets that come again, and questions about packets, in every state that a PSN can have.

use crate::prelude::*;

/// The state of the PSN that comes again or is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PsnState {
    /// Below the cumulative PSN.
    Below,
    /// The cumulative PSN.
    Cumulative,
    /// Received above a gap.
    AboveGap,
    /// Answered by an error that is kept.
    Kept,
    /// Asks behind an error that is kept.
    BehindKept,
    /// Answered by an error that has been cleared.
    Cleared,
    /// A fetching atomic whose value is kept.
    Fetched,
    /// A NOOP.
    Noop,
    /// A NOOP above a gap.
    NoopAboveGap,
    /// A read whose data went on the return direction.
    LargeRead,
}

const STATE: Axis<PsnState> = axis("state").needing(&[
    ("below", PsnState::Below, &[]),
    ("cumulative", PsnState::Cumulative, &[]),
    ("above-gap", PsnState::AboveGap, &[RUD]),
    ("kept", PsnState::Kept, &[]),
    ("behind-kept", PsnState::BehindKept, &[]),
    ("cleared", PsnState::Cleared, &[]),
    ("fetched", PsnState::Fetched, &[ATOMIC]),
    ("noop", PsnState::Noop, &[]),
    ("noop-above-gap", PsnState::NoopAboveGap, &[RUD]),
    ("large-read", PsnState::LargeRead, &[READ]),
]);

/// A context in which a PSN has this state.
struct Known {
    state: PsnState,
    pdc: Pdc,
    region: Region,
    /// Its PSN.
    n: u32,
    cack: Psn,
    /// Its first answer.
    first: RxPacket,
}

pub(super) const RULES: &[Rule] = &[
    rule("psn-state/retransmission", "A duplicate in any PSN state gets the same reply and is not delivered")
        .checks(&[PDS_DUP_001, PDS_DUP_002, PDS_PSN_002, PDS_GTD_002, PDS_ACK_014])
        .needs(&[WRITE])
        .over(&[&STATE, &MODE, &START])
        .run(|t| {
            let known = known(t)?;
            for _ in 0..3 {
                let packet = known.packet(t, true)?;
                t.send(&known.pdc, &packet)?;
                let psn = known.pdc.psn(known.n);
                let (again, _) = t.expect_answer(PDS_DUP_002, &known.pdc, psn)?;
                check_answer(t, &known, &again, PDS_DUP_002);
                // Below the cumulative PSN, nobody need know any more that it was a control packet.
                if known.state == PsnState::NoopAboveGap {
                    let next = again.ack().map(|ack| ack.prologue().next_hdr());
                    t.check(PDS_ACK_014, "next_hdr", Some(NextHdr::UET_HDR_NONE), next);
                }
            }
            check_rest(t, &known)
        }),
    rule("psn-state/ack-request", "ACK_REQUEST is answered from the state of its PSN and changes nothing")
        .checks(&[PDS_ASK_001, PDS_ASK_002, PDS_ASK_003, PDS_PSN_002, PDS_DUP_001, PDS_GTD_002])
        .needs(&[WRITE])
        .over(&[&STATE, &MODE, &START])
        .run(|t| {
            let known = known(t)?;
            let Known { pdc, .. } = &known;
            let psn = pdc.psn(known.n);
            let below = matches!(
                known.state,
                PsnState::Below
                    | PsnState::Cumulative
                    | PsnState::Cleared
                    | PsnState::Noop
                    | PsnState::LargeRead
            );
            let requirement = if below { PDS_ASK_002 } else { PDS_ASK_003 };
            for _ in 0..2 {
                t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, psn, 0)?)?;
                let (again, _) = t.expect_answer(requirement, pdc, psn)?;
                check_answer(t, &known, &again, requirement);
            }
            // Missing packets are told as such, beside and above it.
            for missing in [known.n + 2, known.n + 20] {
                t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(missing), 0)?)?;
                t.expect_nack(PDS_ASK_001, pdc, pdc.psn(missing), &[NackCode::PKT_NOT_RCVD])?;
            }
            check_rest(t, &known)
        }),
];

impl Known {
    fn packet(&self, t: &Test<'_>, retx: bool) -> Result<UetBuf, Stop> {
        packet(t, self.state, &self.pdc, &self.region, self.n, retx)
    }
}

fn packet(
    t: &Test<'_>,
    state: PsnState,
    pdc: &Pdc,
    region: &Region,
    n: u32,
    retx: bool,
) -> Result<UetBuf, Stop> {
    let request = Request { retx, ..pdc.request(n) };
    Ok(match state {
        PsnState::Noop | PsnState::NoopAboveGap => {
            let noop = uet_wire::pds::Control::build(CtlType::NOOP).ar(true).retx(retx).psn(pdc.psn(n));
            UetBuf::new(noop.spdcid(pdc.local).dpdcid(pdc.remote.unwrap_or_default()).done()?)
        }
        PsnState::Kept | PsnState::Cleared => request.write_nowhere(region, &[1; 16])?.build()?,
        PsnState::Fetched => request.add(region, 0, &t.operands(8, &[3]), true)?.build()?,
        PsnState::LargeRead => request.read(region, 64, t.beyond_ack()?)?.build()?,
        _ => request.write(region, 0, &[1; 8])?.build()?,
    })
}

fn known(t: &mut Test<'_>) -> Result<Known, Stop> {
    let state = t.value(&STATE);
    if matches!(state, PsnState::Noop | PsnState::NoopAboveGap) {
        t.need_noop()?;
    }
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    let above = matches!(state, PsnState::AboveGap | PsnState::NoopAboveGap);
    // An ordered context takes nothing above a gap.
    pdc.rod &= !above;
    t.establish(&mut pdc, &region)?;
    let mut n = if above { 3 } else { 1 };
    if state == PsnState::BehindKept {
        t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
        t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1)))?;
        n = 2;
    }
    let sent = packet(t, state, &pdc, &region, n, false)?;
    t.send(&pdc, &sent)?;
    let (first, _) = t.need("an answer", t.soon(), |seen| seen.answers(&pdc, pdc.psn(n)))?;
    if state == PsnState::Fetched && first.payload().is_empty() {
        return skip("the device sends the old value on the return direction");
    }
    let mut cack = pdc.psn(n);
    match state {
        // The next write overwrites what would be seen if it came again.
        PsnState::Below => {
            t.request(&pdc, pdc.request(2).write(&region, 0, &[2; 8])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            cack = pdc.psn(2);
        }
        PsnState::Cumulative => {
            let mut other = t.initiate();
            t.establish(&mut other, &region)?;
            t.request(&other, other.request(1).write(&region, 0, &[2; 8])?)?;
            t.need_ack(&other, other.psn(1))?;
        }
        PsnState::AboveGap => {
            t.request(&pdc, pdc.request(4).write(&region, 0, &[2; 8])?)?;
            t.need_ack(&pdc, pdc.psn(4))?;
            cack = pdc.psn(0);
        }
        PsnState::NoopAboveGap | PsnState::Kept | PsnState::Fetched => cack = pdc.psn(0),
        PsnState::BehindKept => {
            t.request(&pdc, pdc.request(3).write(&region, 0, &[2; 8])?)?;
            t.need_ack(&pdc, pdc.psn(3))?;
            cack = pdc.psn(0);
        }
        PsnState::Cleared => {
            t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(1).0)?)?;
        }
        PsnState::Noop => {}
        PsnState::LargeRead => {
            let data = |seen: &RxPacket| seen.request().filter(|_| seen.is_for(&pdc));
            let (_, data) = t.need("read data", t.soon(), data)?;
            t.send(&pdc, &pdc.ack(data.psn()).build()?)?;
        }
    }
    t.settle()?;
    t.forget();
    Ok(Known { state, pdc, region, n, cack, first })
}

/// Checks what an ACK says of a PSN in its state.
fn check_answer(t: &mut Test<'_>, known: &Known, again: &RxPacket, requirement: &'static Requirement) {
    let Some(ack) = again.ack() else { return };
    t.check(PDS_PSN_002, "cack_psn", known.cack, ack.cack_psn());
    match known.state {
        PsnState::Kept => {
            t.check(requirement, "the response that is kept", known.first.response(), again.response());
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
        }
        PsnState::Fetched => {
            let payload = known.first.payload().to_vec();
            t.check(requirement, "the value that is kept", payload, again.payload().to_vec());
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
        }
        PsnState::Noop | PsnState::NoopAboveGap => {}
        _ => check_success(t, again, requirement),
    }
}

/// Only an ACK of a control packet has no response.
fn check_success(t: &mut Test<'_>, again: &RxPacket, requirement: &'static Requirement) {
    t.holds(requirement, "the answer is no error", !again.is_error(), again.uet());
    t.holds(requirement, "the answer carries a response", again.response().is_some(), again.uet());
}

/// Checks that memory is as the packets left it that were delivered once, and that the context goes on.
fn check_rest(t: &mut Test<'_>, known: &Known) -> Outcome {
    t.pause(t.soon() / 2)?;
    let held = match known.state {
        PsnState::Below | PsnState::Cumulative | PsnState::AboveGap | PsnState::BehindKept => [2; 8],
        PsnState::Fetched => 3u64.to_le_bytes(),
        _ => [0; 8],
    };
    // The byte order of atomics is not the matter here.
    if known.state == PsnState::Fetched {
        let memory = t.memory(&known.region, 0, 8)?;
        let sum = [held, 3u64.to_be_bytes()].iter().any(|sum| memory == sum);
        let seen: Vec<String> = memory.iter().map(|byte| format!("{byte:02x}")).collect();
        t.holds(PDS_DUP_001, "memory holds the sum of one addition", sum, seen.concat());
    } else {
        t.check_memory(PDS_DUP_001, &known.region, 0, &held)?;
    }
    if known.state == PsnState::LargeRead {
        let Known { pdc, .. } = known;
        t.expect_none(PDS_DUP_001, "no second copy of the read data", t.grace(), |seen| {
            seen.request().filter(|_| seen.is_for(pdc))
        })?;
    }
    let next = known.n + 4;
    if known.pdc.rod {
        return Ok(());
    }
    t.request(&known.pdc, known.pdc.request(next).write(&known.region, 128, &[9; 4])?)?;
    let (_, ack) = t.expect_ack(PDS_PSN_002, &known.pdc, known.pdc.psn(next))?;
    t.check(PDS_PSN_002, "cack_psn", known.cack, ack.cack_psn());
    Ok(())
}
