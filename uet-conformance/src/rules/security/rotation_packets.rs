//! The key and the epoch of each type of packet after a change of either (section 3.7).

use super::steps::{
    NEEDS, add_key, check_write, plain_retransmission, plain_write, switch_to, write_in_flight,
};
use crate::prelude::*;
use crate::rules::steps::{
    expect_rudi_response, idempotent_region, message_in_flight, post_datagram, post_idempotent, rudi_request,
    uud_header,
};
use crate::{SECURED, rudi};
use uet_control::ClosePdc;

/// The change of the domain after which the device sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DomainChange {
    Key,
    Epoch,
}

const CHANGE: Axis<DomainChange> =
    axis("change").values(&[("key", DomainChange::Key), ("epoch", DomainChange::Epoch)]);

/// The epochs before and after a change of epoch.
const EPOCHS: (u16, u16) = (7, 8);

/// A packet that a target sends after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LateAnswer {
    Ack,
    /// The ACK of a request from before the change.
    RepeatedAck,
    /// The stored response to a request from before the change.
    StoredError,
    /// The NACK of a context.
    Nack,
    ProbeReply,
    NoopAck,
    CloseAck,
    ReadData,
    /// The retransmission of data from before the change.
    RepeatedData,
    RudiResponse,
}

const ANSWER: Axis<LateAnswer> = axis("answer").needing(&[
    ("repeated-ack", LateAnswer::RepeatedAck, &[]),
    ("stored-error", LateAnswer::StoredError, &[]),
    ("nack", LateAnswer::Nack, &[]),
    ("probe-reply", LateAnswer::ProbeReply, &[]),
    ("ack", LateAnswer::Ack, &[]),
    ("noop-ack", LateAnswer::NoopAck, &[]),
    ("close-ack", LateAnswer::CloseAck, &[]),
    ("read-data", LateAnswer::ReadData, &[READ]),
    ("repeated-data", LateAnswer::RepeatedData, &[READ]),
    ("rudi-response", LateAnswer::RudiResponse, &[RUDI]),
]);

/// A packet that an initiator sends after the change. Its context is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LateRequest {
    Request,
    /// The retransmission of a request from before the change.
    Retransmission,
    AckRequest,
    ClearCommand,
    CloseCommand,
    DataAck,
    RudiRequest,
    /// The retransmission of a RUDI request from before the change.
    RepeatedRudi,
    Datagram,
}

const SENT: Axis<LateRequest> = axis("packet").needing(&[
    ("request", LateRequest::Request, &[]),
    ("retransmission", LateRequest::Retransmission, &[]),
    ("ack-request", LateRequest::AckRequest, &[]),
    ("clear-command", LateRequest::ClearCommand, &[]),
    ("close-command", LateRequest::CloseCommand, &[CLOSE]),
    ("data-ack", LateRequest::DataAck, &[READ]),
    ("rudi-request", LateRequest::RudiRequest, &[RUDI]),
    ("repeated-rudi", LateRequest::RepeatedRudi, &[RUDI]),
    ("datagram", LateRequest::Datagram, &[UUD, DATAGRAM]),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS)
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-rotation/answers", "After a change of key or epoch, each type of answer has the new one")
        .checks(&[TSS_AN_002, TSS_EPOCH_002])
        .over(&[&SECURED, &CHANGE, &ANSWER])
        .run(|t| {
            let requirement = changed_requirement(t);
            secure_before_change(t)?;
            let (pdc, region) = t.open()?;
            let seen = answer_after_change(t, requirement, &pdc, &region)?;
            check_changed(t, requirement, &seen)
        }),
    rule("tss-rotation/requests", "After a change of key or epoch, each type of request has the new one")
        .checks(&[TSS_AN_002, TSS_EPOCH_002])
        .over(&[&SECURED, &CHANGE, &SENT])
        .run(|t| {
            let requirement = changed_requirement(t);
            secure_before_change(t)?;
            let seen = match t.value(&SENT) {
                LateRequest::RudiRequest | LateRequest::RepeatedRudi | LateRequest::Datagram => {
                    packet_without_context(t, requirement)?
                }
                LateRequest::Retransmission => {
                    let (_, mut target) = write_in_flight(t)?;
                    change(t)?;
                    target.expect_again(t, requirement, 0, t.later() * 2)?.seen
                }
                _ => packet_of_context(t, requirement)?,
            };
            check_changed(t, requirement, &seen)
        }),
];

