//! What ACKs and NACKs show.

use super::context::{Context, FAR, Flow, Received, Side, distance};
use super::{Judge, Seen, messages};
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, AckCc, Nack, Pds, Sack};
use uet_wire::registry::{AckRequest, NackCode, ResponseOpcode};
use uet_wire::ses::Ses;

pub(super) fn ack(
    judge: &mut Judge,
    context: &mut Context,
    side: Side,
    seen: &Seen<'_>,
    ack: Ack,
    pds: Pds<'_>,
) {
    if let Some(initiator) = context.initiator {
        let request = ack.req();
        let right = side != initiator || request == AckRequest::NO_REQUEST;
        judge.hold(PDS_GTD_004, seen, None, right, || format!("the initiator's ACK says {request}"));
    }
    let start = context.start;
    let flow = context.flow(side.other());
    let cack = flow.place(ack.cack_psn());
    if let Some((start, number)) = start.filter(|_| !flow.renumbered && !ack.p()) {
        let from_start = distance(ack.cack_psn(), start);
        // What lies farther off is of another context with the same identifiers.
        if from_start.abs() < FAR {
            judge.hold(PDS_SYN_008, seen, Some(number), from_start >= -1, || {
                format!("cack_psn {} in a context that starts at {start}", ack.cack_psn())
            });
        }
    }
    let Some(named) = ack.ack_psn().map(|psn| flow.place(psn)) else {
        probe(judge, flow, seen, ack);
        return;
    };
    if ack.req() == AckRequest::REQ_CLEAR {
        judge.hold(PDS_PSN_002, seen, None, cack < named, || {
            format!(
                "asks to clear {} although cack_psn {} is past it",
                ack.ack_psn().unwrap_or_default(),
                ack.cack_psn()
            )
        });
    }
    flow.told = flow.told.max(Some(cack.max(named)));
    let over = flow.closed.is_some_and(|(close, _)| cack >= close || named == close);
    echo(judge, flow, seen, ack, named);
    response(judge, flow, seen, named);
    messages::data(judge, flow, seen);
    let sack: Option<Sack> = match pds {
        Pds::AckCc(header) => {
            count(judge, flow, seen, header.copied(), cack);
            flow.on_credit |= header.copied().credit().is_some();
            Some(header.sack().copied())
        }
        Pds::AckCcx(header) => Some(header.sack().copied()),
        _ => None,
    };
    if flow.cack.is_none_or(|(before, _)| cack > before) {
        flow.cack = Some((cack, seen.number));
        let beyond = flow.sacked.split_off(&(cack + 1));
        flow.sacked = beyond;
    }
    if let Some(sack) = sack {
        flow.range = Some(sack.mp_range());
        for psn in sack.sacked(ack.cack_psn()) {
            let at = flow.place(psn);
            if at > cack {
                flow.sacked.entry(at).or_insert(seen.number);
            }
        }
    }
    context.over |= over;
}

/// The answer to a probe carries what the probe did.
fn probe(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, ack: Ack) {
    let Some(opaque) = ack.probe_opaque() else { return };
    if !flow.probes.is_empty() {
        let strange = !flow.probes.contains(&opaque) && flow.suspect("answer to no probe", 3);
        judge.hold(PDS_PRB_001, seen, None, !strange, || format!("no probe carried {opaque:#06x}"));
    }
}

/// What an ACK repeats of the request that it names.
fn echo(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, ack: Ack, named: i64) {
    let Some(sent) = flow.requests.get(&named).filter(|_| !flow.asked.contains(&named)).cloned() else {
        return;
    };
    let with = Some(sent.number);
    if ack.retx() {
        let never = !flow.retransmitted && flow.suspect("retx without retransmission", 3);
        judge.hold(PDS_ACK_002, seen, with, !never, || "says retx, and nothing was retransmitted".into());
    }
    if sent.marked && sent.times == 1 {
        let lost = !ack.m() && flow.suspect("mark not told", 2);
        judge.hold(PDS_ACK_002, seen, with, !lost, || "the request arrived marked, and m is 0".into());
    }
    if let ([Some(entropy), None], Some(here)) = (sent.entropy, seen.entropy) {
        let other = entropy != here && flow.suspect("entropy", 3);
        judge.hold(CC_PATH_001, seen, with, !other, || {
            format!("entropy {here:#06x}, and that of the request is {entropy:#06x}")
        });
    }
}

/// A response of SES is to the message of the request that the ACK names. What PDS says by itself names none.
fn response(judge: &mut Judge, flow: &Flow, seen: &Seen<'_>, named: i64) {
    let Some(Ses::Response(response)) = seen.packet.uet.ses else { return };
    if response.head().opcode() != ResponseOpcode::UET_RESPONSE {
        return;
    }
    let Some((part, number)) = flow.requests.get(&named).and_then(|sent| Some((sent.part?, sent.number)))
    else {
        return;
    };
    let (id, job) = (response.message_id(), response.job_id());
    judge.hold(SES_RESP_003, seen, Some(number), id == part.message_id, || {
        format!("response to message {id}, and the request is of message {}", part.message_id)
    });
    judge.hold(SES_RESP_003, seen, Some(number), job == part.job, || {
        format!("response of job {job}, and the request is of job {}", part.job)
    });
    let accepted = response.modified_length();
    judge.hold(SES_RESP_004, seen, Some(number), accepted <= part.total, || {
        format!("{accepted} bytes accepted of a message of {}", part.total)
    });
}

/// `rcvd_bytes` counts on, with the cumulative PSN, in units of 256 bytes.
fn count(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, ack: AckCc, cack: i64) {
    let Some(bytes) = ack.rcvd_bytes() else { return };
    if let Some(before) = flow.received {
        // ACKs may overtake each other, but then both numbers are older.
        let grown = bytes.since(before.bytes).is_some_and(|units| units > 0);
        let back = grown && cack < before.cack && flow.suspect("cumulative PSN back", 2);
        judge.hold(PDS_PSN_003, seen, Some(before.number), !back, || {
            "the cumulative PSN went back while more bytes have been received".into()
        });
    }
    let (first, sent) = *flow.received_first.get_or_insert((bytes, flow.bytes));
    if let Some(units) = bytes.since(first) {
        let (said, seen_bytes) = (u64::from(units) * 256, flow.bytes - sent);
        // Much more than was seen: records may be missing, but not most of them.
        let possible = said <= 8 * seen_bytes + (4 << 20);
        judge.hold(CC_RCVD_004, seen, None, possible, || {
            format!("{said} bytes received since the first ACK, and {seen_bytes} were sent")
        });
    }
    flow.received = Some(Received { bytes, cack, number: seen.number });
}

pub(super) fn nack(judge: &mut Judge, context: &mut Context, side: Side, seen: &Seen<'_>, nack: Nack) {
    let flow = context.flow(side.other());
    match nack.nack_code() {
        NackCode::NEW_START_PSN => flow.renumbered = true,
        NackCode::ROD_OOO => {
            judge.hold(PDS_RUD_001, seen, None, flow.rod != Some(false), || {
                "ROD_OOO on an unordered context".into()
            });
        }
        _ => {}
    }
    let Some(named) = nack.nack_psn().map(|psn| flow.place(psn)) else { return };
    if let Some(sent) = flow.requests.get(&named).cloned() {
        if nack.retx() {
            let never = !flow.retransmitted && flow.suspect("retx without retransmission", 3);
            judge.hold(PDS_NACK_001, seen, Some(sent.number), !never, || {
                "says retx, and nothing was retransmitted".into()
            });
        }
    }
}
