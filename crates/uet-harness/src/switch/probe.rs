//! The frames of the suite: UET packets that carry a number in the field of their PSN, which no trim cuts.

use core::net::IpAddr;
use uet_emulator::frame::Mac;
use uet_wire::outer::{Ethernet, Ip, Ipv4, Ipv6, Udp};
use uet_wire::pds::{Ack, Control, Nack, Pds, Request};
use uet_wire::registry::{CtlType, NackCode, Opcode};
use uet_wire::ses::{ResponseData, Std};
use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, Start, WriteError};

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeKind {
    /// A request of the trimmable class.
    Data,
    /// A request of a class that is not trimmed.
    Untrimmable,
    /// An ACK with the data of a read.
    Ack,
    /// A NACK.
    Nack,
    /// A control packet.
    Control,
}

impl ProbeKind {
    /// Returns its name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ProbeKind::Data => "data",
            ProbeKind::Untrimmable => "data of a class that is not trimmed",
            ProbeKind::Ack => "an ACK",
            ProbeKind::Nack => "a NACK",
            ProbeKind::Control => "a control packet",
        }
    }

    /// Returns whether it has the high priority of ACKs, NACKs and control packets.
    pub(super) const fn is_control(self) -> bool {
        matches!(self, ProbeKind::Ack | ProbeKind::Nack | ProbeKind::Control)
    }
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// The port that sends it.
    pub(super) from: usize,
    /// Its destination.
    pub(super) to: IpAddr,
    /// Its kind.
    pub(super) kind: ProbeKind,
    /// DSCP.
    pub(super) dscp: u8,
    /// ECN field.
    pub(super) ecn: u8,
    /// Entropy value.
    pub(super) entropy: u16,
    /// Length of the IP packet; shorter headers or longer ones decide it.
    pub(super) length: u16,
}

/// The context of all probes. Endpoints of the model choose small numbers.
const CONTEXT: PdcId = PdcId(0xfe57);

/// Length of an Ethernet header without tags.
pub(super) const ETHERNET: usize = Ethernet::LAYOUT.bytes;

/// The TTL of all probes.
pub(super) const TTL: u8 = 64;

impl Probe {
    /// Builds the frame of this number.
    pub(super) fn frame(
        &self,
        number: u32,
        src: IpAddr,
        [from, to]: [Mac; 2],
    ) -> Result<Vec<u8>, WriteError> {
        let psn = Psn(number);
        let peer = PdcId(0x4001);
        let outer = ip_header(src) + Udp::LAYOUT.bytes;
        let room = |headers: usize| usize::from(self.length).saturating_sub(outer + headers);
        // Different bytes in each packet and at each place.
        let payload: Vec<u8> = (0..self.length).map(|at| (at ^ at >> 8) as u8 ^ number as u8).collect();
        let payload = |headers: usize| payload.get(..room(headers)).unwrap_or_default();
        let frame = match self.kind {
            ProbeKind::Data | ProbeKind::Untrimmable => {
                let payload = payload(Request::LAYOUT.bytes + Std::LAYOUT.bytes);
                let request = Request::rud().psn(psn).spdcid(CONTEXT).dpdcid(peer).done()?;
                let write = Std::build(Opcode::UET_WRITE)
                    .head(|head| head.som(true).eom(true))
                    .message_id(1)
                    .request_length(payload.len() as u32)
                    .done()?;
                FrameBuilder::new(request).ses(write).payload(payload)
            }
            ProbeKind::Ack => {
                let payload = payload(Ack::LAYOUT.bytes + ResponseData::LAYOUT.bytes);
                let ack = Ack::build().cack_psn(psn).spdcid(CONTEXT).dpdcid(peer).done()?;
                let data = ResponseData::build().payload_length(payload.len().min(0x3fff) as u16).done()?;
                FrameBuilder::new(ack).ses(data).payload(payload)
            }
            ProbeKind::Nack => FrameBuilder::new(
                Nack::build(NackCode::TRIMMED).nack_psn(psn).spdcid(CONTEXT).dpdcid(peer).done()?,
            ),
            ProbeKind::Control => {
                FrameBuilder::new(Control::build(CtlType::NOOP).psn(psn).spdcid(CONTEXT).dpdcid(peer).done()?)
            }
        };
        let frame = frame.udp(self.entropy).ip(src, self.to);
        let frame =
            frame.dscp(self.dscp).ecn(self.ecn).ttl(TTL).ethernet(from, to).pad_to(FrameBuilder::SHORTEST);
        let mut bytes = vec![0; frame.len()];
        frame.emit(&mut bytes)?;
        Ok(bytes)
    }
}

/// Returns the length of an IP header without options.
const fn ip_header(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => Ipv4::LAYOUT.bytes,
        IpAddr::V6(_) => Ipv6::LAYOUT.bytes,
    }
}

