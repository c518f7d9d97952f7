//! Memory of the device, as requests address it: regions, and the buffers of receives.

use uet_control::{ExposeRegion, Fill, Hex64, Permission, PostReceive};
use uet_wire::registry::ReturnCode;

/// All that a region can permit.
pub(crate) const ALL: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Atomic];

/// The return codes for an access that a region does not permit.
pub(crate) const DENIED: &[ReturnCode] =
    &[ReturnCode::OP_VIOLATION, ReturnCode::PERM_VIOLATION, ReturnCode::AT_PERM];

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
    /// Returns a region for job 101, process 2 and index 10, which is not exposed yet.
    pub(crate) fn plain(length: u64, key: u64, message_id: u16) -> Self {
        Region { number: 0, job: 101, process: 2, index: 10, generation: 0, key, message_id, length }
    }

    /// Returns this region for the `n`-th of several messages, each with a message_id of its own, which is
    /// not 0.
    pub fn for_message(&self, n: u32) -> Self {
        let id = (u32::from(self.message_id) + n) % 0xffff + 1;
        Region { message_id: id as u16, ..self.clone() }
    }

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

/// Room for a plain send to index 10 of process 2 of job 101.
pub fn room(length: u64) -> PostReceive {
    PostReceive {
        length,
        job: Some(101),
        process: 2,
        index: 10,
        tag: None,
        ignore: Hex64(0),
        initiator: None,
    }
}

/// Room for a tagged send with these match bits, for the same index, process and job.
pub fn tagged_room(length: u64, bits: u64) -> PostReceive {
    PostReceive { tag: Some(Hex64(bits)), ..room(length) }
}
