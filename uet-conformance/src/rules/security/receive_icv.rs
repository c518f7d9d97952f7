//! A target that gets packets with a wrong ICV: they have no effect and get no answer (section 3.7).
//! [`receive_icv_source`] tests an initiator.
//!
//! [`receive_icv_source`]: super::receive_icv_source

use super::header::secure_with_offset;
use super::start::{METHOD, secure_with_method};
use super::steps::{
    CLUSTER, IDENTIFIED, READABLE, check_write, establish_as, expect_ignored, expect_no_answer,
    expect_no_effect, expect_response_kept, flip_bit, forge_requests, open_secured, plain_write, rule,
    with_wrong_icv,
};
use crate::prelude::*;
use crate::rules::steps::{expect_rudi_response, idempotent_region};
use crate::{SECURED, Wire, rudi, uud};
use uet_wire::tss::ICV;

/// The wrong byte of the ICV.
const ICV_BYTE: Axis<usize> = axis("icv-byte").values(&[
    ("15", 15),
    ("0", 0),
    ("1", 1),
    ("2", 2),
    ("3", 3),
    ("4", 4),
    ("5", 5),
    ("6", 6),
    ("7", 7),
    ("8", 8),
    ("9", 9),
    ("10", 10),
    ("11", 11),
    ("12", 12),
    ("13", 13),
    ("14", 14),
]);

/// The number of bytes removed from the end.
const CUT: Axis<usize> =
    axis("cut").values(&[("1", 1), ("4", 4), ("8", 8), ("12", 12), ("16", 16), ("20", 20)]);

/// The number of bytes after the ICV.
const TRAILING: Axis<usize> = axis("trailing").values(&[("1", 1), ("4", 4), ("16", 16)]);

/// The value of all bytes of an ICV that no key gives.
const FORGED_ICV: Axis<u8> = axis("icv").values(&[("zeros", 0), ("ones", 0xff), ("pattern", 0xa5)]);

