//! A packet with the layers around UET.

mod walk;

use crate::layout::{Layer, Layout};
use crate::outer::{Entropy, Ethernet, IP_PROTO, Ip, MAX_VLANS, UDP_PORT, Udp, Vlan, is_tag};
use crate::trailer::TrailerKind;
use crate::{ParseError, Spec, Uet, Version};

/// The first layer of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Start {
    /// An Ethernet header.
    #[default]
    Eth,
    /// The layer after this EtherType, as in captures on a system's own interfaces.
    EtherType(u16),
    /// An IP header of either version.
    Ip,
    /// A UDP header.
    Udp,
    /// UET.
    Uet,
    /// Another protocol, which the parser skips.
    Other,
}

/// Settings of a deployment, which packets do not carry.
///
/// ```
/// use uet_wire::{Options, TrailerKind};
///
/// const OPTIONS: Options = Options::DEFAULT.trailer(TrailerKind::Crc).trimmed_dscp(Some(5));
/// assert_eq!(OPTIONS.udp_port, 4793);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// The UDP destination port of UET.
    pub udp_port: u16,
    /// The IP protocol number of the native encapsulation.
    pub ip_proto: u8,
    /// The trailer at the end of every packet. The IP length and the UDP length include it.
    pub trailer: TrailerKind,
    /// The traffic class of packets trimmed by a switch.
    pub trimmed_dscp: Option<u8>,
    /// The traffic class of packets trimmed at the last hop.
    pub trimmed_lasthop_dscp: Option<u8>,
    /// True if secured packets have been decrypted in place.
    pub opened: bool,
    /// The version of the specification for display and validation. Parsing does not depend on it.
    pub spec: &'static Spec,
}

impl Options {
    /// The default: registered port, experimental protocol number, no trailer. Only lengths show trimming.
    pub const DEFAULT: Options = Options {
        udp_port: UDP_PORT,
        ip_proto: IP_PROTO,
        trailer: TrailerKind::None,
        trimmed_dscp: None,
        trimmed_lasthop_dscp: None,
        opened: false,
        spec: Version::V1_0_3.spec(),
    };

    /// Sets the UDP destination port of UET.
    pub const fn udp_port(self, udp_port: u16) -> Self {
        Options { udp_port, ..self }
    }

    /// Sets the IP protocol number of the native encapsulation.
    pub const fn ip_proto(self, ip_proto: u8) -> Self {
        Options { ip_proto, ..self }
    }

    /// Sets the trailer that ends every packet.
    pub const fn trailer(self, trailer: TrailerKind) -> Self {
        Options { trailer, ..self }
    }

    /// Sets the traffic class of packets trimmed by a switch.
    pub const fn trimmed_dscp(self, trimmed_dscp: Option<u8>) -> Self {
        Options { trimmed_dscp, ..self }
    }

    /// Sets the traffic class of packets trimmed at the last hop.
    pub const fn trimmed_lasthop_dscp(self, trimmed_lasthop_dscp: Option<u8>) -> Self {
        Options { trimmed_lasthop_dscp, ..self }
    }

    /// States that secured packets have been decrypted in place, so that the parser reads the headers within.
    pub const fn opened(self, opened: bool) -> Self {
        Options { opened, ..self }
    }

    /// Sets the version of the specification.
    pub const fn spec(self, spec: &'static Spec) -> Self {
        Options { spec, ..self }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Content {
    /// UET, complete or truncated.
    Uet,
    /// A fragment of an IP packet. UET packets are never fragmented.
    Fragment,
    /// An IPv6 packet with its length in an option. UET packets never need one.
    Jumbogram,
    /// Another protocol, or a packet that is cut off before UET.
    #[default]
    Other,
}

/// The effects of trimming by a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trimmed {
    /// The layer of the first missing byte, whether the switch or the capture removed it.
    pub layer: Layer,
    /// The number of bytes that the switch removed, from the UDP length or from an IP length that the switch left as it
    /// was. `None` if only the traffic class shows the trimming.
    pub missing: Option<usize>,
    /// True if the traffic class states that the last hop trimmed the packet.
    pub last_hop: bool,
}

impl Trimmed {
    /// `MIN_TRIM_SIZE`: the number of bytes behind the IP header that every trim keeps.
    pub const MIN_SIZE: usize = 24;
}

/// The lengths of a packet that the capture cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sliced {
    /// The number of bytes that the capture kept.
    pub captured: usize,
    /// The number of bytes on the wire.
    pub wire: usize,
}

