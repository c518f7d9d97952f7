//! Every header in each of its forms, as a correct implementation sends it.

use super::parts::{
    INITIATOR, JOB, TARGET, ack, address, built, data, nack, ok, opening, request, response, returned, std,
    whole, with_credit, with_large_state, with_state,
};
use crate::case::{Case, Family};
use uet_wire::pds::{Nack, NackCcx, Prologue, Request, Rudi, Uud};
use uet_wire::registry::{
    AckRequest, AtomicDatatype, AtomicOpcode, CcType, CcxType, NackCode, Opcode, PdsType, ResponseOpcode,
    ReturnCode,
};
use uet_wire::ses::{
    Atomic, CompareSwap, Medium, Rendezvous, ResponseData, ResponseDataSmall, Small, Std, StdMut,
};
use uet_wire::tss::{TssLong, TssShort};
use uet_wire::{FrameBuilder, Psn, Units24};

pub(super) fn family() -> Family {
    let mut family = Family::new("headers", "wire-format: the layouts");
    requests(&mut family);
    answers(&mut family);
    semantics(&mut family);
    extensions(&mut family);
    read_data(&mut family);
    family
}

fn requests(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let write = || super::parts::write(1, 16);
    let payload = data(0, 16);
    for kind in [PdsType::RUD_REQ, PdsType::ROD_REQ] {
        let word = if kind == PdsType::RUD_REQ { "rud" } else { "rod" };
        let opens = built(opening(kind, 0x12000, 0).done());
        add(
            &format!("{word}-opens"),
            "the first packet of a context",
            FrameBuilder::new(opens).ses(write()).payload(payload),
        );
        let of_kind = |request: uet_wire::pds::RequestMut| built(request.prologue(|p| p.kind(kind)).done());
        let later = of_kind(request(0x12001, 0x12000));
        add(word, "a later packet", FrameBuilder::new(later).ses(write()).payload(payload));
        let again = of_kind(request(0x12001, 0x12000).retx(true));
        add(
            &format!("{word}-retransmitted"),
            "sent again",
            FrameBuilder::new(again).ses(write()).payload(payload),
        );
        let quiet = of_kind(request(0x12001, 0x11fff).ar(false));
        add(
            &format!("{word}-without-ar"),
            "asks for no ACK",
            FrameBuilder::new(quiet).ses(write()).payload(payload),
        );
        let state = |request: Request| {
            let request = with_credit(request.edit());
            built(request.ccc_id(0xa1).credit_target(Units24::from_bytes(131_072)).done())
        };
        let frame = FrameBuilder::new(state(later)).ses(write()).payload(payload);
        add(&format!("{word}-cc"), "with the state of its congestion control", frame);
        let frame = FrameBuilder::new(state(opens)).ses(write()).payload(payload);
        add(&format!("{word}-cc-opens"), "the first packet of a context, with congestion state", frame);
    }
    let reserved = built(opening(PdsType::RUD_REQ, 0x12000, 0).pdc_info(1).done());
    add("rud-opens-from-reserved-pool", "asks for a context of the reserved pool", {
        FrameBuilder::new(reserved).ses(write()).payload(payload)
    });
    let alone = built(request(0x12001, 0x12000).done());
    add("rud-without-ses", "nothing follows: packet delivery made it by itself", FrameBuilder::new(alone));
    let small = |opcode: Opcode| {
        built(Small::build(opcode).head(|h| h.rel(true)).request_length(16).address(address).done())
    };
    let rudi = built(Rudi::request(0x1234_5678).done());
    add(
        "rudi-request",
        "an idempotent write",
        FrameBuilder::new(rudi).ses(small(Opcode::UET_WRITE)).payload(payload),
    );
    let rudi = built(Rudi::request(0x1234_5678).retx(true).done());
    add(
        "rudi-read-retransmitted",
        "an idempotent read, sent again",
        FrameBuilder::new(rudi).ses(small(Opcode::UET_READ)),
    );
    let rudi = built(Rudi::response(0x1234_5678).done());
    add("rudi-response", "the answer, with the same identifier", FrameBuilder::new(rudi).ses(ok(1)));
    let rudi = built(Rudi::response(0x1234_5678).m(true).retx(true).done());
    let answer = built(ResponseDataSmall::build().payload_length(16).job_id(JOB).done());
    add(
        "rudi-response-with-data",
        "read data, of a request that was marked",
        FrameBuilder::new(rudi).ses(answer).payload(payload),
    );
    let datagram = built(std(Opcode::UET_DATAGRAM_SEND, 0).head(whole).request_length(16).done());
    add("uud", "a datagram", FrameBuilder::new(Uud::new()).ses(datagram).payload(payload));
    add("uud-small", "a datagram with the small header: read, and flagged", {
        FrameBuilder::new(Uud::new()).ses(small(Opcode::UET_DATAGRAM_SEND)).payload(payload)
    });
    for (name, sp) in [("tss", false), ("tss-ssi", true)] {
        let what = "a security header; what follows is encrypted, and payload here";
        let short = TssShort::build()
            .head(|h| h.an(true).sdi(0x01_0203))
            .tsc(|t| t.epoch(2).counter(0x0102_0304_0506));
        let long = TssLong::build().head(|h| h.sdi(7)).ssi(0x0a00_0001).tsc(|t| t.epoch(0xffff).counter(1));
        let frame = match sp {
            false => FrameBuilder::secured(built(short.done()), payload, [0x1c; 16]),
            true => FrameBuilder::secured(built(long.done()), payload, [0x1c; 16]),
        };
        add(name, what, frame);
    }
    let unknown = Prologue::of(PdsType::new(15).unwrap_or_default());
    add(
        "type-reserved",
        "the two bytes of the prologue, and the rest as payload",
        FrameBuilder::new(unknown).payload(payload),
    );
}

