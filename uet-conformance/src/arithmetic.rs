//! The arithmetic of atomics on one element, from the names of operations and datatypes alone.

use crate::elements::{Kind, kind};
use uet_wire::registry::AtomicDatatype as Type;
use uet_wire::registry::AtomicOpcode as Op;

/// Contents of an element after an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Result {
    /// These bits.
    Is(u128),
    /// One of these.
    Either(u128, u128),
    /// The sources leave it open.
    Open,
}

/// Returns the bits of an element of `size` bytes.
pub(crate) fn mask(size: usize) -> u128 {
    u128::MAX >> (128 - 8 * size)
}

fn is_less(kind: Kind, left: u128, right: u128) -> bool {
    let unused = 128 - 8 * kind.size as u32;
    let signed = |bits: u128| ((bits << unused) as i128) >> unused;
    match kind.datatype {
        Type::INT8 | Type::INT16 | Type::INT32 | Type::INT64 | Type::INT128 => signed(left) < signed(right),
        _ => left < right,
    }
}

/// Returns whether the sources say how an operation acts on a datatype.
pub(crate) fn is_known(opcode: Op, datatype: Type) -> bool {
    let float = matches!(datatype, Type::FLOAT | Type::DOUBLE);
    let complex = matches!(datatype, Type::FLOAT_COMPLEX | Type::DOUBLE_COMPLEX);
    match opcode {
        Op::SUM | Op::DIFF | Op::PROD | Op::WRITE => datatype.code() <= Type::DOUBLE_COMPLEX.code(),
        Op::MIN | Op::MAX => datatype.code() <= Type::DOUBLE.code(),
        _ => !float && !complex && datatype.code() <= Type::UINT128.code() && opcode != Op::MSWAP,
    }
}

/// Returns whether the comparison of a compare and swap holds. Open: whether memory or `compare_value` comes
/// first.
pub(crate) fn holds(kind: Kind, memory_first: bool, memory: u128, compare: u128) -> bool {
    let (left, right) = if memory_first { (memory, compare) } else { (compare, memory) };
    match kind.opcode {
        Op::CSWAP => left == right,
        Op::CSWAP_NE => left != right,
        Op::CSWAP_LE => !is_less(kind, right, left),
        Op::CSWAP_LT => is_less(kind, left, right),
        Op::CSWAP_GE => !is_less(kind, left, right),
        _ => is_less(kind, right, left),
    }
}

/// Returns what an element that holds `old` holds after an operation.
pub(crate) fn apply(opcode: Op, datatype: Type, old: u128, with: u128, swap: u128) -> Result {
    let kind = kind(opcode, datatype);
    let all = mask(kind.size);
    let (old, with, swap) = (old & all, with & all, swap & all);
    match (opcode, datatype) {
        (Op::READ, _) => return Result::Is(old),
        (Op::WRITE, _) => return Result::Is(with),
        (_, Type::FLOAT) => return float(opcode, old, with),
        (_, Type::DOUBLE) => return double(opcode, old, with),
        (_, Type::FLOAT_COMPLEX) => return complex(opcode, 4, old, with, float),
        (_, Type::DOUBLE_COMPLEX) => return complex(opcode, 8, old, with, double),
        _ if !is_known(opcode, datatype) => return Result::Open,
        _ => {}
    }
    let truth = |holds: bool| u128::from(holds);
    let new = match opcode {
        Op::MIN if is_less(kind, with, old) => with,
        Op::MAX if is_less(kind, old, with) => with,
        Op::MIN | Op::MAX => old,
        Op::SUM => old.wrapping_add(with),
        Op::DIFF => old.wrapping_sub(with),
        Op::PROD => old.wrapping_mul(with),
        Op::LOR => truth(old != 0 || with != 0),
        Op::LAND => truth(old != 0 && with != 0),
        Op::LXOR => truth((old != 0) != (with != 0)),
        Op::BOR => old | with,
        Op::BAND => old & with,
        Op::BXOR => old ^ with,
        Op::CSWAP | Op::CSWAP_NE | Op::CSWAP_LT | Op::CSWAP_GT | Op::CSWAP_LE | Op::CSWAP_GE => {
            let after = |memory_first| if holds(kind, memory_first, old, with) { swap } else { old };
            return match (after(true), after(false)) {
                (one, other) if one == other => Result::Is(one),
                (one, other) => Result::Either(one, other),
            };
        }
        _ => return Result::Open,
    };
    Result::Is(new & all)
}

/// Returns whether IEEE 754 and every implementation of it agree on a number: neither tiny, nor infinite, nor
/// none.
macro_rules! plain {
    ($value:expr) => {
        $value == 0.0 && !$value.is_sign_negative() || $value.is_normal()
    };
}

macro_rules! floats {
    ($name:ident $Float:ty, $Bits:ty) => {
        fn $name(opcode: Op, old: u128, with: u128) -> Result {
            let (old, with) = (<$Float>::from_bits(old as $Bits), <$Float>::from_bits(with as $Bits));
            let new = match opcode {
                Op::SUM => old + with,
                Op::DIFF => old - with,
                Op::PROD => old * with,
                Op::MIN => old.min(with),
                Op::MAX => old.max(with),
                _ => return Result::Open,
            };
            if plain!(old) && plain!(with) && plain!(new) {
                Result::Is(new.to_bits().into())
            } else {
                Result::Open
            }
        }
    };
}

floats!(float f32, u32);
floats!(double f64, u64);

/// A complex number is its real and its imaginary part.
fn complex(opcode: Op, half: usize, old: u128, with: u128, part: fn(Op, u128, u128) -> Result) -> Result {
    let bits = 8 * half as u32;
    let parts = |number: u128| (number & mask(half), number >> bits & mask(half));
    let ((a, b), (c, d)) = (parts(old), parts(with));
    let both = |real, imaginary| match (real, imaginary) {
        (Result::Is(real), Result::Is(imaginary)) => Result::Is(real | imaginary << bits),
        _ => Result::Open,
    };
    let product = |x, y| match part(Op::PROD, x, y) {
        Result::Is(product) => Some(product),
        _ => None,
    };
    match opcode {
        Op::SUM | Op::DIFF => both(part(opcode, a, c), part(opcode, b, d)),
        Op::PROD => match (product(a, c), product(b, d), product(a, d), product(b, c)) {
            (Some(ac), Some(bd), Some(ad), Some(bc)) => both(part(Op::DIFF, ac, bd), part(Op::SUM, ad, bc)),
            _ => Result::Open,
        },
        _ => Result::Open,
    }
}
