//! The reaction of an initiator in a secure domain to NACK NEW_START_PSN (section 3.5.8).

use super::steps::{ignore_plaintext_nacks, rule, with_wrong_icv, write_in_flight};
use crate::SECURED;
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};
use uet_wire::pds::Nack;

/// The required Start_PSN.
const NEW_START: Axis<u32> = axis("new-start").values(&[
    ("zero", 0),
    ("any", 0x0005_4321),
    ("half", 0x8000_0000),
    ("wrap", 0xffff_ffff),
]);

/// The packets that the target refuses with the same Start_PSN: the first and their number. The first packet
/// of the context may be lost.
const REFUSED: Axis<(u32, u32)> =
    axis("nacks").values(&[("one", (0, 1)), ("each-packet", (0, 3)), ("second", (1, 1))]);

const FIRST: (u32, u32) = (0, 1);

/// The NACK that has refused the packets before they are renumbered. Without one, they are in flight.
const NACK: Axis<Option<NackCode>> = axis("nack").values(&[
    ("no-resource", Some(NackCode::NO_RESOURCE)),
    ("none", None),
    ("no-buffer", Some(NackCode::NO_PKT_BUFFER)),
]);

/// True if the two contexts have equal PSNs.
const EQUAL_PSNS: Axis<bool> = axis("psns").values(&[("different", false), ("equal", true)]);

/// True if the NACK names the context that the device has opened second.
const NAMED: Axis<bool> = axis("named").values(&[("first", false), ("second", true)]);

