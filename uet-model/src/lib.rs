//! Reference behaviour of an Ultra Ethernet Transport (UET) endpoint.
//!
//! A [`Packet`] and the [`Time`] go in; packets, events and the time of the next timeout come out. There is no clock,
//! no socket, no thread and no source of randomness inside: the same inputs give the same outputs, always.
#![forbid(unsafe_code)]

pub mod cc;
mod fep;
mod interface;
pub mod ladder;
mod memory;
mod packet;
mod params;
pub mod pds;
pub mod ses;
mod time;

pub use fep::{Event, Fep, LayerTap};
pub use interface::*;
pub use memory::Memory;
pub use packet::{BufferTooSmall, Head, Packet, Priority, Transmit, TrimPoint};
pub use params::*;
pub use time::Time;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
