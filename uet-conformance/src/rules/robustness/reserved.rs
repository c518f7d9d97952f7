//! Reserved bits: the device ignores them in received packets (sections 3.5.10, 3.4.2).

use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::reserved::with_reserved_bits;
use crate::rules::steps::{
    build_rudi_response, datagram_of, expect_rudi_response, idempotent_region, message_in_flight,
    post_idempotent, reverse_path, rudi_request,
};
use crate::{Part, RequestSession, rudi};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// A request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestForm {
    Write(Form),
    /// A packet in the middle of a write: it has payload_length and message_offset.
    WriteMiddle,
    Read(Form),
    Atomic,
    Send(Form),
    Tagged(Form),
}

const FORM: Axis<RequestForm> = axis("request").needing(&[
    ("write", RequestForm::Write(Form::Std), &[WRITE]),
    ("write-medium", RequestForm::Write(Form::Medium), &[WRITE]),
    ("write-small", RequestForm::Write(Form::Small), &[WRITE]),
    ("write-middle", RequestForm::WriteMiddle, &[WRITE]),
    ("read", RequestForm::Read(Form::Std), &[READ]),
    ("read-medium", RequestForm::Read(Form::Medium), &[READ]),
    ("read-small", RequestForm::Read(Form::Small), &[READ]),
    ("atomic", RequestForm::Atomic, &[ATOMIC]),
    ("send", RequestForm::Send(Form::Std), &[RECEIVE]),
    ("send-medium", RequestForm::Send(Form::Medium), &[RECEIVE]),
    ("send-small", RequestForm::Send(Form::Small), &[RECEIVE]),
    ("tagged", RequestForm::Tagged(Form::Std), &[TSEND, RECEIVE]),
    ("tagged-medium", RequestForm::Tagged(Form::Medium), &[TSEND, RECEIVE]),
]);

const READ_FORM: Axis<Form> = axis("form").values(&[("std", Form::Std), ("medium", Form::Medium)]);