fn answers(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let plain = || ack(0x12003, 0x12001);
    add(
        "ack",
        "acknowledges 0x12001, and all up to 0x12003",
        FrameBuilder::new(built(plain().done())).ses(ok(1)),
    );
    add("ack-alone", "the answer to a control packet", FrameBuilder::new(built(plain().done())));
    let flags = plain().m(true).retx(true).req(AckRequest::REQ_CLEAR);
    add(
        "ack-flags",
        "of a marked retransmission, whose response wants clearing",
        FrameBuilder::new(built(flags.done())).ses(ok(1)),
    );
    add(
        "ack-close",
        "asks the initiator to close",
        FrameBuilder::new(built(plain().req(AckRequest::REQ_CLOSE).done())).ses(ok(1)),
    );
    let answer = built(plain().ack_psn_offset(0).done());
    let probe = built(answer.edit().p(true).probe_opaque(0xcafe).done());
    add("ack-of-probe", "the opaque value of the probe instead of a PSN", FrameBuilder::new(probe));
    let cc = |kind: CcType| {
        let base = with_state(plain());
        base.cc_type(kind).sack(|s| s.mpr(8).sack_psn_offset(2).sack_bitmap(0b1011))
    };
    let nscc =
        cc(CcType::NSCC).service_time(8).rc(true).rcv_cwnd_pend(64).rcvd_bytes(Units24::from_bytes(16_384));
    add("ack-cc-nscc", "network signals", FrameBuilder::new(built(nscc.ooo_count(3).done())).ses(ok(1)));
    let credit = cc(CcType::CREDIT).credit(Units24::from_bytes(12_500)).ooo_count(0xffff);
    add("ack-cc-credit", "receiver credit", FrameBuilder::new(built(credit.done())).ses(ok(1)));
    let vendor = cc(CcType::new(14).unwrap_or_default()).ack_cc_state(0x0123_4567_89ab_cdef);
    add(
        "ack-cc-vendor",
        "a proprietary state: 64 opaque bits",
        FrameBuilder::new(built(vendor.done())).ses(ok(1)),
    );
    let no_limit = built(cc(CcType::NSCC).sack(|s| s.mpr(0).sack_bitmap(0)).done());
    add("ack-cc-without-limit", "mpr 0: no limit is stated", FrameBuilder::new(no_limit).ses(ok(1)));
    let gaps = built(cc(CcType::NSCC).sack(|s| s.sack_psn_offset(-4).sack_bitmap(u64::MAX)).done());
    add(
        "ack-cc-bitmap-full",
        "a bitmap that starts below the cumulative PSN",
        FrameBuilder::new(gaps).ses(ok(1)),
    );
    let wrapping = built(
        cc(CcType::NSCC).ack(|a| a.cack_psn(Psn(0xffff_fff0))).sack(|s| s.sack_bitmap(1 << 63 | 7)).done(),
    );
    add("ack-cc-bitmap-wraps", "a bitmap across the wrap of the PSN", FrameBuilder::new(wrapping).ses(ok(1)));
    let ccx = with_large_state(plain());
    let ccx = ccx.ccx_type(CcxType::new(15).unwrap_or_default()).sack(|s| s.mpr(1).sack_bitmap(1));
    add(
        "ack-ccx",
        "128 opaque bits",
        FrameBuilder::new(built(ccx.ack_ccx_state(0x0123 << 112 | 0xcdef).done())).ses(ok(1)),
    );
    add("nack", "refuses PSN 0x12001", FrameBuilder::new(nack(NackCode::NO_PKT_BUFFER, 0x12001)));
    let marked = nack(NackCode::TRIMMED, 0x12001).edit().m(true).retx(true).vendor_code(0x5a);
    add(
        "nack-flags",
        "of a marked retransmission, with a vendor's code",
        FrameBuilder::new(built(marked.done())),
    );
    let nowhere = Nack::build(NackCode::INV_DPDCID).nack_psn(Psn(0x12001)).dpdcid(INITIATOR);
    add(
        "nack-without-context",
        "no context, so no identifier of its own",
        FrameBuilder::new(built(nowhere.done())),
    );
    let start = Nack::build(NackCode::NEW_START_PSN).nack_psn(Psn(0x12001)).spdcid(TARGET).dpdcid(INITIATOR);
    add(
        "nack-new-start-psn",
        "the payload is the PSN to start from",
        FrameBuilder::new(built(start.payload(0x9_0000).done())),
    );
    let rudi = Nack::rudi(NackCode::TRIMMED).nack_pkt_id(0x1234_5678);
    add("nack-rudi", "refuses a RUDI packet, by its identifier", FrameBuilder::new(built(rudi.done())));
    let ccx = NackCcx::build(NackCode::TRIMMED_LASTHOP)
        .nack(|n| n.nack_psn(Psn(0x12001)).spdcid(TARGET).dpdcid(INITIATOR));
    let ccx = ccx.nccx_type(CcxType::new(14).unwrap_or_default()).nack_ccx_state(0xabc << 112 | 0xdef);
    add("nack-ccx", "124 opaque bits", FrameBuilder::new(built(ccx.done())));
}

