use uet_wire::registry::ReturnCode;

/// The parameters of the semantics. Most name something that public sources leave open; the rest are bounds, so that no
/// peer can make an endpoint grow.
#[derive(Clone, Debug, PartialEq)]
pub struct SesParams {
    /// Which header a message of one packet gets. Open: the standard one, which says most.
    pub form: FormChoice,
    /// What `resource_index` of a SMALL request to memory means, which has no key. Open.
    pub small_index: SmallIndex,
    /// Whether `ri_generation` guards memory as it guards queues. Open: yes, as in the articles' example.
    pub region_generation: bool,
    /// The answer to an access outside its region. Open: AT_OUT_OF_RANGE; BAD_ADDR and UNSUPPORTED_SIZE are seen too.
    pub out_of_range: ReturnCode,
    /// The answer to an access that the region does not permit: PERM_VIOLATION, or AT_PERM.
    pub denied: ReturnCode,
    /// What happens to a send longer than its buffer.
    pub too_long: TooLong,
    /// Whether read data rides in ACKs at all; if so, up to Max_ACK_Data_Size. Open when it may: whenever it fits.
    pub read_in_ack: bool,
    /// What a deferred send starts again from. Open.
    pub restart: Restart,
    /// Which token of a DEFERRABLE_RTR comes first. Disputed.
    pub ready_tokens: TokenOrder,
    /// How a message is given up that has partly left. Both forms are understood.
    pub abort: Abort,
    /// Which operand of an ordered compare and swap comes first. Open.
    pub swap_order: SwapOrder,
    /// Whether an atomic whose floating-point result is not a number, or overflows or underflows, is refused
    /// (AMO_FP_NAN and so on) and changes nothing. Open: no.
    pub float_faults: bool,
    /// Whether the response that completes a message is a UET_RESPONSE, sent at once, even where the default would do.
    pub explicit_completion: bool,

    /// How often a no-op, a read, or a write without header data is begun anew on another context, when the other side has ended
    /// the one that carried it by a NACK code that allows that. Sends and atomics are not: part of them may have arrived.
    pub max_repeats: u8,

    /// Operations in flight, at most.
    pub max_operations: u16,
    /// Messages of several packets that are arriving, at most: one more is refused with NACK NO_SES_MSG_AVAIL.
    pub max_messages: u16,
    /// Packets of read data on their way, at most: a read beyond is refused with NACK NO_RESOURCE.
    pub max_reads: u16,
    /// Bytes of read data that have been asked for and have not come, at most: reads that want more wait. What a target
    /// can hold ready it does not say; 1 MiB.
    pub max_awaited: u32,
    /// Unexpected messages that an index keeps, at most: one more is answered NO_MATCH.
    pub max_unexpected: u16,
    /// Bytes of unexpected messages that an index keeps, at most.
    pub max_unexpected_bytes: u32,
    /// Deferred sends that an index remembers, at most: one more is answered NO_MATCH.
    pub max_deferred: u16,
    /// Completions of others' writes that wait for the application, at most: a write beyond that has header data is
    /// refused with NACK NO_RESOURCE.
    pub max_written: u16,
    /// Events that wait to be read: the oldest go when there are more.
    pub max_events: u16,
}

/// See [`SesParams::form`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormChoice {
    /// STD always.
    #[default]
    Standard,
    /// The shortest that says all.
    Shortest,
}

/// See [`SesParams::small_index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallIndex {
    /// It is the 12-bit optimised key of the region.
    #[default]
    OptimisedKey,
    /// It is an index as ever, and the region is that with the optimised key 0.
    Index,
}

/// See [`SesParams::too_long`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooLong {
    /// It is cut to fit; `modified_length` says where.
    #[default]
    Truncate,
    /// It is refused: TOO_LONG.
    Refuse,
}

/// See [`SesParams::restart`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Its start.
    #[default]
    Start,
    /// The `buffer_offset` of the DEFERRABLE_RTR.
    Offset,
}

/// See [`SesParams::ready_tokens`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenOrder {
    /// That of who sent the message, as the header is drawn.
    #[default]
    InitiatorFirst,
    /// That of who sends the DEFERRABLE_RTR.
    SenderFirst,
}

impl TokenOrder {
    /// The initiator's token and the target's in this order, or back from it.
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
