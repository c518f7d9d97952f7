//! PSNs at every place in and around the receive window (sections 3.5.8 and 3.5.12.6).

use super::steps::numbered_control;
use crate::prelude::*;

/// The place of a PSN, relative to the cumulative PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PsnPlace {
    First,
    Second,
    Middle,
    Last,
    AboveWindow,
    FarAboveWindow,
    Above2To16,
    Above2To24,
    BelowOpposite,
    Opposite,
    Cumulative,
    Below,
    LowestDuplicate,
    BelowWindow,
    Below2To24,
}

const PLACE: Axis<PsnPlace> = axis("at").values(&[
    ("first", PsnPlace::First),
    ("second", PsnPlace::Second),
    ("middle", PsnPlace::Middle),
    ("last", PsnPlace::Last),
    ("above-window", PsnPlace::AboveWindow),
    ("far-above-window", PsnPlace::FarAboveWindow),
    ("2-16-above", PsnPlace::Above2To16),
    ("2-24-above", PsnPlace::Above2To24),
    ("below-opposite", PsnPlace::BelowOpposite),
    ("opposite", PsnPlace::Opposite),
    ("cumulative", PsnPlace::Cumulative),
    ("below", PsnPlace::Below),
    ("lowest-duplicate", PsnPlace::LowestDuplicate),
    ("below-window", PsnPlace::BelowWindow),
    ("2-24-below", PsnPlace::Below2To24),
]);

/// The packet with the PSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketKind {
    Request,
    Retransmission,
    Noop,
    RetransmittedNoop,
}

const KIND: Axis<PacketKind> = axis("kind").values(&[
    ("request", PacketKind::Request),
    ("retransmission", PacketKind::Retransmission),
    ("noop", PacketKind::Noop),
    ("retransmitted-noop", PacketKind::RetransmittedNoop),
]);

impl PsnPlace {
    /// Returns the distance of the PSN above PSN 0, which is the cumulative PSN.
    fn distance(self, t: &Test<'_>, pdc: &Pdc) -> Result<u32, Stop> {
        let range = t.range(pdc)?;
        Ok(match self {
            PsnPlace::First => 1,
            PsnPlace::Second => 2,
            PsnPlace::Middle => range / 2,
            PsnPlace::Last => range,
            PsnPlace::AboveWindow => t.beyond(pdc)?,
            PsnPlace::FarAboveWindow => t.beyond(pdc)? + (1 << 20),
            PsnPlace::Above2To16 => t.beyond(pdc)?.max((1 << 16) + 1),
            PsnPlace::Above2To24 => t.beyond(pdc)?.max((1 << 24) + 1),
            PsnPlace::BelowOpposite => (1 << 31) - 1,
            PsnPlace::Opposite => 1 << 31,
            PsnPlace::Cumulative => 0,
            PsnPlace::Below => 1u32.wrapping_neg(),
            PsnPlace::LowestDuplicate => range.wrapping_neg(),
            PsnPlace::BelowWindow => t.beyond(pdc)?.wrapping_neg(),
            PsnPlace::Below2To24 => ((1u32 << 24) - 1).wrapping_neg(),
        })
    }
}

impl PacketKind {
    fn is_noop(self) -> bool {
        matches!(self, PacketKind::Noop | PacketKind::RetransmittedNoop)
    }

    fn is_retransmission(self) -> bool {
        matches!(self, PacketKind::Retransmission | PacketKind::RetransmittedNoop)
    }

    /// Builds the packet, `distance` above PSN 0.
    fn packet(self, pdc: &Pdc, region: &Region, distance: u32) -> Result<UetBuf, Stop> {
        let (psn, retx) = (pdc.psn(distance), self.is_retransmission());
        if self.is_noop() {
            return numbered_control(pdc, CtlType::NOOP, distance, true, retx);
        }
        let request = Request { psn, retx, clear: psn - 1, ..pdc.request(0) };
        Ok(request.write(region, 0, &[5; 16])?.build()?)
    }
}