pub(super) const RULES: &[Rule] = &[
    rule("robustness/reserved-bits", "A request with reserved bits set is served like any other")
        .checks(&[ROB_RSVD_001])
        .over(&[&FORM, &MODE, &START])
        .run(|t| {
            let (mut memory, mut session) = memory_and_session(t)?;
            // The first packet opens the context without reserved bits. It shows the number of places.
            let mut count = 1;
            for n in 0u8.. {
                if usize::from(n) > count {
                    break;
                }
                let (part, posted) = request(t, &memory, n)?;
                let mut bytes = Vec::new();
                let psn = session.ask_changed(t, &part, |packet| {
                    bytes = with_reserved_bits(packet);
                    match n {
                        0 => packet.to_bytes(),
                        n => bytes[usize::from(n) - 1].clone(),
                    }
                })?;
                count = bytes.len();
                session.accepted(t, ROB_RSVD_001, psn)?;
                expect_effect(t, &mut session, &mut memory, n, posted)?;
            }
            expect_memory(t, &memory, count)
        }),
    rule("robustness/reserved-bits-syn", "A first packet with reserved bits set opens a context")
        .checks(&[ROB_RSVD_001])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let sample = t.initiate();
            let count = with_reserved_bits(&sample.request(0).write(&region, 0, &[1])?.build()?).len();
            for k in 0..=count {
                let pdc = t.initiate();
                let packet = pdc.request(0).write(&region, k as u64, &[1])?.build()?;
                let bytes = match with_reserved_bits(&packet).into_iter().nth(k) {
                    Some(bytes) => bytes,
                    None => {
                        // The lowest bit of pdc_info has a meaning. Some sources name the highest.
                        let mut bytes = packet.to_bytes();
                        bytes[10] |= 0x60;
                        bytes
                    }
                };
                t.send_wire(&pdc.raw(&bytes))?;
                t.expect_ack(ROB_RSVD_001, &pdc, pdc.psn(0))?;
            }
            t.expect_memory(ROB_RSVD_001, &region, 0, &vec![1; count + 1])
        }),
    rule("robustness/reserved-bits-control", "A control packet with reserved bits set has its usual effect")
        .checks(&[ROB_RSVD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            t.need_noop()?;
            let (pdc, region) = t.open()?;
            let mut n = 1;
            let count = with_reserved_bits(&pdc.control(CtlType::NOOP, pdc.psn(1), 0)?).len();
            for k in 0..count {
                let noop = with_reserved_bits(&pdc.control(CtlType::NOOP, pdc.psn(n), 0)?);
                t.send_wire(&pdc.raw(&noop[k]))?;
                t.expect_cack(ROB_RSVD_001, &pdc, pdc.psn(n))?;
                // In a NOOP the place of clear_psn_offset is reserved: it clears no stored response.
                let refused = pdc.request(n + 1).clear(pdc.psn(n)).write_nowhere(&region, &[1])?;
                t.request(&pdc, refused.clone())?;
                let (first, _) = t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(n + 1)))?;
                let noop = with_reserved_bits(&pdc.control(CtlType::NOOP, pdc.psn(n + 2), 0)?);
                t.send_wire(&pdc.raw(&noop[k]))?;
                t.need("an ACK of the NOOP", t.soon(), |seen| seen.answers(&pdc, pdc.psn(n + 2)))?;
                t.forget();
                t.request(&pdc, refused.retx())?;
                let (again, _) = t.expect_answer(ROB_RSVD_001, &pdc, pdc.psn(n + 1))?;
                t.check(ROB_RSVD_001, "the stored return_code", first.return_code(), again.return_code());
                // A CLEAR_COMMAND with reserved bits clears it.
                let clear =
                    with_reserved_bits(&pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(n + 1).0)?);
                t.send_wire(&pdc.raw(&clear[k]))?;
                t.request(&pdc, pdc.request(n + 3).write(&region, 0, &[1])?)?;
                t.expect_cack(ROB_RSVD_001, &pdc, pdc.psn(n + 3))?;
                n += 4;
            }
            Ok(())
        }),
    rule("robustness/reserved-bits-rudi", "A RUDI request with reserved bits set is served")
        .checks(&[ROB_RSVD_001])
        .needs(&[RUDI, WRITE])
        .run(|t| {
            let (region, initiator) = idempotent_region(t)?;
            let write = |n: u8| rudi(n.into(), &initiator.request(0).write(&region, 0, &[n; 16])?);
            for n in 0..with_reserved_bits(&write(0)?).len() as u8 {
                let packets = with_reserved_bits(&write(n + 1)?);
                t.send_wire(&initiator.raw(&packets[usize::from(n)]))?;
                expect_rudi_response(t, ROB_RSVD_001, &initiator, u32::from(n) + 1)?;
                t.expect_memory(ROB_RSVD_001, &region, 0, &[n + 1; 16])?;
            }
            Ok(())
        }),
    rule("robustness/reserved-bits-read-data", "Read data with reserved bits set completes the read")
        .checks(&[ROB_RSVD_001])
        .needs(&[READ])
        .over(&[&READ_FORM, &MODE])
        .run(|t| {
            let (form, mode) = (t.value(&READ_FORM), t.value(&MODE));
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            // The reserved bits of each place in turn, and then all of them.
            let (mut count, mut n) = (1, 0);
            while n < count {
                let read = Post { mode, form: Some(form), want_data: true, ..post(PostKind::Read, peer, 40) };
                let posted = t.post(read)?;
                target.collect(t, n as u32 + 2)?;
                target.ack(t, n as u32 + 1)?;
                let header = target.data_header(n as u32 + 1, 40, 40, 0)?;
                let clean = target.pdc.request(n as u32).ses(header, &[n as u8; 40]).build()?;
                let bytes = with_reserved_bits(&clean);
                count = bytes.len();
                t.send_wire(&target.pdc.raw(&bytes[n]))?;
                let ended = t.ends_with(ROB_RSVD_001, posted, (Status::Ok, 40))?;
                let data = ended.and_then(|completion| completion.data).map_or(Vec::new(), |data| data.0);
                t.same_bytes(ROB_RSVD_001, "the data of the completion", &[n as u8; 40], &data);
                n += 1;
            }
            Ok(())
        }),
    rule("robustness/reserved-bits-ack", "An ACK with reserved bits set completes an operation")
        .checks(&[ROB_RSVD_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 40))?;
            target.collect(t, 2)?;
            // The lowest flag, and the flags of a congestion state. Some sources use the highest flag.
            let mut bytes = target.acking(1).build()?.to_bytes();
            bytes[1] |= 1;
            if bytes[0] >> 3 == PdsType::ACK_CC.code() {
                bytes[12] |= 0x0f;
            }
            t.send_wire(&target.pdc.raw(&bytes))?;
            t.ends(ROB_RSVD_001, written, Status::Ok)
        }),
    rule("robustness/reserved-bits-rudi-response", "A RUDI response with reserved bits completes a request")
        .checks(&[ROB_RSVD_001])
        .needs(&[RUDI, WRITE])
        .run(|t| {
            let peer = t.peer(0)?;
            let (mut count, mut n) = (1, 0);
            while n < count {
                let written = t.post(post_idempotent(PostKind::Write, peer, 64))?;
                let within = t.later();
                let new = |seen: &RxPacket| rudi_request(seen).filter(|request| !request.retx());
                let (seen, header) = t.need("a RUDI request", within, new)?;
                let reverse = reverse_path(t, &seen);
                let response = build_rudi_response(&seen, header.pkt_id(), ReturnCode::OK)?;
                let bytes = with_reserved_bits(&response);
                count = bytes.len();
                t.send_wire(&reverse.raw(&bytes[n]))?;
                t.ends(ROB_RSVD_001, written, Status::Ok)?;
                n += 1;
            }
            Ok(())
        }),
    rule("robustness/reserved-bits-datagram", "A datagram with reserved bits set fills a buffer")
        .checks(&[ROB_RSVD_001])
        .needs(&[UUD, DATAGRAM, RECEIVE])
        .run(|t| {
            let pdc = t.initiate();
            let (mut count, mut n) = (1, 0);
            while n < count {
                let posted = t.posted(room(64))?;
                let part = datagram_of(&[n as u8; 20]).whole()?;
                let clean = t.datagram(&pdc.request(0).ses(part.ses, &part.payload))?;
                let bytes = with_reserved_bits(&clean);
                count = bytes.len();
                t.send_wire(&pdc.raw(&bytes[n]))?;
                t.expect_received(ROB_RSVD_001, &posted, &[n as u8; 20])?;
                n += 1;
            }
            Ok(())
        }),
    rule("robustness/reserved-bits-nack", "A NACK with reserved bits set causes a retransmission")
        .checks(&[ROB_RSVD_001])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            let (mut target, written) = message_in_flight(t, 1)?;
            let nack = target.pdc.nack(NackCode::NO_RESOURCE, target.psn(1))?;
            let places = with_reserved_bits(&nack);
            let all = places.last().cloned().unwrap_or_default();
            t.send_wire(&target.pdc.raw(&all))?;
            let retransmission = target.expect_again(t, ROB_RSVD_001, 1, t.later())?;
            // A retransmission this early cannot come from the timeout. With a longer NACK_Retx_Time, the two
            // look alike.
            if t.nack_wait() * 2 + t.grace() < t.early() {
                let waited = retransmission.seen.at.saturating_sub(target.asked);
                let bound = crate::Bound::from(t.early()).from_parameter("70 % of rto_init_time");
                t.at_most(ROB_RSVD_001, "the time before the retransmission", bound, waited);
            }
            target.ack(t, 1)?;
            t.ends(ROB_RSVD_001, written, Status::Ok)
        }),
];

