//! The one way through a packet, from the outside in.

use super::{Content, Options, Packet, Sliced, Start, Trimmed};
use crate::ParseError;
use crate::error::Problem;
use crate::layout::{Layer, Layout};
use crate::outer::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ, ETHERTYPE_VLAN, Entropy, Ethernet, Ip, Ipv4, Ipv6,
    Ipv6Extension, Ipv6Fragment, PROTO_UDP, Udp, Vlan,
};
use crate::trailer::TrailerKind;

pub(super) struct Walk<'p, 'a> {
    /// Filled in place: it is too large to be handed from step to step.
    packet: &'p mut Packet<'a>,
    all: &'a [u8],
    /// What has not been read. When reading stops it starts with the header that is cut.
    rest: &'a [u8],
    /// How many bytes the capture left out at the end of the frame.
    uncaptured: usize,
    /// How many bytes of the packet are missing behind `rest`: left out by the capture, or cut by a switch.
    gone: usize,
    /// What is there of a trailer that is cut.
    cut_trailer: &'a [u8],
    /// The IP length, when it promises bytes that were not there on the wire.
    overrun: Option<ParseError>,
    /// What is wrong where reading stopped, when it is more than that a header ends early.
    wrong: Option<ParseError>,
}

/// A step stops with the header at which it did; the error is made of it off the way of a packet.
type Step = Result<(), &'static Layout>;

impl<'p, 'a> Walk<'p, 'a> {
    #[inline(always)]
    pub(super) fn new(packet: &'p mut Packet<'a>, bytes: &'a [u8], wire: usize) -> Self {
        let uncaptured = wire.saturating_sub(bytes.len());
        if uncaptured > 0 {
            packet.sliced = Some(Sliced { captured: bytes.len(), wire });
        }
        Walk {
            packet,
            all: bytes,
            rest: bytes,
            uncaptured,
            gone: uncaptured,
            cut_trailer: &[],
            overrun: None,
            wrong: None,
        }
    }

    #[inline(always)]
    pub(super) fn run(mut self, start: Start, options: &Options) {
        let stopped = match start {
            Start::Eth => self.ethernet(options),
            Start::EtherType(ethertype) => self.tagged(ethertype, options),
            Start::Ip => self.ip(None, options),
            Start::Udp => self.udp(options),
            Start::Uet => self.uet(options),
            Start::Other => self.other(Content::Other),
        };
        self.packet.error = self.overrun;
        if let Err(header) = stopped {
            self.stop(header);
        }
    }

    /// Says where reading stopped, and whether that is an error.
    #[cold]
    fn stop(&mut self, header: &'static Layout) {
        let cut = self.wrong.unwrap_or_else(|| ParseError::short(header, self.rest)).moved(self.at());
        if !self.explains(&cut) {
            self.packet.error = Some(cut);
        }
        self.packet.cut = Some(cut);
        self.packet.rest = self.rest;
    }

    #[cold]
    fn wrong(&mut self, error: ParseError) -> Step {
        self.wrong = Some(error);
        Err(error.header)
    }

    /// Where `rest` starts: behind it lie only the trailer and the padding.
    #[inline(always)]
    fn at(&self) -> usize {
        let behind = [self.rest, self.cut_trailer, self.packet.trailer, self.packet.padding];
        behind.iter().fold(self.all.len(), |at, part| at.saturating_sub(part.len()))
    }

    /// Whether a header ends early only because the end of the packet is missing.
    fn explains(&self, cut: &ParseError) -> bool {
        let missing = match cut.problem {
            Problem::Short { present } => cut.header.bytes.saturating_sub(present),
            Problem::Promises { value, present, .. } => value.saturating_sub(present),
            Problem::Says { .. } => return false,
        };
        // Bytes that IP promises and that never were excuse nothing but the lack of a trailer.
        let absent = match self.overrun {
            Some(_) if self.packet.trimmed.is_none() && cut.layer() != Layer::Trailer => self.uncaptured,
            _ => self.gone,
        };
        missing <= absent
    }

    #[inline(always)]
    fn ethernet(&mut self, options: &Options) -> Step {
        let (eth, rest) = Ethernet::split(self.rest)?;
        self.packet.eth = Some(eth);
        self.rest = rest;
        self.tagged(eth.ethertype(), options)
    }

