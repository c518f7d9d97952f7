//! Packets that are not of the context they seem to be for (section 3.5.8): they change nothing at a source.

use crate::prelude::*;
use crate::rules::steps::{STRANGER, message_in_flight, wrong_context};
use uet_wire::Units24;
use uet_wire::pds::{Nack, NackCcx};

/// The packet of the stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrangeReply {
    Ack,
    AckCc,
    AckOfError,
    ReqClose,
    Sack,
    Nack(NackCode),
    NackCcx,
    Credit,
    CloseRequest,
    CloseCommand,
    ClearRequest,
}

const PACKET: Axis<StrangeReply> = axis("packet").values(&[
    ("ack", StrangeReply::Ack),
    ("ack-cc", StrangeReply::AckCc),
    ("ack-of-error", StrangeReply::AckOfError),
    ("req-close", StrangeReply::ReqClose),
    ("sack", StrangeReply::Sack),
    ("trimmed", StrangeReply::Nack(NackCode::TRIMMED)),
    ("no-resource", StrangeReply::Nack(NackCode::NO_RESOURCE)),
    ("ooo", StrangeReply::Nack(NackCode::ROD_OOO)),
    ("inv-dpdcid", StrangeReply::Nack(NackCode::INV_DPDCID)),
    ("hdr-mismatch", StrangeReply::Nack(NackCode::PDC_HDR_MISMATCH)),
    ("closing", StrangeReply::Nack(NackCode::CLOSING)),
    ("closing-in-err", StrangeReply::Nack(NackCode::CLOSING_IN_ERR)),
    ("gtd-resp-unavail", StrangeReply::Nack(NackCode::GTD_RESP_UNAVAIL)),
    ("pkt-not-rcvd", StrangeReply::Nack(NackCode::PKT_NOT_RCVD)),
    ("nack-ccx", StrangeReply::NackCcx),
    ("credit", StrangeReply::Credit),
    ("close-request", StrangeReply::CloseRequest),
    ("close-command", StrangeReply::CloseCommand),
    ("clear-request", StrangeReply::ClearRequest),
]);

/// Where a PSN lies that is not outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotOutstanding {
    /// It is acknowledged.
    Acknowledged,
    /// It is the first that was not sent.
    Next,
    /// It lies within the window.
    Ahead,
    /// It lies far away.
    Far,
    /// It lies 2^31 away.
    Opposite,
}

const PLACE: Axis<NotOutstanding> = axis("place").values(&[
    ("acknowledged", NotOutstanding::Acknowledged),
    ("next", NotOutstanding::Next),
    ("ahead", NotOutstanding::Ahead),
    ("far", NotOutstanding::Far),
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
            send(t, &target, 1)?;
            is_unmoved(t, &mut target, 1, written, PDS_PDC_003)?;
            next_on_it(t, &mut target, 2, PDS_PDC_003)
        }),
    rule("source-spoofing/idle", "A spoofed packet does not end an idle context")
        .checks(&[PDS_PDC_003])
        .over(&[&MODE, &CARRIER, &STRANGER, &PACKET])
        .run(|t| {
            // A context at rest may end by itself.
            if t.parameter("idle_time") > 0 {
                t.configure("idle_time", 0)?;
            }
            let (mut target, written) = message_in_flight(t, 1)?;
            target.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)?;
            send(t, &target, 1)?;
            let pdc = target.pdc.clone();
            t.expect_none(
                PDS_PDC_003,
                "no CLOSE_COMMAND and no retransmission",
                t.rto(),
                |seen: &RxPacket| {
                    let ours = |id: PdcId| Some(id) == pdc.remote && seen.wire.dst == pdc.from;
                    let closes = seen.control(CtlType::CLOSE_COMMAND).is_some_and(|it| ours(it.spdcid()));
                    (closes || seen.request().is_some_and(|it| ours(it.spdcid()))).then_some(())
                },
            )?;
            next_on_it(t, &mut target, 2, PDS_PDC_003)
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
                NotOutstanding::Ahead => target.psn(100),
                NotOutstanding::Far => target.psn(100_000),
                NotOutstanding::Opposite => target.psn(2) + (1 << 31),
            };
            nack_of(t, &target, psn)?;
            is_unmoved(t, &mut target, 2, written, PDS_NACK_002)?;
            next_on_it(t, &mut target, 3, PDS_NACK_002)
        }),
    rule("source-spoofing/after-completion", "A NACK for a completed message is ignored")
        .checks(&[PDS_NACK_002])
        .over(&[&MODE, &CARRIER, &CODE])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 2)?;
            t.ends(PDS_NACK_002, written, Status::Ok)?;
            for n in [2, 3] {
                nack_of(t, &target, target.psn(n))?;
            }
            target.expect_none(t, PDS_NACK_002, "nothing that has ended", t.rto() * 2, |n| n <= 2)?;
            next_on_it(t, &mut target, 3, PDS_NACK_002)
        }),
];

