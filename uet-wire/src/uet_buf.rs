//! An owned packet.

use crate::layout::Layout;
use crate::pds::{Pds, PdsBuf, Prologue};
#[cfg(any(feature = "arbitrary", feature = "proptest"))]
use crate::registry::Opcode;
use crate::registry::{AtomicOpcode, NextHdr, PdsType};
use crate::ses::{CompareSwap, Ext, ExtBuf, Ses, SesBuf};
use crate::tss::TssBuf;
use crate::{Uet, WriteError};
use alloc::vec::Vec;

/// The owned form of [`Uet`]: a packet from where UET starts, to keep, compare and change (feature `alloc`).
///
/// ```
/// use uet_wire::registry::Opcode;
/// use uet_wire::{Uet, UetBuf, pds::Request, ses::Small};
///
/// let mut packet = UetBuf::new(Request::rud().done()?);
/// packet.ses = Some(Small::build(Opcode::UET_WRITE).request_length(5).done()?.into());
/// packet.payload = b"hello".to_vec();
/// let packet = packet.consistent();
///
/// let bytes = packet.to_bytes();
/// assert_eq!(bytes[..2], [0x10, 0x80], "a request, followed by a small header");
/// assert_eq!(Uet::parse(&bytes)?.to_buf(), packet);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Any combination of parts can be emitted. Only a consistent packet parses to itself again, and
/// [`consistent`](UetBuf::consistent) makes the parts consistent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UetBuf {
    /// The security header.
    pub tss: Option<TssBuf>,
    /// The packet delivery header.
    pub pds: Option<PdsBuf>,
    /// The semantic header.
    pub ses: Option<SesBuf>,
    /// The extension of the request.
    pub ext: Option<ExtBuf>,
    /// The bytes after the headers.
    pub payload: Vec<u8>,
}

impl UetBuf {
    /// Creates a packet from a PDS header alone.
    pub fn new(pds: impl Into<PdsBuf>) -> Self {
        UetBuf { pds: Some(pds.into()), ..UetBuf::default() }
    }

    /// Returns a view of the packet.
    pub fn view(&self) -> Uet<'_> {
        Uet {
            tss: self.tss.as_ref().map(TssBuf::view),
            pds: self.pds.as_ref().map(PdsBuf::view),
            ses: self.ses.as_ref().map(SesBuf::view),
            ext: self.ext.as_ref().map(ExtBuf::view),
            payload: &self.payload,
        }
    }

    /// Writes the packet to the start of `buffer` without changes, reserved bits included, and returns its length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, WriteError> {
        self.view().emit(buffer)
    }

    /// Returns the bytes of the packet.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.view().parts().concat()
    }

    /// Makes the parts consistent. The outer part takes precedence. Contradictions are resolved as follows:
    ///
    /// - `tss.type`, `tss.sp` and `pds.type` match the header;
    /// - under a security header, or without any header, all bytes are payload;
    /// - a control packet, or one of unknown type, loses its SES header;
    /// - `pds.next_hdr` matches the SES header;
    /// - the extension matches the request's opcode. It keeps its bytes and is truncated or padded with zeros.
    pub fn consistent(mut self) -> Self {
        if self.tss.is_some() {
            let tss = self.tss.map(TssBuf::consistent);
            return UetBuf { tss, payload: self.payload, ..UetBuf::default() };
        }
        self.pds = self.pds.map(PdsBuf::consistent);
        match &mut self.pds {
            None | Some(PdsBuf::Control(_) | PdsBuf::Prologue(_)) => self.ses = None,
            Some(pds) => {
                let next = match &self.ses {
                    Some(ses) => ses.view().next_hdr(),
                    // A code point without a header may stay.
                    None if Ses::parse_as(pds.view().next_hdr(), &[]).is_none() => pds.view().next_hdr(),
                    None => NextHdr::UET_HDR_NONE,
                };
                set(pds.view().layout(), pds.bytes_mut(), "pds.next_hdr", next.code());
            }
        }
        self.ext = self.ses.and_then(|ses| {
            let mut bytes = self.ext.map_or(Vec::new(), |ext| ext.view().bytes().to_vec());
            bytes.resize(bytes.len() + CompareSwap::LAYOUT.bytes, 0);
            let (ext, _) = Ext::parse_after(&ses.view(), &bytes)?.ok()?;
            Some(ext.copied())
        });
        self
    }
}

