//! What the semantics decided, and why: for people, traces and tests.

use super::address::ResourceIndex;
use super::matching::ReceiveId;
use super::memory::RegionId;
use super::operation::OperationId;
use super::request::Form;
use core::fmt;
use core::net::IpAddr;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, List, Opcode, ReturnCode};

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SesEvent {
    /// The application has asked for an operation.
    Posted {
        /// The operation.
        operation: OperationId,
        /// What it is.
        opcode: Opcode,
        /// Its message id.
        message: u16,
        /// The length of its message.
        length: u32,
    },
    /// A packet of an operation has been cut.
    Cut {
        /// The operation.
        operation: OperationId,
        /// The header it has.
        form: Form,
        /// Where in the message it starts.
        offset: u32,
        /// How many bytes it carries, or asks for.
        length: u32,
        /// Whether it is the last.
        last: bool,
    },
    /// Bytes have been placed in a region.
    Placed {
        /// The region.
        region: RegionId,
        /// The address of the first byte.
        address: u64,
        /// How many.
        length: u32,
    },
    /// An atomic has acted on memory.
    Acted {
        /// The address of the first element.
        address: u64,
        /// What it did.
        opcode: AtomicOpcode,
        /// On what.
        datatype: AtomicDatatype,
        /// On how many.
        elements: u32,
    },
    /// A region has been read for somebody.
    Read {
        /// The region.
        region: RegionId,
        /// The address of the first byte.
        address: u64,
        /// How many bytes.
        length: u32,
        /// Whether they ride in the ACK; else they go in a request of the return direction.
        in_ack: bool,
    },
    /// A send has been matched, or kept for a receive to come.
    Matched {
        /// Where.
        index: ResourceIndex,
        /// Which list it was.
        list: List,
        /// The receive, when there is one.
        receive: Option<ReceiveId>,
    },
    /// A deferrable send has been put off: nothing matches yet.
    Deferred {
        /// Where.
        index: ResourceIndex,
        /// The initiator's token.
        token: u32,
    },
    /// A deferred send is wanted now; or the other side says that it wants ours.
    Ready {
        /// The initiator's token.
        initiator: u32,
        /// The target's token.
        target: u32,
    },
    /// The rest of a rendezvous send is being read.
    Fetching {
        /// The read.
        operation: OperationId,
        /// How many bytes.
        length: u32,
    },
    /// A request has been answered with an error.
    Refused {
        /// Who sent it.
        from: IpAddr,
        /// What it was, if it could be read.
        opcode: Option<Opcode>,
        /// The code.
        code: ReturnCode,
        /// The reason.
        why: Why,
    },
    /// A request has been sent back to PDS, which answers with a NACK: there is no room for it now.
    SentBack {
        /// Who sent it.
        from: IpAddr,
        /// What there is no room for.
        why: Why,
    },
    /// A datagram has been dropped: nobody hears an answer.
    Dropped {
        /// Who sent it.
        from: IpAddr,
        /// The reason.
        why: Why,
    },
    /// Read data, a response or a token has come that nothing here waits for.
    Unexpected {
        /// The reason.
        why: Why,
    },
    /// An operation is over.
    Completed {
        /// The operation.
        operation: OperationId,
        /// How it ended.
        code: ReturnCode,
        /// How many bytes it moved.
        length: u32,
    },
    /// A receive is over.
    Received {
        /// The receive.
        receive: ReceiveId,
        /// How it ended.
        code: ReturnCode,
        /// How many bytes it got.
        length: u32,
    },
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The headers cannot be read, or are of no request.
    Malformed,
    /// This packet may not be sent by this delivery mode.
    Mode,
    /// Nothing is known that this opcode would do.
    Opcode(Opcode),
    /// A message of one packet has more, or fewer.
    NotWhole,
    /// The packet says other lengths than it has, or than others of its message.
    Lengths,
    /// The packet belongs to a message that is something else.
    OtherMessage,
    /// More is asked for than a packet holds.
    TooMuch,
    /// No such job.
    NoJob(u32),
    /// No such process.
    NoProcess(u16),
    /// No endpoint of the process owns this index.
    NoIndex(u16),
    /// The generation is not current.
    Generation {
        /// What the request said.
        seen: u8,
        /// What it should have said.
        current: u8,
    },
    /// The index is disabled.
    Disabled,
    /// The index has run out of buffers, and waits for its generation to be raised.
    Exhausted,
    /// No receive matches, and nothing can be kept.
    NoMatch,
    /// The message is longer than its buffer.
    TooLong,
    /// No region has this key.
    NoKey(u64),
    /// The region is no longer there.
    RegionGone,
    /// The region does not permit it.
    NotPermitted,
    /// The region is not marked as safe to repeat operations on.
    NotIdempotent,
    /// The address wraps around.
    AddressWraps,
    /// The access is not inside the region.
    OutOfRange {
        /// Where it starts.
        offset: u64,
        /// How long it is.
        length: u64,
        /// How long the region is.
        size: u64,
    },
    /// The host's memory is out of order.
    Host,
    /// The atomic operation is not there, or not for this datatype.
    AtomicOpcode(AtomicOpcode),
    /// The datatype is not there.
    AtomicDatatype(AtomicDatatype),
    /// The length is not that of whole elements.
    AtomicSize,
    /// The address is not a multiple of the element's size.
    Alignment(u64),
    /// The result is no number, or too large, or too small.
    Float,
    /// The initiator gave the message up.
    GivenUp,
    /// The application here gave it up.
    Cancelled,
    /// The message has failed before; its other packets share its fate.
    FailedBefore,
    /// The other side has no such token, or no longer.
    NoToken(u32),
    /// No read waits for this data.
    NoRead,
    /// Too many messages are arriving.
    MessagesFull,
    /// Too much read data is on its way.
    ReadsFull,
    /// Too many completions wait for the application.
    CompletionsFull,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Malformed => f.write_str("it is not a request"),
            Why::Mode => f.write_str("it may not be sent by this delivery mode"),
            Why::Opcode(opcode) => write!(f, "nothing is known that {opcode} does"),
            Why::NotWhole => f.write_str("it has to be a message of one packet"),
            Why::Lengths => f.write_str("its lengths contradict each other"),
            Why::OtherMessage => f.write_str("it contradicts the message that it is part of"),
            Why::TooMuch => f.write_str("it asks for more than a packet holds"),
            Why::NoJob(job) => write!(f, "there is no job {job}"),
            Why::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Why::NoIndex(index) => write!(f, "no endpoint owns index {index}"),
            Why::Generation { seen, current } => {
                write!(f, "its generation is {seen}, and the current one {current}")
            }
            Why::Disabled => f.write_str("the index is disabled"),
            Why::Exhausted => f.write_str("the index has run out of buffers"),
            Why::NoMatch => f.write_str("no receive matches it"),
            Why::TooLong => f.write_str("it is longer than its buffer"),
            Why::NoKey(key) => write!(f, "no region has the key {key:#x}"),
            Why::RegionGone => f.write_str("its region is gone"),
            Why::NotPermitted => f.write_str("the region does not permit it"),
            Why::NotIdempotent => f.write_str("the region is not marked as safe to repeat operations on"),
            Why::AddressWraps => f.write_str("its address wraps around"),
            Why::OutOfRange { offset, length, size } => {
                write!(f, "{length} bytes at {offset} are not inside a region of {size}")
            }
            Why::Host => f.write_str("the host's memory is out of order"),
            Why::AtomicOpcode(opcode) => write!(f, "{opcode} is not there for this datatype"),
            Why::AtomicDatatype(datatype) => write!(f, "the host has no {datatype}"),
            Why::AtomicSize => f.write_str("its length is not that of whole elements"),
            Why::Alignment(address) => write!(f, "{address:#x} is not aligned"),
            Why::Float => f.write_str("the result cannot be represented"),
            Why::GivenUp => f.write_str("the initiator gave it up"),
            Why::Cancelled => f.write_str("the application gave it up"),
            Why::FailedBefore => f.write_str("its message has failed before"),
            Why::NoToken(token) => write!(f, "nothing waits for the token {token:#x}"),
            Why::NoRead => f.write_str("no read waits for this data"),
            Why::MessagesFull => f.write_str("as many messages as there may be are arriving"),
            Why::ReadsFull => f.write_str("as much read data as there may be is on its way"),
            Why::CompletionsFull => {
                f.write_str("as many completions as there may be wait for the application")
            }
        }
    }
}