/// Memory that requests of every form can access.
struct Memory {
    /// Two regions with equal content. The region that resource_index names in a small request is open.
    regions: [Region; 2],
    /// The expected content of the region that the requests access.
    expected: Vec<u8>,
    /// The operand of an atomic request.
    operand: Vec<u8>,
    sum: Region,
}

fn memory_and_session(t: &mut Test<'_>) -> Result<(Memory, RequestSession), Stop> {
    const OPTIMIZED: u64 = 1 << 62;
    let (first, expected) = t.exposed(256, |region| ExposeRegion { key: Hex64(OPTIMIZED | 10), ..region })?;
    let (second, _) = t.exposed(256, |region| ExposeRegion { key: Hex64(OPTIMIZED), ..region })?;
    let session = t.session();
    let operand = t.operands(8, &[1]);
    let memory = Memory { regions: [first, second], expected, operand, sum: t.region(8)? };
    Ok((memory, session))
}

/// Returns request `n`, and the receive that it needs.
fn request(t: &mut Test<'_>, memory: &Memory, n: u8) -> Result<(Part, Option<PostedReceive>), Stop> {
    let (region, offset, id, data) = (&memory.regions[0], 8 * u64::from(n), u16::from(n) + 1, [n; 4]);
    let mut posted = None;
    let part = match t.value(&FORM) {
        RequestForm::Write(form) => Message::write(region, offset, &data).named(id).in_form(form)?,
        RequestForm::WriteMiddle => Message::write(region, 0, &data).named(id).whole()?.edit(|std| {
            let std = std.head(|head| head.som(false).eom(false).dc(false)).request_length(200);
            std.payload_length(4).message_offset(offset as u32)
        })?,
        RequestForm::Read(form) => Message::read(region, offset, 5).named(id).in_form(form)?,
        RequestForm::Atomic => {
            let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
            Message::atomic(&memory.sum, 0, sum, &memory.operand)?.named(id).whole()?
        }
        RequestForm::Send(form) => {
            posted = Some(t.posted(room(16))?);
            Message::send(&data).named(id).in_form(form)?
        }
        RequestForm::Tagged(form) => {
            posted = Some(t.posted(tagged_room(16, 0x7a))?);
            Message::tagged(0x7a, &data).named(id).in_form(form)?
        }
    };
    Ok((part, posted))
}

