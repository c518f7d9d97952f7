//! Identifiers that are used again right after their first use has ended.

use crate::prelude::*;

/// The state that the first context leaves when it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
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

const LOAD: Axis<Load> = axis("load").needing(&[
    ("writes", Load::Writes, &[]),
    ("nothing", Load::Nothing, &[]),
    ("error", Load::Error, &[]),
    ("half-message", Load::HalfMessage, &[]),
    ("gap", Load::Gap, &[RUD]),
    ("ordered-gap", Load::OrderedGap, &[ROD]),
    ("large-read", Load::LargeRead, &[READ]),
    ("quiet-packets", Load::QuietPackets, &[]),
    ("marked", Load::Marked, &[ECN, SET_ECN]),
]);

/// True if the suite uses its own PDCID again too.
const NAME: Axis<bool> = axis("name").values(&[("same", true), ("other", false)]);

/// True if the new Start_PSN lies behind all PSNs of the old context, seen on the circle of PSNs.
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
        .over(&[&LOAD, &NAME, &NEXT_START, &MODE, &START])
        .run(context),
    rule("reuse/message-id", "A message id is free as soon as its message has ended")
        .checks(&[SES_RESP_001])
        .needs(&[WRITE])
        .over(&[&ENDED, &PLACE, &MODE])
        .run(|t| {
            let (ended, other) = (t.value(&ENDED), t.value(&PLACE));
            if !other && matches!(ended, Ended::Refused | Ended::RefusedLate) {
                // The facts leave open how long a target answers the packets of a refused message by its
                // error.
                return skip("it is open when a refused id is free on its context");
            }
            let (pdc, region) = t.open()?;
            let mtu = t.mtu();
            let nowhere = Region { key: region.key ^ 0x5a5a, ..region.clone() };
            let half = |n: u32, region: &Region, k: usize| -> Result<Request, Stop> {
                Ok(pdc.request(n).half(region, mtu, k)?)
            };
            let mut next = 3;
            match ended {
                Ended::Whole => {
                    t.request(&pdc, half(1, &region, 0)?)?;
                    t.request(&pdc, half(2, &region, 1)?)?;
                    t.need_ack(&pdc, pdc.psn(2))?;
                }
                Ended::Short => {
                    t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
                    t.request(&pdc, pdc.request(2).write(&region, 0, &[1; 16])?)?;
                    t.need_ack(&pdc, pdc.psn(2))?;
                }
                Ended::Refused => {
                    for k in 0..2 {
                        t.request(&pdc, half(1 + k, &nowhere, k as usize)?)?;
                        t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1 + k)))?;
                    }
                }
                Ended::RefusedLate => {
                    // The second half reaches beyond the region.
                    let end = Region { length: region.length, ..region.clone() };
                    let far = |n: u32, k: usize| -> Result<Request, Stop> {
                        let request = half(n, &end, k)?;
                        let Some(uet_wire::ses::SesBuf::Std(std)) = request.ses else { return Ok(request) };
                        let place = region.length - mtu as u64;
                        let ses = std.edit().buffer_offset(place).done()?;
                        Ok(Request { ses: Some(ses.into()), ..request })
                    };
                    t.request(&pdc, far(1, 0)?)?;
                    t.need_ack(&pdc, pdc.psn(1))?;
                    t.request(&pdc, far(2, 1)?)?;
                    let (seen, _) = t.need("an answer", t.soon(), |seen| seen.answers(&pdc, pdc.psn(2)))?;
                    if !seen.is_error() {
                        return Err(Stop::Inconclusive("the write beyond the region was not refused".into()));
                    }
                }
                Ended::Read => {
                    t.request(&pdc, pdc.request(1).read(&region, 0, 4)?)?;
                    t.need_ack(&pdc, pdc.psn(1))?;
                    t.request(&pdc, pdc.request(2).write(&region, 0, &[1])?)?;
                    t.need_ack(&pdc, pdc.psn(2))?;
                }
                Ended::Closed => {
                    t.request(&pdc, half(1, &region, 0)?)?;
                    t.need_ack(&pdc, pdc.psn(1))?;
                    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
                    t.need_ack(&pdc, pdc.psn(2))?;
                }
            }
            t.forget();
            let mut second = pdc.clone();
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

