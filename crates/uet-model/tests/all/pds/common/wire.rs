//! Packets that a test builds itself.

use bytes::Bytes;
use uet_model::{Head, Packet, Priority, TrimPoint};
use uet_wire::pds::{Ack, Control, Nack, Request};
use uet_wire::registry::{CtlType, NackCode, NextHdr, PdsType};
use uet_wire::{PdcId, Psn, PsnOffset, Uet};

use super::{A, B, address};

/// Returns a packet with these headers, from one side to the other.
pub fn packet(from: usize, headers: &[&[u8]]) -> Packet {
    Packet {
        src: address(from),
        dst: address(1 - from),
        class: 0,
        priority: Priority::Low,
        marked: false,
        security: None,
        trimmed: None,
        entropy: 77,
        ttl: Packet::TTL,
        udp_checksum: 0,
        head: headers.concat().into_iter().collect::<Head>(),
        payload: Bytes::new(),
    }
}

/// The fields of a request that the initiator makes.
#[derive(Clone, Copy)]
pub struct Rud {
    pub kind: PdsType,
    pub psn: u32,
    /// The psn_offset, for a packet with syn.
    pub offset: Option<u16>,
    pub spdcid: u16,
    pub dpdcid: u16,
    pub retx: bool,
    pub ar: bool,
    pub reserved: bool,
}

impl Default for Rud {
    fn default() -> Self {
        Rud {
            kind: PdsType::RUD_REQ,
            psn: 333,
            offset: None,
            spdcid: 0x4001,
            dpdcid: 0x8001,
            retx: false,
            ar: true,
            reserved: false,
        }
    }
}

impl Rud {
    pub fn syn(psn: u32, offset: u16) -> Self {
        Rud { psn, offset: Some(offset), ..Rud::default() }
    }

    pub fn packet(self) -> Packet {
        let request =
            Request::zeroed().edit().prologue(|p| p.kind(self.kind).next_hdr(NextHdr::UET_HDR_REQUEST_STD));
        let request = request.retx(self.retx).ar(self.ar).syn(self.offset.is_some());
        let request =
            request.clear_psn_offset(self.clear_offset()).psn(Psn(self.psn)).spdcid(PdcId(self.spdcid));
        let request = match self.offset {
            Some(offset) => {
                request.pdc_info(self.reserved.into()).psn_offset(PsnOffset::new(offset).unwrap())
            }
            None => request.dpdcid(PdcId(self.dpdcid)),
        };
        packet(A, &[request.done().unwrap().bytes(), &[0; 44]])
    }

    /// Returns the CLEAR_PSN offset; no PSN above 332 is cleared.
    fn clear_offset(self) -> i16 {
        if self.offset.is_none() && (334..10_000).contains(&self.psn) { 332 - self.psn as i16 } else { -1 }
    }

    pub fn trimmed(self, place: TrimPoint) -> Packet {
        Packet { trimmed: Some(place), ..self.packet() }
    }
}

/// Returns a control packet of an established context.
pub fn control(from: usize, kind: CtlType, psn: u32, payload: u32) -> Packet {
    let [own, other] = if from == A { [0x4001, 0x8001] } else { [0x8001, 0x4001] };
    let control = Control::build(kind).ar(kind != CtlType::CLEAR_COMMAND).psn(Psn(psn));
    let control = control.spdcid(PdcId(own)).dpdcid(PdcId(other)).payload(payload);
    packet(from, &[control.done().unwrap().bytes()])
}

/// Returns a NACK of the target.
pub fn nack(code: NackCode, psn: u32, payload: u32) -> Packet {
    let nack =
        Nack::build(code).nack_psn(Psn(psn)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)).payload(payload);
    packet(B, &[nack.done().unwrap().bytes()])
}

/// Returns an ACK of the target.
pub fn ack(cack: u32, offset: i16) -> Packet {
    let ack =
        Ack::build().ack_psn_offset(offset).cack_psn(Psn(cack)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001));
    packet(B, &[ack.done().unwrap().bytes()])
}

/// Returns the NACKs among packets: code, PSN, spdcid, payload.
pub fn nacks(packets: &[Packet]) -> Vec<(NackCode, u32, u16, u32)> {
    let nack = |packet: &Packet| {
        let nack = Uet::parse(&packet.head).ok()?.pds?.nack()?;
        Some((nack.nack_code(), nack.nack_psn()?.0, nack.spdcid().0, nack.payload()))
    };
    packets.iter().filter_map(nack).collect()
}