/// The packet of the stranger, about the `n`-th PSN.
fn send(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let from = wrong_context(t, &target.pdc)?;
    let psn = target.psn(n);
    let ack = AckBuilder { mpr: target.mpr, ..from.ack(psn) };
    let packet = match t.value(&PACKET) {
        StrangeReply::Ack => ack.build()?,
        StrangeReply::AckCc => AckBuilder { nscc: Some((Units24::from_bytes(100_000), 1)), ..ack }.build()?,
        StrangeReply::AckOfError => {
            let response = target.packet(n)?.response(ReturnCode::BAD_INDEX, 0)?;
            ack.guaranteed(response).build()?
        }
        StrangeReply::ReqClose => AckBuilder { request: AckRequest::REQ_CLOSE, ..ack }.build()?,
        StrangeReply::Sack => {
            AckBuilder { response: None, psn: psn - 1, ..ack }.cack(psn - 1).sack(psn, 1).build()?
        }
        StrangeReply::Nack(code) => from.nack(code, psn)?,
        StrangeReply::NackCcx => {
            let remote = from.remote.unwrap_or(PdcId::NONE);
            let nack = NackCcx::build(NackCode::CLOSING_IN_ERR);
            UetBuf::new(nack.nack(|nack| nack.nack_psn(psn).spdcid(from.local).dpdcid(remote)).done()?)
        }
        StrangeReply::Credit => from.control(CtlType::CREDIT, Psn(0), 4_000_000)?,
        StrangeReply::CloseRequest => from.control(CtlType::CLOSE_REQUEST, psn, 0)?,
        StrangeReply::CloseCommand => from.control(CtlType::CLOSE_COMMAND, psn, 0)?,
        StrangeReply::ClearRequest => from.control(CtlType::CLEAR_REQUEST, Psn(0), psn.0)?,
    };
    t.send(&from, &packet)
}

/// The packet is still outstanding: it comes again at its timeout and no earlier, and its ACK ends the
/// message.
fn is_unmoved(
    t: &mut Test<'_>,
    target: &mut Target,
    n: u32,
    written: uet_control::Operated,
    requirement: &Requirement,
) -> Outcome {
    t.is_open(requirement, written)?;
    let again = target.expect_again(t, requirement, n, t.later())?;
    let waited = again.seen.at.saturating_sub(target.asked);
    let bound = Bound::from(t.rto()).from_parameter("rto_init_time");
    t.at_least(requirement, "the time before the retransmission", bound, waited);
    t.is_open(requirement, written)?;
    target.ack(t, n)?;
    t.ends(requirement, written, Status::Ok)
}

/// The next message goes on by the context, with the next PSN.
fn next_on_it(t: &mut Test<'_>, target: &mut Target, n: u32, requirement: &Requirement) -> Outcome {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let next = target.expect_new(t, requirement, n)?;
    t.check(requirement, "retx of the next request", false, next.request.retx());
    t.check(requirement, "dpdcid of the next request", Some(target.pdc.local), next.request.dpdcid());
    target.ack(t, n)?;
    t.ends(requirement, written, Status::Ok)
}

fn nack_of(t: &mut Test<'_>, target: &Target, psn: Psn) -> Outcome {
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let code = t.value(&CODE);
    let nack = Nack::build(code).nack_psn(psn).spdcid(target.pdc.local).dpdcid(remote);
    // NEW_START_PSN and others say more in their payload; nothing is read where the PSN is not outstanding.
    t.send(&target.pdc, &UetBuf::new(nack.done()?))
}
