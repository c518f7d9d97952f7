//! Answers of every kind to packets of every kind: the flags and the path that an ACK or NACK takes over, and
//! which packets it answers at once.

use crate::prelude::*;
use uet_wire::pds::Control;

/// True if the packet has `retx`.
const RETX: Axis<bool> = axis("retx").values(&[("no", false), ("yes", true)]);

/// True if a switch has marked the packet.
const MARK: Axis<bool> = axis("mark").needing(&[("no", false, &[]), ("yes", true, &[ECN, SET_ECN])]);

/// The packet that an ACK answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Opening,
    OpeningNoop,
    Request,
    Noop,
    AboveGap,
    NoopAboveGap,
    Duplicate,
    DuplicateOpening,
    DuplicateNoop,
    Error,
    ErrorAgain,
    SmallRead,
    LargeRead,
    Close,
    CloseAgain,
}

const ANSWERED: Axis<Answered> = axis("kind").needing(&[
    ("request", Answered::Request, &[WRITE]),
    ("opening", Answered::Opening, &[WRITE]),
    ("opening-noop", Answered::OpeningNoop, &[]),
    ("noop", Answered::Noop, &[WRITE]),
    ("above-gap", Answered::AboveGap, &[RUD, WRITE]),
    ("noop-above-gap", Answered::NoopAboveGap, &[RUD, WRITE]),
    ("duplicate", Answered::Duplicate, &[WRITE]),
    ("duplicate-opening", Answered::DuplicateOpening, &[WRITE]),
    ("duplicate-noop", Answered::DuplicateNoop, &[WRITE]),
    ("error", Answered::Error, &[WRITE]),
    ("error-again", Answered::ErrorAgain, &[WRITE]),
    ("small-read", Answered::SmallRead, &[WRITE, READ]),
    ("large-read", Answered::LargeRead, &[WRITE, READ]),
    ("close", Answered::Close, &[WRITE]),
    ("close-again", Answered::CloseAgain, &[WRITE]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("reply-fields/ack-flags", "An ACK copies retx, the congestion mark and the entropy of its packet")
        .checks(&[PDS_ACK_002, CC_PATH_001])
        .needs(&[WRITE])
        .over(&[&ANSWERED, &RETX, &MARK, &MODE])
        .run(|t| {
            let (kind, retx, marked) = (t.value(&ANSWERED), t.value(&RETX), t.value(&MARK));
            let control = matches!(
                kind,
                Answered::OpeningNoop | Answered::Noop | Answered::NoopAboveGap | Answered::DuplicateNoop
            );
            let above_gap = matches!(kind, Answered::AboveGap | Answered::NoopAboveGap);
            if control {
                t.need_noop()?;
            }
            let (region, mut pdc) = match kind {
                Answered::OpeningNoop => (None, t.initiate()),
                Answered::Opening | Answered::DuplicateOpening => (Some(t.region(1 << 16)?), t.initiate()),
                _ => {
                    let region = t.region(1 << 16)?;
                    let mut pdc = t.initiate();
                    // An ordered context takes nothing above a gap.
                    pdc.rod &= !above_gap;
                    t.establish(&mut pdc, &region)?;
                    (Some(region), pdc)
                }
            };
            let n = match kind {
                Answered::Opening | Answered::OpeningNoop | Answered::DuplicateOpening => 0,
                Answered::AboveGap | Answered::NoopAboveGap => 5,
                _ => 1,
            };
            // Reads get an answer from memory, everything else from this.
            let packet = |t: &Test<'_>, pdc: &Pdc, retx: bool| -> Result<UetBuf, Stop> {
                let request = Request { retx, ..pdc.request(n) };
                let Some(region) = &region else { return noop(pdc, n, true, retx) };
                Ok(match kind {
                    _ if control => noop(pdc, n, true, retx)?,
                    Answered::Error | Answered::ErrorAgain => {
                        request.write_nowhere(region, &[1; 16])?.build()?
                    }
                    Answered::SmallRead => request
                        .read(region, 0, t.parameter("max_ack_data_size").clamp(1, 8) as u32)?
                        .build()?,
                    Answered::LargeRead => request.read(region, 0, t.beyond_ack()?)?.build()?,
                    Answered::Close | Answered::CloseAgain => {
                        numbered(pdc, CtlType::CLOSE_COMMAND, n, true, retx)?
                    }
                    _ => request.write(region, 0, &[1; 16])?.build()?,
                })
            };
            let again = matches!(
                kind,
                Answered::Duplicate
                    | Answered::DuplicateOpening
                    | Answered::DuplicateNoop
                    | Answered::ErrorAgain
                    | Answered::CloseAgain
            );
            if again {
                // The first copy has the other flags.
                let first = packet(t, &pdc, !retx)?;
                let mark = !marked && t.claims("ecn") && t.facts().set_ecn;
                t.send_marked(&pdc, &first, mark)?;
                t.need("an ACK of the first copy", t.soon(), |seen| seen.answers(&pdc, pdc.psn(n)))?;
                // How long a closed context is kept is open.
                if kind != Answered::CloseAgain {
                    t.pause(t.soon())?;
                }
                t.forget();
            }
            pdc.entropy ^= 0x1555;
            let sent = packet(t, &pdc, retx)?;
            t.send_marked(&pdc, &sent, marked)?;
            if again && !retx {
                // A copy without retx may be dropped in silence.
                let within = t.patience(t.soon());
                require(
                    t.hear(within, |seen| seen.answers(&pdc, pdc.psn(n)).is_some())?,
                    "the device drops copies in silence",
                )?;
            }
            let (seen, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
            t.check(PDS_ACK_002, "flag retx", retx, ack.retx());
            t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
            check_path(t, &pdc, seen.wire.entropy);
            Ok(())
        }),
    rule("reply-fields/nack-flags", "A NACK copies retx, the congestion mark and the entropy of its packet")
        .checks(&[PDS_NACK_001, CC_PATH_001])
        .over(&[&REFUSED, &RETX, &MARK, &MODE])
        .run(|t| {
            let (kind, retx, marked) = (t.value(&REFUSED), t.value(&RETX), t.value(&MARK));
            let control = matches!(
                kind,
                NackedPacket::UnknownNoop
                    | NackedPacket::StrangerNoop
                    | NackedPacket::MovedNoop
                    | NackedPacket::BeyondNoop
                    | NackedPacket::GapNoop
            );
            if control {
                t.need_noop()?;
            }
            t.try_configure("syn_retx_safety_time", 1_000_000_000)?;
            if kind == NackedPacket::Message {
                t.configure("max_messages", 1)?;
            }
            let region = t.region(1 << 16)?;
            let other = Region { message_id: region.message_id ^ 1, ..region.clone() };
            let gap = matches!(kind, NackedPacket::Gap | NackedPacket::GapNoop);
            let mut pdc = t.initiate();
            pdc.rod = gap || pdc.rod && kind != NackedPacket::Message;
            t.establish(&mut pdc, &region)?;
            let mut n = 1;
            let codes: &[NackCode] = match kind {
                NackedPacket::Unknown | NackedPacket::UnknownNoop => {
                    pdc = Pdc { local: t.initiate().local, ..pdc.of_nobody(None) };
                    &[NackCode::INV_DPDCID]
                }
                NackedPacket::Stranger | NackedPacket::StrangerNoop => {
                    pdc.local = t.initiate().local;
                    &[NackCode::PDC_HDR_MISMATCH]
                }
                NackedPacket::Moved | NackedPacket::MovedNoop => {
                    pdc.remote = None;
                    &[NackCode::INVALID_SYN]
                }
                NackedPacket::Beyond | NackedPacket::BeyondNoop => {
                    n = t.beyond(&pdc)?;
                    &[NackCode::PSN_OOR_WINDOW, NackCode::ROD_OOO]
                }
                NackedPacket::BeyondSyn => {
                    n = t.beyond(&pdc)?;
                    pdc.remote = None;
                    require(n <= 4095, "the window is wider than psn_offset")?;
                    &[NackCode::INVALID_SYN, NackCode::ROD_OOO]
                }
                NackedPacket::Below => {
                    pdc.start = pdc.start - t.beyond(&pdc)?;
                    n = 0;
                    &[NackCode::PSN_OOR_WINDOW]
                }
                NackedPacket::OtherMode => {
                    pdc.rod = !pdc.rod;
                    &[NackCode::PDC_MODE_MISMATCH]
                }
                NackedPacket::Gap | NackedPacket::GapNoop => {
                    n = 3;
                    &[NackCode::ROD_OOO]
                }
                NackedPacket::Message => {
                    // The only message that the device has room for.
                    t.request(&pdc, pdc.request(1).half(&region, t.mtu(), 0)?)?;
                    n = 3;
                    &[NackCode::NO_SES_MSG_AVAIL, NackCode::NO_RESOURCE]
                }
                NackedPacket::Closed => {
                    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
                    t.need("the end of the context", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1)))?;
                    n = 2;
                    &[NackCode::CLOSING, NackCode::INV_DPDCID]
                }
            };
            pdc.entropy ^= 0x1555;
            let psn = pdc.psn(n);
            let packet = match kind {
                // Another Start_PSN, with the next PSN.
                NackedPacket::MovedNoop => {
                    let moved = pdc.opening(CtlType::NOOP, 5).psn(psn).ar(true).retx(retx);
                    UetBuf::new(moved.done()?)
                }
                _ if control => noop(&pdc, n, true, retx)?,
                NackedPacket::Message => {
                    Request { retx, ..pdc.request(n) }.half(&other, t.mtu(), 0)?.build()?
                }
                _ => {
                    let offset = if kind == NackedPacket::Moved { 5 } else { n };
                    let clear = psn - 1;
                    let request = Request { retx, offset, clear, ..pdc.request(n) };
                    request.write(&region, 0, &[1; 16])?.build()?
                }
            };
            t.send_marked(&pdc, &packet, marked)?;
            let (seen, nack) = t.expect_nack(PDS_NACK_001, &pdc, psn, codes)?;
            t.check(PDS_NACK_001, "flag retx", retx, nack.retx());
            t.check(PDS_NACK_001, "flag m (marked)", marked, nack.m());
            check_path(t, &pdc, seen.wire.entropy);
            Ok(())
        }),
    rule("reply-fields/at-once", "A packet with syn, retx, ar or a mark is acknowledged at once")
        .checks(&[PDS_ACK_001, PDS_ACK_003, PDS_ACK_004, PDS_ACK_008])
        .over(&[&PACKET, &REASON, &MODE])
        .run(|t| {
            let (which, reason) = (t.value(&PACKET), t.value(&REASON));
            t.try_configure("ack_delay", 1_000_000_000)?;
            t.try_configure("ack_on_ecn", true)?;
            if which == Which::Noop {
                t.need_noop()?;
            }
            let region = t.region(4096)?;
            let mut pdc = t.initiate();
            // An ordered context takes nothing above a gap.
            pdc.rod &= which != Which::AboveGap;
            let n = match (which, reason) {
                (Which::AboveGap, _) => 3,
                (_, PromptReason::Syn) => 0,
                _ => 1,
            };
            if reason != PromptReason::Syn {
                t.establish(&mut pdc, &region)?;
            }
            // A copy without retx may be dropped.
            let (ar, retx) =
                (reason == PromptReason::Asked, reason == PromptReason::Retx || which == Which::Duplicate);
            if which == Which::Duplicate {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
                t.need_ack(&pdc, pdc.psn(n))?;
            }
            t.forget();
            let packet = match which {
                Which::Noop => noop(&pdc, n, ar, retx)?,
                _ => Request { ar, retx, ..pdc.request(n) }.write(&region, 0, &[1; 16])?.build()?,
            };
            t.send_marked(&pdc, &packet, reason == PromptReason::Marked)?;
            let requirement = match reason {
                PromptReason::Syn => PDS_ACK_001,
                PromptReason::Retx => PDS_ACK_003,
                PromptReason::Asked => PDS_ACK_004,
                PromptReason::Marked => PDS_ACK_008,
            };
            t.expect_answer(requirement, &pdc, pdc.psn(n))?;
            Ok(())
        }),
    rule("reply-fields/rudi-path", "A RUDI response takes the path of its request")
        .checks(&[CC_PATH_001])
        .needs(&[RUDI, WRITE, SET_ENTROPY, SEE_ENTROPY])
        .over(&[&RETX])
        .run(|t| {
            let key = uet_control::Hex64(1 << 63 | 0xacce5);
            let (region, _): (Region, _) =
                t.exposed(4096, |region| uet_control::ExposeRegion { key, ..region })?;
            let retx = t.value(&RETX);
            for (id, entropy) in [(1, 0xc111), (2, 0xc222), (1, 0xc333)] {
                let way = Pdc { entropy, ..t.initiate() };
                let request = Request { retx, ..way.request(0).write(&region, 0, &[1; 16])? };
                t.send_wire(&way.wire(&crate::rudi(id, &request)?))?;
                let (seen, _) = t.expect(CC_PATH_001, "a RUDI response", t.soon(), |seen| {
                    seen.rudi().filter(|rudi| rudi.pkt_id() == id && seen.wire.dst == way.from)
                })?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
];

/// A NOOP with the `n`-th PSN and these flags.
fn noop(pdc: &Pdc, n: u32, ar: bool, retx: bool) -> Result<UetBuf, Stop> {
    numbered(pdc, CtlType::NOOP, n, ar, retx)
}

fn numbered(pdc: &Pdc, kind: CtlType, n: u32, ar: bool, retx: bool) -> Result<UetBuf, Stop> {
    let packet = match pdc.remote {
        None => pdc.opening(kind, n).ar(ar).retx(retx),
        Some(remote) => {
            Control::build(kind).ar(ar).retx(retx).psn(pdc.psn(n)).spdcid(pdc.local).dpdcid(remote)
        }
    };
    Ok(UetBuf::new(packet.done()?))
}

fn check_path(t: &mut Test<'_>, pdc: &Pdc, entropy: u16) {
    if t.facts().set_entropy && t.facts().see_entropy {
        t.check(CC_PATH_001, "entropy", pdc.entropy, entropy);
    }
}

/// The packet that a NACK refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NackedPacket {
    Unknown,
    UnknownNoop,
    Stranger,
    StrangerNoop,
    Moved,
    MovedNoop,
    Beyond,
    BeyondNoop,
    BeyondSyn,
    Below,
    OtherMode,
    Gap,
    GapNoop,
    Message,
    Closed,
}

const MODES: &[Need] = &[RUD, ROD, WRITE];

const REFUSED: Axis<NackedPacket> = axis("kind").needing(&[
    ("unknown", NackedPacket::Unknown, &[WRITE]),
    ("unknown-noop", NackedPacket::UnknownNoop, &[WRITE]),
    ("stranger", NackedPacket::Stranger, &[WRITE]),
    ("stranger-noop", NackedPacket::StrangerNoop, &[WRITE]),
    ("moved", NackedPacket::Moved, &[WRITE]),
    ("moved-noop", NackedPacket::MovedNoop, &[WRITE]),
    ("beyond", NackedPacket::Beyond, &[WRITE]),
    ("beyond-noop", NackedPacket::BeyondNoop, &[WRITE]),
    ("beyond-syn", NackedPacket::BeyondSyn, &[WRITE]),
    ("below", NackedPacket::Below, &[WRITE]),
    ("other-mode", NackedPacket::OtherMode, MODES),
    ("gap", NackedPacket::Gap, &[ROD, WRITE]),
    ("gap-noop", NackedPacket::GapNoop, &[ROD, WRITE]),
    ("message", NackedPacket::Message, &[RUD, WRITE]),
    ("closed", NackedPacket::Closed, &[WRITE]),
]);

/// Why a packet is acknowledged without delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptReason {
    Syn,
    Retx,
    Asked,
    Marked,
}

const REASON: Axis<PromptReason> = axis("reason").needing(&[
    ("syn", PromptReason::Syn, &[]),
    ("retx", PromptReason::Retx, &[]),
    ("ar", PromptReason::Asked, &[]),
    ("mark", PromptReason::Marked, &[ECN, SET_ECN]),
]);

/// The place of the packet in its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Request,
    AboveGap,
    Noop,
    Duplicate,
}

const PACKET: Axis<Which> = axis("kind").needing(&[
    ("request", Which::Request, &[WRITE]),
    ("above-gap", Which::AboveGap, &[RUD, WRITE]),
    ("noop", Which::Noop, &[WRITE]),
    ("duplicate", Which::Duplicate, &[WRITE]),
]);