fn context(t: &mut Test<'_>) -> Outcome {
    let (load, same, behind) = (t.value(&LOAD), t.value(&NAME), t.value(&NEXT_START));
    // So that the device takes the same identifier again, if it lets itself be made so small.
    t.try_configure("general_pdcs", 1)?;
    t.try_configure("syn_retx_safety_time", 1_000_000)?;
    let region = t.region(1 << 16)?;
    let mut old = t.initiate();
    old.rod = (old.rod || load == Load::OrderedGap) && load != Load::Gap;
    t.establish(&mut old, &region)?;
    let mut last = 1;
    let wide = vec![3; 1000];
    match load {
        Load::Nothing => {}
        Load::Writes => {
            for n in 1..=8 {
                t.request(&old, old.request(n).write(&region, 4096, &wide)?)?;
            }
            t.need_ack(&old, old.psn(8))?;
            last = 9;
        }
        Load::Error => {
            t.request(&old, old.request(1).write_nowhere(&region, &wide)?)?;
            t.need_ack(&old, old.psn(1))?;
            last = 2;
        }
        Load::HalfMessage => {
            t.request(&old, old.request(1).half(&region, t.mtu(), 0)?)?;
            t.need_ack(&old, old.psn(1))?;
            last = 2;
        }
        Load::Gap => {
            t.request(&old, old.request(3).write(&region, 4096, &wide)?)?;
            t.need_ack(&old, old.psn(3))?;
            last = 4;
        }
        Load::OrderedGap => {
            t.request(&old, old.request(2).write(&region, 4096, &wide)?)?;
            t.need("ROD_OOO", t.soon(), |seen| seen.refuses(&old, old.psn(2)))?;
        }
        Load::LargeRead => {
            let length = t.beyond_ack()?;
            t.request(&old, old.request(1).read(&region, 0, length)?)?;
            let data = |seen: &crate::RxPacket| seen.request().filter(|_| seen.is_for(&old));
            let (_, data) = t.need("read data", t.soon(), data)?;
            t.send(&old, &old.ack(data.psn()).build()?)?;
            t.settle()?;
            last = 2;
        }
        Load::QuietPackets => {
            for n in 1..=3 {
                t.request(&old, old.request(n).quiet().write(&region, 4096, &wide)?)?;
            }
            last = 4;
        }
        Load::Marked => {
            let packet = old.request(1).write(&region, 4096, &wide)?.build()?;
            t.send_marked(&old, &packet, true)?;
            t.need_ack(&old, old.psn(1))?;
            last = 2;
        }
    }
    t.send(&old, &old.control(CtlType::CLOSE_COMMAND, old.psn(last), 0)?)?;
    t.need("the end of the context", t.soon(), |seen| seen.answers(&old, old.psn(last)))?;
    t.pause(t.scaled(Duration::from_nanos(t.parameter("syn_retx_safety_time"))))?;
    t.forget();

    let distance = t.parameter("start_psn_distance") as u32;

    let start = if behind { old.start - distance } else { old.psn(last) + distance };

    let mut new = Pdc { start, remote: None, ..old.clone() };

    if !same {
        new.local = t.initiate().local;
    }
    // A gap that the old context has told is another one here.
    if load == Load::OrderedGap {
        t.request(&new, new.request(0).write(&region, 0, &[9])?)?;
        let (_, ack) = t.need_ack(&new, new.psn(0))?;
        let open = Pdc { remote: Some(ack.spdcid()), ..new.clone() };
        t.request(&open, open.request(2).write(&region, 0, &[9])?)?;
        t.expect_nack(PDS_ROD_002, &open, open.psn(2), &[NackCode::ROD_OOO])?;
        return Ok(());
    }
    let first = new.request(0).write(&region, 0, &[1; 16])?;
    let length = first.build()?.to_bytes().len();
    t.request(&new, first)?;
    let (seen, ack) = t.expect_answer(PDS_CLOSE_011, &new, new.psn(0))?;
    t.check(PDS_SYN_008, "cack_psn", new.psn(0), ack.cack_psn());
    t.check(PDS_ACK_002, "flag retx", false, ack.retx());
    t.check(PDS_ACK_002, "flag m (marked)", false, ack.m());
    t.check(PDS_SYN_008, "req", AckRequest::NO_REQUEST, ack.req());
    if let Some(long) = seen.ack_cc() {
        let above = long.sacked().find(|psn| psn.is_after(new.psn(0)));
        t.check(PDS_SACK_001, "the first bit above cack_psn", None, above);
        if let Some(received) = long.rcvd_bytes() {
            let expected = uet_wire::Units24::from_bytes(t.start_of_count() + crate::flow::nominal(length));
            t.check(CC_RCVD_001, "rcvd_bytes", expected, received);
        }
    }
    new.remote = Some(ack.spdcid());
    t.request(&new, new.request(1).write_nowhere(&region, &[1])?)?;
    let (_, ack) = t.expect_answer(PDS_SYN_008, &new, new.psn(1))?;
    t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
    t.check(PDS_PSN_002, "cack_psn", new.psn(0), ack.cack_psn());
    for k in 0..2 {
        let half = new.request(2 + k).clear(new.psn(1)).half(&region, t.mtu(), k as usize)?;
        t.request(&new, half)?;
    }
    t.expect_cack(PDS_SYN_008, &new, new.psn(3))?;
    t.expect_memory(PDS_RUD_001, &region, 0, &vec![7; 2 * t.mtu()])?;
    if load == Load::LargeRead {
        // The return direction starts anew too.
        let length = t.beyond_ack()?;
        t.request(&new, new.request(4).read(&region, 0, length)?)?;
        let (_, data) = t.expect(PDS_SYN_008, "read data", t.soon(), |seen| {
            seen.request().filter(|_| seen.is_for(&new))
        })?;
        t.check(PDS_SYN_008, "psn", new.start, data.psn());
        t.check(PDS_SYN_008, "clear_psn", new.start - 1, data.clear_psn());
    }
    Ok(())
}

/// How the first message with the identifier ends.
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

/// True if the second message comes by another context.
const PLACE: Axis<bool> = axis("context").values(&[("same", false), ("other", true)]);
