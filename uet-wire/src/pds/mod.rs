//! Packet delivery headers, one file per family (section 3.5.10).

mod ack;
mod control;
mod nack;
mod prologue;
mod request;
mod rudi;
mod uud;

pub use ack::*;
pub use control::*;
pub use nack::*;
pub use prologue::*;
pub use request::*;
pub use rudi::*;
pub use uud::*;

use crate::header::family;
use crate::registry::{CtlType, NextHdr, PdsType};
use crate::{PdcId, Psn};

family! {
    /// Any PDS header. [`Uet::parse`](crate::Uet::parse) parses it, with the headers after it.
    Pds, PdsBuf by PdsType {
        /// RUD_REQ, ROD_REQ.
        Request[12]: RUD_REQ, ROD_REQ;
        /// RUD_CC_REQ, ROD_CC_REQ.
        RequestCc[16]: RUD_CC_REQ, ROD_CC_REQ;
        /// RUDI_REQ, RUDI_RESP.
        Rudi[8]: RUDI_REQ, RUDI_RESP;
        /// UUD_REQ.
        Uud[4]: UUD_REQ;
        /// ACK.
        Ack[12]: ACK;
        /// ACK_CC.
        AckCc[32]: ACK_CC;
        /// ACK_CCX.
        AckCcx[40]: ACK_CCX;
        /// NACK.
        Nack[16]: NACK;
        /// NACK_CCX.
        NackCcx[32]: NACK_CCX;
        /// CP.
        Control[16]: CP;
        /// A type without a known header. Only its first two bytes are parsed.
        Prologue[2]: RESERVED;
    }
}

impl<'a> Pds<'a> {
    /// Returns the packet type.
    #[inline]
    pub fn kind(&self) -> PdsType {
        match self {
            Pds::Request(header) => header.prologue().kind(),
            Pds::RequestCc(header) => header.request().prologue().kind(),
            Pds::Rudi(header) => header.prologue().kind(),
            Pds::Uud(_) => PdsType::UUD_REQ,
            Pds::Ack(_) => PdsType::ACK,
            Pds::AckCc(_) => PdsType::ACK_CC,
            Pds::AckCcx(_) => PdsType::ACK_CCX,
            Pds::Nack(_) => PdsType::NACK,
            Pds::NackCcx(_) => PdsType::NACK_CCX,
            Pds::Control(_) => PdsType::CP,
            Pds::Prologue(header) => header.kind(),
        }
    }

    /// Returns the type of the next header. A control packet has none.
    #[inline]
    pub fn next_hdr(&self) -> NextHdr {
        match self {
            Pds::Request(header) => header.prologue().next_hdr(),
            Pds::RequestCc(header) => header.request().prologue().next_hdr(),
            Pds::Rudi(header) => header.prologue().next_hdr(),
            Pds::Uud(header) => header.prologue().next_hdr(),
            Pds::Ack(header) => header.prologue().next_hdr(),
            Pds::AckCc(header) => header.ack().prologue().next_hdr(),
            Pds::AckCcx(header) => header.ack().prologue().next_hdr(),
            Pds::Nack(header) => header.prologue().next_hdr(),
            Pds::NackCcx(header) => header.nack().prologue().next_hdr(),
            Pds::Control(_) => NextHdr::UET_HDR_NONE,
            Pds::Prologue(header) => header.next_hdr(),
        }
    }

