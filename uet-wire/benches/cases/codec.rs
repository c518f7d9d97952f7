//! The codec's side of each kind of packet: from the parsed packet to fields, and from fields to bytes.

use uet_overlay::{AckCc, AckResponse, Measured, Nack, RequestStd};
use uet_wire::pds::{self, Pds};
use uet_wire::registry::{
    AckRequest, CcType, List, NackCode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{self, Ses};
use uet_wire::{PdcId, Psn, PsnOffset, Uet, Units24};

/// The codec's side of a kind of packet.
pub(super) trait Codec: Measured {
    /// Its headers as owned values.
    type Owned;

    fn read(uet: &Uet<'_>, out: &mut Self) -> bool;
    fn build(&self, buffer: &mut [u8]) -> Option<usize>;
    fn owned(bytes: &[u8]) -> Option<Self::Owned>;
    fn emit(owned: &Self::Owned, buffer: &mut [u8]) -> Option<usize>;
}

/// Keeps a field that exists in some forms of a header only.
macro_rules! keep {
    ($out:ident.$field:ident = $value:expr) => {
        if let Some(value) = $value {
            $out.$field = value;
        }
    };
}

impl Codec for RequestStd {
    type Owned = (pds::Request, ses::Std);

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let (Some(Pds::Request(pds)), Some(Ses::Std(ses))) = (uet.pds, uet.ses) else { return false };
        let (prologue, head, address) = (pds.prologue(), ses.head(), ses.address());
        out.kind = prologue.kind().code();
        out.next_hdr = prologue.next_hdr().code();
        out.retx = pds.retx();
        out.ar = pds.ar();
        out.syn = pds.syn();
        out.clear_psn_offset = pds.clear_psn_offset();
        out.psn = pds.psn().0;
        out.spdcid = pds.spdcid().0;
        keep!(out.dpdcid = pds.dpdcid().map(|id| id.0));
        keep!(out.pdc_info = pds.pdc_info());
        keep!(out.psn_offset = pds.psn_offset().map(PsnOffset::get));
        out.opcode = head.opcode().code();
        out.version = head.version();
        out.dc = head.dc();
        out.ie = head.ie();
        out.rel = head.rel();
        out.hd = head.hd();
        out.eom = head.eom();
        out.som = head.som();
        out.message_id = ses.message_id();
        out.ri_generation = address.ri_generation();
        out.job_id = address.job_id();
        out.pid_on_fep = address.pid_on_fep();
        out.resource_index = address.resource_index();
        keep!(out.buffer_offset = ses.buffer_offset());
        keep!(out.initiator_restart_token = ses.initiator_restart_token());
        keep!(out.target_restart_token = ses.target_restart_token());
        out.initiator = ses.initiator();
        keep!(out.memory_key = ses.memory_key());
        keep!(out.match_bits = ses.match_bits());
        keep!(out.header_data = ses.header_data());
        keep!(out.payload_length = ses.payload_length());
        keep!(out.message_offset = ses.message_offset());
        out.request_length = ses.request_length();
        out.payload = uet.payload.as_ptr();
        out.payload_bytes = uet.payload.len();
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let (pds, buffer) = pds::Request::zeroed_in(buffer).ok()?;
        let pds = pds
            .prologue(|prologue| prologue.kind(PdsType::RUD_REQ).next_hdr(NextHdr::UET_HDR_REQUEST_STD))
            .retx(self.retx)
            .ar(self.ar)
            .syn(self.syn)
            .clear_psn_offset(self.clear_psn_offset)
            .psn(Psn(self.psn))
            .spdcid(PdcId(self.spdcid));
        let pds = if self.syn {
            pds.pdc_info(self.pdc_info).psn_offset(PsnOffset::new(self.psn_offset)?)
        } else {
            pds.dpdcid(PdcId(self.dpdcid))
        };
        pds.done().ok()?;
        let opcode = Opcode::new(self.opcode)?;
        let (ses, _) = ses::Std::zeroed_in(buffer).ok()?;
        let ses = ses
            .head(|head| {
                head.opcode(opcode)
                    .version(self.version)
                    .dc(self.dc)
                    .ie(self.ie)
                    .rel(self.rel)
                    .hd(self.hd)
                    .eom(self.eom)
                    .som(self.som)
            })
            .message_id(self.message_id)
            .address(|address| {
                address
                    .ri_generation(self.ri_generation)
                    .job_id(self.job_id)
                    .pid_on_fep(self.pid_on_fep)
                    .resource_index(self.resource_index)
            });
        let ses = match opcode {
            Opcode::UET_DEFERRABLE_SEND | Opcode::UET_DEFERRABLE_TSEND => ses
                .send_initiator_token(self.initiator_restart_token)
                .send_target_token(self.target_restart_token),
            _ => ses.buffer_offset(self.buffer_offset),
        };
        let ses = ses.initiator(self.initiator);
        let ses = match opcode {
            Opcode::UET_WRITE | Opcode::UET_READ | Opcode::UET_ATOMIC | Opcode::UET_FETCHING_ATOMIC => {
                ses.memory_key(self.memory_key)
            }
            Opcode::UET_DEFERRABLE_RTR => ses
                .ready_initiator_token(self.initiator_restart_token)
                .ready_target_token(self.target_restart_token),
            _ => ses.match_bits(self.match_bits),
        };
        let ses = if self.som {
            ses.header_data(self.header_data)
        } else {
            ses.payload_length(self.payload_length).message_offset(self.message_offset)
        };
        let ses = ses.request_length(self.request_length);
        ses.done().ok()?;
        Some(56)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        let (pds, rest) = pds::Request::parse(bytes).ok()?;
        Some((pds.copied(), ses::Std::parse(rest).ok()?.0.copied()))
    }

    #[inline(always)]
    fn emit((pds, ses): &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        ses.emit(pds.emit(buffer).ok()?).ok()?;
        Some(56)
    }
}

impl Codec for AckResponse {
    type Owned = (pds::Ack, ses::Response);

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let (Some(Pds::Ack(pds)), Some(Ses::Response(ses))) = (uet.pds, uet.ses) else { return false };
        let (prologue, head) = (pds.prologue(), ses.head());
        out.kind = prologue.kind().code();
        out.next_hdr = prologue.next_hdr().code();
        out.m = pds.m();
        out.retx = pds.retx();
        out.p = pds.p();
        out.req = pds.req().code();
        keep!(out.ack_psn_offset = pds.ack_psn_offset());
        keep!(out.probe_opaque = pds.probe_opaque());
        out.cack_psn = pds.cack_psn().0;
        (out.spdcid, out.dpdcid) = (pds.spdcid().0, pds.dpdcid().0);
        out.list = head.list().code();
        out.opcode = head.opcode().code();
        out.version = head.version();
        out.return_code = head.return_code().code();
        out.message_id = ses.message_id();
        out.ri_generation = ses.ri_generation();
        out.job_id = ses.job_id();
        out.modified_length = ses.modified_length();
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let (pds, buffer) = pds::Ack::zeroed_in(buffer).ok()?;
        let pds = pds
            .prologue(|prologue| prologue.kind(PdsType::ACK).next_hdr(NextHdr::UET_HDR_RESPONSE))
            .m(self.m)
            .retx(self.retx)
            .p(self.p)
            .req(AckRequest::new(self.req)?);
        let pds = if self.p {
            pds.probe_opaque(self.probe_opaque)
        } else {
            pds.ack_psn_offset(self.ack_psn_offset)
        };
        pds.cack_psn(Psn(self.cack_psn)).spdcid(PdcId(self.spdcid)).dpdcid(PdcId(self.dpdcid)).done().ok()?;
        let (opcode, list) = (ResponseOpcode::new(self.opcode)?, List::new(self.list)?);
        let code = ReturnCode::new(self.return_code)?;
        let (ses, _) = ses::Response::zeroed_in(buffer).ok()?;
        ses.head(|head| head.list(list).opcode(opcode).version(self.version).return_code(code))
            .message_id(self.message_id)
            .ri_generation(self.ri_generation)
            .job_id(self.job_id)
            .modified_length(self.modified_length)
            .done()
            .ok()?;
        Some(24)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        let (pds, rest) = pds::Ack::parse(bytes).ok()?;
        Some((pds.copied(), ses::Response::parse(rest).ok()?.0.copied()))
    }

    #[inline(always)]
    fn emit((pds, ses): &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        ses.emit(pds.emit(buffer).ok()?).ok()?;
        Some(24)
    }
}

