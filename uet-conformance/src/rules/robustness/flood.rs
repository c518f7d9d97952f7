//! Contexts of the device in a flood of packets that open others (section 3.5.8).

use crate::prelude::*;

/// The packet that the context waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// The first ACK.
    FirstAck,
    /// A later ACK.
    LaterAck,
}

const WAITS: Axis<Waits> =
    axis("waits").values(&[("first-ack", Waits::FirstAck), ("later-ack", Waits::LaterAck)]);

/// The contexts that the device has room for.
const ROOM: u32 = 4;

pub(super) const RULES: &[Rule] =
    &[rule("flood/own-context", "A flood of first packets ends no context that the device opened")
        .checks(&[ROB_FLOOD_001])
        .over(&[&WAITS, &MODE, &CARRIER])
        .run(|t| {
            t.configure("general_pdcs", ROOM)?;
            let region = t.region(4096)?;
            let peer = t.peer(0)?;
            let mut target = match t.value(&WAITS) {
                Waits::FirstAck => None,
                Waits::LaterAck => Some(Target::established(t, peer, uet_control::Mode::Rud)?),
            };
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let (mut target, n) = match target.take() {
                None => (Target::accept(t)?, 0),
                Some(mut target) => {
                    target.collect(t, 2)?;
                    (target, 1)
                }
            };
            for _ in 0..2 * ROOM {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
            }
            t.settle()?;
            t.is_open(ROB_FLOOD_001, written)?;
            target.ack(t, n)?;
            t.ends(ROB_FLOOD_001, written, Status::Ok)?;
            // The next message goes on by the context.
            t.post(post(PostKind::Write, peer, 64))?;
            let next = target.expect_new(t, ROB_FLOOD_001, n + 1)?;
            t.check(
                ROB_FLOOD_001,
                "dpdcid of the next request",
                Some(target.pdc.local),
                next.request.dpdcid(),
            );
            Ok(())
        })];