/// The start of each part of a packet, in bytes from the start of the input. Absent headers have no offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Offsets {
    /// The IP header.
    pub ip: Option<usize>,
    /// The header after IP, its options and extension headers: UDP or the entropy header.
    pub transport: Option<usize>,
    /// The first UET header: the security header, or else the PDS header.
    pub uet: Option<usize>,
    /// The PDS header.
    pub pds: Option<usize>,
    /// The SES header.
    pub ses: Option<usize>,
    /// The extension of the request.
    pub ext: Option<usize>,
    /// The payload. An empty payload starts at the end of the headers.
    pub payload: usize,
    /// The bytes that could not be parsed.
    pub rest: Option<usize>,
    /// The trailer. An empty trailer starts at the padding.
    pub trailer: usize,
    /// The padding. Without padding, the end of the input.
    pub padding: usize,
}

/// A packet with the layers around UET, as views over the caller's bytes.
///
/// Every byte of the input is in exactly one of the [`parts`](Packet::parts). The parser resolves contradictory lengths
/// and missing bytes as follows:
///
/// | input | result |
/// | --- | --- |
/// | bytes after the IP length | `padding` |
/// | bytes after the UDP length, within the IP length | also `padding` |
/// | IP length beyond the given bytes | parsed as far as possible; an error unless the capture or a switch removed the rest |
/// | UDP length beyond the IP length | `trimmed`; without IP ([`Start::Udp`]), beyond the given bytes |
/// | traffic class of trimmed packets | `trimmed`, independent of the lengths; the IP length may be that before trimming |
/// | trimmed packet with a trailer configured | the length before trimming locates the trailer; if it is unknown, no trailer |
/// | part of a trailer | no trailer: the bytes are in `rest`, and `cut` names the trailer |
/// | fragment of IPv4, or of IPv6 | [`Content::Fragment`], the rest is payload |
/// | IPv6 fragment header with offset 0 and no more fragments | skipped like other extensions: the packet is complete |
/// | IPv6 payload length 0 with hop-by-hop options | [`Content::Jumbogram`], the rest is payload |
/// | ESP, no next header, any other protocol, a third tag | [`Content::Other`], the rest is payload |
/// | UDP to another port | [`Content::Other`]; its length is ignored |
/// | IPv4 `ihl` below 5 or beyond the IP length, IP or UDP length below the header | an error, `rest` starts with that header |
///
/// ```
/// use uet_wire::pds::Request;
/// use uet_wire::registry::Opcode;
/// use uet_wire::ses::Std;
/// use uet_wire::{FrameBuilder, Options, Packet, Psn, Start};
///
/// let request = Request::rud().psn(Psn(7)).done()?;
/// let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5).done()?;
/// let mut buffer = [0; 256];
/// let length = FrameBuilder::new(request)
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
    pub vlans: [Option<Vlan<&'a [u8; 4]>>; MAX_VLANS],
    /// The IP header.
    pub ip: Option<Ip<'a>>,
    /// The IP packet as far as present: from its header to the end of its trailer.
    pub ip_packet: &'a [u8],
    /// The UDP header.
    pub udp: Option<Udp<&'a [u8; 8]>>,
    /// The header of the native encapsulation.
    pub entropy: Option<Entropy<&'a [u8; 4]>>,
    /// The kind of the packet.
    pub content: Content,
    /// The UET headers and the payload. Packets of other protocols have only payload.
    pub uet: Uet<'a>,
    /// The bytes that could not be parsed. They start with the header that `cut` names.
    pub rest: &'a [u8],
    /// The trailer, if one is configured.
    pub trailer: &'a [u8],
    /// The bytes after the packet in the frame. The IP and UDP lengths end the packet.
    pub padding: &'a [u8],
    /// The point at which parsing stopped before the payload. Not always an error: see [`error`](Packet::error).
    pub cut: Option<ParseError>,
    /// Set if a switch trimmed the packet.
    pub trimmed: Option<Trimmed>,
    /// Set if the capture cut off the packet.
    pub sliced: Option<Sliced>,
    error: Option<ParseError>,
}

impl<'a> Packet<'a> {
    /// Parses a packet. A receiver then checks the following before it uses the packet:
    ///
    /// - [`content`](Self::content): packets of other protocols are no error.
    /// - [`trimmed`](Self::trimmed): a packet whose UDP length exceeds its bytes counts as trimmed by a switch.
    /// - [`crc_check`](Self::crc_check), if the deployment has a CRC.
    /// - [`validate`](Self::validate): reserved values and unknown types are no error.
    ///
    /// # Errors
    ///
    /// Fails if the packet is malformed, or ends early without being trimmed by a switch.
    #[inline]
    pub fn parse(start: Start, bytes: &'a [u8], options: &Options) -> Result<Self, ParseError> {
        match Self::parse_lax(start, bytes, options) {
            (packet, None) => Ok(packet),
            (_, Some(error)) => Err(error),
        }
    }

    /// Parses as much of a packet as possible. Returns it with the error that [`parse`](Packet::parse) would return.
    #[inline]
    pub fn parse_lax(start: Start, bytes: &'a [u8], options: &Options) -> (Self, Option<ParseError>) {
        Self::parse_sliced(start, bytes, bytes.len(), options)
    }