impl TssBuf {
    /// Sets `tss.type` and `tss.sp` to match the header.
    pub fn consistent(mut self) -> Self {
        let (layout, long) = (self.view().layout(), matches!(self, TssBuf::TssLong(_)));
        set(layout, self.bytes_mut(), "tss.type", PdsType::TSS.code());
        set(layout, self.bytes_mut(), "tss.sp", long.into());
        self
    }
}

impl PdsBuf {
    /// Sets `pds.type` to match the header.
    pub fn consistent(mut self) -> Self {
        let layout = self.view().layout();
        let Ok((prologue, _)) = Prologue::parse(self.view().bytes()) else { return self };
        let kind = prologue.kind();
        let right = match Pds::TABLE.iter().find(|(kinds, _)| kinds.contains(&kind)) {
            Some((_, announced)) => *announced == layout,
            // A prologue alone represents all unknown types.
            None => kind != PdsType::TSS && layout == Prologue::LAYOUT,
        };
        let own = Pds::TABLE.iter().find(|(_, announced)| *announced == layout);
        if let (false, Some(([kind, ..], _))) = (right, own) {
            set(layout, self.bytes_mut(), "pds.type", kind.code());
        }
        self
    }
}

impl SesBuf {
    /// Returns the header unchanged: no field states its type.
    pub fn consistent(self) -> Self {
        self
    }
}

impl ExtBuf {
    /// Sets `ses.atomic_opcode` to one with or without operands, to match the extension.
    pub fn consistent(mut self) -> Self {
        let layout = self.view().layout();
        match self {
            ExtBuf::Atomic(ext) if ext.atomic_opcode().is_compare_and_swap() => {
                set(layout, self.bytes_mut(), "ses.atomic_opcode", AtomicOpcode::SUM.code());
            }
            ExtBuf::CompareSwap(ext) if !ext.atomic().atomic_opcode().is_compare_and_swap() => {
                set(layout, self.bytes_mut(), "ses.atomic_opcode", AtomicOpcode::CSWAP.code());
            }
            _ => {}
        }
        self
    }
}

/// Sets a field through the layout. Ignores a field that the header does not have.
fn set(layout: &'static Layout, header: &mut [u8], field: &str, value: u8) {
    if let Some(place) = layout.field(field) {
        place.write(header, value.into());
    }
}

#[cfg(any(feature = "arbitrary", feature = "proptest"))]
impl UetBuf {
    /// Combines parts that were generated separately. Extensions are rare among random opcodes, so a generated
    /// extension sets its opcode. `choice` selects the opcode.
    pub(crate) fn of_parts(
        tss: Option<TssBuf>,
        pds: PdsBuf,
        mut ses: Option<SesBuf>,
        ext: Option<ExtBuf>,
        choice: u8,
        payload: Vec<u8>,
    ) -> Self {
        if let (Some(ses @ (SesBuf::Std(_) | SesBuf::Medium(_) | SesBuf::Small(_))), Some(ext)) =
            (&mut ses, &ext)
        {
            let wanted = |opcode: &Opcode| match ext {
                ExtBuf::Rendezvous(_) => opcode.is_rendezvous(),
                ExtBuf::Atomic(_) | ExtBuf::CompareSwap(_) => opcode.is_atomic(),
            };
            let opcodes = (0..64).filter_map(Opcode::new).filter(wanted);
            if let Some(opcode) = opcodes.cycle().nth(choice.into()) {
                set(ses.view().layout(), ses.bytes_mut(), "ses.opcode", opcode.code());
            }
        }
        UetBuf { tss, pds: Some(pds), ses, ext, payload }.consistent()
    }
}

impl Uet<'_> {
    /// Returns the owned packet. For a single header, such as [`Pds`](crate::pds::Pds), `copied` does that.
    pub fn to_buf(&self) -> UetBuf {
        UetBuf {
            tss: self.tss.map(|header| header.copied()),
            pds: self.pds.map(|header| header.copied()),
            ses: self.ses.map(|header| header.copied()),
            ext: self.ext.map(|header| header.copied()),
            payload: self.payload.to_vec(),
        }
    }
}

impl From<Uet<'_>> for UetBuf {
    fn from(packet: Uet<'_>) -> Self {
        packet.to_buf()
    }
}
