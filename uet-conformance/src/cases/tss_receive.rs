//! A receiver of secured packets: what it accepts, and what must change nothing (section 3.7).

use super::tss::{
    IDENTIFIED, NEEDS, close, establish_as, executed, flip, forged, ignored, no_effect, opened, plain,
    silent, works,
};
use crate::target::{Target, post};
use crate::{Axis, Need, Outcome, Pdc, Point, Region, Rule, SECURED, Stop, Test, Wire, rudi, uud};
use uet_control::{PostKind, Status};
use uet_wire::catalogue::*;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::tss::ICV;

const READS: &[Need] =
    &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("read"), Need::Capability("tss")];

const RUDI: &[Need] =
    &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("rudi"), Need::Capability("tss")];

const TRIMS: &[Need] =
    &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("tss"), Need::Trim];

/// The byte of the ICV that is wrong.
const TAG: Axis<usize> = Axis::new(
    "byte",
    &[
        Point::new("15", 15),
        Point::new("0", 0),
        Point::new("1", 1),
        Point::new("2", 2),
        Point::new("3", 3),
        Point::new("4", 4),
        Point::new("5", 5),
        Point::new("6", 6),
        Point::new("7", 7),
        Point::new("8", 8),
        Point::new("9", 9),
        Point::new("10", 10),
        Point::new("11", 11),
        Point::new("12", 12),
        Point::new("13", 13),
        Point::new("14", 14),
    ],
);

/// The number of bytes cut off the end.
const CUT: Axis<usize> = Axis::new(
    "cut",
    &[
        Point::new("1", 1),
        Point::new("4", 4),
        Point::new("8", 8),
        Point::new("12", 12),
        Point::new("icv", 16),
        Point::new("more", 20),
    ],
);

/// The number of bytes behind the ICV.
const BEHIND: Axis<usize> =
    Axis::new("behind", &[Point::new("1", 1), Point::new("4", 4), Point::new("16", 16)]);

/// An ICV that no key has made.
const MADE_UP: Axis<u8> =
    Axis::new("icv", &[Point::new("zeros", 0), Point::new("ones", 0xff), Point::new("pattern", 0xa5)]);

/// The kind of a packet that an endpoint gets in a context.
const PACKET: Axis<Sort> = Axis::new(
    "packet",
    &[
        Point::new("request", Sort::Request),
        Point::new("ack-request", Sort::Control(CtlType::ACK_REQUEST)),
        Point::new("probe", Sort::Probe),
        Point::new("noop", Sort::Control(CtlType::NOOP)),
        Point::new("close", Sort::Control(CtlType::CLOSE_COMMAND)),
        Point::new("clear", Sort::Control(CtlType::CLEAR_COMMAND)),
        Point::new("credit-request", Sort::Control(CtlType::CREDIT_REQUEST)),
        Point::needing("rudi", Sort::Rudi, &[Need::Capability("rudi")]),
        Point::needing("datagram", Sort::Uud, &[Need::Capability("uud")]),
        Point::new("ack", Sort::Ack),
        Point::new("nack", Sort::Nack),
    ],
);

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
const SDI: Axis<fn(u32) -> u32> = Axis::new(
    "sdi",
    &[
        Point::new("next", |sdi| (sdi ^ 1) & 0xff_ffff),
        Point::new("first-byte", |sdi| sdi ^ 0x80_0000),
        Point::new("zero", |_| 0),
        Point::new("ones", |_| 0xff_ffff),
    ],
);

