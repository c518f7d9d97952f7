//! A UET NIC made of the reference model, and the network between several of them: something to test against, to point a
//! suite or a fuzzer at, and to develop applications with.
//!
//! | room | what |
//! | --- | --- |
//! | [`Nic`] | a fabric endpoint with memory and queues |
//! | [`Network`] | several on a fabric, in virtual time |
//! | [`fabric`] | a network that loses, delays, marks and cuts as it is told |
//! | [`capture`] | what passed, as pcapng |
//! | [`frame`] | what is around a packet on Ethernet |
//! | [`control`] | a NIC under test: the control channel |
//! | [`link`] | the way to others that are not in the same process |
//! | [`fault`] | ways to be wrong on purpose, by name |
//! | [`Config`] | parameters, by name too |
//! | [`classes`] | traffic classes and their DSCPs |
#![forbid(unsafe_code)]

pub mod capture;
pub mod classes;
pub mod config;
pub mod control;
pub mod fabric;
pub mod fault;
pub mod frame;
pub mod link;
pub mod network;
pub mod nic;

pub use config::Config;
pub use network::{Network, NicId};
pub use nic::Nic;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
