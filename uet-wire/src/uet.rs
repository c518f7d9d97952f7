//! A packet from where UET starts.

use crate::ParseError;
use crate::pds::{ControlPrologue, Pds, Prologue};
use crate::registry::{NextHdr, PdsType};
use crate::ses::{Ext, Ses};
use crate::tss::{Tss, TssHead};

/// A packet from where UET starts, as views over the caller's bytes.
///
/// ```
/// use uet_wire::pds::Pds;
/// use uet_wire::registry::ReturnCode;
/// use uet_wire::ses::Ses;
/// use uet_wire::{Psn, Uet};
///
/// let bytes = [
///     0x3a, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, // ACK
///     0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x65, 0x00, 0x00, 0x40, 0x00, // RESPONSE
/// ];
/// let packet = Uet::parse(&bytes)?;
/// let (Some(Pds::Ack(ack)), Some(Ses::Response(response))) = (packet.pds, packet.ses) else { panic!() };
/// assert_eq!(ack.cack_psn(), Psn(0x12003));
/// assert_eq!(response.head().return_code(), ReturnCode::OK);
/// assert!(packet.payload.is_empty());
/// # Ok::<(), uet_wire::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uet<'a> {
    /// The security header of a secured packet. The rest of such a packet is encrypted: it is all payload.
    pub tss: Option<Tss<'a>>,
    /// The packet delivery header. Of a packet whose type is not known, the prologue.
    pub pds: Option<Pds<'a>>,
    /// The semantic header, when `pds.next_hdr` announces one that is known.
    pub ses: Option<Ses<'a>>,
    /// The extension of the request, when its opcode has one.
    pub ext: Option<Ext<'a>>,
    /// What follows.
    pub payload: &'a [u8],
}

/// The error for a packet of less than two bytes: the first tells the type, and so what is cut.
#[cold]
fn cut_prologue(bytes: &[u8]) -> ParseError {
    let header = match bytes.first().and_then(|byte| PdsType::new(byte >> 3)) {
        Some(PdsType::TSS) => TssHead::LAYOUT,
        Some(PdsType::CP) => ControlPrologue::LAYOUT,
        _ => Prologue::LAYOUT,
    };
    ParseError::short(header, bytes)
}

impl<'a> Uet<'a> {
    /// Reads a packet that must be whole; a trailer is not told from payload here, see
    /// [`Packet`](crate::Packet).
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut packet = Uet::default();
        match packet.read(bytes) {
            Ok(()) => Ok(packet),
            Err(error) => Err(error),
        }
    }

    /// Reads as much of a packet as there is: the layers before the cut, and what is cut.
    ///
    /// ```
    /// use uet_wire::Uet;
    ///
    /// // A request trimmed by a switch inside its SES header.
    /// let bytes = [0x11, 0x80, 0, 0, 0, 0, 0, 7, 0x40, 1, 0x80, 1, 0x01, 0x03, 0x00];
    /// let (packet, cut) = Uet::parse_lax(&bytes);
    /// assert_eq!(packet.pds.unwrap().request().unwrap().psn(), uet_wire::Psn(7));
    /// assert_eq!(cut.unwrap().field(), "ses.message_id");
    /// ```
    pub fn parse_lax(bytes: &'a [u8]) -> (Self, Option<ParseError>) {
        let mut packet = Uet::default();
        let cut = packet.read(bytes).err();
        (packet, cut)
    }

    /// The one way through a packet. Stops at the first header that is cut.
    #[inline(always)]
    fn read(&mut self, bytes: &'a [u8]) -> Result<(), ParseError> {
        let at = |rest: &[u8]| bytes.len() - rest.len();

        let (prologue, after) = Prologue::parse(bytes).map_err(|_| cut_prologue(bytes))?;
        let (next, kind) = (prologue.next_hdr(), prologue.kind());
        let (pds, rest) = match Pds::parse_as(kind, bytes) {
            Some(known) => known?,
            None if kind == PdsType::TSS => {
                let (tss, rest) = Tss::parse(bytes)?;
                self.tss = Some(tss);
                self.payload = rest;
                return Ok(());
            }
            None => (Pds::Prologue(prologue), after),
        };
        self.pds = Some(pds);
        let next = match pds {
            Pds::Control(_) | Pds::Prologue(_) => NextHdr::UET_HDR_NONE,
            _ => next,
        };
        self.payload = rest;
        let Some(ses) = Ses::parse_as(next, rest) else { return Ok(()) };
        self.payload = &[];
        let (ses, after) = ses.map_err(|error| error.moved(at(rest)))?;
        self.ses = Some(ses);
        let Some(ext) = Ext::parse_after(&ses, after) else {
            self.payload = after;
            return Ok(());
        };
        let (ext, payload) = ext.map_err(|error| error.moved(at(after)))?;
        self.ext = Some(ext);
        self.payload = payload;
        Ok(())
    }

    /// The bytes of the headers and of the payload, in wire order.
    pub fn parts(&self) -> [&'a [u8]; 5] {
        [
            self.tss.map_or(&[], |header| header.bytes()),
            self.pds.map_or(&[], |header| header.bytes()),
            self.ses.map_or(&[], |header| header.bytes()),
            self.ext.map_or(&[], |header| header.bytes()),
            self.payload,
        ]
    }

    /// The length of the packet in bytes, without trailer.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the packet to the start of `buffer` as it is, reserved bits included, and gives its length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, crate::WriteError> {
        let mut offset = 0;
        for part in self.parts() {
            offset = crate::frame::append(buffer, offset, part, crate::layout::Layer::Pds)?;
        }
        Ok(offset)
    }
}
