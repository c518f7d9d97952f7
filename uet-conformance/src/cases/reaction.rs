//! What an initiator does when it is refused (section 3.5): by the class and the action of each NACK code.

use super::retransmit::under_way;
use crate::target::{Target, post};
use crate::{Case, Need, Outcome, Pdc, Seen, Stop, Test};
use core::time::Duration;
use uet_control::{Mode, Operated, Post, PostKind, Status};
use uet_wire::catalogue::*;
use uet_wire::pds::{Nack, NackCcx};
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn, UetBuf};

const WRITES: &[Need] = &[Need::Capability("rud"), Need::Capability("write")];
const READS: &[Need] = &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("read")];
const TWO_PEERS: &[Need] = &[Need::Capability("rud"), Need::Capability("write"), Need::Addresses(2)];
const BOTH_MODES: &[Need] = &[Need::Capability("rud"), Need::Capability("rod"), Need::Capability("write")];

pub(super) const CASES: &[Case] = &[
    Case {
        id: "reaction/lacking",
        title: "A packet that is refused for lack of a resource comes again, and the message ends well",
        requirements: &[PDS_NACK_004, PDS_RTO_005],
        needs: WRITES,
        run: lacking,
    },
    Case {
        id: "reaction/only-the-refused",
        title: "On an unordered context only the refused packet comes again before the timeout",
        requirements: &[PDS_NACK_004],
        needs: WRITES,
        run: only_the_refused,
    },
    Case {
        id: "reaction/wait",
        title: "After a NACK of the normal class the packet waits for NACK_Retx_Time",
        requirements: &[PDS_NACK_006],
        needs: WRITES,
        run: wait,
    },
    Case {
        id: "reaction/trimmed",
        title: "A trimmed packet is sent again well before its timeout",
        requirements: &[PDS_NACK_004, PDS_NACK_007],
        needs: WRITES,
        run: trimmed,
    },
    Case {
        id: "reaction/trimmed-first",
        title: "A trimmed packet does not wait for NACK_Retx_Time as one does that was refused",
        requirements: &[PDS_NACK_007],
        needs: WRITES,
        run: trimmed_first,
    },
    Case {
        id: "reaction/inferred-loss",
        title: "A packet that the destination takes for lost comes again well before its timeout",
        requirements: &[PDS_NACK_004],
        needs: WRITES,
        run: inferred_loss,
    },
    Case {
        id: "reaction/experimental",
        title: "The experimental codes of the lighter classes have the packet sent again",
        requirements: &[PDS_NACK_004],
        needs: WRITES,
        run: experimental,
    },
    Case {
        id: "reaction/no-context-left",
        title: "A target that lacks a context is asked again, by the same opening packet",
        requirements: &[PDS_NACK_004, PDS_SYN_001],
        needs: WRITES,
        run: no_context_left,
    },
    Case {
        id: "reaction/then-accepted",
        title: "A context that was refused at first is established by the first ACK",
        requirements: &[PDS_NACK_004, PDS_SYN_004],
        needs: WRITES,
        run: then_accepted,
    },
    Case {
        id: "reaction/limit",
        title: "NACKs have a packet sent again at most Max_NACK_Retx_Cnt times",
        requirements: &[PDS_NACK_005],
        needs: WRITES,
        run: limit,
    },
    Case {
        id: "reaction/outside-window",
        title: "A packet that was outside the window of the target comes again",
        requirements: &[PDS_NACK_004],
        needs: WRITES,
        run: outside_window,
    },
    Case {
        id: "reaction/forgotten",
        title: "When the target knows no such context, the device leaves it and takes a new one",
        requirements: &[PDS_NACK_003],
        needs: WRITES,
        run: forgotten,
    },
    Case {
        id: "reaction/mismatch",
        title: "When the target says that the context is another's, or of another mode, the device leaves it",
        requirements: &[PDS_NACK_003],
        needs: WRITES,
        run: mismatch,
    },
    Case {
        id: "reaction/invalid-syn",
        title: "When the target refuses the opening itself, the device leaves the context",
        requirements: &[PDS_NACK_003],
        needs: WRITES,
        run: invalid_syn,
    },
    Case {
        id: "reaction/closing",
        title: "When the target is closing, the device takes a new context",
        requirements: &[PDS_NACK_003],
        needs: WRITES,
        run: closing,
    },
    Case {
        id: "reaction/closing-in-error",
        title: "When the target closes in error, the context is over and nothing is tried again",
        requirements: &[PDS_NACK_013],
        needs: WRITES,
        run: closing_in_error,
    },
    Case {
        id: "reaction/lost-response",
        title: "When a guaranteed response is lost, the context is over and the operation fails",
        requirements: &[PDS_NACK_014],
        needs: WRITES,
        run: lost_response,
    },
    Case {
        id: "reaction/experimental-fatal",
        title: "The fatal experimental code ends the context",
        requirements: &[PDS_NACK_003],
        needs: WRITES,
        run: experimental_fatal,
    },
    Case {
        id: "reaction/whole-context",
        title: "With a fatal NACK for one packet, no packet of the context leaves any more",
        requirements: &[PDS_NACK_003],
        needs: WRITES,
        run: whole_context,
    },
    Case {
        id: "reaction/other-contexts",
        title: "A fatal NACK for one context leaves another alone",
        requirements: &[PDS_NACK_003, PDS_PDC_003],
        needs: BOTH_MODES,
        run: other_contexts,
    },
    Case {
        id: "reaction/not-received",
        title: "What an ACK_REQUEST finds missing is sent again",
        requirements: &[PDS_NACK_015],
        needs: WRITES,
        run: not_received,
    },
    Case {
        id: "reaction/data-is-gone",
        title: "A read whose data went with a lost ACK is sent again",
        requirements: &[PDS_NACK_015],
        needs: READS,
        run: data_is_gone,
    },
    Case {
        id: "reaction/busy-then-done",
        title: "After RCVD_SES_PROCG nothing is sent again when the ACK comes in time",
        requirements: &[PDS_NACK_012],
        needs: WRITES,
        run: busy_then_done,
    },
    Case {
        id: "reaction/busy",
        title: "After RCVD_SES_PROCG and no ACK, the packet is sent again, or its ACK asked for",
        requirements: &[PDS_NACK_012],
        needs: WRITES,
        run: busy,
    },
    Case {
        id: "reaction/answered-already",
        title: "A NACK, of whatever class, for a PSN that is answered changes nothing",
        requirements: &[PDS_NACK_002],
        needs: WRITES,
        run: answered_already,
    },
    Case {
        id: "reaction/never-sent",
        title: "A NACK, of whatever class, for a PSN that was never sent changes nothing",
        requirements: &[PDS_NACK_002],
        needs: WRITES,
        run: never_sent,
    },
    Case {
        id: "reaction/other-peer",
        title: "A NACK from another address changes nothing",
        requirements: &[PDS_PDC_003],
        needs: TWO_PEERS,
        run: other_peer,
    },
    Case {
        id: "reaction/other-context",
        title: "A NACK with another PDCID of the target changes nothing",
        requirements: &[PDS_PDC_003],
        needs: WRITES,
        run: other_context,
    },
    Case {
        id: "reaction/unknown-codes",
        title: "After NACKs of reserved codes the device sends what it is told to",
        requirements: &[ROB_LIFE_001],
        needs: WRITES,
        run: unknown_codes,
    },
    Case {
        id: "reaction/idempotent-form",
        title: "A NACK of a RUDI packet does not touch the context of a PSN with the same number",
        requirements: &[PDS_NACK_008],
        needs: WRITES,
        run: idempotent_form,
    },
    Case {
        id: "reaction/with-state",
        title: "A NACK that also carries congestion state is a NACK",
        requirements: &[PDS_NACK_004],
        needs: WRITES,
        run: with_state,
    },
    Case {
        id: "reaction/new-start",
        title: "After NEW_START_PSN all packets are numbered anew, each with its offset",
        requirements: &[PDS_NACK_009],
        needs: WRITES,
        run: new_start,
    },
    Case {
        id: "reaction/no-answer",
        title: "ACKs and NACKs that fit no context are not answered",
        requirements: &[PDS_NACK_010],
        needs: WRITES,
        run: no_answer,
    },
];

