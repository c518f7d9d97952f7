//! Control packets that a device need not know: scripts that build on one find out first.

use crate::{Outcome, Pdc, RxPacket, Stop, Test};
use uet_wire::UetBuf;
use uet_wire::pds::Ack;
use uet_wire::registry::CtlType;

impl Test<'_> {
    /// Goes on only where the device acknowledges a plain NOOP on an open context.
    pub(crate) fn need_noop(&mut self) -> Outcome {
        let (pdc, _) = self.open()?;
        let lacks = "the device does not acknowledge a plain NOOP";
        self.need_reaction(&pdc, &pdc.numbered(CtlType::NOOP, 1)?, lacks, |seen| {
            seen.acknowledges(&pdc, pdc.psn(1))
        })
    }

    /// Goes on only where the device answers a plain PROBE on an open context.
    pub(crate) fn need_probe(&mut self) -> Outcome {
        let (pdc, _) = self.open()?;
        let lacks = "the device does not answer a plain PROBE";
        self.need_reaction(&pdc, &pdc.probe(0x7e57, pdc.psn(0))?, lacks, |seen| {
            seen.ack().filter(|ack| ack.p() && seen.is_for(&pdc))
        })
    }

    fn need_reaction(
        &mut self,
        pdc: &Pdc,
        packet: &UetBuf,
        lacks: &str,
        wanted: impl FnMut(&RxPacket) -> Option<Ack>,
    ) -> Outcome {
        self.send(pdc, packet)?;
        let answered = self.wait(self.patience(self.soon()), wanted)?;
        self.forget();
        answered.map(drop).ok_or_else(|| Stop::Skipped(lacks.into()))
    }
}
