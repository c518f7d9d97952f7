//! Steps that rules about robustness share.

use crate::prelude::*;

/// An open context, and memory with a pattern that nothing may change.
pub(super) struct Victim {
    pub(super) pdc: Pdc,
    pub(super) region: Region,
    pub(super) held: Vec<u8>,
}

/// Opens a context and exposes memory for it.
pub(super) fn victim(t: &mut Test<'_>) -> Result<Victim, Stop> {
    let (pdc, _) = t.open()?;
    let (region, held) = t.patterned(4096)?;
    t.pause(t.soon())?;
    t.forget();
    Ok(Victim { pdc, region, held })
}

impl Victim {
    /// Expects memory and context to be unchanged: the context accepts the next PSN.
    pub(super) fn expect_unharmed(&self, t: &mut Test<'_>) -> Outcome {
        let Victim { pdc, region, held } = self;
        t.pause(t.soon())?;
        t.expect_life(ROB_LIFE_001)?;
        t.check_memory(ROB_STATE_001, region, 0, held)?;
        t.forget();
        t.request(pdc, pdc.request(1).write(region, 0, &[0xee; 16])?)?;
        let (_, ack) = t.expect_ack(ROB_STATE_001, pdc, pdc.psn(1))?;
        t.check(ROB_STATE_001, "cack_psn", pdc.psn(1), ack.cack_psn());
        t.expect_memory(ROB_STATE_001, region, 0, &[0xee; 16])
    }

    /// Expects no reply to the packets that were sent.
    pub(super) fn expect_no_reply(&self, t: &mut Test<'_>) -> Outcome {
        t.expect_silence(PDS_OPEN_009, "no answer", |seen| {
            (seen.wire.dst == self.pdc.from && seen.unasked().is_none()).then_some(())
        })
    }

    /// Expects memory to be unchanged and the device to respond.
    pub(super) fn expect_untouched(&self, t: &mut Test<'_>) -> Outcome {
        t.pause(t.soon())?;
        t.check_memory(ROB_STATE_001, &self.region, 0, &self.held)?;
        t.expect_life(ROB_LIFE_001)
    }

    /// Returns a write that would change the pattern.
    pub(super) fn write(&self, n: u32) -> Result<Request, Stop> {
        Ok(self.pdc.request(n).write(&self.region, 64, &[0; 64])?)
    }
}

/// Returns a packet of each type for an open context.
pub(super) fn packets_of_each_type(v: &Victim) -> Result<Vec<UetBuf>, Stop> {
    let Victim { pdc, .. } = v;
    let request = v.write(1)?;
    let first = Pdc { remote: None, local: PdcId(pdc.local.0 ^ 0x1111), ..pdc.clone() };
    Ok(vec![
        request.build()?,
        Request { ..first.request(0).write(&v.region, 64, &[0; 64])? }.build()?,
        Pdc { rod: true, ..first.clone() }.request(0).write(&v.region, 64, &[0; 64])?.build()?,
        crate::rudi(1, &request)?,
        crate::uud(&request)?,
        pdc.ack(pdc.start).build()?,
        pdc.ack(pdc.start).sack(pdc.start, 1).build()?,
        pdc.nack(NackCode::NO_RESOURCE, pdc.start)?,
        pdc.control(CtlType::NOOP, pdc.psn(1), 0)?,
        pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?,
        pdc.control(CtlType::ACK_REQUEST, pdc.psn(0), 0)?,
        pdc.probe(1, pdc.psn(0))?,
    ])
}

/// Returns the length of the PDS header in bytes.
pub(super) fn pds_length(packet: &UetBuf) -> usize {
    packet.pds.as_ref().map_or(0, |pds| pds.view().bytes().len())
}
