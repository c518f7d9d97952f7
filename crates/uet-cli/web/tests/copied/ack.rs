use uet_wire::pds::{AckCcRepr, AckRepr, PrologueRepr, SackRepr};
use uet_wire::registry::{AckRequest, CcType, List, NextHdr, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{ResponseHeadRepr, ResponseRepr};
use uet_wire::{FrameBuilder, PdcId, Psn, Units24, WriteError};

/// Writes the packet to the start of `buffer`, and returns its length.
pub fn packet(buffer: &mut [u8]) -> Result<usize, WriteError> {
    let pds = AckCcRepr {
        ack: AckRepr {
            prologue: PrologueRepr {
                kind: PdsType::ACK_CC,
                next_hdr: NextHdr::UET_HDR_RESPONSE,
            },
            m: true,
            retx: false,
            p: false,
            req: AckRequest::NO_REQUEST,
            ack_psn_offset: Some(-2),
            probe_opaque: None,
            cack_psn: Psn(1),
            spdcid: PdcId(32769),
            dpdcid: PdcId(16385),
        },
        cc_type: CcType::CREDIT,
        cc_flags: 0,
        sack: SackRepr {
            mpr: 0,
            sack_psn_offset: 0,
            sack_bitmap: 5,
        },
        service_time: None,
        rc: None,
        rcv_cwnd_pend: None,
        rcvd_bytes: None,
        credit: Some(Units24::new(4096).unwrap()),
        ooo_count: Some(0),
        ack_cc_state: None,
    };
    let ses = ResponseRepr {
        head: ResponseHeadRepr {
            list: List::UET_EXPECTED,
            opcode: ResponseOpcode::UET_RESPONSE,
            version: 0,
            return_code: ReturnCode::OK,
        },
        message_id: 1,
        ri_generation: 0,
        job_id: 0,
        modified_length: 0,
    };
    FrameBuilder::new(pds.header()?).ses(ses.header()?).as_given().emit(buffer)
}