impl fmt::Display for SesEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SesEvent::Posted { operation, opcode, message, length } => {
                write!(f, "{operation} is {opcode} of {length} bytes, message {message}")
            }
            SesEvent::Cut { operation, form, offset, length, last } => {
                let last = if *last { ", the last" } else { "" };
                write!(f, "{operation}: a {form} packet of bytes {offset} to {}{last}", offset + length)
            }
            SesEvent::Placed { region, address, length } => {
                write!(f, "{length} bytes placed at {address:#x}, in region {}", region.0)
            }
            SesEvent::Acted { address, opcode, datatype, elements } => {
                write!(f, "{opcode} of {elements} {datatype} at {address:#x}")
            }
            SesEvent::Read { region, address, length, in_ack } => {
                let way = if *in_ack { "in the ACK" } else { "on the return direction" };
                write!(f, "{length} bytes read at {address:#x}, in region {}, to go {way}", region.0)
            }
            SesEvent::Matched { index, receive: Some(receive), list } => {
                write!(f, "a send to {index} goes to {receive}, from {list}")
            }
            SesEvent::Matched { index, receive: None, .. } => {
                write!(f, "a send to {index} is unexpected, and kept")
            }
            SesEvent::Deferred { index, token } => write!(f, "the send {token:#x} to {index} is put off"),
            SesEvent::Ready { initiator, target } => {
                write!(f, "the deferred send {initiator:#x} is wanted now, as {target:#x}")
            }
            SesEvent::Fetching { operation, length } => {
                write!(f, "{operation} reads the other {length} bytes of a rendezvous send")
            }
            SesEvent::Refused { from, opcode: Some(opcode), code, why } => {
                write!(f, "{opcode} from {from} is answered {code}: {why}")
            }
            SesEvent::Refused { from, opcode: None, code, why } => {
                write!(f, "a packet from {from} is answered {code}: {why}")
            }
            SesEvent::SentBack { from, why } => write!(f, "a request from {from} is sent back: {why}"),
            SesEvent::Dropped { from, why } => write!(f, "a datagram from {from} is dropped: {why}"),
            SesEvent::Unexpected { why } => write!(f, "something came that was not expected: {why}"),
            SesEvent::Completed { operation, code, length } => {
                write!(f, "{operation} has ended with {code} after {length} bytes")
            }
            SesEvent::Received { receive, code, length } => {
                write!(f, "{receive} has ended with {code} and {length} bytes")
            }
        }
    }
}
