use crate::header::header;
use crate::layout::{Values, is};
use crate::registry::Opcode;
use core::borrow::Borrow;

header! {
    /// The first two bytes of every request.
    ///
    /// ```
    /// use uet_wire::registry::Opcode;
    /// use uet_wire::ses::RequestHead;
    ///
    /// let (head, _) = RequestHead::parse(&[0x09, 0b0000_1011])?;
    /// assert_eq!(head.opcode(), Opcode::UET_TAGGED_SEND);
    /// assert!(head.rel() && head.eom() && head.som() && !head.hd());
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    RequestHead[2] RequestHeadMut RequestHeadRepr, Ses "request_head" "start of a request" {
        "-"                     0..  2;
        "ses.opcode"            2..  8  opcode: Opcode, "what the request does";
        "ses.version"           8.. 10  version: u8, "always 0";
        "ses.dc"               10.. 11  dc: bool, "delivery complete: answer when all data is visible";
        "ses.ie"               11.. 12  ie: bool, "initiator error: the message is given up";
        "ses.rel"              12.. 13  rel: bool, "1: relative addressing, 0: absolute";
        "ses.hd"               13.. 14  hd: bool, "header data is meaningful";
        "ses.eom"              14.. 15  eom: bool, "last packet of the message";
        "ses.som"              15.. 16  som: bool, "first packet of the message";
    }
}

header! {
    /// The destination of a request: job, process and resource index.
    ///
    /// ```
    /// use uet_wire::ses::Address;
    ///
    /// let (address, _) = Address::parse(&[0x01, 0x00, 0x00, 0x65, 0x00, 0x02, 0x01, 0x38])?;
    /// assert_eq!((address.ri_generation(), address.job_id()), (1, 101));
    /// assert_eq!((address.pid_on_fep(), address.resource_index()), (2, 312));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Address[8] AddressMut AddressRepr, Ses "address" "address of a request" {
        "ses.ri_generation"     0..  8  ri_generation: u8, "generation of the resource index";
        "ses.job_id"            8.. 32  job_id: u32, "job";
        "-"                    32.. 36;
        "ses.pid_on_fep"       36.. 48  pid_on_fep: u16, "process at the endpoint";
        "-"                    48.. 52;
        "ses.resource_index"   52.. 64  resource_index: u16, "queue or table of the process";
    }
}

const NOT_DEFERRABLE: Values = Opcode::DEFERRABLE.not();
const MATCHED: Values = Opcode::KEYED.or(Opcode::READY).not();
const MEDIUM_MATCHED: Values = Opcode::KEYED.not();

header! {
    /// A standard request, for messages of any length and any number of packets.
    ///
    /// The second packet of a write of 16 KiB:
    ///
    /// ```
    /// use uet_wire::registry::Opcode;
    /// use uet_wire::ses::Std;
    ///
    /// let bytes = [
    ///     0x01, 0x08, 0x00, 0x01, 0x01, 0x00, 0x00, 0x65, 0x00, 0x02, 0x00, 0x0a, // who
    ///     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // buffer offset, initiator
    ///     0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0xcc, 0xe5, // key
    ///     0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x40, 0x00,
    /// ];
    /// let (write, _) = Std::parse(&bytes)?;
    /// assert_eq!(write.head().opcode(), Opcode::UET_WRITE);
    /// assert_eq!(write.address().job_id(), 101);
    /// assert_eq!(write.memory_key(), Some(0xacce5));
    /// assert_eq!(write.match_bits(), None, "a write has a key in their place");
    /// assert_eq!(write.header_data(), None, "only the first packet has header data");
    /// assert_eq!(write.payload_length(), Some(4096));
    /// assert_eq!(write.message_offset(), Some(4096));
    /// assert_eq!(write.request_length(), 16_384);
    ///
    /// let built = Std::build(Opcode::UET_WRITE)
    ///     .head(|h| h.rel(true))
    ///     .message_id(1)
    ///     .address(|a| a.ri_generation(1).job_id(101).pid_on_fep(2).resource_index(10))
    ///     .memory_key(0xacce5)
    ///     .payload_length(4096)
    ///     .message_offset(4096)
    ///     .request_length(16_384)
    ///     .done()?;
    /// assert_eq!(built.bytes(), &bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Std[44] StdMut StdRepr, Ses "std" "standard request" {
        "head"                  0.. 16  head: RequestHead as RequestHeadMut RequestHeadRepr, "opcode and flags";
        "ses.message_id"       16.. 32  message_id: u16, "the message; the same in all its packets";
        "address"              32.. 96  address: Address as AddressMut AddressRepr, "whom the request is for";
        "ses.buffer_offset"    96..160  buffer_offset: u64 [when "ses.opcode" NOT_DEFERRABLE], "place in the buffer or region";
        "ses.initiator_restart_token"
                               96..128  send_initiator_token: u32 [when "ses.opcode" Opcode::DEFERRABLE], "the initiator's name for the deferrable message";
        "ses.target_restart_token"
                              128..160  send_target_token: u32 [when "ses.opcode" Opcode::DEFERRABLE], "the target's name for it, 0 in the first attempt";
        "ses.initiator"       160..192  initiator: u32, "the initiator's rank, for matching";
        "ses.memory_key"      192..256  memory_key: u64 [when "ses.opcode" Opcode::KEYED], "the memory region";
        "ses.initiator_restart_token"
                              192..224  ready_initiator_token: u32 [when "ses.opcode" Opcode::READY], "the initiator's name for the deferrable message";
        "ses.target_restart_token"
                              224..256  ready_target_token: u32 [when "ses.opcode" Opcode::READY], "the target's name for it";
        "ses.match_bits"      192..256  match_bits: u64 [when "ses.opcode" MATCHED], "the tag";
        "ses.header_data"     256..320  header_data: u64 [when "ses.som" is(1)], "data for the completion at the target";
        "-"                   256..274  [when "ses.som" is(0)];
        "ses.payload_length"  274..288  payload_length: u16 [when "ses.som" is(0)], "bytes of payload in this packet";
        "ses.message_offset"  288..320  message_offset: u32 [when "ses.som" is(0)], "where in the message they start";
        "ses.request_length"  320..352  request_length: u32, "bytes of the whole message";
    }
}