/// Well before the first timeout, but longer than NACK_Retx_Time.
fn early(t: &Test<'_>) -> Duration {
    t.rto().mul_f64(0.9)
}

/// Whether there is such a time.
fn is_early(t: &Test<'_>) -> Outcome {
    match t.nack_wait() * 2 + t.grace() < early(t) {
        true => Ok(()),
        false => Err(Stop::Skipped("NACK_Retx_Time is not well below RTO_Init_Time".into())),
    }
}

fn lacking(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 4)?;
    let codes = [
        NackCode::NO_PKT_BUFFER,
        NackCode::NO_GTD_DEL_AVAIL,
        NackCode::NO_SES_MSG_AVAIL,
        NackCode::NO_RESOURCE,
    ];
    for (n, code) in (1..).zip(codes) {
        target.refuse(t, code, n)?;
    }
    for (n, code) in (1..).zip(codes) {
        t.note(format!("after {code}"));
        let again = target.expect_again(t, PDS_NACK_004, n, t.later())?;
        let same = target.packet(n)?.content() == again.content();
        t.check(PDS_RTO_005, "the same SES header and payload:", true, same);
    }
    target.ack(t, 4)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

fn only_the_refused(t: &mut Test<'_>) -> Outcome {
    is_early(t)?;
    let (mut target, _) = under_way(t, 3)?;
    let since = target.packet(1)?.seen.at;
    target.refuse(t, NackCode::NO_RESOURCE, 2)?;
    target.expect_again(t, PDS_NACK_004, 2, t.later())?;
    let left = (since + early(t)).saturating_sub(t.now());
    target.expect_none(t, PDS_NACK_004, "nothing but the refused packet", left, |n| n != 2)
}

