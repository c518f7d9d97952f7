//! Errors: small, `Copy`, without allocation. Each names a field.

use crate::draw::listed;
use crate::layout::{Kind, Layer, Layout, Place, Row, Values};
use crate::registry::{NextHdr, PdsType};
use crate::validate::may_follow;
use core::fmt::{self, Debug, Display, Formatter};

/// The reason why a packet could not be parsed to its end.
///
/// ```
/// use uet_wire::ParseErrorKind;
/// use uet_wire::pds::Ack;
///
/// let error = Ack::parse(&[0x38, 0x00, 0xff, 0xfe, 0x00]).unwrap_err();
/// assert_eq!(error.kind(), ParseErrorKind::Truncated);
/// assert_eq!(error.field(), "pds.cack_psn");
/// assert_eq!((error.offset(), error.needed(), error.present()), (4, 8, 5));
/// assert_eq!(
///     error.to_string(),
///     "pds: `pds.cack_psn` at byte 4 is cut off: the header needs 8 bytes to include it, 5 are present"
/// );
/// ```
#[derive(Clone, Copy, PartialEq)]
pub struct ParseError {
    /// The header that the parser was reading.
    pub(crate) header: &'static Layout,
    /// The offset of that header, in bytes from the start of the input.
    pub(crate) start: usize,
    pub(crate) problem: Problem,
    /// The first bytes of the header, padded with 0 if the header is cut off. They decide which fields exist.
    lead: [u8; LEAD],
}

/// The first bytes that decide which fields exist. A test of the layouts checks this length.
const LEAD: usize = 16;

/// The first bytes of a header. They decide which fields exist.
#[inline(always)]
fn lead(header: &[u8]) -> [u8; LEAD] {
    let mut lead = [0; LEAD];
    for (kept, byte) in lead.iter_mut().zip(header) {
        *kept = *byte;
    }
    lead
}

