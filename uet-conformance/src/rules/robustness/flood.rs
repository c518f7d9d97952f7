//! Floods of first packets, open messages and control packets (section 3.5.8).

use super::steps::*;
use crate::prelude::*;

/// The ACK that the context of the device awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AwaitedAck {
    /// The first ACK.
    FirstAck,
    /// A later ACK.
    LaterAck,
}

const AWAITS: Axis<AwaitedAck> =
    axis("awaits").values(&[("first-ack", AwaitedAck::FirstAck), ("later-ack", AwaitedAck::LaterAck)]);

/// The number of contexts in the general pool of the device.
const POOL: u32 = 4;

pub(super) const RULES: &[Rule] = &[
    rule("flood/own-context", "A flood of first packets ends no context that the device opened")
        .checks(&[ROB_FLOOD_001])
        .over(&[&AWAITS, &MODE, &CARRIER])
        .run(|t| {
            t.configure("general_pdcs", POOL)?;
            let region = t.region(4096)?;
            let peer = t.peer(0)?;
            let mut target = match t.value(&AWAITS) {
                AwaitedAck::FirstAck => None,
                AwaitedAck::LaterAck => Some(Target::established(t, peer, uet_control::Mode::Rud)?),
            };
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let (mut target, n) = match target.take() {
                None => (Target::accept(t)?, 0),
                Some(mut target) => {
                    target.collect(t, 2)?;
                    (target, 1)
                }
            };
            for _ in 0..2 * POOL {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
            }
            t.settle()?;
            t.is_open(ROB_FLOOD_001, written)?;
            target.ack(t, n)?;
            t.ends(ROB_FLOOD_001, written, Status::Ok)?;
            // The next message uses the same context.
            t.post(post(PostKind::Write, peer, 64))?;
            let next = target.expect_new(t, ROB_FLOOD_001, n + 1)?;
            t.check(
                ROB_FLOOD_001,
                "dpdcid of the next request",
                Some(target.pdc.local),
                next.request.dpdcid(),
            );
            Ok(())
        }),
    rule("robustness/syn-flood", "A flood of first packets does not disturb an established context")
        .checks(&[ROB_FLOOD_001])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let v = victim(t)?;
            t.prove_established(&v.pdc)?;
            let limit = t.device().limits.get("pdcs").copied().unwrap_or(1024).min(4096);
            for _ in 0..limit + 64 {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&v.region, 1024, &v.held[1024..1040])?)?;
            }
            t.pause(t.soon())?;
            t.forget();
            for n in 1..=8 {
                t.request(&v.pdc, v.pdc.request(n).write(&v.region, 0, &[n as u8; 16])?)?;
                t.expect_cack(ROB_FLOOD_001, &v.pdc, v.pdc.psn(n))?;
            }
            t.expect_memory(ROB_FLOOD_001, &v.region, 0, &[8; 16])
        }),
    rule("robustness/flood-closed", "After a peer closes its flood of contexts, another peer can open one")
        .checks(&[PDS_CLOSE_004])
        .needs(&[TWO_ADDRESSES])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let region = t.region(4096)?;
            let limit = t.device().limits.get("pdcs").copied().unwrap_or(1024).min(4096);
            let mut open = Vec::new();
            for _ in 0..limit + 64 {
                let pdc = t.initiate_from(1)?;
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1])?)?;
                let answer = t.wait(t.soon(), |seen| seen.is_for(&pdc).then(|| seen.ack()))?;
                let ack = answer.and_then(|(_, ack)| ack);
                t.forget();
                open.extend(ack.map(|ack| Pdc { remote: Some(ack.spdcid()), ..pdc }));
            }
            for pdc in &open {
                t.send(pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
            }
            t.forget();
            let other = t.initiate();
            t.expect_room(PDS_CLOSE_004, &other, &region)
        }),
    rule("robustness/open-messages", "Each of hundreds of open messages completes if its start was accepted")
        .checks(&[ROB_FLOOD_001])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let (mtu, count) = (t.mtu(), (t.range(&pdc)? / 2).min(300));
            let data = vec![7; 2 * mtu];
            let part = |n: u32, psn: u32, k: usize| {
                let named = Region { message_id: n as u16, ..region.clone() };
                pdc.request(psn).write_part(&named, &data, mtu, k)
            };
            for n in 1..=count {
                t.request(&pdc, part(n, n, 0)?)?;
            }
            // The device may have refused some for lack of resources.
            let seen = t.gather(t.soon())?;
            let open = (1..=count)
                .filter(|n| seen.iter().any(|seen| seen.acknowledges(&pdc, pdc.psn(*n)).is_some()));
            let open: Vec<u32> = open.collect();
            for n in &open {
                t.request(&pdc, part(*n, count + n, 1)?)?;
                t.expect_ack(ROB_FLOOD_001, &pdc, pdc.psn(count + n))?;
            }
            t.forget();
            t.expect_memory(ROB_FLOOD_001, &region, 0, &data)?;
            t.expect_life(ROB_FLOOD_001)
        }),
    rule("robustness/control-flood", "A thousand control packets do not disturb an established context")
        .checks(&[ROB_FLOOD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let v = victim(t)?;
            for n in 0..1000u32 {
                match n % 3 {
                    0 => t.send(&v.pdc, &v.pdc.control(CtlType::ACK_REQUEST, v.pdc.psn(n), 0)?)?,
                    1 => t.send(&v.pdc, &v.pdc.probe(n as u16, v.pdc.psn(n))?)?,
                    _ => t.send(&v.pdc, &v.pdc.control(CtlType::CLEAR_COMMAND, Psn(0), v.pdc.psn(n).0)?)?,
                }
            }
            t.pause(t.soon())?;
            t.forget();
            t.request(&v.pdc, v.pdc.request(1).write(&v.region, 0, &[1; 16])?)?;
            t.expect_cack(ROB_FLOOD_001, &v.pdc, v.pdc.psn(1))?;
            Ok(())
        }),
];
