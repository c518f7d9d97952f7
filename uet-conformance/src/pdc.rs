//! The suite's side of a context: numbers, and packets that scripts can change before they leave.

use crate::{Region, Wire};
use core::net::IpAddr;
use uet_observe::{Context, Side};
use uet_wire::pds::{self, Ack, AckCc, Control, Nack, PdsBuf};
use uet_wire::registry::{
    AckRequest, AtomicDatatype, AtomicOpcode, CcType, CtlType, NackCode, NextHdr, Opcode, PdsType,
    ResponseOpcode, ReturnCode,
};
use uet_wire::ses::{Atomic, ExtBuf, Response, SesBuf, Std};
use uet_wire::{PdcId, Psn, PsnOffset, UetBuf, Units24, WriteError};

/// The suite's side of a context. It knows the numbers that the two sides have exchanged, and does nothing by
/// itself.
#[derive(Clone, Debug)]
pub struct Pdc {
    /// Address of the suite.
    pub from: IpAddr,
    /// Address of the device.
    pub to: IpAddr,
    /// PDCID of the suite.
    pub local: PdcId,
    /// PDCID of the device, once it is known.
    pub remote: Option<PdcId>,
    /// The first PSN.
    pub start: Psn,
    /// True for a ROD context.
    pub rod: bool,
    /// Entropy value of sent packets.
    pub entropy: u16,
}

impl Pdc {
    /// Creates a side of an observed context, with the first identifier of each end.
    pub fn of(context: &Context, side: Side) -> Pdc {
        let (own, peer) = (context.direction(side), context.direction(side.other()));
        let address = |side| context.addresses[side as usize];
        Pdc {
            from: address(side),
            to: address(side.other()),
            // An end that sent nothing has not chosen its identifier.
            local: own.names.first().copied().or(own.pdcid).unwrap_or(PdcId(0x8000 | context.id.0 as u16)),
            remote: peer.names.first().copied(),
            start: context.start.map_or(peer.psn(0), |(start, _)| start),
            rod: own.rod.or(peer.rod) == Some(true),
            entropy: 0xc000,
        }
    }

    /// Returns the `n`-th PSN of the context, from 0.
    pub fn psn(&self, n: u32) -> Psn {
        self.start + n
    }

    /// Returns this side with a PDCID that the device does not have.
    pub fn of_nobody(&self, pdcid: Option<PdcId>) -> Pdc {
        // Far from the identifier that the device uses.
        let unused = PdcId((pdcid.or(self.remote).unwrap_or_default().0 ^ 0x4000).max(1));
        Pdc { remote: Some(unused), ..self.clone() }
    }

    /// Returns the `n`-th request, with `ar`; with `syn` until the device's PDCID is known.
    pub fn request(&self, n: u32) -> Request {
        Request {
            rod: self.rod,
            psn: self.psn(n),
            clear: self.start - 1,
            spdcid: self.local,
            dpdcid: self.remote,
            offset: n,
            syn: self.remote.is_none(),
            ar: true,
            retx: false,
            reserved_pool: false,
            ses: None,
            ext: None,
            payload: Vec::new(),
        }
    }

    /// Returns an ACK of all PSNs up to this one, which it names, with the default response.
    pub fn ack(&self, psn: Psn) -> AckBuilder {
        AckBuilder {
            cack: psn,
            psn,
            spdcid: self.local,
            dpdcid: self.remote.unwrap_or(PdcId::NONE),
            retx: false,
            marked: false,
            request: AckRequest::NO_REQUEST,
            nscc: None,
            mpr: 8,
            sack: None,
            response: Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done().ok(),
            payload: Vec::new(),
        }
    }

    /// Builds a NACK for this PSN.
    pub fn nack(&self, code: NackCode, psn: Psn) -> Result<UetBuf, WriteError> {
        let (local, remote) = (self.local, self.remote.unwrap_or(PdcId::NONE));
        Ok(UetBuf::new(Nack::build(code).nack_psn(psn).spdcid(local).dpdcid(remote).done()?))
    }