fn semantics(family: &mut Family) {
    let pds = || built(request(333, 332).done());
    let mut add = |name: &str, what: &str, ses: StdMut, length: usize| {
        let frame = FrameBuilder::new(pds()).ses(built(ses.done())).payload(data(0, length));
        family.add(Case::uet(name, what, frame));
    };
    use Opcode as O;
    let one = |opcode| std(opcode, 1).head(whole).request_length(16);
    add(
        "std-write",
        "a key in the place of the match bits",
        one(O::UET_WRITE).memory_key(0xacce5).buffer_offset(0x1000),
        16,
    );
    add(
        "std-read",
        "a read carries no payload",
        std(O::UET_READ, 1).head(whole).memory_key(0xacce5).request_length(8192),
        0,
    );
    add("std-send", "match bits are there, and mean nothing", one(O::UET_SEND).initiator(7), 16);
    add("std-tagged-send", "found by its tag", one(O::UET_TAGGED_SEND).initiator(7).match_bits(0x77), 16);
    let first = || std(O::UET_WRITE, 1).head(|h| h.som(true)).memory_key(0xacce5).request_length(48);
    add("std-first", "the first packet: header data", first().head(|h| h.hd(true)).header_data(11), 16);
    let later = |eom, offset| {
        let packet = std(O::UET_WRITE, 1).head(|h| h.eom(eom)).memory_key(0xacce5);
        packet.payload_length(16).message_offset(offset).request_length(48)
    };
    add("std-middle", "a later packet: length and offset in that place", later(false, 16), 16);
    add("std-last", "the last packet", later(true, 32), 16);
    add("std-empty", "a message without a byte", std(O::UET_SEND, 1).head(whole), 0);
    add(
        "std-delivery-complete",
        "the answer waits for the data to be visible",
        one(O::UET_WRITE).head(|h| h.dc(true)),
        16,
    );
    add(
        "std-initiator-error",
        "the message is given up",
        std(O::UET_WRITE, 1).head(|h| h.ie(true).eom(true)),
        0,
    );
    add("std-absolute", "absolute addressing", one(O::UET_SEND).head(|h| h.rel(false)), 16);
    add(
        "std-optimised-key",
        "an idempotent, optimized key",
        one(O::UET_WRITE).memory_key(0xc000_0000_0000_0abc),
        16,
    );
    let tokens = one(O::UET_DEFERRABLE_SEND).send_initiator_token(0x1111_1111).send_target_token(0);
    add("std-deferrable-send", "restart tokens in place of the buffer offset", tokens, 16);
    let tokens =
        one(O::UET_DEFERRABLE_TSEND).send_initiator_token(0x1111_1111).send_target_token(0x2222_2222);
    add("std-deferrable-tagged-again", "sent again, with both tokens", tokens.match_bits(0x77), 16);
    let ready = std(O::UET_DEFERRABLE_RTR, 1)
        .head(whole)
        .ready_initiator_token(0x1111_1111)
        .ready_target_token(0x2222_2222);
    add("std-deferrable-ready", "restart tokens in place of the key", ready, 0);
    let error = std(O::UET_MSG_ERROR, 1).head(|h| h.eom(true)).message_offset(16).request_length(48);
    add("std-message-error", "the message ends where its data stops", error, 0);

    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let payload = data(0, 16);
    let medium = |opcode| Medium::build(opcode).head(|h| h.rel(true)).request_length(16).address(address);
    let write = built(medium(O::UET_WRITE).buffer_offset(0x1000).memory_key(0xacce5).done());
    add("medium-write", "buffer offset and key", FrameBuilder::new(pds()).ses(write).payload(payload));
    let send = medium(O::UET_TAGGED_SEND).head(|h| h.hd(true)).header_data(11).initiator(7).match_bits(0x77);
    add(
        "medium-tagged-send",
        "header data and match bits",
        FrameBuilder::new(pds()).ses(built(send.done())).payload(payload),
    );
    let read = built(medium(O::UET_READ).memory_key(0xacce5).done());
    add("medium-read", "a read", FrameBuilder::new(pds()).ses(read));
    let small = |opcode| Small::build(opcode).head(|h| h.rel(true)).request_length(16).address(address);
    let write = built(small(O::UET_WRITE).buffer_offset(0x1000).done());
    add("small-write", "no key: the index says where", FrameBuilder::new(pds()).ses(write).payload(payload));
    let read = built(small(O::UET_READ).buffer_offset(0x1000).done());
    add("small-read", "a read", FrameBuilder::new(pds()).ses(read));
    let send = built(small(O::UET_SEND).done());
    add("small-send", "a send", FrameBuilder::new(pds()).ses(send).payload(payload));

    let answer = |response: uet_wire::ses::ResponseMut| {
        FrameBuilder::new(built(ack(333, 333).done())).ses(built(response.done()))
    };
    let all = response(ResponseOpcode::UET_RESPONSE, ReturnCode::OK, 1).modified_length(16);
    add("response", "how many bytes were accepted", answer(all));
    let unexpected = response(ResponseOpcode::UET_RESPONSE, ReturnCode::OK, 1)
        .head(|h| h.list(uet_wire::registry::List::UET_OVERFLOW));
    add("response-overflow", "matched on the overflow list", answer(unexpected));
    let stale = response(ResponseOpcode::UET_RESPONSE, ReturnCode::BAD_GENERATION, 1).ri_generation(9);
    add("response-bad-generation", "carries the generation that is current", answer(stale));
    add(
        "response-none",
        "arrival is all that is said",
        answer(response(ResponseOpcode::UET_NO_RESPONSE, ReturnCode::NULL, 1)),
    );
}

