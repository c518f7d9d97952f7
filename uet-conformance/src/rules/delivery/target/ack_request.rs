//! Replies of a target to ACK_REQUEST and PROBE (section 3.5.12).

use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_control::Permission;

/// True if each request clears the PSNs below it.
const CLEARED: Axis<bool> = axis("cleared").values(&[("no", false), ("yes", true)]);

pub(super) const RULES: &[Rule] = &[
    rule("ack-request/not-received", "ACK_REQUEST for a missing PSN is answered with NACK PKT_NOT_RCVD")
        .checks(&[PDS_ASK_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(3))?;
            for n in [1, 2, 4] {
                request_ack(t, &pdc, pdc.psn(n))?;
                let (_, nack) = t.expect_nack(PDS_ASK_001, &pdc, pdc.psn(n), &[NackCode::PKT_NOT_RCVD])?;
                t.check(PDS_ASK_001, "spdcid", pdc.remote, Some(nack.spdcid()));
            }
            Ok(())
        }),
    rule("ack-request/acknowledged", "ACK_REQUEST for an acknowledged PSN gets a default response")
        .checks(&[PDS_ASK_002, PDS_ACK_013])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            for n in [0, 1] {
                request_ack(t, &pdc, pdc.psn(n))?;
                let (seen, ack) = t.expect_ack(PDS_ASK_002, &pdc, pdc.psn(n))?;
                t.check(PDS_ASK_002, "cack_psn", pdc.psn(1), ack.cack_psn());
                let length = seen.response().map(|response| response.modified_length());
                t.check(PDS_ACK_013, "modified_length", Some(0), length);
            }
            Ok(())
        }),
    rule("ack-request/distance", "ACK_REQUEST and PROBE get an ACK at any distance below the cumulative PSN")
        .checks(&[PDS_ASK_002, PDS_PRB_001])
        .needs(&[WRITE])
        .over(&[&CLEARED, &MODE, &START])
        .run(|t| {
            const LAST: u32 = 130;
            let (pdc, region) = t.open()?;
            let cleared = t.value(&CLEARED);
            for n in 1..=LAST {
                let request = pdc.request(n).write(&region, 0, &[1])?;
                let clear = if cleared { pdc.psn(n - 1) } else { request.clear };
                t.request(&pdc, Request { clear, ..request })?;
                if n % 16 == 0 || n == LAST {
                    t.need("an ACK of all", t.soon(), |seen| (seen.cack(&pdc)? == pdc.psn(n)).then_some(()))?;
                    t.forget();
                }
            }
            for below in [0, 1, 2, 62, 63, 64, 65, 100, 127, 128, 129, LAST] {
                let psn = pdc.psn(LAST - below);
                request_ack(t, &pdc, psn)?;
                let (_, ack) = t.expect_answer(PDS_ASK_002, &pdc, psn)?;
                t.check(PDS_ASK_002, "cack_psn", pdc.psn(LAST), ack.cack_psn());
                t.forget();
                let opaque = 0x8000 | below as u16;
                t.send(&pdc, &pdc.probe(opaque, psn)?)?;
                let (_, ack) = t.expect(PDS_PRB_001, "an ACK with p = 1", t.soon(), |seen| {
                    seen.ack().filter(|ack| seen.is_for(&pdc) && ack.probe_opaque() == Some(opaque))
                })?;
                t.check(PDS_PRB_001, "cack_psn", pdc.psn(LAST), ack.cack_psn());
            }
            Ok(())
        }),
    rule("ack-request/above-gap", "ACK_REQUEST for a PSN received above a gap gets an ACK that names it")
        .checks(&[PDS_ASK_003])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let range = t.range(&pdc)?;
            // A bitmap has 64 bits.
            let above = [2, 63, 64, 65, 66, 127, range].map(|n| n.min(range));
            for n in above {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1])?)?;
                t.need_ack(&pdc, pdc.psn(n))?;
            }
            for n in above {
                t.forget();
                request_ack(t, &pdc, pdc.psn(n))?;
                let (_, ack) = t.expect_answer(PDS_ASK_003, &pdc, pdc.psn(n))?;
                t.check(PDS_ASK_003, "cack_psn", pdc.psn(0), ack.cack_psn());
            }
            Ok(())
        }),
    rule("ack-request/stored-response", "ACK_REQUEST for a stored response returns that response")
        .checks(&[PDS_ASK_003, PDS_GTD_001, PDS_GTD_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            let (first, _) = t.expect_answer(PDS_GTD_002, &pdc, pdc.psn(1))?;
            request_ack(t, &pdc, pdc.psn(1))?;
            let (repeated, ack) = t.expect_answer(PDS_ASK_003, &pdc, pdc.psn(1))?;
            t.check(PDS_GTD_001, "the response", first.response(), repeated.response());
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
            Ok(())
        }),
    rule("ack-request/pending", "ACK_REQUEST for a pending response gets NACK RCVD_SES_PROCG")
        .checks(&[PDS_ASK_004])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = send_second_half(t)?;
            request_ack(t, &pdc, pdc.psn(2))?;
            t.expect_nack(PDS_ASK_004, &pdc, pdc.psn(2), &[NackCode::RCVD_SES_PROCG])?;
            t.request(&pdc, pdc.request(1).half(&region, t.mtu(), 0)?)?;
            t.expect_cack(PDS_ASK_004, &pdc, pdc.psn(2))?;
            Ok(())
        }),
    rule("ack-request/pending-duplicate", "A duplicate of a pending request gets RCVD_SES_PROCG or nothing")
        .checks(&[PDS_DUP_005, PDS_DUP_001, WIRE_PDCID_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = send_second_half(t)?;
            t.request(&pdc, pdc.request(2).half(&region, t.mtu(), 1)?.retx())?;
            let mut senders = Vec::new();
            t.expect_none(PDS_DUP_005, "no ACK of it, and no NACK but RCVD_SES_PROCG", t.soon(), |seen| {
                let named = seen.answers(&pdc, pdc.psn(2)).is_some();
                let refused = seen.refuses(&pdc, pdc.psn(2));
                senders.extend(refused.map(|nack| nack.spdcid()));
                let other = refused.is_some_and(|nack| nack.nack_code() != NackCode::RCVD_SES_PROCG);
                (named || other).then_some(())
            })?;
            for sender in senders {
                t.check(WIRE_PDCID_001, "spdcid", pdc.remote, Some(sender));
            }
            t.request(&pdc, pdc.request(1).half(&region, t.mtu(), 0)?)?;
            t.expect_cack(PDS_DUP_001, &pdc, pdc.psn(2))?;
            t.expect_memory(PDS_DUP_001, &region, 0, &vec![7; 2 * t.mtu()])
        }),
    rule("ack-request/read-data", "ACK_REQUEST for read data in an ACK gets the data or NACK ACK_WITH_DATA")
        .checks(&[PDS_ASK_005])
        .needs(&[READ])
        .run(|t| {
            let region = t.region_for(64, &[Permission::Read, Permission::Write], None)?;
            let mut pdc = t.initiate();
            t.establish(&mut pdc, &region)?;
            let most = t.parameter("max_ack_data_size") as u32;
            t.request(&pdc, pdc.request(1).read(&region, 0, most.clamp(1, 8))?)?;
            let data =
                |seen: &RxPacket| seen.answers(&pdc, pdc.psn(1)).filter(|_| !seen.payload().is_empty());
            if t.wait(t.soon(), data)?.is_none() {
                return skip("no read data rides in ACKs");
            }
            request_ack(t, &pdc, pdc.psn(1))?;
            t.expect(PDS_ASK_005, "the data, or NACK ACK_WITH_DATA", t.soon(), |seen| {
                let gone = seen.refuses(&pdc, pdc.psn(1)).map(|nack| nack.nack_code());
                (data(seen).is_some() || gone == Some(NackCode::ACK_WITH_DATA)).then_some(())
            })?;
            Ok(())
        }),
    rule("ack-request/no-context", "ACK_REQUEST without a context gets INV_DPDCID or nothing and opens none")
        .checks(&[PDS_CTL_002])
        .run(|t| {
            let (open, region) = t.open()?;
            let pdc = t.initiate().of_nobody(open.remote);
            t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(0), 0)?)?;
            t.send(&pdc, &pdc.probe(1, pdc.psn(0))?)?;
            t.expect_silence(PDS_CTL_002, "no ACK, and no NACK but INV_DPDCID", |seen| {
                let other = seen.nack().is_some_and(|nack| nack.nack_code() != NackCode::INV_DPDCID);
                (seen.is_for(&pdc) && (seen.ack().is_some() || other)).then_some(())
            })?;
            // A context opened by the control packets would refuse this Start_PSN.
            let pdc = Pdc { remote: None, start: pdc.start + (1 << 20), ..pdc };
            t.request(&pdc, pdc.request(0).write(&region, 0, &[1])?)?;
            t.expect_ack(PDS_CTL_002, &pdc, pdc.psn(0))?;
            Ok(())
        }),
    rule("ack-request/no-psn", "ACK_REQUEST and PROBE consume no PSN").checks(&[PDS_CTL_001]).run(|t| {
        let (pdc, region) = t.open()?;
        request_ack(t, &pdc, pdc.psn(1))?;
        t.send(&pdc, &pdc.probe(7, pdc.psn(1))?)?;
        t.pause(t.soon())?;
        t.forget();
        t.request(&pdc, pdc.request(1).write(&region, 0, &[1])?)?;
        let (_, ack) = t.expect_ack(PDS_CTL_001, &pdc, pdc.psn(1))?;
        t.check(PDS_CTL_001, "cack_psn", pdc.psn(1), ack.cack_psn());
        t.expect_memory(PDS_CTL_001, &region, 0, &[1])
    }),
    rule("ack-request/probe", "A PROBE is answered with an ACK that has p = 1 and its opaque value")
        .checks(&[PDS_PRB_001])
        .run(|t| {
            let (pdc, _) = t.open()?;
            for opaque in [0, 1, 0xffff, 0xbeef] {
                t.send(&pdc, &pdc.probe(opaque, pdc.psn(1))?)?;
                let (seen, ack) = t.expect(PDS_PRB_001, "an ACK with p = 1", t.soon(), |seen| {
                    seen.ack().filter(|ack| seen.is_for(&pdc) && ack.p())
                })?;
                t.check(PDS_PRB_001, "probe_opaque", Some(opaque), ack.probe_opaque());
                t.check(PDS_PRB_001, "spdcid", pdc.remote, Some(ack.spdcid()));
                t.holds(PDS_PRB_001, "the answer carries no error", !seen.is_error(), seen.uet());
            }
            Ok(())
        }),
    rule("ack-request/two-probes", "Each of two PROBEs in a row is answered with its own opaque value")
        .checks(&[PDS_PRB_001])
        .run(|t| {
            let (pdc, _) = t.open()?;
            for opaque in [1, 2] {
                t.send(&pdc, &pdc.probe(opaque, pdc.psn(1))?)?;
            }
            for opaque in [1, 2] {
                t.expect(PDS_PRB_001, &format!("an ACK with probe_opaque {opaque}"), t.soon(), |seen| {
                    seen.ack().filter(|ack| seen.is_for(&pdc) && ack.probe_opaque() == Some(opaque))
                })?;
            }
            Ok(())
        }),
    rule("ack-request/repeated", "Equal copies of an ACK_REQUEST or PROBE each get an answer")
        .checks(&[PDS_ASK_001, PDS_ASK_002, PDS_PRB_001])
        .run(|t| {
            let (pdc, _) = t.open()?;
            let (arrived, missing) = (pdc.psn(0), pdc.psn(1));
            for _ in 0..3 {
                t.send(&pdc, &pdc.probe(0x7e57, arrived)?)?;
                t.expect(PDS_PRB_001, "an ACK with p = 1", t.soon(), |seen| {
                    seen.ack().filter(|ack| seen.is_for(&pdc) && ack.p())
                })?;
                request_ack(t, &pdc, arrived)?;
                t.expect(PDS_ASK_002, "an ACK with p = 0", t.soon(), |seen| {
                    seen.acknowledges(&pdc, arrived).filter(|ack| !ack.p())
                })?;
                request_ack(t, &pdc, missing)?;
                t.expect_nack(PDS_ASK_001, &pdc, missing, &[NackCode::PKT_NOT_RCVD])?;
            }
            Ok(())
        }),
    rule("ack-request/probe-bitmap", "The ACK of a PROBE has a bitmap at or near the PSN of the PROBE")
        .checks(&[PDS_PRB_001, PDS_SACK_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(1 << 16)?;
            // A bitmap may start at a multiple of 64 below the requested PSN. Each pair of packets fits one.
            let random = t.initiate();
            let mut pdc = Pdc { start: random.start - random.start.0 % 64, ..random };
            t.establish(&mut pdc, &region)?;
            let range = t.range(&pdc)?.min(1024);
            require(range >= 192, "the window is too small for packets so far apart")?;
            let base = range - 64;
            for n in [3, 5, base + 1, base + 3] {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1])?)?;
                t.need_ack(&pdc, pdc.psn(n))?;
            }
            t.forget();
            for (base, received) in [(2, [3, 5]), (base, [base + 1, base + 3])] {
                t.send(&pdc, &pdc.probe(base as u16, pdc.psn(base))?)?;
                let (seen, _) = t.expect(PDS_PRB_001, "an ACK with p = 1", t.soon(), |seen| {
                    seen.ack().filter(|ack| seen.is_for(&pdc) && ack.probe_opaque() == Some(base as u16))
                })?;
                let Some(ack) = seen.ack_cc() else {
                    t.holds(PDS_PRB_001, "the answer has a bitmap", false, seen.uet());
                    continue;
                };
                let sacked: Vec<Psn> = ack.sacked().collect();
                for n in received {
                    let set = sacked.contains(&pdc.psn(n));
                    let statement = format!("the bitmap has the bit of PSN {}", pdc.psn(n));
                    t.holds(PDS_PRB_001, &statement, set, seen.uet());
                }
                let unsent = sacked.iter().filter(|psn| psn.is_after(pdc.psn(0))).map(|psn| *psn - pdc.start);
                let unsent = unsent.into_iter().find(|n| ![3, 5, base + 1, base + 3].contains(n));
                t.check(PDS_SACK_001, "a bit for a packet that was never sent:", None, unsent);
            }
            Ok(())
        }),
];

/// Sends an ACK_REQUEST for a PSN. Earlier packets of the device no longer count.
fn request_ack(t: &mut Test<'_>, pdc: &Pdc, psn: Psn) -> Outcome {
    t.forget();
    t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, psn, 0)?)
}

/// Sends the second half of a message whose first half is missing, on a new context.
fn send_second_half(t: &mut Test<'_>) -> Result<(Pdc, Region), Stop> {
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(2).half(&region, t.mtu(), 1)?)?;
    if t.wait(t.soon(), |seen| seen.answers(&pdc, pdc.psn(2)))?.is_some() {
        let why = "the device answers the last packet before the message is complete";
        return Err(Stop::Inconclusive(why.into()));
    }
    Ok((pdc, region))
}
