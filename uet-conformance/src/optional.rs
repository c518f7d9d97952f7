//! Control packets that a device need not know: scripts that build on one find out first.

use crate::{Outcome, Stop, Test};
use uet_wire::registry::CtlType;

impl Test<'_> {
    /// Goes on only where the device acknowledges a plain NOOP on an open context.
    pub(crate) fn need_noop(&mut self) -> Outcome {
        let (pdc, _) = self.open()?;
        self.send(&pdc, &pdc.numbered(CtlType::NOOP, 1)?)?;
        let within = self.patience(self.soon());
        let taken = self.wait(within, |seen| seen.acknowledges(&pdc, pdc.psn(1)).then_some(()))?;
        self.forget();
        match taken {
            Some(_) => Ok(()),
            None => Err(Stop::Skipped("the device does not acknowledge a plain NOOP".into())),
        }
    }

    /// Goes on only where the device answers a plain PROBE on an open context.
    pub(crate) fn need_probe(&mut self) -> Outcome {
        let (pdc, _) = self.open()?;
        self.send(&pdc, &pdc.probe(0x7e57, pdc.psn(0))?)?;
        let within = self.patience(self.soon());
        let answered = self.wait(within, |seen| seen.ack().filter(|ack| ack.p() && seen.is_for(&pdc)))?;
        self.forget();
        match answered {
            Some(_) => Ok(()),
            None => Err(Stop::Skipped("the device does not answer a plain PROBE".into())),
        }
    }
}