    /// Builds a control packet. One that takes a PSN asks for an ACK.
    pub fn control(&self, kind: CtlType, psn: Psn, payload: u32) -> Result<UetBuf, WriteError> {
        let remote = self.remote.unwrap_or(PdcId::NONE);
        let asks = matches!(
            kind,
            CtlType::NOOP | CtlType::NEGOTIATION | CtlType::CLOSE_COMMAND | CtlType::CLOSE_REQUEST
        );
        let packet =
            Control::build(kind).ar(asks).psn(psn).spdcid(self.local).dpdcid(remote).payload(payload);
        Ok(UetBuf::new(packet.done()?))
    }

    /// Builds a NOOP or NEGOTIATION with the `n`-th PSN; with `syn` until the device's PDCID is known.
    pub fn numbered(&self, kind: CtlType, n: u32) -> Result<UetBuf, WriteError> {
        if self.remote.is_some() {
            return self.control(kind, self.psn(n), 0);
        }
        Ok(UetBuf::new(self.opening(kind, n).done()?))
    }

    /// Builds a control packet with `syn`, for types that may open a context and types that may not.
    pub fn opening(&self, kind: CtlType, n: u32) -> uet_wire::pds::ControlMut {
        let packet = Control::build(kind).isrod(self.rod).ar(true).syn(true).psn(self.psn(n));
        packet.spdcid(self.local).psn_offset(PsnOffset::new(n as u16).unwrap_or(PsnOffset::MAX))
    }

    /// Builds a PROBE that requests a bitmap from this PSN on.
    pub fn probe(&self, opaque: u16, base: Psn) -> Result<UetBuf, WriteError> {
        let remote = self.remote.unwrap_or(PdcId::NONE);
        let probe = Control::build(CtlType::PROBE).probe_opaque(opaque).payload(base.0);
        Ok(UetBuf::new(probe.spdcid(self.local).dpdcid(remote).done()?))
    }

    /// Returns arbitrary bytes as a packet with the context's addresses.
    pub fn raw(&self, bytes: &[u8]) -> Wire {
        Wire { bytes: bytes.to_vec(), ..self.wire(&UetBuf::default()) }
    }

    /// Returns the packet on the link with a congestion mark.
    pub fn marked(&self, packet: &UetBuf) -> Wire {
        Wire { marked: true, ..self.wire(packet) }
    }

    /// Returns the packet with this bit flipped after its CRC is computed, counted from its first bit.
    pub fn flipped(&self, packet: &UetBuf, bit: usize) -> Wire {
        Wire { flipped: Some(bit), ..self.wire(packet) }
    }

    /// Returns the packet as a switch trims it to this many bytes.
    pub fn trimmed(&self, packet: &UetBuf, place: crate::Trimmed, keep: usize) -> Wire {
        let mut wire = Wire { trimmed: Some(place), ..self.wire(packet) };
        wire.taken = wire.bytes.split_off(keep.min(wire.bytes.len()));
        wire
    }

    /// Returns the packet on the link.
    pub fn wire(&self, packet: &UetBuf) -> Wire {
        Wire::new(self.from, self.to, self.entropy, packet.to_bytes())
    }
}

/// The bits of `pdc_info` that request the reserved pool: the lowest, and the highest for devices that read
/// it there. A device ignores the other bit as reserved.
const RESERVED_POOL: u8 = 0b1001;

/// A request to send.
#[derive(Clone, Debug)]
#[must_use]
#[allow(missing_docs)] // named as the header's fields are
pub struct Request {
    pub rod: bool,
    pub psn: Psn,
    pub clear: Psn,
    pub spdcid: PdcId,
    pub dpdcid: Option<PdcId>,
    pub offset: u32,
    pub syn: bool,
    pub ar: bool,
    pub retx: bool,
    pub reserved_pool: bool,
    pub ses: Option<SesBuf>,
    pub ext: Option<ExtBuf>,
    pub payload: Vec<u8>,
}

