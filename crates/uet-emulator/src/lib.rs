//! A UET NIC and a network of several NICs, built on the reference model. Use it as a device for a suite or a fuzzer,
//! or to develop applications.
//!
//! | item | purpose |
//! | --- | --- |
//! | [`Nic`] | a fabric endpoint with memory and queues |
//! | [`Network`] | NICs on a fabric with impairments, in virtual time |
//! | [`capture`] | a pcapng file of the packets that passed |
//! | [`frame`] | the Ethernet frame around a packet |
//! | [`control`] | a NIC under test: the control channel |
//! | [`link`] | links to other processes: UDP and Ethernet |
//! | `relay` | a network between two processes on UDP |
//! | [`fault`] | deliberate faults, by name |
//! | [`Config`] | parameters, by name |
//! | [`classes`] | traffic classes and their DSCPs |
#![forbid(unsafe_code)]

pub mod capture;
pub mod classes;
pub mod config;
pub mod control;
pub mod fault;
pub mod frame;
pub mod link;
pub mod network;
pub mod nic;
#[cfg(target_os = "linux")]
pub mod relay;
mod security;

pub use config::Config;
pub use network::{Network, NicId};
pub use nic::Nic;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
