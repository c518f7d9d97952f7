use uet_wire::registry::ReturnCode;

/// The parameters of the semantics. "Open" marks values that public sources leave open. The rest are bounds, so that no peer
/// can make an endpoint grow.
#[derive(Clone, Debug, PartialEq)]
pub struct SesParams {
    /// The header form for a message of one packet. Open: the standard one, which carries most.
    pub form: FormChoice,
    /// The meaning of `resource_index` in a SMALL request to memory, which has no key. Open.
    pub small_index: SmallIndex,
    /// True if `ri_generation` guards memory as it guards queues. Open: yes, as in the example of the articles.
    pub region_generation: bool,
    /// The answer to an access outside its region. Open: AT_OUT_OF_RANGE; BAD_ADDR and UNSUPPORTED_SIZE are seen too.
    pub out_of_range: ReturnCode,
    /// The answer to an access without permission: PERM_VIOLATION, or AT_PERM.
    pub denied: ReturnCode,
    /// The handling of a send longer than its buffer.
    pub too_long: TooLong,
    /// True if ACKs may carry read data, up to Max_ACK_Data_Size. The sources leave open when they may: here whenever it
    /// fits.
    pub read_in_ack: bool,
    /// The position from which a deferred send restarts. Open.
    pub restart: Restart,
    /// The token that comes first in a DEFERRABLE_RTR. Disputed.
    pub ready_tokens: TokenOrder,
    /// The packet that ends a message early. Targets understand both forms.
    pub abort: Abort,
    /// The operand that comes first in an ordered compare and swap. Open.
    pub swap_order: SwapOrder,
    /// True if an atomic with a floating-point fault (AMO_FP_NAN and so on) is refused and changes nothing. Open: no.
    pub float_faults: bool,
    /// True if a UET_RESPONSE, sent at once, completes a message even where the default response would do.
    pub explicit_completion: bool,

    /// The number of repetitions of a no-op, a read, or a write without header data on a new context, after a NACK code that
    /// allows it ended the old one. Sends and atomics are never repeated, because part of them may have arrived.
    pub max_repeats: u8,

    /// The most operations in flight.
    pub max_operations: u16,
    /// The most arriving messages of several packets; beyond, NACK NO_SES_MSG_AVAIL.
    pub max_messages: u16,
    /// The most packets of read data in flight; beyond, NACK NO_RESOURCE to the read.
    pub max_reads: u16,
    /// The most bytes of read data outstanding; beyond, reads wait. A target does not state what it can hold; 1 MiB.
    pub max_awaited: u32,
    /// The most unexpected messages of an index; beyond, NO_MATCH.
    pub max_unexpected: u16,
    /// The most bytes of unexpected messages of an index.
    pub max_unexpected_bytes: u32,
    /// The most deferred sends of an index; beyond, NO_MATCH.
    pub max_deferred: u16,
    /// The most completions of peers' writes that wait for the application; beyond, NACK NO_RESOURCE to a write with header
    /// data.
    pub max_written: u16,
    /// The most events kept; the oldest are dropped.
    pub max_events: u16,
}

/// See [`SesParams::form`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormChoice {
    /// Always STD.
    #[default]
    Standard,
    /// The shortest form that can express the operation.
    Shortest,
}

/// See [`SesParams::small_index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallIndex {
    /// It is the 12-bit optimized key of the region.
    #[default]
    OptimizedKey,
    /// It is an index, and the region has the optimized key 0.
    Index,
}

/// See [`SesParams::too_long`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooLong {
    /// It is truncated; `modified_length` states the length.
    #[default]
    Truncate,
    /// It is refused with TOO_LONG.
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
    /// The token of the message's sender, as the header is drawn.
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
pub enum Abort {
    /// By UET_MSG_ERROR.
    #[default]
    MessageError,
    /// By an empty last packet with `ie`.
    InitiatorError,
}

/// See [`SesParams::swap_order`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwapOrder {
    /// CSWAP_LE swaps when the operand is at most what is in memory.
    #[default]
    OperandFirst,
    /// CSWAP_LE swaps when what is in memory is at most the operand.
    MemoryFirst,
}

impl Default for SesParams {
    fn default() -> Self {
        SesParams {
            form: FormChoice::default(),
            small_index: SmallIndex::default(),
            region_generation: true,
            out_of_range: ReturnCode::AT_OUT_OF_RANGE,
            denied: ReturnCode::PERM_VIOLATION,
            too_long: TooLong::default(),
            read_in_ack: true,
            restart: Restart::default(),
            ready_tokens: TokenOrder::default(),
            abort: Abort::default(),
            swap_order: SwapOrder::default(),
            float_faults: false,
            explicit_completion: false,
            max_repeats: 3,
            max_operations: 4096,
            max_messages: 1024,
            max_reads: 1024,
            max_awaited: 1 << 20,
            max_unexpected: 256,
            max_unexpected_bytes: 1 << 20,
            max_deferred: 256,
            max_written: 4096,
            max_events: 4096,
        }
    }
}
