//! All integration tests of the codec in one program, which links once.

#[path = "../../src/every_header.rs"]
mod every_header;

#[cfg(feature = "arbitrary")]
mod arbitrary;
#[cfg(feature = "crc")]
mod crc;
mod derived;
#[cfg(feature = "crc")]
mod edit;
mod errors;
#[cfg(feature = "crc")]
mod examples;
mod figures;
#[cfg(feature = "crc")]
mod frame;
#[cfg(feature = "crc")]
mod frames;
#[cfg(all(feature = "bytes", feature = "nom", feature = "serde", feature = "proptest"))]
mod glob;
mod in_place;
mod layouts;
#[cfg(feature = "crc")]
mod packet;
#[cfg(feature = "pnet")]
mod pnet;
#[cfg(all(feature = "alloc", feature = "crc", feature = "proptest"))]
mod properties;
mod readme;
#[cfg(feature = "proptest")]
mod repr;
mod rows;
mod sentence;
#[cfg(all(feature = "proptest", feature = "serde"))]
mod serde;
mod spec;
#[cfg(feature = "tss")]
mod tss;
mod validate;
