//! Builds whole packets.

mod check;

use crate::WriteError;
use crate::layout::Layer;
use crate::outer::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, Entropy, Ethernet, IP_PROTO, Ipv4, Ipv6, PROTO_UDP,
    UDP_PORT, Udp, Vlan,
};
use crate::pds::{PdsBuf, Prologue};
use crate::ses::{ExtBuf, SesBuf};
use crate::trailer::TrailerKind;
use crate::tss::TssBuf;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Builds a packet in the caller's buffer, from the inside out.
///
/// The builder computes `next_hdr`, lengths, the IPv4 checksum and the CRC. It rejects headers that contradict each
/// other. To build invalid packets, use [`as_given`](FrameBuilder::as_given) or change the bytes afterwards.
/// [`PacketMut`](crate::PacketMut) makes the edits of switches and retransmissions.
///
/// Without `ethernet` the packet starts with IP, without IP it starts with UDP, and without UDP it starts with UET.
///
/// ```
/// use uet_wire::pds::Ack;
/// use uet_wire::registry::{ResponseOpcode, ReturnCode};
/// use uet_wire::ses::Response;
/// use uet_wire::{FrameBuilder, PdcId, Psn};
///
/// let ack = Ack::build().cack_psn(Psn(333)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)).done()?;
/// let ok = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).message_id(1).done()?;
/// let mut buffer = [0; 128];
/// let frame = FrameBuilder::new(ack).ses(ok).udp(7).ipv4([10, 0, 1, 12], [10, 0, 0, 1]).dscp(46);
/// assert_eq!(frame.len(), 20 + 8 + 12 + 12);
/// assert_eq!(frame.emit(&mut buffer)?, frame.len());
/// assert_eq!(buffer[28..30], [0x3a, 0x00], "an ACK, followed by a RESPONSE");
/// # Ok::<(), uet_wire::WriteError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "ends with emit()"]
pub struct FrameBuilder<'a> {
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
    /// Addresses of different versions.
    Mixed,
}

impl<'a> FrameBuilder<'a> {
    /// The length of the shortest Ethernet frame, without the checksum that hardware adds.
    pub const SHORTEST: usize = 60;

    /// Starts a packet with this PDS header.
    pub fn new(pds: impl Into<PdsBuf>) -> Self {
        FrameBuilder { pds: Some(pds.into()), ..FrameBuilder::EMPTY }
    }

    /// Starts a secured packet from a security header, the encrypted bytes and the ICV.
    pub fn secured(tss: impl Into<TssBuf>, encrypted: &'a [u8], icv: [u8; 16]) -> Self {
        FrameBuilder {
            tss: Some(tss.into()),
            payload: encrypted,
            icv,
            trailer: TrailerKind::Icv,
            ..FrameBuilder::EMPTY
        }
    }

    /// Starts a packet from the bytes that follow UDP or the entropy header.
    pub fn opaque(uet: &'a [u8]) -> Self {
        FrameBuilder { payload: uet, ..FrameBuilder::EMPTY }
    }

    const EMPTY: Self = FrameBuilder {
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
        FrameBuilder { ses: Some(ses.into()), ..self }
    }

    /// Adds the extension of the request.
    pub fn ext(self, ext: impl Into<ExtBuf>) -> Self {
        FrameBuilder { ext: Some(ext.into()), ..self }
    }

    /// Sets the payload.
    pub fn payload(self, payload: &'a [u8]) -> Self {
        FrameBuilder { payload, ..self }
    }

    /// Adds UDP with the registered destination port. The source port is `entropy`.
    pub fn udp(self, entropy: u16) -> Self {
        self.udp_to(entropy, UDP_PORT)
    }

    /// Adds UDP with another destination port.
    pub fn udp_to(self, entropy: u16, port: u16) -> Self {
        FrameBuilder { encapsulation: Encapsulation::Udp { entropy, port }, ..self }
    }

    /// Adds the native encapsulation: IP without UDP, with the experimental protocol number.
    pub fn native(self, entropy: u16) -> Self {
        self.native_as(entropy, IP_PROTO)
    }

    /// Adds the native encapsulation with another protocol number.
    pub fn native_as(self, entropy: u16, proto: u8) -> Self {
        FrameBuilder { encapsulation: Encapsulation::Native { entropy, proto }, ..self }
    }

    /// Adds IPv4 or IPv6. [`emit`](FrameBuilder::emit) fails if the addresses are of different versions.
    pub fn ip(self, src: impl Into<IpAddr>, dst: impl Into<IpAddr>) -> Self {
        match (src.into(), dst.into()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => self.ipv4(src, dst),
            (IpAddr::V6(src), IpAddr::V6(dst)) => self.ipv6(src, dst),
            _ => FrameBuilder { ip: Network::Mixed, ..self },
        }
    }