/// A UET frame as the judge needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers<'a> {
    /// The IP header.
    pub(super) ip: Ip<'a>,
    /// The PSN: in a probe, its number.
    pub(super) psn: Psn,
    /// The request, unless it is an ACK, a NACK or a control packet.
    pub(super) request: Option<Request>,
    /// True if it is a probe.
    pub(super) is_probe: bool,
    /// The bytes from the IP header to the end of the frame.
    pub(super) packet: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Reads a frame, whatever its lengths say; `None` if it is not UET with a PSN.
    pub(super) fn read(frame: &'a [u8]) -> Option<Self> {
        let options = Options::default();
        let dscp = Packet::parse_lax(Start::Eth, frame, &options).0.ip?.dscp();
        // Of a packet that may be trimmed, the lengths say nothing.
        let packet = Packet::parse_lax(Start::Eth, frame, &options.trimmed_dscp(Some(dscp))).0;
        let pds = packet.uet.pds?;
        let request = pds.request();
        let (psn, context) = match (request, pds.ack(), pds.nack(), pds) {
            (Some(request), ..) => (request.psn(), request.spdcid()),
            (_, Some(ack), ..) => (ack.cack_psn(), ack.spdcid()),
            (_, _, Some(nack), _) => (nack.nack_psn()?, nack.spdcid()),
            (.., Pds::Control(control)) => (control.psn(), control.spdcid()),
            _ => return None,
        };
        let start = packet.offsets().ip?;
        let is_probe = context == CONTEXT;
        Some(Headers { ip: packet.ip?, psn, request, is_probe, packet: frame.get(start..)? })
    }

    /// Returns the length of the IP header with its options.
    pub(super) fn ip_header(&self) -> usize {
        self.ip.bytes().len() + self.ip.extra().len()
    }

    /// Returns the length that the IP header states.
    pub(super) fn stated_length(&self) -> usize {
        match self.ip {
            Ip::V4 { header, .. } => header.total_length().into(),
            Ip::V6 { header, .. } => usize::from(header.payload_length()) + header.bytes().len(),
        }
    }

    /// Returns the TTL or the hop limit.
    pub(super) fn ttl(&self) -> u8 {
        match self.ip {
            Ip::V4 { header, .. } => header.ttl(),
            Ip::V6 { header, .. } => header.hop_limit(),
        }
    }

    /// Returns whether the checksum of the IP header is right; IPv6 has none.
    pub(super) fn has_right_checksum(&self) -> bool {
        match self.ip {
            Ip::V4 { header, options } => header.checksum() == header.computed_checksum(options),
            Ip::V6 { .. } => true,
        }
    }
}

/// Sets the TTL of a frame and corrects its checksum, as a router does.
pub(super) fn set_ttl(frame: &mut [u8], ttl: u8) {
    let Some(place) = frame.get_mut(ETHERNET..) else { return };
    match place.first().map(|first| first >> 4) {
        Some(4) => {
            let edited = Ipv4::parse(place).ok().and_then(|(header, options)| {
                let header = header.edit().ttl(ttl).done().ok()?;
                let options = options.get(..usize::from(header.ihl()).saturating_sub(5) * 4)?;
                let checksum = header.computed_checksum(options);
                header.edit().checksum(checksum).done().ok()
            });
            if let Some(header) = edited {
                let _ = header.emit(place);
            }
        }
        Some(6) => {
            let _ = Ipv6::parse_mut(place).map(|(header, _)| header.hop_limit(ttl).done().map(drop));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_read_back_whole_and_cut() {
        let kinds =
            [ProbeKind::Data, ProbeKind::Untrimmable, ProbeKind::Ack, ProbeKind::Nack, ProbeKind::Control];
        for (src, to) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (src, to): (IpAddr, IpAddr) = (src.parse().unwrap(), to.parse().unwrap());
            for kind in kinds {
                let probe = Probe { from: 0, to, kind, dscp: 10, ecn: 2, entropy: 7, length: 1500 };
                let mut frame = probe.frame(77, src, [[2; 6], [4; 6]]).unwrap();
                for length in [frame.len(), ETHERNET + ip_header(src) + uet_wire::Trimmed::MIN_SIZE] {
                    let seen = Headers::read(&frame[..length]).unwrap();
                    assert!(seen.is_probe && seen.psn == Psn(77) && seen.ttl() == TTL, "{kind:?} {length}");
                }
                set_ttl(&mut frame, 9);
                let seen = Headers::read(&frame).unwrap();
                assert!(seen.ttl() == 9 && seen.has_right_checksum());
            }
        }
        assert!(Headers::read(&[0; 60]).is_none());
    }
}
