//! The decisions of the semantics and their reasons, for people, traces and tests.

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
    /// The application posted an operation.
    Posted {
        /// The operation.
        operation: OperationId,
        /// The opcode.
        opcode: Opcode,
        /// The message id.
        message: u16,
        /// The length of the message.
        length: u32,
    },
    /// A packet of an operation was cut.
    Cut {
        /// The operation.
        operation: OperationId,
        /// The header form.
        form: Form,
        /// The offset in the message.
        offset: u32,
        /// The number of bytes that it carries or requests.
        length: u32,
        /// True if it is the last packet.
        last: bool,
    },
    /// Bytes were placed in a region.
    Placed {
        /// The region.
        region: RegionId,
        /// The address of the first byte.
        address: u64,
        /// The number of bytes.
        length: u32,
    },
    /// An atomic changed or read memory.
    Acted {
        /// The address of the first element.
        address: u64,
        /// The operation.
        opcode: AtomicOpcode,
        /// The type of the elements.
        datatype: AtomicDatatype,
        /// The number of elements.
        elements: u32,
    },
    /// A region was read for a peer.
    Read {
        /// The region.
        region: RegionId,
        /// The address of the first byte.
        address: u64,
        /// The number of bytes.
        length: u32,
        /// True if the ACK carries them. Otherwise a request of the return direction does.
        in_ack: bool,
    },
    /// A send was matched, or kept for a later receive.
    Matched {
        /// The index.
        index: ResourceIndex,
        /// The list.
        list: List,
        /// The receive, if one matched.
        receive: Option<ReceiveId>,
    },
    /// A deferrable send was deferred, because no receive matches yet.
    Deferred {
        /// The index.
        index: ResourceIndex,
        /// The initiator's token.
        token: u32,
    },
    /// A deferred send is requested, by this endpoint or by the peer.
    Ready {
        /// The initiator's token.
        initiator: u32,
        /// The target's token.
        target: u32,
    },
    /// This endpoint reads the rest of a rendezvous send.
    Fetching {
        /// The read.
        operation: OperationId,
        /// The number of bytes.
        length: u32,
    },
    /// A request got an error response.
    Refused {
        /// The sender.
        from: IpAddr,
        /// The opcode, if it could be parsed.
        opcode: Option<Opcode>,
        /// The code.
        code: ReturnCode,
        /// The reason.
        why: Why,
    },
    /// A request was returned to PDS for a NACK, because there is no room for it now.
    SentBack {
        /// The sender.
        from: IpAddr,
        /// The missing room.
        why: Why,
    },
    /// A datagram was dropped without a reply.
    Dropped {
        /// The sender.
        from: IpAddr,
        /// The reason.
        why: Why,
    },
    /// Read data, a response or a token arrived unexpectedly.
    Unexpected {
        /// The reason.
        why: Why,
    },
    /// An operation completed.
    Completed {
        /// The operation.
        operation: OperationId,
        /// The return code.
        code: ReturnCode,
        /// The number of bytes moved.
        length: u32,
    },
    /// A receive completed.
    Received {
        /// The receive.
        receive: ReceiveId,
        /// The return code.
        code: ReturnCode,
        /// The number of bytes received.
        length: u32,
    },
}

