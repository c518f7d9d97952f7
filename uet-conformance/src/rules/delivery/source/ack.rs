//! How an initiator handles ACKs, and which ones it ignores (section 3.5.12).

use super::steps::other_pdcid;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::{expect_ack_ignored, message_in_flight};
use uet_wire::Version;
use uet_wire::pds::{Ack, AckCc, AckCcx, Nack};
use uet_wire::registry::{CcType, CcxType, ResponseOpcode};
use uet_wire::ses::Response;

/// The opaque value and the cumulative PSN in the reply to a PROBE, while packet 1 is in flight. As an
/// offset, the opaque value 1 names that packet.
const REPLY: Axis<(u16, u32)> = axis("reply").values(&[("cack-psn", (0x77, 1)), ("opaque-value", (1, 0))]);

/// An ACK has a cumulative PSN and one of these reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// It names the same PSN.
    Same,
    /// It names a packet that was sent, with its response.
    Named,
    /// Bits report packets that were sent.
    Bits,
}

const CONTENT: Axis<Content> =
    axis("reports").values(&[("same", Content::Same), ("named", Content::Named), ("bits", Content::Bits)]);

/// The operation whose ACK is trimmed.
const ACKED: Axis<PostKind> =
    axis("operation").needing(&[("write", PostKind::Write, &[]), ("read", PostKind::Read, &[READ])]);

