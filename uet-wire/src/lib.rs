//! Codec for the headers of Ultra Ethernet Transport.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod bits;
#[cfg(feature = "crc")]
pub mod crc;
mod draw;
mod edit;
mod error;
mod frame;
mod header;
pub mod layout;
mod numbers;
pub mod outer;
mod packet;
pub mod pds;
#[cfg(feature = "pnet")]
pub mod pnet;
pub mod registry;
pub mod ses;
pub mod trailer;
pub mod tss;
mod uet;
mod value;

pub use draw::{Drawing, draw};
pub use edit::{EditError, PacketMut};
pub use error::{ParseError, Problem, WriteError};
pub use frame::Frame;
pub use numbers::{PdcId, Psn, PsnOffset, Units24};
pub use packet::{Content, Offsets, Options, Packet, Sliced, Start, Trimmed};
pub use registry::Version;
pub use trailer::TrailerKind;
pub use uet::Uet;
