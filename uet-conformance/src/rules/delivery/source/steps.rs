//! Steps that rules of several files of this folder share.

use crate::prelude::*;
use crate::rules::steps::{build_rudi_response, post_idempotent, reverse_path, rudi_request};
use crate::serve::said;
use crate::target::RxRequest;
use uet_control::ClosePdc;
use uet_wire::pds::{Control, Request as RequestHeader, Rudi};
use uet_wire::ses::{ResponseData, Ses};

/// Returns a PDCID other than that of the suite's side.
pub(super) fn other_pdcid(pdc: &Pdc) -> PdcId {
    PdcId(if pdc.local.0 == 1 { 2 } else { pdc.local.0 - 1 })
}

/// Checks that a request opens a context at Start_PSN.
pub(super) fn check_opening(t: &mut Test<'_>, request: &RequestHeader) {
    t.check(PDS_SYN_001, "syn", true, request.syn());
    t.check(PDS_SYN_001, "psn_offset", Some(0), request.psn_offset().map(|offset| offset.get()));
}

/// Checks that a new context differs in its PDCID from this one, or starts far from its last PSN.
pub(super) fn check_apart(t: &mut Test<'_>, target: &Target, last: Psn, id: PdcId, psn: Psn) {
    let distance = (psn - last).min(last - psn);
    let held = Some(id) != target.pdc.remote || distance >= 1 << 16;
    let seen = format!("PDCID {id}, {distance} PSNs from the last one");
    t.holds(PDS_SYN_007, "another PDCID, or a PSN 2^16 away", held, seen);
}

/// Sets the smallest default window if the device permits it. Returns the default range.
pub(super) fn smallest_range(t: &mut Test<'_>) -> Result<u32, Stop> {
    t.try_configure("default_mpr", 1)?;
    Ok(128 * t.parameter("default_mpr") as u32)
}

/// Returns an ACK of this request with a guaranteed response. Its cumulative PSN is the one before the
/// request.
pub(super) fn guaranteed(target: &Target, request: &RxRequest, code: ReturnCode) -> Result<AckBuilder, Stop> {
    let n = target.index(&request.request);
    let length = if code == ReturnCode::OK { request.seen.payload().len() as u32 } else { 0 };
    Ok(target.naming(n, n).guaranteed(request.response(code, length)?))
}

/// Returns the CLEAR_PSN of a request or CLEAR_COMMAND of the device.
pub(super) fn clear_psn(target: &Target, seen: &RxPacket) -> Option<Psn> {
    let in_request = seen
        .request()
        .filter(|request| Some(request.spdcid()) == target.pdc.remote && seen.wire.dst == target.pdc.from);
    match in_request {
        Some(request) => Some(request.clear_psn()),
        None => target.control(seen, CtlType::CLEAR_COMMAND)?.clear_psn(),
    }
}

/// Sends CLEAR_REQUEST for the `n`-th PSN.
pub(super) fn request_clear(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let request = target.pdc.control(CtlType::CLEAR_REQUEST, Psn(0), target.psn(n).0)?;
    t.send(&target.pdc, &request)
}

/// Makes the device close its context with the peer.
pub(super) fn close(t: &mut Test<'_>, peer: u64) -> Outcome {
    t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
    Ok(())
}

/// Sends CLOSE_REQUEST with the first PSN of the return direction.
pub(super) fn request_close(t: &mut Test<'_>, target: &Target) -> Outcome {
    t.send(&target.pdc, &target.pdc.control(CtlType::CLOSE_REQUEST, target.psn(0), 0)?)
}

/// Expects CLOSE_COMMAND.
pub(super) fn expect_close(
    t: &mut Test<'_>,
    target: &Target,
    requirement: &Requirement,
) -> Result<(RxPacket, Control), Stop> {
    target.expect_control(t, requirement, CtlType::CLOSE_COMMAND, t.later())
}

/// Expects no CLOSE_COMMAND well before the first timeout.
pub(super) fn expect_no_close(t: &mut Test<'_>, target: &Target, requirement: &Requirement) -> Outcome {
    let span = t.early();
    t.expect_none(requirement, "no CLOSE_COMMAND yet", span, |seen| {
        target.control(seen, CtlType::CLOSE_COMMAND)
    })
}

/// Receives a message up to the `last`-th PSN, and sends the ACK that `answer` returns for each packet. The
/// message must arrive whole on this context, before any CLOSE_COMMAND.
pub(super) fn serve_whole(
    t: &mut Test<'_>,
    target: &mut Target,
    last: u32,
    answer: impl FnMut(&Target, &RxRequest) -> Option<AckBuilder>,
) -> Outcome {
    let served = target.serve(t, last + 1, answer);
    let end = target.psn(last);
    t.expect_none(PDS_CLOSE_003, "no CLOSE_COMMAND within the message", Duration::ZERO, |seen| {
        target.control(seen, CtlType::CLOSE_COMMAND).filter(|command| !command.psn().is_after(end))
    })?;
    t.expect_none(PDS_MSG_002, "no part of the message on another context", Duration::ZERO, |seen| {
        let other = seen.request().filter(|request| Some(request.spdcid()) != target.pdc.remote);
        said(&seen.uet()).filter(|said| other.is_some() && !said.head.som())
    })?;
    served
}

