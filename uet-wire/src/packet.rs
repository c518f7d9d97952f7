//! A packet with the layers around UET.

mod walk;

use crate::layout::{Layer, Layout};
use crate::outer::{Entropy, Ethernet, IP_PROTO, Ip, UDP_PORT, Udp, Vlan};
use crate::trailer::TrailerKind;
use crate::{ParseError, Spec, Uet};

/// Where the bytes given to the parser start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// With an Ethernet header.
    #[default]
    Eth,
    /// With what follows this EtherType, as in the captures of a system's own interfaces.
    EtherType(u16),
    /// With an IP header of either version.
    Ip,
    /// With a UDP header.
    Udp,
    /// With UET.
    Uet,
    /// With another protocol: nothing is read.
    Other,
}

/// What a deployment sets, and no packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The UDP destination port of UET.
    pub udp_port: u16,
    /// The IP protocol number of the native encapsulation.
    pub ip_proto: u8,
    /// The trailer that ends every packet. The IP length counts it, and so does the UDP length.
    pub trailer: TrailerKind,
    /// The traffic class of packets trimmed by a switch.
    pub trimmed_dscp: Option<u8>,
    /// The traffic class of packets trimmed at the last hop.
    pub trimmed_lasthop_dscp: Option<u8>,
    /// The version of the specification by which packets are shown and judged. The parser reads all alike.
    pub spec: &'static Spec,
}

impl Options {
    /// The registered port, the experimental protocol number, no trailer, trimming known by length alone.
    pub const DEFAULT: Options = Options {
        udp_port: UDP_PORT,
        ip_proto: IP_PROTO,
        trailer: TrailerKind::None,
        trimmed_dscp: None,
        trimmed_lasthop_dscp: None,
        spec: Spec::ALL[Spec::ALL.len() - 1],
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
    /// An IPv6 packet that leaves its length to an option, which UET never needs: not read further.
    Jumbogram,
    /// Another protocol, or cut before that could be known.
    #[default]
    Other,
}

/// A packet that a switch cut on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trimmed {
    /// The layer that the first missing byte belonged to. (Where the capture cut more than the switch,
    /// that is the capture's cut.)
    pub layer: Layer,
    /// How many bytes the switch took away, by the UDP length; `None` when only the traffic class tells.
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

/// Where the parts of a packet start, in bytes from the first one given to the parser. A part that is not
/// there starts where it would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offsets {
    /// The IP header.
    pub ip: usize,
    /// What follows the IP header with its options or extension headers: UDP, or the entropy header.
    pub transport: usize,
    /// UET: the security header, or else the PDS header.
    pub uet: usize,
    /// The PDS header.
    pub pds: usize,
    /// The SES header.
    pub ses: usize,
    /// The extension of the request.
    pub ext: usize,
    /// The payload.
    pub payload: usize,
    /// What could not be read.
    pub rest: usize,
    /// The trailer.
    pub trailer: usize,
    /// The padding: also the end of the packet.
    pub padding: usize,
}

