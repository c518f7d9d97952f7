//! Message ids over more messages than there are ids (section 3.4.2).

use crate::target::{Target, post};
use crate::{Need, Outcome, Rule, Stop, Test};
use uet_control::{Form, Post, PostKind, Status};
use uet_wire::catalogue::*;
use uet_wire::registry::ReturnCode;

pub(super) const CASES: &[Rule] = &[Rule {
    id: "values/ids-come-round",
    title: "When message ids come round, no message gets the id of one that is still in flight",
    requirements: &[SES_CUT_003],
    needs: &[Need::Capability("deferrable_send"), Need::Capability("write")],
    axes: &[],
    run: ids_come_round,
}];

/// More messages than ids.
const MESSAGES: usize = 65_536 + 64;

/// Messages that wait for their answers at a time.
const AT_A_TIME: usize = 64;

/// A deferred send stays in flight while other messages come and go.
fn ids_come_round(t: &mut Test<'_>) -> Outcome {
    if !t.facts().virtual_time {
        return Err(Stop::Skipped("65,600 messages take too long".into()));
    }
    let peer = t.peer(0)?;
    let deferred = t.post(post(PostKind::DeferrableSend, peer, 100))?;
    let mut target = Target::accept(t)?;
    let held = target.said(0)?.message_id;
    target.respond(t, 0, target.response(0, ReturnCode::OK, 0)?)?;
    let mut highest = 0;
    for _ in 0..MESSAGES / AT_A_TIME {
        let mut last = None;
        for _ in 0..AT_A_TIME {
            last = Some(t.post(Post { form: Some(Form::Std), ..post(PostKind::Write, peer, 0) })?);
        }
        target.got.clear();
        while target.got.len() < AT_A_TIME {
            if target.next(t, t.later())?.is_none() {
                return Err(Stop::Inconclusive("a write of no bytes did not come".into()));
            }
        }
        for got in &target.got {
            if got.said()?.message_id == held {
                let seen = got.seen.uet();
                t.holds(SES_CUT_003, "an id that no message in flight has", false, seen);
                return Err(Stop::Failed);
            }
        }
        highest += AT_A_TIME as u32;
        target.ack(t, highest)?;
        t.forget();
        if let Some(last) = last {
            t.ends(SES_CUT_003, last, Status::Ok)?;
        }
    }
    t.is_open(SES_CUT_003, deferred)
}
