use super::byte_order::ByteOrder;
use core::time::Duration;
use uet_wire::registry::ReturnCode;

/// The parameters of the semantics. "Open" marks values that public sources leave open. The rest are limits, so that no
/// peer can exhaust the memory of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct SesParams {
    /// The header form for a message of one packet. Open: the standard one, which carries the most fields.
    pub form: FormChoice,
    /// The meaning of `resource_index` in a SMALL request to memory, which has no key. Open.
    pub small_index: SmallIndex,
    /// True if `ri_generation` protects memory as it protects queues. Open: yes, as in the example of the articles.
    pub region_generation: bool,
    /// True if a request with `dc` is answered once its data is visible. Otherwise it is refused, as section 3.4.8.3 permits.
    pub delivery_complete: bool,
    /// The return code for an access outside its region. Open: BAD_ADDR, which a table of codes names for it;
    /// implementations also use AT_OUT_OF_RANGE and UNSUPPORTED_SIZE.
    pub out_of_range: ReturnCode,
    /// The return code for an access without permission: OP_VIOLATION, PERM_VIOLATION or AT_PERM.
    pub denied: ReturnCode,
    /// The handling of a send longer than its buffer.
    pub too_long: TooLong,
    /// True if ACKs may carry read data, up to Max_ACK_Data_Size. The sources leave open when they may. Here they do
    /// whenever the data fits.
    pub read_in_ack: bool,
    /// The position from which a deferred send restarts. Open.
    pub restart: Restart,
    /// The first token in a DEFERRABLE_RTR. Disputed.
    pub ready_tokens: TokenOrder,
    /// True if a DEFERRABLE_RTR without a target token restarts the send. Otherwise it is refused, and the send fails. Open.
    pub accept_zero_token: bool,
    /// The packet that ends a message early. Targets understand both forms.
    pub abort: Abort,
    /// The byte order of the elements of atomics in memory. Open.
    pub byte_order: ByteOrder,
    /// The byte order of the operands and results of atomics in packets; `None` for that of memory. Open.
    pub operand_order: Option<ByteOrder>,
    /// The first operand of an ordered compare and swap. Open.
    pub swap_order: SwapOrder,
    /// `request_length` of a compare and swap, and `modified_length` of the old value that it returns; `None` for the
    /// length of an element. Open.
    pub swap_length: Option<u32>,
    /// The opcode of datagrams by UUD. Open.
    pub uud_opcode: UudOpcode,
    /// True if an atomic with a floating-point fault (AMO_FP_NAN and so on) is refused and changes nothing. Open: no.
    pub float_faults: bool,
    /// True if a message completes with an immediate UET_RESPONSE, even where the default response would do.
    pub explicit_completion: bool,
    /// True if UET_RESPONSE acknowledges the last request of a read whose data uses the return direction. Otherwise it
    /// gets the default response, like the other requests. Open.
    pub explicit_read: bool,

    /// The number of repetitions of a no-op, a read, or a write without header data on a new context. They follow a
    /// NACK code that ended the old context and permits repetition. Sends and atomics are never repeated, because part
    /// of them may have arrived.
    pub max_repeats: u8,
    /// The number of repetitions of a send that was refused with BAD_GENERATION, each with the generation that the
    /// refusal states. Open: none, so that the application learns of the refusal.
    pub generation_repeats: u8,

    /// The `message_id` of the first message. For tests of the wrap.
    pub start_message_id: u16,

    /// The maximum number of operations in flight.
    pub max_operations: u16,
    /// The maximum number of arriving messages of several packets. Beyond it, a refused message
    /// of a peer that has not confirmed its context is forgotten; if there is none, the reply is NACK NO_SES_MSG_AVAIL.
    pub max_messages: u16,
    /// The maximum number of packets of read data in flight. Beyond it, the reply to a read is NACK NO_RESOURCE.
    pub max_reads: u16,
    /// The maximum number of bytes of read data outstanding; 1 MiB. Beyond it, reads wait. A target does not announce
    /// its capacity.
    pub max_awaited: u32,
    /// The maximum number of unexpected messages of an index. Beyond it, the response is NO_MATCH.
    pub max_unexpected: u16,
    /// The maximum number of bytes of unexpected messages of an index. Bytes count as they arrive.
    pub max_unexpected_bytes: u32,
    /// The part of `max_unexpected` that one peer may use. All peers that have not confirmed a context share one such
    /// part, because their addresses may be forged.
    pub max_unexpected_of_peer: u16,
    /// The part of `max_unexpected_bytes` that one peer may use. The rule of `max_unexpected_of_peer` applies.
    pub max_unexpected_bytes_of_peer: u32,
    /// The time without progress after which a message that is arriving is given up; between this time and twice as
    /// long. An unexpected message of a peer that has not confirmed its context is given up too.
    pub stall_time: Duration,
    /// The maximum number of deferred sends of an index. Beyond it, the response is NO_MATCH. Half of them are for
    /// peers that have confirmed their context.
    pub max_deferred: u16,
    /// The maximum number of completions of peers' writes that wait for the application. Beyond it, the reply to a
    /// write with header data is NACK NO_RESOURCE.
    pub max_written: u16,
    /// The maximum number of events in the queue. The oldest are dropped.
    pub max_events: u16,
}

