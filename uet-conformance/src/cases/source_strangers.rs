//! Packets that are not of the context they seem to be for (section 3.5.8): they change nothing at a source.

use super::retransmit::under_way;
use crate::axis::{CARRIER, MODE};
use crate::target::{Target, post};
use crate::{AckBuilder, Axis, Bound, Need, Outcome, Pdc, Point, Rule, RxPacket, Test};
use uet_control::{PostKind, Status};
use uet_wire::catalogue::*;
use uet_wire::pds::{Nack, NackCcx};
use uet_wire::registry::{AckRequest, CtlType, NackCode, ReturnCode};
use uet_wire::{PdcId, Psn, UetBuf, Units24};

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "source-strangers/request-outstanding",
        title: "A packet of a stranger neither answers an outstanding request nor has it sent again",
        requirements: &[PDS_PDC_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &STRANGER, &PACKET],
        run: request_outstanding,
    },
    Rule {
        id: "source-strangers/at-rest",
        title: "A packet of a stranger does not end a context at rest",
        requirements: &[PDS_PDC_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &STRANGER, &PACKET],
        run: at_rest,
    },
    Rule {
        id: "source-strangers/nack-out-of-place",
        title: "A NACK of a PSN that is not outstanding changes nothing, whatever its code",
        requirements: &[PDS_NACK_002],
        needs: &[],
        axes: &[&MODE, &CARRIER, &PLACE, &CODE],
        run: nack_out_of_place,
    },
    Rule {
        id: "source-strangers/after-the-end",
        title: "A NACK for a message that has ended changes nothing, whatever its code",
        requirements: &[PDS_NACK_002],
        needs: &[],
        axes: &[&MODE, &CARRIER, &CODE],
        run: after_the_end,
    },
];

/// How a packet fails to be of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrongContext {
    /// It comes from another address.
    Address,
    /// Its spdcid is another than the target's.
    Context,
    /// Its spdcid is another, and so is its dpdcid.
    Nowhere,
}

pub(super) const STRANGER: Axis<WrongContext> = Axis::new(
    "stranger",
    &[
        Point::needing("address", WrongContext::Address, &[Need::Addresses(2)]),
        Point::new("context", WrongContext::Context),
        Point::new("nowhere", WrongContext::Nowhere),
    ],
);

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

const PACKET: Axis<StrangeReply> = Axis::new(
    "packet",
    &[
        Point::new("ack", StrangeReply::Ack),
        Point::new("ack-cc", StrangeReply::AckCc),
        Point::new("ack-of-error", StrangeReply::AckOfError),
        Point::new("req-close", StrangeReply::ReqClose),
        Point::new("sack", StrangeReply::Sack),
        Point::new("trimmed", StrangeReply::Nack(NackCode::TRIMMED)),
        Point::new("no-resource", StrangeReply::Nack(NackCode::NO_RESOURCE)),
        Point::new("ooo", StrangeReply::Nack(NackCode::ROD_OOO)),
        Point::new("inv-dpdcid", StrangeReply::Nack(NackCode::INV_DPDCID)),
        Point::new("hdr-mismatch", StrangeReply::Nack(NackCode::PDC_HDR_MISMATCH)),
        Point::new("closing", StrangeReply::Nack(NackCode::CLOSING)),
        Point::new("closing-in-err", StrangeReply::Nack(NackCode::CLOSING_IN_ERR)),
        Point::new("gtd-resp-unavail", StrangeReply::Nack(NackCode::GTD_RESP_UNAVAIL)),
        Point::new("pkt-not-rcvd", StrangeReply::Nack(NackCode::PKT_NOT_RCVD)),
        Point::new("nack-ccx", StrangeReply::NackCcx),
        Point::new("credit", StrangeReply::Credit),
        Point::new("close-request", StrangeReply::CloseRequest),
        Point::new("close-command", StrangeReply::CloseCommand),
        Point::new("clear-request", StrangeReply::ClearRequest),
    ],
);

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

const PLACE: Axis<NotOutstanding> = Axis::new(
    "place",
    &[
        Point::new("acknowledged", NotOutstanding::Acknowledged),
        Point::new("next", NotOutstanding::Next),
        Point::new("ahead", NotOutstanding::Ahead),
        Point::new("far", NotOutstanding::Far),
        Point::new("opposite", NotOutstanding::Opposite),
    ],
);

