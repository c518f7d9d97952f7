//! A UET NIC made of the reference model, and the network between several of them.
//!
//! | room | what |
//! | --- | --- |
//! | [`fabric`] | virtual time, and a network that loses, delays and marks as it is told |
//! | [`capture`] | what passed, as pcapng |
//! | [`classes`] | traffic classes and their DSCPs |
#![forbid(unsafe_code)]

pub mod capture;
pub mod classes;
pub mod fabric;