/// The Start_PSNs in the ACKs of two closes, one after the other.
const TOLD: Axis<[u32; 2]> = axis("told").values(&[
    ("falling", [0x2000_0000, 0x1fff_f000]),
    ("rising", [0x1fff_f000, 0x2000_0000]),
    ("next", [0x2000_0000, 0x2000_0001]),
    ("across-wrap", [0xffff_fff0, 0x10]),
    ("back-across-wrap", [0x10, 0xffff_fff0]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("tss-new-start/renumber", "An initiator renumbers all its packets from the required Start_PSN")
        .checks(&[TSS_START_003, TSS_START_008])
        .over(&[&SECURED, &NEW_START, &REFUSED, &MODE])
        .run(|t| {
            let (written, mut target) = packets_in_flight(t)?;
            let (old, start) = (target.psn(0), Psn(t.value(&NEW_START)));
            expect_renumbered(t, &mut target, start, t.value(&REFUSED))?;
            target.collect(t, 3)?;
            target.expect_none(t, TSS_START_003, "no other PSN", t.grace(), |n| {
                n > 2 && (start + n) - old > 2
            })?;
            target.ack(t, 2)?;
            t.ends(TSS_START_003, written, Status::Ok)?;
            // The next message continues at the new numbers.
            let peer = t.peer(0)?;
            let next = t.post(post(PostKind::Write, peer, 64))?;
            let packet = target.expect_new(t, TSS_START_003, 3)?;
            t.check(TSS_START_003, "syn of the next message", false, packet.request.syn());
            target.ack(t, 3)?;
            t.ends(TSS_START_003, next, Status::Ok)
        }),
    rule(
        "tss-new-start/at-once",
        "An initiator sends its renumbered packets at once, and once for all NACKs",
    )
    .checks(&[TSS_START_003])
    .measure(|t| {
        t.slowed()?;
        t.try_configure("congestion", "none")?;
        let (written, mut target) = packets_in_flight(t)?;
        let start = Psn(0x0123_4567);
        let nack = new_start_nack(&target, 0, start)?;
        let refused = t.now();
        t.send(&target.pdc, &nack)?;
        target.restart_at(start);
        target.collect(t, 3)?;
        let last = target.packet(2)?.seen.at;
        let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time");
        t.at_most(TSS_START_003, "the time to the last packet", bound, last.saturating_sub(refused));
        // A target refuses each packet of the context, so copies are usual.
        for _ in 0..2 {
            t.send(&target.pdc, &nack)?;
        }
        let left = (refused + t.early()).saturating_sub(t.now());
        target.expect_none(t, TSS_START_003, "no packet again for a copy", left, |n| n < 3)?;
        target.ack(t, 2)?;
        t.ends(TSS_START_003, written, Status::Ok)
    }),
    rule(
        "tss-new-start/then-refused",
        "A renumbered packet that gets another NACK is retransmitted with retx",
    )
    .checks(&[PDS_NACK_004, TSS_START_003, TSS_START_008])
    .over(&[&SECURED, &NEW_START])
    .run(|t| {
        let (written, mut target) = packets_in_flight(t)?;
        expect_renumbered(t, &mut target, Psn(t.value(&NEW_START)), FIRST)?;
        target.collect(t, 3)?;
        target.refuse_without_context(t, NackCode::NO_RESOURCE, 1)?;
        let again = target.expect_again(t, PDS_NACK_004, 1, t.later())?;
        let offset = again.request.psn_offset().map(|offset| u32::from(offset.get()));
        t.check(TSS_START_003, "psn_offset of the retransmission", Some(1), offset);
        target.ack(t, 2)?;
        t.ends(TSS_START_003, written, Status::Ok)
    }),
    rule("tss-new-start/second-nack", "An initiator accepts a second NACK NEW_START_PSN")
        .checks(&[TSS_START_003, TSS_START_008])
        .over(&[&SECURED, &NEW_START])
        .run(|t| {
            let (written, mut target) = packets_in_flight(t)?;
            expect_renumbered(t, &mut target, Psn(0x0123_4567), FIRST)?;
            expect_renumbered(t, &mut target, Psn(t.value(&NEW_START)), FIRST)?;
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.ends(TSS_START_003, written, Status::Ok)
        }),
    rule("tss-new-start/return-direction", "After renumbering, read data begins at the required Start_PSN")
        .checks(&[PDS_SYN_008, TSS_START_003, TSS_START_008])
        .needs(&[RUD, READ, TSS])
        .over(&[&SECURED, &NEW_START])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let data: Vec<u8> = pattern(9).take(200).collect();
            let read = t.post(Post { want_data: true, ..post(PostKind::Read, peer, data.len()) })?;
            let mut target = Target::accept(t)?;
            expect_renumbered(t, &mut target, Psn(t.value(&NEW_START)), FIRST)?;
            target.ack(t, 0)?;
            target.give(t, 0, target.data_header(0, data.len(), data.len(), 0)?, &data)?;
            t.expect_ack(PDS_SYN_008, &target.pdc, target.psn(0))?;
            let ended = t.ends_with(PDS_SYN_008, read, (Status::Ok, data.len() as u64))?;
            let held = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
            t.same_bytes(PDS_SYN_008, "the data of the read", &data, &held);
            Ok(())
        }),
    rule("tss-new-start/other-context", "NACK NEW_START_PSN renumbers no context but the one that it names")
        .checks(&[TSS_START_003, TSS_START_008])
        .over(&[&SECURED, &EQUAL_PSNS, &NAMED])
        .run(|t| {
            // No packet may time out before the NACK for it.
            t.slowed()?;
            let (written, first) = packets_in_flight(t)?;
            let other_peer = t.peer_of_job(102)?;
            let beside = t.post(post(PostKind::Write, other_peer, 3 * t.mtu()))?;
            let mut second = Target::accept_beside(t, &[&first])?;
            second.watch(t, t.grace())?;
            let mut contexts = [(written, first), (beside, second)];
            if t.value(&NAMED) {
                contexts.reverse();
            }
            let [(_, named), (_, other)] = &mut contexts;
            let before = other.psn(0);
            if t.value(&EQUAL_PSNS) {
                // A device obeys any required Start_PSN, so the other context gets that of the named one.
                expect_renumbered(t, other, named.psn(0), FIRST)?;
            }
            let start = other.psn(0);
            expect_renumbered(t, named, Psn(0x0123_4567), FIRST)?;
            // Packets that left before the first NACK may still have the PSNs from before.
            let moved = |n: u32| n > 2 && (start + n) - before > 2;
            let past_timeout = t.scaled(2 * t.rto());
            other.expect_none(t, TSS_START_003, "other PSNs of the other context", past_timeout, moved)?;
            for (operation, context) in &mut contexts {
                context.collect(t, 3)?;
                context.ack(t, 2)?;
                t.ends(TSS_START_003, *operation, Status::Ok)?;
            }
            Ok(())
        }),
    rule("tss-new-start/nack-limit", "An initiator gives up after Max_NACK_Retx_Cnt NACKs NEW_START_PSN")
        .checks(&[PDS_NACK_005])
        .run(|t| {
            let nacks = t.nack_limit()?;
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            // Timeouts may count too.
            let most = nacks + t.parameter("max_rto_retx_cnt") + 1;
            let mut starts = 1;
            while starts <= most + 2 {
                let start = target.psn(0x1000);
                t.send(&target.pdc, &new_start_nack(&target, 0, start)?)?;
                target.pdc.start = start;
                let within = t.later();
                if t.wait(within, |seen| seen.request().filter(|request| request.psn() == start))?.is_none() {
                    break;
                }
                starts += 1;
            }
            if starts == 1 {
                return Err(Stop::Inconclusive("the initiator accepts no other Start_PSN".into()));
            }
            let bound = Bound::from(most).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
            t.at_most(PDS_NACK_005, "Start_PSNs of one context", bound, starts);
            t.fails(PDS_NACK_005, written, t.until_given_up())
        }),
    rule("tss-new-start/retry-counts", "Renumbered packets have all their retransmissions left")
        .checks(&[TSS_START_003, TSS_START_008])
        .run(|t| {
            let most = t.parameter("max_rto_retx_cnt");
            require((2..8).contains(&most), format!("{most} retransmissions"))?;
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            for n in 1..most {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                target.expect_again(t, TSS_START_003, 0, within)?;
            }
            expect_renumbered(t, &mut target, Psn(0x0123_4567), FIRST)?;
            for n in 1..most {
                let within = t.soon() + t.scaled(t.rto() * (4 << n));
                target.expect_again(t, TSS_START_003, 0, within)?;
            }
            target.ack(t, 0)?;
            t.ends(TSS_START_003, written, Status::Ok)
        }),
    rule("tss-new-start/counters", "Renumbered packets have new counters")
        .checks(&[TSS_CTR_001, TSS_START_003, TSS_START_008])
        .run(|t| {
            let (written, mut target) = packets_in_flight(t)?;
            let before: Vec<u64> = t.shield()?.seen.iter().map(|seen| seen.counter).collect();
            expect_renumbered(t, &mut target, Psn(0x0123_4567), FIRST)?;
            let seen = t.shield()?.seen.iter().skip(before.len());
            let repeated = seen.filter(|seen| before.contains(&seen.counter)).count();
            t.check(TSS_CTR_001, "repeated counters:", 0, repeated);
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.ends(TSS_CTR_001, written, Status::Ok)
        }),
    rule("tss-new-start/told", "The newer of the Start_PSNs in the ACKs of two closes counts")
        .checks(&[TSS_START_009])
        .needs(&[RUD, WRITE, TSS, CLOSE])
        .over(&[&TOLD, &SECURED])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peers = [t.peer_of_job(101)?, t.peer_of_job(102)?];
            let mut opened: Vec<Target> = Vec::new();
            for peer in peers {
                let written = t.post(post(PostKind::Write, peer, 64))?;
                let target = Target::accept_beside(t, &opened.iter().collect::<Vec<_>>())?;
                target.ack(t, 0)?;
                t.ends(TSS_START_009, written, Status::Ok)?;
                opened.push(target);
            }
            let told = t.value(&TOLD).map(Psn);
            for (k, start) in [1, 0].into_iter().zip(told) {
                t.call(uet_control::ClosePdc { peer: peers[k], mode: Mode::Rud, class: 0 })?;
                let target = &opened[k];
                let (_, command) =
                    target.expect_control(t, TSS_START_009, CtlType::CLOSE_COMMAND, t.later())?;
                let ack = AckBuilder { response: None, ..target.pdc.ack(command.psn()) };
                t.send_telling(&target.pdc, &ack.build()?, start)?;
                t.settle()?;
            }
            t.post(post(PostKind::Write, peers[0], 64))?;
            let next = Target::accept_beside(t, &opened.iter().collect::<Vec<_>>())?;
            let near = |start: &Psn| next.psn(0) - *start < 0x800;
            require(told.iter().any(near), "the device takes no Start_PSN from the ACK of CLOSE_COMMAND")?;
            let newer = if told[1].is_after(told[0]) { told[1] } else { told[0] };
            let holds = !newer.is_after(next.psn(0));
            t.holds(TSS_START_009, &format!("Start_PSN {newer} or a later one"), holds, next.psn(0));
            Ok(())
        }),
    rule("tss-new-start/after-ack", "An initiator ignores NACK NEW_START_PSN after the first ACK")
        .checks(&[TSS_START_005])
        .run(|t| {
            let (written, mut target) = packets_in_flight(t)?;
            target.collect(t, 3)?;
            target.ack(t, 0)?;
            t.settle()?;
            let nack = new_start_nack(&target, 1, Psn(0x5432_1000))?;
            t.send(&target.pdc, &nack)?;
            expect_psns_kept(t, TSS_START_005, &mut target, written)
        }),
    rule("tss-new-start/wrong-icv", "An initiator ignores NACK NEW_START_PSN with a wrong ICV")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            let (written, mut target) = packets_in_flight(t)?;
            let nack = target.pdc.wire(&new_start_nack(&target, 0, Psn(0x5432_1000))?);
            let nack = with_wrong_icv(t, &nack)?;
            t.send_as_it_is(&nack)?;
            expect_psns_kept(t, TSS_ICV_002, &mut target, written)
        }),
    rule("tss-new-start/plaintext", "An initiator ignores a plaintext NACK NEW_START_PSN")
        .checks(&[TSS_CLEAR_002])
        .run(|t| {
            ignore_plaintext_nacks(t)?;
            let (written, mut target) = packets_in_flight(t)?;
            let nack = target.pdc.wire(&new_start_nack(&target, 0, Psn(0x5432_1000))?);
            t.send_as_it_is(&nack)?;
            expect_psns_kept(t, TSS_CLEAR_002, &mut target, written)
        }),
    rule("tss-new-start/window", "Renumbered packets leave the bytes in flight only once")
        .checks(&[CC_WINDOW_001])
        .needs(&[RUD, WRITE, TSS, NSCC])
        .over(&[&NACK, &SECURED, &NEW_START])
        .measure(|t| {
            t.congestion("nscc")?;
            // No timeout ends while the packets are counted.
            t.try_configure("rto_init_time", 50_000_000u64)?;
            t.secure(t.value(&SECURED))?;
            let max_window = t.bdp()? * 3 / 2;
            let count = (max_window / full_packet_size(t) / 3) as u32;
            let peer = t.peer(0)?;
            let other_peer = t.peer_of_job(102)?;
            t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.collect(t, count)?;
            t.post(post(PostKind::Write, other_peer, 4 * max_window as usize))?;
            let mut other = Target::accept_beside(t, &[&target])?;
            other.watch(t, t.grace())?;
            let before = other.bytes_before(u32::MAX);
            require(target.bytes_before(u32::MAX) + before <= max_window, "each context has its own window")?;
            if let Some(code) = t.value(&NACK) {
                for n in 0..count {
                    target.refuse(t, code, n)?;
                }
            }
            t.send(&target.pdc, &new_start_nack(&target, 0, Psn(t.value(&NEW_START)))?)?;
            target.restart_at(Psn(t.value(&NEW_START)));
            other.watch(t, t.grace() + 2 * t.nack_wait())?;
            target.watch(t, t.grace())?;
            let (renumbered, bytes) = (target.bytes_before(u32::MAX), other.bytes_before(u32::MAX));
            if renumbered == 0 && bytes == before {
                return Err(Stop::Inconclusive(
                    "no packet has taken the place of the renumbered ones".into(),
                ));
            }
            check_in_flight(t, CC_WINDOW_001, max_window, renumbered + bytes);
            Ok(())
        }),
];