const CODE: Axis<NackCode> = Axis::new(
    "code",
    &[
        Point::new("trimmed", NackCode::TRIMMED),
        Point::new("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
        Point::new("no-pdc", NackCode::NO_PDC_AVAIL),
        Point::new("no-ccc", NackCode::NO_CCC_AVAIL),
        Point::new("no-bitmap", NackCode::NO_BITMAP),
        Point::new("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
        Point::new("no-gtd-del", NackCode::NO_GTD_DEL_AVAIL),
        Point::new("no-ses-msg", NackCode::NO_SES_MSG_AVAIL),
        Point::new("no-resource", NackCode::NO_RESOURCE),
        Point::new("oor-window", NackCode::PSN_OOR_WINDOW),
        Point::new("rod-ooo", NackCode::ROD_OOO),
        Point::new("inv-dpdcid", NackCode::INV_DPDCID),
        Point::new("hdr-mismatch", NackCode::PDC_HDR_MISMATCH),
        Point::new("closing", NackCode::CLOSING),
        Point::new("closing-in-err", NackCode::CLOSING_IN_ERR),
        Point::new("pkt-not-rcvd", NackCode::PKT_NOT_RCVD),
        Point::new("gtd-resp-unavail", NackCode::GTD_RESP_UNAVAIL),
        Point::new("ack-with-data", NackCode::ACK_WITH_DATA),
        Point::new("invalid-syn", NackCode::INVALID_SYN),
        Point::new("mode-mismatch", NackCode::PDC_MODE_MISMATCH),
        Point::new("ses-procg", NackCode::RCVD_SES_PROCG),
        Point::new("infer-loss", NackCode::RCVR_INFER_LOSS),
        Point::new("exp-normal", NackCode::EXP_NACK_NORMAL),
        Point::new("exp-err", NackCode::EXP_NACK_ERR),
        Point::new("exp-fatal", NackCode::EXP_NACK_FATAL),
    ],
);

/// The other end of the context, as the stranger names it.
pub(super) fn elsewhere(t: &mut Test<'_>, pdc: &Pdc) -> Result<Pdc, crate::Stop> {
    let twin = PdcId(if pdc.local.0 == 1 { 2 } else { pdc.local.0 - 1 });
    Ok(match t.value(&STRANGER) {
        WrongContext::Address => Pdc { from: t.address(1)?, ..pdc.clone() },
        WrongContext::Context => Pdc { local: twin, ..pdc.clone() },
        WrongContext::Nowhere => Pdc { local: twin, ..pdc.of_nobody(None) },
    })
}

/// The packet of the stranger, about the `n`-th PSN.
fn send(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let from = elsewhere(t, &target.pdc)?;
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

/// The packet is still outstanding: it comes again at its timeout and no earlier, and its ACK ends the message.
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

fn request_outstanding(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 1)?;
    send(t, &target, 1)?;
    is_unmoved(t, &mut target, 1, written, PDS_PDC_003)?;
    next_on_it(t, &mut target, 2, PDS_PDC_003)
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

fn at_rest(t: &mut Test<'_>) -> Outcome {
    // A context at rest may end by itself.
    if t.parameter("idle_time") > 0 {
        t.configure("idle_time", 0)?;
    }
    let (mut target, written) = under_way(t, 1)?;
    target.ack(t, 1)?;
    t.ends(PDS_PDC_003, written, Status::Ok)?;
    send(t, &target, 1)?;
    let pdc = target.pdc.clone();
    t.expect_none(PDS_PDC_003, "no CLOSE_COMMAND and no retransmission", t.rto(), |seen: &RxPacket| {
        let ours = |id: PdcId| Some(id) == pdc.remote && seen.wire.dst == pdc.from;
        let closes = seen.control(CtlType::CLOSE_COMMAND).is_some_and(|it| ours(it.spdcid()));
        (closes || seen.request().is_some_and(|it| ours(it.spdcid()))).then_some(())
    })?;
    next_on_it(t, &mut target, 2, PDS_PDC_003)
}

fn nack_of(t: &mut Test<'_>, target: &Target, psn: Psn) -> Outcome {
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let code = t.value(&CODE);
    let nack = Nack::build(code).nack_psn(psn).spdcid(target.pdc.local).dpdcid(remote);
    // NEW_START_PSN and others say more in their payload; nothing is read where the PSN is not outstanding.
    t.send(&target.pdc, &UetBuf::new(nack.done()?))
}

fn nack_out_of_place(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 2)?;
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
}

fn after_the_end(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 2)?;
    target.ack(t, 2)?;
    t.ends(PDS_NACK_002, written, Status::Ok)?;
    for n in [2, 3] {
        nack_of(t, &target, target.psn(n))?;
    }
    target.expect_none(t, PDS_NACK_002, "nothing that has ended", t.rto() * 2, |n| n <= 2)?;
    next_on_it(t, &mut target, 3, PDS_NACK_002)
}
