//! The packets that a target refuses in `reply-fields/nack-flags`.

use super::steps::{close_context, numbered_control};
use crate::prelude::*;

/// The packet that a NACK refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedPacket {
    Unknown,
    UnknownNoop,
    OtherSpdcid,
    OtherSpdcidNoop,
    OtherStart,
    OtherStartNoop,
    AboveWindow,
    AboveWindowNoop,
    AboveWindowSyn,
    BelowWindow,
    OtherMode,
    Gap,
    GapNoop,
    ExtraMessage,
    Closed,
}

const MODES: &[Need] = &[RUD, ROD, WRITE];

pub(super) const REFUSED: Axis<RefusedPacket> = axis("kind").needing(&[
    ("unknown", RefusedPacket::Unknown, &[WRITE]),
    ("unknown-noop", RefusedPacket::UnknownNoop, &[WRITE]),
    ("other-spdcid", RefusedPacket::OtherSpdcid, &[WRITE]),
    ("other-spdcid-noop", RefusedPacket::OtherSpdcidNoop, &[WRITE]),
    ("other-start", RefusedPacket::OtherStart, &[WRITE]),
    ("other-start-noop", RefusedPacket::OtherStartNoop, &[WRITE]),
    ("above-window", RefusedPacket::AboveWindow, &[WRITE]),
    ("above-window-noop", RefusedPacket::AboveWindowNoop, &[WRITE]),
    ("above-window-syn", RefusedPacket::AboveWindowSyn, &[WRITE]),
    ("below-window", RefusedPacket::BelowWindow, &[WRITE]),
    ("other-mode", RefusedPacket::OtherMode, MODES),
    ("gap", RefusedPacket::Gap, &[ROD, WRITE]),
    ("gap-noop", RefusedPacket::GapNoop, &[ROD, WRITE]),
    ("extra-message", RefusedPacket::ExtraMessage, &[RUD, WRITE]),
    ("closed", RefusedPacket::Closed, &[WRITE]),
]);

impl RefusedPacket {
    pub(super) fn is_noop(self) -> bool {
        matches!(
            self,
            RefusedPacket::UnknownNoop
                | RefusedPacket::OtherSpdcidNoop
                | RefusedPacket::OtherStartNoop
                | RefusedPacket::AboveWindowNoop
                | RefusedPacket::GapNoop
        )
    }

    /// Changes the suite's side of the context as the packet needs it. Returns the number of the packet's PSN
    /// and the codes that refuse it.
    pub(super) fn arrange(
        self,
        t: &mut Test<'_>,
        pdc: &mut Pdc,
        region: &Region,
    ) -> Result<(u32, &'static [NackCode]), Stop> {
        Ok(match self {
            RefusedPacket::Unknown | RefusedPacket::UnknownNoop => {
                *pdc = Pdc { local: t.initiate().local, ..pdc.of_nobody(None) };
                (1, &[NackCode::INV_DPDCID])
            }
            RefusedPacket::OtherSpdcid | RefusedPacket::OtherSpdcidNoop => {
                pdc.local = t.initiate().local;
                (1, &[NackCode::PDC_HDR_MISMATCH])
            }
            RefusedPacket::OtherStart | RefusedPacket::OtherStartNoop => {
                pdc.remote = None;
                (1, &[NackCode::INVALID_SYN])
            }
            RefusedPacket::AboveWindow | RefusedPacket::AboveWindowNoop => {
                (t.beyond(pdc)?, &[NackCode::PSN_OOR_WINDOW, NackCode::ROD_OOO])
            }
            RefusedPacket::AboveWindowSyn => {
                let n = t.beyond(pdc)?;
                pdc.remote = None;
                require(n <= 4095, "the window is wider than psn_offset")?;
                (n, &[NackCode::INVALID_SYN, NackCode::ROD_OOO])
            }
            RefusedPacket::BelowWindow => {
                pdc.start = pdc.start - t.beyond(pdc)?;
                (0, &[NackCode::PSN_OOR_WINDOW])
            }
            RefusedPacket::OtherMode => {
                pdc.rod = !pdc.rod;
                (1, &[NackCode::PDC_MODE_MISMATCH])
            }
            RefusedPacket::Gap | RefusedPacket::GapNoop => (3, &[NackCode::ROD_OOO]),
            RefusedPacket::ExtraMessage => {
                // The only message that the device has room for.
                t.request(pdc, pdc.request(1).half(region, t.mtu(), 0)?)?;
                (3, &[NackCode::NO_SES_MSG_AVAIL, NackCode::NO_RESOURCE])
            }
            RefusedPacket::Closed => {
                close_context(t, pdc, 1)?;
                (2, &[NackCode::CLOSING, NackCode::INV_DPDCID])
            }
        })
    }

    /// Builds the packet with the `n`-th PSN.
    pub(super) fn packet(
        self,
        t: &Test<'_>,
        pdc: &Pdc,
        region: &Region,
        n: u32,
        retx: bool,
    ) -> Result<UetBuf, Stop> {
        let psn = pdc.psn(n);
        let request = Request { retx, ..pdc.request(n) };
        Ok(match self {
            // The next PSN with an offset from another Start_PSN.
            RefusedPacket::OtherStartNoop => {
                UetBuf::new(pdc.opening(CtlType::NOOP, 5).psn(psn).ar(true).retx(retx).done()?)
            }
            _ if self.is_noop() => numbered_control(pdc, CtlType::NOOP, n, true, retx)?,
            RefusedPacket::ExtraMessage => {
                let other = Region { message_id: region.message_id ^ 1, ..region.clone() };
                request.half(&other, t.mtu(), 0)?.build()?
            }
            _ => {
                let offset = if self == RefusedPacket::OtherStart { 5 } else { n };
                let request = Request { offset, clear: psn - 1, ..request };
                request.write(region, 0, &[1; 16])?.build()?
            }
        })
    }
}
