use super::{Prologue, PrologueMut, PrologueRepr};
use crate::header::header;
use crate::layout::{all_except, is};
use crate::registry::PdsType;

header! {
    /// An idempotent request (RUDI) or the response to it. It has no context; the packet identifier identifies it.
    ///
    /// ```
    /// use uet_wire::pds::Rudi;
    ///
    /// let request = Rudi::request(0xdead_beef).retx(true).done()?;
    /// assert_eq!(request.bytes(), &[0x20, 0x10, 0, 0, 0xde, 0xad, 0xbe, 0xef]);
    /// let response = Rudi::response(request.pkt_id()).m(true).done()?;
    /// assert_eq!(response.bytes(), &[0x28, 0x20, 0, 0, 0xde, 0xad, 0xbe, 0xef]);
    /// assert_eq!(request.m(), None, "only a response can say that the request was marked");
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Rudi[8] RudiMut RudiRepr, Pds "rudi" "RUDI request or response" {
        "prologue"              0.. 16  prologue: Prologue as PrologueMut PrologueRepr, "type, next header, flags";
        "-"                     9.. 10  [when "pds.type" is(5)];
        "pds.flags.m"          10.. 11  m: bool [when "pds.type" is(5)], "the request arrived marked by congestion";
        "-"                     9.. 11  [when "pds.type" all_except(5)];
        "pds.flags.retx"       11.. 12  retx: bool, "this is, or answers, a retransmission";
        "-"                    12.. 16;
        "-"                    16.. 32;
        "pds.pkt_id"           32.. 64  pkt_id: u32, "identifies the request and its response";
    }
}

impl Rudi {
    /// Starts building a request with this packet identifier.
    pub fn request(pkt_id: u32) -> RudiMut {
        Self::of(PdsType::RUDI_REQ).pkt_id(pkt_id)
    }

    /// Starts building the response to the request with this packet identifier.
    pub fn response(pkt_id: u32) -> RudiMut {
        Self::of(PdsType::RUDI_RESP).pkt_id(pkt_id)
    }

    fn of(kind: PdsType) -> RudiMut {
        Rudi::zeroed().edit().prologue(|prologue| prologue.kind(kind))
    }
}
