//! Operations that an application may post.

use super::memory::{Key, RegionId};
use super::request::Form;
use crate::{Mode, Pool, Route};
use bytes::Bytes;
use core::net::IpAddr;
use uet_wire::WriteError;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode};

/// The identifier of an operation, from posting to completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

impl core::fmt::Display for OperationId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "operation {}", self.0)
    }
}

/// The target of operations, and the route to it.
///
/// ```
/// use uet_model::ses::Peer;
///
/// let peer = Peer { index: 0x00a, generation: 1, ..Peer::relative([10, 0, 1, 12], 101, 2) };
/// assert!(peer.relative);
/// assert_eq!(peer.route.job, 101);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Peer {
    /// The route of its packets: job, address, traffic class, mode.
    pub route: Route,
    /// True if job and number select the process. Otherwise the number alone does.
    pub relative: bool,
    /// The number of the target process.
    pub pid: u16,
    /// The index at the target.
    pub index: u16,
    /// The generation of that index.
    pub generation: u8,
    /// Our rank, which receives can match.
    pub initiator: u32,
}

impl Peer {
    /// Returns a process of a job, reached by RUD, at index 0.
    pub fn relative(address: impl Into<IpAddr>, job: u32, pid: u16) -> Self {
        let destination = address.into();
        let route = Route { job, destination, class: 0, mode: Mode::Rud, pool: Pool::General, context: 0 };
        Peer { route, relative: true, pid, index: 0, generation: 0, initiator: 0 }
    }

    /// Returns a process by absolute addressing, which ignores the job.
    pub fn absolute(address: impl Into<IpAddr>, pid: u16) -> Self {
        Peer { relative: false, ..Peer::relative(address, 0, pid) }
    }

    /// Returns the peer reached by another delivery mode.
    pub fn by(mut self, mode: Mode) -> Self {
        self.route.mode = mode;
        self
    }
}

/// An operation to post.
///
/// ```
/// use bytes::Bytes;
/// use uet_model::ses::{Key, Operation, Peer, Work};
///
/// let peer = Peer::relative([10, 0, 1, 12], 101, 2);
/// let data = Bytes::from_static(b"hello");
/// let write = Operation::new(peer, Work::Write { key: Key(0xacce5), offset: 0, data });
/// let write = Operation { header_data: Some(11), ..write };
/// # let _ = write;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The target.
    pub peer: Peer,
    /// The work.
    pub work: Work,
    /// Data for the completion at the target.
    pub header_data: Option<u64>,
    /// True if the last response must wait until all data is visible.
    pub delivery_complete: bool,
    /// The header form. With `None`, the parameters decide.
    pub form: Option<Form>,
}

impl Operation {
    /// Returns an operation without options.
    pub fn new(peer: Peer, work: Work) -> Self {
        Operation { peer, work, header_data: None, delivery_complete: false, form: None }
    }
}

/// The work of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A no-op, which gets a response.
    NoOp,
    /// Writes to a region.
    Write {
        /// The region.
        key: Key,
        /// The offset in the region.
        offset: u64,
        /// The data.
        data: Bytes,
    },
    /// Reads from a region.
    Read {
        /// The region.
        key: Key,
        /// The offset in the region.
        offset: u64,
        /// The number of bytes.
        length: u32,
    },
    /// Sends to the next buffer, or to the buffer that the tag selects.
    Send {
        /// The match bits of a tagged send.
        tag: Option<u64>,
        /// The data.
        data: Bytes,
    },
    /// Sends a datagram of one packet.
    Datagram {
        /// The data.
        data: Bytes,
    },
    /// Sends the first bytes. The target reads the rest when it has a receive.
    Rendezvous {
        /// The match bits of a tagged send.
        tag: Option<u64>,
        /// The local region that holds the message.
        source: RegionId,
        /// The offset of the message in the region.
        offset: u64,
        /// The length of the message.
        length: u32,
        /// The number of bytes sent in the request.
        eager: u32,
    },
    /// Sends a message that the target may defer.
    Deferrable {
        /// The match bits of a tagged send.
        tag: Option<u64>,
        /// The data.
        data: Bytes,
    },
    /// An atomic operation.
    Atomic {
        /// The target of the atomic.
        on: AtomicOn,
        /// The operation.
        opcode: AtomicOpcode,
        /// The type of the elements.
        datatype: AtomicDatatype,
        /// The operands.
        operand: Operand,
        /// True if the operation returns the old value.
        fetch: bool,
    },
}

