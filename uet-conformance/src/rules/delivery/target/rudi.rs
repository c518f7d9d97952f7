//! RUDI requests at a target: without a context, delivered at least once (sections 3.5.6 and 3.5.7).

use crate::prelude::*;
use crate::rules::steps::{HEADER, expect_rudi_response, idempotent_region, rudi_response};
use crate::{Wire, rudi};
use uet_control::Permission;

/// A permission that the region does not grant, and true for a read.
const DENIED: Axis<(Permission, bool)> = axis("denied")
    .needing(&[("write", (Permission::Write, false), &[WRITE]), ("read", (Permission::Read, true), &[READ])]);

/// True if the message is a read.
const TRANSFER: Axis<bool> =
    axis("operation").needing(&[("write", false, &[WRITE]), ("read", true, &[READ])]);

/// The reason to refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RudiRefusal {
    Key,
    Job,
    Process,
    Index,
    /// The access begins inside its region and ends outside.
    AcrossEnd,
    /// The end of the access wraps around.
    Wraps,
}

const REFUSAL: Axis<RudiRefusal> = axis("reason").values(&[
    ("key", RudiRefusal::Key),
    ("job", RudiRefusal::Job),
    ("process", RudiRefusal::Process),
    ("index", RudiRefusal::Index),
    ("across-the-end", RudiRefusal::AcrossEnd),
    ("wraps-at-2-64", RudiRefusal::Wraps),
]);

const SIZE: Axis<fn(usize) -> usize> = axis("size").values(&[
    ("0", |_| 0),
    ("1", |_| 1),
    ("mtu-minus-1", |mtu| mtu - 1),
    ("mtu", |mtu| mtu),
    ("mtu-plus-1", |mtu| mtu + 1),
    ("3-mtu", |mtu| 3 * mtu),
]);

const ARRIVAL: Axis<bool> = axis("arrival").values(&[("in-order", false), ("reversed", true)]);

/// The return codes of a response to a successful request.
const SUCCESS: &[Option<ReturnCode>] = &[None, Some(ReturnCode::NULL), Some(ReturnCode::OK)];

/// The bit of a memory key that marks a region as safe for RUDI.
const SAFE: u64 = 1 << 63;

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUDI])
}

