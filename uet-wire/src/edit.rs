//! Edits packets in the caller's buffer, for switches and for senders that retransmit.

use crate::outer::{Entropy, Ip, Ipv4, Ipv4Mut, Ipv6, Ipv6Mut, Udp};
use crate::packet::{Content, Offsets};
use crate::pds::{Pds, Request};
use crate::trailer::TrailerKind;
use crate::{Options, Packet, ParseError, Psn, Start, WriteError};

/// A packet in the caller's buffer that can be edited. A failed edit leaves every byte unchanged.
///
/// The edits of a switch ([`mark_ce`](Self::mark_ce), [`set_ecn`](Self::set_ecn), [`set_dscp`](Self::set_dscp),
/// [`trim`](Self::trim)) update the IPv4 checksum; the CRC does not cover them. The edits of a sender
/// ([`retransmit`](Self::retransmit), [`set_entropy`](Self::set_entropy)) clear the UDP checksum. They also update the
/// CRC if the options configure one. For other edits, see [`bytes_mut`](Self::bytes_mut).
///
/// ```
/// use uet_wire::pds::Request;
/// use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start};
///
/// let request = Request::rud().psn(Psn(7)).done()?;
/// let frame = FrameBuilder::new(request).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).ecn(1);
/// let mut bytes = [0; 40];
/// frame.emit(&mut bytes)?;
///
/// let options = Options::default();
/// let mut packet = PacketMut::new(Start::Ip, &mut bytes, &options)?;
/// packet.mark_ce()?;
/// packet.retransmit(Psn(5))?;
///
/// let packet = Packet::parse(Start::Ip, &bytes, &options)?;
/// assert_eq!(packet.ip.unwrap().ecn(), 3);
/// let request = packet.uet.pds.unwrap().request().unwrap();
/// assert!(request.retx());
/// assert_eq!(request.clear_psn(), Psn(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PacketMut<'b> {
    bytes: &'b mut [u8],
    offsets: Offsets,
    /// The end of the IP header, including options and extension headers.
    ip_end: usize,
    network: Option<IpVersion>,
    entropy: Option<Carrier>,
    is_request: bool,
    trailer: TrailerKind,
}

#[derive(Clone, Copy, Debug)]
enum IpVersion {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug)]
enum Carrier {
    Udp,
    Entropy,
}

/// The reason for a failed edit. The packet is unchanged.
///
/// ```
/// use uet_wire::{EditError, FrameBuilder, Options, PacketMut, Psn, Start, pds::Ack};
///
/// let mut bytes = [0; 40];
/// FrameBuilder::new(Ack::build().done()?).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).emit(&mut bytes)?;
///
/// let mut packet = PacketMut::new(Start::Ip, &mut bytes, &Options::default())?;
/// let error = packet.retransmit(Psn(5)).unwrap_err();
/// let reason = match error {
///     EditError::Unfit { field, needs, .. } => format!("{field} is in {needs}"),
///     EditError::Parse(error) => format!("malformed at byte {}", error.offset()),
///     EditError::Write(error) => format!("does not fit: {error}"),
///     _ => error.to_string(),
/// };
/// assert_eq!(reason, "pds.flags.retx is in a RUD or ROD request");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EditError {
    /// The packet is malformed.
    Parse(ParseError),
    /// A value does not fit its field.
    Write(WriteError),
    /// This type of packet does not allow the edit.
    #[non_exhaustive]
    Unfit {
        /// The field to be edited.
        field: &'static str,
        /// The type of packet that allows the edit.
        needs: &'static str,
    },
}

impl EditError {
    /// Returns the field at fault; `None` if the buffer is too short.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            EditError::Parse(error) => Some(error.field()),
            EditError::Write(error) => error.field(),
            EditError::Unfit { field, .. } => Some(field),
        }
    }
}

impl From<ParseError> for EditError {
    fn from(error: ParseError) -> Self {
        EditError::Parse(error)
    }
}

