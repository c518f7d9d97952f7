//! Codec for the headers of Ultra Ethernet Transport.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
mod bits;
#[cfg(feature = "bytes")]
pub mod bytes;
#[cfg(feature = "crc")]
pub mod crc;
mod draw;
mod edit;
mod error;
mod frame;
mod header;
pub mod layout;
#[cfg(feature = "nom")]
pub mod nom;
mod numbers;
pub mod outer;
mod packet;
pub mod pds;
#[cfg(feature = "pnet")]
pub mod pnet;
#[cfg(test)]
mod probe;
#[cfg(feature = "proptest")]
pub mod proptest;
pub mod registry;
#[cfg(feature = "serde")]
pub mod serde;
pub mod ses;
pub mod trailer;
pub mod tss;
mod uet;
#[cfg(feature = "alloc")]
mod uet_buf;
mod value;
#[cfg(feature = "std")]
#[path = "std.rs"]
mod with_std;

pub use draw::{Drawing, draw};
pub use edit::{EditError, PacketMut};
pub use error::{ParseError, Problem, WriteError};
pub use frame::Frame;
pub use numbers::{PdcId, Psn, PsnOffset, Units24};
pub use packet::{Content, Offsets, Options, Packet, Sliced, Start, Trimmed};
pub use registry::Version;
pub use trailer::TrailerKind;
pub use uet::Uet;
#[cfg(feature = "alloc")]
pub use uet_buf::UetBuf;