pub(super) const RULES: &[Rule] =
    &[rule("window/position", "A PSN is new, a duplicate or refused according to its place in the window")
        .checks(&[PDS_WIN_001, PDS_PSN_002, PDS_RUD_001, PDS_OPEN_006, PDS_DUP_004, PDS_DUP_001, PDS_PSN_003])
        .needs(&[RUD, WRITE])
        .over(&[&PLACE, &KIND, &START])
        .run(|t| {
            let (place, kind) = (t.value(&PLACE), t.value(&KIND));
            if kind.is_noop() {
                t.need_noop()?;
            }
            let (pdc, region) = t.open()?;
            let distance = place.distance(t, &pdc)?;
            t.forget();
            t.send(&pdc, &kind.packet(&pdc, &region, distance)?)?;
            match place {
                PsnPlace::First | PsnPlace::Second | PsnPlace::Middle | PsnPlace::Last => {
                    expect_new(t, &pdc, &region, distance)?;
                }
                PsnPlace::Cumulative | PsnPlace::Below | PsnPlace::LowestDuplicate => {
                    expect_duplicate(t, &pdc, &region, distance)?;
                }
                _ => {
                    let packet = (&pdc, pdc.psn(distance), kind.is_retransmission());
                    t.expect_nack_of(PDS_OPEN_006, packet, &[NackCode::PSN_OOR_WINDOW])?;
                    t.pause(t.soon() / 2)?;
                    t.check_memory(PDS_OPEN_006, &region, 0, &[0; 16])?;
                }
            }
            expect_next(t, &pdc, &region, distance)
        })];

/// Expects that the packet is received and delivered.
fn expect_new(t: &mut Test<'_>, pdc: &Pdc, region: &Region, distance: u32) -> Outcome {
    let (_, ack) = t.expect_answer(PDS_WIN_001, pdc, pdc.psn(distance))?;
    let cack = if distance == 1 { pdc.psn(1) } else { pdc.psn(0) };
    t.check(PDS_PSN_002, "cack_psn", cack, ack.cack_psn());
    let byte = if t.value(&KIND).is_noop() { 0 } else { 5 };
    t.expect_memory(PDS_WIN_001, region, 0, &[byte; 16])
}

/// Expects that the packet is not refused, and that a retransmission is acknowledged.
fn expect_duplicate(t: &mut Test<'_>, pdc: &Pdc, region: &Region, distance: u32) -> Outcome {
    let psn = pdc.psn(distance);
    // Nobody has sent a PSN below the first one, so a device may also refuse it.
    let refused =
        |seen: &RxPacket| seen.refuses(pdc, psn).is_some_and(|it| it.nack_code() == NackCode::PSN_OOR_WINDOW);
    if distance != 0 && t.hear(t.soon() / 2, refused)? {
        return t.check_memory(PDS_DUP_001, region, 0, &[0; 16]);
    }
    t.expect_none(PDS_DUP_004, "no NACK of a duplicate", t.soon() / 2, |seen| seen.refuses(pdc, psn))?;
    // A device may drop a duplicate without retx.
    if t.value(&KIND).is_retransmission() {
        let (_, ack) = t.expect_ack(PDS_DUP_004, pdc, psn)?;
        t.check(PDS_PSN_003, "cack_psn", pdc.psn(0), ack.cack_psn());
    }
    t.check_memory(PDS_DUP_001, region, 0, &[0; 16])
}

/// Expects that the context accepts the next packet in order.
fn expect_next(t: &mut Test<'_>, pdc: &Pdc, region: &Region, distance: u32) -> Outcome {
    let next = if distance == 1 { 2 } else { 1 };
    let cack = if distance == 2 { 2 } else { next };
    t.forget();
    t.request(pdc, pdc.request(next).write(region, 64, &[6; 16])?)?;
    t.expect_cack(PDS_PSN_002, pdc, pdc.psn(cack))?;
    t.expect_memory(PDS_RUD_001, region, 64, &[6; 16])
}