    /// Parses the first `bytes` of a packet that a capture cut off. `wire` is its length on the wire in bytes. Bytes
    /// that the capture removed are no error.
    ///
    /// ```
    /// use uet_wire::{Options, Packet, Start};
    ///
    /// // The first 10 bytes of a request of 60 bytes.
    /// let bytes = [0x11, 0x80, 0, 0, 0, 0, 0, 7, 0x40, 1];
    /// let (packet, error) = Packet::parse_sliced(Start::Uet, &bytes, 60, &Options::default());
    /// assert_eq!(packet.cut.unwrap().field(), "pds.dpdcid");
    /// assert_eq!(error, None);
    ///
    /// // Parsed as a complete packet, the bytes end too early.
    /// let (packet, error) = Packet::parse_lax(Start::Uet, &bytes, &Options::default());
    /// assert_eq!(error, packet.cut);
    /// ```
    #[inline]
    pub fn parse_sliced(
        start: Start,
        bytes: &'a [u8],
        wire: usize,
        options: &Options,
    ) -> (Self, Option<ParseError>) {
        let packet = walk::Walk::new(bytes, wire, options).run(start);
        (packet, packet.error)
    }

    /// Returns the error that [`parse`](Packet::parse) would return. Bytes that a switch or the capture cut off are no
    /// error.
    #[inline]
    pub const fn error(&self) -> Option<ParseError> {
        self.error
    }

    /// Returns true if the frame has more tags than [`vlans`](Self::vlans) has room for. The payload begins with the
    /// first of them.
    pub fn has_unread_tag(&self) -> bool {
        let [_, inner] = self.vlans;
        inner.is_some_and(|tag| is_tag(tag.ethertype()))
    }

    /// Returns all bytes of the packet, part after part: headers with options and extension headers, payload, unread
    /// bytes, trailer, padding. Concatenated, the parts equal the input.
    pub fn parts(&self) -> [&'a [u8]; 15] {
        let [outer, inner] = self.vlans;
        let [tss, pds, ses, ext, payload] = self.uet.parts();
        [
            self.eth.map_or(&[], |header| &header.0[..]),
            outer.map_or(&[], |header| &header.0[..]),
            inner.map_or(&[], |header| &header.0[..]),
            self.ip.map_or(&[], |header| header.bytes()),
            self.ip.map_or(&[], |header| header.extra()),
            self.udp.map_or(&[], |header| &header.0[..]),
            self.entropy.map_or(&[], |header| &header.0[..]),
            tss,
            pds,
            ses,
            ext,
            payload,
            self.rest,
            self.trailer,
            self.padding,
        ]
    }

    /// Returns the offsets of the packet's parts.
    ///
    /// ```
    /// use uet_wire::{Options, Packet, Start};
    ///
    /// let packet = Packet::parse(Start::Uet, &[0x10, 0, 0, 0, 0, 0, 0, 7, 0x40, 1, 0x80, 1, 0xee], &Options::default())?;
    /// let offsets = packet.offsets();
    /// assert_eq!((offsets.ip, offsets.pds, offsets.payload), (None, Some(0), 12));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    pub fn offsets(&self) -> Offsets {
        let parts = self.parts();
        let mut end = 0usize;
        let starts = parts.map(|part| {
            let start = end;
            end = end.saturating_add(part.len());
            (start, (!part.is_empty()).then_some(start))
        });
        let [_, _, _, ip, _, udp, entropy, tss, pds, ses, ext, payload, rest, trailer, padding] = starts;
        Offsets {
            ip: ip.1,
            transport: udp.1.or(entropy.1),
            uet: tss.1.or(pds.1),
            pds: pds.1,
            ses: ses.1,
            ext: ext.1,
            payload: payload.0,
            rest: rest.1,
            trailer: trailer.0,
            padding: padding.0,
        }
    }

    /// Returns the entropy value from UDP or the entropy header.
    pub fn entropy_value(&self) -> Option<u16> {
        match (&self.udp, &self.entropy) {
            (Some(udp), _) => Some(udp.src_port()),
            (None, Some(entropy)) => Some(entropy.entropy()),
            (None, None) => None,
        }
    }

    /// Returns the headers of the packet with their layouts, in wire order.
    pub fn headers(&self) -> impl Iterator<Item = (&'static Layout, &'a [u8])> + Clone + use<'a> {
        let [outer, inner] = self.vlans;
        [
            self.eth.map(|header| (Ethernet::LAYOUT, &header.0[..])),
            outer.map(|header| (Vlan::LAYOUT, &header.0[..])),
            inner.map(|header| (Vlan::LAYOUT, &header.0[..])),
            self.ip.map(|header| (header.layout(), header.bytes())),
            self.udp.map(|header| (Udp::LAYOUT, &header.0[..])),
            self.entropy.map(|header| (Entropy::LAYOUT, &header.0[..])),
        ]
        .into_iter()
        .chain(self.uet.headers())
        .flatten()
    }
}
