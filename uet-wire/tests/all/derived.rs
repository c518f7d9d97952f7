//! Values derived from several fields.

use uet_wire::pds::{
    Ack, AckCc, AckCcx, Control, Nack, NackCcx, PdsBuf, Prologue, Request, RequestCc, Rudi, Sack,
};
use uet_wire::registry::{
    AtomicDatatype, AtomicOpcode, CtlType, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
    Status,
};
use uet_wire::ses::{Atomic, Medium, Response, ResponseData, ResponseDataSmall, SesBuf, Small, Std};
use uet_wire::{PdcId, Psn, PsnOffset, Uet, Units24, Version, outer::Ethernet, outer::Ipv4};

#[test]
fn the_psns_of_a_bitmap_are_listed_as_numbers_and_as_runs() {
    let sacked = |bits| {
        let sack = Sack::zeroed().edit().sack_psn_offset(-2).sack_bitmap(bits).done().unwrap();
        sack.sacked(Psn(1))
    };
    let last = 0xffff_ffffu32;
    let mut rest = sacked(0b1110_0101);
    assert_eq!((rest.len(), rest.size_hint()), (5, (5, Some(5))));
    assert_eq!(rest.next(), Some(Psn(last)));
    assert_eq!(rest.size_hint(), (4, Some(4)));
    assert_eq!(rest.collect::<Vec<_>>(), [1, 4, 5, 6].map(Psn));
    let runs = |bits| sacked(bits).ranges().map(|(first, last)| (first.0, last.0)).collect::<Vec<_>>();
    assert_eq!(runs(0b1110_0101), [(last, last), (1, 1), (4, 6)]);
    assert_eq!(runs(0), []);
    assert_eq!(runs(u64::MAX), [(last, 62)]);
    assert_eq!(runs(1 << 63 | 1), [(last, last), (62, 62)]);
}

#[test]
fn an_acknowledgment_counts_from_its_cumulative_psn() {
    let ack = Ack::build().ack_psn_offset(-3).cack_psn(Psn(1)).done().unwrap();
    assert_eq!(ack.ack_psn(), Some(Psn(0xffff_fffe)));
    assert_eq!(ack.edit().p(true).done().unwrap().ack_psn(), None);
    let sack = |mpr| Sack::zeroed().edit().mpr(mpr).sack_psn_offset(2).sack_bitmap(2).done().unwrap();
    assert_eq!([0, 1, 255].map(|mpr| sack(mpr).mp_range()), [None, Some(128), Some(32_640)]);
    let cc = AckCc::build().ack(|a| a.copy_from(&ack)).sack(|s| s.copy_from(&sack(1)));
    let cc = cc.service_time(3).done().unwrap();
    assert_eq!((cc.sack_psn(), cc.sacked().collect::<Vec<_>>()), (Psn(3), vec![Psn(4)]));
    assert_eq!(cc.service_time_ns(), Some(384));
    assert_eq!(cc.edit().service_time(0).done().unwrap().service_time_ns(), None);
    let ccx = AckCcx::build().ack(|a| a.copy_from(&ack)).sack(|s| s.copy_from(&sack(1))).done().unwrap();
    assert_eq!((ccx.sack_psn(), ccx.sacked().collect::<Vec<_>>()), (Psn(3), vec![Psn(4)]));
}

#[test]
fn what_opens_a_context_says_where_it_starts() {
    let offset = PsnOffset::new(7).unwrap();
    let request = Request::rud().syn(true).psn(Psn(5)).psn_offset(offset).done().unwrap();
    assert_eq!(request.start_psn(), Some(Psn(0xffff_fffe)));
    assert_eq!(request.edit().syn(false).done().unwrap().start_psn(), None);
    let noop = Control::build(CtlType::NOOP).syn(true).psn(Psn(9)).psn_offset(offset).done().unwrap();
    assert_eq!(noop.start_psn(), Some(Psn(2)));
    assert_eq!(noop.edit().syn(false).done().unwrap().start_psn(), None);
}

#[test]
fn what_is_cleared_is_said_as_a_psn_and_set_as_one() {
    let request = Request::rud().psn(Psn(5)).clear_psn(Psn(0xffff_ffff)).done().unwrap();
    assert_eq!((request.clear_psn_offset(), request.clear_psn()), (-6, Psn(0xffff_ffff)));
    assert!(Request::rud().psn(Psn(5)).clear_psn(Psn(40_000)).done().is_err(), "too far");
}

