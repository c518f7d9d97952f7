//! What an application may ask for.

use super::memory::{Key, RegionId};
use super::request::Form;
use crate::{Mode, Pool, Route};
use bytes::Bytes;
use core::net::IpAddr;
use uet_wire::WriteError;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode};

/// Names an operation, from when it is posted to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u64);

impl core::fmt::Display for OperationId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "operation {}", self.0)
    }
}

/// Whom operations are for, and how they get there.
///
/// ```
/// use uet_model::ses::Peer;
///
/// let peer = Peer { index: 0x00a, generation: 1, ..Peer::relative([10, 0, 1, 12], 101, 2) };
/// assert!(peer.relative);
/// assert_eq!(peer.route.job, 101);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// How its packets go: job, address, traffic class, mode.
    pub route: Route,
    /// Whether the process is named by job and number; else by its number alone.
    pub relative: bool,
    /// The number of its process.
    pub pid: u16,
    /// The index there.
    pub index: u16,
    /// The generation of that index.
    pub generation: u8,
    /// Our own rank, which it matches by.
    pub initiator: u32,
}

impl Peer {
    /// A process of a job, by reliable unordered delivery, at index 0.
    pub fn relative(address: impl Into<IpAddr>, job: u32, pid: u16) -> Self {
        let destination = address.into();
        let route = Route { job, destination, class: 0, mode: Mode::Rud, pool: Pool::General, context: 0 };
        Peer { route, relative: true, pid, index: 0, generation: 0, initiator: 0 }
    }

    /// The same by absolute addressing: the job plays no part.
    pub fn absolute(address: impl Into<IpAddr>, pid: u16) -> Self {
        Peer { relative: false, ..Peer::relative(address, 0, pid) }
    }

    /// The same by another delivery mode.
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
    /// Whom it is for.
    pub peer: Peer,
    /// What it does.
    pub work: Work,
    /// Data for the completion at the target.
    pub header_data: Option<u64>,
    /// Whether the last response shall wait until all data is visible.
    pub delivery_complete: bool,
    /// The header to use; else the parameters say.
    pub form: Option<Form>,
}

impl Operation {
    /// An operation without any of the extras.
    pub fn new(peer: Peer, work: Work) -> Self {
        Operation { peer, work, header_data: None, delivery_complete: false, form: None }
    }
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing, and is answered.
    NoOp,
    /// Writes into a region.
    Write {
        /// The region.
        key: Key,
        /// Where in it.
        offset: u64,
        /// What.
        data: Bytes,
    },
    /// Reads from a region.
    Read {
        /// The region.
        key: Key,
        /// Where in it.
        offset: u64,
        /// How much.
        length: u32,
    },
    /// Sends into the next buffer, or the one that the tag selects.
    Send {
        /// The match bits of a tagged send.
        tag: Option<u64>,
        /// What.
        data: Bytes,
    },
    /// Sends one packet.
    Datagram {
        /// What.
        data: Bytes,
    },
    /// Sends the first bytes; the target reads the rest when it wants it.
    Rendezvous {
        /// The match bits of a tagged send.
        tag: Option<u64>,
        /// The region of ours that holds the message.
        source: RegionId,
        /// Where in it the message starts.
        offset: u64,
        /// How long the message is.
        length: u32,
        /// How many bytes come at once.
        eager: u32,
    },
    /// Sends; the target may put it off.
    Deferrable {
        /// The match bits of a tagged send.
        tag: Option<u64>,
        /// What.
        data: Bytes,
    },
    /// An atomic operation.
    Atomic {
        /// On what.
        on: AtomicOn,
        /// The operation.
        opcode: AtomicOpcode,
        /// The type of the elements.
        datatype: AtomicDatatype,
        /// What with.
        operand: Operand,
        /// Whether the old value comes back.
        fetch: bool,
    },
}

/// What an atomic works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOn {
    /// A region.
    Memory {
        /// The region.
        key: Key,
        /// Where in it.
        offset: u64,
    },
    /// The buffer of the receive that the tag selects.
    Tagged {
        /// The match bits.
        tag: u64,
        /// Where in the buffer.
        offset: u64,
    },
}

/// What an atomic works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Elements, one after another, as they lie in memory.
    Elements(Bytes),
    /// None: an atomic read of so many bytes.
    None(u32),
    /// The two values of a compare and swap of one element, in the lower bits.
    Swap {
        /// What is compared with memory.
        compare: u128,
        /// What is stored.
        swap: u128,
    },
}

impl Work {
    /// The request that does it.
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

/// Why an operation could not be posted. Nothing has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// As many operations are in flight as there may be.
    Full,
    /// It has to fit one packet, and does not.
    TooLong {
        /// What would fit.
        most: u32,
    },
    /// Atomics and sends are not idempotent, and datagrams get no answer: this mode cannot carry it.
    Mode,
    /// The header asked for cannot say it.
    Form,
    /// A value does not fit its field.
    Header(WriteError),
    /// There is no such region of ours, or the message does not lie in it.
    Source,
}

impl core::fmt::Display for PostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PostError::Full => f.write_str("as many operations as there may be are in flight"),
            PostError::TooLong { most } => write!(f, "it has to fit one packet of {most} bytes"),
            PostError::Mode => f.write_str("this delivery mode cannot carry it"),
            PostError::Form => f.write_str("the header asked for cannot say it"),
            PostError::Header(error) => write!(f, "a value does not fit its field: {error}"),
            PostError::Source => f.write_str("the message does not lie in a region of ours"),
        }
    }
}

impl core::error::Error for PostError {}
