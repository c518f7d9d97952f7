//! RUDI requests of a device and their responses: pkt_ids, completions, replies to ignore (section 3.5.6).

use super::steps::{expect_reply_ignored, expect_rudi_retransmission, read_data, respond, rudi_write};
use crate::Trimmed;
use crate::prelude::*;
use crate::rules::steps::{
    build_rudi_response, post_idempotent, retransmissions, reverse_path, rudi_request,
};
use crate::target::FAILED;
use std::collections::BTreeSet;
use uet_wire::pds::{Nack, Rudi};

/// The reply from another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpoofedRudi {
    Response,
    Error,
    Nack,
}

const REPLY: Axis<SpoofedRudi> = axis("reply").values(&[
    ("ok", SpoofedRudi::Response),
    ("error", SpoofedRudi::Error),
    ("nack", SpoofedRudi::Nack),
]);

const CODE: Axis<ReturnCode> =
    axis("code").values(&[("uncor", ReturnCode::UNCOR), ("bad-mkey", ReturnCode::BAD_MKEY)]);

const ATOMIC_OPERATION: Axis<PostKind> = axis("operation")
    .needing(&[("atomic", PostKind::Atomic, &[ATOMIC]), ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC])]);

/// The end of a RUDI request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RudiEnd {
    Completed,
    Refused,
    TimedOut,
}

const END: Axis<RudiEnd> = axis("end").values(&[
    ("completed", RudiEnd::Completed),
    ("refused", RudiEnd::Refused),
    ("timed-out", RudiEnd::TimedOut),
]);

/// The packet of three that is refused, by index.
const REFUSED: Axis<usize> = axis("refused").values(&[("first", 0), ("middle", 1), ("last", 2)]);

/// True if the responses arrive in reverse order.
const REVERSED: Axis<bool> = axis("responses").values(&[("in-order", false), ("reversed", true)]);

