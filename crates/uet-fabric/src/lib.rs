//! Endpoints, memory registration and completion queues in the manner of libfabric, on the reference model and UDP
//! sockets. The crate `uet-libfabric` gives them the C interface of a libfabric provider.
//!
//! | item | libfabric object |
//! | --- | --- |
//! | [`Interface`] | `fi_info`: one for each address of the machine |
//! | [`Domain`] | `fid_domain`: a NIC with one address and one UDP port |
//! | [`Endpoint`] | `fid_ep`: one resource index of the NIC |
//! | [`AddressVector`] | `fid_av` |
//! | [`CompletionQueue`], [`Counter`], [`EventQueue`] | `fid_cq`, `fid_cntr`, `fid_eq` |
//! | [`Settings`] | the variables `FI_UET_*` |
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod address;
mod atomic;
mod carrier;
mod domain;
mod endpoint;
mod engine;
mod error;
mod event;
pub mod flags;
mod interface;
mod memory;
mod name;
mod peers;
mod queue;
mod request;
mod settings;
mod state;
mod wake;

pub use address::{AddressVector, UNKNOWN_ADDRESS};
pub use atomic::{atomic_opcode, atomic_width, datatype, supports};
pub use domain::Domain;
pub use endpoint::Endpoint;
pub use error::{Code, Error, Result};
pub use event::{Event, EventQueue};
pub use interface::Interface;
pub use memory::{Region, UserMemory};
pub use name::{NAME_LENGTH, Name};
pub use queue::{Completion, CompletionQueue, Counter, Entry, Failed};
pub use request::{Atomic, Peek, Read, Receive, Send, Tag, Write};
pub use settings::{Setting, Settings};
pub use state::EndpointOptions;
