//! Duplicates and ACK_REQUEST packets for every state that a PSN can have (section 3.5.12).

use super::steps::{clear_command, numbered_control};
use crate::prelude::*;

/// The state of the PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PsnState {
    /// Below the cumulative PSN.
    Below,
    /// The cumulative PSN.
    Cumulative,
    /// Received above a gap.
    AboveGap,
    /// Its error response is stored.
    StoredError,
    /// Received above a stored error response.
    AboveStoredError,
    /// Its error response has been cleared.
    Cleared,
    /// A fetching atomic whose old value is stored.
    Fetched,
    /// A NOOP.
    Noop,
    /// A NOOP above a gap.
    NoopAboveGap,
    /// A read whose data used the return direction.
    LargeRead,
}

const STATE: Axis<PsnState> = axis("state").needing(&[
    ("below", PsnState::Below, &[]),
    ("cumulative", PsnState::Cumulative, &[]),
    ("above-gap", PsnState::AboveGap, &[RUD]),
    ("stored-error", PsnState::StoredError, &[]),
    ("above-stored-error", PsnState::AboveStoredError, &[]),
    ("cleared", PsnState::Cleared, &[]),
    ("fetched", PsnState::Fetched, &[ATOMIC]),
    ("noop", PsnState::Noop, &[]),
    ("noop-above-gap", PsnState::NoopAboveGap, &[RUD]),
    ("large-read", PsnState::LargeRead, &[READ]),
]);

/// A context with a PSN in this state.
struct Arranged {
    state: PsnState,
    pdc: Pdc,
    region: Region,
    /// The number of the PSN.
    n: u32,
    cack: Psn,
    /// The first reply to the PSN.
    first: RxPacket,
}

pub(super) const RULES: &[Rule] = &[
    rule("psn-state/retransmission", "A duplicate in any PSN state gets the same reply and is not delivered")
        .checks(&[PDS_DUP_001, PDS_DUP_002, PDS_PSN_002, PDS_GTD_002, PDS_ACK_014])
        .needs(&[WRITE])
        .over(&[&STATE, &MODE, &START])
        .run(|t| {
            let arranged = arrange(t)?;
            for _ in 0..3 {
                let packet = arranged.packet(t, true)?;
                t.send(&arranged.pdc, &packet)?;
                let psn = arranged.pdc.psn(arranged.n);
                let (reply, _) = t.expect_answer(PDS_DUP_002, &arranged.pdc, psn)?;
                check_reply(t, &arranged, &reply, PDS_DUP_002);
                // Below the cumulative PSN, a device may forget that it was a control packet.
                if arranged.state == PsnState::NoopAboveGap {
                    let next = reply.ack().map(|ack| ack.prologue().next_hdr());
                    t.check(PDS_ACK_014, "next_hdr", Some(NextHdr::UET_HDR_NONE), next);
                }
            }
            check_rest(t, &arranged)
        }),
    rule("psn-state/ack-request", "ACK_REQUEST is answered from the state of its PSN and changes nothing")
        .checks(&[PDS_ASK_001, PDS_ASK_002, PDS_ASK_003, PDS_PSN_002, PDS_DUP_001, PDS_GTD_002])
        .needs(&[WRITE])
        .over(&[&STATE, &MODE, &START])
        .run(|t| {
            let arranged = arrange(t)?;
            let Arranged { pdc, .. } = &arranged;
            let psn = pdc.psn(arranged.n);
            let below = matches!(
                arranged.state,
                PsnState::Below
                    | PsnState::Cumulative
                    | PsnState::Cleared
                    | PsnState::Noop
                    | PsnState::LargeRead
            );
            let requirement = if below { PDS_ASK_002 } else { PDS_ASK_003 };
            for _ in 0..2 {
                t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, psn, 0)?)?;
                let (reply, _) = t.expect_answer(requirement, pdc, psn)?;
                check_reply(t, &arranged, &reply, requirement);
            }
            // Missing packets above it are reported as missing.
            for missing in [arranged.n + 2, arranged.n + 20] {
                t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(missing), 0)?)?;
                t.expect_nack(PDS_ASK_001, pdc, pdc.psn(missing), &[NackCode::PKT_NOT_RCVD])?;
            }
            check_rest(t, &arranged)
        }),
];

impl Arranged {
    fn packet(&self, t: &Test<'_>, retx: bool) -> Result<UetBuf, Stop> {
        packet(t, self.state, &self.pdc, &self.region, self.n, retx)
    }
}

