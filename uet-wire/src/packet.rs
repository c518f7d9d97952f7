//! A packet with the layers around UET.

use crate::error::Problem;
use crate::layout::{Layer, Layout};
use crate::outer::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ, ETHERTYPE_VLAN, Entropy, Ethernet, IP_PROTO, Ip, Ipv4,
    Ipv6, Ipv6Extension, Ipv6Fragment, PROTO_UDP, UDP_PORT, Udp, Vlan,
};
use crate::trailer::{Crc, Icv, TrailerKind};
use crate::{ParseError, Uet};

/// Where the bytes given to the parser start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// With an Ethernet header.
    #[default]
    Eth,
    /// With an IP header of either version.
    Ip,
    /// With a UDP header.
    Udp,
    /// With UET.
    Uet,
}

/// What a deployment sets, and no packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The UDP destination port of UET.
    pub udp_port: u16,
    /// The IP protocol number of the native encapsulation.
    pub ip_proto: u8,
    /// The trailer that ends every packet.
    pub trailer: TrailerKind,
    /// The traffic class of packets trimmed by a switch.
    pub trimmed_dscp: Option<u8>,
    /// The traffic class of packets trimmed at the last hop.
    pub trimmed_lasthop_dscp: Option<u8>,
}

impl Options {
    /// The registered port, the experimental protocol number, no trailer, trimming known by length alone.
    pub const DEFAULT: Options = Options {
        udp_port: UDP_PORT,
        ip_proto: IP_PROTO,
        trailer: TrailerKind::None,
        trimmed_dscp: None,
        trimmed_lasthop_dscp: None,
    };
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a packet turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Content {
    /// UET, or the start of it.
    Uet,
    /// A fragment of an IP packet, which UET never is: not read further.
    Fragment,
    /// Another protocol, or cut before that could be known.
    #[default]
    Other,
}

/// A packet that a switch cut on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trimmed {
    /// The layer that the cut goes through.
    pub layer: Layer,
    /// How many bytes are gone, where the UDP length tells.
    pub missing: Option<usize>,
    /// Whether its traffic class says that it was trimmed at the last hop.
    pub last_hop: bool,
}

/// A packet that the capture cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sliced {
    /// How many bytes were kept.
    pub captured: usize,
    /// How many bytes there were on the wire.
    pub wire: usize,
}

/// A packet with the layers around UET, as views over the caller's bytes.
///
/// ```
/// use uet_wire::pds::Request;
/// use uet_wire::registry::Opcode;
/// use uet_wire::ses::Std;
/// use uet_wire::{Frame, Options, Packet, Psn, Start};
///
/// let request = Request::rud().psn(Psn(7)).done()?;
/// let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5).done()?;
/// let mut buffer = [0; 256];
/// let length = Frame::new(request)
///     .ses(write)
///     .payload(b"hello")
///     .udp(0xbeef)
///     .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
///     .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
///     .emit(&mut buffer)?;
///
/// let packet = Packet::parse(Start::Eth, &buffer[..length], &Options::default())?;
/// assert_eq!(packet.ip.unwrap().dst().to_string(), "10.0.1.12");
/// assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
/// assert_eq!(packet.uet.payload, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Packet<'a> {
    /// The Ethernet header.
    pub eth: Option<Ethernet<&'a [u8; 14]>>,
    /// The tags, the outer one first.
    pub vlans: [Option<Vlan<&'a [u8; 4]>>; 2],
    /// The IP header.
    pub ip: Option<Ip<'a>>,
    /// All bytes of the IP packet, header and trailer included.
    pub ip_packet: &'a [u8],
    /// The UDP header.
    pub udp: Option<Udp<&'a [u8; 8]>>,
    /// The header of the native encapsulation.
    pub entropy: Option<Entropy<&'a [u8; 4]>>,
    /// What the packet is.
    pub content: Content,
    /// The UET headers and the payload. What is not UET is all payload.
    pub uet: Uet<'a>,
    /// The trailer, when one is configured and the packet is whole.
    pub trailer: &'a [u8],
    /// What follows the packet in the frame: IP says where the packet ends.
    pub padding: &'a [u8],
    /// The bytes of the header at which reading stopped.
    pub rest: &'a [u8],
    /// Where reading stopped, when it did. In a trimmed or sliced packet this is no error.
    pub cut: Option<ParseError>,
    /// Set when a switch trimmed the packet.
    pub trimmed: Option<Trimmed>,
    /// Set when the capture cut the packet.
    pub sliced: Option<Sliced>,
}

