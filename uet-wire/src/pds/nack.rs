use super::{Prologue, PrologueMut, PrologueRepr};
use crate::header::header;
use crate::layout::is;
use crate::registry::{CcxType, NackCode, PdsType};
use crate::{PdcId, Psn};

header! {
    /// A negative acknowledgment (NACK).
    ///
    /// ```
    /// use uet_wire::pds::Nack;
    /// use uet_wire::registry::{NackClass, NackCode};
    /// use uet_wire::{PdcId, Psn};
    ///
    /// let bytes = [0x50, 0x00, 0x0d, 0x00, 0, 0, 1, 0x4f, 0x80, 0x01, 0x40, 0x01, 0, 0, 0, 0];
    /// let (nack, _) = Nack::parse(&bytes)?;
    /// assert_eq!(nack.nack_code(), NackCode::ROD_OOO);
    /// assert_eq!(nack.nack_code().class(), Some(NackClass::Normal));
    /// assert_eq!(nack.nack_psn(), Some(Psn(335)));
    /// assert_eq!(nack.nack_pkt_id(), None);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Nack[16] NackMut NackRepr, Pds "nack" "negative acknowledgment" {
        "prologue"              0.. 16  prologue: Prologue as PrologueMut PrologueRepr, "type, next header, flags";
        "-"                     9.. 10;
        "pds.flags.m"          10.. 11  m: bool, "the packet answered arrived marked by congestion";
        "pds.flags.retx"       11.. 12  retx: bool, "the packet answered was a retransmission";
        "pds.flags.nt"         12.. 13  nt: bool, "0: of a RUD or ROD packet, 1: of a RUDI packet";
        "-"                    13.. 16;
        "pds.nack_code"        16.. 24  nack_code: NackCode, "why";
        "pds.vendor_code"      24.. 32  vendor_code: u8, "the vendor's own code";
        "pds.nack_psn"         32.. 64  nack_psn: Psn [when "pds.flags.nt" is(0)], "the PSN refused";
        "pds.nack_pkt_id"      32.. 64  nack_pkt_id: u32 [when "pds.flags.nt" is(1)], "the RUDI packet refused";
        "pds.spdcid"           64.. 80  spdcid: PdcId, "the sender's identifier of the context, 0 when there is none";
        "pds.dpdcid"           80.. 96  dpdcid: PdcId, "the receiver's identifier of the context, 0 when nt is 1";
        "pds.payload"          96..128  payload: u32, "meaning set by nack_code";
    }
}

impl Nack {
    /// Starts building the NACK of a RUD or ROD packet.
    pub fn build(code: NackCode) -> NackMut {
        Nack::zeroed().edit().prologue(|prologue| prologue.kind(PdsType::NACK)).nack_code(code)
    }

    /// Starts building the NACK of a RUDI packet.
    pub fn rudi(code: NackCode) -> NackMut {
        Nack::build(code).nt(true)
    }
}

header! {
    /// A negative acknowledgment with congestion state (NACK_CCX). The layout of the state is not public.
    ///
    /// ```
    /// use uet_wire::pds::NackCcx;
    /// use uet_wire::registry::{CcxType, NackCode};
    ///
    /// let nack = NackCcx::build(NackCode::TRIMMED).nccx_type(CcxType::new(15).unwrap()).nack_ccx_state(1).done()?;
    /// assert_eq!((nack.bytes()[16], nack.bytes()[31]), (0xf0, 1));
    /// assert!(NackCcx::build(NackCode::TRIMMED).nack_ccx_state(1 << 124).done().is_err(), "124 bits");
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    NackCcx[32] NackCcxMut NackCcxRepr, Pds "nack_ccx" "negative acknowledgment with congestion state" {
        "nack"                  0..128  nack: Nack as NackMut NackRepr, "the negative acknowledgment without congestion state";
        "pds.nccx_type"       128..132  nccx_type: CcxType, "which congestion state follows";
        "pds.nack_ccx_state"  132..256  nack_ccx_state: u128, "congestion state without a public layout";
    }
}

impl NackCcx {
    /// Starts building a NACK_CCX.
    pub fn build(code: NackCode) -> NackCcxMut {
        NackCcx::zeroed()
            .edit()
            .nack(|nack| nack.prologue(|prologue| prologue.kind(PdsType::NACK_CCX)).nack_code(code))
    }
}