/// Returns the requirement for the packets after the change.
fn changed_requirement(t: &Test<'_>) -> &'static Requirement {
    match t.value(&CHANGE) {
        DomainChange::Key => TSS_AN_002,
        DomainChange::Epoch => TSS_EPOCH_002,
    }
}

/// Makes the device a member of a domain with two keys, of which it uses the first.
fn secure_before_change(t: &mut Test<'_>) -> Outcome {
    t.secure_as(t.value(&SECURED), |domain| domain.epoch = EPOCHS.0)?;
    add_key(t)
}

/// Makes the device send under its other key or in the next epoch. Discards the packets that left before.
fn change(t: &mut Test<'_>) -> Outcome {
    match t.value(&CHANGE) {
        DomainChange::Key => switch_to(t, true)?,
        DomainChange::Epoch => {
            let shield = t.shield()?;
            (shield.installed.epoch, shield.epoch) = (EPOCHS.1, EPOCHS.1);
            t.install()?;
        }
    }
    t.settle()
}

/// Checks that a packet has the key or the epoch from after the change.
fn check_changed(t: &mut Test<'_>, requirement: &Requirement, seen: &RxPacket) -> Outcome {
    let header = t.shield()?.seen.iter().find(|header| header.number == seen.number).copied();
    match t.value(&CHANGE) {
        DomainChange::Key => {
            let an = header.map(|header| u8::from(header.an));
            t.check(requirement, "association number", Some(1), an);
        }
        DomainChange::Epoch => {
            let epoch = header.map(|header| header.epoch);
            t.check(requirement, "epoch:", Some(EPOCHS.1), epoch);
        }
    }
    Ok(())
}

/// Has the device send the packet of [`ANSWER`] after the change, and returns it.
fn answer_after_change(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &Pdc,
    region: &Region,
) -> Result<RxPacket, Stop> {
    let psn = pdc.psn(1);
    let ack = match t.value(&ANSWER) {
        LateAnswer::Ack => {
            change(t)?;
            t.send_wire(&plain_write(pdc, region, 1)?)?;
            t.expect_ack(requirement, pdc, psn)?
        }
        LateAnswer::RepeatedAck => {
            check_write(t, requirement, pdc, region, 1)?;
            change(t)?;
            t.send_wire(&plain_retransmission(pdc, region, 1)?)?;
            t.expect_ack(requirement, pdc, psn)?
        }
        LateAnswer::StoredError => {
            let refused = pdc.request(1).write_nowhere(region, &[1])?;
            t.request(pdc, refused.clone())?;
            t.need("an error", t.soon(), |seen| seen.answers(pdc, psn))?;
            change(t)?;
            t.request(pdc, refused.retx())?;
            t.expect_answer(requirement, pdc, psn)?
        }
        LateAnswer::ProbeReply => {
            change(t)?;
            t.send(pdc, &pdc.probe(3, pdc.psn(0))?)?;
            t.expect(requirement, "the reply to a PROBE", t.soon(), |seen| {
                seen.ack().filter(|ack| ack.p() && seen.is_for(pdc))
            })?
        }
        LateAnswer::NoopAck => expect_ack_of_control(t, requirement, pdc, CtlType::NOOP)?,
        LateAnswer::CloseAck => expect_ack_of_control(t, requirement, pdc, CtlType::CLOSE_COMMAND)?,
        LateAnswer::Nack => {
            change(t)?;
            t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(9), 0)?)?;
            return Ok(t.expect_nack(requirement, pdc, pdc.psn(9), &[NackCode::PKT_NOT_RCVD])?.0);
        }
        LateAnswer::ReadData => {
            change(t)?;
            ask_for_data(t, pdc, region)?;
            return expect_data(t, requirement, pdc, false);
        }
        LateAnswer::RepeatedData => {
            ask_for_data(t, pdc, region)?;
            expect_data(t, requirement, pdc, false)?;
            change(t)?;
            return expect_data(t, requirement, pdc, true);
        }
        LateAnswer::RudiResponse => {
            let (idempotent, reverse) = idempotent_region(t)?;
            change(t)?;
            let request = reverse.request(0).write(&idempotent, 0, &[7; 32])?;
            t.send(&reverse, &rudi(0x77, &request)?)?;
            return expect_rudi_response(t, requirement, &reverse, 0x77);
        }
    };
    Ok(ack.0)
}