impl From<WriteError> for EditError {
    fn from(error: WriteError) -> Self {
        EditError::Write(error)
    }
}

impl core::fmt::Display for EditError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EditError::Parse(error) => error.fmt(f),
            EditError::Write(error) => error.fmt(f),
            EditError::Unfit { field, needs } => write!(f, "field `{field}` can be changed only in {needs}"),
        }
    }
}

impl core::error::Error for EditError {}

type Edit<T = ()> = Result<T, EditError>;

const NO_IP: &str = "a packet with an IP header";

impl<'b> PacketMut<'b> {
    /// Parses the packet in `bytes`. A switch may have trimmed the packet, but `bytes` must hold all that it sent.
    ///
    /// # Errors
    ///
    /// Fails if the packet is malformed, or if a capture cut it off: [`Packet::parse_sliced`] only reads such a packet.
    pub fn new(start: Start, bytes: &'b mut [u8], options: &Options) -> Result<Self, ParseError> {
        let packet = Packet::parse(start, bytes, options)?;
        let offsets = packet.offsets();
        let ip_length = packet.ip.map_or(0, |ip| ip.bytes().len().saturating_add(ip.extra().len()));
        let ip_end = offsets.ip.unwrap_or(0).saturating_add(ip_length);
        let network = packet.ip.map(|ip| match ip {
            Ip::V4 { .. } => IpVersion::V4,
            Ip::V6 { .. } => IpVersion::V6,
        });
        let is_uet = packet.content == Content::Uet;
        let entropy = match (packet.udp, packet.entropy) {
            (Some(_), _) if is_uet => Some(Carrier::Udp),
            (_, Some(_)) => Some(Carrier::Entropy),
            _ => None,
        };
        let is_request = matches!(packet.uet.pds, Some(Pds::Request(_) | Pds::RequestCc(_)));
        let whole = packet.trailer.len() == options.trailer.len();
        let trailer = if whole { options.trailer } else { TrailerKind::None };
        Ok(PacketMut { bytes, offsets, ip_end, network, entropy, is_request, trailer })
    }

    /// Returns the bytes of the packet.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Returns the bytes of the packet for other edits, such as those of a header's `parse_mut`. Checksums and the CRC
    /// do not follow: see [`refresh_crc`](Self::refresh_crc). Keep all lengths and types, on which the offsets depend.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Returns the offsets of the packet's parts.
    pub fn offsets(&self) -> Offsets {
        self.offsets
    }

    /// Marks congestion (ECN 3), as a switch does. Fails unless the packet is ECN-capable.
    pub fn mark_ce(&mut self) -> Edit {
        match self.ecn() {
            None => Err(EditError::Unfit { field: "ip.ecn", needs: NO_IP }),
            Some(0) => Err(EditError::Unfit { field: "ip.ecn", needs: "a packet that is ECN capable" }),
            Some(_) => self.set_ecn(3),
        }
    }

    fn ecn(&self) -> Option<u8> {
        let bytes = self.bytes.get(self.offsets.ip?..)?;
        match self.network? {
            IpVersion::V4 => Ipv4::parse(bytes).ok().map(|(header, _)| header.ecn()),
            IpVersion::V6 => Ipv6::parse(bytes).ok().map(|(header, _)| header.ecn()),
        }
    }

    /// Sets the ECN field, 0 to 3.
    pub fn set_ecn(&mut self, ecn: u8) -> Edit {
        self.edit_ip("ip.ecn", |v4| v4.ecn(ecn), |v6| v6.ecn(ecn))
    }

    /// Sets the DSCP, 0 to 63.
    pub fn set_dscp(&mut self, dscp: u8) -> Edit {
        self.edit_ip("ip.dscp", |v4| v4.dscp(dscp), |v6| v6.dscp(dscp))
    }

