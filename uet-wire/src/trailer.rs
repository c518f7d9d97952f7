//! What may follow the payload (a setting of the deployment: nothing on the wire announces it).

use crate::header::header;
use crate::layout::Layout;

/// Which trailer ends a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TrailerKind {
    /// None.
    #[default]
    None,
    /// A CRC-32C of 4 bytes.
    Crc,
    /// The integrity check value of a secured packet, 16 bytes.
    Icv,
}

impl TrailerKind {
    /// Its length in bytes.
    pub const fn len(self) -> usize {
        match self {
            TrailerKind::None => 0,
            TrailerKind::Crc => 4,
            TrailerKind::Icv => 16,
        }
    }

    /// Its table. Without a trailer, that of the CRC, which is never asked for then.
    pub(crate) const fn layout(self) -> &'static Layout {
        match self {
            TrailerKind::None | TrailerKind::Crc => Crc::LAYOUT,
            TrailerKind::Icv => Icv::LAYOUT,
        }
    }

    /// Whether there is no trailer.
    pub const fn is_empty(self) -> bool {
        matches!(self, TrailerKind::None)
    }
}

header! {
    /// A CRC-32C over all from the IP source address up to here. The `crc` feature computes it.
    Crc[4] CrcMut CrcRepr, Trailer "crc" "CRC trailer" {
        "crc"    0.. 32  crc: u32, "CRC-32C";
    }
}

header! {
    /// The integrity check value of a secured packet.
    Icv[16] IcvMut IcvRepr, Trailer "icv" "ICV trailer" {
        "icv"    0..128  icv: u128, "integrity check value";
    }
}