/// Has the device send three packets on a new context, secured as in this instance.
fn packets_in_flight(t: &mut Test<'_>) -> Result<(Operated, Target), Stop> {
    t.secure(t.value(&SECURED))?;
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
    let mut target = Target::accept(t)?;
    target.watch(t, t.grace())?;
    Ok((written, target))
}

/// Builds a NACK NEW_START_PSN with this Start_PSN, for the `n`-th packet and without a context.
fn new_start_nack(target: &Target, n: u32, start: Psn) -> Result<UetBuf, Stop> {
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(target.psn(n)).dpdcid(remote);
    Ok(UetBuf::new(nack.payload(start.0).done()?))
}

/// Requires this Start_PSN in the NACKs of `count` packets, and expects the packets from it on.
fn expect_renumbered(
    t: &mut Test<'_>,
    target: &mut Target,
    start: Psn,
    (refused, count): (u32, u32),
) -> Outcome {
    let highest = target.highest();
    let before: Vec<_> = target.got.iter().map(|got| (target.index(&got.request), got.content())).collect();
    for n in refused..refused + count {
        t.send(&target.pdc, &new_start_nack(target, n, start)?)?;
    }
    target.restart_at(start);
    for n in 0..=highest {
        let packet = target.expect_new(t, TSS_START_003, n)?;
        let offset = packet.request.psn_offset().map(|offset| u32::from(offset.get()));
        t.check(TSS_START_003, "syn", true, packet.request.syn());
        t.check(TSS_START_003, "psn_offset", Some(n), offset);
        t.check(TSS_START_003, "CLEAR_PSN", start - 1, packet.request.clear_psn());
        t.check(TSS_START_008, "flag retx", false, packet.request.retx());
        let content = before.iter().find(|(index, _)| *index == n).map(|(_, content)| content.clone());
        let content = content.unwrap_or_default();
        t.same_bytes(TSS_START_003, "the content of the packet", &content, &packet.content());
    }
    Ok(())
}

/// Expects that the device keeps its PSNs, in retransmissions too.
fn expect_psns_kept(
    t: &mut Test<'_>,
    requirement: &Requirement,
    target: &mut Target,
    written: Operated,
) -> Outcome {
    let past_timeout = t.scaled(2 * t.rto());
    t.expect_none(requirement, "a packet with a new PSN", past_timeout, |seen| {
        let request = seen.request()?;
        (request.psn() - Psn(0x5432_1000) < 4096).then_some(())
    })?;
    target.collect(t, 3)?;
    target.ack(t, 2)?;
    t.ends(requirement, written, Status::Ok)
}
