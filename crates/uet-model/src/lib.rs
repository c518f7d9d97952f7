//! Reference behavior of an Ultra Ethernet Transport (UET) endpoint.
//!
//! The model does no I/O. [`Fep`] handles packets and the time, and returns packets, completions, events and the time
//! of the next timer. It has no clock, socket, thread or source of randomness, so equal inputs give equal outputs.
#![forbid(unsafe_code)]

/// Writes the methods that the hidden feature `explore` adds to a trait, for a type that implements `Clone` and `Hash`.
macro_rules! explored {
    ($Trait:ident) => {
        #[cfg(feature = "explore")]
        fn duplicate(&self) -> Box<dyn $Trait> {
            Box::new(self.clone())
        }

        #[cfg(feature = "explore")]
        fn digest(&self, mut state: &mut dyn core::hash::Hasher) {
            core::hash::Hash::hash(self, &mut state);
        }
    };
}

pub mod cc;
#[cfg(feature = "explore")]
mod explore;
mod fep;
mod interface;
pub mod ladder;
mod memory;
pub mod network;
mod packet;
mod params;
pub mod pds;
#[cfg(feature = "tss")]
pub mod secure;
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