impl Std {
    /// Starts building a request with this opcode. Set `som` of the first packet of a message and `eom` of the last
    /// one. Both are 0 here, as in a packet from the middle of a message. Such a packet states `payload_length`. A
    /// [`Medium`] or [`Small`] request has both set.
    pub fn build(opcode: Opcode) -> StdMut {
        Std::zeroed().edit().head(|head| head.opcode(opcode))
    }
}

impl<B: Borrow<[u8; 44]>> Std<B> {
    /// Returns the initiator's restart token. The opcode decides its position.
    pub fn initiator_restart_token(&self) -> Option<u32> {
        self.send_initiator_token().or_else(|| self.ready_initiator_token())
    }

    /// Returns the target's restart token. The opcode decides its position.
    pub fn target_restart_token(&self) -> Option<u32> {
        self.send_target_token().or_else(|| self.ready_target_token())
    }
}

header! {
    /// A medium request: a message of one packet, with a key or match bits.
    ///
    /// ```
    /// use uet_wire::registry::Opcode;
    /// use uet_wire::ses::Medium;
    ///
    /// let send = Medium::build(Opcode::UET_TAGGED_SEND)
    ///     .head(|h| h.hd(true))
    ///     .request_length(64)
    ///     .address(|a| a.job_id(101).resource_index(3))
    ///     .header_data(11)
    ///     .match_bits(0x77)
    ///     .done()?;
    /// assert_eq!(send.bytes()[..4], [0x09, 0x07, 0, 64]);
    /// assert_eq!(send.buffer_offset(), None, "header data stands in its place");
    /// assert_eq!(send.memory_key(), None);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Medium[32] MediumMut MediumRepr, Ses "medium" "medium request" {
        "head"                  0.. 16  head: RequestHead as RequestHeadMut RequestHeadRepr, "opcode and flags";
        "-"                    16.. 18;
        "ses.request_length"   18.. 32  request_length: u16, "bytes of the message";
        "address"              32.. 96  address: Address as AddressMut AddressRepr, "whom the request is for";
        "ses.header_data"      96..160  header_data: u64 [when "ses.hd" is(1)], "data for the completion at the target";
        "ses.buffer_offset"    96..160  buffer_offset: u64 [when "ses.hd" is(0)], "place in the buffer or region";
        "ses.initiator"       160..192  initiator: u32, "the initiator's rank, for matching";
        "ses.memory_key"      192..256  memory_key: u64 [when "ses.opcode" Opcode::KEYED], "the memory region";
        "ses.match_bits"      192..256  match_bits: u64 [when "ses.opcode" MEDIUM_MATCHED], "the tag";
    }
}

impl Medium {
    /// Starts building a request of one packet with this opcode.
    pub fn build(opcode: Opcode) -> MediumMut {
        Medium::zeroed().edit().head(|head| head.opcode(opcode).som(true).eom(true))
    }
}

header! {
    /// A small request: a message of one packet, with neither key nor match bits.
    ///
    /// ```
    /// use uet_wire::registry::Opcode;
    /// use uet_wire::ses::Small;
    ///
    /// let read = Small::build(Opcode::UET_READ)
    ///     .request_length(8)
    ///     .address(|a| a.job_id(101).resource_index(5))
    ///     .buffer_offset(0x100)
    ///     .done()?;
    /// assert_eq!(read.bytes(), &[2, 3, 0, 8, 0, 0, 0, 101, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 0]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Small[20] SmallMut SmallRepr, Ses "small" "small request" {
        "head"                  0.. 16  head: RequestHead as RequestHeadMut RequestHeadRepr, "opcode and flags";
        "-"                    16.. 18;
        "ses.request_length"   18.. 32  request_length: u16, "bytes of the message";
        "address"              32.. 96  address: Address as AddressMut AddressRepr, "whom the request is for";
        "ses.buffer_offset"    96..160  buffer_offset: u64, "place in the buffer or region";
    }
}

impl Small {
    /// Starts building a request of one packet with this opcode.
    pub fn build(opcode: Opcode) -> SmallMut {
        Small::zeroed().edit().head(|head| head.opcode(opcode).som(true).eom(true))
    }
}
