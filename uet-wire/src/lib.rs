//! Codec for the headers of Ultra Ethernet Transport (UET), the transport protocol of the Ultra Ethernet
//! specification 1.0.3.
//!
//! # In a minute
//!
//! Bytes from the network become a [`Packet`] of views; each view has an accessor for each field:
//!
//! ```
//! use uet_wire::pds::Pds;
//! use uet_wire::ses::Ses;
//! use uet_wire::{Options, Packet, Start};
//!
//! # let captured = {
//! #     use uet_wire::{Frame, PdcId, Psn, PsnOffset, pds::Request, registry::Opcode, ses::Std};
//! #     let pds = Request::rud().ar(true).syn(true).clear_psn_offset(-1).psn(Psn(0x12000)).spdcid(PdcId(0x4001));
//! #     let pds = pds.pdc_info(0).psn_offset(PsnOffset::ZERO).done()?;
//! #     let ses = Std::build(Opcode::UET_WRITE).head(|h| h.som(true)).message_id(1).request_length(16_384).done()?;
//! #     let mut buffer = vec![0; 8192];
//! #     let data = [0; 4096];
//! #     let frame = Frame::new(pds).ses(ses).payload(&data).udp(7).ipv4([10, 0, 0, 1], [10, 0, 1, 12]);
//! #     let length = frame.ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).emit(&mut buffer)?;
//! #     buffer.truncate(length);
//! #     buffer
//! # };
//! let packet = Packet::parse(Start::Eth, &captured, &Options::default())?;
//!
//! if let (Some(Pds::Request(request)), Some(Ses::Std(write))) = (packet.uet.pds, packet.uet.ses) {
//!     assert_eq!(request.psn().to_string(), "73728");
//!     assert_eq!(write.head().opcode().to_string(), "UET_WRITE");
//!     assert_eq!(write.request_length(), 16_384);
//!     assert_eq!(packet.uet.payload.len(), 4096);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! and a [`Frame`] puts headers into bytes, filling in what can be computed:
//!
//! ```
//! use uet_wire::pds::Ack;
//! use uet_wire::registry::{ResponseOpcode, ReturnCode};
//! use uet_wire::ses::Response;
//! use uet_wire::{Frame, PdcId, Psn};
//!
//! let ack = Ack::build().cack_psn(Psn(0x12003)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)).done()?;
//! let ok = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).message_id(1).job_id(101).done()?;
//!
//! let mut buffer = [0; 128];
//! let length = Frame::new(ack).ses(ok).udp(0xbeef).ipv4([10, 0, 1, 12], [10, 0, 0, 1]).emit(&mut buffer)?;
//! assert_eq!(length, 52);
//! # Ok::<(), uet_wire::WriteError>(())
//! ```
//!
//! # Where to find what
//!
//! | for | see |
//! | --- | --- |
//! | a packet from Ethernet, IP or UDP on | [`Packet`], [`Options`] |
//! | a packet from where UET starts | [`Uet`] |
//! | one header | [`pds`], [`ses`], [`tss`], [`outer`] |
//! | building a packet | [`Frame`], and `build` or `edit` of each header |
//! | code points and their names | [`registry`] |
//! | a packet as a sentence | `Display` of [`Uet`] and [`Packet`] |
//! | what is wrong with a packet | [`Uet::validate`], [`catalogue`] |
//! | sequence numbers and counters | [`Psn`], [`Units24`] |
//! | the headers as data, for generators | [`layout`], [`draw`] |
//!
//! # How it is made
//!
//! A header is a value over its bytes: `Ack<[u8; 12]>` owns them, `Ack<&[u8; 12]>` is a view over the caller's.
//! Both have the same accessors, and so every bit is kept, those that are reserved included: what has been
//! parsed is emitted as it was. Parsing is a check of lengths, nothing else. It accepts reserved values and
//! keeps them; [`validate`] is what judges.
//!
//! There is no allocation, no `unsafe` and no panic on the way of a packet; the tests prove the first and the
//! last. A field is read where it lies, when it is asked for.
//!
//! # Features
//!
//! | feature | brings | needs |
//! | --- | --- | --- |
//! | `crc` (default) | the CRC trailer: compute, append, check | |
//! | `crc-hardware` | the same by the processor's instructions | `std` |
//! | `alloc` | an owned packet | `alloc` |
//! | `std` | what others build on | `std` |
//! | `nom` | each header and the packet as a nom 8 parser | |
//! | `bytes` | emitting into `BufMut`, payload as `Bytes` | |
//! | `serde` | headers as maps from canonical names to values | |
//! | `arbitrary`, `proptest` | values for tests and fuzzers | `alloc`, `std` |
//! | `pnet` | conversions from and to `pnet_packet` | `std` |
//!
//! # Adding a header
//!
//! Each header is described once, in a figure that reads like that of the specification: canonical name, bits,
//! accessor and type, when it exists, what it means. Reserved bits have the name `-`.
//!
//! ```ignore
//! header! {
//!     /// A datagram that says how urgent it is.
//!     Urgent[8] UrgentMut, Pds "urgent" "urgent datagram" {
//!         "prologue"        0..16  prologue: Prologue as PrologueMut, "type, next header, flags";
//!         "-"               9..15;
//!         "pds.flags.late" 15..16  late: bool, "there is a deadline";
//!         "pds.urgency"    16..24  urgency: u8, "the higher, the more urgent";
//!         "-"              24..32;
//!         "pds.deadline"   32..64  deadline: u32 [when "pds.flags.late" is(1)], "microseconds that are left";
//!         "-"              32..64  [when "pds.flags.late" is(0)];
//!     }
//! }
//! ```
//!
//! `Urgent` is the header, `UrgentMut` its writer, `Pds` its layer, `urgent` its name in figures and maps. A part is a
//! header too, with its writer behind `as`. Rows may share bits when their conditions exclude each other.
//!
//! Then: its type in the registry (`registry/pds.rs`), a line in the family that chooses by it (`pds/mod.rs`), a line in
//! `every_header.rs`, and `UPDATE=1 cargo test --all-features`, which draws the figure; the steps outside this crate are
//! in `CONTRIBUTING.md`. The accessors, the writer, the table, the property tests and whatever walks the tables follow.
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
pub mod catalogue;
#[cfg(feature = "crc")]
pub mod crc;
mod draw;
mod edit;
mod error;
mod every_header;
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
mod sentence;
#[cfg(feature = "serde")]
pub mod serde;
pub mod ses;
pub mod spec;
pub mod trailer;
pub mod tss;
mod uet;
#[cfg(feature = "alloc")]
mod uet_buf;
pub mod validate;
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
pub use spec::Spec;
pub use trailer::TrailerKind;
pub use uet::Uet;
#[cfg(feature = "alloc")]
pub use uet_buf::UetBuf;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