/// The reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum Why {
    /// The headers are malformed, or not those of a request.
    Malformed,
    /// The delivery mode cannot carry this request.
    Mode,
    /// The opcode is unknown.
    Opcode(Opcode),
    /// The request asks for delivery complete, which this endpoint does not support.
    Complete,
    /// A message of one packet is split, or an index is missing.
    NotWhole,
    /// A stated length differs from the real one, or from other packets of the message.
    Lengths,
    /// The packet belongs to a message with another opcode or length.
    OtherMessage,
    /// The request exceeds the size of one packet.
    TooMuch,
    /// The job does not exist.
    NoJob(u32),
    /// The process does not exist.
    NoProcess(u16),
    /// No endpoint of the process owns this index.
    NoIndex(u16),
    /// The generation is not current.
    Generation {
        /// The generation in the request.
        seen: u8,
        /// The current generation.
        current: u8,
    },
    /// The index is disabled.
    Disabled,
    /// The index ran out of buffers, and waits for its generation to be raised.
    Exhausted,
    /// No receive matches, and there is no room to keep the send.
    NoMatch,
    /// The message is longer than its buffer.
    TooLong,
    /// No region has this key.
    NoKey(u64),
    /// The region was withdrawn.
    RegionGone,
    /// The region does not permit the access.
    NotPermitted,
    /// The region is not marked as idempotent.
    NotIdempotent,
    /// The address wraps around.
    AddressWraps,
    /// The access reaches outside the region.
    OutOfRange {
        /// The offset of the access.
        offset: u64,
        /// The length of the access.
        length: u64,
        /// The length of the region.
        size: u64,
    },
    /// The memory reported an error.
    Host,
    /// The atomic operation is unknown, or not defined for this datatype.
    AtomicOpcode(AtomicOpcode),
    /// The datatype is not supported.
    AtomicDatatype(AtomicDatatype),
    /// The length is not a whole number of elements.
    AtomicSize,
    /// The address is not aligned to the element size.
    Alignment(u64),
    /// The floating-point result is NaN, or overflows or underflows.
    Float,
    /// The initiator aborted the message.
    GivenUp,
    /// The application of the target cancelled the receive.
    Cancelled,
    /// The message failed before, so its other packets fail too.
    FailedBefore,
    /// The peer does not know the token, or has forgotten it.
    NoToken(u32),
    /// No read waits for this data.
    NoRead,
    /// Too many messages are arriving.
    MessagesFull,
    /// Too much read data is in flight.
    ReadsFull,
    /// Too many completions wait for the application.
    CompletionsFull,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Malformed => f.write_str("it is not a request"),
            Why::Mode => f.write_str("the delivery mode cannot carry it"),
            Why::Opcode(opcode) => write!(f, "opcode {opcode} is unknown"),
            Why::Complete => f.write_str("delivery complete is not supported"),
            Why::NotWhole => f.write_str("it must be a message of one packet"),
            Why::Lengths => f.write_str("its lengths contradict each other"),
            Why::OtherMessage => f.write_str("it contradicts other packets of its message"),
            Why::TooMuch => f.write_str("it asks for more than one packet holds"),
            Why::NoJob(job) => write!(f, "job {job} does not exist"),
            Why::NoProcess(pid) => write!(f, "process {pid} does not exist"),
            Why::NoIndex(index) => write!(f, "no endpoint owns index {index}"),
            Why::Generation { seen, current } => {
                write!(f, "its generation is {seen}, but the current one is {current}")
            }
            Why::Disabled => f.write_str("the index is disabled"),
            Why::Exhausted => f.write_str("the index is out of buffers"),
            Why::NoMatch => f.write_str("no receive matches it"),
            Why::TooLong => f.write_str("it is longer than its buffer"),
            Why::NoKey(key) => write!(f, "no region has the key {key:#x}"),
            Why::RegionGone => f.write_str("its region was withdrawn"),
            Why::NotPermitted => f.write_str("the region does not permit it"),
            Why::NotIdempotent => f.write_str("the region is not marked as idempotent"),
            Why::AddressWraps => f.write_str("its address wraps around"),
            Why::OutOfRange { offset, length, size } => {
                write!(f, "{length} bytes at {offset} are outside a region of {size}")
            }
            Why::Host => f.write_str("the memory reported an error"),
            Why::AtomicOpcode(opcode) => write!(f, "{opcode} is not defined for this datatype"),
            Why::AtomicDatatype(datatype) => write!(f, "datatype {datatype} is not supported"),
            Why::AtomicSize => f.write_str("its length is not a whole number of elements"),
            Why::Alignment(address) => write!(f, "{address:#x} is not aligned"),
            Why::Float => f.write_str("the result cannot be represented"),
            Why::GivenUp => f.write_str("the initiator aborted it"),
            Why::Cancelled => f.write_str("the application cancelled it"),
            Why::FailedBefore => f.write_str("its message failed before"),
            Why::NoToken(token) => write!(f, "nothing waits for the token {token:#x}"),
            Why::NoRead => f.write_str("no read waits for this data"),
            Why::MessagesFull => f.write_str("too many messages are arriving"),
            Why::ReadsFull => f.write_str("too much read data is in flight"),
            Why::CompletionsFull => f.write_str("too many completions wait for the application"),
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
                write!(f, "{length} bytes read at {address:#x}, in region {}, returned {way}", region.0)
            }
            SesEvent::Matched { index, receive: Some(receive), list } => {
                write!(f, "a send to {index} matches {receive}, from {list}")
            }
            SesEvent::Matched { index, receive: None, .. } => {
                write!(f, "an unexpected send to {index} is kept")
            }
            SesEvent::Deferred { index, token } => write!(f, "the send {token:#x} to {index} is deferred"),
            SesEvent::Ready { initiator, target } => {
                write!(f, "the deferred send {initiator:#x} is requested, as {target:#x}")
            }
            SesEvent::Fetching { operation, length } => {
                write!(f, "{operation} reads the other {length} bytes of a rendezvous send")
            }
            SesEvent::Refused { from, opcode: Some(opcode), code, why } => {
                write!(f, "{opcode} from {from} is answered by {code}: {why}")
            }
            SesEvent::Refused { from, opcode: None, code, why } => {
                write!(f, "a packet from {from} is answered by {code}: {why}")
            }
            SesEvent::SentBack { from, why } => write!(f, "a request from {from} is returned to PDS: {why}"),
            SesEvent::Dropped { from, why } => write!(f, "a datagram from {from} is dropped: {why}"),
            SesEvent::Unexpected { why } => write!(f, "unexpected packet: {why}"),
            SesEvent::Completed { operation, code, length } => {
                write!(f, "{operation} completed with {code} after {length} bytes")
            }
            SesEvent::Received { receive, code, length } => {
                write!(f, "{receive} completed with {code} and {length} bytes")
            }
        }
    }
}
