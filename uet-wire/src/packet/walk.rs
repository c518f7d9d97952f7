//! Parses a packet from the outermost to the innermost layer.
//!
//! Each step takes its header off the remaining bytes and returns what follows. All steps are inlined into one
//! function that never passes on a pointer to the packet. Cold code builds its error from values. The compiler
//! therefore never stores the packet in memory, and layers that the caller ignores cost nothing. Each step has one
//! caller, because this function is compiled in every crate that parses packets, and holds a copy per caller.

use super::{Content, Options, Packet, Sliced, Start, Trimmed};
use crate::error::Problem;
use crate::layout::{Layer, Layout};
use crate::outer::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, Entropy, Ethernet, Ip, Ipv4, Ipv6, Ipv6Extension, Ipv6Fragment,
    PROTO_UDP, Udp, Vlan, is_tag,
};
use crate::{ParseError, Uet};

pub(super) struct Walk<'a> {
    packet: Packet<'a>,
    options: Options,
    all: &'a [u8],
    /// The number of bytes that the capture removed from the end of the frame.
    uncaptured: usize,
    /// The number of bytes missing after the remaining bytes. The capture or a switch removed them.
    gone: usize,
    /// True if the IP length exceeds a packet that a switch says it has trimmed.
    stale: bool,
}

/// The point at which parsing stopped.
struct Stop<'a> {
    /// The fault of the header.
    error: ParseError,
    /// The remaining bytes, starting with that header.
    rest: &'a [u8],
}

type Step<'a> = Result<(), Stop<'a>>;

