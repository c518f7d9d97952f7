//! Code points of semantics.

use super::registry;
use crate::layout::Values;

registry! {
    /// The operation of a request: `ses.opcode` of a request.
    Opcode(6) "SES request opcode" vendor 0x30..=0x3E {
        0x00 UET_NO_OP "nothing";
        0x01 UET_WRITE "writes into a memory region";
        0x02 UET_READ "reads from a memory region";
        0x03 UET_ATOMIC "atomic operation on a memory region";
        0x04 UET_FETCHING_ATOMIC "atomic operation that returns the old value";
        0x05 UET_SEND "sends into a posted buffer";
        0x06 UET_RENDEZVOUS_SEND "sends the first bytes; the target reads the rest";
        0x07 UET_DATAGRAM_SEND "sends one packet";
        0x08 UET_DEFERRABLE_SEND "sends; the target may defer it";
        0x09 UET_TAGGED_SEND "sends into a buffer chosen by tag";
        0x0A UET_RENDEZVOUS_TSEND "rendezvous send by tag";
        0x0B UET_DEFERRABLE_TSEND "deferrable send by tag";
        0x0C UET_DEFERRABLE_RTR "the target of a deferred send is ready";
        0x0D UET_TSEND_ATOMIC "atomic operation on a buffer chosen by tag";
        0x0E UET_TSEND_FETCH_ATOMIC "the same, returning the old value";
        0x0F UET_MSG_ERROR "ends a message that will not be completed";
        0x3F EXTENDED "extended opcode";
    }
}

impl Opcode {
    /// Deferrable sends: restart tokens replace the buffer offset.
    pub(crate) const DEFERRABLE: Values = Self::set(&[Self::UET_DEFERRABLE_SEND, Self::UET_DEFERRABLE_TSEND]);
    /// The reply to a deferrable send: restart tokens replace the key.
    pub(crate) const READY: Values = Self::set(&[Self::UET_DEFERRABLE_RTR]);
    /// Operations on memory regions, which carry a memory key. All others carry match bits.
    pub(crate) const KEYED: Values =
        Self::set(&[Self::UET_WRITE, Self::UET_READ, Self::UET_ATOMIC, Self::UET_FETCHING_ATOMIC]);

    /// A rendezvous extension follows the request header.
    pub(crate) const RENDEZVOUS: Values = Self::set(&[Self::UET_RENDEZVOUS_SEND, Self::UET_RENDEZVOUS_TSEND]);
    /// An atomic extension follows the request header.
    pub(crate) const ATOMIC: Values = Self::set(&[
        Self::UET_ATOMIC,
        Self::UET_FETCHING_ATOMIC,
        Self::UET_TSEND_ATOMIC,
        Self::UET_TSEND_FETCH_ATOMIC,
    ]);

    /// Opcodes whose payload is exactly the message.
    pub(crate) const PLAIN: Values =
        Self::set(&[Self::UET_WRITE, Self::UET_SEND, Self::UET_TAGGED_SEND, Self::UET_DATAGRAM_SEND]);

    /// Returns true if a rendezvous extension follows the request header.
    pub const fn is_rendezvous(self) -> bool {
        Self::RENDEZVOUS.contains(self.0 as u128)
    }

    /// Returns true if the payload is exactly the message.
    ///
    /// Excludes deferrable sends. Public sources do not define whether a deferred send restarts completely or
    /// partially.
    pub const fn is_plain(self) -> bool {
        Self::PLAIN.contains(self.0 as u128)
    }

    /// Returns true if an atomic extension follows the request header.
    pub const fn is_atomic(self) -> bool {
        Self::ATOMIC.contains(self.0 as u128)
    }
}

registry! {
    /// The operation of an atomic: `ses.atomic_opcode`.
    AtomicOpcode(8) "atomic opcode" vendor 0xE0..=0xFE {
        0x00 MIN "minimum";
        0x01 MAX "maximum";
        0x02 SUM "sum";
        0x03 DIFF "difference";
        0x04 PROD "product";
        0x05 LOR "logical or";
        0x06 LAND "logical and";
        0x07 BOR "bitwise or";
        0x08 BAND "bitwise and";
        0x09 LXOR "logical exclusive or";
        0x0A BXOR "bitwise exclusive or";
        0x0B READ "atomic read";
        0x0C WRITE "atomic write";
        0x0D CSWAP "compare and swap if equal";
        0x0E CSWAP_NE "compare and swap if not equal";
        0x0F CSWAP_LE "compare and swap if less or equal";
        0x10 CSWAP_LT "compare and swap if less";
        0x11 CSWAP_GE "compare and swap if greater or equal";
        0x12 CSWAP_GT "compare and swap if greater";
        0x13 MSWAP "masked swap";
        0x14 INVAL "invalid";
    }
}

