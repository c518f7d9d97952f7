//! Key files of secure domains, and a [`KeyRing`] that opens captured packets.
//!
//! ```
//! use uet_packet_io::keys::KeyRing;
//!
//! let file = format!("[[domain]]\nsdi = 7\nmode = \"direct\"\nkeys = {{ 0 = \"{}\" }}\n", "00".repeat(32));
//! let ring = KeyRing::from_toml(&file)?;
//! assert!(ring.has(7));
//!
//! let error = KeyRing::from_toml(&file.replace("00", "0")).unwrap_err();
//! assert_eq!(error.to_string(), "line 1: keys: a key has 64 hexadecimal digits, or 88 for a client; this one has 32");
//! # Ok::<(), uet_packet_io::keys::KeyError>(())
//! ```
mod error;
mod file;
mod ring;

pub use error::KeyError;
pub use file::{check_unique, domain, domains_from_toml, secrets};
pub use ring::{KeyRing, Opened};