/// The remaining bytes, by what they begin with.
enum Inside<'a> {
    Uet(&'a [u8]),
    Other(Content, &'a [u8]),
}

impl<'a> Walk<'a> {
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8], wire: usize, options: &Options) -> Self {
        let uncaptured = wire.saturating_sub(bytes.len());
        let sliced = (uncaptured > 0).then_some(Sliced { captured: bytes.len(), wire });
        let packet = Packet { sliced, ..Packet::default() };
        Walk { packet, options: *options, all: bytes, uncaptured, gone: uncaptured, stale: false }
    }

    #[inline(always)]
    pub(super) fn run(mut self, start: Start) -> Packet<'a> {
        if let Err(stop) = self.walk(start, self.all) {
            self.stop(stop);
        }
        self.packet
    }

    #[inline(always)]
    fn walk(&mut self, start: Start, bytes: &'a [u8]) -> Step<'a> {
        let inside = match start {
            Start::Eth | Start::EtherType(_) => self.link(start, bytes)?,
            Start::Ip => self.ip(version(bytes) == Some(6), bytes)?,
            Start::Udp => self.udp(bytes)?,
            Start::Uet => Inside::Uet(bytes),
            Start::Other => Inside::Other(Content::Other, bytes),
        };
        match inside {
            Inside::Uet(bytes) => self.uet(bytes),
            Inside::Other(content, bytes) => {
                self.packet.content = content;
                self.packet.uet.payload = bytes;
                Ok(())
            }
        }
    }

    /// Records where parsing stopped, and whether that is an error.
    #[inline(always)]
    fn stop(&mut self, Stop { error, rest }: Stop<'a>) {
        let cut = error.moved(self.at(rest));
        let in_trailer = cut.layer() == Layer::Trailer;
        if let (Some(trimmed), false) = (&mut self.packet.trimmed, in_trailer) {
            trimmed.layer = cut.layer();
        }
        // If the IP length exceeds the packet, the bytes never existed. They only excuse a missing trailer.
        let overrun = self.packet.error.is_some() || self.stale;
        let overrun = overrun && self.packet.trimmed.is_none() && !in_trailer;
        if missing(cut) > if overrun { self.uncaptured } else { self.gone } {
            self.packet.error = Some(cut);
        }
        self.packet.cut = Some(cut);
        self.packet.rest = rest;
    }

    /// Returns the offset of `rest`. Only the trailer and the padding follow `rest`.
    #[inline(always)]
    fn at(&self, rest: &[u8]) -> usize {
        let behind = [rest, self.packet.trailer, self.packet.padding];
        behind.iter().fold(self.all.len(), |at, part| at.saturating_sub(part.len()))
    }

    /// Parses the Ethernet header, if the bytes start with it, and tags.
    #[inline(always)]
    fn link(&mut self, start: Start, mut bytes: &'a [u8]) -> Result<Inside<'a>, Stop<'a>> {
        let mut ethertype = match start {
            Start::EtherType(ethertype) => ethertype,
            _ => {
                let (eth, rest) = Ethernet::split(bytes).map_err(|header| short(header, bytes))?;
                self.packet.eth = Some(eth);
                bytes = rest;
                eth.ethertype()
            }
        };
        for slot in &mut self.packet.vlans {
            if !is_tag(ethertype) {
                break;
            }
            let (vlan, rest) = Vlan::split(bytes).map_err(|header| short(header, bytes))?;
            *slot = Some(vlan);
            (ethertype, bytes) = (vlan.ethertype(), rest);
        }
        match ethertype {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => self.ip(ethertype == ETHERTYPE_IPV6, bytes),
            _ => Ok(Inside::Other(Content::Other, bytes)),
        }
    }

    #[inline(always)]
    fn ip(&mut self, v6: bool, bytes: &'a [u8]) -> Result<Inside<'a>, Stop<'a>> {
        match (v6, version(bytes)) {
            (false, Some(4)) => self.ipv4(bytes),
            (true, Some(6)) => self.ipv6(bytes),
            (_, found) => {
                let (header, needed) = if v6 { (Ipv6::LAYOUT, 6) } else { (Ipv4::LAYOUT, 4) };
                Err(match found {
                    Some(found) => invalid_value(header, "ip.version", found.into(), needed, bytes),
                    None => short(header, bytes),
                })
            }
        }
    }

    #[inline(always)]
    fn ipv4(&mut self, bytes: &'a [u8]) -> Result<Inside<'a>, Stop<'a>> {
        const LAYOUT: &Layout = Ipv4::LAYOUT;
        let (header, _) = Ipv4::split(bytes).map_err(|header| short(header, bytes))?;
        let header_length = usize::from(header.ihl()) * 4;
        let total = usize::from(header.total_length());
        if header_length < LAYOUT.bytes {
            return Err(invalid_value(LAYOUT, "ip.ihl", header.ihl().into(), LAYOUT.bytes / 4, bytes));
        }
        if total < header_length {
            return Err(invalid_value(LAYOUT, "ip.total_length", total, header_length, bytes));
        }
        let bytes = self.bound(LAYOUT, "ip.total_length", total, header.dscp(), bytes);
        let Some((whole_header, rest)) = bytes.split_at_checked(header_length) else {
            let error = length_exceeds_input(LAYOUT, "ip.ihl", header_length, bytes.len());
            return Err(Stop { error, rest: bytes });
        };
        let options = whole_header.get(LAYOUT.bytes..).unwrap_or(&[]);
        self.packet.ip = Some(Ip::V4 { header, options });
        self.packet.ip_packet = bytes;
        if header.mf() || header.frag_offset() != 0 {
            return Ok(Inside::Other(Content::Fragment, rest));
        }
        self.transport(header.proto(), rest)
    }

    #[inline(always)]
    fn ipv6(&mut self, bytes: &'a [u8]) -> Result<Inside<'a>, Stop<'a>> {
        let (header, rest) = Ipv6::split(bytes).map_err(|header| short(header, bytes))?;
        let length = usize::from(header.payload_length());
        if length == 0 && header.next_header() == HOP_BY_HOP {
            self.packet.ip = Some(Ip::V6 { header, extensions: &[] });
            self.packet.ip_packet = bytes;
            return Ok(Inside::Other(Content::Jumbogram, rest));
        }
        let total = Ipv6::LAYOUT.bytes + length;
        let bytes = self.bound(Ipv6::LAYOUT, "ip.payload_length", total, header.dscp(), bytes);
        let after = bytes.get(Ipv6::LAYOUT.bytes..).unwrap_or(&[]);
        let (rest, found) = skip_extensions(header.next_header(), after, self.options.ip_proto);
        self.packet.ip = Some(Ip::V6 { header, extensions: before(after, rest) });
        self.packet.ip_packet = bytes;
        match found {
            Err(error) => Err(Stop { error, rest }),
            Ok(Some(proto)) => self.transport(proto, rest),
            Ok(None) => Ok(Inside::Other(Content::Fragment, rest)),
        }
    }

    /// Returns true if the traffic class is one of trimmed packets.
    #[inline(always)]
    fn is_trimmed(&self, dscp: u8) -> bool {
        [self.options.trimmed_dscp, self.options.trimmed_lasthop_dscp].contains(&Some(dscp))
    }

    /// Returns the packet up to the end that its IP header states. The remaining bytes of the frame become padding.
    #[inline(always)]
    fn bound(
        &mut self,
        header: &'static Layout,
        field: &'static str,
        total: usize,
        dscp: u8,
        bytes: &'a [u8],
    ) -> &'a [u8] {
        match bytes.split_at_checked(total) {
            Some((packet, padding)) => {
                self.packet.padding = padding;
                self.gone = 0;
                packet
            }
            None => {
                self.gone = total.saturating_sub(bytes.len());
                // Many switches that trim leave the IP length as it was.
                self.stale = self.gone > self.uncaptured && self.is_trimmed(dscp);
                if self.gone > self.uncaptured && !self.stale {
                    let wire = bytes.len().saturating_add(self.uncaptured);
                    self.packet.error =
                        Some(length_exceeds_input(header, field, total, wire).moved(self.at(bytes)));
                }
                bytes
            }
        }
    }

    #[inline(always)]
    fn transport(&mut self, proto: u8, bytes: &'a [u8]) -> Result<Inside<'a>, Stop<'a>> {
        if proto == PROTO_UDP {
            self.udp(bytes)
        } else if proto == self.options.ip_proto {
            let (entropy, rest) = Entropy::split(bytes).map_err(|header| short(header, bytes))?;
            self.packet.entropy = Some(entropy);
            Ok(Inside::Uet(rest))
        } else {
            Ok(Inside::Other(Content::Other, bytes))
        }
    }

    #[inline(always)]
    fn udp(&mut self, bytes: &'a [u8]) -> Result<Inside<'a>, Stop<'a>> {
        let (udp, rest) = Udp::split(bytes).map_err(|header| short(header, bytes))?;
        if udp.dst_port() != self.options.udp_port {
            self.packet.udp = Some(udp);
            return Ok(Inside::Other(Content::Other, rest));
        }
        let length = usize::from(udp.length());
        let Some(payload) = length.checked_sub(Udp::LAYOUT.bytes) else {
            return Err(invalid_value(Udp::LAYOUT, "udp.length", length, Udp::LAYOUT.bytes, bytes));
        };
        self.packet.udp = Some(udp);
        Ok(Inside::Uet(self.bound_by_udp(payload, rest)))
    }

    /// Returns the datagram up to the end that its UDP header states.
    #[inline(always)]
    fn bound_by_udp(&mut self, length: usize, bytes: &'a [u8]) -> &'a [u8] {
        if let Some((datagram, surplus)) = bytes.split_at_checked(length) {
            self.gone = 0;
            if !surplus.is_empty() {
                // The surplus precedes the padding and becomes part of it.
                let padding = surplus.len().saturating_add(self.packet.padding.len());
                let start = self.all.len().saturating_sub(padding);
                self.packet.padding = self.all.get(start..).unwrap_or(surplus);
                self.packet.ip_packet = before(self.packet.ip_packet, surplus);
            }
            return datagram;
        }
        let absent = length.saturating_sub(bytes.len());
        match absent.checked_sub(self.gone) {
            // A switch reduces the IP length and keeps the UDP length.
            Some(missing) if missing > 0 => {
                self.packet.trimmed =
                    Some(Trimmed { layer: Layer::Payload, missing: Some(missing), last_hop: false });
            }
            _ => {}
        }
        self.gone = absent;
        bytes
    }

    #[inline(always)]
    fn uet(&mut self, bytes: &'a [u8]) -> Step<'a> {
        self.packet.content = Content::Uet;
        let dscp = self.packet.ip.map(|ip| ip.dscp());
        if dscp.is_some_and(|dscp| self.is_trimmed(dscp)) {
            let last_hop = dscp == self.options.trimmed_lasthop_dscp;
            let by_udp = self.packet.trimmed.and_then(|trimmed| trimmed.missing);
            // A stale IP length tells the missing bytes too.
            let by_ip = self.gone.checked_sub(self.uncaptured).filter(|missing| *missing > 0);
            let missing = by_udp.or(by_ip);
            self.packet.trimmed = Some(Trimmed { layer: Layer::Payload, missing, last_hop });
        }
        let mut partial: &[u8] = &[];
        let mut packet = bytes;
        if matches!(self.packet.trimmed, Some(Trimmed { missing: None, .. })) {
            // The end of the packet is unknown, so the parser assumes no trailer.
            self.gone = usize::MAX;
        } else if !self.options.trailer.is_empty() {
            (packet, partial) = self.split_trailer(bytes)?;
        }
        let mut read = self.packet.uet.read(packet);
        // In this order, the compiler sees that other packets need no look at the options.
        if let (Some(tss), true, Ok(())) = (self.packet.uet.tss, self.options.opened, read) {
            (self.packet.uet, read) = Uet::read_opened(tss, self.packet.uet.payload);
        }
        match read {
            Err(cut) => {
                let left = packet.get(cut.start..).unwrap_or(&[]);
                // The remains of a cut trailer follow the remains of the packet.
                let rest = if partial.is_empty() { left } else { bytes.get(cut.start..).unwrap_or(left) };
                Err(Stop { rest, ..short(cut.header, left) })
            }
            Ok(()) if !partial.is_empty() => {
                self.gone = self.options.trailer.len();
                Err(short(self.options.trailer.layout(), partial))
            }
            Ok(()) => Ok(()),
        }
    }

    /// Splits the trailer off the end of the packet. Returns the packet, and the partial trailer if it is cut off.
    #[inline(always)]
    fn split_trailer(&mut self, bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Stop<'a>> {
        let trailer = self.options.trailer;
        let whole = bytes.len().saturating_add(self.gone);
        let Some(start) = whole.checked_sub(trailer.len()) else {
            return Err(short(trailer.layout(), bytes));
        };
        match bytes.split_at_checked(start) {
            Some((packet, trailer)) if self.gone == 0 => {
                self.packet.trailer = trailer;
                Ok((packet, &[]))
            }
            Some((packet, partial)) => {
                self.gone = 0;
                Ok((packet, partial))
            }
            None => {
                self.gone = start.saturating_sub(bytes.len());
                Ok((bytes, &[]))
            }
        }
    }
}

const HOP_BY_HOP: u8 = 0;

/// Returns the version of IP that the bytes state.
#[inline(always)]
fn version(bytes: &[u8]) -> Option<u8> {
    bytes.first().map(|byte| byte >> 4)
}

/// Skips the extension headers. Returns the remaining bytes and their protocol, or `None` for a fragment.
#[inline]
fn skip_extensions(mut next: u8, mut rest: &[u8], ip_proto: u8) -> (&[u8], Result<Option<u8>, ParseError>) {
    loop {
        let mut fragment = false;
        let header = match next {
            // The configured number always means UET, even if it is assigned to another protocol.
            _ if next == ip_proto => return (rest, Ok(Some(next))),
            // Routing, destination options, mobility, HIP, shim6.
            HOP_BY_HOP | 43 | 60 | 135 | 139 | 140 => extension(rest, 8),
            // The length field of the authentication header counts words of 4 bytes.
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
            let error = length_exceeds_input(Ipv6Extension::LAYOUT, "ip.ext.length", length, rest.len());
            return (rest, Err(error));
        };
        (next, rest) = (proto, after);
        if fragment {
            return (rest, Ok(None));
        }
    }
}

/// Returns the next header and the length of the extension header at the start of `bytes`.
#[inline]
fn extension(bytes: &[u8], unit: usize) -> Result<(u8, usize), ParseError> {
    let (header, _) = Ipv6Extension::parse(bytes)?;
    Ok((header.next_header(), usize::from(header.length()) * unit + 8))
}

/// Returns the bytes of `all` before its tail `rest`.
#[inline]
fn before<'a>(all: &'a [u8], rest: &[u8]) -> &'a [u8] {
    all.len().checked_sub(rest.len()).and_then(|length| all.get(..length)).unwrap_or(all)
}

/// Returns the number of bytes that a header lacks. Missing bytes explain no other error, so it returns the maximum
/// there.
fn missing(cut: ParseError) -> usize {
    match cut.problem {
        Problem::Truncated { present } => cut.header.bytes.saturating_sub(present),
        Problem::LengthExceedsInput { value, present, .. } => value.saturating_sub(present),
        Problem::InvalidValue { .. } => usize::MAX,
    }
}

/// Out of line. Otherwise callers would keep the arguments in registers for every packet.
#[cold]
#[inline(never)]
fn short<'a>(header: &'static Layout, rest: &'a [u8]) -> Stop<'a> {
    Stop { error: ParseError::short(header, rest), rest }
}

#[cold]
const fn invalid_value<'a>(
    header: &'static Layout,
    field: &'static str,
    value: usize,
    needed: usize,
    rest: &'a [u8],
) -> Stop<'a> {
    Stop { error: ParseError::new(header, Problem::InvalidValue { field, value, needed }), rest }
}

#[cold]
const fn length_exceeds_input(
    header: &'static Layout,
    field: &'static str,
    value: usize,
    present: usize,
) -> ParseError {
    ParseError::new(header, Problem::LengthExceedsInput { field, value, present })
}