impl Request {
    /// Sets a write of one packet to `offset` in the region.
    pub fn write(self, region: &Region, offset: u64, data: &[u8]) -> Result<Self, WriteError> {
        let ses = region.request(Opcode::UET_WRITE).head(|head| head.som(true).eom(true));
        let ses = ses.buffer_offset(offset).request_length(data.len() as u32).done()?;
        Ok(Request { ses: Some(ses.into()), payload: data.to_vec(), ..self })
    }

    /// Sets packet `k` of a write of `data` in packets of `mtu` bytes.
    pub fn write_part(self, region: &Region, data: &[u8], mtu: usize, k: usize) -> Result<Self, WriteError> {
        let start = (k * mtu).min(data.len());
        let end = (start + mtu).min(data.len());
        let (som, eom) = (k == 0, end == data.len());
        let ses = region.request(Opcode::UET_WRITE).head(|head| head.som(som).eom(eom));
        let ses =
            if som { ses } else { ses.payload_length((end - start) as u16).message_offset(start as u32) };
        let ses = ses.request_length(data.len() as u32).done()?;
        Ok(Request { ses: Some(ses.into()), payload: data[start..end].to_vec(), ..self })
    }

    /// Sets packet `k` of a write of two packets, whose last is answered once both have arrived.
    pub fn half(self, region: &Region, mtu: usize, k: usize) -> Result<Self, WriteError> {
        let (first, mtu32) = (k == 0, mtu as u32);
        let ses = region.request(Opcode::UET_WRITE).head(|head| head.som(first).eom(!first).dc(true));
        let ses = if first { ses } else { ses.payload_length(mtu as u16).message_offset(mtu32) };
        Ok(self.ses(ses.request_length(2 * mtu32).done()?, &vec![7; mtu]))
    }

    /// Sets a write that no region accepts: its answer is an error, which has guaranteed delivery.
    pub fn write_nowhere(self, region: &Region, data: &[u8]) -> Result<Self, WriteError> {
        self.write(&Region { key: region.key ^ 0x5a5a, ..region.clone() }, 0, data)
    }

    /// Sets a read of one packet from `offset` in the region.
    pub fn read(self, region: &Region, offset: u64, length: u32) -> Result<Self, WriteError> {
        let ses = region.request(Opcode::UET_READ).head(|head| head.som(true).eom(true));
        let ses = ses.buffer_offset(offset).request_length(length).done()?;
        Ok(Request { ses: Some(ses.into()), ..self })
    }

    /// Sets an atomic add to the 64-bit number at `offset` in the region; `fetch` returns the old value.
    pub fn add(self, region: &Region, offset: u64, addend: &[u8], fetch: bool) -> Result<Self, WriteError> {
        let opcode = if fetch { Opcode::UET_FETCHING_ATOMIC } else { Opcode::UET_ATOMIC };
        let ses = region.request(opcode).head(|head| head.som(true).eom(true));
        let ses = ses.buffer_offset(offset).request_length(8).done()?;
        let ext = Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).done()?;
        let payload = addend.to_vec();
        Ok(Request { ses: Some(ses.into()), ext: Some(ext.into()), payload, ..self })
    }

    /// Sets an arbitrary SES header and payload.
    pub fn ses(self, ses: impl Into<SesBuf>, payload: &[u8]) -> Self {
        Request { ses: Some(ses.into()), payload: payload.to_vec(), ..self }
    }

    /// Marks it as a retransmission.
    pub fn retx(self) -> Self {
        Request { retx: true, ..self }
    }

    /// Does not ask for an ACK.
    pub fn quiet(self) -> Self {
        Request { ar: false, ..self }
    }

    /// Sets CLEAR_PSN: the responses up to this PSN have arrived.
    pub fn clear(self, clear: Psn) -> Self {
        Request { clear, ..self }
    }

    /// Builds the packet.
    pub fn build(&self) -> Result<UetBuf, WriteError> {
        let pds = if self.rod { pds::Request::rod() } else { pds::Request::rud() };
        let next = self.ses.as_ref().map_or(NextHdr::UET_HDR_NONE, |ses| ses.view().next_hdr());
        let pds = pds.prologue(|prologue| prologue.next_hdr(next)).retx(self.retx).ar(self.ar).syn(self.syn);
        let pds = pds.psn(self.psn).clear_psn(self.clear).spdcid(self.spdcid);
        let pds = match (self.syn, self.dpdcid) {
            (false, remote) => pds.dpdcid(remote.unwrap_or(PdcId::NONE)),
            (true, _) => {
                let offset = PsnOffset::new(self.offset.min(4095) as u16).unwrap_or(PsnOffset::MAX);
                pds.pdc_info(if self.reserved_pool { RESERVED_POOL } else { 0 }).psn_offset(offset)
            }
        };
        let mut packet = UetBuf::new(pds.done()?);
        (packet.ses, packet.ext, packet.payload) = (self.ses, self.ext, self.payload.clone());
        Ok(packet)
    }
}

