//! The source of idempotent requests, which have no context (section 3.5.6).

use crate::prelude::*;
use crate::rules::steps::{post_idempotent, retransmissions, rudi_request};
use crate::serve::FAILED;
use std::collections::BTreeSet;
use uet_wire::pds::{Nack, Rudi};
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::{Response, ResponseData, Ses};

/// The reply of a stranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strange {
    Response,
    Error,
    Refusal,
}

const STRANGE: Axis<Strange> =
    axis("reply").values(&[("ok", Strange::Response), ("error", Strange::Error), ("nack", Strange::Refusal)]);

const KIND: Axis<PostKind> =
    axis("operation").needing(&[("write", PostKind::Write, &[WRITE]), ("read", PostKind::Read, &[READ])]);

const NORMAL: Axis<NackCode> = axis("code")
    .values(&[("no-resource", NackCode::NO_RESOURCE), ("no-pkt-buffer", NackCode::NO_PKT_BUFFER)]);

const REFUSED: Axis<NackCode> =
    axis("code").values(&[("no-resource", NackCode::NO_RESOURCE), ("trimmed", NackCode::TRIMMED)]);

const CODE: Axis<ReturnCode> =
    axis("code").values(&[("uncor", ReturnCode::UNCOR), ("bad-mkey", ReturnCode::BAD_MKEY)]);

const ATOMIC_KIND: Axis<PostKind> = axis("operation")
    .needing(&[("atomic", PostKind::Atomic, &[ATOMIC]), ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC])]);

/// How an idempotent request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RudiEnd {
    Answered,
    Refused,
    Unanswered,
}