    /// What follows an EtherType: tags, IP, or another protocol.
    #[inline(always)]
    fn tagged(&mut self, mut ethertype: u16, options: &Options) -> Step {
        for slot in &mut self.packet.vlans {
            if !matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ) {
                break;
            }
            let (vlan, rest) = Vlan::split(self.rest)?;
            *slot = Some(vlan);
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
            (announced, found) => {
                let v6 = announced == Some(6);
                let header = if v6 { Ipv6::LAYOUT } else { Ipv4::LAYOUT };
                match found {
                    Some(found) => {
                        self.wrong(says(header, "ip.version", found.into(), if v6 { 6 } else { 4 }))
                    }
                    None => Err(header),
                }
            }
        }
    }

    #[inline(always)]
    fn ipv4(&mut self, options: &Options) -> Step {
        let (header, _) = Ipv4::split(self.rest)?;
        let header_length = usize::from(header.ihl()) * 4;
        let total = usize::from(header.total_length());
        if header_length < Ipv4::LAYOUT.bytes {
            return self.wrong(says(Ipv4::LAYOUT, "ip.ihl", header.ihl().into(), Ipv4::LAYOUT.bytes / 4));
        }
        if total < header_length {
            return self.wrong(says(Ipv4::LAYOUT, "ip.total_length", total, header_length));
        }
        self.bound(Ipv4::LAYOUT, "ip.total_length", total);
        let Some((whole_header, rest)) = self.rest.split_at_checked(header_length) else {
            return self.wrong(promises(Ipv4::LAYOUT, "ip.ihl", header_length, self.rest.len()));
        };
        let (header, ip_options) = Ipv4::split(whole_header)?;
        self.packet.ip = Some(Ip::V4 { header, options: ip_options });
        self.packet.ip_packet = self.rest;
        self.rest = rest;
        if header.mf() || header.frag_offset() != 0 {
            return self.other(Content::Fragment);
        }
        self.transport(header.proto(), options)
    }

    #[inline(always)]
    fn ipv6(&mut self, options: &Options) -> Step {
        let (header, rest) = Ipv6::split(self.rest)?;
        let length = usize::from(header.payload_length());
        if length == 0 && header.next_header() == HOP_BY_HOP {
            self.packet.ip = Some(Ip::V6 { header, extensions: &[] });
            self.packet.ip_packet = self.rest;
            self.rest = rest;
            return self.other(Content::Jumbogram);
        }
        self.bound(Ipv6::LAYOUT, "ip.payload_length", Ipv6::LAYOUT.bytes + length);
        let (header, after) = Ipv6::split(self.rest)?;
        let (rest, found) = skip_extensions(header.next_header(), after, options.ip_proto);
        self.packet.ip = Some(Ip::V6 { header, extensions: before(after, rest) });
        self.packet.ip_packet = self.rest;
        self.rest = rest;
        match found {
            Err(error) => self.wrong(error),
            Ok(Some(proto)) => self.transport(proto, options),
            Ok(None) => self.other(Content::Fragment),
        }
    }

    /// Ends the packet where its IP header says; what follows in the frame is padding.
    #[inline(always)]
    fn bound(&mut self, header: &'static Layout, field: &'static str, total: usize) {
        match self.rest.split_at_checked(total) {
            Some((packet, padding)) => {
                self.packet.padding = padding;
                self.rest = packet;
                self.gone = 0;
            }
            None => {
                self.gone = total.saturating_sub(self.rest.len());
                if self.gone > self.uncaptured {
                    let wire = self.rest.len().saturating_add(self.uncaptured);
                    self.overrun = Some(promises(header, field, total, wire).moved(self.at()));
                }
            }
        }
    }

    #[inline(always)]
    fn transport(&mut self, proto: u8, options: &Options) -> Step {
        if proto == PROTO_UDP {
            self.udp(options)
        } else if proto == options.ip_proto {
            let (entropy, rest) = Entropy::split(self.rest)?;
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
        let (udp, rest) = Udp::split(whole)?;
        let length = usize::from(udp.length());
        if udp.dst_port() == options.udp_port {
            let Some(payload) = length.checked_sub(Udp::LAYOUT.bytes) else {
                return self.wrong(says(Udp::LAYOUT, "udp.length", length, Udp::LAYOUT.bytes));
            };
            self.packet.udp = Some(udp);
            self.bound_by_udp(rest, payload);
            self.uet(options)
        } else {
            self.packet.udp = Some(udp);
            self.rest = rest;
            self.other(Content::Other)
        }
    }

    /// Ends the packet where its UDP header says.
    #[inline(always)]
    fn bound_by_udp(&mut self, rest: &'a [u8], length: usize) {
        self.rest = rest;
        if let Some((datagram, surplus)) = rest.split_at_checked(length) {
            self.rest = datagram;
            self.gone = 0;
            // The surplus joins the padding behind it.
            let padding = surplus.len().saturating_add(self.packet.padding.len());
            let start = self.all.len().saturating_sub(padding);
            self.packet.padding = self.all.get(start..).unwrap_or(surplus);
            self.packet.ip_packet = before(self.packet.ip_packet, surplus);
            return;
        }
        let absent = length.saturating_sub(rest.len());
        match absent.checked_sub(self.gone) {
            // A switch cuts the IP length and leaves the UDP length.
            Some(missing) if missing > 0 => {
                self.packet.trimmed =
                    Some(Trimmed { layer: Layer::Payload, missing: Some(missing), last_hop: false });
            }
            _ => {}
        }
        self.gone = absent;
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
        if matches!(self.packet.trimmed, Some(Trimmed { missing: None, .. })) {
            // Where the packet ended is not known, nor whether its trailer is there: it is not.
            self.gone = usize::MAX;
        } else if !options.trailer.is_empty() {
            self.split_trailer(options.trailer)?;
        }
        let cut = self.packet.uet.read(self.rest).err();
        if let (Some(trimmed), Some(cut)) = (&mut self.packet.trimmed, cut) {
            trimmed.layer = cut.header.layer;
        }
        // What is left of a trailer that was cut lies behind what is left of the packet.
        let read = cut.map_or(self.rest.len(), |cut| cut.start);
        let left = self.rest.len().saturating_sub(read).saturating_add(self.cut_trailer.len());
        let start = self.at().saturating_add(read);
        self.rest = self.all.get(start..start.saturating_add(left)).unwrap_or(self.cut_trailer);
        let cut_trailer = core::mem::take(&mut self.cut_trailer);
        match cut {
            Some(cut) if cut_trailer.is_empty() => Err(cut.header),
            Some(cut) => self.wrong(ParseError::short(cut.header, before(self.rest, cut_trailer))),
            None if cut_trailer.is_empty() => Ok(()),
            None => {
                self.gone = options.trailer.len();
                Err(options.trailer.layout())
            }
        }
    }

    /// Takes the trailer, or what is there of it, off the end of the packet.
    #[inline(always)]
    fn split_trailer(&mut self, kind: TrailerKind) -> Step {
        let whole = self.rest.len().saturating_add(self.gone);
        let Some(start) = whole.checked_sub(kind.len()) else {
            return Err(kind.layout());
        };
        match self.rest.split_at_checked(start) {
            Some((packet, trailer)) if self.gone == 0 => {
                self.rest = packet;
                self.packet.trailer = trailer;
            }
            Some((packet, partial)) => {
                self.rest = packet;
                self.cut_trailer = partial;
                self.gone = 0;
            }
            None => self.gone = start.saturating_sub(self.rest.len()),
        }
        Ok(())
    }

    #[inline(always)]
    fn other(&mut self, content: Content) -> Step {
        self.packet.content = content;
        self.packet.uet.payload = self.rest;
        Ok(())
    }
}