pub(super) const RULES: &[Rule] = &[
    rule("rudi/write", "A RUDI write is delivered and its response carries its pkt_id")
        .checks(&[PDS_RUDI_002])
        .run(|t| {
            let (region, initiator) = idempotent_region(t)?;
            send(t, &initiator, 0xdead_beef, initiator.request(0).write(&region, 8, &[7; 100])?)?;
            let seen = expect_rudi_response(t, PDS_RUDI_002, &initiator, 0xdead_beef)?;
            t.one_of(PDS_RUDI_002, "return_code", SUCCESS, seen.return_code());
            t.expect_memory(PDS_RUDI_002, &region, 0, &[&[0; 8][..], &[7; 100], &[0; 8]].concat())
        }),
    rule("rudi/any-id", "A target accepts any pkt_id in any order").checks(&[PDS_RUDI_002]).run(|t| {
        let (region, initiator) = idempotent_region(t)?;
        for id in [u32::MAX, 0, 1, 0x8000_0000, 0x7fff_ffff] {
            send(t, &initiator, id, initiator.request(0).write(&region, 0, &[1])?)?;
            let seen = expect_rudi_response(t, PDS_RUDI_002, &initiator, id)?;
            t.one_of(PDS_RUDI_002, "return_code", SUCCESS, seen.return_code());
        }
        Ok(())
    }),
    rule("rudi/retransmission", "A retransmitted RUDI request is delivered and answered again")
        .checks(&[PDS_RUDI_003, SES_MODE_003, PDS_RUDI_002])
        .run(|t| {
            let (region, initiator) = idempotent_region(t)?;
            let first = initiator.request(0).write(&region, 0, &[1; 16])?;
            send(t, &initiator, 1, first.clone())?;
            expect_rudi_response(t, PDS_RUDI_002, &initiator, 1)?;
            send(t, &initiator, 2, initiator.request(0).write(&region, 0, &[2; 16])?)?;
            expect_rudi_response(t, PDS_RUDI_002, &initiator, 2)?;
            t.expect_memory(PDS_RUDI_002, &region, 0, &[2; 16])?;
            send(t, &initiator, 1, first.retx())?;
            let seen = expect_rudi_response(t, PDS_RUDI_003, &initiator, 1)?;
            t.one_of(SES_MODE_003, "return_code", SUCCESS, seen.return_code());
            t.expect_memory(PDS_RUDI_003, &region, 0, &[1; 16])
        }),
    rule("rudi/one-response", "Each of many RUDI requests gets exactly one response")
        .checks(&[PDS_RUDI_002])
        .run(|t| {
            const COUNT: u32 = 100;
            let (region, initiator) = idempotent_region(t)?;
            for id in 0..COUNT {
                send(t, &initiator, id, initiator.request(0).write(&region, u64::from(id), &[id as u8])?)?;
            }
            let seen = t.gather(t.soon())?;
            if seen.is_empty() {
                return Err(Stop::Inconclusive("no answer came".into()));
            }
            for id in 0..COUNT {
                let count = seen.iter().filter(|seen| rudi_response(seen, &initiator, id).is_some()).count();
                t.check(PDS_RUDI_002, &format!("responses with pkt_id {id}:"), 1, count);
            }
            let expected: Vec<u8> = (0..COUNT as u8).collect();
            t.expect_memory(PDS_RUDI_002, &region, 0, &expected)
        }),
    rule("rudi/frees-resources", "An answered or refused RUDI request frees its resources")
        .checks(&[PDS_RUDI_002])
        .over(&[&CARRIER])
        .run(|t| {
            // Send more requests, one after the other, than the device can hold at a time.
            let set = t.try_configure("rudi_requests", 4)?;
            let most = if set { 4 } else { t.parameter("rudi_requests").min(4096) as u32 };
            // Then a write with header data has no room for its report.
            let refuses = t.try_configure("max_written", 0)?;
            let (region, initiator) = idempotent_region(t)?;
            if refuses {
                for id in 0..most + 8 {
                    let ses =
                        region.request(Opcode::UET_WRITE).head(|head| head.som(true).eom(true).hd(true));
                    let ses = ses.request_length(1).header_data(7).done()?;
                    send(t, &initiator, id, initiator.request(0).ses(ses, &[1]))?;
                }
                t.pause(t.grace())?;
                t.forget();
            }
            for id in 0..most + 8 {
                send(t, &initiator, id, initiator.request(0).write(&region, 0, &[1])?)?;
                expect_rudi_response(t, PDS_RUDI_002, &initiator, id)?;
            }
            Ok(())
        }),
    rule("rudi/read", "A RUDI response carries the read data, up to an MTU")
        .checks(&[SES_READ_008])
        .needs(&[RUDI, READ])
        .run(|t| {
            let key = Hex64(SAFE | 0xacce5);
            let (region, held) = t.exposed(1 << 14, |region| ExposeRegion { key, ..region })?;
            let initiator = t.initiate();
            let mtu = t.mtu();
            for (id, offset, length) in [(1, 0, 1), (2, 100, 64), (3, 512, mtu)] {
                send(t, &initiator, id, initiator.request(0).read(&region, offset as u64, length as u32)?)?;
                let seen = expect_rudi_response(t, SES_READ_008, &initiator, id)?;
                t.same_bytes(SES_READ_008, "the read data", &held[offset..offset + length], seen.payload());
            }
            Ok(())
        }),
    rule("rudi/unsafe-region", "A RUDI request cannot access a region that is not marked as safe")
        .checks(&[SES_MODE_002])
        .run(|t| {
            let (region, held) = t.patterned(4096)?;
            let initiator = t.initiate();
            let attempts = [
                initiator.request(0).write(&region, 0, &[0; 16])?,
                initiator.request(0).read(&region, 0, 16)?,
            ];
            for (id, request) in (1..).zip(attempts) {
                send(t, &initiator, id, request)?;
                let seen = expect_rudi_response(t, SES_MODE_002, &initiator, id)?;
                t.check(SES_MODE_002, "return_code", Some(ReturnCode::OP_VIOLATION), seen.return_code());
                t.check(SES_MODE_002, "bytes of data", 0, seen.payload().len());
            }
            t.still_holds(SES_MODE_002, &region, &held)
        }),
    rule("rudi/atomic", "A RUDI atomic does not change a region that is not marked as safe")
        .checks(&[SES_MODE_002])
        .needs(&[RUDI, ATOMIC])
        .run(|t| {
            // The rules of the atomics judge a region that is marked as safe.
            let (region, held) = t.patterned(64)?;
            let initiator = t.initiate();
            send(t, &initiator, 1, initiator.request(0).add(&region, 0, &t.operands(8, &[1]), false)?)?;
            let seen = expect_rudi_response(t, SES_MODE_002, &initiator, 1)?;
            t.holds(SES_MODE_002, "the response has an error code", seen.is_error(), seen.uet());
            t.still_holds(SES_MODE_002, &region, &held)
        }),
    rule("rudi/error", "A RUDI request without a region gets an error for each transmission")
        .checks(&[PDS_RUDI_002, PDS_RUDI_003])
        .over(&[&CARRIER])
        .run(|t| {
            let (region, initiator) = idempotent_region(t)?;
            let nowhere = initiator.request(0).write_nowhere(&region, &[1])?;
            for (requirement, retx) in [(PDS_RUDI_002, false), (PDS_RUDI_003, true), (PDS_RUDI_003, true)] {
                send(t, &initiator, 1, Request { retx, ..nowhere.clone() })?;
                let seen = expect_rudi_response(t, requirement, &initiator, 1)?;
                t.holds(requirement, "the response has an error code", seen.is_error(), seen.uet());
            }
            Ok(())
        }),
    rule("rudi/two-sources", "One pkt_id from two addresses names two requests")
        .checks(&[PDS_RUDI_001, PDS_RUDI_002])
        .needs(&[RUDI, TWO_ADDRESSES])
        .run(|t| {
            let (region, one) = idempotent_region(t)?;
            let two = t.initiate_from(1)?;
            send(t, &one, 7, one.request(0).write(&region, 0, &[1; 16])?)?;
            send(t, &two, 7, two.request(0).write(&region, 16, &[2; 16])?)?;
            for initiator in [&one, &two] {
                let seen = expect_rudi_response(t, PDS_RUDI_001, initiator, 7)?;
                t.one_of(PDS_RUDI_002, "return_code", SUCCESS, seen.return_code());
            }
            t.expect_memory(PDS_RUDI_001, &region, 0, &[[1; 16], [2; 16]].concat())
        }),
    rule("rudi/mark", "A RUDI response reports whether its request carried a congestion mark")
        .checks(&[PDS_ACK_002])
        .needs(&[RUDI, ECN, SET_ECN])
        .over(&[&CARRIER])
        .run(|t| {
            let (region, initiator) = idempotent_region(t)?;
            for (id, marked, retx) in [(1, false, false), (2, true, false), (3, false, true), (4, true, true)]
            {
                let request = Request { retx, ..initiator.request(0).write(&region, 0, &[1])? };
                t.send_wire(&Wire { marked, ..initiator.wire(&rudi(id, &request)?) })?;
                let seen = expect_rudi_response(t, PDS_ACK_002, &initiator, id)?;
                // The sources require retx only of ACKs and NACKs.
                let reported = seen.rudi().and_then(|response| response.m());
                t.check(PDS_ACK_002, "flag m (marked)", Some(marked), reported);
            }
            Ok(())
        }),
    rule("rudi/with-context", "RUDI requests and a context do not affect each other")
        .checks(&[PDS_RUDI_002, PDS_PSN_002])
        .needs(&[RUDI, WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let (region, _) = idempotent_region(t)?;
            let mut pdc = t.initiate();
            t.establish(&mut pdc, &region)?;
            for n in 1..=10 {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[n as u8])?)?;
                // pkt_id and PSN are the same number.
                let id = pdc.psn(n).0;
                send(t, &pdc, id, pdc.request(n).write(&region, 64 + u64::from(n), &[n as u8])?)?;
                expect_rudi_response(t, PDS_RUDI_002, &pdc, id)?;
            }
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(10))?;
            let numbers: Vec<u8> = (1..=10).collect();
            t.expect_memory(PDS_PSN_002, &region, 1, &numbers)?;
            t.expect_memory(PDS_RUDI_002, &region, 65, &numbers)
        }),
    rule("rudi/denied", "A RUDI request without permission neither changes nor reads memory")
        .checks(&[SES_MEM_003, PDS_RUDI_003, SES_MEM_005])
        .over(&[&DENIED])
        .run(|t| {
            let (denied, reads) = t.value(&DENIED);
            let all = [Permission::Read, Permission::Write, Permission::Atomic];
            let permissions: Vec<Permission> = all.into_iter().filter(|it| *it != denied).collect();
            let key = Hex64(SAFE | 0xacce5);
            let (region, held) = t.exposed(64, |region| ExposeRegion { key, permissions, ..region })?;
            let initiator = t.initiate();
            let request = if reads {
                initiator.request(0).read(&region, 8, 16)?
            } else {
                initiator.request(0).write(&region, 8, &[0; 16])?
            };
            for retx in [false, true] {
                send(t, &initiator, 1, Request { retx, ..request.clone() })?;
                let seen = expect_rudi_response(t, PDS_RUDI_003, &initiator, 1)?;
                let codes: Vec<_> = crate::region::DENIED.iter().copied().map(Some).collect();
                t.one_of(SES_MEM_005, "return_code", &codes, seen.return_code());
                t.check(SES_MEM_003, "bytes of data", 0, seen.payload().len());
            }
            t.still_holds(SES_MEM_003, &region, &held)
        }),
    rule("rudi/unreachable", "A RUDI request to an unknown object or outside its region has no effect")
        .checks(&[SES_ADDR_004, SES_ADDR_005, SES_ADDR_006, SES_MEM_004, SES_MEM_005])
        .over(&[&TRANSFER, &REFUSAL, &HEADER])
        .run(|t| {
            let key = Hex64(SAFE | 0xacce5);
            let (region, held) = t.exposed(64, |region| ExposeRegion { key, ..region })?;
            let initiator = t.initiate();
            let (message, requirement, code) = unreachable_message(t, &region);
            let part = if t.value(&HEADER) { message.medium()? } else { message.whole()? };
            let request = initiator.request(0).ses(part.ses, &part.payload);
            for retx in [false, true] {
                send(t, &initiator, 1, Request { retx, ..request.clone() })?;
                let seen = expect_rudi_response(t, requirement, &initiator, 1)?;
                match code {
                    Some(code) => t.check(requirement, "return_code", Some(code), seen.return_code()),
                    // Open: the code for an access outside its region.
                    None => t.holds(requirement, "an error code", seen.is_error(), seen.uet()),
                }
                t.check(requirement, "bytes of data", 0, seen.payload().len());
            }
            t.still_holds(requirement, &region, &held)
        }),
    rule("rudi/size", "RUDI requests transfer whole messages in any order and with duplicates")
        .checks(&[PDS_RUDI_003, SES_PLACE_001, SES_READ_008])
        .over(&[&TRANSFER, &SIZE, &ARRIVAL, &HEADER])
        .run(|t| {
            let (mtu, reads) = (t.mtu(), t.value(&TRANSFER));
            let length = t.value(&SIZE)(mtu);
            let key = Hex64(SAFE | 0xacce5);
            let (region, mut memory) =
                t.exposed(length as u64 + 16, |region| ExposeRegion { key, ..region })?;
            let data: Vec<u8> = pattern(17).take(length).collect();
            let message = if reads {
                Message::read(&region, 8, length as u32)
            } else {
                Message::write(&region, 8, &data)
            };
            let medium = t.value(&HEADER) && length <= mtu;
            let parts = if medium { vec![message.medium()?] } else { message.parts(mtu)? };
            let initiator = t.initiate();
            let mut order: Vec<usize> = (0..parts.len()).collect();
            if t.value(&ARRIVAL) {
                order.reverse();
            }
            // Each packet is sent twice, the second time after its response.
            for retx in [false, true] {
                for k in &order {
                    let (part, id) = (&parts[*k], 0x1000 + *k as u32);
                    let request =
                        Request { ext: part.ext, ..initiator.request(0).ses(part.ses, &part.payload) };
                    send(t, &initiator, id, Request { retx, ..request })?;
                    let seen = expect_rudi_response(t, PDS_RUDI_003, &initiator, id)?;
                    t.one_of(PDS_RUDI_003, "return_code", SUCCESS, seen.return_code());
                    if reads {
                        let start = 8 + k * mtu;
                        let held = &memory[start..(start + mtu).min(8 + length)];
                        t.same_bytes(SES_READ_008, "the read data", held, seen.payload());
                    }
                }
            }
            if !reads {
                memory[8..8 + length].copy_from_slice(&data);
            }
            t.expect_memory(SES_PLACE_001, &region, 0, &memory)
        }),
];

