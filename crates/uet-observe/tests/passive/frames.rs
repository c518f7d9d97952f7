//! Packets of two ends, and their findings.

use crate::check;
use uet_wire::pds::{self, Ack, AckCc, Control, PdsBuf, RequestMut};
use uet_wire::registry::{CcType, CtlType, NextHdr, Opcode, PdsType};
use uet_wire::ses::{SesBuf, Std};
use uet_wire::{FrameBuilder, PdcId, Psn, PsnOffset, Units24};

pub(crate) const HERE: PdcId = PdcId(0x4001);
pub(crate) const THERE: PdcId = PdcId(0x8001);

/// Builds a frame from the initiator (true) or the target.
pub(crate) fn frame(
    initiator: bool,
    entropy: u16,
    ecn: u8,
    pds: impl Into<PdsBuf>,
    ses: Option<SesBuf>,
    data: &[u8],
) -> Vec<u8> {
    let mut frame = FrameBuilder::new(pds).payload(data).udp(entropy).ecn(ecn).as_given();
    if let Some(ses) = ses {
        frame = frame.ses(ses);
    }
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let frame = if initiator { frame.ipv4(a, b) } else { frame.ipv4(b, a) };
    let mut buffer = vec![0; 9000];
    let length = frame.ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).emit(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

pub(crate) fn header(psn: u32, change: impl FnOnce(RequestMut) -> RequestMut) -> pds::Request {
    let next = NextHdr::UET_HDR_REQUEST_STD;
    let request = pds::Request::rud().prologue(|p| p.next_hdr(next)).clear_psn_offset(-1).psn(Psn(psn));
    // The change may open the context, and then there is no dpdcid.
    change(request.spdcid(HERE).dpdcid(THERE).done().unwrap().edit()).done().unwrap()
}

/// Builds a write of one packet. Message id 0 is reserved.
pub(crate) fn write(message: u16) -> Std {
    let head = Std::build(Opcode::UET_WRITE).head(|head| head.som(true).eom(true)).message_id(message.max(1));
    head.address(|a| a.job_id(101)).request_length(4).done().unwrap()
}

/// Builds request `psn` of a message of its own.
pub(crate) fn request(psn: u32, change: impl FnOnce(RequestMut) -> RequestMut) -> Vec<u8> {
    frame(true, 7, 0, header(psn, change), Some(write(psn as u16).into()), b"data")
}

pub(crate) fn same(request: RequestMut) -> RequestMut {
    request
}

pub(crate) fn ack_of(cack: u32, psn: u32) -> pds::AckMut {
    let offset = psn.wrapping_sub(cack) as i16;
    Ack::build().ack_psn_offset(offset).cack_psn(Psn(cack)).spdcid(THERE).dpdcid(HERE)
}

pub(crate) fn ack(cack: u32, psn: u32) -> Vec<u8> {
    frame(false, 7, 0, ack_of(cack, psn).done().unwrap(), None, b"")
}

pub(crate) fn ack_cc(cack: u32, psn: u32, bits: u64, units: u32) -> Vec<u8> {
    let kind = PdsType::ACK_CC;
    let simple = ack_of(cack, psn).done().unwrap();
    let ack = AckCc::build().ack(|a| a.copy_from(&simple).prologue(|p| p.kind(kind))).cc_type(CcType::NSCC);
    let ack = ack.sack(|s| s.mpr(8).sack_psn_offset(1).sack_bitmap(bits));
    frame(false, 7, 0, ack.rcvd_bytes(Units24::new(units).unwrap()).done().unwrap(), None, b"")
}

pub(crate) fn control(initiator: bool, kind: CtlType, psn: u32) -> Vec<u8> {
    let (from, to) = if initiator { (HERE, THERE) } else { (THERE, HERE) };
    let packet = Control::build(kind).ar(true).psn(Psn(psn)).spdcid(from).dpdcid(to).done().unwrap();
    frame(initiator, 7, 0, packet, None, b"")
}

pub(crate) fn opens(psn: u32, offset: u16) -> Vec<u8> {
    let request = pds::Request::rud().prologue(|p| p.next_hdr(NextHdr::UET_HDR_REQUEST_STD));
    let request = request.syn(true).clear_psn_offset(-1 - offset as i16).psn(Psn(psn)).spdcid(HERE);
    let request = request.psn_offset(PsnOffset::new(offset).unwrap()).done().unwrap();
    frame(true, 7, 0, request, Some(write(psn as u16).into()), b"data")
}

/// Checks the findings: the broken requirements and the packets that show them.
#[track_caller]
pub(crate) fn finds(frames: &[Vec<u8>], expected: &[(&str, u64)]) {
    let found = check(frames);
    let found: Vec<_> = found.iter().map(|finding| (finding.requirement.id, finding.number)).collect();
    assert_eq!(found, expected, "{:?}", check(frames).first());
}