/// Expects the ACK of a control packet from after the change.
fn expect_ack_of_control(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pdc: &Pdc,
    ctl_type: CtlType,
) -> Result<(RxPacket, uet_wire::pds::Ack), Stop> {
    change(t)?;
    t.send(pdc, &pdc.numbered(ctl_type, 1)?)?;
    t.expect_ack(requirement, pdc, pdc.psn(1))
}

/// Sends a read whose data comes on the return direction.
fn ask_for_data(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Outcome {
    let length = t.beyond_ack()?;
    t.request(pdc, pdc.request(1).read(region, 0, length)?)
}

/// Expects the data, for the first time or as a retransmission.
fn expect_data(t: &mut Test<'_>, requirement: &Requirement, pdc: &Pdc, retx: bool) -> Result<RxPacket, Stop> {
    let what = if retx { "the data of the read again, with retx" } else { "the data of the read" };
    let (seen, ()) = t.expect(requirement, what, t.later() * 2, |seen| {
        let is_data = seen.is_for(pdc) && !seen.payload().is_empty();
        seen.request().filter(|request| is_data && request.retx() == retx).map(drop)
    })?;
    Ok(seen)
}

/// Has the device send a packet of an open context after the change, and returns it.
fn packet_of_context(t: &mut Test<'_>, requirement: &Requirement) -> Result<RxPacket, Stop> {
    let sent = t.value(&SENT);
    if sent == LateRequest::AckRequest {
        let (target, _) = message_in_flight(t, 1)?;
        change(t)?;
        target.sack(t, 1, &[1])?;
        return Ok(target.expect_control(t, requirement, CtlType::ACK_REQUEST, t.later())?.0);
    }
    let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
    if sent == LateRequest::DataAck {
        t.post(post(PostKind::Read, peer, 200))?;
        target.collect(t, 2)?;
        target.ack(t, 1)?;
        change(t)?;
        target.give(t, 0, target.data_header(1, 200, 200, 0)?, &[7; 200])?;
        return Ok(t.expect_ack(requirement, &target.pdc, target.psn(0))?.0);
    }
    change(t)?;
    match sent {
        LateRequest::ClearCommand => {
            let clear = target.pdc.control(CtlType::CLEAR_REQUEST, Psn(0), target.psn(0).0)?;
            t.send(&target.pdc, &clear)?;
            let clears = |seen: &RxPacket| target.control(seen, CtlType::CLEAR_COMMAND);
            Ok(t.need("CLEAR_COMMAND", t.later(), clears)?.0)
        }
        LateRequest::CloseCommand => {
            t.call(ClosePdc { peer, mode: Mode::Rud, class: 0 })?;
            Ok(target.expect_control(t, requirement, CtlType::CLOSE_COMMAND, t.later())?.0)
        }
        _ => {
            t.post(post(PostKind::Write, peer, 64))?;
            Ok(target.expect_new(t, requirement, 1)?.seen)
        }
    }
}

/// Has the device send a packet without a context after the change, and returns it.
fn packet_without_context(t: &mut Test<'_>, requirement: &Requirement) -> Result<RxPacket, Stop> {
    let peer = t.peer(0)?;
    let (seen, ()) = match t.value(&SENT) {
        LateRequest::Datagram => {
            change(t)?;
            t.post(post_datagram(peer, 100))?;
            t.expect(requirement, "a datagram", t.later(), |seen| uud_header(seen).map(drop))?
        }
        LateRequest::RepeatedRudi => {
            t.post(post_idempotent(PostKind::Write, peer, 64))?;
            t.need("a RUDI request", t.later(), rudi_request)?;
            change(t)?;
            t.expect(requirement, "the RUDI request again, with retx", t.later() * 2, |seen| {
                rudi_request(seen).filter(|request| request.retx()).map(drop)
            })?
        }
        _ => {
            change(t)?;
            t.post(post_idempotent(PostKind::Write, peer, 64))?;
            t.expect(requirement, "a RUDI request", t.later(), |seen| rudi_request(seen).map(drop))?
        }
    };
    Ok(seen)
}
