use uet_wire::pds::{PrologueRepr, RequestCcRepr, RequestRepr};
use uet_wire::registry::{NextHdr, Opcode, PdsType};
use uet_wire::ses::{AddressRepr, RendezvousRepr, RequestHeadRepr, StdRepr};
use uet_wire::{FrameBuilder, PdcId, Psn, PsnOffset, Units24, WriteError};

/// Writes the packet to the start of `buffer`, and returns its length.
pub fn packet(buffer: &mut [u8]) -> Result<usize, WriteError> {
    let pds = RequestCcRepr {
        request: RequestRepr {
            prologue: PrologueRepr {
                kind: PdsType::ROD_CC_REQ,
                next_hdr: NextHdr::UET_HDR_REQUEST_STD,
            },
            retx: false,
            ar: false,
            syn: true,
            clear_psn_offset: -1,
            psn: Psn(73729),
            spdcid: PdcId(16385),
            dpdcid: None,
            pdc_info: Some(0),
            psn_offset: Some(PsnOffset::new(1).unwrap()),
        },
        ccc_id: 7,
        credit_target: Units24::new(512).unwrap(),
    };
    let ses = StdRepr {
        head: RequestHeadRepr {
            opcode: Opcode::UET_RENDEZVOUS_SEND,
            version: 0,
            dc: false,
            ie: false,
            rel: false,
            hd: false,
            eom: false,
            som: true,
        },
        message_id: 1,
        address: AddressRepr {
            ri_generation: 0,
            job_id: 101,
            pid_on_fep: 0,
            resource_index: 0,
        },
        buffer_offset: Some(0),
        send_initiator_token: None,
        send_target_token: None,
        initiator: 0,
        memory_key: None,
        ready_initiator_token: None,
        ready_target_token: None,
        match_bits: Some(18364758544493064720),
        header_data: Some(11),
        payload_length: None,
        message_offset: None,
        request_length: 16384,
    };
    let ext = RendezvousRepr {
        eager_length: 4,
        read_ri_generation: 0,
        read_pid_on_fep: 0,
        read_resource_index: 0,
        read_offset: 0,
        read_memory_key: 707813,
    };
    FrameBuilder::new(pds.header()?).ses(ses.header()?).ext(ext.header()?).payload(&[1, 2, 3, 4]).as_given().emit(buffer)
}
