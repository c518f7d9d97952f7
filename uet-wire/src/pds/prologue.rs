use crate::header::header;
use crate::registry::{CtlType, NextHdr, PdsType};

header! {
    /// The first two bytes of every PDS header except control packets.
    ///
    /// ```
    /// use uet_wire::pds::Prologue;
    /// use uet_wire::registry::{NextHdr, PdsType};
    ///
    /// let (prologue, _) = Prologue::parse(&[0x11, 0x8c]).unwrap();
    /// assert_eq!(prologue.kind(), PdsType::RUD_REQ);
    /// assert_eq!(prologue.next_hdr(), NextHdr::UET_HDR_REQUEST_STD);
    /// assert_eq!(prologue.flags(), 0b000_1100);
    /// ```
    Prologue[2] PrologueMut PrologueRepr, Pds "prologue" "PDS prologue" {
        "pds.type"         0.. 5  kind: PdsType, "what the packet is";
        "pds.next_hdr"     5.. 9  next_hdr: NextHdr, "what follows the PDS header";
        "pds.flags"        9..16  (flags: u8), "all flags as a number";
    }
}

impl Prologue {
    /// Starts a prologue of this type, without flags or a next header.
    pub const fn of(kind: PdsType) -> Self {
        Prologue([kind.code() << 3, 0])
    }
}

header! {
    /// The first two bytes of a control packet. The control packet type replaces the next header.
    ///
    /// ```
    /// use uet_wire::pds::ControlPrologue;
    /// use uet_wire::registry::CtlType;
    ///
    /// let (prologue, _) = ControlPrologue::parse(&[0x5b, 0x00])?;
    /// assert_eq!(prologue.ctl_type(), CtlType::PROBE);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    ControlPrologue[2] ControlPrologueMut ControlPrologueRepr, Pds "control_prologue" "prologue of a control packet" {
        "pds.type"         0.. 5  kind: PdsType, "what the packet is";
        "pds.ctl_type"     5.. 9  ctl_type: CtlType, "what the control packet is for";
        "pds.flags"        9..16  (flags: u8), "all flags as a number";
    }
}