const HOP_BY_HOP: u8 = 0;

/// What follows the extension headers, and which protocol that is; `None` for a fragment.
#[inline]
fn skip_extensions(mut next: u8, mut rest: &[u8], ip_proto: u8) -> (&[u8], Result<Option<u8>, ParseError>) {
    loop {
        let mut fragment = false;
        let header = match next {
            // A number that is configured is UET, whatever else it stands for.
            _ if next == ip_proto => return (rest, Ok(Some(next))),
            // Routing, destination options, mobility, HIP, shim6.
            HOP_BY_HOP | 43 | 60 | 135 | 139 | 140 => extension(rest, 8),
            // Authentication counts its length in words of 4 bytes.
            51 => extension(rest, 4),
            44 => Ipv6Fragment::parse(rest).map(|(header, _)| {
                fragment = header.mf() || header.frag_offset() != 0;
                (header.next_header(), Ipv6Fragment::LAYOUT.bytes)
            }),
            _ => return (rest, Ok(Some(next))),
        };
        let (proto, length) = match header {
            Ok(found) => found,
            Err(error) => return (rest, Err(error)),
        };
        let Some(after) = rest.get(length..) else {
            let error = promises(Ipv6Extension::LAYOUT, "ip.ext.length", length, rest.len());
            return (rest, Err(error));
        };
        (next, rest) = (proto, after);
        if fragment {
            return (rest, Ok(None));
        }
    }
}

/// What follows the extension header at the start of `bytes`, and its length.
#[inline]
fn extension(bytes: &[u8], unit: usize) -> Result<(u8, usize), ParseError> {
    let (header, _) = Ipv6Extension::parse(bytes)?;
    Ok((header.next_header(), usize::from(header.length()) * unit + 8))
}

/// What lies in `all` before its end `rest`.
#[inline]
fn before<'a>(all: &'a [u8], rest: &[u8]) -> &'a [u8] {
    all.len().checked_sub(rest.len()).and_then(|length| all.get(..length)).unwrap_or(all)
}

#[cold]
const fn says(header: &'static Layout, field: &'static str, value: usize, needed: usize) -> ParseError {
    ParseError::new(header, Problem::Says { field, value, needed })
}

#[cold]
const fn promises(header: &'static Layout, field: &'static str, value: usize, present: usize) -> ParseError {
    ParseError::new(header, Problem::Promises { field, value, present })
}