/// Begins a rule with the usual need of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUDI])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-rudi/response", "A response with the pkt_id of a RUDI request completes it")
        .checks(&[PDS_RUDI_002])
        .run(|t| {
            let (written, seen, header) = rudi_write(t, 64)?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, written, Status::Ok)?;
            expect_no_retransmission(t, PDS_RUDI_002, header.pkt_id())
        }),
    rule("source-rudi/unique-pkt-id", "Outstanding RUDI requests have different pkt_ids")
        .checks(&[PDS_RUDI_001])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post_idempotent(PostKind::Write, peer, 3 * t.mtu()))?;
            for _ in 0..3 {
                t.post(post_idempotent(PostKind::Write, peer, 64))?;
            }
            let mut requests: Vec<(u32, Vec<u8>)> = Vec::new();
            // Four messages have six packets. A repeated pkt_id must be a retransmission.
            let until = t.now() + t.later();
            while requests.len() < 6 {
                let left = until.saturating_sub(t.now());
                let (seen, header) = t.need("six RUDI requests", left, rudi_request)?;
                let content = seen.wire.bytes[8..].to_vec();
                let earlier = requests.iter().find(|(pkt_id, _)| *pkt_id == header.pkt_id());
                let same = earlier.is_none_or(|(_, earlier)| *earlier == content);
                let id = header.pkt_id();
                t.holds(
                    PDS_RUDI_001,
                    "a pkt_id has one request",
                    same,
                    format_args!("pkt_id {id}, {} bytes", content.len()),
                );
                if earlier.is_none() {
                    requests.push((header.pkt_id(), content));
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
            // A larger pool might hold all packets of the message.
            t.try_configure("rudi_requests", 4)?;
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let written = t.post(post_idempotent(PostKind::Write, peer, COUNT * mtu))?;
            let mut pkt_ids = BTreeSet::new();
            let mut next = Some(t.need("a RUDI request", t.later(), rudi_request)?);
            while let Some((request, header)) = next {
                pkt_ids.insert(header.pkt_id());
                respond(t, &request, header.pkt_id(), ReturnCode::OK)?;
                next = if pkt_ids.len() < COUNT { t.wait(t.later(), rudi_request)? } else { None };
            }
            t.check(SES_DONE_001, "distinct packets", COUNT, pkt_ids.len());
            t.ends(SES_DONE_001, written, Status::Ok)
        }),
    rule("source-rudi/late-response", "A response after retransmissions completes the RUDI request")
        .checks(&[PDS_RUDI_002, PDS_RUDI_005])
        .run(|t| {
            let (written, seen, header) = rudi_write(t, 64)?;
            for n in 0..retransmissions(t, 2)? {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                expect_rudi_retransmission(t, PDS_RUDI_005, header.pkt_id(), within)?;
            }
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, written, Status::Ok)?;
            expect_no_retransmission(t, PDS_RUDI_002, header.pkt_id())
        }),
    rule("source-rudi/other-pkt-id", "A response or NACK with another pkt_id is ignored")
        .checks(&[PDS_RUDI_002])
        .measure(|t| {
            expect_reply_ignored(t, PDS_RUDI_002, |t, seen, pkt_id| {
                let other = pkt_id.wrapping_add(0x0100_0000);
                respond(t, seen, other, ReturnCode::OK)?;
                let reverse = reverse_path(t, seen);
                t.send(&reverse, &UetBuf::new(Nack::rudi(NackCode::TRIMMED).nack_pkt_id(other).done()?))
            })
        }),
    rule("source-rudi/second-response", "A second response to a RUDI request is ignored")
        .checks(&[PDS_RUDI_003])
        .run(|t| {
            let (written, seen, header) = rudi_write(t, 64)?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_003, written, Status::Ok)?;
            let (next, after, other) = rudi_write(t, 65)?;
            // A target sends this if a retransmission was still in flight.
            respond(t, &seen, header.pkt_id(), ReturnCode::BAD_MKEY)?;
            t.settle()?;
            t.is_open(PDS_RUDI_003, next)?;
            respond(t, &after, other.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_003, next, Status::Ok)
        }),
    rule("source-rudi/error-response", "An error response fails only its own RUDI request")
        .checks(&[PDS_RUDI_002])
        .run(|t| {
            let (one, first, header) = rudi_write(t, 64)?;
            let (two, second, other) = rudi_write(t, 65)?;
            respond(t, &second, other.pkt_id(), ReturnCode::BAD_MKEY)?;
            t.ends(PDS_RUDI_002, two, Status::Refused)?;
            t.is_open(PDS_RUDI_002, one)?;
            respond(t, &first, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, one, Status::Ok)
        }),
    rule(
        "source-rudi/one-packet-refused",
        "One refused packet of a RUDI message completes it with its error",
    )
    .checks(&[SES_ERR_003])
    .over(&[&REFUSED])
    .run(|t| {
        let peer = t.peer(0)?;
        let written = t.post(post_idempotent(PostKind::Write, peer, 3 * t.mtu()))?;
        for (n, (seen, pkt_id)) in three_requests(t)?.iter().enumerate() {
            let refused = n == t.value(&REFUSED);
            let code = if refused { ReturnCode::BAD_MKEY } else { ReturnCode::OK };
            respond(t, seen, *pkt_id, code)?;
        }
        t.ends_refused(SES_ERR_003, written, ReturnCode::BAD_MKEY)
    }),
    rule("source-rudi/long-read", "A RUDI read places the data of each response at its offset")
        .checks(&[SES_READ_001, SES_DONE_001])
        .needs(&[RUDI, READ])
        .over(&[&REVERSED])
        .run(|t| {
            let (mtu, length) = (t.mtu(), 2 * t.mtu() + 100);
            t.requests_all(PostKind::Read, length)?;
            let peer = t.peer(0)?;
            let read = post_idempotent(PostKind::Read, peer, length);
            let read = t.post(Post { want_data: true, form: Some(Form::Std), ..read })?;
            let mut requests = three_requests(t)?;
            if t.value(&REVERSED) {
                requests.reverse();
            }
            let whole: Vec<u8> = pattern(19).take(length).collect();
            for (seen, pkt_id) in &requests {
                let Some(said) = crate::serve::said(&seen.uet()) else {
                    return Err(Stop::Inconclusive("a RUDI request without a SES header".into()));
                };
                let start = said.start();
                let piece = whole.get(start..(start + mtu).min(length)).unwrap_or_default();
                let ses = crate::serve::data_header(&said, Psn(*pkt_id), piece.len(), length, start)?;
                let head = Rudi::response(*pkt_id).done()?;
                let packet = UetBuf { ses: Some(ses), payload: piece.to_vec(), ..UetBuf::new(head) };
                let reverse = reverse_path(t, seen);
                t.send(&reverse, &packet.consistent())?;
            }
            let ended = t.ends_with(SES_DONE_001, read, (Status::Ok, length as u64))?;
            let data = ended.and_then(|completion| completion.data).map_or(Vec::new(), |data| data.0);
            t.same_bytes(SES_READ_001, "the data of the completion", &whole, &data);
            Ok(())
        }),
    rule("source-rudi/read", "A RUDI read completes with the data of its response")
        .checks(&[PDS_RUDI_002])
        .needs(&[RUDI, READ])
        .run(|t| {
            let peer = t.peer(0)?;
            let read = t.post(Post { want_data: true, ..post_idempotent(PostKind::Read, peer, 100) })?;
            let within = t.later();
            let (seen, header) = t.need("a RUDI request", within, rudi_request)?;
            let bytes: Vec<u8> = (0..100).map(|byte| byte * 2).collect();
            respond_with_data(t, (&seen, &header), ReturnCode::OK, &bytes)?;
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
        .over(&[&REPLY])
        .measure(|t| {
            let reply = t.value(&REPLY);
            expect_reply_ignored(t, PDS_RUDI_002, |t, seen, pkt_id| {
                let reverse = reverse_path(t, seen);
                let other =
                    (0..t.addresses()).find_map(|n| t.address(n).ok().filter(|it| *it != reverse.from));
                let from = other.ok_or_else(|| Stop::Skipped("the suite has too few addresses".into()))?;
                let packet = match reply {
                    SpoofedRudi::Response => build_rudi_response(seen, pkt_id, ReturnCode::OK)?,
                    SpoofedRudi::Error => build_rudi_response(seen, pkt_id, ReturnCode::BAD_MKEY)?,
                    SpoofedRudi::Nack => {
                        UetBuf::new(Nack::rudi(NackCode::TRIMMED).nack_pkt_id(pkt_id).done()?)
                    }
                };
                t.send(&Pdc { from, ..reverse }, &packet)
            })
        }),
    rule("source-rudi/trimmed", "A trimmed response to a RUDI request does not complete it")
        .checks(&[PDS_TRIM_002])
        .needs(&[RUDI, TRIM])
        .measure(|t| {
            expect_reply_ignored(t, PDS_TRIM_002, |t, seen, pkt_id| {
                let reverse = reverse_path(t, seen);
                let packet = build_rudi_response(seen, pkt_id, ReturnCode::OK)?;
                for place in [Trimmed::Fabric, Trimmed::LastHop] {
                    t.send_wire(&reverse.trimmed(&packet, place, 64))?;
                }
                Ok(())
            })
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
            let (seen, header) = t.need("a RUDI request", within, rudi_request)?;
            respond_with_data(t, (&seen, &header), code, &[7; 8])?;
            let within = t.soon();
            let ended = t.completion(read, within)?.map(|ended| ended.status);
            t.one_of(SES_ERR_003, &format!("the completion after data with {code}"), FAILED, ended);
            Ok(())
        }),
    rule("source-rudi/no-atomic", "The device does not send an atomic by RUDI")
        .checks(&[WIRE_AMO_004])
        .over(&[&ATOMIC_OPERATION])
        .run(|t| {
            let peer = t.peer(0)?;
            let sum = Post {
                atomic_opcode: Some("SUM".to_owned()),
                atomic_datatype: Some("UINT64".to_owned()),
                ..post_idempotent(t.value(&ATOMIC_OPERATION), peer, 8)
            };
            if let Err(gone @ Stop::Gone(_)) = t.post(sum) {
                return Err(gone);
            }
            t.expect_none(WIRE_AMO_004, "no atomic by RUDI", t.later(), rudi_request)?;
            rudi_write(t, 64)?;
            Ok(())
        }),
    rule("source-rudi/resources", "A RUDI request that has ended makes room for the next one")
        .checks(&[SES_DONE_001])
        .over(&[&END])
        .run(|t| {
            // Three requests end in turn on a device with room for two.
            let end = t.value(&END);
            if end == RudiEnd::TimedOut {
                t.timeout_limit()?;
            }
            t.try_configure("rudi_requests", 2)?;
            t.try_configure("max_operations", 2)?;
            for _ in 0..3 {
                let (written, seen, header) = rudi_write(t, 64)?;
                match end {
                    RudiEnd::Completed => respond(t, &seen, header.pkt_id(), ReturnCode::OK)?,
                    RudiEnd::Refused => respond(t, &seen, header.pkt_id(), ReturnCode::BAD_MKEY)?,
                    RudiEnd::TimedOut => {}
                }
                let within = if end == RudiEnd::TimedOut { t.until_given_up() } else { t.soon() };
                let ended = t.completion(written, within)?.map(|ended| ended.status);
                match end {
                    RudiEnd::Completed => t.check(SES_DONE_001, "the completion", Some(Status::Ok), ended),
                    _ => t.one_of(SES_DONE_001, "the completion", FAILED, ended),
                }
                t.settle()?;
                t.forget();
            }
            let (written, seen, header) = rudi_write(t, 64)?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(SES_DONE_001, written, Status::Ok)
        }),
];

/// Returns three different RUDI requests of the device, with their pkt_ids.
fn three_requests(t: &mut Test<'_>) -> Result<Vec<(RxPacket, u32)>, Stop> {
    let mut requests: Vec<(RxPacket, u32)> = Vec::new();
    while requests.len() < 3 {
        let (seen, header) = t.need("three RUDI requests", t.later(), rudi_request)?;
        if requests.iter().all(|(_, pkt_id)| *pkt_id != header.pkt_id()) {
            requests.push((seen, header.pkt_id()));
        }
    }
    Ok(requests)
}

/// Sends the response to a RUDI read, with data and this code.
fn respond_with_data(
    t: &mut Test<'_>,
    (seen, header): (&RxPacket, &Rudi),
    code: ReturnCode,
    bytes: &[u8],
) -> Outcome {
    let ses = read_data(seen, bytes.len(), code)?;
    let head = Rudi::response(header.pkt_id()).done()?;
    let packet = UetBuf { ses: Some(ses.into()), payload: bytes.to_vec(), ..UetBuf::new(head) };
    let reverse = reverse_path(t, seen);
    t.send(&reverse, &packet.consistent())
}

/// Expects no retransmission of the request with this pkt_id, while the device still sends another.
fn expect_no_retransmission(t: &mut Test<'_>, requirement: &Requirement, pkt_id: u32) -> Outcome {
    t.settle()?;
    t.expect_none(requirement, "no retransmission", 4 * t.rto(), |seen| {
        rudi_request(seen).filter(|request| request.pkt_id() == pkt_id)
    })?;
    rudi_write(t, 8)?;
    Ok(())
}