#[test]
fn the_payload_of_a_control_packet_means_what_its_type_says() {
    let control = |kind| Control::build(kind).payload(0x0300_0002).done().unwrap();
    let two = Units24::new(2).unwrap();
    for kind in (0..=15).filter_map(CtlType::new) {
        let clears = matches!(kind, CtlType::CLEAR_COMMAND | CtlType::CLEAR_REQUEST);
        assert_eq!(control(kind).clear_psn(), clears.then_some(Psn(0x0300_0002)), "{kind}");
        assert_eq!(control(kind).credit(), (kind == CtlType::CREDIT).then_some(two), "{kind}");
        let wanted = (kind == CtlType::CREDIT_REQUEST).then_some((3, two));
        assert_eq!(control(kind).credit_target(), wanted, "{kind}");
    }
}

#[test]
fn a_token_is_found_in_whichever_place_it_has() {
    let tokens = |std: Std| (std.initiator_restart_token(), std.target_restart_token());
    let send = Std::build(Opcode::UET_DEFERRABLE_SEND).send_initiator_token(1).send_target_token(2);
    assert_eq!(tokens(send.done().unwrap()), (Some(1), Some(2)));
    let ready = Std::build(Opcode::UET_DEFERRABLE_RTR).ready_initiator_token(3).ready_target_token(4);
    assert_eq!(tokens(ready.done().unwrap()), (Some(3), Some(4)));
    assert_eq!(tokens(Std::build(Opcode::UET_SEND).done().unwrap()), (None, None));
}

#[test]
fn the_bits_of_semantic_control_are_set_one_by_one() {
    let atomic = || Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT8);
    assert_eq!(atomic().cacheable(true).cpu_coherent(true).done().unwrap().semantic_control(), 3);
    let coherent = atomic().semantic_control(0xff).cacheable(false).done().unwrap();
    assert_eq!(coherent.semantic_control(), 0xfe);
}

#[test]
fn a_header_is_shown_with_its_values_as_people_read_them() {
    let (eth, _) = Ethernet::parse(&[2, 0, 0, 0, 0, 0xfe, 2, 0, 0, 0, 0, 1, 8, 0]).unwrap();
    let shown = format!("{eth:?}");
    assert_eq!(shown, "Ethernet { eth.dst: 02:00:00:00:00:fe, eth.src: 02:00:00:00:00:01, eth.type: 2048 }");
    let bytes = [0x38, 0x60, 0xff, 0xfd, 0, 0, 0, 7, 0, 1, 0, 2];
    let (ack, _) = Ack::parse(&bytes).unwrap();
    let shown = format!("{ack:?}");
    let psn = "pds.cack_psn: 7";
    for field in ["pds.type: ACK", "reserved: 0x1 at bit 9", "pds.flags.m: 1", "pds.ack_psn_offset: -3", psn]
    {
        assert!(shown.contains(field), "{field}: {shown}");
    }
    assert!(!shown.contains("at bit 15") && !shown.contains("probe"), "{shown}");
    let write = Std::build(Opcode::UET_WRITE).memory_key(0x5eed).done().unwrap();
    let shown = format!("{write:?}");
    assert!(shown.contains("ses.memory_key: 0x0000000000005eed,"), "{shown}");
}

#[test]
fn a_code_point_has_a_status_and_a_name_or_it_is_said_that_it_has_none() {
    let status = |kind: u8| PdsType::new(kind).unwrap().status(Version::V1_0_3);
    assert_eq!((status(0), status(2), status(31)), (Status::Reserved, Status::Assigned, Status::Reserved));
    assert_eq!("RUD_REQ".parse(), Ok(PdsType::RUD_REQ));
    let error = "RUDE_REQ".parse::<PdsType>().unwrap_err();
    assert_eq!(error.to_string(), "PdsType has no code point of this name");
}

#[test]
fn a_packet_is_empty_without_headers_and_payload() {
    assert!(Uet::default().is_empty());
    assert!(!Uet { payload: &[0], ..Uet::default() }.is_empty());
}