const END: Axis<RudiEnd> = axis("end").values(&[
    ("answered", RudiEnd::Answered),
    ("refused", RudiEnd::Refused),
    ("unanswered", RudiEnd::Unanswered),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUDI])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-rudi/response", "A response with the pkt_id of a RUDI request completes it")
        .checks(&[PDS_RUDI_002])
        .run(|t| {
            let (written, seen, header) = ask(t, 64)?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, written, Status::Ok)?;
            no_more(t, PDS_RUDI_002, header.pkt_id())
        }),
    rule("source-rudi/unique-pkt-id", "Outstanding RUDI requests have different pkt_ids")
        .checks(&[PDS_RUDI_001])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post_idempotent(PostKind::Write, peer, 3 * t.mtu()))?;
            for _ in 0..3 {
                t.post(post_idempotent(PostKind::Write, peer, 64))?;
            }
            let mut seen: Vec<(u32, Vec<u8>)> = Vec::new();
            // The packets of six requests; a number that comes again has to be the same request.
            let until = t.now() + t.later();
            while seen.len() < 6 {
                let left = until.saturating_sub(t.now());
                let (got, header) = t.need("six idempotent requests", left, rudi_request)?;
                let content = got.wire.bytes[8..].to_vec();
                let known = seen.iter().find(|(pkt_id, _)| *pkt_id == header.pkt_id());
                let same = known.is_none_or(|(_, known)| *known == content);
                let id = header.pkt_id();
                t.holds(
                    PDS_RUDI_001,
                    "a pkt_id has one request",
                    same,
                    format_args!("pkt_id {id}, {} bytes", content.len()),
                );
                if known.is_none() {
                    seen.push((header.pkt_id(), content));
                } else if !same {
                    return Err(Stop::Failed);
                }
            }
            Ok(())
        }),
    rule("source-rudi/long-message", "A message of more packets than may be outstanding completes")
        .checks(&[SES_DONE_001])
        .run(|t| {
            const COUNT: usize = 40;
            // Else the device has room for them all, perhaps.
            t.try_configure("rudi_requests", 4)?;
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let written = t.post(post_idempotent(PostKind::Write, peer, COUNT * mtu))?;
            let mut seen = BTreeSet::new();
            let mut next = Some(t.need("a RUDI request", t.later(), rudi_request)?);
            while let Some((got, header)) = next {
                seen.insert(header.pkt_id());
                respond(t, &got, header.pkt_id(), ReturnCode::OK)?;
                next = if seen.len() < COUNT { t.wait(t.later(), rudi_request)? } else { None };
            }
            t.check(SES_DONE_001, "packets that came", COUNT, seen.len());
            t.ends(SES_DONE_001, written, Status::Ok)
        }),
    rule("source-rudi/timeout", "A RUDI retransmission repeats pkt_id and content and has retx")
        .checks(&[PDS_RUDI_005, PDS_RTO_005, PDS_RTO_002])
        .measure(|t| {
            let (written, seen, header) = ask(t, 64)?;
            let (again, _) = expect_again(t, PDS_RUDI_005, header.pkt_id(), t.later())?;
            t.same_bytes(PDS_RTO_005, "SES and payload", &seen.wire.bytes[8..], &again.wire.bytes[8..]);
            let waited = again.at.saturating_sub(seen.at);
            let bound = Bound::from(t.rto()).from_parameter("rto_init_time, device");
            t.at_least(PDS_RTO_002, "time to the retransmission", bound, waited);
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_005, written, Status::Ok)
        }),
    rule("source-rudi/nack", "After a NACK with nt = 1, a RUDI request is resent before its timeout")
        .checks(&[PDS_RUDI_004])
        .measure(|t| {
            require(
                t.nack_wait() * 2 + t.grace() <= t.early(),
                "NACK_Retx_Time is not well below RTO_Init_Time",
            )?;
            for code in [NackCode::NO_RESOURCE, NackCode::TRIMMED] {
                let (written, seen, header) = ask(t, 64)?;
                let way = way(t, &seen);
                t.send(&way, &UetBuf::new(Nack::rudi(code).nack_pkt_id(header.pkt_id()).done()?))?;
                let (again, _) = expect_again(t, PDS_RUDI_004, header.pkt_id(), t.later())?;
                let waited = again.at.saturating_sub(seen.at);
                let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time, device");
                t.at_most(PDS_RUDI_004, "time to the retransmission", bound, waited);
                respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
                t.ends(PDS_RUDI_004, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule("source-rudi/nack-limit", "A RUDI request is resent after NACKs at most Max_NACK_Retx_Cnt times")
        .checks(&[PDS_NACK_005])
        .over(&[&REFUSED])
        .run(|t| {
            let most = t.parameter("max_nack_retx_cnt");
            require(most <= 50, format!("{most} retransmissions take too long"))?;
            // Packets that the timeout sends again beside it are refused too.
            let most = (most + t.parameter("max_rto_retx_cnt")) as usize;
            let (written, seen, header) = ask(t, 64)?;
            let (way, pkt_id, later) = (way(t, &seen), header.pkt_id(), t.later());
            let refusal = UetBuf::new(Nack::rudi(t.value(&REFUSED)).nack_pkt_id(pkt_id).done()?);
            let mut times = 1;
            t.send(&way, &refusal)?;
            while times <= most + 3
                && t.wait(later, |seen| rudi_request(seen).filter(|again| again.pkt_id() == pkt_id))?
                    .is_some()
            {
                times += 1;
                t.send(&way, &refusal)?;
            }
            let bound = Bound::from(most + 1).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
            t.at_most(PDS_NACK_005, "transmissions of the request", bound, times);
            t.fails(PDS_NACK_005, written, t.until_given_up())
        }),
    rule("source-rudi/late-response", "A response after retransmissions completes the RUDI request")
        .checks(&[PDS_RUDI_002, PDS_RUDI_005])
        .run(|t| {
            let (written, seen, header) = ask(t, 64)?;
            for n in 0..retransmissions(t, 2)? {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                expect_again(t, PDS_RUDI_005, header.pkt_id(), within)?;
            }
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, written, Status::Ok)?;
            no_more(t, PDS_RUDI_002, header.pkt_id())
        }),
    rule("source-rudi/limit", "A RUDI operation fails after Max_RTO_Retx_Cnt retransmissions")
        .checks(&[PDS_RTO_003, PDS_RTO_004])
        .run(|t| {
            let most = match t.parameter("max_rto_retx_cnt") {
                most @ 0..8 => most as usize,
                most => {
                    return skip(format!("{most} retransmissions have no end, or take too long"));
                }
            };
            let (written, _, header) = ask(t, 64)?;
            let within = t.until_given_up();
            t.pause(within)?;
            let mut times = 1;
            while t
                .wait(Duration::ZERO, |seen| rudi_request(seen).filter(|it| it.pkt_id() == header.pkt_id()))?
                .is_some()
            {
                times += 1;
            }
            let bound = Bound::from(2..=most + 1).from_parameter("max_rto_retx_cnt, device");
            t.between(PDS_RTO_003, "transmissions", bound, times);
            t.fails(PDS_RTO_004, written, t.soon())
        }),
    rule("source-rudi/other-pkt-id", "A response or NACK with another pkt_id is ignored")
        .checks(&[PDS_RUDI_002])
        .measure(|t| {
            is_none(t, PDS_RUDI_002, |t, seen, pkt_id| {
                let other = pkt_id.wrapping_add(0x0100_0000);
                respond(t, seen, other, ReturnCode::OK)?;
                let way = way(t, seen);
                t.send(&way, &UetBuf::new(Nack::rudi(NackCode::TRIMMED).nack_pkt_id(other).done()?))
            })
        }),
    rule("source-rudi/context-nack", "A NACK with nt = 0 does not affect a RUDI request")
        .checks(&[PDS_NACK_008])
        .measure(|t| {
            is_none(t, PDS_NACK_008, |t, seen, pkt_id| {
                let way = way(t, seen);
                for code in [NackCode::TRIMMED, NackCode::NO_RESOURCE] {
                    let nack = Nack::build(code).nack_psn(Psn(pkt_id)).spdcid(PdcId(1)).dpdcid(PdcId(1));
                    t.send(&way, &UetBuf::new(nack.done()?))?;
                }
                Ok(())
            })
        }),
    rule("source-rudi/second-response", "A second response to a RUDI request is ignored")
        .checks(&[PDS_RUDI_003])
        .run(|t| {
            let (written, seen, header) = ask(t, 64)?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_003, written, Status::Ok)?;
            let (next, after, other) = ask(t, 65)?;
            // As to a retransmission that was under way.
            respond(t, &seen, header.pkt_id(), ReturnCode::BAD_MKEY)?;
            t.settle()?;
            t.is_open(PDS_RUDI_003, next)?;
            respond(t, &after, other.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_003, next, Status::Ok)
        }),
    rule("source-rudi/error-response", "An error response fails only its own RUDI request")
        .checks(&[PDS_RUDI_002])
        .run(|t| {
            let (one, first, header) = ask(t, 64)?;
            let (two, second, other) = ask(t, 65)?;
            respond(t, &second, other.pkt_id(), ReturnCode::BAD_MKEY)?;
            t.ends(PDS_RUDI_002, two, Status::Refused)?;
            t.is_open(PDS_RUDI_002, one)?;
            respond(t, &first, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, one, Status::Ok)
        }),
    rule("source-rudi/read", "A RUDI read completes with the data of its response")
        .checks(&[PDS_RUDI_002])
        .needs(&[RUDI, READ])
        .run(|t| {
            let peer = t.peer(0)?;
            let read = t.post(Post { want_data: true, ..post_idempotent(PostKind::Read, peer, 100) })?;
            let within = t.later();
            let (seen, header) = t.need("an idempotent request", within, rudi_request)?;
            let uet = seen.uet();
            let Some(Ses::Std(asked)) = uet.ses else {
                return skip("the device reads by a short header");
            };
            let data = ResponseData::build()
                .read_request_message_id(asked.message_id())
                .job_id(asked.address().job_id());
            let data = data.response_message_id(9).payload_length(100).modified_length(100).done()?;
            let bytes: Vec<u8> = (0..100).map(|byte| byte * 2).collect();
            let head = Rudi::response(header.pkt_id()).done()?;
            let packet = UetBuf { ses: Some(data.into()), payload: bytes.clone(), ..UetBuf::new(head) };
            let way = way(t, &seen);
            t.send(&way, &packet.consistent())?;
            let within = t.soon();
            let ended = t.completion(read, within)?;
            t.check(
                PDS_RUDI_002,
                "the completion",
                Some(Status::Ok),
                ended.as_ref().map(|ended| ended.status),
            );
            let data = ended.and_then(|ended| ended.data).map(|data| data.0);
            t.check(PDS_RUDI_002, "the data", Some(bytes), data);
            Ok(())
        }),
    rule("source-rudi/other-address", "A reply to a RUDI request from another address is ignored")
        .checks(&[PDS_RUDI_002])
        .needs(&[RUDI, TWO_ADDRESSES])
        .over(&[&STRANGE])
        .measure(|t| {
            let strange = t.value(&STRANGE);
            is_none(t, PDS_RUDI_002, |t, seen, pkt_id| {
                let own = way(t, seen);
                let other = (0..t.addresses()).find_map(|n| t.address(n).ok().filter(|it| *it != own.from));
                let from = other.ok_or_else(|| Stop::Skipped("the suite has too few addresses".into()))?;
                let packet = match strange {
                    Strange::Response => response(seen, pkt_id, ReturnCode::OK)?,
                    Strange::Error => response(seen, pkt_id, ReturnCode::BAD_MKEY)?,
                    Strange::Refusal => {
                        UetBuf::new(Nack::rudi(NackCode::TRIMMED).nack_pkt_id(pkt_id).done()?)
                    }
                };
                t.send(&Pdc { from, ..own }, &packet)
            })
        }),
    rule("source-rudi/back-off", "The timeout of a RUDI request doubles with each retransmission")
        .checks(&[PDS_RTO_002, PDS_RUDI_005])
        .over(&[&KIND])
        .measure(|t| {
            // A packet may have left earlier than it was seen: a tenth less is allowed.
            let peer = t.peer(0)?;
            let asked = t.now();
            t.post(post_idempotent(t.value(&KIND), peer, 64))?;
            let within = t.later();
            let (_, header) = t.need("an idempotent request", within, rudi_request)?;
            let mut last = asked;
            for n in 0..retransmissions(t, 4)? {
                let due = t.rto() * (1 << n);
                let within = t.soon() + t.scaled(4 * due);
                let (seen, _) = expect_again(t, PDS_RUDI_005, header.pkt_id(), within)?;
                let what = format!("time before retransmission {}", n + 1);
                let bound = Bound::from(due.mul_f64(0.9));
                let bound = bound.from_parameter("rto_init_time, device").tolerating("10 % tolerance");
                t.at_least(PDS_RTO_002, &what, bound, seen.at.saturating_sub(last));
                last = seen.at;
            }
            Ok(())
        }),
    rule("source-rudi/nack-retx-time", "After a normal NACK, a RUDI request waits for NACK_Retx_Time")
        .checks(&[PDS_NACK_006, PDS_RUDI_004])
        .over(&[&NORMAL])
        .measure(|t| {
            require(
                t.nack_wait() * 2 + t.grace() <= t.early(),
                "NACK_Retx_Time is not well below RTO_Init_Time",
            )?;
            let (written, seen, header) = ask(t, 64)?;
            let way = way(t, &seen);
            let refused = t.now();
            t.send(&way, &UetBuf::new(Nack::rudi(t.value(&NORMAL)).nack_pkt_id(header.pkt_id()).done()?))?;
            let (again, _) = expect_again(t, PDS_RUDI_004, header.pkt_id(), t.later())?;
            let bound = Bound::from(t.nack_wait()).from_parameter("nack_retx_time, device");
            let waited = again.at.saturating_sub(refused);
            t.at_least(PDS_NACK_006, "time from the NACK to the retransmission", bound, waited);
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_004, written, Status::Ok)
        }),
    rule("source-rudi/data-with-error", "A RUDI read fails if its data has an error code")
        .checks(&[SES_ERR_003])
        .needs(&[RUDI, READ])
        .over(&[&CODE])
        .run(|t| {
            let code = t.value(&CODE);
            let peer = t.peer(0)?;
            let read = t.post(Post { want_data: true, ..post_idempotent(PostKind::Read, peer, 8) })?;
            let within = t.later();
            let (seen, header) = t.need("an idempotent request", within, rudi_request)?;
            let uet = seen.uet();
            let Some(Ses::Std(asked)) = uet.ses else {
                return skip("the device reads by a short header");
            };
            let data = ResponseData::build()
                .read_request_message_id(asked.message_id())
                .job_id(asked.address().job_id());
            let data = data.head(|head| head.return_code(code));
            let data = data.response_message_id(9).payload_length(8).modified_length(8).done()?;
            let head = Rudi::response(header.pkt_id()).done()?;
            let packet = UetBuf { ses: Some(data.into()), payload: vec![7; 8], ..UetBuf::new(head) };
            let way = way(t, &seen);
            t.send(&way, &packet.consistent())?;
            let within = t.soon();
            let ended = t.completion(read, within)?.map(|ended| ended.status);
            t.one_of(SES_ERR_003, &format!("the completion after data with {code}"), FAILED, ended);
            Ok(())
        }),
    rule("source-rudi/no-atomic", "The device does not send an atomic by RUDI")
        .checks(&[WIRE_AMO_004])
        .over(&[&ATOMIC_KIND])
        .run(|t| {
            let peer = t.peer(0)?;
            let sum = Post {
                atomic_opcode: Some("SUM".to_owned()),
                atomic_datatype: Some("UINT64".to_owned()),
                ..post_idempotent(t.value(&ATOMIC_KIND), peer, 8)
            };
            if let Err(gone @ Stop::Gone(_)) = t.post(sum) {
                return Err(gone);
            }
            t.expect_none(WIRE_AMO_004, "no atomic by RUDI", t.later(), rudi_request)?;
            ask(t, 64)?;
            Ok(())
        }),
    rule("source-rudi/resources", "A RUDI request that has ended makes room for the next one")
        .checks(&[SES_DONE_001])
        .over(&[&END])
        .run(|t| {
            // With room for two requests and two operations, three end one after the other.
            let end = t.value(&END);
            if end == RudiEnd::Unanswered && t.parameter("max_rto_retx_cnt") > 7 {
                return skip("retransmissions have no end, or take too long");
            }
            t.try_configure("rudi_requests", 2)?;
            t.try_configure("max_operations", 2)?;
            for _ in 0..3 {
                let (written, seen, header) = ask(t, 64)?;
                match end {
                    RudiEnd::Answered => respond(t, &seen, header.pkt_id(), ReturnCode::OK)?,
                    RudiEnd::Refused => respond(t, &seen, header.pkt_id(), ReturnCode::BAD_MKEY)?,
                    RudiEnd::Unanswered => {}
                }
                let within = if end == RudiEnd::Unanswered { t.until_given_up() } else { t.soon() };
                let ended = t.completion(written, within)?.map(|ended| ended.status);
                match end {
                    RudiEnd::Answered => t.check(SES_DONE_001, "the completion", Some(Status::Ok), ended),
                    _ => t.one_of(SES_DONE_001, "the completion", FAILED, ended),
                }
                t.settle()?;
                t.forget();
            }
            let (written, seen, header) = ask(t, 64)?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(SES_DONE_001, written, Status::Ok)
        }),
];

