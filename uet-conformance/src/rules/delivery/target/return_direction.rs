//! The return direction of a context that the suite has opened: its PSNs, its window, and its retransmissions
//! of read data (section 3.5.8).

use crate::prelude::*;
use crate::rules::steps::require_retransmissions;

/// The psn_offset of the packet that opens the context.
const OPENED_BY: Axis<u32> = axis("opened-by").values(&[("second", 1), ("third", 2), ("tenth", 9)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE, READ]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("return-direction/start", "The return direction starts at Start_PSN, whatever the forward PSN")
        .checks(&[PDS_SYN_008, PDS_PSN_001])
        .run(|t| {
            let (pdc, region) = open(t, false)?;
            send_reads(t, &pdc, &region, 1, 3)?;
            let mut target = Target::of_return(t, &pdc);
            for n in 0..3 {
                target.expect_new(t, PDS_SYN_008, n)?;
            }
            target.watch(t, t.grace())?;
            t.check(PDS_PSN_001, "the highest PSN, from 0", 2, target.highest());
            Ok(())
        }),
    rule(
        "return-direction/late-opening",
        "The return direction starts at Start_PSN, not at the first arrival",
    )
    .checks(&[PDS_SYN_008])
    .needs(&[RUD, WRITE, READ])
    .over(&[&OPENED_BY, &START])
    .run(|t| {
        // The packets before the one that opens the context are late. They arrive before the reads.
        let (region, _) = t.patterned(1 << 16)?;
        let (mut pdc, n) = (t.initiate(), t.value(&OPENED_BY));
        t.request(&pdc, pdc.request(n).write(&region.for_message(n), 0, &[1])?)?;
        let (_, ack) = t.need_ack(&pdc, pdc.psn(n))?;
        pdc.remote = Some(ack.spdcid());
        for k in 0..n {
            t.request(&pdc, pdc.request(k).retx().write(&region.for_message(k), 0, &[1])?)?;
        }
        send_reads(t, &pdc, &region, n + 1, n + 2)?;
        let mut target = Target::of_return(t, &pdc);
        for k in 0..2 {
            let data = target.expect_new(t, PDS_SYN_008, k)?;
            t.check(PDS_SYN_008, "CLEAR_PSN", target.psn(0) - 1, data.request.clear_psn());
        }
        Ok(())
    }),
    rule("return-direction/fields", "Read data names both PDCIDs, has no syn and carries a data header")
        .checks(&[PDS_SYN_004, WIRE_NEXT_002, WIRE_RSVD_001, WIRE_SES_006, WIRE_SES_012])
        .run(|t| {
            let (target, _) = collect_data(t, 2, false)?;
            for n in 0..2 {
                let packet = target.packet(n)?;
                let next = packet.request.prologue().next_hdr();
                let headers = [NextHdr::UET_HDR_RESPONSE_DATA, NextHdr::UET_HDR_RESPONSE_DATA_SMALL];
                t.one_of(WIRE_NEXT_002, "pds.next_hdr", &headers, next);
                t.check(PDS_SYN_004, "syn", false, packet.request.syn());
                t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), packet.request.dpdcid());
                t.check(PDS_SYN_004, "spdcid", target.pdc.remote, Some(packet.request.spdcid()));
                t.check_packet(&packet.seen.clone(), &[WIRE_RSVD_001, WIRE_SES_006, WIRE_SES_012]);
            }
            Ok(())
        }),
    rule("return-direction/timeout", "Unacknowledged read data is retransmitted unchanged")
        .checks(&[PDS_RTO_001, PDS_RTO_005])
        .run(|t| {
            let (mut target, _) = collect_data(t, 2, false)?;
            for n in 0..2 {
                let retransmission = target.expect_again(t, PDS_RTO_001, n, t.later())?;
                let content = target.packet(n)?.content();
                t.check(PDS_RTO_005, "the SES header and payload", content, retransmission.content());
            }
            Ok(())
        }),
    rule("return-direction/acknowledged", "Acknowledged read data is not retransmitted")
        .checks(&[PDS_PSN_005, PDS_PSN_001])
        .run(|t| {
            let (mut target, region) = collect_data(t, 3, false)?;
            target.ack(t, 2)?;
            t.settle()?;
            target.expect_none(t, PDS_PSN_005, "nothing that is acknowledged", 4 * t.rto(), |_| true)?;
            send_reads(t, &target.pdc.clone(), &region, 4, 4)?;
            target.expect_new(t, PDS_PSN_001, 3)?;
            Ok(())
        }),
    rule("return-direction/only-missing", "Only missing read data is retransmitted")
        .checks(&[PDS_RTO_001])
        .needs(&[RUD, WRITE, READ])
        .over(&[&START])
        .run(|t| {
            let (mut target, _) = collect_data(t, 3, false)?;
            target.ack(t, 0)?;
            target.name(t, 2, 1)?;
            t.settle()?;
            target.expect_again(t, PDS_RTO_001, 1, t.later())?;
            target.expect_none(t, PDS_RTO_001, "nothing but the missing packet", t.rto(), |n| n != 1)
        }),
    rule("return-direction/clear", "The CLEAR_PSN of read data belongs to the return direction")
        .checks(&[PDS_CLR_003, PDS_SYN_008, PDS_PSN_001])
        .run(|t| {
            let (mut target, region) = collect_data(t, 2, false)?;
            for n in 0..2 {
                t.check(PDS_SYN_008, "CLEAR_PSN", target.psn(0) - 1, target.packet(n)?.request.clear_psn());
            }
            target.ack(t, 1)?;
            t.settle()?;
            send_reads(t, &target.pdc.clone(), &region, 3, 3)?;
            let next = target.expect_new(t, PDS_PSN_001, 2)?;
            t.check(PDS_CLR_003, "CLEAR_PSN", target.psn(1), next.request.clear_psn());
            Ok(())
        }),
    rule("return-direction/forward-cack", "Outstanding read data does not block the forward cumulative PSN")
        .checks(&[PDS_PSN_002])
        .run(|t| {
            let (target, region) = collect_data(t, 3, false)?;
            let pdc = target.pdc.clone();
            // Its ACK reports the cumulative PSN of the forward direction.
            t.request(&pdc, pdc.request(4).write(&region, 0, &[1; 16])?)?;
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(4))?;
            Ok(())
        }),
    rule("return-direction/own-record", "An ACK of read data does not make a device forget requests")
        .checks(&[PDS_DUP_001, PDS_DUP_002])
        .needs(&[RUD, WRITE, READ])
        .over(&[&START])
        .run(|t| {
            // A write has arrived above a gap. Its PSN is also that of read data.
            let (pdc, region) = open(t, false)?;
            let first = pdc.request(2).write(&region, 0, &[1; 16])?;
            t.request(&pdc, first.clone())?;
            t.need_ack(&pdc, pdc.psn(2))?;
            send_reads(t, &pdc, &region, 3, 5)?;
            let mut target = Target::of_return(t, &pdc);
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.request(&pdc, pdc.request(6).write(&region, 0, &[2; 16])?)?;
            t.need_ack(&pdc, pdc.psn(6))?;
            t.pause(t.soon())?;
            t.forget();
            // A second delivery would overwrite the later data.
            t.request(&pdc, first.retx())?;
            t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(2))?;
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("return-direction/window", "Read data stays within the window of the return direction")
        .checks(&[PDS_WIN_004])
        .run(|t| {
            require_retransmissions(t, 2)?;
            t.try_configure("default_mpr", 1)?;
            let range = 128 * t.parameter("default_mpr") as u32;
            let (pdc, region) = open(t, false)?;
            let mut target = Target::of_return(t, &pdc);
            target.mpr = (range / 128) as u8;
            // The forward direction has a window too, so the suite sends a few reads at a time.
            let (count, mut sent) = (range + 20, 0);
            while sent < count {
                let next = (sent + 20).min(count);
                send_reads(t, &pdc, &region, sent + 1, next)?;
                t.need_ack(&pdc, pdc.psn(next))?;
                sent = next;
                target.watch(t, t.grace().min(t.rto() / 8))?;
                for n in target.order().into_iter().filter(|n| *n > 0) {
                    target.name(t, n, 0)?;
                }
            }
            target.watch(t, t.rto() * 2)?;
            t.is_kept(&pdc)?;
            t.at_most(PDS_WIN_004, "the highest PSN, from 0", range - 1, target.highest());
            if target.highest() < range - 1 {
                return Err(Stop::Inconclusive(format!("the device stopped at packet {}", target.highest())));
            }
            target.ack(t, 0)?;
            target.expect_new(t, PDS_WIN_004, range)?;
            Ok(())
        }),
    rule("return-direction/sack-only", "Read data that only a bitmap reports causes an ACK_REQUEST")
        .checks(&[PDS_SACK_004])
        .run(|t| {
            let (mut target, _) = collect_data(t, 2, false)?;
            target.ack(t, 0)?;
            target.sack(t, 1, &[1])?;
            t.settle()?;
            let (_, request) = target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            t.check(PDS_SACK_004, "the PSN of ACK_REQUEST", target.psn(1), request.psn());
            target.expect_none(t, PDS_SACK_004, "no data that has arrived", t.rto(), |n| n == 1)
        }),
    rule("return-direction/unsent-psn", "An ACK of read data that was never sent is ignored")
        .checks(&[PDS_PSN_004])
        .run(|t| {
            // The forward direction has used four PSNs, the return direction three.
            let (mut target, _) = collect_data(t, 3, false)?;
            for n in [3, (1 << 16) + 2, (1 << 24) + 2] {
                target.ack(t, n)?;
            }
            t.settle()?;
            for n in 0..3 {
                target.expect_again(t, PDS_PSN_004, n, t.later())?;
            }
            Ok(())
        }),
    rule("return-direction/given-up", "The device stops retransmitting unacknowledged read data")
        .checks(&[PDS_RTO_003, ROB_LIFE_001])
        .run(|t| {
            let limit = t.parameter("max_rto_retx_cnt");
            require(limit < 8, format!("{limit} retransmissions have no end, or take too long"))?;
            let (mut target, _) = collect_data(t, 1, false)?;
            target.watch(t, t.until_given_up())?;
            let times = target.times(0);
            let most = limit as usize + 1;
            let range = Bound::from(2.min(most)..=most).from_parameter("max_rto_retx_cnt, device");
            t.between(PDS_RTO_003, "the number of transmissions", range, times);
            t.expect_life(ROB_LIFE_001)
        }),
    rule("return-direction/fatal-nack", "A fatal NACK ends the transmission of read data")
        .checks(&[PDS_NACK_003, ROB_LIFE_001])
        .run(|t| {
            let (mut target, _) = collect_data(t, 3, false)?;
            target.refuse_without_context(t, NackCode::INV_DPDCID, 1)?;
            t.settle()?;
            target.expect_none(t, PDS_NACK_003, "no data of a closed context", 4 * t.rto(), |_| true)?;
            t.expect_life(ROB_LIFE_001)
        }),
    rule("return-direction/fatal-frees-buffers", "A fatal NACK frees the buffers of its context")
        .checks(&[PDS_NACK_003, ROB_LIFE_001])
        .run(|t| {
            // Packets that wait for their message fill all buffers, on contexts that end.
            const BUFFERS: u32 = 4;
            t.configure("rx_packets", BUFFERS)?;
            for _ in 0..BUFFERS {
                let (mut target, region) = collect_data(t, 1, false)?;
                t.request(&target.pdc, target.pdc.request(2).half(&region, t.mtu(), 1)?)?;
                target.refuse_without_context(t, NackCode::INV_DPDCID, 0)?;
                t.settle()?;
                let during = t.rto() * 2;
                target.expect_none(t, PDS_NACK_003, "no data of a closed context", during, |_| true)?;
            }
            t.expect_life(ROB_LIFE_001)
        }),
    rule("return-direction/ordered", "An ordered context sends read data in order and goes back to a gap")
        .checks(&[PDS_ROD_004])
        .needs(&[ROD, WRITE, READ])
        .over(&[&START])
        .run(|t| {
            let (mut target, _) = collect_data(t, 4, true)?;
            let ordered = [PdsType::ROD_REQ, PdsType::ROD_CC_REQ];
            let other =
                target.got.iter().find(|data| !ordered.contains(&data.request.prologue().kind())).cloned();
            if let Some(other) = other {
                t.holds(
                    PDS_OPEN_008,
                    "read data has the delivery mode of its context",
                    false,
                    other.seen.uet(),
                );
                return Err(Stop::Failed);
            }
            t.check(PDS_ROD_004, "the order of arrival", vec![0, 1, 2, 3], target.order());
            target.ack(t, 0)?;
            t.settle_if_busy()?;
            target.refuse(t, NackCode::ROD_OOO, 2)?;
            for n in 1..4 {
                let retransmission = target.expect_any_again(t, PDS_ROD_004, n)?;
                t.check(PDS_ROD_004, "the next in order", n, target.index(&retransmission));
            }
            Ok(())
        }),
    rule("return-direction/probe", "A PROBE and its ACK do not affect the return direction")
        .checks(&[PDS_PRB_001, PDS_PRB_002])
        .run(|t| {
            let (mut target, _) = collect_data(t, 2, false)?;
            let pdc = target.pdc.clone();
            t.send(&pdc, &pdc.probe(0x4321, pdc.psn(0))?)?;
            let (_, ack) = t.expect(PDS_PRB_001, "an ACK with p", t.soon(), |seen| {
                seen.ack().filter(|ack| ack.p() && seen.is_for(&pdc))
            })?;
            t.check(PDS_PRB_001, "probe_opaque", Some(0x4321), ack.probe_opaque());
            // An ACK with p acknowledges nothing on the return direction.
            let reply = uet_wire::pds::Ack::build().p(true).probe_opaque(1).cack_psn(target.psn(1));
            let reply = reply.spdcid(pdc.local).dpdcid(pdc.remote.unwrap_or_default());
            t.send(&pdc, &UetBuf::new(reply.done()?))?;
            t.settle()?;
            target.expect_again(t, PDS_PRB_002, 0, t.later())?;
            Ok(())
        }),
];