fn extensions(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let pds = || built(request(333, 332).done());
    let rest = Rendezvous::zeroed().edit().eager_length(16).read_ri_generation(1).read_pid_on_fep(2);
    let rest = built(rest.read_resource_index(0x12c).read_offset(16).read_memory_key(0xacce5).done());
    for (name, opcode) in [
        ("rendezvous-send", Opcode::UET_RENDEZVOUS_SEND),
        ("rendezvous-tagged", Opcode::UET_RENDEZVOUS_TSEND),
    ] {
        let send = built(std(opcode, 1).head(whole).request_length(4096).done());
        let frame = FrameBuilder::new(pds()).ses(send).ext(rest).payload(data(0, 16));
        add(name, "16 bytes come with it; the rest is to be read", frame);
    }
    for (name, opcode, code) in [
        ("atomic-sum", Opcode::UET_ATOMIC, AtomicOpcode::SUM),
        ("atomic-fetching-max", Opcode::UET_FETCHING_ATOMIC, AtomicOpcode::MAX),
        ("atomic-tagged", Opcode::UET_TSEND_ATOMIC, AtomicOpcode::BOR),
        ("atomic-tagged-fetching", Opcode::UET_TSEND_FETCH_ATOMIC, AtomicOpcode::READ),
    ] {
        let ext = built(Atomic::build(code, AtomicDatatype::UINT64).cacheable(true).done());
        let ses = built(std(opcode, 1).head(whole).request_length(8).done());
        add(
            name,
            "operation and type follow the request",
            FrameBuilder::new(pds()).ses(ses).ext(ext).payload(data(0, 8)),
        );
    }
    for code in (0x0d..=0x12).filter_map(AtomicOpcode::new) {
        let swap = CompareSwap::zeroed()
            .edit()
            .atomic(|a| a.atomic_opcode(code).atomic_datatype(AtomicDatatype::UINT128));
        let swap = built(swap.compare_value(7).swap_value(u128::MAX - 1).done());
        let ses: Std = built(
            std(Opcode::UET_FETCHING_ATOMIC, 1).head(whole).memory_key(0xacce5).request_length(16).done(),
        );
        let name = format!("atomic-{}", code.to_string().to_lowercase().replace('_', "-"));
        add(&name, "both operands lie in the extension", FrameBuilder::new(pds()).ses(ses).ext(swap));
    }
    let small = built(Small::build(Opcode::UET_ATOMIC).request_length(8).address(address).done());
    let ext = built(Atomic::build(AtomicOpcode::DIFF, AtomicDatatype::INT64).done());
    add(
        "small-atomic",
        "an extension behind a small request",
        FrameBuilder::new(pds()).ses(small).ext(ext).payload(data(0, 8)),
    );
    let medium = Medium::build(Opcode::UET_ATOMIC).request_length(8).address(address).memory_key(0xacce5);
    add("medium-atomic", "an extension behind a medium request", {
        FrameBuilder::new(pds()).ses(built(medium.done())).ext(ext).payload(data(0, 8))
    });
}

fn read_data(family: &mut Family) {
    let mut add = |name: &str, what: &str, frame: FrameBuilder<'_>| family.add(Case::uet(name, what, frame));
    let long = ResponseData::build()
        .response_message_id(9)
        .job_id(JOB)
        .read_request_message_id(1)
        .payload_length(16);
    let long = built(long.modified_length(4112).message_offset(4096).done());
    let small = built(
        ResponseDataSmall::build().payload_length(16).job_id(JOB).original_request_psn(Psn(333)).done(),
    );
    let back = || built(returned(48, 47).done());
    let kept = || built(super::parts::guaranteed(332, 333).done());
    add(
        "response-data",
        "read data on the return direction",
        FrameBuilder::new(back()).ses(long).payload(data(0, 16)),
    );
    add(
        "response-data-small",
        "of a read with a small or medium header",
        FrameBuilder::new(back()).ses(small).payload(data(0, 16)),
    );
    add(
        "response-data-in-ack",
        "read data in an ACK",
        FrameBuilder::new(kept()).ses(long).payload(data(0, 16)),
    );
    add(
        "response-data-small-in-ack",
        "read data in an ACK",
        FrameBuilder::new(kept()).ses(small).payload(data(0, 16)),
    );
}
