//! The begin of a conversation: the device's secure domain and regions, and the suite's contexts.

use super::saved::{is_default, job, length, peer};
use serde::{Deserialize, Serialize};
use uet_control::KeyMode;

/// A secure domain of the device, with a fresh key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secured {
    /// The device's part in it.
    pub mode: KeyMode,
    /// True if packets carry a source identifier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ssi: bool,
    /// The first epoch.
    #[serde(default, skip_serializing_if = "is_default")]
    pub epoch: u16,
    /// True if the header of a request is readable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub readable: bool,
    /// True if bits of the packet counter select the key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rekeys: bool,
}

/// A change of the keys of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rekey {
    /// It sends with the key in the other slot, which gets one if it is empty.
    Switch,
    /// It sends with a fresh key in the other slot.
    Replace,
    /// It sends in the next epoch.
    Epoch,
}

/// A region of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionPlan {
    /// Its length in bytes.
    #[serde(deserialize_with = "length")]
    pub length: u32,
    /// Number of its job, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
    pub job: u8,
    /// Peers may not read it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_read: bool,
    /// Peers may not write it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_write: bool,
    /// Peers may not perform atomics on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_atomic: bool,
    /// Its key is marked as safe for idempotent operations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub safe: bool,
}

/// A context that the suite opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPlan {
    /// Number of the address of the suite, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "peer")]
    pub peer: u8,
    /// Number of its job, from 0.
    #[serde(default, skip_serializing_if = "is_default", deserialize_with = "job")]
    pub job: u8,
    /// True for a ROD context.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rod: bool,
    /// PDCID of the suite.
    pub pdcid: u16,
    /// The first PSN.
    pub start: u32,
}
