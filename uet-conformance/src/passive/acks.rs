//! What ACKs and NACKs show.

use super::context::{Context, FAR, Flow, Received, Side, distance};
use super::{Judge, Seen, messages};
use uet_wire::catalogue::*;
use uet_wire::pds::{Ack, AckCc, Nack, Pds, Sack};
use uet_wire::registry::{AckRequest, List, NackCode, ResponseOpcode, ReturnCode};
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
    // Other ACKs may ask for a CLEAR too: for a response that waits above.
    if ack.req() == AckRequest::REQ_CLEAR && is_guaranteed(seen) {
        judge.hold(PDS_PSN_002, seen, None, cack < named, || {
            format!(
                "asks to clear the response that it carries, although cack_psn {} is past it",
                ack.cack_psn()
            )
        });
    }
    flow.told = flow.told.max(Some(cack.max(named)));
    cleared(judge, flow, seen);
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
    flow.permit(cack, sack.as_ref().map(|sack| sack.mp_range()));
    if flow.cack.is_none_or(|(before, _)| cack > before) {
        flow.cack = Some((cack, seen.number));
        let beyond = flow.sacked.split_off(&(cack + 1));
        flow.sacked = beyond;
    }
    if let Some(sack) = sack {
        for psn in sack.sacked(ack.cack_psn()) {
            let at = flow.place(psn);
            if at > cack {
                flow.sacked.entry(at).or_insert(seen.number);
            }
        }
    }
    context.over |= over;
}

/// Whether the response needs guaranteed delivery: an error, a match on the overflow list, or data in an ACK.
fn is_guaranteed(seen: &Seen<'_>) -> bool {
    match seen.packet.uet.ses {
        Some(Ses::Response(response)) => {
            let head = response.head();
            let error = !matches!(head.return_code(), ReturnCode::OK | ReturnCode::NULL);
            error || head.list() == List::UET_OVERFLOW
        }
        Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)) => true,
        _ => false,
    }
}

/// What is cleared has been told of. The ACK that told may be missing from the capture, but the next one tells as much.
fn cleared(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>) {
    const IN_A_ROW: u32 = 16;
    let (Some(told), Some(cleared), false) = (flow.told, flow.cleared, flow.renumbered) else { return };
    flow.untold = if cleared > told { flow.untold.saturating_add(1) } else { 0 };
    judge.hold_by(seen.dst, PDS_CLR_001, seen, None, flow.untold < IN_A_ROW, || {
        format!("has cleared {} PSNs beyond what any ACK has told of", cleared - told)
    });
}

/// The answer to a probe carries what the probe did.
fn probe(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, ack: Ack) {
    let Some(opaque) = ack.probe_opaque() else { return };
    if !flow.probes.is_empty() {
        let strange = flow.suspect("answer to no probe", !flow.probes.contains(&opaque), 3);
        judge.hold(PDS_PRB_001, seen, None, !strange, || format!("no probe carried {opaque:#06x}"));
    }
}

/// What an ACK repeats of the request that it names.
fn echo(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, ack: Ack, named: i64) {
    let Some(sent) = flow.requests.get(&named).filter(|_| !flow.asked.contains(&named)).cloned() else {
        return;
    };
    let with = Some(sent.number);
    let never = flow.suspect("retx without retransmission", ack.retx() && !flow.retransmitted, 3);
    if ack.retx() {
        judge.hold(PDS_ACK_002, seen, with, !never, || "says retx, and nothing was retransmitted".into());
    }
    if sent.marked && sent.times == 1 {
        let lost = flow.suspect("mark not told", !ack.m(), 2);
        judge.hold(PDS_ACK_002, seen, with, !lost, || "the request arrived marked, and m is 0".into());
    }
    if let ([Some(entropy), None], Some(here)) = (sent.entropy, seen.entropy) {
        let other = flow.suspect("entropy", entropy != here, 3);
        judge.hold(CC_PATH_001, seen, with, !other, || {
            format!("entropy {here:#06x}, and that of the request is {entropy:#06x}")
        });
    }
}

/// A response of SES is to the message of the request that the ACK names. What PDS says by itself names none.
fn response(judge: &mut Judge, flow: &mut Flow, seen: &Seen<'_>, named: i64) {
    let Some(Ses::Response(response)) = seen.packet.uet.ses else { return };
    if response.head().opcode() != ResponseOpcode::UET_RESPONSE {
        return;
    }
    if response.head().return_code() != ReturnCode::OK {
        flow.end_read(response.message_id());
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
        // No missing record explains that, so it is not asked how seldom it is.
        let back = grown && cack < before.cack && flow.suspect("cumulative PSN back", true, 2);
        judge.hold(PDS_PSN_003, seen, Some(before.number), !back, || {
            "the cumulative PSN went back while more bytes have been received".into()
        });
    }
    let now = Received { bytes, cack, number: seen.number };
    let first = *flow.received_first.get_or_insert(now);
    // What was received since the first ACK has a PSN above that one's, and lies not far above what was seen to be sent,
    // where the capture shows that.
    let highest = flow.highest.filter(|highest| *highest >= cack && !flow.renumbered);
    if let (Some(units), Some(highest)) = (bytes.since(first.bytes), highest) {
        const LARGEST: i64 = 8192 + 256;
        const UNSEEN: i64 = 512;
        let (said, packets) = (i64::from(units) * 256, highest - first.cack);
        judge.hold(CC_RCVD_004, seen, None, said <= (packets + UNSEEN) * LARGEST, || {
            format!("{said} bytes received since the first ACK, in no more than {packets} packets")
        });
    }
    flow.received = Some(now);
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
        let never = flow.suspect("retx without retransmission", nack.retx() && !flow.retransmitted, 3);
        if nack.retx() {
            judge.hold(PDS_NACK_001, seen, Some(sent.number), !never, || {
                "says retx, and nothing was retransmitted".into()
            });
        }
    }
}
