//! Spoofed packets for a context of the device, and NACKs for PSNs that are not outstanding (section 3.5.8).

use crate::prelude::*;
use crate::rules::steps::{STRANGER, message_in_flight, wrong_context};
use uet_wire::Units24;
use uet_wire::pds::{Nack, NackCcx};

/// The spoofed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpoofedReply {
    Ack,
    AckCc,
    ErrorAck,
    ReqClose,
    Sack,
    Nack(NackCode),
    NackCcx,
    Credit,
    CloseRequest,
    CloseCommand,
    ClearRequest,
}

const PACKET: Axis<SpoofedReply> = axis("packet").values(&[
    ("ack", SpoofedReply::Ack),
    ("ack-cc", SpoofedReply::AckCc),
    ("error-ack", SpoofedReply::ErrorAck),
    ("req-close", SpoofedReply::ReqClose),
    ("sack", SpoofedReply::Sack),
    ("trimmed", SpoofedReply::Nack(NackCode::TRIMMED)),
    ("no-resource", SpoofedReply::Nack(NackCode::NO_RESOURCE)),
    ("rod-ooo", SpoofedReply::Nack(NackCode::ROD_OOO)),
    ("inv-dpdcid", SpoofedReply::Nack(NackCode::INV_DPDCID)),
    ("hdr-mismatch", SpoofedReply::Nack(NackCode::PDC_HDR_MISMATCH)),
    ("closing", SpoofedReply::Nack(NackCode::CLOSING)),
    ("closing-in-err", SpoofedReply::Nack(NackCode::CLOSING_IN_ERR)),
    ("gtd-resp-unavail", SpoofedReply::Nack(NackCode::GTD_RESP_UNAVAIL)),
    ("pkt-not-rcvd", SpoofedReply::Nack(NackCode::PKT_NOT_RCVD)),
    ("nack-ccx", SpoofedReply::NackCcx),
    ("credit", SpoofedReply::Credit),
    ("close-request", SpoofedReply::CloseRequest),
    ("close-command", SpoofedReply::CloseCommand),
    ("clear-request", SpoofedReply::ClearRequest),
]);

/// The place of a PSN that is not outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotOutstanding {
    /// It is acknowledged.
    Acknowledged,
    /// It follows the last packet sent.
    Next,
    /// It is within the window.
    InWindow,
    /// It is above the window.
    AboveWindow,
    /// Its distance is 2^31.
    Opposite,
}

const PLACE: Axis<NotOutstanding> = axis("place").values(&[
    ("acknowledged", NotOutstanding::Acknowledged),
    ("next", NotOutstanding::Next),
    ("in-window", NotOutstanding::InWindow),
    ("above-window", NotOutstanding::AboveWindow),
    ("opposite", NotOutstanding::Opposite),
]);

const CODE: Axis<NackCode> = axis("code").values(&[
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
    ("no-pdc", NackCode::NO_PDC_AVAIL),
    ("no-ccc", NackCode::NO_CCC_AVAIL),
    ("no-bitmap", NackCode::NO_BITMAP),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("no-gtd-del", NackCode::NO_GTD_DEL_AVAIL),
    ("no-ses-msg", NackCode::NO_SES_MSG_AVAIL),
    ("no-resource", NackCode::NO_RESOURCE),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
    ("rod-ooo", NackCode::ROD_OOO),
    ("inv-dpdcid", NackCode::INV_DPDCID),
    ("hdr-mismatch", NackCode::PDC_HDR_MISMATCH),
    ("closing", NackCode::CLOSING),
    ("closing-in-err", NackCode::CLOSING_IN_ERR),
    ("pkt-not-rcvd", NackCode::PKT_NOT_RCVD),
    ("gtd-resp-unavail", NackCode::GTD_RESP_UNAVAIL),
    ("ack-with-data", NackCode::ACK_WITH_DATA),
    ("invalid-syn", NackCode::INVALID_SYN),
    ("mode-mismatch", NackCode::PDC_MODE_MISMATCH),
    ("ses-procg", NackCode::RCVD_SES_PROCG),
    ("infer-loss", NackCode::RCVR_INFER_LOSS),
    ("exp-normal", NackCode::EXP_NACK_NORMAL),
    ("exp-err", NackCode::EXP_NACK_ERR),
    ("exp-fatal", NackCode::EXP_NACK_FATAL),
]);

