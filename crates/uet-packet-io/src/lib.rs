//! Reads and writes packets of Ultra Ethernet Transport (UET) as captures, hexadecimal text and JSON.
//!
//! | module | contents |
//! | --- | --- |
//! | [`input`] | reads captures (pcap and pcapng, plain or gzip) and lines of hexadecimal digits |
//! | [`capture`] | writes pcapng captures |
//! | [`json`] | converts packets to JSON and back |
//! | [`hex`] | converts bytes to hexadecimal digits and back |
//! | [`mod@file`] | reads files with a limit, and replaces them as a whole |
//! | [`keys`] | reads key files of secure domains, and opens captured packets with them |
//! | [`corpus`] | seed packets, dictionaries and field values for fuzzers |
//!
//! This crate handles packets one at a time. It has no notion of connections, devices or terminals.
//!
//! ```
//! use core::ops::ControlFlow;
//! use core::time::Duration;
//! use uet_packet_io::capture::{CapturedFrame, CaptureWriter, LinkType};
//! use uet_packet_io::{hex, input};
//! use uet_wire::Start;
//!
//! let frame = hex::decode("02000000000202000000000188b5")?;
//! let mut writer = CaptureWriter::new(Vec::new(), LinkType::Ethernet)?;
//! writer.write(&CapturedFrame::new(Duration::from_secs(1), &frame))?;
//! let capture = writer.finish()?;
//!
//! let mut frames = Vec::new();
//! input::read(&capture[..], Start::Eth, &mut |record| {
//!     frames.push(record.bytes.to_vec());
//!     Ok(ControlFlow::Continue(()))
//! })?;
//! assert_eq!(frames, [frame]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It has no features, so `default-features = false` leaves no dependency out. A program that only reads plain captures
//! of Ethernet frames needs just these two crates; the README of `uet-wire` shows how, for pcapng:
//!
//! ```toml
//! [dependencies]
//! pcap-file = "2.0.0"
//! uet-wire = { path = "../uet/uet-wire" }
//! ```
#![forbid(unsafe_code)]

pub mod capture;
pub mod corpus;
mod decoder;
mod decrypt;
pub mod file;
pub mod hex;
pub mod input;
pub mod json;
pub mod keys;
mod recognize;

pub use decoder::Decoder;
pub use decrypt::in_the_clear;

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
