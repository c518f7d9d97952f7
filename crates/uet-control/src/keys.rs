//! Secure domains and their keys, as a key file and the operation `install_keys` name them.

use core::fmt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The secure domains of the device, which replace all others. A key that is already installed keeps its counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstallKeys {
    /// The domains. Without any, the device protects nothing.
    pub domains: Vec<SecureDomain>,
}

/// A secure domain with its keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SecureDomain {
    /// The number of the domain, 24 bits.
    pub sdi: u32,
    /// The way to the key of a packet.
    pub mode: KeyMode,
    /// True if packets carry a secure source identifier (SSI).
    #[serde(default, skip_serializing_if = "is_default")]
    pub ssi: bool,
    /// The bits of the packet counter that select a new key (cluster only).
    #[serde(default, skip_serializing_if = "is_default")]
    pub rekey_mask: u64,
    /// The number of bits by which the masked counter is shifted down.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rekey_shift: u8,
    /// The first encrypted byte, counted from the security header. The byte after that header if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidentiality_offset: Option<u8>,
    /// The context of the key derivation over IPv6 with source identifiers. Public sources disagree.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ipv6_ssi_context: SsiContext,
    /// The keys by association number: `"0"` and `"1"`.
    pub keys: BTreeMap<String, Secrets>,
    /// The association number for sending.
    #[serde(default, skip_serializing_if = "is_default")]
    pub an: u8,
    /// The current epoch of the keys.
    #[serde(default, skip_serializing_if = "is_default")]
    pub epoch: u16,
    /// The source identifier of the endpoint. At a server, that of its client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ssi: Option<u32>,
    /// The counter of the endpoint's next packet, for tests of its limit. The endpoint's choice if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<u64>,
}

/// The way of a domain to the key of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyMode {
    /// All members use the key of the domain.
    Direct,
    /// Each sender has a derived key.
    Cluster,
    /// This end holds the derived key of a client.
    Client,
    /// This end holds the key of the server.
    Server,
}

/// The context of the key derivation over IPv6 with source identifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SsiContext {
    /// The IPv6 address.
    #[default]
    Address,
    /// The source identifier.
    Ssi,
}

/// One key, or several that a reader of captures tries in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Secrets {
    /// One key.
    One(Secret),
    /// Several keys.
    Several(Vec<Secret>),
}

impl Secrets {
    /// Returns as many keys, without their digits.
    pub(crate) fn hidden(&self) -> Secrets {
        let hidden = Secret("…".into());
        match self {
            Secrets::One(_) => Secrets::One(hidden),
            Secrets::Several(secrets) => Secrets::Several(vec![hidden; secrets.len()]),
        }
    }

    /// Returns the keys in order.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        match self {
            Secrets::One(secret) => core::slice::from_ref(secret).iter(),
            Secrets::Several(secrets) => secrets.iter(),
        }
    }
}

/// A key in hexadecimal digits: 32 bytes, or 44 for a client. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
