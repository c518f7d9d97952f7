use super::{Prologue, PrologueMut, PrologueRepr};
use crate::header::header;
use crate::registry::PdsType;

header! {
    /// An unreliable datagram (UUD): no context, no sequence number, no reply.
    ///
    /// ```
    /// assert_eq!(uet_wire::pds::Uud::new().bytes(), &[0x30, 0, 0, 0]);
    /// ```
    Uud[4] UudMut UudRepr, Pds "uud" "unreliable datagram" {
        "prologue"              0.. 16  prologue: Prologue as PrologueMut PrologueRepr, "type, next header, flags";
        "-"                     9.. 16;
        "-"                    16.. 32;
    }
}

impl Uud {
    /// Creates the header of a datagram.
    pub const fn new() -> Self {
        let [first, second] = Prologue::of(PdsType::UUD_REQ).0;
        Uud([first, second, 0, 0])
    }
}

impl Default for Uud {
    fn default() -> Self {
        Self::new()
    }
}