#[cfg(feature = "alloc")]
#[test]
fn an_atomic_extension_is_made_to_agree_with_its_length_and_keeps_what_agrees() {
    use uet_wire::ses::{CompareSwap, ExtBuf};
    let opcode = |ext: ExtBuf| match ext.consistent() {
        ExtBuf::Atomic(ext) => ext.atomic_opcode(),
        ExtBuf::CompareSwap(ext) => ext.atomic().atomic_opcode(),
        other => unreachable!("{other:?}"),
    };
    for given in (0..=255).filter_map(AtomicOpcode::new) {
        let short = Atomic::zeroed().edit().atomic_opcode(given).done().unwrap();
        let long = CompareSwap::zeroed().edit().atomic(|a| a.atomic_opcode(given)).done().unwrap();
        let swaps = given.is_compare_and_swap();
        assert_eq!(opcode(short.into()), if swaps { AtomicOpcode::SUM } else { given }, "{given}");
        assert_eq!(opcode(long.into()), if swaps { given } else { AtomicOpcode::CSWAP }, "{given}");
    }
}

#[test]
fn whatever_its_form_a_request_says_whom_it_asks_for_what_and_a_response_says_nothing_of_that() {
    let requests: [(SesBuf, _); 3] = [
        (
            Std::build(Opcode::UET_READ).address(|a| a.job_id(7)).done().unwrap().into(),
            NextHdr::UET_HDR_REQUEST_STD,
        ),
        (
            Medium::build(Opcode::UET_READ).address(|a| a.job_id(7)).done().unwrap().into(),
            NextHdr::UET_HDR_REQUEST_MEDIUM,
        ),
        (
            Small::build(Opcode::UET_READ).address(|a| a.job_id(7)).done().unwrap().into(),
            NextHdr::UET_HDR_REQUEST_SMALL,
        ),
    ];
    for (request, next) in requests {
        let request = request.view();
        assert_eq!(request.next_hdr(), next);
        assert_eq!(request.opcode(), Some(Opcode::UET_READ), "{next}");
        assert!(request.response_head().is_none(), "{next}");
        assert_eq!(request.request_head().map(|head| head.opcode()), Some(Opcode::UET_READ), "{next}");
        assert_eq!(request.address().map(|address| address.job_id()), Some(7), "{next}");
    }
    let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK).done().unwrap();
    let responses: [(SesBuf, _, _); 3] = [
        (response.into(), NextHdr::UET_HDR_RESPONSE, None),
        (
            ResponseData::build().payload_length(9).done().unwrap().into(),
            NextHdr::UET_HDR_RESPONSE_DATA,
            Some(9),
        ),
        (
            ResponseDataSmall::build().payload_length(8).done().unwrap().into(),
            NextHdr::UET_HDR_RESPONSE_DATA_SMALL,
            Some(8),
        ),
    ];
    for (response, next, payload) in responses {
        let response = response.view();
        assert_eq!((response.next_hdr(), response.payload_length()), (next, payload));
        assert!(response.opcode().is_none() && response.address().is_none(), "{next}");
        assert!(response.request_head().is_none(), "{next}");
        assert!(
            response.response_head().is_some_and(|head| Some(head.return_code()) == response.return_code())
        );
    }
    assert_eq!(Units24::new(7).unwrap().to_string(), "7");
}

#[test]
fn numbers_say_how_far_they_are_apart_and_which_way() {
    assert_eq!((Psn(2) - Psn(0xffff_ffff), Psn(0xffff_ffff) - Psn(2)), (3, 0xffff_fffd));
    assert_eq!(PsnOffset::between(Psn(5), Psn(7)).unwrap().to_string(), "2");
}

#[cfg(feature = "alloc")]
#[test]
fn under_a_security_header_all_that_is_payload_stays() {
    let tss = Some(uet_wire::tss::TssShort::zeroed().into());
    let packet = uet_wire::UetBuf { tss, payload: vec![1, 2], ..Default::default() };
    assert_eq!(packet.consistent().payload, [1, 2]);
}

#[cfg(feature = "alloc")]
#[test]
fn a_next_header_that_announces_nothing_stays_and_one_that_is_not_there_goes() {
    let after = |next: NextHdr| {
        let request = Request::rud().prologue(|p| p.next_hdr(next)).done().unwrap();
        let packet = uet_wire::UetBuf::new(request).consistent();
        packet.pds.unwrap().view().next_hdr()
    };
    let unknown = NextHdr::new(9).unwrap();
    assert_eq!((after(unknown), after(NextHdr::UET_HDR_REQUEST_STD)), (unknown, NextHdr::UET_HDR_NONE));
}