/// A packet with the layers around UET, as views over the caller's bytes.
///
/// Every byte given to the parser is in exactly one of [`parts`](Packet::parts), whatever the bytes are.
/// Where lengths contradict each other, or the end is missing, this is how a packet is read:
///
/// | what | becomes |
/// | --- | --- |
/// | bytes behind the IP length | `padding` |
/// | bytes behind the UDP length, within the IP length | `padding` too |
/// | IP length beyond the bytes given | read as far as it goes; an error, unless the capture left out that much |
/// | UDP length beyond the IP length | `trimmed`; without IP ([`Start::Udp`]), beyond the bytes given |
/// | traffic class of trimmed packets | `trimmed`, whatever the lengths say |
/// | trimmed packet with a trailer configured | the UDP length says where the trailer was; without it, there is none |
/// | part of a trailer | no trailer: `rest`, and `cut` names it |
/// | fragment of IPv4, or of IPv6 | [`Content::Fragment`], the rest is payload |
/// | IPv6 fragment header that says "first and last" | skipped like any extension header: the packet is whole |
/// | IPv6 payload length 0 with hop-by-hop options | [`Content::Jumbogram`], the rest is payload |
/// | ESP, no next header, any other protocol, a third tag | [`Content::Other`], the rest is payload |
/// | UDP to another port | [`Content::Other`]; its length is not looked at |
/// | IPv4 `ihl` below 5 or beyond the IP length, IP or UDP length below the header | an error, `rest` starts with that header |
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
    /// The IP packet as far as it is there: from its header to the end of its trailer.
    pub ip_packet: &'a [u8],
    /// The UDP header.
    pub udp: Option<Udp<&'a [u8; 8]>>,
    /// The header of the native encapsulation.
    pub entropy: Option<Entropy<&'a [u8; 4]>>,
    /// What the packet is.
    pub content: Content,
    /// The UET headers and the payload. What is not UET is all payload.
    pub uet: Uet<'a>,
    /// The bytes from the header on at which reading stopped: the header that `cut` names starts here.
    pub rest: &'a [u8],
    /// The trailer, when one is configured; cut where the packet is.
    pub trailer: &'a [u8],
    /// What follows the packet in the frame: IP and UDP say where the packet ends.
    pub padding: &'a [u8],
    /// Where reading stopped, when it did before the payload. Not always an error: see
    /// [`error`](Packet::error).
    pub cut: Option<ParseError>,
    /// Set when a switch trimmed the packet.
    pub trimmed: Option<Trimmed>,
    /// Set when the capture cut the packet.
    pub sliced: Option<Sliced>,
    error: Option<ParseError>,
}

impl<'a> Packet<'a> {
    /// Reads a packet; one that ends early is an error unless a switch trimmed it.
    #[inline]
    pub fn parse(start: Start, bytes: &'a [u8], options: &Options) -> Result<Self, ParseError> {
        let packet = Self::parse_lax(start, bytes, bytes.len(), options);
        match packet.error() {
            None => Ok(packet),
            Some(error) => Err(error),
        }
    }

    /// Reads as much of a packet as there is. `wire` is its length on the wire, where the capture kept less.
    ///
    /// ```
    /// use uet_wire::{Options, Packet, Start};
    ///
    /// // The first 10 bytes of a request, of 60 on the wire; then the same bytes taken for a whole packet.
    /// let bytes = [0x11, 0x80, 0, 0, 0, 0, 0, 7, 0x40, 1];
    /// let sliced = Packet::parse_lax(Start::Uet, &bytes, 60, &Options::default());
    /// assert_eq!(sliced.cut.unwrap().field(), "pds.dpdcid");
    /// assert_eq!(sliced.error(), None);
    /// let short = Packet::parse_lax(Start::Uet, &bytes, 10, &Options::default());
    /// assert_eq!(short.error(), short.cut);
    /// ```
    #[inline]
    pub fn parse_lax(start: Start, bytes: &'a [u8], wire: usize, options: &Options) -> Self {
        walk::Walk::new(bytes, wire, options).run(start)
    }

    /// What is wrong with the packet. That its end is missing is not, as far as a switch or the capture
    /// cut it off.
    #[inline]
    pub const fn error(&self) -> Option<ParseError> {
        self.error
    }

    /// All bytes of the packet, part after part: headers with their options and extension headers,
    /// payload, what could not be read, trailer, padding. One after the other they are the bytes
    /// given to the parser.
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

    /// Where the parts start.
    ///
    /// ```
    /// use uet_wire::{Options, Packet, Start};
    ///
    /// let packet = Packet::parse(Start::Uet, &[0x10, 0, 0, 0, 0, 0, 0, 7, 0x40, 1, 0x80, 1, 0xee], &Options::default())?;
    /// assert_eq!(packet.offsets().payload, 12);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    pub fn offsets(&self) -> Offsets {
        let mut end = 0usize;
        let starts = self.parts().map(|part| {
            let start = end;
            end = end.saturating_add(part.len());
            start
        });
        let [_, _, _, ip, _, transport, _, uet, pds, ses, ext, payload, rest, trailer, padding] = starts;
        Offsets { ip, transport, uet, pds, ses, ext, payload, rest, trailer, padding }
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
        ]
        .into_iter()
        .chain(self.uet.headers())
        .flatten()
    }
}