fn wait(t: &mut Test<'_>) -> Outcome {
    let (mut target, _) = under_way(t, 1)?;
    let refused = t.now();
    target.refuse(t, NackCode::NO_RESOURCE, 1)?;
    let again = target.expect_again(t, PDS_NACK_004, 1, t.later())?;
    let waited = again.seen.at.saturating_sub(refused);
    t.check(PDS_NACK_006, "NACK_Retx_Time between them:", true, waited >= t.nack_wait());
    Ok(())
}

/// Refuses a packet by each of these codes, and expects them again before their timeout.
fn again_early(t: &mut Test<'_>, codes: &[NackCode], requirement: &Requirement) -> Outcome {
    let count = codes.len() as u32;
    let (mut target, written) = under_way(t, count)?;
    for (n, code) in (1..).zip(codes) {
        target.refuse(t, *code, n)?;
    }
    for n in 1..=count {
        let again = target.expect_again(t, PDS_NACK_004, n, t.later())?;
        let waited = again.seen.at.saturating_sub(target.packet(n)?.seen.at);
        t.check(requirement, "before the timeout:", true, waited < early(t));
    }
    target.ack(t, count)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

fn trimmed(t: &mut Test<'_>) -> Outcome {
    again_early(t, &[NackCode::TRIMMED, NackCode::TRIMMED_LASTHOP], PDS_NACK_007)
}

fn trimmed_first(t: &mut Test<'_>) -> Outcome {
    is_early(t)?;
    if t.nack_wait().is_zero() {
        return Err(Stop::Skipped("NACK_Retx_Time is zero".into()));
    }
    let (mut target, _) = under_way(t, 2)?;
    target.refuse(t, NackCode::NO_RESOURCE, 1)?;
    target.refuse(t, NackCode::TRIMMED, 2)?;
    let first = target.expect_any_again(t, PDS_NACK_004, 2)?;
    t.check(PDS_NACK_007, "the first to come again", 2, target.index(&first));
    Ok(())
}

fn inferred_loss(t: &mut Test<'_>) -> Outcome {
    is_early(t)?;
    again_early(t, &[NackCode::RCVR_INFER_LOSS], PDS_NACK_004)
}

fn experimental(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 2)?;
    target.refuse(t, NackCode::EXP_NACK_NORMAL, 1)?;
    target.refuse(t, NackCode::EXP_NACK_ERR, 2)?;
    target.expect_again(t, PDS_NACK_004, 1, t.later())?;
    target.expect_again(t, PDS_NACK_004, 2, t.later())?;
    target.ack(t, 2)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

fn no_context_left(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let mut target = Target::accept(t)?;
    for code in [NackCode::NO_PDC_AVAIL, NackCode::NO_CCC_AVAIL, NackCode::NO_BITMAP] {
        t.note(format!("after {code}"));
        target.refuse_without_context(t, code, 0)?;
        t.settle()?;
        let again = target.expect_again(t, PDS_NACK_004, 0, t.later())?;
        t.check(PDS_SYN_001, "syn", true, again.request.syn());
        t.check(PDS_SYN_001, "psn_offset", Some(0), again.request.psn_offset().map(|offset| offset.get()));
    }
    target.ack(t, 0)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

fn then_accepted(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, 64))?;
    let mut target = Target::accept(t)?;
    target.refuse_without_context(t, NackCode::NO_PDC_AVAIL, 0)?;
    t.settle()?;
    target.expect_again(t, PDS_NACK_004, 0, t.later())?;
    target.ack(t, 0)?;
    t.settle()?;
    t.post(post(PostKind::Write, peer, 128))?;
    let next = target.expect_new(t, PDS_SYN_004, 1)?;
    t.check(PDS_SYN_004, "syn", false, next.request.syn());
    t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), next.request.dpdcid());
    Ok(())
}