/// The target of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOn {
    /// A region.
    Memory {
        /// The region.
        key: Key,
        /// The offset in the region.
        offset: u64,
    },
    /// The buffer of the receive that the tag selects.
    Tagged {
        /// The match bits.
        tag: u64,
        /// The offset in the buffer.
        offset: u64,
    },
}

/// The operands of an atomic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Elements in their memory layout.
    Elements(Bytes),
    /// None, for an atomic read of this many bytes.
    None(u32),
    /// The values of a compare and swap of one element, in the lower bits.
    Swap {
        /// The value to compare with memory.
        compare: u128,
        /// The value to store.
        swap: u128,
    },
}

impl Work {
    /// Returns the opcode of the request.
    pub fn opcode(&self) -> Opcode {
        match self {
            Work::NoOp => Opcode::UET_NO_OP,
            Work::Write { .. } => Opcode::UET_WRITE,
            Work::Read { .. } => Opcode::UET_READ,
            Work::Send { tag: None, .. } => Opcode::UET_SEND,
            Work::Send { tag: Some(_), .. } => Opcode::UET_TAGGED_SEND,
            Work::Datagram { .. } => Opcode::UET_DATAGRAM_SEND,
            Work::Rendezvous { tag: None, .. } => Opcode::UET_RENDEZVOUS_SEND,
            Work::Rendezvous { tag: Some(_), .. } => Opcode::UET_RENDEZVOUS_TSEND,
            Work::Deferrable { tag: None, .. } => Opcode::UET_DEFERRABLE_SEND,
            Work::Deferrable { tag: Some(_), .. } => Opcode::UET_DEFERRABLE_TSEND,
            Work::Atomic { on: AtomicOn::Memory { .. }, fetch: false, .. } => Opcode::UET_ATOMIC,
            Work::Atomic { on: AtomicOn::Memory { .. }, fetch: true, .. } => Opcode::UET_FETCHING_ATOMIC,
            Work::Atomic { on: AtomicOn::Tagged { .. }, fetch: false, .. } => Opcode::UET_TSEND_ATOMIC,
            Work::Atomic { on: AtomicOn::Tagged { .. }, fetch: true, .. } => Opcode::UET_TSEND_FETCH_ATOMIC,
        }
    }
}

/// The reason why an operation could not be posted. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The limit of operations in flight is reached.
    Full,
    /// The operation must fit one packet, but does not.
    TooLong {
        /// The maximum number of bytes that fit.
        most: u32,
    },
    /// The mode cannot carry the operation: atomics and sends are not idempotent, and datagrams get no response.
    Mode,
    /// The requested header form cannot express the operation.
    Form,
    /// A value does not fit its field.
    Header(WriteError),
    /// The local region does not exist, or does not contain the message.
    Source,
}

impl core::fmt::Display for PostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PostError::Full => f.write_str("too many operations are in flight"),
            PostError::TooLong { most } => {
                write!(f, "the operation must fit into one packet of {most} bytes")
            }
            PostError::Mode => f.write_str("the delivery mode does not support this operation"),
            PostError::Form => f.write_str("the requested header form cannot express this operation"),
            PostError::Header(error) => write!(f, "a value does not fit its field: {error}"),
            PostError::Source => f.write_str("the message is not inside a local region"),
        }
    }
}

impl core::error::Error for PostError {}