/// The kind of a [`ParseError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// A header is cut off.
    Truncated,
    /// A field has an invalid value.
    InvalidValue,
    /// A length field exceeds the bytes present.
    LengthExceedsInput,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Problem {
    /// The header has only `present` bytes.
    Truncated { present: usize },
    /// `field` has `value` but must be at least `needed`. For a version, `needed` is exact.
    InvalidValue { field: &'static str, value: usize, needed: usize },
    /// `field` states `value` bytes, but only `present` are there.
    LengthExceedsInput { field: &'static str, value: usize, present: usize },
}

/// A header with the bytes after it, or the layout of a header that is cut off. The caller creates the [`ParseError`],
/// outside the hot path.
pub(crate) type Split<'a, T> = Result<(T, &'a [u8]), &'static Layout>;

impl ParseError {
    /// Creates the error for a header that has only `bytes`.
    #[cold]
    pub(crate) fn short(header: &'static Layout, bytes: &[u8]) -> Self {
        ParseError { lead: lead(bytes), ..Self::new(header, Problem::Truncated { present: bytes.len() }) }
    }

    /// Creates the error for a header at the start of the input.
    pub(crate) const fn new(header: &'static Layout, problem: Problem) -> Self {
        ParseError { header, start: 0, problem, lead: [0; LEAD] }
    }

    /// Moves the offset by `bytes`, for a caller whose input starts earlier than the parser's.
    #[inline]
    pub const fn moved(self, bytes: usize) -> Self {
        ParseError { start: self.start.saturating_add(bytes), ..self }
    }

    /// Returns the kind of the error.
    pub const fn kind(&self) -> ParseErrorKind {
        match self.problem {
            Problem::Truncated { .. } => ParseErrorKind::Truncated,
            Problem::InvalidValue { .. } => ParseErrorKind::InvalidValue,
            Problem::LengthExceedsInput { .. } => ParseErrorKind::LengthExceedsInput,
        }
    }

    /// Returns the layout of the header that the parser was reading.
    pub const fn header(&self) -> &'static Layout {
        self.header
    }

    /// Returns the offset of that header, in bytes from the start of the input.
    pub const fn header_offset(&self) -> usize {
        self.start
    }

    /// Returns the layer that the parser was reading.
    pub const fn layer(&self) -> Layer {
        self.header.layer
    }

    /// Returns the field at which parsing stopped: the first field that is cut off, or the invalid field. If only
    /// reserved bits are cut off, returns the name of the header.
    pub fn field(&self) -> &'static str {
        match self.problem {
            Problem::Truncated { .. } => self.place().0,
            Problem::InvalidValue { field, .. } | Problem::LengthExceedsInput { field, .. } => field,
        }
    }

    /// Returns the offset of that field, in bytes from the start of the input.
    pub fn offset(&self) -> usize {
        self.start.saturating_add(self.place().1 / 8)
    }

    /// Returns the number of bytes needed, counted from the start of the header to the end of the field. For a length
    /// field, returns the stated length. For an invalid value, returns the smallest valid value.
    pub fn needed(&self) -> usize {
        match self.problem {
            Problem::Truncated { .. } => self.place().2.div_ceil(8),
            Problem::InvalidValue { needed, .. } => needed,
            Problem::LengthExceedsInput { value, .. } => value,
        }
    }

    /// Returns the number of bytes present. For an invalid value, returns that value.
    pub const fn present(&self) -> usize {
        match self.problem {
            Problem::Truncated { present } | Problem::LengthExceedsInput { present, .. } => present,
            Problem::InvalidValue { value, .. } => value,
        }
    }

    /// Returns the name, first bit and end bit of the field.
    fn place(&self) -> (&'static str, usize, usize) {
        let header = self.header;
        let found = match self.problem {
            Problem::Truncated { present } => {
                let cut = |place: &Place| place.hi() > present.saturating_mul(8) && place.exists(&self.lead);
                // If only reserved bits are missing, the error names the header.
                let named = header.fields().find(cut).map(|place| (place.row.name, place));
                named.or_else(|| header.places().find(cut).map(|place| (header.name, place)))
            }
            Problem::InvalidValue { field, .. } | Problem::LengthExceedsInput { field, .. } => {
                header.field(field).map(|place| (field, place))
            }
        };
        let bits = header.bytes * 8;
        found.map_or((header.name, bits, bits), |(name, place)| (name, place.lo(), place.hi()))
    }
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (layer, field, offset) = (self.layer(), self.field(), self.offset());
        let (needed, present) = (self.needed(), self.present());
        let bytes = if needed == 1 { "byte" } else { "bytes" };
        let are = if present == 1 { "is" } else { "are" };
        write!(f, "{layer}: `{field}` at byte {offset} ")?;
        match self.problem {
            Problem::Truncated { .. } => write!(
                f,
                "is cut off: the header needs {needed} {bytes} to include it, {present} {are} present"
            ),
            Problem::InvalidValue { .. } => {
                // Another version has another header format.
                let least = if field == "ip.version" { "" } else { "at least " };
                write!(f, "is {present}, but must be {least}{needed}")
            }
            Problem::LengthExceedsInput { .. } => {
                write!(f, "announces {needed} {bytes}, {present} {are} present")
            }
        }
    }
}

impl Debug for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParseError")
            .field("kind", &self.kind())
            .field("field", &self.field())
            .field("offset", &self.offset())
            .field("needed", &self.needed())
            .field("present", &self.present())
            .finish()
    }
}

impl core::error::Error for ParseError {}

/// The reason why a field or a packet could not be written.
///
/// ```
/// use uet_wire::pds::AckCc;
/// use uet_wire::{Units24, WriteErrorKind};
///
/// let error = AckCc::build().credit(Units24::from_bytes(4096)).done().unwrap_err();
/// assert_eq!((error.kind(), error.field()), (WriteErrorKind::FieldAbsent, Some("pds.credit")));
/// assert_eq!(error.to_string(), "field `pds.cc_type` is 0 (NSCC), but `pds.credit` requires 1 (CREDIT)");
/// ```
#[derive(Clone, Copy)]
pub struct WriteError {
    reason: Reason,
    /// The header of an absent field.
    header: Option<&'static Layout>,
    /// The first bytes of that header, set by `done`.
    lead: [u8; LEAD],
}

