//! Writers of headers, and frames of possibly contradictory parts.

use crate::cut_off::cut_off;
use arbitrary::{Arbitrary, Unstructured};
use uet_wire::outer::Ipv4;
use uet_wire::pds::{Ack, AckCc, AckCcx, Control, Nack, NackCcx, Pds, PdsBuf, Prologue, Request, RequestCc, Rudi, Uud};
use uet_wire::registry::*;
use uet_wire::ses::{Atomic, ExtBuf, Medium, Response, ResponseData, ResponseDataSmall, SesBuf, Small, Std};
use uet_wire::tss::{TssBuf, TssLong, TssShort};
use uet_wire::{EditError, FrameBuilder, Options, Packet, PdcId, Psn, PsnOffset, Start, TrailerKind, Uet, UetBuf, Units24, WriteErrorKind};

pub(super) fn run(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    if let Ok((header, outside)) = bytes.arbitrary() {
        told(header);
        frame(&outside);
    }
    if let Ok((tss, ses, ext)) = bytes.arbitrary() {
        made_consistent(tss, ses, ext);
    }
}

/// Arguments of a writer.
#[derive(Clone, Debug, Arbitrary)]
struct Told {
    which: u8,
    syn: bool,
    psn: Psn,
    other_psn: Psn,
    psn_offset: PsnOffset,
    ids: (PdcId, PdcId),
    credit: Units24,
    number: u32,
    wide: u128,
    codes: (NackCode, CtlType, Opcode, ResponseOpcode, ReturnCode),
    atomic: (AtomicOpcode, AtomicDatatype, bool, bool),
    bitmap: u64,
    service_time: u16,
    cc_type: CcType,
}

