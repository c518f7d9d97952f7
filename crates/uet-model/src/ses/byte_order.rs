//! The byte order of the elements of atomics, in memory and in packets. Public sources leave both open.

use super::arithmetic::width_of;
use super::params::SesParams;
use bytes::Bytes;
use uet_wire::registry::AtomicDatatype;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest byte first.
    #[default]
    Little,
    /// The highest byte first.
    Big,
}

impl SesParams {
    /// Returns the byte order of operands and results in packets.
    fn order_in_packets(&self) -> ByteOrder {
        self.operand_order.unwrap_or(self.byte_order)
    }

    /// Converts elements from memory to packets, or back.
    pub(super) fn convert(&self, datatype: AtomicDatatype, elements: Bytes) -> Bytes {
        match self.order_in_packets() == self.byte_order {
            true => elements,
            false => reversed(datatype, &elements),
        }
    }

    /// Converts the operand of a packet to the order of the arithmetic, which is little.
    pub(super) fn operand(&self, datatype: AtomicDatatype, operand: &Bytes) -> Bytes {
        match self.order_in_packets() {
            ByteOrder::Little => operand.clone(),
            ByteOrder::Big => reversed(datatype, operand),
        }
    }

    /// Calls `change` with elements of memory in the order of the arithmetic, which is little.
    pub(super) fn in_little<R>(
        &self,
        datatype: AtomicDatatype,
        memory: &mut [u8],
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        if self.byte_order == ByteOrder::Little {
            return change(memory);
        }
        reverse(datatype, memory);
        let result = change(memory);
        reverse(datatype, memory);
        result
    }
}

fn reversed(datatype: AtomicDatatype, elements: &[u8]) -> Bytes {
    let mut bytes = elements.to_vec();
    reverse(datatype, &mut bytes);
    bytes.into()
}

/// Reverses the bytes of each number. A complex number is two numbers.
fn reverse(datatype: AtomicDatatype, elements: &mut [u8]) {
    let numbers = match datatype {
        AtomicDatatype::FLOAT_COMPLEX | AtomicDatatype::DOUBLE_COMPLEX => 2,
        _ => 1,
    };
    let size = width_of(datatype).map_or(1, |size| size as usize / numbers);
    elements.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}