pub(super) const RULES: &[Rule] = &[
    rule("source-spoofing/outstanding", "A spoofed packet causes neither completion nor retransmission")
        .checks(&[PDS_PDC_003])
        .over(&[&MODE, &CARRIER, &STRANGER, &PACKET])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 1)?;
            send_spoofed(t, &target, 1)?;
            expect_outstanding(t, &mut target, 1, written, PDS_PDC_003)?;
            expect_next_message(t, &mut target, 2, PDS_PDC_003)
        }),
    rule("source-spoofing/idle", "A spoofed packet does not end an idle context")
        .checks(&[PDS_PDC_003])
        .over(&[&MODE, &CARRIER, &STRANGER, &PACKET])
        .run(|t| {
            t.make_patient()?;
            let (mut target, written) = message_in_flight(t, 1)?;
            target.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)?;
            t.settle_if_busy()?;
            send_spoofed(t, &target, 1)?;
            let pdc = target.pdc.clone();
            t.expect_none(
                PDS_PDC_003,
                "no CLOSE_COMMAND and no retransmission",
                t.rto(),
                |seen: &RxPacket| {
                    let of_context = |id: PdcId| Some(id) == pdc.remote && seen.wire.dst == pdc.from;
                    let closes =
                        seen.control(CtlType::CLOSE_COMMAND).is_some_and(|it| of_context(it.spdcid()));
                    (closes || seen.request().is_some_and(|it| of_context(it.spdcid()))).then_some(())
                },
            )?;
            expect_next_message(t, &mut target, 2, PDS_PDC_003)
        }),
    rule("source-spoofing/not-outstanding", "A NACK for a PSN that is not outstanding is ignored")
        .checks(&[PDS_NACK_002])
        .over(&[&MODE, &CARRIER, &PLACE, &CODE])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            t.settle()?;
            let psn = match t.value(&PLACE) {
                NotOutstanding::Acknowledged => target.psn(1),
                NotOutstanding::Next => target.psn(3),
                NotOutstanding::InWindow => target.psn(100),
                NotOutstanding::AboveWindow => target.psn(100_000),
                NotOutstanding::Opposite => target.psn(2) + (1 << 31),
            };
            send_nack(t, &target, psn)?;
            expect_outstanding(t, &mut target, 2, written, PDS_NACK_002)?;
            expect_next_message(t, &mut target, 3, PDS_NACK_002)
        }),
    rule("source-spoofing/after-completion", "A NACK for a completed message is ignored")
        .checks(&[PDS_NACK_002])
        .over(&[&MODE, &CARRIER, &CODE])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 2)?;
            t.ends(PDS_NACK_002, written, Status::Ok)?;
            t.settle_if_busy()?;
            for n in [2, 3] {
                send_nack(t, &target, target.psn(n))?;
            }
            target.expect_none(t, PDS_NACK_002, "no completed packet", t.rto() * 2, |n| n <= 2)?;
            expect_next_message(t, &mut target, 3, PDS_NACK_002)
        }),
];

/// Sends the spoofed packet for the `n`-th PSN.
fn send_spoofed(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let from = wrong_context(t, &target.pdc)?;
    let psn = target.psn(n);
    let ack = AckBuilder { mpr: target.mpr, ..from.ack(psn) };
    let packet = match t.value(&PACKET) {
        SpoofedReply::Ack => ack.build()?,
        SpoofedReply::AckCc => AckBuilder { nscc: Some((Units24::from_bytes(100_000), 1)), ..ack }.build()?,
        SpoofedReply::ErrorAck => {
            let response = target.packet(n)?.response(ReturnCode::BAD_INDEX, 0)?;
            ack.guaranteed(response).build()?
        }
        SpoofedReply::ReqClose => AckBuilder { request: AckRequest::REQ_CLOSE, ..ack }.build()?,
        SpoofedReply::Sack => {
            AckBuilder { response: None, psn: psn - 1, ..ack }.cack(psn - 1).sack(psn, 1).build()?
        }
        SpoofedReply::Nack(code) => from.nack(code, psn)?,
        SpoofedReply::NackCcx => {
            let remote = from.remote.unwrap_or(PdcId::NONE);
            let nack = NackCcx::build(NackCode::CLOSING_IN_ERR);
            UetBuf::new(nack.nack(|nack| nack.nack_psn(psn).spdcid(from.local).dpdcid(remote)).done()?)
        }
        SpoofedReply::Credit => from.control(CtlType::CREDIT, Psn(0), 4_000_000)?,
        SpoofedReply::CloseRequest => from.control(CtlType::CLOSE_REQUEST, psn, 0)?,
        SpoofedReply::CloseCommand => from.control(CtlType::CLOSE_COMMAND, psn, 0)?,
        SpoofedReply::ClearRequest => from.control(CtlType::CLEAR_REQUEST, Psn(0), psn.0)?,
    };
    t.send(&from, &packet)
}

/// Expects that the packet is still outstanding: the device retransmits it at its timeout and no earlier, and
/// its ACK completes the message.
fn expect_outstanding(
    t: &mut Test<'_>,
    target: &mut Target,
    n: u32,
    written: Operated,
    requirement: &Requirement,
) -> Outcome {
    t.is_open(requirement, written)?;
    let again = target.expect_again(t, requirement, n, t.later())?;
    let waited = again.seen.at.saturating_sub(target.asked);
    let bound = Bound::from(t.earliest_retransmission()).from_parameter("rto_init_time");
    t.at_least(requirement, "the time before the retransmission", bound, waited);
    t.is_open(requirement, written)?;
    target.ack(t, n)?;
    t.ends(requirement, written, Status::Ok)
}

/// Expects that the next message uses the context, with the next PSN.
fn expect_next_message(t: &mut Test<'_>, target: &mut Target, n: u32, requirement: &Requirement) -> Outcome {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let next = target.expect_new(t, requirement, n)?;
    t.check(requirement, "retx of the next request", false, next.request.retx());
    t.check(requirement, "dpdcid of the next request", Some(target.pdc.local), next.request.dpdcid());
    target.ack(t, n)?;
    t.ends(requirement, written, Status::Ok)
}

/// Sends a NACK for this PSN.
fn send_nack(t: &mut Test<'_>, target: &Target, psn: Psn) -> Outcome {
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let code = t.value(&CODE);
    let nack = Nack::build(code).nack_psn(psn).spdcid(target.pdc.local).dpdcid(remote);
    // Some codes have a payload, but the device ignores it if the PSN is not outstanding.
    t.send(&target.pdc, &UetBuf::new(nack.done()?))
}
