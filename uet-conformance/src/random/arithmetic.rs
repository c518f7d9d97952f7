//! The arithmetic of atomics on one element, from the names of operations and datatypes alone.

use crate::elements::kind;
use uet_wire::registry::AtomicDatatype as Type;
use uet_wire::registry::AtomicOpcode as Op;

/// Contents of an element after an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    /// These bits.
    Is(u128),
    /// One of these.
    Either(u128, u128),
    /// The sources leave it open.
    Open,
}

/// The bits of an element of so many bytes.
fn mask(size: usize) -> u128 {
    u128::MAX >> (128 - 8 * size)
}

fn signed(datatype: Type, size: usize, bits: u128) -> Option<i128> {
    let unused = 128 - 8 * size as u32;
    let is_signed = matches!(datatype, Type::INT8 | Type::INT16 | Type::INT32 | Type::INT64 | Type::INT128);
    is_signed.then_some(((bits << unused) as i128) >> unused)
}

fn is_less(datatype: Type, size: usize, left: u128, right: u128) -> bool {
    match (signed(datatype, size, left), signed(datatype, size, right)) {
        (Some(left), Some(right)) => left < right,
        _ => left < right,
    }
}

/// Returns whether the sources say how an operation acts on a datatype.
pub(super) fn is_known(opcode: Op, datatype: Type) -> bool {
    let float = matches!(datatype, Type::FLOAT | Type::DOUBLE);
    let complex = matches!(datatype, Type::FLOAT_COMPLEX | Type::DOUBLE_COMPLEX);
    match opcode {
        Op::SUM | Op::DIFF | Op::PROD | Op::WRITE => datatype.code() <= Type::DOUBLE_COMPLEX.code(),
        Op::MIN | Op::MAX => datatype.code() <= Type::DOUBLE.code(),
        _ => !float && !complex && datatype.code() <= Type::UINT128.code() && opcode != Op::MSWAP,
    }
}

/// Returns what an element that holds `old` holds after an operation.
pub(super) fn apply(opcode: Op, datatype: Type, old: u128, with: u128, swap: u128) -> Result {
    let size = kind(opcode, datatype).size;
    let (old, with, swap) = (old & mask(size), with & mask(size), swap & mask(size));
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
    let less = |left, right| is_less(datatype, size, left, right);
    let truth = |holds: bool| u128::from(holds);
    let if_holds = |holds: bool| if holds { swap } else { old };
    // Open: which operand of an ordered comparison comes first.
    let ordered = |one: bool, other: bool| match (if_holds(one), if_holds(other)) {
        (one, other) if one == other => Result::Is(one),
        (one, other) => Result::Either(one, other),
    };
    let new = match opcode {
        Op::MIN => {
            if less(with, old) {
                with
            } else {
                old
            }
        }
        Op::MAX => {
            if less(old, with) {
                with
            } else {
                old
            }
        }
        Op::SUM => old.wrapping_add(with),
        Op::DIFF => old.wrapping_sub(with),
        Op::PROD => old.wrapping_mul(with),
        Op::LOR => truth(old != 0 || with != 0),
        Op::LAND => truth(old != 0 && with != 0),
        Op::LXOR => truth((old != 0) != (with != 0)),
        Op::BOR => old | with,
        Op::BAND => old & with,
        Op::BXOR => old ^ with,
        Op::CSWAP => if_holds(old == with),
        Op::CSWAP_NE => if_holds(old != with),
        Op::CSWAP_LT | Op::CSWAP_GT => return ordered(less(old, with), less(with, old)),
        Op::CSWAP_LE | Op::CSWAP_GE => return ordered(!less(with, old), !less(old, with)),
        _ => return Result::Open,
    };
    Result::Is(new & mask(size))
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