/// Checks that a header returns its arguments, or that the writer reports a value that does not fit.
fn told(t: Told) {
    match t.which % 20 {
        0 | 1 => {
            let start = if t.which.is_multiple_of(20) { Request::rud() } else { Request::rod() };
            let set = start.psn(t.psn).clear_psn(t.other_psn).syn(t.syn).spdcid(t.ids.0);
            let set = if t.syn { set.psn_offset(t.psn_offset) } else { set.dpdcid(t.ids.1) };
            match set.done() {
                Ok(request) => {
                    assert_eq!((request.clear_psn(), request.spdcid()), (t.other_psn, t.ids.0));
                    assert_eq!(request.dpdcid(), (!t.syn).then_some(t.ids.1));
                    let first = t.psn - u32::from(t.psn_offset.get());
                    assert_eq!(request.start_psn(), t.syn.then_some(first));
                }
                Err(error) => assert!(t.other_psn.offset_from(t.psn).is_none(), "{error}"),
            }
            let absent = if t.syn { Request::rud().syn(true).dpdcid(t.ids.1) } else { Request::rud().pdc_info(1) };
            assert_eq!(absent.done().map_err(|error| error.kind()), Err(WriteErrorKind::FieldAbsent));
        }
        2 | 3 => {
            let start = if t.which % 20 == 2 { RequestCc::rud() } else { RequestCc::rod() };
            let request = start.request(|request| request.psn(t.psn)).ccc_id(t.number as u8);
            let request = request.credit_target(t.credit).done().expect("it fits");
            assert_eq!(request.credit_target(), t.credit);
            assert_eq!(PdsBuf::from(request).view().request().map(|request| request.psn()), Some(t.psn));
        }
        4 => {
            let ack = Ack::build().cack_psn(t.psn).spdcid(t.ids.0).dpdcid(t.ids.1).done().expect("it fits");
            assert_eq!(PdsBuf::from(ack).view().ack(), Some(ack));
            assert_eq!((Pds::from(&ack), Pds::from(ack.view())), (Pds::Ack(ack.view()), Pds::Ack(ack.view())));
            assert_eq!(ack.ack_psn(), Some(t.psn));
        }
        5 => {
            let ack = AckCc::build().ack(|ack| ack.cack_psn(t.psn)).cc_type(t.cc_type);
            let ack = ack.sack(|sack| sack.sack_bitmap(t.bitmap).mpr(t.number as u8)).done().expect("it fits");
            let told = ack.edit().service_time(t.service_time).done();
            if let Ok(ack) = told {
                assert_eq!(ack.service_time_ns(), (t.service_time != 0).then(|| u32::from(t.service_time) * 128));
            }
            assert_eq!(told.is_ok(), ack.service_time().is_some());
            received(ack.sack_psn(), t.bitmap, ack.sacked().collect(), ack.sacked().ranges().collect());
            assert_eq!(ack.sacked().len(), t.bitmap.count_ones() as usize);
            assert!(ack.sack().mp_range().is_none_or(|range| range >= u32::from(ack.sack().mpr())));
        }
        6 => {
            let ack = AckCcx::build().ack(|ack| ack.cack_psn(t.psn)).ack_ccx_state(t.wide);
            let ack = ack.sack(|sack| sack.sack_bitmap(t.bitmap)).done().expect("it fits");
            assert_eq!(ack.ack_ccx_state(), t.wide);
            received(ack.sack_psn(), t.bitmap, ack.sacked().collect(), ack.sacked().ranges().collect());
        }
        7 => {
            let nack = Nack::build(t.codes.0).nack_psn(t.psn).done().expect("it fits");
            assert_eq!((nack.nack_psn(), nack.nack_code()), (Some(t.psn), t.codes.0));
            // The deployment decides about unnamed codes.
            assert!(t.codes.0.class().is_none() || t.codes.0.name().is_some());
            let rudi = Nack::rudi(t.codes.0).nack_pkt_id(t.number).done().expect("it fits");
            assert_eq!(rudi.nack_pkt_id(), Some(t.number));
            assert!(Nack::rudi(t.codes.0).nack_psn(t.psn).done().is_err());
        }
        8 => {
            let nack = NackCcx::build(t.codes.0).nack_ccx_state(t.wide >> 4).done().expect("it fits");
            assert_eq!(PdsBuf::from(nack).view().nack().map(|nack| nack.nack_code()), Some(t.codes.0));
        }
        9 => {
            let control = Control::build(t.codes.1).psn(t.psn).spdcid(t.ids.0).payload(t.number).syn(t.syn);
            let control = if t.syn { control.psn_offset(t.psn_offset) } else { control.dpdcid(t.ids.1) };
            let control = control.done().expect("it fits");
            assert_eq!(control.ctl_type(), t.codes.1);
            let first = t.psn - u32::from(t.psn_offset.get());
            assert_eq!(control.start_psn(), t.syn.then_some(first));
            assert!(control.clear_psn().is_none_or(|clear| clear == Psn(t.number)));
            assert!(control.credit().is_none_or(|credit| credit.get() == t.number & 0xff_ffff));
            assert!(control.credit_target().is_none_or(|(id, _)| u32::from(id) == t.number >> 24));
        }
        10 => {
            assert_eq!(Rudi::request(t.number).done().map(|rudi| rudi.pkt_id()), Ok(t.number));
            assert_eq!(Rudi::response(t.number).done().map(|rudi| rudi.pkt_id()), Ok(t.number));
            let uud = PdsBuf::from(Uud::default());
            assert_eq!(uud.view().kind(), PdsType::UUD_REQ);
            assert!(uud.view().request().is_none() && uud.view().ack().is_none() && uud.view().nack().is_none());
        }
        11 => {
            let short = TssShort::build().tsc(|tsc| tsc.epoch(t.number as u16)).done();
            let long = TssLong::build().ssi(t.number).done().expect("it fits");
            assert_eq!(TssBuf::from(long).view().ssi(), Some(t.number));
            if let Ok(short) = short {
                let short = TssBuf::from(short);
                assert_eq!((short.view().ssi(), short.view().tsc().epoch()), (None, t.number as u16));
                assert_eq!(short.view().head().kind(), PdsType::TSS);
            }
        }
        12..15 => {
            let ses = match t.which % 20 {
                12 => Std::build(t.codes.2).message_id(t.number as u16).done().map(SesBuf::from),
                13 => Medium::build(t.codes.2).done().map(SesBuf::from),
                _ => Small::build(t.codes.2).done().map(SesBuf::from),
            };
            let ses = ses.expect("it fits");
            assert_eq!(ses.view().opcode(), Some(t.codes.2));
            assert_eq!(ses.view().request_head().map(|head| head.opcode()), Some(t.codes.2));
            assert!(ses.view().address().is_some());
            if let SesBuf::Std(std) = ses {
                let send = std.edit().send_initiator_token(t.number).send_target_token(!t.number).done();
                let ready = std.edit().ready_initiator_token(t.number).ready_target_token(!t.number).done();
                for std in [send, ready].into_iter().flatten() {
                    assert_eq!(std.initiator_restart_token(), Some(t.number));
                    assert_eq!(std.target_restart_token(), Some(!t.number));
                }
                assert_eq!(send.is_ok() || ready.is_ok(), std.initiator_restart_token().is_some());
            }
        }
        15 => {
            let response = Response::build(t.codes.3, t.codes.4).message_id(t.number as u16).done().expect("it fits");
            assert_eq!((response.head().opcode(), response.head().return_code()), (t.codes.3, t.codes.4));
            let data = ResponseData::build().payload_length(t.number as u16 & 0x3fff).done().expect("it fits");
            let small = ResponseDataSmall::build().done().map(SesBuf::from).expect("it fits");
            for ses in [SesBuf::from(response), SesBuf::from(data), small] {
                assert!(ses.view().opcode().is_none() && ses.view().request_head().is_none() && ses.view().address().is_none());
            }
            assert_eq!(SesBuf::from(data).view().payload_length(), Some(t.number as u16 & 0x3fff));
        }
        16 => {
            let (opcode, datatype, cacheable, coherent) = t.atomic;
            let atomic = Atomic::build(opcode, datatype).cacheable(cacheable).cpu_coherent(coherent).done().expect("it fits");
            assert_eq!((atomic.atomic_opcode(), atomic.atomic_datatype()), (opcode, datatype));
            let off = atomic.edit().cacheable(false).cpu_coherent(false).done().expect("it fits");
            assert_eq!(off.semantic_control(), 0);
            let on = off.edit().cacheable(true).cpu_coherent(true).done().expect("it fits");
            assert_eq!(on.semantic_control(), 3);
            assert_eq!(atomic.semantic_control() & !3, 0);
        }
        17 => {
            let kind = PdsType::new(t.number as u8 & 31).unwrap_or_default();
            let prologue = Prologue::of(kind);
            assert_eq!((PdsBuf::from(prologue).view().kind(), prologue.kind()), (kind, kind));
        }
        _ => {
            let long = [0; 0xffff];
            for frame in [FrameBuilder::opaque(&long).udp(7), FrameBuilder::opaque(&long).native(7).ipv4([1; 4], [2; 4])] {
                let refused = frame.emit(&mut [0; 0x1_0100]).map_err(|error| error.kind());
                assert_eq!(refused, Err(WriteErrorKind::LengthTooLong));
            }
            let mut header = [0; 12];
            let cut = &mut header[..usize::from(t.service_time % 12)];
            let short = Ack::zeroed().emit(cut).expect_err("it does not fit");
            assert_eq!(short.kind(), WriteErrorKind::BufferTooShort);
            cut_off(short, t.number as usize);
            assert!(Ack::parse_mut(cut).is_err());
            // Headers that do not contain their own type.
            let tss = |kind, sp| TssShort::zeroed().edit().head(|head| head.kind(kind).sp(sp)).done().expect("it fits");
            for frame in [
                FrameBuilder::new(Request::zeroed()),
                FrameBuilder::secured(tss(PdsType::ACK, false), &[], [0; 16]),
                FrameBuilder::secured(tss(PdsType::TSS, true), &[], [0; 16]),
            ] {
                let refused = frame.emit(&mut [0; 64]).expect_err("it contradicts itself");
                assert_eq!(refused.kind(), WriteErrorKind::Mismatch);
                assert_eq!(EditError::from(refused).to_string(), refused.to_string());
            }
            let header = Ipv4::zeroed();
            let odd = header.computed_checksum(&t.wide.to_be_bytes()[..15]);
            let padded = header.computed_checksum(&(t.wide & !0xff).to_be_bytes());
            assert_eq!(odd, padded, "as if there were a byte of zero");
            assert_eq!(<Request as Arbitrary>::size_hint(0), (12, Some(12)));
            assert_eq!(UetBuf::new(Ack::zeroed()).pds, Some(Ack::zeroed().into()));
            assert_eq!(Options::default(), Options::DEFAULT);
            assert_eq!(Uet::default().to_string(), "", "a packet without headers says nothing");
        }
    }
}

