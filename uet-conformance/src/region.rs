//! A memory region of the device, as requests address it.

use uet_control::{ExposeRegion, Fill, Hex64, Permission};

/// A memory region of the device with the fields that address it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its number in the control channel.
    pub number: u64,
    /// The job.
    pub job: u32,
    /// The process.
    pub process: u16,
    /// The resource index.
    pub index: u16,
    /// Its generation.
    pub generation: u8,
    /// The memory key.
    pub key: u64,
    /// Message id of requests for it.
    pub message_id: u16,
    /// Its length.
    pub length: u64,
}

impl Region {
    /// Returns the request to expose this region.
    pub fn exposure(&self, permissions: &[Permission], fill: Option<Fill>) -> ExposeRegion {
        ExposeRegion {
            length: self.length,
            key: Hex64(self.key),
            job: Some(self.job),
            process: self.process,
            index: self.index,
            generation: self.generation,
            permissions: permissions.to_vec(),
            fill,
        }
    }
}