/// Posts a write of one packet; its request, once it has come.
fn ask(t: &mut Test<'_>, length: usize) -> Result<(Operated, RxPacket, Rudi), Stop> {
    let peer = t.peer(0)?;
    let asked = t.now();
    let written = t.post(post_idempotent(PostKind::Write, peer, length))?;
    let within = t.later();
    let new = |seen: &RxPacket| rudi_request(seen).filter(|request| !request.retx());
    let (seen, header) = t.need("an idempotent request", within, new)?;
    // However late it was seen: it has not left before.
    Ok((written, RxPacket { at: asked, ..seen }, header))
}

/// The suite's side of what has no context.
fn way(t: &mut Test<'_>, seen: &RxPacket) -> Pdc {
    Pdc { from: seen.wire.dst, to: seen.wire.src, entropy: seen.wire.entropy, ..t.initiate() }
}

fn respond(t: &mut Test<'_>, seen: &RxPacket, pkt_id: u32, code: ReturnCode) -> Outcome {
    let way = way(t, seen);
    t.send(&way, &response(seen, pkt_id, code)?)
}

fn response(seen: &RxPacket, pkt_id: u32, code: ReturnCode) -> Result<UetBuf, Stop> {
    let header = Rudi::response(pkt_id).prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_RESPONSE));
    let (message, job) = match seen.uet().ses {
        Some(Ses::Std(ses)) => (ses.message_id(), ses.address().job_id()),
        _ => (0, 0),
    };
    let response = match code {
        ReturnCode::OK => Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, code),
        _ => Response::build(ResponseOpcode::UET_RESPONSE, code).message_id(message).job_id(job),
    };
    Ok(UetBuf { ses: Some(response.done()?.into()), ..UetBuf::new(header.done()?) })
}