/// Checks that a bitmap equals a list of PSNs and a list of runs.
fn received(base: Psn, bitmap: u64, listed: Vec<Psn>, ranges: Vec<(Psn, Psn)>) {
    let expected: Vec<Psn> = (0..64).filter(|bit| bitmap >> bit & 1 == 1).map(|bit| base + bit).collect();
    assert_eq!(listed, expected);
    let runs = ranges.iter().flat_map(|(first, last)| (0..=*last - *first).map(|by| *first + by));
    assert!(runs.eq(expected));
    assert!(ranges.windows(2).all(|pair| pair[1].0 - pair[0].1 > 1), "runs that touch are one");
}

/// Arbitrary parts of a frame.
#[derive(Clone, Debug, Arbitrary)]
struct Parts {
    pds: PdsBuf,
    ses: Option<SesBuf>,
    ext: Option<ExtBuf>,
    tss: Option<TssBuf>,
    opaque: bool,
    payload: Vec<u8>,
    /// UDP, native, native under some number, none.
    encapsulation: u8,
    number: u8,
    /// IPv4, IPv6, none.
    ip: u8,
    options: u8,
    ethernet: bool,
    tags: u8,
    dscp: u8,
    ecn: u8,
    crc: bool,
    pad: u8,
}

/// Checks that a frame of these parts is refused, or parses as intended.
fn frame(parts: &Parts) {
    let (options, tags) = ([1; 48], [1, 2, 3]);
    let mut frame = match (parts.opaque, parts.tss) {
        (true, _) => FrameBuilder::opaque(&parts.payload),
        (false, Some(tss)) => FrameBuilder::secured(tss, &parts.payload, [7; 16]),
        (false, None) => FrameBuilder::new(parts.pds).payload(&parts.payload),
    };
    frame = parts.ses.into_iter().fold(frame, FrameBuilder::ses);
    frame = parts.ext.into_iter().fold(frame, FrameBuilder::ext);
    frame = match parts.encapsulation % 4 {
        0 => frame.udp(7),
        1 => frame.native(7),
        2 => frame.native_as(7, parts.number),
        _ => frame,
    };
    frame = match parts.ip % 3 {
        0 => frame.ipv4([10, 0, 0, 1], [10, 0, 0, 2]),
        1 => frame.ipv6([1; 16], [2; 16]),
        _ => frame,
    };
    frame = frame.ipv4_options(&options[..usize::from(parts.options % 48)]).dscp(parts.dscp % 64).ecn(parts.ecn % 4);
    if parts.ethernet {
        frame = frame.ethernet([2; 6], [4; 6]);
    }
    frame = frame.vlans(&tags[..usize::from(parts.tags % 4)]);
    if parts.crc {
        frame = frame.crc();
    }
    let length = frame.len();
    frame = frame.pad_to(length + usize::from(parts.pad % 64));
    let mut bytes = vec![0; frame.len()];
    if frame.clone().as_given().emit(&mut bytes) == Ok(bytes.len()) {
        assert_eq!(bytes.len(), length + usize::from(parts.pad % 64));
    }
    match frame.emit(&mut bytes) {
        Ok(written) => assert_eq!(written, bytes.len()),
        Err(error) => return assert!(!error.to_string().is_empty()),
    }
    // Opaque contents may be anything.
    if parts.opaque || parts.tss.is_some() && parts.crc {
        return;
    }
    let trailer = match (parts.crc, parts.tss) {
        (true, _) => TrailerKind::Crc,
        (false, Some(_)) => TrailerKind::Icv,
        (false, None) => TrailerKind::None,
    };
    let ip_proto = if parts.encapsulation % 4 == 2 { parts.number } else { Options::DEFAULT.ip_proto };
    let start = match (parts.ethernet, parts.ip % 3, parts.encapsulation % 4) {
        (true, ..) => Start::Eth,
        (false, 0 | 1, _) => Start::Ip,
        (false, _, 0) => Start::Udp,
        _ => Start::Uet,
    };
    let parsed = Packet::parse(start, &bytes, &Options::DEFAULT.ip_proto(ip_proto).trailer(trailer));
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(parsed.uet.payload, parts.payload);
    assert_eq!(parsed.uet.tss.map(|tss| tss.copied()), parts.tss);
    if parts.tss.is_none() {
        assert_eq!(parsed.uet.pds.map(|pds| pds.kind()), Some(parts.pds.view().kind()));
        assert_eq!(parsed.uet.ses.map(|ses| ses.copied()), parts.ses);
        assert_eq!(parsed.uet.ext.map(|ext| ext.copied()), parts.ext);
    }
}

/// Checks that parts of several packets are made consistent.
fn made_consistent(tss: Option<TssBuf>, ses: Option<SesBuf>, ext: Option<ExtBuf>) {
    for pds in [PdsBuf::from(Request::zeroed()), PdsBuf::from(AckCc::zeroed()), PdsBuf::from(Control::zeroed())] {
        let packet = UetBuf { tss, pds: Some(pds), ses, ext, payload: vec![1] }.consistent();
        assert_eq!(Uet::parse(&packet.to_bytes()).map(|packet| packet.to_buf()), Ok(packet));
    }
}