/// A change that the ICV shows: a bit of the secured packet, counted from its first byte, or from its end.
const ALTERED: Axis<Altered> = Axis::new(
    "bit",
    &[
        Point::new("reserved", Altered::Header(6)),
        Point::new("epoch", Altered::Counter(15)),
        Point::new("counter-first", Altered::Counter(16)),
        Point::new("counter-last", Altered::Counter(63)),
        Point::new("first-encrypted", Altered::Body(0)),
        Point::new("payload", Altered::End(17)),
        Point::new("icv-first", Altered::End(16)),
        Point::new("icv-last", Altered::End(1)),
    ],
);

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

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "tss-receive/serves",
        title: "A secured request is executed, and its ACK is protected under the same domain",
        requirements: &[TSS_KEY_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: serves,
    },
    Rule {
        id: "tss-receive/altered",
        title: "A packet with one changed bit changes nothing and gets no answer",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &ALTERED],
        run: altered,
    },
    Rule {
        id: "tss-receive/tag",
        title: "The target compares each byte of the ICV",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&IDENTIFIED, &TAG],
        run: tag,
    },
    Rule {
        id: "tss-receive/made-up-tag",
        title: "A packet with a made-up ICV has no effect",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &MADE_UP],
        run: made_up_tag,
    },
    Rule {
        id: "tss-receive/cut",
        title: "A packet that is cut short has no effect",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &CUT],
        run: cut,
    },
    Rule {
        id: "tss-receive/longer",
        title: "A packet with bytes behind its ICV has no effect",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &BEHIND],
        run: longer,
    },
    Rule {
        id: "tss-receive/short-tag",
        title: "A packet whose ICV is shorter than 16 bytes has no effect",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &CUT],
        run: short_tag,
    },
    Rule {
        id: "tss-receive/each-kind",
        title: "No kind of packet with a wrong ICV gets an answer or changes a context",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &PACKET],
        run: each_kind,
    },
    Rule {
        id: "tss-receive/control",
        title: "Control packets with a wrong ICV get no answer, and end no context",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED],
        run: control,
    },
    Rule {
        id: "tss-receive/altered-idempotent",
        title: "An idempotent request with a wrong ICV is not executed",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: RUDI,
        axes: &[&SECURED],
        run: altered_idempotent,
    },
    Rule {
        id: "tss-receive/opening",
        title: "An opening packet with a wrong ICV opens no context",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED],
        run: opening,
    },
    Rule {
        id: "tss-receive/many",
        title: "Packets with a wrong ICV do not keep a target from serving its peers",
        requirements: &[TSS_ICV_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: many,
    },
    Rule {
        id: "tss-receive/altered-ack",
        title: "An ACK with a wrong ICV ends no operation",
        requirements: &[TSS_ICV_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: altered_ack,
    },
    Rule {
        id: "tss-receive/altered-nack",
        title: "A fatal NACK with a wrong ICV ends no context",
        requirements: &[TSS_ICV_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: altered_nack,
    },
    Rule {
        id: "tss-receive/no-retransmission",
        title: "A NACK with a wrong ICV causes no retransmission",
        requirements: &[TSS_ICV_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: |t| t.measured(no_retransmission),
    },
    Rule {
        id: "tss-receive/unknown-domain",
        title: "A packet of an unknown domain has no effect and gets no answer",
        requirements: &[TSS_SDI_001],
        needs: NEEDS,
        axes: &[&SECURED, &SDI],
        run: unknown_domain,
    },
    Rule {
        id: "tss-receive/unknown-domain-opening",
        title: "An opening packet of an unknown domain gets no answer",
        requirements: &[TSS_SDI_001],
        needs: NEEDS,
        axes: &[&SECURED, &SDI],
        run: unknown_domain_opening,
    },
    Rule {
        id: "tss-receive/copy",
        title: "A copy of a secured packet is answered and not executed again",
        requirements: &[PDS_DUP_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: copy,
    },
    Rule {
        id: "tss-receive/read",
        title: "The data of a read come protected, in an ACK and in the return direction",
        requirements: &[TSS_CLEAR_002, SES_READ_001],
        needs: READS,
        axes: &[&SECURED],
        run: read,
    },
    Rule {
        id: "tss-receive/rudi",
        title: "An idempotent request is executed, and its response is protected",
        requirements: &[TSS_CLEAR_002, TSS_ICV_001],
        needs: RUDI,
        axes: &[&SECURED],
        run: idempotent,
    },
    Rule {
        id: "tss-receive/trimmed",
        title: "A trimmed secured request changes no memory and is not acknowledged",
        requirements: &[TSS_TRIM_001],
        needs: TRIMS,
        axes: &[&SECURED],
        run: trimmed,
    },
    Rule {
        id: "tss-receive/clear",
        title: "A secured context accepts nothing in the clear",
        requirements: &[TSS_CLEAR_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: clear,
    },
    Rule {
        id: "tss-receive/replayed-opening",
        title: "A copy of an opening packet executes nothing after the context has closed",
        requirements: &[TSS_START_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: replayed_opening,
    },
];

fn serves(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let before = t.shield()?.seen.len();
    t.request(&pdc, pdc.request(1).write(&region, 0, &[7; 32])?)?;
    t.expect_ack(TSS_KEY_001, &pdc, pdc.psn(1))?;
    t.expect_memory(TSS_KEY_001, &region, 0, &[7; 32])?;
    let answers = t.shield()?.seen.len() - before;
    t.check(TSS_KEY_001, "protected answers:", 1, answers);
    Ok(())
}

fn altered(t: &mut Test<'_>) -> Outcome {
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
}

fn clear(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
    t.send_as_it_is(&pdc.wire(&request))?;
    let soon = t.soon();
    t.pause(soon)?;
    t.expect_memory(TSS_CLEAR_002, &region, 0, &[0; 32])?;
    t.send(&pdc, &request)?;
    t.expect_ack(TSS_CLEAR_002, &pdc, pdc.psn(1))?;
    t.expect_memory(TSS_CLEAR_002, &region, 0, &[7; 32])
}

fn replayed_opening(t: &mut Test<'_>) -> Outcome {
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
}

fn tag(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&IDENTIFIED))?;
    let (pdc, region) = t.open()?;
    let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
    let first = sealed.bytes.len() - ICV;
    flip(&mut sealed, (first + t.value(&TAG)) * 8 + 3);
    no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
}

fn made_up_tag(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
    let first = sealed.bytes.len() - ICV;
    sealed.bytes[first..].fill(t.value(&MADE_UP));
    no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
}

fn cut(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
    let length = sealed.bytes.len() - t.value(&CUT);
    sealed.bytes.truncate(length);
    no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
}

fn longer(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let mut sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
    sealed.bytes.extend(vec![0x11; t.value(&BEHIND)]);
    no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[sealed])
}

/// The outer headers are authenticated with the length that the packet has without the rest of its ICV.
fn short_tag(t: &mut Test<'_>) -> Outcome {
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
}

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

fn each_kind(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let sort = t.value(&PACKET);
    let forged = packet(t, &pdc, &region, sort)?;
    no_effect(t, [TSS_ICV_002, TSS_ICV_003], (&pdc, &region), 1, &[forged])
}

fn control(t: &mut Test<'_>) -> Outcome {
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
}

fn altered_idempotent(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let (region, pdc) = super::rudi::safe(t)?;
    let request = rudi(0x1234, &pdc.request(0).write(&region, 0, &[7; 32])?)?;
    let forged = forged(t, &pdc.wire(&request))?;
    t.send_as_it_is(&forged)?;
    ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
    // With the right ICV, the request takes effect.
    t.send(&pdc, &request)?;
    super::rudi::expect(t, TSS_ICV_002, &pdc, 0x1234)?;
    t.expect_memory(TSS_ICV_002, &region, 0, &[7; 32])
}

fn opening(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    let opening = forged(t, &plain(&pdc, &region, 0)?)?;
    t.send_as_it_is(&opening)?;
    ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0; 32]))?;
    establish_as(t, TSS_ICV_002, &mut pdc, &region)?;
    works(t, TSS_ICV_002, &pdc, &region, 1)
}

