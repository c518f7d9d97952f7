//! The operations that an application posts.

use crate::memory::UserMemory;
use bytes::Bytes;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// A message to send.
#[derive(Debug)]
pub struct Send {
    /// The number of the peer in the address vector.
    pub to: u64,
    /// The tag; `None` for a plain message.
    pub tag: Option<u64>,
    /// The message.
    pub data: Bytes,
    /// Data for the completion of the receiver.
    pub cq_data: Option<u64>,
    /// True if the operation completes when the message is in the receiver's memory.
    pub delivery_complete: bool,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// The tags that a receive accepts.
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    /// The bits.
    pub bits: u64,
    /// The bits that do not matter.
    pub ignore: u64,
}

/// A buffer for a message.
pub struct Receive {
    /// The number of the sender, or [`UNKNOWN_ADDRESS`](crate::UNKNOWN_ADDRESS) for any.
    pub from: u64,
    /// The tags; `None` for plain messages.
    pub tag: Option<Tag>,
    /// The memory.
    pub memory: Box<dyn UserMemory>,
    /// True if the memory takes several messages.
    pub multi: bool,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// The purpose of a look at unexpected messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// The message stays.
    Look,
    /// The message is set aside for a later receive with the same context.
    Claim,
    /// The message is dropped.
    Discard,
}

/// A read of remote memory.
pub struct Read {
    /// The number of the peer in the address vector.
    pub from: u64,
    /// The key of the region.
    pub key: u64,
    /// The offset in the region.
    pub offset: u64,
    /// The memory for the data, whose length is the number of bytes to read.
    pub memory: Box<dyn UserMemory>,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// A write to remote memory.
#[derive(Debug)]
pub struct Write {
    /// The number of the peer in the address vector.
    pub to: u64,
    /// The key of the region.
    pub key: u64,
    /// The offset in the region.
    pub offset: u64,
    /// The bytes.
    pub data: Bytes,
    /// Data for a completion at the target.
    pub cq_data: Option<u64>,
    /// True if the operation completes when the data is in the target's memory.
    pub delivery_complete: bool,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}

/// An atomic operation on remote memory.
pub struct Atomic {
    /// The number of the peer in the address vector.
    pub to: u64,
    /// The key of the region.
    pub key: u64,
    /// The offset in the region.
    pub offset: u64,
    /// The operation.
    pub opcode: AtomicOpcode,
    /// The data type.
    pub datatype: AtomicDatatype,
    /// The operands, one for each element.
    pub operand: Bytes,
    /// The value to compare with.
    pub compare: Option<Bytes>,
    /// The memory for the old values, if they are wanted.
    pub result: Option<Box<dyn UserMemory>>,
    /// The context of the completion.
    pub context: usize,
    /// True if the completion goes to the queue. A failure always does.
    pub report: bool,
}