/// Returns the length of a read whose data uses the return direction.
fn read_length(t: &Test<'_>) -> Result<u32, Stop> {
    Ok((t.beyond_ack()? + 500).min(t.mtu() as u32))
}

/// Opens a context and a region with a pattern. The context is ordered if the instance or `rod` says so.
fn open(t: &mut Test<'_>, rod: bool) -> Result<(Pdc, Region), Stop> {
    let (region, _) = t.patterned(1 << 16)?;
    let mut pdc = t.initiate();
    pdc.rod |= rod;
    t.establish(&mut pdc, &region)?;
    Ok((pdc, region))
}

/// Sends reads with the PSNs from `first` to `last`.
pub(super) fn send_reads(t: &mut Test<'_>, pdc: &Pdc, region: &Region, first: u32, last: u32) -> Outcome {
    let length = read_length(t)?;
    for n in first..=last {
        // Each read is a separate message.
        let region = region.for_message(n);
        let read = pdc.request(n).read(&region, u64::from(n % 64) * 16, length)?;
        t.request(pdc, read)?;
    }
    Ok(())
}

/// Collects the data of this many reads, and acknowledges none of it.
pub(super) fn collect_data(t: &mut Test<'_>, count: u32, rod: bool) -> Result<(Target, Region), Stop> {
    let (pdc, region) = open(t, rod)?;
    send_reads(t, &pdc, &region, 1, count)?;
    let mut target = Target::of_return(t, &pdc);
    target.collect(t, count)?;
    Ok((target, region))
}
