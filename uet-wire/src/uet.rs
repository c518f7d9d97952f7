//! A packet that starts with UET.

use crate::ParseError;
use crate::layout::Layout;
use crate::pds::{Pds, Prologue};
use crate::registry::{NextHdr, PdsType};
use crate::ses::{Ext, Ses};
use crate::tss::Tss;

/// A packet that starts with UET, as views over the caller's bytes.
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
    /// The security header of a secured packet. The bytes after it are encrypted and count as payload, unless they have
    /// been decrypted ([`Options::opened`](crate::Options::opened)).
    pub tss: Option<Tss<'a>>,
    /// The packet delivery header. For a packet of unknown type, the prologue.
    pub pds: Option<Pds<'a>>,
    /// The semantic header, if `pds.next_hdr` announces a known one.
    pub ses: Option<Ses<'a>>,
    /// The extension of the request, if its opcode has one.
    pub ext: Option<Ext<'a>>,
    /// The bytes after the headers.
    pub payload: &'a [u8],
}

impl<'a> Uet<'a> {
    /// Parses a complete packet. A trailer counts as payload here; use [`Packet`](crate::Packet) for packets with a
    /// trailer.
    #[inline(always)]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut packet = Uet::default();
        match packet.read(bytes) {
            Ok(()) => Ok(packet),
            Err(cut) => Err(cut.error(bytes)),
        }
    }

    /// Parses as much of a packet as possible. Returns the layers before the cut, with the error that
    /// [`parse`](Uet::parse) would return.
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
        (packet, cut.map(|cut| cut.error(bytes)))
    }

    /// Parses the headers in order. Stops at the first header that is cut off.
    #[inline(always)]
    pub(crate) fn read(&mut self, bytes: &'a [u8]) -> Result<(), Cut> {
        let cut = |rest: &[u8]| {
            let start = bytes.len() - rest.len();
            move |header| Cut { header, start }
        };
        let (prologue, after) =
            Prologue::split(bytes).map_err(|_| Cut { header: cut_in_prologue(bytes), start: 0 })?;
        let (next, kind) = (prologue.next_hdr(), prologue.kind());
        let (pds, rest) = match Pds::split_as(kind, bytes) {
            Some(known) => known.map_err(cut(bytes))?,
            None if kind == PdsType::TSS => {
                let (tss, rest) = Tss::split(bytes).map_err(cut(bytes))?;
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
        let Some(ses) = Ses::split_as(next, rest) else { return Ok(()) };
        self.payload = &[];
        let (ses, after) = ses.map_err(cut(rest))?;
        self.ses = Some(ses);
        let Some(ext) = Ext::split_after(&ses, after) else {
            self.payload = after;
            return Ok(());
        };
        let (ext, payload) = ext.map_err(cut(after))?;
        self.ext = Some(ext);
        self.payload = payload;
        Ok(())
    }

    /// Parses the headers after the security header of a packet that has been decrypted in place. Another security
    /// header there is no packet, and stays payload. Out of line and by value: few packets are opened, and the others
    /// stay in registers.
    #[cold]
    #[inline(never)]
    pub(crate) fn read_opened(tss: Tss<'a>, opened: &'a [u8]) -> (Self, Result<(), Cut>) {
        let mut inner = Uet::default();
        let read = inner.read(opened);
        let read = read.map_err(|cut| Cut { start: cut.start.saturating_add(tss.bytes().len()), ..cut });
        match inner.tss {
            None => (Uet { tss: Some(tss), ..inner }, read),
            Some(_) => (Uet { tss: Some(tss), payload: opened, ..Uet::default() }, read),
        }
    }

    /// Returns the bytes of the headers and of the payload, in wire order.
    pub fn parts(&self) -> [&'a [u8]; 5] {
        [
            self.tss.map_or(&[], |header| header.bytes()),
            self.pds.map_or(&[], |header| header.bytes()),
            self.ses.map_or(&[], |header| header.bytes()),
            self.ext.map_or(&[], |header| header.bytes()),
            self.payload,
        ]
    }

    /// Returns the headers with their layouts, in wire order.
    pub(crate) fn headers(&self) -> [Option<(&'static Layout, &'a [u8])>; 4] {
        [0, 1, 2, 3].map(|index| self.header(index))
    }

    /// Returns the header with this index in [`headers`](Self::headers).
    pub(crate) fn header(&self, index: usize) -> Option<(&'static Layout, &'a [u8])> {
        match index {
            0 => self.tss.map(|header| (header.layout(), header.bytes())),
            1 => self.pds.map(|header| (header.layout(), header.bytes())),
            2 => self.ses.map(|header| (header.layout(), header.bytes())),
            3 => self.ext.map(|header| (header.layout(), header.bytes())),
            _ => None,
        }
    }

    /// Returns the length of the packet in bytes, without trailer.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Returns true if the packet has neither headers nor payload.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the packet to the start of `buffer`, reserved bits included, and returns its length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, crate::WriteError> {
        let mut offset = 0;
        for part in self.parts() {
            offset = crate::frame::append(buffer, offset, part, crate::layout::Layer::Pds)?;
        }
        Ok(offset)
    }
}

/// The point at which parsing stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The header that is cut off.
    pub(crate) header: &'static Layout,
    /// The offset of that header.
    pub(crate) start: usize,
}

impl Cut {
    #[cold]
    fn error(self, bytes: &[u8]) -> ParseError {
        ParseError::short(self.header, bytes.get(self.start..).unwrap_or(&[])).moved(self.start)
    }
}

/// Returns the layout of a header that is cut off within its prologue. The first byte decides.
#[cold]
fn cut_in_prologue(bytes: &[u8]) -> &'static Layout {
    let kind = Prologue::from_bytes([bytes.first().copied().unwrap_or(0), 0]).kind();
    let header = match kind {
        PdsType::TSS => Tss::split(bytes).err(),
        _ => Pds::split_as(kind, bytes).and_then(Result::err),
    };
    header.unwrap_or(Prologue::LAYOUT)
}
