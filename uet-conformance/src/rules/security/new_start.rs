//! An initiator in a secure domain that gets NACK NEW_START_PSN (section 3.5.8).

use super::steps::{NEEDS, forged};
use crate::SECURED;
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};
use uet_wire::pds::Nack;

/// The required Start_PSN.
const DEMANDED: Axis<u32> = axis("demanded").values(&[
    ("zero", 0),
    ("any", 0x0005_4321),
    ("half", 0x8000_0000),
    ("wrap", 0xffff_ffff),
]);

/// The event that the packets wait for when they are renumbered.
const BEFORE: Axis<Option<NackCode>> = axis("before").values(&[
    ("no-resource", Some(NackCode::NO_RESOURCE)),
    ("in-flight", None),
    ("no-buffer", Some(NackCode::NO_PKT_BUFFER)),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-new-start/renumber", "An initiator renumbers all its packets from the required Start_PSN")
        .checks(&[TSS_START_003, TSS_START_008])
        .over(&[&SECURED, &DEMANDED])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = sent(t)?;
            renumbered(t, &mut target, Psn(t.value(&DEMANDED)))?;
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.ends(TSS_START_003, written, Status::Ok)
        }),
    rule("tss-new-start/second-nack", "An initiator accepts a second NACK NEW_START_PSN")
        .checks(&[TSS_START_003, TSS_START_008])
        .over(&[&SECURED, &DEMANDED])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = sent(t)?;
            renumbered(t, &mut target, Psn(0x0123_4567))?;
            renumbered(t, &mut target, Psn(t.value(&DEMANDED)))?;
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.ends(TSS_START_003, written, Status::Ok)
        }),
    rule("tss-new-start/nack-limit", "An initiator gives up after Max_NACK_Retx_Cnt NACKs NEW_START_PSN")
        .checks(&[PDS_NACK_005])
        .run(|t| {
            let most = t.parameter("max_nack_retx_cnt");
            require(most <= 50, format!("{most} retransmissions take too long"))?;
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            // A timeout may count too.
            let most = most + t.parameter("max_rto_retx_cnt") + 1;
            let mut starts = 1;
            while starts <= most + 2 {
                let start = target.psn(0x1000);
                t.send(&target.pdc, &demand(&target, start)?)?;
                target.pdc.start = start;
                let within = t.later();
                if t.wait(within, |seen| seen.request().filter(|request| request.psn() == start))?.is_none() {
                    break;
                }
                starts += 1;
            }
            if starts == 1 {
                return Err(Stop::Inconclusive("the initiator takes no other Start_PSN".into()));
            }
            let bound = Bound::from(most).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
            t.at_most(PDS_NACK_005, "Start_PSNs of one context", bound, starts);
            t.fails(PDS_NACK_005, written, t.until_given_up())
        }),
    rule("tss-new-start/counters", "Renumbered packets have new counters")
        .checks(&[TSS_CTR_001, TSS_START_003, TSS_START_008])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = sent(t)?;
            let before: Vec<u64> = t.shield()?.seen.iter().map(|seen| seen.counter).collect();
            renumbered(t, &mut target, Psn(0x0123_4567))?;
            let seen = t.shield()?.seen.iter().skip(before.len());
            let old = seen.filter(|seen| before.contains(&seen.counter)).count();
            t.check(TSS_CTR_001, "counters that come again:", 0, old);
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.ends(TSS_CTR_001, written, Status::Ok)
        }),
    rule("tss-new-start/after-ack", "An initiator ignores NACK NEW_START_PSN after the first ACK")
        .checks(&[TSS_START_005])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = sent(t)?;
            target.collect(t, 3)?;
            target.ack(t, 0)?;
            t.settle()?;
            let nack = UetBuf::new(
                Nack::build(NackCode::NEW_START_PSN)
                    .nack_psn(target.psn(1))
                    .dpdcid(target.pdc.remote.unwrap_or(PdcId::NONE))
                    .payload(0x5432_1000)
                    .done()?,
            );
            t.send(&target.pdc, &nack)?;
            kept(t, TSS_START_005, &mut target, written)
        }),
    rule("tss-new-start/wrong-icv", "An initiator ignores NACK NEW_START_PSN with a wrong ICV")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = sent(t)?;
            let nack = target.pdc.wire(&demand(&target, Psn(0x5432_1000))?);
            let nack = forged(t, &nack)?;
            t.send_as_it_is(&nack)?;
            kept(t, TSS_ICV_002, &mut target, written)
        }),
    rule("tss-new-start/plaintext", "An initiator ignores a plaintext NACK NEW_START_PSN")
        .checks(&[TSS_CLEAR_002])
        .run(|t| {
            // Sources disagree about such a NACK, so a device that can ignore it is told to.
            require(
                t.try_configure("accept_unprotected_nack", false)?,
                "the device does not say that it ignores such a NACK",
            )?;
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = sent(t)?;
            let nack = target.pdc.wire(&demand(&target, Psn(0x5432_1000))?);
            t.send_as_it_is(&nack)?;
            kept(t, TSS_CLEAR_002, &mut target, written)
        }),
    rule("tss-new-start/window", "Renumbered packets leave the bytes in flight only once")
        .checks(&[CC_WINDOW_001])
        .needs(&[RUD, WRITE, TSS, NSCC])
        .over(&[&BEFORE, &SECURED, &DEMANDED])
        .measure(|t| {
            t.congestion("nscc")?;
            // No timeout while the packets are counted.
            t.try_configure("rto_init_time", 50_000_000u64)?;
            t.secure(t.value(&SECURED))?;
            let largest = t.bdp()? * 3 / 2;
            let count = (largest / full_packet_size(t) / 3) as u32;
            let peer = t.peer(0)?;
            let other = t.peer_of_job(102)?;
            t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.collect(t, count)?;
            t.post(post(PostKind::Write, other, 4 * largest as usize))?;
            let mut beside = Target::accept_beside(t, &[&target])?;
            beside.watch(t, t.grace())?;
            let before = beside.bytes_before(u32::MAX);
            require(
                target.bytes_before(u32::MAX) + before <= largest,
                "each context has a window of its own",
            )?;
            if let Some(code) = t.value(&BEFORE) {
                for n in 0..count {
                    target.refuse(t, code, n)?;
                }
            }
            t.send(&target.pdc, &demand(&target, Psn(t.value(&DEMANDED)))?)?;
            target.restart_at(Psn(t.value(&DEMANDED)));
            beside.watch(t, t.grace() + 2 * t.nack_wait())?;
            target.watch(t, t.grace())?;
            let (again, bytes) = (target.bytes_before(u32::MAX), beside.bytes_before(u32::MAX));
            if again == 0 && bytes == before {
                return Err(Stop::Inconclusive(
                    "nothing has taken the place of the renumbered packets".into(),
                ));
            }
            check_in_flight(t, CC_WINDOW_001, largest, again + bytes);
            Ok(())
        }),
];

