//! Codec for the headers of Ultra Ethernet Transport (UET), the transport protocol of the Ultra Ethernet
//! specification 1.0.3.
//!
//! The crate parses, builds, edits and validates packets. It is `no_std`, allocates nothing, contains no `unsafe`, and
//! never panics while handling packets.
//!
//! # Quick start
//!
//! ```toml
//! [dependencies]
//! uet-wire = "0.1"
//! ```
//!
//! **Build.** Each header has a builder. A [`FrameBuilder`] puts headers into bytes and computes next headers, lengths
//! and checksums. **Parse.** [`Packet::parse`] returns views over the bytes. Each view has an accessor for each field.
//! **Edit.** [`PacketMut`] changes a packet in place and keeps its checksums right.
//!
//! ```
//! use uet_wire::pds::{Pds, Request};
//! use uet_wire::registry::Opcode;
//! use uet_wire::ses::{Ses, Std};
//! use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start};
//!
//! // Build: Ethernet, IPv4, UDP, a request that writes 5 bytes.
//! let request = Request::rud().psn(Psn(0x12000)).done()?;
//! let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5).done()?;
//! let mut bytes = [0; 103];
//! FrameBuilder::new(request)
//!     .ses(write)
//!     .payload(b"hello")
//!     .udp(0xbeef)
//!     .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
//!     .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
//!     .emit(&mut bytes)?;
//!
//! // Parse: options say what no packet states, such as the UDP port.
//! let options = Options::default();
//! let packet = Packet::parse(Start::Eth, &bytes, &options)?;
//! if let (Some(Pds::Request(request)), Some(Ses::Std(write))) = (packet.uet.pds, packet.uet.ses) {
//!     assert_eq!(request.psn(), Psn(0x12000));
//!     assert_eq!(write.head().opcode().to_string(), "UET_WRITE");
//!     assert_eq!(packet.uet.payload, b"hello");
//! }
//!
//! // Edit: a change that fails leaves every byte as it was.
//! PacketMut::new(Start::Eth, &mut bytes, &options)?.retransmit(Psn(0x11fff))?;
//! let packet = Packet::parse(Start::Eth, &bytes, &options)?;
//! assert!(packet.uet.pds.unwrap().request().unwrap().retx());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The folder `examples/` has four programs of this size: `parse`, `build`, `edit` and `validate`.
//!
//! # Where to find it
//!
//! | task | see |
//! | --- | --- |
//! | parse a packet that starts with Ethernet, IP or UDP | [`Packet`], [`Options`] |
//! | parse a packet that starts with UET | [`Uet`] |
//! | parse a packet that is cut off | [`Packet::parse_lax`], [`Uet::parse_lax`], [`Packet::parse_sliced`] |
//! | read one header | [`pds`], [`ses`], [`tss`], [`outer`] |
//! | build a packet | [`FrameBuilder`], and `build` or `edit` of each header |
//! | edit a packet in place | [`PacketMut`], and `parse_mut` of each header |
//! | look up a code point or its name | [`registry`] |
//! | describe a packet in a sentence | `Display` of [`Uet`] and [`Packet`] |
//! | list what is wrong with a packet | [`Uet::validate`], [`catalogue`] |
//! | compute with sequence numbers and counters | [`Psn`], [`Units24`] |
//! | handle an error | [`ParseError`], [`WriteError`], [`EditError`] |
//! | walk the headers as data, for generators | [`layout`], [`draw`] |
//!
//! # Design
//!
//! A header is a value over its bytes: `Ack<[u8; 12]>` owns them, `Ack<&[u8; 12]>` is a view over the caller's. Both
//! have the same accessors and keep every bit, reserved ones included, so a parsed packet is emitted as it was. Parsing
//! checks lengths and nothing else. It accepts reserved values; [`validate`] judges them. An accessor reads its field
//! where it lies.
//!
//! Each header also has a plain struct, `AckRepr`, with a public field for each field of the header. Choose by need:
//!
//! | to | use |
//! | --- | --- |
//! | read fields of received bytes | the view: [`pds::Ack::parse`] |
//! | keep, compare, hash or print a header with every bit | the owned value: `copied()` |
//! | build a header | the writer: `Ack::build()`, which checks each field as it is set |
//! | match on fields, or change several and compare | the plain struct: `to_repr()`, then `header()` or `emit()` |
//!
//! A plain struct drops reserved bits. Its conditional fields are `Option`s, and `header()` fails if one is present where
//! the header has no such field, or missing where it has one.
//!
//! ```
//! use uet_wire::pds::{Request, RequestRepr};
//! use uet_wire::{PdcId, Psn, PsnOffset};
//!
//! let request = Request::rud().psn(Psn(7)).spdcid(PdcId(1)).dpdcid(PdcId(2)).done()?.to_repr();
//! let RequestRepr { psn: Psn(7), dpdcid: Some(peer), .. } = request else { panic!() };
//! assert_eq!(peer, PdcId(2));
//!
//! let opening = RequestRepr { syn: true, dpdcid: None, pdc_info: Some(0), psn_offset: Some(PsnOffset::ZERO), ..request };
//! let header = opening.header()?;
//! assert_eq!((header.psn(), header.to_repr()), (Psn(7), opening));
//! # Ok::<(), uet_wire::WriteError>(())
//! ```
//!
//! Enums of headers, layers and options are `#[non_exhaustive]`: a later version of the specification adds to them.
//!
//! # Features
//!
//! | feature | adds | needs |
//! | --- | --- | --- |
//! | `crc` (default) | the CRC trailer: compute, append, check | |
//! | `crc-hardware` | the CRC by the processor's instructions | `std` |
//! | `alloc` | an owned packet, `UetBuf` | `alloc` |
//! | `std` | errors as `std::io::Error` | `std` |
//! | `nom` | each header and the packet as a nom 8 parser | |
//! | `bytes` | emitting into `BufMut`, payload as `Bytes` | |
//! | `serde` | headers and packets as maps from canonical names to values | |
//! | `arbitrary`, `proptest` | values for tests and fuzzers | `alloc`, `std` |
//! | `pnet` | conversions from and to `pnet_packet` | `std` |
//!
//! # Adding a header
//!
//! Each header is described once, in a figure that reads like that of the specification: canonical name, bits, accessor
//! and type, condition, meaning. Reserved bits have the name `-`.
//!
//! ```ignore
//! header! {
//!     /// A datagram that says how urgent it is.
//!     Urgent[8] UrgentMut UrgentRepr, Pds "urgent" "urgent datagram" {
//!         "prologue"        0..16  prologue: Prologue as PrologueMut PrologueRepr, "type, next header, flags";
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
//! `Urgent` is the header, `UrgentMut` its writer, `UrgentRepr` its plain struct, `Pds` its layer, and `urgent` its name
//! in figures and maps. A part is a header too, with its writer and its plain struct behind `as`. Rows may share bits if their conditions exclude each other.
//!
//! Then add its type to the registry (`registry/pds.rs`), a line to the family that chooses by it (`pds/mod.rs`), and a
//! line to `every_header.rs`. `INSTA_UPDATE=always cargo test -p uet-wire --test all figures` draws the figure.
//! `CONTRIBUTING.md` has the steps outside this crate. The accessors, the writer, the table, the property tests and
//! everything that walks the tables follow.
#![cfg_attr(docsrs, feature(doc_cfg))]
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
pub mod derived;
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
mod writer;

pub use draw::{Drawing, draw};
pub use edit::{EditError, PacketMut};
pub use error::{ParseError, ParseErrorKind, WriteError, WriteErrorKind};
pub use frame::FrameBuilder;
pub use numbers::{PdcId, Psn, PsnOffset, Units24};
pub use packet::{Content, Offsets, Options, Packet, Sliced, Start, Trimmed};
pub use registry::Version;
pub use spec::Spec;
pub use trailer::TrailerKind;
pub use uet::Uet;
#[cfg(feature = "alloc")]
pub use uet_buf::UetBuf;
pub use writer::InPlace;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
