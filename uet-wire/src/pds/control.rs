use super::{ControlPrologue, ControlPrologueMut, ControlPrologueRepr};
use crate::header::header;
use crate::layout::{all_except, is};
use crate::registry::{CtlType, PdsType};
use crate::{PdcId, Psn, PsnOffset, Units24};
use core::borrow::Borrow;

header! {
    /// A control packet (CP). Its type defines the meaning of `psn` and `payload`.
    ///
    /// ```
    /// use uet_wire::pds::Control;
    /// use uet_wire::registry::CtlType;
    /// use uet_wire::{PdcId, Psn};
    ///
    /// let clear = Control::build(CtlType::CLEAR_COMMAND)
    ///     .spdcid(PdcId(0x4001))
    ///     .dpdcid(PdcId(0x8001))
    ///     .payload(333)
    ///     .done()?;
    /// assert_eq!(clear.bytes(), &[0x59, 0, 0, 0, 0, 0, 0, 0, 0x40, 1, 0x80, 1, 0, 0, 1, 0x4d]);
    /// assert_eq!(clear.clear_psn(), Some(Psn(333)));
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Control[16] ControlMut ControlRepr, Pds "control" "control packet" {
        "prologue"              0.. 16  prologue: ControlPrologue as ControlPrologueMut ControlPrologueRepr, "type, control type, flags";
        "-"                     9.. 10;
        "pds.flags.isrod"      10.. 11  isrod: bool, "the context being opened is ROD";
        "pds.flags.retx"       11.. 12  retx: bool, "this is a retransmission";
        "pds.flags.ar"         12.. 13  ar: bool, "an ACK is requested";
        "pds.flags.syn"        13.. 14  syn: bool, "the packet may open the context";
        "-"                    14.. 16;
        "pds.probe_opaque"     16.. 32  probe_opaque: u16 [when "pds.ctl_type" is(6)], "copied into the answer";
        "-"                    16.. 32  [when "pds.ctl_type" all_except(6)];
        "pds.psn"              32.. 64  psn: Psn, "the packet's own PSN, the one asked about, or 0";
        "pds.spdcid"           64.. 80  spdcid: PdcId, "the sender's identifier of the context";
        "pds.dpdcid"           80.. 96  dpdcid: PdcId [when "pds.flags.syn" is(0)], "the receiver's identifier of the context";
        "pds.pdc_info"         80.. 84  pdc_info: u8 [when "pds.flags.syn" is(1)], "bit 0: use the reserved pool; bits 3 to 1 are reserved";
        "pds.psn_offset"       84.. 96  psn_offset: PsnOffset [when "pds.flags.syn" is(1)], "distance from the first PSN of the context";
        "pds.payload"          96..128  payload: u32, "meaning set by ctl_type";
    }
}

impl Control {
    /// Starts building a control packet of this type.
    pub fn build(ctl_type: CtlType) -> ControlMut {
        Control::zeroed().edit().prologue(|prologue| prologue.kind(PdsType::CP).ctl_type(ctl_type))
    }
}

impl<B: Borrow<[u8; 16]>> Control<B> {
    /// Returns the type of the control packet.
    #[inline]
    pub fn ctl_type(&self) -> CtlType {
        self.prologue().ctl_type()
    }

    /// Returns the first PSN of the context. Only packets with `syn` carry it.
    pub fn start_psn(&self) -> Option<Psn> {
        Some(self.psn() - u32::from(self.psn_offset()?.get()))
    }

    /// Returns the highest PSN to clear, from a CLEAR_COMMAND or a CLEAR_REQUEST.
    pub fn clear_psn(&self) -> Option<Psn> {
        matches!(self.ctl_type(), CtlType::CLEAR_COMMAND | CtlType::CLEAR_REQUEST)
            .then(|| Psn(self.payload()))
    }

    /// Returns the cumulative credit that a CREDIT grants.
    pub fn credit(&self) -> Option<Units24> {
        (self.ctl_type() == CtlType::CREDIT).then(|| self.low_units())
    }

    /// Returns the congestion control context and the requested credit of a CREDIT_REQUEST.
    pub fn credit_target(&self) -> Option<(u8, Units24)> {
        (self.ctl_type() == CtlType::CREDIT_REQUEST).then(|| ((self.payload() >> 24) as u8, self.low_units()))
    }

    fn low_units(&self) -> Units24 {
        Units24::default() + self.payload()
    }
}