    /// Adds IPv4.
    pub fn ipv4(self, src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> Self {
        FrameBuilder { ip: Network::V4(src.into(), dst.into()), ..self }
    }

    /// Adds IPv4 options unchanged. Their length must be a multiple of 4 and at most 40 bytes.
    pub fn ipv4_options(self, options: &'a [u8]) -> Self {
        FrameBuilder { ipv4_options: options, ..self }
    }

    /// Adds IPv6.
    pub fn ipv6(self, src: impl Into<Ipv6Addr>, dst: impl Into<Ipv6Addr>) -> Self {
        FrameBuilder { ip: Network::V6(src.into(), dst.into()), ..self }
    }

    /// Sets the traffic class (DSCP), 0 to 63.
    pub fn dscp(self, dscp: u8) -> Self {
        FrameBuilder { dscp, ..self }
    }

    /// Sets the ECN field: 1 or 2 for ECN-capable, 3 for marked. The default is 0.
    pub fn ecn(self, ecn: u8) -> Self {
        FrameBuilder { ecn, ..self }
    }

    /// Sets the time to live. The default is 64.
    pub fn ttl(self, ttl: u8) -> Self {
        FrameBuilder { ttl, ..self }
    }

    /// Adds Ethernet.
    pub fn ethernet(self, src: [u8; 6], dst: [u8; 6]) -> Self {
        FrameBuilder { eth: Ethernet::zeroed().edit().dst(dst).src(src).done().ok(), ..self }
    }

    /// Adds 802.1Q tags with these identifiers, the outer one first. At most two.
    pub fn vlans(self, ids: &'a [u16]) -> Self {
        FrameBuilder { vlans: ids, ..self }
    }

    /// Appends a CRC over the bytes from the IP source address on. Needs the feature `crc`, which is on by default.
    #[cfg(feature = "crc")]
    pub fn crc(self) -> Self {
        self.trailer(TrailerKind::Crc)
    }

    /// Sets the trailer, such as the one that the [`Options`](crate::Options) of a deployment name. An ICV needs a
    /// [`secured`](FrameBuilder::secured) packet. Needs the feature `crc`, which is on by default.
    #[cfg(feature = "crc")]
    pub fn trailer(self, trailer: TrailerKind) -> Self {
        FrameBuilder { trailer, ..self }
    }

    /// Pads the frame with zeros to at least this length in bytes. Ethernet requires 60.
    pub fn pad_to(self, length: usize) -> Self {
        FrameBuilder { pad_to: length, ..self }
    }

    /// Skips the consistency checks and does not set `next_hdr`. Allows any number of tags, Ethernet without IP, and
    /// UET right after IP (with the experimental protocol number).
    pub fn as_given(self) -> Self {
        FrameBuilder { checked: false, ..self }
    }

    /// Returns the length of the frame in bytes. [`emit`](FrameBuilder::emit) needs a buffer of this length.
    #[allow(clippy::len_without_is_empty)] // a frame is never empty
    pub fn len(&self) -> usize {
        let eth = self.eth.map_or(0, |_| Ethernet::LAYOUT.bytes);
        let tags = self.vlans.len().saturating_mul(Vlan::LAYOUT.bytes);
        let packet = self.ip_header_len().saturating_add(self.ip_payload_len());
        eth.saturating_add(tags).saturating_add(packet).max(self.pad_to)
    }

    fn ip_header_len(&self) -> usize {
        match self.ip {
            Network::None | Network::Mixed => 0,
            Network::V4(..) => Ipv4::LAYOUT.bytes.saturating_add(self.ipv4_options.len()),
            Network::V6(..) => Ipv6::LAYOUT.bytes,
        }
    }

    /// Returns the length from UDP or the entropy header to the end of the trailer.
    fn ip_payload_len(&self) -> usize {
        let encapsulation = match self.encapsulation {
            Encapsulation::Bare => 0,
            Encapsulation::Udp { .. } => Udp::LAYOUT.bytes,
            Encapsulation::Native { .. } => Entropy::LAYOUT.bytes,
        };
        let headers = [
            self.tss.as_ref().map_or(0, |header| header.view().bytes().len()),
            self.pds.as_ref().map_or(0, |header| header.view().bytes().len()),
            self.ses.as_ref().map_or(0, |header| header.view().bytes().len()),
            self.ext.as_ref().map_or(0, |header| header.view().bytes().len()),
            self.trailer.len(),
        ];
        headers
            .iter()
            .fold(encapsulation, |sum, part| sum.saturating_add(*part))
            .saturating_add(self.payload.len())
    }

    /// Writes the packet to the start of `buffer` and returns the length of the frame.
    ///
    /// # Errors
    ///
    /// Fails if headers contradict each other, a value is too wide for its field, the packet is too long, or `buffer`
    /// is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, WriteError> {
        self.check()?;
        let ip = self.emit_ethernet(buffer)?;
        let transport = self.emit_ip(buffer, ip)?;
        let uet = self.emit_encapsulation(buffer, transport)?;
        let trailer = self.emit_uet(buffer, uet)?;
        let end = self.emit_trailer(buffer, ip, trailer)?;
        self.emit_padding(buffer, end)
    }

