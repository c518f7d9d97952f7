//! Building whole packets.

use crate::WriteError;
use crate::layout::Layer;
use crate::outer::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, Entropy, Ethernet, EthernetMut, IP_PROTO, Ipv4, Ipv6,
    PROTO_UDP, UDP_PORT, Udp, Vlan,
};
use crate::pds::{PdsBuf, Prologue};
use crate::registry::NextHdr;
use crate::ses::{ExtBuf, SesBuf};
use crate::trailer::TrailerKind;
use crate::tss::TssBuf;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Builds a packet, from the inside out, into the caller's buffer.
///
/// What can be computed is: `next_hdr`, lengths, the IPv4 checksum, the CRC. What does not go together is an
/// error. To build what should not be, say [`as_given`](Frame::as_given), or change the bytes afterwards.
///
/// ```
/// use uet_wire::pds::Ack;
/// use uet_wire::registry::{ResponseOpcode, ReturnCode};
/// use uet_wire::ses::Response;
/// use uet_wire::{Frame, PdcId, Psn};
///
/// let ack = Ack::build().cack_psn(Psn(333)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)).done()?;
/// let ok = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).message_id(1).done()?;
/// let mut buffer = [0; 128];
/// let length = Frame::new(ack).ses(ok).udp(7).ipv4([10, 0, 1, 12], [10, 0, 0, 1]).dscp(46).emit(&mut buffer)?;
/// assert_eq!(length, 20 + 8 + 12 + 12);
/// assert_eq!(buffer[28..30], [0x3a, 0x00], "an ACK, followed by a RESPONSE");
/// # Ok::<(), uet_wire::WriteError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "ends with emit()"]
pub struct Frame<'a> {
    tss: Option<TssBuf>,
    pds: Option<PdsBuf>,
    ses: Option<SesBuf>,
    ext: Option<ExtBuf>,
    payload: &'a [u8],
    encapsulation: Encapsulation,
    ip: Network,
    ipv4_options: &'a [u8],
    dscp: u8,
    ecn: u8,
    ttl: u8,
    eth: Option<Ethernet>,
    vlans: &'a [u16],
    trailer: TrailerKind,
    icv: [u8; 16],
    pad_to: usize,
    checked: bool,
}

#[derive(Clone, Copy, Debug)]
enum Encapsulation {
    Bare,
    Udp { entropy: u16, port: u16 },
    Native { entropy: u16, proto: u8 },
}

