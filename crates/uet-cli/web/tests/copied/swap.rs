use uet_wire::pds::{PrologueRepr, RequestRepr};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, NextHdr, Opcode, PdsType};
use uet_wire::ses::{AddressRepr, AtomicRepr, CompareSwapRepr, RequestHeadRepr, SmallRepr};
use uet_wire::{FrameBuilder, PdcId, Psn, WriteError};

/// Writes the packet to the start of `buffer`, and returns its length.
pub fn packet(buffer: &mut [u8]) -> Result<usize, WriteError> {
    let pds = RequestRepr {
        prologue: PrologueRepr {
            kind: PdsType::RUD_REQ,
            next_hdr: NextHdr::UET_HDR_REQUEST_SMALL,
        },
        retx: false,
        ar: false,
        syn: false,
        clear_psn_offset: 0,
        psn: Psn(7),
        spdcid: PdcId(1),
        dpdcid: Some(PdcId(2)),
        pdc_info: None,
        psn_offset: None,
    };
    let ses = SmallRepr {
        head: RequestHeadRepr {
            opcode: Opcode::UET_ATOMIC,
            version: 0,
            dc: false,
            ie: false,
            rel: false,
            hd: false,
            eom: false,
            som: false,
        },
        request_length: 16,
        address: AddressRepr {
            ri_generation: 0,
            job_id: 0,
            pid_on_fep: 0,
            resource_index: 0,
        },
        buffer_offset: 0,
    };
    let ext = CompareSwapRepr {
        atomic: AtomicRepr {
            atomic_opcode: AtomicOpcode::CSWAP,
            atomic_datatype: AtomicDatatype::new(0xee).unwrap(),
            semantic_control: 0,
        },
        compare_value: 340193404210632335760508365704335069440,
        swap_value: 1,
    };
    FrameBuilder::new(pds.header()?).ses(ses.header()?).ext(ext.header()?).as_given().emit(buffer)
}
