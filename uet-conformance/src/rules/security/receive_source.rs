//! An initiator that gets packets that do not open: read data, RUDI responses, ACKs and NACKs (section 3.7).

use super::header::secure_with_offset;
use super::receive::send_trimmed;
use super::steps::{FLAW, Flaw, READABLE, expect_ended_by_ack, flip_bit, rule, send_flawed, write_in_flight};
use crate::SECURED;
use crate::prelude::*;
use crate::rules::steps::{build_rudi_response, post_idempotent, reverse_path, rudi_request};

/// The number of bytes of a read.
const LENGTH: usize = 200;

/// The return code of the response that does not open.
const CODE: Axis<ReturnCode> =
    axis("code").values(&[("ok", ReturnCode::OK), ("bad-mkey", ReturnCode::BAD_MKEY)]);

pub(super) const RULES: &[Rule] = &[
    rule("tss-receive/flawed-data", "Read data that does not open is neither delivered nor acknowledged")
        .checks(&[TSS_ICV_002, TSS_CLEAR_002, TSS_SDI_001])
        .needs(&[RUD, WRITE, READ, TSS])
        .over(&[&SECURED, &FLAW, &READABLE])
        .run(|t| {
            let requirement = match t.value(&FLAW) {
                Flaw::WrongIcv => TSS_ICV_002,
                Flaw::Plaintext => TSS_CLEAR_002,
                Flaw::UnknownDomain => TSS_SDI_001,
            };
            secure_with_offset(t, t.value(&READABLE))?;
            let peer = t.peer(0)?;
            let data: Vec<u8> = pattern(9).take(LENGTH).collect();
            let read = t.post(Post { want_data: true, ..post(PostKind::Read, peer, LENGTH) })?;
            let target = Target::accept(t)?;
            target.ack(t, 0)?;
            t.settle()?;
            let ses = target.data_header(0, LENGTH, LENGTH, 0)?;
            let wrong = target.pdc.request(0).ses(ses, &[0xbb; LENGTH]).build()?;
            send_flawed(t, &target.pdc.wire(&wrong), t.value(&FLAW))?;
            // A device may answer that it does not know the context of a plaintext packet.
            t.expect_none(requirement, "an ACK of the data", t.soon(), |seen| {
                seen.acknowledges(&target.pdc, target.psn(0))
            })?;
            t.is_open(requirement, read)?;
            t.forget();
            target.give(t, 0, ses, &data)?;
            t.expect_ack(requirement, &target.pdc, target.psn(0))?;
            let ended = t.ends_with(requirement, read, (Status::Ok, LENGTH as u64))?;
            let held = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
            t.same_bytes(requirement, "the data of the read", &data, &held);
            Ok(())
        }),
    rule("tss-receive/flawed-rudi-response", "A RUDI response that does not open ends no request")
        .checks(&[TSS_ICV_002, TSS_CLEAR_001, TSS_SDI_001])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .over(&[&SECURED, &FLAW, &CODE])
        .run(|t| {
            let (flaw, code) = (t.value(&FLAW), t.value(&CODE));
            let requirement = match flaw {
                Flaw::WrongIcv => TSS_ICV_002,
                Flaw::Plaintext => TSS_CLEAR_001,
                Flaw::UnknownDomain => TSS_SDI_001,
            };
            if flaw == Flaw::Plaintext {
                t.configure("require_protection", true)?;
            }
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let written = t.post(post_idempotent(PostKind::Write, peer, 64))?;
            let (seen, header) = t.need("a RUDI request", t.later(), rudi_request)?;
            let reverse = reverse_path(t, &seen);
            let wrong = build_rudi_response(&seen, header.pkt_id(), code)?;
            send_flawed(t, &reverse.wire(&wrong), flaw)?;
            t.settle()?;
            t.is_open(requirement, written)?;
            t.send(&reverse, &build_rudi_response(&seen, header.pkt_id(), ReturnCode::OK)?)?;
            t.ends(requirement, written, Status::Ok)
        }),
    rule("tss-receive/unknown-domain-answer", "An ACK or NACK of an unknown domain ends no operation")
        .checks(&[TSS_SDI_001])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            let ack = target.acking(0).build()?;
            let nack = target.pdc.nack(NackCode::CLOSING_IN_ERR, target.psn(0))?;
            for packet in [ack, nack] {
                send_flawed(t, &target.pdc.wire(&packet), Flaw::UnknownDomain)?;
            }
            expect_ended_by_ack(t, TSS_SDI_001, &mut target, written)
        }),
    rule("tss-receive/trimmed-ack", "A trimmed secured ACK acknowledges nothing")
        .checks(&[TSS_TRIM_001])
        .needs(&[RUD, WRITE, TSS, TRIM])
        .over(&[&SECURED, &READABLE])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (written, mut target) = write_in_flight(t)?;
            let ack = target.acking(0).build()?;
            let sealed = t.sealed(&target.pdc.wire(&ack))?;
            send_trimmed(t, &sealed)?;
            expect_ended_by_ack(t, TSS_TRIM_001, &mut target, written)
        }),
    rule("tss-header/reserved-in-ack", "An initiator accepts an authentic ACK with the reserved bit set")
        .checks(&[TSS_HDR_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, target) = write_in_flight(t)?;
            let ack = target.acking(0).build()?;
            let mut wire = t.unsealed_wire(&target.pdc.wire(&ack))?;
            flip_bit(&mut wire, 6);
            t.seal(&mut wire)?;
            t.send_as_it_is(&wire)?;
            t.ends(TSS_HDR_002, written, Status::Ok)
        }),
];