/// The type of the packet.
const PACKET: Axis<PacketType> = axis("packet").needing(&[
    ("request", PacketType::Request, &[]),
    ("ack-request", PacketType::Control(CtlType::ACK_REQUEST), &[]),
    ("probe", PacketType::Probe, &[]),
    ("noop", PacketType::Control(CtlType::NOOP), &[]),
    ("close", PacketType::Control(CtlType::CLOSE_COMMAND), &[]),
    ("clear", PacketType::Control(CtlType::CLEAR_COMMAND), &[]),
    ("credit-request", PacketType::Control(CtlType::CREDIT_REQUEST), &[]),
    ("rudi", PacketType::Rudi, &[RUDI]),
    ("datagram", PacketType::Uud, &[UUD]),
    ("ack", PacketType::Ack, &[]),
    ("nack", PacketType::Nack, &[]),
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketType {
    Request,
    Control(CtlType),
    Probe,
    Rudi,
    Uud,
    Ack,
    Nack,
}

/// The flipped bit.
const FLIPPED: Axis<Flipped> = axis("bit").values(&[
    ("reserved", Flipped::Header(6)),
    ("epoch", Flipped::Counter(15)),
    ("counter-first", Flipped::Counter(16)),
    ("counter-last", Flipped::Counter(63)),
    ("first-encrypted", Flipped::Body(0)),
    ("payload", Flipped::End(17)),
    ("icv-first", Flipped::End(16)),
    ("icv-last", Flipped::End(1)),
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flipped {
    /// A bit of the security header.
    Header(usize),
    /// A bit of epoch and counter.
    Counter(usize),
    /// A bit of the encrypted part.
    Body(usize),
    /// The lowest bit of a byte, counted from the end.
    End(usize),
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-receive/bit-flip", "A packet with one flipped bit has no effect and gets no answer")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &FLIPPED])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
            let sealed = t.sealed(&pdc.wire(&request))?;
            let header = t.shield()?.header_length();
            let bit = match t.value(&FLIPPED) {
                Flipped::Header(bit) => bit,
                Flipped::Counter(bit) => (header - 8) * 8 + bit,
                Flipped::Body(bit) => header * 8 + bit,
                Flipped::End(from) => (sealed.bytes.len() - from) * 8 + 7,
            };
            let mut flipped = sealed.clone();
            flip_bit(&mut flipped, bit);
            let before = t.shield()?.seen.len();
            t.send_as_it_is(&flipped)?;
            t.expect_none(TSS_ICV_003, "an answer to an altered packet", t.soon(), |seen| {
                seen.acknowledges(&pdc, pdc.psn(1)).map(drop).or_else(|| seen.nack().map(drop))
            })?;
            t.expect_memory(TSS_ICV_002, &region, 0, &[0; 32])?;
            let answers = t.shield()?.seen.len() - before;
            t.check(TSS_ICV_003, "answers to an altered packet:", 0, answers);
            // The original packet is new to the device.
            t.send_as_it_is(&sealed)?;
            t.expect_ack(TSS_ICV_002, &pdc, pdc.psn(1))?;
            t.expect_memory(TSS_ICV_002, &region, 0, &[7; 32])
        }),
    rule("tss-receive/icv-byte", "A target compares every byte of the ICV")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&IDENTIFIED, &ICV_BYTE])
        .run(|t| {
            t.secure(t.value(&IDENTIFIED))?;
            let (pdc, region) = t.open()?;
            let mut sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            let first = sealed.bytes.len() - ICV;
            flip_bit(&mut sealed, (first + t.value(&ICV_BYTE)) * 8 + 3);
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/forged-icv", "A packet with a forged ICV has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &FORGED_ICV])
        .run(|t| {
            let ((pdc, region), forged) = (open_secured(t)?, t.value(&FORGED_ICV));
            let wire = plain_write(&pdc, &region, 1)?;
            let mut sealed = t.sealed(&wire)?;
            let first = sealed.bytes.len() - ICV;
            // A comparison must not end where both have a zero.
            let mut tries = if forged == 0 { 4096 } else { 0 };
            while sealed.bytes[first] != 0 && tries > 0 {
                sealed = t.sealed(&wire)?;
                tries -= 1;
            }
            sealed.bytes[first..].fill(forged);
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/truncated", "A truncated packet has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &CUT])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let mut sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            let length = sealed.bytes.len() - t.value(&CUT);
            sealed.bytes.truncate(length);
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/trailing-bytes", "A packet with bytes after its ICV has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &TRAILING])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let mut sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            sealed.bytes.extend(vec![0x11; t.value(&TRAILING)]);
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/short-icv", "A packet whose ICV is shorter than 16 bytes has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &CUT])
        .run(|t| {
            // The suite authenticates the UDP length of the truncated packet.
            let (pdc, region) = open_secured(t)?;
            let cut = t.value(&CUT);
            let mut sealed = t.sealed_over(&plain_write(&pdc, &region, 1)?, |outer| {
                if let uet_wire::tss::OuterLayer::Udp { length, .. } = &mut outer.layer {
                    *length -= cut as u16;
                }
            })?;
            let length = sealed.bytes.len() - cut;
            sealed.bytes.truncate(length);
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/wrong-icv", "A packet of any type with a wrong ICV has no effect and gets no answer")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &PACKET, &READABLE])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (pdc, region) = t.open()?;
            let packet_type = t.value(&PACKET);
            let forged = forged_packet(t, &pdc, &region, packet_type)?;
            expect_no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[forged])
        }),
    rule("tss-receive/wrong-icv-control", "Control packets with a wrong ICV get no reply and end no context")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            t.settle()?;
            let types = [CtlType::NOOP, CtlType::ACK_REQUEST, CtlType::CLOSE_COMMAND, CtlType::CLEAR_COMMAND];
            for ctl_type in types {
                let packet = forged_packet(t, &pdc, &region, PacketType::Control(ctl_type))?;
                t.send_as_it_is(&packet)?;
            }
            let probe = forged_packet(t, &pdc, &region, PacketType::Probe)?;
            t.send_as_it_is(&probe)?;
            // The packets have used none of the PSNs.
            check_write(t, TSS_ICV_002, &pdc, &region, 1)?;
            expect_no_answer(t, TSS_ICV_003)
        }),
    rule("tss-receive/wrong-icv-rudi", "A RUDI request with a wrong ICV is not executed")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pdc) = idempotent_region(t)?;
            let request = rudi(0x1234, &pdc.request(0).write(&region, 0, &[7; 32])?)?;
            let forged = with_wrong_icv(t, &pdc.wire(&request))?;
            t.send_as_it_is(&forged)?;
            expect_ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
            // With the right ICV, the request takes effect.
            t.send(&pdc, &request)?;
            expect_rudi_response(t, TSS_ICV_002, &pdc, 0x1234)?;
            t.expect_memory(TSS_ICV_002, &region, 0, &[7; 32])
        }),
    rule("tss-receive/wrong-icv-opening", "An opening packet with a wrong ICV opens no context")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            let opening = with_wrong_icv(t, &plain_write(&pdc, &region, 0)?)?;
            t.send_as_it_is(&opening)?;
            expect_ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
            establish_as(t, TSS_ICV_002, &mut pdc, &region)?;
            check_write(t, TSS_ICV_002, &pdc, &region, 1)
        }),
    rule("tss-receive/wrong-icv-openings", "Opening packets with a wrong ICV use up no context")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &METHOD])
        .run(|t| {
            t.configure("general_pdcs", 2)?;
            // A context that a wrong packet has taken must not make room before the end.
            t.try_configure("reclaim_unconfirmed", false)?;
            t.try_configure("new_pdc_time", 1_000_000_000)?;
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            for _ in 0..4 {
                let stranger = t.initiate();
                let opening = with_wrong_icv(t, &plain_write(&stranger, &region, 0)?)?;
                t.send_as_it_is(&opening)?;
            }
            expect_ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
            let mut pdc = t.initiate();
            establish_as(t, TSS_ICV_002, &mut pdc, &region)?;
            check_write(t, TSS_ICV_002, &pdc, &region, 1)
        }),
    rule("tss-receive/wrong-icv-clear", "Packets with a wrong ICV release no stored response")
        .checks(&[TSS_ICV_002])
        .over(&[&SECURED, &READABLE])
        .run(|t| {
            secure_with_offset(t, t.value(&READABLE))?;
            let (pdc, region) = t.open()?;
            expect_response_kept(t, TSS_ICV_002, (&pdc, &region), with_wrong_icv)
        }),
    rule("tss-receive/wrong-icv-flood", "A target serves its peer despite many packets with a wrong ICV")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            // A device may drop all packets after a number of wrong ICVs that it reports.
            let count = t.reported("auth_fail_latch").map_or(100, |latch| (latch / 2).min(100));
            let stranger = t.initiate();
            let opening = with_wrong_icv(t, &plain_write(&stranger, &region, 1)?)?;
            let request = with_wrong_icv(t, &plain_write(&pdc, &region, 1)?)?;
            for _ in 0..count {
                t.send_as_it_is(&opening)?;
                t.send_as_it_is(&request)?;
            }
            check_write(t, TSS_ICV_002, &pdc, &region, 1)
        }),
    rule(
        "tss-receive/wrong-icvs-without-limit",
        "A domain without a limit of wrong ICVs survives any number of them",
    )
    .checks(&[TSS_ICV_002])
    .over(&[&CLUSTER])
    .run(|t| {
        if t.reported("auth_fail_latch").is_some() {
            t.configure("auth_fail_latch", serde_json::Value::Null)?;
        }
        t.secure(t.value(&CLUSTER))?;
        let (pdc, region) = t.open()?;
        forge_requests(t, &pdc, &region, 1100)?;
        check_write(t, TSS_ICV_002, &pdc, &region, 1)
    }),
];

/// Builds a packet of this type with a wrong ICV.
fn forged_packet(
    t: &mut Test<'_>,
    pdc: &Pdc,
    region: &Region,
    packet_type: PacketType,
) -> Result<Wire, Stop> {
    let request = pdc.request(1).write(region, 64, &[2; 32])?;
    let packet = match packet_type {
        PacketType::Request => request.build()?,
        PacketType::Control(kind) => pdc.control(kind, pdc.psn(1), 0)?,
        PacketType::Probe => pdc.probe(7, pdc.psn(0))?,
        PacketType::Rudi => rudi(0x77, &request)?,
        PacketType::Uud => uud(&request)?,
        PacketType::Ack => pdc.ack(pdc.psn(0)).build()?,
        PacketType::Nack => pdc.nack(NackCode::CLOSING_IN_ERR, pdc.psn(0))?,
    };
    with_wrong_icv(t, &pdc.wire(&packet))
}
