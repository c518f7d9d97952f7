//! Reuse of PDCIDs and message ids right after their first use has ended (sections 3.5.8 and 3.4).

use super::steps::close_context;
use crate::packets::nominal;
use crate::prelude::*;
use uet_wire::Units24;
use uet_wire::ses::SesBuf;

/// The state that the old context has when it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OldState {
    Nothing,
    Writes,
    Error,
    HalfMessage,
    Gap,
    OrderedGap,
    LargeRead,
    QuietPackets,
    Marked,
}

const OLD_STATE: Axis<OldState> = axis("old-state").needing(&[
    ("writes", OldState::Writes, &[]),
    ("nothing", OldState::Nothing, &[]),
    ("error", OldState::Error, &[]),
    ("half-message", OldState::HalfMessage, &[]),
    ("gap", OldState::Gap, &[RUD]),
    ("ordered-gap", OldState::OrderedGap, &[ROD]),
    ("large-read", OldState::LargeRead, &[READ]),
    ("quiet-packets", OldState::QuietPackets, &[]),
    ("marked", OldState::Marked, &[ECN, SET_ECN]),
]);

/// True if the suite reuses its own PDCID too.
const PDCID: Axis<bool> = axis("pdcid").values(&[("same", true), ("other", false)]);

/// True if the new Start_PSN is below all PSNs of the old context.
const NEXT_START: Axis<bool> = axis("next-start").values(&[("ahead", false), ("behind", true)]);

pub(super) const RULES: &[Rule] = &[
    rule("reuse/context", "A new context with a reused PDCID keeps no state of the old one")
        .checks(&[
            PDS_CLOSE_011,
            PDS_SYN_008,
            PDS_ACK_002,
            PDS_SACK_001,
            CC_RCVD_001,
            PDS_GTD_002,
            PDS_PSN_002,
            PDS_RUD_001,
            PDS_ROD_002,
        ])
        .needs(&[WRITE])
        .over(&[&OLD_STATE, &PDCID, &NEXT_START, &MODE, &START])
        .run(expect_no_old_state),
    rule("reuse/message-id", "A message id is free as soon as its message has ended")
        .checks(&[SES_RESP_001])
        .needs(&[WRITE])
        .over(&[&ENDED, &CONTEXT, &MODE])
        .run(|t| {
            let (ended, other) = (t.value(&ENDED), t.value(&CONTEXT));
            // The sources leave open how long a target answers packets of a refused message with its error.
            let refused = matches!(ended, Ended::Refused | Ended::RefusedLate);
            require(other || !refused, "it is open when a refused message id is free on its context")?;
            let (pdc, region) = t.open()?;
            let mtu = t.mtu();
            end_message(t, &pdc, &region, ended)?;
            t.forget();
            let (mut second, mut next) = (pdc.clone(), 3);
            if other || ended == Ended::Closed {
                second = t.initiate();
                let elsewhere = Region { message_id: region.message_id ^ 0x4000, ..region.clone() };
                t.establish(&mut second, &elsewhere)?;
                next = 1;
            }
            let clear = second.psn(next - 1);
            let patch: Vec<u8> = (0..2 * mtu).map(|place| (place % 251) as u8).collect();
            for k in 0..2 {
                let part =
                    second.request(next + k as u32).clear(clear).write_part(&region, &patch, mtu, k)?;
                t.request(&second, part)?;
            }
            let (seen, _) = t.expect_ack(SES_RESP_001, &second, second.psn(next + 1))?;
            t.holds(
                SES_RESP_001,
                "the second message is answered without an error",
                !seen.is_error(),
                seen.uet(),
            );
            t.expect_memory(SES_RESP_001, &region, 0, &patch)
        }),
];

/// Closes a context in some state and opens one with the same PDCID. Expects that the new context behaves as
/// if it were the first.
fn expect_no_old_state(t: &mut Test<'_>) -> Outcome {
    let (state, same, below) = (t.value(&OLD_STATE), t.value(&PDCID), t.value(&NEXT_START));
    // The device reuses its own PDCID if it accepts these parameters.
    t.try_configure("general_pdcs", 1)?;
    t.try_configure("syn_retx_safety_time", 1_000_000)?;
    let region = t.region(1 << 16)?;
    let mut old = t.initiate();
    old.rod = (old.rod || state == OldState::OrderedGap) && state != OldState::Gap;
    t.establish(&mut old, &region)?;
    let last = bring_into_state(t, &old, &region, state)?;
    close_context(t, &old, last)?;
    t.pause(t.scaled(Duration::from_nanos(t.parameter("syn_retx_safety_time"))))?;
    t.forget();
    let distance = t.parameter("start_psn_distance") as u32;
    let start = if below { old.start - distance } else { old.psn(last) + distance };
    let mut new = Pdc { start, remote: None, ..old.clone() };
    if !same {
        new.local = t.initiate().local;
    }
    if state == OldState::OrderedGap {
        return expect_gap_refused(t, &new, &region);
    }
    expect_fresh_ack(t, &mut new, &region)?;
    expect_first_error(t, &new, &region)?;
    for k in 0..2 {
        let half = new.request(2 + k).clear(new.psn(1)).half(&region, t.mtu(), k as usize)?;
        t.request(&new, half)?;
    }
    t.expect_cack(PDS_SYN_008, &new, new.psn(3))?;
    t.expect_memory(PDS_RUD_001, &region, 0, &vec![7; 2 * t.mtu()])?;
    if state == OldState::LargeRead {
        expect_return_start(t, &new, &region)?;
    }
    Ok(())
}

