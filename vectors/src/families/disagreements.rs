//! Packets that public implementations read differently, one per row of the table. Expected values are our reading.

use super::parts::{
    JOB, ack, address, built, control, data, guaranteed, nack, ok, opening, request, response, returned, std,
    whole, with_large_state, with_state,
};
use crate::case::{Case, Family};
use uet_wire::pds::Rudi;
use uet_wire::registry::{
    AtomicDatatype, AtomicOpcode, CcType, CcxType, CtlType, NackCode, NextHdr, Opcode, PdsType,
    ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Atomic, Medium, Rendezvous, ResponseData, ResponseDataSmall};
use uet_wire::{FrameBuilder, Psn, Units24, Version};

pub(super) fn family() -> Family {
    let mut family = Family::new("disagreements", "interoperability: where public implementations disagree");
    headers(&mut family);
    meanings(&mut family);
    family
}

/// Different lengths and places of fields.
fn headers(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let pds = || built(request(333, 332).done());
    let pool = built(opening(PdsType::RUD_REQ, 0x12000, 0).pdc_info(1).done());
    add(
        "pdc-info",
        "The reserved pool is asked for. The reference provider and one simulator use the lowest of the four bits, as \
         here; Wireshark, XDP2 and a provider of a university use the highest.",
        FrameBuilder::new(pool).ses(super::parts::write(1, 16)).payload(data(0, 16)),
    );
    let rest = Rendezvous::zeroed().edit().eager_length(16).read_ri_generation(0x12).read_pid_on_fep(0x345);
    let rest = built(rest.read_resource_index(0x678).read_offset(16).read_memory_key(0xacce5).done());
    let send = built(std(Opcode::UET_RENDEZVOUS_SEND, 1).head(whole).request_length(4096).done());
    add(
        "rendezvous-extension",
        "The second word is generation 0x12, process 0x345, index 0x678 to the reference provider, XDP2, one simulator \
         and us. Wireshark divides it into 2 + 14 and 4 + 12 bits.",
        FrameBuilder::new(pds()).ses(send).ext(rest).payload(data(0, 16)),
    );
    let ccx = with_large_state(ack(333, 333));
    let ccx =
        ccx.ccx_type(CcxType::new(14).unwrap_or_default()).ack_ccx_state(0x1111_1111 << 96 | 0x2222_2222);
    add(
        "ack-ccx-length",
        "The state of an ACK_CCX has 16 bytes, 40 in all, to the reference provider, Wireshark, a traffic generator and \
         us. XDP2 has 8 bytes of it, one simulator 44 bytes in all: the response behind it is found elsewhere.",
        FrameBuilder::new(built(ccx.done())).ses(ok(1)),
    );
    let medium = Medium::build(Opcode::UET_WRITE).request_length(16).address(address).memory_key(0xacce5);
    add(
        "medium-request",
        "Wireshark's first release goes on 3 bytes behind the 2 bytes of the length: all fields after it are read one \
         byte off.",
        FrameBuilder::new(pds()).ses(built(medium.done())).payload(data(0, 16)),
    );
    let small = built(
        ResponseDataSmall::build().payload_length(16).job_id(JOB).original_request_psn(Psn(333)).done(),
    );
    add(
        "response-data-small",
        "The header has 12 bytes. Wireshark stops after 4: job and PSN are taken for payload.",
        FrameBuilder::new(built(returned(48, 47).done())).ses(small).payload(data(0, 16)),
    );
    let rudi = built(Rudi::request(0x1234_5678).done());
    let write = built(std(Opcode::UET_WRITE, 1).head(whole).memory_key(1 << 63).request_length(16).done());
    add(
        "rudi-header",
        "The header has 8 bytes, two of them reserved. Wireshark's first release does not count these.",
        FrameBuilder::new(rudi).ses(write).payload(data(0, 16)),
    );
    let long = ResponseData::build()
        .response_message_id(9)
        .job_id(JOB)
        .read_request_message_id(1)
        .payload_length(8192);
    add(
        "response-payload-length",
        "payload_length has 14 bits, so that 8,192 fits; XDP2 has 12 bits, and 4 reserved, and reads 0. (The payload is \
         left out here, which is flagged.)",
        FrameBuilder::new(built(
            returned(48, 47).prologue(|p| p.next_hdr(NextHdr::UET_HDR_RESPONSE_DATA)).done(),
        ))
        .ses(built(long.modified_length(8192).done()))
        .as_given(),
    );
    let credit = with_state(ack(333, 333)).cc_type(CcType::CREDIT);
    let credit = built(credit.credit(Units24::new(0x12_3456).unwrap_or_default()).ooo_count(0x789a).done());
    add(
        "ack-cc-credit",
        "Credit 24 bits, reserved 24, count 16, to Wireshark, XDP2 and us. One list of the fields has two of 16 bits.",
        FrameBuilder::new(credit).ses(ok(1)),
    );
    let offer = built(control(CtlType::NEGOTIATION).ar(true).psn(Psn(334)).payload(0x0001_0002).done());
    add(
        "negotiation",
        "A NEGOTIATION has 16 bytes, the last 4 its payload, by the list of control packets. One simulator has 12 bytes, \
         and behind them a type (1), a length (2 words) and a mask with bit 0 for SYN_RETX_TRANSFER. Here the bytes \
         behind the first 16 are payload, and not flagged.",
        FrameBuilder::new(offer).payload(&[0, 0, 0, 1]),
    );
    let ready = std(Opcode::UET_DEFERRABLE_RTR, 1).head(whole).ready_initiator_token(0x1111_1111);
    add(
        "deferrable-tokens",
        "The token of the original initiator comes first, by a table of the headers and here. The reference provider puts \
         that of the sender of this packet first.",
        FrameBuilder::new(pds()).ses(built(ready.ready_target_token(0x2222_2222).done())),
    );
}