/// Builds the `n`-th packet of the context for this state.
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
        PsnState::Noop | PsnState::NoopAboveGap => numbered_control(pdc, CtlType::NOOP, n, true, retx)?,
        PsnState::StoredError | PsnState::Cleared => request.write_nowhere(region, &[1; 16])?.build()?,
        PsnState::Fetched => request.add(region, 0, &t.operands(8, &[3]), true)?.build()?,
        PsnState::LargeRead => request.read(region, 64, t.beyond_ack()?)?.build()?,
        _ => request.write(region, 0, &[1; 8])?.build()?,
    })
}

/// Opens a context and brings a PSN into the state of the instance.
fn arrange(t: &mut Test<'_>) -> Result<Arranged, Stop> {
    let state = t.value(&STATE);
    if matches!(state, PsnState::Noop | PsnState::NoopAboveGap) {
        t.need_noop()?;
    }
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    let above = matches!(state, PsnState::AboveGap | PsnState::NoopAboveGap);
    // An ordered context accepts nothing above a gap.
    pdc.rod &= !above;
    t.establish(&mut pdc, &region)?;
    let mut n = if above { 3 } else { 1 };
    if state == PsnState::AboveStoredError {
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
        // The next write would be overwritten by a second delivery.
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
        PsnState::NoopAboveGap | PsnState::StoredError | PsnState::Fetched => cack = pdc.psn(0),
        PsnState::AboveStoredError => {
            t.request(&pdc, pdc.request(3).write(&region, 0, &[2; 8])?)?;
            t.need_ack(&pdc, pdc.psn(3))?;
            cack = pdc.psn(0);
        }
        PsnState::Cleared => {
            t.send(&pdc, &clear_command(&pdc, pdc.psn(1))?)?;
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
    Ok(Arranged { state, pdc, region, n, cack, first })
}

/// Checks that the ACK of a PSN fits its state.
fn check_reply(t: &mut Test<'_>, arranged: &Arranged, reply: &RxPacket, requirement: &'static Requirement) {
    let Some(ack) = reply.ack() else { return };
    t.check(PDS_PSN_002, "cack_psn", arranged.cack, ack.cack_psn());
    match arranged.state {
        PsnState::StoredError => {
            t.check(requirement, "the stored response", arranged.first.response(), reply.response());
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
        }
        PsnState::Fetched => {
            let payload = arranged.first.payload().to_vec();
            t.check(requirement, "the stored value", payload, reply.payload().to_vec());
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
        }
        PsnState::Noop | PsnState::NoopAboveGap => {}
        _ => check_success(t, reply, requirement),
    }
}

/// Checks that an ACK carries a response without an error. Only ACKs of control packets carry none.
fn check_success(t: &mut Test<'_>, reply: &RxPacket, requirement: &'static Requirement) {
    t.holds(requirement, "the answer is no error", !reply.is_error(), reply.uet());
    t.holds(requirement, "the answer carries a response", reply.response().is_some(), reply.uet());
}

/// Checks that each packet was delivered once, and that the context continues.
fn check_rest(t: &mut Test<'_>, arranged: &Arranged) -> Outcome {
    t.pause(t.soon() / 2)?;
    let held = match arranged.state {
        PsnState::Below | PsnState::Cumulative | PsnState::AboveGap | PsnState::AboveStoredError => [2; 8],
        PsnState::Fetched => 3u64.to_le_bytes(),
        _ => [0; 8],
    };
    // Accept both byte orders of atomics.
    if arranged.state == PsnState::Fetched {
        let memory = t.memory(&arranged.region, 0, 8)?;
        let sum = [held, 3u64.to_be_bytes()].iter().any(|sum| memory == sum);
        let seen: Vec<String> = memory.iter().map(|byte| format!("{byte:02x}")).collect();
        t.holds(PDS_DUP_001, "memory holds the sum of one addition", sum, seen.concat());
    } else {
        t.check_memory(PDS_DUP_001, &arranged.region, 0, &held)?;
    }
    if arranged.state == PsnState::LargeRead {
        let Arranged { pdc, .. } = arranged;
        t.expect_none(PDS_DUP_001, "no second copy of the read data", t.grace(), |seen| {
            seen.request().filter(|_| seen.is_for(pdc))
        })?;
    }
    let next = arranged.n + 4;
    if arranged.pdc.rod {
        return Ok(());
    }
    t.request(&arranged.pdc, arranged.pdc.request(next).write(&arranged.region, 128, &[9; 4])?)?;
    let (_, ack) = t.expect_ack(PDS_PSN_002, &arranged.pdc, arranged.pdc.psn(next))?;
    t.check(PDS_PSN_002, "cack_psn", arranged.cack, ack.cack_psn());
    Ok(())
}