impl AtomicOpcode {
    /// Returns true if the long extension with two operands follows. MSWAP is undecided: no public source shows
    /// operands for it.
    pub const fn is_compare_and_swap(self) -> bool {
        self.code() >= Self::CSWAP.code() && self.code() <= Self::CSWAP_GT.code()
    }
}

registry! {
    /// The data type of an atomic: `ses.atomic_datatype`.
    AtomicDatatype(8) "atomic datatype" vendor 0xE0..=0xFE {
        0x00 INT8 "signed, 8 bits";
        0x01 UINT8 "unsigned, 8 bits";
        0x02 INT16 "signed, 16 bits";
        0x03 UINT16 "unsigned, 16 bits";
        0x04 INT32 "signed, 32 bits";
        0x05 UINT32 "unsigned, 32 bits";
        0x06 INT64 "signed, 64 bits";
        0x07 UINT64 "unsigned, 64 bits";
        0x08 INT128 "signed, 128 bits";
        0x09 UINT128 "unsigned, 128 bits";
        0x0A FLOAT "binary floating point, 32 bits";
        0x0B DOUBLE "binary floating point, 64 bits";
        0x0C FLOAT_COMPLEX "two FLOAT";
        0x0D DOUBLE_COMPLEX "two DOUBLE";
        0x0E LONG_DOUBLE "the host's long double";
        0x0F LONG_DOUBLE_COMPLEX "two LONG_DOUBLE";
        0x10 BF16 "bfloat16";
        0x11 FP16 "binary floating point, 16 bits";
    }
}

registry! {
    /// The type of a response: `ses.opcode` of a response.
    ResponseOpcode(6) "SES response opcode" vendor 0x30..=0x3F {
        0 UET_DEFAULT_RESPONSE "a plain success, made by anyone who can";
        1 UET_RESPONSE "a response with a result";
        2 UET_RESPONSE_W_DATA "a response that carries read data";
        3 UET_NO_RESPONSE "no response: arrival is all that is said";
    }
}

registry! {
    /// The list in which a send was matched: `ses.list`.
    List(2) "list that a send matched" vendor 2..=3 {
        0 UET_EXPECTED "the expected list, or no list at all";
        1 UET_OVERFLOW "the overflow list: the send was unexpected";
    }
}

registry! {
    /// The result of a request: `ses.return_code`.
    ReturnCode(6) "SES return code" vendor 0x30..=0x37 {
        0x00 NULL "nothing is said beyond arrival";
        0x01 OK "success";
        0x02 BAD_GENERATION "the generation of the resource index is not current";
        0x03 DISABLED "the resource index is disabled";
        0x04 DISABLED_GEN "disabled until the generation is raised";
        0x05 NO_MATCH "no buffer matches";
        0x06 UNSUPPORTED_OP "the operation is not supported";
        0x07 UNSUPPORTED_SIZE "the size is not supported";
        0x08 AT_INVALID "address translation: invalid";
        0x09 AT_PERM "address translation: not permitted";
        0x0A AT_ATS_ERROR "address translation: ATS error";
        0x0B AT_NO_TRANS "address translation: none found";
        0x0C AT_OUT_OF_RANGE "address translation: out of range";
        0x0D HOST_POISONED "the host's data is poisoned";
        0x0E HOST_UNSUCCESS_CMPL "the host did not complete";
        0x0F AMO_UNSUPPORTED_OP "atomic operation not supported";
        0x10 AMO_UNSUPPORTED_DT "atomic datatype not supported";
        0x11 AMO_UNSUPPORTED_SIZE "atomic size not supported";
        0x12 AMO_UNALIGNED "atomic not aligned";
        0x13 AMO_FP_NAN "floating point: not a number";
        0x14 AMO_FP_UNDERFLOW "floating point: underflow";
        0x15 AMO_FP_OVERFLOW "floating point: overflow";
        0x16 AMO_FP_INEXACT "floating point: inexact";
        0x17 PERM_VIOLATION "not permitted";
        0x18 OP_VIOLATION "the operation breaks a rule";
        0x19 BAD_INDEX "no such resource index";
        0x1A BAD_PID "no such process";
        0x1B BAD_JOB_ID "no such job";
        0x1C BAD_MKEY "no such memory key";
        0x1D BAD_ADDR "bad address";
        0x1E CANCELLED "cancelled";
        0x1F UNDELIVERABLE "cannot be delivered";
        0x20 UNCOR "uncorrectable error";
        0x21 UNCOR_TRNSNT "uncorrectable error, transient";
        0x22 TOO_LONG "longer than the buffer";
        0x23 INITIATOR_ERR "the initiator gave the message up";
        0x24 DROPPED "dropped";
        0x3E EXTENDED "extended return code";
    }
}
