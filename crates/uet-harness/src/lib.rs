//! Reaches devices under test of Ultra Ethernet Transport (UET), and fuzzes endpoints.
//!
//! | module | contents |
//! | --- | --- |
//! | [`dut`] | devices for the conformance suite: embedded, on UDP, on raw Ethernet, started by a command |
//! | [`fuzz`] | a fuzzer of endpoints that shrinks its findings |
//! | `interop` | plays two implementations against each other |
//! | [`switch`] | tests the network between endpoints |
//! | [`replay`] | replays one side of a captured conversation to a device |
//! | [`capture`] | writes the packets of a rule or finding to a pcapng file |
//!
//! This crate connects to devices. It has no command line and prints nothing.
//!
//! ```
//! use uet_emulator::Config;
//! use uet_harness::fuzz::{self, Inside, Options};
//!
//! let mut target = Inside::new(Config::default())?;
//! let outcome = fuzz::run(&mut target, &Options { cases: 20, ..Options::default() }, |_| ())?;
//! assert!(outcome.findings.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod capture;
pub mod dut;
mod field;
pub mod fuzz;
#[cfg(target_os = "linux")]
pub mod interop;
mod recording;
pub mod replay;
pub mod switch;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
