//! What requests and control packets show.

use super::context::{Context, Flow, Part, Sent, Side};
use super::{Judge, Seen, messages};
use std::hash::{DefaultHasher, Hash, Hasher};
use uet_wire::catalogue::*;
use uet_wire::pds::{Control, Request};
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::ses::Ses;

pub(super) fn request(
    judge: &mut Judge,
    context: &mut Context,
    side: Side,
    seen: &Seen<'_>,
    request: Request,
) {
    opening(judge, context, side, seen, request);
    let start = context.start;
    let flow = context.flow(side);
    let rod =
        request.prologue().kind() == PdsType::ROD_REQ || request.prologue().kind() == PdsType::ROD_CC_REQ;
    let mode = *flow.rod.get_or_insert(rod);
    judge.hold(PDS_PDC_002, seen, None, mode == rod, || {
        "a request of the other mode on the same context".into()
    });

    let at = flow.place(request.psn());
    let sent = Sent {
        number: seen.number,
        retx: request.retx(),
        clear: request.clear_psn(),
        content: content(seen),
        entropy: [seen.entropy, None],
        marked: seen.marked,
        times: 1,
        part: part(seen),
    };
    flow.bytes += 40 + seen.packet.uet.len() as u64;
    flow.retransmitted |= request.retx();
    // A packet that was cut does not show its content.
    let whole = seen.packet.trimmed.is_none() && seen.packet.sliced.is_none() && seen.packet.cut.is_none();
    match flow.requests.get(&at).cloned() {
        Some(before) => again(judge, flow, seen, at, before, sent, whole),
        None => {
            if !request.retx() {
                first(judge, flow, seen, at, &sent, start.is_some());
            }
            flow.remember(at, sent);
            if whole {
                messages::neighbours(judge, flow, seen, at);
            }
        }
    }
}

/// What every packet with `syn` says of the context.
fn opening(judge: &mut Judge, context: &mut Context, side: Side, seen: &Seen<'_>, request: Request) {
    let Some(start) = request.start_psn() else { return };
    if let Some(initiator) = context.initiator {
        judge.hold(PDS_SYN_004, seen, None, initiator == side, || {
            "the target sends syn in its own context".into()
        });
    }
    let (before, number) = *context.start.get_or_insert((start, seen.number));
    let renumbered = context.flow(side).renumbered;
    judge.hold(PDS_SYN_001, seen, Some(number), renumbered || before == start, || {
        format!("psn - psn_offset is {start}, and was {before}")
    });
}

/// A PSN that was not seen before, not as a retransmission.
fn first(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, at: i64, sent: &Sent, whole: bool) {
    if let Some((cack, number)) = flow.cack {
        let early = at <= cack && !flow.renumbered && flow.suspect("ack of what was not sent", 2);
        judge.hold_by(seen.dst, PDS_PSN_002, seen, Some(number), !early, || {
            "acknowledged before it was sent for the first time".into()
        });
        // Twice the window: the ACK that permits a packet may be missing.
        if let Some(range) = flow.range.unwrap_or(Some(1024)) {
            let inside = at - cack <= 2 * i64::from(range);
            judge.hold(PDS_WIN_004, seen, Some(number), inside || !whole, || {
                format!("{} beyond the cumulative PSN, with a window of {range}", at - cack)
            });
        }
    }
    if let Some(number) = flow.sacked.get(&at).copied() {
        let often = flow.suspect("bit of what was not sent", 2);
        judge.hold_by(seen.dst, PDS_SACK_001, seen, Some(number), !often, || {
            "reported as received before it was sent for the first time".into()
        });
    }
    if let Some((close, number)) = flow.closed {
        judge.hold(PDS_CLOSE_001, seen, Some(number), at <= close, || {
            "a request after the CLOSE_COMMAND".into()
        });
    }
    // First transmissions leave in order, so what they clear does not go back.
    let (below, above) = (flow.requests.range(..at).next_back(), flow.requests.range(at + 1..).next());
    let fresh = |neighbour: Option<(&i64, &Sent)>| {
        neighbour.filter(|(_, other)| !other.retx).map(|(_, other)| (other.clear, other.number))
    };
    let (below, above) = (fresh(below), fresh(above));
    if let Some((clear, number)) = below {
        judge.hold(PDS_CLR_002, seen, Some(number), !clear.is_after(sent.clear), || {
            format!("clears up to {}, and the one before it up to {clear}", sent.clear)
        });
    }
    if let Some((clear, number)) = above {
        judge.hold(PDS_CLR_002, seen, Some(number), !sent.clear.is_after(clear), || {
            format!("clears up to {}, and the one after it up to {clear}", sent.clear)
        });
    }
}

/// A PSN that was seen before: a retransmission, or a copy that the network made.
fn again(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, at: i64, before: Sent, now: Sent, whole: bool) {
    if whole && !flow.renumbered {
        judge.hold(PDS_RTO_005, seen, Some(before.number), before.content == now.content, || {
            "the same PSN with other content".into()
        });
        // A copy is the same in every bit. What differs and does not say retx was sent again.
        let copy = before.clear == now.clear && before.entropy.contains(&seen.entropy);
        if before.content == now.content {
            judge.hold(PDS_RTO_005, seen, Some(before.number), now.retx || before.retx || copy, || {
                "sent again without retx".into()
            });
        }
    }
    if let Some(sent) = flow.requests.get_mut(&at) {
        sent.times += 1;
        sent.marked |= seen.marked;
        if !sent.entropy.contains(&seen.entropy) {
            sent.entropy[1] = seen.entropy;
        }
    }
}

/// What must not change from one transmission to the next.
fn content(seen: &Seen<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let [_, _, ses, ext, payload] = seen.packet.uet.parts();
    (ses, ext, payload).hash(&mut hasher);
    hasher.finish()
}

fn part(seen: &Seen<'_>) -> Option<Part> {
    let Some(Ses::Std(header)) = seen.packet.uet.ses else { return None };
    let payload = seen.packet.uet.payload.len() as u32;
    Some(Part {
        message_id: header.message_id(),
        job: header.address().job_id(),
        som: header.head().som(),
        eom: header.head().eom(),
        offset: header.message_offset().unwrap_or(0),
        length: header.payload_length().map_or(payload, u32::from),
        total: header.request_length(),
    })
}

pub(super) fn control(
    judge: &mut Judge,
    context: &mut Context,
    side: Side,
    seen: &Seen<'_>,
    control: Control,
) {
    let (kind, initiator) = (control.ctl_type(), context.initiator);
    match kind {
        CtlType::CLOSE_COMMAND => {
            judge.hold(PDS_CLOSE_001, seen, None, initiator.is_none_or(|it| it == side), || {
                "CLOSE_COMMAND from the target".into()
            });
            let flow = context.flow(side);
            let at = flow.place(control.psn());
            flow.closed.get_or_insert((at, seen.number));
        }
        CtlType::CLOSE_REQUEST => {
            judge.hold(PDS_CLOSE_006, seen, None, initiator.is_none_or(|it| it != side), || {
                "CLOSE_REQUEST from the initiator".into()
            });
        }
        CtlType::PROBE => {
            let probes = &mut context.flow(side).probes;
            probes.extend(control.probe_opaque());
            if probes.len() > 64 {
                probes.pop_front();
            }
        }
        _ => {}
    }
}