impl<'a> Packet<'a> {
    /// Reads a packet; one that ends early is an error unless a switch trimmed it.
    #[inline(always)]
    pub fn parse(start: Start, bytes: &'a [u8], options: &Options) -> Result<Self, ParseError> {
        let packet = Self::parse_lax(start, bytes, bytes.len(), options);
        match packet.error() {
            None => Ok(packet),
            Some(error) => Err(error),
        }
    }

    /// Reads as much of a packet as there is. `wire` is its length on the wire, where the capture kept less.
    #[inline(always)]
    pub fn parse_lax(start: Start, bytes: &'a [u8], wire: usize, options: &Options) -> Self {
        let mut packet = Packet::default();
        if wire > bytes.len() {
            packet.sliced = Some(Sliced { captured: bytes.len(), wire });
        }
        let missing = wire.saturating_sub(bytes.len());
        let mut walk = Walk { packet, rest: bytes, missing, lost: 0 };
        let cut = walk.from(start, options).err();
        let Walk { mut packet, rest, .. } = walk;
        if let Some(error) = cut {
            // Errors count from the header that they are about; all that was read lies before it.
            packet.cut = Some(error.moved(bytes.len() - packet.padding.len() - rest.len()));
            packet.rest = rest;
        }
        packet
    }

    /// What is wrong with the packet, unless a switch or the capture cut it.
    #[inline]
    pub fn error(&self) -> Option<ParseError> {
        let error = self.cut?;
        match error.problem {
            Problem::Short { .. } | Problem::Promises { .. }
                if self.trimmed.is_some() || self.sliced.is_some() =>
            {
                None
            }
            _ => Some(error),
        }
    }

    /// The entropy value, from whichever header carries it.
    pub fn entropy_value(&self) -> Option<u16> {
        match (&self.udp, &self.entropy) {
            (Some(udp), _) => Some(udp.src_port()),
            (None, Some(entropy)) => Some(entropy.entropy()),
            (None, None) => None,
        }
    }

    /// The headers of the packet with their tables, in wire order.
    pub fn headers(&self) -> impl Iterator<Item = (&'static Layout, &'a [u8])> + Clone + use<'a> {
        let [outer, inner] = self.vlans;
        [
            self.eth.map(|header| (Ethernet::LAYOUT, &header.0[..])),
            outer.map(|header| (Vlan::LAYOUT, &header.0[..])),
            inner.map(|header| (Vlan::LAYOUT, &header.0[..])),
            self.ip.map(|header| (header.layout(), header.bytes())),
            self.udp.map(|header| (Udp::LAYOUT, &header.0[..])),
            self.entropy.map(|header| (Entropy::LAYOUT, &header.0[..])),
            self.uet.tss.map(|header| (header.layout(), header.bytes())),
            self.uet.pds.map(|header| (header.layout(), header.bytes())),
            self.uet.ses.map(|header| (header.layout(), header.bytes())),
            self.uet.ext.map(|header| (header.layout(), header.bytes())),
        ]
        .into_iter()
        .flatten()
    }
}

/// The way through a packet, from the outside in.
struct Walk<'a> {
    packet: Packet<'a>,
    /// What has not been read. When reading stops it starts with the header that is cut.
    rest: &'a [u8],
    /// How many bytes the capture left out at the end.
    missing: usize,
    /// How many of those belong to the packet, and not to the padding behind it.
    lost: usize,
}

type Step = Result<(), ParseError>;

impl<'a> Walk<'a> {
    #[inline(always)]
    fn from(&mut self, start: Start, options: &Options) -> Step {
        match start {
            Start::Eth => self.ethernet(options),
            Start::Ip => self.ip(None, options),
            Start::Udp => {
                self.lost = self.missing;
                self.udp(options)
            }
            Start::Uet => {
                self.lost = self.missing;
                self.uet(options)
            }
        }
    }

