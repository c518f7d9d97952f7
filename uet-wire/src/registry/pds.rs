//! Code points of packet delivery.

use super::registry;
use crate::layout::Values;

registry! {
    /// The type of a PDS header: `pds.type`.
    PdsType(5) "PDS packet type" {
        0 RESERVED "reserved";
        1 TSS "a secured packet: the security header comes first";
        2 RUD_REQ "request, reliable and unordered";
        3 ROD_REQ "request, reliable and ordered";
        4 RUDI_REQ "request, reliable and idempotent, without a context";
        5 RUDI_RESP "response to an idempotent request";
        6 UUD_REQ "datagram, never answered";
        7 ACK "acknowledgment";
        8 ACK_CC "acknowledgment with congestion state and a bitmap";
        9 ACK_CCX "acknowledgment with a larger congestion state";
        10 NACK "negative acknowledgment";
        11 CP "control packet";
        12 NACK_CCX "negative acknowledgment with congestion state";
        13 RUD_CC_REQ "RUD request with congestion state";
        14 ROD_CC_REQ "ROD request with congestion state";
    }
}

registry! {
    /// The type of the header after a PDS header: `pds.next_hdr`.
    NextHdr(4) "what follows the PDS header" {
        0 UET_HDR_NONE "nothing";
        1 UET_HDR_REQUEST_SMALL "SES small request, 20 bytes";
        2 UET_HDR_REQUEST_MEDIUM "SES medium request, 32 bytes";
        3 UET_HDR_REQUEST_STD "SES standard request, 44 bytes";
        4 UET_HDR_RESPONSE "SES response, 12 bytes";
        5 UET_HDR_RESPONSE_DATA "SES response with data, 20 bytes";
        6 UET_HDR_RESPONSE_DATA_SMALL "SES small response with data, 12 bytes";
    }
}

registry! {
    /// The type of a control packet: `pds.ctl_type`.
    CtlType(4) "control packet type" {
        0 NOOP "nothing; takes a PSN, may open a context";
        1 ACK_REQUEST "asks for the acknowledgment of a PSN";
        2 CLEAR_COMMAND "clears stored responses up to a PSN";
        3 CLEAR_REQUEST "asks for a clear";
        4 CLOSE_COMMAND "closes the context";
        5 CLOSE_REQUEST "asks the initiator to close";
        6 PROBE "asks for an acknowledgment with the receive state";
        7 CREDIT "grants credit";
        8 CREDIT_REQUEST "asks for credit";
        9 NEGOTIATION "agrees on capabilities; may open a context";
    }
}

impl CtlType {
    pub(crate) const OPENING: Values = Self::set(&[Self::NOOP, Self::NEGOTIATION]);

    /// Returns true if it takes a PSN, and therefore a place in the receive window (`PDS-CTL-001`).
    pub const fn takes_psn(self) -> bool {
        matches!(self, Self::NOOP | Self::NEGOTIATION | Self::CLOSE_COMMAND | Self::CLOSE_REQUEST)
    }

    /// Returns true if it may open a context (`PDS-SYN-009`, `PDS-SYN-010`).
    pub const fn may_open(self) -> bool {
        Self::OPENING.contains(self.0 as u128)
    }
}

registry! {
    /// The action that the sender of an ACK requests: `pds.flags.req`.
    AckRequest(2) "request in an ACK" {
        0 NO_REQUEST "nothing";
        1 REQ_CLEAR "clear the stored response soon";
        2 REQ_CLOSE "close the context";
    }
}

registry! {
    /// The congestion state of an ACK_CC: `pds.cc_type`.
    CcType(4) "type of congestion state" vendor 14..=15 {
        0 NSCC "network signals: service time, received bytes, penalty";
        1 CREDIT "receiver credit";
    }
}

registry! {
    /// The congestion state of an ACK_CCX or NACK_CCX: `pds.ccx_type`, `pds.nccx_type`.
    CcxType(4) "type of extended congestion state" vendor 14..=15 {
    }
}

registry! {
    /// The reason for a NACK: `pds.nack_code`. See [`NackCode::class`].
    NackCode(8) "NACK code" {
        0x01 TRIMMED "the packet was trimmed by a switch";
        0x02 TRIMMED_LASTHOP "the packet was trimmed at the last hop";
        0x03 TRIMMED_ACK "the answer to a read was trimmed" until V1_0_3;
        0x04 NO_PDC_AVAIL "no context is left";
        0x05 NO_CCC_AVAIL "no congestion control context is left";
        0x06 NO_BITMAP "no receive bitmap is left";
        0x07 NO_PKT_BUFFER "no packet buffer is left";
        0x08 NO_GTD_DEL_AVAIL "no room to store a response";
        0x09 NO_SES_MSG_AVAIL "no message state is left";
        0x0A NO_RESOURCE "some other resource is lacking";
        0x0B PSN_OOR_WINDOW "the PSN is outside the receive window";
        0x0D ROD_OOO "out of order on an ordered context";
        0x0E INV_DPDCID "no context has this identifier";
        0x0F PDC_HDR_MISMATCH "the context belongs to another peer";
        0x10 CLOSING "the context is closing";
        0x11 CLOSING_IN_ERR "the context closes in error";
        0x12 PKT_NOT_RCVD "the packet asked about was not received";
        0x13 GTD_RESP_UNAVAIL "a response that had to be kept is lost";
        0x14 ACK_WITH_DATA "read data that went with an ACK is no longer held";
        0x15 INVALID_SYN "the opening packet does not fit the context";
        0x16 PDC_MODE_MISMATCH "the context has another delivery mode";
        0x17 NEW_START_PSN "start again from the PSN in the payload";
        0x18 RCVD_SES_PROCG "received, its response is not ready";
        0x19 UNEXP_EVENT "unexpected event";
        0x1A RCVR_INFER_LOSS "the receiver infers a loss";
        0xFD EXP_NACK_NORMAL "experimental, normal";
        0xFE EXP_NACK_ERR "experimental, PDC error";
        0xFF EXP_NACK_FATAL "experimental, fatal to the context";
    }
}

/// The severity of a NACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NackClass {
    /// Part of normal operation.
    Normal,
    /// An error in a packet of the context.
    PdcError,
    /// The context cannot continue.
    PdcFatal,
}

impl NackCode {
    /// Returns the class of the code; `None` for a reserved code.
    pub const fn class(self) -> Option<NackClass> {
        Some(match self {
            NackCode::PKT_NOT_RCVD | NackCode::ACK_WITH_DATA | NackCode::EXP_NACK_ERR => NackClass::PdcError,
            NackCode::INV_DPDCID
            | NackCode::PDC_HDR_MISMATCH
            | NackCode::CLOSING
            | NackCode::CLOSING_IN_ERR
            | NackCode::GTD_RESP_UNAVAIL
            | NackCode::INVALID_SYN
            | NackCode::PDC_MODE_MISMATCH
            | NackCode::UNEXP_EVENT
            | NackCode::EXP_NACK_FATAL => NackClass::PdcFatal,
            _ if self.name().is_some() => NackClass::Normal,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigned_nack_codes_have_a_class() {
        for code in 0..=255 {
            let code = NackCode::new(code).unwrap();
            assert_eq!(code.class().is_some(), code.name().is_some(), "{code}");
        }
    }
}