impl Codec for AckCc {
    type Owned = pds::AckCc;

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let Some(Pds::AckCc(pds)) = uet.pds else { return false };
        let (ack, sack) = (pds.ack(), pds.sack());
        out.kind = ack.prologue().kind().code();
        out.next_hdr = ack.prologue().next_hdr().code();
        out.m = ack.m();
        out.retx = ack.retx();
        out.p = ack.p();
        out.req = ack.req().code();
        keep!(out.ack_psn_offset = ack.ack_psn_offset());
        keep!(out.probe_opaque = ack.probe_opaque());
        out.cack_psn = ack.cack_psn().0;
        (out.spdcid, out.dpdcid) = (ack.spdcid().0, ack.dpdcid().0);
        out.cc_type = pds.cc_type().code();
        out.cc_flags = pds.cc_flags();
        out.mpr = sack.mpr();
        out.sack_psn_offset = sack.sack_psn_offset();
        out.sack_bitmap = sack.sack_bitmap();
        keep!(out.service_time = pds.service_time());
        keep!(out.rc = pds.rc());
        keep!(out.rcv_cwnd_pend = pds.rcv_cwnd_pend());
        keep!(out.rcvd_bytes = pds.rcvd_bytes().map(Units24::get));
        keep!(out.credit = pds.credit().map(Units24::get));
        keep!(out.ooo_count = pds.ooo_count());
        keep!(out.ack_cc_state = pds.ack_cc_state());
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let req = AckRequest::new(self.req)?;
        let cc_type = CcType::new(self.cc_type)?;
        let (pds, _) = pds::AckCc::zeroed_in(buffer).ok()?;
        let pds = pds
            .ack(|ack| {
                let ack = ack.prologue(|prologue| prologue.kind(PdsType::ACK_CC));
                let ack = ack.m(self.m).retx(self.retx).p(self.p).req(req);
                let ack = if self.p {
                    ack.probe_opaque(self.probe_opaque)
                } else {
                    ack.ack_psn_offset(self.ack_psn_offset)
                };
                ack.cack_psn(Psn(self.cack_psn)).spdcid(PdcId(self.spdcid)).dpdcid(PdcId(self.dpdcid))
            })
            .cc_type(cc_type)
            .cc_flags(self.cc_flags)
            .sack(|sack| {
                sack.mpr(self.mpr).sack_psn_offset(self.sack_psn_offset).sack_bitmap(self.sack_bitmap)
            });
        let pds = match cc_type {
            CcType::NSCC => pds
                .service_time(self.service_time)
                .rc(self.rc)
                .rcv_cwnd_pend(self.rcv_cwnd_pend)
                .rcvd_bytes(Units24::new(self.rcvd_bytes)?)
                .ooo_count(self.ooo_count),
            CcType::CREDIT => pds.credit(Units24::new(self.credit)?).ooo_count(self.ooo_count),
            _ => pds.ack_cc_state(self.ack_cc_state),
        };
        pds.done().ok()?;
        Some(32)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        Some(pds::AckCc::parse(bytes).ok()?.0.copied())
    }

    #[inline(always)]
    fn emit(pds: &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        pds.emit(buffer).ok()?;
        Some(32)
    }
}

