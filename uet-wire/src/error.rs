//! Errors: small, `Copy`, without allocation, and naming the place.

use crate::layout::{Layer, Layout, Place};

/// A packet could not be read any further.
///
/// ```
/// use uet_wire::pds::Ack;
///
/// let error = Ack::parse(&[0x38, 0x00, 0xff, 0xfe, 0x00]).unwrap_err();
/// assert_eq!(error.field(), "pds.cack_psn");
/// assert_eq!((error.offset(), error.needed(), error.present()), (4, 8, 5));
/// assert_eq!(
///     error.to_string(),
///     "pds: pds.cack_psn at byte 4 is cut short: its header needs 8 bytes up to there, 5 are present"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParseError {
    /// The header that was being read.
    pub header: &'static Layout,
    /// Where that header starts, in bytes from the start of what was given to the parser.
    pub start: usize,
    /// What was wrong.
    pub problem: Problem,
    /// The first bytes of the header, 0 where it is cut: they say which of its fields exist.
    pub lead: [u8; LEAD],
}

/// All fields that decide which others exist lie within this many bytes, which a test of the layouts holds.
const LEAD: usize = 16;

/// What was wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It ends early.
    Short {
        /// How many of its bytes are present.
        present: usize,
    },
    /// A field of it cannot be right.
    Says {
        /// The field.
        field: &'static str,
        /// What it says.
        value: usize,
        /// What it would have to say at least; for a version, exactly.
        needed: usize,
    },
    /// A field of it promises more bytes than there are.
    Promises {
        /// The field.
        field: &'static str,
        /// How many bytes it promises.
        value: usize,
        /// How many there are.
        present: usize,
    },
}

/// A header and what follows it, or the table of the header that is not all there. A [`ParseError`] is made of
/// that outside the way of a packet: what makes one would be felt on that way.
pub(crate) type Split<'a, T> = Result<(T, &'a [u8]), &'static Layout>;

impl ParseError {
    /// The error for a header of which only `bytes` are there.
    #[cold]
    pub(crate) fn short(header: &'static Layout, bytes: &[u8]) -> Self {
        let mut lead = [0; LEAD];
        for (kept, byte) in lead.iter_mut().zip(bytes) {
            *kept = *byte;
        }
        ParseError { lead, ..Self::new(header, Problem::Short { present: bytes.len() }) }
    }

    /// The error for a header at the start of what was given to the parser.
    pub(crate) const fn new(header: &'static Layout, problem: Problem) -> Self {
        ParseError { header, start: 0, problem, lead: [0; LEAD] }
    }

    /// The same error, with the header `by` bytes further into the packet.
    #[inline]
    pub(crate) const fn moved(self, by: usize) -> Self {
        ParseError { start: self.start.saturating_add(by), ..self }
    }

    /// The layer that was being read.
    pub const fn layer(&self) -> Layer {
        self.header.layer
    }

    /// The field at which reading stopped: the first that is not all there, or the one that is wrong.
    pub fn field(&self) -> &'static str {
        match self.problem {
            Problem::Short { .. } => self.place().0,
            Problem::Says { field, .. } | Problem::Promises { field, .. } => field,
        }
    }

    /// Where that field starts, in bytes from the start of what was given to the parser.
    pub fn offset(&self) -> usize {
        self.start.saturating_add(self.place().1 / 8)
    }

    /// How many bytes of the header are needed to have the field; or what the field needs to say.
    pub fn needed(&self) -> usize {
        match self.problem {
            Problem::Short { .. } => self.place().2.div_ceil(8),
            Problem::Says { needed, .. } => needed,
            Problem::Promises { value, .. } => value,
        }
    }

    /// How many bytes of the header are present; or what the field says.
    pub const fn present(&self) -> usize {
        match self.problem {
            Problem::Short { present } | Problem::Promises { present, .. } => present,
            Problem::Says { value, .. } => value,
        }
    }

    /// Name, first and last bit of the field.
    fn place(&self) -> (&'static str, usize, usize) {
        let header = self.header;
        let found = match self.problem {
            Problem::Short { present } => {
                let cut = |place: &Place| place.hi() > present.saturating_mul(8) && place.exists(&self.lead);
                // Where only reserved bits are missing, the header stands for them.
                let named = header.fields().find(cut).map(|place| (place.row.name, place));
                named.or_else(|| header.places().find(cut).map(|place| (header.name, place)))
            }
            Problem::Says { field, .. } | Problem::Promises { field, .. } => {
                header.field(field).map(|place| (field, place))
            }
        };
        let bits = header.bytes * 8;
        found.map_or((header.name, bits, bits), |(name, place)| (name, place.lo(), place.hi()))
    }
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (layer, field, offset) = (self.layer(), self.field(), self.offset());
        let (needed, present) = (self.needed(), self.present());
        write!(f, "{layer}: {field} at byte {offset} ")?;
        match self.problem {
            Problem::Short { .. } => {
                write!(f, "is cut short: its header needs {needed} bytes up to there, {present} are present")
            }
            Problem::Says { .. } => write!(f, "says {present}, where {needed} is needed"),
            Problem::Promises { .. } => write!(f, "promises {needed} bytes, {present} are present"),
        }
    }
}

impl core::error::Error for ParseError {}

/// A field or a packet could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteError {
    /// The value needs more bits than the field has.
    TooWide {
        /// The field.
        field: &'static str,
        /// Its width in bits.
        width: usize,
    },
    /// The field does not exist in this form of the header: the field that decides has another value.
    Absent {
        /// The field.
        field: &'static str,
        /// The field that decides, to be set first.
        decided_by: &'static str,
    },
    /// The buffer is too short.
    Short {
        /// What was being written.
        layer: Layer,
        /// Where it would have started, in bytes from the start of the buffer.
        offset: usize,
        /// How many bytes were needed there.
        needed: usize,
        /// How many bytes were left there.
        present: usize,
    },
    /// The packet is longer than a length field can say.
    TooLong {
        /// The length field.
        field: &'static str,
        /// The length that it would have to say.
        length: usize,
    },
    /// Two parts of the packet do not go together.
    Mismatch {
        /// The field that is at odds with the rest.
        field: &'static str,
        /// With what.
        with: &'static str,
    },
}

/// The first of several errors. Out of line: where nothing is wrong, a check is a comparison and a branch.
#[cold]
#[inline(always)]
pub(crate) fn first(
    before: Option<&'static WriteError>,
    now: &'static WriteError,
) -> Option<&'static WriteError> {
    before.or(Some(now))
}

impl core::fmt::Display for WriteError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TooWide { field, width } => write!(f, "{field}: the value does not fit into {width} bits"),
            Self::Absent { field, decided_by } => {
                write!(f, "{field}: does not exist in this form of the header; set {decided_by} first")
            }
            Self::Short { layer, offset, needed, present } => write!(
                f,
                "{layer}: the buffer is too short: {needed} bytes are needed at byte {offset}, {present} are left"
            ),
            Self::TooLong { field, length } => write!(f, "{field}: a length of {length} cannot be said"),
            Self::Mismatch { field, with } => write!(f, "{field}: does not go with {with}"),
        }
    }
}

impl core::error::Error for WriteError {}