/// Acknowledges a control packet. Its ACK has no response.
pub(super) fn ack_control(t: &mut Test<'_>, target: &Target, psn: Psn) -> Outcome {
    let ack = AckBuilder { response: None, ..target.pdc.ack(psn) };
    target.answer(t, ack)
}

/// Expects a request that opens another context.
pub(super) fn expect_another_context(
    t: &mut Test<'_>,
    target: &Target,
    requirement: &Requirement,
    since: Duration,
) -> Outcome {
    let within = t.later();
    let (_, request) = t.expect(requirement, "a request of another context", within, |seen| {
        seen.request().filter(|_| seen.at > since)
    })?;
    check_opening(t, &request);
    check_apart(t, target, target.psn(1), request.spdcid(), request.psn());
    Ok(())
}

/// Returns the header of the data of a read of one packet, with this code.
pub(super) fn read_data(request: &RxPacket, length: usize, code: ReturnCode) -> Result<ResponseData, Stop> {
    let Some(Ses::Std(read)) = request.uet().ses else {
        return skip("the device reads by a short header");
    };
    let data = ResponseData::build().read_request_message_id(read.message_id());
    let data = data.job_id(read.address().job_id()).response_message_id(9);
    let data = data.payload_length(length as u16).modified_length(length as u32);
    Ok(data.head(|head| head.return_code(code)).done()?)
}

/// Has the device write one packet by RUDI. Returns the operation and its request.
pub(super) fn rudi_write(t: &mut Test<'_>, length: usize) -> Result<(Operated, RxPacket, Rudi), Stop> {
    let peer = t.peer(0)?;
    let posted_at = t.now();
    let written = t.post(post_idempotent(PostKind::Write, peer, length))?;
    let within = t.later();
    let new = |seen: &RxPacket| rudi_request(seen).filter(|request| !request.retx());
    let (seen, header) = t.need("a RUDI request", within, new)?;
    // The suite may have seen it late, but it left no earlier than this.
    Ok((written, RxPacket { at: posted_at, ..seen }, header))
}

/// Sends the response to a RUDI request, with this pkt_id.
pub(super) fn respond(t: &mut Test<'_>, seen: &RxPacket, pkt_id: u32, code: ReturnCode) -> Outcome {
    let reverse = reverse_path(t, seen);
    t.send(&reverse, &build_rudi_response(seen, pkt_id, code)?)
}

/// Expects the retransmission of the RUDI request with this pkt_id.
pub(super) fn expect_rudi_retransmission(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pkt_id: u32,
    within: Duration,
) -> Result<(RxPacket, Rudi), Stop> {
    let any = |seen: &RxPacket| rudi_request(seen).filter(|request| request.pkt_id() == pkt_id);
    let marked = |seen: &RxPacket| any(seen).filter(|request| request.retx());
    if !t.hear(t.patience(within), |seen| marked(seen).is_some())? {
        // A retransmission without retx is reported as such.
        if let Some((seen, _)) = t.wait(Duration::ZERO, any)? {
            t.holds(PDS_RTO_005, "a retransmitted RUDI request has retx", false, seen.uet());
            return Err(Stop::Failed);
        }
    }
    t.expect(requirement, &format!("the request {pkt_id:#x} again, with retx"), Duration::ZERO, marked)
}

/// Checks that the device ignores a reply to its RUDI request: it retransmits the request at its timeout.
pub(super) fn expect_reply_ignored(
    t: &mut Test<'_>,
    requirement: &Requirement,
    reply: impl Fn(&mut Test<'_>, &RxPacket, u32) -> Outcome,
) -> Outcome {
    let (written, seen, header) = rudi_write(t, 64)?;
    reply(t, &seen, header.pkt_id())?;
    // If the suite itself is late, the request may have timed out.
    let due = seen.at + t.rto();
    t.expect_none(requirement, "no retransmission at once", t.grace(), |seen| {
        let is_again = |request: &Rudi| request.pkt_id() == header.pkt_id() && request.retx();
        rudi_request(seen).filter(|request| is_again(request) && seen.at < due)
    })?;
    t.is_open(requirement, written)?;
    let (resent, _) = expect_rudi_retransmission(t, requirement, header.pkt_id(), t.later())?;
    let waited = resent.at.saturating_sub(seen.at);
    let bound = Bound::from(t.rto()).from_parameter("rto_init_time, device");
    t.at_least(requirement, "time to the retransmission", bound, waited);
    respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
    t.ends(requirement, written, Status::Ok)
}