/// Expects the received or read data of request `n`, and notes its change of the region.
fn expect_effect(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    memory: &mut Memory,
    n: u8,
    posted: Option<PostedReceive>,
) -> Outcome {
    let (offset, data) = (8 * usize::from(n), [n; 4]);
    match (t.value(&FORM), posted) {
        (_, Some(posted)) => drop(t.expect_received(ROB_RSVD_001, &posted, &data)?),
        (RequestForm::Read(_), _) => {
            let pieces = session.data(t, ROB_RSVD_001, 5)?;
            let read: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
            t.same_bytes(ROB_RSVD_001, "the data", &memory.expected[offset..offset + 5], &read);
        }
        (RequestForm::Atomic, _) => {}
        _ => memory.expected[offset..offset + 4].copy_from_slice(&data),
    }
    Ok(())
}

/// Expects the content of memory after requests with reserved bits at `count` places.
fn expect_memory(t: &mut Test<'_>, memory: &Memory, count: usize) -> Outcome {
    let Memory { regions, expected, sum, .. } = memory;
    match t.value(&FORM) {
        RequestForm::Atomic => {
            let expected = t.elements(8, &[count as u128 + 1]);
            t.expect_memory(ROB_RSVD_001, sum, 0, &expected)
        }
        RequestForm::Write(Form::Small) => {
            let second = t.memory(&regions[1], 0, 256)? == *expected;
            t.expect_memory(ROB_RSVD_001, &regions[usize::from(second)], 0, expected)
        }
        _ => t.expect_memory(ROB_RSVD_001, &regions[0], 0, expected),
    }
}
