//! Reuse of a PDCID by an initiator: where the next context starts, and that it keeps no state of the last
//! one (section 3.5.8).

use super::steps::{ack_control, close, expect_close, smallest_range};
use crate::prelude::*;

/// The number of PDCIDs of the device.
const POOL: Axis<u64> = axis("pdcids").values(&[("1", 1), ("2", 2)]);

/// The number of packets of a context between its first one and CLOSE_COMMAND.
const USED: Axis<u32> = axis("packets").values(&[("none", 0), ("many", 150)]);

pub(super) const RULES: &[Rule] = &[
    rule("source-close/pdcid-reuse", "A reused PDCID starts at least 2^16 PSNs from its last PSN")
        .checks(&[PDS_SYN_007, PDS_CLOSE_002])
        .needs(&[CLOSE])
        .over(&[&MODE, &CARRIER, &START, &POOL, &USED])
        .run(|t| {
            // With a pool of one PDCID, the device reuses it at once; with two, it may alternate.
            t.try_configure("general_pdcs", t.value(&POOL))?;
            // Random numbers are seldom so far apart, so a device with this parameter shows that it obeys it.
            // The longer distance leaves fewer than 150 numbers, all of them opposite to the last PSN.
            let count = t.value(&USED);
            let (rounds, wanted) = if count == 0 { (20, 1 << 30) } else { (6, (1_u32 << 31) - 64) };
            let apart = if t.try_configure("start_psn_distance", wanted)? { wanted } else { 1 << 16 };
            let peer = t.peer(0)?;
            let mut used: Vec<(Option<PdcId>, Psn)> = Vec::new();
            let mut reused = 0;
            for _ in 0..rounds {
                let mut target = Target::established(t, peer, Mode::Rud)?;
                for (_, last) in used.iter().filter(|(id, _)| *id == target.pdc.remote) {
                    let distance = (target.psn(0) - *last).min(*last - target.psn(0));
                    let least = Bound::from(apart).from_parameter("start_psn_distance");
                    t.at_least(PDS_SYN_007, "the distance of Start_PSN from the last PSN", least, distance);
                    reused += 1;
                }
                if count > 0 {
                    t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
                    target.serve(t, count + 1, |target, packet| {
                        Some(target.acking(target.index(&packet.request)))
                    })?;
                }
                close(t, peer)?;
                let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
                ack_control(t, &target, command.psn())?;
                t.settle()?;
                // Only the last use of a PDCID counts.
                used.retain(|(id, _)| *id != target.pdc.remote);
                used.push((target.pdc.remote, command.psn()));
            }
            require(reused > 0, format!("the device reused no PDCID in {rounds} contexts"))
        }),
    rule("source-close/fresh-context", "A context with a reused PDCID keeps no state of the last one")
        .checks(&[PDS_SYN_001, PDS_CLR_001, PDS_WIN_004, PDS_CLOSE_002, WIRE_RSVD_003])
        .needs(&[CLOSE])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            t.configure("general_pdcs", 1)?;
            let range = smallest_range(t)?;
            t.try_configure("congestion", "none")?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let mut old = Target::accept(t)?;
            // The highest bits of dpdcid are where the reserved bits of pdc_info are in a packet with syn.
            old.pdc.local = PdcId(old.pdc.local.0 | 0xe000);
            (old.mpr, old.states) = ((4 * range / 128) as u8, true);
            old.ack(t, 0)?;
            t.settle()?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &old, PDS_CLOSE_002)?;
            ack_control(t, &old, command.psn())?;
            t.settle()?;
            let since = t.now();
            t.post(post(PostKind::Write, peer, (2 * range + 40) as usize * t.mtu()))?;
            let (seen, first) = t.need("a request of the next context", t.later(), |seen| {
                seen.request().filter(|_| seen.at > since)
            })?;
            require(Some(first.spdcid()) == old.pdc.remote, "the device uses another PDCID")?;
            t.check(PDS_SYN_001, "syn", true, first.syn());
            let mut new = Target::opened_by(t, seen)?;
            new.collect(t, 1)?;
            let opening = new.packet(0)?.clone();
            t.check(PDS_CLR_001, "CLEAR_PSN", new.psn(0) - 1, opening.request.clear_psn());
            t.check_packet(&opening.seen, &[WIRE_RSVD_003]);
            // This ACK announces no range.
            t.send(&new.pdc, &new.pdc.ack(new.psn(0)).build()?)?;
            new.watch(t, t.rto() * 2)?;
            let edge = Bound::from(range).from_parameter("default_mpr");
            t.at_most(PDS_WIN_004, "the highest PSN, from 0", edge, new.highest());
            Ok(())
        }),
];