/// Returns a message for 16 bytes that must be refused, the requirement, and the code unless it is open.
fn unreachable_message(t: &Test<'_>, region: &Region) -> (Message, &'static Requirement, Option<ReturnCode>) {
    let message =
        if t.value(&TRANSFER) { Message::read(region, 8, 16) } else { Message::write(region, 8, &[0; 16]) };
    match t.value(&REFUSAL) {
        RudiRefusal::Key => (message.selector(region.key ^ 1), SES_MEM_005, Some(ReturnCode::BAD_MKEY)),
        RudiRefusal::Job => {
            (Message { job: 0xab_cdef, ..message }, SES_ADDR_004, Some(ReturnCode::BAD_JOB_ID))
        }
        RudiRefusal::Process => {
            (Message { process: 0xabc, ..message }, SES_ADDR_005, Some(ReturnCode::BAD_PID))
        }
        RudiRefusal::Index => {
            (Message { index: 0xabc, ..message }, SES_ADDR_006, Some(ReturnCode::BAD_INDEX))
        }
        RudiRefusal::AcrossEnd => (Message { offset: 56, ..message }, SES_MEM_004, None),
        RudiRefusal::Wraps => (Message { offset: u64::MAX - 3, ..message }, SES_MEM_004, None),
    }
}

/// Sends a RUDI request with this `pkt_id`.
fn send(t: &mut Test<'_>, initiator: &Pdc, id: u32, request: Request) -> Outcome {
    t.send(initiator, &rudi(id, &request)?)
}
