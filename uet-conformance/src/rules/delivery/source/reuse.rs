//! Reuse of a PDCID by an initiator: where the next context starts (section 3.5.8).

use super::steps::{ack_control, close, expect_close};
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
];