    /// Returns the PSN of the packet: its own for a request, the one answered for an ACK or a NACK. A control packet
    /// has its own, asks about another, or has none. Returns `None` for RUDI and UUD packets, and for the answers to a
    /// PROBE or to a RUDI packet.
    ///
    /// ```
    /// use uet_wire::{PdcId, Psn, Uet};
    ///
    /// let nack = [0x50, 0, 0x0d, 0, 0, 0, 1, 0x4f, 0x80, 1, 0x40, 1, 0, 0, 0, 0];
    /// let pds = Uet::parse(&nack)?.pds.unwrap();
    /// assert_eq!(pds.psn(), Some(Psn(335)));
    /// assert_eq!((pds.spdcid(), pds.dpdcid()), (Some(PdcId(0x8001)), Some(PdcId(0x4001))));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    pub fn psn(&self) -> Option<Psn> {
        match self {
            Pds::Request(header) => Some(header.psn()),
            Pds::RequestCc(header) => Some(header.request().psn()),
            Pds::Ack(header) => header.ack_psn(),
            Pds::AckCc(header) => header.ack().ack_psn(),
            Pds::AckCcx(header) => header.ack().ack_psn(),
            Pds::Nack(header) => header.nack_psn(),
            Pds::NackCcx(header) => header.nack().nack_psn(),
            Pds::Control(header) => {
                let kind = header.ctl_type();
                let names = kind.takes_psn() || matches!(kind, CtlType::ACK_REQUEST | CtlType::PROBE);
                names.then(|| header.psn())
            }
            Pds::Rudi(_) | Pds::Uud(_) | Pds::Prologue(_) => None,
        }
    }

    /// Returns the sender's identifier of the context. Returns `None` for RUDI and UUD packets.
    pub fn spdcid(&self) -> Option<PdcId> {
        match self {
            Pds::Request(header) => Some(header.spdcid()),
            Pds::RequestCc(header) => Some(header.request().spdcid()),
            Pds::Ack(header) => Some(header.spdcid()),
            Pds::AckCc(header) => Some(header.ack().spdcid()),
            Pds::AckCcx(header) => Some(header.ack().spdcid()),
            Pds::Nack(header) => Some(header.spdcid()),
            Pds::NackCcx(header) => Some(header.nack().spdcid()),
            Pds::Control(header) => Some(header.spdcid()),
            Pds::Rudi(_) | Pds::Uud(_) | Pds::Prologue(_) => None,
        }
    }

    /// Returns the receiver's identifier of the context, by which the receiver looks it up. Returns `None` for a packet
    /// with `syn`, which has no such identifier yet, and for RUDI and UUD packets.
    pub fn dpdcid(&self) -> Option<PdcId> {
        match self {
            Pds::Request(header) => header.dpdcid(),
            Pds::RequestCc(header) => header.request().dpdcid(),
            Pds::Ack(header) => Some(header.dpdcid()),
            Pds::AckCc(header) => Some(header.ack().dpdcid()),
            Pds::AckCcx(header) => Some(header.ack().dpdcid()),
            Pds::Nack(header) => Some(header.dpdcid()),
            Pds::NackCcx(header) => Some(header.nack().dpdcid()),
            Pds::Control(header) => header.dpdcid(),
            Pds::Rudi(_) | Pds::Uud(_) | Pds::Prologue(_) => None,
        }
    }

    /// Returns the RUD or ROD request, with or without congestion state.
    pub fn request(&self) -> Option<Request> {
        match self {
            Pds::Request(header) => Some(header.copied()),
            Pds::RequestCc(header) => Some(header.request().copied()),
            _ => None,
        }
    }

    /// Returns the acknowledgment, with or without congestion state.
    pub fn ack(&self) -> Option<Ack> {
        match self {
            Pds::Ack(header) => Some(header.copied()),
            Pds::AckCc(header) => Some(header.ack().copied()),
            Pds::AckCcx(header) => Some(header.ack().copied()),
            _ => None,
        }
    }

    /// Returns the control packet.
    pub fn control(&self) -> Option<Control> {
        match self {
            Pds::Control(header) => Some(header.copied()),
            _ => None,
        }
    }

    /// Returns the negative acknowledgment, with or without congestion state.
    pub fn nack(&self) -> Option<Nack> {
        match self {
            Pds::Nack(header) => Some(header.copied()),
            Pds::NackCcx(header) => Some(header.nack().copied()),
            _ => None,
        }
    }
}
