//! When a device acknowledges, and what its ACKs say (section 3.5.12).

use crate::prelude::*;
use uet_wire::pds::Control;
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::Response;

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("ack/requested", "A packet with ar is acknowledged at once").checks(&[PDS_ACK_004]).run(|t| {
        slow_timer(t)?;
        let (pdc, region) = t.open()?;
        t.request(&pdc, pdc.request(1).write(&region, 16, &[2; 16])?)?;
        t.expect_ack(PDS_ACK_004, &pdc, pdc.psn(1))?;
        Ok(())
    }),
    rule("ack/retransmission-of-lost", "A retransmitted lost packet is delivered and acknowledged at once")
        .checks(&[PDS_ACK_003, PDS_ACK_002, PDS_RUD_001])
        .run(|t| {
            slow_timer(t)?;
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).quiet().retx().write(&region, 0, &[1; 16])?)?;
            let (_, ack) = t.expect_answer(PDS_ACK_003, &pdc, pdc.psn(1))?;
            t.check(PDS_ACK_002, "flag retx", true, ack.retx());
            t.expect_memory(PDS_RUD_001, &region, 0, &[1; 16])
        }),
    rule("ack/retransmission", "A retransmitted duplicate is acknowledged at once and not delivered")
        .checks(&[PDS_DUP_001, PDS_DUP_002])
        .run(|t| {
            slow_timer(t)?;
            let (pdc, region) = t.open()?;
            let first = overwritten(t, &pdc, &region)?;
            for _ in 0..3 {
                t.request(&pdc, first.clone().quiet().retx())?;
                t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(1))?;
                t.forget();
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("ack/duplicate", "A duplicate created by the network is neither delivered nor refused")
        .checks(&[PDS_DUP_001, PDS_DUP_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let first = overwritten(t, &pdc, &region)?;
            t.request(&pdc, first.clone())?;
            t.request(&pdc, first)?;
            let wrong = "no NACK of a copy";
            t.expect_silence(PDS_DUP_003, wrong, |seen| seen.refuses(&pdc, pdc.psn(1)))?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("ack/default-response", "The ACK of a duplicate carries a default response without message fields")
        .checks(&[PDS_ACK_013, PDS_PSN_005])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let first = overwritten(t, &pdc, &region)?;
            t.request(&pdc, first.retx())?;
            let (seen, _) = t.expect_ack(PDS_PSN_005, &pdc, pdc.psn(1))?;
            match seen.response() {
                Some(response) => check_default(t, response),
                None => t.holds(PDS_PSN_005, "the ACK carries a default response", false, seen.uet()),
            }
            Ok(())
        }),
    rule("ack/retx", "An ACK repeats the retx flag of its packet").checks(&[PDS_ACK_002]).run(|t| {
        let (pdc, region) = t.open()?;
        for (n, again) in [(1, false), (2, true), (3, false)] {
            let request = pdc.request(n).write(&region, 0, &[1; 16])?;
            t.request(&pdc, if again { request.retx() } else { request })?;
            let (_, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
            t.check(PDS_ACK_002, "flag retx", again, ack.retx());
        }
        Ok(())
    }),
    rule("ack/mark", "An ACK reports whether its packet carried a congestion mark")
        .checks(&[PDS_ACK_002])
        .needs(&[ECN, SET_ECN])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for (n, marked) in [(1, true), (2, false), (3, true)] {
                let packet = pdc.request(n).write(&region, 0, &[1; 16])?.build()?;
                t.send_marked(&pdc, &packet, marked)?;
                let (_, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
            }
            Ok(())
        }),
    rule("ack/marked-at-once", "With ACK_On_ECN, a marked packet is acknowledged at once")
        .checks(&[PDS_ACK_008])
        .needs(&[ECN, SET_ECN])
        .run(|t| {
            slow_timer(t)?;
            t.try_configure("ack_on_ecn", true)?;
            let (pdc, region) = t.open()?;
            let packet = pdc.request(1).quiet().write(&region, 0, &[1; 16])?.build()?;
            t.send_marked(&pdc, &packet, true)?;
            let (_, ack) = t.expect_answer(PDS_ACK_008, &pdc, pdc.psn(1))?;
            t.check(PDS_ACK_008, "flag m (marked)", true, ack.m());
            Ok(())
        }),
    rule("ack/bounded", "A packet without ar is eventually acknowledged").checks(&[PDS_ACK_011]).run(|t| {
        let (pdc, region) = t.open()?;
        t.request(&pdc, pdc.request(1).quiet().write(&region, 0, &[1; 16])?)?;
        in_the_end(t, &pdc, 1)
    }),
    rule(
        "ack/bounded-with-other-acks",
        "Packets without ar are acknowledged despite ACKs of distant packets",
    )
    .checks(&[PDS_ACK_011])
    .needs(&[RUD])
    .over(&[&CARRIER, &START])
    .run(|t| {
        // So far from each other, above a gap, that one bitmap does not cover both.
        let (pdc, region) = t.open()?;
        let step = t.range(&pdc)? / 5;
        for n in 1..=4 {
            t.request(&pdc, pdc.request(2 * n).quiet().write(&region, 0, &[1; 16])?)?;
            t.request(&pdc, pdc.request(step * n).write(&region, 0, &[1; 16])?)?;
            in_the_end(t, &pdc, 2 * n)?;
        }
        Ok(())
    }),
    rule("ack/trigger", "An ACK is sent after ACK_Gen_Trigger bytes on a context")
        .checks(&[PDS_ACK_010])
        .over(&[&CONTEXTS, &MODE, &CARRIER, &START])
        .run(|t| {
            let size = t.mtu() as u64;
            fill_up(t, size, size)
        }),
    rule("ack/small-packets", "A small packet counts as ACK_Gen_Min_Pkt_Add bytes toward the next ACK")
        .checks(&[PDS_ACK_010])
        .run(|t| {
            let least = t.parameter("ack_gen_min_pkt_add");
            fill_up(t, 1, least.max(1))
        }),
    rule("ack/each-packet", "With Enb_ACK_Per_Pkt, each packet is acknowledged at once")
        .checks(&[PDS_ACK_009])
        .run(|t| {
            slow_timer(t)?;
            t.configure("enb_ack_per_pkt", true)?;
            let (pdc, region) = t.open()?;
            for n in 1..=3 {
                t.request(&pdc, pdc.request(n).quiet().write(&region, 0, &[1; 16])?)?;
                t.expect_answer(PDS_ACK_009, &pdc, pdc.psn(n))?;
            }
            Ok(())
        }),
    rule("ack/error-at-once", "An error is reported at once, even for a packet without ar")
        .checks(&[PDS_ACK_005])
        .run(|t| {
            slow_timer(t)?;
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).quiet().write_nowhere(&region, &[1; 16])?)?;
            let (seen, _) = t.expect_answer(PDS_ACK_005, &pdc, pdc.psn(1))?;
            t.holds(PDS_ACK_005, "the ACK carries the error", seen.is_error(), seen.uet());
            Ok(())
        }),
    rule("ack/data-at-once", "Read data in an ACK is sent at once, even for a packet without ar")
        .checks(&[PDS_ACK_006])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            slow_timer(t)?;
            let (pdc, region) = t.open()?;
            let most = t.parameter("max_ack_data_size") as u32;
            require(most != 0, "no read data rides in ACKs")?;
            t.request(&pdc, pdc.request(1).quiet().read(&region, 0, most.min(8))?)?;
            let by_data = t.need("the data", t.soon(), |seen| {
                (seen.is_for(&pdc) && !seen.payload().is_empty()).then(|| seen.ack())
            })?;
            let Some(ack) = by_data.1 else {
                return skip("the device sends small reads on the return direction");
            };
            t.check(PDS_ACK_006, "ack_psn", Some(pdc.psn(1)), ack.ack_psn());
            Ok(())
        }),
    rule("ack/partial-success-at-once", "A send longer than its buffer is reported at once, even without ar")
        .checks(&[PDS_ACK_007])
        .needs(&[WRITE, SEND, RECEIVE])
        .over(&[&MODE, &START])
        .run(|t| {
            slow_timer(t)?;
            let (pdc, _) = t.open()?;
            t.posted(room(8))?;
            // Longer than its buffer: cut to fit, or refused, but not plainly well.
            let send = Message::send(&[1; 16]).whole()?;
            t.request(&pdc, pdc.request(1).quiet().ses(send.ses, &send.payload))?;
            let (seen, _) = t.expect_answer(PDS_ACK_007, &pdc, pdc.psn(1))?;
            // A device may refuse what is too long: an error is not the default response either.
            let opcode = seen.response().map(|response| response.head().opcode());
            let told = opcode == Some(ResponseOpcode::UET_RESPONSE) || seen.is_error();
            t.holds(PDS_ACK_007, "the response says that not all was taken", told, seen.uet());
            Ok(())
        }),
    rule("ack/coalesced", "One ACK at the end of a burst covers the whole burst")
        .checks(&[PDS_PSN_002, PDS_ACK_012])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for n in 1..8 {
                t.request(&pdc, pdc.request(n).quiet().write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.request(&pdc, pdc.request(8).write(&region, 8, &[8])?)?;
            let (_, ack) = t.expect_answer(PDS_ACK_012, &pdc, pdc.psn(8))?;
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(8), ack.cack_psn());
            Ok(())
        }),
    rule("ack/response", "The response in an ACK belongs to the packet that the ACK names")
        .checks(&[PDS_ACK_016, SES_RESP_003])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let named = |n: u32| Region { message_id: 0x100 + n as u16, ..region.clone() };
            // The errors are not cleared: what comes after them is not covered cumulatively.
            for n in 1..=6 {
                let request = pdc.request(n);
                let request = match n % 2 {
                    0 => request.write_nowhere(&named(n), &[1; 16])?,
                    _ => request.write(&named(n), 0, &[1; 16])?,
                };
                t.request(&pdc, request)?;
            }
            for n in [2, 4, 6] {
                let (seen, _) = t.expect_answer(PDS_ACK_016, &pdc, pdc.psn(n))?;
                let Some(response) = seen.response() else {
                    t.holds(PDS_ACK_016, "the ACK carries a response", false, seen.uet());
                    continue;
                };
                t.holds(PDS_ACK_016, "the response is an error", seen.is_error(), seen.uet());
                t.check(SES_RESP_003, "message_id", 0x100 + n as u16, response.message_id());
                t.check(SES_RESP_003, "job_id", region.job, response.job_id());
            }
            t.expect_none(PDS_ACK_016, "no error for a write that is right", t.soon(), |seen| {
                let right = [1, 3, 5].into_iter().any(|n| seen.answers(&pdc, pdc.psn(n)).is_some());
                (right && seen.is_error()).then_some(())
            })
        }),
    rule("ack/gaps", "The cumulative PSN stops at the first gap and advances to the next when it is filled")
        .checks(&[PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // Missing are 1, 4 and 7.
            for n in [2, 3, 5, 6, 8] {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_PSN_002, &pdc, pdc.psn(n))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            }
            for (missing, cack) in [(1, 3), (7, 3), (4, 8)] {
                t.pause(t.soon())?;
                t.forget();
                t.request(&pdc, pdc.request(missing).write(&region, 0, &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_PSN_002, &pdc, pdc.psn(missing))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(cack), ack.cack_psn());
            }
            Ok(())
        }),
    rule("ack/monotonic-cack", "The cumulative PSN never decreases, whatever the order of arrival")
        .checks(&[PDS_PSN_003])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let mut order: Vec<u32> = (1..=64).chain(1..=64).collect();
            t.rng.shuffle(&mut order);
            for n in order {
                t.request(&pdc, pdc.request(n).retx().write(&region, 0, &[1])?)?;
            }
            let mut cacks: Vec<_> = t.gather(t.soon())?.iter().filter_map(|seen| seen.cack(&pdc)).collect();
            // A host under load loses some of so many packets.
            for _ in 0..3 {
                let next = cacks.last().map_or(1, |cack| *cack + 1 - pdc.start);
                if t.facts().virtual_time || next > 64 {
                    break;
                }
                t.request(&pdc, pdc.request(next).retx().write(&region, 0, &[1])?)?;
                cacks.extend(t.gather(t.soon())?.iter().filter_map(|seen| seen.cack(&pdc)));
            }
            let back = cacks.windows(2).find(|pair| pair[0].is_after(pair[1]));
            let seen =
                back.map_or_else(|| "none".to_owned(), |pair| format!("{} after {}", pair[1], pair[0]));
            t.holds(PDS_PSN_003, "the cumulative PSN never moves back", back.is_none(), seen);
            t.check(PDS_PSN_003, "the last cack_psn", Some(&pdc.psn(64)), cacks.last());
            Ok(())
        }),
    rule("ack/unsent-psn", "No ACK names or covers a PSN that was never sent").checks(&[PDS_SACK_001]).run(
        |t| {
            let (pdc, region) = t.open()?;
            let sent = [0, 2, 3, 7, 20, 63, 64, 65, 100];
            for n in &sent[1..] {
                t.request(&pdc, pdc.request(*n).retx().write(&region, 0, &[1])?)?;
            }
            let mut told = Vec::new();
            for seen in t.gather(t.soon())?.iter().filter(|seen| seen.is_for(&pdc)) {
                told.extend(seen.ack().and_then(|ack| ack.ack_psn()));
                told.extend(seen.cack(&pdc));
                told.extend(seen.ack_cc().into_iter().flat_map(|ack| ack.sacked()));
            }
            // Bits below the first PSN, if covered, read as received.
            let wrong = told.into_iter().filter(|psn| !pdc.start.is_after(*psn));
            let wrong = wrong.map(|psn| psn - pdc.start).find(|n| !sent.contains(n));
            let seen =
                wrong.map_or_else(|| "none".to_owned(), |n| format!("packet {n}, which was never sent"));
            t.holds(PDS_SACK_001, "ACKs tell only of packets that were sent", wrong.is_none(), seen);
            Ok(())
        },
    ),
    rule("ack/control", "The ACK of a control packet carries no response")
        .checks(&[PDS_ACK_014, PDS_ACK_011, PDS_CTL_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let other = if t.claims("negotiation") { CtlType::NEGOTIATION } else { CtlType::NOOP };
            for (n, kind) in [(1, CtlType::NOOP), (2, other)] {
                t.send(&pdc, &pdc.numbered(kind, n)?)?;
                let (seen, ack) = t.expect_answer(PDS_CTL_001, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
                t.check(PDS_ACK_014, "bytes after the header", 0, seen.payload().len());
            }
            // Had they taken no PSN, this one would be above a gap.
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CTL_001, &pdc, pdc.psn(3))?;
            // One that asks for nothing: its ACK may wait, and answers it alone all the same.
            let noop = Control::build(CtlType::NOOP).psn(pdc.psn(4)).spdcid(pdc.local);
            t.send(&pdc, &UetBuf::new(noop.dpdcid(pdc.remote.unwrap_or_default()).done()?))?;
            let (_, ack) = t.expect(PDS_ACK_011, "an ACK in the end", t.soon() * 50, |seen| {
                seen.acknowledges(&pdc, pdc.psn(4))
            })?;
            t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
            // Above a gap, and once more.
            for retx in [false, true] {
                let noop =
                    Control::build(CtlType::NOOP).ar(true).retx(retx).psn(pdc.psn(6)).spdcid(pdc.local);
                t.send(&pdc, &UetBuf::new(noop.dpdcid(pdc.remote.unwrap_or_default()).done()?))?;
                let (_, ack) = t.expect_answer(PDS_CTL_001, &pdc, pdc.psn(6))?;
                t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
            }
            Ok(())
        }),
    rule("ack/type", "An ACK is an ACK_CC or ACK_CCX at a gap or with congestion control")
        .checks(&[PDS_ACK_015])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let idle = t.word("congestion") == Some("none");
            forms(t, (t.claims("nscc") || t.claims("rccc")) && !idle)?;
            match t.try_configure("congestion", "none")? {
                true => forms(t, false),
                false => Ok(()),
            }
        }),
    rule("ack/plain-success", "The ACK of a success carries the default response and requests no CLEAR")
        .checks(&[SES_RESP_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            let (seen, ack) = t.expect_answer(SES_RESP_002, &pdc, pdc.psn(1))?;
            let requests = [AckRequest::NO_REQUEST, AckRequest::REQ_CLOSE];
            t.one_of(SES_RESP_002, "pds.req", &requests, ack.req());
            t.check(SES_RESP_002, "cack_psn", pdc.psn(1), ack.cack_psn());
            t.holds(SES_RESP_002, "the response is no error", !seen.is_error(), seen.uet());
            let list = seen.response().map(|response| response.head().list().code());
            t.check(SES_RESP_002, "list", Some(0), list);
            Ok(())
        }),
];

