//! The trailer after the payload. The deployment configures it; no field announces it.

use crate::header::header;
use crate::layout::Layout;

/// The kind of trailer at the end of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrailerKind {
    /// No trailer.
    #[default]
    None,
    /// A CRC-32C of 4 bytes.
    Crc,
    /// The integrity check value (ICV) of a secured packet, 16 bytes.
    Icv,
}

impl TrailerKind {
    /// Returns the length in bytes.
    pub const fn len(self) -> usize {
        match self {
            TrailerKind::None => 0,
            TrailerKind::Crc => 4,
            TrailerKind::Icv => 16,
        }
    }

    /// Returns the layout. Without a trailer, returns the layout of the CRC, which callers then never use.
    pub(crate) const fn layout(self) -> &'static Layout {
        match self {
            TrailerKind::None | TrailerKind::Crc => Crc::LAYOUT,
            TrailerKind::Icv => Icv::LAYOUT,
        }
    }

    /// Returns true if there is no trailer.
    pub const fn is_empty(self) -> bool {
        matches!(self, TrailerKind::None)
    }
}

header! {
    /// A CRC-32C over all bytes from the IP source address to the trailer. The `crc` feature computes it.
    Crc[4] CrcMut CrcRepr, Trailer "crc" "CRC trailer" {
        "crc"    0.. 32  crc: u32, "CRC-32C";
    }
}

header! {
    /// The integrity check value (ICV) of a secured packet.
    Icv[16] IcvMut IcvRepr, Trailer "icv" "ICV trailer" {
        "icv"    0..128  icv: u128, "integrity check value";
    }
}
