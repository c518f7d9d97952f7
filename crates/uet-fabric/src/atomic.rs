//! The operations and data types of atomics, by the numbers of libfabric.

use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Operations in the order of libfabric's numbers, which differ from those of UET by one entry.
const OPCODES: [AtomicOpcode; 19] = [
    AtomicOpcode::MIN,
    AtomicOpcode::MAX,
    AtomicOpcode::SUM,
    AtomicOpcode::PROD,
    AtomicOpcode::LOR,
    AtomicOpcode::LAND,
    AtomicOpcode::BOR,
    AtomicOpcode::BAND,
    AtomicOpcode::LXOR,
    AtomicOpcode::BXOR,
    AtomicOpcode::READ,
    AtomicOpcode::WRITE,
    AtomicOpcode::CSWAP,
    AtomicOpcode::CSWAP_NE,
    AtomicOpcode::CSWAP_LE,
    AtomicOpcode::CSWAP_LT,
    AtomicOpcode::CSWAP_GE,
    AtomicOpcode::CSWAP_GT,
    AtomicOpcode::MSWAP,
];

/// Data types in the order of libfabric's numbers, and their widths. The model knows no `long double` of the host.
const DATATYPES: [(AtomicDatatype, usize); 12] = [
    (AtomicDatatype::INT8, 1),
    (AtomicDatatype::UINT8, 1),
    (AtomicDatatype::INT16, 2),
    (AtomicDatatype::UINT16, 2),
    (AtomicDatatype::INT32, 4),
    (AtomicDatatype::UINT32, 4),
    (AtomicDatatype::INT64, 8),
    (AtomicDatatype::UINT64, 8),
    (AtomicDatatype::FLOAT, 4),
    (AtomicDatatype::DOUBLE, 8),
    (AtomicDatatype::FLOAT_COMPLEX, 8),
    (AtomicDatatype::DOUBLE_COMPLEX, 16),
];

/// Returns the operation with this number in libfabric.
pub fn atomic_opcode(number: u32) -> Option<AtomicOpcode> {
    OPCODES.get(usize::try_from(number).ok()?).copied()
}

/// Returns the data type with this number in libfabric.
pub fn datatype(number: u32) -> Option<AtomicDatatype> {
    DATATYPES.get(usize::try_from(number).ok()?).map(|(datatype, _)| *datatype)
}

/// Returns the width of an element in bytes.
pub fn atomic_width(datatype: AtomicDatatype) -> Option<usize> {
    DATATYPES.iter().find(|(known, _)| *known == datatype).map(|(_, width)| *width)
}

/// Returns whether the model offers this operation on this data type.
pub fn supports(opcode: AtomicOpcode, datatype: AtomicDatatype) -> bool {
    let is_float = matches!(datatype, AtomicDatatype::FLOAT | AtomicDatatype::DOUBLE);
    let is_complex = matches!(datatype, AtomicDatatype::FLOAT_COMPLEX | AtomicDatatype::DOUBLE_COMPLEX);
    let is_bitwise = matches!(opcode, AtomicOpcode::BOR | AtomicOpcode::BAND | AtomicOpcode::BXOR);
    let is_logical = matches!(opcode, AtomicOpcode::LOR | AtomicOpcode::LAND | AtomicOpcode::LXOR);
    let orders = matches!(
        opcode,
        AtomicOpcode::MIN
            | AtomicOpcode::MAX
            | AtomicOpcode::CSWAP_LE
            | AtomicOpcode::CSWAP_LT
            | AtomicOpcode::CSWAP_GE
            | AtomicOpcode::CSWAP_GT
    );
    // No public source shows the operands of a masked swap.
    opcode != AtomicOpcode::MSWAP
        && !(is_bitwise && is_float || is_complex && (is_bitwise || is_logical || orders))
}
