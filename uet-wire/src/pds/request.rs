use super::{Prologue, PrologueMut, PrologueRepr};
use crate::header::header;
use crate::layout::is;
use crate::registry::PdsType;
use crate::{PdcId, Psn, PsnOffset, Units24};

header! {
    /// A RUD or ROD request.
    ///
    /// ```
    /// use uet_wire::pds::Request;
    /// use uet_wire::{PdcId, Psn, PsnOffset};
    ///
    /// let bytes = [0x11, 0x8c, 0xff, 0xff, 0x00, 0x01, 0x20, 0x01, 0x40, 0x01, 0x00, 0x01];
    /// let (request, rest) = Request::parse(&bytes)?;
    /// assert_eq!(request.psn(), Psn(0x12001));
    /// assert_eq!(request.start_psn(), Some(Psn(0x12000)));
    /// assert_eq!(request.dpdcid(), None, "no context identifier yet: this packet opens one");
    /// assert!(rest.is_empty());
    ///
    /// // A header with equal bytes, built. The packet that carries the header states the next header.
    /// let built = Request::rud()
    ///     .prologue(|p| p.next_hdr(uet_wire::registry::NextHdr::UET_HDR_REQUEST_STD))
    ///     .ar(true)
    ///     .syn(true)
    ///     .clear_psn_offset(-1)
    ///     .psn(Psn(0x12001))
    ///     .spdcid(PdcId(0x4001))
    ///     .psn_offset(PsnOffset::new(1).unwrap())
    ///     .done()?;
    /// assert_eq!(built.bytes(), &bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Request[12] RequestMut RequestRepr, Pds "request" "RUD or ROD request" {
        "prologue"              0.. 16  prologue: Prologue as PrologueMut PrologueRepr, "type, next header, flags";
        "-"                     9.. 11;
        "pds.flags.retx"       11.. 12  retx: bool, "this is a retransmission";
        "pds.flags.ar"         12.. 13  ar: bool, "an ACK is requested";
        "pds.flags.syn"        13.. 14  syn: bool, "the packet may open the context";
        "-"                    14.. 16;
        "pds.clear_psn_offset" 16.. 32  clear_psn_offset: i16, "distance from psn to the highest PSN cleared";
        "pds.psn"              32.. 64  psn: Psn, "the packet's sequence number";
        "pds.spdcid"           64.. 80  spdcid: PdcId, "the sender's identifier of the context";
        "pds.dpdcid"           80.. 96  dpdcid: PdcId [when "pds.flags.syn" is(0)], "the receiver's identifier of the context";
        "pds.pdc_info"         80.. 84  pdc_info: u8 [when "pds.flags.syn" is(1)], "bit 0: use the reserved pool; bits 3 to 1 are reserved";
        "pds.psn_offset"       84.. 96  psn_offset: PsnOffset [when "pds.flags.syn" is(1)], "distance from the first PSN of the context";
    }
}

/// The bit of `pds.pdc_info` that requests a context of the reserved pool.
pub const PDC_INFO_RESERVED_POOL: u8 = 1;

impl Request {
    /// Starts building a RUD request.
    pub fn rud() -> RequestMut {
        Self::of(PdsType::RUD_REQ)
    }

    /// Starts building a ROD request.
    pub fn rod() -> RequestMut {
        Self::of(PdsType::ROD_REQ)
    }

    fn of(kind: PdsType) -> RequestMut {
        Request::zeroed().edit().prologue(|prologue| prologue.kind(kind))
    }
}

impl<B: core::borrow::Borrow<[u8; 12]>> Request<B> {
    /// Returns the highest PSN that the sender has cleared.
    #[inline]
    pub fn clear_psn(&self) -> Psn {
        self.psn().offset(self.clear_psn_offset())
    }

    /// Returns the first PSN of the context. Only packets with `syn` carry it.
    #[inline]
    pub fn start_psn(&self) -> Option<Psn> {
        Some(self.psn() - u32::from(self.psn_offset()?.get()))
    }
}

impl<B: core::borrow::BorrowMut<[u8; 12]>> RequestMut<B> {
    /// Sets `clear_psn_offset` from the highest PSN cleared. Set the PSN first: a later `psn` keeps the offset, and so
    /// clears up to another PSN.
    ///
    /// An error if the distance does not fit into 16 bits.
    #[inline]
    pub fn clear_psn(mut self, clear: Psn) -> Self {
        match clear.offset_from(self.current_unchecked().psn()) {
            Some(offset) => self.clear_psn_offset(offset),
            None => {
                let error = const { &crate::WriteError::psn_too_far("pds.clear_psn_offset", "pds.psn") };
                self.error = self.error.or(Some(error));
                self
            }
        }
    }

    /// Sets `psn_offset` from the first PSN of the context. Set `syn` and the PSN first.
    ///
    /// An error unless `syn` is set and the PSN is at most 4,095 after `start`.
    ///
    /// ```
    /// use uet_wire::pds::Request;
    /// use uet_wire::{Psn, PsnOffset};
    ///
    /// let third = Request::rud().syn(true).psn(Psn(1)).start_psn(Psn(0xffff_ffff)).done()?;
    /// assert_eq!(third.psn_offset(), PsnOffset::new(2));
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    #[inline]
    pub fn start_psn(mut self, start: Psn) -> Self {
        match PsnOffset::between(start, self.current_unchecked().psn()) {
            Some(offset) => self.psn_offset(offset),
            None => {
                let error = const { &crate::WriteError::start_psn_too_far() };
                self.error = self.error.or(Some(error));
                self
            }
        }
    }
}

header! {
    /// A RUD or ROD request with the state of its congestion control context.
    ///
    /// ```
    /// use uet_wire::pds::RequestCc;
    /// use uet_wire::{Psn, Units24};
    ///
    /// let bytes = [0x69, 0x80, 0, 0, 0, 0, 0, 7, 0x40, 0x01, 0x80, 0x01, 0xa1, 0x00, 0x02, 0x00];
    /// let (request, _) = RequestCc::parse(&bytes)?;
    /// assert_eq!(request.request().psn(), Psn(7));
    /// assert_eq!(request.ccc_id(), 0xa1);
    /// assert_eq!(request.credit_target().bytes(), 131_072);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    RequestCc[16] RequestCcMut RequestCcRepr, Pds "request_cc" "RUD or ROD request with congestion state" {
        "request"               0.. 96  request: Request as RequestMut RequestRepr, "the request without congestion state";
        "pds.ccc_id"           96..104  ccc_id: u8, "the congestion control context of the sender";
        "pds.credit_target"   104..128  credit_target: Units24, "credit wanted, cumulative, in units of 256 bytes";
    }
}

impl RequestCc {
    /// Starts building a RUD request with congestion state.
    pub fn rud() -> RequestCcMut {
        Self::of(PdsType::RUD_CC_REQ)
    }

    /// Starts building a ROD request with congestion state.
    pub fn rod() -> RequestCcMut {
        Self::of(PdsType::ROD_CC_REQ)
    }

    fn of(kind: PdsType) -> RequestCcMut {
        RequestCc::zeroed().edit().request(|request| request.prologue(|prologue| prologue.kind(kind)))
    }
}