/// Expects the request of this number again.
fn expect_again(
    t: &mut Test<'_>,
    why: &Requirement,
    pkt_id: u32,
    within: Duration,
) -> Result<(RxPacket, Rudi), Stop> {
    let of_it = |seen: &RxPacket| rudi_request(seen).filter(|again| again.pkt_id() == pkt_id);
    let marked = |seen: &RxPacket| of_it(seen).filter(|again| again.retx());
    // It may come again, and only the flag be wrong.
    if !t.hear(t.patience(within), |seen| marked(seen).is_some())? {
        if let Some((seen, _)) = t.wait(Duration::ZERO, of_it)? {
            t.holds(PDS_RTO_005, "a RUDI request that comes again has retx", false, seen.uet());
            return Err(Stop::Failed);
        }
    }
    t.expect(why, &format!("the request {pkt_id:#x} again, with retx"), Duration::ZERO, marked)
}

/// No request of this number any more, though the device sends the next that it is told to.
fn no_more(t: &mut Test<'_>, why: &Requirement, pkt_id: u32) -> Outcome {
    t.settle()?;
    t.expect_none(why, "the request does not come again", 4 * t.rto(), |seen| {
        rudi_request(seen).filter(|again| again.pkt_id() == pkt_id)
    })?;
    ask(t, 8)?;
    Ok(())
}

/// A packet that does not answer the request does nothing: the request comes again at its timeout.
fn is_none(
    t: &mut Test<'_>,
    why: &Requirement,
    answer: impl Fn(&mut Test<'_>, &RxPacket, u32) -> Outcome,
) -> Outcome {
    let (written, seen, header) = ask(t, 64)?;
    answer(t, &seen, header.pkt_id())?;
    t.expect_none(why, "no retransmission at once", t.grace(), |seen| {
        rudi_request(seen).filter(|again| again.pkt_id() == header.pkt_id() && again.retx())
    })?;
    t.is_open(why, written)?;
    let (again, _) = expect_again(t, why, header.pkt_id(), t.later())?;
    let waited = again.at.saturating_sub(seen.at);
    let bound = Bound::from(t.rto()).from_parameter("rto_init_time, device");
    t.at_least(why, "time to the retransmission", bound, waited);
    respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
    t.ends(why, written, Status::Ok)
}
