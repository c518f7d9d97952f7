//! Codec for the headers of Ultra Ethernet Transport (UET), the transport protocol of the Ultra Ethernet
//! specification 1.0.3.
//!
//! The crate parses, builds, edits and validates packets. It is `no_std`, allocates nothing, contains no `unsafe`, and
//! never panics while handling packets.
//!
//! ```toml
//! [dependencies]
//! uet-wire = { path = "../uet/uet-wire" }
//! ```
//!
//! A UET packet usually travels in UDP. Its headers come in this order:
//!
//! | header | module | carries |
//! | --- | --- | --- |
//! | Ethernet, IP, UDP | [`outer`] | addresses, congestion marks, the entropy value |
//! | security (TSS), in secured packets | [`tss`] | the key and the packet counter; all bytes after it are encrypted |
//! | packet delivery (PDS) | [`pds`] | sequence numbers, acknowledgments, credit |
//! | semantics (SES) | [`ses`] | the operation and its address, or the response |
//! | CRC or ICV, if the deployment configures one | [`trailer`] | a checksum of the packet |
//!
//! # Parse a packet
//!
//! [`Uet::parse`] returns a view of each header. Each view has an accessor for each field.
//!
//! ```
//! use uet_wire::{Psn, Uet, pds::Pds, ses::Ses};
//!
//! let bytes = [
//!     0x3a, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, // ACK
//!     0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x65, 0x00, 0x00, 0x40, 0x00, // RESPONSE
//! ];
//! let packet = Uet::parse(&bytes)?;
//! if let (Some(Pds::Ack(ack)), Some(Ses::Response(response))) = (packet.pds, packet.ses) {
//!     assert_eq!(ack.cack_psn(), Psn(0x12003));
//!     assert_eq!(response.head().return_code().to_string(), "OK");
//! }
//! # Ok::<(), uet_wire::ParseError>(())
//! ```
//!
//! [`Packet::parse`] does the same for packets that start with Ethernet, IP or UDP.
//!
//! # Answer a packet
//!
//! Parsing checks only lengths. A receiver also checks the rest, as [`Packet::parse`] says. It then builds an answer
//! from the fields of the request:
//!
//! ```
//! use uet_wire::pds::Ack;
//! use uet_wire::registry::{ResponseOpcode, ReturnCode};
//! use uet_wire::ses::{Response, Ses};
//! use uet_wire::validate::Severity;
//! use uet_wire::{FrameBuilder, PdcId, Uet, Version};
//!
//! /// Writes the ACK of a request to `buffer`. Returns its length, or `None` for a packet that gets none.
//! fn acknowledge(bytes: &[u8], buffer: &mut [u8]) -> Option<usize> {
//!     let packet = Uet::parse(bytes).ok()?;
//!     if packet.validate(Version::default()).any(|finding| finding.severity() == Severity::Error) {
//!         return None;
//!     }
//!     let request = packet.pds?.request()?;
//!     let Some(Ses::Std(write)) = packet.ses else { return None };
//!     let ack = Ack::build()
//!         .cack_psn(request.psn())
//!         .ack_psn(request.psn())
//!         .spdcid(PdcId(0x8001))
//!         .dpdcid(request.spdcid())
//!         .done()
//!         .ok()?;
//!     let response = Response::build(ResponseOpcode::UET_RESPONSE, ReturnCode::OK)
//!         .message_id(write.message_id())
//!         .job_id(write.address().job_id())
//!         .modified_length(write.request_length())
//!         .done()
//!         .ok()?;
//!     FrameBuilder::new(ack).ses(response).emit(buffer).ok()
//! }
//! # assert_eq!(acknowledge(&[0x11, 0x80], &mut [0; 24]), None);
//! # let request = uet_wire::pds::Request::rud()
//! #     .psn(uet_wire::Psn(7)).clear_psn_offset(-1).spdcid(PdcId(1)).dpdcid(PdcId(0x8001)).done()?;
//! # let write = uet_wire::ses::Std::build(uet_wire::registry::Opcode::UET_WRITE)
//! #     .head(|h| h.som(true).eom(true)).request_length(5).done()?;
//! # let mut bytes = [0; 61];
//! # FrameBuilder::new(request).ses(write).payload(b"hello").emit(&mut bytes)?;
//! # assert_eq!(acknowledge(&bytes, &mut [0; 24]), Some(24));
//! # Ok::<(), uet_wire::WriteError>(())
//! ```
//!
//! The program `examples/answer.rs` also answers with NACKs, and handles CRC, addresses and errors.
//!
//! # Build a packet
//!
//! Each header has a builder. [`FrameBuilder`] writes the headers into a buffer. It computes next headers, lengths and
//! checksums, and rejects headers that contradict each other.
//!
//! ```
//! use uet_wire::pds::Request;
//! use uet_wire::registry::Opcode;
//! use uet_wire::ses::Std;
//! use uet_wire::{FrameBuilder, Options, Packet, PdcId, Psn, Start, Version};
//!
//! // A request that writes 5 bytes, in UDP, IPv4 and Ethernet. `clear_psn` is the last PSN whose answer has arrived.
//! let psn = Psn(0x12000);
//! let request = Request::rud().psn(psn).clear_psn(psn - 1).spdcid(PdcId(1)).dpdcid(PdcId(2)).done()?;
//! let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5).done()?;
//! let mut buffer = [0; 256];
//! let length = FrameBuilder::new(request)
//!     .ses(write)
//!     .payload(b"hello")
//!     .udp(0xbeef)
//!     .ipv4([10, 0, 0, 1], [10, 0, 1, 12])
//!     .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
//!     .emit(&mut buffer)?;
//!
//! // `Options` are the settings of a deployment, such as the UDP port.
//! let packet = Packet::parse(Start::Eth, &buffer[..length], &Options::default())?;
//! assert_eq!(packet.uet.payload, b"hello");
//! assert_eq!(packet.validate(Version::default()).next(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Edit a packet
//!
//! [`PacketMut`] edits a packet in place and updates its checksums. A failed edit leaves every byte unchanged.
//!
//! ```
//! use uet_wire::{FrameBuilder, Options, Packet, PacketMut, Psn, Start, pds::Request};
//!
//! let request = Request::rud().psn(Psn(7)).done()?;
//! let mut bytes = [0; 40];
//! FrameBuilder::new(request).udp(0xbeef).ipv4([10, 0, 0, 1], [10, 0, 1, 12]).ecn(1).emit(&mut bytes)?;
//!
//! let options = Options::default();
//! let mut packet = PacketMut::new(Start::Ip, &mut bytes, &options)?;
//! packet.mark_ce()?; // as a switch does
//! packet.retransmit(Psn(5))?; // as a sender does
//!
//! let packet = Packet::parse(Start::Ip, &bytes, &options)?;
//! assert_eq!(packet.ip.unwrap().ecn(), 3);
//! assert!(packet.uet.pds.unwrap().request().unwrap().retx());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The folder `examples/` has more programs: `parse`, `validate`, `build`, `message` (a write of several packets),
//! `edit` and `answer`. In a clone, `cargo run -p uet-wire --example parse` runs the first.
//!
//! # Where to find it
//!
//! | task | see |
//! | --- | --- |
//! | parse a packet that starts with Ethernet, IP or UDP | [`Packet`], [`Options`] |
//! | parse a packet that starts with UET | [`Uet`] |
//! | parse a truncated packet | [`Packet::parse_lax`], [`Uet::parse_lax`], [`Packet::parse_sliced`] |
//! | read one header | [`pds`], [`ses`], [`tss`], [`outer`] |
//! | read a field that many headers have, such as the PSN or the opcode | [`pds::Pds`], [`ses::Ses`] |
//! | build a packet | [`FrameBuilder`], and `build` or `edit` of each header |
//! | edit a packet in place | [`PacketMut`], and `parse_mut` of each header |
//! | check or update the CRC | [`Packet::crc_check`], [`PacketMut::refresh_crc`] |
//! | look up a code point or its name | [`registry`] |
//! | print a packet in one line | `Display` of [`Uet`] and [`Packet`] |
//! | list the violations in a packet | [`Uet::validate`], [`Packet::validate`], [`catalogue`] |
//! | compute with sequence numbers and counters | [`Psn`], [`Units24`] |
//! | handle an error | [`ParseError`], [`WriteError`], [`EditError`] |
//! | walk the headers as data, for generators | [`layout`], [`draw`] |
//!
//! # Design
//!
//! A header is a value over its bytes: `Ack<[u8; 12]>` owns them, and `Ack<&[u8; 12]>` is a view over the caller's.
//! Both have the same accessors and keep every bit, including reserved bits, so a parsed packet is emitted unchanged.
//! Parsing checks only lengths. It accepts reserved values, and [`validate`] reports them. An accessor reads its field
//! directly from the bytes.
//!
//! Each header also has a plain struct, such as `AckRepr`, with a public field for each field of the header. Choose by
//! task:
//!
//! | task | use |
//! | --- | --- |
//! | read fields of received bytes | the view: [`pds::Ack::parse`] |
//! | keep, compare, hash or print a header with every bit | the owned value: `copied()` |
//! | build a header | the writer: `Ack::build()`, whose setters check each field |
//! | match on fields, or change several and compare | the plain struct: `to_repr()`, then `header()` or `emit()` |
//!
//! A plain struct drops reserved bits. Its conditional fields are `Option`s. `header()` fails if such a field is `Some`
//! but absent from this form of the header, or `None` but required.
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
//! Enums of headers, layers, options and errors are `#[non_exhaustive]`, because later versions of the specification
//! may add variants. Code points are constants, not variants: a `match` on them needs an arm for unknown numbers.
//!
//! # Features
//!
//! | feature | adds | needs |
//! | --- | --- | --- |
//! | `crc` (default) | functions that compute, append and check the CRC trailer | |
//! | `crc-hardware` | a CRC that uses the processor's instructions | `std` |
//! | `alloc` | an owned packet, `UetBuf` | `alloc` |
//! | `std` | conversion of errors into `std::io::Error` | `std` |
//! | `nom` | each header and the packet as a nom 8 parser | |
//! | `bytes` | output into `BufMut`, payload as `Bytes` | |
//! | `serde` | headers and packets as maps from canonical names to values | |
//! | `tss` | transport security: [`tss`] derives keys, seals and opens packets in place | |
//! | `arbitrary`, `proptest` | values for tests and fuzzers | `alloc`, `std` |
//! | `pnet` | conversions from and to `pnet_packet` | `std` |
//!
//! # Adding a header
//!
//! One table describes each header, row by row: canonical name, bits, accessor and type, condition, meaning. Reserved
//! bits have the name `-`.
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
//! `Urgent` is the header, `UrgentMut` its writer, `UrgentRepr` its plain struct, `Pds` its layer, and `urgent` its
//! name in figures and maps. A part is a header too; its writer and its plain struct follow `as`. Rows may share bits
//! if their conditions exclude each other.
//!
//! The macro generates the accessors, the writer and the layout. The property tests and all code that walks the layouts
//! include the new header once it is registered. `CONTRIBUTING.md` in the repository lists the files that register a
//! header, and the commands that draw its figure and update the derived files.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Some links lead to functions that only the feature `crc` has.
#![cfg_attr(not(feature = "crc"), allow(rustdoc::broken_intra_doc_links))]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod bits;
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
mod numbers;
pub mod outer;
mod packet;
pub mod pds;
#[cfg(test)]
mod probe;
pub mod registry;
mod sentence;
pub mod ses;
pub mod spec;
pub mod trailer;
pub mod tss;
mod uet;
#[cfg(feature = "alloc")]
mod uet_buf;
pub mod validate;
mod value;
#[cfg(feature = "arbitrary")]
pub mod with_arbitrary;
#[cfg(feature = "bytes")]
pub mod with_bytes;
#[cfg(feature = "nom")]
pub mod with_nom;
#[cfg(feature = "pnet")]
pub mod with_pnet;
#[cfg(feature = "proptest")]
pub mod with_proptest;
#[cfg(feature = "serde")]
pub mod with_serde;
#[cfg(feature = "std")]
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

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
