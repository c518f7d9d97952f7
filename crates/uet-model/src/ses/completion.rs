//! Completions for the application.

use super::address::ResourceIndex;
use super::matching::{ReceiveId, Sender};
use super::memory::RegionId;
use super::operation::OperationId;
use crate::Failure;
use bytes::Bytes;
use core::fmt;
use uet_wire::registry::{List, ReturnCode};

/// A completion. There is one for each operation, and one for each receive that a send matched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum Completion {
    /// An operation of this endpoint completed.
    Operation {
        /// The operation.
        id: OperationId,
        /// The result.
        result: Result<Done, OperationError>,
    },
    /// A receive completed.
    Received(Received),
    /// A peer wrote to a region, with header data.
    Written(Written),
}

/// The result of a successful operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Done {
    /// The number of bytes that the target accepted or sent.
    pub length: u32,
    /// The list that a send matched.
    pub list: List,
    /// The data that was read, or the old value.
    pub data: Bytes,
}

/// The failure of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct OperationError {
    /// The return code: the target's, or UNDELIVERABLE, or CANCELLED.
    pub code: ReturnCode,
    /// The current generation, with BAD_GENERATION.
    pub generation: u8,
    /// The number of bytes placed before.
    pub length: u32,
    /// The reason why it could not be delivered, if that is the cause.
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

/// The result of a receive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Received {
    /// The receive.
    pub id: ReceiveId,
    /// The index where it was posted.
    pub index: ResourceIndex,
    /// The sender of the message.
    pub sender: Sender,
    /// The return code.
    pub code: ReturnCode,
    /// The data; empty if the receive had the caller's memory.
    pub data: Bytes,
    /// The number of bytes in the buffer.
    pub length: u32,
    /// The length of the message.
    pub total: u32,
    /// The list that the send matched.
    pub list: List,
    /// The sender's header data.
    pub header_data: Option<u64>,
}

/// A write of a peer with header data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Written {
    /// The region.
    pub region: RegionId,
    /// The offset in the region.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
    /// The sender.
    pub sender: Sender,
    /// The header data.
    pub header_data: u64,
}
