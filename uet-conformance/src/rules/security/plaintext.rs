//! Plaintext packets from a peer that a secure domain covers (section 3.7).

use super::steps::{
    CONTROL, Spoil, check_write, control_packet, establish_as, expect_control_ignored, expect_ended_by_ack,
    expect_no_answer, expect_no_effect, expect_response_kept, ignore_plaintext_nacks, open_secured,
    plain_retransmission, plain_write, rule, write_in_flight,
};
use crate::SECURED;
use crate::prelude::*;
use crate::rules::steps::{expect_rudi_response, idempotent_region};

/// A NACK that ends or restarts a context.
const NACK: Axis<NackCode> = axis("nack").values(&[
    ("closing-in-error", NackCode::CLOSING_IN_ERR),
    ("unknown-context", NackCode::INV_DPDCID),
    ("response-lost", NackCode::GTD_RESP_UNAVAIL),
    ("new-start-psn", NackCode::NEW_START_PSN),
]);

/// True if the device requires protection of all packets, so plaintext packets do not reach any context.
const REQUIRED: Axis<bool> = axis("require-protection").values(&[("yes", true), ("no", false)]);

/// Leaves a packet without protection.
const PLAINTEXT: Spoil = |_, wire| Ok(wire.clone());

pub(super) const RULES: &[Rule] = &[
    rule("tss-plaintext/request", "A secured context takes in no plaintext request under any policy")
        .checks(&[TSS_CLEAR_002])
        .over(&[&SECURED, &REQUIRED])
        .run(|t| {
            configure_protection(t, t.value(&REQUIRED))?;
            let (pdc, region) = open_secured(t)?;
            check_write(t, TSS_CLEAR_002, &pdc, &region, 1)?;
            t.settle()?;
            t.send_as_it_is(&plain_retransmission(&pdc, &region, 1)?)?;
            t.send_as_it_is(&plain_write(&pdc, &region, 2)?)?;
            // A device may answer that it does not know the context of a plaintext packet.
            t.expect_none(TSS_CLEAR_002, "no ACK", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(1)))?;
            t.forget();
            t.check_memory(TSS_CLEAR_002, &region, 128, &[0; 32])?;
            check_write(t, TSS_CLEAR_002, &pdc, &region, 2)
        }),
    rule("tss-plaintext/opening", "A device that requires protection drops a plaintext opening packet")
        .checks(&[TSS_CLEAR_001])
        .run(|t| {
            configure_protection(t, true)?;
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let stranger = t.initiate();
            t.send_as_it_is(&plain_write(&stranger, &region, 0)?)?;
            expect_no_answer(t, TSS_CLEAR_001)?;
            t.check_memory(TSS_CLEAR_001, &region, 0, &[0; 32])?;
            let mut pdc = t.initiate();
            establish_as(t, TSS_CLEAR_001, &mut pdc, &region)
        }),
    rule("tss-plaintext/rudi", "A device that requires protection drops a plaintext RUDI request")
        .checks(&[TSS_CLEAR_001])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            configure_protection(t, true)?;
            t.secure(t.value(&SECURED))?;
            let (region, pdc) = idempotent_region(t)?;
            let request = crate::rudi(0x4321, &pdc.request(0).write(&region, 0, &[7; 8])?)?;
            t.send_as_it_is(&pdc.wire(&request))?;
            expect_no_answer(t, TSS_CLEAR_001)?;
            t.check_memory(TSS_CLEAR_001, &region, 0, &[0; 8])?;
            // Protected, the request takes effect.
            t.send(&pdc, &request)?;
            expect_rudi_response(t, TSS_CLEAR_001, &pdc, 0x4321)?;
            t.expect_memory(TSS_CLEAR_001, &region, 0, &[7; 8])
        }),
    rule("tss-plaintext/control", "A plaintext control packet does not reach a secured context")
        .checks(&[TSS_CLEAR_002])
        .over(&[&SECURED, &CONTROL, &REQUIRED])
        .run(|t| {
            let required = t.value(&REQUIRED);
            configure_protection(t, required)?;
            let (pdc, region) = open_secured(t)?;
            let wire = pdc.wire(&control_packet(&pdc, t.value(&CONTROL), 1)?);
            if required {
                return expect_no_effect(t, [TSS_CLEAR_002, TSS_CLEAR_002], (&pdc, &region), 1, &[wire]);
            }
            t.settle()?;
            t.send_as_it_is(&wire)?;
            // A device may answer that it does not know the context of a plaintext packet.
            t.expect_none(TSS_CLEAR_002, "no ACK", t.soon(), |seen| {
                seen.ack().filter(|_| seen.is_for(&pdc))
            })?;
            t.forget();
            check_write(t, TSS_CLEAR_002, &pdc, &region, 1)
        }),
    rule(
        "tss-plaintext/control-of-target",
        "A plaintext control packet of a target does not reach its context",
    )
    .checks(&[TSS_CLEAR_002])
    .over(&[&SECURED, &CONTROL, &REQUIRED])
    .run(|t| {
        configure_protection(t, t.value(&REQUIRED))?;
        t.secure(t.value(&SECURED))?;
        expect_control_ignored(t, TSS_CLEAR_002, t.value(&CONTROL), PLAINTEXT)
    }),
    rule("tss-plaintext/clear", "A plaintext packet releases no stored response of a secured context")
        .checks(&[TSS_CLEAR_002])
        .over(&[&SECURED, &REQUIRED])
        .run(|t| {
            configure_protection(t, t.value(&REQUIRED))?;
            let (pdc, region) = open_secured(t)?;
            expect_response_kept(t, TSS_CLEAR_002, (&pdc, &region), PLAINTEXT)
        }),
    rule("tss-plaintext/ack", "A plaintext ACK does not end an operation on a secured context")
        .checks(&[TSS_CLEAR_002])
        .over(&[&SECURED, &REQUIRED])
        .run(|t| {
            configure_protection(t, t.value(&REQUIRED))?;
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            let clear = target.pdc.wire(&target.acking(0).build()?);
            t.send_as_it_is(&clear)?;
            expect_ended_by_ack(t, TSS_CLEAR_002, &mut target, written)
        }),
    rule("tss-plaintext/nack", "A plaintext NACK does not end a secured context")
        .checks(&[TSS_CLEAR_002])
        .over(&[&SECURED, &NACK, &REQUIRED])
        .run(|t| {
            configure_protection(t, t.value(&REQUIRED))?;
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            let clear = target.pdc.nack(t.value(&NACK), target.psn(0))?;
            t.send_as_it_is(&target.pdc.wire(&clear))?;
            expect_ended_by_ack(t, TSS_CLEAR_002, &mut target, written)
        }),
    rule("tss-plaintext/nack-without-context", "A plaintext NACK without a context ends no secured context")
        .checks(&[TSS_CLEAR_002])
        .over(&[&SECURED, &NACK])
        .run(|t| {
            ignore_plaintext_nacks(t)?;
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            let pdc = target.pdc.clone();
            let nack = uet_wire::pds::Nack::build(t.value(&NACK)).nack_psn(target.psn(0));
            let nack = nack.dpdcid(pdc.remote.unwrap_or_default()).done()?;
            t.send_as_it_is(&pdc.wire(&UetBuf::new(nack)))?;
            expect_ended_by_ack(t, TSS_CLEAR_002, &mut target, written)
        }),
    rule("tss-plaintext/retransmission", "A device never retransmits a secured packet in plaintext")
        .checks(&[TSS_CLEAR_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            for _ in 0..2 {
                target.expect_again(t, TSS_CLEAR_002, 0, t.later() * 2)?;
            }
            let clear = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            target.ack(t, 0)?;
            t.ends(TSS_CLEAR_002, written, Status::Ok)
        }),
    rule("tss-plaintext/reply", "A secured device that receives plaintext packets protects its replies")
        .checks(&[TSS_CLEAR_002])
        .run(|t| {
            configure_protection(t, false)?;
            let (pdc, region) = open_secured(t)?;
            t.send_as_it_is(&plain_write(&pdc, &region, 1)?)?;
            t.pause(t.soon())?;
            t.forget();
            let before = t.shield()?.clear;
            check_write(t, TSS_CLEAR_002, &pdc, &region, 1)?;
            let after = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear on the secured context:", 0, after - before);
            Ok(())
        }),
];

/// Sets whether the device requires protection. Skips the rule if the device rejects that.
fn configure_protection(t: &mut Test<'_>, required: bool) -> Outcome {
    t.configure("require_protection", required)
}