/// Brings the old context into a state. Returns the number of its next PSN.
fn bring_into_state(t: &mut Test<'_>, old: &Pdc, region: &Region, state: OldState) -> Result<u32, Stop> {
    let wide = vec![3; 1000];
    Ok(match state {
        OldState::Nothing => 1,
        OldState::Writes => {
            for n in 1..=8 {
                t.request(old, old.request(n).write(region, 4096, &wide)?)?;
            }
            t.need_ack(old, old.psn(8))?;
            9
        }
        OldState::Error => {
            t.request(old, old.request(1).write_nowhere(region, &wide)?)?;
            t.need_ack(old, old.psn(1))?;
            2
        }
        OldState::HalfMessage => {
            t.request(old, old.request(1).half(region, t.mtu(), 0)?)?;
            t.need_ack(old, old.psn(1))?;
            2
        }
        OldState::Gap => {
            t.request(old, old.request(3).write(region, 4096, &wide)?)?;
            t.need_ack(old, old.psn(3))?;
            4
        }
        OldState::OrderedGap => {
            t.request(old, old.request(2).write(region, 4096, &wide)?)?;
            t.need("ROD_OOO", t.soon(), |seen| seen.refuses(old, old.psn(2)))?;
            1
        }
        OldState::LargeRead => {
            let length = t.beyond_ack()?;
            t.request(old, old.request(1).read(region, 0, length)?)?;
            let data = |seen: &RxPacket| seen.request().filter(|_| seen.is_for(old));
            let (_, data) = t.need("read data", t.soon(), data)?;
            t.send(old, &old.ack(data.psn()).build()?)?;
            t.settle()?;
            2
        }
        OldState::QuietPackets => {
            for n in 1..=3 {
                t.request(old, old.request(n).quiet().write(region, 4096, &wide)?)?;
            }
            4
        }
        OldState::Marked => {
            let packet = old.request(1).write(region, 4096, &wide)?.build()?;
            t.send_marked(old, &packet, true)?;
            t.need_ack(old, old.psn(1))?;
            2
        }
    })
}

/// Expects that the new ordered context refuses a packet above a gap, although the old one has already sent a
/// NACK.
fn expect_gap_refused(t: &mut Test<'_>, new: &Pdc, region: &Region) -> Outcome {
    t.request(new, new.request(0).write(region, 0, &[9])?)?;
    let (_, ack) = t.need_ack(new, new.psn(0))?;
    let open = Pdc { remote: Some(ack.spdcid()), ..new.clone() };
    t.request(&open, open.request(2).write(region, 0, &[9])?)?;
    t.expect_nack(PDS_ROD_002, &open, open.psn(2), &[NackCode::ROD_OOO])?;
    Ok(())
}

/// Opens the new context, and expects an ACK without flags, bits or bytes of the old one.
fn expect_fresh_ack(t: &mut Test<'_>, new: &mut Pdc, region: &Region) -> Outcome {
    let first = new.request(0).write(region, 0, &[1; 16])?;
    let length = first.build()?.to_bytes().len();
    t.request(new, first)?;
    let (seen, ack) = t.expect_answer(PDS_CLOSE_011, new, new.psn(0))?;
    t.check(PDS_SYN_008, "cack_psn", new.psn(0), ack.cack_psn());
    t.check(PDS_ACK_002, "flag retx", false, ack.retx());
    t.check(PDS_ACK_002, "flag m (marked)", false, ack.m());
    t.check(PDS_SYN_008, "req", AckRequest::NO_REQUEST, ack.req());
    if let Some(ack_cc) = seen.ack_cc() {
        let above = ack_cc.sacked().find(|psn| psn.is_after(new.psn(0)));
        t.check(PDS_SACK_001, "the first bit above cack_psn", None, above);
        if let Some(received) = ack_cc.rcvd_bytes().filter(|_| t.claims("nscc")) {
            let expected = Units24::from_bytes(t.start_of_count() + nominal(length));
            t.check(CC_RCVD_001, "rcvd_bytes", expected, received);
        }
    }
    new.remote = Some(ack.spdcid());
    Ok(())
}

