//! Replies to packets of every kind: the flags and the path that an ACK or NACK copies, and the packets that
//! get an ACK at once (section 3.5.12).

use super::refused_packet::{REFUSED, RefusedPacket};
use super::steps::{delay_acks, numbered_control, remember_closed};
use crate::prelude::*;

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
    DuplicateError,
    SmallRead,
    LargeRead,
    Close,
    DuplicateClose,
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
    ("duplicate-error", Answered::DuplicateError, &[WRITE]),
    ("small-read", Answered::SmallRead, &[WRITE, READ]),
    ("large-read", Answered::LargeRead, &[WRITE, READ]),
    ("close", Answered::Close, &[WRITE]),
    ("duplicate-close", Answered::DuplicateClose, &[WRITE]),
]);

impl Answered {
    fn is_noop(self) -> bool {
        matches!(
            self,
            Answered::OpeningNoop | Answered::Noop | Answered::NoopAboveGap | Answered::DuplicateNoop
        )
    }

    fn is_above_gap(self) -> bool {
        matches!(self, Answered::AboveGap | Answered::NoopAboveGap)
    }

    fn is_duplicate(self) -> bool {
        matches!(
            self,
            Answered::Duplicate
                | Answered::DuplicateOpening
                | Answered::DuplicateNoop
                | Answered::DuplicateError
                | Answered::DuplicateClose
        )
    }

    /// Returns the number of its PSN.
    fn number(self) -> u32 {
        match self {
            Answered::Opening | Answered::OpeningNoop | Answered::DuplicateOpening => 0,
            Answered::AboveGap | Answered::NoopAboveGap => 5,
            _ => 1,
        }
    }

    /// Opens the context, unless the packet does, and a region if the packet needs one.
    fn open(self, t: &mut Test<'_>) -> Result<(Option<Region>, Pdc), Stop> {
        if self.is_noop() {
            t.need_noop()?;
        }
        if self == Answered::OpeningNoop {
            return Ok((None, t.initiate()));
        }
        let region = t.region(1 << 16)?;
        let mut pdc = t.initiate();
        if !matches!(self, Answered::Opening | Answered::DuplicateOpening) {
            // An ordered context accepts nothing above a gap.
            pdc.rod &= !self.is_above_gap();
            t.establish(&mut pdc, &region)?;
        }
        Ok((Some(region), pdc))
    }

    /// Builds the packet.
    fn packet(self, t: &Test<'_>, pdc: &Pdc, region: Option<&Region>, retx: bool) -> Result<UetBuf, Stop> {
        let n = self.number();
        let Some(region) = region.filter(|_| !self.is_noop()) else {
            return numbered_control(pdc, CtlType::NOOP, n, true, retx);
        };
        let request = Request { retx, ..pdc.request(n) };
        let request = match self {
            Answered::Error | Answered::DuplicateError => request.write_nowhere(region, &[1; 16])?,
            Answered::SmallRead => {
                request.read(region, 0, t.parameter("max_ack_data_size").clamp(1, 8) as u32)?
            }
            Answered::LargeRead => request.read(region, 0, t.beyond_ack()?)?,
            Answered::Close | Answered::DuplicateClose => {
                return numbered_control(pdc, CtlType::CLOSE_COMMAND, n, true, retx);
            }
            _ => request.write(region, 0, &[1; 16])?,
        };
        Ok(request.build()?)
    }
}