impl Codec for Nack {
    type Owned = pds::Nack;

    #[inline(always)]
    fn read(uet: &Uet<'_>, out: &mut Self) -> bool {
        let Some(Pds::Nack(pds)) = uet.pds else { return false };
        out.kind = pds.prologue().kind().code();
        out.next_hdr = pds.prologue().next_hdr().code();
        out.m = pds.m();
        out.retx = pds.retx();
        out.nt = pds.nt();
        (out.nack_code, out.vendor_code) = (pds.nack_code().code(), pds.vendor_code());
        keep!(out.nack_psn = pds.nack_psn().map(|psn| psn.0));
        keep!(out.nack_pkt_id = pds.nack_pkt_id());
        (out.spdcid, out.dpdcid) = (pds.spdcid().0, pds.dpdcid().0);
        out.payload = pds.payload();
        true
    }

    #[inline(always)]
    fn build(&self, buffer: &mut [u8]) -> Option<usize> {
        let (pds, _) = pds::Nack::zeroed_in(buffer).ok()?;
        let pds = pds
            .prologue(|prologue| prologue.kind(PdsType::NACK))
            .m(self.m)
            .retx(self.retx)
            .nt(self.nt)
            .nack_code(NackCode::new(self.nack_code)?)
            .vendor_code(self.vendor_code);
        let pds = if self.nt { pds.nack_pkt_id(self.nack_pkt_id) } else { pds.nack_psn(Psn(self.nack_psn)) };
        pds.spdcid(PdcId(self.spdcid)).dpdcid(PdcId(self.dpdcid)).payload(self.payload).done().ok()?;
        Some(16)
    }

    fn owned(bytes: &[u8]) -> Option<Self::Owned> {
        Some(pds::Nack::parse(bytes).ok()?.0.copied())
    }

    #[inline(always)]
    fn emit(pds: &Self::Owned, buffer: &mut [u8]) -> Option<usize> {
        pds.emit(buffer).ok()?;
        Some(16)
    }
}

// The operations. Each is a function of its own, so that its instructions can be counted.