/// See [`SesParams::form`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormChoice {
    /// Always the standard header.
    #[default]
    Standard,
    /// The shortest form that can express the operation.
    Shortest,
}

/// See [`SesParams::small_index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallIndex {
    /// The 12-bit optimized key of the region.
    #[default]
    OptimizedKey,
    /// An index, whose region has the optimized key 0.
    Index,
}

/// See [`SesParams::too_long`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooLong {
    /// Truncates the send; `modified_length` states the length.
    #[default]
    Truncate,
    /// Refuses the send with TOO_LONG.
    Refuse,
}

/// See [`SesParams::restart`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// The start of the message.
    #[default]
    Start,
    /// The `buffer_offset` of the DEFERRABLE_RTR.
    Offset,
}

/// See [`SesParams::ready_tokens`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenOrder {
    /// The token of the message's sender, as in the drawing of the header.
    #[default]
    InitiatorFirst,
    /// The token of the DEFERRABLE_RTR's sender.
    SenderFirst,
}

impl TokenOrder {
    /// Orders the tokens of initiator and target, or restores that order.
    pub(super) fn of(self, (initiator, target): (u32, u32)) -> (u32, u32) {
        match self {
            TokenOrder::InitiatorFirst => (initiator, target),
            TokenOrder::SenderFirst => (target, initiator),
        }
    }
}

/// See [`SesParams::abort`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub enum Abort {
    /// UET_MSG_ERROR.
    #[default]
    MessageError,
    /// An empty last packet with `ie`.
    InitiatorError,
}

/// See [`SesParams::swap_order`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwapOrder {
    /// CSWAP_LE swaps if operand <= memory.
    #[default]
    OperandFirst,
    /// CSWAP_LE swaps if memory <= operand.
    MemoryFirst,
}

/// See [`SesParams::uud_opcode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UudOpcode {
    /// UET_DATAGRAM_SEND. The target drops other opcodes.
    #[default]
    DatagramSend,
    /// UET_SEND. The target accepts UET_DATAGRAM_SEND too.
    Send,
}

impl Default for SesParams {
    fn default() -> Self {
        SesParams {
            form: FormChoice::default(),
            small_index: SmallIndex::default(),
            region_generation: true,
            delivery_complete: true,
            out_of_range: ReturnCode::BAD_ADDR,
            denied: ReturnCode::OP_VIOLATION,
            too_long: TooLong::default(),
            read_in_ack: true,
            restart: Restart::default(),
            ready_tokens: TokenOrder::default(),
            accept_zero_token: false,
            abort: Abort::default(),
            byte_order: ByteOrder::default(),
            operand_order: None,
            swap_order: SwapOrder::default(),
            swap_length: None,
            uud_opcode: UudOpcode::default(),
            float_faults: false,
            explicit_completion: false,
            explicit_read: false,
            max_repeats: 3,
            generation_repeats: 0,
            start_message_id: 1,
            max_operations: 4096,
            max_messages: 1024,
            max_reads: 1024,
            max_awaited: 1 << 20,
            max_unexpected: 256,
            max_unexpected_bytes: 1 << 20,
            max_unexpected_of_peer: 64,
            max_unexpected_bytes_of_peer: 1 << 18,
            stall_time: Duration::from_secs(5),
            max_deferred: 256,
            max_written: 4096,
            max_events: 4096,
        }
    }
}