/// The kind of a [`WriteError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// The value is too wide for the field.
    ValueTooWide,
    /// The field does not exist in this form of the header, because another field decides so.
    FieldAbsent,
    /// The buffer is too short.
    BufferTooShort,
    /// The packet is too long for its length field.
    LengthTooLong,
    /// Two parts of the packet contradict each other.
    Mismatch,
}

#[derive(Clone, Copy, PartialEq)]
enum Reason {
    ValueTooWide {
        field: &'static str,
        width: usize,
    },
    /// The caller gave a PSN. Its distance from the PSN `from` must be from `least` to `most`.
    PsnTooFar {
        field: &'static str,
        from: &'static str,
        width: u8,
        least: i16,
        most: i16,
    },
    /// `decider` must have one of the values `needed`.
    FieldAbsent {
        field: &'static str,
        decider: &'static Row,
        needed: Values,
    },
    BufferTooShort {
        layer: Layer,
        offset: usize,
        needed: usize,
        present: usize,
    },
    LengthTooLong {
        field: &'static str,
        length: usize,
    },
    Mismatch {
        field: &'static str,
        with: &'static str,
    },
    /// `field` states `stated` bytes, but the payload has `present`. With `lacks_som`, the caller has probably
    /// forgotten the flag.
    PayloadMismatch {
        field: &'static str,
        present: usize,
        stated: u32,
        lacks_som: bool,
    },
    /// The PDS header has another form than its type requires.
    FormMismatch {
        kind: PdsType,
        form: &'static Layout,
    },
    /// The SES header must not follow a PDS header of this type.
    SesMismatch {
        kind: PdsType,
        next: NextHdr,
    },
    /// `pds.next_hdr` is `stated`, but the SES header is of type `present`, or absent.
    NextMismatch {
        stated: NextHdr,
        present: Option<NextHdr>,
    },
}

impl WriteError {
    const fn new(reason: Reason) -> Self {
        WriteError { reason, header: None, lead: [0; LEAD] }
    }

    pub(crate) const fn too_wide(field: &'static str, width: usize) -> Self {
        Self::new(Reason::ValueTooWide { field, width })
    }

    /// Creates the error for a PSN whose distance from `from` does not fit into the 16 signed bits of `field`.
    pub(crate) const fn psn_too_far(field: &'static str, from: &'static str) -> Self {
        Self::new(Reason::PsnTooFar { field, from, width: 16, least: i16::MIN, most: i16::MAX })
    }

    /// Creates the error for a first PSN whose distance to the packet does not fit into `pds.psn_offset`.
    pub(crate) const fn start_psn_too_far() -> Self {
        let (field, from) = ("pds.psn_offset", "pds.psn");
        Self::new(Reason::PsnTooFar { field, from, width: 12, least: 0, most: 4095 })
    }

    pub(crate) const fn absent(field: &'static str, decider: &'static Row, needed: Values) -> Self {
        Self::new(Reason::FieldAbsent { field, decider, needed })
    }

    pub(crate) const fn short(layer: Layer, offset: usize, needed: usize, present: usize) -> Self {
        Self::new(Reason::BufferTooShort { layer, offset, needed, present })
    }

    pub(crate) const fn too_long(field: &'static str, length: usize) -> Self {
        Self::new(Reason::LengthTooLong { field, length })
    }

    /// Creates the error for a `field` that contradicts another part of the packet. `with` describes that part.
    pub const fn mismatch(field: &'static str, with: &'static str) -> Self {
        Self::new(Reason::Mismatch { field, with })
    }

    /// Creates the error for a `field` that states another length than the payload has.
    pub(crate) const fn payload(field: &'static str, stated: u32, present: usize, lacks_som: bool) -> Self {
        Self::new(Reason::PayloadMismatch { field, present, stated, lacks_som })
    }

    /// Creates the error for a PDS header with the type of another form.
    pub(crate) const fn form(kind: PdsType, form: &'static Layout) -> Self {
        Self::new(Reason::FormMismatch { kind, form })
    }

    /// Creates the error for a SES header that must not follow a PDS header of this type.
    pub(crate) const fn ses(kind: PdsType, next: NextHdr) -> Self {
        Self::new(Reason::SesMismatch { kind, next })
    }

    /// Creates the error for a `pds.next_hdr` that states another SES header than is present.
    pub(crate) const fn next_hdr(stated: NextHdr, present: Option<NextHdr>) -> Self {
        Self::new(Reason::NextMismatch { stated, present })
    }