    /// Edits the IP header of either version and updates the IPv4 checksum.
    fn edit_ip(
        &mut self,
        field: &'static str,
        v4: impl FnOnce(Ipv4Mut) -> Ipv4Mut,
        v6: impl FnOnce(Ipv6Mut) -> Ipv6Mut,
    ) -> Edit {
        let ip = self.offsets.ip.unwrap_or(self.ip_end);
        let place = self.bytes.get_mut(ip..self.ip_end).unwrap_or(&mut []);
        match self.network {
            None => return Err(EditError::Unfit { field, needs: NO_IP }),
            Some(IpVersion::V4) => {
                let (header, options) = Ipv4::parse(place)?;
                let header = v4(header.edit()).done()?;
                let checksum = header.computed_checksum(options);
                header.edit().checksum(checksum).done()?.emit(place)?;
            }
            Some(IpVersion::V6) => {
                let (header, _) = Ipv6::parse(place)?;
                v6(header.edit()).done()?.emit(place)?;
            }
        }
        Ok(())
    }

    /// Trims the packet as a switch does and returns the length of the remaining frame, without padding.
    ///
    /// Keeps `keep` bytes after the IP header and its options, but never fewer than 24. Removes the trailer first.
    /// Updates the IP length but not the UDP length. Sets the traffic class to `dscp`.
    ///
    /// ```
    /// use uet_wire::pds::RequestCc;
    /// use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start};
    ///
    /// let request = RequestCc::rud().request(|r| r.psn(Psn(7))).done()?;
    /// let mut bytes = [0; 1024];
    /// let frame = FrameBuilder::new(request).payload(&[0; 500]).udp(1).ipv4([10, 0, 0, 1], [10, 0, 1, 12]);
    /// let length = frame.emit(&mut bytes)?;
    ///
    /// let options = Options::default().trimmed_dscp(Some(5));
    /// let length = PacketMut::new(Start::Ip, &mut bytes[..length], &options)?.trim(24, 5)?;
    /// assert_eq!(length, 20 + 24);
    /// let packet = Packet::parse(Start::Ip, &bytes[..length], &options)?;
    /// assert_eq!(packet.trimmed.unwrap().missing, Some(500));
    /// assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(mut self, keep: usize, dscp: u8) -> Edit<usize> {
        let end = self.trimmed_end(keep)?;
        // The old lengths fit into 16 bits, so the smaller new ones do.
        let total = end.saturating_sub(self.offsets.ip.unwrap_or(end));
        let payload = total.saturating_sub(Ipv6::LAYOUT.bytes);
        self.edit_ip(
            "ip.dscp",
            |v4| v4.dscp(dscp).total_length(total as u16),
            |v6| v6.dscp(dscp).payload_length(payload as u16),
        )?;
        Ok(end)
    }

    /// Trims the packet like [`trim`](Self::trim), as a switch does that updates neither the IP length nor the IPv4
    /// checksum.
    pub fn trim_stale(self, keep: usize, dscp: u8) -> Edit<usize> {
        let end = self.trimmed_end(keep)?;
        let place = self.offsets.ip.and_then(|ip| self.bytes.get_mut(ip..)).unwrap_or(&mut []);
        match self.network {
            Some(IpVersion::V6) => Ipv6::parse_mut(place)?.0.dscp(dscp).done().map(drop)?,
            _ => Ipv4::parse_mut(place)?.0.dscp(dscp).done().map(drop)?,
        }
        Ok(end)
    }

    /// Returns the end of the packet after trimming.
    fn trimmed_end(&self, keep: usize) -> Edit<usize> {
        if self.entropy.is_none() || self.network.is_none() {
            return Err(EditError::Unfit { field: "ip.dscp", needs: "a UET packet with an IP header" });
        }
        Ok(self.ip_end.saturating_add(keep.max(24)).min(self.offsets.trailer))
    }

    /// Marks the RUD or ROD request as a retransmission: sets `retx`, and computes `clear_psn_offset` from `clear_psn`.
    pub fn retransmit(&mut self, clear_psn: Psn) -> Edit {
        if !self.is_request {
            return Err(EditError::Unfit { field: "pds.flags.retx", needs: "a RUD or ROD request" });
        }
        self.may_touch()?;
        let place = self.offsets.pds.and_then(|pds| self.bytes.get_mut(pds..)).unwrap_or(&mut []);
        let (request, _) = Request::parse(place)?;
        let request = request.edit().retx(true).clear_psn(clear_psn).done()?;
        request.emit(place)?;
        self.touched()
    }

    /// Sets the entropy value in UDP or the entropy header to move the packet to another path.
    pub fn set_entropy(&mut self, entropy: u16) -> Edit {
        self.may_touch()?;
        let place = self.offsets.transport.and_then(|at| self.bytes.get_mut(at..)).unwrap_or(&mut []);
        match self.entropy {
            None => {
                return Err(EditError::Unfit { field: "pds.entropy", needs: "a UET packet in UDP or IP" });
            }
            Some(Carrier::Udp) => {
                Udp::parse_mut(place)?.0.src_port(entropy).done()?;
            }
            Some(Carrier::Entropy) => {
                Entropy::parse_mut(place)?.0.entropy(entropy).done()?;
            }
        }
        self.touched()
    }

    /// Recomputes the CRC trailer after an edit of bytes that it covers. The edits of this type do that by themselves.
    ///
    /// Needs the feature `crc`, which is on by default.
    ///
    /// Fails if the packet is not whole, has no IP header, or if the options configure no CRC.
    ///
    /// ```
    /// use uet_wire::pds::Request;
    /// use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start, TrailerKind};
    ///
    /// let request = Request::rud().psn(Psn(7)).done()?;
    /// let mut bytes = [0; 44];
    /// FrameBuilder::new(request).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).crc().emit(&mut bytes)?;
    ///
    /// let options = Options::default().trailer(TrailerKind::Crc);
    /// let mut packet = PacketMut::new(Start::Ip, &mut bytes, &options)?;
    /// let pds = packet.offsets().pds.unwrap();
    /// Request::parse_mut(&mut packet.bytes_mut()[pds..])?.0.psn(Psn(8)).done()?;
    /// packet.refresh_crc()?;
    ///
    /// let packet = Packet::parse(Start::Ip, &bytes, &options)?;
    /// assert!(packet.crc_check().unwrap().ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "crc")]
    pub fn refresh_crc(&mut self) -> Edit {
        match self.offsets.ip {
            Some(ip) if self.trailer == TrailerKind::Crc => {
                crate::crc::append(self.bytes, ip, self.offsets.trailer)?;
                Ok(())
            }
            _ => {
                let needs = "a whole packet with an IP header and a CRC trailer";
                Err(EditError::Unfit { field: "crc", needs })
            }
        }
    }

    /// Checks that a configured CRC can be updated after an edit.
    fn may_touch(&self) -> Edit {
        if self.trailer != TrailerKind::Crc {
            Ok(())
        } else if self.network.is_none() {
            Err(EditError::Unfit { field: "crc", needs: NO_IP })
        } else if cfg!(feature = "crc") {
            Ok(())
        } else {
            Err(EditError::Unfit { field: "crc", needs: "a build with the feature `crc`" })
        }
    }

    /// Updates the checksums after an edit beyond the IP header.
    fn touched(&mut self) -> Edit {
        if let Some(Carrier::Udp) = self.entropy {
            let place = self.offsets.transport.and_then(|at| self.bytes.get_mut(at..)).unwrap_or(&mut []);
            Udp::parse_mut(place)?.0.checksum(0).done()?;
        }
        #[cfg(feature = "crc")]
        if self.trailer == TrailerKind::Crc {
            self.refresh_crc()?;
        }
        Ok(())
    }
}
