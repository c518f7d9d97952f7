//! A source of receiver credit that has spent its credit when its context ends (section 3.6.14).

use crate::prelude::*;

const ALGORITHMS: Axis<&str> =
    axis("algorithms").needing(&[("rccc", "rccc", &[]), ("both", "both", &[NSCC])]);

/// The base round trips between the close and the next message.
const PAUSE: Axis<u32> = axis("pause").values(&[("none", 0), ("long", 400)]);

pub(super) const RULES: &[Rule] =
    &[rule("rccc/next-context", "A message starts on a new context after one that ended without credit")
        .checks(&[SES_DONE_001])
        .needs(&[RCCC, CLOSE])
        .over(&[&ALGORITHMS, &PAUSE, &MODE])
        .run(|t| {
            // Without a context, a device cannot ask for credit. A short message needs no grant.
            t.congestion(t.value(&ALGORITHMS))?;
            t.auto_credit = false;
            let peer = t.peer(0)?;
            for round in 0..3 {
                let written = t.post(post(PostKind::Write, peer, t.mtu()))?;
                let opens = |seen: &crate::RxPacket| seen.request().filter(|request| request.syn());
                let within = t.later();
                let (first, _) = match round {
                    0 => t.need("a request that opens a context", within, opens)?,
                    _ => t.expect(SES_DONE_001, "a request that opens the next context", within, opens)?,
                };
                let target = Target::opened_by(t, first)?;
                target.ack(t, 0)?;
                t.ends(SES_DONE_001, written, Status::Ok)?;
                target.end(t, peer)?;
                t.pause(t.base_rtt()? * t.value(&PAUSE))?;
                t.forget();
            }
            Ok(())
        })];