    fn emit_ethernet(&self, buffer: &mut [u8]) -> Result<usize, WriteError> {
        let Some(eth) = self.eth else { return Ok(0) };
        let inner = match self.ip {
            Network::V6(..) => ETHERTYPE_IPV6,
            _ => ETHERTYPE_IPV4,
        };
        let outermost = if self.vlans.is_empty() { inner } else { ETHERTYPE_VLAN };
        let eth = eth.edit().ethertype(outermost).done()?;
        let mut end = append(buffer, 0, eth.bytes(), Layer::Eth)?;
        let mut tags = self.vlans.iter().peekable();
        while let Some(id) = tags.next() {
            let next = if tags.peek().is_some() { ETHERTYPE_VLAN } else { inner };
            let tag = Vlan::zeroed().edit().id(*id).ethertype(next).done()?;
            end = append(buffer, end, tag.bytes(), Layer::Vlan)?;
        }
        Ok(end)
    }

    fn emit_ip(&self, buffer: &mut [u8], start: usize) -> Result<usize, WriteError> {
        let proto = match self.encapsulation {
            Encapsulation::Bare => IP_PROTO,
            Encapsulation::Udp { .. } => PROTO_UDP,
            Encapsulation::Native { proto, .. } => proto,
        };
        let (header_length, length) = (self.ip_header_len(), self.ip_payload_len());
        match self.ip {
            Network::None | Network::Mixed => Ok(start),
            Network::V4(src, dst) => {
                let header = Ipv4::zeroed()
                    .edit()
                    .version(4)
                    .ihl((header_length / 4) as u8)
                    .dscp(self.dscp)
                    .ecn(self.ecn)
                    .total_length(length16("ip.total_length", header_length.saturating_add(length))?)
                    .df(true)
                    .ttl(self.ttl)
                    .proto(proto)
                    .src(src)
                    .dst(dst)
                    .done()?;
                let header = header.edit().checksum(header.computed_checksum(self.ipv4_options)).done()?;
                let end = append(buffer, start, header.bytes(), Layer::Ipv4)?;
                append(buffer, end, self.ipv4_options, Layer::Ipv4)
            }
            Network::V6(src, dst) => {
                let header = Ipv6::zeroed()
                    .edit()
                    .version(6)
                    .dscp(self.dscp)
                    .ecn(self.ecn)
                    .payload_length(length16("ip.payload_length", length)?)
                    .next_header(proto)
                    .hop_limit(self.ttl)
                    .src(src)
                    .dst(dst)
                    .done()?;
                append(buffer, start, header.bytes(), Layer::Ipv6)
            }
        }
    }

    fn emit_encapsulation(&self, buffer: &mut [u8], start: usize) -> Result<usize, WriteError> {
        match self.encapsulation {
            Encapsulation::Bare => Ok(start),
            Encapsulation::Udp { entropy, port } => {
                let length = length16("udp.length", self.ip_payload_len())?;
                let header = Udp::zeroed().edit().src_port(entropy).dst_port(port).length(length).done()?;
                append(buffer, start, header.bytes(), Layer::Udp)
            }
            Encapsulation::Native { entropy, .. } => {
                let header = Entropy::zeroed().edit().entropy(entropy).done()?;
                append(buffer, start, header.bytes(), Layer::Entropy)
            }
        }
    }

    /// Returns the UET headers and the payload.
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

    fn emit_trailer(&self, buffer: &mut [u8], ip: usize, start: usize) -> Result<usize, WriteError> {
        match self.trailer {
            TrailerKind::None => Ok(start),
            #[cfg(feature = "crc")]
            TrailerKind::Crc => crate::crc::append(buffer, ip, start),
            // Without the feature, no caller can request a CRC.
            #[cfg(not(feature = "crc"))]
            TrailerKind::Crc => append(buffer, start.max(ip), &[0; 4], Layer::Trailer),
            TrailerKind::Icv => append(buffer, start, &self.icv, Layer::Trailer),
        }
    }

    fn emit_padding(&self, buffer: &mut [u8], end: usize) -> Result<usize, WriteError> {
        let Some(needed) = self.pad_to.checked_sub(end) else { return Ok(end) };
        let present = buffer.len().saturating_sub(end);
        match buffer.get_mut(end..self.pad_to) {
            Some(padding) => {
                padding.fill(0);
                Ok(self.pad_to)
            }
            None => Err(WriteError::short(Layer::Eth, end, needed, present)),
        }
    }
}

fn length16(field: &'static str, length: usize) -> Result<u16, WriteError> {
    u16::try_from(length).map_err(|_| WriteError::too_long(field, length))
}

/// Writes `bytes` at `offset` and returns the end offset.
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
            Ok(offset.saturating_add(bytes.len()))
        }
        None => Err(WriteError::short(layer, offset, bytes.len(), present)),
    }
}