/// An ACK to send.
#[derive(Clone, Debug)]
#[must_use]
#[allow(missing_docs)] // named as the header's fields are
pub struct AckBuilder {
    pub cack: Psn,
    pub psn: Psn,
    pub spdcid: PdcId,
    pub dpdcid: PdcId,
    pub retx: bool,
    pub marked: bool,
    pub request: AckRequest,
    /// `rcvd_bytes` and `service_time` of an ACK_CC with NSCC state.
    pub nscc: Option<(Units24, u16)>,
    pub mpr: u8,
    /// First PSN and bits of the bitmap.
    pub sack: Option<(Psn, u64)>,
    pub response: Option<Response>,
    pub payload: Vec<u8>,
}

impl AckBuilder {
    /// Sets the cumulative PSN.
    pub fn cack(self, cack: Psn) -> Self {
        AckBuilder { cack, ..self }
    }

    /// Sets a response that must be cleared.
    pub fn guaranteed(self, response: Response) -> Self {
        AckBuilder { request: AckRequest::REQ_CLEAR, response: Some(response), ..self }
    }

    /// Sets the bitmap.
    pub fn sack(self, first: Psn, bits: u64) -> Self {
        AckBuilder { sack: Some((first, bits)), ..self }
    }

    /// Builds the packet.
    pub fn build(&self) -> Result<UetBuf, WriteError> {
        let offset = self.psn.offset_from(self.cack).unwrap_or(0);
        let next = match self.response {
            Some(_) => NextHdr::UET_HDR_RESPONSE,
            None => NextHdr::UET_HDR_NONE,
        };
        let ack = Ack::build().prologue(|prologue| prologue.next_hdr(next)).m(self.marked).retx(self.retx);
        let ack = ack.req(self.request).ack_psn_offset(offset).cack_psn(self.cack);
        let ack = ack.spdcid(self.spdcid).dpdcid(self.dpdcid).done()?;
        let pds: PdsBuf = match (self.nscc, self.sack) {
            (None, None) => ack.into(),
            (nscc, sack) => {
                let (first, bits) = sack.unwrap_or((self.cack + 1, 0));
                let (received, service) = nscc.unwrap_or_default();
                let first = first.offset_from(self.cack).unwrap_or(0);
                let kind = PdsType::ACK_CC;
                AckCc::build()
                    .ack(|a| a.copy_from(&ack).prologue(|prologue| prologue.kind(kind)))
                    .cc_type(CcType::NSCC)
                    .sack(|s| s.mpr(self.mpr).sack_psn_offset(first).sack_bitmap(bits))
                    .service_time(service)
                    .rcvd_bytes(received)
                    .done()?
                    .into()
            }
        };
        let mut packet = UetBuf::new(pds);
        packet.ses = self.response.map(Into::into);
        packet.payload = self.payload.clone();
        Ok(packet)
    }
}

impl Region {
    /// Returns the builder of a standard request for this region.
    pub fn request(&self, opcode: Opcode) -> uet_wire::ses::StdMut {
        Std::build(opcode)
            .head(|head| head.rel(true))
            .message_id(self.message_id)
            .address(|a| {
                a.ri_generation(self.generation)
                    .job_id(self.job)
                    .pid_on_fep(self.process)
                    .resource_index(self.index)
            })
            .memory_key(self.key)
    }
}