/// Makes the device's own delay so long that it is not taken for haste; a device that does not let it be set
/// is less sharply judged.
fn slow_timer(t: &mut Test<'_>) -> Outcome {
    t.try_configure("ack_delay", 1_000_000_000).map(drop)
}

/// Writes twice to the same place; the first request, for it to come again. Were it delivered again, the
/// second would be gone.
fn overwritten(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<Request, Stop> {
    let first = pdc.request(1).write(region, 0, &[1; 16])?;
    t.request(pdc, first.clone())?;
    t.need_ack(pdc, pdc.psn(1))?;
    t.request(pdc, pdc.request(2).write(region, 0, &[2; 16])?)?;
    t.need_ack(pdc, pdc.psn(2))?;
    t.pause(t.soon())?;
    t.forget();
    Ok(first)
}

fn check_default(t: &mut Test<'_>, response: Response) {
    let head = response.head();
    let opcodes = [ResponseOpcode::UET_DEFAULT_RESPONSE, ResponseOpcode::UET_NO_RESPONSE];
    t.one_of(PDS_ACK_013, "ses.opcode", &opcodes, head.opcode());
    t.one_of(PDS_ACK_013, "ses.return_code", &[ReturnCode::NULL, ReturnCode::OK], head.return_code());
    t.check(PDS_ACK_013, "ses.list", 0, head.list().code());
    t.check(PDS_ACK_013, "ses.modified_length", 0, response.modified_length());
    t.check(PDS_ACK_013, "ses.ri_generation", 0, response.ri_generation());
}

/// Expects an ACK of the `n`-th PSN. How long is open; longer than this, and no source has patience.
fn in_the_end(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    let long = t.soon() * 50;
    t.expect(PDS_ACK_011, "an ACK in the end", long, |seen| seen.acknowledges(pdc, pdc.psn(n)))?;
    Ok(())
}

/// The most packets that a rule sends until the device acknowledges them by itself.
const MANY: u64 = 4096;

/// Sends as many packets as make an ACK, by their payload alone, none of which asks for it.
fn fill_up(t: &mut Test<'_>, size: u64, counted: u64) -> Outcome {
    slow_timer(t)?;
    let contexts = t.value(&CONTEXTS);
    let open = (0..contexts).map(|_| t.open()).collect::<Result<Vec<_>, Stop>>()?;
    let count = match t.parameter("ack_gen_trigger").div_ceil(counted) {
        count @ ..=MANY => count as u32,
        count => return skip(format!("{count} packets for an ACK are too many")),
    };
    for n in 1..=count {
        for (pdc, region) in &open {
            t.request(pdc, pdc.request(n).quiet().write(region, 0, &vec![n as u8; size as usize])?)?;
        }
    }
    for (pdc, _) in &open {
        t.expect(PDS_ACK_010, "an ACK of these packets", t.soon(), |seen| {
            (1..=count).find_map(|n| seen.acknowledges(pdc, pdc.psn(n)))
        })?;
    }
    Ok(())
}

/// The number of contexts that receive packets in turn.
const CONTEXTS: Axis<usize> = axis("contexts").values(&[("1", 1), ("2", 2), ("3", 3)]);

/// A gap has to be told, and congestion state where there is some. A device may tell more than it must.
fn forms(t: &mut Test<'_>, state: bool) -> Outcome {
    const LONG: [PdsType; 2] = [PdsType::ACK_CC, PdsType::ACK_CCX];
    let kind = |seen: &RxPacket| seen.uet().pds.map_or(PdsType::ACK, |pds| pds.kind());
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(1).write(&region, 0, &[1])?)?;
    let (seen, _) = t.expect_answer(PDS_ACK_015, &pdc, pdc.psn(1))?;
    let allowed = if state { &LONG[..] } else { &[PdsType::ACK, LONG[0], LONG[1]] };
    t.one_of(PDS_ACK_015, "pds.type without a gap", allowed, kind(&seen));
    t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
    let (seen, _) = t.expect_answer(PDS_ACK_015, &pdc, pdc.psn(3))?;
    t.one_of(PDS_ACK_015, "pds.type at a gap", &LONG, kind(&seen));
    Ok(())
}