#[test]
fn a_unit_is_256_bytes_and_a_part_of_one_is_one() {
    let units = [0, 1, 256, 257, 256 << 24].map(|bytes| Units24::from_bytes(bytes).get());
    assert_eq!(units, [0, 1, 1, 2, 0]);
}

/// The sum 0x1ffff has another carry after one fold.
#[test]
fn the_carries_of_a_checksum_are_added_until_there_is_none() {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&[0x45, 0, 0xba, 0xff, 0xff, 0xff, 0, 1]);
    let (header, _) = Ipv4::parse(&bytes).unwrap();
    assert_eq!(header.computed_checksum(&[]), !1);
}

#[test]
fn whatever_state_it_carries_a_packet_is_a_request_an_ack_or_a_nack() {
    let psn = Psn(5);
    let ack = Ack::build().cack_psn(psn).done().unwrap();
    let nack = Nack::build(NackCode::NO_RESOURCE).nack_psn(psn).done().unwrap();
    let request = Request::rud().psn(psn).done().unwrap();
    let all: [(PdsBuf, _); 7] = [
        (request.into(), 0),
        (RequestCc::rud().request(|r| r.psn(psn)).done().unwrap().into(), 0),
        (ack.into(), 1),
        (AckCc::build().ack(|a| a.copy_from(&ack)).done().unwrap().into(), 1),
        (AckCcx::build().ack(|a| a.copy_from(&ack)).done().unwrap().into(), 1),
        (nack.into(), 2),
        (NackCcx::build(NackCode::NO_RESOURCE).nack(|n| n.nack_psn(psn)).done().unwrap().into(), 2),
    ];
    for (packet, what) in all {
        let pds = packet.view();
        let psns = [
            pds.request().map(|request| request.psn()),
            pds.ack().map(|ack| ack.cack_psn()),
            pds.nack().and_then(|nack| nack.nack_psn()),
        ];
        let expected: Vec<_> = (0..3).map(|kind| (kind == what).then_some(psn)).collect();
        assert_eq!(psns[..], expected, "{}", pds.kind());
    }
}

#[test]
fn each_packet_of_a_context_has_a_psn_and_both_identifiers() {
    let (psn, from, to) = (Psn(5), PdcId(1), PdcId(2));
    let request = Request::rud().psn(psn).spdcid(from).dpdcid(to).done().unwrap();
    let ack = Ack::build().cack_psn(Psn(3)).ack_psn(psn).spdcid(from).dpdcid(to).done().unwrap();
    let nack = Nack::build(NackCode::NO_RESOURCE).nack_psn(psn).spdcid(from).dpdcid(to).done().unwrap();
    let control = |kind| Control::build(kind).psn(psn).spdcid(from).dpdcid(to).done().unwrap();
    let all: [PdsBuf; 9] = [
        request.into(),
        RequestCc::rud().request(|r| r.copy_from(&request)).done().unwrap().into(),
        ack.into(),
        AckCc::build().ack(|a| a.copy_from(&ack)).done().unwrap().into(),
        AckCcx::build().ack(|a| a.copy_from(&ack)).done().unwrap().into(),
        nack.into(),
        NackCcx::build(NackCode::NO_RESOURCE).nack(|n| n.copy_from(&nack)).done().unwrap().into(),
        control(CtlType::NOOP).into(),
        control(CtlType::ACK_REQUEST).into(),
    ];
    for packet in all {
        let pds = packet.view();
        assert_eq!((pds.psn(), pds.spdcid(), pds.dpdcid()), (Some(psn), Some(from), Some(to)), "{packet:?}");
    }
    let credit: PdsBuf = control(CtlType::CREDIT).into();
    assert_eq!((credit.view().psn(), credit.view().dpdcid()), (None, Some(to)));
    let syn: PdsBuf = Request::rud().syn(true).spdcid(from).done().unwrap().into();
    assert_eq!((syn.view().spdcid(), syn.view().dpdcid()), (Some(from), None));
    let without: [PdsBuf; 2] =
        [Rudi::request(1).done().unwrap().into(), Prologue::of(PdsType::RESERVED).into()];
    for packet in without {
        let pds = packet.view();
        assert_eq!((pds.psn(), pds.spdcid(), pds.dpdcid()), (None, None, None), "{packet:?}");
    }
}

#[test]
fn versions_are_written_as_the_specification_writes_them() {
    assert_eq!(Version::ALL.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1.0.1", "1.0.2", "1.0.3"]);
}
