//! The entropy values of answers (sections 3.6.10 and 3.6.16): that of the packet that they answer.

use crate::Trimmed;
use crate::prelude::*;
use crate::rules::steps::idempotent_region;

/// The state of the request that an ACK_REQUEST names.
#[derive(Clone, Copy, Debug)]
enum Named {
    Missing,
    /// The message of the request is incomplete.
    Incomplete,
    AboveGap,
    BelowGap,
}

const NAMED: Axis<Named> = axis("request").values(&[
    ("missing", Named::Missing),
    ("incomplete", Named::Incomplete),
    ("above-gap", Named::AboveGap),
    ("below-gap", Named::BelowGap),
]);

/// The reason why an ACK leaves late.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// Nobody requests it at once.
    AckDelay,
    /// The message is incomplete, so its response is not ready.
    Response,
}

const LATE: Axis<Late> = axis("late").values(&[("ack", Late::AckDelay), ("response", Late::Response)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[SET_ENTROPY, SEE_ENTROPY]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("path/ack", "An ACK has the entropy value of its packet").checks(&[CC_PATH_001]).run(|t| {
        let (mut pdc, region) = t.open()?;
        for (n, entropy) in [(1, 0xc111), (2, 0xc222), (3, 0xffff), (4, 0xc111)] {
            pdc.entropy = entropy;
            t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
            let (seen, _) = t.expect_answer(CC_PATH_001, &pdc, pdc.psn(n))?;
            t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
        }
        Ok(())
    }),
    rule("path/retransmission", "The ACK of a retransmission has the entropy value of the retransmission")
        .checks(&[CC_PATH_001])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 0, &[1; 16])?;
            pdc.entropy = 0xc111;
            t.request(&pdc, request.clone())?;
            t.need_ack(&pdc, pdc.psn(1))?;
            pdc.entropy = 0xc222;
            t.request(&pdc, request.retx())?;
            let (seen, _) = t.expect_answer(CC_PATH_001, &pdc, pdc.psn(1))?;
            t.check(CC_PATH_001, "entropy", 0xc222, seen.wire.entropy);
            Ok(())
        }),
    rule("path/delayed-ack", "A delayed ACK has the entropy value of the packet that it names")
        .checks(&[CC_PATH_001])
        .over(&[&LATE, &MODE, &CARRIER, &START])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let within = t.soon() * 50;
            if let Late::Response = t.value(&LATE) {
                // The last packet of a message is answered once the first one has arrived too.
                require(!pdc.rod, "an ordered context accepts no last packet before the first")?;
                let mtu = t.mtu();
                for (n, half, entropy) in [(2, 1, 0xc111), (1, 0, 0xc222)] {
                    pdc.entropy = entropy;
                    t.request(&pdc, pdc.request(n).half(&region, mtu, half)?)?;
                }
                let (seen, _) =
                    t.need("an ACK of the last packet", within, |seen| seen.answers(&pdc, pdc.psn(2)))?;
                t.check(CC_PATH_001, "entropy", 0xc111, seen.wire.entropy);
                return Ok(());
            }
            for (n, entropy) in [(1, 0xc111), (2, 0xc222)] {
                pdc.entropy = entropy;
                t.request(&pdc, pdc.request(n).quiet().write(&region, 0, &[1; 16])?)?;
                // `ack/bounded` checks that the device sends an ACK at all.
                let (seen, _) = t.need("an ACK of a request that asks for none", within, |seen| {
                    seen.acknowledges(&pdc, pdc.psn(n))
                })?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/control-packet", "The ACK of a control packet has the entropy value of that packet")
        .checks(&[CC_PATH_001])
        .run(|t| {
            t.need_noop()?;
            let (mut pdc, _) = t.open()?;
            for (n, entropy) in [(1, 0xc111), (2, 0xc222)] {
                pdc.entropy = entropy;
                t.send(&pdc, &pdc.numbered(CtlType::NOOP, n)?)?;
                let (seen, _) = t.expect_answer(CC_PATH_001, &pdc, pdc.psn(n))?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/nack", "A NACK has the entropy value of the packet that it refuses")
        .checks(&[CC_PATH_001])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let outside = t.beyond(&pdc)? + 10;
            for (n, entropy) in [(outside, 0xc111), (outside + 1, 0xc222)] {
                pdc.entropy = entropy;
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
                let (seen, _) = t.expect_nack(CC_PATH_001, &pdc, pdc.psn(n), &[NackCode::PSN_OOR_WINDOW])?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/nack-without-context", "A NACK without a context has the entropy value of the refused packet")
        .checks(&[CC_PATH_001])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let open = pdc.remote.map_or(0, |id| id.0);
            pdc.remote = Some(PdcId(open ^ 0x3fff));
            pdc.entropy = 0xc111;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            let (seen, _) = t.expect_nack(CC_PATH_001, &pdc, pdc.psn(1), &[NackCode::INV_DPDCID])?;
            t.check(CC_PATH_001, "entropy", 0xc111, seen.wire.entropy);
            Ok(())
        }),
    rule("path/ack-request", "A reply to ACK_REQUEST has its entropy value or that of the named request")
        .checks(&[CC_PATH_001])
        .needs(&[RUD, SET_ENTROPY, SEE_ENTROPY])
        .over(&[&NAMED, &CARRIER])
        .run(|t| {
            let named = t.value(&NAMED);
            let (mut pdc, region) = t.open()?;
            let n = if matches!(named, Named::BelowGap) { 1 } else { 2 };
            pdc.entropy = 0xc111;
            match named {
                Named::Missing => {}
                // The first half is missing.
                Named::Incomplete => t.request(&pdc, pdc.request(n).quiet().half(&region, t.mtu(), 1)?)?,
                Named::AboveGap | Named::BelowGap => {
                    t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
                    t.need_ack(&pdc, pdc.psn(n))?;
                }
            }
            t.pause(t.soon())?;
            t.forget();
            pdc.entropy = 0xc222;
            t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(n), 0)?)?;
            let replies = |seen: &RxPacket| {
                let about =
                    seen.answers(&pdc, pdc.psn(n)).is_some() || seen.refuses(&pdc, pdc.psn(n)).is_some();
                about.then_some(())
            };
            let (seen, ()) = t.need("a reply to ACK_REQUEST", t.soon(), replies)?;
            match named {
                Named::Missing => t.check(CC_PATH_001, "entropy", 0xc222, seen.wire.entropy),
                _ => t.one_of(CC_PATH_001, "entropy", &[0xc111, 0xc222], seen.wire.entropy),
            }
            Ok(())
        }),
    rule("path/trimmed", "The NACK of a trimmed packet has the entropy value of that packet")
        .checks(&[CC_PATH_001])
        .needs(&[SET_ENTROPY, SEE_ENTROPY, TRIM])
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            let places =
                [(Trimmed::Fabric, NackCode::TRIMMED), (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP)];
            for ((place, code), entropy) in places.into_iter().cycle().zip([0xc111, 0xc222, 0xc333, 0xc444]) {
                pdc.entropy = entropy;
                t.forget();
                let packet = pdc.request(1).write(&region, 0, &[1; 1000])?.build()?;
                t.send_wire(&pdc.trimmed(&packet, place, 64))?;
                let (seen, _) = t.expect_nack(CC_PATH_001, &pdc, pdc.psn(1), &[code])?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/trimmed-rudi", "The NACK of a trimmed RUDI request has the entropy value of that request")
        .checks(&[CC_PATH_001])
        .needs(&[RUDI, WRITE, SET_ENTROPY, SEE_ENTROPY, TRIM])
        .over(&[])
        .run(|t| {
            let (region, _) = idempotent_region(t)?;
            for (id, entropy) in [(1, 0xc111), (2, 0xc222), (1, 0xc333)] {
                let pdc = Pdc { entropy, ..t.initiate() };
                let packet = crate::rudi(id, &pdc.request(0).write(&region, 0, &[1; 200])?)?;
                t.send_wire(&pdc.trimmed(&packet, Trimmed::Fabric, 16))?;
                let (seen, _) = t.expect(CC_PATH_001, "a NACK of the trimmed request", t.soon(), |seen| {
                    seen.nack().filter(|nack| nack.nack_pkt_id() == Some(id) && seen.wire.dst == pdc.from)
                })?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
    rule("path/probe", "The ACK of a PROBE has the entropy value of that PROBE").checks(&[CC_PATH_001]).run(
        |t| {
            t.need_probe()?;
            let (mut pdc, _) = t.open()?;
            for (opaque, entropy) in [(1, 0xc111), (2, 0xc222), (3, 0xc111)] {
                pdc.entropy = entropy;
                t.send(&pdc, &pdc.probe(opaque, pdc.psn(0))?)?;
                let (seen, _) = t.expect(CC_PATH_001, "an ACK of the PROBE", t.soon(), |seen| {
                    seen.ack().filter(|ack| seen.is_for(&pdc) && ack.probe_opaque() == Some(opaque))
                })?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        },
    ),
];