    /// Adds the header of the field. Inlined, so callers that drop the error pay nothing.
    #[inline(always)]
    pub(crate) fn in_header<const N: usize>(&self, header: &'static Layout, bytes: &[u8; N]) -> Self {
        WriteError { reason: self.reason, header: Some(header), lead: lead(bytes) }
    }

    /// Returns the value of the deciding field.
    fn found(&self) -> Option<u128> {
        match (self.reason, self.header) {
            (Reason::FieldAbsent { decider, .. }, Some(header)) => {
                header.field(decider.name)?.read(&self.lead)
            }
            _ => None,
        }
    }

    /// Returns the kind of the error.
    pub const fn kind(&self) -> WriteErrorKind {
        match self.reason {
            Reason::ValueTooWide { .. } | Reason::PsnTooFar { .. } => WriteErrorKind::ValueTooWide,
            Reason::FieldAbsent { .. } => WriteErrorKind::FieldAbsent,
            Reason::BufferTooShort { .. } => WriteErrorKind::BufferTooShort,
            Reason::LengthTooLong { .. } => WriteErrorKind::LengthTooLong,
            Reason::Mismatch { .. }
            | Reason::PayloadMismatch { .. }
            | Reason::FormMismatch { .. }
            | Reason::SesMismatch { .. }
            | Reason::NextMismatch { .. } => WriteErrorKind::Mismatch,
        }
    }

    /// Returns the field that could not be written; `None` if the buffer is too short.
    pub const fn field(&self) -> Option<&'static str> {
        match self.reason {
            Reason::ValueTooWide { field, .. }
            | Reason::PsnTooFar { field, .. }
            | Reason::FieldAbsent { field, .. }
            | Reason::LengthTooLong { field, .. }
            | Reason::Mismatch { field, .. }
            | Reason::PayloadMismatch { field, .. } => Some(field),
            Reason::FormMismatch { .. } | Reason::SesMismatch { .. } => Some("pds.type"),
            Reason::NextMismatch { .. } => Some("pds.next_hdr"),
            Reason::BufferTooShort { .. } => None,
        }
    }

    /// Returns the layer that did not fit into the buffer; `None` for other kinds.
    pub const fn layer(&self) -> Option<Layer> {
        match self.reason {
            Reason::BufferTooShort { layer, .. } => Some(layer),
            _ => None,
        }
    }

    /// Returns the offset in the buffer at which that layer starts.
    pub const fn offset(&self) -> Option<usize> {
        match self.reason {
            Reason::BufferTooShort { offset, .. } => Some(offset),
            _ => None,
        }
    }

    /// Returns the needed size: bytes of the buffer from the offset on, or the length that exceeds its field.
    pub const fn needed(&self) -> Option<usize> {
        match self.reason {
            Reason::BufferTooShort { needed, .. } => Some(needed),
            Reason::LengthTooLong { length, .. } => Some(length),
            _ => None,
        }
    }

    /// Returns the available size: bytes of the buffer from the offset on, or the width in bits of a field that is too
    /// narrow.
    pub const fn present(&self) -> Option<usize> {
        match self.reason {
            Reason::BufferTooShort { present, .. } => Some(present),
            Reason::ValueTooWide { width, .. } => Some(width),
            Reason::PsnTooFar { width, .. } => Some(width as usize),
            _ => None,
        }
    }
}

/// Returns the first of several errors. Marked cold, so a successful check costs one comparison and one branch.
#[cold]
#[inline(always)]
pub(crate) fn first(
    before: Option<&'static WriteError>,
    now: &'static WriteError,
) -> Option<&'static WriteError> {
    before.or(Some(now))
}

