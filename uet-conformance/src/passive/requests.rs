//! What requests and control packets show.

use super::context::{Context, FAR, Flow, Part, Sent, Side, distance};
use super::{Judge, Seen, content, messages};
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::{Control, Pds, Request};
use uet_wire::registry::{CtlType, Opcode, PdsType};
use uet_wire::ses::Ses;

pub(super) fn request(
    judge: &mut Judge,
    context: &mut Context,
    side: Side,
    seen: &Seen<'_>,
    request: Request,
) {
    opening(judge, context, side, seen, request);
    messages::data(judge, context.flow(side.other()), seen);
    let start = context.start;
    let flow = context.flow(side);
    let rod =
        request.prologue().kind() == PdsType::ROD_REQ || request.prologue().kind() == PdsType::ROD_CC_REQ;
    let mode = *flow.rod.get_or_insert(rod);
    judge.hold(PDS_PDC_002, seen, None, mode == rod, || {
        "a request of the other mode on the same context".into()
    });

    let at = flow.place(request.psn());
    if let Some((start, number)) = start {
        inside(judge, flow, seen, request, (start, number));
    }
    if let Some((kind, number)) = flow.controls.get(&at).copied() {
        judge.hold(PDS_CTL_001, seen, Some(number), flow.renumbered, || {
            format!("a request with the PSN of a {kind}")
        });
    }
    if let Some(Ses::Std(header)) = seen.packet.uet.ses {
        let head = header.head();
        match head.opcode() {
            Opcode::UET_READ => flow.remember_read(header.message_id(), header.request_length()),
            Opcode::UET_FETCHING_ATOMIC | Opcode::UET_TSEND_FETCH_ATOMIC => {
                flow.remember_read(header.message_id(), u32::MAX);
            }
            _ => {}
        }
    }
    let content = content(seen);
    let sent = Sent {
        number: seen.number,
        retx: request.retx(),
        clear: request.clear_psn(),
        content,
        entropy: [seen.entropy, None],
        marked: seen.marked,
        times: 1,
        demand: matches!(seen.packet.uet.pds, Some(Pds::RequestCc(_))),
        part: part(seen).filter(|_| content.is_some()),
    };
    flow.demands |= sent.demand;
    flow.retransmitted |= request.retx();
    match flow.requests.get(&at).cloned() {
        Some(before) => again(judge, flow, seen, at, before, sent),
        None => {
            if !request.retx() {
                first(judge, flow, seen, at, &sent);
            }
            flow.remember(at, sent);
            messages::neighbours(judge, flow, seen, at);
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

/// What the first PSN of the context says of every request.
fn inside(
    judge: &mut Judge,
    flow: &mut Flow,
    seen: &Seen<'_>,
    request: Request,
    (start, number): (Psn, u64),
) {
    // Another first PSN has been judged already.
    if request.start_psn().is_some_and(|own| own != start) {
        return;
    }
    let from_start = |psn: Psn| distance(psn, start);
    let with = Some(number);
    // What lies farther off is of another context with the same identifiers.
    let near = |apart: i64| apart.abs() < FAR && !flow.renumbered;
    let (psn, clear) = (from_start(request.psn()), from_start(request.clear_psn()));
    if near(psn) {
        judge.hold(PDS_SYN_008, seen, with, psn >= 0, || {
            format!("PSN {} of a context that starts at {start}", request.psn())
        });
    }
    if near(clear) {
        judge.hold(PDS_SYN_008, seen, with, clear >= -1, || {
            format!("clears up to {} in a context that starts at {start}", request.clear_psn())
        });
        // CLEAR_PSN moves by what an ACK has told.
        judge.hold(PDS_SYN_004, seen, with, !request.syn() || clear < 0, || {
            format!("syn, although it has had an ACK: it clears up to {}", request.clear_psn())
        });
    }
}

/// A PSN that was not seen before, not as a retransmission.
fn first(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, at: i64, sent: &Sent) {
    let clear = flow.place(sent.clear);
    flow.cleared = flow.cleared.max(Some(clear));
    if let Some((cack, number)) = flow.cack {
        let early = flow.suspect("ack of what was not sent", at <= cack && !flow.renumbered, 2);
        judge.hold_by(seen.dst, PDS_PSN_002, seen, Some(number), !early, || {
            "acknowledged before it was sent for the first time".into()
        });
        // What it clears shows whether the capture lacks an ACK that permits it. One may have widened the window alone.
        let known = flow.told.is_some_and(|told| clear <= told) && !flow.renumbered;
        if let (Some(permitted), Some(range), true) = (flow.permitted, flow.range, known) {
            judge.hold(PDS_WIN_004, seen, Some(number), at <= permitted + range, || {
                format!("{} beyond the cumulative PSN, with a window of {range}", at - cack)
            });
        }
    }
    let told = flow.sacked.get(&at).copied();
    let often = flow.suspect("bit of what was not sent", told.is_some(), 2);
    if told.is_some() {
        judge.hold_by(seen.dst, PDS_SACK_001, seen, told, !often, || {
            "reported as received before it was sent for the first time".into()
        });
    }
    if let Some((close, number)) = flow.closed {
        judge.hold(PDS_CLOSE_001, seen, Some(number), at <= close, || {
            "a request after the CLOSE_COMMAND".into()
        });
    }
    if flow.on_credit && flow.demands {
        let without = flow.suspect("request without demand", !sent.demand, 3);
        judge.hold(RCCC_TYPE_001, seen, None, !without, || {
            "no demand in it, although it is sent on receiver credit".into()
        });
    }
    path(judge, flow, seen, at, sent);
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
fn again(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, at: i64, before: Sent, now: Sent) {
    if let (Some(first), Some(second), false) = (before.content, now.content, flow.renumbered) {
        judge.hold(PDS_RTO_005, seen, Some(before.number), first == second, || {
            "the same PSN with other content".into()
        });
        // A copy is the same in every bit. What differs and does not say retx was sent again.
        let copy = before.clear == now.clear && before.entropy.contains(&seen.entropy);
        if first == second {
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
        // What was cut has now been seen.
        sent.content = sent.content.or(now.content);
        sent.part = sent.part.or(now.part);
    }
}

/// An ordered context leaves its path when it is idle, or seldom: not while the packet before is under way.
fn path(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, at: i64, sent: &Sent) {
    let before = flow.requests.get(&(at - 1)).filter(|before| !before.retx).map(|before| before.entropy[0]);
    let (Some(Some(before)), Some(now), Some(true)) = (before, sent.entropy[0], flow.rod) else { return };
    let acknowledged = flow.place(sent.clear).max(flow.cack.map_or(i64::MIN, |(cack, _)| cack));
    let left = flow.suspect("entropy changes", before != now && acknowledged < at - 1, 3);
    judge.hold(PDS_ROD_005, seen, None, !left, || {
        format!("entropy {now:#06x}, and {before:#06x} of the packet before, which is not yet acknowledged")
    });
}

fn part(seen: &Seen<'_>) -> Option<Part> {
    let Some(Ses::Std(header)) = seen.packet.uet.ses else { return None };
    let payload = seen.packet.uet.payload.len() as u32;
    Some(Part {
        message_id: header.message_id(),
        job: header.address().job_id(),
        som: header.head().som(),
        eom: header.head().eom(),
        ie: header.head().ie(),
        deferrable: matches!(
            header.head().opcode(),
            Opcode::UET_DEFERRABLE_SEND | Opcode::UET_DEFERRABLE_TSEND
        ),
        offset: header.message_offset().unwrap_or(0),
        length: header.payload_length().map_or(payload, u32::from),
        total: header.request_length(),
        buffer: header.buffer_offset(),
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
    if kind.takes_psn() {
        let flow = context.flow(side);
        let at = flow.place(control.psn());
        if let Some(number) = flow.requests.get(&at).map(|sent| sent.number) {
            judge.hold(PDS_CTL_001, seen, Some(number), flow.renumbered, || {
                format!("a {kind} with the PSN of a request")
            });
        }
        flow.remember_control(at, kind, seen.number);
    }
    match kind {
        CtlType::CLOSE_COMMAND => {
            judge.hold(PDS_CLOSE_001, seen, None, initiator.is_none_or(|it| it == side), || {
                "CLOSE_COMMAND from the target".into()
            });
            let flow = context.flow(side);
            let at = flow.place(control.psn());
            let later = flow.requests.range(at + 1..).next().map(|(_, sent)| sent.number);
            judge.hold(PDS_CLOSE_001, seen, later, later.is_none() || flow.renumbered, || {
                "CLOSE_COMMAND with a PSN below that of a request".into()
            });
            flow.closed.get_or_insert((at, seen.number));
        }
        CtlType::CLOSE_REQUEST => {
            judge.hold(PDS_CLOSE_006, seen, None, initiator.is_none_or(|it| it != side), || {
                "CLOSE_REQUEST from the initiator".into()
            });
        }
        CtlType::ACK_REQUEST => {
            let flow = context.flow(side);
            let at = flow.place(control.psn());
            flow.asked.insert(at);
            if flow.asked.len() > 64 {
                flow.asked.pop_first();
            }
        }
        CtlType::CREDIT_REQUEST => context.flow(side).demands = true,
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