/// Has the device send three packets.
fn sent(t: &mut Test<'_>) -> Result<(Operated, Target), Stop> {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
    let mut target = Target::accept(t)?;
    target.watch(t, t.grace())?;
    Ok((written, target))
}

/// Returns the demand for this Start_PSN, from nobody's context.
fn demand(target: &Target, start: Psn) -> Result<UetBuf, Stop> {
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(target.psn(0)).dpdcid(remote);
    Ok(UetBuf::new(nack.payload(start.0).done()?))
}

/// Demands this Start_PSN, and expects the packets there.
fn renumbered(t: &mut Test<'_>, target: &mut Target, start: Psn) -> Outcome {
    let highest = target.highest();
    let before: Vec<_> = target.got.iter().map(|got| (target.index(&got.request), got.content())).collect();
    t.send(&target.pdc, &demand(target, start)?)?;
    target.restart_at(start);
    for n in 0..=highest {
        let got = target.expect_new(t, TSS_START_003, n)?;
        let offset = got.request.psn_offset().map(|offset| u32::from(offset.get()));
        t.check(TSS_START_003, "syn", true, got.request.syn());
        t.check(TSS_START_003, "psn_offset", Some(n), offset);
        t.check(TSS_START_008, "flag retx", false, got.request.retx());
        let content = before.iter().find(|(index, _)| *index == n).map(|(_, content)| content.clone());
        t.same_bytes(
            TSS_START_003,
            "the content of the packet",
            &content.unwrap_or_default(),
            &got.content(),
        );
    }
    Ok(())
}

/// Expects that the device keeps its PSNs, in retransmissions too.
fn kept(t: &mut Test<'_>, requirement: &Requirement, target: &mut Target, written: Operated) -> Outcome {
    let past_timeout = t.scaled(2 * t.rto());
    t.expect_none(requirement, "a packet with a new PSN", past_timeout, |seen| {
        let request = seen.request()?;
        (request.psn() - Psn(0x5432_1000) < 4096).then_some(())
    })?;
    target.collect(t, 3)?;
    target.ack(t, 2)?;
    t.ends(requirement, written, Status::Ok)
}
