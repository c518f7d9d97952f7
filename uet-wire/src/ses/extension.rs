use super::Ses;
use crate::ParseError;
use crate::error::Split;
use crate::header::{family, header};
use crate::registry::{AtomicDatatype, AtomicOpcode};

header! {
    /// The extension of a rendezvous send: the eager length, and the location from which the target reads the rest.
    ///
    /// ```
    /// use uet_wire::ses::Rendezvous;
    ///
    /// let extension = Rendezvous::zeroed()
    ///     .edit()
    ///     .eager_length(4096)
    ///     .read_ri_generation(1)
    ///     .read_pid_on_fep(2)
    ///     .read_resource_index(0x12c)
    ///     .read_offset(4096)
    ///     .read_memory_key(0xacce5)
    ///     .done()?;
    /// assert_eq!(extension.bytes()[..8], [0, 0, 0x10, 0, 0x01, 0x00, 0x21, 0x2c]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Rendezvous[24] RendezvousMut RendezvousRepr, Ext "rendezvous" "rendezvous extension" {
        "ses.eager_length"          0.. 32  eager_length: u32, "bytes of the message that come with the request";
        "ses.read_ri_generation"   32.. 40  read_ri_generation: u8, "generation of the index to read from";
        "ses.read_pid_on_fep"      40.. 52  read_pid_on_fep: u16, "process to read from";
        "ses.read_resource_index"  52.. 64  read_resource_index: u16, "index to read from";
        "ses.read_offset"          64..128  read_offset: u64, "where to read the rest";
        "ses.read_memory_key"     128..192  read_memory_key: u64, "region to read the rest from";
    }
}

header! {
    /// The extension of an atomic: its operation and data type.
    ///
    /// ```
    /// use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
    /// use uet_wire::ses::Atomic;
    ///
    /// let sum = Atomic::build(AtomicOpcode::SUM, AtomicDatatype::UINT64).cpu_coherent(true).done()?;
    /// assert_eq!(sum.bytes(), &[0x02, 0x07, 0x02, 0x00]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    Atomic[4] AtomicMut AtomicRepr, Ext "atomic" "atomic extension" {
        "ses.atomic_opcode"         0..  8  atomic_opcode: AtomicOpcode, "the operation";
        "ses.atomic_datatype"       8.. 16  atomic_datatype: AtomicDatatype, "the type of the elements";
        "ses.semantic_control"     16.. 24  semantic_control: u8, "bit 0: cacheable, bit 1: CPU coherent";
        "-"                        24.. 32;
    }
}

impl Atomic {
    /// The cacheable bit of `ses.semantic_control`.
    pub const CACHEABLE: u8 = 1;
    /// The CPU-coherent bit of `ses.semantic_control`.
    pub const CPU_COHERENT: u8 = 2;

    /// Starts building the extension for this operation and data type.
    pub fn build(opcode: AtomicOpcode, datatype: AtomicDatatype) -> AtomicMut {
        Atomic::zeroed().edit().atomic_opcode(opcode).atomic_datatype(datatype)
    }
}

impl<B: core::borrow::BorrowMut<[u8; 4]>> AtomicMut<B> {
    /// Sets the cacheable bit.
    pub fn cacheable(self, on: bool) -> Self {
        self.control_bit(Atomic::CACHEABLE, on)
    }

    /// Sets the CPU-coherent bit.
    pub fn cpu_coherent(self, on: bool) -> Self {
        self.control_bit(Atomic::CPU_COHERENT, on)
    }

    fn control_bit(self, bit: u8, on: bool) -> Self {
        let others = self.current_unchecked().semantic_control() & !bit;
        self.semantic_control(if on { others | bit } else { others })
    }
}

header! {
    /// The extension of a compare-and-swap. The operands are right-aligned in their 128 bits.
    ///
    /// ```
    /// use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
    /// use uet_wire::ses::CompareSwap;
    ///
    /// let swap = CompareSwap::zeroed()
    ///     .edit()
    ///     .atomic(|a| a.atomic_opcode(AtomicOpcode::CSWAP).atomic_datatype(AtomicDatatype::UINT32))
    ///     .compare_value(7)
    ///     .swap_value(8)
    ///     .done()?;
    /// assert_eq!((swap.bytes()[0], swap.bytes()[19], swap.bytes()[35]), (0x0d, 7, 8));
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    CompareSwap[36] CompareSwapMut CompareSwapRepr, Ext "compare_swap" "atomic compare-and-swap extension" {
        "atomic"                    0.. 32  atomic: Atomic as AtomicMut AtomicRepr, "operation and type";
        "ses.compare_value"        32..160  compare_value: u128, "the value to compare with";
        "ses.swap_value"          160..288  swap_value: u128, "the value to store";
    }
}

family! {
    /// Any extension of a request.
    Ext, ExtBuf {
        /// A rendezvous extension.
        Rendezvous[24];
        /// An atomic extension.
        Atomic[4];
        /// An atomic extension with operands.
        CompareSwap[36];
    }
}

impl<'a> Ext<'a> {
    /// Parses the extension that follows the request `ses`, and returns it with the bytes after it. Returns `None` for
    /// a response and for a request without an extension.
    pub fn parse_after(ses: &Ses<'_>, bytes: &'a [u8]) -> Option<Result<(Self, &'a [u8]), ParseError>> {
        Some(Self::split_after(ses, bytes)?.map_err(|header| ParseError::short(header, bytes)))
    }

    #[inline(always)]
    pub(crate) fn split_after(ses: &Ses<'_>, bytes: &'a [u8]) -> Option<Split<'a, Self>> {
        let opcode = ses.opcode()?;
        if opcode.is_rendezvous() {
            Some(Rendezvous::split(bytes).map(|(extension, rest)| (Ext::Rendezvous(extension), rest)))
        } else if opcode.is_atomic() {
            Some(Self::split_atomic(bytes))
        } else {
            None
        }
    }

    #[inline]
    fn split_atomic(bytes: &'a [u8]) -> Split<'a, Self> {
        // The first byte decides, even if it is the only one.
        let short = Atomic::from_bytes([bytes.first().copied().unwrap_or(0), 0, 0, 0]);
        if short.atomic_opcode().is_compare_and_swap() {
            CompareSwap::split(bytes).map(|(header, rest)| (Ext::CompareSwap(header), rest))
        } else {
            Atomic::split(bytes).map(|(header, rest)| (Ext::Atomic(header), rest))
        }
    }
}