fn limit(t: &mut Test<'_>) -> Outcome {
    let most = t.parameter("max_nack_retx_cnt", 5);
    if most > 50 {
        return Err(Stop::Skipped(format!("{most} retransmissions take too long")));
    }
    let (mut target, written) = under_way(t, 1)?;
    let mut seen = target.got.len();
    target.refuse(t, NackCode::NO_RESOURCE, 1)?;
    // What the timeout sends again beside it is refused too.
    let most = (most + t.parameter("max_rto_retx_cnt", 5)) as usize;
    while target.next(t, t.later())?.is_some() && target.times(1) <= most + 3 {
        if target.got.len() > seen {
            seen = target.got.len();
            target.refuse(t, NackCode::NO_RESOURCE, 1)?;
        }
    }
    let times = target.times(1);
    t.check(PDS_NACK_005, &format!("at most {} transmissions:", most + 1), true, times <= most + 1);
    t.fails(PDS_NACK_005, written, t.until_given_up())
}

fn outside_window(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 2)?;
    target.ack(t, 1)?;
    target.refuse(t, NackCode::PSN_OOR_WINDOW, 2)?;
    target.expect_again(t, PDS_NACK_004, 2, t.later())?;
    target.ack(t, 2)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

/// Whether a packet of the context was sent to the suite after this.
fn of_old(target: &Target, seen: &Seen, since: Duration) -> Option<()> {
    let request = seen.request()?;
    let old = target.pdc.remote == Some(request.spdcid()) && !request.syn();
    (old && seen.at >= since && seen.wire.dst == target.pdc.from).then_some(())
}

/// The context is left: nothing of it comes any more. What was under way fails, or goes by a new context; what is posted
/// afterwards goes by a new context in any case.
fn is_left(t: &mut Test<'_>, target: &Target, requirement: &Requirement, written: Operated) -> Outcome {
    t.settle()?;
    let since = t.now();
    let span = 4 * t.rto();
    t.expect_none(requirement, "nothing of the context that is over", span, |seen| {
        of_old(target, seen, since)
    })?;
    t.forget();
    let ended = t.completion(written, Duration::ZERO)?.map(|completion| completion.status);
    t.check(requirement, "not completed well:", true, ended != Some(Status::Ok));
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, 8))?;
    let within = t.later();
    let (_, request) = t.expect(requirement, "a request that opens a new context", within, |seen| {
        seen.request().filter(|request| request.syn() && seen.at >= since)
    })?;
    let far = request.start_psn().is_some_and(|start| {
        let last = target.psn(target.highest());
        (start - last).min(last - start) >= 1 << 16
    });
    let another = Some(request.spdcid()) != target.pdc.remote;
    t.check(PDS_SYN_007, "another PDCID, or a Start_PSN 2^16 away:", true, another || far);
    Ok(())
}

fn forgotten(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    target.refuse_without_context(t, NackCode::INV_DPDCID, 1)?;
    is_left(t, &target, PDS_NACK_003, written)
}

fn mismatch(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    target.refuse_without_context(t, NackCode::PDC_HDR_MISMATCH, 1)?;
    is_left(t, &target, PDS_NACK_003, written)?;
    for code in [NackCode::PDC_MODE_MISMATCH, NackCode::UNEXP_EVENT] {
        t.note(format!("and after {code}"));
        t.call(uet_control::Reset {})?;
        t.forget();
        let (target, written) = under_way(t, 1)?;
        target.refuse(t, code, 1)?;
        is_left(t, &target, PDS_NACK_003, written)?;
    }
    Ok(())
}