    #[inline(always)]
    fn ethernet(&mut self, options: &Options) -> Step {
        let (eth, rest) = Ethernet::parse(self.rest)?;
        self.packet.eth = Some(eth);
        self.rest = rest;
        let mut ethertype = eth.ethertype();
        for slot in 0..2 {
            if !matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ) {
                break;
            }
            let (vlan, rest) = Vlan::parse(self.rest)?;
            if let Some(place) = self.packet.vlans.get_mut(slot) {
                *place = Some(vlan);
            }
            self.rest = rest;
            ethertype = vlan.ethertype();
        }
        match ethertype {
            ETHERTYPE_IPV4 => self.ip(Some(4), options),
            ETHERTYPE_IPV6 => self.ip(Some(6), options),
            _ => self.other(Content::Other),
        }
    }

    /// An IP header of the version that the EtherType announced, or of either.
    #[inline(always)]
    fn ip(&mut self, announced: Option<u8>, options: &Options) -> Step {
        let version = self.rest.first().map(|byte| byte >> 4);
        match (announced, version) {
            (Some(4) | None, Some(4)) => self.ipv4(options),
            (Some(6) | None, Some(6)) => self.ipv6(options),
            (_, None) => {
                let header = if announced == Some(6) { Ipv6::LAYOUT } else { Ipv4::LAYOUT };
                Err(ParseError::short(header, 0))
            }
            (announced, Some(found)) => {
                let (header, needed) =
                    if announced == Some(6) { (Ipv6::LAYOUT, 6) } else { (Ipv4::LAYOUT, 4) };
                Err(says(header, "ip.version", found.into(), needed))
            }
        }
    }

    #[inline(always)]
    fn ipv4(&mut self, options: &Options) -> Step {
        let (header, _) = Ipv4::parse(self.rest)?;
        let header_length = usize::from(header.ihl()) * 4;
        let total = usize::from(header.total_length());
        if header_length < Ipv4::LAYOUT.bytes {
            return Err(says(Ipv4::LAYOUT, "ip.ihl", header.ihl().into(), Ipv4::LAYOUT.bytes / 4));
        }
        if total < header_length {
            return Err(says(Ipv4::LAYOUT, "ip.total_length", total, header_length));
        }
        let stated = self.bound(Ipv4::LAYOUT, "ip.total_length", total)?;
        let (Some(ip_options), Some(rest)) =
            (stated.get(Ipv4::LAYOUT.bytes..header_length), stated.get(header_length..))
        else {
            return Err(promises(Ipv4::LAYOUT, "ip.ihl", header_length, stated.len()));
        };
        self.packet.ip = Some(Ip::V4 { header, options: ip_options });
        self.rest = rest;
        if header.mf() || header.frag_offset() != 0 {
            return self.other(Content::Fragment);
        }
        self.transport(header.proto(), options)
    }

    #[inline]
    fn ipv6(&mut self, options: &Options) -> Step {
        let (header, _) = Ipv6::parse(self.rest)?;
        let total = Ipv6::LAYOUT.bytes + usize::from(header.payload_length());
        let stated = self.bound(Ipv6::LAYOUT, "ip.payload_length", total)?;
        let Some(mut rest) = stated.get(Ipv6::LAYOUT.bytes..) else {
            return Err(ParseError::short(Ipv6::LAYOUT, stated.len()));
        };
        let after_header = rest;
        let mut next = header.next_header();
        let mut fragment = false;
        loop {
            let length = match next {
                // Hop by hop, routing, destination options, mobility, HIP, shim6.
                0 | 43 | 60 | 135 | 139 | 140 => {
                    Self::extension(rest).map(|(next, units)| (next, units * 8 + 8))
                }
                // Authentication, whose length counts words of 4 bytes.
                51 => Self::extension(rest).map(|(next, units)| (next, units * 4 + 8)),
                44 => Ipv6Fragment::parse(rest).map(|(header, _)| {
                    fragment = header.mf() || header.frag_offset() != 0;
                    (header.next_header(), Ipv6Fragment::LAYOUT.bytes)
                }),
                _ => break,
            };
            let skipped = length.and_then(|(proto, length)| match rest.get(length..) {
                Some(after) => Ok((proto, after)),
                None => Err(promises(Ipv6Extension::LAYOUT, "ip.ext.length", length, rest.len())),
            });
            match skipped {
                Ok((proto, after)) => (next, rest) = (proto, after),
                Err(error) => {
                    self.packet.ip = Some(Ip::V6 { header, extensions: before(after_header, rest) });
                    self.rest = rest;
                    return Err(error);
                }
            }
            if fragment {
                break;
            }
        }
        self.packet.ip = Some(Ip::V6 { header, extensions: before(after_header, rest) });
        self.rest = rest;
        if fragment {
            return self.other(Content::Fragment);
        }
        self.transport(next, options)
    }

    fn extension(bytes: &[u8]) -> Result<(u8, usize), ParseError> {
        let (header, _) = Ipv6Extension::parse(bytes)?;
        Ok((header.next_header(), usize::from(header.length())))
    }

    /// The bytes of the IP packet, of which its header says that there are `total`; the rest of the frame is
    /// padding.
    #[inline]
    fn bound(
        &mut self,
        header: &'static Layout,
        field: &'static str,
        total: usize,
    ) -> Result<&'a [u8], ParseError> {
        match self.rest.split_at_checked(total) {
            Some((packet, padding)) => {
                self.packet.padding = padding;
                self.packet.ip_packet = packet;
                self.rest = packet;
                Ok(packet)
            }
            None if total <= self.rest.len() + self.missing => {
                self.lost = total - self.rest.len();
                self.packet.ip_packet = self.rest;
                Ok(self.rest)
            }
            None => Err(promises(header, field, total, self.rest.len())),
        }
    }

    #[inline(always)]
    fn transport(&mut self, proto: u8, options: &Options) -> Step {
        if proto == PROTO_UDP {
            self.udp(options)
        } else if proto == options.ip_proto {
            let (entropy, rest) = Entropy::parse(self.rest)?;
            self.packet.entropy = Some(entropy);
            self.rest = rest;
            self.uet(options)
        } else {
            self.other(Content::Other)
        }
    }

    #[inline(always)]
    fn udp(&mut self, options: &Options) -> Step {
        let whole = self.rest;
        let (udp, rest) = Udp::parse(whole)?;
        let length = usize::from(udp.length());
        if udp.dst_port() != options.udp_port {
            self.packet.udp = Some(udp);
            self.rest = rest;
            return self.other(Content::Other);
        }
        if length < Udp::LAYOUT.bytes {
            return Err(says(Udp::LAYOUT, "udp.length", length, Udp::LAYOUT.bytes));
        }
        self.packet.udp = Some(udp);
        self.rest = rest;
        let present = whole.len() + self.lost;
        if length > present {
            // A switch cuts the IP length and leaves the UDP length.
            self.packet.trimmed =
                Some(Trimmed { layer: Layer::Payload, missing: Some(length - present), last_hop: false });
        } else if length < whole.len() {
            // Bytes between the end of UDP and the end of IP belong to nobody.
            if let Some((datagram, surplus)) = rest.split_at_checked(length - Udp::LAYOUT.bytes) {
                self.rest = datagram;
                if self.packet.padding.is_empty() {
                    self.packet.padding = surplus;
                }
            }
        }
        self.uet(options)
    }

    #[inline(always)]
    fn uet(&mut self, options: &Options) -> Step {
        self.packet.content = Content::Uet;
        let dscp = self.packet.ip.map(|ip| ip.dscp());
        let last_hop = dscp.is_some() && dscp == options.trimmed_lasthop_dscp;
        if last_hop || dscp.is_some() && dscp == options.trimmed_dscp {
            let missing = self.packet.trimmed.and_then(|trimmed| trimmed.missing);
            self.packet.trimmed = Some(Trimmed { layer: Layer::Payload, missing, last_hop });
        }
        let whole = self.packet.trimmed.is_none() && self.lost == 0;
        if whole && !options.trailer.is_empty() {
            self.split_trailer(options.trailer)?;
        }
        let bytes = self.rest;
        let (uet, cut) = Uet::parse_lax(bytes);
        self.packet.uet = uet;
        let Some(error) = cut else {
            self.rest = &[];
            return Ok(());
        };
        if let Some(trimmed) = &mut self.packet.trimmed {
            trimmed.layer = error.layer();
        }
        self.rest = bytes.get(error.start..).unwrap_or(&[]);
        Err(ParseError { start: 0, ..error })
    }

    fn split_trailer(&mut self, kind: TrailerKind) -> Step {
        let length = self.rest.len().checked_sub(kind.len());
        match length.and_then(|length| self.rest.split_at_checked(length)) {
            Some((packet, trailer)) => {
                self.rest = packet;
                self.packet.trailer = trailer;
                Ok(())
            }
            None => {
                let header = if kind == TrailerKind::Icv { Icv::LAYOUT } else { Crc::LAYOUT };
                Err(ParseError::short(header, self.rest.len()))
            }
        }
    }

    #[inline]
    fn other(&mut self, content: Content) -> Step {
        self.packet.content = content;
        self.packet.uet.payload = self.rest;
        self.rest = &[];
        Ok(())
    }
}

/// What lies in `all` before its end `rest`.
fn before<'a>(all: &'a [u8], rest: &[u8]) -> &'a [u8] {
    all.len().checked_sub(rest.len()).and_then(|length| all.get(..length)).unwrap_or(all)
}

#[cold]
const fn says(header: &'static Layout, field: &'static str, value: usize, needed: usize) -> ParseError {
    ParseError { header, start: 0, problem: Problem::Says { field, value, needed } }
}

#[cold]
const fn promises(header: &'static Layout, field: &'static str, value: usize, present: usize) -> ParseError {
    ParseError { header, start: 0, problem: Problem::Promises { field, value, present } }
}