/// Expects that the new context stores its first error.
fn expect_first_error(t: &mut Test<'_>, new: &Pdc, region: &Region) -> Outcome {
    t.request(new, new.request(1).write_nowhere(region, &[1])?)?;
    let (_, ack) = t.expect_answer(PDS_SYN_008, new, new.psn(1))?;
    t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
    t.check(PDS_PSN_002, "cack_psn", new.psn(0), ack.cack_psn());
    Ok(())
}

/// Expects that the return direction of the new context starts at its Start_PSN.
fn expect_return_start(t: &mut Test<'_>, new: &Pdc, region: &Region) -> Outcome {
    let length = t.beyond_ack()?;
    t.request(new, new.request(4).read(region, 0, length)?)?;
    let data = |seen: &RxPacket| seen.request().filter(|_| seen.is_for(new));
    let (_, data) = t.expect(PDS_SYN_008, "read data", t.soon(), data)?;
    t.check(PDS_SYN_008, "psn", new.start, data.psn());
    t.check(PDS_SYN_008, "clear_psn", new.start - 1, data.clear_psn());
    Ok(())
}

/// Sends a message with packets 1 and 2 that ends in this way.
fn end_message(t: &mut Test<'_>, pdc: &Pdc, region: &Region, ended: Ended) -> Outcome {
    let mtu = t.mtu();
    let nowhere = Region { key: region.key ^ 0x5a5a, ..region.clone() };
    let half = |n: u32, region: &Region, k: usize| -> Result<Request, Stop> {
        Ok(pdc.request(n).half(region, mtu, k)?)
    };
    match ended {
        Ended::Whole => {
            t.request(pdc, half(1, region, 0)?)?;
            t.request(pdc, half(2, region, 1)?)?;
            t.need_ack(pdc, pdc.psn(2))?;
        }
        Ended::Short => {
            t.request(pdc, pdc.request(1).write(region, 0, &[1; 16])?)?;
            t.request(pdc, pdc.request(2).write(region, 0, &[1; 16])?)?;
            t.need_ack(pdc, pdc.psn(2))?;
        }
        Ended::Refused => {
            for k in 0..2 {
                t.request(pdc, half(1 + k, &nowhere, k as usize)?)?;
                t.need("an error", t.soon(), |seen| seen.answers(pdc, pdc.psn(1 + k)))?;
            }
        }
        Ended::RefusedLate => {
            // The second half exceeds the region.
            let exceeding = |n: u32, k: usize| -> Result<Request, Stop> {
                let request = half(n, region, k)?;
                let Some(SesBuf::Std(std)) = request.ses else { return Ok(request) };
                let place = region.length - mtu as u64;
                let ses = std.edit().buffer_offset(place).done()?;
                Ok(Request { ses: Some(ses.into()), ..request })
            };
            t.request(pdc, exceeding(1, 0)?)?;
            t.need_ack(pdc, pdc.psn(1))?;
            t.request(pdc, exceeding(2, 1)?)?;
            let (seen, _) = t.need("an answer", t.soon(), |seen| seen.answers(pdc, pdc.psn(2)))?;
            if !seen.is_error() {
                return Err(Stop::Inconclusive("the write beyond the region was not refused".into()));
            }
        }
        Ended::Read => {
            t.request(pdc, pdc.request(1).read(region, 0, 4)?)?;
            t.need_ack(pdc, pdc.psn(1))?;
            t.request(pdc, pdc.request(2).write(region, 0, &[1])?)?;
            t.need_ack(pdc, pdc.psn(2))?;
        }
        Ended::Closed => {
            t.request(pdc, half(1, region, 0)?)?;
            t.need_ack(pdc, pdc.psn(1))?;
            t.send(pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            t.need_ack(pdc, pdc.psn(2))?;
        }
    }
    Ok(())
}

/// The end of the first message with the message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    Short,
    Refused,
    RefusedLate,
    Read,
    Closed,
}

const ENDED: Axis<Ended> = axis("end").needing(&[
    ("whole", Ended::Whole, &[]),
    ("one-packet", Ended::Short, &[]),
    ("refused", Ended::Refused, &[]),
    ("refused-late", Ended::RefusedLate, &[]),
    ("read", Ended::Read, &[READ]),
    ("closed", Ended::Closed, &[]),
]);

/// True if the second message uses another context.
const CONTEXT: Axis<bool> = axis("context").values(&[("same", false), ("other", true)]);