pub(super) const RULES: &[Rule] = &[
    rule("reply-fields/ack-flags", "An ACK copies retx, the congestion mark and the entropy of its packet")
        .checks(&[PDS_ACK_002, PDS_CLOSE_010, CC_PATH_001])
        .needs(&[WRITE])
        .over(&[&ANSWERED, &RETX, &MARK, &MODE])
        .run(|t| {
            let (kind, retx, marked) = (t.value(&ANSWERED), t.value(&RETX), t.value(&MARK));
            let (region, mut pdc) = kind.open(t)?;
            let psn = pdc.psn(kind.number());
            if kind.is_duplicate() {
                // The first copy has the other flags.
                let first = kind.packet(t, &pdc, region.as_ref(), !retx)?;
                let mark = !marked && t.claims("ecn") && t.facts().set_ecn;
                t.send_marked(&pdc, &first, mark)?;
                t.need("an ACK of the first copy", t.soon(), |seen| seen.answers(&pdc, psn))?;
                // The sources leave open how long a closed context is kept.
                if kind != Answered::DuplicateClose {
                    t.pause(t.soon())?;
                }
                t.forget();
            }
            pdc.entropy ^= 0x1555;
            let sent = kind.packet(t, &pdc, region.as_ref(), retx)?;
            t.send_marked(&pdc, &sent, marked)?;
            if kind.is_duplicate() && !retx {
                let within = t.patience(t.soon());
                let answered = t.hear(within, |seen| seen.answers(&pdc, psn).is_some())?;
                require(answered, "the device drops duplicates without retx")?;
            }
            let of = if kind == Answered::DuplicateClose { PDS_CLOSE_010 } else { PDS_ACK_002 };
            let (seen, ack) = t.expect_answer(of, &pdc, psn)?;
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
            if kind.is_noop() {
                t.need_noop()?;
            }
            remember_closed(t)?;
            if kind == RefusedPacket::ExtraMessage {
                t.configure("max_messages", 1)?;
            }
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            let gap = matches!(kind, RefusedPacket::Gap | RefusedPacket::GapNoop);
            pdc.rod = gap || pdc.rod && kind != RefusedPacket::ExtraMessage;
            t.establish(&mut pdc, &region)?;
            let (n, codes) = kind.arrange(t, &mut pdc, &region)?;
            pdc.entropy ^= 0x1555;
            let packet = kind.packet(t, &pdc, &region, n, retx)?;
            t.send_marked(&pdc, &packet, marked)?;
            let nack = t.expect_nack_of(PDS_NACK_001, (&pdc, pdc.psn(n), retx), codes)?;
            let Some((seen, nack)) = nack else { return Ok(()) };
            t.check(PDS_NACK_001, "flag retx", retx, nack.retx());
            t.check(PDS_NACK_001, "flag m (marked)", marked, nack.m());
            check_path(t, &pdc, seen.wire.entropy);
            Ok(())
        }),
    rule("reply-fields/at-once", "A packet with syn, retx, ar or a mark is acknowledged at once")
        .checks(&[PDS_ACK_001, PDS_ACK_003, PDS_ACK_004, PDS_ACK_008])
        .over(&[&PLACEMENT, &REASON, &MODE])
        .run(|t| {
            let (placement, reason) = (t.value(&PLACEMENT), t.value(&REASON));
            delay_acks(t)?;
            t.try_configure("ack_on_ecn", true)?;
            if placement == Placement::Noop {
                t.need_noop()?;
            }
            let region = t.region(4096)?;
            let mut pdc = t.initiate();
            // An ordered context accepts nothing above a gap.
            pdc.rod &= placement != Placement::AboveGap;
            let n = match (placement, reason) {
                (Placement::AboveGap, _) => 3,
                (_, PromptReason::Syn) => 0,
                _ => 1,
            };
            if reason != PromptReason::Syn {
                t.establish(&mut pdc, &region)?;
            }
            // A device may drop a duplicate without retx.
            let (ar, retx) = (
                reason == PromptReason::Ar,
                reason == PromptReason::Retx || placement == Placement::Duplicate,
            );
            if placement == Placement::Duplicate {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1; 16])?)?;
                t.need_ack(&pdc, pdc.psn(n))?;
            }
            t.forget();
            let packet = match placement {
                Placement::Noop => numbered_control(&pdc, CtlType::NOOP, n, ar, retx)?,
                _ => Request { ar, retx, ..pdc.request(n) }.write(&region, 0, &[1; 16])?.build()?,
            };
            t.send_marked(&pdc, &packet, reason == PromptReason::Marked)?;
            let requirement = match reason {
                PromptReason::Syn => PDS_ACK_001,
                PromptReason::Retx => PDS_ACK_003,
                PromptReason::Ar => PDS_ACK_004,
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
            let key = Hex64(1 << 63 | 0xacce5);
            let (region, _) = t.exposed(4096, |region| ExposeRegion { key, ..region })?;
            let retx = t.value(&RETX);
            for (id, entropy) in [(1, 0xc111), (2, 0xc222), (1, 0xc333)] {
                let pdc = Pdc { entropy, ..t.initiate() };
                let request = Request { retx, ..pdc.request(0).write(&region, 0, &[1; 16])? };
                t.send_wire(&pdc.wire(&crate::rudi(id, &request)?))?;
                let (seen, _) = t.expect(CC_PATH_001, "a RUDI response", t.soon(), |seen| {
                    seen.rudi().filter(|rudi| rudi.pkt_id() == id && seen.wire.dst == pdc.from)
                })?;
                t.check(CC_PATH_001, "entropy", entropy, seen.wire.entropy);
            }
            Ok(())
        }),
];

/// Checks that a reply has the entropy of its packet, if the link shows it.
fn check_path(t: &mut Test<'_>, pdc: &Pdc, entropy: u16) {
    if t.facts().set_entropy && t.facts().see_entropy {
        t.check(CC_PATH_001, "entropy", pdc.entropy, entropy);
    }
}

/// Why a packet is acknowledged without delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptReason {
    Syn,
    Retx,
    Ar,
    Marked,
}

const REASON: Axis<PromptReason> = axis("reason").needing(&[
    ("syn", PromptReason::Syn, &[]),
    ("retx", PromptReason::Retx, &[]),
    ("ar", PromptReason::Ar, &[]),
    ("mark", PromptReason::Marked, &[ECN, SET_ECN]),
]);

/// The place of the packet in its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Request,
    AboveGap,
    Noop,
    Duplicate,
}

const PLACEMENT: Axis<Placement> = axis("kind").needing(&[
    ("request", Placement::Request, &[WRITE]),
    ("above-gap", Placement::AboveGap, &[RUD, WRITE]),
    ("noop", Placement::Noop, &[WRITE]),
    ("duplicate", Placement::Duplicate, &[WRITE]),
]);