fn invalid_syn(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let target = Target::accept(t)?;
    target.refuse(t, NackCode::INVALID_SYN, 0)?;
    t.settle()?;
    let (since, remote) = (t.now(), target.pdc.remote);
    t.expect_none(PDS_NACK_003, "nothing of the context that is over", 4 * t.rto(), |seen| {
        let old = |request: &uet_wire::pds::Request| {
            Some(request.spdcid()) == remote && request.start_psn() == Some(target.psn(0))
        };
        seen.request().filter(|request| old(request) && seen.at >= since)
    })?;
    let ended = t.completion(written, Duration::ZERO)?.map(|completion| completion.status);
    t.check(PDS_NACK_003, "not completed well:", true, ended != Some(Status::Ok));
    t.expect_action(peer)
}

fn closing(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    target.refuse(t, NackCode::CLOSING, 1)?;
    is_left(t, &target, PDS_NACK_003, written)
}

/// The operation fails, and nothing of it comes again, by no context.
fn is_over(t: &mut Test<'_>, target: &Target, requirement: &Requirement, written: Operated) -> Outcome {
    t.settle()?;
    t.fails(requirement, written, t.soon())?;
    let since = t.now();
    t.expect_none(requirement, "nothing that is tried again", 4 * t.rto(), |seen| {
        seen.request().filter(|_| seen.at >= since)
    })?;
    is_left(t, target, requirement, written)
}

fn closing_in_error(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    target.refuse(t, NackCode::CLOSING_IN_ERR, 1)?;
    is_over(t, &target, PDS_NACK_013, written)
}

fn lost_response(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 2)?;
    target.ack(t, 1)?;
    // The device knows that it has arrived, and asks for the response.
    target.sack(t, 2, &[2])?;
    target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
    target.refuse(t, NackCode::GTD_RESP_UNAVAIL, 2)?;
    is_over(t, &target, PDS_NACK_014, written)
}

fn experimental_fatal(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    target.refuse(t, NackCode::EXP_NACK_FATAL, 1)?;
    is_left(t, &target, PDS_NACK_003, written)
}

fn whole_context(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let mut target = Target::established(t, peer, Mode::Rud)?;
    let one = t.post(post(PostKind::Write, peer, 64))?;
    let other = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
    target.collect(t, 4)?;
    target.refuse_without_context(t, NackCode::INV_DPDCID, 2)?;
    is_left(t, &target, PDS_NACK_003, one)?;
    let ended = t.completion(other, Duration::ZERO)?.map(|completion| completion.status);
    t.check(PDS_NACK_003, "not completed well:", true, ended != Some(Status::Ok));
    Ok(())
}

fn other_contexts(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let mut ordered = Target::established(t, peer, Mode::Rod)?;
    let (target, _) = under_way(t, 1)?;
    target.refuse_without_context(t, NackCode::INV_DPDCID, 1)?;
    t.settle()?;
    let written = t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 64) })?;
    let next = ordered.expect_new(t, PDS_PDC_003, 1)?;
    t.check(PDS_PDC_003, "dpdcid", Some(ordered.pdc.local), next.request.dpdcid());
    ordered.ack(t, 1)?;
    t.ends(PDS_PDC_003, written, Status::Ok)
}

fn not_received(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 2)?;
    target.ack(t, 1)?;
    target.sack(t, 2, &[2])?;
    target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
    target.refuse(t, NackCode::PKT_NOT_RCVD, 2)?;
    let again = target.expect_again(t, PDS_NACK_015, 2, t.later())?;
    let same = target.packet(2)?.content() == again.content();
    t.check(PDS_RTO_005, "the same SES header and payload:", true, same);
    target.ack(t, 2)?;
    t.ends(PDS_NACK_015, written, Status::Ok)
}

fn data_is_gone(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let mut target = Target::established(t, peer, Mode::Rud)?;
    t.post(post(PostKind::Read, peer, 8))?;
    target.collect(t, 2)?;
    // The ACK with the data is lost; a later one tells that the request has arrived.
    target.sack(t, 1, &[1])?;
    target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
    target.refuse(t, NackCode::ACK_WITH_DATA, 1)?;
    let again = target.expect_again(t, PDS_NACK_015, 1, t.later())?;
    let same = target.packet(1)?.content() == again.content();
    t.check(PDS_RTO_005, "the same SES header:", true, same);
    Ok(())
}