#[derive(Clone, Copy, Debug)]
enum Network {
    None,
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl<'a> Frame<'a> {
    /// A packet with this PDS header.
    pub fn new(pds: impl Into<PdsBuf>) -> Self {
        Frame { pds: Some(pds.into()), ..Frame::EMPTY }
    }

    /// A secured packet: what follows the security header is encrypted, and ends with the ICV.
    pub fn secured(tss: impl Into<TssBuf>, encrypted: &'a [u8], icv: [u8; 16]) -> Self {
        Frame { tss: Some(tss.into()), payload: encrypted, icv, trailer: TrailerKind::Icv, ..Frame::EMPTY }
    }

    /// A packet of which all that follows UDP, or the native encapsulation, is given as bytes.
    pub fn opaque(uet: &'a [u8]) -> Self {
        Frame { payload: uet, ..Frame::EMPTY }
    }

    const EMPTY: Self = Frame {
        tss: None,
        pds: None,
        ses: None,
        ext: None,
        payload: &[],
        encapsulation: Encapsulation::Bare,
        ip: Network::None,
        ipv4_options: &[],
        dscp: 0,
        ecn: 0,
        ttl: 64,
        eth: None,
        vlans: &[],
        trailer: TrailerKind::None,
        icv: [0; 16],
        pad_to: 0,
        checked: true,
    };

    /// Adds a SES header.
    pub fn ses(self, ses: impl Into<SesBuf>) -> Self {
        Frame { ses: Some(ses.into()), ..self }
    }

    /// Adds the extension of the request.
    pub fn ext(self, ext: impl Into<ExtBuf>) -> Self {
        Frame { ext: Some(ext.into()), ..self }
    }

    /// Sets the payload.
    pub fn payload(self, payload: &'a [u8]) -> Self {
        Frame { payload, ..self }
    }

    /// Puts the packet into UDP, to the registered port.
    pub fn udp(self, entropy: u16) -> Self {
        self.udp_to(entropy, UDP_PORT)
    }

    /// Puts the packet into UDP, to another port.
    pub fn udp_to(self, entropy: u16, port: u16) -> Self {
        Frame { encapsulation: Encapsulation::Udp { entropy, port }, ..self }
    }

    /// Puts the packet into IP without UDP, under the experimental protocol number.
    pub fn native(self, entropy: u16) -> Self {
        self.native_as(entropy, IP_PROTO)
    }

    /// Puts the packet into IP without UDP, under another protocol number.
    pub fn native_as(self, entropy: u16, proto: u8) -> Self {
        Frame { encapsulation: Encapsulation::Native { entropy, proto }, ..self }
    }

    /// Puts the packet into IPv4.
    pub fn ipv4(self, src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> Self {
        Frame { ip: Network::V4(src.into(), dst.into()), ..self }
    }

    /// Adds IPv4 options; their length must be a multiple of 4, at most 40.
    pub fn ipv4_options(self, options: &'a [u8]) -> Self {
        Frame { ipv4_options: options, ..self }
    }

    /// Puts the packet into IPv6.
    pub fn ipv6(self, src: impl Into<Ipv6Addr>, dst: impl Into<Ipv6Addr>) -> Self {
        Frame { ip: Network::V6(src.into(), dst.into()), ..self }
    }

    /// Sets the traffic class.
    pub fn dscp(self, dscp: u8) -> Self {
        Frame { dscp, ..self }
    }

    /// Sets the congestion notification: 1 or 2 when capable, 3 when marked.
    pub fn ecn(self, ecn: u8) -> Self {
        Frame { ecn, ..self }
    }

    /// Sets the time to live; 64 unless set.
    pub fn ttl(self, ttl: u8) -> Self {
        Frame { ttl, ..self }
    }

    /// Puts the packet into Ethernet.
    pub fn ethernet(self, src: [u8; 6], dst: [u8; 6]) -> Self {
        Frame { eth: Ethernet::zeroed().edit().dst(dst).src(src).done().ok(), ..self }
    }

    /// Adds 802.1Q tags with these identifiers, the outer one first; at most two.
    pub fn vlans(self, ids: &'a [u16]) -> Self {
        Frame { vlans: ids, ..self }
    }

    /// Ends the packet with a CRC, which covers all from the IP source address on.
    #[cfg(feature = "crc")]
    pub fn crc(self) -> Self {
        Frame { trailer: TrailerKind::Crc, ..self }
    }

    /// Pads the frame with zeros behind the packet, to at least this length.
    pub fn pad_to(self, length: usize) -> Self {
        Frame { pad_to: length, ..self }
    }

    /// Takes the headers as they are: no `next_hdr` is set, nothing is held against anything.
    pub fn as_given(self) -> Self {
        Frame { checked: false, ..self }
    }

    /// The length of the frame in bytes.
    #[allow(clippy::len_without_is_empty)] // no frame is empty
    pub fn len(&self) -> usize {
        let outer = match self.encapsulation {
            Encapsulation::Bare => 0,
            Encapsulation::Udp { .. } => Udp::LAYOUT.bytes,
            Encapsulation::Native { .. } => Entropy::LAYOUT.bytes,
        };
        let parts = [
            self.eth.map_or(0, |eth| eth.bytes().len() + self.vlans.len() * Vlan::LAYOUT.bytes),
            self.ip_header_length(),
            outer,
            self.tss.map_or(0, |tss| tss.view().bytes().len()),
            self.pds.map_or(0, |pds| pds.view().bytes().len()),
            self.ses.map_or(0, |ses| ses.view().bytes().len()),
            self.ext.map_or(0, |ext| ext.view().bytes().len()),
            self.payload.len(),
            self.trailer.len(),
        ];
        parts.iter().sum::<usize>().max(self.pad_to)
    }

    /// Writes the packet to the start of `buffer` and gives the length of the frame.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, WriteError> {
        self.check()?;
        let mut end = 0;
        if let Some(eth) = self.eth {
            end = self.emit_ethernet(eth, buffer)?;
        }
        let ip_start = end;
        let ip_length = self.ip_header_length();
        end = append(buffer, end, &[0; 60][..ip_length.min(60)], Layer::Ipv4)?;
        let udp_start = end;
        match self.encapsulation {
            Encapsulation::Bare => {}
            Encapsulation::Udp { .. } => end = append(buffer, end, &[0; 8], Layer::Udp)?,
            Encapsulation::Native { entropy, .. } => {
                let header = Entropy::zeroed().edit().entropy(entropy).done()?;
                end = append(buffer, end, header.bytes(), Layer::Entropy)?;
            }
        }
        end = self.emit_uet(buffer, end)?;
        end = match self.trailer {
            TrailerKind::None => end,
            // The place of the CRC; its value comes last, when the lengths that it covers are known.
            TrailerKind::Crc => append(buffer, end, &[0; 4], Layer::Trailer)?,
            TrailerKind::Icv => append(buffer, end, &self.icv, Layer::Trailer)?,
        };
        self.fill_udp(buffer, udp_start, end)?;
        self.fill_ip(buffer, ip_start, ip_length, end)?;
        #[cfg(feature = "crc")]
        if self.trailer == TrailerKind::Crc {
            self.fill_crc(buffer, ip_start, end)?;
        }
        while end < self.pad_to {
            end = append(buffer, end, &[0], Layer::Eth)?;
        }
        Ok(end)
    }

    /// What does not go together is an error, before anything is written.
    fn check(&self) -> Result<(), WriteError> {
        let mismatch = |field, with| Err(WriteError::Mismatch { field, with });
        if !matches!(self.ip, Network::V4(..)) && !self.ipv4_options.is_empty() {
            return mismatch("ip.ihl", "a packet that is not IPv4");
        }
        if self.ipv4_options.len() % 4 != 0 || self.ipv4_options.len() > 40 {
            return Err(WriteError::TooLong { field: "ip.ihl", length: self.ipv4_options.len() + 20 });
        }
        if matches!(self.ip, Network::None) {
            if self.eth.is_some() {
                return mismatch("eth.type", "a packet without IP");
            }
            if matches!(self.encapsulation, Encapsulation::Native { .. }) {
                return mismatch("pds.entropy", "a packet without IP");
            }
            if self.trailer == TrailerKind::Crc {
                return mismatch("crc", "a packet without IP: it covers the addresses");
            }
        } else if matches!(self.encapsulation, Encapsulation::Bare) {
            return mismatch("ip.proto", "neither UDP nor the native encapsulation");
        }
        if self.vlans.len() > 2 {
            return Err(WriteError::TooLong { field: "vlan.id", length: self.vlans.len() });
        }
        if !self.checked {
            return Ok(());
        }
        let Some(pds) = &self.pds else { return Ok(()) };
        let stated = pds.view().next_hdr();
        match &self.ses {
            Some(_) if matches!(pds, PdsBuf::Control(_)) => return mismatch("pds.ctl_type", "a SES header"),
            Some(ses) if stated != NextHdr::UET_HDR_NONE && stated != ses.view().next_hdr() => {
                return mismatch("pds.next_hdr", "the SES header");
            }
            None if stated != NextHdr::UET_HDR_NONE => {
                return mismatch("pds.next_hdr", "a packet without SES header");
            }
            _ => {}
        }
        let opcode = self.ses.as_ref().and_then(|ses| ses.view().opcode());
        let fits = match self.ext {
            Some(ExtBuf::Rendezvous(_)) => opcode.is_some_and(|opcode| opcode.is_rendezvous()),
            Some(ExtBuf::Atomic(ext)) => {
                opcode.is_some_and(|opcode| opcode.is_atomic()) && !ext.atomic_opcode().is_compare_and_swap()
            }
            Some(ExtBuf::CompareSwap(ext)) => {
                opcode.is_some_and(|opcode| opcode.is_atomic())
                    && ext.atomic().atomic_opcode().is_compare_and_swap()
            }
            None => !opcode.is_some_and(|opcode| opcode.is_atomic() || opcode.is_rendezvous()),
        };
        if !fits {
            return mismatch("ses.opcode", "the extension header, or the lack of it");
        }
        match self.ses.as_ref().and_then(|ses| ses.view().payload_length()) {
            Some(stated) if carries_data(&self.ses) && usize::from(stated) != self.payload.len() => {
                mismatch("ses.payload_length", "the payload")
            }
            _ => Ok(()),
        }
    }

    fn emit_ethernet(&self, eth: Ethernet, buffer: &mut [u8]) -> Result<usize, WriteError> {
        let inner = match self.ip {
            Network::V6(..) => ETHERTYPE_IPV6,
            _ => ETHERTYPE_IPV4,
        };
        let outermost = if self.vlans.is_empty() { inner } else { ETHERTYPE_VLAN };
        let eth: EthernetMut = eth.edit().ethertype(outermost);
        let mut end = append(buffer, 0, eth.done()?.bytes(), Layer::Eth)?;
        for (index, id) in self.vlans.iter().enumerate() {
            let next = if index + 1 < self.vlans.len() { ETHERTYPE_VLAN } else { inner };
            let tag = Vlan::zeroed().edit().id(*id).ethertype(next).done()?;
            end = append(buffer, end, tag.bytes(), Layer::Vlan)?;
        }
        Ok(end)
    }

    /// The UET headers and the payload.
    fn emit_uet(&self, buffer: &mut [u8], start: usize) -> Result<usize, WriteError> {
        let mut end = start;
        if let Some(tss) = &self.tss {
            end = append(buffer, end, tss.view().bytes(), Layer::Tss)?;
        }
        if let Some(pds) = &self.pds {
            let place = end;
            end = append(buffer, end, pds.view().bytes(), Layer::Pds)?;
            if let (true, Some(ses)) = (self.checked, &self.ses) {
                let header = buffer.get_mut(place..).unwrap_or(&mut []);
                if let Ok((prologue, _)) = Prologue::parse_mut(header) {
                    prologue.next_hdr(ses.view().next_hdr()).done()?;
                }
            }
        }
        if let Some(ses) = &self.ses {
            end = append(buffer, end, ses.view().bytes(), Layer::Ses)?;
        }
        if let Some(ext) = &self.ext {
            end = append(buffer, end, ext.view().bytes(), Layer::Ext)?;
        }
        append(buffer, end, self.payload, Layer::Payload)
    }

    fn ip_header_length(&self) -> usize {
        match self.ip {
            Network::None => 0,
            Network::V4(..) => Ipv4::LAYOUT.bytes + self.ipv4_options.len(),
            Network::V6(..) => Ipv6::LAYOUT.bytes,
        }
    }

    fn fill_udp(&self, buffer: &mut [u8], start: usize, end: usize) -> Result<(), WriteError> {
        if let Encapsulation::Udp { entropy, port } = self.encapsulation {
            let length = length16("udp.length", end - start)?;
            let header = Udp::zeroed().edit().src_port(entropy).dst_port(port).length(length).done()?;
            append(buffer, start, header.bytes(), Layer::Udp)?;
        }
        Ok(())
    }

    fn fill_ip(&self, buffer: &mut [u8], start: usize, length: usize, end: usize) -> Result<(), WriteError> {
        let proto = match self.encapsulation {
            Encapsulation::Native { proto, .. } => proto,
            _ => PROTO_UDP,
        };
        match self.ip {
            Network::None => Ok(()),
            Network::V4(src, dst) => {
                let header = Ipv4::zeroed()
                    .edit()
                    .version(4)
                    .ihl((length / 4) as u8)
                    .dscp(self.dscp)
                    .ecn(self.ecn)
                    .total_length(length16("ip.total_length", end - start)?)
                    .df(true)
                    .ttl(self.ttl)
                    .proto(proto)
                    .src(src)
                    .dst(dst)
                    .done()?;
                let header = header.edit().checksum(header.computed_checksum(self.ipv4_options)).done()?;
                let end = append(buffer, start, header.bytes(), Layer::Ipv4)?;
                append(buffer, end, self.ipv4_options, Layer::Ipv4).map(|_| ())
            }
            Network::V6(src, dst) => {
                let header = Ipv6::zeroed()
                    .edit()
                    .version(6)
                    .dscp(self.dscp)
                    .ecn(self.ecn)
                    .payload_length(length16("ip.payload_length", end - start - length)?)
                    .next_header(proto)
                    .hop_limit(self.ttl)
                    .src(src)
                    .dst(dst)
                    .done()?;
                append(buffer, start, header.bytes(), Layer::Ipv6).map(|_| ())
            }
        }
    }

    #[cfg(feature = "crc")]
    fn fill_crc(&self, buffer: &mut [u8], ip_start: usize, end: usize) -> Result<(), WriteError> {
        let Some(place) = end.checked_sub(TrailerKind::Crc.len()) else { return Ok(()) };
        let value =
            crate::crc::over_ip_packet(buffer.get(ip_start..place).unwrap_or(&[])).unwrap_or_default();
        append(buffer, place, &value.to_be_bytes(), Layer::Trailer).map(|_| ())
    }
}

/// Whether the length that the SES header states is that of the payload behind it: a read request asks for
/// bytes and carries none.
fn carries_data(ses: &Option<SesBuf>) -> bool {
    let opcode = ses.as_ref().and_then(|ses| ses.view().opcode());
    opcode != Some(crate::registry::Opcode::UET_READ)
}

fn length16(field: &'static str, length: usize) -> Result<u16, WriteError> {
    u16::try_from(length).map_err(|_| WriteError::TooLong { field, length })
}

/// Writes `bytes` at `offset`, and gives where they end.
pub(crate) fn append(
    buffer: &mut [u8],
    offset: usize,
    bytes: &[u8],
    layer: Layer,
) -> Result<usize, WriteError> {
    let left = buffer.get_mut(offset..).unwrap_or(&mut []);
    let present = left.len();
    match left.get_mut(..bytes.len()) {
        Some(place) => {
            place.copy_from_slice(bytes);
            Ok(offset + bytes.len())
        }
        None => Err(WriteError::Short { layer, offset, needed: bytes.len(), present }),
    }
}
