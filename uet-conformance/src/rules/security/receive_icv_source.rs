//! An initiator that gets packets with a wrong ICV: they end nothing and change nothing (section 3.7). Some
//! domains leave the header of packet delivery readable.

use super::header::secure_with_offset;
use super::steps::{
    CONTROL, NEEDS, READABLE, expect_control_ignored, expect_ended_by_ack, with_wrong_icv, write_in_flight,
};
use crate::SECURED;
use crate::prelude::*;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED, &READABLE])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-receive/wrong-icv-of-target", "Control packets of a target with a wrong ICV have no effect")
        .checks(&[TSS_ICV_002])
        .over(&[&SECURED, &CONTROL, &READABLE])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            expect_control_ignored(t, TSS_ICV_002, t.value(&CONTROL), with_wrong_icv)
        }),
    rule("tss-receive/wrong-icv-window", "An ACK with a wrong ICV opens no send window")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            // If possible, the window is small and congestion control does not limit the device.
            t.try_configure("default_mpr", 1)?;
            t.try_configure("congestion", "none")?;
            secure_with_offset(t, t.value(&READABLE))?;
            let range = t.default_range().min(4096);
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, (range as usize + 40) * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.watch(t, t.rto() / 2)?;
            let highest = target.highest();
            require(highest + 1 == range, "the device stops before the end of its window")?;
            let ack = target.acking(highest);
            let ack = AckBuilder { mpr: 255, nscc: ack.nscc.or(Some(Default::default())), ..ack };
            let forged = with_wrong_icv(t, &target.pdc.wire(&ack.build()?))?;
            t.send_as_it_is(&forged)?;
            let (what, during) = ("a new packet for an ACK with a wrong ICV", t.grace());
            target.expect_none(t, TSS_ICV_002, what, during, |n| n > highest)?;
            target.ack(t, highest)?;
            target.expect_new(t, TSS_ICV_002, highest + 1)?;
            Ok(())
        }),
    rule("tss-receive/wrong-icv-timer", "Packets with a wrong ICV do not keep a device from retransmitting")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (written, mut target) = write_in_flight(t)?;
            let ack = with_wrong_icv(t, &target.pdc.wire(&target.acking(0).build()?))?;
            let (step, until) = (t.scaled(t.rto()) / 4, t.now() + t.later());
            while t.now() < until && target.times(0) < 2 {
                t.send_as_it_is(&ack)?;
                target.watch(t, step)?;
            }
            t.at_least(TSS_ICV_002, "transmissions of the unacknowledged request", 2, target.times(0));
            target.ack(t, 0)?;
            t.ends(TSS_ICV_002, written, Status::Ok)
        }),
    rule("tss-receive/wrong-icv-ack", "An ACK with a wrong ICV ends no operation")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (written, mut target) = write_in_flight(t)?;
            let ack = with_wrong_icv(t, &target.pdc.wire(&target.acking(0).build()?))?;
            t.send_as_it_is(&ack)?;
            t.settle()?;
            t.is_open(TSS_ICV_002, written)?;
            target.expect_again(t, TSS_ICV_002, 0, t.later())?;
            target.ack(t, 0)?;
            t.ends(TSS_ICV_002, written, Status::Ok)
        }),
    rule("tss-receive/wrong-icv-nack", "A fatal NACK with a wrong ICV ends no context")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (written, mut target) = write_in_flight(t)?;
            for code in [NackCode::CLOSING_IN_ERR, NackCode::INV_DPDCID, NackCode::GTD_RESP_UNAVAIL] {
                let nack = target.pdc.nack(code, target.psn(0))?;
                let nack = with_wrong_icv(t, &target.pdc.wire(&nack))?;
                t.send_as_it_is(&nack)?;
            }
            expect_ended_by_ack(t, TSS_ICV_002, &mut target, written)
        }),
    rule("tss-receive/wrong-icv-retransmission", "A NACK with a wrong ICV causes no retransmission")
        .checks(&[TSS_ICV_002])
        .measure(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let first = target.expect_new(t, TSS_ICV_002, 1)?;
            let n = target.index(&first.request);
            let nack = target.pdc.nack(NackCode::TRIMMED, target.psn(n))?;
            let nack = with_wrong_icv(t, &target.pdc.wire(&nack))?;
            t.send_as_it_is(&nack)?;
            let early = t.early().saturating_sub(t.now().saturating_sub(first.seen.at));
            target.expect_none(t, TSS_ICV_002, "a retransmission before the timeout", early, |index| {
                index == n
            })?;
            target.ack(t, n)?;
            t.ends(TSS_ICV_002, written, Status::Ok)
        }),
];