fn many(t: &mut Test<'_>) -> Outcome {
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
}

fn altered_ack(t: &mut Test<'_>) -> Outcome {
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
}

fn altered_nack(t: &mut Test<'_>) -> Outcome {
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
}

fn no_retransmission(t: &mut Test<'_>) -> Outcome {
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
    target.expect_none(t, TSS_ICV_002, "a retransmission before the timeout", early, |again| again == n)?;
    target.ack(t, n)?;
    t.ends(TSS_ICV_002, written, Status::Ok)
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

fn unknown_domain(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let sealed = of_other_domain(t, &plain(&pdc, &region, 1)?)?;
    no_effect(t, [TSS_SDI_001, TSS_SDI_001], (&pdc, &region), 1, &[sealed])
}

fn unknown_domain_opening(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    let opening = of_other_domain(t, &plain(&pdc, &region, 0)?)?;
    t.send_as_it_is(&opening)?;
    silent(t, TSS_SDI_001)?;
    t.check_memory(TSS_SDI_001, &region, 0, &[0; 32])?;
    establish_as(t, TSS_SDI_001, &mut pdc, &region)
}

fn copy(t: &mut Test<'_>) -> Outcome {
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
}

fn read(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let (region, pattern) = t.patterned(4096)?;
    let mut pdc = t.initiate();
    t.request(&pdc, pdc.request(0).read(&region, 0, 32)?)?;
    if super::tss::learns_start(t, &mut pdc, |_, seen| !seen.payload().is_empty())? {
        t.request(&pdc, pdc.request(0).read(&region, 0, 32)?)?;
    }
    let data = |seen: &crate::RxPacket| (!seen.payload().is_empty()).then(|| seen.payload().to_vec());
    let within = t.soon();
    let (_, got) = t.expect(SES_READ_001, "the data of the read", within, data)?;
    t.same_bytes(SES_READ_001, "the data of the read", &pattern[..32], &got);
    let clear = t.shield()?.clear;
    t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
    Ok(())
}

fn idempotent(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let (region, pdc) = super::rudi::safe(t)?;
    let request = pdc.request(0).write(&region, 0, &[7; 32])?;
    t.send(&pdc, &rudi(0x1234, &request)?)?;
    let answers = |seen: &crate::RxPacket| seen.rudi().filter(|header| header.pkt_id() == 0x1234);
    t.expect(TSS_ICV_001, "a response", t.soon(), answers)?;
    t.expect_memory(TSS_ICV_001, &region, 0, &[7; 32])?;
    let clear = t.shield()?.clear;
    t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
    Ok(())
}

fn trimmed(t: &mut Test<'_>) -> Outcome {
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
}
