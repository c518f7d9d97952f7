//! The PSNs that an ACK acknowledges.

use uet_wire::pds::Pds;
use uet_wire::{PdcId, Psn};

/// The packets of a context that an ACK acknowledges: up to the cumulative PSN, the named one and those of the bitmap.
#[derive(Debug)]
pub(super) struct Acknowledged {
    /// The context, as the sender of the packets names it.
    pub(super) context: PdcId,
    pub(super) named: Option<Psn>,
    pub(super) retx: bool,
    cack: Psn,
    sacked: Vec<Psn>,
}

impl Acknowledged {
    /// Reads an ACK; `None` for another packet.
    pub(super) fn of(pds: &Pds<'_>) -> Option<Self> {
        let ack = pds.ack()?;
        let sacked = match pds {
            Pds::AckCc(header) => header.sacked().collect(),
            Pds::AckCcx(header) => header.sacked().collect(),
            _ => Vec::new(),
        };
        let (named, cack) = (ack.ack_psn(), ack.cack_psn());
        Some(Acknowledged { context: ack.dpdcid(), named, retx: ack.retx(), cack, sacked })
    }

    pub(super) fn has(&self, psn: Psn) -> bool {
        !psn.is_after(self.cack) || self.named == Some(psn) || self.sacked.contains(&psn)
    }
}