fn busy_then_done(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 1)?;
    let until = t.now() + t.nack_wait() / 2;
    target.refuse(t, NackCode::RCVD_SES_PROCG, 1)?;
    let psn = target.psn(1);
    t.expect_none(PDS_NACK_012, "nothing at once", t.nack_wait() / 2, |seen| {
        seen.request().filter(|request| request.psn() == psn && seen.at <= until)
    })?;
    if t.now() > until + t.nack_wait() / 4 {
        return Err(Stop::Inconclusive("the suite was too slow to acknowledge in time".into()));
    }
    target.ack(t, 1)?;
    t.ends(PDS_NACK_012, written, Status::Ok)?;
    let span = 2 * t.nack_wait() + 2 * t.rto();
    target.expect_none(t, PDS_NACK_012, "nothing that is sent again", span, |n| n == 1)?;
    let peer = t.peer(0)?;
    t.expect_action(peer)
}

fn busy(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    target.refuse(t, NackCode::RCVD_SES_PROCG, 1)?;
    let (psn, within) = (target.psn(1), t.later());
    t.expect(PDS_NACK_012, &format!("PSN {psn} again, or an ACK_REQUEST for it"), within, |seen| {
        let again = seen.request().is_some_and(|request| request.psn() == psn && request.retx());
        let asked = target.control(seen, CtlType::ACK_REQUEST).is_some_and(|asked| asked.psn() == psn);
        (again || asked).then_some(())
    })?;
    target.ack(t, 1)?;
    t.ends(PDS_NACK_012, written, Status::Ok)
}

/// One code of each action.
const CODES: &[NackCode] = &[
    NackCode::NO_RESOURCE,
    NackCode::TRIMMED,
    NackCode::ROD_OOO,
    NackCode::PKT_NOT_RCVD,
    NackCode::CLOSING_IN_ERR,
    NackCode::GTD_RESP_UNAVAIL,
    NackCode::INV_DPDCID,
    NackCode::CLOSING,
];

fn answered_already(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 2)?;
    target.ack(t, 1)?;
    t.settle()?;
    for code in CODES {
        target.refuse(t, *code, 1)?;
    }
    t.settle()?;
    target.expect_again(t, PDS_NACK_002, 2, t.later())?;
    target.expect_none(t, PDS_NACK_002, "nothing that is answered", t.rto(), |n| n < 2)?;
    target.ack(t, 2)?;
    t.ends(PDS_NACK_002, written, Status::Ok)
}

fn never_sent(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 1)?;
    for code in CODES {
        target.refuse(t, *code, 2)?;
        target.refuse(t, *code, 400)?;
    }
    t.settle()?;
    target.expect_again(t, PDS_NACK_002, 1, t.later())?;
    target.ack(t, 1)?;
    t.ends(PDS_NACK_002, written, Status::Ok)?;
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, 64))?;
    let next = target.expect_new(t, PDS_NACK_002, 2)?;
    t.check(PDS_NACK_002, "retx", false, next.request.retx());
    Ok(())
}

/// What a NACK that is not of the context does not do: after it, the packet comes again at its timeout and no earlier, and the
/// message ends well.
fn is_unmoved(t: &mut Test<'_>, nacks: impl Fn(&Target, &mut Test<'_>) -> Outcome) -> Outcome {
    let (mut target, written) = under_way(t, 1)?;
    let sent = target.packet(1)?.seen.at;
    nacks(&target, t)?;
    let again = target.expect_again(t, PDS_RTO_001, 1, t.later())?;
    let late = again.seen.at.saturating_sub(sent) >= early(t);
    t.check(PDS_PDC_003, "not before the timeout:", true, late);
    target.ack(t, 1)?;
    t.ends(PDS_PDC_003, written, Status::Ok)
}

fn other_peer(t: &mut Test<'_>) -> Outcome {
    let from = t.address(1)?;
    is_unmoved(t, |target, t| {
        let elsewhere = Pdc { from, ..target.pdc.clone() };
        for code in [NackCode::TRIMMED, NackCode::INV_DPDCID, NackCode::CLOSING_IN_ERR] {
            t.send(&elsewhere, &elsewhere.nack(code, target.psn(1))?)?;
        }
        Ok(())
    })
}

fn other_context(t: &mut Test<'_>) -> Outcome {
    is_unmoved(t, |target, t| {
        let twin = PdcId(if target.pdc.local.0 == 1 { 2 } else { target.pdc.local.0 - 1 });
        let twin = Pdc { local: twin, ..target.pdc.clone() };
        for code in [NackCode::TRIMMED, NackCode::PDC_MODE_MISMATCH, NackCode::CLOSING_IN_ERR] {
            t.send(&twin, &twin.nack(code, target.psn(1))?)?;
        }
        Ok(())
    })
}

