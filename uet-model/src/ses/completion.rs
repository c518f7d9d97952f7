//! What the application is told.

use super::address::ResourceIndex;
use super::matching::{ReceiveId, Sender};
use super::memory::RegionId;
use super::operation::OperationId;
use crate::Failure;
use bytes::Bytes;
use core::fmt;
use uet_wire::registry::{List, ReturnCode};

/// Something is over. Comes once for each operation and each receive that a send has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// An operation of ours.
    Operation {
        /// The operation.
        id: OperationId,
        /// How it ended.
        result: Result<Done, OperationError>,
    },
    /// A receive.
    Received(Received),
    /// A write of somebody else, with header data, into a region of ours.
    Written(Written),
}

/// An operation has succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How many bytes the target has accepted, or sent.
    pub length: u32,
    /// Which list a send has met.
    pub list: List,
    /// What was read, or was in memory before.
    pub data: Bytes,
}

/// An operation has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationError {
    /// The code: the target's, or UNDELIVERABLE, or CANCELLED.
    pub code: ReturnCode,
    /// The current generation, with BAD_GENERATION.
    pub generation: u8,
    /// How many bytes had been placed.
    pub length: u32,
    /// Why it could not be delivered.
    pub why: Option<Failure>,
}

impl OperationError {
    pub(super) fn new(code: ReturnCode) -> Self {
        OperationError { code, generation: 0, length: 0, why: None }
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OperationError { code, generation, length, why } = self;
        write!(f, "{code}")?;
        if *code == ReturnCode::BAD_GENERATION {
            write!(f, ", the current one is {generation}")?;
        }
        if *length > 0 {
            write!(f, " after {length} bytes")?;
        }
        match why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for OperationError {}

/// A receive is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The receive.
    pub id: ReceiveId,
    /// Where it was posted.
    pub index: ResourceIndex,
    /// Whose send it was.
    pub sender: Sender,
    /// How it ended.
    pub code: ReturnCode,
    /// The data; empty if the receive had the caller's memory.
    pub data: Bytes,
    /// The number of bytes in the buffer.
    pub length: u32,
    /// How long the message was.
    pub total: u32,
    /// Which list the send had met.
    pub list: List,
    /// The sender's header data.
    pub header_data: Option<u64>,
}

/// Somebody has written into a region, with header data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The region.
    pub region: RegionId,
    /// Where in it.
    pub offset: u64,
    /// How many bytes.
    pub length: u32,
    /// Who.
    pub sender: Sender,
    /// The data.
    pub header_data: u64,
}
