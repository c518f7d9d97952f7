//! How a device opens contexts as an initiator, and which context each operation uses (section 3.5.8).

use super::steps::{check_opening, other_pdcid};
use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::ses::Ses;

/// The traffic classes of the first context and of the second one.
const CLASSES: Axis<[u8; 2]> = axis("classes").values(&[("0-then-1", [0, 1]), ("1-then-0", [1, 0])]);

/// Default_MPR as the script sets it. The larger one permits more PSNs than psn_offset can count.
const DEFAULT_MPR: Axis<u64> = axis("default-mpr").values(&[("1", 1), ("64", 64)]);

/// A timeout in nanoseconds that ends after the last packet of the default window.
const LONG_TIMEOUT: u64 = 50_000_000;

pub(super) const RULES: &[Rule] = &[
    rule(
        "source-establish/syn-until-first-ack",
        "Until the first ACK, packets have syn and their psn_offset",
    )
    .checks(&[PDS_SYN_001])
    .run(|t| {
        let peer = t.peer(0)?;
        t.post(post(PostKind::Write, peer, 4 * t.mtu()))?;
        let mut target = Target::accept(t)?;
        // A device may delay later packets until the first ACK.
        target.watch(t, t.grace())?;
        for packet in &target.got {
            let offset = packet.request.psn_offset().map(|offset| u32::from(offset.get()));
            t.check(PDS_SYN_001, "syn", true, packet.request.syn());
            t.check(PDS_SYN_001, "psn_offset", Some(target.index(&packet.request)), offset);
        }
        let lowest = target.got.iter().map(|packet| target.index(&packet.request)).min();
        t.check(PDS_SYN_001, "the lowest psn_offset", Some(0), lowest);
        Ok(())
    }),
    rule(
        "source-establish/retx-before-ack",
        "A retransmission before the first ACK keeps syn and psn_offset",
    )
    .checks(&[PDS_SYN_001, PDS_RTO_005])
    .run(|t| {
        let peer = t.peer(0)?;
        t.post(post(PostKind::Write, peer, 64))?;
        let mut target = Target::accept(t)?;
        let again = target.expect_again(t, PDS_RTO_005, 0, t.later())?;
        let first = target.packet(0)?;
        t.check(PDS_SYN_001, "syn", true, again.request.syn());
        t.check(PDS_SYN_001, "psn_offset", first.request.psn_offset(), again.request.psn_offset());
        t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), again.request.spdcid());
        Ok(())
    }),
    rule("source-establish/established", "After the first ACK, new packets carry the target's PDCID")
        .checks(&[PDS_SYN_004])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 200 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.ack(t, 0)?;
            t.settle()?;
            // Acknowledges packets so that the device sends more.
            let after = t.now();
            let mut newest = target.got[0].request;
            while newest.syn() && !t.now().saturating_sub(after).ge(&t.later()) {
                let Some(packet) = target.next(t, t.later())? else { break };
                newest = packet.request;
                let highest = target.highest();
                target.name(t, highest, 1)?;
            }
            t.check(PDS_SYN_004, "syn", false, newest.syn());
            t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), newest.dpdcid());
            Ok(())
        }),
    rule(
        "source-establish/retx-after-ack",
        "A packet sent with syn is retransmitted without it after an ACK",
    )
    .checks(&[PDS_SYN_004, PDS_RTO_001])
    .run(|t| {
        let peer = t.peer(0)?;
        t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
        let mut target = Target::accept(t)?;
        target.collect(t, 2)?;
        target.name(t, 1, 0)?;
        t.settle()?;
        let again = target.expect_again(t, PDS_RTO_001, 0, t.later())?;
        t.check(PDS_SYN_004, "syn", false, again.request.syn());
        t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), again.request.dpdcid());
        Ok(())
    }),
    rule("source-establish/nack-is-no-ack", "A NACK establishes no context: retransmissions still have syn")
        .checks(&[PDS_SYN_001, PDS_NACK_004])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            target.refuse_without_context(t, NackCode::NO_RESOURCE, 0)?;
            t.settle()?;
            let again = target.expect_again(t, PDS_NACK_004, 0, t.later())?;
            check_opening(t, &again.request);
            Ok(())
        }),
    rule(
        "source-establish/early-message",
        "A message before the first ACK has the next PSN or a new context",
    )
    .checks(&[PDS_SYN_001, PDS_PSN_001])
    .run(|t| {
        let peer = t.peer(0)?;
        t.post(post(PostKind::Write, peer, 64))?;
        let mut target = Target::accept(t)?;
        t.post(post(PostKind::Write, peer, 128))?;
        let first = target.packet(0)?.request.psn();
        // A device may delay it until the first ACK.
        let second = t.wait(t.grace(), |seen| seen.request().filter(|request| request.psn() != first))?;
        match second {
            Some((_, second)) => {
                let offset = second.psn_offset().map(|offset| offset.get());
                let same = Some(second.spdcid()) == target.pdc.remote;
                t.check(PDS_SYN_001, "syn", true, second.syn());
                t.check(PDS_SYN_001, "psn_offset", Some(if same { 1 } else { 0 }), offset);
                let expected = if same { target.psn(1) } else { second.psn() };
                t.check(PDS_PSN_001, "psn", expected, second.psn());
            }
            None => {
                target.ack(t, 0)?;
                let second = target.expect_new(t, PDS_PSN_001, 1)?;
                t.check(PDS_SYN_004, "syn", false, second.request.syn());
            }
        }
        Ok(())
    }),
    rule("source-establish/operations", "The first packet of each operation opens a context at Start_PSN")
        .checks(&[PDS_SYN_001, PDS_PDC_001])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let kinds = [
                ("read", PostKind::Read),
                ("send", PostKind::Send),
                ("tsend", PostKind::Tsend),
                ("no_op", PostKind::NoOp),
            ];
            require(kinds.iter().any(|(name, _)| t.claims(name)), "the device supports only writes")?;
            for (name, kind) in kinds {
                if !t.claims(name) {
                    continue;
                }
                t.note(name);
                // Each job has its own context.
                let peer = t.peer_of_job(200 + kind as u32)?;
                let since = t.now();
                t.post(post(kind, peer, if kind == PostKind::NoOp { 0 } else { 64 }))?;
                let within = t.later();
                let (_, first) = t.expect(PDS_SYN_001, "a request that opens a context", within, |seen| {
                    seen.request().filter(|request| !request.retx() && seen.at > since)
                })?;
                check_opening(t, &first);
                t.at_least(PDS_PDC_001, "spdcid", 1, first.spdcid().0);
            }
            Ok(())
        }),
    rule("source-establish/clear-psn", "Until a packet is acknowledged, CLEAR_PSN is Start_PSN - 1")
        .checks(&[PDS_CLR_001])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 4 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            // Includes retransmissions.
            target.watch(t, t.later())?;
            for packet in &target.got {
                t.check(PDS_CLR_001, "CLEAR_PSN", target.psn(0) - 1, packet.request.clear_psn());
            }
            Ok(())
        }),
    rule("source-establish/offset-limit", "Before the first ACK, no packet exceeds the default window")
        .checks(&[PDS_SYN_006, PDS_SYN_001, PDS_SYN_004])
        .over(&[&DEFAULT_MPR, &MODE, &CARRIER, &START])
        .run(|t| {
            // If possible, the window is known and congestion control does not limit the device.
            t.try_configure("default_mpr", t.value(&DEFAULT_MPR))?;
            let has_small_packets = t.try_configure("payload_mtu", 1024)?;
            t.try_configure("congestion", "none")?;
            if t.value(&DEFAULT_MPR) > 1 {
                require(has_small_packets, "the packets of the larger window are too many bytes")?;
                // So many packets take longer than the usual timeout.
                if t.parameter("rto_init_time") < LONG_TIMEOUT {
                    t.try_configure("rto_init_time", LONG_TIMEOUT)?;
                }
            }
            let limit = (128 * t.parameter("default_mpr") - 1).min(4095) as u32;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, (limit as usize + 20) * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.watch(t, t.rto() * 2)?;
            let most = Bound::from(limit).from_parameter("default_mpr");
            let highest = target.highest();
            t.at_most(PDS_SYN_006, "the highest psn_offset before the first ACK", most, highest);
            let offset = target.packet(highest)?.request.psn_offset().map(|offset| u32::from(offset.get()));
            t.check(PDS_SYN_001, "psn_offset of the highest PSN", Some(highest), offset);
            // The device continues when the window moves.
            target.ack(t, highest)?;
            target.expect_new(t, PDS_SYN_004, highest + 1)?;
            Ok(())
        }),
    rule("source-establish/random-start", "The Start_PSNs of successive contexts follow no fixed step")
        .checks(&[PDS_SYN_007])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let mut starts: Vec<Psn> = Vec::new();
            for job in 300..306 {
                let peer = t.peer_of_job(job)?;
                let since = t.now();
                t.post(post(PostKind::Write, peer, 8))?;
                let within = t.later();
                let (_, first) = t.need("a request that opens a context", within, |seen| {
                    seen.request().filter(|request| !request.retx() && seen.at > since)
                })?;
                starts.push(first.start_psn().unwrap_or_default());
            }
            let steps: Vec<u32> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let mut different = steps.clone();
            different.sort_unstable();
            different.dedup();
            let near = steps.iter().filter(|step| step.wrapping_add(0x100) < 0x200).count();
            t.at_least(
                PDS_SYN_007,
                "different steps from one Start_PSN to the next, of 5",
                2,
                different.len(),
            );
            t.at_most(PDS_SYN_007, "steps of less than 256, of 5", 1, near);
            Ok(())
        }),
    rule("source-establish/unique-pdcid", "Open contexts to two peers have different PDCIDs")
        .checks(&[PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let mut open = Vec::<PdcId>::new();
            for address in 0..2 {
                let peer = t.peer(address)?;
                let from = t.address(address)?;
                t.post(post(PostKind::Write, peer, 64))?;
                let within = t.later();
                let (first, _) = t.need("a request that opens a context", within, |seen| {
                    seen.request().filter(|request| request.syn() && seen.wire.dst == from)
                })?;
                let pdc = t.accept(&first)?;
                t.send(&pdc, &pdc.ack(pdc.psn(0)).build()?)?;
                let id = first.request().map(|request| request.spdcid()).unwrap_or(PdcId::NONE);
                let free = !open.contains(&id);
                t.holds(
                    PDS_PDC_003,
                    "the PDCID of a new context is not in use",
                    free,
                    format_args!("PDCID {id}"),
                );
                open.push(id);
            }
            Ok(())
        }),
    rule("source-establish/job", "Two jobs do not share a context").checks(&[PDS_PDC_002, PDS_SYN_001]).run(
        |t| {
            let (one, other) = (t.peer(0)?, t.peer_of_job(102)?);
            expect_separate(t, post(PostKind::Write, one, 64), post(PostKind::Write, other, 64))?;
            Ok(())
        },
    ),
    rule("source-establish/class", "Two traffic classes do not share a context")
        .checks(&[PDS_PDC_002, PDS_SYN_001])
        .over(&[&CLASSES, &MODE, &CARRIER, &START])
        .run(|t| {
            let ([first, second], peer) = (t.value(&CLASSES), t.peer(0)?);
            let write = post(PostKind::Write, peer, 64);
            expect_separate(t, Post { class: first, ..write.clone() }, Post { class: second, ..write })?;
            Ok(())
        }),
    rule("source-establish/mode", "Ordered and unordered requests do not share a context")
        .checks(&[PDS_PDC_002, PDS_OPEN_008, PDS_SYN_001])
        .needs(&[RUD, ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let write = post(PostKind::Write, peer, 64);
            let (unordered, ordered) = expect_separate(t, write.clone(), Post { mode: Mode::Rod, ..write })?;
            let kind = unordered.packet(0)?.request.prologue().kind();
            t.one_of(PDS_OPEN_008, "pds.type of the first", &[PdsType::RUD_REQ, PdsType::RUD_CC_REQ], kind);
            // `rod` is true for ROD_REQ and ROD_CC_REQ.
            t.check(PDS_OPEN_008, "mode of the second", "ROD", if ordered.rod { "ROD" } else { "RUD" });
            Ok(())
        }),
    rule("source-establish/next-message", "A later message takes the next PSN or opens another context")
        .checks(&[PDS_SYN_004, PDS_PSN_001])
        .run(|t| {
            let (peer, target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 128))?;
            let within = t.later();
            let (_, next) = t.need("the second message", within, |seen| {
                seen.request().filter(|request| !request.retx())
            })?;
            if Some(next.spdcid()) == target.pdc.remote {
                t.check(PDS_PSN_001, "psn", target.psn(1), next.psn());
                t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), next.dpdcid());
            } else {
                t.check(PDS_SYN_001, "psn_offset", Some(0), next.psn_offset().map(|offset| offset.get()));
            }
            Ok(())
        }),
    rule("source-establish/whole-message", "All packets of a message use one context")
        .checks(&[PDS_MSG_002])
        .run(|t| {
            let peer = t.peer(0)?;
            let count = 40;
            t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            for n in 0..count {
                target.expect_new(t, PDS_MSG_002, n)?;
                target.ack(t, n)?;
            }
            let remote = target.pdc.remote;
            t.expect_none(PDS_MSG_002, "no packet by another context", t.grace(), |seen| {
                seen.request().filter(|request| Some(request.spdcid()) != remote)
            })?;
            Ok(())
        }),
    rule("source-establish/no-interleaving", "The packets of two messages do not interleave in a context")
        .checks(&[PDS_MSG_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let lengths = [30, 20, 10];
            for count in lengths {
                t.post(post(PostKind::Write, peer, count * t.mtu()))?;
            }
            let mut target = Target::accept(t)?;
            let mut acknowledged = 0;
            loop {
                for packet in &target.got[acknowledged..] {
                    target.name(t, target.index(&packet.request), 0)?;
                }
                acknowledged = target.got.len();
                if target.next(t, t.grace())?.is_none() {
                    break;
                }
            }
            require(target.highest() >= lengths[0] as u32, "the device uses a context for each message")?;
            // In PSN order, a message ends before another starts.
            let mut open = None;
            for n in 0..=target.highest() {
                let uet = target.packet(n)?.seen.uet();
                let Some(Ses::Std(ses)) = uet.ses else {
                    return skip("the device writes by a short header");
                };
                let message = ses.message_id();
                t.check(PDS_MSG_001, "the message of the packet", open.unwrap_or(message), message);
                open = (!ses.head().eom()).then_some(message);
            }
            Ok(())
        }),
    rule("source-establish/second-pdcid", "An ACK from another PDCID does not replace the target's PDCID")
        .checks(&[PDS_SYN_004, PDS_RTO_001])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.collect(t, 2)?;
            target.name(t, 0, 1)?;
            t.settle()?;
            // A duplicate of the first packet may have opened a second context at the target.
            let spdcid = other_pdcid(&target.pdc);
            target.answer(t, AckBuilder { spdcid, ..target.naming(0, 1) })?;
            t.settle()?;
            let again = target.expect_again(t, PDS_RTO_001, 1, t.later())?;
            t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), again.request.dpdcid());
            Ok(())
        }),
];

/// Expects that the second operation uses another context than the first.
fn expect_separate(t: &mut Test<'_>, first: Post, second: Post) -> Result<(Target, Pdc), Stop> {
    t.post(first)?;
    let one = Target::accept(t)?;
    one.ack(t, 0)?;
    t.settle()?;
    t.post(second)?;
    let within = t.later();
    let (seen, request) = t.expect(PDS_PDC_002, "a request of another context", within, |seen| {
        let request = seen.request().filter(|request| !request.retx())?;
        (Some(request.spdcid()) != one.pdc.remote || request.syn()).then_some(request)
    })?;
    let (id, other) = (request.spdcid(), Some(request.spdcid()) != one.pdc.remote);
    t.holds(PDS_PDC_002, "the context has another PDCID", other, format_args!("PDCID {id}"));
    t.check(PDS_SYN_001, "psn_offset", Some(0), request.psn_offset().map(|offset| offset.get()));
    let pdc = t.accept(&seen)?;
    Ok((one, pdc))
}