fn unknown_codes(t: &mut Test<'_>) -> Outcome {
    let (target, _) = under_way(t, 1)?;
    for code in [0x00, 0x0c, 0x1b, 0x7f, 0xfc] {
        target.refuse(t, NackCode::new(code).unwrap_or_default(), 1)?;
    }
    t.settle()?;
    // Whether the message goes on, and by which context, is open.
    let peer = t.peer(0)?;
    let since = t.now();
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let within = t.later();
    let (seen, request) = t.expect(ROB_LIFE_001, "a new request", within, |seen| {
        seen.request().filter(|request| !request.retx() && seen.at > since)
    })?;
    let pdc = if request.syn() { t.accept(&seen)? } else { target.pdc.clone() };
    t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
    t.ends(ROB_LIFE_001, written, Status::Ok)
}

fn idempotent_form(t: &mut Test<'_>) -> Outcome {
    is_unmoved(t, |target, t| {
        for code in [NackCode::TRIMMED, NackCode::NO_RESOURCE] {
            let nack = Nack::rudi(code).nack_pkt_id(target.psn(1).0).done()?;
            t.send(&target.pdc, &UetBuf::new(nack))?;
        }
        Ok(())
    })
}

fn with_state(t: &mut Test<'_>) -> Outcome {
    let (mut target, written) = under_way(t, 1)?;
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let code = NackCode::NO_RESOURCE;
    let nack = NackCcx::build(code)
        .nack(|nack| nack.nack_psn(target.psn(1)).spdcid(target.pdc.local).dpdcid(remote));
    let refused = t.now();
    t.send(&target.pdc, &UetBuf::new(nack.done()?))?;
    let again = target.expect_again(t, PDS_NACK_004, 1, t.later())?;
    if is_early(t).is_ok() {
        let waited = again.seen.at.saturating_sub(refused);
        t.check(PDS_NACK_004, "before the timeout:", true, waited < early(t));
    }
    target.ack(t, 1)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

fn new_start(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
    let mut target = Target::accept(t)?;
    target.watch(t, t.grace())?;
    let sent = target.highest();
    let before: Vec<_> = target.got.iter().map(|got| (target.index(&got.request), got.content())).collect();
    let start = Psn(target.pdc.start.0.wrapping_add(0x1234_5678));
    let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
    let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(target.psn(0)).spdcid(target.pdc.local);
    t.send(&target.pdc, &UetBuf::new(nack.dpdcid(remote).payload(start.0).done()?))?;
    t.settle()?;
    target.pdc.start = start;
    target.got.clear();
    for n in 0..=sent {
        let got = target.expect_new(t, PDS_NACK_009, n)?;
        t.check(PDS_NACK_009, "syn", true, got.request.syn());
        let offset = got.request.psn_offset().map(|offset| u32::from(offset.get()));
        t.check(PDS_NACK_009, "psn_offset", Some(n), offset);
        let same = before
            .iter()
            .find(|(index, _)| *index == n)
            .is_some_and(|(_, content)| *content == got.content());
        t.check(PDS_NACK_009, "the same content as before:", true, same);
    }
    target.collect(t, 3)?;
    target.ack(t, 2)?;
    t.ends(PDS_NACK_009, written, Status::Ok)
}

fn no_answer(t: &mut Test<'_>) -> Outcome {
    let (target, written) = under_way(t, 1)?;
    let known = target.pdc.remote.unwrap_or(PdcId::NONE).0;
    let nowhere =
        Pdc { remote: Some(PdcId(if known == 0xffff { 0xfffe } else { 0xffff })), ..target.pdc.clone() };
    t.send(&nowhere, &nowhere.ack(target.psn(1)).build()?)?;
    t.send(&nowhere, &nowhere.nack(NackCode::NO_RESOURCE, target.psn(1))?)?;
    t.send(&target.pdc, &target.pdc.nack(NackCode::NO_RESOURCE, target.psn(9))?)?;
    t.expect_none(PDS_NACK_010, "no NACK for an ACK or a NACK", t.rto(), Seen::nack)?;
    target.ack(t, 1)?;
    t.ends(PDS_NACK_010, written, Status::Ok)
}