impl Display for WriteError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::ValueTooWide { field, width } => {
                write!(f, "the value is too wide for field `{field}`, which has {width} ")?;
                f.write_str(if width == 1 { "bit" } else { "bits" })
            }
            Reason::PsnTooFar { field, from, least, most, .. } => {
                write!(
                    f,
                    "the PSN is too far from `{from}`: field `{field}` holds a distance from {least} to {most}"
                )
            }
            Reason::FieldAbsent { field, decider, needed } => match self.found() {
                // A later call set the deciding field.
                Some(value) if needed.contains(value) => {
                    write!(f, "set field `{}` before `{field}`, which depends on it", decider.name)
                }
                found => {
                    write!(f, "field `{}` ", decider.name)?;
                    if let Some(value) = found {
                        write!(f, "is {}, but ", RowValue(decider, value as u8))?;
                    }
                    write!(f, "`{field}` requires {}", Needed(decider, needed))
                }
            },
            Reason::BufferTooShort { layer, offset, needed, present } => write!(
                f,
                "the buffer is too short for {layer}: {needed} bytes are needed at byte {offset}, {present} are left"
            ),
            Reason::LengthTooLong { field, length } => {
                write!(f, "field `{field}` cannot state a length of {length}")
            }
            Reason::Mismatch { field, with } => write!(f, "field `{field}` contradicts {with}"),
            Reason::PayloadMismatch { field, present, stated, lacks_som } => {
                write!(f, "field `{field}` is {stated}, but the payload has {present} ")?;
                f.write_str(if present == 1 { "byte" } else { "bytes" })?;
                f.write_str(if lacks_som {
                    ": the first packet of a message has `ses.som` instead"
                } else {
                    ""
                })
            }
            Reason::FormMismatch { kind, form } => {
                let kind = Code(kind.code(), kind.name());
                write!(f, "field `pds.type` is {kind}, but the PDS header has the form `{}`", form.name)
            }
            Reason::SesMismatch { kind, next } => {
                let (takes, kind) = (taken_by(kind), Code(kind.code(), kind.name()));
                write!(f, "field `pds.type` is {kind}, which takes {takes}, but the SES header is {next}")
            }
            Reason::NextMismatch { stated, present } => {
                let stated = Code(stated.code(), stated.name());
                write!(f, "field `pds.next_hdr` is {stated}, but ")?;
                match present {
                    Some(next) => write!(f, "the SES header is {next}: leave it 0, `emit` sets it"),
                    None => f.write_str("the packet has no SES header"),
                }
            }
        }
    }
}

impl Debug for WriteError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "WriteError({self})")
    }
}

impl PartialEq for WriteError {
    fn eq(&self, other: &Self) -> bool {
        self.reason == other.reason && self.found() == other.found()
    }
}

impl Eq for WriteError {}

impl core::error::Error for WriteError {}

/// Returns which SES headers may follow a PDS header of this type, in words.
fn taken_by(kind: PdsType) -> &'static str {
    let allowed = may_follow(kind);
    let may = |next: NextHdr| allowed.contains(next.code().into());
    match (may(NextHdr::UET_HDR_REQUEST_STD), may(NextHdr::UET_HDR_RESPONSE_DATA)) {
        (true, true) => "a request or a response with data",
        (true, false) => "a request",
        (false, true) => "a response",
        (false, false) => "no SES header",
    }
}

/// Displays a code point by its number and its name: `1 (CREDIT)`.
struct Code(u8, Option<&'static str>);

impl Display for Code {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match self.1 {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

/// Displays a value of a field: `1 (CREDIT)`.
struct RowValue(&'static Row, u8);

impl Display for RowValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.0.kind {
            Kind::Code(registry) => registry.entry(self.1).map(|entry| entry.name),
            _ => None,
        };
        Display::fmt(&Code(self.1, name), f)
    }
}

/// Displays a set of values of a field: `0 (NSCC) or 1 (CREDIT)`, `none of 0 (NSCC), 1 (CREDIT)`.
struct Needed(&'static Row, Values);

impl Display for Needed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Needed(row, values) = *self;
        let (values, negated) = listed(values, row.width());
        let one = values.iter(row.width()).count() == 1;
        let (prefix, separator) = match (negated, one) {
            (false, _) => ("", " or "),
            (true, true) => ("a value other than ", ""),
            (true, false) => ("none of ", ", "),
        };
        f.write_str(prefix)?;
        for (index, value) in values.iter(row.width()).enumerate() {
            f.write_str(if index > 0 { separator } else { "" })?;
            write!(f, "{}", RowValue(row, value))?;
        }
        Ok(())
    }
}
