use crate::{Pdc, Wire};
use core::time::Duration;
use uet_wire::pds::{Ack, AckCc, Control, Nack, Pds, Request, Rudi};
use uet_wire::registry::{CtlType, NackCode, PdsType, ReturnCode};
use uet_wire::ses::{Response, Ses};
use uet_wire::{PdcId, Psn, Uet};

/// A packet of the device with accessors by type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RxPacket {
    /// Arrival time.
    pub at: Duration,
    /// Its number in the ladder.
    pub number: usize,
    /// The packet.
    pub wire: Wire,
}

impl RxPacket {
    /// Returns the headers, as far as they can be read.
    pub fn uet(&self) -> Uet<'_> {
        Uet::parse_lax(&self.wire.bytes).0
    }

    /// Returns the RUD or ROD request.
    pub fn request(&self) -> Option<Request> {
        self.uet().pds?.request()
    }

    /// Returns the ACK, of any form.
    pub fn ack(&self) -> Option<Ack> {
        self.uet().pds?.ack()
    }

    /// Returns the ACK_CC.
    pub fn ack_cc(&self) -> Option<AckCc> {
        match self.uet().pds? {
            Pds::AckCc(header) => Some(header.copied()),
            _ => None,
        }
    }

    /// Returns the NACK, of any form.
    pub fn nack(&self) -> Option<Nack> {
        self.uet().pds?.nack()
    }

    /// Returns the control packet of this type.
    pub fn control(&self, kind: CtlType) -> Option<Control> {
        self.uet().pds?.control().filter(|header| header.ctl_type() == kind)
    }

    /// Returns a control packet that a device may send at any time, such as a target's close request when
    /// idle.
    pub fn unasked(&self) -> Option<Control> {
        let kinds = [CtlType::NOOP, CtlType::NEGOTIATION, CtlType::CLOSE_REQUEST];
        kinds.into_iter().find_map(|kind| self.control(kind))
    }

    /// Returns the RUDI response.
    pub fn rudi(&self) -> Option<Rudi> {
        match self.uet().pds? {
            Pds::Rudi(header) if header.prologue().kind() == PdsType::RUDI_RESP => Some(header.copied()),
            _ => None,
        }
    }

    /// Returns the bytes after all headers.
    pub fn payload(&self) -> &[u8] {
        self.uet().payload
    }

    /// Returns the return code of a response with or without data.
    pub fn return_code(&self) -> Option<ReturnCode> {
        self.uet().ses?.return_code()
    }

    /// Returns whether a response reports an error.
    pub fn is_error(&self) -> bool {
        self.return_code().is_some_and(|code| ![ReturnCode::NULL, ReturnCode::OK].contains(&code))
    }

    /// Returns the cumulative PSN of an ACK of `pdc`; the one in an answer to a PROBE does not count.
    pub fn cack(&self, pdc: &Pdc) -> Option<Psn> {
        self.ack().filter(|ack| self.is_for(pdc) && !ack.p()).map(|ack| ack.cack_psn())
    }

    /// Returns the SES response without data.
    pub fn response(&self) -> Option<Response> {
        match self.uet().ses? {
            Ses::Response(header) => Some(header.copied()),
            _ => None,
        }
    }

    /// Returns the PDCID that it is addressed to.
    pub(crate) fn dpdcid(&self) -> Option<PdcId> {
        match self.uet().pds? {
            Pds::Control(header) => header.dpdcid(),
            pds => pds
                .ack()
                .map(|ack| ack.dpdcid())
                .or_else(|| pds.nack().map(|nack| nack.dpdcid()))
                .or_else(|| pds.request().and_then(|request| request.dpdcid())),
        }
    }

    /// Returns whether it is addressed to the suite's side of `pdc`.
    pub fn is_for(&self, pdc: &Pdc) -> bool {
        self.dpdcid() == Some(pdc.local) && self.wire.dst == pdc.from
    }

    /// Returns the ACK of `pdc` that reports the arrival of `psn`: by name, cumulatively or by a bit.
    pub fn acknowledges(&self, pdc: &Pdc, psn: Psn) -> Option<Ack> {
        let by_bit = || self.ack_cc().is_some_and(|ack| ack.sacked().any(|sacked| sacked == psn));
        let reports = |ack: &Ack| ack.ack_psn() == Some(psn) || !psn.is_after(ack.cack_psn()) || by_bit();
        self.ack().filter(|ack| self.is_for(pdc) && reports(ack))
    }

    /// Returns the ACK of `pdc` that names `psn`.
    pub fn answers(&self, pdc: &Pdc, psn: Psn) -> Option<Ack> {
        self.ack().filter(|ack| self.is_for(pdc) && ack.ack_psn() == Some(psn))
    }

    /// Returns whether it is a NACK for lack of resources: the amount is the device's own choice.
    pub fn lacks_room(&self) -> bool {
        let codes =
            [NackCode::NO_PDC_AVAIL, NackCode::NO_CCC_AVAIL, NackCode::NO_BITMAP, NackCode::NO_GTD_DEL_AVAIL];
        self.nack().is_some_and(|nack| codes.contains(&nack.nack_code()))
    }

    /// Returns the NACK of `pdc` for `psn`.
    pub fn refuses(&self, pdc: &Pdc, psn: Psn) -> Option<Nack> {
        self.nack().filter(|nack| self.is_for(pdc) && nack.nack_psn() == Some(psn))
    }

    /// Returns the Start_PSN that a NACK demands for `pdc`.
    pub fn new_start(&self, pdc: &Pdc) -> Option<Psn> {
        let nack = self.nack().filter(|nack| nack.nack_code() == NackCode::NEW_START_PSN)?;
        let ours = self.wire.dst == pdc.from && nack.dpdcid() == pdc.local;
        ours.then(|| Psn(nack.payload()))
    }
}