pub(super) const RULES: &[Rule] = &[
    rule("source-ack/cumulative", "One cumulative ACK completes all messages that it covers")
        .checks(&[PDS_PSN_005])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let mut written = Vec::new();
            for count in [1, 3, 2] {
                written.push(t.post(post(PostKind::Write, peer, count * t.mtu()))?);
            }
            target.collect(t, 7)?;
            target.ack(t, 6)?;
            written.into_iter().try_for_each(|written| t.ends(PDS_PSN_005, written, Status::Ok))
        }),
    rule("source-ack/psn-below-cumulative", "The device accepts an ACK for a PSN below its cumulative PSN")
        .checks(&[PDS_PSN_005])
        .run(|t| {
            let (target, written) = message_in_flight(t, 4)?;
            let ack = target.acking(2).cack(target.psn(4));
            target.answer(t, ack)?;
            t.ends(PDS_PSN_005, written, Status::Ok)
        }),
    rule("source-ack/no-response", "A cumulative ACK with UET_NO_RESPONSE completes its message")
        .checks(&[PDS_PSN_005])
        .run(|t| {
            let (target, written) = message_in_flight(t, 3)?;
            let none = Response::build(ResponseOpcode::UET_NO_RESPONSE, ReturnCode::NULL).done()?;
            target.answer(t, AckBuilder { response: Some(none), ..target.acking(3) })?;
            t.ends(PDS_PSN_005, written, Status::Ok)
        }),
    rule("source-ack/duplicate", "A duplicate ACK does not acknowledge later packets")
        .checks(&[PDS_PSN_003, PDS_PSN_001, PDS_PSN_005])
        .run(|t| {
            let peer = t.peer(0)?;
            let (mut target, first) = message_in_flight(t, 2)?;
            let ack = target.acking(2);
            target.answer(t, ack.clone())?;
            t.ends(PDS_PSN_005, first, Status::Ok)?;
            let second = t.post(post(PostKind::Write, peer, 64))?;
            target.expect_new(t, PDS_PSN_001, 3)?;
            target.answer(t, ack.clone())?;
            target.answer(t, ack)?;
            t.is_open(PDS_PSN_003, second)?;
            target.expect_again(t, PDS_PSN_003, 3, t.later())?;
            target.ack(t, 3)?;
            t.ends(PDS_PSN_003, second, Status::Ok)
        }),
    rule("source-ack/reversed", "ACKs in reverse order complete the message without retransmissions")
        .checks(&[PDS_PSN_003, PDS_CLR_002])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 4)?;
            for n in (1..=4).rev() {
                target.ack(t, n)?;
            }
            t.ends(PDS_PSN_003, written, Status::Ok)?;
            t.settle()?;
            target.expect_none(t, PDS_PSN_003, "no acknowledged packet", 4 * t.rto(), |n| n <= 4)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let next = target.expect_new(t, PDS_PSN_003, 5)?;
            t.check(PDS_CLR_002, "CLEAR_PSN", target.psn(4), next.request.clear_psn());
            Ok(())
        }),
    rule("source-ack/response-of-named-psn", "The response in an ACK applies only to the PSN that it names")
        .checks(&[PDS_ACK_016, PDS_PSN_005])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let mut written = Vec::new();
            for length in [64, 65, 66] {
                written.push(t.post(post(PostKind::Write, peer, length))?);
            }
            target.collect(t, 4)?;
            // The second packet is refused. Its ACK also covers the first, whose own response is missing.
            let refused = target.packet(2)?.response(ReturnCode::BAD_MKEY, 0)?;
            let ack = target.naming(2, 2).guaranteed(refused);
            target.answer(t, ack)?;
            t.ends(PDS_PSN_005, written[0], Status::Ok)?;
            let within = t.soon();
            let ended = t.completion(written[1], within)?;
            let code = ended.as_ref().and_then(|ended| ended.return_code.clone());
            t.check(PDS_ACK_016, "the status", Some(Status::Refused), ended.map(|ended| ended.status));
            t.check(PDS_ACK_016, "the return code", Some("BAD_MKEY".to_owned()), code);
            t.is_open(PDS_ACK_016, written[2])?;
            target.ack(t, 3)?;
            t.ends(PDS_ACK_016, written[2], Status::Ok)
        }),
    rule("source-ack/never-sent", "An ACK whose cumulative PSN was never sent is ignored as a whole")
        .checks(&[PDS_PSN_004])
        .over(&[&CONTENT, &MODE, &CARRIER, &START])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            for n in [3, 100, 1 << 20, (1 << 16) + 2, (1 << 24) + 2] {
                let ack = target.acking(n);
                let ack = match t.value(&CONTENT) {
                    Content::Same => ack,
                    Content::Named => AckBuilder { psn: target.psn(2), ..ack },
                    Content::Bits => ack.sack(target.psn(1), 0b11),
                };
                target.answer(t, ack)?;
            }
            t.settle()?;
            t.is_open(PDS_PSN_004, written)?;
            target.expect_again(t, PDS_PSN_004, 1, t.later())?;
            target.expect_again(t, PDS_PSN_004, 2, t.later())?;
            target.ack(t, 2)?;
            t.ends(PDS_PSN_004, written, Status::Ok)
        }),
    rule("source-ack/never-sent-opening", "An ACK of a PSN that was never sent establishes no context")
        .checks(&[PDS_PSN_004, PDS_SYN_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            target.ack(t, 7)?;
            t.settle()?;
            t.is_open(PDS_PSN_004, written)?;
            let again = target.expect_again(t, PDS_PSN_004, 0, t.later())?;
            t.check(PDS_SYN_001, "syn", true, again.request.syn());
            target.ack(t, 0)?;
            t.ends(PDS_PSN_004, written, Status::Ok)
        }),
    rule(
        "source-ack/before-transmission",
        "An ACK that precedes its packets does not acknowledge them later",
    )
    .checks(&[PDS_PSN_004, PDS_CLR_001])
    .run(|t| {
        let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
        target.ack(t, 2)?;
        t.settle()?;
        let written = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
        for n in [1, 2] {
            let packet = target.expect_new(t, PDS_PSN_004, n)?;
            t.check(PDS_CLR_001, "CLEAR_PSN", target.psn(0), packet.request.clear_psn());
        }
        t.is_open(PDS_PSN_004, written)?;
        target.expect_again(t, PDS_PSN_004, 1, t.later())?;
        target.ack(t, 2)?;
        t.ends(PDS_PSN_004, written, Status::Ok)
    }),
    rule("source-ack/sack-before-transmission", "SACK bits that precede their packets are ignored")
        .checks(&[PDS_SACK_001])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            target.answer(t, target.acking(0).sack(target.psn(0), u64::MAX))?;
            t.settle()?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            target.expect_new(t, PDS_SACK_001, 1)?;
            target.expect_again(t, PDS_SACK_001, 1, t.later())?;
            target.ack(t, 1)?;
            t.ends(PDS_SACK_001, written, Status::Ok)
        }),
    rule("source-ack/other-address", "An ACK from another address is ignored")
        .checks(&[PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let from = t.address(1)?;
            expect_ack_ignored(t, PDS_PDC_003, |target, t| {
                let other = Pdc { from, ..target.pdc.clone() };
                t.send(&other, &target.acking(1).build()?)
            })
        }),
    rule("source-ack/other-pdcid", "An ACK from another PDCID of the target is ignored")
        .checks(&[PDS_PDC_003])
        .run(|t| {
            expect_ack_ignored(t, PDS_PDC_003, |target, t| {
                let spdcid = other_pdcid(&target.pdc);
                target.answer(t, AckBuilder { spdcid, ..target.acking(1) })
            })
        }),
    rule("source-ack/pdcid-zero", "An ACK with spdcid 0 does not establish a context")
        .checks(&[PDS_PDC_001, PDS_SYN_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            target.answer(t, AckBuilder { spdcid: PdcId::NONE, ..target.acking(0) })?;
            t.settle()?;
            if t.completion(written, Duration::ZERO)?.is_some() {
                return skip("the device accepts an ACK with spdcid 0, which the sources leave open");
            }
            let again = target.expect_again(t, PDS_PDC_001, 0, t.later())?;
            t.check(PDS_SYN_001, "syn", true, again.request.syn());
            target.ack(t, 0)?;
            t.ends(PDS_PDC_001, written, Status::Ok)
        }),
    rule("source-ack/every-form", "An ACK of any type and congestion state acknowledges its packet")
        .checks(&[PDS_RTO_001])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 5)?;
            let build_ack = |n| -> Result<Ack, Stop> {
                let packet = target.pdc.ack(target.psn(n)).build()?;
                let ack = packet.view().pds.and_then(|pds| pds.ack());
                ack.ok_or_else(|| Stop::Inconclusive("the rule builds no ACK".into()))
            };
            let mut packets = vec![UetBuf::new(build_ack(1)?)];
            let with_state = |ack: &Ack, kind: CcType| {
                let cc = AckCc::build()
                    .ack(|a| a.copy_from(ack).prologue(|prologue| prologue.kind(PdsType::ACK_CC)));
                cc.cc_type(kind).sack(|sack| sack.mpr(8).sack_psn_offset(1)).done()
            };
            let reserved = CcType::unassigned(t.spec()).next().unwrap_or_default();
            let vendor = CcType::new(14).unwrap_or_default();
            for (n, kind) in [(2, CcType::CREDIT), (3, reserved), (4, vendor)] {
                packets.push(UetBuf::new(with_state(&build_ack(n)?, kind)?));
            }
            let last = build_ack(5)?;
            let ack = AckCcx::build()
                .ack(|a| a.copy_from(&last).prologue(|prologue| prologue.kind(PdsType::ACK_CCX)));
            let ack = ack.ccx_type(CcxType::new(14).unwrap_or_default());
            packets.push(UetBuf::new(ack.sack(|sack| sack.mpr(8).sack_psn_offset(1)).done()?));
            for mut packet in packets {
                packet.ses = Some(
                    Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done()?.into(),
                );
                t.send(&target.pdc, &packet)?;
            }
            t.settle()?;
            target.expect_none(t, PDS_RTO_001, "no acknowledged packet", 2 * t.rto(), |_| true)?;
            t.ends(PDS_RTO_001, written, Status::Ok)
        }),
    rule("source-ack/ack-ccx-bitmap", "The SACK bitmap of an ACK_CCX counts, whatever its congestion state")
        .checks(&[PDS_SACK_004])
        .run(|t| {
            // The device sends ACK_REQUEST for a packet with a bit, instead of the packet.
            let (target, written) = message_in_flight(t, 2)?;
            let packet = target.pdc.ack(target.psn(1)).build()?;
            let Some(plain) = packet.view().pds.and_then(|pds| pds.ack()) else {
                return Err(Stop::Failed);
            };
            let ack = AckCcx::build()
                .ack(|a| a.copy_from(&plain).prologue(|prologue| prologue.kind(PdsType::ACK_CCX)));
            let ack = ack.ccx_type(CcxType::new(14).unwrap_or_default()).ack_ccx_state(u128::MAX);
            let ack = ack.sack(|sack| sack.mpr(8).sack_psn_offset(1).sack_bitmap(1)).done()?;
            t.send(&target.pdc, &UetBuf { ses: packet.ses, ..UetBuf::new(ack) })?;
            let (_, request) = target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            t.check(PDS_SACK_004, "psn", target.psn(2), request.psn());
            target.ack(t, 2)?;
            t.ends(PDS_SACK_004, written, Status::Ok)
        }),
    rule("source-ack/sack-base", "SACK bits count from the cumulative PSN, not from the named PSN")
        .checks(&[PDS_SACK_004, PDS_RTO_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            // Packets 2 and 5 have arrived. From packet 2 on, the bits would mean packets 4 and 7.
            let (mut target, written) = message_in_flight(t, 5)?;
            target.answer(t, target.naming(2, 1).sack(target.psn(1), 0b10010))?;
            let (_, request) = target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            t.check(PDS_SACK_004, "psn", target.psn(5), request.psn());
            target.expect_again(t, PDS_RTO_001, 4, t.later())?;
            target.ack(t, 5)?;
            t.ends(PDS_SACK_004, written, Status::Ok)
        }),
    rule("source-ack/probe-reply", "The reply to a PROBE acknowledges nothing")
        .checks(&[PDS_PRB_002])
        .over(&[&REPLY, &MODE, &CARRIER, &START])
        .run(|t| {
            expect_ack_ignored(t, PDS_PRB_002, |target, t| {
                let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
                let (opaque, cack) = t.value(&REPLY);
                let ack = Ack::build().p(true).probe_opaque(opaque).cack_psn(target.psn(cack));
                t.send(&target.pdc, &UetBuf::new(ack.spdcid(target.pdc.local).dpdcid(remote).done()?))
            })
        }),
    rule("source-ack/trimmed", "A trimmed ACK is ignored, with read data too, and gets no NACK")
        .checks(&[PDS_TRIM_005, PDS_NACK_010])
        .needs(&[TRIM])
        .over(&[&ACKED, &MODE, &CARRIER, &START])
        .run(|t| {
            let (kind, data) = (t.value(&ACKED), [7_u8; 8]);
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let posted = t.post(post(kind, peer, data.len()))?;
            target.collect(t, 2)?;
            let whole = match kind {
                PostKind::Read => target.ack_with_data(1, 1, &data)?,
                _ => target.acking(1).build()?,
            };
            t.send_wire(&target.pdc.trimmed(&whole, crate::Trimmed::Fabric, 32))?;
            // Before 1.0.3, the device may report the trim of an ACK.
            let reports = t.spec().released() < Version::V1_0_3;
            t.expect_none(PDS_NACK_010, "no NACK for the ACK", t.grace(), |seen| {
                let may = |nack: &Nack| reports && nack.nack_code() == NackCode::TRIMMED_ACK;
                seen.nack().filter(|nack| !may(nack))
            })?;
            t.is_open(PDS_TRIM_005, posted)?;
            target.expect_again(t, PDS_TRIM_005, 1, t.later())?;
            t.send(&target.pdc, &whole)?;
            t.ends_with(PDS_TRIM_005, posted, (Status::Ok, data.len() as u64)).map(drop)
        }),
    rule("source-ack/truncated", "An ACK that ends within its header is ignored")
        .checks(&[ROB_STATE_001])
        .run(|t| {
            expect_ack_ignored(t, ROB_STATE_001, |target, t| {
                let whole = target.pdc.ack(target.psn(1)).build()?.to_bytes();
                for length in [2, 8, 11] {
                    t.send_wire(&target.pdc.raw(&whole[..length]))?;
                }
                Ok(())
            })
        }),
    rule("source-ack/reserved-bits", "An ACK with reserved bits set still acknowledges its packet")
        .checks(&[ROB_RSVD_001])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            let packet = target.pdc.ack(target.psn(1)).build()?;
            let mut bytes = packet.to_bytes();
            // The flags are the lower 7 bits of the second byte. The first and last are reserved in an ACK.
            bytes[1] |= 0b100_0001;
            t.send_wire(&target.pdc.raw(&bytes))?;
            t.ends(ROB_RSVD_001, written, Status::Ok)
        }),
    rule("source-ack/ecn-marked", "ACKs that report ECN marks cause no retransmission")
        .checks(&[PDS_PSN_005])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 3)?;
            for n in 1..=3 {
                let ack = AckBuilder { marked: true, ..target.acking(n) };
                target.answer(t, ack)?;
            }
            t.ends(PDS_PSN_005, written, Status::Ok)?;
            t.settle()?;
            target.expect_none(t, PDS_PSN_005, "no acknowledged packet", 2 * t.rto(), |_| true)?;
            let peer = t.peer(0)?;
            t.expect_action(peer)
        }),
];
