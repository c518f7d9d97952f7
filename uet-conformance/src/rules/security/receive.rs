//! A receiver of secured packets: what it accepts, and what must change nothing (section 3.7).

use super::steps::{
    IDENTIFIED, NEEDS, close, establish_as, executed, flip, forged, ignored, no_effect, opened, plain,
    silent, works,
};
use crate::prelude::*;
use crate::rules::steps::{expect_rudi_response, idempotent_region};
use crate::{SECURED, Wire, rudi, uud};
use uet_wire::tss::ICV;

const READS: &[Need] = &[RUD, WRITE, READ, TSS];

const TRIMS: &[Need] = &[RUD, WRITE, TSS, TRIM];

/// The byte of the ICV that is wrong.
const TAG: Axis<usize> = axis("byte").values(&[
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

/// The number of bytes cut off the end.
const CUT: Axis<usize> =
    axis("cut").values(&[("1", 1), ("4", 4), ("8", 8), ("12", 12), ("icv", 16), ("more", 20)]);

/// The number of bytes behind the ICV.
const BEHIND: Axis<usize> = axis("behind").values(&[("1", 1), ("4", 4), ("16", 16)]);

/// An ICV that no key has made.
const MADE_UP: Axis<u8> = axis("icv").values(&[("zeros", 0), ("ones", 0xff), ("pattern", 0xa5)]);

/// The kind of a packet that an endpoint gets in a context.
const PACKET: Axis<Sort> = axis("packet").needing(&[
    ("request", Sort::Request, &[]),
    ("ack-request", Sort::Control(CtlType::ACK_REQUEST), &[]),
    ("probe", Sort::Probe, &[]),
    ("noop", Sort::Control(CtlType::NOOP), &[]),
    ("close", Sort::Control(CtlType::CLOSE_COMMAND), &[]),
    ("clear", Sort::Control(CtlType::CLEAR_COMMAND), &[]),
    ("credit-request", Sort::Control(CtlType::CREDIT_REQUEST), &[]),
    ("rudi", Sort::Rudi, &[RUDI]),
    ("datagram", Sort::Uud, &[UUD]),
    ("ack", Sort::Ack, &[]),
    ("nack", Sort::Nack, &[]),
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Request,
    Control(CtlType),
    Probe,
    Rudi,
    Uud,
    Ack,
    Nack,
}

/// A wrong number of the domain, from the right one.
const SDI: Axis<fn(u32) -> u32> = axis("sdi").values(&[
    ("next", |sdi| (sdi ^ 1) & 0xff_ffff),
    ("first-byte", |sdi| sdi ^ 0x80_0000),
    ("zero", |_| 0),
    ("ones", |_| 0xff_ffff),
]);

/// A change that the ICV shows: a bit of the secured packet, counted from its first byte, or from its end.
const ALTERED: Axis<Altered> = axis("bit").values(&[
    ("reserved", Altered::Header(6)),
    ("epoch", Altered::Counter(15)),
    ("counter-first", Altered::Counter(16)),
    ("counter-last", Altered::Counter(63)),
    ("first-encrypted", Altered::Body(0)),
    ("payload", Altered::End(17)),
    ("icv-first", Altered::End(16)),
    ("icv-last", Altered::End(1)),
]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Altered {
    /// A bit of the security header.
    Header(usize),
    /// A bit of epoch and counter.
    Counter(usize),
    /// A bit of the encrypted part.
    Body(usize),
    /// The lowest bit of a byte, counted from the end.
    End(usize),
}

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-receive/request", "A target executes a secured request and protects its ACK")
        .checks(&[TSS_KEY_001])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let before = t.shield()?.seen.len();
            t.request(&pdc, pdc.request(1).write(&region, 0, &[7; 32])?)?;
            t.expect_ack(TSS_KEY_001, &pdc, pdc.psn(1))?;
            t.expect_memory(TSS_KEY_001, &region, 0, &[7; 32])?;
            let answers = t.shield()?.seen.len() - before;
            t.check(TSS_KEY_001, "protected answers:", 1, answers);
            Ok(())
        }),
    rule("tss-receive/bit-flip", "A packet with one flipped bit has no effect and gets no answer")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &ALTERED])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
            let whole = t.sealed(&pdc.wire(&request))?;
            let header = if t.shield()?.domain.ssi { 16 } else { 12 };
            let bit = match t.value(&ALTERED) {
                Altered::Header(bit) => bit,
                Altered::Counter(bit) => (header - 8) * 8 + bit,
                Altered::Body(bit) => header * 8 + bit,
                Altered::End(from) => (whole.bytes.len() - from) * 8 + 7,
            };
            let mut changed = whole.clone();
            flip(&mut changed, bit);
            let before = t.shield()?.seen.len();
            t.send_as_it_is(&changed)?;
            t.expect_none(TSS_ICV_003, "an answer to a packet that is not authentic", t.soon(), |seen| {
                seen.acknowledges(&pdc, pdc.psn(1)).map(drop).or_else(|| seen.nack().map(drop))
            })?;
            t.expect_memory(TSS_ICV_002, &region, 0, &[0; 32])?;
            let answers = t.shield()?.seen.len() - before;
            t.check(TSS_ICV_003, "answers to a packet that is not authentic:", 0, answers);
            // The unchanged packet is new to the device.
            t.send_as_it_is(&whole)?;
            t.expect_ack(TSS_ICV_002, &pdc, pdc.psn(1))?;
            t.expect_memory(TSS_ICV_002, &region, 0, &[7; 32])
        }),
    rule("tss-receive/icv-byte", "A target compares every byte of the ICV")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&IDENTIFIED, &TAG])
        .run(|t| {
            t.secure(t.value(&IDENTIFIED))?;
            let (pdc, region) = t.open()?;
            let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            let first = sealed.bytes.len() - ICV;
            flip(&mut sealed, (first + t.value(&TAG)) * 8 + 3);
            no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/forged-icv", "A packet with a forged ICV has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &MADE_UP])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            let first = sealed.bytes.len() - ICV;
            sealed.bytes[first..].fill(t.value(&MADE_UP));
            no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/truncated", "A truncated packet has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &CUT])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            let length = sealed.bytes.len() - t.value(&CUT);
            sealed.bytes.truncate(length);
            no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/trailing-bytes", "A packet with bytes after its ICV has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &BEHIND])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            sealed.bytes.extend(vec![0x11; t.value(&BEHIND)]);
            no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/short-icv", "A packet whose ICV is shorter than 16 bytes has no effect")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &CUT])
        .run(|t| {
            // The outer headers are authenticated with the length that the packet has without the rest of its
            // ICV.
            let (pdc, region) = opened(t)?;
            let cut = t.value(&CUT);
            let mut sealed = t.sealed_over(&plain(&pdc, &region, 1)?, |outer| {
                if let uet_wire::tss::OuterLayer::Udp { length, .. } = &mut outer.layer {
                    *length -= cut as u16;
                }
            })?;
            let length = sealed.bytes.len() - cut;
            sealed.bytes.truncate(length);
            no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/wrong-icv", "A packet of any type with a wrong ICV has no effect and gets no answer")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .over(&[&SECURED, &PACKET])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let sort = t.value(&PACKET);
            let forged = packet(t, &pdc, &region, sort)?;
            no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[forged])
        }),
    rule("tss-receive/wrong-icv-control", "Control packets with a wrong ICV get no reply and end no context")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            t.settle()?;
            let kinds = [CtlType::NOOP, CtlType::ACK_REQUEST, CtlType::CLOSE_COMMAND, CtlType::CLEAR_COMMAND];
            for kind in kinds {
                let packet = packet(t, &pdc, &region, Sort::Control(kind))?;
                t.send_as_it_is(&packet)?;
            }
            let probe = packet(t, &pdc, &region, Sort::Probe)?;
            t.send_as_it_is(&probe)?;
            // The context has all its PSNs still.
            works(t, TSS_ICV_002, &pdc, &region, 1)?;
            silent(t, TSS_ICV_003)
        }),
    rule("tss-receive/wrong-icv-rudi", "A RUDI request with a wrong ICV is not executed")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pdc) = idempotent_region(t)?;
            let request = rudi(0x1234, &pdc.request(0).write(&region, 0, &[7; 32])?)?;
            let forged = forged(t, &pdc.wire(&request))?;
            t.send_as_it_is(&forged)?;
            ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
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
            let opening = forged(t, &plain(&pdc, &region, 0)?)?;
            t.send_as_it_is(&opening)?;
            ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
            establish_as(t, TSS_ICV_002, &mut pdc, &region)?;
            works(t, TSS_ICV_002, &pdc, &region, 1)
        }),
    rule("tss-receive/wrong-icv-flood", "A target serves its peer despite many packets with a wrong ICV")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            // A device may drop everything after a number of wrong ICVs that it states.
            let count = t.reported("auth_fail_latch").map_or(100, |latch| (latch / 2).min(100));
            let stranger = t.initiate();
            let opening = forged(t, &plain(&stranger, &region, 1)?)?;
            let request = forged(t, &plain(&pdc, &region, 1)?)?;
            for _ in 0..count {
                t.send_as_it_is(&opening)?;
                t.send_as_it_is(&request)?;
            }
            works(t, TSS_ICV_002, &pdc, &region, 1)
        }),
    rule("tss-receive/wrong-icv-ack", "An ACK with a wrong ICV ends no operation")
        .checks(&[TSS_ICV_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            let ack = forged(t, &target.pdc.wire(&target.acking(0).build()?))?;
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
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let target = Target::accept(t)?;
            for code in [NackCode::CLOSING_IN_ERR, NackCode::INV_DPDCID, NackCode::GTD_RESP_UNAVAIL] {
                let nack = target.pdc.nack(code, target.psn(0))?;
                let nack = forged(t, &target.pdc.wire(&nack))?;
                t.send_as_it_is(&nack)?;
            }
            t.settle()?;
            t.is_open(TSS_ICV_002, written)?;
            target.ack(t, 0)?;
            t.ends(TSS_ICV_002, written, Status::Ok)
        }),
    rule("tss-receive/wrong-icv-retransmission", "A NACK with a wrong ICV causes no retransmission")
        .checks(&[TSS_ICV_002])
        .measure(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, uet_control::Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let first = target.expect_new(t, TSS_ICV_002, 1)?;
            let n = target.index(&first.request);
            let nack = target.pdc.nack(NackCode::TRIMMED, target.psn(n))?;
            let nack = forged(t, &target.pdc.wire(&nack))?;
            t.send_as_it_is(&nack)?;
            let early = t.early().saturating_sub(t.now().saturating_sub(first.seen.at));
            target.expect_none(t, TSS_ICV_002, "a retransmission before the timeout", early, |again| {
                again == n
            })?;
            target.ack(t, n)?;
            t.ends(TSS_ICV_002, written, Status::Ok)
        }),
    rule("tss-receive/unknown-domain", "A packet of an unknown domain has no effect and gets no answer")
        .checks(&[TSS_SDI_001])
        .over(&[&SECURED, &SDI])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let sealed = of_other_domain(t, &plain(&pdc, &region, 1)?)?;
            no_effect(t, [TSS_SDI_001, TSS_SDI_001], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/unknown-domain-opening", "An opening packet of an unknown domain gets no answer")
        .checks(&[TSS_SDI_001])
        .over(&[&SECURED, &SDI])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            let opening = of_other_domain(t, &plain(&pdc, &region, 0)?)?;
            t.send_as_it_is(&opening)?;
            silent(t, TSS_SDI_001)?;
            t.check_memory(TSS_SDI_001, &region, 0, &[0; 32])?;
            establish_as(t, TSS_SDI_001, &mut pdc, &region)
        }),
    rule("tss-receive/duplicate", "A duplicate of a secured packet is not executed again")
        .checks(&[PDS_DUP_001])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            t.send_as_it_is(&sealed)?;
            executed(t, PDS_DUP_001, &pdc, &region, 1)?;
            t.request(&pdc, pdc.request(2).write(&region, 64, &[9; 32])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            t.settle()?;
            t.send_as_it_is(&sealed)?;
            // The sources leave open if a duplicate without `retx` is acknowledged.
            t.settle()?;
            t.check_memory(PDS_DUP_001, &region, 64, &[9; 32])
        }),
    rule("tss-receive/read", "A target protects the data of a read")
        .checks(&[TSS_CLEAR_002, SES_READ_001])
        .needs(READS)
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pattern) = t.patterned(4096)?;
            let mut pdc = t.initiate();
            t.request(&pdc, pdc.request(0).read(&region, 0, 32)?)?;
            if super::steps::learns_start(t, &mut pdc, |_, seen| !seen.payload().is_empty())? {
                t.request(&pdc, pdc.request(0).read(&region, 0, 32)?)?;
            }
            let data = |seen: &crate::RxPacket| (!seen.payload().is_empty()).then(|| seen.payload().to_vec());
            let within = t.soon();
            let (_, got) = t.expect(SES_READ_001, "the data of the read", within, data)?;
            t.same_bytes(SES_READ_001, "the data of the read", &pattern[..32], &got);
            let clear = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            Ok(())
        }),
    rule("tss-receive/rudi", "A target executes a secured RUDI request and protects its response")
        .checks(&[TSS_CLEAR_002, TSS_ICV_001])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pdc) = idempotent_region(t)?;
            let request = pdc.request(0).write(&region, 0, &[7; 32])?;
            t.send(&pdc, &rudi(0x1234, &request)?)?;
            let answers = |seen: &crate::RxPacket| seen.rudi().filter(|header| header.pkt_id() == 0x1234);
            t.expect(TSS_ICV_001, "a response", t.soon(), answers)?;
            t.expect_memory(TSS_ICV_001, &region, 0, &[7; 32])?;
            let clear = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            Ok(())
        }),
    rule("tss-receive/trimmed", "A trimmed secured request is neither executed nor acknowledged")
        .checks(&[TSS_TRIM_001])
        .needs(TRIMS)
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            for (place, keep) in [(crate::Trimmed::Fabric, 24), (crate::Trimmed::LastHop, 40)] {
                let mut short = sealed.clone();
                short.trimmed = Some(place);
                short.taken = short.bytes.split_off(keep);
                t.send_as_it_is(&short)?;
            }
            t.expect_none(TSS_TRIM_001, "an ACK", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(1)))?;
            t.check_memory(TSS_TRIM_001, &region, 64, &[0; 32])?;
            works(t, TSS_TRIM_001, &pdc, &region, 1)
        }),
    rule("tss-receive/plaintext", "A secured context accepts no plaintext request")
        .checks(&[TSS_CLEAR_002])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
            t.send_as_it_is(&pdc.wire(&request))?;
            let soon = t.soon();
            t.pause(soon)?;
            t.expect_memory(TSS_CLEAR_002, &region, 0, &[0; 32])?;
            t.send(&pdc, &request)?;
            t.expect_ack(TSS_CLEAR_002, &pdc, pdc.psn(1))?;
            t.expect_memory(TSS_CLEAR_002, &region, 0, &[7; 32])
        }),
    rule("tss-receive/replayed-opening", "A replayed opening packet executes nothing after the close")
        .checks(&[TSS_START_001])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(64)?;
            let mut pdc = t.initiate();
            let opening = pdc.request(0).write(&region, 0, &[7; 32])?.build()?;
            let sealed = t.sealed(&pdc.wire(&opening))?;
            t.send_as_it_is(&sealed)?;
            let (_, ack) = t.need("an open context", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
            pdc.remote = Some(ack.spdcid());
            t.expect_memory(TSS_START_001, &region, 0, &[7; 32])?;
            let clear = pdc.request(1).write(&region, 0, &[0; 32])?;
            t.request(&pdc, clear)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            close(t, &pdc, 2)?;
            t.send_as_it_is(&sealed)?;
            let soon = t.soon();
            t.pause(soon)?;
            t.expect_memory(TSS_START_001, &region, 0, &[0; 32])
        }),
];

fn packet(t: &mut Test<'_>, pdc: &Pdc, region: &Region, sort: Sort) -> Result<Wire, Stop> {
    let request = pdc.request(1).write(region, 64, &[2; 32])?;
    let packet = match sort {
        Sort::Request => request.build()?,
        Sort::Control(kind) => pdc.control(kind, pdc.psn(1), 0)?,
        Sort::Probe => pdc.probe(7, pdc.psn(0))?,
        Sort::Rudi => rudi(0x77, &request)?,
        Sort::Uud => uud(&request)?,
        Sort::Ack => pdc.ack(pdc.psn(0)).build()?,
        Sort::Nack => pdc.nack(NackCode::CLOSING_IN_ERR, pdc.psn(0))?,
    };
    forged(t, &pdc.wire(&packet))
}

/// Seals a packet for another domain under the right key.
fn of_other_domain(t: &mut Test<'_>, wire: &Wire) -> Result<Wire, Stop> {
    let other = t.value(&SDI);
    let right = t.shield()?.domain.sdi;
    t.shield()?.domain.sdi = other(right);
    let sealed = t.sealed(wire);
    t.shield()?.domain.sdi = right;
    sealed
}