/// Different meanings of values.
fn meanings(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let pds = || built(request(333, 332).done());
    let atomic = built(std(Opcode::UET_ATOMIC, 1).head(whole).memory_key(0xacce5).request_length(8).done());
    let bits = built(
        Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).cacheable(true).cpu_coherent(true).done(),
    );
    add(
        "semantic-control",
        "Cacheable and CPU coherent are bits 0 and 1 to the reference provider, Wireshark and us; bits 7 and 6 to XDP2.",
        FrameBuilder::new(pds()).ses(atomic).ext(bits).payload(data(0, 8)),
    );
    let swap =
        built(Atomic::build(AtomicOpcode::new(0x13).unwrap_or_default(), AtomicDatatype::UINT64).done());
    add(
        "mswap-operands",
        "No public source shows the long extension behind a masked swap: 4 bytes here, what follows is payload.",
        FrameBuilder::new(pds()).ses(atomic).ext(swap).payload(data(0, 8)),
    );
    let expected = built(ack(333, 333).prologue(|p| p.flags(0x40)).done());
    add(
        "ack-flags-bit-6",
        "To the reference provider bit 6 of the flags says that an expected PSN follows: 4 bytes behind a closing ACK of \
         a secured context. Elsewhere, and here, it is reserved: kept and flagged.",
        FrameBuilder::new(expected),
    );
    let tagged =
        built(std(Opcode::UET_TAGGED_SEND, 1).head(whole).match_bits(0x77).request_length(16).done());
    add(
        "ses-opcodes",
        "A tagged send is 0x09. One simulator has numbers of its own: 0x06 for this, responses from 0x20 on.",
        FrameBuilder::new(pds()).ses(tagged).payload(data(0, 16)),
    );
    let outside = built(response(ResponseOpcode::UET_RESPONSE, ReturnCode::AT_OUT_OF_RANGE, 1).done());
    add(
        "outside-region",
        "AT_OUT_OF_RANGE for an access outside a region. BAD_ADDR and UNSUPPORTED_SIZE are seen too: any of them will do.",
        FrameBuilder::new(built(guaranteed(332, 333).done())).ses(outside),
    );
    let reserved = built(ack(333, 333).prologue(|p| p.next_hdr(NextHdr::new(9).unwrap_or_default())).done());
    add(
        "next-hdr-9",
        "Next header 9 is reserved. One simulator has CP_ACK there: a number here, flagged, and the rest is payload.",
        FrameBuilder::new(reserved).payload(&[0; 4]).as_given(),
    );
    let later = built(ack(333, 333).prologue(|p| p.next_hdr(NextHdr::new(15).unwrap_or_default())).done());
    add(
        "next-hdr-15",
        "Next header 15 is reserved. The Linux patches announce another delivery header with it: a number here, flagged, \
         and the rest is payload.",
        FrameBuilder::new(later).payload(&[0; 12]).as_given(),
    );
    let flags = built(request(333, 332).prologue(|p| p.flags(0x42)).done());
    add(
        "request-flags",
        "Bit 1 of the flags of a request announces congestion state and bit 6 a CRC to the Linux patches. Both are \
         reserved here: kept and flagged. Types 13 and 14 announce the state instead.",
        FrameBuilder::new(flags).ses(super::parts::write(1, 16)).payload(data(0, 16)),
    );
    let early = nack(NackCode::new(0x0c).unwrap_or_default(), 333);
    add(
        "nack-code-12",
        "Code 0x0C is reserved. It is FIRST_ROD_OOO to the Linux patches, and a PSN below the window to one simulator.",
        FrameBuilder::new(early),
    );
    let push = Opcode::new(0x10).unwrap_or_default();
    let push = built(std(push, 1).head(whole).match_bits(0x77).request_length(16).done());
    add(
        "ses-opcode-16",
        "Opcode 0x10 is reserved. It is INC_PUSH to the Linux patches and to an early dissector.",
        FrameBuilder::new(pds()).ses(push).payload(data(0, 16)),
    );
    for version in Version::ALL {
        let what = format!(
            "Code 0x03 is reserved since version 1.0.3; every implementation still has TRIMMED_ACK. Read by that name, \
             flagged from 1.0.3 on; judged by {version} here."
        );
        let code = nack(NackCode::TRIMMED_ACK, 333);
        family.add(
            Case::uet(format!("nack-code-3-in-{version}"), what, FrameBuilder::new(code)).version(*version),
        );
    }
}
